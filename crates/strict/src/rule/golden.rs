//! The vectors that the field knows, from the one file that the scheduler is held to as well.

use serde_json::{Value, json};

use super::*;
use crate::dialect::{Moment, retry_after};
use crate::limiter::Refusal;
use crate::scenario::{Dialect, RetryAfter, Scenario};

const GOLDEN: &str = include_str!("../../../../tests/fixtures/golden.json");
/// The algorithms that this server has; the others are the scheduler's alone.
const OURS: [&str; 3] = ["sliding-log", "fixed-window", "token-bucket"];

fn vectors(kind: &str) -> Vec<Value> {
    let golden: Value = serde_json::from_str(GOLDEN).expect("the vectors");
    golden[kind].as_array().expect("a list").clone()
}

fn number(value: &Value, field: &str) -> u64 {
    value[field].as_u64().expect("a number")
}

/// A rule of a vector, on a clock that began with the epoch.
fn rule(vector: &Value, algorithm: &str) -> Rule {
    let limits = json!({ "limits": [{ "limit": vector["limit"], "window_ms": vector["window_ms"],
        "algorithm": algorithm }] });
    let scenario = Scenario::parse(&limits).expect("a scenario");
    Rule::new(&scenario.limits[0], 0)
}

/// Sends one arrival, and says what came of it in the file's own form.
fn arrive(rule: &mut Rule, cost: u64, at_ms: u64) -> Value {
    let now_us = at_ms * 1_000;
    let Some(wait_us) = rule.wait_us(now_us, cost) else {
        rule.take(now_us, cost);
        return json!({ "left": rule.view(now_us).remaining });
    };
    let refusal = Refusal {
        rule: "golden".to_owned(),
        wait_us,
    };
    let moment = Moment {
        views: &[],
        places: None,
        clock_us: now_us,
        refusal: Some(&refusal),
    };
    let told = retry_after(RetryAfter::Seconds, Dialect::Ietf, &moment);
    json!({ "wait_ms": wait_us / 1_000, "told_s": told.and_then(|told| told.parse::<u64>().ok()) })
}

#[test]
fn each_algorithm_admits_as_many_as_the_vectors_say() {
    for vector in vectors("passes") {
        for algorithm in OURS {
            let Some(admitted) = vector["admitted"][algorithm].as_u64() else {
                continue;
            };
            let mut rule = rule(&vector, algorithm);
            let runs = vector["arrivals"].as_array().expect("runs");
            let instants = runs.iter().flat_map(|run| {
                let (from, every) = (number(run, "from_ms"), number(run, "every_ms"));
                (0..number(run, "times")).map(move |nth| from + nth * every)
            });

            let passed = instants.filter(|at_ms| arrive(&mut rule, 1, *at_ms)["left"].is_u64());

            assert_eq!(
                passed.count() as u64,
                admitted,
                "{}: {algorithm}",
                vector["name"]
            );
        }
    }
}

#[test]
fn each_algorithm_answers_each_arrival_as_the_vectors_say() {
    let mut judged = 0;
    for vector in vectors("answers") {
        let named = vector["algorithms"].as_array().expect("names");
        for algorithm in OURS {
            if !named.contains(&json!(algorithm)) {
                continue;
            }
            let mut rule = rule(&vector, algorithm);
            for (nth, arrival) in vector["arrivals"]
                .as_array()
                .expect("arrivals")
                .iter()
                .enumerate()
            {
                let answer = arrive(&mut rule, number(arrival, "cost"), number(arrival, "at_ms"));

                let at = format!("{}: {algorithm}, arrival {nth}", vector["name"]);
                assert_eq!(answer["left"], arrival["left"], "{at}");
                assert_eq!(answer["wait_ms"], arrival["wait_ms"], "{at}");
                if arrival["told_s"].is_u64() {
                    assert_eq!(answer["told_s"], arrival["told_s"], "{at}");
                }
            }
            judged += 1;
        }
    }

    assert_eq!(judged, 3, "the bucket twice, the quota once");
}
