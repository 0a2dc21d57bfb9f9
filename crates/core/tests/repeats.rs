//! What is repeated, how often, and with which key, on a fake clock.

mod kit;

use kit::{CardExt, Script, World, budget, card, cards};
use paceline_core::config::{Algorithm, BudgetConfig, LimitRule};
use paceline_core::ids::{BudgetId, JobId};
use paceline_core::io::{Event, Force, Input, Reply, Target};
use paceline_core::job::{HoldCause, Reason, State};

fn api() -> BudgetId {
    BudgetId::parse("api").expect("a name")
}

fn answers(world: &mut World, id: &str, statuses: &[u16]) {
    let script = statuses.iter().map(|status| Script::Status(*status));
    world.server.scripts.insert(id.to_owned(), script.collect());
}

fn holds(world: &mut World) -> Vec<HoldCause> {
    let now = world.clock();
    world.core.snapshot(now).budgets[&api()].holds.clone()
}

fn reason(world: &World, id: &str) -> Option<Reason> {
    let (_, outcome, _) = world.settled.get(id)?;
    outcome.reason
}

fn retry(world: &mut World, id: &str, force: Force) -> (u32, u32, u32) {
    let target = Target::Jobs(vec![JobId::parse(id).expect("a name")]);
    let request = world.request(|request| Input::Retry {
        request,
        target,
        force,
    });
    world.run_until(world.now + 1);
    match world.reply(request) {
        Some(Reply::Retried {
            retried,
            needs_force,
            stale,
        }) => (*retried, *needs_force, *stale),
        other => panic!("{other:?}"),
    }
}

/// A budget whose server honours a key for ten seconds.
fn forgetful() -> BudgetConfig {
    let rule = LimitRule::new(10, 1_000, Algorithm::ArrivalLog).expect("a rule");
    BudgetConfig::new(api(), vec![rule], None, 1_000, Some(10_000)).expect("a budget")
}

#[test]
fn repeats_beyond_their_share_hold_the_budget_until_the_share_allows_more() {
    let mut world = World::new(&["100/1s"], None);
    for n in 0..20 {
        answers(&mut world, &format!("j{n}"), &[503]);
    }
    world.enqueue(cards("j", 20));
    world.run_until(5_000);

    // Ten are free, and what was sent allows three more.
    assert_eq!(world.server.arrivals.len(), 33);
    assert_eq!(holds(&mut world), [HoldCause::RetryBudget]);
    let is_told = |(_, event): &(u64, Event)| {
        matches!(
            event,
            Event::Held {
                cause: HoldCause::RetryBudget,
                ..
            }
        )
    };
    assert_eq!(
        world.events.iter().filter(|event| is_told(event)).count(),
        1
    );
    let wake = world.core.poll_timeout().expect("a deadline");
    assert_eq!(wake.1, "the retry budget allows more");

    world.enqueue(cards("new", 1));
    world.run_until(60_000);
    assert_eq!(
        world.server.arrivals.len(),
        33,
        "a held budget starts nothing"
    );
    world.run(200_000);

    assert_eq!(world.settled.len(), 21);
    assert!(
        world
            .settled
            .values()
            .all(|(state, _, _)| *state == State::Done)
    );
    assert!(holds(&mut world).is_empty());
}

#[test]
fn a_resume_grants_the_repeats_anew() {
    let mut world = World::new(&["100/1s"], None);
    for n in 0..20 {
        answers(&mut world, &format!("j{n}"), &[503]);
    }
    world.enqueue(cards("j", 20));
    world.run_until(5_000);

    let budget = Some(api());
    world.request(|request| Input::Resume { request, budget });
    world.run_until(7_000);

    assert_eq!(world.settled.len(), 20);
}

#[test]
fn first_attempts_alone_never_hold_a_budget() {
    let mut world = World::new(&["100/1s"], None);
    for n in 0..300 {
        answers(&mut world, &format!("j{n}"), &[404]);
    }

    world.enqueue(cards("j", 300));
    world.run_until(5_000);

    assert_eq!(world.settled.len(), 300);
}

#[test]
fn the_age_of_a_key_is_counted_from_its_first_claim() {
    let mut world = World::with(forgetful(), 7);
    world.server.scripts.insert(
        "a".into(),
        vec![Script::Status(503), Script::Status(503), Script::Lost],
    );

    world.enqueue(vec![card("a").create()]);
    world.run(60_000);

    // The second and third attempts are no new claims of the key: the third times out at 15 s, when it is too old.
    assert_eq!(world.server.arrivals.len(), 3);
    assert_eq!(reason(&world, "a"), Some(Reason::OutcomeUnknown));
}

#[test]
fn a_key_outlives_an_owner_with_its_age() {
    let mut world = World::with(forgetful(), 7);
    world.server.scripts.insert("a".into(), vec![Script::Lost]);
    world.enqueue(vec![card("a").create()]);
    world.run_until(9_000);
    world.crash_and_restart(vec![forgetful()]);
    world.run(20_000);
    assert_eq!(world.server.arrivals.len(), 2, "young enough after 9 s");

    world.server.scripts.insert("b".into(), vec![Script::Lost]);
    world.enqueue(vec![card("b").create()]);
    world.run_until(world.now + 10_000);
    world.crash_and_restart(vec![forgetful()]);
    world.run(60_000);

    assert_eq!(reason(&world, "b"), Some(Reason::OutcomeUnknown));
    assert_eq!(world.server.arrivals.len(), 3);
}

#[test]
fn a_job_whose_repeats_were_used_up_keeps_its_key_while_it_is_young() {
    let mut world = World::new(&["10/1s"], None);
    answers(&mut world, "a", &[503; 5]);
    world.enqueue(vec![card("a").create()]);
    world.run(100_000);
    assert_eq!(reason(&world, "a"), Some(Reason::RetriesExhausted));

    assert_eq!(retry(&mut world, "a", Force::No), (1, 0, 0));
    world.run(200_000);

    let keys: Vec<_> = world
        .server
        .arrivals
        .iter()
        .map(|arrival| &arrival.key)
        .collect();
    assert!(
        keys.iter().all(|key| **key == Some("key-a".to_owned())),
        "{keys:?}"
    );
}

#[test]
fn a_job_whose_repeats_were_used_up_needs_force_once_its_key_is_old() {
    let mut world = World::with(forgetful(), 7);
    answers(&mut world, "a", &[503; 5]);
    world.enqueue(vec![card("a").create()]);
    world.run_until(9_500);
    assert_eq!(reason(&world, "a"), Some(Reason::RetriesExhausted));
    world.run_until(20_000);

    assert_eq!(retry(&mut world, "a", Force::No), (0, 1, 0));
    assert_eq!(retry(&mut world, "a", Force::Yes), (1, 0, 0));
    world.run(60_000);

    let last = world.server.arrivals.last().expect("sent");
    assert_eq!(last.key, Some("key-a.1".to_owned()));
}

#[test]
fn what_a_later_job_of_its_key_has_overtaken_is_not_sent_again() {
    let mut world = World::new(&["10/1s"], None);
    for id in ["a", "c"] {
        answers(&mut world, id, &[400]);
    }
    let jobs = [
        card("a").key("k"),
        card("b").key("k"),
        card("c").key("k"),
        card("d").key("l"),
    ];
    world.enqueue(jobs.to_vec());
    world.run(60_000);

    assert_eq!(retry(&mut world, "a", Force::Yes), (0, 0, 1));
    assert_eq!(retry(&mut world, "c", Force::No), (1, 0, 0));
    world.run(120_000);

    assert_eq!(world.server.ids(), ["a", "d", "b", "c", "c"]);
    assert_eq!(world.settled["a"].0, State::Failed);
}

#[test]
fn a_new_owner_counts_repeats_anew() {
    let config = || budget("api", &["100/1s"], None);
    let mut world = World::with(config(), 7);
    for n in 0..20 {
        answers(&mut world, &format!("j{n}"), &[503]);
    }
    world.enqueue(cards("j", 20));
    world.run_until(5_000);
    assert_eq!(holds(&mut world), [HoldCause::RetryBudget]);

    world.crash_and_restart(vec![config()]);
    world.run_until(7_000);

    assert_eq!(world.settled.len(), 20);
}

#[test]
fn a_repeat_that_was_claimed_ahead_within_its_share_leaves() {
    let mut world = World::new(&["2/1s"], None);
    world.commit_ms = 8;
    for n in 0..30 {
        answers(&mut world, &format!("j{n}"), &[503, 503]);
    }

    world.enqueue(cards("j", 30));
    world.run(1_000_000);

    assert_eq!(world.settled.len(), 30);
    let claims = world.disk.records.values().map(|record| record.attempt);
    assert_eq!(claims.sum::<u32>() as usize, world.server.arrivals.len());
    let is_put_back = |line: &&String| line.contains("refused: true");
    assert_eq!(world.trace.iter().filter(is_put_back).count(), 0);
}
