//! A budget that waits for credentials, on a fake clock.

mod kit;

use kit::{Script, World, budget, card, cards};
use paceline_core::ids::BudgetId;
use paceline_core::io::{Cause, Event, Filter, Input, Wanted};
use paceline_core::job::{HoldCause, State};

fn api() -> BudgetId {
    BudgetId::parse("api").expect("a name")
}

fn give(world: &mut World) {
    world.input(Input::CredentialsGiven { budget: api() });
}

fn wanted(world: &World) -> Vec<Wanted> {
    let mut all = Vec::new();
    for (_, event) in &world.events {
        if let Event::CredentialsWanted { wanted, .. } = event {
            all.push(*wanted);
        }
    }
    all
}

fn holds(world: &mut World) -> Vec<HoldCause> {
    let now = world.clock();
    world.core.snapshot(now).budgets[&api()].holds.clone()
}

fn answers(world: &mut World, id: &str, statuses: &[u16]) {
    let script = statuses.iter().map(|status| Script::Status(*status));
    world.server.scripts.insert(id.to_owned(), script.collect());
}

#[test]
fn a_401_holds_the_budget_and_loses_nothing() {
    let mut world = World::new(&["4/1s"], None);
    for n in 0..4 {
        answers(&mut world, &format!("j{n}"), &[401]);
    }
    world.enqueue(cards("j", 10));
    world.run(60_000);

    assert_eq!(world.server.arrivals.len(), 4);
    assert_eq!(holds(&mut world), [HoldCause::Credentials]);
    assert_eq!(wanted(&world), [Wanted::Missing]);
    let filter = Filter {
        limit: 100,
        ..Filter::default()
    };
    let now = world.clock();
    let views = world.core.jobs(&filter, now);
    assert!(
        views
            .iter()
            .all(|view| view.state == State::Queued && view.cause == Some(Cause::Credentials)),
        "{views:?}"
    );

    give(&mut world);
    world.run(120_000);

    assert_eq!(world.settled.len(), 10);
    assert_eq!(world.server.arrivals.len(), 14);
    assert_eq!(&world.server.ids()[4..6], ["j0", "j1"]);
    let counted = world.disk.records.values();
    assert!(
        counted
            .into_iter()
            .all(|record| record.attempts_counted == 0)
    );
}

#[test]
fn new_credentials_are_tried_with_one_request_first() {
    let mut world = World::new(&["10/1s"], None);
    for n in 0..10 {
        answers(&mut world, &format!("j{n}"), &[401, 401]);
    }
    world.enqueue(cards("j", 10));
    world.run(60_000);

    give(&mut world);
    world.run(60_000);

    assert_eq!(world.server.arrivals.len(), 11);
}

#[test]
fn fresh_credentials_that_are_refused_are_not_asked_for_again() {
    let mut world = World::new(&["10/1s"], None);
    answers(&mut world, "j0", &[401, 401, 200, 401]);
    world.enqueue(cards("j", 1));
    world.run(60_000);
    give(&mut world);
    world.run(60_000);
    assert_eq!(wanted(&world), [Wanted::Missing, Wanted::Refused]);
    assert_eq!(holds(&mut world), [HoldCause::Credentials]);

    give(&mut world);
    world.run(60_000);
    answers(&mut world, "k", &[401]);
    world.enqueue(vec![card("k")]);
    world.run(60_000);

    let all = [Wanted::Missing, Wanted::Refused, Wanted::Expired];
    assert_eq!(wanted(&world), all);
}

#[test]
fn a_401_for_old_credentials_goes_on_with_the_new() {
    let mut world = World::new(&["10/1s"], None);
    world.latency = Box::new(|| (100, 100));
    answers(&mut world, "j0", &[401]);
    world.enqueue(cards("j", 1));
    world.run_until(50);

    give(&mut world);
    world.run(60_000);

    assert!(wanted(&world).is_empty());
    assert_eq!(world.server.ids(), ["j0", "j0"]);
    assert_eq!(world.settled.len(), 1);
}

#[test]
fn nothing_is_sent_before_a_budget_that_needs_credentials_has_some() {
    let needy = budget("api", &["10/1s"], None).with_credentials();
    let mut world = World::with(needy.clone(), 3);
    assert!(holds(&mut world).is_empty());
    world.enqueue(cards("j", 3));
    world.run(60_000);
    assert_eq!((world.server.arrivals.len(), wanted(&world).len()), (0, 1));

    world.crash_and_restart(vec![needy]);
    world.run(60_000);
    assert_eq!((world.server.arrivals.len(), wanted(&world).len()), (0, 2));

    give(&mut world);
    world.run(120_000);
    assert_eq!(world.settled.len(), 3);

    world.input(Input::CredentialsTaken { budget: api() });
    world.enqueue(cards("k", 1));
    world.run(180_000);
    assert_eq!((world.server.arrivals.len(), wanted(&world).len()), (3, 3));
}

#[test]
fn a_resume_tries_again_with_what_there_is() {
    let mut world = World::new(&["10/1s"], None);
    answers(&mut world, "j0", &[401, 401]);
    world.enqueue(cards("j", 1));
    world.run(60_000);

    for _ in 0..2 {
        let budget = Some(api());
        world.request(|request| Input::Resume { request, budget });
        world.run(60_000);
    }

    assert_eq!(wanted(&world).len(), 2);
    assert_eq!(world.settled.len(), 1);
}

#[test]
fn an_owner_after_a_401_begins_with_one_request() {
    let mut world = World::new(&["10/1s"], None);
    for n in 0..5 {
        answers(&mut world, &format!("j{n}"), &[401, 401]);
    }
    world.enqueue(cards("j", 5));
    world.run(60_000);
    assert_eq!(world.server.arrivals.len(), 5);

    world.crash_and_restart(vec![budget("api", &["10/1s"], None)]);
    world.run(120_000);

    assert_eq!(world.server.arrivals.len(), 6);
    assert_eq!(wanted(&world).len(), 2);
}
