//! What is stored of a budget, and what a new owner takes over of it and of earlier attempts.

use super::adapt::{TENTH, WHOLE};
use super::pause::Pause;
use super::{Budget, Spend};
use crate::config::MAX_RULES;
use crate::job::{BudgetRecord, HoldCause};
use crate::time::{Now, Wall};

impl Budget {
    /// Takes over what is stored of the budget.
    pub(crate) fn restore(&mut self, record: &BudgetRecord, now: Now) {
        self.refusals_in_a_row = record.refusals_in_a_row;
        self.refusing_since = record.refusing_since;
        self.holds = record.holds.iter().copied().collect();
        if record.probe {
            self.slow_start = Some(1);
        }
        self.factor_permille = record.factor_permille.unwrap_or(WHOLE).clamp(TENTH, WHOLE);
        let ceiling = record.ceiling_permille.unwrap_or(WHOLE);
        self.ceiling_permille = ceiling.clamp(TENTH, WHOLE);
        self.learned = record.learned.iter().copied().take(MAX_RULES).collect();
        self.learned_in_flight = record.learned_in_flight.filter(|places| *places > 0);
        let _ = self.apply_rules(now.mono);
        if let Some(until) = record.used_up_until {
            self.sync.restore(until, now);
        }
        let Some(until_wall) = record.paused_until.filter(|until| *until > now.wall) else {
            return;
        };
        self.closed_at = Some(now.mono);
        self.pause = Some(Pause {
            until: now.mono_of(until_wall),
            until_wall,
            is_estimate: record.pause_is_estimate,
            is_long: until_wall.since(now.wall) > self.config.long_wait().above_ms,
            jitter_ms: 0,
            refused: 0,
        });
    }

    /// Takes what an attempt of an earlier owner used; attempts come in the order of their starts.
    pub(crate) fn restore_spent(&mut self, spend: &Spend, now: Now) {
        for limiter in &mut self.limiters {
            limiter.restore(spend.cost, spend.start, spend.end, now);
        }
        self.space_after(spend, now);
    }

    /// Counts an attempt of an earlier owner as in flight until it is over.
    pub(crate) fn restore_in_flight(&mut self, end: Wall, now: Now) {
        if end > now.wall {
            let ghosts = self.ghosts.entry(now.mono_of(end)).or_default();
            *ghosts = ghosts.saturating_add(1);
        }
    }

    pub(crate) fn record(&self, now: Now) -> BudgetRecord {
        BudgetRecord {
            paused_until: self.pause.map(|pause| pause.until_wall),
            pause_is_estimate: self.pause.is_some_and(|pause| pause.is_estimate),
            refusals_in_a_row: self.refusals_in_a_row,
            refusing_since: self.refusing_since,
            holds: self
                .holds
                .iter()
                .copied()
                .filter(|cause| cause.is_lasting())
                .collect(),
            probe: self.holds.contains(&HoldCause::Credentials),
            factor_permille: (self.factor_permille < WHOLE).then_some(self.factor_permille),
            learned: self.learned.clone(),
            learned_in_flight: self.learned_in_flight,
            ceiling_permille: (self.ceiling_permille < WHOLE).then_some(self.ceiling_permille),
            used_up_until: self.sync.closed_until(now),
        }
    }
}
