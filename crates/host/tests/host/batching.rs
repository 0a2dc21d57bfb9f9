//! Jobs that go as items of one request: what leaves, what each asker hears, and what a crash makes of it.

use paceline_core::job::{Reason, State};
use paceline_host::{ItemResult, Items};
use serde_json::{Value, json};

use crate::kit::{World, api, job_with};

fn batches() -> Value {
    json!({ "contacts": { "url": "https://api.test/batch", "max": 3, "results": "results", "cost": 2 } })
}

fn world() -> World {
    let mut world = World::new();
    world.hello(1);
    world.hello(2);
    let mut budget = api();
    budget["batches"] = batches();
    budget["statuses"] = json!({ "404": "done" });
    let re = world.tell(1, json!({ "type": "configure", "budgets": [budget] }));
    assert_eq!(world.reply(re)["type"], "ok");
    world.tell(1, json!({ "type": "hold" }));
    world
}

fn item(name: &str) -> Value {
    job_with(name, json!({ "batch": "contacts" }))
}

fn enqueue(world: &mut World, tab: u32, name: &str) -> f64 {
    world.tell(tab, json!({ "type": "enqueue", "job": item(name) }))
}

fn resume(world: &mut World) {
    world.tell(1, json!({ "type": "resume" }));
}

fn said(status: u16) -> Option<ItemResult<Value>> {
    Some(ItemResult {
        status,
        text: (status >= 400).then(|| "no such contact".to_owned()),
        response: json!({ "status": status, "of": "item" }),
    })
}

fn owners(request: &Value) -> Vec<&str> {
    let items = request["body"]["items"].as_array().expect("items");
    let owners = items.iter().map(|item| item["owner"].as_str());
    owners.map(|owner| owner.expect("an owner")).collect()
}

fn ended(world: &World, name: &str) -> (State, Option<Reason>) {
    let record = world.record(name).expect("a record");
    (
        record.state,
        record.outcome.and_then(|outcome| outcome.reason),
    )
}

#[test]
fn jobs_of_a_batch_leave_as_one_request_under_a_key_of_its_own() {
    let mut world = world();
    for name in ["a", "b", "c", "d"] {
        enqueue(&mut world, 1, name);
    }

    resume(&mut world);

    assert_eq!(world.sent.len(), 2);
    assert_eq!(world.sent[0].request["url"], "https://api.test/batch");
    assert_eq!(owners(&world.sent[0].request), ["a", "b", "c"]);
    assert_eq!(owners(&world.sent[1].request), ["d"]);
    let (name, key) = world.sent[0].headers[0].clone();
    assert_eq!(name, "Idempotency-Key");
    assert!(key.starts_with("key-a."), "{key}");
}

#[test]
fn each_asker_hears_of_its_own_item() {
    let mut world = world();
    for (tab, name) in [(1, "a"), (2, "b"), (2, "c")] {
        enqueue(&mut world, tab, name);
    }
    resume(&mut world);

    world.answer_items(0, Items::Each(vec![said(200), said(422), said(404)]));

    let of = |tab: u32, name: &str| {
        let settled = world.heard(tab, "settled").into_iter();
        let mut own = settled.filter(|settled| settled["job"]["id"] == name);
        own.next().cloned().expect("settled")
    };
    assert_eq!(
        of(1, "a")["response"],
        json!({ "status": 200, "of": "item" })
    );
    let refused = of(2, "b");
    assert_eq!(
        (&refused["job"]["code"], &refused["job"]["status"]),
        (&json!("http"), &json!(422))
    );
    assert_eq!(refused["job"]["text"], "no such contact");
    // The budget says that a contact which is not there is as good as done.
    assert_eq!(of(2, "c")["job"]["state"], "done");
}

#[test]
fn an_endpoint_without_results_has_one_answer_for_all() {
    let mut world = world();
    enqueue(&mut world, 1, "a");
    enqueue(&mut world, 2, "b");
    resume(&mut world);

    world.answer_items(0, Items::Shared);

    for tab in [1, 2] {
        let settled = world.heard(tab, "settled");
        assert_eq!(settled[0]["job"]["state"], "done");
        assert_eq!(settled[0]["response"]["whole"], true);
    }
}

#[test]
fn an_answer_that_cannot_be_read_leaves_the_outcome_open() {
    let mut world = world();
    for name in ["a", "b"] {
        enqueue(&mut world, 1, name);
    }
    resume(&mut world);

    world.answer_items(0, Items::Unreadable);
    enqueue(&mut world, 1, "c");
    world.pass(60_000);

    assert_eq!(world.sent.len(), 3);
    let repeat = &world
        .sent
        .iter()
        .find(|sent| sent.attempt == 2)
        .expect("a repeat");
    assert_eq!(repeat.request, world.sent[0].request);
    assert_eq!(repeat.headers, world.sent[0].headers);
}

#[test]
fn results_that_are_too_few_leave_the_others_open() {
    let mut world = world();
    for name in ["a", "b"] {
        enqueue(&mut world, 1, name);
    }
    resume(&mut world);

    world.answer_items(0, Items::Each(vec![said(200)]));
    world.pass(60_000);

    assert_eq!(ended(&world, "a"), (State::Done, None));
    assert_eq!(owners(&world.sent[1].request), ["b"]);
}

#[test]
fn a_batch_survives_a_crash_between_claim_and_answer() {
    let mut world = world();
    for name in ["a", "b", "c"] {
        enqueue(&mut world, 1, name);
    }
    resume(&mut world);
    let first = world.sent[0].clone();

    world.crash();
    world.hello(1);
    let mut budget = api();
    budget["batches"] = batches();
    world.tell(1, json!({ "type": "configure", "budgets": [budget] }));
    world.run();

    assert_eq!(world.sent.len(), 2);
    assert_eq!(world.sent[1].request, first.request);
    assert_eq!(world.sent[1].headers, first.headers);
    assert_eq!(ended(&world, "c"), (State::Done, None));
}

#[test]
fn items_that_are_not_in_the_store_fail_alone() {
    let mut world = world();
    for name in ["a", "b"] {
        enqueue(&mut world, 1, name);
    }
    world.crash();
    world.lose_requests();
    world.hello(1);
    let mut budget = api();
    budget["batches"] = batches();
    world.tell(1, json!({ "type": "configure", "budgets": [budget] }));
    enqueue(&mut world, 1, "c");

    resume(&mut world);
    world.run();

    for name in ["a", "b"] {
        assert_eq!(ended(&world, name), (State::Failed, Some(Reason::Storage)));
    }
    assert_eq!(ended(&world, "c"), (State::Done, None));
}

#[test]
fn a_batch_costs_what_its_budget_says() {
    let mut world = world();
    enqueue(&mut world, 1, "a");

    assert_eq!(world.record("a").map(|record| record.state), None);
    let cards = world.stored_cards();
    assert_eq!(cards[0].cost, 2);
    assert_eq!(cards[0].likeness, None);
}

#[test]
fn what_is_no_item_of_a_declared_batch_is_refused_with_its_field() {
    let mut world = world();
    for (fields, field) in [
        (json!({ "batch": "deals" }), "job.batch"),
        (json!({ "batch": "" }), "job.batch"),
        (json!({ "batch": "contacts", "method": "GET" }), "job.batch"),
        (json!({ "batch": "contacts", "cost": 3 }), "job.cost"),
    ] {
        let re = world.tell(
            1,
            json!({ "type": "enqueue", "job": job_with("x", fields) }),
        );

        assert_eq!(world.reply(re)["code"], "bad-job");
        assert_eq!(world.reply(re)["field"], field);
    }
}
