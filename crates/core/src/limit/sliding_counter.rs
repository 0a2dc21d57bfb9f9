//! The sliding window counter: this window's count, and the last one's in proportion to what of it is still in sight.
//!
//! The estimate assumes that the last window was filled evenly, as servers that count so do. Kept exact in integers by
//! comparing units times the window. Windows are multiples of the window since the clock's start.

use super::Admission;
use crate::config::LimitRule;
use crate::time::{Mono, Now, Wall};

/// N units in a window that is estimated from two counts.
#[derive(Clone, Debug)]
pub struct SlidingCounter {
    rule: LimitRule,
    began_at: u64,
    last: u64,
    current: u64,
}

impl SlidingCounter {
    /// Makes a counter that has counted nothing.
    pub const fn new(rule: LimitRule) -> Self {
        Self {
            rule,
            began_at: 0,
            last: 0,
            current: 0,
        }
    }

    /// Tells whether `cost` fits now, or when.
    pub fn check(&mut self, cost: u32, now: Mono) -> Admission {
        let limit = u64::from(self.rule.limit());
        let cost = u64::from(cost);
        if cost > limit {
            return Admission::Never;
        }
        self.turn(now);
        let window_ms = self.rule.window_ms();
        let at = self.fits_after(self.last, self.current.saturating_add(cost));
        if let Some(at) = at {
            let fits_at = self.began_at.saturating_add(at);
            if fits_at <= now.as_millis() {
                return Admission::Admit;
            }
            return Admission::Defer(Mono::from_millis(fits_at));
        }
        // Not in this window: in the next, where this one's count is the last.
        let next = self.began_at.saturating_add(window_ms);
        let at = self.fits_after(self.current, cost).unwrap_or(window_ms);
        Admission::Defer(Mono::from_millis(next.saturating_add(at)))
    }

    /// Takes `cost` units.
    pub fn take(&mut self, cost: u32, now: Mono) {
        self.turn(now);
        self.current = self.current.saturating_add(u64::from(cost));
    }

    /// Gives `cost` units back.
    pub const fn give_back(&mut self, cost: u32) {
        self.current = self.current.saturating_sub(cost as u64);
    }

    /// Takes what an earlier owner used at `start`; the careful side is this window.
    pub fn restore(&mut self, cost: u32, start: Wall, now: Now) {
        self.turn(now.mono);
        if now.wall.since(start) < self.rule.window_ms() {
            self.current = self.current.saturating_add(u64::from(cost));
        }
    }

    /// Returns the whole units that are free now.
    pub fn free(&mut self, now: Mono) -> u32 {
        self.turn(now);
        let window_ms = self.rule.window_ms();
        let seen = self.last.saturating_mul(self.left_of_last(now));
        let used = self.current.saturating_add(seen.div_ceil(window_ms));
        let free = u64::from(self.rule.limit()).saturating_sub(used);
        u32::try_from(free).unwrap_or(u32::MAX)
    }

    /// Returns the rule.
    pub const fn rule(&self) -> LimitRule {
        self.rule
    }

    /// Takes over a changed rule and keeps the counts.
    pub fn configure(&mut self, rule: LimitRule, now: Mono) {
        self.turn(now);
        self.rule = rule;
        self.began_at = now.as_millis() / rule.window_ms() * rule.window_ms();
    }

    /// Milliseconds into the window after which `last` in proportion and `current` whole fit, if they do within it.
    fn fits_after(&self, last: u64, current: u64) -> Option<u64> {
        let window_ms = self.rule.window_ms();
        let room = u64::from(self.rule.limit()).checked_sub(current)?;
        // last * (window - after) <= room * window
        let left = room.saturating_mul(window_ms).checked_div(last);
        let left = left.unwrap_or(window_ms).min(window_ms);
        let after = window_ms - left;
        (after < window_ms).then_some(after)
    }

    const fn left_of_last(&self, now: Mono) -> u64 {
        let gone = now.as_millis().saturating_sub(self.began_at);
        self.rule.window_ms().saturating_sub(gone)
    }

    fn turn(&mut self, now: Mono) {
        let window_ms = self.rule.window_ms();
        let gone = now.as_millis().saturating_sub(self.began_at) / window_ms;
        match gone {
            0 => return,
            1 => self.last = self.current,
            _ => self.last = 0,
        }
        self.current = 0;
        self.began_at = self.began_at.saturating_add(gone.saturating_mul(window_ms));
    }
}
