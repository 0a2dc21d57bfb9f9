//! What the server says is left, beside what our own rules say: both must admit, so the more careful view wins.
//!
//! Each answer says what was left when its own request had been counted, and none says whether it was the last that was
//! counted. But what is left within one window only shrinks as we spend, so of all that have answered the last counted
//! one said the least: the least word stands for all of them. What is still in flight may not be counted yet and is
//! taken off; so is what ended without a word. Hence what we take for granted is never more than what the server grants,
//! but for what others spend meanwhile.
//!
//! A word is dropped for a newer one only if that one's request started after this one's answer had come: answers that
//! overtake each other never loosen what a newer one tightened. Each counts until the reset that it names.
//!
//! When little is left (below five units or a twentieth of the limit), the rest is spread evenly to the reset.
//! What our own use explains adds nothing: where a log of ours is kept of that window, and all that the server counts may be
//! ours, the log alone decides, which knows when each unit comes back.
//! In a window that slides, units come back one by one before that reset: there what is left is taken for what others
//! have (`others`), and is kept free of ours instead.
//! Invariant: absent is not zero; a word that names no reset, and has no window to take for it, is not used.

use std::collections::BTreeMap;

use super::others::{Heard, Others};
use crate::limit::{GRAIN_MS, Ticket};
use crate::signals::BudgetSignal;
use crate::time::{Mono, Now, Wall};

/// The most words that count at once, for all windows of a budget.
const MAX_WORDS: usize = 64;
/// The longest that a word counts: what names a later reset is not a rate limit's.
const MAX_RESET_MS: u64 = crate::config::MAX_WINDOW_MS;
/// So few units are little whatever the limit.
const FEW: u64 = 5;
/// So small a part of the limit is little.
const SMALL_PART: u64 = 20;
/// The least time to a reset for which a closed budget is stored.
const MIN_STORED_MS: u64 = 5_000;

/// What one answer said of one window.
#[derive(Clone, Debug)]
struct Word {
    window: Window,
    /// Units left, less what ended without a word since.
    left: u64,
    limit: Option<u64>,
    resets_at: Mono,
    resets_at_wall: Wall,
    came_at: Mono,
}

/// One window of the server's, as far as it can be told from another.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Window {
    name: Option<String>,
    window_ms: Option<u64>,
}

impl Window {
    fn of(signal: &BudgetSignal) -> Self {
        Self {
            name: signal.scope.clone(),
            window_ms: signal.window_ms,
        }
    }
}

/// An attempt on its way.
#[derive(Clone, Debug)]
struct Flight {
    cost: u32,
    started: Mono,
    /// Units of ours that each window may have counted when it started, its own too.
    held: Vec<(u64, u64)>,
    /// All that had started by then.
    begun: u64,
    /// The windows of which its answer has spoken.
    spoken: Vec<Window>,
}

/// The server's view of one budget.
#[derive(Clone, Debug, Default)]
pub(super) struct Sync {
    words: Vec<Word>,
    flights: BTreeMap<Ticket, Flight>,
    in_flight: u64,
    /// All units that have started.
    begun: u64,
    last_start: Mono,
    /// What others spend, as these words show it.
    pub(super) others: Others,
}

impl Sync {
    /// Counts an attempt that starts; `held` is what the log of each window holds with it, by the window's length.
    pub(super) fn take(&mut self, ticket: Ticket, cost: u32, start: Mono, held: Vec<(u64, u64)>) {
        self.begun = self.begun.saturating_add(u64::from(cost));
        let flight = Flight {
            cost,
            started: start,
            held,
            begun: self.begun,
            spoken: Vec::new(),
        };
        self.flights.insert(ticket, flight);
        self.in_flight = self.in_flight.saturating_add(u64::from(cost));
        self.last_start = start;
    }

    /// Counts another cost for an attempt on its way.
    pub(super) fn correct(&mut self, ticket: Ticket, cost: u32) {
        if let Some(flight) = self.flights.get_mut(&ticket) {
            let others = self.in_flight.saturating_sub(u64::from(flight.cost));
            flight.cost = cost;
            self.in_flight = others.saturating_add(u64::from(cost));
        }
    }

    /// Counts an attempt that ended; of what its answer did not speak, it is taken off.
    pub(super) fn end(&mut self, ticket: Ticket, now: Mono) {
        let Some(flight) = self.never_left(ticket) else {
            return;
        };
        self.others.ended(flight.started, now, flight.cost);
        let unspoken = |word: &&mut Word| !flight.spoken.contains(&word.window);
        for word in self.words.iter_mut().filter(unspoken) {
            word.left = word.left.saturating_sub(u64::from(flight.cost));
        }
    }

    /// Forgets an attempt whose request never left.
    pub(super) fn forget(&mut self, ticket: Ticket) {
        let _ = self.never_left(ticket);
    }

    fn never_left(&mut self, ticket: Ticket) -> Option<Flight> {
        let flight = self.flights.remove(&ticket)?;
        self.in_flight = self.in_flight.saturating_sub(u64::from(flight.cost));
        Some(flight)
    }

    /// Takes the word of an answer that came at `came_at` for one window. `window_ms` stands in for a reset that it does
    /// not name. Returns whether it closes the budget for so long that this is to be stored.
    pub(super) fn hear(
        &mut self,
        ticket: Ticket,
        signal: &BudgetSignal,
        window_ms: Option<u64>,
        came_at: Mono,
        now: Now,
    ) -> bool {
        let reset_ms = signal.reset_in_ms.or(signal.window_ms).or(window_ms);
        let (Some(left), Some(reset_ms)) = (signal.remaining, reset_ms) else {
            return false;
        };
        let window = Window::of(signal);
        let was_closed = self.closed_until(now).is_some();
        self.speaks_of(ticket, &window, now.mono);
        let resets_at = came_at.plus(reset_ms.min(MAX_RESET_MS)).plus(GRAIN_MS);
        self.words.push(Word {
            window,
            left,
            limit: signal.limit,
            resets_at,
            resets_at_wall: now.wall_of(resets_at),
            came_at,
        });
        self.bound();
        !was_closed && self.closed_until(now).is_some()
    }

    /// Takes the same word as one of what others spend of a window of that length; a request is taken to be counted
    /// after half of `latency_ms`. Comes before the attempt's end is noted.
    pub(super) fn hear_of_others(
        &mut self,
        ticket: Ticket,
        signal: &BudgetSignal,
        window_ms: u64,
        latency_ms: u64,
        came_at: Mono,
        is_explained: bool,
    ) {
        let started = self.flights.get(&ticket).map(|flight| flight.started);
        let heard = started.and_then(|at| Heard::of(signal, window_ms, at, came_at, is_explained));
        let Some(heard) = heard else {
            return;
        };
        let flights = self.flights.values();
        let flights = flights.map(|flight| {
            let counted_at = flight.started.plus(latency_ms / 2);
            (counted_at, u64::from(flight.cost))
        });
        let flights: Vec<_> = flights.collect();
        self.others.hear(heard, &flights);
    }

    /// Returns the most units of ours that a window may have counted when it counted this attempt: what was held when it
    /// started, and what has started since.
    pub(super) fn used_by_us(&self, ticket: Ticket, window_ms: u64) -> Option<u64> {
        let flight = self.flights.get(&ticket)?;
        let mut held = flight.held.iter();
        let (_, held) = held.find(|(window, _)| *window == window_ms)?;
        let since = self.begun.saturating_sub(flight.begun);
        Some(held.saturating_add(since))
    }

    /// Takes a word that shows no use but ours: older ones of its window count no longer.
    pub(super) fn hear_no_more_than_ours(
        &mut self,
        ticket: Ticket,
        signal: &BudgetSignal,
        now: Mono,
    ) {
        self.speaks_of(ticket, &Window::of(signal), now);
    }

    /// Notes that an answer speaks of a window, and forgets what older ones said of it.
    fn speaks_of(&mut self, ticket: Ticket, window: &Window, now: Mono) {
        let started = match self.flights.get_mut(&ticket) {
            Some(flight) => {
                flight.spoken.push(window.clone());
                flight.started
            }
            // The attempt spends another budget: nothing that was said of this one can be older.
            None => Mono::default(),
        };
        self.words.retain(|old| {
            let is_older = old.window == *window && old.came_at <= started;
            old.resets_at > now && !is_older
        });
    }

    /// Returns from when on the server lets a cost start; none if that is at `at`.
    pub(super) fn defers(&self, cost: u32, at: Mono) -> Option<Mono> {
        self.in_force(at)
            .filter_map(|word| self.deferred_by(word, u64::from(cost), at))
            .max()
    }

    /// Returns the units that the server still grants; none if it said nothing.
    pub(super) fn left(&self, at: Mono) -> Option<u64> {
        let least = self.in_force(at).map(|word| word.left).min()?;
        Some(least.saturating_sub(self.in_flight))
    }

    /// Returns the instant at which more than what is left can be had, where `cost` is more.
    pub(super) fn resets_at(&self, cost: u64, at: Mono) -> Option<Mono> {
        self.in_force(at)
            .filter(|word| word.left.saturating_sub(self.in_flight) < cost)
            .map(|word| word.resets_at)
            .max()
    }

    /// Returns until when nothing is left, if that is long enough to be stored.
    pub(super) fn closed_until(&self, now: Now) -> Option<Wall> {
        let closed = self.in_force(now.mono).filter(|word| word.left == 0);
        let until = closed.map(|word| word.resets_at).max()?;
        (until.since(now.mono) >= MIN_STORED_MS).then(|| now.wall_of(until))
    }

    /// Takes over that nothing is left until an instant.
    pub(super) fn restore(&mut self, until: Wall, now: Now) {
        let until = until.min(now.wall.plus(MAX_RESET_MS));
        if until <= now.wall {
            return;
        }
        self.words.push(Word {
            window: Window {
                name: None,
                window_ms: None,
            },
            left: 0,
            limit: None,
            resets_at: now.mono_of(until),
            resets_at_wall: until,
            came_at: now.mono,
        });
    }

    /// Takes the wall clock's word for resets: the machine slept.
    pub(super) fn suspended(&mut self, now: Now) {
        self.others = Others::default();
        for word in &mut self.words {
            word.resets_at = word.resets_at.min(now.mono_of(word.resets_at_wall));
        }
    }

    fn in_force(&self, at: Mono) -> impl Iterator<Item = &Word> {
        self.words.iter().filter(move |word| word.resets_at > at)
    }

    fn deferred_by(&self, word: &Word, cost: u64, at: Mono) -> Option<Mono> {
        if self.others.slides(word.window.window_ms, at) {
            return None;
        }
        let left = word.left.saturating_sub(self.in_flight);
        let limit = word.limit.unwrap_or(u64::MAX);
        // A cost above a limit that was lowered needs all of it.
        if left < cost.min(limit.max(1)) {
            return Some(word.resets_at);
        }
        let little = FEW.max(word.limit.unwrap_or(0) / SMALL_PART);
        if left >= little {
            return None;
        }
        let span_ms = word.resets_at.since(self.last_start);
        let gap_ms = span_ms.saturating_mul(cost) / left.saturating_add(1);
        let next_at = self.last_start.plus(gap_ms).min(word.resets_at);
        (next_at > at).then_some(next_at)
    }

    /// Puts the two oldest words together, to the careful side, while there are too many.
    fn bound(&mut self) {
        while self.words.len() > MAX_WORDS {
            let oldest = self.words.remove(0);
            if let Some(next) = self.words.first_mut() {
                next.left = next.left.min(oldest.left);
                next.resets_at = next.resets_at.max(oldest.resets_at);
                next.resets_at_wall = next.resets_at_wall.max(oldest.resets_at_wall);
                next.came_at = next.came_at.max(oldest.came_at);
            }
        }
    }
}
