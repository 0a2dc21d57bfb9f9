//! One limit rule over explicit instants.
//!
//! Instants are microseconds since the account began and never go back. A rule knows nothing of HTTP, of requests or of
//! other rules; [`crate::limiter`] asks all of them before any is used. Integers throughout: two runs over the same
//! instants agree to the last unit.

use std::collections::VecDeque;

use crate::scenario::{Algorithm, Anchor, Limit};

/// A rule's state as a header could tell it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct View {
    pub(crate) name: String,
    pub(crate) limit: u64,
    pub(crate) window_us: u64,
    pub(crate) remaining: u64,
    /// Until more can be had: a log's oldest entry leaves, the window ends, the bucket is full.
    pub(crate) reset_us: u64,
}

/// One rule and what it has counted.
#[derive(Debug, Clone)]
pub(crate) struct Rule {
    name: String,
    window_us: u64,
    counter: Counter,
}

#[derive(Debug, Clone)]
enum Counter {
    Log(SlidingLog),
    Window(FixedWindow),
    Bucket(TokenBucket),
}

impl Rule {
    /// Makes an unused rule; `wall_us` is the server's wall clock at instant 0.
    pub(crate) fn new(limit: &Limit, wall_us: u64) -> Self {
        let window_us = limit.window_ms * 1_000;
        let counter = match limit.algorithm {
            Algorithm::SlidingLog => Counter::Log(SlidingLog::new(limit.limit, window_us)),
            Algorithm::FixedWindow => Counter::Window(FixedWindow::new(limit, window_us, wall_us)),
            Algorithm::TokenBucket => Counter::Bucket(TokenBucket::new(limit, window_us)),
        };
        Self {
            name: limit.name.clone(),
            window_us,
            counter,
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// How long until `cost` units could be had if nobody else took any; `None` when they can be had now.
    ///
    /// A cost above the limit can never be had; its wait is one window.
    pub(crate) fn wait_us(&mut self, now_us: u64, cost: u64) -> Option<u64> {
        if cost == 0 {
            return None;
        }
        match &mut self.counter {
            Counter::Log(log) => log.wait_us(now_us, cost),
            Counter::Window(window) => window.wait_us(now_us, cost),
            Counter::Bucket(bucket) => bucket.wait_us(now_us, cost),
        }
    }

    /// Counts `cost` units, whether or not there is room.
    pub(crate) fn take(&mut self, now_us: u64, cost: u64) {
        if cost == 0 {
            return;
        }
        match &mut self.counter {
            Counter::Log(log) => log.take(now_us, cost),
            Counter::Window(window) => window.take(now_us, cost),
            Counter::Bucket(bucket) => bucket.take(now_us, cost),
        }
    }

    pub(crate) fn view(&mut self, now_us: u64) -> View {
        let (limit, remaining, reset_us) = match &mut self.counter {
            Counter::Log(log) => log.view(now_us),
            Counter::Window(window) => window.view(now_us),
            Counter::Bucket(bucket) => bucket.view(now_us),
        };
        View {
            name: self.name.clone(),
            limit,
            window_us: self.window_us,
            remaining,
            reset_us,
        }
    }
}

/// Every counted instant; one exactly a window old still counts.
#[derive(Debug, Clone)]
struct SlidingLog {
    limit: u64,
    window_us: u64,
    entries: VecDeque<(u64, u64)>,
    used: u64,
}

impl SlidingLog {
    fn new(limit: u64, window_us: u64) -> Self {
        Self {
            limit,
            window_us,
            entries: VecDeque::new(),
            used: 0,
        }
    }

    fn forget(&mut self, now_us: u64) {
        while let Some(&(at_us, cost)) = self.entries.front()
            && at_us + self.window_us < now_us
        {
            self.used -= cost;
            self.entries.pop_front();
        }
    }

    fn wait_us(&mut self, now_us: u64, cost: u64) -> Option<u64> {
        self.forget(now_us);
        if self.used + cost <= self.limit {
            return None;
        }
        let mut left = self.used;
        for &(at_us, units) in &self.entries {
            left -= units;
            if left + cost <= self.limit {
                return Some(at_us + self.window_us + 1 - now_us);
            }
        }
        Some(self.window_us)
    }

    /// Entries that are older than the newest `limit` units decide nothing any more and go, so that refused requests
    /// which count too cannot grow the log.
    fn take(&mut self, now_us: u64, cost: u64) {
        self.forget(now_us);
        self.entries.push_back((now_us, cost));
        self.used += cost;
        while let Some(&(_, oldest)) = self.entries.front()
            && self.used - oldest >= self.limit
        {
            self.used -= oldest;
            self.entries.pop_front();
        }
    }

    fn view(&mut self, now_us: u64) -> (u64, u64, u64) {
        self.forget(now_us);
        let reset = self
            .entries
            .front()
            .map_or(0, |(at_us, _)| at_us + self.window_us + 1 - now_us);
        (self.limit, self.limit.saturating_sub(self.used), reset)
    }
}

/// A count that starts again at each window's end.
#[derive(Debug, Clone)]
struct FixedWindow {
    limit: u64,
    window_us: u64,
    anchor: Anchor,
    /// The server's wall clock at instant 0; windows live on that clock.
    wall_us: u64,
    start_us: Option<u64>,
    used: u64,
}

impl FixedWindow {
    fn new(limit: &Limit, window_us: u64, wall_us: u64) -> Self {
        Self {
            limit: limit.limit,
            window_us,
            anchor: limit.anchor,
            wall_us,
            start_us: None,
            used: 0,
        }
    }

    fn roll(&mut self, wall_us: u64) {
        if self
            .start_us
            .is_some_and(|start| wall_us >= start + self.window_us)
        {
            self.start_us = None;
            self.used = 0;
        }
    }

    /// Where the window that holds this instant starts.
    fn start(&self, wall_us: u64) -> u64 {
        self.start_us.unwrap_or(match self.anchor {
            Anchor::Clock => wall_us - wall_us % self.window_us,
            Anchor::First => wall_us,
        })
    }

    fn left_us(&self, wall_us: u64) -> u64 {
        self.start(wall_us) + self.window_us - wall_us
    }

    fn wait_us(&mut self, now_us: u64, cost: u64) -> Option<u64> {
        let wall_us = self.wall_us + now_us;
        self.roll(wall_us);
        (self.used + cost > self.limit).then(|| self.left_us(wall_us))
    }

    fn take(&mut self, now_us: u64, cost: u64) {
        let wall_us = self.wall_us + now_us;
        self.roll(wall_us);
        self.start_us = Some(self.start(wall_us));
        self.used += cost;
    }

    fn view(&mut self, now_us: u64) -> (u64, u64, u64) {
        let wall_us = self.wall_us + now_us;
        self.roll(wall_us);
        (
            self.limit,
            self.limit.saturating_sub(self.used),
            self.left_us(wall_us),
        )
    }
}

/// A bucket that starts full. One token is `token` grains and each microsecond adds `per_us` of them, so that every rate
/// is a whole number.
#[derive(Debug, Clone)]
struct TokenBucket {
    capacity: u64,
    window_us: u64,
    token: u128,
    per_us: u128,
    level: u128,
    at_us: u64,
}

impl TokenBucket {
    fn new(limit: &Limit, window_us: u64) -> Self {
        let (per_us, token) = refill(limit);
        let level = u128::from(limit.limit) * token;
        Self {
            capacity: limit.limit,
            window_us,
            token,
            per_us,
            level,
            at_us: 0,
        }
    }

    fn refill(&mut self, now_us: u64) {
        let gained = u128::from(now_us.saturating_sub(self.at_us)) * self.per_us;
        self.level = (self.level + gained).min(self.full());
        self.at_us = self.at_us.max(now_us);
    }

    fn full(&self) -> u128 {
        u128::from(self.capacity) * self.token
    }

    fn until(&self, level: u128) -> u64 {
        let missing = level.saturating_sub(self.level);
        u64::try_from(missing.div_ceil(self.per_us)).unwrap_or(u64::MAX)
    }

    fn wait_us(&mut self, now_us: u64, cost: u64) -> Option<u64> {
        self.refill(now_us);
        let needed = u128::from(cost) * self.token;
        if needed > self.full() {
            return Some(self.window_us);
        }
        (needed > self.level).then(|| self.until(needed))
    }

    fn take(&mut self, now_us: u64, cost: u64) {
        self.refill(now_us);
        self.level = self.level.saturating_sub(u128::from(cost) * self.token);
    }

    fn view(&mut self, now_us: u64) -> (u64, u64, u64) {
        self.refill(now_us);
        let whole = u64::try_from(self.level / self.token).unwrap_or(u64::MAX);
        (self.capacity, whole, self.until(self.full()))
    }
}

/// A bucket's refill as grains per microsecond and grains per token.
fn refill(limit: &Limit) -> (u128, u128) {
    match limit.refill_per_s {
        Some(per_s) => (((per_s * 1e6).round() as u128).max(1), 1_000_000_000_000),
        None => (u128::from(limit.limit), u128::from(limit.window_ms) * 1_000),
    }
}

impl Limit {
    /// The most units that a faithful client can make a server count in any closed window of this length.
    ///
    /// A log admits its limit; two fixed windows can be touched by one such window; a bucket gives its capacity and what
    /// refills meanwhile.
    #[must_use]
    pub fn allowed(&self) -> u64 {
        match self.algorithm {
            Algorithm::SlidingLog => self.limit,
            Algorithm::FixedWindow => self.limit * 2,
            Algorithm::TokenBucket => {
                let (per_us, token) = refill(self);
                let gained = u128::from(self.window_ms) * 1_000 * per_us / token;
                self.limit + u64::try_from(gained).unwrap_or(u64::MAX / 2)
            }
        }
    }
}

#[cfg(test)]
#[path = "rule/tests.rs"]
mod tests;

#[cfg(test)]
#[path = "rule/golden.rs"]
mod golden;
