//! The token bucket: a capacity that refills evenly.
//!
//! The level is kept as units times the window, so that the refill of one millisecond, `limit` such parts, is a whole
//! number and no fraction is ever lost. A wait is rounded up to the millisecond at which the cost fits. A cost above
//! what is there (the limit was lowered meanwhile) leaves a debt, which refills pay first.

use super::{Admission, GRAIN_MS, rescaled};
use crate::config::LimitRule;
use crate::time::{Mono, Now, Wall};

/// A bucket of `limit` units that refills `limit` units per window.
#[derive(Clone, Debug)]
pub struct TokenBucket {
    rule: LimitRule,
    /// Units times the window.
    parts: u64,
    /// Units times the window, taken and not yet paid.
    owed: u64,
    refilled_at: Mono,
    /// The last start of an earlier owner, and what was missing right after it.
    replayed: Option<(Wall, u64)>,
}

impl TokenBucket {
    /// Makes a full bucket.
    pub const fn new(rule: LimitRule, now: Mono) -> Self {
        Self {
            rule,
            parts: Self::capacity(rule),
            owed: 0,
            refilled_at: now,
            replayed: None,
        }
    }

    /// Tells whether `cost` fits now, or when.
    pub fn check(&mut self, cost: u32, now: Mono) -> Admission {
        if cost > self.rule.limit() {
            return Admission::Never;
        }
        self.refill(now);
        let wanted = self.parts_of(cost).saturating_add(self.owed);
        let missing = wanted.saturating_sub(self.parts);
        if missing == 0 {
            return Admission::Admit;
        }
        Admission::Defer(now.plus(missing.div_ceil(u64::from(self.rule.limit()))))
    }

    /// Takes `cost` units.
    pub fn take(&mut self, cost: u32, now: Mono) {
        self.refill(now);
        let missing = self.missing().saturating_add(self.parts_of(cost));
        self.set_missing(missing);
    }

    /// Gives `cost` units back.
    pub fn give_back(&mut self, cost: u32, now: Mono) {
        self.refill(now);
        let missing = self.missing().saturating_sub(self.parts_of(cost));
        self.set_missing(missing);
    }

    /// Takes what an earlier owner used at `start`, in the order of starts: one refill serves all of them together.
    pub fn restore(&mut self, cost: u32, start: Wall, now: Now) {
        let (last, missing) = self.replayed.unwrap_or((start, 0));
        let missing = missing
            .saturating_sub(self.gained(start.since(last)))
            .saturating_add(self.parts_of(cost));
        self.replayed = Some((start, missing));
        self.refill(now.mono);
        let age = now.wall.since(start).saturating_sub(GRAIN_MS);
        self.set_missing(missing.saturating_sub(self.gained(age)));
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
        let missing = rescaled(self.missing(), self.rule.window_ms(), rule.window_ms());
        self.rule = rule;
        self.replayed = None;
        self.set_missing(missing);
    }

    const fn capacity(rule: LimitRule) -> u64 {
        (rule.limit() as u64).saturating_mul(rule.window_ms())
    }

    fn parts_of(&self, cost: u32) -> u64 {
        u64::from(cost).saturating_mul(self.rule.window_ms())
    }

    fn gained(&self, millis: u64) -> u64 {
        millis.saturating_mul(u64::from(self.rule.limit()))
    }

    fn missing(&self) -> u64 {
        Self::capacity(self.rule)
            .saturating_sub(self.parts)
            .saturating_add(self.owed)
    }

    fn set_missing(&mut self, missing: u64) {
        let capacity = Self::capacity(self.rule);
        self.parts = capacity.saturating_sub(missing);
        self.owed = missing.saturating_sub(capacity);
    }

    fn refill(&mut self, now: Mono) {
        let gained = self.gained(now.since(self.refilled_at));
        self.set_missing(self.missing().saturating_sub(gained));
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
    fn what_an_earlier_owner_used_is_refilled_once() {
        let mut bucket = bucket(5, 5_000);
        let now = Now::from_millis(0, 10_000);
        for _ in 0..5 {
            bucket.restore(1, Wall::from_millis(8_999), now);
        }

        assert_eq!(bucket.free(now.mono), 1);
    }

    #[test]
    fn a_cost_above_a_lowered_limit_is_paid_in_full() {
        let mut bucket = bucket(2, 2_000);
        bucket.take(4, at(0));

        assert_eq!(bucket.check(1, at(0)), Admission::Defer(at(3_000)));
        bucket.configure(
            LimitRule::new(4, 2_000, Algorithm::TokenBucket).unwrap(),
            at(0),
        );
        assert_eq!(bucket.free(at(0)), 0);
    }

    #[test]
    fn the_wait_for_a_heavy_cost_is_exact() {
        let mut bucket = bucket(10, 5_000);
        bucket.take(5, at(0));
        bucket.take(5, at(0));

        assert_eq!(bucket.check(5, at(0)), Admission::Defer(at(2_500)));
    }
}
