//! Snapshots: what changes is told, at most four times a second, and an idle host has no timer.

use serde_json::{Value, json};

use crate::kit::{World, job};

fn bulk(world: &mut World, count: usize) {
    let jobs: Vec<Value> = (0..count).map(|n| job(&format!("j{n}"))).collect();
    world.tell(
        1,
        json!({ "type": "enqueue-many", "group": "g", "jobs": jobs }),
    );
}

#[test]
fn an_idle_host_has_no_timer() {
    let mut world = World::with_tabs();
    assert_eq!(world.timer(), None);
    world.tell(1, json!({ "type": "subscribe" }));

    bulk(&mut world, 3);
    world.run();

    assert_eq!(world.timer(), None);
    world.pass(3_600_000);
    assert_eq!(world.heard(1, "group-settled").len(), 1);
}

#[test]
fn a_host_that_waits_for_an_answer_alone_has_no_timer() {
    let mut world = World::with_tabs();

    bulk(&mut world, 3);

    assert_eq!(world.sent.len(), 3);
    assert_eq!(world.timer(), None);
}

#[test]
fn snapshots_come_at_most_four_times_a_second() {
    let mut world = World::with_tabs();
    world.tell(1, json!({ "type": "subscribe" }));
    bulk(&mut world, 500);

    for _ in 0..200 {
        world.answer_all();
        world.pass(10);
    }
    world.run();

    let times = world.heard_at(1, "snapshot");
    assert!(times.len() > 8, "{times:?}");
    assert!(
        times.windows(2).all(|pair| pair[1] - pair[0] >= 250),
        "{times:?}"
    );
    assert!(world.heard(2, "snapshot").is_empty());
}

#[test]
fn the_last_change_is_told_without_another_one() {
    let mut world = World::with_tabs();
    world.tell(1, json!({ "type": "subscribe" }));

    bulk(&mut world, 3);
    world.run();

    let snapshots = world.heard(1, "snapshot");
    assert_eq!(snapshots.last().unwrap()["snapshot"]["counts"]["done"], 3);
}

#[test]
fn a_subscriber_is_told_how_it_stands_at_once() {
    let mut world = World::with_tabs();
    bulk(&mut world, 3);

    world.tell(1, json!({ "type": "subscribe" }));

    let snapshots = world.heard(1, "snapshot");
    assert_eq!(snapshots.len(), 1);
    assert_eq!(snapshots[0]["snapshot"]["counts"]["sending"], 3);
}

#[test]
fn nothing_is_told_when_nothing_changes() {
    let mut world = World::with_tabs();
    world.tell(1, json!({ "type": "subscribe" }));
    world.pass(10_000);
    let before = world.heard(1, "snapshot").len();

    world.pass(60_000);

    assert_eq!(world.heard(1, "snapshot").len(), before);
}

#[test]
fn unsubscribe_ends_it() {
    let mut world = World::with_tabs();
    world.tell(1, json!({ "type": "subscribe" }));
    let re = world.tell(1, json!({ "type": "unsubscribe" }));
    let before = world.heard(1, "snapshot").len();

    bulk(&mut world, 3);
    world.run();

    assert_eq!(world.reply(re)["type"], "ok");
    assert_eq!(world.heard(1, "snapshot").len(), before);
}

#[test]
fn a_snapshot_tells_counts_causes_and_an_estimate() {
    let mut world = World::with_tabs();
    bulk(&mut world, 150);

    let re = world.tell(2, json!({ "type": "snapshot" }));

    let snapshot = &world.reply(re)["snapshot"];
    assert_eq!(
        (
            &snapshot["counts"]["sending"],
            &snapshot["counts"]["queued"]
        ),
        (&json!(100), &json!(50))
    );
    assert_eq!(snapshot["byBudget"]["api"]["cause"], "rate");
    assert_eq!(snapshot["byBudget"]["api"]["rule"], "100 per 1000 ms");
    assert_eq!(
        snapshot["byLane"]["bulk"],
        json!({ "waiting": 50, "sending": 100 })
    );
    assert_eq!(snapshot["byGroup"]["g"]["total"], 150);
    assert!(snapshot["etaMs"].as_u64().is_some_and(|eta| eta > 0));
}

#[test]
fn a_pause_is_shown_with_its_end_also_after_a_crash() {
    let mut world = World::with_tabs();
    world.enqueue(1, "a");
    world.answer(0, 429, &[("retry-after", "30")]);
    let before = world.tell(1, json!({ "type": "snapshot" }));

    world.crash();
    world.hello(1);
    let after = world.tell(1, json!({ "type": "snapshot" }));

    let until = |re| world.reply(re)["snapshot"]["pausedUntil"].as_u64().unwrap();
    assert!((30_000..=31_000).contains(&(until(before) - 1_700_000_000_000)));
    assert_eq!(until(before), until(after));
}
