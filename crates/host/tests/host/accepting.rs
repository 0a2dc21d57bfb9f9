//! What is told of jobs that are handed in.

use serde_json::json;

use crate::kit::{World, api, job, job_with};

#[test]
fn a_job_is_accepted_only_after_the_store_has_it() {
    let mut world = World::with_tabs();
    world.slow_disk();

    let re = world.enqueue(1, "a");

    assert!(!world.is_answered(re));
    world.disk_answers();
    let reply = world.reply(re);
    assert_eq!(reply["type"], "accepted");
    assert_eq!(reply["job"], json!({ "id": "a", "state": "queued" }));
    assert_eq!(world.stored_names(), ["a"]);
}

#[test]
fn a_host_that_dies_before_the_commit_has_accepted_nothing() {
    let mut world = World::with_tabs();
    world.slow_disk();
    let re = world.enqueue(1, "a");

    world.crash();

    assert!(!world.is_answered(re));
    assert!(world.stored_names().is_empty());
}

#[test]
fn many_jobs_are_accepted_by_one_answer_that_names_their_group() {
    let mut world = World::with_tabs();

    let re = world.tell(
        1,
        json!({ "type": "enqueue-many", "group": "g", "jobs": [job("a"), job("b")] }),
    );

    let reply = world.reply(re);
    assert_eq!((&reply["group"], &reply["total"]), (&json!("g"), &json!(2)));
    assert_eq!(reply.get("known"), None);
    assert_eq!(world.stored_names(), ["a", "b"]);
}

#[test]
fn a_job_without_a_name_gets_one() {
    let mut world = World::with_tabs();
    let nameless = json!({ "url": "https://api.test/x" });

    let first = world.tell(1, json!({ "type": "enqueue", "job": nameless }));
    let second = world.tell(1, json!({ "type": "enqueue", "job": nameless }));

    let name = |re| world.reply(re)["job"]["id"].as_str().unwrap().to_owned();
    assert!(!name(first).is_empty());
    assert_ne!(name(first), name(second));
}

#[test]
fn a_resent_enqueue_of_a_settled_job_answers_its_state() {
    let mut world = World::with_tabs();
    world.script("good", &[200]);
    world.script("bad", &[404]);
    world.enqueue(1, "good");
    world.enqueue(1, "bad");
    world.run();

    let good = world.enqueue(2, "good");
    let bad = world.enqueue(2, "bad");
    world.run();

    let done = json!({ "id": "good", "state": "done", "status": 200 });
    assert_eq!(world.reply(good)["job"], done);
    let failed = json!({ "id": "bad", "state": "failed", "code": "http", "status": 404 });
    assert_eq!(world.reply(bad)["job"], failed);
    assert_eq!(world.sent.len(), 2);
    assert!(world.heard(2, "settled").is_empty());
}

#[test]
fn a_resent_bulk_whose_jobs_have_all_settled_is_told_so_at_once() {
    let mut world = World::with_tabs();
    let bulk = json!({ "type": "enqueue-many", "group": "g", "jobs": [job("a"), job("b")] });
    world.script("b", &[404]);
    world.tell(1, bulk.clone());
    world.run();

    let re = world.tell(2, bulk);

    assert_eq!(world.reply(re)["known"].as_array().unwrap().len(), 2);
    let settled = world.heard(2, "group-settled");
    assert_eq!(settled.len(), 1);
    assert_eq!(settled[0]["done"], 1);
    assert_eq!(settled[0]["failed"], 1);
}

#[test]
fn a_resent_bulk_is_told_that_it_has_settled_after_its_records_were_cleaned_up() {
    let mut world = World::with_tabs();
    let bulk = json!({ "type": "enqueue-many", "group": "g", "jobs": [job("a"), job("b")] });
    world.tell(1, bulk.clone());
    world.run();
    world.pass(2 * 3_600_000);
    world.enqueue(1, "later");
    world.run();
    assert_eq!(world.stored_names(), ["later"]);

    world.tell(2, bulk);

    let settled = world.heard(2, "group-settled");
    assert_eq!(settled.len(), 1);
    assert_eq!(settled[0]["done"], 2);
    assert_eq!(world.sent.len(), 3);
}

#[test]
fn an_empty_bulk_settles_at_once() {
    let mut world = World::with_tabs();

    let re = world.tell(
        1,
        json!({ "type": "enqueue-many", "group": "g", "jobs": [] }),
    );

    assert_eq!(world.reply(re)["total"], 0);
    assert_eq!(world.heard(1, "group-settled").len(), 1);
}

#[test]
fn a_resend_after_a_crash_is_the_same_job_and_is_asked_for_again() {
    let mut world = World::with_tabs();
    world.enqueue(1, "a");
    world.crash();
    world.hello(1);

    world.enqueue(1, "a");
    world.run();

    assert_eq!(world.stored_names(), ["a"]);
    assert_eq!(world.heard(1, "settled").len(), 1);
}

#[test]
fn a_refused_bulk_leaves_no_group_behind() {
    let mut world = World::with_tabs();
    let full = paceline_store::StoreError::Full("test".into());
    world
        .store
        .fail_next(paceline_store::memory::Operation::Commit, full);
    let bulk = json!({ "type": "enqueue-many", "group": "g", "jobs": [job("a"), job("b")] });

    let refused = world.tell(1, bulk.clone());
    let re = world.tell(1, json!({ "type": "snapshot" }));
    world.tell(2, bulk);
    world.run();

    assert_eq!(world.reply(refused)["code"], "storage-full");
    assert_eq!(world.reply(re)["snapshot"]["byGroup"], json!({}));
    assert!(world.heard(1, "group-settled").is_empty());
    assert_eq!(world.heard(2, "group-settled").len(), 1);
}

#[test]
fn hello_is_welcomed_with_who_hosts_and_for_how_long() {
    let mut world = World::new();

    let re = world.tell(7, json!({ "type": "hello", "budgets": [api()] }));

    let reply = world.reply(re);
    assert_eq!(reply["type"], "welcome");
    assert_eq!(reply["host"], "shared-worker");
    assert_eq!(reply["durable"], true);
    assert_eq!(
        (&reply["instance"], &reply["epoch"]),
        (&json!("life-1"), &json!(1))
    );
}

#[test]
fn a_raw_tab_that_never_said_hello_is_served_all_the_same() {
    let mut world = World::new();

    let re = world.enqueue(9, "a");
    world.run();

    assert_eq!(world.reply(re)["type"], "accepted");
    assert_eq!(world.heard(9, "settled").len(), 1);
}

#[test]
fn a_full_queue_refuses_the_new_and_keeps_the_old() {
    let bounds = paceline_core::scheduler::Bounds {
        max_jobs: 1,
        ..Default::default()
    };
    let mut world = World::bounded(bounds);
    world.hello(1);
    let late = json!({ "notBefore": 1_800_000_000_000_u64 });
    let kept = world.tell(1, json!({ "type": "enqueue", "job": job_with("a", late) }));

    let refused = world.enqueue(1, "b");

    assert_eq!(world.reply(kept)["type"], "accepted");
    assert_eq!(world.reply(refused)["code"], "queue-full");
    assert_eq!(world.reply(refused)["field"], "maxQueue.jobs");
    assert_eq!(world.reply(refused)["expected"], "at most 1 unsettled jobs");
    assert_eq!(world.stored_names(), ["a"]);
}

#[test]
fn a_queue_full_of_bytes_says_so_and_stores_nothing_of_the_call() {
    let bounds = paceline_core::scheduler::Bounds {
        max_bytes: 250,
        ..Default::default()
    };
    let mut world = World::bounded(bounds);
    world.hello(1);
    let jobs: Vec<_> = ["a", "b", "c", "d"].map(job).into();

    let refused = world.tell_sized(
        1,
        json!({ "type": "enqueue-many", "jobs": jobs }),
        Some(100),
    );

    let reply = world.reply(refused);
    assert_eq!(reply["code"], "queue-full");
    assert_eq!(reply["field"], "maxQueue.bytes");
    let most = "at most 250 bytes of unsettled requests";
    assert_eq!(
        (&reply["expected"], &reply["index"]),
        (&json!(most), &json!(2))
    );
    assert!(world.stored_names().is_empty());
}
