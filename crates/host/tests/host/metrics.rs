//! Metrics: told when asked for, to followers when something has changed, and counted anew by each owner.

use serde_json::{Value, json};

use crate::kit::{World, job};

fn ask(world: &mut World, tab: u32) -> Value {
    let re = world.tell(tab, json!({ "type": "metrics" }));
    world.reply(re)["metrics"].clone()
}

fn bulk(world: &mut World, count: usize) {
    let jobs: Vec<Value> = (0..count).map(|n| job(&format!("j{n}"))).collect();
    world.tell(
        1,
        json!({ "type": "enqueue-many", "group": "g", "jobs": jobs }),
    );
}

fn told(world: &World, tab: u32) -> Vec<&Value> {
    let events = world.heard(tab, "event").into_iter();
    events.filter(|event| event["name"] == "metrics").collect()
}

#[test]
fn metrics_tell_what_became_of_jobs_and_requests() {
    let mut world = World::with_tabs();
    world.script("j1", &[404]);
    world.script("j2", &[429, 200]);

    bulk(&mut world, 3);
    world.answer_all();
    world.run();

    let metrics = ask(&mut world, 2);
    let queue = &metrics["queue"];
    assert_eq!(
        (&queue["accepted"], &queue["done"], &queue["failed"]),
        (&json!(3), &json!(2), &json!(1))
    );
    assert_eq!(queue["failures"][0]["code"], "http");
    assert_eq!(queue["failures"][0]["status"], 404);
    assert_eq!(queue["answers"], json!({ "200": 2, "404": 1, "429": 1 }));
    assert_eq!(queue["refusedPer1000"], 250);
    assert_eq!(
        (&queue["live"], &queue["unaccounted"]),
        (&json!(0), &json!(0))
    );
    assert_eq!(queue["waits"]["bulk"]["jobs"], 3);
    assert_eq!(metrics["byBudget"]["api"]["done"], 2);
    assert_eq!(metrics["own"], metrics["queue"], "all jobs are nobody's");
}

#[test]
fn another_owner_counts_anew_from_what_is_unsettled() {
    let mut world = World::with_tabs();
    bulk(&mut world, 120);
    world.pass(5);
    let before = ask(&mut world, 2);

    world.pass(100);
    world.crash();
    world.hello(2);
    let after = ask(&mut world, 2);

    assert_eq!(before["queue"]["accepted"], 120);
    assert_eq!(after["queue"]["accepted"], 120);
    assert_eq!(after["queue"]["requests"], 0);
    let since = |metrics: &Value| metrics["since"].as_u64().unwrap();
    assert!(since(&after) >= since(&before) + 100);
}

#[test]
fn a_follower_is_told_of_changes_at_most_four_times_a_second_and_nobody_else() {
    let mut world = World::with_tabs();
    let re = world.tell(1, json!({ "type": "metrics", "follow": true }));
    assert_eq!(world.reply(re)["type"], "metrics");

    bulk(&mut world, 500);
    for _ in 0..100 {
        world.answer_all();
        world.pass(20);
    }
    world.run();

    let heard = told(&world, 1);
    let instants = heard.iter().map(|event| event["detail"]["at"].as_u64());
    let instants: Vec<u64> = instants.map(|at| at.expect("an instant")).collect();
    assert!(instants.len() > 8, "{instants:?}");
    let is_apart = |pair: &[u64]| pair[1] - pair[0] >= 250;
    assert!(instants.windows(2).all(is_apart), "{instants:?}");
    assert_eq!(heard.last().unwrap()["detail"]["queue"]["done"], 500);
    assert!(told(&world, 2).is_empty());
    assert!(world.heard(1, "snapshot").is_empty());
}

#[test]
fn a_follower_costs_an_idle_host_no_timer_and_may_stop() {
    let mut world = World::with_tabs();
    world.tell(1, json!({ "type": "metrics", "follow": true }));
    bulk(&mut world, 3);
    world.run();
    assert_eq!(world.timer(), None);
    let before = told(&world, 1).len();

    world.tell(1, json!({ "type": "metrics", "follow": false }));
    world.enqueue(1, "more");
    world.run();

    assert_eq!(told(&world, 1).len(), before);
    assert_eq!(world.timer(), None);
}
