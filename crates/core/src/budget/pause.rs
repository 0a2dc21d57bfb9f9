//! Pauses: closing after a refusal, and opening again without a burst.
//!
//! A refusal closes the whole budget until the server's instant, plus up to a second of jitter drawn once.
//! Answers that were in flight when the pause began may only extend it, and count as the same refusal. Reopening is
//! never a burst: buckets start empty, starts under a log are spaced by window/limit for up to 10 s, and a budget that
//! has only a concurrency limit restarts with one in flight and doubles with each success.
//! Invariant: a pause is never shortened.

use oorandom::Rand64;

use super::Budget;
use crate::io::Cause;
use crate::job::HoldCause;
use crate::time::{Mono, Now, Wall};

/// The least wait after a refusal, also when the server says 0.
const MIN_PAUSE_MS: u64 = 1_000;
/// The longest wait that we guess.
const MAX_GUESS_MS: u64 = 60_000;
/// Jitter at a pause's end.
const JITTER_MS: u64 = 1_000;
/// Refusals in a row after which the budget holds.
pub(super) const MAX_REFUSALS: u32 = 10;
/// Pauses without a success after which the budget holds.
const MAX_REFUSING_MS: u64 = 15 * 60_000;
/// How long after a refusal a lost connection is taken for one too: a refusal without CORS headers looks so.
const HIDDEN_REFUSAL_MS: u64 = 60_000;
/// The longest ramp after a pause.
const MAX_RAMP_MS: u64 = 10_000;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Pause {
    pub(crate) until: Mono,
    pub(crate) until_wall: Wall,
    pub(crate) is_estimate: bool,
    /// Whether it was longer, when it was asked for, than what the app calls long.
    pub(crate) is_long: bool,
    pub(super) jitter_ms: u64,
    pub(super) refused: u32,
}

impl Pause {
    /// Why what it stops waits.
    pub(crate) const fn cause(self) -> Cause {
        if self.is_long {
            Cause::Parked
        } else {
            Cause::Paused
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Ramp {
    pub(super) until: Mono,
    pub(super) next_at: Mono,
    pub(super) spacing_ms: u64,
}

/// What a refusal did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) until: Wall,
    pub(crate) is_estimate: bool,
    pub(crate) is_long: bool,
    pub(crate) is_longer: bool,
    /// How many refused jobs this pause has put back before this one.
    pub(crate) earlier_refused: u32,
    /// The window over which refused jobs are spread.
    pub(crate) spread_ms: u64,
    pub(crate) holds_now: bool,
}

impl Budget {
    /// Notes a refusal that could be read; what hides for a while after it may be others.
    pub(crate) const fn note_refusal(&mut self, now: Mono) {
        self.refused_at = Some(now);
    }

    /// Tells whether nothing may start, whatever the rules say.
    pub(crate) fn is_closed(&self) -> bool {
        self.pause.is_some() || !self.holds.is_empty() || self.lacks_credentials()
    }

    /// Tells whether what waits for it fails: its pause goes on for longer than the app is ready to wait.
    pub(crate) fn gives_up(&self, now: Mono) -> bool {
        let terms = self.config.long_wait();
        let is_too_long = |pause: Pause| pause.until.since(now) > terms.above_ms;
        terms.fails && self.pause.is_some_and(is_too_long)
    }

    /// Tells whether a request that was claimed ahead may not leave. What was claimed within the share of repeats may: the
    /// hold stops those beyond it, and was perhaps begun by the very next job.
    pub(crate) fn stops_what_is_claimed(&self) -> bool {
        let by_hold = |cause: &HoldCause| *cause != HoldCause::RetryBudget;
        self.pause.is_some() || self.holds.iter().any(by_hold) || self.lacks_credentials()
    }

    /// Tells whether a lost connection is more likely a refusal that we may not read: one that could be read was not long
    /// ago, or the same has just closed the budget.
    pub(crate) fn may_hide_refusals(&self, now: Mono) -> bool {
        let is_lately = |at| now.since(at) < HIDDEN_REFUSAL_MS;
        self.pause.is_some() || self.refused_at.is_some_and(is_lately)
    }

    /// Notes a refusal of an attempt that was claimed at `started`.
    pub(crate) fn refused(
        &mut self,
        started: Mono,
        asked_ms: Option<u64>,
        now: Now,
        rng: &mut Rand64,
    ) -> Refusal {
        let is_late =
            self.pause.is_some() || self.closed_at.is_some_and(|closed| started <= closed);
        if !is_late {
            self.refusals_in_a_row = self.refusals_in_a_row.saturating_add(1);
            self.refusing_since.get_or_insert(now.wall);
            self.latency.forget();
            self.shrink(now.mono);
        }
        let guess_ms = self.guess_ms();
        // A wait of nothing, or an instant that has passed, tells no more than silence does.
        let told_ms = asked_ms.filter(|asked| *asked >= MIN_PAUSE_MS);
        let wait_ms = told_ms.unwrap_or(guess_ms);
        let jitter_ms = match self.pause {
            Some(pause) => pause.jitter_ms,
            None => rng.rand_range(0..JITTER_MS.saturating_add(1)),
        };
        let until = now.mono.plus(wait_ms).plus(jitter_ms);
        let earlier_refused = self.pause.map_or(0, |pause| pause.refused);
        let is_longer = self.pause.is_none_or(|pause| until > pause.until);
        let mut pause = match self.pause {
            Some(pause) if !is_longer => pause,
            Some(_) | None => Pause {
                until,
                until_wall: now.wall_of(until),
                is_estimate: told_ms.is_none(),
                is_long: wait_ms > self.config.long_wait().above_ms,
                jitter_ms,
                refused: earlier_refused,
            },
        };
        pause.refused = pause.refused.saturating_add(1);
        if self.pause.is_none() {
            self.closed_at = Some(now.mono);
        }
        self.pause = Some(pause);
        let too_long = self
            .refusing_since
            .is_some_and(|since| now.wall.since(since) >= MAX_REFUSING_MS);
        let holds_now =
            (self.refusals_in_a_row >= MAX_REFUSALS || too_long) && self.hold(HoldCause::Refusing);
        Refusal {
            until: pause.until_wall,
            is_estimate: pause.is_estimate,
            is_long: pause.is_long,
            is_longer,
            earlier_refused,
            spread_ms: guess_ms,
            holds_now,
        }
    }

    /// Notes that the wait which the last refusal told is a guess.
    pub(crate) fn guessed(&mut self) {
        if let Some(pause) = &mut self.pause {
            pause.is_estimate = true;
        }
    }

    /// Ends the pause if it is over. Returns whether it did.
    pub(crate) fn reopen_if_due(&mut self, now: Mono) -> bool {
        let Some(pause) = self.pause else {
            return false;
        };
        if now < pause.until {
            return false;
        }
        self.pause = None;
        for limiter in &mut self.limiters {
            limiter.restart(now);
        }
        self.ramp = self.ramp_from(now);
        if self.limiters.is_empty() && self.max_in_flight().is_some() {
            self.slow_start = Some(1);
        }
        true
    }

    /// Takes the wall clock's word for what is left of a pause: the machine slept.
    pub(crate) fn suspended(&mut self, now: Now) {
        self.close_stretch_before_sleep();
        self.latency.forget();
        self.sync.suspended(now);
        if let Some(pause) = &mut self.pause {
            pause.until = pause.until.min(now.mono_of(pause.until_wall));
        }
    }

    pub(super) fn guess_ms(&self) -> u64 {
        let doublings = self.refusals_in_a_row.saturating_sub(1).min(6);
        (MIN_PAUSE_MS << doublings).min(MAX_GUESS_MS)
    }

    pub(super) fn ramp_from(&self, now: Mono) -> Option<Ramp> {
        let rules = self.rules_now();
        let logs = || rules.iter().filter(|rule| rule.algorithm().is_window());
        let spacing_ms = logs()
            .map(|rule| rule.window_ms().div_ceil(u64::from(rule.limit())))
            .max()?;
        let window_ms = logs().map(|rule| rule.window_ms()).max()?;
        Some(Ramp {
            until: now.plus(window_ms.min(MAX_RAMP_MS)),
            next_at: now,
            spacing_ms,
        })
    }
}
