//! What is learned from the time between a request's start and its answer.
//!
//! The floor is what may be taken off a slot's wait because both ways to the server take time. It is wrong when requests
//! were slow only because many went at once, so it is learned with care: it is at most half of the smallest of the last
//! [`SAMPLES`] answers, less half of the distance from there to the median (a wide spread is a sign of queues, which may
//! be gone a moment later) but for a hundredth of the window, and 0 until [`ENOUGH`] answers over [`ENOUGH_WINDOWS`]
//! windows were seen since the start, a refusal, a suspend or a change of network.

use std::collections::VecDeque;

use crate::time::Mono;

/// How many answers are remembered.
pub const SAMPLES: usize = 200;
/// How many answers must be seen before the floor is used.
pub const ENOUGH: usize = 20;
/// Over how many windows they must have come: a burst alone tells nothing of the next one.
pub const ENOUGH_WINDOWS: u64 = 2;

/// What part of a window the floor may be however wide the spread, as long as it is half of the smallest time at most.
const SMALL_SHARE: u64 = 100;

/// The times of the last answers, in milliseconds.
#[derive(Clone, Debug, Default)]
pub struct Latency {
    samples: VecDeque<u64>,
    sum: u64,
    since: Option<Mono>,
    until: Mono,
    /// The mean before the last time that everything was forgotten.
    earlier_mean_ms: Option<u64>,
}

impl Latency {
    /// Takes the time of an answer that came now.
    pub fn push(&mut self, millis: u64, now: Mono) {
        if self.samples.len() == SAMPLES {
            let oldest = self.samples.pop_front().unwrap_or(0);
            self.sum = self.sum.saturating_sub(oldest);
        }
        self.samples.push_back(millis);
        self.sum = self.sum.saturating_add(millis);
        self.since.get_or_insert(now);
        self.until = now;
    }

    /// Returns what may be taken off the wait for a slot of a rule with that window.
    pub fn floor_ms(&self, window_ms: u64) -> u64 {
        let seen_ms = self.since.map_or(0, |since| self.until.since(since));
        if self.samples.len() < ENOUGH || seen_ms < window_ms.saturating_mul(ENOUGH_WINDOWS) {
            return 0;
        }
        let mut sorted: Vec<u64> = self.samples.iter().copied().collect();
        sorted.sort_unstable();
        let smallest = sorted.first().copied().unwrap_or(0);
        let median = sorted.get(sorted.len() / 2).copied().unwrap_or(0);
        let steady = smallest.saturating_mul(2).saturating_sub(median) / 2;
        steady.max((smallest / 2).min(window_ms / SMALL_SHARE))
    }

    /// Returns the mean time, none before the first answer. It only serves estimates, and outlives `forget` until the
    /// next answer: during a pause the last known time is a far better guess than any constant.
    pub fn mean_ms(&self) -> Option<u64> {
        let count = u64::try_from(self.samples.len()).unwrap_or(u64::MAX);
        self.sum.checked_div(count).or(self.earlier_mean_ms)
    }

    /// Forgets what the floor is learned from: what was seen says nothing of what comes.
    pub fn forget(&mut self) {
        *self = Self {
            earlier_mean_ms: self.mean_ms(),
            ..Self::default()
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Mono {
        Mono::from_millis(millis)
    }

    #[test]
    fn the_floor_is_half_of_a_steady_time() {
        let mut latency = Latency::default();
        for n in 0..19 {
            latency.push(40, at(n * 200));
        }
        assert_eq!(latency.floor_ms(1_000), 0);

        latency.push(40, at(4_000));

        assert_eq!(latency.floor_ms(1_000), 20);
        latency.forget();
        assert_eq!(latency.floor_ms(1_000), 0);
        assert_eq!(latency.mean_ms(), Some(40));
    }

    #[test]
    fn a_burst_alone_teaches_nothing() {
        let mut latency = Latency::default();
        for n in 0..100 {
            latency.push(500, at(n));
        }

        assert_eq!(latency.floor_ms(1_000), 0);
    }

    #[test]
    fn a_wide_spread_lowers_the_floor() {
        let mut latency = Latency::default();
        for n in 0..100 {
            latency.push(100 + n, at(n * 100));
        }

        assert_eq!(latency.floor_ms(1_000), 25);
    }

    #[test]
    fn a_spread_leaves_a_hundredth_of_the_window_at_most() {
        let mut latency = Latency::default();
        for n in 0..100 {
            latency.push(if n % 2 == 0 { 30 } else { 300 }, at(n * 100));
        }

        assert_eq!(latency.floor_ms(1_000), 10);
        assert_eq!(latency.floor_ms(500), 5);
    }

    #[test]
    fn an_old_answer_is_forgotten() {
        let mut latency = Latency::default();
        latency.push(2, at(0));
        for _ in 0..SAMPLES {
            latency.push(60, at(10_000));
        }

        assert_eq!(latency.floor_ms(1_000), 30);
        assert_eq!(latency.mean_ms(), Some(60));
    }
}
