//! The arrival-interval log: the default for limits over a window.
//!
//! The server counted a request at some instant between its start and its answer, and we do not know which. So a slot
//! is taken at the start and is free again one window after the *end*. Argument: let two requests be more than N
//! starts apart in the log, the earlier ended at `e`, counted by the server at `c <= e`; the later starts at
//! `s >= e + window`, and is counted at `c' >= s`. Then `c' - c >= window`, so no window of any server's clock that
//! runs at our speed holds more than N, **whatever the jitter**, as long as nobody else spends the budget.
//! Ends are rounded up by the clock's grain, so the distance is above the window, not just equal to it.
//!
//! A floor may be taken off the wait: then the claim holds as long as no two ways together take less than the floor.
//!
//! Memory: ended slots are kept by the instant at which they are free, rounded up to a ten-thousandth of the window,
//! so that at most about 10,000 instants are kept whatever N is.

use std::collections::BTreeMap;

use super::closing::Closing;
use super::{Admission, GRAIN_MS, Ticket};
use crate::config::LimitRule;
use crate::time::{Mono, Now, Wall};

/// N units in any window, counted from each request's end.
#[derive(Clone, Debug)]
pub struct ArrivalLog {
    rule: LimitRule,
    open: BTreeMap<Ticket, u32>,
    open_units: u64,
    closing: Closing,
}

impl ArrivalLog {
    /// Makes an empty log.
    pub const fn new(rule: LimitRule) -> Self {
        Self {
            rule,
            open: BTreeMap::new(),
            open_units: 0,
            closing: Closing::new(),
        }
    }

    /// Tells whether `cost` fits now, or when.
    pub fn check(&mut self, cost: u32, now: Mono) -> Admission {
        let limit = u64::from(self.rule.limit());
        let cost = u64::from(cost);
        if cost > limit {
            return Admission::Never;
        }
        self.closing.purge(now);
        let used = self.used().saturating_add(cost);
        match self.closing.until_free(used.saturating_sub(limit)) {
            _ if used <= limit => Admission::Admit,
            Some(free_at) => Admission::Defer(free_at),
            None => Admission::DeferToAnswer,
        }
    }

    /// Opens a slot of `cost` units.
    pub fn take(&mut self, ticket: Ticket, cost: u32) {
        if self.open.insert(ticket, cost).is_none() {
            self.open_units = self.open_units.saturating_add(u64::from(cost));
        }
    }

    /// Closes a slot: it is free one window after now, less the floor.
    pub fn end(&mut self, ticket: Ticket, floor_ms: u64, now: Mono) {
        let Some(cost) = self.open.remove(&ticket) else {
            return;
        };
        self.open_units = self.open_units.saturating_sub(u64::from(cost));
        let window_ms = self.rule.window_ms();
        let free_at = now.plus(GRAIN_MS).plus(window_ms).minus(floor_ms);
        self.closing.add(u64::from(cost), free_at, window_ms);
    }

    /// Gives a slot that is open another size.
    pub fn correct(&mut self, ticket: Ticket, cost: u32) {
        let Some(taken) = self.open.get_mut(&ticket) else {
            return;
        };
        let others = self.open_units.saturating_sub(u64::from(*taken));
        *taken = cost;
        self.open_units = others.saturating_add(u64::from(cost));
    }

    /// Forgets a slot at once.
    pub fn give_back(&mut self, ticket: Ticket) {
        if let Some(cost) = self.open.remove(&ticket) {
            self.open_units = self.open_units.saturating_sub(u64::from(cost));
        }
    }

    /// Takes a slot of an earlier owner, which ended at `end` at the latest.
    pub fn restore(&mut self, cost: u32, end: Wall, now: Now) {
        let window_ms = self.rule.window_ms();
        let free_at = end.plus(GRAIN_MS).plus(window_ms);
        if free_at > now.wall {
            self.closing
                .add(u64::from(cost), now.mono_of(free_at), window_ms);
        }
    }

    /// Returns the units that are free now.
    pub fn free(&mut self, now: Mono) -> u32 {
        self.closing.purge(now);
        let free = u64::from(self.rule.limit()).saturating_sub(self.used());
        u32::try_from(free).unwrap_or(u32::MAX)
    }

    /// Returns the rule.
    pub const fn rule(&self) -> LimitRule {
        self.rule
    }

    /// Takes over a changed rule; slots that are closing keep their instants, later or sooner by the change of window.
    pub fn configure(&mut self, rule: LimitRule) {
        self.closing
            .change_window(self.rule.window_ms(), rule.window_ms());
        self.rule = rule;
    }

    const fn used(&self) -> u64 {
        self.open_units.saturating_add(self.closing.units())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Algorithm;
    use crate::ids::Seq;

    fn log(limit: u64, window_ms: u64) -> ArrivalLog {
        ArrivalLog::new(LimitRule::new(limit, window_ms, Algorithm::ArrivalLog).unwrap())
    }

    fn ticket(n: u64) -> Ticket {
        (Seq::from_u64(n), 1)
    }

    fn at(millis: u64) -> Mono {
        Mono::from_millis(millis)
    }

    #[test]
    fn a_slot_is_free_one_window_after_the_answer() {
        let mut log = log(1, 1_000);
        log.take(ticket(1), 1);
        assert_eq!(log.check(1, at(5_000)), Admission::DeferToAnswer);

        log.end(ticket(1), 0, at(5_100));

        assert_eq!(log.check(1, at(5_100)), Admission::Defer(at(6_101)));
        assert_eq!(log.check(1, at(6_100)), Admission::Defer(at(6_101)));
        assert_eq!(log.check(1, at(6_101)), Admission::Admit);
    }

    #[test]
    fn a_heavy_cost_waits_for_as_many_slots_as_it_needs() {
        let mut log = log(3, 1_000);
        for n in 0..3 {
            log.take(ticket(n), 1);
            log.end(ticket(n), 0, at(n * 100));
        }

        assert_eq!(log.check(2, at(300)), Admission::Defer(at(1_101)));
        assert_eq!(log.check(4, at(300)), Admission::Never);
    }

    #[test]
    fn what_never_left_is_free_at_once() {
        let mut log = log(1, 1_000);
        log.take(ticket(1), 1);

        log.give_back(ticket(1));

        assert_eq!(log.check(1, at(0)), Admission::Admit);
    }

    #[test]
    fn a_new_owner_keeps_what_the_old_one_spent() {
        let mut log = log(1, 1_000);
        let now = Now::from_millis(10, 50_000);

        log.restore(1, Wall::from_millis(49_500), now);

        assert_eq!(log.check(1, now.mono), Admission::Defer(at(10 + 501)));
    }

    #[test]
    fn a_long_window_keeps_a_bounded_number_of_instants() {
        let mut log = log(1_000_000, 86_400_000);
        for n in 0..50_000 {
            log.take(ticket(n), 1);
            log.end(ticket(n), 0, at(n * 1_728));
        }

        assert!(log.closing.len() <= 10_001, "{}", log.closing.len());
    }

    #[test]
    fn a_lower_limit_keeps_what_was_consumed() {
        let mut log = log(2, 1_000);
        log.take(ticket(1), 1);
        log.end(ticket(1), 0, at(0));

        log.configure(LimitRule::new(1, 1_000, Algorithm::ArrivalLog).unwrap());

        assert_eq!(log.check(1, at(500)), Admission::Defer(at(1_001)));
    }
}
