//! Claims that hold for any traffic, latency and failure, as an outside judge sees them.

mod kit;

use std::collections::BTreeMap;

use kit::{CardExt, Script, World, budget, card};
use oorandom::Rand64;
use paceline_core::job::{Lane, State};
use proptest::prelude::*;

/// A job's number, key, lane and cost.
type Planned = (usize, u8, u8, u8);

/// A latency that is split between the ways there and back by chance.
fn jitter(seed: u64, low: u64, high: u64) -> Box<dyn FnMut() -> (u64, u64)> {
    let mut rng = Rand64::new(u128::from(seed));
    Box::new(move || {
        let total = rng.rand_range(low..high + 1);
        let there = rng.rand_range(0..total + 1);
        (there, total - there)
    })
}

/// A latency of which each way takes half, as the strict server has it by default.
fn halves(seed: u64, low: u64, high: u64) -> Box<dyn FnMut() -> (u64, u64)> {
    let mut rng = Rand64::new(u128::from(seed));
    Box::new(move || {
        let total = rng.rand_range(low..high + 1);
        (total / 2, total - total / 2)
    })
}

fn assert_order_in_keys(world: &World, keys: &BTreeMap<String, Vec<String>>) {
    for jobs in keys.values() {
        let mut first: Vec<usize> = Vec::new();
        for job in jobs {
            first.extend(
                world
                    .server
                    .arrivals
                    .iter()
                    .position(|arrival| arrival.id == *job),
            );
        }
        assert!(
            first.windows(2).all(|pair| pair[0] < pair[1]),
            "{jobs:?} came as {:?}",
            world.server.ids()
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// The property that the field knows: random arrivals, never more than the limit in any second, nothing refused.
    #[test]
    fn never_above_the_limit_in_any_window(
        arrivals in prop::collection::vec(0_u64..5_000, 1..300),
        seed in any::<u64>(),
    ) {
        let mut world = World::new(&["10/1s"], Some(4));
        world.server.limit = Some((10, 1_000));
        world.latency = halves(seed, 300, 300);
        let mut arrivals = arrivals;
        arrivals.sort_unstable();
        for (n, at) in arrivals.iter().enumerate() {
            world.at(*at).enqueue(vec![card(&format!("j{n}"))]);
        }
        world.run(300_000);

        prop_assert!(world.server.max_seen(1_000) <= 10);
        prop_assert_eq!(world.server.refused(), 0);
        prop_assert!(world.max_in_flight <= 4);
        prop_assert!(world.settled.values().all(|(state, _, _)| *state == State::Done));
        prop_assert_eq!(world.settled.len(), arrivals.len());
    }

    /// Without the learned floor, the claim holds whatever the jitter.
    #[test]
    fn the_log_holds_whatever_the_jitter(
        count in 1_usize..19,
        limit in 1_u64..8,
        seed in any::<u64>(),
    ) {
        let mut world = World::new(&[&format!("{limit}/1s")], None);
        world.server.limit = Some((limit as usize, 1_000));
        world.latency = jitter(seed, 0, 900);

        world.enqueue((0..count).map(|n| card(&format!("j{n}"))).collect());
        world.run(300_000);

        prop_assert!(world.server.max_seen(1_000) as u64 <= limit);
        prop_assert_eq!(world.server.refused(), 0);
    }

    /// Whatever fails and whenever the host dies: every job settles, keys keep their order, the limit holds.
    #[test]
    fn no_job_is_lost_and_no_key_reordered(
        jobs in prop::collection::vec((0_u64..8_000, 0_u8..6, 0_u8..3, 0_u8..4), 1..80),
        faults in prop::collection::vec((0_usize..80, 0_u8..4), 0..30),
        crashes in prop::collection::vec(1_u64..20_000, 0..4),
        commit_ms in 0_u64..30,
        seed in any::<u64>(),
    ) {
        let config = || budget("api", &["8/1s", "40/10s"], Some(5));
        let mut world = World::with(config(), seed);
        world.latency = jitter(seed, 0, 200);
        world.commit_ms = commit_ms;
        for (n, fault) in faults {
            let script = match fault {
                0 => Script::Status(503),
                1 => Script::RetryAfter(2_000),
                2 => Script::Lost,
                _ => Script::Status(422),
            };
            world.server.scripts.entry(format!("j{n}")).or_default().push(script);
        }
        let mut plan: Vec<(u64, Option<Planned>)> =
            jobs.iter().enumerate().map(|(n, (at, key, lane, cost))| (*at, Some((n, *key, *lane, *cost)))).collect();
        plan.extend(crashes.into_iter().map(|at| (at, None)));
        plan.sort_by_key(|(at, _)| *at);
        let mut keys: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut asked = Vec::new();
        for (at, job) in plan {
            world.at(at);
            let Some((n, key, lane, cost)) = job else {
                world.crash_and_restart(vec![config()]);
                continue;
            };
            let mut made = card(&format!("j{n}")).lane(Lane::ALL[usize::from(lane)]).cost(u32::from(cost).max(1));
            if key > 0 {
                made = made.key(&format!("k{key}"));
            }
            asked.push((world.enqueue(vec![made]), format!("j{n}"), key));
        }
        world.run_until(world.now + 400_000);

        let stored: Vec<String> =
            world.disk.batches.values().flatten().map(|card| card.id.as_str().to_owned()).collect();
        for (request, id, key) in asked {
            if world.reply(request).is_some() {
                prop_assert!(stored.contains(&id), "{} was accepted and lost", id);
            }
            if key > 0 && stored.contains(&id) {
                keys.entry(format!("k{key}")).or_default().push(id);
            }
        }
        for record in world.disk.records.values() {
            prop_assert!(record.state.is_settled(), "{record:?}");
        }
        prop_assert_eq!(world.disk.records.len(), stored.len());
        prop_assert_eq!(world.core.poll_timeout(), None);
        assert_order_in_keys(&world, &keys);
    }

    /// The same inputs give the same effects.
    #[test]
    fn same_inputs_same_outputs(count in 1_usize..60, seed in any::<u64>()) {
        let run = || {
            let mut world = World::with(budget("api", &["5/1s"], Some(3)), seed);
            world.latency = jitter(seed, 0, 400);
            world.server.limit = Some((3, 1_000));
            world.enqueue((0..count).map(|n| card(&format!("j{n}"))).collect());
            world.run_until(60_000);
            world.trace
        };

        prop_assert_eq!(run(), run());
    }
}

/// 2,000 jobs at 10 per second, 300 ms, 4 in flight: an event simulation gave 230 s with the learned floor.
#[test]
fn a_bulk_of_two_thousand_ends_in_time() {
    let mut world = World::new(&["10/1s"], Some(4));
    world.server.limit = Some((10, 1_000));
    world.latency = halves(1, 300, 300);

    world.enqueue((0..2_000).map(|n| card(&format!("j{n}"))).collect());
    world.run(400_000);

    let last = world.settled.values().map(|(_, _, at)| *at).max().unwrap();
    println!(
        "2,000 jobs at 10/s, 300 ms, 4 in flight: {:.1} s",
        last as f64 / 1_000.0
    );
    assert!(last < 235_000, "{last}");
    assert_eq!(world.server.refused(), 0);
    assert!(world.server.max_seen(1_000) <= 10);
}

/// 500 jobs at 50 per second with 20 to 120 ms: the share of the ideal is at least 0.88.
#[test]
fn a_bulk_comes_near_the_ideal() {
    let mut world = World::new(&["50/1s"], None);
    world.server.limit = Some((50, 1_000));
    world.latency = halves(3, 20, 120);
    world.commit_ms = 3;

    world.enqueue((0..500).map(|n| card(&format!("j{n}"))).collect());
    world.run(60_000);

    let last = world.settled.values().map(|(_, _, at)| *at).max().unwrap();
    let share = 9_000.0 / last as f64;
    println!("500 jobs at 50/s: {share:.3} of the ideal");
    assert!(share > 0.88, "{share}");
    assert_eq!(world.server.refused(), 0);
}

/// 50 per second with 20 to 120 ms: judged from when the floor is learned on, after the first windows.
#[test]
fn a_long_bulk_stays_near_the_ideal_once_the_floor_is_learned() {
    for seed in 1..4 {
        let mut world = World::new(&["50/1s"], None);
        world.server.limit = Some((50, 1_000));
        world.latency = halves(seed, 20, 120);
        world.commit_ms = 3;

        world.enqueue((0..1_000).map(|n| card(&format!("j{n}"))).collect());
        world.run_until(18_000);

        let starts = world.server.starts();
        let learned = starts.iter().filter(|at| (3_000..18_000).contains(*at));
        let permille = learned.count() * 1_000 / (15 * 50);
        println!("50/s, 20 to 120 ms, floor learned: 0.{permille} of the ideal");
        assert!(permille >= 920, "{permille}");
        assert_eq!(world.server.refused(), 0);
    }
}
