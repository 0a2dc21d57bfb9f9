//! The token bucket: a capacity that refills evenly.
//!
//! The level is kept as units times the window, so that the refill of one millisecond, `limit` such parts, is a whole
//! number and no fraction is ever lost. A wait is rounded up to the millisecond at which the cost fits.

use super::{Admission, GRAIN_MS};
use crate::config::LimitRule;
use crate::time::{Mono, Now, Wall};

/// A bucket of `limit` units that refills `limit` units per window.
#[derive(Clone, Debug)]
pub struct TokenBucket {
    rule: LimitRule,
    /// Units times the window.
    parts: u64,
    refilled_at: Mono,
}

impl TokenBucket {
    /// Makes a full bucket.
    pub const fn new(rule: LimitRule, now: Mono) -> Self {
        Self {
            rule,
            parts: Self::capacity(rule),
            refilled_at: now,
        }
    }

    /// Tells whether `cost` fits now, or when.
    pub fn check(&mut self, cost: u32, now: Mono) -> Admission {
        if cost > self.rule.limit() {
            return Admission::Never;
        }
        self.refill(now);
        let missing = self.parts_of(cost).saturating_sub(self.parts);
        if missing == 0 {
            return Admission::Admit;
        }
        Admission::Defer(now.plus(missing.div_ceil(u64::from(self.rule.limit()))))
    }

    /// Takes `cost` units.
    pub fn take(&mut self, cost: u32, now: Mono) {
        self.refill(now);
        self.parts = self.parts.saturating_sub(self.parts_of(cost));
    }

    /// Gives `cost` units back.
    pub fn give_back(&mut self, cost: u32, now: Mono) {
        self.refill(now);
        self.parts = self
            .parts
            .saturating_add(self.parts_of(cost))
            .min(Self::capacity(self.rule));
    }

    /// Takes what an earlier owner used at `start`, less what has been refilled since.
    pub fn restore(&mut self, cost: u32, start: Wall, now: Now) {
        self.refill(now.mono);
        let age = now.wall.since(start).saturating_sub(GRAIN_MS);
        let refilled = age.saturating_mul(u64::from(self.rule.limit()));
        self.parts = self
            .parts
            .saturating_sub(self.parts_of(cost).saturating_sub(refilled));
    }

    /// Empties the bucket.
    pub const fn empty(&mut self, now: Mono) {
        self.parts = 0;
        self.refilled_at = now;
    }

    /// Returns the whole units that are there now.
    pub fn free(&mut self, now: Mono) -> u32 {
        self.refill(now);
        u32::try_from(self.parts / self.rule.window_ms()).unwrap_or(u32::MAX)
    }

    /// Returns the rule.
    pub const fn rule(&self) -> LimitRule {
        self.rule
    }

    /// Takes over a changed rule and keeps the units that were consumed.
    pub fn configure(&mut self, rule: LimitRule, now: Mono) {
        self.refill(now);
        let consumed = Self::capacity(self.rule).saturating_sub(self.parts) / self.rule.window_ms();
        self.rule = rule;
        let consumed = consumed.saturating_mul(rule.window_ms());
        self.parts = Self::capacity(rule).saturating_sub(consumed);
    }

    const fn capacity(rule: LimitRule) -> u64 {
        (rule.limit() as u64).saturating_mul(rule.window_ms())
    }

    fn parts_of(&self, cost: u32) -> u64 {
        u64::from(cost).saturating_mul(self.rule.window_ms())
    }

    fn refill(&mut self, now: Mono) {
        let gained = now
            .since(self.refilled_at)
            .saturating_mul(u64::from(self.rule.limit()));
        self.parts = self
            .parts
            .saturating_add(gained)
            .min(Self::capacity(self.rule));
        self.refilled_at = self.refilled_at.max(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Algorithm;

    fn bucket(limit: u64, window_ms: u64) -> TokenBucket {
        let rule = LimitRule::new(limit, window_ms, Algorithm::TokenBucket).unwrap();
        TokenBucket::new(rule, Mono::from_millis(0))
    }

    fn at(millis: u64) -> Mono {
        Mono::from_millis(millis)
    }

    #[test]
    fn passes_a_burst_of_its_capacity_then_one_per_refill() {
        let mut bucket = bucket(5, 5_000);
        for _ in 0..5 {
            assert_eq!(bucket.check(1, at(0)), Admission::Admit);
            bucket.take(1, at(0));
        }

        assert_eq!(bucket.check(1, at(0)), Admission::Defer(at(1_000)));
        assert_eq!(bucket.check(1, at(500)), Admission::Defer(at(1_000)));
        assert_eq!(bucket.check(1, at(1_000)), Admission::Admit);
    }

    #[test]
    fn loses_no_fraction_of_a_refill() {
        let mut bucket = bucket(3, 1_000);
        bucket.take(3, at(0));
        for millis in 0..1_000 {
            bucket.check(3, at(millis));
        }

        assert_eq!(bucket.free(at(1_000)), 3);
        assert_eq!(bucket.check(3, at(1_000)), Admission::Admit);
    }

    #[test]
    fn the_same_settings_again_change_nothing() {
        let mut bucket = bucket(5, 5_000);
        bucket.take(5, at(0));

        bucket.configure(
            LimitRule::new(5, 5_000, Algorithm::TokenBucket).unwrap(),
            at(0),
        );

        assert_eq!(bucket.check(5, at(0)), Admission::Defer(at(5_000)));
    }

    #[test]
    fn the_wait_for_a_heavy_cost_is_exact() {
        let mut bucket = bucket(10, 5_000);
        bucket.take(5, at(0));
        bucket.take(5, at(0));

        assert_eq!(bucket.check(5, at(0)), Admission::Defer(at(2_500)));
    }
}
