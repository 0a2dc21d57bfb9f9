//! When a cost may start: holds, pause, concurrency, ramp and rules, in that order.
//!
//! Invariant: an instant that was looked at is not gone back on.

use super::{Budget, fitting};
use crate::config::LimitRule;
use crate::io::Cause;
use crate::limit::Admission;
use crate::time::Mono;

/// Why nothing starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Blocked {
    pub(crate) cause: Cause,
    /// From when on it may start; none while that depends on an answer or a wish.
    pub(crate) until: Option<Mono>,
    /// The rule that defers.
    pub(crate) rule: Option<LimitRule>,
    /// How far above the job's own budget the one stands that defers it.
    pub(crate) depth: u8,
}

impl Budget {
    /// Tells from when on a cost may start, if that is now or before `horizon`; else why not, and until when.
    ///
    /// Once something was taken for an instant that is still to come, what follows is judged as of then.
    pub(crate) fn check(&mut self, cost: u32, now: Mono, horizon: Mono) -> Result<Mono, Blocked> {
        let mut start = now.max(self.judged_until);
        loop {
            match self.check_at(cost, now, start) {
                Ok(()) => return Ok(start),
                Err(Blocked {
                    cause: Cause::Rate,
                    until: Some(until),
                    ..
                }) if until > start && until <= horizon => {
                    start = until;
                    // The limiters have seen that instant, whether or not it is taken.
                    self.judged_until = start;
                }
                Err(blocked) => return Err(blocked),
            }
        }
    }

    pub(super) fn check_at(&mut self, cost: u32, now: Mono, start: Mono) -> Result<(), Blocked> {
        let blocked = |cause, until| {
            Err(Blocked {
                cause,
                until,
                rule: None,
                depth: 0,
            })
        };
        if !self.holds.is_empty() {
            return blocked(Cause::Held, None);
        }
        if let Some(pause) = self.pause {
            return blocked(Cause::Paused, Some(pause.until));
        }
        if let Some(until) = self.full_until(now) {
            return blocked(Cause::InFlight, until);
        }
        if let Some(ramp) = self.ramp
            && start < ramp.next_at
        {
            return blocked(Cause::Rate, Some(ramp.next_at));
        }
        self.check_rules(cost, start)?;
        match self.sync.defers(cost, start) {
            Some(until) => blocked(Cause::Rate, Some(until)),
            None => Ok(()),
        }
    }

    pub(super) fn check_rules(&mut self, cost: u32, now: Mono) -> Result<(), Blocked> {
        let mut worst = Admission::Admit;
        let mut rule = None;
        for limiter in &mut self.limiters {
            let both = worst.and(limiter.check(fitting(limiter, cost), now));
            if both != worst {
                worst = both;
                rule = Some(limiter.rule());
            }
        }
        match worst {
            Admission::Admit => Ok(()),
            Admission::Defer(at) => Err(Blocked {
                cause: Cause::Rate,
                until: Some(at),
                rule,
                depth: 0,
            }),
            Admission::DeferToAnswer | Admission::Never => Err(Blocked {
                cause: Cause::Rate,
                until: None,
                rule,
                depth: 0,
            }),
        }
    }

    /// Returns, when no further request may be in flight, the instant at which one is over by itself.
    pub(super) fn full_until(&mut self, now: Mono) -> Option<Option<Mono>> {
        while let Some(entry) = self.ghosts.first_entry() {
            if *entry.key() > now {
                break;
            }
            entry.remove();
        }
        let configured = self.max_in_flight().unwrap_or(u32::MAX);
        let max = configured.min(self.slow_start.unwrap_or(u32::MAX));
        let ghosts: u32 = self.ghosts.values().sum();
        if self.in_flight.saturating_add(ghosts) < max {
            return None;
        }
        Some(self.ghosts.keys().next().copied())
    }
}
