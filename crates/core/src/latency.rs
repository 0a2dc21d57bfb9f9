//! What is learned from the time between a request's start and its answer.
//!
//! Invariant: the floor is at most half of the smallest time of the last [`SAMPLES`] answers, and 0 until
//! [`ENOUGH`] were seen since the start, a suspend or a change of network.

use std::collections::VecDeque;

/// How many answers are remembered.
pub const SAMPLES: usize = 200;
/// How many answers must be seen before the floor is used.
pub const ENOUGH: usize = 20;

/// The times of the last answers, in milliseconds.
#[derive(Clone, Debug, Default)]
pub struct Latency {
    samples: VecDeque<u64>,
    sum: u64,
}

impl Latency {
    /// Takes the time of one answer.
    pub fn push(&mut self, millis: u64) {
        if self.samples.len() == SAMPLES {
            let oldest = self.samples.pop_front().unwrap_or(0);
            self.sum = self.sum.saturating_sub(oldest);
        }
        self.samples.push_back(millis);
        self.sum = self.sum.saturating_add(millis);
    }

    /// Returns what may be taken off a slot's wait.
    pub fn floor_ms(&self) -> u64 {
        if self.samples.len() < ENOUGH {
            return 0;
        }
        self.samples.iter().min().map_or(0, |smallest| smallest / 2)
    }

    /// Returns the mean time, none before the first answer.
    pub fn mean_ms(&self) -> Option<u64> {
        let count = u64::try_from(self.samples.len())
            .ok()
            .filter(|count| *count > 0)?;
        Some(self.sum / count)
    }

    /// Forgets everything: the network may be another one now.
    pub fn forget(&mut self) {
        self.samples.clear();
        self.sum = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_floor_is_half_the_smallest_of_enough_answers() {
        let mut latency = Latency::default();
        for _ in 0..19 {
            latency.push(41);
        }
        assert_eq!(latency.floor_ms(), 0);

        latency.push(100);

        assert_eq!(latency.floor_ms(), 20);
        latency.forget();
        assert_eq!(latency.floor_ms(), 0);
    }

    #[test]
    fn an_old_answer_is_forgotten() {
        let mut latency = Latency::default();
        latency.push(2);
        for _ in 0..SAMPLES {
            latency.push(60);
        }

        assert_eq!(latency.floor_ms(), 30);
        assert_eq!(latency.mean_ms(), Some(60));
    }
}
