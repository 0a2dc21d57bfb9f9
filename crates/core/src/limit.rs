//! Limiters: each answers whether a cost fits now, or from when on.
//!
//! Owns the arithmetic of single rules. Does not know jobs, lanes or pauses. Invariant: `check` admits at the instant
//! that it names and at no earlier one, as long as nothing else happens in between.

mod arrival_log;
mod token_bucket;

pub use arrival_log::ArrivalLog;
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

/// One rule with its state.
#[derive(Clone, Debug)]
pub enum Limiter {
    /// See [`ArrivalLog`].
    ArrivalLog(ArrivalLog),
    /// See [`TokenBucket`].
    TokenBucket(TokenBucket),
}

impl Limiter {
    /// Makes the limiter of a rule, full.
    pub fn new(rule: LimitRule, now: Mono) -> Self {
        match rule.algorithm() {
            Algorithm::ArrivalLog => Self::ArrivalLog(ArrivalLog::new(rule)),
            Algorithm::TokenBucket => Self::TokenBucket(TokenBucket::new(rule, now)),
        }
    }

    /// Tells whether `cost` fits now.
    pub fn check(&mut self, cost: u32, now: Mono) -> Admission {
        match self {
            Self::ArrivalLog(log) => log.check(cost, now),
            Self::TokenBucket(bucket) => bucket.check(cost, now),
        }
    }

    /// Takes `cost` for an attempt. The caller has been admitted.
    pub fn take(&mut self, ticket: Ticket, cost: u32, now: Mono) {
        match self {
            Self::ArrivalLog(log) => log.take(ticket, cost),
            Self::TokenBucket(bucket) => bucket.take(cost, now),
        }
    }

    /// Notes that an attempt ended now, answered or not; `floor_ms` may be taken off an answered one's wait.
    pub fn end(&mut self, ticket: Ticket, floor_ms: u64, now: Mono) {
        match self {
            Self::ArrivalLog(log) => log.end(ticket, floor_ms, now),
            Self::TokenBucket(_) => {}
        }
    }

    /// Gives back what an attempt took: its request certainly never left.
    pub fn give_back(&mut self, ticket: Ticket, cost: u32, now: Mono) {
        match self {
            Self::ArrivalLog(log) => log.give_back(ticket),
            Self::TokenBucket(bucket) => bucket.give_back(cost, now),
        }
    }

    /// Takes what an attempt of an earlier owner used; `end` is when it ended at the latest.
    pub fn restore(&mut self, cost: u32, start: Wall, end: Wall, now: Now) {
        match self {
            Self::ArrivalLog(log) => log.restore(cost, end, now),
            Self::TokenBucket(bucket) => bucket.restore(cost, start, now),
        }
    }

    /// Empties what would allow a burst when a pause ends; a log needs nothing, its budget spaces the starts.
    pub fn restart(&mut self, now: Mono) {
        match self {
            Self::ArrivalLog(_) => {}
            Self::TokenBucket(bucket) => bucket.empty(now),
        }
    }

    /// Returns the units that are free now.
    pub fn free(&mut self, now: Mono) -> u32 {
        match self {
            Self::ArrivalLog(log) => log.free(now),
            Self::TokenBucket(bucket) => bucket.free(now),
        }
    }

    /// Returns the rule.
    pub const fn rule(&self) -> LimitRule {
        match self {
            Self::ArrivalLog(log) => log.rule(),
            Self::TokenBucket(bucket) => bucket.rule(),
        }
    }

    /// Takes over a changed rule and keeps what was consumed.
    pub fn configure(&mut self, rule: LimitRule, now: Mono) {
        match (&mut *self, rule.algorithm()) {
            (Self::ArrivalLog(log), Algorithm::ArrivalLog) => log.configure(rule),
            (Self::TokenBucket(bucket), Algorithm::TokenBucket) => bucket.configure(rule, now),
            (Self::ArrivalLog(_) | Self::TokenBucket(_), _) => *self = Self::new(rule, now),
        }
    }
}
