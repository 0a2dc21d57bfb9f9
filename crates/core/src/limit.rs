//! Limiters: each answers whether a cost fits now, or from when on.
//!
//! Owns the arithmetic of single rules. Does not know jobs, lanes or pauses. Invariant: `check` admits at the instant
//! that it names and at no earlier one, as long as nothing else happens in between.

mod arrival_log;
mod batch_rest;
mod closing;
mod fixed_window;
mod gcra;
mod leaky_queue;
mod sliding_counter;
mod sliding_log;
mod token_bucket;

pub use arrival_log::ArrivalLog;
pub use batch_rest::BatchRest;
pub use fixed_window::FixedWindow;
pub use gcra::Gcra;
pub use leaky_queue::LeakyQueue;
pub use sliding_counter::SlidingCounter;
pub use sliding_log::SlidingLog;
pub use token_bucket::TokenBucket;

use crate::config::{Algorithm, LimitRule};
use crate::ids::Seq;
use crate::time::{Mono, Now, Wall};

/// One attempt of one job, as a limiter remembers it.
pub type Ticket = (Seq, u32);

/// What a limiter says of a cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It fits now.
    Admit,
    /// It fits at this instant.
    Defer(Mono),
    /// It fits some time after an attempt in flight has ended.
    DeferToAnswer,
    /// It can never fit.
    Never,
}

impl Admission {
    /// Returns the later of two answers.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Never, _) | (_, Self::Never) => Self::Never,
            (Self::DeferToAnswer, _) | (_, Self::DeferToAnswer) => Self::DeferToAnswer,
            (Self::Defer(a), Self::Defer(b)) => Self::Defer(a.max(b)),
            (Self::Defer(at), Self::Admit) | (Self::Admit, Self::Defer(at)) => Self::Defer(at),
            (Self::Admit, Self::Admit) => Self::Admit,
        }
    }
}

/// The clock's grain: an end that was read at one millisecond may have happened up to the next.
pub const GRAIN_MS: u64 = 1;

/// Turns units times one window into units times another, rounded up: a change of limits gives nothing away.
fn rescaled(parts: u64, from_ms: u64, to_ms: u64) -> u64 {
    let scaled = (u128::from(parts) * u128::from(to_ms)).div_ceil(u128::from(from_ms));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

/// One rule with its state.
#[derive(Clone, Debug)]
pub enum Limiter {
    /// See [`ArrivalLog`].
    ArrivalLog(ArrivalLog),
    /// See [`SlidingLog`].
    SlidingLog(SlidingLog),
    /// See [`FixedWindow`].
    FixedWindow(FixedWindow),
    /// See [`SlidingCounter`].
    SlidingCounter(SlidingCounter),
    /// See [`TokenBucket`]; the leaky bucket as a meter is the same read from the other end.
    TokenBucket(TokenBucket),
    /// See [`LeakyQueue`].
    LeakyQueue(LeakyQueue),
    /// See [`Gcra`].
    Gcra(Gcra),
    /// See [`BatchRest`].
    BatchRest(BatchRest),
}

impl Limiter {
    /// Makes the limiter of a rule, full.
    pub fn new(rule: LimitRule, now: Mono) -> Self {
        match rule.algorithm() {
            Algorithm::ArrivalLog => Self::ArrivalLog(ArrivalLog::new(rule)),
            Algorithm::SlidingLog => Self::SlidingLog(SlidingLog::new(rule)),
            Algorithm::FixedWindow => Self::FixedWindow(FixedWindow::new(rule)),
            Algorithm::SlidingCounter => Self::SlidingCounter(SlidingCounter::new(rule)),
            Algorithm::TokenBucket | Algorithm::LeakyBucket => {
                Self::TokenBucket(TokenBucket::new(rule, now))
            }
            Algorithm::LeakyQueue => Self::LeakyQueue(LeakyQueue::new(rule)),
            Algorithm::Gcra => Self::Gcra(Gcra::new(rule)),
            Algorithm::BatchRest => Self::BatchRest(BatchRest::new(rule)),
        }
    }

    /// Tells whether `cost` fits now.
    pub fn check(&mut self, cost: u32, now: Mono) -> Admission {
        match self {
            Self::ArrivalLog(log) => log.check(cost, now),
            Self::SlidingLog(log) => log.check(cost, now),
            Self::FixedWindow(window) => window.check(cost, now),
            Self::SlidingCounter(counter) => counter.check(cost, now),
            Self::TokenBucket(bucket) => bucket.check(cost, now),
            Self::LeakyQueue(queue) => queue.check(cost, now),
            Self::Gcra(gcra) => gcra.check(cost, now),
            Self::BatchRest(batch) => batch.check(cost, now),
        }
    }

    /// Takes `cost` for an attempt. The caller has been admitted.
    pub fn take(&mut self, ticket: Ticket, cost: u32, now: Now) {
        match self {
            Self::ArrivalLog(log) => log.take(ticket, cost),
            Self::SlidingLog(log) => log.take(cost, now.mono),
            Self::FixedWindow(window) => window.take(cost, now),
            Self::SlidingCounter(counter) => counter.take(cost, now.mono),
            Self::TokenBucket(bucket) => bucket.take(cost, now.mono),
            Self::LeakyQueue(queue) => queue.take(cost, now.mono),
            Self::Gcra(gcra) => gcra.take(cost, now.mono),
            Self::BatchRest(batch) => batch.take(ticket, cost, now.mono),
        }
    }

    /// Takes `cost` for an attempt that was on its way before this limiter was made.
    pub fn take_over(&mut self, ticket: Ticket, cost: u32, now: Now) {
        match self {
            Self::BatchRest(batch) => batch.take_over(ticket, cost, now.mono),
            Self::ArrivalLog(_)
            | Self::SlidingLog(_)
            | Self::FixedWindow(_)
            | Self::SlidingCounter(_)
            | Self::TokenBucket(_)
            | Self::LeakyQueue(_)
            | Self::Gcra(_) => self.take(ticket, cost, now),
        }
    }

    /// Notes that an attempt ended now, answered or not; `floor_ms` may be taken off an answered one's wait.
    pub fn end(&mut self, ticket: Ticket, floor_ms: u64, now: Mono) {
        match self {
            Self::ArrivalLog(log) => log.end(ticket, floor_ms, now),
            Self::BatchRest(batch) => batch.end(ticket, now),
            Self::SlidingLog(_)
            | Self::FixedWindow(_)
            | Self::SlidingCounter(_)
            | Self::TokenBucket(_)
            | Self::LeakyQueue(_)
            | Self::Gcra(_) => {}
        }
    }

    /// Gives back what an attempt took: its request certainly never left.
    pub fn give_back(&mut self, ticket: Ticket, cost: u32, now: Mono) {
        match self {
            Self::ArrivalLog(log) => log.give_back(ticket),
            Self::SlidingLog(log) => log.give_back(cost),
            Self::FixedWindow(window) => window.give_back(cost),
            Self::SlidingCounter(counter) => counter.give_back(cost),
            Self::TokenBucket(bucket) => bucket.give_back(cost, now),
            Self::LeakyQueue(queue) => queue.give_back(cost),
            Self::Gcra(gcra) => gcra.give_back(cost),
            Self::BatchRest(batch) => batch.give_back(ticket, cost),
        }
    }

    /// Counts another cost for an attempt on its way than was taken: the server said what it was.
    pub fn correct(&mut self, ticket: Ticket, taken: u32, cost: u32, now: Now) {
        let (more, less) = (cost.saturating_sub(taken), taken.saturating_sub(cost));
        match self {
            Self::ArrivalLog(log) => log.correct(ticket, cost),
            Self::BatchRest(batch) => batch.correct(more, less),
            Self::SlidingLog(_)
            | Self::FixedWindow(_)
            | Self::SlidingCounter(_)
            | Self::TokenBucket(_)
            | Self::LeakyQueue(_)
            | Self::Gcra(_)
                if more > 0 =>
            {
                self.take(ticket, more, now);
            }
            Self::SlidingLog(_)
            | Self::FixedWindow(_)
            | Self::SlidingCounter(_)
            | Self::TokenBucket(_)
            | Self::LeakyQueue(_)
            | Self::Gcra(_) => self.give_back(ticket, less, now.mono),
        }
    }

    /// Takes what an attempt of an earlier owner used; `end` is when it ended at the latest.
    pub fn restore(&mut self, cost: u32, start: Wall, end: Wall, now: Now) {
        match self {
            Self::ArrivalLog(log) => log.restore(cost, end, now),
            Self::SlidingLog(log) => log.restore(cost, start, now),
            Self::FixedWindow(window) => window.restore(cost, start, now),
            Self::SlidingCounter(counter) => counter.restore(cost, start, now),
            Self::TokenBucket(bucket) => bucket.restore(cost, start, now),
            Self::LeakyQueue(queue) => queue.restore(cost, start, now),
            Self::Gcra(gcra) => gcra.restore(cost, start, now),
            Self::BatchRest(batch) => batch.restore(cost, end, now),
        }
    }

    /// Empties what would allow a burst when a pause ends; windows need nothing, their budget spaces the starts.
    pub fn restart(&mut self, now: Mono) {
        match self {
            Self::TokenBucket(bucket) => bucket.empty(now),
            Self::Gcra(gcra) => gcra.empty(now),
            Self::ArrivalLog(_)
            | Self::SlidingLog(_)
            | Self::FixedWindow(_)
            | Self::SlidingCounter(_)
            | Self::LeakyQueue(_)
            | Self::BatchRest(_) => {}
        }
    }

    /// Tells whether it admits no more than its limit in any window, wherever that begins and however long requests take.
    pub const fn is_log(&self) -> bool {
        matches!(self, Self::ArrivalLog(_))
    }

    /// Returns the units that are free now.
    pub fn free(&mut self, now: Mono) -> u32 {
        match self {
            Self::ArrivalLog(log) => log.free(now),
            Self::SlidingLog(log) => log.free(now),
            Self::FixedWindow(window) => window.free(now),
            Self::SlidingCounter(counter) => counter.free(now),
            Self::TokenBucket(bucket) => bucket.free(now),
            Self::LeakyQueue(queue) => queue.free(now),
            Self::Gcra(gcra) => gcra.free(now),
            Self::BatchRest(batch) => batch.free(now),
        }
    }

    /// Returns when a unit that was taken `ago_ms` before `now` comes back, at the earliest.
    pub fn back_at(&self, now: Mono, ago_ms: u64) -> Mono {
        let after_a_window = now.plus(self.rule().window_ms()).minus(ago_ms);
        match self {
            Self::FixedWindow(window) => window.ends_at().unwrap_or(after_a_window),
            Self::ArrivalLog(_)
            | Self::SlidingLog(_)
            | Self::SlidingCounter(_)
            | Self::TokenBucket(_)
            | Self::LeakyQueue(_)
            | Self::Gcra(_)
            | Self::BatchRest(_) => after_a_window,
        }
    }

    /// Returns the rule.
    pub const fn rule(&self) -> LimitRule {
        match self {
            Self::ArrivalLog(log) => log.rule(),
            Self::SlidingLog(log) => log.rule(),
            Self::FixedWindow(window) => window.rule(),
            Self::SlidingCounter(counter) => counter.rule(),
            Self::TokenBucket(bucket) => bucket.rule(),
            Self::LeakyQueue(queue) => queue.rule(),
            Self::Gcra(gcra) => gcra.rule(),
            Self::BatchRest(batch) => batch.rule(),
        }
    }

    /// Takes over a changed rule and keeps what was consumed; another algorithm begins anew.
    pub fn configure(&mut self, rule: LimitRule, now: Mono) {
        if rule.algorithm() != self.rule().algorithm() {
            *self = Self::new(rule, now);
            return;
        }
        match self {
            Self::ArrivalLog(log) => log.configure(rule),
            Self::SlidingLog(log) => log.configure(rule),
            Self::FixedWindow(window) => window.configure(rule),
            Self::SlidingCounter(counter) => counter.configure(rule, now),
            Self::TokenBucket(bucket) => bucket.configure(rule, now),
            Self::LeakyQueue(queue) => queue.configure(rule),
            Self::Gcra(gcra) => gcra.configure(rule, now),
            Self::BatchRest(batch) => batch.configure(rule),
        }
    }
}
