//! Limits that count only some requests of a budget: a part under it, for which the whole budget hears and pauses.

mod kit;

use kit::{CardExt, Script, World, card};
use paceline_core::config::{Algorithm, BudgetConfig, LimitRule};
use paceline_core::ids::{BudgetId, JobId};
use paceline_core::io::{Input, Target};
use paceline_core::job::{Card, HoldCause, Reason, State};
use paceline_core::signals::{BudgetSignal, Signals};

fn id(name: &str) -> BudgetId {
    BudgetId::parse(name).expect("a name")
}

/// 20 a second of everything, 2 a second of what counts.
fn configs() -> Vec<BudgetConfig> {
    let whole = kit::budget("api", &["20/s"], Some(8));
    let rule = LimitRule::parse("2/s", Algorithm::ArrivalLog).expect("a rule");
    let part = whole
        .part(&["POST".to_owned()], vec![rule])
        .expect("a part");
    vec![whole, part]
}

fn world() -> World {
    let mut world = World::with(kit::budget("api", &["20/s"], Some(8)), 3);
    world.input(Input::Configure(configs()));
    world
}

fn writes(count: usize) -> Vec<Card> {
    let write = |n| card(&format!("w{n}")).budget("api#POST");
    (0..count).map(write).collect()
}

fn reads(count: usize) -> Vec<Card> {
    (0..count).map(|n| card(&format!("r{n}"))).collect()
}

fn arrivals_of(world: &World, prefix: &str) -> Vec<u64> {
    let arrivals = world.server.arrivals.iter();
    let own = arrivals.filter(|arrival| arrival.id.starts_with(prefix));
    own.map(|arrival| arrival.counted_at).collect()
}

/// The most in any window of a second, as an outside judge counts it: an entry exactly that old still counts.
fn max_seen(arrivals: &[u64]) -> usize {
    let within = |end: u64| move |at: &&u64| (end.saturating_sub(1_000)..=end).contains(*at);
    let count = |end: &u64| arrivals.iter().filter(within(*end)).count();
    arrivals.iter().map(count).max().unwrap_or(0)
}

#[test]
fn what_a_rule_does_not_count_passes_what_it_holds_up() {
    let mut world = world();

    world.enqueue([writes(8), reads(12)].concat());
    world.run_until(1_500);

    assert_eq!(arrivals_of(&world, "r").len(), 12);
    let blocked = &world.core.snapshot(world.clock()).budgets[&id("api#POST")];
    assert_eq!((blocked.rule, &blocked.by), (Some((2, 1_000)), &None));
    world.run(60_000);
    assert_eq!(world.settled.len(), 20);
    assert_eq!(max_seen(&arrivals_of(&world, "w")), 2);
    assert!(world.server.max_seen(1_000) <= 20);
}

#[test]
fn what_is_counted_counts_for_the_whole_too() {
    let mut world = World::with(kit::budget("api", &["3/s"], None), 3);
    let whole = kit::budget("api", &["3/s"], None);
    let rule = LimitRule::parse("100/s", Algorithm::ArrivalLog).expect("a rule");
    let part = whole
        .part(&["POST".to_owned()], vec![rule])
        .expect("a part");
    world.input(Input::Configure(vec![whole, part]));

    world.enqueue([writes(6), reads(6)].concat());
    world.run(60_000);

    assert_eq!(world.settled.len(), 12);
    assert_eq!(world.server.max_seen(1_000), 3);
}

#[test]
fn a_refusal_of_what_is_counted_pauses_the_whole_budget() {
    let mut world = world();
    world
        .server
        .scripts
        .insert("w0".into(), vec![Script::RetryAfter(5_000)]);
    world.enqueue(writes(1));
    world.at(100);

    world.enqueue(reads(3));
    world.run_until(4_900);
    assert_eq!(arrivals_of(&world, "r").len(), 0);

    world.run(60_000);
    assert!(
        world
            .settled
            .values()
            .all(|(state, ..)| *state == State::Done)
    );
    assert_eq!(world.settled.len(), 4);
}

#[test]
fn what_an_answer_to_a_counted_request_says_is_heard_by_the_whole_budget() {
    let mut world = world();
    world.server.says = Some(Box::new(|moment| {
        let left = BudgetSignal {
            limit: Some(20),
            remaining: Some(0),
            reset_in_ms: Some(4_000),
            window_ms: Some(1_000),
            ..BudgetSignal::default()
        };
        let is_first = moment.id == "w0";
        Signals {
            budgets: Vec::from_iter(is_first.then_some(left)),
            ..Signals::default()
        }
    }));
    world.enqueue(writes(1));
    world.at(200);

    world.enqueue(reads(3));
    world.run_until(3_900);

    assert_eq!(arrivals_of(&world, "r").len(), 0);
    world.run(60_000);
    assert_eq!(world.settled.len(), 4);
}

#[test]
fn after_a_crash_what_was_counted_still_counts() {
    let mut world = world();
    world.enqueue(writes(6));
    world.run_until(300);
    assert_eq!(arrivals_of(&world, "w").len(), 2);

    world.crash_and_restart(configs());
    world.run(60_000);

    assert_eq!(max_seen(&arrivals_of(&world, "w")), 2);
    assert_eq!(world.settled.len(), 6);
}

#[test]
fn what_waits_in_a_part_goes_on_when_nobody_counts_it_any_more() {
    let mut world = world();
    world.enqueue(writes(6));
    world.run_until(300);

    world.crash_and_restart(vec![kit::budget("api", &["20/s"], Some(8))]);
    world.run_until(2_000);

    assert_eq!(world.settled.len(), 6);
}

#[test]
fn hold_resume_and_cancel_of_a_budget_mean_its_part_too() {
    let mut world = world();
    world.input(Input::Hold {
        request: None,
        budget: Some(id("api")),
        cause: HoldCause::User,
    });
    world.enqueue(writes(3));
    world.run_until(5_000);
    assert_eq!(world.server.arrivals.len(), 0);
    world.input(Input::Cancel {
        request: None,
        target: Target::Jobs(vec![JobId::parse("w2").expect("a name")]),
        reason: Reason::Cancelled,
    });

    world.request(|request| Input::Resume {
        request,
        budget: Some(id("api")),
    });
    world.run(60_000);

    assert_eq!(arrivals_of(&world, "w").len(), 2);
    assert_eq!(world.settled.len(), 3);
}

#[test]
fn after_a_crash_a_bucket_of_the_whole_knows_what_was_counted_before_what_was_not() {
    let rule = LimitRule::parse("8/2s", Algorithm::Gcra).expect("a rule");
    let name = id("api");
    let configs = || {
        let whole =
            BudgetConfig::new(name.clone(), vec![rule], None, 1_000, None).expect("a budget");
        let part = whole
            .part(&["POST".to_owned()], Vec::new())
            .expect("a part");
        vec![whole, part]
    };
    let mut world = World::with(configs().remove(0), 3);
    world.input(Input::Configure(configs()));
    world.enqueue(writes(1));
    world.at(500).enqueue(reads(30));
    world.run_until(2_900);
    let before = world.server.arrivals.len();

    world.crash_and_restart(configs());
    world.run_until(3_100);

    // The burst is used up, and one goes every quarter of a second.
    assert!(world.server.arrivals.len() <= before + 2, "{before}");
}
