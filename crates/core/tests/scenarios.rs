//! What users of other libraries met, and what the scheduler must do, on a fake clock.
//!
//! | | what was met | test |
//! |---|---|---|
//! | S1 | retries beyond the limit | [`retries_spend_the_same_budget`] |
//! | S2 | two bursts at a boundary | [`no_double_burst_at_a_boundary`] |
//! | S3 | a refill that stops when limits are set again | [`changing_limits_keeps_the_refill_alive`] |
//! | S4 | promises that a clear leaves open | [`cancel_settles_every_waiting_job_and_lets_the_live_one_end`] |
//! | S5 | too slow after a pause of the app | `named.rs`: `a_window_that_was_filled_long_ago_does_not_delay_what_comes_now` |
//! | S6 | heavy jobs starve | [`a_heavy_job_is_not_starved`], [`a_cost_that_can_never_fit_is_refused_at_once`] |
//! | S7 | one refusal, and the others go on | [`one_refusal_stops_the_whole_budget`] |
//! | S8 | all retry at one instant | [`parallel_refusals_do_not_retry_together`] |
//! | S9 | a create is done twice | [`only_what_is_safe_is_repeated`] |
//! | S10 | a crash loses what was on its way | [`a_crash_between_send_and_answer_loses_nothing`] |
//! | S11 | a new job overtakes a retry of its key | [`a_new_job_cannot_jump_the_queue_of_its_key`] |
//! | S12 | a start that replays twice | [`a_start_up_replays_once`] |
//!
//! What the design names beyond these is in `named.rs`; S13 and S14 need real tabs.

mod kit;

use kit::{CardExt, EPOCH, Script, World, bucket, budget, card, cards};
use paceline_core::config::{Algorithm, BudgetConfig, LimitRule};
use paceline_core::ids::{BudgetId, GroupId, JobId};
use paceline_core::io::{
    Answer, Cause, Event, Filter, Force, Input, Network, Refusal, Reply, Target, Verdict,
};
use paceline_core::job::{HoldCause, Lane, Reason, State};
use paceline_core::time::{Now, Wall};

fn job_id(id: &str) -> JobId {
    JobId::parse(id).expect("a name")
}

fn state(world: &World, id: &str) -> State {
    world
        .settled
        .get(id)
        .map(|(state, _, _)| *state)
        .unwrap_or(State::Queued)
}

fn reason(world: &World, id: &str) -> Option<Reason> {
    world
        .settled
        .get(id)
        .and_then(|(_, outcome, _)| outcome.reason)
}

#[test]
fn retries_spend_the_same_budget() {
    let mut world = World::new(&["1/1s"], None);
    for n in (0..10).step_by(2) {
        world
            .server
            .scripts
            .insert(format!("j{n}"), vec![Script::Status(503)]);
    }

    world.enqueue(cards("j", 10));
    world.run(120_000);

    let starts = world.server.starts();
    assert_eq!(starts.len(), 15);
    assert!(
        starts.windows(2).all(|pair| pair[1] - pair[0] >= 1_000),
        "{starts:?}"
    );
    assert_eq!(world.settled.len(), 10);
}

#[test]
fn no_double_burst_at_a_boundary() {
    let mut world = World::new(&["5/1s"], None);

    world.at(999).enqueue(cards("j", 10));
    world.run(10_000);

    assert_eq!(
        world
            .server
            .starts()
            .iter()
            .filter(|at| **at == 999)
            .count(),
        5
    );
    assert_eq!(world.server.max_seen(1_000), 5);
}

#[test]
fn changing_limits_keeps_the_refill_alive() {
    let mut world = World::with(bucket("api", 5, 5_000), 1);
    world.enqueue(cards("first", 5));
    world.run_until(20);

    world.input(Input::Configure(vec![bucket("api", 5, 5_000)]));
    world.enqueue(cards("j", 10));
    world.run(60_000);

    let last = *world.server.starts().last().unwrap();
    assert!((9_000..=11_000).contains(&last), "{last}");
    assert_eq!(world.settled.len(), 15);
}

#[test]
fn a_heavy_job_is_not_starved() {
    let mut world = World::with(bucket("api", 5, 5_000), 1);
    for second in 0..20 {
        world
            .at(second * 1_000)
            .enqueue(vec![card(&format!("light{second}"))]);
        if second == 1 {
            world.enqueue(vec![card("heavy").cost(5)]);
        }
    }
    world.run(60_000);

    let heavy = world
        .server
        .arrivals
        .iter()
        .find(|arrival| arrival.id == "heavy")
        .unwrap();
    assert!(heavy.started_at <= 11_000, "{}", heavy.started_at);
}

#[test]
fn a_cost_that_can_never_fit_is_refused_at_once() {
    let mut world = World::with(bucket("api", 5, 5_000), 1);

    let request = world.enqueue(vec![card("a"), card("b").cost(6)]);

    let refusal = Refusal::NeverFits {
        index: 1,
        cost: 6,
        largest: 5,
    };
    assert_eq!(world.reply(request), Some(&Reply::Refused(refusal)));
    assert!(world.disk.batches.is_empty());
}

#[test]
fn one_refusal_stops_the_whole_budget() {
    let mut world = World::new(&["10/1s"], None);
    world
        .server
        .scripts
        .insert("first".into(), vec![Script::RetryAfter(60_000)]);
    world.enqueue(vec![card("first")]);
    world.run_until(8);
    world.run_until(10);
    world.enqueue(cards("j", 20));
    let refused_at = 10;
    world.run_until(refused_at);

    let views = world.core.jobs(
        &Filter {
            limit: 100,
            ..Filter::default()
        },
        world.clock(),
    );
    let until = views
        .iter()
        .filter(|view| view.state == State::Queued)
        .map(|view| view.until.unwrap())
        .max()
        .unwrap();
    assert!(
        views.iter().all(|view| view.cause == Some(Cause::Paused)),
        "{views:?}"
    );
    world.run(200_000);

    let starts = world.server.starts();
    assert!(
        starts[1..].iter().all(|at| *at >= refused_at + 60_000),
        "{starts:?}"
    );
    assert!(until.as_millis() >= EPOCH + refused_at + 60_000);
    assert_eq!(world.server.ids()[1], "first");
    assert_eq!(world.settled.len(), 21);
}

#[test]
fn parallel_refusals_do_not_retry_together() {
    let run = || {
        let mut world = World::new(&[], Some(50));
        for n in 0..50 {
            world
                .server
                .scripts
                .insert(format!("j{n}"), vec![Script::Status(429)]);
        }
        world.enqueue(cards("j", 50));
        world.run(60_000);
        world.server.starts()[50..].to_vec()
    };

    let starts = run();

    let first = starts[0];
    let in_slice = |slice: u64| {
        starts
            .iter()
            .filter(|at| (**at - first) / 100 == slice)
            .count()
    };
    assert_eq!(starts.len(), 50);
    assert!((0..40).map(in_slice).all(|count| count <= 12), "{starts:?}");
    assert_eq!(starts, run());
}

#[test]
fn only_what_is_safe_is_repeated() {
    let mut world = World::new(&["10/1s"], None);
    world
        .server
        .scripts
        .insert("refused".into(), vec![Script::RetryAfter(1_000)]);
    world
        .server
        .scripts
        .insert("keyed".into(), vec![Script::Status(502)]);
    world
        .server
        .scripts
        .insert("keyless".into(), vec![Script::Status(502)]);

    world.enqueue(vec![
        card("keyless").create().keyless(),
        card("keyed").create(),
    ]);
    world.run_until(1_500);
    world.enqueue(vec![card("refused").create().keyless()]);
    world.run(60_000);

    let keys: Vec<_> = world
        .server
        .arrivals
        .iter()
        .filter(|arrival| arrival.id == "keyed")
        .map(|a| a.key.clone())
        .collect();
    assert_eq!(keys, vec![Some("key-keyed".to_owned()); 2]);
    assert_eq!(state(&world, "refused"), State::Done);
    assert_eq!(reason(&world, "keyless"), Some(Reason::OutcomeUnknown));
    assert_eq!(
        world
            .server
            .ids()
            .iter()
            .filter(|id| **id == "keyless")
            .count(),
        1
    );
}

#[test]
fn a_crash_between_send_and_answer_loses_nothing() {
    let mut world = World::new(&["10/1s"], None);
    world.latency = Box::new(|| (50, 50));
    world.enqueue(vec![card("a").create()]);
    world.run_until(20);

    world.crash_and_restart(vec![budget("api", &["10/1s"], None)]);
    world.run(60_000);

    let keys: Vec<_> = world
        .server
        .arrivals
        .iter()
        .map(|arrival| arrival.key.as_deref())
        .collect();
    assert_eq!(keys, [Some("key-a"), Some("key-a")]);
    assert_eq!(state(&world, "a"), State::Done);
    assert_eq!(world.disk.records.values().next().unwrap().attempt, 2);
}

#[test]
fn an_unsafe_attempt_of_a_dead_owner_ends_as_unknown() {
    let mut world = World::new(&["10/1s"], None);
    world.latency = Box::new(|| (50, 50));
    world.enqueue(vec![card("a").create().keyless()]);
    world.run_until(20);

    world.crash_and_restart(vec![budget("api", &["10/1s"], None)]);
    world.run(60_000);

    assert_eq!(reason(&world, "a"), Some(Reason::OutcomeUnknown));
    assert_eq!(world.server.arrivals.len(), 1);
}

#[test]
fn a_new_job_cannot_jump_the_queue_of_its_key() {
    let mut world = World::new(&["10/1s"], None);
    world
        .server
        .scripts
        .insert("a".into(), vec![Script::Status(503), Script::Status(503)]);
    world.enqueue(vec![card("a").key("order:7"), card("b").key("order:7")]);
    world.run_until(30);

    world.enqueue(vec![card("c").key("order:7").lane(Lane::Interactive)]);
    world.run(60_000);

    assert_eq!(world.server.ids(), ["a", "a", "a", "b", "c"]);
}

#[test]
fn a_start_up_replays_once() {
    let mut world = World::new(&["10/1s"], None);
    world.request(|request| Input::Hold {
        request: Some(request),
        budget: None,
        cause: HoldCause::User,
    });
    world.enqueue(cards("j", 3));
    world.run_until(10);

    world.crash_and_restart(vec![budget("api", &["10/1s"], None)]);
    world.input(Input::Configure(vec![budget("api", &["10/1s"], None)]));
    world.request(|request| Input::Resume {
        request,
        budget: None,
    });
    world.run(60_000);

    assert_eq!(world.server.arrivals.len(), 3);
}

#[test]
fn cancel_settles_every_waiting_job_and_lets_the_live_one_end() {
    let mut world = World::new(&[], Some(1));
    let group = GroupId::parse("g").unwrap();
    world.enqueue(
        cards("j", 21)
            .into_iter()
            .map(|card| card.group("g"))
            .collect(),
    );
    world.run_until(5);

    let target = Target::Group(group);
    let request = world.request(|request| Input::Cancel {
        request: Some(request),
        target,
        reason: Reason::Cancelled,
    });
    world.run_until(5);

    assert_eq!(
        world.reply(request),
        Some(&Reply::Cancelled {
            cancelled: 20,
            already_sent: 1
        })
    );
    assert_eq!(world.settled.len(), 20);
    world.run(10_000);
    assert_eq!(state(&world, "j0"), State::Done);
    assert_eq!(
        world.groups_settled,
        vec![(GroupId::parse("g").unwrap(), 1, 0, 20)]
    );
}

#[test]
fn a_pause_survives_a_restart() {
    let mut world = World::new(&["10/1s"], None);
    world
        .server
        .scripts
        .insert("j0".into(), vec![Script::RetryAfter(30_000)]);
    world.enqueue(cards("j", 1));
    world.run_until(100);

    world.crash_and_restart(vec![budget("api", &["10/1s"], None)]);
    world.enqueue(cards("k", 5));
    world.run(120_000);

    assert!(
        world.server.starts()[1..].iter().all(|at| *at >= 30_010),
        "{:?}",
        world.server.starts()
    );
}

#[test]
fn a_new_owner_counts_what_the_old_one_sent() {
    let mut world = World::new(&["10/10s"], None);
    world.enqueue(cards("j", 10));
    world.run_until(1_000);

    world.crash_and_restart(vec![budget("api", &["10/10s"], None)]);
    world.enqueue(cards("k", 10));
    world.run(60_000);

    assert_eq!(world.server.max_seen(10_000), 10);
    assert_eq!(world.settled.len(), 20);
}

#[test]
fn the_same_name_twice_is_the_same_job() {
    let mut world = World::new(&["10/1s"], None);
    world.enqueue(vec![card("a"), card("a")]);
    world.run_until(2_000);

    let request = world.enqueue(vec![card("a")]);
    world.run(10_000);

    assert_eq!(world.server.arrivals.len(), 1);
    let Some(Reply::Accepted { jobs }) = world.reply(request) else {
        panic!("accepted")
    };
    assert_eq!(jobs[0].1, State::Done);
}

#[test]
fn a_failed_job_can_be_sent_again_with_a_new_key() {
    let mut world = World::new(&["10/1s"], None);
    world
        .server
        .scripts
        .insert("a".into(), vec![Script::Status(400)]);
    world.enqueue(vec![card("a").group("g")]);
    world.run_until(1_000);
    assert_eq!(reason(&world, "a"), Some(Reason::Http));

    let target = Target::Jobs(vec![job_id("a")]);
    let request = world.request(|request| Input::Retry {
        request,
        target,
        force: Force::No,
    });
    world.run(60_000);

    assert_eq!(
        world.reply(request),
        Some(&Reply::Retried {
            retried: 1,
            needs_force: 0,
            stale: 0
        })
    );
    assert_eq!(world.server.arrivals[1].key.as_deref(), Some("key-a.1"));
    assert_eq!(world.groups_settled.last().unwrap().1, 1);
}

#[test]
fn an_unknown_outcome_is_repeated_only_by_force() {
    let mut world = World::new(&["10/1s"], None);
    world
        .server
        .scripts
        .insert("a".into(), vec![Script::Status(502)]);
    world.enqueue(vec![card("a").create().keyless()]);
    world.run_until(1_000);

    let target = || Target::Jobs(vec![job_id("a")]);
    let refused = world.request(|request| Input::Retry {
        request,
        target: target(),
        force: Force::No,
    });
    world.run_until(1_100);
    let forced = world.request(|request| Input::Retry {
        request,
        target: target(),
        force: Force::Yes,
    });
    world.run(60_000);

    assert_eq!(
        world.reply(refused),
        Some(&Reply::Retried {
            retried: 0,
            needs_force: 1,
            stale: 0
        })
    );
    assert_eq!(
        world.reply(forced),
        Some(&Reply::Retried {
            retried: 1,
            needs_force: 0,
            stale: 0
        })
    );
    assert_eq!(state(&world, "a"), State::Done);
}

#[test]
fn a_job_that_waits_too_long_expires() {
    let mut world = World::new(&["1/10s"], None);
    let mut late = card("late");
    late.expires_at = Some(Wall::from_millis(EPOCH + 5_000));
    world.enqueue(vec![card("first"), late]);

    world.run(60_000);

    assert_eq!(reason(&world, "late"), Some(Reason::Expired));
    assert_eq!(world.settled["late"].2, 5_000);
    assert_eq!(world.server.arrivals.len(), 1);
}

#[test]
fn attempts_are_capped() {
    let mut world = World::new(&["10/1s"], None);
    world
        .server
        .scripts
        .insert("a".into(), vec![Script::Status(503); 20]);

    world.enqueue(vec![card("a")]);
    world.run(300_000);

    assert_eq!(world.server.arrivals.len(), 5);
    assert_eq!(reason(&world, "a"), Some(Reason::RetriesExhausted));
}

#[test]
fn a_lost_answer_times_out_and_keeps_its_slot() {
    let mut world = World::new(&["1/1s"], None);
    world.server.scripts.insert("a".into(), vec![Script::Lost]);

    world.enqueue(vec![card("a"), card("b")]);
    world.run(60_000);

    let starts = world.server.starts();
    assert!(starts[1] >= 16_000, "{starts:?}");
    assert_eq!(world.settled.len(), 2);
}

#[test]
fn an_interactive_edit_takes_the_next_slot_of_a_bulk() {
    let mut world = World::new(&["10/1s"], None);
    world.enqueue(
        (0..2_000)
            .map(|n| card(&format!("b{n}")).key(&format!("contact:{n}")))
            .collect(),
    );
    world.run_until(5_050);

    world.enqueue(vec![card("edit").key("other").lane(Lane::Interactive)]);
    let before = world.server.arrivals.len();
    world.run_until(7_000);

    assert_eq!(world.server.ids()[before], "edit");
}

#[test]
fn an_edit_lends_its_lane_to_the_jobs_before_it() {
    let mut world = World::new(&["10/1s"], None);
    world.enqueue(
        (0..2_000)
            .map(|n| card(&format!("b{n}")).key(&format!("contact:{n}")))
            .collect(),
    );
    world.run_until(5_050);

    world.enqueue(vec![
        card("edit").key("contact:1999").lane(Lane::Interactive),
    ]);
    let before = world.server.arrivals.len();
    world.run_until(8_000);

    let next = &world.server.ids()[before..];
    assert_eq!((next[0], next[10]), ("b1999", "edit"), "{next:?}");
}

#[test]
fn a_hold_stops_starts_and_is_seen() {
    let mut world = World::new(&["10/1s"], None);
    let budget_id = BudgetId::parse("api").unwrap();
    let id = Some(budget_id.clone());
    world.request(|request| Input::Hold {
        request: Some(request),
        budget: id,
        cause: HoldCause::User,
    });
    world.enqueue(cards("j", 3));
    world.run_until(5_000);

    let snapshot = world.core.snapshot(world.clock());
    assert!(world.server.arrivals.is_empty());
    assert_eq!(snapshot.eta_ms, None);
    assert_eq!(snapshot.budgets[&budget_id].holds, [HoldCause::User]);
    assert_eq!(world.core.poll_timeout(), None);

    world.request(|request| Input::Resume {
        request,
        budget: Some(budget_id),
    });
    world.run(60_000);
    assert_eq!(world.settled.len(), 3);
}

#[test]
fn a_full_disk_refuses_the_new_and_keeps_the_old() {
    let mut core = paceline_core::Core::new(1, paceline_core::scheduler::Bounds::default());
    let now = Now::from_millis(0, EPOCH);
    core.handle(Input::Configure(vec![budget("api", &["1/1s"], None)]), now)
        .unwrap();
    let request = paceline_core::ids::RequestId(1);
    core.handle(
        Input::Enqueue {
            request,
            cards: cards("j", 2),
        },
        now,
    )
    .unwrap();
    let Some(paceline_core::io::Effect::Commit { commit, .. }) = core.poll_effect() else {
        panic!("a commit")
    };
    assert_eq!(core.poll_effect(), None);

    core.handle(
        Input::CommitFailed(commit, paceline_core::io::CommitFailure::Full),
        now,
    )
    .unwrap();

    let reply = Reply::Refused(Refusal::StorageFull);
    assert_eq!(
        core.poll_effect(),
        Some(paceline_core::io::Effect::Reply { request, reply })
    );
    assert_eq!(core.snapshot(now).counts, [0; 6]);
}

#[test]
fn an_input_before_the_drain_is_a_misuse() {
    let mut core = paceline_core::Core::new(1, paceline_core::scheduler::Bounds::default());
    let now = Now::from_millis(0, EPOCH);
    core.handle(Input::Configure(vec![budget("api", &["1/1s"], None)]), now)
        .unwrap();
    core.handle(
        Input::Enqueue {
            request: paceline_core::ids::RequestId(1),
            cards: cards("j", 2),
        },
        now,
    )
    .unwrap();

    assert!(core.handle(Input::Wake, now).is_err());
}

#[test]
fn settled_batches_go_and_their_names_stay_known() {
    let mut world = World::new(&["10/1s"], None);
    world.enqueue(cards("old", 3));
    world.run(10_000);
    world.now = 2 * 3_600_000;
    world.enqueue(cards("new", 1));
    world.run(3 * 3_600_000);

    let again = world.enqueue(cards("old", 1));
    world.run(3 * 3_600_000);

    assert_eq!(world.disk.batches.len(), 1);
    assert!(matches!(world.reply(again), Some(Reply::Accepted { .. })));
    assert_eq!(world.server.arrivals.len(), 4);
}

#[test]
fn a_clean_up_that_was_not_stored_is_stored_with_what_comes_next() {
    use paceline_core::change::Change;
    use paceline_core::io::{CommitFailure, Effect};
    let mut world = World::new(&["10/1s"], None);
    world.enqueue(cards("old", 1));
    world.run(10_000);
    let later = Now::from_millis(7_200_000, EPOCH + 7_200_000);
    let mut enqueue = |name: &str| {
        let request = paceline_core::ids::RequestId(99);
        let cards = cards(name, 1);
        let core = &mut world.core;
        core.handle(Input::Enqueue { request, cards }, later)
            .unwrap();
        let Some(Effect::Commit {
            commit, changes, ..
        }) = core.poll_effect()
        else {
            panic!("a commit")
        };
        let failed = Input::CommitFailed(commit, CommitFailure::Full);
        core.handle(failed, later).unwrap();
        while core.poll_effect().is_some() {}
        let is_drop = |change: &Change| matches!(change, Change::DropBatch { .. });
        changes.iter().filter(|change| is_drop(change)).count()
    };

    assert_eq!([enqueue("new"), enqueue("newer")], [1, 1]);
}

#[test]
fn the_refused_event_tells_what_both_sides_said() {
    let mut world = World::new(&["10/1s"], None);
    world.server.limit = Some((2, 1_000));
    world.enqueue(cards("j", 3));
    world.run(60_000);

    let refused = world.events.iter().find_map(|(_, event)| {
        let Event::Refused {
            status,
            believed_free,
            retry_after_ms,
            ..
        } = event
        else {
            return None;
        };
        Some((*status, *believed_free, *retry_after_ms))
    });
    assert_eq!(refused, Some((429, 7, Some(1_000))));
    assert_eq!(world.settled.len(), 3);
}

#[test]
fn no_network_holds_everything_and_costs_no_attempt() {
    let mut world = World::new(&["10/1s"], None);
    world.server.scripts.insert("j0".into(), vec![Script::Lost]);
    world.enqueue(cards("j", 1));
    world.run_until(10);
    world.input(Input::Network(Network::Offline));
    world.enqueue(cards("k", 3));
    world.run_until(60_000);

    assert_eq!(world.server.arrivals.len(), 1);
    assert_eq!(world.core.poll_timeout(), None);
    let views = world.core.jobs(
        &Filter {
            limit: 10,
            ..Filter::default()
        },
        world.clock(),
    );
    assert!(
        views.iter().all(|view| view.cause == Some(Cause::Offline)),
        "{views:?}"
    );
    assert_eq!(
        world
            .disk
            .records
            .values()
            .map(|record| record.attempts_counted)
            .sum::<u32>(),
        0
    );

    world.input(Input::Network(Network::Online));
    world.run(120_000);
    assert_eq!(world.settled.len(), 4);
}

#[test]
fn an_owner_that_dies_again_and_again_costs_no_job_its_attempts() {
    let mut world = World::new(&["10/1s"], None);
    world.latency = Box::new(|| (50, 50));
    world.enqueue(vec![card("a").create()]);
    for _ in 0..8 {
        world.run_until(world.now + 20);
        world.crash_and_restart(vec![budget("api", &["10/1s"], None)]);
    }
    world.run(400_000);

    assert_eq!(state(&world, "a"), State::Done);
}

#[test]
fn a_lost_connection_soon_after_a_refusal_is_a_hidden_refusal() {
    let mut world = World::new(&["10/1s"], Some(1));
    world
        .server
        .scripts
        .insert("a".into(), vec![Script::RetryAfter(1_000), Script::Broken]);
    world.enqueue(vec![card("a")]);

    world.run(60_000);

    let starts = world.server.starts();
    assert_eq!(starts.len(), 3);
    assert!(starts[2] - starts[1] >= 1_000, "{starts:?}");
    assert_eq!(
        world
            .disk
            .records
            .values()
            .map(|record| record.attempts_counted)
            .sum::<u32>(),
        0
    );
    assert_eq!(state(&world, "a"), State::Done);
}

#[test]
fn a_limit_lowered_behind_our_back_is_found() {
    let mut world = World::new(&["20/1s"], None);
    world.server.limit = Some((5, 1_000));

    world.enqueue(cards("j", 400));
    world.run(600_000);

    let late = &world.server.arrivals[world.server.arrivals.len() - 200..];
    let refused = late.iter().filter(|arrival| arrival.status == 429).count();
    assert!(refused <= 10, "{refused} of the last 200 were refused");
    assert_eq!(world.settled.len(), 400);
}

/// When the pauses of twenty queues end that were refused at one instant, in milliseconds after what the server said.
fn jitters_of_pauses() -> Vec<u64> {
    (0..20)
        .map(|seed| {
            let mut world = World::with(budget("api", &["10/1s"], None), seed);
            let refusal = vec![Script::RetryAfter(5_000)];
            world.server.scripts.insert("j0".into(), refusal);
            world.enqueue(cards("j", 1));
            world.run(60_000);
            world.server.starts()[1] - 5_010
        })
        .collect()
}

#[test]
fn pauses_of_many_queues_do_not_end_together() {
    let jitters = jitters_of_pauses();

    let distinct: std::collections::BTreeSet<_> = jitters.iter().collect();
    assert!(distinct.len() > 10, "{jitters:?}");
    assert!(jitters.iter().all(|jitter| *jitter <= 1_000), "{jitters:?}");
}

#[test]
fn retries_are_spread_evenly_from_zero_to_their_bound() {
    let mut world = World::new(&[], Some(1_000));
    for n in 0..100 {
        let once = vec![Script::Status(503)];
        world.server.scripts.insert(format!("j{n}"), once);
    }

    world.enqueue(cards("j", 1_000));
    world.run(60_000);

    let waits: Vec<u64> = world.server.starts()[1_000..]
        .iter()
        .map(|at| at - 10)
        .collect();
    let early = waits.iter().filter(|wait| **wait < 250).count();
    assert_eq!(waits.len(), 100);
    assert!(waits.iter().all(|wait| *wait <= 500), "{waits:?}");
    assert!(
        (33..=67).contains(&early),
        "{early} of 100 in the first half"
    );
}

#[test]
fn a_new_owner_counts_the_attempts_before_the_last() {
    let mut world = World::new(&["2/10s"], None);
    let once = vec![Script::Status(503)];
    world.server.scripts.insert("a".into(), once);
    world.enqueue(vec![card("a").lane(Lane::Interactive)]);
    world.run_until(2_000);
    assert_eq!(world.server.arrivals.len(), 2);

    world.crash_and_restart(vec![budget("api", &["2/10s"], None)]);
    world.enqueue(cards("b", 2));
    world.run(60_000);

    assert_eq!(world.server.max_seen(10_000), 2);
}

#[test]
fn a_new_owner_counts_an_attempt_of_the_old_one_as_in_flight_until_it_is_over() {
    let mut world = World::new(&[], Some(1));
    world.latency = Box::new(|| (50, 50));
    world.enqueue(cards("j", 2));
    world.run_until(20);

    world.crash_and_restart(vec![budget("api", &[], Some(1))]);
    world.run(120_000);

    assert!(
        world.server.starts()[1] >= 15_000,
        "{:?}",
        world.server.starts()
    );
    assert_eq!(world.settled.len(), 2);
}

#[test]
fn refusals_cost_no_attempt() {
    let mut world = World::new(&["10/1s"], None);
    let refusals = vec![Script::RetryAfter(1_000); 7];
    world.server.scripts.insert("a".into(), refusals);

    world.enqueue(vec![card("a")]);
    world.run(300_000);

    assert_eq!(state(&world, "a"), State::Done);
    let record = world.disk.records.values().next().unwrap();
    assert_eq!((record.attempt, record.attempts_counted), (8, 0));
}

#[test]
fn a_refused_job_goes_before_those_that_were_accepted_earlier() {
    let mut world = World::new(&["10/1s"], None);
    let mut early = card("early");
    early.not_before = Some(Wall::from_millis(EPOCH + 1_000));
    let refusal = vec![Script::RetryAfter(5_000)];
    world.server.scripts.insert("refused".into(), refusal);

    world.enqueue(vec![early, card("refused")]);
    world.run(60_000);

    assert_eq!(world.server.ids(), ["refused", "refused", "early"]);
}

#[test]
fn a_retry_after_of_nothing_is_a_second() {
    let mut world = World::new(&["10/1s"], None);
    let refusal = vec![Script::RetryAfter(0)];
    world.server.scripts.insert("a".into(), refusal);

    world.enqueue(vec![card("a")]);
    world.run(60_000);

    assert!(
        world.server.starts()[1] >= 1_010,
        "{:?}",
        world.server.starts()
    );
}

#[test]
fn a_heavy_job_keeps_its_place_before_light_ones() {
    let mut world = World::with(bucket("api", 5, 5_000), 1);
    world.enqueue(cards("first", 5));
    world.run_until(20);

    world.enqueue(vec![card("heavy").cost(5)]);
    for second in 1..20 {
        let light = card(&format!("light{second}"));
        world.at(second * 1_000 + 500).enqueue(vec![light]);
    }
    world.run(120_000);

    assert_eq!(world.server.ids()[5], "heavy");
}

#[test]
fn an_answer_of_an_attempt_that_was_given_up_is_not_heard() {
    let mut world = World::new(&["10/1s"], None);
    world.latency = Box::new(|| (50, 14_000));
    let lost = vec![Script::Lost];
    world.server.scripts.insert("a".into(), lost);
    world.enqueue(vec![card("a")]);
    world.run_until(16_000);
    assert_eq!(world.server.arrivals.len(), 2);
    let seq = *world.disk.records.keys().next().unwrap();

    let answer = Answer {
        status: 404,
        verdict: Verdict::Final,
        signals: Default::default(),
        text: None,
        items: None,
    };
    world.input(Input::Answered {
        seq,
        attempt: 1,
        ended_at: world.clock().mono,
        answer,
    });
    world.run(60_000);

    assert_eq!(state(&world, "a"), State::Done);
}

#[test]
fn a_claim_that_a_pause_overtakes_does_not_leave() {
    let mut world = World::new(&["6/1s"], None);
    world.commit_ms = 20;
    let mut calls = 0;
    world.latency = Box::new(move || {
        calls += 1;
        if calls == 1 { (500, 500) } else { (5, 5) }
    });
    world
        .server
        .scripts
        .insert("j0".into(), vec![Script::RetryAfter(5_000)]);
    world.enqueue(cards("j", 20));
    world.run_until(100);
    world.commit_ms = 1;
    world.run_until(1_039);
    let claimed = world
        .disk
        .records
        .values()
        .filter(|record| record.state == State::Sending)
        .count();
    assert_eq!(
        (claimed, world.server.arrivals.len()),
        (6, 6),
        "five wait for their instant"
    );

    world.run(60_000);

    let starts = world.server.starts();
    assert!(starts[6..].iter().all(|at| *at >= 6_040), "{starts:?}");
    assert_eq!(world.settled.len(), 20);
}

#[test]
fn a_retried_job_does_not_run_beside_a_later_one_of_its_key() {
    let mut world = World::new(&["10/1s"], None);
    world.latency = Box::new(|| (100, 100));
    world
        .server
        .scripts
        .insert("a".into(), vec![Script::Status(400)]);
    world.enqueue(vec![
        card("a").key("k"),
        card("b").key("k"),
        card("c").key("k"),
    ]);
    world.run_until(250);
    assert_eq!(world.in_flight, 1, "b is on its way");

    let target = Target::Jobs(vec![job_id("a")]);
    world.request(|request| Input::Retry {
        request,
        target,
        force: Force::No,
    });
    world.max_in_flight = world.in_flight;
    world.run(60_000);

    assert_eq!(world.max_in_flight, 1);
    assert_eq!(world.server.ids(), ["a", "b", "a", "c"]);
}

#[test]
fn a_job_cancelled_before_it_is_stored_ends_cancelled_once_it_is() {
    let mut world = World::new(&["10/1s"], None);
    world.commit_ms = 50;
    world.enqueue(vec![card("a").group("g")]);

    let target = Target::Jobs(vec![job_id("a")]);
    let request = world.request(|request| Input::Cancel {
        request: Some(request),
        target,
        reason: Reason::Cancelled,
    });
    assert!(world.disk.records.is_empty());
    world.run(60_000);

    assert_eq!(
        world.reply(request),
        Some(&Reply::Cancelled {
            cancelled: 1,
            already_sent: 0
        })
    );
    assert_eq!(state(&world, "a"), State::Cancelled);
    assert!(world.server.arrivals.is_empty());
}

#[test]
fn a_job_is_told_as_done_only_once_that_is_stored() {
    let mut world = World::new(&["10/1s"], None);
    world.enqueue(vec![card("a")]);
    world.run_until(9);
    world.commit_ms = 100;
    world.run_until(20);

    let again = world.enqueue(vec![card("a")]);
    let snapshot = world.core.snapshot(world.clock());
    world.run(60_000);

    assert_eq!(snapshot.counts[State::Sending.index()], 1);
    assert_eq!(snapshot.counts[State::Done.index()], 0);
    assert!(matches!(world.reply(again), Some(Reply::Accepted { .. })));
}

#[test]
fn one_broken_address_does_not_stall_its_budget() {
    let mut world = World::new(&["10/1s"], None);
    world
        .server
        .scripts
        .insert("first".into(), vec![Script::RetryAfter(1_000)]);
    world
        .server
        .scripts
        .insert("broken".into(), vec![Script::Broken; 500]);
    world.enqueue(vec![card("first"), card("broken")]);
    world.enqueue(cards("j", 20));

    world.run(900_000);

    assert_eq!(reason(&world, "broken"), Some(Reason::RetriesExhausted));
    assert!(
        world.settled["j19"].2 < 200_000,
        "{}",
        world.settled["j19"].2
    );
}

#[test]
fn a_claim_does_not_leave_after_a_sleep() {
    let mut world = World::new(&["2/1s"], None);
    world.commit_ms = 20;
    world.enqueue(cards("j", 4));
    world.run_until(100);
    world.commit_ms = 1;
    world.run_until(1_039);
    let sent = world.server.arrivals.len();

    let slept = Now::from_millis(1_051, EPOCH + 3_600_000);
    world.core.handle(Input::Wake, slept).unwrap();
    let first = world.core.poll_effect();

    assert_eq!(sent, 2);
    assert!(
        matches!(first, Some(paceline_core::io::Effect::Commit { .. })),
        "{first:?}"
    );
}

#[test]
fn a_key_that_the_server_forgot_while_its_job_waited_is_not_sent_again() {
    let rule = LimitRule::parse("10/1s", Algorithm::ArrivalLog).unwrap();
    let id = BudgetId::parse("api").unwrap();
    let config = BudgetConfig::new(id, vec![rule], None, 1_000, Some(60_000)).unwrap();
    let mut world = World::with(config, 1);
    world
        .server
        .scripts
        .insert("a".into(), vec![Script::Status(502)]);
    world.enqueue(vec![card("a").create()]);
    world.run_until(10);
    world.request(|request| Input::Hold {
        request: Some(request),
        budget: None,
        cause: HoldCause::User,
    });

    world.at(60_100).request(|request| Input::Resume {
        request,
        budget: None,
    });
    world.run(120_000);

    assert_eq!(world.server.arrivals.len(), 1);
    assert_eq!(reason(&world, "a"), Some(Reason::OutcomeUnknown));
}

#[test]
fn a_failed_job_whose_request_is_gone_is_not_sent_again() {
    let mut world = World::new(&["10/1s"], None);
    world
        .server
        .scripts
        .insert("a".into(), vec![Script::Status(400)]);
    let mut read = card("a");
    read.ephemeral = true;
    world.enqueue(vec![read]);
    world.run_until(1_000);

    let target = Target::Jobs(vec![job_id("a")]);
    let request = world.request(|request| Input::Retry {
        request,
        target,
        force: Force::Yes,
    });
    world.run(60_000);

    let (retried, needs_force) = (0, 0);
    let expected = Reply::Retried {
        retried,
        needs_force,
        stale: 0,
    };
    assert_eq!(world.reply(request), Some(&expected));
    assert_eq!(world.server.arrivals.len(), 1);
}

#[test]
fn rules_in_another_order_keep_what_each_has_consumed() {
    let mut world = World::new(&["5/1s", "20/10s"], None);
    world.enqueue(cards("j", 60));
    for n in 0..40 {
        world.run_until(n * 250);
        let rules: &[&str] = if n % 2 == 0 {
            &["20/10s", "5/1s"]
        } else {
            &["8/2s", "5/1s", "20/10s"]
        };
        world.input(Input::Configure(vec![budget("api", rules, None)]));
    }
    world.run(200_000);

    assert!(
        world.server.max_seen(1_000) <= 5,
        "{}",
        world.server.max_seen(1_000)
    );
    assert!(
        world.server.max_seen(10_000) <= 20,
        "{}",
        world.server.max_seen(10_000)
    );
    assert_eq!(world.settled.len(), 60);
}

#[test]
fn a_new_owner_counts_a_group_by_what_its_jobs_say() {
    let mut world = World::new(&["10/1s"], None);
    world.request(|request| Input::Hold {
        request: Some(request),
        budget: None,
        cause: HoldCause::User,
    });
    world.enqueue(vec![card("a").group("g"), card("b").group("g")]);
    world.run_until(10);
    let group = GroupId::parse("g").unwrap();
    let stored = world.disk.groups.get_mut(&group).unwrap();
    (stored.done, stored.settled_at) = (2, Some(Wall::from_millis(EPOCH)));

    world.crash_and_restart(vec![budget("api", &["10/1s"], None)]);
    let record = world.core.group(&group).unwrap();
    world.request(|request| Input::Resume {
        request,
        budget: None,
    });
    world.run(60_000);

    assert_eq!((record.done, record.settled_at), (0, None));
    assert_eq!(world.groups_settled, vec![(group, 2, 0, 0)]);
}

#[test]
fn a_claim_that_took_long_is_made_anew_so_that_a_next_owner_knows_when_it_left() {
    let configs = || vec![budget("api", &["1/10s"], None)];
    let mut world = World::with(configs().remove(0), 7);
    world.commit_ms = 3;
    world.enqueue(vec![card("a")]);
    world.commit_ms = 40_000;
    world.run_until(3);
    world.commit_ms = 3;
    world.latency = Box::new(|| (5, 60_000));
    while world.server.arrivals.is_empty() {
        assert!(world.step(100_000), "it leaves");
    }

    world.crash_and_restart(configs());
    world.latency = Box::new(|| (5, 5));
    world.run(300_000);

    assert_eq!(world.server.ids(), ["a", "a"]);
    assert_eq!(world.server.max_seen(10_000), 1);
}

#[test]
fn a_store_that_is_always_slow_stops_nothing() {
    let mut world = World::new(&["10/1s"], None);
    world.commit_ms = 4_000;

    world.enqueue(cards("j", 50));
    world.run(300_000);

    assert_eq!(world.settled.len(), 50);
    assert_eq!(world.server.arrivals.len(), 50);
    assert!(world.now < 60_000, "{}", world.now);
}

#[test]
fn a_rule_that_replaces_another_knows_what_is_on_its_way_and_what_is_over() {
    for algorithm in [Algorithm::Gcra, Algorithm::TokenBucket] {
        let rule = |window_ms| LimitRule::new(8, window_ms, algorithm).expect("a rule");
        let api = |window_ms| {
            let id = BudgetId::parse("api").expect("a name");
            BudgetConfig::new(id, vec![rule(window_ms)], None, 1_000, None).expect("a budget")
        };
        let mut world = World::with(api(2_000), 7);
        let mut ways = vec![(5, 60_000), (5, 5)].into_iter();
        world.latency = Box::new(move || ways.next().unwrap_or((5, 5)));
        let heavy = card("on its way").cost(6);
        world.enqueue(vec![heavy, card("over")]);
        world.run_until(20);
        world.enqueue(cards("j", 8));
        world.run_until(40);

        world.input(Input::Configure(vec![api(4_000)]));
        world.run_until(60);

        let started = world.server.starts().len();
        assert_eq!(started, 3, "{algorithm:?}: eight units are spent");
    }
}
