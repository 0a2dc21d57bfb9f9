//! Gathers what one input changes into one commit, and lets out what had to wait for it.

use super::{After, Core, Draft, Pending, Touched};
use crate::change::Change;
use crate::count::Count;
use crate::ids::{BudgetId, CommitId, Seq};
use crate::io::{CommitFailure, Effect, Event, Refusal, Reply};
use crate::job::{HoldCause, Lane};
use crate::time::{Mono, Now};

/// The most that a claim is begun before its request may leave.
const MAX_LEAD_MS: u64 = 25;
/// So many commits' time ahead, slots are claimed together: a commit costs far more than what one more claim adds to it.
const LEADS_TOGETHER: u64 = 4;

impl Core {
    /// Turns the draft into a commit, if it holds anything.
    pub(super) fn flush(&mut self, now: Now) {
        if self.draft.is_empty() {
            return;
        }
        self.clean(now);
        let mut draft = std::mem::take(&mut self.draft);
        draft
            .touched
            .absorb(std::mem::take(&mut self.unsaved.touched));
        draft
            .after
            .splice(0..0, std::mem::take(&mut self.unsaved.after));
        let may_wait = self.may_wait(&draft);
        let commit = self.next_commit;
        self.next_commit = commit.next();
        draft
            .drops
            .splice(0..0, std::mem::take(&mut self.unsaved.drops));
        let changes = self.changes(draft.batches, &draft.touched, draft.drops.clone(), now);
        self.pending.insert(
            commit,
            Pending {
                touched: draft.touched,
                drops: draft.drops,
                after: draft.after,
                begun: now,
            },
        );
        self.effects.push_back(Effect::Commit {
            commit,
            changes,
            may_wait,
        });
    }

    /// Tells whether nobody waits for a commit of this draft: it holds what has come of bulk and background jobs, no more.
    fn may_wait(&self, draft: &Draft) -> bool {
        let is_patient = |after: &After| match after {
            After::Settled(seq, _) => self
                .jobs
                .get(seq)
                .is_some_and(|job| job.lane() != Lane::Interactive),
            After::GroupSettled(_)
            | After::Event(_)
            | After::Accept { .. }
            | After::Dispatch { .. }
            | After::Reply(..) => false,
        };
        let Touched { budgets, holds, .. } = &draft.touched;
        let is_of_jobs = draft.batches.is_empty() && budgets.is_empty() && !holds;
        is_of_jobs && draft.after.iter().all(is_patient)
    }

    pub(super) fn committed(&mut self, commit: CommitId, now: Now) {
        let Some(pending) = self.pending.remove(&commit) else {
            return;
        };
        let took_ms = now.mono.since(pending.begun.mono);
        self.learn_lead(took_ms);
        self.lateness
            .learn(took_ms.max(now.wall.since(pending.begun.wall)));
        for after in pending.after {
            match after {
                After::Accept {
                    request,
                    asked,
                    new,
                } => self.accepted(request, asked, &new, now),
                After::Dispatch {
                    seq,
                    attempt,
                    start,
                } => {
                    self.claiming = self.claiming.saturating_sub(1);
                    self.dispatch_at(seq, attempt, start, now);
                }
                After::Settled(seq, nth) => self.tell_settled(seq, nth),
                After::GroupSettled(group) => self.tell_group_settled(&group),
                After::Reply(request, reply) => {
                    self.effects.push_back(Effect::Reply { request, reply })
                }
                After::Event(event) => self.effects.push_back(Effect::Event(event)),
            }
        }
    }

    /// Learns how long a commit takes: a claim is begun that much before the instant at which its request may leave, so
    /// that the store's time costs no rate. Grows at once, shrinks slowly.
    fn learn_lead(&mut self, took_ms: u64) {
        let slowly = (self.lead_ms.saturating_mul(7).saturating_add(took_ms)) / 8;
        self.lead_ms = took_ms.max(slowly).min(MAX_LEAD_MS);
    }

    /// Returns the instant up to which slots are claimed together with the next one.
    pub(super) fn claim_horizon(&self, now: Now) -> Mono {
        let ahead_ms = self.lead_ms.saturating_mul(LEADS_TOGETHER);
        now.mono.plus(ahead_ms.min(MAX_LEAD_MS))
    }

    /// Nothing of the commit is stored: refuses what was asked, undoes claims, and keeps outcomes to store them later.
    pub(super) fn commit_failed(&mut self, commit: CommitId, failure: CommitFailure, now: Now) {
        let Some(pending) = self.pending.remove(&commit) else {
            return;
        };
        let refusal = match failure {
            CommitFailure::Full => Refusal::StorageFull,
            CommitFailure::Broken => Refusal::Storage,
        };
        let mut is_only_refused = true;
        for after in pending.after {
            match after {
                After::Accept { request, new, .. } => {
                    self.withdraw(&new, now);
                    self.effects.push_back(Effect::Reply {
                        request,
                        reply: Reply::Refused(refusal.clone()),
                    });
                }
                After::Reply(request, _) => {
                    self.effects.push_back(Effect::Reply {
                        request,
                        reply: Reply::Refused(refusal.clone()),
                    });
                }
                After::Dispatch { seq, attempt, .. } => {
                    self.claiming = self.claiming.saturating_sub(1);
                    is_only_refused = false;
                    self.unclaim(seq, attempt, now);
                }
                After::Settled(..) | After::GroupSettled(_) | After::Event(_) => {
                    is_only_refused = false;
                    self.unsaved.after.push(after);
                }
            }
        }
        self.unsaved.touched.absorb(pending.touched);
        self.unsaved.drops.extend(pending.drops);
        if !is_only_refused && self.holds.insert(HoldCause::Storage) {
            self.effects.push_back(Effect::Event(Event::Held {
                budget: None,
                cause: HoldCause::Storage,
            }));
        }
    }

    /// Tries again to store what could not be stored.
    pub(super) fn save_unsaved(&mut self) {
        self.draft
            .touched
            .absorb(std::mem::take(&mut self.unsaved.touched));
        self.draft.after.append(&mut self.unsaved.after);
    }

    fn changes(
        &self,
        batches: Vec<(crate::ids::BatchNo, Vec<crate::job::Card>)>,
        touched: &Touched,
        drops: Vec<Change>,
        now: Now,
    ) -> Vec<Change> {
        let mut changes: Vec<Change> = batches
            .into_iter()
            .map(|(batch, cards)| Change::AddBatch { batch, cards })
            .collect();
        changes.extend(touched.records.iter().filter_map(|seq| {
            let record = self.jobs.get(seq)?.record.clone();
            Some(Change::PutRecord { seq: *seq, record })
        }));
        changes.extend(touched.groups.iter().filter_map(|group| {
            let record = self.groups.get(group)?.record;
            Some(Change::PutGroup {
                group: group.clone(),
                record,
            })
        }));
        changes.extend(touched.budgets.iter().filter_map(|budget| {
            let record = self.budgets.get(budget)?.record(now);
            Some(Change::PutBudget {
                budget: budget.clone(),
                record,
            })
        }));
        if touched.holds
            && let Ok(budget) = BudgetId::parse(BudgetId::QUEUE)
        {
            let holds = self
                .holds
                .iter()
                .copied()
                .filter(|cause| cause.is_lasting())
                .collect();
            let record = crate::job::BudgetRecord {
                holds,
                ..Default::default()
            };
            changes.push(Change::PutBudget { budget, record });
        }
        changes.extend(drops);
        changes
    }

    /// Tells how a job has ended, once that is stored. A retry may have come between: what has ended since is told when it
    /// is stored itself.
    fn tell_settled(&mut self, seq: Seq, nth: u32) {
        let is_stale = |job: &super::Job| job.settlements != nth;
        if self.jobs.get(&seq).is_none_or(is_stale) {
            return;
        }
        self.count_settled(seq);
        self.no_longer_settling(seq);
        let Some(job) = self.jobs.get(&seq) else {
            return;
        };
        let Some(outcome) = job.record.outcome.clone() else {
            return;
        };
        let (id, group) = (job.card.id.clone(), job.card.group.clone());
        let state = job.record.state;
        let answered_by = self.carrier(seq);
        let attempts = self
            .jobs
            .get(&answered_by)
            .map_or(0, |job| job.record.attempt);
        self.effects.push_back(Effect::Settled {
            seq,
            id,
            group: group.clone(),
            state,
            outcome,
            attempts,
            answered_by,
        });
        if let Some(id) =
            group.filter(|id| self.groups.get(id).is_some_and(|group| group.is_untold))
        {
            self.tell_group_settled(&id);
        }
    }

    /// Counts a job into the state that it has ended in, or is about to leave again.
    pub(super) fn no_longer_settling(&mut self, seq: Seq) {
        let Some(job) = self.jobs.get_mut(&seq) else {
            return;
        };
        if std::mem::take(&mut job.is_settling)
            && let Some(count) = self.settling.get_mut(job.record.state.index())
        {
            Count::Down.apply(count);
        }
    }

    /// Tells that a group has settled, or lets the last of its jobs tell it whose outcome is not stored yet: that one's
    /// commit may have failed while a later one was stored.
    fn tell_group_settled(&mut self, id: &crate::ids::GroupId) {
        let Some(group) = self.groups.get_mut(id) else {
            return;
        };
        let record = group.record;
        let is_stored = |seq| self.jobs.get(seq).is_none_or(|job| !job.is_settling);
        let is_settled = record.settled_at.is_some();
        group.is_untold = is_settled && !group.jobs.iter().all(is_stored);
        if !is_settled || group.is_untold {
            return;
        }
        self.effects.push_back(Effect::GroupSettled {
            group: id.clone(),
            done: record.done,
            failed: record.failed,
            cancelled: record.cancelled,
        });
    }
}

impl Draft {
    fn is_empty(&self) -> bool {
        self.batches.is_empty()
            && self.touched.is_empty()
            && self.drops.is_empty()
            && self.after.is_empty()
    }
}

impl Touched {
    fn is_empty(&self) -> bool {
        self.records.is_empty() && self.groups.is_empty() && self.budgets.is_empty() && !self.holds
    }

    fn absorb(&mut self, other: Self) {
        self.records.extend(other.records);
        self.groups.extend(other.groups);
        self.budgets.extend(other.budgets);
        self.holds |= other.holds;
    }
}
