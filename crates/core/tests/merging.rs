//! Jobs that go together as one request: nothing is lost, nothing overtakes, and each asker hears one end.

mod kit;

use std::collections::BTreeMap;

use kit::{CardExt, Script, World, budget, card};
use paceline_core::change::Change;
use paceline_core::ids::{GroupId, JobId, RequestId};
use paceline_core::io::{CommitFailure, Effect, Filter, Force, Input, Reply, Target};
use paceline_core::job::{Card, HoldCause, Lane, Reason, State};
use paceline_core::kind::Kind;

const CONTACT: &str = "https://api.test/contacts/42";

fn patch(id: &str) -> Card {
    card(id).key("contact:42").edit(Kind::Patch, CONTACT)
}

fn replace(id: &str) -> Card {
    card(id).key("contact:42").edit(Kind::Replace, CONTACT)
}

fn read(id: &str) -> Card {
    card(id).edit(Kind::Custom, CONTACT).body("")
}

fn hold(world: &mut World) {
    world.input(Input::Hold {
        request: None,
        budget: None,
        cause: HoldCause::User,
    });
}

/// Opens the queue, once all that was handed in is stored.
fn resume(world: &mut World) {
    world.run_until(world.now);
    world.request(|request| Input::Resume {
        request,
        budget: None,
    });
}

fn held() -> World {
    let mut world = World::new(&["10/1s"], Some(4));
    hold(&mut world);
    world
}

fn cancel(world: &mut World, ids: &[&str]) -> (u32, u32) {
    let ids = ids.iter().map(|id| JobId::parse(id).expect("a name"));
    let target = Target::Jobs(ids.collect());
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

fn ended(world: &World, id: &str) -> Option<State> {
    world.settled.get(id).map(|(state, _, _)| *state)
}

#[test]
fn five_patches_to_one_key_while_paused_are_one_request() {
    let mut world = held();
    for n in 0..5 {
        world.enqueue(vec![patch(&format!("p{n}"))]);
        world.run_until(world.now + 10);
    }

    resume(&mut world);
    world.run(60_000);

    assert_eq!(world.sent, [["p0", "p1", "p2", "p3", "p4"]]);
    assert_eq!(world.server.ids(), ["p0"]);
    assert!((0..5).all(|n| ended(&world, &format!("p{n}")) == Some(State::Done)));
}

#[test]
fn edits_of_one_bulk_go_together() {
    let mut world = held();
    world.enqueue(vec![patch("p0"), patch("p1"), card("other"), patch("p2")]);

    resume(&mut world);
    world.run(60_000);

    assert_eq!(world.sent, [vec!["p0", "p1", "p2"], vec!["other"]]);
}

#[test]
fn the_last_of_several_replacements_is_sent() {
    let mut world = held();
    world.enqueue(vec![replace("r0"), replace("r1"), replace("r2")]);

    resume(&mut world);
    world.run(60_000);

    assert_eq!(world.sent, [["r2"]]);
    assert_eq!(world.server.ids(), ["r0"]);
}

#[test]
fn an_urgent_patch_never_overtakes_one_in_flight_of_its_key() {
    let mut world = World::new(&["10/1s"], Some(4));
    world.enqueue(vec![patch("first")]);
    world.run_until(2);

    world.enqueue(vec![patch("urgent").lane(Lane::Interactive)]);
    world.enqueue(vec![patch("last")]);
    world.run(60_000);

    assert_eq!(world.sent, [vec!["first"], vec!["urgent", "last"]]);
    assert_eq!(world.server.starts()[1], 10);
}

#[test]
fn what_was_tried_takes_no_later_edit() {
    let mut world = World::new(&["10/1s"], Some(4));
    let scripts = &mut world.server.scripts;
    scripts.insert("first".into(), vec![Script::RetryAfter(5_000)]);
    world.enqueue(vec![patch("first")]);
    world.run_until(100);

    world.enqueue(vec![patch("second")]);
    world.run(60_000);

    assert_eq!(world.sent, [["first"], ["first"], ["second"]]);
}

#[test]
fn creates_never_merge() {
    let mut world = held();
    let create = |id| card(id).key("contact:42").edit(Kind::Create, CONTACT);
    world.enqueue(vec![create("a").create(), create("b").create()]);

    resume(&mut world);
    world.run(60_000);

    assert_eq!(world.sent, [["a"], ["b"]]);
}

#[test]
fn only_edits_that_agree_in_all_else_go_together() {
    let merging = patch("p1");
    let others = [
        merging
            .clone()
            .edit(Kind::Patch, "https://api.test/contacts/43"),
        merging.clone().edit(Kind::Replace, CONTACT),
        merging.clone().cost(2),
        merging.clone().key("contact:43"),
        Card {
            principal: "another".into(),
            ..merging.clone()
        },
        Card {
            timeout_ms: 1_000,
            ..merging.clone()
        },
        Card {
            likeness: None,
            ..merging.clone()
        },
        Card {
            expires_at: Some(world_end()),
            ..merging.clone()
        },
        Card {
            not_before: Some(kit_start()),
            ..merging
        },
    ];
    for other in others {
        let mut world = held();
        world.enqueue(vec![patch("p0"), other.clone()]);

        resume(&mut world);
        world.run(60_000);

        assert_eq!(world.sent.len(), 2, "{other:?}");
    }
}

fn world_end() -> paceline_core::time::Wall {
    paceline_core::time::Wall::from_millis(kit::EPOCH + 50_000)
}

fn kit_start() -> paceline_core::time::Wall {
    paceline_core::time::Wall::from_millis(kit::EPOCH)
}

#[test]
fn an_edit_is_not_merged_past_another_job_of_its_key() {
    let mut world = held();
    let delete = card("gone").key("contact:42").edit(Kind::Delete, CONTACT);
    world.enqueue(vec![patch("p0"), patch("p1"), delete, patch("p2")]);

    resume(&mut world);
    world.run(60_000);

    assert_eq!(world.sent, [vec!["p0", "p1"], vec!["gone"], vec!["p2"]]);
}

#[test]
fn what_goes_together_takes_the_higher_lane() {
    let mut world = World::new(&["1/1s"], Some(1));
    hold(&mut world);
    let slow = patch("slow").lane(Lane::Background);
    world.enqueue(vec![card("bulk"), slow]);

    world.enqueue(vec![patch("click").lane(Lane::Interactive)]);
    resume(&mut world);
    world.run(60_000);

    assert_eq!(world.server.ids(), ["slow", "bulk"]);
}

#[test]
fn a_merged_job_counts_in_its_own_group_and_ends_with_its_carrier() {
    let mut world = held();
    world.enqueue(vec![patch("p0").group("one")]);
    world.enqueue(vec![patch("p1").group("two"), patch("p2").group("two")]);
    let two = GroupId::parse("two").expect("a name");
    let before = world.core.group(&two).expect("a group");

    resume(&mut world);
    world.run(60_000);

    assert_eq!((before.total, before.done), (2, 0));
    let told: Vec<_> = world
        .groups_settled
        .iter()
        .map(|(id, done, ..)| (id.as_str(), *done))
        .collect();
    assert_eq!(told, [("two", 2), ("one", 1)]);
}

#[test]
fn a_merged_job_is_found_by_its_name_and_the_same_name_is_the_same_job() {
    let mut world = held();
    world.enqueue(vec![patch("p0"), patch("p1")]);

    let request = world.enqueue(vec![patch("p1")]);
    world.run_until(world.now);

    let Some(Reply::Accepted { jobs }) = world.reply(request) else {
        panic!("expected it to be known");
    };
    assert_eq!(jobs[0].1, State::Queued);
    let clock = world.clock();
    let find = |id: Option<&str>| Filter {
        id: id.map(|id| JobId::parse(id).expect("a name")),
        limit: 10,
        ..Filter::default()
    };
    let merged = &world.core.jobs(&find(Some("p1")), clock)[0];
    assert_eq!(merged.merged_into.as_ref().map(JobId::as_str), Some("p0"));
    let all = world.core.jobs(&find(None), clock);
    assert_eq!((all.len(), all[0].coalesced), (1, 1));
    assert_eq!(world.core.snapshot(clock).counts[State::Queued.index()], 1);
}

#[test]
fn cancelling_an_untried_part_takes_its_values_out_alone() {
    let mut world = held();
    world.enqueue((0..4).map(|n| patch(&format!("p{n}"))).collect());

    let counts = [cancel(&mut world, &["p0"]), cancel(&mut world, &["p2"])];
    resume(&mut world);
    world.run(60_000);

    assert_eq!(counts, [(1, 0), (1, 0)]);
    assert_eq!(world.sent, [["p1", "p3"]]);
    assert_eq!(ended(&world, "p0"), Some(State::Cancelled));
    assert_eq!(ended(&world, "p3"), Some(State::Done));
}

#[test]
fn what_was_tried_together_is_cancelled_only_together() {
    let mut world = held();
    world
        .server
        .scripts
        .insert("p0".into(), vec![Script::RetryAfter(30_000)]);
    world.enqueue(vec![patch("p0"), patch("p1")]);
    resume(&mut world);
    world.run_until(1_000);

    let one = cancel(&mut world, &["p1"]);
    let all = cancel(&mut world, &["p1", "p0"]);

    assert_eq!((one, all), ((0, 1), (2, 0)));
    assert_eq!(ended(&world, "p1"), Some(State::Cancelled));
}

#[test]
fn a_retry_by_any_name_sends_all_that_failed_together() {
    let mut world = held();
    world
        .server
        .scripts
        .insert("p0".into(), vec![Script::Status(422)]);
    world.enqueue(vec![patch("p0"), patch("p1").group("g")]);
    resume(&mut world);
    world.run(60_000);
    assert_eq!(ended(&world, "p1"), Some(State::Failed));

    let target = Target::Jobs(vec![JobId::parse("p1").expect("a name")]);
    world.request(|request| Input::Retry {
        request,
        target,
        force: Force::No,
    });
    world.run(120_000);

    assert_eq!(world.sent, [["p0", "p1"], ["p0", "p1"]]);
    assert_eq!(ended(&world, "p1"), Some(State::Done));
    let group = world.core.group(&GroupId::parse("g").expect("a name"));
    assert_eq!(
        group.map(|group| (group.total, group.done, group.failed)),
        Some((1, 1, 0))
    );
}

#[test]
fn identical_waiting_reads_are_one_request() {
    let mut world = held();
    world.enqueue(vec![read("a"), read("b")]);
    world.enqueue(vec![read("c").lane(Lane::Interactive)]);

    resume(&mut world);
    world.run(60_000);

    assert_eq!(world.sent, [["a"]]);
    assert!(
        ["a", "b", "c"]
            .iter()
            .all(|id| ended(&world, id) == Some(State::Done))
    );
}

#[test]
fn an_older_identical_write_does_not_stand_for_one_after_another_write() {
    let write = |id: &str, body: &str| card(id).edit(Kind::Custom, CONTACT).body(body);
    let mut world = held();
    world.enqueue(vec![
        write("a", "1"),
        write("b", "2"),
        write("c", "1"),
        write("d", "1"),
    ]);

    resume(&mut world);
    world.run(60_000);

    assert_eq!(world.sent, [["a"], ["b"], ["c"]]);
}

#[test]
fn what_may_not_be_repeated_is_never_taken_for_the_same() {
    let mut world = held();
    world.enqueue(vec![read("a").create(), read("b").create()]);

    resume(&mut world);
    world.run(60_000);

    assert_eq!(world.sent.len(), 2);
}

#[test]
fn a_crash_leaves_what_goes_together_together() {
    let mut world = held();
    world.server.scripts.insert("p0".into(), vec![Script::Lost]);
    world.enqueue(vec![patch("p0"), patch("p1"), patch("p2").group("g")]);
    resume(&mut world);
    world.run_until(20);

    world.crash_and_restart(vec![budget("api", &["10/1s"], Some(4))]);
    world.run(60_000);

    assert_eq!(world.sent, [["p0", "p1", "p2"], ["p0", "p1", "p2"]]);
    assert_eq!(ended(&world, "p2"), Some(State::Done));
}

#[test]
fn jobs_beyond_the_bound_queue_behind() {
    let mut world = held();
    let count = paceline_core::kind::MAX_MERGED + 3;
    world.enqueue((0..count).map(|n| patch(&format!("p{n}"))).collect());

    resume(&mut world);
    world.run(60_000);

    let sizes: Vec<usize> = world.sent.iter().map(Vec::len).collect();
    assert_eq!(sizes, [count - 2, 2]);
}

/// Whatever merges and crashes come, each record ends as the accepted edits leave it, and each asker hears one end.
#[test]
fn nothing_is_lost_and_nothing_overtakes_in_any_interleaving() {
    for seed in 0..300_u64 {
        let mut draw = oorandom::Rand32::new(seed);
        let mut world = World::new(&["20/1s"], Some(3));
        world.commit_ms = u64::from(draw.rand_range(0..4));
        let mut accepted: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut requests = Vec::new();
        let mut merges = 0;
        for n in 0..60 {
            let key = format!("k{}", draw.rand_range(0..3));
            let id = format!("{key}-{n}");
            let kind = if key == "k0" {
                Kind::Replace
            } else {
                Kind::Patch
            };
            let lane = Lane::ALL[draw.rand_range(0..3) as usize];
            let job = card(&id).key(&key).edit(kind, &key).lane(lane);
            match draw.rand_range(0..10) {
                0 => hold(&mut world),
                1 | 2 => resume(&mut world),
                3 => world.crash_and_restart(vec![budget("api", &["20/1s"], Some(3))]),
                4 => {
                    let script = vec![Script::Lost, Script::Status(503)];
                    world.server.scripts.insert(id.clone(), script);
                }
                _ => {}
            }
            requests.push((world.enqueue(vec![job]), key, id));
            world.run_until(world.now + u64::from(draw.rand_range(0..8)));
        }
        resume(&mut world);
        world.run(10_000_000);
        for (request, key, id) in requests {
            let is_stored = world
                .disk
                .batches
                .values()
                .flatten()
                .any(|card| card.id.as_str() == id);
            let is_accepted = matches!(world.reply(request), Some(Reply::Accepted { .. }));
            assert!(
                is_stored || !is_accepted,
                "{id} was accepted and is not stored"
            );
            if is_stored {
                assert_eq!(ended(&world, &id), Some(State::Done), "{id}, seed {seed}");
                accepted.entry(key).or_default().push(id);
            }
        }
        for (key, edits) in accepted {
            let of_key = |parts: &&Vec<String>| parts[0].starts_with(&key);
            let mut seen: Vec<&String> = Vec::new();
            for parts in world.sent.iter().filter(of_key) {
                merges += parts.len() - 1;
                // A repeat says again what was said last; else all is new.
                if !seen.ends_with(&parts.iter().collect::<Vec<_>>()) {
                    seen.extend(parts);
                }
            }
            if key == "k0" {
                // Each replacement makes all before it void.
                assert_eq!(seen.last(), edits.last().as_ref(), "seed {seed}");
                assert!(seen.is_sorted_by_key(|id| edits.iter().position(|edit| edit == *id)));
            } else {
                assert_eq!(seen, edits.iter().collect::<Vec<_>>(), "seed {seed}");
            }
        }
        assert!(merges > 0 || seed > 0, "nothing was merged");
    }
}

#[test]
fn what_is_claimed_together_is_stored_together_though_the_merge_could_not_be_stored() {
    let mut world = held();
    let now = world.clock();
    let mut handle = |input| {
        world.core.handle(input, now).expect("drained");
        std::iter::from_fn(|| world.core.poll_effect())
            .filter_map(|effect| {
                if let Effect::Commit {
                    commit, changes, ..
                } = effect
                {
                    return Some((commit, changes));
                }
                None
            })
            .collect::<Vec<_>>()
    };
    let first = handle(Input::Enqueue {
        request: RequestId(1),
        cards: vec![patch("a"), patch("b")],
    });
    let merge = handle(Input::Committed(first[0].0));
    let opened = handle(Input::Resume {
        request: RequestId(2),
        budget: None,
    });

    handle(Input::CommitFailed(merge[0].0, CommitFailure::Full));

    let carried = |changes: &[Change]| {
        let mut changes = changes.iter();
        changes.any(|change| matches!(change, Change::PutRecord { record, .. } if record.merged_into.is_some()))
    };
    let claims = |changes: &[Change]| {
        let mut changes = changes.iter();
        changes.any(|change| matches!(change, Change::PutRecord { record, .. } if record.state == State::Sending))
    };
    let claim = opened.iter().find(|(_, changes)| claims(changes));
    let (_, changes) = claim.expect("a claim before the merge has failed");
    assert!(carried(&merge[0].1), "{merge:?}");
    assert!(carried(changes), "{changes:?}");
}
