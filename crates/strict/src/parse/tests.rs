//! Good scenarios keep what they say; bad ones are named by their field.

use serde_json::json;

use super::*;
use crate::scenario::{CountAt, Dialect, RetryAfter};

fn field(scenario: &Value) -> String {
    Scenario::parse(scenario).expect_err("a bad scenario").field
}

#[test]
fn every_field_of_a_whole_scenario_is_taken() {
    let scenario = Scenario::parse(&json!({
        "limits": [{ "limit": 10, "window_ms": 1000, "algorithm": "sliding-log" }], "max_in_flight": null,
        "dialect": "github", "retry_after": "date", "latency_ms": [20, 120], "count_at": "answer",
        "idempotency": false, "expose_headers": false, "cors_on_refusals": false, "clock_skew_ms": -5, "outside_per_s": 0.5,
        "cost": { "POST": 5 }, "count_refused": true, "preflight": "counted", "seed": 9,
        "faults": [{ "nth": 3, "kind": "status", "status": 503 }, { "rate": 0.5, "seed": 2, "kind": "hang" }] }))
    .expect("a scenario");

    assert_eq!(scenario.limits[0].name, "10/1000ms");
    assert_eq!(
        (scenario.dialect, scenario.count_at),
        (Dialect::Github, CountAt::Answer)
    );
    assert_eq!(scenario.retry_after(), RetryAfter::Date);
    assert_eq!(
        (scenario.latency_ms, scenario.clock_skew_ms),
        ([20, 120], -5)
    );
    assert_eq!(
        (scenario.cost_of("POST"), scenario.cost_of("PATCH")),
        (5, 1)
    );
    assert_eq!(scenario.faults[0].status, 503);
    assert_eq!(scenario.faults[1].when, When::Rate { rate: 0.5, seed: 2 });
}

#[test]
fn what_is_shown_of_a_scenario_parses_to_the_same() {
    let scenario = Scenario::parse(&json!({
        "limits": [{ "limit": 4, "window_ms": 9, "algorithm": "token-bucket", "refill_per_s": 2 }],
        "faults": [{ "every": 2, "kind": "truncate", "on": "accepted", "apply": false }] }));

    let scenario = scenario.expect("a scenario");

    assert_eq!(Scenario::parse(&json!(scenario)), Ok(scenario));
}

#[test]
fn a_patch_changes_given_fields_only() {
    let first = Scenario::parse(&json!({ "seed": 4, "dialect": "stripe" })).expect("a scenario");

    let next = first
        .patched(&json!({ "dialect": "none" }))
        .expect("a patch");

    assert_eq!((next.seed, next.dialect), (4, Dialect::None));
}

#[test]
fn equal_limits_get_names_apart() {
    let limit = json!({ "limit": 1, "window_ms": 1 });
    let scenario = Scenario::parse(&json!({ "limits": [limit, limit] })).expect("a scenario");

    assert_ne!(scenario.limits[0].name, scenario.limits[1].name);
}

#[test]
fn a_bad_value_is_named_by_its_path() {
    let cases = [
        (json!([]), "(the whole scenario)"),
        (json!({ "limit": 1 }), "limit"),
        (json!({ "limits": 5 }), "limits"),
        (json!({ "limits": [{ "window_ms": 1 }] }), "limits[0].limit"),
        (
            json!({ "limits": [{ "limit": 0, "window_ms": 1 }] }),
            "limits[0].limit",
        ),
        (
            json!({ "limits": [{ "limit": 1, "window_ms": 1.5 }] }),
            "limits[0].window_ms",
        ),
        (
            json!({ "limits": [{ "limit": 1, "window_ms": 1, "algorithm": "gcra" }] }),
            "limits[0].algorithm",
        ),
        (
            json!({ "limits": [{ "limit": 1, "window_ms": 1, "burst": 2 }] }),
            "limits[0].burst",
        ),
        (
            json!({ "limits": [{ "limit": 1, "window_ms": 1, "refill_per_s": 0 }] }),
            "limits[0].refill_per_s",
        ),
        (json!({ "max_in_flight": 0 }), "max_in_flight"),
        (json!({ "dialect": "gitlab" }), "dialect"),
        (json!({ "retry_after": 5 }), "retry_after"),
        (json!({ "latency_ms": [20] }), "latency_ms"),
        (json!({ "latency_ms": [20, 10] }), "latency_ms"),
        (json!({ "latency_ms": [-1, 10] }), "latency_ms[0]"),
        (json!({ "count_at": "end" }), "count_at"),
        (json!({ "idempotency": "yes" }), "idempotency"),
        (json!({ "clock_skew_ms": 1e18 }), "clock_skew_ms"),
        (json!({ "outside_per_s": -1 }), "outside_per_s"),
        (json!({ "cost": { "post": 5 } }), "cost.post"),
        (json!({ "cost": { "POST": -5 } }), "cost.POST"),
        (json!({ "faults": [{ "nth": 1 }] }), "faults[0].kind"),
        (json!({ "faults": [{ "kind": "hang" }] }), "faults[0]"),
        (
            json!({ "faults": [{ "kind": "hang", "nth": 1, "every": 2 }] }),
            "faults[0]",
        ),
        (
            json!({ "faults": [{ "kind": "hang", "nth": 0 }] }),
            "faults[0].nth",
        ),
        (
            json!({ "faults": [{ "kind": "hang", "rate": 1.5 }] }),
            "faults[0].rate",
        ),
        (
            json!({ "faults": [{ "kind": "status", "nth": 1 }] }),
            "faults[0].status",
        ),
        (
            json!({ "faults": [{ "kind": "hang", "nth": 1, "status": 500 }] }),
            "faults[0].status",
        ),
        (
            json!({ "faults": [{ "kind": "hang", "nth": 1, "seed": 1 }] }),
            "faults[0].seed",
        ),
    ];
    for (scenario, expected) in cases {
        assert_eq!(field(&scenario), expected, "{scenario}");
    }
}

#[test]
fn an_error_says_what_was_expected_and_what_was_there() {
    let bad = Scenario::parse(&json!({ "count_at": "end" })).expect_err("a bad scenario");

    assert_eq!(
        bad.to_string(),
        "field count_at: expected one of arrival, middle, answer, got \"end\""
    );
}

#[test]
fn a_huge_wrong_value_is_shown_short() {
    let bad =
        Scenario::parse(&json!({ "dialect": "x".repeat(5_000) })).expect_err("a bad scenario");

    assert!(bad.got.len() <= 80);
}
