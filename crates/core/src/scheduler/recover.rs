//! What a new owner does with what it finds: the limiter is rebuilt, and attempts without an answer are decided.

use std::collections::BTreeSet;

use super::Core;
use super::claim::end_at_latest;
use crate::budget::{Budget, Spend};
use crate::change::Stored;
use crate::config::BudgetConfig;
use crate::count::Count;
use crate::ids::{BudgetId, Seq};
use crate::job::{Outcome, Reason, Record, Repeat, Spent, State};
use crate::time::Now;

impl Core {
    pub(super) fn recover(&mut self, stored: Stored, now: Now) {
        for (id, record) in stored.budgets {
            if id.as_str() == BudgetId::QUEUE {
                self.holds.extend(record.holds.iter().copied());
            } else {
                self.budget_records.insert(id, record);
            }
        }
        for (id, record) in stored.groups {
            self.groups.entry(id).or_default().record = record;
        }
        let mut records: std::collections::BTreeMap<Seq, Record> =
            stored.records.into_iter().collect();
        for (batch, cards) in stored.batches {
            self.next_batch = self.next_batch.max(batch.next());
            for (index, card) in (0..=u8::MAX).zip(cards) {
                let seq = Seq::new(batch, index);
                let record = records.remove(&seq).unwrap_or_else(Record::fresh);
                let record = self.with_known_carrier(seq, record);
                self.insert(seq, card, record, now);
                self.tie(seq);
                self.restore_key_hold(seq);
                self.note_stored(seq);
            }
        }
        for (batch, ids, at) in stored.dropped {
            self.next_batch = self.next_batch.max(batch.next());
            self.dropped_ids.extend(ids.iter().cloned());
            self.dropped.insert(batch, (ids, at));
        }
        self.mend_loads();
        self.recount_groups();
        self.end_with_carriers(now);
        self.declare_implicit(now);
        self.decide_unanswered(now);
        self.note_droppable();
        let seqs: Vec<Seq> = self.jobs.keys().copied().collect();
        for seq in seqs {
            // Whoever stored it may have ended before it was merged.
            if !self.join_earlier(seq, now) {
                self.replace(seq, now);
            }
        }
    }

    /// Counts groups from their jobs' records: a count may have been stored with an outcome whose own commit failed. A group
    /// that clean-up has taken jobs from keeps its counts.
    fn recount_groups(&mut self) {
        for group in self.groups.values_mut() {
            if u32::try_from(group.jobs.len()) != Ok(group.record.total) {
                continue;
            }
            let count = |state: State| group.by_state.get(state.index()).copied().unwrap_or(0);
            let (done, failed, cancelled) = (
                count(State::Done),
                count(State::Failed),
                count(State::Cancelled),
            );
            let record = &mut group.record;
            (record.done, record.failed, record.cancelled) = (done, failed, cancelled);
            if !record.is_settled() {
                record.settled_at = None;
            }
        }
    }

    /// Makes a budget, with what its jobs have spent already.
    pub(super) fn declare(&mut self, id: BudgetId, config: BudgetConfig, now: Now) {
        let mut budget = Budget::new(config, now.mono);
        if let Some(record) = self.budget_records.remove(&id) {
            budget.restore(&record, now);
        }
        for spend in self.spends(&id, now) {
            budget.restore_spent(&spend, now);
            budget.restore_in_flight(spend.end, now);
        }
        let mut jobs = Vec::new();
        for (seq, job) in self.jobs.iter().filter(|(_, job)| job.card.budget == id) {
            if job.is_waiting() {
                budget.count_waiting(job.lane(), &job.card, Count::Up);
                jobs.push(*seq);
            }
        }
        self.budgets.insert(id.clone(), budget);
        self.tell_parents_of(&id, now);
        self.declare_moved(&id, now);
        self.declare_parts(&id, now);
        self.droppable.clear();
        self.note_droppable();
        for seq in &jobs {
            if self.undecided.remove(seq) {
                self.decide_now(*seq, now);
            }
        }
        for seq in jobs {
            self.replace(seq, now);
        }
        self.replace_batched(&id, now);
    }

    /// Makes the parts of a budget in which jobs of an earlier owner wait, whether or not anybody still says what they count.
    fn declare_parts(&mut self, id: &BudgetId, now: Now) {
        let Some(config) = self.budgets.get(id).map(|budget| budget.config().clone()) else {
            return;
        };
        let jobs = self.jobs.values().map(|job| &job.card.budget);
        let parts = jobs.filter(|part| !self.budgets.contains_key(*part));
        let parts: BTreeSet<BudgetId> = parts
            .filter(|part| part.whole().as_ref() == Some(id))
            .cloned()
            .collect();
        for part in parts {
            let config = config.uncounted(part.clone());
            self.declare(part, config, now);
        }
    }

    /// Gives the budgets above a new one what it has spent already. A bucket forgets what comes out of its order, so they take
    /// it with what they had, from the first on.
    fn tell_parents_of(&mut self, id: &BudgetId, now: Now) {
        let new = self.spends(id, now);
        if new.is_empty() {
            return;
        }
        for parent in self.parents(id) {
            let all = self.spends(&parent, now);
            let Some(parent) = self.budgets.get_mut(&parent) else {
                continue;
            };
            parent.replay(&all, now);
            for spend in &new {
                parent.space_after(spend, now);
                parent.restore_in_flight(spend.end, now);
            }
        }
    }

    /// What the attempts of a budget's jobs, and of all under it, took, in the order of their starts.
    pub(super) fn spends(&self, id: &BudgetId, now: Now) -> Vec<Spend> {
        let mut spends = Vec::new();
        let members = self.members(id);
        let of_family = |job: &super::Job| members.contains(&job.card.budget);
        for (seq, job) in self.jobs.iter().filter(|(_, job)| of_family(job)) {
            let (record, timeout_ms) = (&job.record, job.card.timeout_ms);
            // What an earlier owner had on its way is not ours to end.
            let is_ours = record.state == State::Sending && !self.undecided.contains(seq);
            let live = is_ours.then_some((*seq, record.attempt));
            let current = record.current.iter().map(|spent| (spent, live));
            for (spent, live) in record
                .earlier
                .iter()
                .map(|spent| (spent, None))
                .chain(current)
            {
                // A clock that was set back would keep what was spent for as long as it was ahead.
                let latest = now.wall.plus(u64::from(timeout_ms));
                spends.push(Spend {
                    start: spent.started_at.min(now.wall),
                    end: end_at_latest(*spent, timeout_ms).min(latest),
                    cost: job.card.cost,
                    live,
                });
            }
        }
        spends.sort_unstable();
        spends
    }

    fn declare_implicit(&mut self, now: Now) {
        let mut implicit: Vec<BudgetId> = self
            .jobs
            .values()
            .map(|job| &job.card.budget)
            .filter(|id| id.is_implicit())
            .cloned()
            .collect();
        implicit.dedup();
        for id in implicit {
            if !self.budgets.contains_key(&id) {
                self.declare(id.clone(), BudgetConfig::implicit(id), now);
            }
        }
    }

    /// Decides jobs that were on their way when the last owner ended.
    ///
    /// Whether a key is honoured is known only once the budget is declared, so a job that is not repeatable by itself
    /// waits for that.
    fn decide_unanswered(&mut self, now: Now) {
        let live: Vec<Seq> = self
            .jobs
            .iter()
            .filter(|(_, job)| {
                job.record.state == State::Sending || (job.card.ephemeral && job.is_waiting())
            })
            .map(|(seq, _)| *seq)
            .collect();
        for seq in live {
            self.decide(seq, now);
        }
    }

    fn decide(&mut self, seq: Seq, now: Now) {
        let Some(job) = self.jobs.get_mut(&seq) else {
            return;
        };
        let timeout_ms = job.card.timeout_ms;
        if let Some(current) = job.record.current.take() {
            let ended_at = Some(end_at_latest(current, timeout_ms));
            job.record.earlier.push(Spent {
                ended_at,
                ..current
            });
        }
        if job.card.ephemeral {
            let outcome = Outcome::unanswered(Reason::Cancelled, now.wall);
            self.settle(seq, State::Cancelled, outcome, now);
            return;
        }
        job.record.refused = true;
        job.record.key_seen = true;
        let is_declared = self.budgets.contains_key(&job.card.budget);
        if is_declared || job.card.repeat == Repeat::Always {
            self.decide_now(seq, now);
        } else {
            // Stays `sending` in the store, so that a next owner decides again if this one ends before.
            self.undecided.insert(seq);
            self.set_state(seq, State::Queued);
        }
    }

    fn decide_now(&mut self, seq: Seq, now: Now) {
        if self
            .jobs
            .get(&seq)
            .is_none_or(|job| job.record.state.is_settled())
        {
            return;
        }
        if self.may_go_on(seq, now) {
            self.wait_for_check(seq, now);
            self.set_state(seq, State::Queued);
            self.draft.touched.records.insert(seq);
        } else {
            self.fail(seq, Reason::OutcomeUnknown, None, None, now);
        }
    }

    fn note_droppable(&mut self) {
        let mut latest = std::collections::BTreeMap::new();
        for (seq, job) in &self.jobs {
            let keep_until = job
                .record
                .outcome
                .as_ref()
                .map(|outcome| self.keep_until(*seq, job.record.state, outcome.at));
            let entry = latest
                .entry(seq.batch())
                .or_insert(crate::time::Wall::default());
            *entry = (*entry).max(keep_until.unwrap_or_default());
        }
        for (batch_no, keep_until) in latest {
            if let Some(batch) = self.batches.get_mut(&batch_no) {
                batch.keep_until = keep_until;
                if batch.unsettled == 0 {
                    self.droppable.insert((keep_until, batch_no));
                }
            }
        }
    }
}
