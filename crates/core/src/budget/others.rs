//! What others spend of the server's windows, as far as its words show it.
//!
//! An answer says what was left when its request was counted. What was used by then and is not ours is others'. When
//! exactly each of ours was counted is not known; the middle between its start and its answer is taken, and as that
//! errs by about as much for all of them, the difference hardly does. The others' units are kept free: a start asks the
//! limiter for its own cost and theirs. While they usually have less than one unit, a word that our own use may explain
//! shows none of theirs.
//!
//! A word is old when it comes, and a request is counted some time after its start. What others take meanwhile is drawn
//! by chance around what they usually take: the forecast goes from the last word to the usual as it ages, and three times
//! the deviation of a count of independent requests (the root of its mean) is added.
//!
//! **Whether a window slides.** In a window that starts anew at once, what is left does not rise in between, so little left
//! closes a budget until the reset (`sync`). In one that slides, units come back one by one, and the reset is only that
//! of the oldest. It is seen to slide when more is left than before although more is used than can have been since.
//! Invariant: bounded by the server's limit; forgotten [`FORGET_WINDOWS`] windows after the last word.

use std::collections::VecDeque;

use crate::config::{LimitRule, MAX_RULES};
use crate::signals::BudgetSignal;
use crate::time::Mono;

/// Thousandths of a unit, in which means are kept.
const MILLI: u64 = 1_000;
/// After so many windows without a word others may be gone.
const FORGET_WINDOWS: u64 = 10;
/// The part of a new word in the usual.
const NEW_PART: u64 = 64;
/// Deviations that are kept free.
const DEVIATIONS: u64 = 3;
/// So few units left explain a refusal.
const FEW: u64 = 5;
/// Instants kept for one window.
const MAX_INSTANTS: u64 = 1_000;

/// A word of the server's, seen from ours.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heard {
    pub(super) started: Mono,
    pub(super) came_at: Mono,
    pub(super) window_ms: u64,
    pub(super) limit: u64,
    pub(super) used: u64,
    /// Whether all of that may be ours.
    pub(super) is_explained: bool,
}

impl Heard {
    /// Reads what an answer says of one window; none if it does not say enough.
    pub(super) fn of(
        signal: &BudgetSignal,
        window_ms: u64,
        started: Mono,
        came_at: Mono,
        is_explained: bool,
    ) -> Option<Self> {
        let (limit, left) = (signal.limit?, signal.remaining?);
        Some(Self {
            started,
            came_at,
            window_ms,
            limit,
            used: limit.saturating_sub(left),
            is_explained,
        })
    }

    fn middle(&self) -> Mono {
        middle(self.started, self.came_at)
    }
}

/// About when a request was counted that started and ended then.
pub(super) const fn middle(started: Mono, ended: Mono) -> Mono {
    started.plus(ended.since(started) / 2)
}

/// What others spend of the windows of one budget.
#[derive(Clone, Debug, Default)]
pub(super) struct Others {
    windows: Vec<Window>,
}

/// What others spend of one window.
#[derive(Clone, Debug)]
struct Window {
    /// Units of ours by about when they were counted, ascending.
    counted: VecDeque<(Mono, u64)>,
    /// From when on all of ours are known.
    since: Mono,
    newest: Heard,
    /// The last counted of the words.
    last: Heard,
    /// The last word that the next one is compared with.
    before: Heard,
    /// What they had spent by the last word.
    now: u64,
    /// What they usually have, in thousandths.
    usual: u64,
    slides: bool,
}

impl Others {
    /// Notes units of ours that ended.
    pub(super) fn ended(&mut self, started: Mono, ended: Mono, cost: u32) {
        let at = middle(started, ended);
        for window in &mut self.windows {
            window.count(at, u64::from(cost));
        }
    }

    /// Takes a word; `flights` are those on their way, itself too, with about when they are counted.
    pub(super) fn hear(&mut self, heard: Heard, flights: &[(Mono, u64)]) {
        self.windows.retain(|window| !window.is_over(heard.came_at));
        let is_known = |window: &Window| window.last.window_ms == heard.window_ms;
        match self.windows.iter().position(is_known) {
            Some(index) => self.windows[index].hear(heard, flights),
            None if self.windows.len() < MAX_RULES => self.windows.push(Window::new(heard)),
            None => {}
        }
    }

    /// Returns the units of others to keep free for a request that is counted at `at`, beyond what the rule leaves.
    pub(super) fn forecast(&self, rule: LimitRule, at: Mono) -> u32 {
        let known = self.known(Some(rule.window_ms()), at);
        known.map_or(0, |window| window.beyond(rule, window.forecast(at)))
    }

    /// Returns the units that others are most likely to have at `at`, beyond what the rule leaves.
    pub(super) fn mean(&self, rule: LimitRule, at: Mono) -> u32 {
        let known = self.known(Some(rule.window_ms()), at);
        known.map_or(0, |window| window.beyond(rule, window.mean(at)))
    }

    /// Tells whether units of a window come back one by one.
    pub(super) fn slides(&self, window_ms: Option<u64>, at: Mono) -> bool {
        self.known(window_ms, at)
            .is_some_and(|window| window.slides)
    }

    /// Tells whether the newest word says that hardly anything is left of a rule's window, of no lower limit than the rule's.
    pub(super) fn is_used_up(&self, rule: LimitRule, at: Mono) -> bool {
        self.known(Some(rule.window_ms()), at)
            .is_some_and(|window| {
                let newest = window.newest;
                newest.limit >= u64::from(rule.limit())
                    && newest.limit.saturating_sub(newest.used) < FEW
                    && at.since(newest.came_at) <= rule.window_ms()
            })
    }

    /// Tells whether others usually have a unit or more of a window.
    pub(super) fn are_there(&self, window_ms: u64, at: Mono) -> bool {
        self.known(Some(window_ms), at)
            .is_some_and(|window| window.usual >= MILLI)
    }

    fn known(&self, window_ms: Option<u64>, at: Mono) -> Option<&Window> {
        let mut windows = self.windows.iter();
        let known = windows.find(|window| Some(window.last.window_ms) == window_ms);
        known.filter(|window| !window.is_over(at))
    }
}

impl Window {
    const fn new(heard: Heard) -> Self {
        Self {
            counted: VecDeque::new(),
            since: heard.started,
            newest: heard,
            last: heard,
            before: heard,
            now: 0,
            usual: 0,
            slides: false,
        }
    }

    fn count(&mut self, at: Mono, cost: u64) {
        let window_ms = self.last.window_ms;
        let later = self
            .counted
            .iter()
            .rev()
            .take_while(|(other, _)| *other > at);
        let place = self.counted.len().saturating_sub(later.count());
        let grain_ms = (window_ms / MAX_INSTANTS).max(1);
        match place
            .checked_sub(1)
            .and_then(|before| self.counted.get_mut(before))
        {
            Some((other, units)) if at < other.plus(grain_ms) => {
                *units = units.saturating_add(cost)
            }
            Some(_) | None => self.counted.insert(place, (at, cost)),
        }
        while let Some((first, _)) = self.counted.front()
            && first.plus(window_ms.saturating_mul(2)) < at
        {
            self.counted.pop_front();
        }
    }

    fn ours(&self, flights: &[(Mono, u64)], from: Mono, to: Mono) -> u64 {
        let all = self.counted.iter().chain(flights);
        let within = all.filter(|(at, _)| *at > from && *at <= to);
        within.map(|(_, cost)| cost).sum()
    }

    const fn is_over(&self, at: Mono) -> bool {
        at.since(self.newest.came_at) > self.last.window_ms.saturating_mul(FORGET_WINDOWS)
    }

    fn hear(&mut self, heard: Heard, flights: &[(Mono, u64)]) {
        self.newest = heard;
        self.look_for_slides(heard, flights);
        let at = heard.middle();
        let from = at.minus(heard.window_ms);
        if from < self.since {
            return;
        }
        let now = if heard.is_explained {
            0
        } else {
            heard.used.saturating_sub(self.ours(flights, from, at))
        };
        let old = self.usual.saturating_mul(NEW_PART - 1);
        let usual = old.saturating_add(now.saturating_mul(MILLI));
        self.usual = usual / NEW_PART;
        if at >= self.last.middle() {
            self.last = heard;
            self.now = now;
        }
    }

    /// Compares a word with an earlier one, of whose request the answer had come when this one's started.
    fn look_for_slides(&mut self, heard: Heard, flights: &[(Mono, u64)]) {
        let before = self.before;
        if heard.started < before.came_at {
            return;
        }
        self.before = heard;
        if heard.used >= before.used {
            return;
        }
        let ours_since = self.ours(flights, before.started, heard.came_at);
        let others_since = heard.limit / 4;
        let is_soon = heard.middle().since(before.middle()) <= heard.window_ms / 8;
        if heard.used > ours_since.saturating_add(others_since) {
            self.slides = true;
        } else if is_soon && before.used > heard.limit / 4 * 3 && heard.used <= ours_since {
            self.slides = false;
        }
    }

    /// What of `milli_units` is more than the rule leaves of the server's limit.
    fn beyond(&self, rule: LimitRule, milli_units: u64) -> u32 {
        let left_out = self.last.limit.saturating_sub(u64::from(rule.limit()));
        let is_there = milli_units >= MILLI / 2;
        let units = if is_there {
            milli_units.div_ceil(MILLI)
        } else {
            0
        };
        let units = units.min(self.last.limit);
        u32::try_from(units.saturating_sub(left_out)).unwrap_or(u32::MAX)
    }

    fn mean(&self, at: Mono) -> u64 {
        let window_ms = self.last.window_ms;
        let age_ms = at.since(self.last.middle()).min(window_ms);
        let young = self
            .now
            .saturating_mul(MILLI)
            .saturating_mul(window_ms.saturating_sub(age_ms));
        young.saturating_add(self.usual.saturating_mul(age_ms)) / window_ms
    }

    fn forecast(&self, at: Mono) -> u64 {
        let window_ms = self.last.window_ms;
        let age_ms = at.since(self.last.middle()).min(window_ms);
        let most = self.now.saturating_mul(MILLI).max(self.usual);
        let change = most.saturating_mul(age_ms) / window_ms;
        let deviation = change.saturating_mul(MILLI).isqrt();
        self.mean(at)
            .saturating_add(deviation.saturating_mul(DEVIATIONS))
    }
}
