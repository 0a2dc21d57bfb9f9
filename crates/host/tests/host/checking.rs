//! Checks: sent in the place of a request whose outcome is not known, and told by what they found.

use paceline_core::io::{Found, NoAnswer};
use serde_json::{Value, json};

use crate::kit::{World, api, job_with};

/// A host whose API honours no keys.
fn world() -> World {
    let mut world = World::new();
    let mut keyless = api();
    keyless["idempotency"] = Value::Null;
    world.tell(1, json!({ "type": "hello", "budgets": [keyless] }));
    world
}

fn create(name: &str) -> Value {
    job_with(
        name,
        json!({
            "method": "POST",
            "timeoutMs": 1_000,
            "check": { "url": format!("https://api.test/{name}?ref=1"), "exists": { "status": [200] }, "afterMs": 500 },
        }),
    )
}

fn hand_in(world: &mut World, job: &Value) {
    world.tell(1, json!({ "type": "enqueue", "job": job }));
}

fn checks(world: &World) -> Vec<bool> {
    world.sent.iter().map(|sent| sent.is_check).collect()
}

#[test]
fn what_its_check_found_is_told_with_the_checks_answer() {
    let mut world = world();
    hand_in(&mut world, &create("a"));
    world.lose(0, NoAnswer::TimedOut);
    world.pass(1_499);
    assert_eq!(checks(&world), [false]);

    world.pass(1);
    world.answer_check(1, 200, Found::Applied);

    let told = world.heard(1, "settled").remove(0);
    assert_eq!(told["job"]["state"], "done");
    assert_eq!(told["job"]["byCheck"], true);
    assert_eq!(told["response"], json!({ "status": 200 }));
    world.run();
    assert_eq!(world.sent.len(), 2);
}

#[test]
fn what_was_not_applied_is_sent_again_and_told_as_usual() {
    let mut world = world();
    hand_in(&mut world, &create("a"));
    world.lose(0, NoAnswer::TimedOut);
    world.pass(2_000);
    world.answer_check(1, 404, Found::NotApplied);
    world.answer(2, 201, &[]);

    assert_eq!(checks(&world), [false, true, false]);
    let told = world.heard(1, "settled").remove(0);
    assert_eq!(
        (&told["job"]["status"], told["job"].get("byCheck")),
        (&json!(201), None)
    );
    assert_eq!(told["response"], json!({ "status": 201 }));
}

#[test]
fn a_check_that_does_not_tell_gives_no_answer_of_its_own() {
    let mut world = world();
    hand_in(&mut world, &create("a"));
    world.lose(0, NoAnswer::TimedOut);
    world.pass(2_000);

    world.answer_check(1, 403, Found::Unclear);

    let told = world.heard(1, "settled").remove(0);
    assert_eq!(told["job"]["code"], "outcome-unknown");
    assert_eq!(
        (told["job"].get("status"), told.get("response")),
        (None, None)
    );
    assert!(
        told["job"]["text"]
            .as_str()
            .is_some_and(|text| text.contains("403"))
    );
}

#[test]
fn a_refused_check_is_a_refusal_whatever_was_found() {
    let mut world = world();
    hand_in(&mut world, &create("a"));
    world.lose(0, NoAnswer::TimedOut);
    world.pass(2_000);

    world.answer_check(1, 429, Found::Unclear);
    world.pass(120_000);
    world.answer_check(2, 200, Found::Applied);

    assert_eq!(world.heard(1, "settled").remove(0)["job"]["state"], "done");
}

#[test]
fn the_next_host_checks_what_was_on_its_way() {
    let mut world = world();
    hand_in(&mut world, &create("a"));

    world.crash();
    let mut keyless = api();
    keyless["idempotency"] = Value::Null;
    world.tell(1, json!({ "type": "hello", "budgets": [keyless] }));
    world.pass(10_000);

    assert_eq!(checks(&world), [false, true]);
}
