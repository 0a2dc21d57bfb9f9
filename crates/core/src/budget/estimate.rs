//! Estimates: what is free now, and how long what waits will take. Reading consumes nothing.

use super::Budget;
use crate::config::Algorithm;
use crate::job::Lane;
use crate::time::Mono;

/// What an answer is taken to need before one was seen.
const ASSUMED_LATENCY_MS: u64 = 200;

/// Jobs and the units that they cost together: requests fill places in flight, units fill rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Work {
    pub(crate) jobs: u64,
    pub(crate) cost: u64,
}

impl Budget {
    /// Returns the units that the tightest rule would admit now.
    pub(crate) fn believed_free(&mut self, now: Mono) -> u32 {
        self.limiters
            .iter_mut()
            .map(|limiter| limiter.free(now))
            .min()
            .unwrap_or(u32::MAX)
    }

    /// Returns what waits in a lane and in the more urgent ones.
    pub(crate) fn work_up_to(&self, last: Lane) -> Work {
        let lanes = self.waiting.iter().zip(&self.waiting_cost);
        let lanes = Lane::ALL.into_iter().zip(lanes);
        let mut work = Work::default();
        for (_, (jobs, cost)) in lanes.filter(|(lane, _)| *lane <= last) {
            work.jobs = work.jobs.saturating_add(u64::from(*jobs));
            work.cost = work.cost.saturating_add(*cost);
        }
        work
    }

    /// Returns the milliseconds until all of `work` is sent and answered; none while held.
    ///
    /// Throughput is min(rate, concurrency / mean latency) (Little's law); a slot of a log turns over once a window
    /// plus a latency.
    pub(crate) fn eta_ms(&mut self, work: Work, now: Mono) -> Option<u64> {
        if !self.holds.is_empty() {
            return None;
        }
        let paused_ms = self.pause.map_or(0, |pause| pause.until.since(now));
        if work.jobs == 0 {
            return Some(0);
        }
        let cost = work.cost;
        let latency_ms = self.latency.mean_ms().unwrap_or(ASSUMED_LATENCY_MS);
        let floor_ms = self.floor_ms();
        let starts_at_empty = self.pause.is_some();
        let by_rules = self.limiters.iter_mut().map(|limiter| {
            let free = if starts_at_empty {
                0
            } else {
                u64::from(limiter.free(now))
            };
            let rule = limiter.rule();
            let cycle_ms = match rule.algorithm() {
                Algorithm::ArrivalLog => rule
                    .window_ms()
                    .saturating_add(latency_ms)
                    .saturating_sub(floor_ms),
                Algorithm::BatchRest => rule.window_ms().saturating_add(latency_ms),
                Algorithm::SlidingLog
                | Algorithm::FixedWindow
                | Algorithm::SlidingCounter
                | Algorithm::TokenBucket
                | Algorithm::LeakyBucket
                | Algorithm::LeakyQueue
                | Algorithm::Gcra => rule.window_ms(),
            };
            cost.saturating_sub(free).saturating_mul(cycle_ms) / u64::from(rule.limit())
        });
        let by_rules = by_rules.max().unwrap_or(0);
        // What finds a place at once is answered one latency from now, like the last one of all others.
        let by_flight = self.config.max_in_flight().map_or(0, |max| {
            let places = u64::from(max.saturating_sub(self.in_flight));
            let waits = work.jobs.saturating_sub(places);
            waits.saturating_mul(latency_ms).div_ceil(u64::from(max))
        });
        Some(
            paused_ms
                .saturating_add(by_rules.max(by_flight))
                .saturating_add(latency_ms),
        )
    }

    /// Tells whether an estimate rests on a guess.
    pub(crate) fn is_guess(&self) -> bool {
        self.pause.is_some_and(|pause| pause.is_estimate) || self.latency.mean_ms().is_none()
    }
}
