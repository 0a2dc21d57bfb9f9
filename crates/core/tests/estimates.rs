//! What the scheduler says of times to come, held against what then happens on a fake clock.

mod kit;

use std::collections::BTreeMap;

use kit::{CardExt, EPOCH, Script, World, card, cards};
use paceline_core::config::{Algorithm, BudgetConfig, LimitRule};
use paceline_core::forecast::POINTS;
use paceline_core::ids::BudgetId;
use paceline_core::io::Input;
use paceline_core::job::{Card, HoldCause, Lane};
use paceline_core::plan::{PlanRefusal, Step, StepError};
use paceline_core::time::Wall;
use proptest::prelude::*;

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

fn step(lane: Lane, count: u64, cost: u64, every_ms: u64) -> Step {
    Step::new(budget_id(), lane, count, cost, every_ms).expect("in range")
}

fn wall(millis: u64) -> Wall {
    Wall::from_millis(EPOCH + millis)
}

/// Hands the jobs of a plan in as it says.
fn carry_out(world: &mut World, plan: &[Step]) {
    let began = world.now;
    let mut jobs: BTreeMap<u64, Vec<Card>> = BTreeMap::new();
    for (index, step) in plan.iter().enumerate() {
        for n in 0..step.count() {
            let card = card(&format!("step{index}-{n}"))
                .lane(step.lane())
                .cost(step.cost());
            let at = began + u64::from(n) * step.every_ms();
            jobs.entry(at).or_default().push(card);
        }
    }
    for (at, cards) in jobs {
        // Before what else happens at that instant, so that a slot that is freed then is theirs to have.
        world.run_until(at.saturating_sub(1).max(world.now));
        world.now = at;
        world.enqueue(cards);
    }
    world.run(1_000_000_000);
}

/// When the last job of a step was done.
fn done_at(world: &World, index: usize) -> u64 {
    let prefix = format!("step{index}-");
    let jobs = world.settled.iter();
    let ends = jobs.filter(|(id, _)| id.starts_with(&prefix));
    ends.map(|(_, (_, _, at))| *at).max().expect("done")
}

/// What the core can be seen to be.
fn state(world: &mut World) -> String {
    let timeout = world.core.poll_timeout();
    format!("{:?} {timeout:?}", world.core)
}

#[test]
fn an_estimate_says_when_the_last_is_done_and_which_rule_is_used_up_when() {
    let mut world = seen(&["10/1s"], None, 100);
    world.run_until(10_000);

    let few = world
        .core
        .estimate(&step(Lane::Bulk, 10, 1, 0), world.clock())
        .unwrap();
    let many = world
        .core
        .estimate(&step(Lane::Bulk, 25, 1, 0), world.clock())
        .unwrap();

    assert_eq!(few.eta_ms, Some(100));
    assert!(few.used_up.is_empty() && !few.is_estimate);
    // A slot is free a window and the clock's grain after its answer, less half of a steady answer's time once that is
    // known, which it is in the second window.
    assert_eq!(many.eta_ms, Some(1_101 + 1_051 + 100));
    assert_eq!(many.starts_at, Some(wall(10_000)));
    assert_eq!(many.used_up[0].used_up_at, wall(10_000));
    assert_eq!(many.used_up[0].rule.limit(), 10);
}

#[test]
fn an_estimate_counts_what_waits_before_it() {
    let mut world = seen(&["10/1s"], None, 100);
    world.run_until(10_000);
    world.enqueue(cards("j", 20));
    world.run_until(10_000);
    let eta = |lane| {
        let step = step(lane, 1, 1, 0);
        world.core.estimate(&step, world.clock()).unwrap().eta_ms
    };

    assert_eq!(eta(Lane::Interactive), Some(1_101 + 100));
    assert_eq!(eta(Lane::Bulk), Some(1_101 + 1_051 + 100));
}

#[test]
fn an_estimate_is_refused_for_an_unknown_budget_and_for_a_cost_that_never_fits() {
    let world = World::new(&["10/1s"], None);
    let other = BudgetId::parse("other").expect("a name");
    let unknown = Step::new(other.clone(), Lane::Bulk, 1, 1, 0).unwrap();

    let answers = [unknown, step(Lane::Bulk, 1, 11, 0)]
        .map(|step| world.core.estimate(&step, world.clock()).unwrap_err());

    let never = PlanRefusal::NeverFits {
        index: 0,
        cost: 11,
        largest: 10,
    };
    let unknown = PlanRefusal::UnknownBudget {
        index: 0,
        budget: other,
    };
    assert_eq!(answers, [unknown, never]);
}

#[test]
fn numbers_out_of_range_make_no_step() {
    let make = |count, cost, every_ms| Step::new(budget_id(), Lane::Bulk, count, cost, every_ms);

    assert_eq!(make(0, 1, 0), Err(StepError::Count(0)));
    assert_eq!(make(10_000_001, 1, 0), Err(StepError::Count(10_000_001)));
    assert_eq!(make(1, 0, 0), Err(StepError::Cost(0)));
    assert_eq!(make(1, 1, 86_400_001), Err(StepError::EveryMs(86_400_001)));
}

#[test]
fn an_estimate_is_unknown_while_held() {
    let mut world = seen(&["10/1s"], None, 100);
    world.request(|request| Input::Hold {
        request: Some(request),
        budget: Some(budget_id()),
        cause: HoldCause::User,
    });

    let told = world
        .core
        .estimate(&step(Lane::Bulk, 1, 1, 0), world.clock())
        .unwrap();

    assert_eq!((told.eta_ms, told.done_at), (None, None));
}

#[test]
fn a_plan_of_days_is_reckoned_by_whole_windows_and_late_by_one_at_most() {
    let mut world = World::new(&["100/10s", "250000/1d"], None);
    world.run_until(1_000);

    let told = world
        .core
        .estimate(&step(Lane::Bulk, 600_000, 1, 0), world.clock())
        .unwrap();

    let day_ms = 86_400_000;
    let hours = |count: u64| count * 3_600_000;
    let eta_ms = told.eta_ms.expect("known");
    // 250,000 take seven hours; the third day's 100,000 take three more.
    assert!(eta_ms >= 2 * day_ms + hours(2), "{eta_ms}");
    assert!(eta_ms <= 3 * day_ms + hours(10), "{eta_ms}");
    assert!(told.is_extrapolated && told.is_estimate);
    let daily = told
        .used_up
        .iter()
        .find(|used| used.rule.window_ms() == day_ms);
    let used_up_ms = daily.expect("the quota").used_up_at.since(wall(1_000));
    assert!((hours(6)..hours(8)).contains(&used_up_ms), "{used_up_ms}");
}

#[test]
fn a_plan_too_long_to_run_is_late_by_a_window_at_most() {
    for (rules, max_in_flight) in [(&["100/10s"][..], None), (&["50/1s", "1000/60s"], Some(4))] {
        let mut world = seen(rules, max_in_flight, 120);
        world.run_until(1_000_000);
        let plan = [step(Lane::Bulk, 2_200, 1, 0)];

        let told = world.core.simulate(&plan, world.clock()).unwrap();

        carry_out(&mut world, &plan);
        assert!(told.is_extrapolated);
        let (real, told) = (wall(done_at(&world, 0)), told.done_at.expect("known"));
        let window_ms = 60_000;
        assert!(
            told.plus(1_000) >= real && told <= real.plus(window_ms),
            "{told:?} {real:?}"
        );
    }
}

#[test]
fn a_timeline_is_bounded_and_ends_with_all_done() {
    let mut world = seen(&["10/1s"], Some(4), 100);
    let plan = [
        step(Lane::Bulk, 1_000, 1, 0),
        step(Lane::Interactive, 50, 1, 700),
    ];

    let told = world.core.simulate(&plan, world.clock()).unwrap();

    for (timeline, step) in told.steps.iter().zip(&plan) {
        assert!(
            timeline.points.len() <= POINTS as usize,
            "{}",
            timeline.points.len()
        );
        assert_eq!(
            timeline.points.last(),
            Some(&(timeline.done_at.unwrap(), step.count()))
        );
        assert!(timeline.points.is_sorted());
    }
    assert_eq!(told.waits[&Lane::Bulk].count(), 1_000);
    let (click, bulk) = (&told.waits[&Lane::Interactive], &told.waits[&Lane::Bulk]);
    assert!(click.quantile(950) < bulk.quantile(500));
    assert_eq!(told.budgets[&budget_id()].units, 1_050);
    carry_out(&mut world, &plan);
    assert_eq!(told.done_at, Some(wall(done_at(&world, 0))));
}

fn rule(algorithm: Algorithm, limit: u64, window_ms: u64) -> LimitRule {
    LimitRule::new(limit, window_ms, algorithm).expect("a rule")
}

/// Lane, count, cost and gap of a step.
type Planned = (u8, u64, u64, u64);

fn lane_of(number: u8) -> Lane {
    Lane::ALL[usize::from(number) % 3]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// A simulation changes nothing, and the real scheduler then does what it said: each step ends at the instant that
    /// was named, to the millisecond.
    #[test]
    fn the_real_scheduler_then_does_what_was_simulated(
        algorithm in prop::sample::select(Algorithm::ALL.to_vec()),
        second_rule in any::<bool>(),
        max_in_flight in prop::option::of(1_u64..6),
        latency_ms in 1_u64..2_000,
        waiting in prop::collection::vec((0_u8..3, 1_u32..4), 0..30),
        planned in prop::collection::vec((0_u8..3, 1_u64..40, 1_u64..4, 0_u64..400), 1..4),
        is_paused in any::<bool>(),
    ) {
        let mut rules = vec![rule(algorithm, 6, 1_000)];
        rules.extend(second_rule.then(|| rule(Algorithm::SlidingLog, 30, 20_000)));
        let config = BudgetConfig::new(budget_id(), rules, max_in_flight, 1_000, None).unwrap();
        let mut world = World::with(config, 7);
        world.latency = Box::new(move || (latency_ms / 2, latency_ms - latency_ms / 2));
        world.enqueue(cards("seen", 3));
        world.run(1_000_000);
        if is_paused {
            world.server.scripts.insert("refused".into(), vec![Script::RetryAfter(3_000)]);
            world.enqueue(vec![card("refused")]);
            while world.events.is_empty() {
                world.step(1_000_000);
            }
        }
        for (n, (lane, cost)) in waiting.into_iter().enumerate() {
            world.enqueue(vec![card(&format!("w{n}")).lane(lane_of(lane)).cost(cost)]);
        }
        world.run_until(world.now + 1);
        let plan: Vec<Step> = planned
            .into_iter()
            .map(|(lane, count, cost, every_ms): Planned| step(lane_of(lane), count, cost, every_ms))
            .collect();
        let before = state(&mut world);

        let told = world.core.simulate(&plan, world.clock()).unwrap();
        let estimate = world.core.estimate(&plan[0], world.clock()).unwrap();

        prop_assert!(before == state(&mut world), "asking changed something");
        prop_assert!(estimate.eta_ms.is_some());
        carry_out(&mut world, &plan);
        for (index, timeline) in told.steps.iter().enumerate() {
            let (real, told) = (wall(done_at(&world, index)), timeline.done_at.unwrap());
            prop_assert_eq!(real, told, "step {}", index);
        }
    }
}
