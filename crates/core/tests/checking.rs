//! A check tells whether a request of unknown outcome was carried out, on a fake clock.

mod kit;

use kit::{CardExt, Script, World, bucket, card};
use paceline_core::config::BudgetConfig;
use paceline_core::io::{Cause, Filter, Force, Input, Reply, Target};
use paceline_core::job::{Card, HoldCause, Reason, State};

/// A budget whose server honours no keys.
fn keyless_api() -> BudgetConfig {
    bucket("api", 100, 1_000)
}

fn world() -> World {
    World::with(keyless_api(), 7)
}

/// A creation that is checked 2 s after an attempt is over.
fn create(id: &str) -> Card {
    let mut card = card(id).checked(2_000);
    card.timeout_ms = 10_000;
    card
}

fn answers(world: &mut World, id: &str, scripts: &[Script]) {
    world.server.scripts.insert(id.to_owned(), scripts.to_vec());
}

/// Whether each request that reached the server was a check.
fn checks(world: &World) -> Vec<bool> {
    let arrivals = world.server.arrivals.iter();
    arrivals.map(|arrival| arrival.is_check).collect()
}

fn end(world: &World, id: &str) -> (State, Option<Reason>, bool) {
    let (state, outcome, _) = &world.settled[id];
    (*state, outcome.reason, outcome.by_check)
}

#[test]
fn what_was_applied_is_found_and_not_sent_again() {
    let mut world = world();
    answers(&mut world, "j", &[Script::LostApplied]);
    world.enqueue(vec![create("j")]);
    world.run(60_000);

    assert_eq!(checks(&world), [false, true]);
    assert_eq!(world.server.effects, ["j"]);
    assert_eq!(end(&world, "j"), (State::Done, None, true));
    assert_eq!(world.settled["j"].1.status, Some(200));
}

#[test]
fn what_was_not_applied_is_sent_again() {
    let mut world = world();
    answers(&mut world, "j", &[Script::Lost]);
    world.enqueue(vec![create("j")]);
    world.run(60_000);

    assert_eq!(checks(&world), [false, true, false]);
    assert_eq!(world.server.effects, ["j"]);
    assert_eq!(end(&world, "j"), (State::Done, None, false));
    let keys: Vec<bool> = world
        .server
        .arrivals
        .iter()
        .map(|seen| seen.key.is_some())
        .collect();
    assert_eq!(keys, [true, false, true], "a check carries no key");
}

#[test]
fn a_check_waits_until_the_attempt_would_have_timed_out_and_the_time_asked_for() {
    let mut world = world();
    answers(&mut world, "broken", &[Script::Broken]);
    answers(&mut world, "failed", &[Script::Status(500)]);
    world.enqueue(vec![create("broken")]);
    world.at(1_000).enqueue(vec![create("failed")]);
    world.run(60_000);

    let checked_at = |id: &str| {
        let mut arrivals = world.server.arrivals.iter();
        let check = arrivals.find(|seen| seen.id == id && seen.is_check);
        check.map(|seen| seen.started_at)
    };
    assert_eq!(checked_at("broken"), Some(12_000));
    // Its answer says that the server is done with it.
    assert_eq!(checked_at("failed"), Some(3_010));
}

#[test]
fn a_job_that_waits_for_its_check_says_until_when() {
    let mut world = world();
    answers(&mut world, "j", &[Script::Broken]);
    world.enqueue(vec![create("j")]);
    world.run_until(5_000);

    let filter = Filter {
        limit: 1,
        ..Filter::default()
    };
    let now = world.clock();
    let view = world.core.jobs(&filter, now).remove(0);
    assert_eq!(
        (view.state, view.cause),
        (State::RetryWait, Some(Cause::Backoff))
    );
    assert_eq!(
        view.until.map(|at| at.as_millis() - kit::EPOCH),
        Some(12_000)
    );
}

#[test]
fn a_host_that_starts_checks_what_was_on_its_way() {
    for (script, requests) in [
        (Script::LostApplied, vec![false, true]),
        (Script::Lost, vec![false, true, false]),
    ] {
        let mut world = world();
        answers(&mut world, "j", &[script]);
        world.enqueue(vec![create("j")]);
        world.run_until(1_000);

        world.crash_and_restart(vec![keyless_api()]);
        world.run(120_000);

        assert_eq!(checks(&world), requests);
        assert_eq!(world.server.effects, ["j"]);
        assert_eq!(end(&world, "j").0, State::Done);
        // Its request may have left half a second after its claim.
        assert_eq!(world.server.arrivals[1].started_at, 12_500);
    }
}

#[test]
fn a_crash_at_any_instant_neither_doubles_nor_loses() {
    for first in [Script::LostApplied, Script::Lost, Script::Status(503)] {
        for crash_at in (0..13_000).step_by(250).chain(12_000..12_030) {
            let mut world = world();
            world.commit_ms = 3;
            answers(&mut world, "j", &[first]);
            world.enqueue(vec![create("j")]);
            world.run_until(crash_at);

            world.crash_and_restart(vec![keyless_api()]);
            world.run(crash_at + 120_000);

            assert_eq!(
                world.server.effects.len(),
                usize::from(crash_at > 2),
                "{first:?} {crash_at}"
            );
            let states = world.disk.records.values().map(|record| record.state);
            assert!(
                states.eq((crash_at > 2).then_some(State::Done)),
                "{first:?} {crash_at}"
            );
        }
    }
}

#[test]
fn a_check_that_cannot_tell_leaves_the_outcome_unknown() {
    let mut world = world();
    answers(&mut world, "j", &[Script::LostApplied, Script::Status(403)]);
    world.enqueue(vec![create("j")]);
    world.run(60_000);

    assert_eq!(
        end(&world, "j"),
        (State::Failed, Some(Reason::OutcomeUnknown), false)
    );
    let outcome = &world.settled["j"].1;
    assert_eq!(outcome.status, None, "the status is the check's");
    assert!(
        outcome
            .text
            .as_deref()
            .is_some_and(|text| text.contains("403"))
    );
}

#[test]
fn a_check_that_fails_is_tried_again_until_the_outcome_stays_unknown() {
    let mut world = world();
    answers(
        &mut world,
        "passes",
        &[Script::LostApplied, Script::Status(500), Script::Lost],
    );
    let mut fails = vec![Script::Status(500); 10];
    fails[0] = Script::LostApplied;
    answers(&mut world, "fails", &fails);
    world.enqueue(vec![create("passes"), create("fails")]);
    world.run(300_000);

    assert_eq!(end(&world, "passes"), (State::Done, None, true));
    assert_eq!(
        end(&world, "fails"),
        (State::Failed, Some(Reason::OutcomeUnknown), false)
    );
    let fails = world
        .server
        .arrivals
        .iter()
        .filter(|seen| seen.id == "fails");
    assert_eq!(fails.count(), 5);
    assert_eq!(world.server.effects.len(), 2);
}

#[test]
fn a_refused_check_pauses_its_budget_and_costs_no_attempt() {
    let mut world = world();
    answers(
        &mut world,
        "j",
        &[Script::Status(500), Script::RetryAfter(20_000)],
    );
    world.enqueue(vec![create("j")]);
    world.run(60_000);

    assert_eq!(checks(&world), [false, true, true, false]);
    let starts = world.server.starts();
    assert!(starts[2] - starts[1] >= 20_000, "{starts:?}");
    let mut records = world.disk.records.values();
    assert!(records.all(|record| record.attempts_counted == 1));
}

#[test]
fn a_check_costs_budget() {
    let mut world = World::with(bucket("api", 1, 60_000), 7);
    answers(&mut world, "j", &[Script::Status(500)]);
    world.enqueue(vec![create("j"), card("other")]);
    world.run(600_000);

    let starts = world.server.starts();
    assert_eq!(starts.len(), 4);
    assert!(
        starts.windows(2).all(|pair| pair[1] - pair[0] >= 60_000),
        "{starts:?}"
    );
}

#[test]
fn a_held_check_waits_and_goes_first_then() {
    let mut world = world();
    answers(&mut world, "j", &[Script::LostApplied]);
    world.enqueue(vec![create("j")]);
    world.at(1_000).input(Input::Hold {
        request: None,
        budget: None,
        cause: HoldCause::User,
    });
    world.run_until(100_000);
    assert_eq!(checks(&world), [false]);

    world.request(|request| Input::Resume {
        request,
        budget: None,
    });
    world.run(200_000);

    assert_eq!(checks(&world), [false, true]);
    assert_eq!(world.server.effects, ["j"]);
}

#[test]
fn a_retry_of_an_unknown_outcome_checks_first_unless_it_is_forced() {
    for (force, requests) in [
        (Force::No, vec![false, true, true]),
        (Force::Yes, vec![false, true, false]),
    ] {
        let mut world = world();
        answers(&mut world, "j", &[Script::LostApplied, Script::Status(403)]);
        world.enqueue(vec![create("j")]);
        world.run(60_000);

        let retry = world.request(|request| Input::Retry {
            request,
            target: Target::Jobs(vec![create("j").id]),
            force,
        });
        world.run(120_000);

        let expected = Reply::Retried {
            retried: 1,
            needs_force: 0,
            stale: 0,
        };
        assert_eq!(world.reply(retry), Some(&expected));
        assert_eq!(checks(&world), requests);
        assert_eq!(end(&world, "j").0, State::Done);
    }
}

#[test]
fn a_key_that_the_server_honours_makes_a_check_needless() {
    let mut world = World::new(&["100/1s"], None);
    answers(&mut world, "j", &[Script::Status(500)]);
    world.enqueue(vec![create("j")]);
    world.run(60_000);

    assert_eq!(checks(&world), [false, false]);
}

#[test]
fn a_key_that_is_forgotten_in_a_pause_is_replaced_by_the_check() {
    let mut world = World::new(&["100/1s"], None);
    answers(&mut world, "j", &[Script::LostApplied]);
    world.enqueue(vec![create("j")]);
    world.at(1_000).input(Input::Hold {
        request: None,
        budget: None,
        cause: HoldCause::User,
    });
    world.run_until(2 * 86_400_000);

    world.request(|request| Input::Resume {
        request,
        budget: None,
    });
    world.run(3 * 86_400_000);

    assert_eq!(checks(&world), [false, true]);
    assert_eq!(world.server.effects, ["j"]);
}

#[test]
fn later_jobs_of_a_key_wait_for_the_check() {
    let mut world = world();
    answers(&mut world, "j0", &[Script::Lost]);
    world.enqueue(vec![create("j0").key("k"), create("j1").key("k")]);
    world.run(60_000);

    assert_eq!(world.server.ids(), ["j0", "j0", "j0", "j1"]);
    assert_eq!(checks(&world), [false, true, false, false]);
}
