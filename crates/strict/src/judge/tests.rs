//! One account over explicit instants.

use serde_json::{Value, json};

use super::*;

const MS: u64 = 1_000;

fn judge(scenario: Value) -> Judge {
    let scenario = Scenario::parse(&scenario).expect("a scenario");
    Judge::new(scenario, 1_788_264_000_000_000, &Arc::default())
}

fn post(key: Option<&str>, body: &'static str) -> Call {
    Call {
        method: "POST".to_owned(),
        path: "/orders".to_owned(),
        key: key.map(str::to_owned),
        body: Bytes::from_static(body.as_bytes()),
        ..Call::default()
    }
}

/// Lets a request come, be decided and be answered at one instant.
fn send(judge: &mut Judge, at_us: u64, call: &Call) -> Verdict {
    let arrival = judge.arrive(at_us);
    let mut verdict = judge.decide(at_us, &arrival, call);
    judge.leave(at_us, &mut verdict);
    judge.gone(verdict.holds());
    verdict
}

fn max_seen(judge: &mut Judge) -> Value {
    json!(judge.windows())[0]["max_seen"].clone()
}

#[test]
fn a_thousand_at_once_against_a_hundred_pass_exactly_a_hundred() {
    for word in ["sliding-log", "fixed-window", "token-bucket"] {
        let limit = json!({ "limit": 100, "window_ms": 60_000, "algorithm": word });
        let mut judge = judge(json!({ "limits": [limit] }));

        for _ in 0..1_000 {
            send(&mut judge, 5 * MS, &post(None, "{}"));
        }

        assert_eq!(
            (judge.counts.accepted, judge.counts.rejected),
            (100, 900),
            "{word}"
        );
        assert_eq!(
            max_seen(&mut judge),
            1_000,
            "{word}: refused arrivals are seen too"
        );
    }
}

#[test]
fn the_counted_instant_follows_count_at_and_the_one_latency_draw() {
    for (count_at, decide_after_us) in [("arrival", 0), ("middle", 40 * MS), ("answer", 80 * MS)] {
        let mut judge = judge(json!({ "latency_ms": [80, 80], "count_at": count_at }));

        let arrival = judge.arrive(7);

        assert_eq!(
            (arrival.decide_after_us, arrival.answer_after_us),
            (decide_after_us, 80 * MS),
            "{count_at}"
        );
    }
}

#[test]
fn equal_seeds_draw_equal_latencies() {
    let draws = |seed: u64| -> Vec<u64> {
        let mut judge = judge(json!({ "latency_ms": [20, 120], "seed": seed }));
        (0..50)
            .map(|now| judge.arrive(now).answer_after_us)
            .collect()
    };

    assert_eq!(draws(4), draws(4));
    assert_ne!(draws(4), draws(5));
    assert!(draws(4).iter().all(|us| (20 * MS..=120 * MS).contains(us)));
}

#[test]
fn one_more_than_may_be_in_flight_is_refused_at_its_arrival_and_uses_nothing() {
    let mut judge = judge(json!({
        "limits": [{ "limit": 3, "window_ms": 1000 }], "max_in_flight": 2, "latency_ms": [100, 100] }));
    let call = post(None, "{}");
    let first = judge.arrive(0);
    let second = judge.arrive(0);
    let third = judge.arrive(0);

    let refused = judge.decide(0, &third, &call);

    assert_eq!(third.decide_after_us, 0);
    assert_eq!(refused.answer.status(), 429);
    judge.decide(50 * MS, &first, &call);
    let last = judge.decide(50 * MS, &second, &call);
    assert_eq!(last.views[0].remaining, 1);
    assert_eq!(judge.counts.max_in_flight, 3);
}

#[test]
fn a_place_is_free_again_once_its_request_is_gone() {
    let mut judge = judge(json!({ "max_in_flight": 1 }));
    let call = post(None, "{}");

    let statuses =
        [send(&mut judge, 0, &call), send(&mut judge, 1, &call)].map(|v| v.answer.status());

    assert_eq!(statuses, [200, 200]);
    assert_eq!(judge.places(), Some((1, 1)));
}

#[test]
fn a_limit_refusal_gives_its_place_back_at_once() {
    let mut judge =
        judge(json!({ "limits": [{ "limit": 1, "window_ms": 1000 }], "max_in_flight": 2 }));
    let call = post(None, "{}");
    let arrivals = [judge.arrive(0), judge.arrive(0)];

    let statuses = arrivals.map(|arrival| judge.decide(0, &arrival, &call).answer.status());

    assert_eq!(statuses, [200, 429]);
    assert_eq!(judge.places(), Some((2, 1)));
}

#[test]
fn cost_by_method_is_used_and_seen() {
    let mut judge = judge(
        json!({ "limits": [{ "limit": 6, "window_ms": 1000 }], "cost": { "POST": 5, "GET": 0 } }),
    );
    let get = Call {
        method: "GET".to_owned(),
        path: "/".to_owned(),
        ..Call::default()
    };
    let call = post(None, "{}");

    let statuses = [&call, &call, &get].map(|call| send(&mut judge, 0, call).answer.status());

    assert_eq!(statuses, [200, 429, 200]);
    assert_eq!(max_seen(&mut judge), 10);
}

#[test]
fn refused_requests_use_the_limits_only_when_they_count() {
    for (count_refused, at_1100) in [(false, 200), (true, 429)] {
        let mut judge = judge(json!({
            "limits": [{ "limit": 1, "window_ms": 1000 }], "count_refused": count_refused }));
        let call = post(None, "{}");
        send(&mut judge, 0, &call);
        send(&mut judge, 900 * MS, &call);

        assert_eq!(
            send(&mut judge, 1_100 * MS, &call).answer.status(),
            at_1100,
            "count_refused {count_refused}"
        );
    }
}

#[test]
fn a_key_gets_conflict_then_replay_and_refuses_another_body() {
    let mut judge = judge(json!({ "latency_ms": [100, 100] }));
    let arrival = judge.arrive(0);
    let mut first = judge.decide(50 * MS, &arrival, &post(Some("k"), "1"));
    let early = send(&mut judge, 60 * MS, &post(Some("k"), "1"));
    judge.leave(100 * MS, &mut first);

    let replay = send(&mut judge, 200 * MS, &post(Some("k"), "1"));
    let other = send(&mut judge, 201 * MS, &post(Some("k"), "2"));

    assert_eq!(early.answer, Answer::KeyInFlight);
    let Answer::Served {
        body: first_body, ..
    } = first.answer
    else {
        panic!("expected an answer")
    };
    assert_eq!(
        replay.answer,
        Answer::Served {
            status: 200,
            body: first_body,
            replayed: true
        }
    );
    assert_eq!(other.answer, Answer::KeyReused);
    assert_eq!((judge.effects.applied, judge.effects.duplicated), (1, 0));
    assert_eq!((judge.counts.replayed, judge.counts.conflicts), (1, 2));
}

#[test]
fn without_idempotency_a_repeated_key_is_a_duplicate() {
    let mut judge = judge(json!({ "idempotency": false }));
    for _ in 0..3 {
        send(&mut judge, 0, &post(Some("k"), "1"));
    }

    assert_eq!((judge.effects.applied, judge.effects.duplicated), (1, 2));
}

#[test]
fn reads_and_refused_requests_have_no_effect() {
    let mut judge = judge(json!({ "limits": [{ "limit": 2, "window_ms": 1000 }] }));
    let get = Call {
        method: "GET".to_owned(),
        path: "/".to_owned(),
        ..Call::default()
    };
    for call in [&get, &post(None, "1"), &post(None, "2")] {
        send(&mut judge, 0, call);
    }

    assert_eq!((judge.effects.applied, judge.counts.rejected), (1, 1));
}

#[test]
fn each_fault_kind_applies_the_effect_or_not_as_its_name_says() {
    let kinds = [
        ("status", 0),
        ("drop-before-apply", 0),
        ("drop-after-apply", 1),
        ("hang", 0),
        ("reset", 0),
        ("truncate", 1),
        ("no-cors", 1),
    ];
    for (kind, applied) in kinds {
        let mut fault = json!({ "nth": 1, "kind": kind });
        if kind == "status" {
            fault["status"] = json!(503);
        }
        let mut judge = judge(json!({ "faults": [fault] }));

        let verdict = send(&mut judge, 0, &post(None, "1"));

        assert_eq!(verdict.fault.map(|fault| fault.kind.as_str()), Some(kind));
        assert_eq!(judge.effects.applied, applied, "{kind}");
        assert_eq!(judge.counts.faults.get(kind), Some(&1));
    }
}

#[test]
fn an_effect_whose_answer_was_lost_is_replayed_not_doubled() {
    let mut judge = judge(json!({ "faults": [{ "nth": 1, "kind": "drop-after-apply" }] }));
    send(&mut judge, 0, &post(Some("k"), "1"));

    let again = send(&mut judge, 1, &post(Some("k"), "1"));

    assert!(matches!(
        again.answer,
        Answer::Served { replayed: true, .. }
    ));
    assert_eq!((judge.effects.applied, judge.effects.duplicated), (1, 0));
}

#[test]
fn whoever_is_not_authorized_uses_the_limits_and_has_no_effect() {
    let limit = json!({ "limit": 2, "window_ms": 1000 });
    let mut judge = judge(json!({ "limits": [limit], "authorization": "Bearer x" }));
    let mut call = post(Some("k"), "1");
    let without = send(&mut judge, 0, &call);

    call.authorization = Some("Bearer x".to_owned());
    let with = send(&mut judge, 0, &call);
    let third = send(&mut judge, 0, &call);

    let statuses = [without, with, third].map(|verdict| verdict.answer.status());
    assert_eq!(statuses, [401, 200, 429]);
    assert_eq!(judge.effects.applied, 1);
}

#[test]
fn a_status_fault_leaves_the_key_free_for_the_repeat() {
    let mut judge = judge(
        json!({ "faults": [{ "nth": 1, "kind": "status", "status": 503, "retry_after_s": 2 }] }),
    );
    let faulted = send(&mut judge, 0, &post(Some("k"), "1"));

    let again = send(&mut judge, 1, &post(Some("k"), "1"));

    assert_eq!(
        faulted.answer,
        Answer::Faulted {
            status: 503,
            retry_after_s: Some(2)
        }
    );
    assert!(matches!(
        again.answer,
        Answer::Served {
            replayed: false,
            ..
        }
    ));
}

#[test]
fn faults_hit_by_number_by_multiple_by_chance_and_by_outcome() {
    let hit = |fault: Value| -> Vec<u64> {
        let limit = json!({ "limit": 10, "window_ms": 1000 });
        let mut judge = judge(json!({ "limits": [limit], "faults": [fault] }));
        let verdicts: Vec<Verdict> = (0..20)
            .map(|_| send(&mut judge, 0, &post(None, "1")))
            .collect();
        (1..)
            .zip(verdicts)
            .filter(|(_, verdict)| verdict.fault.is_some())
            .map(|(number, _)| number)
            .collect()
    };

    assert_eq!(hit(json!({ "kind": "no-cors", "nth": 3 })), [3]);
    assert_eq!(hit(json!({ "kind": "no-cors", "every": 8 })), [8, 16]);
    assert_eq!(
        hit(json!({ "kind": "no-cors", "every": 4, "on": "refused" })),
        [12, 16, 20]
    );
    assert_eq!(
        hit(json!({ "kind": "status", "status": 500, "every": 5 })),
        [5, 10],
        "a refusal stays a refusal"
    );
    let by_chance = hit(json!({ "kind": "no-cors", "rate": 0.3, "seed": 2 }));
    assert!((2..=11).contains(&by_chance.len()), "{by_chance:?}");
    assert_eq!(
        by_chance,
        hit(json!({ "kind": "no-cors", "rate": 0.3, "seed": 2 }))
    );
}

#[test]
fn a_patch_keeps_counts_and_log_and_judges_each_set_of_limits_by_itself() {
    let mut judge = judge(json!({ "limits": [{ "limit": 10, "window_ms": 1000 }] }));
    for at_us in 0..10 {
        send(&mut judge, at_us, &post(None, "1"));
    }
    let next = judge
        .scenario
        .patched(&json!({ "limits": [{ "limit": 4, "window_ms": 1000 }] }))
        .expect("a patch");

    judge.patch(500 * MS, next);
    let at_once = send(&mut judge, 600 * MS, &post(None, "1"));
    let later = send(&mut judge, 1_100 * MS, &post(None, "1"));

    assert_eq!((at_once.answer.status(), later.answer.status()), (429, 200));
    assert_eq!(judge.log.len(), 12);
    assert_eq!(max_seen(&mut judge), 2);
    let earlier = json!(judge.earlier);
    assert_eq!(earlier[0]["until_ms"], 500.0);
    assert_eq!(earlier[0]["windows"][0]["max_seen"], 10);
}

#[test]
fn a_patch_of_other_fields_leaves_the_limits_as_they_stood() {
    let mut judge = judge(
        json!({ "limits": [{ "limit": 2, "window_ms": 1000, "algorithm": "token-bucket" }] }),
    );
    send(&mut judge, 0, &post(None, "1"));
    let next = judge
        .scenario
        .patched(&json!({ "latency_ms": [5, 5] }))
        .expect("a patch");

    judge.patch(0, next);

    assert_eq!(send(&mut judge, 0, &post(None, "1")).views[0].remaining, 0);
    assert!(judge.earlier.is_empty());
}

#[test]
fn preflights_use_the_limits_only_when_they_count() {
    let limits = json!([{ "limit": 1, "window_ms": 1000 }]);
    let mut free = judge(json!({ "limits": limits }));
    let mut counted = judge(json!({ "limits": limits, "preflight": "counted" }));

    let outcomes = [&mut free, &mut counted].map(|judge| {
        judge.preflight(0);
        (
            judge.counts.preflights,
            send(judge, 0, &post(None, "1")).answer.status(),
        )
    });

    assert_eq!(outcomes, [(1, 200), (1, 429)]);
}

#[test]
fn the_server_clock_is_off_by_the_skew() {
    let judge = judge(json!({ "clock_skew_ms": -1500 }));

    assert_eq!(judge.clock_us(10_000_000), 8_500_000);
}
