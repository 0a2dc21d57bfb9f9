//! Credentials: asked for, kept in memory, and added to what is sent.

use serde_json::{Value, json};

use crate::kit::{World, api, job};

const SECRET: &str = "Bearer s3cret";

fn needy() -> Value {
    let mut api = api();
    api["credentials"] = json!(true);
    api
}

/// A host with tabs of one principal that answer when they are asked.
fn with_answering(tabs: &[u32]) -> World {
    let mut world = World::new();
    for tab in tabs {
        hello(&mut world, *tab, "ann", true);
    }
    world
}

fn hello(world: &mut World, tab: u32, principal: &str, answers: bool) {
    let message = json!({
        "type": "hello", "principal": principal, "budgets": [needy()], "credentials": answers,
    });
    world.tell(tab, message);
}

fn give(world: &mut World, tab: u32, headers: Value) -> f64 {
    let message = json!({ "type": "credentials", "budget": "api", "headers": headers });
    world.tell(tab, message)
}

fn asked(world: &World, tab: u32) -> usize {
    world.heard(tab, "credentials-wanted").len()
}

fn told(world: &World, tab: u32) -> Vec<String> {
    let events = world.heard(tab, "event").into_iter();
    let needed = events.filter(|event| event["name"] == "credentials-needed");
    needed
        .map(|event| {
            event["detail"]["wanted"]
                .as_str()
                .expect("a text")
                .to_owned()
        })
        .collect()
}

#[test]
fn a_tab_is_asked_once_and_its_answer_goes_with_every_request() {
    let mut world = with_answering(&[1, 2]);
    world.enqueue(1, "a");
    world.enqueue(1, "b");
    world.pass(1_000);
    assert!(world.sent.is_empty());
    assert_eq!((asked(&world, 1), asked(&world, 2)), (0, 1));

    let re = give(&mut world, 2, json!({ "Authorization": SECRET }));
    world.run();

    assert_eq!(world.reply(re)["type"], "ok");
    assert_eq!(world.names_sent(), ["a", "b"]);
    let secret = ("Authorization".to_owned(), SECRET.to_owned());
    assert!(
        world
            .sent
            .iter()
            .all(|sent| sent.secrets == [secret.clone()])
    );
    assert!(told(&world, 1).is_empty());
}

#[test]
fn a_tab_that_does_not_answer_costs_only_itself() {
    for answer in [
        json!(null),
        json!({ "not a name": "x" }),
        json!("no object"),
        json!(7),
    ] {
        let mut world = with_answering(&[1, 2]);
        world.enqueue(1, "a");
        give(&mut world, 2, answer);
        assert_eq!((asked(&world, 1), asked(&world, 2)), (1, 1));

        give(&mut world, 1, json!({ "Authorization": SECRET }));
        world.run();

        assert_eq!(world.names_sent(), ["a"]);
    }
}

#[test]
fn a_silent_tab_loses_its_turn_and_a_closed_one_too() {
    let mut world = with_answering(&[1, 2, 3]);
    world.enqueue(1, "a");
    assert_eq!(asked(&world, 3), 1);

    world.pass(29_999);
    assert_eq!(asked(&world, 2), 0);
    world.pass(1);
    assert_eq!(asked(&world, 2), 1);
    world.leave(2);
    assert_eq!(asked(&world, 1), 1);
    assert!(told(&world, 1).is_empty());
    world.pass(30_000);

    assert_eq!(told(&world, 1), ["missing"]);
    assert_eq!(world.timer(), None);
}

#[test]
fn credentials_that_have_expired_are_asked_for_and_fresh_ones_that_fail_are_not() {
    let mut world = with_answering(&[1]);
    world.enqueue(1, "a");
    give(&mut world, 1, json!({ "Authorization": "old" }));
    world.run();

    world.script("b", &[401, 401]);
    world.enqueue(1, "b");
    world.pass(1_000);
    world.answer_all();
    assert_eq!(asked(&world, 1), 2);
    assert!(told(&world, 1).is_empty());
    give(&mut world, 1, json!({ "Authorization": "bad" }));
    world.run();

    assert_eq!(asked(&world, 1), 2);
    assert_eq!(told(&world, 1), ["refused"]);
    assert_eq!(world.record("b").expect("stored").attempts_counted, 0);
    give(&mut world, 1, json!({ "Authorization": SECRET }));
    world.run();
    let last = world.sent.last().expect("sent");
    assert_eq!(
        last.secrets,
        [("Authorization".to_owned(), SECRET.to_owned())]
    );
    assert_eq!(world.heard(1, "settled").len(), 2);
}

#[test]
fn a_401_without_anybody_to_ask_is_told_and_a_newcomer_is_asked() {
    let mut world = World::with_tabs();
    world.script("a", &[401]);
    world.enqueue(1, "a");
    world.run();
    assert_eq!(told(&world, 1), ["missing"]);
    assert_eq!(told(&world, 2), ["missing"]);

    hello(&mut world, 3, "", true);
    assert_eq!(asked(&world, 3), 1);
    give(&mut world, 3, json!({ "Authorization": SECRET }));
    world.run();

    assert_eq!(world.names_sent(), ["a", "a"]);
}

#[test]
fn a_new_owner_asks_for_what_the_last_one_knew() {
    let mut world = with_answering(&[1]);
    world.enqueue(1, "a");
    world.crash();
    world.run();
    assert!(world.sent.is_empty());

    hello(&mut world, 1, "ann", true);
    give(&mut world, 1, json!({ "Authorization": SECRET }));
    world.run();

    assert_eq!(world.names_sent(), ["a"]);
}

#[test]
fn what_one_principal_gave_is_not_sent_for_another() {
    let mut world = with_answering(&[1]);
    world.enqueue(1, "a");
    give(&mut world, 1, json!({ "Authorization": SECRET }));
    world.run();

    hello(&mut world, 2, "bob", true);
    world.enqueue(2, "b");
    world.run();

    assert_eq!(world.names_sent(), ["a"]);
    assert_eq!((asked(&world, 1), asked(&world, 2)), (1, 1));
    let re = give(&mut world, 1, json!({ "Authorization": SECRET }));
    assert_eq!(world.reply(re)["code"], "bad-job");
    give(&mut world, 2, json!({ "Authorization": "bob's" }));
    world.run();
    assert_eq!(world.sent[1].secrets[0].1, "bob's");
}

#[test]
fn credentials_reach_no_record_and_no_message() {
    let mut world = with_answering(&[1]);
    world.tell(1, json!({ "type": "subscribe" }));
    world.tell(1, json!({ "type": "enqueue", "job": job("a") }));
    give(&mut world, 1, json!({ "Authorization": SECRET }));
    give(
        &mut world,
        1,
        json!({ "Authorization": format!("{SECRET}\n") }),
    );
    world.run();

    let stored = format!("{:?} {:?}", world.store.stored(), world.stored_requests());
    assert!(
        stored.contains("api.test/a") && !stored.contains("s3cret"),
        "{stored}"
    );
    let heard = world.heard_in_all();
    assert!(
        heard.contains("snapshot") && !heard.contains("s3cret"),
        "{heard}"
    );
    assert_eq!(world.names_sent(), ["a"]);
}

#[test]
fn credentials_of_an_unknown_budget_are_refused() {
    let mut world = with_answering(&[1]);

    let message = json!({ "type": "credentials", "budget": "other", "headers": { "a": "b" } });
    let re = world.tell(1, message);

    assert_eq!(world.reply(re)["code"], "unknown-budget");
}
