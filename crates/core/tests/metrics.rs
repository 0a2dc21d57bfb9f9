//! What an owner counts: jobs, requests, waits and the use of a limit.

mod kit;

use kit::*;
use paceline_core::config::BudgetConfig;
use paceline_core::ids::{BudgetId, JobId};
use paceline_core::io::{Input, Target};
use paceline_core::job::{Lane, Reason, State};
use paceline_core::metrics::{Achieved, Meter, Metrics};

fn metrics(world: &mut World) -> Metrics {
    let now = world.clock();
    world.core.metrics("", now)
}

fn queue(world: &mut World) -> Meter {
    metrics(world).queue
}

fn achieved(world: &mut World, budget: &str) -> Achieved {
    metrics(world).budgets[&BudgetId::parse(budget).expect("a name")].achieved
}

fn user_hold(world: &mut World) {
    world.input(Input::Hold {
        request: None,
        budget: None,
        cause: paceline_core::job::HoldCause::User,
    });
}

fn resume(world: &mut World) {
    world.request(|request| Input::Resume {
        request,
        budget: None,
    });
}

#[test]
fn what_was_accepted_lives_until_its_outcome_is_stored() {
    let mut world = World::new(&["10/s"], None);
    world.commit_ms = 10;

    world.enqueue(cards("j", 3));
    assert_eq!(queue(&mut world).accepted, 0, "nothing is stored yet");
    world.at(12);
    let taken = queue(&mut world);
    assert_eq!((taken.accepted, taken.live, taken.settled()), (3, 3, 0));
    // Claimed by 20, answered at 30, stored at 40.
    world.at(35);
    let answered = queue(&mut world);
    assert_eq!((answered.live, answered.settled()), (3, 0));

    world.run(60_000);

    let ended = queue(&mut world);
    assert_eq!((ended.live, ended.settled_as(State::Done)), (0, 3));
    assert_eq!(ended.unaccounted(), 0);
}

#[test]
fn waits_are_told_by_lane_from_when_a_job_could_have_gone() {
    let mut world = World::new(&["1/s"], None);
    let late = card("late").lane(Lane::Background);
    let late = paceline_core::job::Card {
        not_before: Some(paceline_core::time::Wall::from_millis(EPOCH + 60_000)),
        ..late
    };
    let mut jobs = cards("bulk", 20);
    jobs.push(card("click").lane(Lane::Interactive));
    jobs.push(late);

    world.enqueue(jobs);
    world.run(120_000);

    let meter = queue(&mut world);
    let waits = |lane| meter.waits(lane);
    assert_eq!(waits(Lane::Interactive).max(), Some(0));
    assert_eq!(waits(Lane::Background).max(), Some(0));
    assert_eq!(waits(Lane::Bulk).count(), 20);
    // One a window and an answer, the click first.
    let longest = waits(Lane::Bulk).max().unwrap();
    assert!((20_000..=20 * 1_011).contains(&longest), "{longest}");
    let median = waits(Lane::Bulk).quantile(500).unwrap();
    let truth = longest / 2;
    assert!((truth..=truth * 5 / 4).contains(&median), "{median}");
}

#[test]
fn refusals_and_attempts_are_counted_and_a_wait_only_once() {
    let mut world = World::new(&["100/s"], None);
    let scripts = [Script::RetryAfter(1_000), Script::Status(503)];
    world.server.scripts.insert("j0".into(), scripts.to_vec());

    world.enqueue(cards("j", 4));
    world.run(60_000);

    let meter = queue(&mut world);
    assert_eq!((meter.requests, meter.refused), (6, 1));
    assert_eq!(meter.refused_per_1000(), Some(167));
    let answers: Vec<(u16, u64)> = meter.answers.clone().into_iter().collect();
    assert_eq!(answers, [(200, 4), (429, 1), (503, 1)]);
    assert_eq!((meter.attempts.count(), meter.attempts.max()), (4, Some(3)));
    assert_eq!(meter.waits(Lane::Bulk).count(), 4);
}

#[test]
fn failures_are_told_by_reason_and_status() {
    let mut world = World::new(&["100/s"], None);
    let fails = |status| vec![Script::Status(status)];
    world.server.scripts.insert("j0".into(), fails(404));
    world.server.scripts.insert("j1".into(), fails(404));
    let lost = vec![Script::Lost];
    world.server.scripts.insert("j2".into(), lost);
    let mut jobs = cards("j", 2);
    jobs.push(card("j2").create().keyless());
    jobs.push(card("j3"));

    world.enqueue(jobs);
    world.run(60_000);

    let meter = queue(&mut world);
    let failures: Vec<_> = meter.failures.clone().into_iter().collect();
    let expected = [
        ((Reason::Http, Some(404)), 2),
        ((Reason::OutcomeUnknown, None), 1),
    ];
    assert_eq!(failures, expected);
    assert_eq!(meter.settled_as(State::Failed), 3);
    assert_eq!(meter.unanswered, 1);
}

#[test]
fn a_retry_and_a_cancel_leave_nothing_unaccounted() {
    let mut world = World::new(&["1/s"], None);
    world
        .server
        .scripts
        .insert("j0".into(), vec![Script::Status(404)]);
    world.enqueue(cards("j", 3));
    world.at(50);
    let target = || Target::Jobs(vec![JobId::parse("j0").unwrap()]);

    world.request(|request| Input::Retry {
        request,
        target: target(),
        force: paceline_core::io::Force::No,
    });
    let again = queue(&mut world);
    assert_eq!((again.accepted, again.settled(), again.live), (4, 1, 3));
    let rest = Target::Jobs(vec![JobId::parse("j2").unwrap()]);
    world.request(|request| Input::Cancel {
        request: Some(request),
        target: rest,
        reason: Reason::Cancelled,
    });
    world.run(60_000);

    let ended = queue(&mut world);
    assert_eq!((ended.accepted, ended.settled(), ended.live), (4, 4, 0));
    assert_eq!(ended.settled_as(State::Cancelled), 1);
}

#[test]
fn a_retry_before_the_failure_is_stored_takes_the_failure_back() {
    let mut world = World::new(&["10/s"], None);
    world.commit_ms = 10;
    world
        .server
        .scripts
        .insert("j0".into(), vec![Script::Status(404)]);
    world.enqueue(cards("j", 1));
    world.at(35);

    let target = Target::Jobs(vec![JobId::parse("j0").unwrap()]);
    world.request(|request| Input::Retry {
        request,
        target,
        force: paceline_core::io::Force::No,
    });
    world.run(60_000);

    let meter = queue(&mut world);
    assert_eq!((meter.accepted, meter.live), (1, 0));
    assert_eq!(meter.settled_as(State::Done), 1);
    let now = world.clock();
    let counts = world.core.snapshot(now).counts;
    assert_eq!(counts[State::Sending.index()], 0, "{counts:?}");
}

#[test]
fn a_bulk_that_fits_into_the_limit_says_nothing_of_its_use() {
    let mut world = World::new(&["10/s"], None);

    world.enqueue(cards("j", 10));
    world.run(60_000);

    assert_eq!(achieved(&mut world, "api").permille(), None);
}

#[test]
fn a_bulk_at_full_speed_uses_all_but_the_answers_times() {
    let mut world = World::new(&["10/s"], None);
    world.latency = Box::new(|| (25, 25));

    world.enqueue(cards("j", 300));
    world.run(120_000);

    // A slot is free one window after its answer: 1,000 of 1,051 ms until the floor is learned, more then.
    let share = achieved(&mut world, "api").permille().unwrap();
    assert!((950..=990).contains(&share), "{share}");
}

#[test]
fn a_bulk_that_concurrency_holds_up_uses_as_much_as_it_reaches() {
    // Two at a time, half a second each, are four a second of ten.
    let mut world = World::new(&["10/s"], Some(2));
    world.latency = Box::new(|| (250, 250));

    world.enqueue(cards("j", 400));
    world.run(600_000);

    let share = achieved(&mut world, "api").permille().unwrap();
    assert!((390..=410).contains(&share), "{share}");
}

#[test]
fn of_several_rules_the_one_that_allows_least_counts() {
    let mut world = World::new(&["10/s", "10000/1d"], None);

    world.enqueue(cards("j", 300));
    world.run(120_000);

    let share = achieved(&mut world, "api").permille().unwrap();
    assert!((950..=1_000).contains(&share), "{share}");
}

#[test]
fn a_pause_of_the_server_takes_off_and_a_wish_does_not() {
    let run = |until_free: Option<u64>, held_ms: u64| {
        let mut world = World::new(&["10/s"], None);
        if let Some(wait) = until_free {
            let script = vec![Script::RetryAfter(wait)];
            world.server.scripts.insert("j60".into(), script);
        }
        world.enqueue(cards("j", 300));
        world.at(2_500);
        if held_ms > 0 {
            user_hold(&mut world);
            world.at(2_500 + held_ms);
            resume(&mut world);
        }
        world.run(600_000);
        achieved(&mut world, "api")
    };
    let free = run(None, 0);

    let paused = run(Some(30_000), 0);
    let held = run(None, 30_000);

    let share = |achieved: Achieved| achieved.permille().unwrap();
    assert!(share(paused) * 3 < share(free) * 2, "{paused:?} {free:?}");
    // A stretch that ends between two turns of its window has that part of one against it.
    assert!(share(held) + 30 >= share(free), "{held:?} {free:?}");
    assert!(
        held.busy_ms < free.busy_ms + 1_000,
        "the hold is not counted: {held:?}"
    );
}

#[test]
fn a_parent_counts_what_all_under_it_use() {
    let root = |id: &str| -> BudgetConfig {
        let parent = Some(BudgetId::parse("root").unwrap());
        budget(id, &[], None).with_parent(parent)
    };
    let mut world = World::with(budget("root", &["10/s"], None), 7);
    world.input(Input::Configure(vec![root("left"), root("right")]));
    let of = |prefix: &str, id: &str| -> Vec<_> {
        let jobs = cards(prefix, 50).into_iter();
        jobs.map(|card| card.budget(id)).collect()
    };
    let mut jobs = of("l", "left");
    jobs.extend(of("r", "right"));

    world.enqueue(jobs);
    world.run(120_000);

    let share = achieved(&mut world, "root").permille().unwrap();
    assert!((950..=1_000).contains(&share), "{share}");
    let left = achieved(&mut world, "left");
    assert_eq!(left.allowed, None, "it has no limit of its own");
    let told = metrics(&mut world);
    let jobs = |id: &str| told.budgets[&BudgetId::parse(id).unwrap()].meter.settled();
    assert_eq!((jobs("left"), jobs("right"), jobs("root")), (50, 50, 0));
}

#[test]
fn a_new_owner_begins_with_what_is_unsettled() {
    let mut world = World::new(&["1/s"], None);
    world.enqueue(cards("j", 3));
    world.at(500);
    assert_eq!(queue(&mut world).settled(), 1);

    world.crash_and_restart(vec![budget("api", &["1/s"], None)]);

    let told = metrics(&mut world);
    assert_eq!(told.since.as_millis(), EPOCH + 500);
    let meter = told.queue;
    assert_eq!((meter.accepted, meter.settled(), meter.live), (2, 0, 2));
    world.run(60_000);
    // The second one waited under both owners.
    let waits = queue(&mut world).waits(Lane::Bulk).clone();
    assert!(waits.quantile(1).unwrap() >= 1_000, "{waits:?}");
}

#[test]
fn a_principal_is_told_of_its_own_jobs() {
    let mut world = World::new(&["100/s"], None);
    let mut mine = card("mine");
    mine.principal = "mira".into();

    world.enqueue(vec![mine, card("other")]);
    world.run(60_000);

    let now = world.clock();
    let own = |world: &mut World, principal: &str| world.core.metrics(principal, now).own;
    assert_eq!(own(&mut world, "mira").unwrap().settled(), 1);
    assert_eq!(own(&mut world, "nobody"), None);
    assert_eq!(queue(&mut world).settled(), 2);
}
