//! The fixed window: N units from each window's start to its end, all at once if the caller likes.
//!
//! For servers that count so and say so. Two full windows may meet at an edge (that is what such a server allows), so
//! it is no substitute for a log where the server counts in a sliding window. Windows begin at the first start after
//! the last one ended, or at multiples of the window on the wall clock (UTC), as a daily quota does.

use super::Admission;
use crate::config::{Anchor, LimitRule};
use crate::time::{Mono, Now, Wall};

/// N units a window.
#[derive(Clone, Debug)]
pub struct FixedWindow {
    rule: LimitRule,
    used: u64,
    ends_at: Option<Mono>,
}

impl FixedWindow {
    /// Makes a window that has not begun.
    pub const fn new(rule: LimitRule) -> Self {
        Self {
            rule,
            used: 0,
            ends_at: None,
        }
    }

    /// Tells whether `cost` fits now, or when.
    pub fn check(&mut self, cost: u32, now: Mono) -> Admission {
        if cost > self.rule.limit() {
            return Admission::Never;
        }
        self.turn(now);
        match self.ends_at {
            Some(ends_at)
                if self.used.saturating_add(u64::from(cost)) > u64::from(self.rule.limit()) =>
            {
                Admission::Defer(ends_at)
            }
            Some(_) | None => Admission::Admit,
        }
    }

    /// Takes `cost` units; the first of a window begins it.
    pub fn take(&mut self, cost: u32, now: Now) {
        self.turn(now.mono);
        self.ends_at.get_or_insert(self.end_from(now));
        self.used = self.used.saturating_add(u64::from(cost));
    }

    /// Gives `cost` units back.
    pub const fn give_back(&mut self, cost: u32) {
        self.used = self.used.saturating_sub(cost as u64);
    }

    /// Takes what an earlier owner used at `start`.
    pub fn restore(&mut self, cost: u32, start: Wall, now: Now) {
        let began = Now {
            mono: now.mono,
            wall: start,
        };
        let length = self.end_from(began).since(began.mono);
        let ends = start.plus(length);
        if ends <= now.wall {
            return;
        }
        let ends_at = now.mono_of(ends);
        self.ends_at = Some(self.ends_at.map_or(ends_at, |known| known.max(ends_at)));
        self.used = self.used.saturating_add(u64::from(cost));
    }

    /// Returns the units that are left now.
    pub fn free(&mut self, now: Mono) -> u32 {
        self.turn(now);
        let free = u64::from(self.rule.limit()).saturating_sub(self.used);
        u32::try_from(free).unwrap_or(u32::MAX)
    }

    /// Returns when its window ends, if one has begun.
    pub const fn ends_at(&self) -> Option<Mono> {
        self.ends_at
    }

    /// Returns the rule.
    pub const fn rule(&self) -> LimitRule {
        self.rule
    }

    /// Takes over a changed rule and keeps what was consumed: the window that has begun ends where a new one would, but
    /// one of the clock not before it would have.
    pub fn configure(&mut self, rule: LimitRule) {
        let (old_ms, new_ms) = (self.rule.window_ms(), rule.window_ms());
        self.ends_at = self.ends_at.map(|at| match rule.anchor() {
            Anchor::First => at.minus(old_ms).plus(new_ms),
            Anchor::Clock => at.minus(old_ms).plus(new_ms).max(at),
        });
        self.rule = rule;
    }

    fn turn(&mut self, now: Mono) {
        if self.ends_at.is_some_and(|ends_at| ends_at <= now) {
            self.ends_at = None;
            self.used = 0;
        }
    }

    fn end_from(&self, now: Now) -> Mono {
        let window_ms = self.rule.window_ms();
        match self.rule.anchor() {
            Anchor::First => now.mono.plus(window_ms),
            Anchor::Clock => now.mono.plus(window_ms - now.wall.as_millis() % window_ms),
        }
    }
}
