//! What the scheduler learns from what servers say.

mod kit;

use kit::{CardExt, Moment, World, cards};
use paceline_core::job::Lane;
use paceline_core::signals::{BudgetSignal, Signals};

fn left(remaining: u64, reset_in_ms: u64) -> Signals {
    let signal = BudgetSignal {
        remaining: Some(remaining),
        reset_in_ms: Some(reset_in_ms),
        ..BudgetSignal::default()
    };
    Signals {
        budgets: vec![signal],
        ..Signals::default()
    }
}

fn starts_between(world: &World, from: u64, to: u64) -> usize {
    let starts = world.server.starts();
    starts.iter().filter(|at| (from..to).contains(*at)).count()
}

#[test]
fn two_left_at_the_server_are_two_starts_whatever_our_bucket_holds() {
    let mut world = World::with(kit::bucket("api", 10, 10_000), 7);
    world.server.says = Some(Box::new(|moment: &Moment<'_>| match moment.id {
        "first0" => left(3, 8_000),
        "first1" => left(2, 8_000),
        _ => Signals::default(),
    }));
    world.enqueue(cards("first", 2));
    world.at(20);

    world.enqueue(cards("j", 8));
    world.run_until(7_990);

    let started = starts_between(&world, 20, 7_990);
    assert!(started <= 2, "{started}");
    world.run(60_000);
    assert_eq!(world.settled.len(), 10);
}

#[test]
fn what_is_in_flight_is_taken_off_what_is_left() {
    let mut world = World::new(&["10/s"], None);
    world.latency = Box::new(|| (50, 50));
    world.server.says = Some(Box::new(|moment| match moment.id {
        "first0" => left(3, 5_000),
        _ => Signals::default(),
    }));
    world.enqueue(cards("first", 1));
    world.at(10).enqueue(cards("flying", 2));

    world.at(101).enqueue(cards("j", 5));
    world.run_until(5_000);

    assert_eq!(starts_between(&world, 101, 5_000), 1);
}

#[test]
fn nothing_left_on_a_served_answer_closes_until_the_reset_and_shrinks_nothing() {
    let mut world = World::new(&["10/s"], None);
    world.server.says = Some(Box::new(|moment| match moment.id {
        "first0" => left(0, 4_000),
        _ => Signals::default(),
    }));
    world.enqueue(cards("first", 1));
    world.at(20).enqueue(cards("j", 10));

    world.run(60_000);

    assert_eq!(starts_between(&world, 20, 4_005), 0);
    assert_eq!(starts_between(&world, 4_005, 4_100), 10);
    assert!(world.events.is_empty(), "{:?}", world.events);
}

#[test]
fn an_answer_that_was_overtaken_loosens_nothing() {
    let mut world = World::new(&["10/s"], None);
    let mut ways = vec![(10, 500), (20, 5)].into_iter();
    world.latency = Box::new(move || ways.next().unwrap_or((5, 5)));
    world.server.says = Some(Box::new(|moment| match moment.id {
        "first0" => left(9, 9_990),
        "first1" => left(1, 9_980),
        _ => left(0, 5_000),
    }));
    world.enqueue(cards("first", 2));

    world.at(600).enqueue(cards("j", 5));
    world.run_until(9_000);

    assert_eq!(starts_between(&world, 600, 9_000), 1);
}

#[test]
fn a_newer_answer_may_loosen_what_an_older_one_said() {
    let mut world = World::new(&["10/s"], None);
    world.server.says = Some(Box::new(|moment| match moment.id {
        "first0" => left(1, 9_000),
        _ => left(50, 9_000),
    }));
    world.enqueue(cards("first", 1));
    world.at(50).enqueue(cards("j", 6));

    world.run_until(8_000);

    assert_eq!(world.settled.len(), 7);
}

#[test]
fn the_little_that_is_left_is_spread_to_the_reset_and_people_go_first() {
    let mut world = World::new(&["100/10s"], None);
    world.server.says = Some(Box::new(|moment| match moment.id {
        "first0" => left(4, 10_000),
        _ => Signals::default(),
    }));
    world.enqueue(cards("first", 1));
    world.at(20).enqueue(cards("bulk", 10));

    world.at(500);
    let click = cards("click", 1).remove(0).lane(Lane::Interactive);
    world.enqueue(vec![click]);
    world.run_until(9_900);

    let starts: Vec<u64> = world.server.starts()[1..].to_vec();
    assert_eq!(starts.len(), 4, "{starts:?}");
    assert!(
        starts.windows(2).all(|pair| pair[1] - pair[0] >= 1_500),
        "{starts:?}"
    );
    assert_eq!(world.server.ids()[1], "click0");
}

#[test]
fn a_used_up_budget_stays_closed_after_a_takeover() {
    let config = || kit::budget("api", &["10/s"], None);
    let mut world = World::with(config(), 7);
    world.server.says = Some(Box::new(|_| left(0, 60_000)));
    world.enqueue(cards("first", 1));
    world.at(100).enqueue(cards("j", 3));
    world.at(2_000);

    world.crash_and_restart(vec![config()]);
    world.run_until(59_000);

    assert_eq!(world.server.arrivals.len(), 1);
    world.server.says = None;
    world.run(120_000);
    assert_eq!(world.settled.len(), 4);
}
