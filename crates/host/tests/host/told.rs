//! Functions of the app's worker that read answers.

use serde_json::{Value, json};

use crate::kit::World;

/// A host whose worker defines `mine`, with a budget that is read by it.
fn world() -> World {
    let mut world = World::with_tabs();
    let re = configure(&mut world, "worker:mine");
    assert_eq!(world.reply(re)["type"], "ok");
    let re = world.tell(1, json!({ "type": "enqueue", "job": { "id": "a", "url": "https://own.test/a", "method": "PUT" } }));
    assert_eq!(world.reply(re)["type"], "accepted");
    world
}

fn configure(world: &mut World, dialect: &str) -> f64 {
    let budget = json!({ "id": "own", "match": ["https://own.test/*"], "limits": ["100/1s"], "dialect": dialect });
    world.tell(1, json!({ "type": "configure", "budgets": [budget] }))
}

fn pauses(world: &World) -> Vec<Value> {
    let events = world.heard(1, "event").into_iter();
    let paused = events.filter(|event| event["name"] == "paused");
    paused.map(|event| event["detail"].clone()).collect()
}

fn warned(world: &World) -> Vec<String> {
    let errors = world.heard(1, "error").into_iter();
    errors
        .map(|error| error["field"].as_str().expect("a field").to_owned())
        .collect()
}

#[test]
fn a_name_that_the_worker_does_not_define_is_refused_with_those_that_are() {
    let mut world = World::with_tabs();

    let re = configure(&mut world, "worker:yours");

    let error = world.reply(re);
    assert_eq!(error["code"], "bad-job");
    assert_eq!(error["field"], "budgets[0].dialect");
    assert_eq!(error["expected"], "a function of the worker: mine");
    assert_eq!(error["got"], "worker:yours");
}

#[test]
fn a_request_names_the_function_and_wants_the_body_of_its_answer() {
    let world = world();

    assert_eq!(world.sent[0].dialect.as_deref(), Some("mine"));
    assert_eq!(world.sent[0].body, paceline_host::BodyNeed::All);
}

#[test]
fn a_function_pauses_a_budget_by_an_answer_that_says_it_was_served() {
    let mut world = world();
    let now = 1_700_000_000_000 + world.sent[0].at_ms;

    world.answer_told(
        0,
        200,
        json!({ "value": { "isRateLimited": true, "retryAfterMs": 5_000 } }),
    );

    let [paused] = &pauses(&world)[..] else {
        panic!("one pause")
    };
    assert_eq!(paused["isEstimate"], false);
    let until = paused["until"].as_u64().expect("an instant");
    assert!((now + 5_000..=now + 6_000).contains(&until), "{until}");
    assert_eq!(warned(&world), [""; 0]);
}

#[test]
fn what_a_function_says_wrongly_is_told_once_and_costs_nothing_else() {
    let mut world = world();

    world.answer_told(
        0,
        429,
        json!({ "value": { "retryAfterMs": -1, "cost": "much" } }),
    );
    world.pass(20_000);
    world.answer_told(1, 200, json!({ "value": { "retryAfterMs": -1 } }));

    assert_eq!(
        warned(&world),
        ["dialects.mine.cost", "dialects.mine.retryAfterMs"]
    );
    assert_eq!(
        pauses(&world)[0]["isEstimate"],
        true,
        "a guess, as without a word"
    );
    assert_eq!(
        world.record("a").expect("stored").state,
        paceline_core::job::State::Done
    );
}

#[test]
fn a_function_that_fails_leaves_the_status_and_its_job_alone() {
    let mut world = world();

    world.answer_told(0, 200, json!({ "fault": "it threw: no quota" }));

    assert_eq!(warned(&world), ["dialects.mine"]);
    assert_eq!(
        world.record("a").expect("stored").state,
        paceline_core::job::State::Done
    );
    assert!(pauses(&world).is_empty());
}

#[test]
fn what_could_not_be_read_is_counted_for_the_servers_owner() {
    let mut world = world();
    world.answer_told(0, 200, json!({ "value": { "remaining": 3 } }));

    let re = world.tell(1, json!({ "type": "diagnose", "budget": "own" }));

    let told = &world.reply(re)["diagnosis"];
    assert_eq!(told["unreadable"], 1);
    assert_eq!(told["dialects"], json!(["worker"]));
    let findings = told["findings"].as_array().expect("findings");
    let unreadable = findings
        .iter()
        .find(|finding| finding["code"] == "unreadable");
    let message = unreadable.expect("a finding")["message"].as_str();
    assert!(message.expect("words").contains("the app's own worker"));
}
