//! A batch with a rest: N units at once, then a full window with nothing in flight.
//!
//! For servers that count a burst and forget it only after a silence. A batch that was not filled ends in the same way:
//! by a rest of one window after its last answer.

use std::collections::BTreeSet;

use super::{Admission, GRAIN_MS, Ticket};
use crate::config::LimitRule;
use crate::time::{Mono, Now, Wall};

/// N units, then a rest.
#[derive(Clone, Debug)]
pub struct BatchRest {
    rule: LimitRule,
    used: u64,
    open: BTreeSet<Ticket>,
    /// When the batch is over, if nothing is in flight.
    over_at: Option<Mono>,
}

impl BatchRest {
    /// Makes an empty batch.
    pub const fn new(rule: LimitRule) -> Self {
        Self {
            rule,
            used: 0,
            open: BTreeSet::new(),
            over_at: None,
        }
    }

    /// Tells whether `cost` fits now, or when.
    pub fn check(&mut self, cost: u32, now: Mono) -> Admission {
        if cost > self.rule.limit() {
            return Admission::Never;
        }
        self.turn(now);
        if self.used.saturating_add(u64::from(cost)) <= u64::from(self.rule.limit()) {
            return Admission::Admit;
        }
        match self.over_at {
            Some(at) if self.open.is_empty() => Admission::Defer(at),
            Some(_) | None => Admission::DeferToAnswer,
        }
    }

    /// Takes `cost` units for an attempt.
    pub fn take(&mut self, ticket: Ticket, cost: u32, now: Mono) {
        self.turn(now);
        self.open.insert(ticket);
        self.used = self.used.saturating_add(u64::from(cost));
    }

    /// Takes `cost` units for an attempt that was on its way before this batch was made. Its batch is taken as used up: what
    /// else belongs to that may have ended more than a window ago.
    pub fn take_over(&mut self, ticket: Ticket, cost: u32, now: Mono) {
        self.take(ticket, cost, now);
        self.used = self.used.max(u64::from(self.rule.limit()));
        self.rest(now);
    }

    /// Notes that an attempt ended now.
    pub fn end(&mut self, ticket: Ticket, now: Mono) {
        if self.open.remove(&ticket) {
            self.rest(now);
        }
    }

    /// Counts more or less of the batch as used.
    pub const fn correct(&mut self, more: u32, less: u32) {
        self.used = self
            .used
            .saturating_add(more as u64)
            .saturating_sub(less as u64);
    }

    /// Gives back what an attempt took.
    pub fn give_back(&mut self, ticket: Ticket, cost: u32) {
        if self.open.remove(&ticket) {
            self.used = self.used.saturating_sub(u64::from(cost));
        }
    }

    /// Takes what an attempt of an earlier owner used, which ended at `end` at the latest. A batch that has not rested is
    /// taken as used up: what of it is older than a window is not known any more.
    pub fn restore(&mut self, cost: u32, end: Wall, now: Now) {
        let over = end.plus(GRAIN_MS).plus(self.rule.window_ms());
        if over <= now.wall {
            return;
        }
        let over_at = now.mono_of(over);
        self.over_at = Some(self.over_at.map_or(over_at, |known| known.max(over_at)));
        let used = self.used.saturating_add(u64::from(cost));
        self.used = used.max(u64::from(self.rule.limit()));
    }

    /// Returns the units that are left of the batch.
    pub fn free(&mut self, now: Mono) -> u32 {
        self.turn(now);
        let free = u64::from(self.rule.limit()).saturating_sub(self.used);
        u32::try_from(free).unwrap_or(u32::MAX)
    }

    /// Returns the rule.
    pub const fn rule(&self) -> LimitRule {
        self.rule
    }

    /// Takes over a changed rule and keeps what was consumed; a rest that has begun is as long as the new one.
    pub fn configure(&mut self, rule: LimitRule) {
        let (old_ms, new_ms) = (self.rule.window_ms(), rule.window_ms());
        self.over_at = self.over_at.map(|at| at.minus(old_ms).plus(new_ms));
        self.rule = rule;
    }

    /// The batch is over one window from now at the earliest.
    fn rest(&mut self, now: Mono) {
        let over_at = now.plus(GRAIN_MS).plus(self.rule.window_ms());
        self.over_at = Some(self.over_at.map_or(over_at, |known| known.max(over_at)));
    }

    fn turn(&mut self, now: Mono) {
        if self.open.is_empty() && self.over_at.is_some_and(|at| at <= now) {
            self.used = 0;
            self.over_at = None;
        }
    }
}
