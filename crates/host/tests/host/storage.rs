//! A store that is full, broken, or another's.

use paceline_core::job::State;
use paceline_store::StoreError;
use paceline_store::memory::Operation;
use serde_json::{Value, json};

use crate::kit::{World, job};

fn full() -> StoreError {
    StoreError::Full("test".into())
}

fn broken() -> StoreError {
    StoreError::Transient("test".into())
}

#[test]
fn a_full_store_refuses_only_what_did_not_fit() {
    let mut world = World::with_tabs();
    world.slow_disk();
    world.enqueue(1, "before");
    let fits = world.enqueue(1, "fits");
    let surplus = world.enqueue(2, "surplus");
    world.disk_answers();

    // Both wait for one transaction, which fails; then each goes alone, and the second does not fit.
    world.store.fail_next(Operation::Commit, full());
    world.disk_answers();
    world.disk_answers();
    world.store.fail_next(Operation::Commit, full());
    world.fast_disk();
    world.run();

    assert_eq!(world.reply(fits)["type"], "accepted");
    assert_eq!(world.reply(surplus)["code"], "storage-full");
    assert_eq!(world.stored_names(), ["before", "fits"]);
    assert_eq!(world.heard(1, "settled").len(), 2);
}

#[test]
fn a_refused_job_can_be_enqueued_again() {
    let mut world = World::with_tabs();
    world.store.fail_next(Operation::Commit, full());
    let refused = world.enqueue(1, "a");

    let accepted = world.enqueue(1, "a");
    world.run();

    assert_eq!(world.reply(refused)["code"], "storage-full");
    assert_eq!(world.reply(accepted)["type"], "accepted");
    assert_eq!(world.names_sent(), ["a"]);
    assert_eq!(world.heard(1, "settled").len(), 1);
}

#[test]
fn every_tab_is_told_of_trouble_with_the_store() {
    let mut world = World::with_tabs();
    world.store.fail_next(Operation::Commit, full());

    world.enqueue(1, "a");

    for tab in [1, 2] {
        let events = world.heard(tab, "event");
        let last = events.last().unwrap();
        assert_eq!(last["name"], "storage");
        assert_eq!(last["detail"]["message"], "storage quota exceeded: test");
    }
}

#[test]
fn an_outcome_that_could_not_be_stored_is_told_once_it_is() {
    let mut world = World::with_tabs();
    world.enqueue(1, "a");
    world.store.fail_next(Operation::Commit, full());

    world.answer(0, 200, &[]);
    assert!(world.heard(1, "settled").is_empty());
    world.tell(1, json!({ "type": "resume" }));

    assert_eq!(world.heard(1, "settled").len(), 1);
    assert_eq!(world.sent.len(), 1);
}

#[test]
fn a_claim_that_could_not_be_stored_sends_nothing_and_holds_the_queue() {
    let mut world = World::with_tabs();
    world.slow_disk();
    world.enqueue(1, "a");
    world.disk_answers();
    world.store.fail_next(Operation::Commit, full());

    world.fast_disk();
    world.pass(60_000);
    assert!(world.sent.is_empty());
    let re = world.tell(1, json!({ "type": "snapshot" }));
    assert_eq!(world.reply(re)["snapshot"]["held"], json!(["storage"]));

    world.tell(1, json!({ "type": "resume" }));
    world.run();
    assert_eq!(world.names_sent(), ["a"]);
}

#[test]
fn a_newer_owner_stops_the_host_and_nothing_more_goes_out() {
    let mut world = World::with_tabs();
    world.enqueue(1, "a");
    world.another_owner_starts();

    world.answer(0, 200, &[]);
    let late = world.enqueue(1, "b");
    world.pass(60_000);

    assert_eq!(
        world.stopped,
        Some(StoreError::StaleEpoch {
            expected: 1,
            found: 2
        })
    );
    assert!(!world.is_answered(late));
    assert_eq!(world.sent.len(), 1);
    assert_eq!(world.timer(), None);
}

#[test]
fn a_host_that_does_not_know_what_is_stored_ends_and_the_next_one_reads_it() {
    let mut world = World::with_tabs();
    world.store.lose_next_answer();
    let unanswered = world.enqueue(1, "a");
    assert!(matches!(world.stopped, Some(StoreError::Transient(_))));
    assert!(!world.is_answered(unanswered));

    world.crash();
    world.hello(1);
    let again = world.enqueue(1, "a");
    world.run();

    assert_eq!(world.reply(again)["type"], "accepted");
    assert_eq!(world.names_sent(), ["a"]);
}

#[test]
fn a_connection_that_was_closed_under_an_idle_host_is_noticed() {
    let mut world = World::with_tabs();
    world.another_owner_starts();

    world.store_lost();

    assert!(matches!(world.stopped, Some(StoreError::StaleEpoch { .. })));
}

#[test]
fn requests_that_cannot_be_read_cost_their_asker_an_error() {
    let mut world = World::with_tabs();
    world.tell(1, json!({ "type": "hold" }));
    world.enqueue(1, "a");
    world.crash();
    world.hello(1);
    world.store.fail_next(Operation::Read, broken());

    let first = world.tell(1, json!({ "type": "jobs" }));
    let second = world.tell(1, json!({ "type": "jobs" }));

    assert_eq!(world.reply(first)["code"], "storage");
    assert_eq!(world.reply(second)["jobs"][0]["url"], "https://api.test/a");
}

#[test]
fn commits_that_come_while_one_is_on_its_way_go_together() {
    let mut world = World::with_tabs();
    world.slow_disk();
    world.enqueue(1, "first");
    for n in 0..50 {
        world.enqueue(1, &format!("j{n}"));
    }
    let before = world.store.commits();

    world.disk_answers();
    world.disk_answers();

    assert_eq!(world.store.commits() - before, 2);
    assert_eq!(world.stored_names().len(), 51);
}

#[test]
fn nothing_is_lost_whenever_the_host_dies() {
    for steps in 0..12 {
        let mut world = World::with_tabs();
        let jobs: Vec<Value> = (0..4).map(|n| job(&format!("j{n}"))).collect();
        world.slow_disk();
        let re = world.tell(
            1,
            json!({ "type": "enqueue-many", "group": "g", "jobs": jobs }),
        );
        for _ in 0..steps {
            if !world.disk_answers() {
                world.answer_all();
            }
        }
        let is_accepted = world.is_answered(re);

        world.crash();
        world.fast_disk();
        world.hello(1);
        world.run();

        let done = world.store.stored().records.len();
        assert_eq!(
            done,
            if is_accepted { 4 } else { done },
            "after {steps} steps"
        );
        assert!(done == 0 || done == 4, "{done} after {steps} steps");
    }
}

#[test]
fn outcomes_of_a_bulk_gather_into_one_transaction() {
    let mut world = World::with_tabs();
    let jobs: Vec<_> = (0..4).map(|n| job(&format!("j{n}"))).collect();
    world.tell(
        1,
        json!({ "type": "enqueue-many", "group": "g", "jobs": jobs }),
    );
    let before = world.reads.len();

    for n in 0..3 {
        world.answer(n, 200, &[]);
    }
    let asked_at_once = world.reads.len();
    world.pass(20);

    assert_eq!(asked_at_once, before);
    assert_eq!(world.reads.len(), before + 1);
    assert_eq!(world.timer(), None, "nothing gathers any more");
    let is_done = |n: &u32| {
        world
            .record(&format!("j{n}"))
            .is_some_and(|record| record.state == State::Done)
    };
    assert_eq!((0..4).filter(is_done).count(), 3);
}

#[test]
fn the_outcome_of_a_click_is_stored_at_once() {
    let mut world = World::with_tabs();
    world.enqueue(1, "click");
    let before = world.reads.len();

    world.answer(0, 200, &[]);

    assert_eq!(world.reads.len(), before + 1);
    assert_eq!(world.heard(1, "settled").len(), 1);
}

#[test]
fn what_gathers_goes_along_with_the_next_claim() {
    let mut world = World::with_tabs();
    world.tell(
        1,
        json!({ "type": "enqueue-many", "group": "g", "jobs": [job("a"), job("b")] }),
    );
    world.answer(0, 200, &[]);
    let before = world.reads.len();

    world.enqueue(1, "click");

    let stored = world.record("a").map(|record| record.state);
    assert_eq!(stored, Some(State::Done));
    // One that adds the click and takes the outcome along, one that claims it.
    assert_eq!(world.reads.len(), before + 2);
}
