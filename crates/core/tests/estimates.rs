//! What the scheduler says of times to come, held against what then happens on a fake clock.

mod kit;

use kit::{CardExt, Script, World, card, cards};
use paceline_core::ids::BudgetId;
use paceline_core::io::Input;
use paceline_core::job::HoldCause;

/// A world whose answers take `latency_ms`, and that has seen some.
fn seen(rules: &[&str], max_in_flight: Option<u64>, latency_ms: u64) -> World {
    let mut world = World::new(rules, max_in_flight);
    world.latency = Box::new(move || (latency_ms / 2, latency_ms - latency_ms / 2));
    world.enqueue(cards("seen", 4));
    world.run(1_000_000);
    world
}

fn budget_id() -> BudgetId {
    BudgetId::parse("api").expect("a name")
}

#[test]
fn four_in_flight_at_two_seconds_run_at_two_a_second_and_the_eta_says_so() {
    let mut world = seen(&["1000/1s"], Some(4), 2_000);
    let began = world.now;
    world.enqueue(cards("j", 100));
    world.run_until(began);

    let told = world.core.snapshot(world.clock());
    world.run_until(began + 10_000);
    let later = world.core.snapshot(world.clock());
    world.run(1_000_000);

    let done_at = world.settled.values().map(|(_, _, at)| *at).max();
    assert_eq!(done_at, Some(began + 50_000), "two a second");
    assert_eq!(told.eta_ms, Some(50_000));
    assert_eq!(later.eta_ms, Some(40_000));
    assert!(!told.eta_is_estimate);
}

#[test]
fn concurrency_counts_requests_and_not_what_they_cost() {
    let mut world = seen(&["1000/1s"], Some(2), 1_000);
    let began = world.now;
    world.enqueue(
        cards("j", 20)
            .into_iter()
            .map(|card| card.cost(5))
            .collect(),
    );
    world.run_until(began);

    let told = world.core.snapshot(world.clock()).eta_ms;

    world.run(1_000_000);
    let done_at = world.settled.values().map(|(_, _, at)| *at).max();
    assert_eq!(done_at, Some(began + 10_000));
    assert_eq!(told, Some(10_000));
}

#[test]
fn an_eta_of_a_paused_budget_begins_at_the_end_of_the_pause() {
    let mut world = seen(&["1000/1s"], Some(4), 2_000);
    let refused = vec![Script::RetryAfter(30_000)];
    world.server.scripts.insert("first".into(), refused);
    world.enqueue(vec![card("first")]);
    world.run_until(world.now + 2_000);
    world.enqueue(cards("j", 99));
    world.run_until(world.now);

    let now = world.clock();
    let told = world.core.snapshot(now);

    let paused_ms = told.paused_until.map(|until| until.since(now.wall));
    let paused_ms = paused_ms.expect("paused");
    assert!(paused_ms >= 30_000);
    // A hundred jobs wait: four find a place at once, the others go two a second.
    let expected = paused_ms + 96 * 2_000 / 4 + 2_000;
    let rate = told.eta_ms.expect("known") - paused_ms;
    assert!(rate.abs_diff(expected - paused_ms) <= 50, "{told:?}");
}

#[test]
fn a_guessed_pause_makes_the_eta_an_estimate_and_a_named_one_does_not() {
    for (script, is_estimate) in [
        (Script::Status(429), true),
        (Script::RetryAfter(5_000), false),
    ] {
        let mut world = seen(&["10/1s"], None, 100);
        world.server.scripts.insert("first".into(), vec![script]);
        world.enqueue(vec![card("first")]);
        world.run_until(world.now + 100);
        let told = world.core.snapshot(world.clock());

        assert_eq!(told.budgets[&budget_id()].pause_is_estimate, is_estimate);
        assert_eq!(told.eta_is_estimate, is_estimate);
        assert!(told.eta_ms.is_some());
    }
}

#[test]
fn an_eta_is_unknown_while_its_budget_or_the_queue_is_held() {
    for budget in [None, Some(budget_id())] {
        let mut world = seen(&["10/1s"], None, 100);
        let cause = HoldCause::User;
        world.request(|request| Input::Hold {
            request: Some(request),
            budget,
            cause,
        });
        world.enqueue(cards("j", 3));
        world.run_until(world.now);

        let told = world.core.snapshot(world.clock());

        assert_eq!(told.eta_ms, None);
        assert_eq!(told.budgets[&budget_id()].eta_ms, None);
    }
}
