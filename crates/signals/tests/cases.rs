//! What real servers send, and what it has to be read as: all cases of `fixtures/headers.json`.

#![allow(clippy::unwrap_used, reason = "a test")]

mod kit;

use paceline_signals::Dialect;
use serde_json::Value;

const CASES: &str = include_str!("fixtures/headers.json");

/// Cases that are held to be wrong, and why. They are read all the same, and this list fails when one of them passes.
const WRONG: [(&str, &str); 0] = [];

/// Resets in whole seconds may come out up to a second longer, and fractions may be rounded up.
const TOLERANCE_MS: u64 = 1_000;

#[test]
fn each_case_is_read_by_its_shape_alone() {
    check(|_| Dialect::auto());
}

#[test]
fn each_case_is_read_by_the_dialect_of_its_provider() {
    check(kit::dialect_of);
}

fn check(dialect: impl Fn(&Value) -> Dialect) {
    let cases: Vec<Value> = serde_json::from_str(CASES).unwrap();
    let mut failures = Vec::new();
    for case in &cases {
        let id = case["id"].as_str().unwrap();
        let got = kit::normal_form(case, dialect(case));
        let wrong = mistakes(case, &got);
        let is_listed = WRONG.iter().any(|(listed, _)| *listed == id);
        if wrong.is_empty() == is_listed {
            failures.push(format!("{id}: {}", wrong.join("; ")));
        }
    }

    assert!(cases.len() >= 154, "{} cases", cases.len());
    assert!(
        failures.is_empty(),
        "{} of {}:\n{}",
        failures.len(),
        cases.len(),
        failures.join("\n")
    );
}

fn mistakes(case: &Value, got: &Value) -> Vec<String> {
    let expect = case["expect"].as_object().unwrap();
    let keys = expect
        .keys()
        .filter(|key| !["note", "alt", "budgets"].contains(&key.as_str()));
    let mut mistakes: Vec<String> = keys
        .filter(|key| {
            let mut allowed = vec![&expect[*key]];
            allowed.extend(case["expect"]["alt"][*key].as_array().into_iter().flatten());
            let is_epoch = *key == "retry_after_ms" || *key == "reset_in_ms";
            !allowed
                .iter()
                .any(|allowed| fits(allowed, &got[*key], is_epoch))
        })
        .map(|key| format!("{key} is {}, not {}", got[key], expect[key]))
        .collect();
    if let Some(budgets) = expect.get("budgets").and_then(Value::as_array) {
        let all = got["budgets"].as_array().unwrap();
        let is_same = budgets.len() == all.len()
            && budgets
                .iter()
                .zip(all)
                .all(|(one, other)| same_budget(one, other));
        if !is_same {
            mistakes.push(format!(
                "budgets are {}, not {}",
                got["budgets"], expect["budgets"]
            ));
        }
    }
    mistakes
}

fn same_budget(expected: &Value, got: &Value) -> bool {
    let expected = expected.as_object().unwrap();
    expected
        .iter()
        .all(|(key, value)| fits(value, &got[key], key == "reset_in_ms"))
}

fn fits(expected: &Value, got: &Value, is_wait: bool) -> bool {
    match (expected.as_u64(), got.as_u64()) {
        (Some(expected), Some(got)) if is_wait => {
            (expected..=expected + TOLERANCE_MS).contains(&got)
        }
        _ => expected == got,
    }
}
