//! The leaky bucket as a queue: smooth pacing, one unit each window/limit, and never a burst.
//!
//! The instant of the next start is kept times the limit, so that a pace such as 3 a second loses no fraction.

use super::Admission;
use crate::config::LimitRule;
use crate::time::{Mono, Now, Wall};

/// N units a window, evenly.
#[derive(Clone, Debug)]
pub struct LeakyQueue {
    rule: LimitRule,
    /// The earliest next start, times the limit.
    next: u64,
}

impl LeakyQueue {
    /// Makes a pace whose first start is free.
    pub const fn new(rule: LimitRule) -> Self {
        Self { rule, next: 0 }
    }

    /// Tells whether `cost` fits now, or when.
    pub fn check(&self, cost: u32, now: Mono) -> Admission {
        if cost > self.rule.limit() {
            return Admission::Never;
        }
        let at = self.next.div_ceil(self.limit());
        if at <= now.as_millis() {
            Admission::Admit
        } else {
            Admission::Defer(Mono::from_millis(at))
        }
    }

    /// Takes `cost` units: the next start comes as many paces later.
    pub fn take(&mut self, cost: u32, now: Mono) {
        let from = self.next.max(now.as_millis().saturating_mul(self.limit()));
        self.next = from.saturating_add(self.worth(cost));
    }

    /// Gives `cost` units back.
    pub fn give_back(&mut self, cost: u32) {
        self.next = self.next.saturating_sub(self.worth(cost));
    }

    /// Takes what an earlier owner used at `start`.
    pub fn restore(&mut self, cost: u32, start: Wall, now: Now) {
        let paces = self.worth(cost).div_ceil(self.limit());
        let at = now.mono_of(start.plus(paces));
        self.next = self.next.max(at.as_millis().saturating_mul(self.limit()));
    }

    /// Returns the units that may start now: one pace at the most.
    pub fn free(&self, now: Mono) -> u32 {
        u32::from(self.check(1, now) == Admission::Admit)
    }

    /// Returns the rule.
    pub const fn rule(&self) -> LimitRule {
        self.rule
    }

    /// Takes over a changed rule and keeps the instant of the next start.
    pub fn configure(&mut self, rule: LimitRule) {
        let at = self.next.div_ceil(self.limit());
        self.rule = rule;
        self.next = at.saturating_mul(self.limit());
    }

    const fn limit(&self) -> u64 {
        self.rule.limit() as u64
    }

    fn worth(&self, cost: u32) -> u64 {
        u64::from(cost).saturating_mul(self.rule.window_ms())
    }
}
