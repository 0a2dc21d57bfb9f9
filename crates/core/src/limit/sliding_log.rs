//! The sliding log of starts: N units in any window, counted at the start.
//!
//! Exact for a server that counts a request when it arrives and is as far away for each. Where the way there varies,
//! two requests may come closer than they left; the arrival log is the safe one.

use super::closing::Closing;
use super::{Admission, GRAIN_MS};
use crate::config::LimitRule;
use crate::time::{Mono, Now, Wall};

/// N units in any window of starts.
#[derive(Clone, Debug)]
pub struct SlidingLog {
    rule: LimitRule,
    taken: Closing,
}

impl SlidingLog {
    /// Makes an empty log.
    pub const fn new(rule: LimitRule) -> Self {
        Self {
            rule,
            taken: Closing::new(),
        }
    }

    /// Tells whether `cost` fits now, or when.
    pub fn check(&mut self, cost: u32, now: Mono) -> Admission {
        let limit = u64::from(self.rule.limit());
        if u64::from(cost) > limit {
            return Admission::Never;
        }
        self.taken.purge(now);
        let used = self.taken.units().saturating_add(u64::from(cost));
        match self.taken.until_free(used.saturating_sub(limit)) {
            _ if used <= limit => Admission::Admit,
            Some(free_at) => Admission::Defer(free_at),
            None => Admission::Never,
        }
    }

    /// Takes `cost` units.
    pub fn take(&mut self, cost: u32, now: Mono) {
        let window_ms = self.rule.window_ms();
        let free_at = now.plus(GRAIN_MS).plus(window_ms);
        self.taken.add(u64::from(cost), free_at, window_ms);
    }

    /// Gives back `cost` units, the newest.
    pub fn give_back(&mut self, cost: u32) {
        self.taken.forget_newest(u64::from(cost));
    }

    /// Takes what an earlier owner used at `start`.
    pub fn restore(&mut self, cost: u32, start: Wall, now: Now) {
        let window_ms = self.rule.window_ms();
        let free_at = start.plus(GRAIN_MS).plus(window_ms);
        if free_at > now.wall {
            self.taken
                .add(u64::from(cost), now.mono_of(free_at), window_ms);
        }
    }

    /// Returns the units that are free now.
    pub fn free(&mut self, now: Mono) -> u32 {
        self.taken.purge(now);
        let free = u64::from(self.rule.limit()).saturating_sub(self.taken.units());
        u32::try_from(free).unwrap_or(u32::MAX)
    }

    /// Returns the rule.
    pub const fn rule(&self) -> LimitRule {
        self.rule
    }

    /// Takes over a changed rule and keeps what was consumed.
    pub fn configure(&mut self, rule: LimitRule) {
        self.taken
            .change_window(self.rule.window_ms(), rule.window_ms());
        self.rule = rule;
    }
}
