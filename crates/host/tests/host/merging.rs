//! Requests that go together: what leaves, who hears of it, and what a crash makes of it.

use paceline_core::job::State;
use paceline_core::scheduler::Bounds;
use serde_json::{Value, json};

use crate::kit::{World, job_with};

fn edit(name: &str, body: Value) -> Value {
    let url = "https://api.test/contacts/42";
    job_with(
        name,
        json!({ "url": url, "key": "contact:42", "body": body }),
    )
}

fn enqueue(world: &mut World, tab: u32, job: Value) -> f64 {
    world.tell(tab, json!({ "type": "enqueue", "job": job }))
}

fn hold(world: &mut World) {
    world.tell(1, json!({ "type": "hold" }));
}

fn resume(world: &mut World) {
    world.tell(1, json!({ "type": "resume" }));
}

#[test]
fn patches_while_held_leave_as_one_request_with_the_last_values() {
    let mut world = World::with_tabs();
    hold(&mut world);
    enqueue(
        &mut world,
        1,
        edit("p0", json!({ "name": "A", "city": "B" })),
    );
    enqueue(&mut world, 2, edit("p1", json!({ "name": "C" })));
    enqueue(
        &mut world,
        1,
        edit("p2", json!({ "phone": "1", "name": "D" })),
    );

    resume(&mut world);
    world.run();

    assert_eq!(world.sent.len(), 1);
    let expected = json!({ "name": "D", "city": "B", "phone": "1" });
    assert_eq!(world.sent[0].request["body"], expected);
    let key = ("Idempotency-Key".to_owned(), "key-p0".to_owned());
    assert_eq!(world.sent[0].headers, [key]);
}

#[test]
fn every_asker_of_what_went_together_gets_the_one_response() {
    let mut world = World::with_tabs();
    hold(&mut world);
    enqueue(&mut world, 1, edit("p0", json!({ "a": 1 })));
    enqueue(&mut world, 2, edit("p1", json!({ "b": 2 })));

    resume(&mut world);
    world.run();

    for (tab, name) in [(1, "p0"), (2, "p1")] {
        let settled = world.heard(tab, "settled");
        assert_eq!(settled.len(), 1);
        assert_eq!(settled[0]["job"]["id"], name);
        assert_eq!(settled[0]["job"]["state"], "done");
        assert_eq!(settled[0]["job"]["attempts"], 1);
        assert_eq!(settled[0]["response"]["status"], 200);
    }
}

#[test]
fn a_job_that_asks_to_go_alone_does() {
    let mut world = World::with_tabs();
    hold(&mut world);
    let alone = |name| {
        let mut job = edit(name, json!({ "a": 1 }));
        job["merge"] = json!(false);
        job
    };
    enqueue(&mut world, 1, alone("p0"));
    enqueue(&mut world, 1, alone("p1"));

    resume(&mut world);
    world.run();

    assert_eq!(world.sent.len(), 2);
}

#[test]
fn differing_headers_keep_requests_apart_and_their_order_does_not() {
    let with_headers = |name: &str, headers: Value| {
        let mut job = edit(name, json!({ "a": name }));
        job["headers"] = headers;
        job
    };
    let mut world = World::with_tabs();
    hold(&mut world);
    enqueue(
        &mut world,
        1,
        with_headers("p0", json!({ "X-A": "1", "y": "2" })),
    );
    enqueue(
        &mut world,
        1,
        with_headers("p1", json!({ "y": "2", "x-a": "1" })),
    );
    enqueue(
        &mut world,
        1,
        with_headers("p2", json!({ "x-a": "2", "y": "2" })),
    );

    resume(&mut world);
    world.run();

    let bodies: Vec<&Value> = world
        .sent
        .iter()
        .map(|sent| &sent.request["body"]["a"])
        .collect();
    assert_eq!(bodies, ["p1", "p2"]);
}

#[test]
fn merged_values_survive_a_crash_between_claim_and_answer() {
    let mut world = World::with_tabs();
    hold(&mut world);
    enqueue(&mut world, 1, edit("p0", json!({ "a": 1 })));
    enqueue(&mut world, 1, edit("p1", json!({ "b": 2 })));
    resume(&mut world);
    let first = world.sent[0].request.clone();

    world.crash();
    world.hello(1);
    world.run();

    assert_eq!(world.sent.len(), 2);
    assert_eq!(world.sent[1].request, first);
    assert_eq!(
        world.record("p1").map(|record| record.state),
        Some(State::Done)
    );
}

#[test]
fn what_the_host_no_longer_has_at_hand_is_read_with_the_claim() {
    let mut world = World::with_tabs();
    hold(&mut world);
    for n in 0..4 {
        enqueue(
            &mut world,
            1,
            edit(&format!("p{n}"), json!({ format!("f{n}"): n })),
        );
    }
    world.crash();
    world.hello(1);

    resume(&mut world);
    world.run();

    assert_eq!(world.sent.len(), 1);
    let expected = json!({ "f0": 0, "f1": 1, "f2": 2, "f3": 3 });
    assert_eq!(world.sent[0].request["body"], expected);
}

#[test]
fn the_last_replacement_is_sent_with_the_name_of_the_first() {
    let replace = |name: &str, body: Value| {
        let mut job = edit(name, body);
        job["method"] = json!("PUT");
        job
    };
    let mut world = World::with_tabs();
    hold(&mut world);
    enqueue(&mut world, 1, replace("r0", json!({ "a": 1, "b": 1 })));
    enqueue(&mut world, 1, replace("r1", json!({ "a": 2 })));

    resume(&mut world);
    world.run();

    assert_eq!(world.sent.len(), 1);
    assert_eq!(world.sent[0].request["body"], json!({ "a": 2 }));
}

#[test]
fn identical_reads_are_sent_once_and_answered_twice() {
    let read = |name: &str, hash: u64| {
        let url = "https://api.test/contacts";
        json!({ "id": name, "url": url, "method": "GET", "bodyHash": hash })
    };
    let mut world = World::with_tabs();
    hold(&mut world);
    enqueue(&mut world, 1, read("a", 0));
    enqueue(&mut world, 2, read("b", 0));
    enqueue(&mut world, 2, read("c", 1));

    resume(&mut world);
    world.run();

    assert_eq!(world.sent.len(), 2);
    assert_eq!(world.heard(2, "settled").len(), 2);
    assert_eq!(world.heard(2, "settled")[0]["response"]["status"], 200);
}

#[test]
fn a_merged_job_is_found_and_names_what_carries_it() {
    let mut world = World::with_tabs();
    hold(&mut world);
    enqueue(&mut world, 1, edit("p0", json!({ "a": 1 })));
    enqueue(&mut world, 1, edit("p1", json!({ "b": 2 })));

    let one = world.tell(1, json!({ "type": "jobs", "filter": { "id": "p1" } }));
    let all = world.tell(1, json!({ "type": "jobs" }));

    assert_eq!(world.reply(one)["jobs"][0]["mergedInto"], "p0");
    let all = world.reply(all)["jobs"].as_array().expect("jobs").clone();
    assert_eq!(all.len(), 1);
    assert_eq!(
        (&all[0]["id"], &all[0]["coalesced"]),
        (&json!("p0"), &json!(1))
    );
}

#[test]
fn merged_jobs_count_against_the_bound_of_the_queue() {
    let mut world = World::bounded(Bounds {
        max_jobs: 3,
        ..Bounds::default()
    });
    world.hello(1);
    hold(&mut world);
    for n in 0..3 {
        enqueue(&mut world, 1, edit(&format!("p{n}"), json!({ "a": n })));
    }

    let refused = enqueue(&mut world, 1, edit("p3", json!({ "a": 3 })));

    assert_eq!(world.reply(refused)["code"], "queue-full");
}

#[test]
fn a_hash_that_no_browser_makes_is_refused() {
    let mut world = World::with_tabs();
    for hash in [json!(-1), json!(0.5), json!(9_007_199_254_740_992_u64)] {
        let mut job = edit("p0", json!({}));
        job["bodyHash"] = hash;

        let re = enqueue(&mut world, 1, job);

        assert_eq!(world.reply(re)["field"], "job.bodyHash");
    }
}

#[test]
fn a_creation_and_its_removal_end_as_cancelled_out_and_nothing_leaves() {
    let mut world = World::with_tabs();
    hold(&mut world);
    let of = |name: &str, method: &str| {
        let mut job = edit(name, json!({ "a": 1 }));
        job["method"] = json!(method);
        job
    };
    enqueue(&mut world, 1, of("made", "POST"));
    enqueue(&mut world, 2, of("gone", "DELETE"));

    resume(&mut world);
    world.run();

    assert!(world.sent.is_empty());
    for tab in [1, 2] {
        let settled = world.heard(tab, "settled");
        assert_eq!(settled[0]["job"]["state"], "cancelled");
        assert_eq!(settled[0]["job"]["code"], "cancelled-out");
    }
}

#[test]
fn only_a_removal_supersedes() {
    let mut world = World::with_tabs();
    let mut job = edit("p0", json!({}));
    job["supersede"] = json!(true);

    let re = enqueue(&mut world, 1, job);

    assert_eq!(world.reply(re)["field"], "job.supersede");
}

#[test]
fn an_unknown_word_for_what_a_failure_does_is_refused() {
    let mut world = World::with_tabs();
    let mut job = edit("p0", json!({}));
    job["onFailure"] = json!("explode");

    let re = enqueue(&mut world, 1, job);

    assert_eq!(world.reply(re)["field"], "job.onFailure");
}

#[test]
fn waiting_jobs_take_another_lane() {
    let mut world = World::with_tabs();
    hold(&mut world);
    enqueue(&mut world, 1, job_with("a", json!({ "lane": "bulk" })));
    enqueue(&mut world, 1, job_with("b", json!({ "lane": "bulk" })));

    let re = world.tell(
        1,
        json!({ "type": "prioritise", "jobs": ["b"], "lane": "interactive" }),
    );
    resume(&mut world);
    world.run();

    let reply = world.reply(re);
    assert_eq!(
        (&reply["moved"], &reply["alreadySent"]),
        (&json!(1), &json!(0))
    );
    assert_eq!(world.names_sent(), ["b", "a"]);
}
