//! The sliding log of starts: N units in any window, counted at the start.
//!
//! Exact for a server that counts a request when it arrives and is as far away for each. Where the way there varies,
//! two requests may come closer than they left; the arrival log is the safe one.

use std::collections::BTreeMap;

use super::{Admission, GRAIN_MS};
use crate::config::LimitRule;
use crate::time::{Mono, Now, Wall};

/// Instants kept for one window.
const MAX_INSTANTS: u64 = 10_000;

/// N units in any window of starts.
#[derive(Clone, Debug)]
pub struct SlidingLog {
    rule: LimitRule,
    /// Units by the instant at which they are free again.
    taken: BTreeMap<Mono, u64>,
    used: u64,
}

impl SlidingLog {
    /// Makes an empty log.
    pub const fn new(rule: LimitRule) -> Self {
        Self {
            rule,
            taken: BTreeMap::new(),
            used: 0,
        }
    }

    /// Tells whether `cost` fits now, or when.
    pub fn check(&mut self, cost: u32, now: Mono) -> Admission {
        let limit = u64::from(self.rule.limit());
        if u64::from(cost) > limit {
            return Admission::Never;
        }
        self.purge(now);
        let mut used = self.used.saturating_add(u64::from(cost));
        if used <= limit {
            return Admission::Admit;
        }
        for (free_at, units) in &self.taken {
            used = used.saturating_sub(*units);
            if used <= limit {
                return Admission::Defer(*free_at);
            }
        }
        Admission::Never
    }

    /// Takes `cost` units.
    pub fn take(&mut self, cost: u32, now: Mono) {
        self.note(
            u64::from(cost),
            now.plus(GRAIN_MS).plus(self.rule.window_ms()),
        );
    }

    /// Gives back `cost` units, the newest.
    pub fn give_back(&mut self, cost: u32) {
        let mut left = u64::from(cost);
        while left > 0 {
            let Some(mut newest) = self.taken.last_entry() else {
                return;
            };
            let units = (*newest.get()).min(left);
            *newest.get_mut() -= units;
            if *newest.get() == 0 {
                newest.remove();
            }
            left -= units;
            self.used = self.used.saturating_sub(units);
        }
    }

    /// Takes what an earlier owner used at `start`.
    pub fn restore(&mut self, cost: u32, start: Wall, now: Now) {
        let free_at = start.plus(GRAIN_MS).plus(self.rule.window_ms());
        if free_at > now.wall {
            self.note(u64::from(cost), now.mono_of(free_at));
        }
    }

    /// Returns the units that are free now.
    pub fn free(&mut self, now: Mono) -> u32 {
        self.purge(now);
        let free = u64::from(self.rule.limit()).saturating_sub(self.used);
        u32::try_from(free).unwrap_or(u32::MAX)
    }

    /// Returns the rule.
    pub const fn rule(&self) -> LimitRule {
        self.rule
    }

    /// Takes over a changed rule and keeps what was consumed.
    pub fn configure(&mut self, rule: LimitRule) {
        let (old, new) = (self.rule.window_ms(), rule.window_ms());
        self.rule = rule;
        self.used = 0;
        for (free_at, units) in std::mem::take(&mut self.taken) {
            self.note(units, free_at.plus(new).minus(old));
        }
    }

    fn note(&mut self, units: u64, free_at: Mono) {
        let grain = (self.rule.window_ms() / MAX_INSTANTS).max(1);
        let rounded = free_at.as_millis().div_ceil(grain).saturating_mul(grain);
        let slot = self.taken.entry(Mono::from_millis(rounded)).or_default();
        *slot = slot.saturating_add(units);
        self.used = self.used.saturating_add(units);
    }

    fn purge(&mut self, now: Mono) {
        while let Some(entry) = self.taken.first_entry() {
            if *entry.key() > now {
                return;
            }
            self.used = self.used.saturating_sub(entry.remove());
        }
    }
}
