//! Adaptation: how much of the rules is used.
//!
//! A refusal says that the rules allow more than the server does: somebody else spends the budget, or
//! it is smaller than we were told. So each one halves what is used of them, down to a tenth, and each clean stretch
//! gives a tenth back (additive increase, multiplicative decrease: it finds the server's limit and stays near it).
//!
//! A refusal of which the server itself says that a window is used up, whose numbers we know, is no news of our rules:
//! others have spent it. What they have is learned instead (`others`), and nothing is halved.
//! Invariant: never below a tenth, never above the whole.

use super::Budget;
use crate::limit::Limiter;
use crate::time::Mono;

/// The whole of the rules, in thousandths.
pub(super) const WHOLE: u32 = 1_000;
/// The least that is used of the rules, and what one clean stretch gives back, in thousandths.
pub(super) const TENTH: u32 = 100;
/// The least clean stretch.
const MIN_CLEAN_MS: u64 = 10_000;

impl Budget {
    /// Shrinks what is used of the rules after a refusal, unless others' use explains it.
    pub(super) fn shrink(&mut self, now: Mono) {
        let is_explained = |limiter: &Limiter| self.sync.others.is_used_up(limiter.rule(), now);
        if self.limiters.iter().any(is_explained) {
            return;
        }
        self.halve(now);
    }

    /// Halves what is used of the rules.
    pub(crate) fn halve(&mut self, now: Mono) {
        self.note_found();
        self.adapt(self.factor_permille / 2, now);
    }

    /// Notes a success of an attempt that was claimed at `started`. Returns whether what is stored of the budget changed.
    ///
    /// One that was on its way when the last refusal came says nothing of the time after it: else the few that a server
    /// still admits of a burst would make each guess of a hidden refusal the first one.
    pub(crate) fn succeeded(&mut self, started: Mono, now: Mono) -> bool {
        if self.closed_at.is_some_and(|closed| started <= closed) {
            return false;
        }
        if let (Some(allowed), Some(max)) = (self.slow_start, self.max_in_flight()) {
            let doubled = allowed.saturating_mul(2);
            self.slow_start = (doubled < max).then_some(doubled);
        } else {
            self.slow_start = None;
        }
        let was_refusing = self.refusals_in_a_row > 0;
        self.refusals_in_a_row = 0;
        self.refusing_since = None;
        self.grow(now) || was_refusing
    }

    /// Gives a tenth of the rules back after a clean stretch. Returns whether it did.
    pub(super) fn grow(&mut self, now: Mono) -> bool {
        let windows = self
            .limiters
            .iter()
            .map(|limiter| limiter.rule().window_ms());
        let clean_ms = windows.min().unwrap_or(0).max(MIN_CLEAN_MS);
        self.raise_ceiling(now);
        if self.factor_permille >= self.ceiling_permille || now.since(self.adapted_at) < clean_ms {
            return false;
        }
        self.adapt(self.factor_permille.saturating_add(TENTH), now);
        true
    }

    pub(super) fn adapt(&mut self, factor_permille: u32, now: Mono) {
        self.factor_permille = factor_permille.clamp(TENTH, self.ceiling_permille.max(TENTH));
        self.adapted_at = now;
        let _ = self.apply_rules(now);
    }
}
