//! Keeps the repeats of a budget within its share: past it the budget holds, and goes on by itself.

use super::Core;
use crate::budget::Try;
use crate::ids::{BudgetId, Seq};
use crate::io::{Effect, Event};
use crate::job::HoldCause;
use crate::time::{Mono, Now};

impl Core {
    /// Holds a budget whose next job is a repeat beyond its share.
    pub(super) fn keep_share(&mut self, id: &BudgetId, seq: Seq, now: Now) {
        if self.try_of(seq) == Try::First {
            return;
        }
        let budget = self.budgets.get_mut(id);
        if budget.is_some_and(|budget| budget.hold_beyond_share(now.mono)) {
            self.effects.push_back(Effect::Event(Event::Held {
                budget: Some(id.clone()),
                cause: HoldCause::RetryBudget,
            }));
        }
    }

    /// Counts an attempt.
    pub(super) fn note_try(&mut self, seq: Seq, start: Mono) {
        let attempt = self.try_of(seq);
        let id = self.jobs.get(&seq).map(|job| &job.card.budget);
        if let Some(budget) = id.and_then(|id| self.budgets.get_mut(id)) {
            budget.repeats.note(attempt, start);
        }
    }

    /// Lets budgets go on whose share allows a repeat again.
    pub(super) fn end_share_holds(&mut self, now: Now) {
        for budget in self.budgets.values_mut() {
            budget.end_share_hold(now.mono);
        }
    }

    fn try_of(&self, seq: Seq) -> Try {
        let failures = self
            .jobs
            .get(&seq)
            .map_or(0, |job| job.record.attempts_counted);
        if failures > 0 {
            Try::Repeat
        } else {
            Try::First
        }
    }
}
