//! All rules of an account together, and the foreign requests that use them too.
//!
//! Invariant: a request that any rule refuses uses none of them. Foreign requests are drawn lazily, in the order of their
//! instants, before anything at a later instant is looked at; there is no timer.

use std::collections::VecDeque;

use crate::draw::poisson_gap_us;
use crate::rule::{Rule, View};
use crate::scenario::{Limit, Scenario};

/// Counted instants kept for building new rules when limits change.
const HISTORY: usize = 50_000;
/// Foreign requests drawn at most in one step; a longer silence is not made up for.
const MAX_CATCH_UP: usize = 1_000_000;

/// Why a request was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// The rule with the longest wait.
    pub(crate) rule: String,
    pub(crate) wait_us: u64,
}

/// What foreign requests did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Outside {
    pub(crate) accepted: u64,
    pub(crate) rejected: u64,
}

/// The rules of one account.
#[derive(Debug)]
pub(crate) struct Limiter {
    wall_us: u64,
    rules: Vec<Rule>,
    history: VecDeque<(u64, u64)>,
    seed: u64,
    outside_per_s: f64,
    drawn: u64,
    next_us: Option<u64>,
    outside: Outside,
}

impl Limiter {
    pub(crate) fn new(scenario: &Scenario, wall_us: u64) -> Self {
        let mut limiter = Self {
            wall_us,
            rules: rules(&scenario.limits, wall_us),
            history: VecDeque::new(),
            seed: scenario.seed,
            outside_per_s: 0.0,
            drawn: 0,
            next_us: None,
            outside: Outside::default(),
        };
        limiter.set_outside(0, scenario.outside_per_s);
        limiter
    }

    /// Puts other limits in force, as if they had been from the start: what was counted is counted again by them.
    pub(crate) fn set_limits(&mut self, limits: &[Limit]) {
        self.rules = rules(limits, self.wall_us);
        for &(at_us, cost) in &self.history {
            for rule in &mut self.rules {
                rule.take(at_us, cost);
            }
        }
    }

    /// Changes the rate of foreign requests.
    pub(crate) fn set_outside(&mut self, now_us: u64, per_s: f64) {
        self.outside_per_s = per_s;
        self.next_us = (per_s > 0.0).then(|| self.draw_after(now_us));
    }

    fn draw_after(&mut self, at_us: u64) -> u64 {
        self.drawn += 1;
        at_us.saturating_add(poisson_gap_us(self.seed, self.drawn, self.outside_per_s))
    }

    /// Lets the foreign requests up to now happen; call it before anything else at this instant.
    pub(crate) fn advance(&mut self, now_us: u64) {
        for _ in 0..MAX_CATCH_UP {
            let Some(at_us) = self.next_us.filter(|at_us| *at_us <= now_us) else {
                return;
            };
            self.foreign(at_us);
            self.next_us = Some(self.draw_after(at_us));
        }
        self.next_us = Some(self.draw_after(now_us));
    }

    fn foreign(&mut self, at_us: u64) {
        if self.refusal(at_us, 1).is_some() {
            self.outside.rejected += 1;
        } else {
            self.take(at_us, 1);
            self.outside.accepted += 1;
        }
    }

    /// Tells whether some rule refuses, and the one with the longest wait; uses nothing.
    pub(crate) fn refusal(&mut self, now_us: u64, cost: u64) -> Option<Refusal> {
        let refusing = self
            .rules
            .iter_mut()
            .filter_map(|rule| Some((rule.wait_us(now_us, cost)?, rule.name())));
        let (wait_us, rule) = refusing.max_by_key(|(wait_us, _)| *wait_us)?;
        Some(Refusal {
            rule: rule.to_owned(),
            wait_us,
        })
    }

    /// Counts units in all rules.
    pub(crate) fn take(&mut self, now_us: u64, cost: u64) {
        for rule in &mut self.rules {
            rule.take(now_us, cost);
        }
        self.history.push_back((now_us, cost));
        if self.history.len() > HISTORY {
            self.history.pop_front();
        }
    }

    pub(crate) fn views(&mut self, now_us: u64) -> Vec<View> {
        self.rules
            .iter_mut()
            .map(|rule| rule.view(now_us))
            .collect()
    }

    pub(crate) fn outside(&self) -> Outside {
        self.outside
    }
}

fn rules(limits: &[Limit], wall_us: u64) -> Vec<Rule> {
    limits
        .iter()
        .map(|limit| Rule::new(limit, wall_us))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn limiter(scenario: serde_json::Value) -> Limiter {
        Limiter::new(&Scenario::parse(&scenario).expect("a scenario"), 0)
    }

    #[test]
    fn a_request_that_one_rule_refuses_uses_none() {
        let mut limiter = limiter(json!({ "limits": [
            { "limit": 5, "window_ms": 1000 }, { "limit": 1, "window_ms": 10, "algorithm": "token-bucket" } ] }));
        limiter.take(0, 1);

        let refusal = limiter.refusal(0, 1).expect("the bucket is empty");

        assert_eq!(refusal.rule, "1/10ms");
        assert_eq!(limiter.views(0)[0].remaining, 4);
    }

    #[test]
    fn the_refusing_rule_with_the_longest_wait_is_named() {
        let mut limiter = limiter(json!({ "limits": [
            { "limit": 1, "window_ms": 1000 }, { "limit": 1, "window_ms": 60_000 } ] }));
        limiter.take(0, 1);

        let refusal = limiter.refusal(500_000, 1).expect("both are used up");

        assert_eq!(
            refusal,
            Refusal {
                rule: "1/60000ms".to_owned(),
                wait_us: 59_500_001
            }
        );
    }

    #[test]
    fn new_limits_know_what_was_counted() {
        let mut limiter = limiter(json!({ "limits": [{ "limit": 10, "window_ms": 1000 }] }));
        for at_us in 0..10 {
            limiter.take(at_us, 1);
        }
        let wider = Scenario::parse(&json!({ "limits": [{ "limit": 12, "window_ms": 5000 }] }))
            .expect("a scenario");

        limiter.set_limits(&wider.limits);

        assert_eq!(limiter.views(4_000_000)[0].remaining, 2);
    }

    #[test]
    fn foreign_requests_use_the_limits_and_are_told_apart() {
        let mut limiter = limiter(json!({
            "limits": [{ "limit": 3, "window_ms": 60_000 }], "outside_per_s": 100 }));

        limiter.advance(1_000_000);

        let outside = limiter.outside();
        assert_eq!(outside.accepted, 3);
        assert!((60..140).contains(&outside.rejected), "{outside:?}");
        assert!(limiter.refusal(1_000_000, 1).is_some());
    }
}
