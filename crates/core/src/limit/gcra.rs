//! GCRA, the generic cell rate algorithm: one instant says how far ahead of the even pace the traffic is.
//!
//! The same traffic passes as through a token bucket of that size, with one number as state. The instant is kept times
//! the limit, so that one unit's worth, the window, is whole.

use super::{Admission, GRAIN_MS, rescaled};
use crate::config::LimitRule;
use crate::time::{Mono, Now, Wall};

/// N units a window at an even pace, with a burst of N.
#[derive(Clone, Debug)]
pub struct Gcra {
    rule: LimitRule,
    /// The theoretical arrival time, times the limit.
    arrival: u64,
    /// The last start of an earlier owner, and how far ahead of the pace the traffic was right after it.
    replayed: Option<(Wall, u64)>,
}

impl Gcra {
    /// Makes a pace that nothing is ahead of.
    pub const fn new(rule: LimitRule) -> Self {
        Self {
            rule,
            arrival: 0,
            replayed: None,
        }
    }

    /// Tells whether `cost` fits now, or when.
    pub fn check(&self, cost: u32, now: Mono) -> Admission {
        if cost > self.rule.limit() {
            return Admission::Never;
        }
        let after = self.from(now).saturating_add(self.worth(cost));
        let earliest = after.saturating_sub(self.burst()).div_ceil(self.limit());
        if earliest <= now.as_millis() {
            Admission::Admit
        } else {
            Admission::Defer(Mono::from_millis(earliest))
        }
    }

    /// Takes `cost` units.
    pub fn take(&mut self, cost: u32, now: Mono) {
        self.arrival = self.from(now).saturating_add(self.worth(cost));
    }

    /// Gives `cost` units back.
    pub fn give_back(&mut self, cost: u32) {
        self.arrival = self.arrival.saturating_sub(self.worth(cost));
    }

    /// Takes what an earlier owner used at `start`, in the order of starts: one passage of time serves all of them.
    pub fn restore(&mut self, cost: u32, start: Wall, now: Now) {
        let (last, ahead) = self.replayed.unwrap_or((start, 0));
        let ahead = ahead
            .saturating_sub(start.since(last).saturating_mul(self.limit()))
            .saturating_add(self.worth(cost));
        self.replayed = Some((start, ahead));
        let age = now.wall.since(start).saturating_sub(GRAIN_MS);
        let left = ahead.saturating_sub(age.saturating_mul(self.limit()));
        self.arrival = now
            .mono
            .as_millis()
            .saturating_mul(self.limit())
            .saturating_add(left);
    }

    /// Makes the burst used up, so that the next starts come evenly.
    pub const fn empty(&mut self, now: Mono) {
        self.arrival = now
            .as_millis()
            .saturating_mul(self.rule.limit() as u64)
            .saturating_add(self.burst());
    }

    /// Returns the whole units that fit now.
    pub fn free(&self, now: Mono) -> u32 {
        let ahead = self.from(now) - now.as_millis().saturating_mul(self.limit());
        let free = self.burst().saturating_sub(ahead) / self.rule.window_ms();
        u32::try_from(free).unwrap_or(u32::MAX)
    }

    /// Returns the rule.
    pub const fn rule(&self) -> LimitRule {
        self.rule
    }

    /// Takes over a changed rule and keeps the units that were consumed.
    pub fn configure(&mut self, rule: LimitRule, now: Mono) {
        let ahead = self.from(now) - now.as_millis().saturating_mul(self.limit());
        let ahead = rescaled(ahead, self.rule.window_ms(), rule.window_ms());
        *self = Self::new(rule);
        self.arrival = self.from(now).saturating_add(ahead);
    }

    fn from(&self, now: Mono) -> u64 {
        self.arrival
            .max(now.as_millis().saturating_mul(self.limit()))
    }

    const fn limit(&self) -> u64 {
        self.rule.limit() as u64
    }

    const fn burst(&self) -> u64 {
        self.rule
            .window_ms()
            .saturating_mul(self.rule.limit() as u64)
    }

    fn worth(&self, cost: u32) -> u64 {
        u64::from(cost).saturating_mul(self.rule.window_ms())
    }
}
