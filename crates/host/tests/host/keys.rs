//! Idempotency keys: that a repeat is recognised as one.

use paceline_core::io::NoAnswer;
use serde_json::{Value, json};

use crate::kit::{Sent, World, api, job, job_with};

fn create(name: &str) -> Value {
    job_with(name, json!({ "method": "POST" }))
}

fn key_of(sent: &Sent) -> &str {
    let mut headers = sent.headers.iter();
    let header = headers.find(|(name, _)| name == "Idempotency-Key");
    header.map_or("", |(_, key)| key.as_str())
}

fn keys_sent(world: &World) -> Vec<&str> {
    world.sent.iter().map(key_of).collect()
}

#[test]
fn a_key_goes_in_the_header_of_its_budget() {
    let mut world = World::with_tabs();

    world.enqueue(1, "a");

    assert_eq!(keys_sent(&world), ["key-a"]);
}

#[test]
fn a_budget_without_a_header_for_keys_sends_none() {
    let mut world = World::with_tabs();
    let mut keyless = api();
    keyless["idempotency"] = Value::Null;
    world.tell(1, json!({ "type": "configure", "budgets": [keyless] }));

    world.enqueue(1, "a");

    assert!(world.sent[0].headers.is_empty());
}

#[test]
fn the_same_key_goes_after_a_crash() {
    let mut world = World::with_tabs();
    world.tell(1, json!({ "type": "enqueue", "job": create("a") }));

    world.crash();
    world.hello(1);
    world.run();

    assert_eq!(keys_sent(&world), ["key-a", "key-a"]);
    assert_eq!(world.record("a").unwrap().attempts_counted, 0);
}

#[test]
fn a_write_without_a_key_is_not_repeated_after_a_crash() {
    let mut world = World::with_tabs();
    let job = job_with("a", json!({ "method": "POST", "idempotencyKey": null }));
    world.tell(1, json!({ "type": "enqueue", "job": job }));

    world.crash();
    world.hello(1);
    world.run();

    assert_eq!(world.sent.len(), 1);
    let re = world.enqueue(1, "a");
    assert_eq!(world.reply(re)["job"]["code"], "outcome-unknown");
}

#[test]
fn a_conflict_on_a_repeat_with_a_key_is_tried_again() {
    let mut world = World::with_tabs();
    world.script("a", &[502, 409, 200]);
    world.tell(1, json!({ "type": "enqueue", "job": create("a") }));

    world.run();

    assert_eq!(keys_sent(&world), ["key-a"; 3]);
    assert_eq!(world.heard(1, "settled")[0]["job"]["state"], "done");
}

#[test]
fn a_conflict_on_the_first_attempt_is_final() {
    let mut world = World::with_tabs();
    world.script("a", &[409]);
    world.tell(1, json!({ "type": "enqueue", "job": create("a") }));

    world.run();

    assert_eq!(world.heard(1, "settled")[0]["job"]["code"], "http");
}

#[test]
fn a_conflict_after_a_crash_is_tried_again() {
    let mut world = World::with_tabs();
    world.tell(1, json!({ "type": "enqueue", "job": create("a") }));
    world.crash();
    world.hello(1);
    world.script("a", &[409, 200]);
    world.enqueue(1, "a");

    world.run();

    assert_eq!(world.heard(1, "settled")[0]["job"]["state"], "done");
}

#[test]
fn a_key_that_was_used_for_something_else_fails_as_such() {
    let mut world = World::with_tabs();
    world.script("a", &[502, 422]);
    world.tell(1, json!({ "type": "enqueue", "job": create("a") }));

    world.run();

    assert_eq!(world.heard(1, "settled")[0]["job"]["code"], "key-reused");
}

#[test]
fn an_answer_after_a_refusal_is_that_of_a_first_attempt() {
    let mut world = World::with_tabs();
    world.script("invalid", &[429, 422]);
    world.script("conflict", &[429, 409]);

    world.tell(1, json!({ "type": "enqueue", "job": create("invalid") }));
    world.run();
    world.tell(1, json!({ "type": "enqueue", "job": create("conflict") }));
    world.run();

    let codes: Vec<&Value> = world
        .heard(1, "settled")
        .iter()
        .map(|post| &post["job"]["code"])
        .collect();
    assert_eq!(codes, ["http", "http"]);
}

#[test]
fn a_retry_with_a_new_key_is_a_first_attempt() {
    let mut world = World::with_tabs();
    world.script("a", &[400, 409]);
    world.tell(1, json!({ "type": "enqueue", "job": create("a") }));
    world.run();

    world.tell(1, json!({ "type": "retry", "jobs": ["a"] }));
    world.run();

    assert_eq!(keys_sent(&world), ["key-a", "key-a.1"]);
    let told = world.heard(1, "settled");
    assert_eq!(
        (&told[1]["job"]["code"], &told[1]["job"]["status"]),
        (&json!("http"), &json!(409))
    );
}

#[test]
fn a_request_that_never_left_is_sent_again_under_its_key() {
    let mut world = World::with_tabs();
    world.enqueue(1, "a");

    world.lose(0, NoAnswer::NeverLeft);
    world.run();

    assert_eq!(keys_sent(&world), ["key-a", "key-a"]);
    assert_eq!(world.heard(1, "settled")[0]["job"]["state"], "done");
}

#[test]
fn an_unknown_outcome_needs_force() {
    let mut world = World::with_tabs();
    let job = job_with("a", json!({ "method": "POST", "idempotencyKey": null }));
    world.tell(1, json!({ "type": "enqueue", "job": job }));
    world.lose(0, NoAnswer::TimedOut);

    let careful = world.tell(1, json!({ "type": "retry", "jobs": ["a"] }));
    let forced = world.tell(1, json!({ "type": "retry", "jobs": ["a"], "force": true }));
    world.run();

    assert_eq!(world.reply(careful)["needsForce"], 1);
    assert_eq!(world.reply(forced)["retried"], 1);
    assert_eq!(world.heard(1, "settled")[1]["job"]["state"], "done");
}

#[test]
fn jobs_of_one_key_go_one_after_the_other() {
    let mut world = World::with_tabs();
    for name in ["a", "b"] {
        let job = job_with(name, json!({ "key": "contact:42" }));
        world.tell(1, json!({ "type": "enqueue", "job": job }));
    }
    world.tell(1, json!({ "type": "enqueue", "job": job("c") }));

    assert_eq!(world.names_sent(), ["a", "c"]);
    world.answer(0, 200, &[]);

    assert_eq!(world.names_sent(), ["a", "c", "b"]);
}

#[test]
fn a_key_that_no_header_carries_makes_nothing_repeatable() {
    let mut world = World::with_tabs();
    let mut keyless = api();
    keyless["idempotency"] = Value::Null;
    world.tell(1, json!({ "type": "configure", "budgets": [keyless] }));
    world.script("a", &[502]);

    world.tell(1, json!({ "type": "enqueue", "job": create("a") }));
    world.run();

    assert_eq!(world.sent.len(), 1);
    assert_eq!(
        world.heard(1, "settled")[0]["job"]["code"],
        "outcome-unknown"
    );
}

#[test]
fn a_write_is_repeated_only_while_the_server_remembers_its_key() {
    for (waited_ms, attempts) in [(500, 2), (1_500, 1)] {
        let mut world = World::with_tabs();
        let mut short = api();
        short["idempotency"]["ttlMs"] = json!(1_000);
        world.tell(1, json!({ "type": "configure", "budgets": [short] }));
        world.tell(1, json!({ "type": "enqueue", "job": create("a") }));

        world.pass(waited_ms);
        world.lose(0, NoAnswer::Network);
        world.run();

        assert_eq!(world.sent.len(), attempts, "after {waited_ms} ms");
    }
}
