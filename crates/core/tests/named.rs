//! Scenarios that the design names, beyond those that users of other libraries met, on a fake clock.

mod kit;

use kit::{CardExt, EPOCH, Script, World, budget, card, cards};
use paceline_core::config::{Algorithm, BudgetConfig, LimitRule};
use paceline_core::ids::{BudgetId, CommitId, JobId, RequestId};
use paceline_core::io::{Answer, CommitFailure, Effect, Input, Refusal, Reply, Target, Verdict};
use paceline_core::job::{Card, HoldCause, Lane, Reason, State};
use paceline_core::signals::Signals;
use paceline_core::time::Now;

fn of_budget(mut card: Card, id: &str) -> Card {
    card.budget = BudgetId::parse(id).expect("a name");
    card
}

#[test]
fn a_refusal_with_four_in_flight_starts_nothing_for_its_wait_and_the_refused_goes_first() {
    let mut world = World::new(&[], Some(4));
    let mut calls = 0;
    world.latency = Box::new(move || {
        calls += 1;
        if calls == 2 { (5, 5) } else { (20, 20) }
    });
    let refusal = vec![Script::RetryAfter(20_000)];
    world.server.scripts.insert("j1".into(), refusal);

    world.enqueue(cards("j", 30));
    world.run(120_000);

    let (starts, ids) = (world.server.starts(), world.server.ids());
    assert_eq!(starts.iter().filter(|at| **at < 20_010).count(), 4);
    assert_eq!((ids[4], starts[4] <= 21_010), ("j1", true), "{starts:?}");
    assert_eq!(world.settled.len(), 30);
}

#[test]
fn a_create_that_was_applied_and_then_timed_out_is_repeated_under_its_key() {
    let mut world = World::new(&["10/1s"], None);
    world.server.scripts.insert("a".into(), vec![Script::Lost]);

    world.enqueue(vec![card("a").create()]);
    world.run(60_000);

    let arrivals = &world.server.arrivals;
    let keys: Vec<_> = arrivals.iter().map(|it| it.key.as_deref()).collect();
    assert_eq!(
        keys,
        [Some("key-a"); 2],
        "the server can tell that they are one"
    );
    assert_eq!(world.settled["a"].0, State::Done);
    assert_eq!(world.settle_order, ["a"]);
}

#[test]
fn a_background_job_starts_within_fifty_starts_of_an_endless_bulk() {
    let mut world = World::new(&["10/1s"], None);
    world.enqueue(cards("bulk", 100));
    world.run_until(1_500);

    world.enqueue(vec![card("late").lane(Lane::Background)]);
    let before = world.server.arrivals.len();
    for second in 2..30 {
        let more = format!("more{second}-");
        world.at(second * 1_000).enqueue(cards(&more, 10));
    }
    world.run(200_000);

    let place = world.server.ids().iter().position(|id| *id == "late");
    assert!(place.is_some_and(|place| place < before + 50), "{place:?}");
}

#[test]
fn a_bulk_job_starts_within_ten_starts_of_endless_clicks() {
    let mut world = World::new(&["10/1s"], None);
    let clicks = |prefix: &str| -> Vec<Card> {
        let clicks = cards(prefix, 10).into_iter();
        clicks.map(|click| click.lane(Lane::Interactive)).collect()
    };
    world.enqueue(clicks("first"));

    world.enqueue(vec![card("bulk")]);
    for second in 1..10 {
        world
            .at(second * 900)
            .enqueue(clicks(&format!("click{second}-")));
    }
    world.run(200_000);

    let place = world.server.ids().iter().position(|id| *id == "bulk");
    assert!(place.is_some_and(|place| place < 10 + 10), "{place:?}");
}

#[test]
fn a_pause_of_one_budget_never_stops_another() {
    let mut world = World::new(&["10/1s"], None);
    let both = vec![
        budget("search", &["10/1s"], None),
        budget("core", &["10/1s"], None),
    ];
    world.input(Input::Configure(both));
    let refusal = vec![Script::RetryAfter(60_000)];
    world.server.scripts.insert("s0".into(), refusal);
    let searches = cards("s", 5)
        .into_iter()
        .map(|card| of_budget(card, "search"));
    world.enqueue(searches.collect());
    world.run_until(100);

    let others = cards("c", 40)
        .into_iter()
        .map(|card| of_budget(card, "core"));
    world.enqueue(others.collect());
    world.run_until(5_000);

    let arrivals = world.server.arrivals.iter();
    let of_core = arrivals.filter(|it| it.id.starts_with('c')).count();
    assert_eq!(of_core, 40);
    assert!(!world.settled.contains_key("s0"), "search is still paused");
    world.run(200_000);
    assert_eq!(world.settled.len(), 45);
}

#[test]
fn four_at_a_time_that_take_two_seconds_are_two_a_second_and_the_estimate_says_so() {
    let mut world = World::new(&["100/1s"], Some(4));
    world.latency = Box::new(|| (1_000, 1_000));
    world.enqueue(cards("j", 100));
    world.run_until(20_500);

    let sent = world.server.arrivals.len();
    let eta_ms = world
        .core
        .snapshot(world.clock())
        .eta_ms
        .expect("an estimate");
    world.run(200_000);

    assert_eq!(sent, 40, "two a second");
    let last = world.settled.values().map(|(_, _, at)| *at).max();
    let left_ms = last.expect("all settled") - 20_500;
    assert!(
        eta_ms.abs_diff(left_ms) <= 4_000,
        "{eta_ms} said, {left_ms} taken"
    );
}

#[test]
fn a_window_that_was_filled_long_ago_does_not_delay_what_comes_now() {
    let rule = LimitRule::new(2, 1_000, Algorithm::FixedWindow).expect("a rule");
    let id = BudgetId::parse("api").expect("a name");
    let config = BudgetConfig::new(id, vec![rule], None, 1_000, None).expect("a budget");
    let mut world = World::with(config, 1);
    world.enqueue(vec![card("a")]);
    world.at(600).enqueue(vec![card("b")]);

    world.at(1_100).enqueue(vec![card("c")]);
    world.run(10_000);

    assert_eq!(world.server.starts(), [0, 600, 1_100]);
}

#[test]
fn a_server_that_says_zero_again_and_again_is_asked_ever_less_often() {
    let mut world = World::new(&["10/1s"], None);
    let refusals = vec![Script::RetryAfter(0); 6];
    world.server.scripts.insert("a".into(), refusals);

    world.enqueue(vec![card("a")]);
    world.run(300_000);

    let starts = world.server.starts();
    let waits: Vec<u64> = starts.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(waits[5] >= 32_000, "{waits:?}");
    assert_eq!(world.settled["a"].0, State::Done);
}

#[test]
fn a_claim_that_is_over_half_a_second_late_is_taken_back() {
    let mut world = World::new(&["2/1s"], None);
    world.commit_ms = 20;
    world.enqueue(cards("j", 4));
    world.run_until(100);
    world.commit_ms = 1;
    world.run_until(1_039);

    let late = 1_051 + 600;
    let thawed = Now::from_millis(late, EPOCH + late);
    world.core.handle(Input::Wake, thawed).expect("drained");
    let mut effects = std::iter::from_fn(|| world.core.poll_effect());

    assert!(!effects.any(|effect| matches!(effect, Effect::Dispatch { .. })));
}

#[test]
fn a_group_is_told_as_settled_only_once_the_outcome_of_each_job_is_stored() {
    let mut world = World::new(&["10/1s"], Some(1));
    world.enqueue(vec![card("a").group("g"), card("b").group("g")]);
    world.run_until(9);
    let now = world.clock();
    let mut handle = |input| {
        world.core.handle(input, now).expect("drained");
        std::iter::from_fn(|| world.core.poll_effect()).collect::<Vec<_>>()
    };
    let is_told = |effects: &[Effect]| {
        let mut effects = effects.iter();
        effects.any(|effect| matches!(effect, Effect::GroupSettled { .. }))
    };
    let cancel = |name: &str| Input::Cancel {
        request: None,
        target: Target::Jobs(vec![JobId::parse(name).expect("a name")]),
        reason: Reason::Cancelled,
    };
    let (seq, attempt, ended_at) = (*world.disk.records.keys().next().expect("a"), 1, now.mono);
    let held = handle(Input::Hold {
        request: None,
        budget: None,
        cause: HoldCause::User,
    });
    handle(Input::Committed(commit(&held)));
    let answer = Answer {
        status: 200,
        verdict: Verdict::Success,
        signals: Signals::default(),
        text: None,
        items: None,
    };
    let outcome = commit(&handle(Input::Answered {
        seq,
        attempt,
        ended_at,
        answer,
    }));
    handle(Input::CommitFailed(outcome, CommitFailure::Full));

    let request = RequestId(99);
    let again = commit(&handle(Input::Enqueue {
        request,
        cards: cards("c", 1),
    }));
    let last = commit(&handle(cancel("b")));
    handle(Input::CommitFailed(again, CommitFailure::Full));
    let early = handle(Input::Committed(last));
    let saved = commit(&handle(Input::Resume {
        request,
        budget: None,
    }));
    let late = handle(Input::Committed(saved));

    assert_eq!((is_told(&early), is_told(&late)), (false, true), "{late:?}");
}

#[test]
fn a_job_that_was_withdrawn_and_handed_in_anew_is_told_as_accepted_once_it_is_stored() {
    let mut world = World::new(&["10/1s"], None);
    let now = world.clock();
    let mut handle = |input| {
        world.core.handle(input, now).expect("drained");
        std::iter::from_fn(|| world.core.poll_effect()).collect::<Vec<_>>()
    };
    let accepted = |effects: &[Effect]| {
        let mut requests = Vec::new();
        for effect in effects {
            if let Effect::Reply {
                request,
                reply: Reply::Accepted { .. },
            } = effect
            {
                requests.push(request.0);
            }
        }
        requests
    };
    let ask = |request| Input::Enqueue {
        request: RequestId(request),
        cards: cards("a", 1),
    };
    let first = commit(&handle(ask(1)));
    let copy = commit(&handle(ask(2)));
    handle(Input::CommitFailed(first, CommitFailure::Full));
    let anew = commit(&handle(ask(3)));

    let early = handle(Input::Committed(copy));
    assert_eq!(accepted(&early), [0_u64; 0], "{early:?}");
    let stored = handle(Input::Committed(anew));
    let late = handle(Input::Committed(commit(&early)));

    assert_eq!((accepted(&stored), accepted(&late)), (vec![3], vec![2]));
}

#[test]
fn a_repeat_whose_key_was_forgotten_while_its_claim_was_stored_is_not_sent() {
    const LONGER_THAN_KEYS_MS: u64 = 90_000_000;
    let mut world = World::new(&["10/1s"], None);
    world.server.scripts.insert("a".into(), vec![Script::Lost]);
    world.enqueue(vec![card("a").create()]);
    world.run_until(14_900);

    world.commit_ms = LONGER_THAN_KEYS_MS;
    world.run(4 * LONGER_THAN_KEYS_MS);

    assert_eq!(world.server.arrivals.len(), 1);
    let (state, outcome, _) = &world.settled["a"];
    assert_eq!(
        (*state, outcome.reason),
        (State::Failed, Some(Reason::OutcomeUnknown))
    );
}

#[test]
fn a_cancelled_job_that_its_tab_asks_for_when_it_is_forgotten_is_not_made_anew() {
    const LONG_MS: u64 = 30 * 86_400_000;
    let mut world = World::new(&["10/1s"], None);
    world.input(Input::Hold {
        request: None,
        budget: None,
        cause: HoldCause::User,
    });
    world.enqueue(vec![card("a")]);
    world.run_until(10);
    world.input(Input::Cancel {
        request: None,
        target: Target::Jobs(vec![JobId::parse("a").expect("a name")]),
        reason: Reason::Cancelled,
    });
    world.run_until(LONG_MS);
    // What is forgotten goes with the next commit.
    world.enqueue(vec![card("b")]);
    world.run_until(LONG_MS + 10);
    assert_eq!(world.disk.batches.len(), 1, "{:?}", world.disk.batches);

    let again = |cards| move |request| Input::EnqueueAgain { request, cards };
    let one = world.request(again(vec![card("a")]));
    let both = world.request(again(vec![card("a"), card("b")]));
    let mut read = card("c");
    read.ephemeral = true;
    let read = world.request(again(vec![read]));
    world.run_until(LONG_MS + 20);

    assert_eq!(world.reply(one), Some(&Reply::Refused(Refusal::Gone)));
    let accepted = |request| match world.reply(request) {
        Some(Reply::Accepted { jobs }) => jobs.iter().map(|(id, ..)| id.to_string()).collect(),
        other => panic!("{other:?}"),
    };
    let (both, read): (Vec<_>, Vec<_>) = (accepted(both), accepted(read));
    assert_eq!((both, read), (vec!["b".to_owned()], vec!["c".to_owned()]));
    assert_eq!(world.core.snapshot(world.clock()).counts[0], 2);
}

/// The last commit that was asked for.
fn commit(effects: &[Effect]) -> CommitId {
    let commit = |effect: &Effect| {
        if let Effect::Commit { commit, .. } = effect {
            return Some(*commit);
        }
        None
    };
    effects.iter().rev().find_map(commit).expect("a commit")
}
