use serde_json::{Value, json};

use super::*;

fn parsed(value: &Value) -> (Told, Vec<String>) {
    let message = json!({ "value": value });
    let message: ToldMessage = serde_json::from_value(message).expect("any plain value");
    let (told, errors) = message.parse("mine");
    assert!(errors.iter().all(|error| error.expected.is_some()));
    let fields = errors.into_iter().filter_map(|error| error.field);
    (told, fields.collect())
}

#[test]
fn reads_the_whole_normal_form() {
    let (told, wrong) = parsed(&json!({
        "isRateLimited": true, "retryAfterMs": 1500.2, "cost": 3, "concurrency": 4, "retryable": false, "estimated": true,
        "budgets": [{ "scope": "search", "limit": 30, "remaining": 12.9, "resetInMs": 8000, "windowMs": 60000 }, {}],
    }));

    let search = BudgetSignal {
        scope: Some("search".to_owned()),
        limit: Some(30),
        remaining: Some(12),
        reset_in_ms: Some(8_000),
        window_ms: Some(60_000),
    };
    let expected = Told {
        is_rate_limited: Some(true),
        retry_after_ms: Some(1_501),
        budgets: vec![search, BudgetSignal::default()],
        cost: Some(3),
        concurrency: Some(4),
        is_retryable: Some(false),
        is_estimate: true,
        unreadable: 0,
    };
    assert_eq!(told, expected);
    assert_eq!(wrong, [""; 0]);
}

#[test]
fn nothing_and_fields_of_nothing_say_nothing() {
    for value in [
        json!(null),
        json!({}),
        json!({ "retryAfterMs": null, "budgets": null, "isRateLimited": null }),
    ] {
        assert_eq!(parsed(&value), (Told::default(), Vec::new()));
    }
}

#[test]
fn what_is_not_as_expected_is_absent_and_named() {
    let huge = 9.1e15;
    let many: Vec<Value> = vec![json!({ "limit": 1 }); 17];
    let cases = [
        (json!("soon"), "dialects.mine"),
        (json!(7), "dialects.mine"),
        (json!([]), "dialects.mine"),
        (json!({ "isRateLimited": 1 }), "dialects.mine.isRateLimited"),
        (json!({ "retryAfterMs": -1 }), "dialects.mine.retryAfterMs"),
        (
            json!({ "retryAfterMs": huge }),
            "dialects.mine.retryAfterMs",
        ),
        (
            json!({ "retryAfterMs": MAX_WAIT_MS + 1 }),
            "dialects.mine.retryAfterMs",
        ),
        (
            json!({ "retryAfterMs": "NaN" }),
            "dialects.mine.retryAfterMs",
        ),
        (json!({ "retryAfterMs": {} }), "dialects.mine.retryAfterMs"),
        (json!({ "cost": 5e9 }), "dialects.mine.cost"),
        (json!({ "concurrency": 0 }), "dialects.mine.concurrency"),
        (json!({ "retryable": "yes" }), "dialects.mine.retryable"),
        (
            json!({ "retry_after_ms": 5 }),
            "dialects.mine.retry_after_ms",
        ),
        (json!({ "budgets": {} }), "dialects.mine.budgets"),
        (json!({ "budgets": many }), "dialects.mine.budgets"),
        (json!({ "budgets": [7] }), "dialects.mine.budgets[0]"),
        (
            json!({ "budgets": [{ "remaining": -3 }] }),
            "dialects.mine.budgets[0].remaining",
        ),
        (
            json!({ "budgets": [{ "limit": 1e13 }] }),
            "dialects.mine.budgets[0].limit",
        ),
        (
            json!({ "budgets": [{ "windowMs": 0 }] }),
            "dialects.mine.budgets[0].windowMs",
        ),
        (
            json!({ "budgets": [{ "resetInMs": [] }] }),
            "dialects.mine.budgets[0].resetInMs",
        ),
        (
            json!({ "budgets": [{ "scope": "x".repeat(101) }] }),
            "dialects.mine.budgets[0].scope",
        ),
        (
            json!({ "budgets": [{ "left": 3 }] }),
            "dialects.mine.budgets[0].left",
        ),
    ];
    for (value, field) in cases {
        let (mut told, wrong) = parsed(&value);

        assert_eq!(wrong, [field], "{value}");
        assert_eq!(told.unreadable, 1);
        told.unreadable = 0;
        told.budgets
            .retain(|budget| *budget != BudgetSignal::default());
        assert_eq!(told, Told::default(), "{value}");
    }
}

#[test]
fn no_number_of_javascript_is_a_wait_by_accident() {
    for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.5, 1e300] {
        let fields = BTreeMap::from([("retryAfterMs".to_owned(), Loose::Number(number))]);
        let value = Loose::Fields(fields);

        let (told, errors) = ToldMessage { value, fault: None }.parse("mine");

        assert_eq!(told.retry_after_ms, None, "{number}");
        assert_eq!(errors.len(), 1);
    }
}

#[test]
fn one_bad_field_costs_no_other() {
    let (told, wrong) = parsed(&json!({ "retryAfterMs": 2000, "cost": -1 }));

    assert_eq!(told.retry_after_ms, Some(2_000));
    assert_eq!(wrong, ["dialects.mine.cost"]);
}

#[test]
fn a_fault_is_told_with_its_words() {
    let fault = json!({ "fault": "it threw: no such field" });
    let message: ToldMessage = serde_json::from_value(fault).expect("a fault");

    let (told, errors) = message.parse("mine");

    assert_eq!(
        told,
        Told {
            unreadable: 1,
            ..Told::default()
        }
    );
    assert_eq!(errors[0].got.as_deref(), Some("it threw: no such field"));
}
