//! What the user wishes: cancel, retry, hold, resume.

use std::collections::BTreeSet;

use super::{After, Core};
use crate::ids::{BudgetId, GroupId, RequestId, Seq};
use crate::io::{Effect, Event, Force, Network, Refusal, Reply, Target};
use crate::job::{HoldCause, Lane, Outcome, Reason, State};
use crate::time::Now;

impl Core {
    pub(super) fn cancel(
        &mut self,
        request: Option<RequestId>,
        target: &Target,
        reason: Reason,
        now: Now,
    ) {
        let (mut cancelled, mut already_sent) = (0_u32, 0_u32);
        let chosen: BTreeSet<Seq> = self.targets(target).into_iter().collect();
        for seq in chosen.iter().copied() {
            self.release_key(seq, now);
            let Some(job) = self.jobs.get(&seq) else {
                continue;
            };
            let is_sent = !job.record.state.is_settled()
                && (self.state_of(job) == State::Sending
                    || self.undecided.contains(&self.carrier(seq))
                    || self.is_bound(seq, &chosen));
            if is_sent {
                already_sent = already_sent.saturating_add(1);
                continue;
            }
            if !job.record.state.is_settled() && job.is_stored && !self.is_tried(seq) {
                self.part(seq, now);
            }
            let Some(job) = self.jobs.get(&seq).filter(|job| job.is_waiting()) else {
                continue;
            };
            if !job.is_stored {
                self.unwanted.insert(seq, reason);
                cancelled = cancelled.saturating_add(1);
                continue;
            }
            // All that went in one request, or it would count as sent.
            if let Some((carrier, _)) = self.load_of(seq) {
                self.disband(carrier);
            }
            let members = self.unsettled_members(seq).len();
            let members = u32::try_from(members).unwrap_or(u32::MAX);
            cancelled = cancelled.saturating_add(1).saturating_add(members);
            let outcome = Outcome::unanswered(reason, now.wall);
            self.settle(seq, State::Cancelled, outcome, now);
        }
        self.reply(
            request,
            Reply::Cancelled {
                cancelled,
                already_sent,
            },
        );
    }

    /// Gives waiting jobs another lane; what was merged moves as one.
    pub(super) fn prioritise(&mut self, request: RequestId, target: &Target, lane: Lane, now: Now) {
        let (mut moved, mut already_sent) = (0_u32, 0_u32);
        let targets = self.targets(target).into_iter();
        let chosen: BTreeSet<Seq> = targets.map(|seq| self.carrier(seq)).collect();
        for seq in chosen {
            let Some(job) = self.jobs.get(&seq) else {
                continue;
            };
            if job.record.state == State::Sending || self.undecided.contains(&seq) {
                already_sent = already_sent.saturating_add(1);
            } else if job.is_waiting() {
                moved = moved.saturating_add(1);
                self.set_lane(seq, lane, now);
            }
        }
        let reply = Reply::Prioritised {
            moved,
            already_sent,
        };
        self.reply(Some(request), reply);
    }

    pub(super) fn retry(&mut self, request: RequestId, target: &Target, force: Force, now: Now) {
        let (mut retried, mut needs_force, mut stale) = (0_u32, 0_u32, 0_u32);
        let chosen: BTreeSet<Seq> = self
            .targets(target)
            .into_iter()
            .map(|seq| self.carrier(seq))
            .collect();
        let newest_done = self.newest_done(&chosen);
        for seq in chosen {
            let Some(job) = self
                .jobs
                .get(&seq)
                // The request of an ephemeral job is gone once it has settled.
                .filter(|job| job.record.state == State::Failed && !job.card.ephemeral)
                // What carried it is gone, and with it a part of the request.
                .filter(|job| !job.is_merged())
            else {
                continue;
            };
            let reason = job
                .record
                .outcome
                .as_ref()
                .and_then(|outcome| outcome.reason);
            let newest = job.card.key.as_ref().and_then(|key| newest_done.get(key));
            if newest.is_some_and(|done| *done > seq) {
                stale = stale.saturating_add(1);
                continue;
            }
            let may_be_done = reason == Some(Reason::OutcomeUnknown)
                || (reason == Some(Reason::RetriesExhausted) && job.record.key_seen);
            let is_repeatable = self.is_repeatable(seq, now);
            let is_checked = force == Force::No && self.is_unsure(seq, now);
            if may_be_done && !is_repeatable && !is_checked && force == Force::No {
                needs_force = needs_force.saturating_add(1);
                continue;
            }
            retried = retried.saturating_add(1);
            let key = match is_checked || (keeps_key(reason) && is_repeatable) {
                true => Key::Kept,
                false => Key::New,
            };
            self.revive(seq, key, now);
        }
        self.reply(
            Some(request),
            Reply::Retried {
                retried,
                needs_force,
                stale,
            },
        );
    }

    pub(super) fn hold(
        &mut self,
        request: Option<RequestId>,
        budget: Option<BudgetId>,
        cause: HoldCause,
    ) {
        let is_new = match &budget {
            None => {
                self.draft.touched.holds = true;
                self.holds.insert(cause)
            }
            Some(id) => match self.budgets.get_mut(id) {
                Some(budget) => {
                    self.draft.touched.budgets.insert(id.clone());
                    budget.hold(cause)
                }
                None => return self.refuse(request, Refusal::UnknownBudget(id.clone())),
            },
        };
        if is_new {
            self.tell(Event::Held { budget, cause });
        }
        self.reply(request, Reply::Ok);
    }

    pub(super) fn resume(&mut self, request: RequestId, budget: Option<BudgetId>, now: Now) {
        match &budget {
            None => {
                self.holds
                    .retain(|cause| matches!(cause, HoldCause::Offline | HoldCause::Yielding));
                self.draft.touched.holds = true;
                for (id, budget) in &mut self.budgets {
                    if !budget.holds().is_empty() {
                        budget.resume();
                        self.draft.touched.budgets.insert(id.clone());
                    }
                }
            }
            Some(id) if self.budgets.contains_key(id) => {
                let parts = self.budgets.values().map(|budget| budget.config());
                let parts = parts.filter(|part| part.is_part() && part.declared() == id);
                let whole = std::iter::once(id.clone());
                let whole: Vec<_> = whole.chain(parts.map(|part| part.id.clone())).collect();
                self.each_of(&whole, |budget| {
                    budget.resume();
                    true
                });
            }
            Some(id) => return self.refuse(Some(request), Refusal::UnknownBudget(id.clone())),
        }
        self.release_keys(budget.as_ref(), now);
        self.save_unsaved();
        self.reply(Some(request), Reply::Ok);
    }

    /// Holds everything while there is no network. What was learned of the time to the server counts no longer.
    pub(super) fn network(&mut self, network: Network) {
        let is_new = match network {
            Network::Offline => self.holds.insert(HoldCause::Offline),
            Network::Online => self.holds.remove(&HoldCause::Offline),
        };
        if !is_new {
            return;
        }
        for budget in self.budgets.values_mut() {
            budget.network_changed();
        }
        if network == Network::Offline {
            self.effects.push_back(Effect::Event(Event::Held {
                budget: None,
                cause: HoldCause::Offline,
            }));
        }
    }

    fn revive(&mut self, seq: Seq, key: Key, now: Now) {
        self.release_key(seq, now);
        self.count_revived(seq);
        self.no_longer_settling(seq);
        self.exit(seq, State::Failed);
        let Some(job) = self.jobs.get_mut(&seq) else {
            return;
        };
        let record = &mut job.record;
        if key == Key::New && record.attempt > 0 {
            record.key_generation = record.key_generation.saturating_add(1);
            record.first_claimed_at = None;
            record.key_seen = false;
        }
        record.state = State::Queued;
        record.attempts_counted = 0;
        record.outcome = None;
        record.not_before = None;
        job.card.expires_at = None;
        job.ready_at = None;
        let group = job.card.group.clone();
        self.wait_for_check(seq, now);
        self.enter(seq, State::Queued, now);
        self.replace(seq, now);
        self.step_back(seq, now);
        self.lend_lane(seq, now);
        self.draft.touched.records.insert(seq);
        self.uncount_failed(group);
        self.revive_members(seq, now);
    }

    /// Counts a job of a group as unsettled that had failed.
    pub(super) fn uncount_failed(&mut self, group: Option<GroupId>) {
        let Some(group_id) = group else { return };
        if let Some(group) = self.groups.get_mut(&group_id) {
            group.record.failed = group.record.failed.saturating_sub(1);
            group.record.settled_at = None;
            self.draft.touched.groups.insert(group_id);
        }
    }

    /// Puts the job behind a revived one of its key where it belongs now: behind it.
    fn step_back(&mut self, seq: Seq, now: Now) {
        let line = self
            .jobs
            .get(&seq)
            .and_then(|job| job.card.key.as_ref())
            .and_then(|key| self.keys.get(key));
        let next = line.and_then(|line| {
            line.jobs
                .range(Seq::from_u64(seq.as_u64().saturating_add(1))..)
                .next()
        });
        if let Some(next) = next.copied() {
            self.replace(next, now);
        }
    }

    fn targets(&self, target: &Target) -> Vec<Seq> {
        match target {
            Target::Jobs(ids) => ids
                .iter()
                .filter_map(|id| self.ids.get(id))
                .copied()
                .collect(),
            Target::Group(id) => self
                .groups
                .get(id)
                .map(|group| group.jobs.iter().copied().collect())
                .unwrap_or_default(),
        }
    }

    fn reply(&mut self, request: Option<RequestId>, reply: Reply) {
        if let Some(request) = request {
            self.draft.after.push(After::Reply(request, reply));
        }
    }

    fn refuse(&mut self, request: Option<RequestId>, refusal: Refusal) {
        if let Some(request) = request {
            self.effects.push_back(Effect::Reply {
                request,
                reply: Reply::Refused(refusal),
            });
        }
    }
}

/// What a retried job is sent with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    /// The idempotency key that the server may have acted on.
    Kept,
    /// Another one.
    New,
}

/// Tells whether a failure leaves open what the server has done.
const fn keeps_key(reason: Option<Reason>) -> bool {
    matches!(
        reason,
        Some(Reason::OutcomeUnknown | Reason::RetriesExhausted)
    )
}
