//! When a job may start: holds, pause, concurrency, ramp, spacing and rules, in that order.
//!
//! Invariant: an instant that was looked at is not gone back on.
//!
//! **The reserve.** Bulk and background jobs start only while the units that are kept for the interactive lane stay free
//! besides their own. Neither that nor spacing holds up a lane whose guaranteed share is due: those shares are small, and
//! with an endless interactive load the reserve would never be free.

use super::{Budget, fitting};
use crate::config::LimitRule;
use crate::io::Cause;
use crate::job::Lane;
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

/// Whether a start gives way to the interactive lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// Interactive, or the due share of another lane.
    Pressing,
    /// It is spaced, and leaves the reserve.
    GivesWay,
}

/// What is asked for one start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) urgency: Urgency,
    pub(crate) cost: u32,
    /// How far ahead it may be claimed.
    pub(crate) horizon: Mono,
}

impl Budget {
    /// Tells whether the next start of a lane gives way.
    pub(crate) fn urgency(&self, lane: Lane) -> Urgency {
        match lane {
            Lane::Bulk | Lane::Background if !self.lanes.is_due(lane) => Urgency::GivesWay,
            Lane::Interactive | Lane::Bulk | Lane::Background => Urgency::Pressing,
        }
    }

    /// Tells from when on a cost may start, if that is now or before the horizon; else why not, and until when.
    ///
    /// Once something was taken for an instant that is still to come, what follows is judged as of then.
    pub(crate) fn check(&mut self, asked: Asked, now: Mono) -> Result<Mono, Blocked> {
        let Asked {
            urgency,
            cost,
            horizon,
        } = asked;
        let mut start = now.max(self.judged_until);
        loop {
            match self.check_at(urgency, cost, now, start) {
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

    pub(super) fn check_at(
        &mut self,
        urgency: Urgency,
        cost: u32,
        now: Mono,
        start: Mono,
    ) -> Result<(), Blocked> {
        let blocked = |cause, until| {
            Err(Blocked {
                cause,
                until,
                rule: None,
                depth: 0,
            })
        };
        if !self.holds.is_empty() {
            return blocked(self.held_cause(), self.held_until());
        }
        if let Some(pause) = self.pause {
            return blocked(pause.cause(), Some(pause.until));
        }
        if let Some(until) = self.full_until(now) {
            return blocked(Cause::InFlight, until);
        }
        if let Some(ramp) = self.ramp
            && start < ramp.next_at
        {
            return blocked(Cause::Rate, Some(ramp.next_at));
        }
        let gives_way = urgency == Urgency::GivesWay;
        self.note_others(start);
        if gives_way && let Some((until, rule)) = self.pacer.check(cost, start) {
            return Err(Blocked {
                cause: Cause::Rate,
                until: Some(until),
                rule: Some(rule),
                depth: 0,
            });
        }
        self.check_rules(urgency, cost, start)?;
        match self.sync.defers(cost, start) {
            Some(until) => blocked(Cause::Rate, Some(until)),
            None => Ok(()),
        }
    }

    pub(super) fn check_rules(
        &mut self,
        urgency: Urgency,
        cost: u32,
        now: Mono,
    ) -> Result<(), Blocked> {
        let reserve_of = |rule| match urgency {
            Urgency::GivesWay => self.config.reserve(rule),
            Urgency::Pressing => 0,
        };
        let counted_at = now.plus(self.usual_latency_ms() / 2);
        let mut worst = Admission::Admit;
        let mut rule = None;
        for limiter in &mut self.limiters {
            let others = self.sync.others.forecast(limiter.rule(), counted_at);
            let kept = reserve_of(limiter.rule()).saturating_add(others);
            let asked = cost.saturating_add(kept);
            let both = worst.and(limiter.check(fitting(limiter, asked), now));
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
