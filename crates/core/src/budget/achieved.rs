//! How much of a budget's limit was used while there was something to send; `metrics` argues the definition.
//!
//! Invariant: what is read of it changes no decision.

use super::Budget;
use crate::config::LimitRule;
use crate::limit::Limiter;
use crate::metrics::Achieved;
use crate::time::Mono;

/// Whether there is something to send that had to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Demand {
    None,
    Some,
}

/// The busy stretches of a budget.
#[derive(Clone, Debug, Default)]
pub(super) struct Stretches {
    closed: Achieved,
    open: Option<Stretch>,
}

#[derive(Clone, Debug)]
struct Stretch {
    began: Mono,
    /// When it was last seen to go on: the machine may sleep.
    seen: Mono,
    units: u64,
    /// The rules that hold, and what each had free when it began.
    free: Vec<(LimitRule, u64)>,
}

impl Stretches {
    pub(super) fn took(&mut self, cost: u32) {
        if let Some(open) = &mut self.open {
            open.units = open.units.saturating_add(u64::from(cost));
        }
    }

    pub(super) fn gave_back(&mut self, cost: u32) {
        if let Some(open) = &mut self.open {
            open.units = open.units.saturating_sub(u64::from(cost));
        }
    }
}

impl Budget {
    /// Tells whether a job is ready, and nobody's wish keeps it.
    pub(crate) fn has_demand(&self) -> bool {
        !self.lanes.is_empty() && self.holds.is_empty()
    }

    /// Notes whether there is something to send, after all that may start has started.
    pub(crate) fn note_demand(&mut self, demand: Demand, now: Mono) {
        match (demand, &mut self.stretches.open) {
            (Demand::Some, Some(open)) => open.seen = now,
            (Demand::Some, None) => {
                let free = self.free_of_each(now);
                let free = self.rules_now().into_iter().zip(free).collect();
                self.stretches.open = Some(Stretch {
                    began: now,
                    seen: now,
                    units: 0,
                    free,
                });
            }
            (Demand::None, Some(_)) => self.close_stretch(now),
            (Demand::None, None) => {}
        }
    }

    /// Ends the stretch as of `now`, because its rules change or there is nothing more to send.
    pub(super) fn close_stretch(&mut self, now: Mono) {
        self.stretches.closed = self.achieved(now);
        self.stretches.open = None;
    }

    /// Ends the stretch where it was last seen to go on: what followed was sleep.
    pub(super) fn close_stretch_before_sleep(&mut self) {
        if let Some(seen) = self.stretches.open.as_ref().map(|open| open.seen) {
            self.close_stretch(seen);
        }
    }

    /// Returns how much of the limit was used up to now.
    pub(crate) fn achieved(&mut self, now: Mono) -> Achieved {
        let Some((began, units)) = self
            .stretches
            .open
            .as_ref()
            .map(|open| (open.began, open.units))
        else {
            return self.stretches.closed;
        };
        let took_ms = now.since(began);
        let allowed = self.allowed(took_ms, now);
        let closed = self.stretches.closed;
        Achieved {
            busy_ms: closed.busy_ms.saturating_add(took_ms),
            units: closed.units.saturating_add(units),
            allowed: match (closed.allowed, allowed) {
                (None, None) => None,
                (before, allowed) => {
                    let allowed = allowed.unwrap_or(units).max(units);
                    Some(before.unwrap_or(0).saturating_add(allowed))
                }
            },
        }
    }

    /// What the rule that allowed least has allowed in the stretch so far.
    fn allowed(&mut self, took_ms: u64, now: Mono) -> Option<u64> {
        let left = self.free_of_each(now);
        let open = self.stretches.open.as_ref()?;
        let rules = open.free.iter().zip(left);
        let allowed = rules.map(|((rule, free), left)| {
            let granted = u128::from(rule.limit()) * u128::from(took_ms);
            let granted = granted / u128::from(rule.window_ms().max(1));
            let granted = u64::try_from(granted).unwrap_or(u64::MAX);
            free.saturating_add(granted).saturating_sub(left)
        });
        allowed.min()
    }

    fn free_of_each(&mut self, now: Mono) -> Vec<u64> {
        let now = now.max(self.judged_until);
        let limiters = self.limiters.iter_mut();
        limiters
            .map(|limiter: &mut Limiter| u64::from(limiter.free(now)))
            .collect()
    }
}
