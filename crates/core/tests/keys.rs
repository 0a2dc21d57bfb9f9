//! What one job of a key does to the others: removals that make them needless, failures that stop them, other lanes.

mod kit;

use kit::{CardExt, EPOCH, Script, World, budget, card};
use paceline_core::ids::{GroupId, JobId};
use paceline_core::io::{Cause, Filter, Force, Input, Reply, Target};
use paceline_core::job::{Card, HoldCause, Lane, Reason, State};
use paceline_core::kind::{Kind, OnFailure};
use paceline_core::time::Wall;

const CONTACT: &str = "https://api.test/contacts/42";

fn of(kind: Kind, id: &str) -> Card {
    card(id).key("contact:42").edit(kind, CONTACT)
}

fn create(id: &str) -> Card {
    of(Kind::Create, id).create()
}

fn delete(id: &str) -> Card {
    of(Kind::Delete, id)
}

fn superseding(id: &str) -> Card {
    Card {
        supersedes: true,
        ..delete(id)
    }
}

fn with(on_failure: OnFailure, id: &str) -> Card {
    Card {
        on_failure,
        ..card(id).key("contact:42")
    }
}

fn held() -> World {
    let mut world = World::new(&["10/1s"], Some(4));
    world.input(Input::Hold {
        request: None,
        budget: None,
        cause: HoldCause::User,
    });
    world
}

fn resume(world: &mut World) {
    world.run_until(world.now);
    world.request(|request| Input::Resume {
        request,
        budget: None,
    });
}

fn ended(world: &World, id: &str) -> Option<(State, Option<Reason>)> {
    let (state, outcome, _) = world.settled.get(id)?;
    Some((*state, outcome.reason))
}

fn jobs(ids: &[&str]) -> Target {
    let ids = ids.iter().map(|id| JobId::parse(id).expect("a name"));
    Target::Jobs(ids.collect())
}

#[test]
fn an_unsent_creation_and_its_removal_cancel_out() {
    let mut world = held();
    world.enqueue(vec![create("a")]);
    world.enqueue(vec![of(Kind::Patch, "p1"), of(Kind::Patch, "p2")]);

    world.enqueue(vec![delete("z")]);
    resume(&mut world);
    world.run(60_000);

    assert!(world.sent.is_empty());
    let out = Some((State::Cancelled, Some(Reason::CancelledOut)));
    assert!(
        ["a", "p1", "p2", "z"]
            .iter()
            .all(|id| ended(&world, id) == out)
    );
}

#[test]
fn a_creation_that_was_tried_is_removed_by_a_request() {
    let mut world = World::new(&["10/1s"], Some(4));
    world.enqueue(vec![create("a")]);
    world.run_until(1);

    world.enqueue(vec![delete("z")]);
    world.run(60_000);

    assert_eq!(world.server.ids(), ["a", "z"]);
}

#[test]
fn a_removal_cancels_out_only_what_came_after_the_last_removal() {
    let mut world = held();
    world.enqueue(vec![delete("old"), create("a"), delete("z")]);

    resume(&mut world);
    world.run(60_000);

    assert_eq!(world.server.ids(), ["old"]);
}

#[test]
fn a_removal_leaves_another_users_creation_alone() {
    let mut world = held();
    let other = Card {
        principal: "other".into(),
        ..create("a")
    };
    world.enqueue(vec![other, delete("z")]);

    resume(&mut world);
    world.run(60_000);

    assert_eq!(world.server.ids(), ["a", "z"]);
}

#[test]
fn a_crash_between_a_removal_and_what_it_cancels_sends_both_in_order() {
    let mut world = held();
    world.commit_ms = 5;
    world.enqueue(vec![create("a")]);
    world.run_until(5);
    world.enqueue(vec![delete("z")]);
    world.run_until(10);

    world.crash_and_restart(vec![budget("api", &["10/1s"], Some(4))]);
    resume(&mut world);
    world.run(60_000);

    assert_eq!(world.server.ids(), ["a", "z"]);
}

#[test]
fn a_superseding_removal_cancels_the_edits_that_wait_before_it() {
    let mut world = held();
    world.enqueue(vec![
        of(Kind::Patch, "p1"),
        of(Kind::Replace, "r1"),
        card("other").key("k"),
    ]);

    world.enqueue(vec![superseding("z")]);
    resume(&mut world);
    world.run(60_000);

    assert_eq!(world.server.ids(), ["other", "z"]);
    let superseded = Some((State::Cancelled, Some(Reason::Superseded)));
    assert_eq!(
        [ended(&world, "p1"), ended(&world, "r1")],
        [superseded, superseded]
    );
}

#[test]
fn a_superseding_removal_waits_for_the_edit_that_is_on_its_way() {
    let mut world = World::new(&["10/1s"], Some(4));
    world.enqueue(vec![of(Kind::Patch, "sent")]);
    world.run_until(1);
    world.enqueue(vec![of(Kind::Patch, "waits")]);

    world.enqueue(vec![superseding("z")]);
    world.run(60_000);

    assert_eq!(world.server.ids(), ["sent", "z"]);
}

#[test]
fn a_plain_removal_leaves_edits_alone() {
    let mut world = held();
    world.enqueue(vec![of(Kind::Patch, "p1"), delete("z")]);

    resume(&mut world);
    world.run(60_000);

    assert_eq!(world.server.ids(), ["p1", "z"]);
}

fn failing(on_failure: OnFailure) -> World {
    let mut world = World::new(&["10/1s"], Some(4));
    world
        .server
        .scripts
        .insert("a".into(), vec![Script::Status(422)]);
    world.enqueue(vec![
        with(on_failure, "a"),
        card("b").key("contact:42"),
        card("c").key("other"),
    ]);
    world.enqueue(vec![with(on_failure, "d")]);
    world
}

#[test]
fn by_default_a_key_goes_on_after_a_failure() {
    let mut world = failing(OnFailure::Continue);

    world.run(60_000);

    assert_eq!(ended(&world, "b"), Some((State::Done, None)));
}

#[test]
fn later_jobs_of_a_key_fail_when_the_failed_one_asks_for_that() {
    let mut world = failing(OnFailure::FailLater);

    world.run(60_000);

    let failed = Some((State::Failed, Some(Reason::KeyFailed)));
    assert_eq!([ended(&world, "b"), ended(&world, "d")], [failed, failed]);
    assert_eq!(ended(&world, "c"), Some((State::Done, None)));
    assert_eq!(world.server.ids(), ["a", "c"]);
}

#[test]
fn a_failure_may_hold_its_key_until_it_is_retried() {
    let mut world = failing(OnFailure::HoldKey);
    world.run(60_000);
    assert_eq!(world.server.ids(), ["a", "c"]);

    let request = |request| Input::Retry {
        request,
        target: jobs(&["a"]),
        force: Force::No,
    };
    world.request(request);
    world.run(120_000);

    assert_eq!(world.server.ids(), ["a", "c", "a", "b", "d"]);
}

#[test]
fn a_held_key_is_held_over_a_crash_says_so_and_goes_on_when_the_failed_job_is_cancelled() {
    let mut world = failing(OnFailure::HoldKey);
    world.run(60_000);

    world.crash_and_restart(vec![budget("api", &["10/1s"], Some(4))]);
    world.run(60_000);
    let filter = Filter {
        state: Some(State::Queued),
        limit: 10,
        ..Filter::default()
    };
    let causes: Vec<_> = world
        .core
        .jobs(&filter, world.clock())
        .iter()
        .map(|view| view.cause)
        .collect();
    let cancel = Input::Cancel {
        request: None,
        target: jobs(&["a"]),
        reason: Reason::Cancelled,
    };
    world.input(cancel);
    world.run(120_000);

    assert_eq!(causes, [Some(Cause::Held), Some(Cause::Held)]);
    assert_eq!(world.server.ids(), ["a", "c", "b", "d"]);
    assert_eq!(
        ended(&world, "a"),
        Some((State::Failed, Some(Reason::Http)))
    );
}

#[test]
fn resume_lets_held_keys_go_on() {
    let mut world = failing(OnFailure::HoldKey);
    world.run(60_000);

    resume(&mut world);
    world.run(120_000);

    assert_eq!(world.server.ids(), ["a", "c", "b", "d"]);
}

fn prioritise(world: &mut World, target: Target, lane: Lane) -> Option<Reply> {
    let request = world.request(|request| Input::Prioritise {
        request,
        target,
        lane,
    });
    world.run_until(world.now);
    world.reply(request).cloned()
}

#[test]
fn a_waiting_group_takes_another_lane_and_keeps_it_over_a_crash() {
    let mut world = World::new(&["1/1s"], Some(1));
    world.enqueue(vec![
        card("first"),
        card("a"),
        card("b").group("g"),
        card("c").group("g"),
    ]);
    world.run_until(500);

    let group = Target::Group(GroupId::parse("g").expect("a name"));
    let reply = prioritise(&mut world, group, Lane::Interactive);
    world.crash_and_restart(vec![budget("api", &["1/1s"], Some(1))]);
    world.run(120_000);

    let expected = Reply::Prioritised {
        moved: 2,
        already_sent: 0,
    };
    assert_eq!(reply, Some(expected));
    assert_eq!(world.server.ids(), ["first", "b", "c", "a"]);
}

#[test]
fn only_what_waits_takes_another_lane() {
    let mut world = World::new(&["10/1s"], Some(1));
    world.enqueue(vec![card("sent"), card("waits")]);
    world.run_until(1);

    let reply = prioritise(
        &mut world,
        jobs(&["sent", "waits", "unknown"]),
        Lane::Background,
    );

    let expected = Reply::Prioritised {
        moved: 1,
        already_sent: 1,
    };
    assert_eq!(reply, Some(expected));
    let snapshot = world.core.snapshot(world.clock());
    assert_eq!(snapshot.waiting_by_lane, [0, 0, 1]);
}

#[test]
fn a_job_in_another_lane_lends_it_to_those_before_it_of_its_key() {
    let mut world = World::new(&["1/1s"], Some(1));
    world.enqueue(vec![
        card("x"),
        card("y"),
        card("a").key("k"),
        card("b").key("k"),
    ]);
    world.run_until(1);

    prioritise(&mut world, jobs(&["b"]), Lane::Interactive);
    world.run(60_000);

    assert_eq!(world.server.ids(), ["x", "a", "b", "y"]);
}

#[test]
fn an_end_that_a_retry_took_back_is_not_told() {
    let mut world = World::new(&["1/1s"], Some(1));
    world.commit_ms = 3;
    let mut late = card("late");
    late.expires_at = Some(Wall::from_millis(EPOCH + 500));
    world.enqueue(vec![card("first"), late]);
    world.run_until(500);
    let failed = world.core.snapshot(world.clock()).counts;

    world.request(|request| Input::Retry {
        request,
        target: jobs(&["late"]),
        force: Force::No,
    });
    let retried = world.core.snapshot(world.clock()).counts;
    world.request(|request| Input::Cancel {
        request: Some(request),
        target: jobs(&["late"]),
        reason: Reason::Cancelled,
    });
    world.run(60_000);

    let (state, outcome, _) = &world.settled["late"];
    assert_eq!(world.settle_order, ["first", "late"]);
    assert_eq!(
        (*state, outcome.reason),
        (State::Cancelled, Some(Reason::Cancelled))
    );
    let count = |counts: [u32; 6], state: State| counts[state.index()];
    assert_eq!(
        count(failed, State::Sending),
        1,
        "its end is not stored yet"
    );
    assert_eq!(
        (count(retried, State::Queued), retried.iter().sum()),
        (1, 2)
    );
}
