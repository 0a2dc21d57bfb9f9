//! What the scheduler learns from what servers say.

mod kit;

use kit::{CardExt, Moment, Script, World, card, cards};
use paceline_core::config::{Algorithm, BudgetConfig, LimitRule, LongWait, Pace};
use paceline_core::ids::BudgetId;
use paceline_core::io::{Cause, Event, Input};
use paceline_core::job::{Lane, Reason, State};
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

fn published(limit: u64, window_ms: u64) -> Signals {
    let signal = BudgetSignal {
        limit: Some(limit),
        window_ms: Some(window_ms),
        ..BudgetSignal::default()
    };
    Signals {
        budgets: vec![signal],
        ..Signals::default()
    }
}

fn id(text: &str) -> BudgetId {
    BudgetId::parse(text).expect("id")
}

fn used_permille(world: &mut World, budget: &str) -> u32 {
    let now = world.clock();
    world.core.snapshot(now).budgets[&id(budget)].used_permille
}

#[test]
fn a_published_limit_that_is_lower_counts_at_once() {
    let mut world = World::new(&["10/s"], None);
    world.server.says = Some(Box::new(|_| published(4, 1_000)));
    world.enqueue(cards("first", 1));
    world.at(20).enqueue(cards("j", 12));

    world.run(60_000);

    assert!(world.server.max_seen(1_000) <= 4);
    assert_eq!(world.settled.len(), 13);
}

#[test]
fn a_published_limit_that_is_higher_counts_only_where_ours_is_a_guess() {
    let rule = LimitRule::parse("5/s", Algorithm::ArrivalLog).unwrap();
    let config = |rule| BudgetConfig::new(id("api"), vec![rule], None, 1_000, None).unwrap();
    let most_after = |rule| {
        let mut world = World::with(config(rule), 7);
        world.server.says = Some(Box::new(|_| published(20, 1_000)));
        world.enqueue(cards("first", 1));
        world.at(2_000).enqueue(cards("j", 20));
        world.run(60_000);
        world.server.max_seen(1_000)
    };

    assert_eq!(most_after(rule), 5);
    assert_eq!(most_after(rule.learning()), 20);
}

#[test]
fn an_unknown_api_takes_the_window_that_it_publishes_and_keeps_it_over_a_takeover() {
    let api = "origin:https://a.test";
    let config = || BudgetConfig::implicit(id(api)).with_pace(Pace::Burst);
    let mut world = World::with(config(), 7);
    world.server.says = Some(Box::new(|_| Signals {
        concurrency: Some(30),
        ..published(30, 10_000)
    }));
    world.enqueue(vec![card("first").budget(api)]);
    world.at(2_000);

    world.crash_and_restart(vec![config()]);
    let jobs = cards("j", 40).into_iter().map(|card| card.budget(api));
    world.enqueue(jobs.collect());
    world.run(60_000);

    assert_eq!(world.server.max_seen(1_000), 29);
    assert_eq!(world.server.max_seen(10_000), 30);
    assert_eq!(world.settled.len(), 41);
}

#[test]
fn the_share_of_a_published_limit_is_used() {
    let rule = LimitRule::parse("100/s", Algorithm::ArrivalLog).unwrap();
    let config = BudgetConfig::new(id("api"), vec![rule], None, 500, None).unwrap();
    let mut world = World::with(config, 7);
    world.server.says = Some(Box::new(|_| published(20, 1_000)));
    world.enqueue(cards("first", 1));

    world.at(2_000).enqueue(cards("j", 30));
    world.run(60_000);

    assert_eq!(world.server.max_seen(1_000), 10);
}

#[test]
fn three_lost_connections_over_two_jobs_halve_the_rate_and_cost_no_attempt() {
    let mut world = World::new(&["10/s"], Some(1));
    for job in ["a", "b"] {
        let scripts = vec![Script::Broken; 3];
        world.server.scripts.insert(job.to_owned(), scripts);
    }
    world.enqueue(vec![card("a"), card("b")]);
    while used_permille(&mut world, "api") == 1_000 {
        assert!(world.step(60_000), "never halved");
    }

    let counted: u32 = world
        .disk
        .records
        .values()
        .map(|record| record.attempts_counted)
        .sum();
    assert_eq!(world.server.arrivals.len(), 3);
    assert_eq!(used_permille(&mut world, "api"), 500);
    world.run(60_000);
    assert_eq!(counted, 2);
    assert!(
        world
            .settled
            .values()
            .all(|(state, _, _)| *state == State::Done)
    );
}

/// The waits of the pauses of `api`, without their jitter, in seconds, and whether all of them are guesses.
fn pauses(world: &World) -> (Vec<u64>, bool) {
    let pauses = world.events.iter().filter_map(|(at, event)| {
        let Event::Paused {
            until, is_estimate, ..
        } = event
        else {
            return None;
        };
        Some((until.as_millis() - (kit::EPOCH + *at), *is_estimate))
    });
    let pauses: Vec<(u64, bool)> = pauses.collect();
    let are_guesses = pauses.iter().all(|(_, is_estimate)| *is_estimate);
    let longest = |wait_ms: u64| (wait_ms / 1_000).max(1).ilog2();
    let waits = pauses.iter().map(|(wait_ms, _)| 1 << longest(*wait_ms));
    (waits.collect(), are_guesses)
}

#[test]
fn refusals_that_cannot_be_read_pause_longer_while_they_repeat() {
    let mut world = World::new(&["10/s"], None);
    for n in 0..30 {
        let scripts = vec![Script::Broken; 60];
        world.server.scripts.insert(format!("j{n}"), scripts);
    }

    world.enqueue(cards("j", 30));
    world.run_until(60_000);

    let (waits, are_guesses) = pauses(&world);
    assert_eq!(waits, [1, 2, 4, 8]);
    assert!(are_guesses);
}

#[test]
fn what_is_lost_while_a_budget_is_paused_for_it_halves_and_costs_nothing_more() {
    let mut world = World::new(&["20/s"], None);
    for n in 0..20 {
        let scripts = vec![Script::Broken];
        world.server.scripts.insert(format!("j{n}"), scripts);
    }

    world.enqueue(cards("j", 20));
    world.run_until(500);

    assert_eq!(world.server.arrivals.len(), 20);
    assert_eq!(used_permille(&mut world, "api"), 500);
    let records = world.disk.records.values();
    assert_eq!(
        records.map(|record| record.attempts_counted).sum::<u32>(),
        2
    );
    world.run(60_000);
    assert!(
        world
            .settled
            .values()
            .all(|(state, _, _)| *state == State::Done)
    );
}

#[test]
fn one_job_that_loses_its_connection_shows_no_limit() {
    let mut world = World::new(&["10/s"], Some(1));
    let scripts = vec![Script::Broken; 4];
    world.server.scripts.insert("a".to_owned(), scripts);

    world.enqueue(vec![card("a")]);
    world.run(60_000);

    assert_eq!(used_permille(&mut world, "api"), 1_000);
}

#[test]
fn a_dead_server_exhausts_every_job() {
    let mut world = World::new(&["10/s"], Some(2));
    for n in 0..4 {
        let scripts = vec![Script::Broken; 60];
        world.server.scripts.insert(format!("j{n}"), scripts);
    }

    world.enqueue(cards("j", 4));
    world.run(600_000);

    assert!(
        world
            .settled
            .values()
            .all(|(state, _, _)| *state == State::Failed)
    );
    assert_eq!(world.settled.len(), 4);
}

fn family() -> World {
    let mut world = World::with(kit::budget("all", &["6/s"], None), 7);
    let child = |name| kit::budget(name, &["100/s"], None).with_parent(Some(id("all")));
    world.input(Input::Configure(vec![child("a"), child("b"), child("c")]));
    world
}

#[test]
fn the_rules_of_a_parent_count_for_all_under_it() {
    let mut world = family();
    let jobs = |name: &str| {
        let jobs = cards(name, 8).into_iter().map(|card| card.budget(name));
        jobs.collect::<Vec<_>>()
    };

    world.enqueue([jobs("a"), jobs("b")].concat());
    world.at(100);
    let now = world.clock();
    let shown = world.core.snapshot(now).budgets[&id("b")].clone();
    world.run(60_000);

    assert_eq!(world.server.max_seen(1_000), 6);
    assert_eq!((shown.by, shown.rule), (Some(id("all")), Some((6, 1_000))));
    let first: Vec<&str> = world.server.ids()[..6].iter().map(|id| &id[..1]).collect();
    assert_eq!(first.iter().filter(|name| **name == "a").count(), 3);
}

#[test]
fn a_budget_whose_own_rule_defers_takes_nothing_of_its_parent() {
    let mut world = World::with(kit::budget("all", &["4/s"], None), 7);
    let narrow = kit::budget("a", &["1/10s"], None).with_parent(Some(id("all")));
    let wide = kit::budget("b", &["100/s"], None).with_parent(Some(id("all")));
    world.input(Input::Configure(vec![narrow, wide]));

    world.enqueue(
        cards("a", 4)
            .into_iter()
            .map(|card| card.budget("a"))
            .collect(),
    );
    world.at(100);
    world.enqueue(
        cards("b", 4)
            .into_iter()
            .map(|card| card.budget("b"))
            .collect(),
    );
    world.run_until(900);

    assert_eq!(world.server.arrivals.len(), 4);
}

/// S15 of the scenarios that users of other libraries met.
#[test]
fn every_budget_wakes_after_a_global_pause() {
    let mut world = family();
    world.server.says = Some(Box::new(|moment| {
        let scope = (moment.status == 429).then(|| "global".to_owned());
        Signals {
            budgets: vec![BudgetSignal {
                scope,
                ..BudgetSignal::default()
            }],
            ..Signals::default()
        }
    }));
    let scripts = vec![Script::RetryAfter(5_000)];
    world.server.scripts.insert("a0".to_owned(), scripts);
    world.enqueue(vec![card("a0").budget("a")]);
    world.at(20);
    for name in ["a", "b", "c"] {
        let jobs = (1..=4).map(|n| card(&format!("{name}{n}")).budget(name));
        world.enqueue(jobs.collect());
    }

    world.run(60_000);

    assert_eq!(starts_between(&world, 10, 5_010), 0);
    assert_eq!(world.settled.len(), 13);
    assert!(
        world
            .settled
            .values()
            .all(|(state, _, _)| *state == State::Done)
    );
}

#[test]
fn a_pause_of_one_budget_does_not_go_up() {
    let mut world = family();
    let scripts = vec![Script::RetryAfter(5_000)];
    world.server.scripts.insert("a0".to_owned(), scripts);
    world.enqueue(vec![card("a0").budget("a")]);

    world.at(20).enqueue(vec![card("b0").budget("b")]);
    world.run_until(100);

    assert!(world.settled.contains_key("b0"));
}

fn search_and_core() -> World {
    let scopes = [("search".to_owned(), id("github:search"))].into();
    let core = kit::budget("github:core", &["10/s"], None);
    let core = core.with_scopes(scopes).expect("few scopes");
    let mut world = World::with(core, 7);
    world.input(Input::Configure(vec![kit::budget(
        "github:search",
        &["5/s"],
        None,
    )]));
    world.server.says = Some(Box::new(|moment| {
        let scope = moment.id.split('-').next().map(str::to_owned);
        Signals {
            budgets: vec![BudgetSignal {
                scope,
                ..BudgetSignal::default()
            }],
            ..Signals::default()
        }
    }));
    world
}

#[test]
fn a_pause_of_search_never_stops_core() {
    let mut world = search_and_core();
    let scripts = vec![Script::RetryAfter(20_000)];
    world.server.scripts.insert("search-1".to_owned(), scripts);
    world.enqueue(vec![card("search-1").budget("github:core")]);

    world
        .at(100)
        .enqueue(vec![card("core-1").budget("github:core")]);
    world.run_until(1_000);
    let before = world.settled.clone();
    world.run(60_000);

    assert!(before.contains_key("core-1") && !before.contains_key("search-1"));
    let (state, _, at) = &world.settled["search-1"];
    assert!(*state == State::Done && *at >= 20_000);
}

#[test]
fn a_job_that_moved_to_a_scope_nobody_declared_is_found_after_a_takeover() {
    let mut world = search_and_core();
    let scripts = vec![Script::RetryAfter(20_000)];
    world.server.scripts.insert("graphql-1".to_owned(), scripts);
    world.enqueue(vec![card("graphql-1").budget("github:core")]);
    world.at(500);
    let now = world.clock();
    let made = world
        .core
        .snapshot(now)
        .budgets
        .contains_key(&id("github:core:graphql"));

    let scopes = [("search".to_owned(), id("github:search"))].into();
    let config = kit::budget("github:core", &["10/s"], None);
    world.crash_and_restart(vec![config.with_scopes(scopes).unwrap()]);
    world
        .at(1_000)
        .enqueue(vec![card("core-1").budget("github:core")]);
    world.run(60_000);

    assert!(made);
    assert!(world.settled["core-1"].2 < 2_000);
    let (state, _, at) = &world.settled["graphql-1"];
    assert!(*state == State::Done && *at >= 20_000);
}

#[test]
fn budgets_of_scopes_are_bounded() {
    let mut world = search_and_core();
    let jobs = (0..200).map(|n| card(&format!("s{n}-x")).budget("github:core"));
    world.enqueue(jobs.collect());

    world.run(120_000);

    let now = world.clock();
    assert!(world.core.snapshot(now).budgets.len() <= 66);
    assert_eq!(world.settled.len(), 200);
}

#[test]
fn a_cost_in_the_answer_corrects_what_was_taken() {
    let starts_after = |cost: Option<u32>, algorithm| {
        let rule = LimitRule::new(10, 10_000, algorithm).expect("rule");
        let config = BudgetConfig::new(id("api"), vec![rule], None, 1_000, None);
        let mut world = World::with(config.expect("budget").with_pace(Pace::Burst), 7);
        world.server.says = Some(Box::new(move |moment| Signals {
            cost: cost.filter(|_| moment.id == "first0"),
            ..Signals::default()
        }));
        world.enqueue(vec![card("first0").cost(5)]);
        world.at(100).enqueue(cards("j", 10));
        world.run_until(600);
        world.server.arrivals.len() - 1
    };

    for algorithm in [
        Algorithm::ArrivalLog,
        Algorithm::SlidingLog,
        Algorithm::FixedWindow,
        Algorithm::SlidingCounter,
        Algorithm::TokenBucket,
        Algorithm::Gcra,
        Algorithm::BatchRest,
    ] {
        assert_eq!(starts_after(None, algorithm), 5, "{algorithm:?}");
        assert_eq!(starts_after(Some(8), algorithm), 2, "{algorithm:?}");
        assert_eq!(starts_after(Some(2), algorithm), 8, "{algorithm:?}");
    }
}

/// Sends jobs under one window of a server that says what is left and when the oldest leaves, rounded up to `grain_ms`,
/// and perhaps which limit that is of. Returns the share of the ideal in thousandths, and the refusals.
fn paced_by_words(limit: usize, window_ms: u64, grain_ms: u64, names_limit: bool) -> (u64, usize) {
    let jobs = limit * 12;
    let mut world = World::new(&[&format!("{limit}/{window_ms}ms")], None);
    world.server.limit = Some((limit, window_ms));
    let mut draws = oorandom::Rand64::new(11);
    world.latency = Box::new(move || (draws.rand_range(10..60), draws.rand_range(10..60)));
    world.server.says = Some(Box::new(move |moment| {
        let mut said = left(moment.left, moment.reset_in.next_multiple_of(grain_ms));
        if names_limit {
            said.budgets[0].limit = Some(limit as u64);
            said.budgets[0].window_ms = Some(window_ms);
        }
        said
    }));
    world.enqueue(cards("j", jobs));
    world.run(10_000_000);
    let ideal = (jobs / limit - 1) as u64 * window_ms;
    (ideal * 1_000 / world.now, world.server.refused())
}

#[test]
fn words_that_our_own_use_explains_cost_no_rate() {
    for (limit, window_ms) in [(5, 1_000), (10, 1_000), (50, 1_000), (10, 10_000)] {
        for grain_ms in [1, 1_000] {
            for names_limit in [false, true] {
                let (share, refused) = paced_by_words(limit, window_ms, grain_ms, names_limit);

                let case = format!("{limit}/{window_ms} ms, {grain_ms} ms, {names_limit}");
                assert!(share >= 880, "{case}: {share}");
                assert_eq!(refused, 0, "{case}");
            }
        }
    }
}

fn impatient(fails: bool) -> World {
    let terms = LongWait {
        above_ms: 10_000,
        fails,
    };
    World::with(kit::budget("api", &["10/s"], None).with_long_wait(terms), 7)
}

/// Refuses the first job with a wait of that many milliseconds, with two more behind it.
fn refused_for(world: &mut World, wait_ms: u64) {
    let scripts = vec![Script::RetryAfter(wait_ms)];
    world.server.scripts.insert("a".to_owned(), scripts);
    world.enqueue(vec![card("a")]);
    world.at(100).enqueue(vec![card("b"), card("c")]);
    world.run_until(200);
}

fn told_as_long(world: &World) -> Vec<bool> {
    let told = world.events.iter().filter_map(|(_, event)| {
        let Event::Paused { is_long, .. } = event else {
            return None;
        };
        Some(*is_long)
    });
    told.collect()
}

#[test]
fn a_wait_beyond_the_bound_parks_the_jobs_and_is_not_shortened() {
    let mut world = impatient(false);
    refused_for(&mut world, 60_000);

    let shown = world.core.snapshot(world.clock()).budgets[&id("api")].clone();
    assert_eq!(shown.cause, Some(Cause::Parked));
    assert_eq!(told_as_long(&world), [true]);
    world.run_until(59_000);
    assert_eq!(world.server.arrivals.len(), 1);
    world.run(120_000);
    assert_eq!(world.settled.len(), 3);

    let mut world = impatient(false);
    refused_for(&mut world, 9_000);
    let shown = world.core.snapshot(world.clock()).budgets[&id("api")].clone();
    assert_eq!(
        (shown.cause, told_as_long(&world)),
        (Some(Cause::Paused), vec![false])
    );
}

#[test]
fn a_wait_beyond_the_bound_fails_the_jobs_where_the_app_says_so() {
    let mut world = impatient(true);
    refused_for(&mut world, 60_000);

    let reasons = |world: &World| {
        let settled = world.settled.values();
        let reasons = settled.map(|(state, outcome, _)| (*state, outcome.reason));
        reasons.collect::<Vec<_>>()
    };
    let failed = (State::Failed, Some(Reason::WaitTooLong));
    assert_eq!(reasons(&world), [failed; 3]);
    // What is handed in while the wait is long fails too; what has less to wait than the bound waits.
    world.at(20_000).enqueue(vec![card("d")]);
    world.at(55_000).enqueue(vec![card("e")]);
    world.run(120_000);
    assert_eq!(world.settled["d"].1.reason, Some(Reason::WaitTooLong));
    assert_eq!(world.settled["e"].0, State::Done);
}

#[test]
fn a_told_wait_that_is_a_guess_is_shown_as_an_estimate() {
    let mut world = World::new(&["10/s"], None);
    world.server.says = Some(Box::new(|moment| Signals {
        is_estimate: moment.status == 429,
        ..Signals::default()
    }));

    refused_for(&mut world, 5_000);

    let shown = &world.core.snapshot(world.clock()).budgets[&id("api")];
    assert!(shown.pause_is_estimate);
    let (_, are_guesses) = pauses(&world);
    assert!(are_guesses);
    assert_eq!(starts_between(&world, 10, 5_010), 0);
}
