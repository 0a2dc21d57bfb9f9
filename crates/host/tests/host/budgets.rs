//! Which budget a job spends.

use paceline_core::job::State;
use paceline_host::BodyNeed;
use serde_json::{Value, json};

use crate::kit::{World, api, job_with};

fn budget_of(world: &World, name: &str) -> String {
    let stored = world.store.stored();
    let mut cards = stored.batches.iter().flat_map(|(_, cards)| cards);
    let card = cards.find(|card| card.id.as_str() == name);
    card.expect("stored").budget.as_str().to_owned()
}

fn enqueue(world: &mut World, name: &str, fields: Value) -> f64 {
    world.tell(
        1,
        json!({ "type": "enqueue", "job": job_with(name, fields) }),
    )
}

#[test]
fn a_url_that_nobody_declared_spends_the_budget_of_its_origin() {
    let mut world = World::with_tabs();

    for n in 0..8 {
        let name = format!("j{n}");
        enqueue(
            &mut world,
            &name,
            json!({ "url": format!("https://other.test:8443/{name}") }),
        );
    }

    assert_eq!(budget_of(&world, "j0"), "origin:https://other.test:8443");
    assert_eq!(world.sent.len(), 2, "two in flight");
    world.answer_all();
    assert_eq!(world.sent.len(), 5, "five a second");
}

#[test]
fn the_longest_pattern_that_matches_wins() {
    let mut world = World::with_tabs();
    let narrow = json!({ "id": "narrow", "match": ["https://api.test/search/*"] });
    let wide = json!({ "id": "wide", "match": ["*"] });
    world.tell(1, json!({ "type": "configure", "budgets": [wide, narrow] }));

    enqueue(
        &mut world,
        "a",
        json!({ "url": "https://api.test/search/x" }),
    );
    enqueue(&mut world, "b", json!({ "url": "https://api.test/x" }));
    enqueue(&mut world, "c", json!({ "url": "https://other.test/x" }));

    assert_eq!(budget_of(&world, "a"), "narrow");
    assert_eq!(budget_of(&world, "b"), "api");
    assert_eq!(budget_of(&world, "c"), "wide");
}

#[test]
fn a_job_may_name_its_budget() {
    let mut world = World::with_tabs();

    enqueue(
        &mut world,
        "a",
        json!({ "url": "https://other.test/x", "budget": "api" }),
    );

    assert_eq!(budget_of(&world, "a"), "api");
}

#[test]
fn a_declared_budget_with_the_name_of_an_origin_keeps_its_limits() {
    let mut world = World::new();
    let own = json!({ "id": "origin:https://api.test", "limits": ["50/1s"], "match": ["https://api.test/*"] });
    world.tell(1, json!({ "type": "hello", "budgets": [own] }));

    for n in 0..20 {
        enqueue(&mut world, &format!("j{n}"), json!({}));
    }

    assert_eq!(world.sent.len(), 20);
}

#[test]
fn the_same_budgets_again_change_nothing_and_are_not_told() {
    let mut world = World::with_tabs();

    let same = world.tell(2, json!({ "type": "configure", "budgets": [api()] }));
    assert_eq!(changes_told(&world), 0);
    let mut other = api();
    other["limits"] = json!(["7/1s"]);
    let changed = world.tell(2, json!({ "type": "configure", "budgets": [other] }));

    assert_eq!(changes_told(&world), 1);
    assert_eq!(world.reply(same)["type"], "ok");
    assert_eq!(world.reply(changed)["type"], "ok");
}

fn changes_told(world: &World) -> usize {
    let events = world.heard(1, "event");
    let changes = events
        .iter()
        .filter(|post| post["name"] == "config-changed");
    changes.count()
}

#[test]
fn a_changed_limit_keeps_what_was_consumed() {
    let mut world = World::with_tabs();
    let mut small = api();
    small["limits"] = json!(["3/10s"]);
    world.tell(1, json!({ "type": "configure", "budgets": [small] }));
    for n in 0..3 {
        enqueue(&mut world, &format!("a{n}"), json!({}));
    }
    world.answer_all();

    let mut larger = api();
    larger["limits"] = json!(["5/10s"]);
    world.tell(1, json!({ "type": "configure", "budgets": [larger] }));
    for n in 0..9 {
        enqueue(&mut world, &format!("b{n}"), json!({}));
    }

    assert_eq!(world.sent.len(), 5);
}

#[test]
fn a_refusal_pauses_the_budget_and_every_tab_is_told() {
    let mut world = World::with_tabs();
    enqueue(&mut world, "a", json!({}));

    world.answer(0, 429, &[("Retry-After", "30")]);
    enqueue(&mut world, "b", json!({}));
    world.pass(29_000);

    assert_eq!(world.sent.len(), 1);
    for tab in [1, 2] {
        let names: Vec<&str> = world
            .heard(tab, "event")
            .iter()
            .filter_map(|post| post["name"].as_str())
            .filter(|name| *name != "config-changed")
            .collect();
        assert_eq!(names, ["refused", "paused"]);
    }
    world.run();
    assert_eq!(world.names_sent(), ["a", "a", "b"]);
}

#[test]
fn a_held_budget_starts_nothing_until_it_is_resumed() {
    let mut world = World::with_tabs();
    let hold = world.tell(1, json!({ "type": "hold", "budget": "api" }));
    enqueue(&mut world, "a", json!({}));
    world.pass(60_000);
    assert!(world.sent.is_empty());

    let resume = world.tell(2, json!({ "type": "resume", "budget": "api" }));

    assert_eq!(world.reply(hold)["type"], "ok");
    assert_eq!(world.reply(resume)["type"], "ok");
    assert_eq!(world.sent.len(), 1);
}

#[test]
fn a_hold_is_still_there_after_a_crash() {
    let mut world = World::with_tabs();
    world.tell(1, json!({ "type": "hold" }));
    enqueue(&mut world, "a", json!({}));

    world.crash();
    world.hello(1);
    world.pass(60_000);

    assert!(world.sent.is_empty());
    let re = world.tell(1, json!({ "type": "snapshot" }));
    assert_eq!(world.reply(re)["snapshot"]["held"], json!(["user"]));
}

#[test]
fn a_pause_passes_while_the_machine_sleeps() {
    let mut world = World::with_tabs();
    enqueue(&mut world, "a", json!({}));
    world.answer(0, 429, &[("retry-after", "600")]);

    world.freeze(601_000);
    enqueue(&mut world, "b", json!({}));
    world.pass(2_000);

    assert_eq!(world.names_sent(), ["a", "a", "b"]);
}

/// How long the budget of a host, whose clock is three minutes fast, waits after a refusal that says "in twenty seconds".
fn wait_under_a_fast_clock(headers: &[(&str, &str)]) -> u64 {
    let mut world = World::with_tabs();
    enqueue(&mut world, "a", json!({}));
    world.answer(0, 429, headers);
    world.run();
    world.sent[1].at_ms
}

#[test]
fn a_wait_is_the_servers_whatever_our_clock_says() {
    // The host's clock shows 22:13:20.
    let date = ("Date", "Tue, 14 Nov 2023 22:10:20 GMT");
    let until = ("Retry-After", "Tue, 14 Nov 2023 22:10:40 GMT");
    let seconds = ("Retry-After", "20");

    for headers in [&[seconds][..], &[date, seconds], &[date, until]] {
        let wait = wait_under_a_fast_clock(headers);
        assert!((20_000..=21_001).contains(&wait), "{headers:?}: {wait}");
    }
    // Without the server's clock the instant seems to have passed.
    let wait = wait_under_a_fast_clock(&[until]);
    assert!((1_000..=2_001).contains(&wait), "{wait}");
}

#[test]
fn a_parent_that_nobody_declared_is_refused_by_its_field() {
    let mut world = World::with_tabs();
    let child = |parent: &str| json!({ "id": "child", "parent": parent });
    let budgets = json!([{ "id": "other" }, child("nowhere")]);

    let re = world.tell(1, json!({ "type": "configure", "budgets": budgets }));

    let reply = world.reply(re);
    assert_eq!(reply["code"], "bad-job");
    assert_eq!(reply["field"], "budgets[1].parent");
}

#[test]
fn no_budget_is_its_own_ancestor() {
    let mut world = World::with_tabs();
    let budgets = json!([{ "id": "a", "parent": "b" }, { "id": "b", "parent": "a" }]);

    let re = world.tell(1, json!({ "type": "configure", "budgets": budgets }));

    assert_eq!(world.reply(re)["field"], "budgets[0].parent");
}

#[test]
fn a_parent_counts_what_all_under_it_send() {
    let mut world = World::with_tabs();
    let budgets = json!([
        { "id": "all", "limits": ["3/1s"] },
        { "id": "a", "parent": "all", "match": ["https://a.test/*"] },
        { "id": "b", "parent": "all", "match": ["https://b.test/*"] },
    ]);
    world.tell(1, json!({ "type": "configure", "budgets": budgets }));

    for n in 0..4 {
        let host = ["a", "b"][n % 2];
        let url = format!("https://{host}.test/{n}");
        enqueue(&mut world, &format!("j{n}"), json!({ "url": url }));
    }

    assert_eq!(world.sent.len(), 3);
}

#[test]
fn a_budget_weighs_requests_that_name_no_cost() {
    let mut world = World::with_tabs();
    let costs = json!([{ "method": "POST", "path": "/heavy/*", "cost": 4 }]);
    let budget =
        json!({ "id": "w", "limits": ["5/10s"], "match": ["https://w.test/*"], "costs": costs });
    world.tell(1, json!({ "type": "configure", "budgets": [budget] }));
    let job = |path: &str| json!({ "url": format!("https://w.test/{path}"), "method": "POST" });

    enqueue(&mut world, "a", job("heavy/1"));
    enqueue(&mut world, "b", job("light"));
    enqueue(&mut world, "c", job("light"));

    assert_eq!(world.names_sent(), ["1", "light"]);
}

#[test]
fn a_limit_counts_only_the_requests_that_it_names() {
    let mut world = World::with_tabs();
    let writes = json!({ "limit": 1, "window": "10s", "counts": { "methods": ["POST"] } });
    let budget = json!({ "id": "w", "limits": ["5/10s", writes], "match": ["https://w.test/*"] });
    world.tell(1, json!({ "type": "configure", "budgets": [budget] }));
    let job = |path: &str, method: &str| json!({ "url": format!("https://w.test/{path}"), "method": method });

    enqueue(&mut world, "a", job("a", "POST"));
    enqueue(&mut world, "b", job("b", "POST"));
    enqueue(&mut world, "c", job("c", "PUT"));

    assert_eq!(world.names_sent(), ["a", "c"]);
    let re = world.tell(1, json!({ "type": "jobs", "filter": { "id": "b" } }));
    let waiting = &world.reply(re)["jobs"][0];
    assert_eq!(
        (&waiting["budget"], &waiting["cause"]),
        (&json!("w"), &json!("rate"))
    );
    // Nothing is counted any more: what waits goes on.
    let budget = json!({ "id": "w", "limits": ["5/10s"], "match": ["https://w.test/*"] });
    world.tell(1, json!({ "type": "configure", "budgets": [budget] }));
    assert_eq!(world.names_sent(), ["a", "c", "b"]);
}

/// The state of a job whose first answer is 418, by a budget with these fields.
fn state_after_a_418(fields: Value) -> State {
    let mut world = World::with_tabs();
    let mut budget = json!({ "id": "other", "match": ["https://other.test/*"] });
    for (name, value) in fields.as_object().expect("fields") {
        budget[name] = value.clone();
    }
    world.tell(1, json!({ "type": "configure", "budgets": [budget] }));
    enqueue(&mut world, "a", json!({ "url": "https://other.test/x" }));

    world.answer(0, 418, &[("retry-after", "5")]);

    world.record("a").expect("stored").state
}

#[test]
fn an_answer_is_read_in_the_dialect_of_its_budget() {
    let named = state_after_a_418(json!({ "dialect": "binance" }));
    let by_preset =
        state_after_a_418(json!({ "preset": "binance", "match": ["https://other.test/*"] }));
    let unnamed = state_after_a_418(json!({}));

    assert_eq!((named, by_preset), (State::Queued, State::Queued));
    assert_eq!(unnamed, State::Failed);
}

#[test]
fn the_transport_hears_of_which_answers_the_body_is_wanted() {
    let mut world = World::with_tabs();
    let budget = json!({ "id": "other", "match": ["https://other.test/*"], "dialect": "kraken" });
    world.tell(1, json!({ "type": "configure", "budgets": [budget] }));

    enqueue(&mut world, "a", json!({ "url": "https://other.test/x" }));
    enqueue(&mut world, "b", json!({ "url": "https://api.test/x" }));

    assert_eq!(world.sent[0].body, BodyNeed::All);
    assert_eq!(world.sent[1].body, BodyNeed::GraphQl);
}

#[test]
fn an_answer_is_read_in_the_dialect_that_an_app_declares() {
    let mut world = World::with_tabs();
    let dialect =
        json!({ "remaining": "X-Left", "reset": { "header": "X-Open-In", "kind": "delta-ms" } });
    let budget = json!({ "id": "own", "match": ["https://own.test/*"], "limits": ["9/1s"], "dialect": dialect });
    world.tell(1, json!({ "type": "configure", "budgets": [budget] }));
    enqueue(&mut world, "a", json!({ "url": "https://own.test/a" }));
    world.answer(0, 200, &[("x-left", "0"), ("x-open-in", "2500")]);

    enqueue(&mut world, "b", json!({ "url": "https://own.test/b" }));
    let before = world.names_sent().len();
    world.pass(2_600);

    assert_eq!((before, world.names_sent().len()), (1, 2));
}
