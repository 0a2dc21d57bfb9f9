//! What an owner has counted since it began: jobs, requests, waits, and how much of each limit was used.
//!
//! Owns the counts and what is derived from them. Does not own when something is counted (`scheduler`). Nothing of it is
//! stored: a new owner begins at nothing but the jobs that it found unsettled, and [`Metrics::since`] says when that was.
//! Invariant: memory is bounded whatever is counted; integers alone, so that the same inputs give the same figures.
//!
//! **The check.** `accepted - settled - live` is 0. The jobs that live are counted where they stand (in a line, on their
//! way, or carried by another), not from what was accepted and settled, so that a job which is lost shows.
//!
//! **The achieved rate** as a share of the limit asks: of what the limit would have let through while there was something
//! to send, how much was sent? A budget is *busy* while a job of it (or of one under it) is ready, and neither the queue
//! nor the budget is held by wish; time without work says nothing of a scheduler, and time in a server's pause does. What a
//! rule of N per window allowed in a busy stretch is what was free when it began, and N / window for as long as it was,
//! less what was still free when there was nothing more to send; of several rules the one that allowed least counts. A
//! bulk that fits into the limit at once makes no busy stretch, so its burst neither raises nor lowers the share. The
//! limit is the one that is declared or was published, not what is left of it after refusals. So 1,000 thousandths is all
//! that the limit can give; a slot of an arrival log that is free one window after its answer makes window / (window +
//! answer) of it; refusals, concurrency and a slow store take off the rest. Windows that turn at once are judged fairly
//! over whole windows only, and a stretch never counts as more than the whole.

use std::collections::BTreeMap;

use crate::histogram::Histogram;
use crate::ids::BudgetId;
use crate::io::Verdict;
use crate::job::{Lane, Reason, State};
use crate::time::Wall;

/// The most kinds of failure, and the most statuses, that are told apart; later ones count without their status.
const MAX_KINDS: usize = 128;

/// What an owner has counted since it began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metrics {
    /// When it began.
    pub since: Wall,
    /// The whole queue.
    pub queue: Meter,
    /// The jobs of the principal that asks; none when nothing of it was counted.
    pub own: Option<Meter>,
    /// By the budget that jobs were handed in for.
    pub budgets: BTreeMap<BudgetId, BudgetMetrics>,
}

/// What was counted of one budget.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BudgetMetrics {
    /// Its jobs and their requests.
    pub meter: Meter,
    /// How much of its limit was used, with what is under it.
    pub achieved: Achieved,
}

/// How much of a limit was used while there was something to send. The module's documentation argues the definition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Achieved {
    /// How long there was.
    pub busy_ms: u64,
    /// Units of the requests that started in that time.
    pub units: u64,
    /// Units that the limit allowed in that time; none for a budget without rules.
    pub allowed: Option<u64>,
}

impl Achieved {
    /// Returns the thousandths of the limit that were used; none when nothing had to wait, or there is no limit.
    pub fn permille(self) -> Option<u32> {
        let allowed = self.allowed?;
        let used = self.units.saturating_mul(1_000).checked_div(allowed)?;
        Some(u32::try_from(used).unwrap_or(u32::MAX))
    }
}

/// Counts of jobs and their requests. What was merged into another job is a job of its own, and its request the other's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meter {
    /// Jobs that were stored, that an earlier owner left unsettled, or that a retry brought back.
    pub accepted: u64,
    /// Jobs that wait, are on their way, or whose outcome is not stored yet.
    pub live: u64,
    /// Jobs whose outcome is decided, stored or not.
    decided: u64,
    settled: [u64; 3],
    /// Attempts that ended with an answer, or without one although they had left.
    pub requests: u64,
    /// Those that the server refused unread for a limit.
    pub refused: u64,
    /// Those without an answer.
    pub unanswered: u64,
    /// Answers by status.
    pub answers: BTreeMap<u16, u64>,
    /// Answers with further statuses than are told apart.
    pub other_answers: u64,
    /// Failed jobs by reason and last status.
    pub failures: BTreeMap<(Reason, Option<u16>), u64>,
    /// Attempts of each settled job that was tried.
    pub attempts: Histogram,
    waits: [Histogram; 3],
}

impl Meter {
    /// Returns how many jobs have ended in a settled state, and that is stored.
    pub fn settled_as(&self, state: State) -> u64 {
        settled_index(state).map_or(0, |index| self.settled.get(index).copied().unwrap_or(0))
    }

    /// Returns how many jobs have settled, and that is stored.
    pub fn settled(&self) -> u64 {
        self.settled.iter().sum()
    }

    /// Returns accepted jobs less those that settled and those that live: 0, or there is a bug.
    pub fn unaccounted(&self) -> i64 {
        self.missing(self.live.saturating_sub(self.settling()))
    }

    /// Returns accepted jobs less those whose outcome is decided and those that stand where they can go on.
    pub(crate) fn missing(&self, standing: u64) -> i64 {
        let known = i128::from(self.decided) + i128::from(standing);
        let missing = i128::from(self.accepted) - known;
        i64::try_from(missing).unwrap_or(i64::MAX)
    }

    /// Returns the refusals among a thousand requests, rounded up; none without requests.
    pub fn refused_per_1000(&self) -> Option<u32> {
        let refused = self.refused.saturating_mul(1_000);
        let share = (self.requests > 0).then(|| refused.div_ceil(self.requests))?;
        Some(u32::try_from(share).unwrap_or(u32::MAX))
    }

    /// Returns how long jobs of a lane waited: from being handed in, or from their `notBefore`, to their first request.
    /// By the wall clock, because a job may wait under several owners.
    pub fn waits(&self, lane: Lane) -> &Histogram {
        let [interactive, bulk, background] = &self.waits;
        match lane {
            Lane::Interactive => interactive,
            Lane::Bulk => bulk,
            Lane::Background => background,
        }
    }

    pub(crate) fn accept(&mut self) {
        self.accepted = self.accepted.saturating_add(1);
    }

    pub(crate) fn decide(&mut self) {
        self.decided = self.decided.saturating_add(1);
    }

    /// Takes back a decision that was not stored.
    pub(crate) fn undecide(&mut self) {
        self.decided = self.decided.saturating_sub(1);
    }

    /// Jobs whose outcome is decided and not stored yet.
    pub(crate) fn settling(&self) -> u64 {
        self.decided.saturating_sub(self.settled())
    }

    pub(crate) fn settle(&mut self, state: State, failure: Option<(Reason, Option<u16>)>) {
        let count = settled_index(state).and_then(|index| self.settled.get_mut(index));
        if let Some(count) = count {
            *count = count.saturating_add(1);
        }
        let Some((reason, status)) = failure.filter(|_| state == State::Failed) else {
            return;
        };
        let is_known = self.failures.contains_key(&(reason, status));
        let status = status.filter(|_| is_known || self.failures.len() < MAX_KINDS);
        let count = self.failures.entry((reason, status)).or_default();
        *count = count.saturating_add(1);
    }

    pub(crate) fn answer(&mut self, status: u16, verdict: Verdict) {
        self.requests = self.requests.saturating_add(1);
        self.refused = self
            .refused
            .saturating_add(u64::from(verdict == Verdict::Refused));
        if self.answers.len() < MAX_KINDS || self.answers.contains_key(&status) {
            let count = self.answers.entry(status).or_default();
            *count = count.saturating_add(1);
        } else {
            self.other_answers = self.other_answers.saturating_add(1);
        }
    }

    pub(crate) fn lose(&mut self) {
        self.requests = self.requests.saturating_add(1);
        self.unanswered = self.unanswered.saturating_add(1);
    }

    pub(crate) fn wait(&mut self, lane: Lane, waited_ms: u64) {
        if let Some(waits) = self.waits.get_mut(lane.index()) {
            waits.add(waited_ms);
        }
    }
}

fn settled_index(state: State) -> Option<usize> {
    match state {
        State::Done => Some(0),
        State::Failed => Some(1),
        State::Cancelled => Some(2),
        State::Queued | State::Sending | State::RetryWait => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_refusal_of_many_is_never_told_as_none() {
        let mut meter = Meter::default();
        assert_eq!(meter.refused_per_1000(), None);

        (0..2_999).for_each(|_| meter.answer(200, Verdict::Success));
        meter.answer(429, Verdict::Refused);

        assert_eq!(meter.refused_per_1000(), Some(1));
    }

    #[test]
    fn a_server_of_many_statuses_costs_bounded_memory_and_loses_no_count() {
        let mut meter = Meter::default();

        for status in 0..1_000 {
            meter.answer(status, Verdict::Final);
            meter.settle(State::Failed, Some((Reason::Http, Some(status))));
        }

        assert_eq!(meter.answers.len(), MAX_KINDS);
        assert_eq!(meter.failures.len(), MAX_KINDS + 1);
        assert_eq!(
            meter.answers.values().sum::<u64>() + meter.other_answers,
            1_000
        );
        assert_eq!(meter.failures.values().sum::<u64>(), 1_000);
    }
}
