//! Spaces the starts of bulk and background jobs over long windows, so that a bulk does not lock the user out.
//!
//! Owns from when on such a start may come, as far as spacing alone says. Does not own the limits: what it lets through is
//! still asked of every rule. Interactive starts are counted, and never deferred. Invariant: while something waits, the
//! instant that it names is at most one window away.
//!
//! **Why.** Under 100 per 10 s a bulk of 2,000 takes a window's units in its first moment, and again each time that they
//! come back; a click in between waits for up to 10 s, although clicks go first. Spaced, units come back one by one,
//! and a click takes the next of them.
//!
//! **Which gap.** Let there be room for the k-th further start at `a(k)`, now or when what was taken comes back. The next
//! start comes after the largest of `a(k) / k`: the shortest even gap at which nothing runs out before more comes back. It
//! is never below window/limit, is exactly that in the steady state, and flattens a burst within one window. A unit is
//! never left free for longer than evenness needs, so spacing costs no rate: a start that the rules held up may be made up
//! for by half a gap, since answers come back with jitter. Starts to come are taken to cost as much as the last one.
//!
//! **The head.** A small bulk alone would gain nothing from gaps: as long as a quarter of the window stays free, starts
//! come at once. A click then has that quarter, and what is left of it is spread until the rest comes back. Under endless
//! bulk such a head would renew itself with every window (units that were taken together come back together), so it is
//! granted only where the quarter has stood free for one whole window. A fixed window comes back whole, its quarter too.
//!
//! Memory: what was taken is kept by the instant at which it comes back, in thousandths of the window.

use std::collections::{BTreeMap, VecDeque};

use crate::config::{Algorithm, LimitRule, Pace};
use crate::time::Mono;

/// The longest window that `auto` does not space.
const SHORT_WINDOW_MS: u64 = 1_000;
/// The part of a window that must stay free while starts come at once.
const HEAD_KEEPS: u64 = 4;
/// The part of the even gap that is kept beside others.
const BESIDE_OTHERS: u64 = 8;
/// Instants kept for one window.
const MAX_INSTANTS: u64 = 1_000;
const US: u64 = 1_000;

/// The spacing of one budget, by the place of each rule that is spaced.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pacer {
    pace: Pace,
    lines: BTreeMap<usize, Line>,
}

impl Pacer {
    /// Makes the spacing for the rules of a budget.
    pub(crate) fn new(pace: Pace, rules: impl Iterator<Item = LimitRule>) -> Self {
        let mut pacer = Self::default();
        pacer.configure(pace, rules);
        pacer
    }

    /// Takes over changed rules and keeps what was taken under the same algorithm and window.
    pub(crate) fn configure(&mut self, pace: Pace, rules: impl Iterator<Item = LimitRule>) {
        self.pace = pace;
        let mut old: Vec<Line> = std::mem::take(&mut self.lines).into_values().collect();
        for (index, rule) in rules
            .enumerate()
            .filter(|(_, rule)| may_be_spaced(pace, *rule))
        {
            let is_same = |line: &Line| {
                line.rule.algorithm() == rule.algorithm()
                    && line.rule.window_ms() == rule.window_ms()
            };
            let line = match old.iter().position(is_same) {
                Some(at) => Line {
                    rule,
                    ..old.swap_remove(at)
                },
                None => Line::new(rule),
            };
            self.lines.insert(index, line);
        }
    }

    /// Takes note of how much of the rule at `index` others have: it is spaced beside them, however short its window is.
    pub(crate) fn beside(&mut self, index: usize, others: u32) {
        if let Some(line) = self.lines.get_mut(&index) {
            line.others = u64::from(others);
        }
    }

    /// Tells from when on a bulk or background start of `cost` may come, and which rule is spaced so; none if now.
    pub(crate) fn check(&mut self, cost: u32, at: Mono) -> Option<(Mono, LimitRule)> {
        let pace = self.pace;
        let lines = self.lines.values_mut();
        let deferred = lines.filter_map(|line| Some((line.check(cost, pace, at)?, line.rule)));
        deferred.max_by_key(|(until, _)| *until)
    }

    /// Notes a start under the rule at `index`, whose units come back at `back_at`; `spacing` tells whether a gap follows it.
    pub(crate) fn started(
        &mut self,
        index: usize,
        cost: u32,
        spacing: Spacing,
        at: Mono,
        back_at: Mono,
    ) {
        let Some(line) = self.lines.get_mut(&index) else {
            return;
        };
        line.take(cost, at, back_at);
        if spacing == Spacing::Gap && line.is_spaced(self.pace) {
            line.space(cost, at);
        }
    }

    /// Notes units that were taken under the rule at `index` before it was known here.
    pub(crate) fn restore(&mut self, index: usize, cost: u32, now: Mono, back_at: Mono) {
        if let Some(line) = self.lines.get_mut(&index).filter(|_| back_at > now) {
            line.take(cost, now, back_at);
        }
    }

    /// Forgets the units of a start whose request never left.
    pub(crate) fn gave_back(&mut self, cost: u32) {
        for line in self.lines.values_mut() {
            line.give_back(cost);
        }
    }

    /// Returns about how many milliseconds it takes until `cost` units of bulk and background jobs are let through.
    pub(crate) fn eta_ms(&mut self, cost: u64, at: Mono) -> u64 {
        let pace = self.pace;
        let lines = self.lines.values_mut();
        lines
            .map(|line| line.eta_ms(cost, pace, at))
            .max()
            .unwrap_or(0)
    }
}

/// Whether a start is followed by a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spacing {
    /// A bulk or background start.
    Gap,
    /// An interactive one.
    None,
}

/// What was taken of one rule, and when the next spaced start may come.
#[derive(Clone, Debug)]
struct Line {
    rule: LimitRule,
    /// Units by the instant at which they come back, ascending.
    taken: VecDeque<(Mono, u64)>,
    used: u64,
    others: u64,
    /// The latest instant at which less was free than a head leaves.
    scarce_at: Option<Mono>,
    /// In microseconds: a gap may be shorter than a millisecond.
    next_us: u64,
}

impl Line {
    const fn new(rule: LimitRule) -> Self {
        Self {
            rule,
            taken: VecDeque::new(),
            used: 0,
            others: 0,
            scarce_at: None,
            next_us: 0,
        }
    }

    fn check(&mut self, cost: u32, pace: Pace, at: Mono) -> Option<Mono> {
        if !self.is_spaced(pace) {
            return None;
        }
        self.purge(at);
        let leaves = self.free().saturating_sub(u64::from(cost));
        let until = Mono::from_millis(self.next_us.div_ceil(US));
        let is_head = pace == Pace::Auto && leaves >= self.kept() && self.has_head(at);
        (until > at && !is_head).then_some(until)
    }

    /// Tells whether gaps are kept: over a short window only beside others, whose use is known late.
    fn is_spaced(&self, pace: Pace) -> bool {
        pace != Pace::Auto || self.rule.window_ms() > SHORT_WINDOW_MS || self.others > 0
    }

    fn take(&mut self, cost: u32, at: Mono, back_at: Mono) {
        self.purge(at);
        let units = u64::from(cost);
        self.used = self.used.saturating_add(units);
        let grain_ms = (self.rule.window_ms() / MAX_INSTANTS).max(1);
        match self.taken.back_mut() {
            Some((back, taken)) if back_at < back.plus(grain_ms) => {
                *taken = taken.saturating_add(units);
            }
            Some(_) | None => self.taken.push_back((back_at, units)),
        }
        self.note_scarce(at);
    }

    fn give_back(&mut self, cost: u32) {
        let mut left = u64::from(cost);
        while let Some((_, units)) = self.taken.back_mut()
            && left > 0
        {
            let part = left.min(*units);
            *units -= part;
            left -= part;
            self.used = self.used.saturating_sub(part);
            if *units == 0 {
                self.taken.pop_back();
            }
        }
    }

    fn purge(&mut self, at: Mono) {
        while let Some((back_at, units)) = self.taken.front().copied()
            && back_at <= at
        {
            self.note_scarce(back_at);
            self.taken.pop_front();
            self.used = self.used.saturating_sub(units);
            if self.rule.algorithm() == Algorithm::FixedWindow {
                self.scarce_at = None;
            }
        }
    }

    fn note_scarce(&mut self, at: Mono) {
        if self.free() < self.kept() {
            self.scarce_at = self.scarce_at.max(Some(at));
        }
    }

    /// Tells whether a quarter stood free for the whole last window.
    fn has_head(&self, at: Mono) -> bool {
        let window_ms = self.rule.window_ms();
        self.scarce_at
            .is_none_or(|scarce| at.since(scarce) > window_ms)
    }

    fn free(&self) -> u64 {
        self.limit().saturating_sub(self.used)
    }

    /// What others leave of the rule.
    fn limit(&self) -> u64 {
        u64::from(self.rule.limit())
            .saturating_sub(self.others)
            .max(1)
    }

    fn kept(&self) -> u64 {
        u64::from(self.rule.limit()).div_ceil(HEAD_KEEPS)
    }

    /// Sets the next start one gap after this one.
    fn space(&mut self, cost: u32, at: Mono) {
        let gap_us = match self.others {
            0 => self.gap_us(cost, at),
            _ => self.gap_us(cost, at) / BESIDE_OTHERS,
        };
        let at_us = at.as_millis().saturating_mul(US);
        let late_us = (gap_us / 2).max(US);
        let from_us = self.next_us.clamp(at_us.saturating_sub(late_us), at_us);
        self.next_us = from_us.saturating_add(gap_us);
    }

    /// The shortest even gap between starts of that cost at which nothing runs out before more comes back.
    fn gap_us(&self, cost: u32, at: Mono) -> u64 {
        let mut units = self.free();
        let mut above = self.used.saturating_sub(self.limit());
        let mut gap_us = 0;
        for (back_at, taken) in &self.taken {
            let back = taken.saturating_sub(above);
            above = above.saturating_sub(*taken);
            if back > 0 {
                let wait_us = back_at.since(at).saturating_mul(US);
                let starts = units / u64::from(cost.max(1));
                gap_us = gap_us.max(wait_us / starts.saturating_add(1));
                units = units.saturating_add(back);
            }
        }
        gap_us
    }

    fn eta_ms(&mut self, cost: u64, pace: Pace, at: Mono) -> u64 {
        if !self.is_spaced(pace) {
            return 0;
        }
        self.purge(at);
        let at_once = if pace == Pace::Auto && self.has_head(at) {
            self.free().saturating_sub(self.kept())
        } else {
            0
        };
        let spaced = cost.saturating_sub(at_once);
        let left = self.free().saturating_sub(at_once);
        let window_ms = self.rule.window_ms();
        if spaced == 0 {
            0
        } else if spaced <= left {
            // What is left is spread until more comes back.
            spaced.saturating_mul(window_ms) / left
        } else {
            let beyond = spaced.saturating_sub(left).saturating_mul(window_ms);
            let first_ms = if left > 0 { window_ms } else { 0 };
            first_ms.saturating_add(beyond / self.limit())
        }
    }
}

/// Tells whether starts under a rule may be spaced: buckets and queues pace by themselves, and a batch is wanted at once.
const fn may_be_spaced(pace: Pace, rule: LimitRule) -> bool {
    let counts_in_windows = match rule.algorithm() {
        Algorithm::ArrivalLog
        | Algorithm::SlidingLog
        | Algorithm::FixedWindow
        | Algorithm::SlidingCounter => true,
        Algorithm::TokenBucket
        | Algorithm::LeakyBucket
        | Algorithm::LeakyQueue
        | Algorithm::Gcra
        | Algorithm::BatchRest => false,
    };
    match pace {
        Pace::Auto | Pace::Even => counts_in_windows,
        Pace::Burst => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(limit: u64, algorithm: Algorithm) -> Pacer {
        let rule = LimitRule::new(limit, 10_000, algorithm).unwrap();
        Pacer::new(Pace::Auto, [rule].into_iter())
    }

    fn at(millis: u64) -> Mono {
        Mono::from_millis(millis)
    }

    /// Starts as soon as it is let through, as often as asked; returns when.
    fn starts(pacer: &mut Pacer, count: usize, from: u64) -> Vec<u64> {
        let mut now = from;
        (0..count)
            .map(|_| {
                if let Some((until, _)) = pacer.check(1, at(now)) {
                    now = until.as_millis();
                }
                pacer.started(0, 1, Spacing::Gap, at(now), at(now + 10_000));
                now
            })
            .collect()
    }

    #[test]
    fn a_head_leaves_a_quarter_and_comes_back_after_an_idle_window() {
        let mut pacer = line(8, Algorithm::ArrivalLog);

        assert_eq!(starts(&mut pacer, 8, 0), [0, 0, 0, 0, 0, 0, 3_334, 6_667]);
        // Less than a quarter was free until 10,000.
        assert_eq!(starts(&mut pacer, 2, 18_000)[1], 18_625);
        assert_eq!(starts(&mut pacer, 6, 50_000), [50_000; 6]);
    }

    #[test]
    fn what_comes_back_together_is_spread() {
        let mut pacer = line(100, Algorithm::ArrivalLog);
        for _ in 0..100 {
            pacer.started(0, 1, Spacing::None, at(0), at(10_000));
        }

        let starts = starts(&mut pacer, 100, 10_000);

        let gaps: Vec<u64> = starts[1..]
            .windows(2)
            .map(|pair| pair[1] - pair[0])
            .collect();
        assert!(gaps.iter().all(|gap| (99..=101).contains(gap)), "{gaps:?}");
    }

    #[test]
    fn a_start_that_was_held_up_is_made_up_for_by_half_a_gap() {
        let mut pacer = line(100, Algorithm::ArrivalLog);
        pacer.pace = Pace::Even;
        starts(&mut pacer, 100, 0);

        pacer.started(0, 1, Spacing::Gap, at(11_000), at(21_000));

        assert_eq!(pacer.check(1, at(11_000)).unwrap().0, at(11_050));
    }

    #[test]
    fn a_fixed_window_brings_its_head_back() {
        let mut pacer = line(8, Algorithm::FixedWindow);
        for start in [0, 0, 0, 0, 0, 0, 3_000, 6_000] {
            pacer.started(0, 1, Spacing::Gap, at(start), at(10_000));
        }

        assert_eq!(pacer.check(1, at(10_000)), None);
    }

    #[test]
    fn no_cost_waits_longer_than_a_window() {
        let mut pacer = line(100, Algorithm::ArrivalLog);

        for _ in 0..4 {
            pacer.started(0, 50, Spacing::Gap, at(0), at(10_000));
        }

        let (until, _) = pacer.check(50, at(0)).unwrap();
        assert!(until <= at(10_000), "{until:?}");
    }

    #[test]
    fn what_never_left_is_forgotten_and_a_changed_rule_keeps_the_rest() {
        let mut pacer = line(8, Algorithm::ArrivalLog);
        starts(&mut pacer, 6, 0);
        assert!(pacer.check(1, at(0)).is_some());

        pacer.gave_back(1);
        assert_eq!(pacer.check(1, at(0)), None);

        let lower = LimitRule::new(4, 10_000, Algorithm::ArrivalLog).unwrap();
        pacer.configure(Pace::Auto, [lower].into_iter());
        assert!(pacer.check(1, at(0)).is_some());
    }

    #[test]
    fn a_long_window_keeps_a_bounded_number_of_instants() {
        let rule = LimitRule::new(1_000_000, 86_400_000, Algorithm::ArrivalLog).unwrap();
        let mut pacer = Pacer::new(Pace::Auto, [rule].into_iter());

        for n in 0..20_000 {
            let (now, back_at) = (at(n * 4_320), at(n * 4_320 + 86_400_000));
            pacer.started(0, 1, Spacing::Gap, now, back_at);
        }

        let kept = pacer.lines.values().map(|line| line.taken.len()).max();
        assert!(kept <= Some(1_001), "{kept:?}");
    }

    #[test]
    fn an_estimate_counts_the_head_and_the_spread_rest() {
        let mut pacer = line(100, Algorithm::ArrivalLog);

        assert_eq!(pacer.eta_ms(75, at(0)), 0);
        assert_eq!(pacer.eta_ms(100, at(0)), 10_000);
        assert_eq!(pacer.eta_ms(200, at(0)), 20_000);
    }
}
