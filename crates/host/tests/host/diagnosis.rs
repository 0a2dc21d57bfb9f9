//! `diagnose`: what a server's owner is told.

use paceline_core::io::NoAnswer;
use serde_json::{Value, json};

use super::kit::World;

/// A host with a budget whose jobs carry a key.
fn world() -> World {
    let mut world = World::with_tabs();
    let budget = json!({
        "id": "other", "match": ["https://other.test/*"], "dialect": "github", "idempotency": { "header": "Idempotency-Key" },
    });
    world.tell(1, json!({ "type": "configure", "budgets": [budget] }));
    world
}

fn send(world: &mut World, name: &str, key: Option<&str>) {
    let url = format!("https://other.test/{name}");
    let job = json!({ "id": name, "url": url, "method": "POST", "repeatable": true, "idempotencyKey": key });
    world.tell(1, json!({ "type": "enqueue", "job": job }));
}

fn diagnosis(world: &mut World) -> Value {
    let re = world.tell(1, json!({ "type": "diagnose", "budget": "other" }));
    world.reply(re)["diagnosis"].clone()
}

fn codes(diagnosis: &Value) -> Vec<&str> {
    let findings = diagnosis["findings"].as_array().expect("findings").iter();
    findings
        .map(|finding| finding["code"].as_str().expect("a code"))
        .collect()
}

#[test]
fn says_that_nothing_was_seen() {
    assert_eq!(codes(&diagnosis(&mut world())), ["nothing-seen"]);
}

#[test]
fn names_the_headers_that_a_page_cannot_read() {
    let mut world = world();
    send(&mut world, "a", Some("k"));
    world.answer(0, 429, &[("content-type", "application/json")]);

    let told = diagnosis(&mut world);

    assert_eq!(codes(&told), ["headers-hidden", "wait-hidden"]);
    assert_eq!(told["statuses"], json!({ "429": 1 }));
    let message = told["findings"][0]["message"].as_str().expect("words");
    assert!(
        message.contains("Access-Control-Expose-Headers: Retry-After, Date, X-RateLimit-Limit"),
        "{message}"
    );
    assert!(
        told["findings"][0]["headers"]
            .as_array()
            .expect("names")
            .contains(&json!("X-RateLimit-Reset"))
    );
}

#[test]
fn finds_nothing_where_all_can_be_read() {
    let mut world = world();
    send(&mut world, "a", Some("k"));
    let headers = [
        ("date", "x"),
        ("x-ratelimit-limit", "60"),
        ("x-ratelimit-remaining", "59"),
        ("x-ratelimit-reset", "1700000060"),
    ];
    world.answer(0, 200, &headers);

    let told = diagnosis(&mut world);

    assert_eq!(told["dialects"], json!(["github"]));
    assert_eq!(told["visible"].as_array().expect("names").len(), 4);
    assert_eq!(
        codes(&told),
        ["unreadable"],
        "the date alone cannot be read"
    );
}

#[test]
fn tells_a_key_that_no_preflight_allows() {
    let mut world = world();
    send(&mut world, "plain", None);
    world.answer(0, 200, &[("date", "Tue, 14 Nov 2023 22:13:20 GMT")]);
    send(&mut world, "keyed", Some("k"));
    world.lose(1, NoAnswer::Network);

    let told = diagnosis(&mut world);

    assert_eq!(codes(&told), ["key-not-allowed"]);
    assert_eq!(told["findings"][0]["headers"], json!(["Idempotency-Key"]));
    assert_eq!((&told["answers"], &told["lost"]), (&json!(1), &json!(1)));
}

#[test]
fn tells_answers_that_were_lost_beside_those_that_came() {
    let mut world = world();
    send(&mut world, "a", Some("k"));
    world.answer(0, 200, &[("date", "Tue, 14 Nov 2023 22:13:20 GMT")]);
    send(&mut world, "b", Some("l"));
    world.lose(1, NoAnswer::Network);

    assert_eq!(codes(&diagnosis(&mut world)), ["answers-hidden"]);
}

#[test]
fn an_unknown_budget_is_an_error_that_names_it() {
    let mut world = world();

    let re = world.tell(1, json!({ "type": "diagnose", "budget": "nobody's" }));

    assert_eq!(world.reply(re)["code"], "unknown-budget");
    assert_eq!(world.reply(re)["field"], "budget");
}
