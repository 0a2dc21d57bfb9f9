//! A host that yields to a newer one.

use paceline_core::job::State;
use serde_json::json;

use crate::kit::{World, job};

fn bulk(names: &[&str]) -> serde_json::Value {
    let jobs: Vec<_> = names.iter().map(|name| job(name)).collect();
    json!({ "type": "enqueue-many", "group": "g", "jobs": jobs })
}

#[test]
fn what_has_left_is_finished_and_stored_first() {
    let mut world = World::with_tabs();
    world.tell(1, bulk(&["a", "b"]));

    world.retire();
    world.answer(0, 200, &[]);
    assert!(!world.is_retired, "b is on its way still");
    world.answer(1, 200, &[]);
    world.run();

    assert!(world.is_retired);
    let state = |name| world.record(name).map(|record| record.state);
    assert_eq!([state("a"), state("b")], [Some(State::Done); 2]);
    assert_eq!(world.timer(), None);
}

#[test]
fn nothing_starts_any_more_and_what_comes_is_kept_for_the_next() {
    let mut world = World::with_tabs();
    world.enqueue(1, "a");
    world.retire();

    let re = world.enqueue(1, "b");
    world.tell(1, json!({ "type": "resume" }));
    assert_eq!(world.reply(re)["type"], "accepted");
    assert_eq!(world.names_sent(), ["a"]);
    world.answer(0, 200, &[]);
    assert!(world.is_retired);
    world.crash();
    world.hello(1);

    assert_eq!(world.names_sent(), ["a", "b"]);
}

#[test]
fn a_claim_that_is_on_its_way_to_the_store_does_not_leave() {
    let mut world = World::with_tabs();
    world.slow_disk();
    world.enqueue(1, "a");
    assert!(world.disk_answers(), "a is stored");
    assert_eq!(world.disk_pending(), 1, "its claim is on its way");

    world.retire();
    world.fast_disk();

    assert!(world.is_retired);
    assert!(world.sent.is_empty());
    assert_eq!(
        world.record("a").map(|record| record.state),
        Some(State::Queued)
    );
}

#[test]
fn an_idle_host_yields_at_once() {
    let mut world = World::with_tabs();

    world.retire();

    assert!(world.is_retired);
}
