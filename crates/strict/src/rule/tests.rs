//! The rules against oracles that keep everything and count anew for each question.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::scenario::Scenario;

/// A clock that is not aligned to any window.
const WALL_US: u64 = 1_788_264_000_123_457;

fn limit(value: serde_json::Value) -> Limit {
    Scenario::parse(&json!({ "limits": [value] }))
        .expect("a scenario")
        .limits
        .remove(0)
}

/// Runs a rule over attempts, telling which it admits.
fn admitted(rule: &mut Rule, attempts: &[(u64, u64)]) -> Vec<bool> {
    let step = |&(at_us, cost): &(u64, u64)| {
        let admits = rule.wait_us(at_us, cost).is_none();
        if admits {
            rule.take(at_us, cost);
        }
        admits
    };
    attempts.iter().map(step).collect()
}

/// Runs an oracle over attempts: `used` counts anew, from all that was admitted, what stands against an instant.
fn expected(attempts: &[(u64, u64)], fits: impl Fn(&[(u64, u64)], u64, u64) -> bool) -> Vec<bool> {
    let mut past: Vec<(u64, u64)> = Vec::new();
    let mut answers = Vec::new();
    for &(at_us, cost) in attempts {
        let admits = cost == 0 || fits(&past, at_us, cost);
        if admits && cost > 0 {
            past.push((at_us, cost));
        }
        answers.push(admits);
    }
    answers
}

fn log_oracle(limit: u64, window_us: u64) -> impl Fn(&[(u64, u64)], u64, u64) -> bool {
    move |past, at_us, cost| {
        let counts = past.iter().filter(|(then, _)| at_us - then <= window_us);
        counts.map(|(_, cost)| cost).sum::<u64>() + cost <= limit
    }
}

fn window_oracle(limit: u64, window_us: u64) -> impl Fn(&[(u64, u64)], u64, u64) -> bool {
    move |past, at_us, cost| {
        let index = |at_us: u64| (WALL_US + at_us) / window_us;
        let counts = past.iter().filter(|(then, _)| index(*then) == index(at_us));
        counts.map(|(_, cost)| cost).sum::<u64>() + cost <= limit
    }
}

/// The level is the least, over all starts, of capacity plus what came in since then less what went out since then.
fn bucket_oracle(capacity: u64, window_us: u64) -> impl Fn(&[(u64, u64)], u64, u64) -> bool {
    move |past, at_us, cost| {
        let grains = |units: u64| i128::from(units) * i128::from(window_us);
        let refilled = |since: u64| i128::from(at_us - since) * i128::from(capacity);
        let spent = |from: usize| {
            past[from..]
                .iter()
                .map(|(_, cost)| grains(*cost))
                .sum::<i128>()
        };
        let since_full = |from: usize| grains(capacity) + refilled(past[from].0) - spent(from);
        let level = (0..past.len())
            .map(since_full)
            .min()
            .unwrap_or(grains(capacity))
            .min(grains(capacity));
        level >= grains(cost)
    }
}

prop_compose! {
    fn attempts()(gaps in prop::collection::vec((0u64..900, 0u64..4), 1..120)) -> Vec<(u64, u64)> {
        gaps.iter().scan(0, |now, (gap, cost)| { *now += gap; Some((*now, *cost)) }).collect()
    }
}

proptest! {
    #[test]
    fn the_sliding_log_admits_what_counting_anew_admits(tries in attempts(), size in 1u64..12, ms in 1u64..8) {
        let spec = limit(json!({ "limit": size, "window_ms": ms }));

        let got = admitted(&mut Rule::new(&spec, WALL_US), &tries);

        prop_assert_eq!(got, expected(&tries, log_oracle(size, ms * 1_000)));
    }

    #[test]
    fn the_fixed_window_admits_what_counting_anew_admits(tries in attempts(), size in 1u64..12, ms in 1u64..8) {
        let spec = limit(json!({ "limit": size, "window_ms": ms, "algorithm": "fixed-window" }));

        let got = admitted(&mut Rule::new(&spec, WALL_US), &tries);

        prop_assert_eq!(got, expected(&tries, window_oracle(size, ms * 1_000)));
    }

    #[test]
    fn the_bucket_admits_what_its_closed_form_admits(tries in attempts(), size in 1u64..12, ms in 1u64..8) {
        let spec = limit(json!({ "limit": size, "window_ms": ms, "algorithm": "token-bucket" }));

        let got = admitted(&mut Rule::new(&spec, WALL_US), &tries);

        prop_assert_eq!(got, expected(&tries, bucket_oracle(size, ms * 1_000)));
    }

    #[test]
    fn a_wait_is_exact(tries in attempts(), size in 3u64..9, algorithm in 0usize..3) {
        let word = ["sliding-log", "fixed-window", "token-bucket"][algorithm];
        let mut rule = Rule::new(&limit(json!({ "limit": size, "window_ms": 5, "algorithm": word })), WALL_US);
        admitted(&mut rule, &tries);
        let now = tries.last().expect("attempts").0;

        if let Some(wait_us) = rule.wait_us(now, 3) {
            prop_assert!(rule.clone().wait_us(now + wait_us - 1, 3).is_some());
            prop_assert!(rule.wait_us(now + wait_us, 3).is_none());
        }
    }

    #[test]
    fn counted_refusals_neither_change_an_answer_nor_grow_the_log(gaps in prop::collection::vec(0u64..300, 1..200)) {
        let mut rule = Rule::new(&limit(json!({ "limit": 5, "window_ms": 2 })), WALL_US);
        let mut all: Vec<u64> = Vec::new();
        let mut now = 0;

        for gap in gaps {
            now += gap;
            let in_window = all.iter().filter(|then| now - **then <= 2_000).count();
            prop_assert_eq!(rule.wait_us(now, 1).is_none(), in_window < 5);
            rule.take(now, 1);
            all.push(now);
        }

        let Counter::Log(log) = &rule.counter else { unreachable!("a sliding log") };
        prop_assert!(log.entries.len() <= 5);
    }
}

#[test]
fn a_log_entry_exactly_a_window_old_still_counts() {
    let mut rule = Rule::new(&limit(json!({ "limit": 1, "window_ms": 1 })), 0);
    rule.take(0, 1);

    assert_eq!(rule.wait_us(1_000, 1), Some(1));
    assert_eq!(rule.wait_us(1_001, 1), None);
}

#[test]
fn a_window_anchored_at_first_begins_with_a_request() {
    let mut rule = Rule::new(
        &limit(json!({
        "limit": 1, "window_ms": 10, "algorithm": "fixed-window", "anchor": "first" })),
        WALL_US,
    );
    rule.take(3_000, 1);

    assert_eq!(rule.wait_us(12_999, 1), Some(1));
    assert_eq!(rule.wait_us(13_000, 1), None);
}

#[test]
fn a_bucket_refills_at_its_own_rate_when_one_is_given() {
    let spec = limit(
        json!({ "limit": 4, "window_ms": 1000, "algorithm": "token-bucket", "refill_per_s": 0.5 }),
    );
    let mut rule = Rule::new(&spec, 0);
    rule.take(0, 4);

    assert_eq!(rule.wait_us(0, 1), Some(2_000_000));
    assert_eq!(spec.allowed(), 4);
}

#[test]
fn a_cost_above_the_limit_waits_a_window_for_nothing() {
    for word in ["sliding-log", "fixed-window", "token-bucket"] {
        let mut rule = Rule::new(
            &limit(json!({ "limit": 2, "window_ms": 7, "algorithm": word })),
            0,
        );

        assert_eq!(rule.wait_us(0, 3), Some(7_000), "{word}");
    }
}

#[test]
fn no_rule_admits_more_than_it_calls_allowed() {
    for word in ["sliding-log", "fixed-window", "token-bucket"] {
        let spec = limit(json!({ "limit": 10, "window_ms": 5, "algorithm": word }));
        let mut rule = Rule::new(&spec, WALL_US);
        let tries: Vec<(u64, u64)> = (0..40_000).map(|at_us| (at_us, 1)).collect();

        let taken = admitted(&mut rule, &tries);

        let log: Vec<(u64, u64)> = tries
            .iter()
            .zip(taken)
            .filter(|(_, ok)| *ok)
            .map(|(entry, _)| *entry)
            .collect();
        assert!(
            crate::seen::fullest_window(&log, 5_000) <= spec.allowed(),
            "{word}"
        );
    }
}
