//! Estimates: what is free now, and how long what waits will take. Reading consumes nothing.

use super::Budget;
use crate::config::{Algorithm, LimitRule};
use crate::job::Lane;
use crate::limit::{Admission, Limiter};
use crate::time::Mono;

/// What an answer is taken to need before one was seen.
const ASSUMED_LATENCY_MS: u64 = 200;

/// Jobs and the units that they cost together: requests fill places in flight, units fill rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Work {
    pub(crate) jobs: u64,
    pub(crate) cost: u64,
}

impl Work {
    /// Adds jobs of one cost.
    pub(crate) fn add(&mut self, jobs: u64, cost: u32) {
        self.jobs = self.jobs.saturating_add(jobs);
        let cost = jobs.saturating_mul(u64::from(cost));
        self.cost = self.cost.saturating_add(cost);
    }

    /// Returns both together.
    pub(crate) const fn plus(self, other: Self) -> Self {
        Self {
            jobs: self.jobs.saturating_add(other.jobs),
            cost: self.cost.saturating_add(other.cost),
        }
    }

    /// Returns what of this goes while `others` go, where it gets one of `starts` starts.
    pub(crate) fn share_of(self, starts: u32, others: Self) -> Self {
        let others_for_one = u64::from(starts.saturating_sub(1).max(1));
        let jobs = self.jobs.min(others.jobs / others_for_one);
        let cost = self.cost.saturating_mul(jobs).div_ceil(self.jobs.max(1));
        Self { jobs, cost }
    }
}

/// What was reckoned by whole windows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reckoned {
    pub(crate) last_start_ms: u64,
    /// The rules that are used up on the way, each with the instant when.
    pub(crate) used_up: Vec<(LimitRule, Mono)>,
}

impl Budget {
    /// Returns the units that would be admitted now, by the tightest rule and by the server's word.
    pub(crate) fn believed_free(&mut self, now: Mono) -> u32 {
        let by_server = self
            .sync
            .left(now)
            .map_or(u32::MAX, |left| u32::try_from(left).unwrap_or(u32::MAX));
        let others = &self.sync.others;
        self.limiters
            .iter_mut()
            .map(|limiter| {
                let rule = limiter.rule();
                limiter.free(now).saturating_sub(others.mean(rule, now))
            })
            .min()
            .unwrap_or(u32::MAX)
            .min(by_server)
    }

    /// Returns the requests that what waits in a lane makes: items of a batch share theirs.
    pub(crate) fn work_in(&self, lane: Lane) -> Work {
        let mut work = Work {
            jobs: self.waiting_in(lane),
            cost: self.waiting_cost.get(lane.index()).copied().unwrap_or(0),
        };
        for (name, items) in &self.waiting_batched {
            let jobs = u64::from(items.jobs.get(lane.index()).copied().unwrap_or(0));
            let rule = self.config.batches().get(name);
            work.jobs = work.jobs.saturating_sub(jobs);
            work.add(rule.map_or(jobs, |rule| rule.requests(jobs)), items.cost);
        }
        work
    }

    /// Returns what waits in a lane and in the more urgent ones.
    pub(crate) fn work_up_to(&self, last: Lane) -> Work {
        let lanes = Lane::ALL.into_iter().filter(|lane| *lane <= last);
        lanes.fold(Work::default(), |work, lane| work.plus(self.work_in(lane)))
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
        let latency_ms = self.usual_latency_ms();
        let floor_ms = self.floor_ms();
        let starts_at_empty = self.pause.is_some();
        let others = &self.sync.others;
        let by_rules = self.limiters.iter_mut().map(|limiter| {
            let others = others.mean(limiter.rule(), now);
            let free = if starts_at_empty {
                0
            } else {
                u64::from(limiter.free(now).saturating_sub(others))
            };
            let rule = limiter.rule().without(others);
            spread_ms(rule, cost.saturating_sub(free), latency_ms, floor_ms)
        });
        let by_rules = by_rules.max().unwrap_or(0);
        let by_server = self.sync.resets_at(cost, now).map_or(0, |at| at.since(now));
        // Lanes are asked for from the most urgent on, so what is not interactive is spaced.
        let spaced = cost.saturating_sub(self.work_in(Lane::Interactive).cost);
        let by_rules = by_rules.max(self.pacer.eta_ms(spaced, now));
        let by_flight = self.by_flight_ms(work, latency_ms);
        Some(
            paused_ms
                .saturating_add(by_rules.max(by_flight).max(by_server))
                .saturating_add(latency_ms),
        )
    }

    /// Returns how long an answer usually takes.
    pub(crate) fn usual_latency_ms(&self) -> u64 {
        self.latency.mean_ms().unwrap_or(ASSUMED_LATENCY_MS)
    }

    /// Returns a copy to run ahead with: its lanes know whose turn it is, and hold no job.
    pub(crate) fn copy_ahead(&self) -> Self {
        let mut copy = self.clone();
        copy.lanes = self.lanes.emptied();
        copy
    }

    /// Reckons when the last of `work` starts, by whole windows of each rule: what does not fit into the present window
    /// waits for its end, and what is left after whole windows goes at the pace of the shorter ones. Errs late, by up
    /// to one window of the rule that binds. Asks the limiters, so it is for copies.
    pub(crate) fn reckon(&mut self, work: Work, now: Mono) -> Reckoned {
        let latency_ms = self.usual_latency_ms();
        let floor_ms = self.floor_ms();
        let rules: Vec<LimitRule> = self.limiters.iter().map(Limiter::rule).collect();
        let spread = |units: u64, below_ms: u64| {
            let shorter = rules.iter().filter(|rule| rule.window_ms() < below_ms);
            let spreads = shorter.map(|rule| spread_ms(*rule, units, latency_ms, floor_ms));
            spreads.max().unwrap_or(0)
        };
        let mut reckoned = Reckoned {
            last_start_ms: self.by_flight_ms(work, latency_ms),
            used_up: Vec::new(),
        };
        for limiter in &mut self.limiters {
            let rule = limiter.rule();
            let free = u64::from(limiter.free(now));
            let over = work.cost.saturating_sub(free);
            if over == 0 {
                continue;
            }
            let used_up_ms = spread(free, rule.window_ms());
            reckoned.used_up.push((rule, now.plus(used_up_ms)));
            let last_start_ms = if rule.algorithm().is_window() {
                let whole = over.saturating_sub(1) / u64::from(rule.limit());
                let rest = over.saturating_sub(whole.saturating_mul(u64::from(rule.limit())));
                let cycle_ms = cycle_ms(rule, latency_ms, floor_ms);
                let turn_ms = match limiter.check(rule.limit(), now) {
                    Admission::Defer(at) => at.since(now),
                    Admission::Admit | Admission::DeferToAnswer | Admission::Never => cycle_ms,
                };
                whole
                    .saturating_mul(cycle_ms)
                    .saturating_add(turn_ms.max(used_up_ms))
                    .saturating_add(spread(rest, rule.window_ms()))
            } else {
                spread_ms(rule, over, latency_ms, floor_ms)
            };
            reckoned.last_start_ms = reckoned.last_start_ms.max(last_start_ms);
        }
        reckoned
    }

    /// What finds a place at once is answered one latency from now, like the last one of all others.
    fn by_flight_ms(&self, work: Work, latency_ms: u64) -> u64 {
        self.max_in_flight().map_or(0, |max| {
            let places = u64::from(max.saturating_sub(self.in_flight));
            let waits = work.jobs.saturating_sub(places);
            waits.saturating_mul(latency_ms).div_ceil(u64::from(max))
        })
    }

    /// Tells whether an estimate rests on a guess.
    pub(crate) fn is_guess(&self) -> bool {
        self.pause.is_some_and(|pause| pause.is_estimate) || self.latency.mean_ms().is_none()
    }
}

/// How long units take at the even pace of a rule.
fn spread_ms(rule: LimitRule, units: u64, latency_ms: u64, floor_ms: u64) -> u64 {
    let cycle_ms = cycle_ms(rule, latency_ms, floor_ms);
    units.saturating_mul(cycle_ms) / u64::from(rule.limit())
}

/// How long a rule needs to grant its whole limit once.
fn cycle_ms(rule: LimitRule, latency_ms: u64, floor_ms: u64) -> u64 {
    let window_ms = rule.window_ms();
    match rule.algorithm() {
        Algorithm::ArrivalLog => window_ms
            .saturating_add(latency_ms)
            .saturating_sub(floor_ms),
        Algorithm::BatchRest => window_ms.saturating_add(latency_ms),
        Algorithm::SlidingLog
        | Algorithm::FixedWindow
        | Algorithm::SlidingCounter
        | Algorithm::TokenBucket
        | Algorithm::LeakyBucket
        | Algorithm::LeakyQueue
        | Algorithm::Gcra => window_ms,
    }
}
