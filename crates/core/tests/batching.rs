//! Jobs that go as items of one request: each ends by itself, nothing is done twice, and no limit sees more requests.

mod kit;

use kit::{Arrival, CardExt, Script, World, batching, budget, card};
use paceline_core::ids::{JobId, Seq};
use paceline_core::io::{Cause, Event, Filter, Force, Input, NoAnswer, Reply, Target};
use paceline_core::job::{Card, HoldCause, Lane, Reason, State};

const MINUTE: u64 = 60_000;

fn item(id: &str) -> Card {
    card(id).batch("contacts")
}

fn items(prefix: &str, count: usize) -> Vec<Card> {
    (0..count).map(|n| item(&format!("{prefix}{n}"))).collect()
}

/// A queue of one batch of up to `most` items, held while jobs are handed in.
fn held(rules: &[&str], most: u64) -> World {
    let mut world = World::with(batching(rules, None, most), 7);
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

/// The names of the items of each request that left, as one text each.
fn sent(world: &World) -> Vec<String> {
    world.sent.iter().map(|names| names.join(" ")).collect()
}

fn ended(world: &World, id: &str) -> Option<(State, Option<Reason>)> {
    let ended = world.settled.get(id);
    ended.map(|(state, outcome, _)| (*state, outcome.reason))
}

fn keys(world: &World) -> Vec<String> {
    let key = |arrival: &Arrival| arrival.key.clone().unwrap_or_default();
    world.server.arrivals.iter().map(key).collect()
}

fn script(world: &mut World, id: &str, scripts: &[Script]) {
    world.server.scripts.insert(id.to_owned(), scripts.to_vec());
}

fn script_item(world: &mut World, id: &str, scripts: &[Script]) {
    world.server.items.insert(id.to_owned(), scripts.to_vec());
}

fn target(ids: &[&str]) -> Target {
    let ids = ids.iter().map(|id| JobId::parse(id).expect("a name"));
    Target::Jobs(ids.collect())
}

fn cancel(world: &mut World, ids: &[&str]) -> (u32, u32) {
    let target = target(ids);
    let request = world.request(|request| Input::Cancel {
        request: Some(request),
        target,
        reason: Reason::Cancelled,
    });
    world.run_until(world.now);
    match world.reply(request) {
        Some(Reply::Cancelled {
            cancelled,
            already_sent,
        }) => (*cancelled, *already_sent),
        other => panic!("expected counts, got {other:?}"),
    }
}

fn retry(world: &mut World, ids: &[&str], force: Force) -> (u32, u32) {
    let target = target(ids);
    let request = world.request(|request| Input::Retry {
        request,
        target,
        force,
    });
    world.run_until(world.now);
    match world.reply(request) {
        Some(Reply::Retried {
            retried,
            needs_force,
            ..
        }) => (*retried, *needs_force),
        other => panic!("expected counts, got {other:?}"),
    }
}

fn state(world: &World, id: &str) -> (State, Option<Cause>) {
    let filter = Filter {
        id: Some(JobId::parse(id).expect("a name")),
        limit: 1,
        ..Filter::default()
    };
    let views = world.core.jobs(&filter, world.clock());
    let view = views.first().expect("a known job");
    (view.state, view.cause)
}

fn seq_of(world: &World, id: &str) -> Seq {
    let known = world.disk.records.keys();
    let mut known = known.filter(|seq| world.disk.name(**seq).as_deref() == Some(id));
    *known.next().expect("a job with a record")
}

#[test]
fn what_waits_goes_as_few_requests_as_the_batch_allows() {
    let mut world = held(&["10/1s"], 20);
    world.enqueue(items("a", 45));

    resume(&mut world);
    world.run(MINUTE);

    let sizes: Vec<usize> = world.sent.iter().map(Vec::len).collect();
    assert_eq!(sizes, [20, 20, 5]);
    assert_eq!(world.settled.len(), 45);
    assert!(
        world
            .settled
            .values()
            .all(|(state, ..)| *state == State::Done)
    );
}

#[test]
fn a_job_that_comes_while_a_slot_is_free_does_not_wait_for_company() {
    let mut world = World::with(batching(&["10/1s"], None, 20), 7);

    world.enqueue(vec![item("a")]);
    world.at(100).enqueue(vec![item("b")]);
    world.run(MINUTE);

    assert_eq!(sent(&world), ["a", "b"]);
    assert_eq!(world.server.starts(), [0, 100]);
}

#[test]
fn jobs_that_wait_for_a_slot_gather() {
    let mut world = World::with(batching(&["1/1s"], None, 20), 7);

    for (at, id) in [(0, "a"), (10, "b"), (20, "c"), (30, "d")] {
        world.at(at).enqueue(vec![item(id)]);
    }
    world.run(MINUTE);

    assert_eq!(sent(&world), ["a", "b c d"]);
}

#[test]
fn a_request_costs_its_budget_once_however_many_items_it_has() {
    let mut world = held(&["3/1s"], 10);
    world.server.limit = Some((3, 1_000));
    world.enqueue(items("a", 90));

    resume(&mut world);
    world.run(MINUTE);

    assert_eq!(world.sent.len(), 9);
    assert_eq!(
        (world.server.refused(), world.server.max_seen(1_000)),
        (0, 3)
    );
    assert!(
        world.now < 3_000,
        "three windows, not thirty: {}",
        world.now
    );
}

#[test]
fn the_most_urgent_items_go_first_and_others_fill_the_request() {
    let mut world = held(&["10/1s"], 3);
    world.enqueue(vec![
        item("slow").lane(Lane::Background),
        item("bulk1"),
        item("bulk2"),
        item("click").lane(Lane::Interactive),
    ]);

    resume(&mut world);
    world.run(MINUTE);

    assert_eq!(sent(&world), ["click bulk1 bulk2", "slow"]);
}

#[test]
fn two_jobs_of_one_key_never_share_a_request() {
    let mut world = held(&["10/1s"], 10);
    let of = |id: &str, key: &str| item(id).key(key);
    world.enqueue(vec![
        of("a1", "a"),
        of("b1", "b"),
        of("a2", "a"),
        of("a3", "a"),
        of("b2", "b"),
    ]);

    resume(&mut world);
    world.run(MINUTE);

    assert_eq!(sent(&world), ["a1 b1", "a2 b2", "a3"]);
}

#[test]
fn what_differs_in_anything_the_server_sees_goes_in_other_requests() {
    let mut world = held(&["20/1s"], 10);
    let mut other_user = item("user");
    other_user.principal = "ada".to_owned();
    let mut other_form = item("form");
    other_form.batch = card("x").batch("contacts").batch;
    if let Some(batch) = &mut other_form.batch {
        batch.form = paceline_core::kind::Fingerprint::of(["PUT"]);
    }
    let mut hasty = item("hasty");
    hasty.timeout_ms = 1_000;
    world.enqueue(vec![
        item("a"),
        other_user,
        other_form,
        hasty,
        item("create").create(),
        item("b"),
    ]);
    world.enqueue(vec![card("alone")]);

    resume(&mut world);
    world.run(MINUTE);

    assert_eq!(
        sent(&world),
        ["a b", "user", "form", "hasty", "create", "alone"]
    );
}

#[test]
fn a_request_stays_below_its_bytes() {
    let mut world = held(&["10/1s"], 10);
    let big = |id: &str, size: u32| {
        let mut card = item(id);
        card.size = size;
        card
    };
    world.enqueue(vec![
        big("a", 600_000),
        big("b", 300_000),
        big("c", 200_000),
        big("d", 2_000_000),
    ]);

    resume(&mut world);
    world.run(MINUTE);

    assert_eq!(sent(&world), ["a b", "c", "d"]);
}

#[test]
fn a_failed_item_alone_is_sent_again() {
    let mut world = held(&["10/1s"], 10);
    world.enqueue(items("a", 4));
    script_item(&mut world, "a1", &[Script::Status(500)]);

    resume(&mut world);
    world.run(MINUTE);

    assert_eq!(sent(&world), ["a0 a1 a2 a3", "a1"]);
    assert_eq!(ended(&world, "a1"), Some((State::Done, None)));
    assert!(world.server.applied.values().all(|times| *times == 1));
}

#[test]
fn an_item_that_the_server_rejects_fails_by_itself() {
    let mut world = held(&["10/1s"], 10);
    world.enqueue(items("a", 3));
    script_item(&mut world, "a0", &[Script::Status(404)]);

    resume(&mut world);
    world.run(MINUTE);

    assert_eq!(
        ended(&world, "a0"),
        Some((State::Failed, Some(Reason::Http)))
    );
    assert_eq!(world.settled["a0"].1.status, Some(404));
    assert_eq!(ended(&world, "a2"), Some((State::Done, None)));
    assert_eq!(world.sent.len(), 1);
}

#[test]
fn an_item_that_the_answer_leaves_out_is_repeated_only_where_that_is_safe() {
    let mut world = held(&["10/1s"], 10);
    world.enqueue(vec![item("edit1"), item("edit2")]);
    world.enqueue(vec![item("create1").create(), item("create2").create()]);
    for id in ["edit2", "create2"] {
        script_item(&mut world, id, &[Script::Lost]);
    }

    resume(&mut world);
    world.run(MINUTE);

    assert_eq!(ended(&world, "edit2"), Some((State::Done, None)));
    let unknown = Some((State::Failed, Some(Reason::OutcomeUnknown)));
    assert_eq!(ended(&world, "create2"), unknown);
    assert_eq!(world.server.applied["create2"], 1);
}

#[test]
fn refused_items_pause_the_budget_once_and_go_first_afterwards() {
    let mut world = held(&["10/1s"], 4);
    world.enqueue(items("a", 6));
    for id in ["a1", "a2"] {
        script_item(&mut world, id, &[Script::Status(429)]);
    }

    resume(&mut world);
    world.run(MINUTE);

    let pauses = world
        .events
        .iter()
        .filter(|(_, event)| matches!(event, Event::Paused { .. }));
    assert_eq!(pauses.count(), 1);
    assert_eq!(sent(&world), ["a0 a1 a2 a3", "a4 a5", "a1 a2"]);
    assert_eq!(
        world.disk.records[&seq_of(&world, "a1")].attempts_counted,
        0
    );
}

#[test]
fn a_refused_batch_goes_first_after_the_pause_at_no_cost() {
    let mut world = held(&["10/1s"], 3);
    world.enqueue(items("a", 5));
    script(&mut world, "a0", &[Script::RetryAfter(20_000)]);

    resume(&mut world);
    world.run_until(10);
    let record = world.disk.records[&seq_of(&world, "a2")].clone();
    world.enqueue(vec![item("click").lane(Lane::Interactive)]);
    world.run(MINUTE);

    assert_eq!((record.state, record.attempts_counted), (State::Queued, 0));
    assert!(record.refused && record.load.is_none() && record.carried_by.is_none());
    assert_eq!(sent(&world), ["a0 a1 a2", "a3 a4", "click a0 a1", "a2"]);
    assert!(world.server.starts()[2] > 20_000);
    assert!(
        world
            .settled
            .values()
            .all(|(state, ..)| *state == State::Done)
    );
}

#[test]
fn a_repeat_after_an_unknown_outcome_is_the_same_request() {
    let mut world = held(&["10/1s"], 3);
    world.enqueue(items("a", 5).into_iter().map(CardExt::create).collect());
    script(&mut world, "a0", &[Script::Broken]);

    resume(&mut world);
    world.run(MINUTE);

    assert_eq!(sent(&world), ["a0 a1 a2", "a3 a4", "a0 a1 a2"]);
    let keys = keys(&world);
    assert_eq!(keys[0], keys[2]);
    assert!(world.server.applied.values().all(|times| *times == 1));
    assert_eq!(world.settled.len(), 5);
}

#[test]
fn another_composition_has_another_key() {
    let mut world = held(&["10/1s"], 3);
    world.enqueue(items("a", 1));
    script_item(
        &mut world,
        "a0",
        &[Script::Status(500), Script::Status(503)],
    );

    resume(&mut world);
    world.run(MINUTE);

    // Under the first key the server would say 500 for ever.
    let keys = keys(&world);
    assert_eq!(keys.len(), 3);
    assert!(keys[0] != keys[1] && keys[1] != keys[2] && keys[0] != keys[2]);
    assert_eq!(ended(&world, "a0"), Some((State::Done, None)));
}

#[test]
fn a_batch_found_on_its_way_is_repeated_as_it_was() {
    let mut world = held(&["10/1s"], 3);
    world.enqueue(items("a", 3).into_iter().map(CardExt::create).collect());
    script(&mut world, "a0", &[Script::Lost]);

    resume(&mut world);
    world.run_until(8);
    world.crash_and_restart(vec![batching(&["10/1s"], None, 2)]);
    world.enqueue(vec![item("new").create()]);
    world.run(MINUTE);

    assert_eq!(sent(&world), ["a0 a1 a2", "a0 a1 a2", "new"]);
    let keys = keys(&world);
    assert_eq!(keys[0], keys[1]);
    assert!(world.server.applied.values().all(|times| *times == 1));
    assert!(
        world
            .settled
            .values()
            .all(|(state, ..)| *state == State::Done)
    );
}

#[test]
fn items_whose_composition_is_not_whole_in_the_store_are_not_repeated_by_its_key() {
    let mut world = held(&["10/1s"], 3);
    world.enqueue(items("a", 3).into_iter().map(CardExt::create).collect());
    script(&mut world, "a0", &[Script::Lost]);

    resume(&mut world);
    world.run_until(8);
    let lost = seq_of(&world, "a1");
    world.disk.records.remove(&lost);
    world.crash_and_restart(vec![batching(&["10/1s"], None, 3)]);
    world.run(MINUTE);

    let unknown = Some((State::Failed, Some(Reason::OutcomeUnknown)));
    assert_eq!(
        (ended(&world, "a0"), ended(&world, "a2")),
        (unknown, unknown)
    );
    assert!(sent(&world).iter().skip(1).all(|names| names == "a1"));
}

#[test]
fn a_batch_that_nothing_can_repeat_ends_as_unknown_for_each() {
    let mut world = World::with(batching(&["10/1s"], None, 3), 7);
    let cards = items("a", 2)
        .into_iter()
        .map(|card| card.create().keyless());
    script(&mut world, "a0", &[Script::Broken]);

    world.enqueue(cards.collect());
    world.run(MINUTE);

    let unknown = Some((State::Failed, Some(Reason::OutcomeUnknown)));
    assert_eq!(
        (ended(&world, "a0"), ended(&world, "a1")),
        (unknown, unknown)
    );
    assert_eq!(world.sent.len(), 1);
}

#[test]
fn a_batch_that_fails_at_every_attempt_ends_as_exhausted_for_each() {
    let mut world = held(&["10/1s"], 3);
    world.enqueue(items("a", 3).into_iter().map(CardExt::create).collect());
    script(&mut world, "a0", &[Script::Status(503); 5]);

    resume(&mut world);
    world.run(5 * MINUTE);

    assert_eq!(sent(&world), ["a0 a1 a2"; 5]);
    let exhausted = Some((State::Failed, Some(Reason::RetriesExhausted)));
    for id in ["a0", "a1", "a2"] {
        assert_eq!(ended(&world, id), exhausted, "{id}");
    }
}

#[test]
fn a_batch_that_the_server_rejects_fails_for_each() {
    let mut world = held(&["10/1s"], 3);
    world.enqueue(items("a", 3));
    script(&mut world, "a0", &[Script::Status(422)]);

    resume(&mut world);
    world.run(MINUTE);

    let rejected = Some((State::Failed, Some(Reason::Http)));
    for id in ["a0", "a1", "a2"] {
        assert_eq!(ended(&world, id), rejected, "{id}");
    }
}

#[test]
fn a_key_whose_job_waits_in_a_repeated_batch_stays_in_order() {
    let mut world = held(&["10/1s"], 3);
    let of = |id: &str, key: &str| item(id).key(key).create();
    world.enqueue(vec![of("a1", "a"), of("b1", "b")]);
    world.enqueue(vec![of("b2", "b"), of("c1", "c")]);
    script(&mut world, "a1", &[Script::Broken]);

    resume(&mut world);
    world.run(MINUTE);

    assert_eq!(sent(&world), ["a1 b1 c1", "a1 b1 c1", "b2"]);
    assert_eq!(world.settle_order.last().map(String::as_str), Some("b2"));
}

#[test]
fn a_repeated_batch_waits_for_a_retried_job_of_one_of_its_keys() {
    let mut world = held(&["10/1s"], 3);
    world.enqueue(vec![card("old").key("b")]);
    script(&mut world, "old", &[Script::Status(404)]);
    resume(&mut world);
    world.run_until(100);
    world.latency = Box::new(|| (1_000, 1_000));
    world.enqueue(vec![
        item("a").key("a").create(),
        item("b").key("b").create(),
    ]);
    script(&mut world, "a", &[Script::Broken]);
    world.run_until(2_000);

    assert_eq!(retry(&mut world, &["old"], Force::No), (1, 0));
    world.run(MINUTE);

    assert_eq!(sent(&world), ["old", "a b", "old", "a b"]);
    assert!(world.server.starts()[3] >= 4_000, "after old has ended");
}

#[test]
fn a_waiting_item_is_cancelled_by_itself_and_one_on_its_way_is_not() {
    let mut world = held(&["1/1s"], 2);
    world.enqueue(items("a", 4));
    resume(&mut world);
    world.run_until(5);

    assert_eq!(cancel(&mut world, &["a1", "a3"]), (1, 1));
    world.run(MINUTE);

    assert_eq!(sent(&world), ["a0 a1", "a2"]);
    assert_eq!(
        ended(&world, "a3"),
        Some((State::Cancelled, Some(Reason::Cancelled)))
    );
}

#[test]
fn items_of_a_batch_that_may_be_done_are_cancelled_together_or_not_at_all() {
    let mut world = held(&["10/1s"], 2);
    world.enqueue(items("a", 2).into_iter().map(CardExt::create).collect());
    script(&mut world, "a0", &[Script::Status(503); 3]);
    resume(&mut world);
    world.run_until(11);
    world.input(Input::Hold {
        request: None,
        budget: None,
        cause: HoldCause::User,
    });
    world.run_until(60_000);

    assert_eq!(cancel(&mut world, &["a1"]), (0, 1));
    assert_eq!(cancel(&mut world, &["a0", "a1"]), (2, 0));

    let cancelled = Some((State::Cancelled, Some(Reason::Cancelled)));
    assert_eq!(
        (ended(&world, "a0"), ended(&world, "a1")),
        (cancelled, cancelled)
    );
}

#[test]
fn items_of_a_repeated_batch_name_the_cause_of_their_carrier() {
    let mut world = held(&["10/1s"], 2);
    world.enqueue(items("a", 2).into_iter().map(CardExt::create).collect());
    script(&mut world, "a0", &[Script::Status(503)]);

    resume(&mut world);
    world.run_until(11);

    assert_eq!(
        state(&world, "a1"),
        (State::RetryWait, Some(Cause::Backoff))
    );
    assert_eq!(state(&world, "a0"), state(&world, "a1"));
}

#[test]
fn a_retried_item_goes_by_itself_or_with_others() {
    let mut world = held(&["10/1s"], 4);
    world.enqueue(items("a", 3));
    script_item(&mut world, "a1", &[Script::Status(404)]);
    resume(&mut world);
    world.run_until(100);

    assert_eq!(retry(&mut world, &["a1"], Force::No), (1, 0));
    world.run(MINUTE);

    assert_eq!(sent(&world), ["a0 a1 a2", "a1"]);
    assert_eq!(ended(&world, "a1"), Some((State::Done, None)));
}

#[test]
fn a_creation_of_a_batch_whose_outcome_is_unknown_needs_force() {
    let mut world = held(&["10/1s"], 4);
    world.enqueue(items("a", 2).into_iter().map(CardExt::create).collect());
    script_item(&mut world, "a1", &[Script::Lost]);
    resume(&mut world);
    world.run_until(100);

    assert_eq!(retry(&mut world, &["a1"], Force::No), (0, 1));
    assert_eq!(retry(&mut world, &["a1"], Force::Yes), (1, 0));
    world.run(MINUTE);

    assert_eq!(ended(&world, "a1"), Some((State::Done, None)));
}

#[test]
fn a_job_waits_until_its_budget_declares_its_batch() {
    let mut world = World::new(&["10/1s"], None);

    world.enqueue(items("a", 2));
    world.run_until(1_000);
    assert_eq!(state(&world, "a0"), (State::Queued, Some(Cause::Held)));
    world.input(Input::Configure(vec![batching(&["10/1s"], None, 5)]));
    world.run(MINUTE);

    assert_eq!(sent(&world), ["a0 a1"]);
}

#[test]
fn nothing_goes_in_a_batch_that_is_declared_no_longer() {
    let mut world = held(&["10/1s"], 5);
    world.enqueue(items("a", 2));
    world.run_until(10);

    world.input(Input::Configure(vec![budget("api", &["10/1s"], None)]));
    resume(&mut world);
    world.run(MINUTE);

    assert!(world.sent.is_empty());
}

#[test]
fn a_claim_that_could_not_be_stored_leaves_each_item_as_it_was() {
    let mut world = held(&["10/1s"], 3);
    let mut cards = items("a", 3);
    for card in &mut cards {
        card.expires_at = Some(paceline_core::time::Wall::from_millis(kit::EPOCH + 30_000));
    }
    world.enqueue(cards);
    world.run_until(10);
    world.commits_to_fail = 1;
    world.request(|request| Input::Resume {
        request,
        budget: None,
    });
    world.run_until(40_000);

    let expired = Some((State::Failed, Some(Reason::Expired)));
    for id in ["a0", "a1", "a2"] {
        assert_eq!(ended(&world, id), expired, "{id}");
    }
    assert!(world.sent.is_empty());
}

#[test]
fn a_batch_that_never_left_parts_and_costs_an_attempt() {
    let mut world = held(&["10/1s"], 3);
    world.enqueue(items("a", 3).into_iter().map(CardExt::create).collect());
    world.latency = Box::new(|| (10_000, 0));
    resume(&mut world);
    world.run_until(10);
    world.latency = Box::new(|| (5, 5));
    let carrier = seq_of(&world, "a0");

    world.input(Input::NoAnswer {
        seq: carrier,
        attempt: 1,
        cause: NoAnswer::NeverLeft,
    });
    world.run_until(11);

    let record = &world.disk.records[&seq_of(&world, "a2")];
    assert_eq!(
        (record.state, record.attempts_counted),
        (State::RetryWait, 1)
    );
    assert!(record.carried_by.is_none() && !record.key_seen);
}

#[test]
fn items_whose_requests_are_missing_fail_alone() {
    let mut world = held(&["10/1s"], 3);
    world.enqueue(items("a", 3).into_iter().map(CardExt::create).collect());
    world.latency = Box::new(|| (10_000, 0));
    resume(&mut world);
    world.run_until(10);
    world.latency = Box::new(|| (5, 5));
    let (carrier, missing) = (seq_of(&world, "a0"), vec![seq_of(&world, "a1")]);

    world.input(Input::ItemsMissing {
        seq: carrier,
        attempt: 1,
        missing,
    });
    world.run(MINUTE);

    assert_eq!(
        ended(&world, "a1"),
        Some((State::Failed, Some(Reason::Storage)))
    );
    assert_eq!(sent(&world), ["a0 a1 a2", "a0 a2"]);
    assert_eq!(ended(&world, "a2"), Some((State::Done, None)));
}

#[test]
fn a_group_counts_items_as_the_jobs_that_they_are() {
    let mut world = held(&["10/1s"], 3);
    world.enqueue(
        items("a", 7)
            .into_iter()
            .map(|card| card.group("all"))
            .collect(),
    );
    script_item(&mut world, "a5", &[Script::Status(404)]);

    resume(&mut world);
    world.run(MINUTE);

    let counts: Vec<_> = world
        .groups_settled
        .iter()
        .map(|(_, done, failed, _)| (*done, *failed))
        .collect();
    assert_eq!(counts, [(6, 1)]);
}

#[test]
fn an_estimate_counts_requests_not_items() {
    let mut world = held(&["1/1s"], 20);
    world.enqueue(items("a", 100));
    world.run_until(10);
    world.request(|request| Input::Resume {
        request,
        budget: None,
    });

    let clock = world.clock();
    let eta_ms = world.core.snapshot(clock).eta_ms.expect("known");

    assert!(
        (3_000..6_000).contains(&eta_ms),
        "five requests at one a second, not 100: {eta_ms}"
    );
}

#[test]
fn two_runs_of_one_seed_are_the_same() {
    let run = || {
        let mut world = held(&["5/1s"], 4);
        world.enqueue(items("a", 30));
        script(&mut world, "a0", &[Script::Broken]);
        script_item(&mut world, "a9", &[Script::Status(500)]);
        resume(&mut world);
        world.run(MINUTE);
        world.trace
    };

    assert_eq!(run(), run());
}
