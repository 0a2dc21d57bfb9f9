//! When a request goes, and with what.

use paceline_store::StoreError;
use serde_json::{Value, json};

use crate::kit::{World, job, job_with};

#[test]
fn no_request_goes_before_its_claim_is_stored() {
    let mut world = World::with_tabs();
    world.slow_disk();
    world.enqueue(1, "a");

    world.disk_answers();
    assert!(world.sent.is_empty(), "the job is stored, its claim is not");
    world.disk_answers();

    assert_eq!(world.names_sent(), ["a"]);
    assert_eq!(world.sent[0].request["body"], json!({ "owner": "a" }));
}

#[test]
fn a_claim_that_took_long_is_compared_again_and_made_anew_before_its_request_goes() {
    let mut world = World::with_tabs();
    world.slow_disk();
    world.enqueue(1, "a");
    world.disk_answers();

    world.freeze(501);
    world.disk_answers();
    assert!(world.sent.is_empty());
    assert_eq!(world.disk_pending(), 1, "it is compared");
    world.disk_answers();
    assert!(world.sent.is_empty());
    assert_eq!(world.disk_pending(), 1, "it is claimed with its new start");
    world.disk_answers();

    assert_eq!(world.names_sent(), ["a"]);
}

#[test]
fn a_clock_that_is_set_back_hides_no_freeze() {
    let mut world = World::with_tabs();
    world.freeze(10_000);
    world.slow_disk();
    world.enqueue(1, "a");
    world.disk_answers();

    world.pass(5_000);
    world.set_back(5_000);
    world.disk_answers();

    assert!(world.sent.is_empty());
    assert_eq!(world.disk_pending(), 1, "it is compared again");
}

#[test]
fn a_claim_that_took_half_a_second_goes_at_once() {
    let mut world = World::with_tabs();
    world.slow_disk();
    world.enqueue(1, "a");
    world.disk_answers();

    world.freeze(500);
    world.disk_answers();

    assert_eq!(world.names_sent(), ["a"]);
}

#[test]
fn a_host_that_was_frozen_over_a_change_of_owner_sends_nothing() {
    let mut world = World::with_tabs();
    world.slow_disk();
    world.enqueue(1, "a");
    world.disk_answers();
    let claim_is_stored = |world: &World| world.record("a").is_some();

    // The claim is stored; the host sleeps before it hears so, and another owner starts.
    world.freeze(60_000);
    world.disk_answers();
    assert!(claim_is_stored(&world));
    world.another_owner_starts();
    world.disk_answers();

    assert!(matches!(world.stopped, Some(StoreError::StaleEpoch { .. })));
    assert!(world.sent.is_empty());
}

#[test]
fn a_store_that_is_always_slow_delays_a_request_by_two_claims_at_most() {
    let mut world = World::with_tabs();
    world.slow_disk();
    world.enqueue(1, "a");
    world.disk_answers();

    // Each is compared three times; the second says how late it may leave.
    for _ in 0..8 {
        assert!(world.sent.is_empty());
        world.freeze(1_000);
        world.disk_answers();
    }

    assert_eq!(world.names_sent(), ["a"]);
}

#[test]
fn requests_that_are_not_at_hand_are_read_with_the_claim() {
    let mut world = World::with_tabs();
    world.tell(1, json!({ "type": "hold" }));
    world.enqueue(1, "a");
    world.crash();
    world.hello(1);
    world.slow_disk();
    world.reads.clear();

    world.tell(1, json!({ "type": "resume" }));
    while world.disk_answers() {}

    let reads: Vec<usize> = world.reads.iter().map(Vec::len).collect();
    assert_eq!(reads.iter().sum::<usize>(), 1, "{reads:?}");
    assert_eq!(world.sent[0].request["body"], json!({ "owner": "a" }));
}

#[test]
fn claims_of_more_batches_than_are_kept_at_hand_all_go_with_their_requests() {
    let mut world = World::with_tabs();
    world.tell(1, json!({ "type": "hold" }));
    for n in 0..90 {
        world.enqueue(1, &format!("j{n}"));
    }
    world.crash();
    world.hello(1);

    world.tell(1, json!({ "type": "resume" }));

    assert_eq!(world.sent.len(), 90);
    for sent in &world.sent {
        assert_eq!(
            (sent.request["body"]["owner"].as_str(), sent.attempt),
            (Some(sent.name()), 1)
        );
    }
}

#[test]
fn a_claimed_request_stays_at_hand_while_many_jobs_come_in() {
    let mut world = World::with_tabs();
    world.slow_disk();
    world.enqueue(1, "first");
    world.disk_answers();

    for n in 0..70 {
        world.enqueue(1, &format!("j{n}"));
    }
    world.disk_answers();

    assert_eq!(world.names_sent(), ["first"]);
    assert_eq!(world.sent[0].attempt, 1);
}

#[test]
fn an_ephemeral_request_is_never_stored_and_is_cancelled_by_a_restart() {
    let mut world = World::with_tabs();
    let get = json!({ "id": "a", "url": "https://api.test/a", "ephemeral": true });
    world.tell(1, json!({ "type": "hold" }));
    world.tell(1, json!({ "type": "enqueue", "job": get }));
    assert_eq!(world.stored_requests(), [Value::Null]);

    world.crash();
    world.hello(1);
    world.tell(1, json!({ "type": "resume" }));
    world.run();

    assert!(world.sent.is_empty());
    let re = world.enqueue(1, "a");
    assert_eq!(world.reply(re)["job"]["state"], "cancelled");
}

#[test]
fn an_ephemeral_request_goes_out_whole() {
    let mut world = World::with_tabs();
    let get = json!({ "id": "a", "url": "https://api.test/a", "ephemeral": true });
    world.script("a", &[503, 200]);

    world.tell(1, json!({ "type": "enqueue", "job": get }));
    world.run();

    assert_eq!(world.names_sent(), ["a", "a"]);
    assert_eq!(world.heard(1, "settled")[0]["job"]["state"], "done");
}

#[test]
fn an_ephemeral_request_goes_with_the_tab_that_asked() {
    let mut world = World::with_tabs();
    let get = json!({ "id": "a", "url": "https://api.test/a", "ephemeral": true });
    world.tell(1, json!({ "type": "hold" }));
    world.tell(1, json!({ "type": "enqueue", "job": get }));
    world.enqueue(1, "stored");

    world.leave(1);
    world.tell(2, json!({ "type": "resume" }));
    world.run();

    assert_eq!(world.names_sent(), ["stored"]);
}

#[test]
fn a_write_is_stored_even_if_it_calls_itself_ephemeral() {
    let mut world = World::with_tabs();
    let write = job_with("a", json!({ "ephemeral": true }));

    world.tell(1, json!({ "type": "enqueue", "job": write }));

    assert_eq!(world.stored_requests()[0]["body"], json!({ "owner": "a" }));
}

#[test]
fn a_bulk_of_several_batches_goes_in_its_order() {
    let mut world = World::with_tabs();
    let jobs: Vec<Value> = (0..300).map(|n| job(&format!("j{n}"))).collect();

    world.tell(
        1,
        json!({ "type": "enqueue-many", "group": "g", "jobs": jobs }),
    );
    world.run();

    let expected: Vec<String> = (0..300).map(|n| format!("j{n}")).collect();
    assert_eq!(world.names_sent(), expected);
}

#[test]
fn the_limit_is_kept_over_a_crash() {
    let mut world = World::with_tabs();
    let jobs: Vec<Value> = (0..150).map(|n| job(&format!("j{n}"))).collect();
    world.tell(
        1,
        json!({ "type": "enqueue-many", "group": "g", "jobs": jobs }),
    );
    world.answer_all();
    world.pass(100);

    world.crash();
    world.hello(1);
    world.run();

    let late = world.sent.iter().filter(|sent| sent.at_ms > 0);
    assert_eq!((world.sent.len(), late.clone().count()), (150, 50));
    assert!(late.map(|sent| sent.at_ms).min().unwrap() > 1_000);
}
