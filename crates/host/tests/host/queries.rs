//! `jobs`: what is known of jobs, with their stored requests.

use serde_json::{Value, json};

use crate::kit::{World, job, job_with};

fn query(world: &mut World, filter: Value) -> Value {
    let re = world.tell(1, json!({ "type": "jobs", "filter": filter }));
    world.reply(re).clone()
}

fn ids(reply: &Value) -> Vec<&str> {
    let jobs = reply["jobs"].as_array().expect("jobs");
    jobs.iter()
        .map(|job| job["id"].as_str().expect("a name"))
        .collect()
}

fn held(names: &[&str]) -> World {
    let mut world = World::with_tabs();
    world.tell(1, json!({ "type": "hold" }));
    for name in names {
        world.enqueue(1, name);
    }
    world
}

#[test]
fn jobs_are_told_with_their_requests() {
    let mut world = held(&["a", "b"]);

    let reply = query(&mut world, json!({}));

    assert_eq!(ids(&reply), ["a", "b"]);
    assert_eq!(reply["jobs"][1]["url"], "https://api.test/b");
    assert_eq!(reply["jobs"][1]["cause"], "held");
    assert_eq!(reply["next"], Value::Null);
}

#[test]
fn jobs_are_told_with_their_requests_also_after_a_restart() {
    let mut world = held(&["a", "b"]);
    world.crash();
    world.hello(1);

    let reply = query(&mut world, json!({}));

    assert_eq!(ids(&reply), ["a", "b"]);
    assert_eq!(reply["jobs"][0]["url"], "https://api.test/a");
    assert_eq!(reply["jobs"][1]["url"], "https://api.test/b");
}

#[test]
fn pages_follow_each_other_by_next() {
    let mut world = held(&["a", "b", "c", "d", "e"]);
    world.crash();
    world.hello(1);
    let mut pages = Vec::new();
    let mut after = Value::Null;

    loop {
        let reply = query(&mut world, json!({ "limit": 2, "after": after }));
        pages.push(ids(&reply).join(""));
        after = reply["next"].clone();
        if after.is_null() {
            break;
        }
    }

    assert_eq!(pages, ["ab", "cd", "e"]);
}

#[test]
fn each_field_of_a_filter_narrows() {
    let mut world = held(&["a"]);
    let keyed = job_with("b", json!({ "key": "k", "lane": "background" }));
    world.tell(1, json!({ "type": "enqueue", "job": keyed }));
    world.tell(
        1,
        json!({ "type": "enqueue-many", "group": "g", "jobs": [job("c")] }),
    );

    let filters = [
        (json!({ "id": "a" }), "a"),
        (json!({ "key": "k" }), "b"),
        (json!({ "lane": "background" }), "b"),
        (json!({ "group": "g" }), "c"),
        (json!({ "state": "queued" }), "abc"),
        (json!({ "state": "done" }), ""),
        (json!({ "id": "a", "key": "k" }), ""),
        (json!({ "group": "unknown" }), ""),
    ];

    for (filter, expected) in filters {
        let reply = query(&mut world, filter.clone());
        assert_eq!(ids(&reply).join(""), expected, "{filter}");
    }
}

#[test]
fn a_failed_job_is_told_with_its_failure() {
    let mut world = World::with_tabs();
    world.script("a", &[404]);
    world.enqueue(1, "a");
    world.run();

    let reply = query(&mut world, json!({ "state": "failed" }));

    assert_eq!(
        reply["jobs"][0]["failure"],
        json!({ "code": "http", "status": 404 })
    );
    assert_eq!(reply["jobs"][0]["attempts"], 1);
    assert!(reply["jobs"][0]["settledAt"].is_u64());
}

#[test]
fn queries_are_answered_in_their_order_while_the_store_is_slow() {
    let mut world = held(&["a", "b"]);
    world.crash();
    world.hello(1);
    world.slow_disk();
    let first = world.tell(1, json!({ "type": "jobs", "filter": { "id": "a" } }));
    let second = world.tell(2, json!({ "type": "jobs", "filter": { "id": "b" } }));
    assert!(!world.is_answered(first));

    world.fast_disk();

    assert_eq!(world.reply(first)["jobs"][0]["url"], "https://api.test/a");
    assert_eq!(world.reply(second)["jobs"][0]["url"], "https://api.test/b");
}
