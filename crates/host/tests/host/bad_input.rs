//! What a tab can get wrong: a typed error that names the field, for this tab alone, and the host goes on.

use paceline_protocol::request::{Enqueue, Jobs};
use paceline_protocol::{Request, error::Code};
use serde_json::{Value, json};

use crate::kit::{World, api, job, job_with};

/// Sends a bad message from tab 1 and checks what it costs.
#[track_caller]
fn costs(message: Value, code: &str, field: &str) {
    let mut world = World::with_tabs();
    let name = message.to_string();

    let re = world.tell(1, message);

    assert_refused(&mut world, re, code, field, &name);
}

/// The error is typed, its sender's alone, and the host goes on as if nothing had come.
#[track_caller]
fn assert_refused(world: &mut World, re: f64, code: &str, field: &str, name: &str) {
    let reply = world.reply(re).clone();
    assert_eq!(
        (&reply["type"], &reply["code"]),
        (&json!("error"), &json!(code)),
        "{name}: {reply}"
    );
    assert_eq!(reply["field"], field, "{name}: {reply}");
    assert!(
        reply["message"]
            .as_str()
            .is_some_and(|text| !text.is_empty())
    );
    assert!(world.stored_names().is_empty(), "{name} was stored");
    assert!(world.heard(2, "error").is_empty());
    world.enqueue(2, "next");
    world.run();
    assert_eq!(
        world.heard(2, "settled")[0]["job"]["state"],
        "done",
        "after {name}"
    );
    assert_eq!(world.names_sent(), ["next"]);
}

#[track_caller]
fn job_costs(fields: Value, code: &str, field: &str) {
    costs(
        json!({ "type": "enqueue", "job": job_with("bad", fields) }),
        code,
        field,
    );
}

#[test]
fn a_job_without_a_good_url_is_refused() {
    let long = format!("https://api.test/{}", "x".repeat(8_192));
    for url in [
        Value::Null,
        json!("/relative"),
        json!("ftp://api.test/"),
        json!("https:///x"),
        json!("https://api.test/a b"),
        json!(long),
    ] {
        job_costs(json!({ "url": url }), "bad-job", "job.url");
    }
    costs(
        json!({ "type": "enqueue", "job": {} }),
        "bad-job",
        "job.url",
    );
}

#[test]
fn a_word_that_is_not_known_is_refused() {
    job_costs(json!({ "lane": "fast" }), "bad-job", "job.lane");
    job_costs(json!({ "method": "BREW" }), "bad-job", "job.method");
    job_costs(json!({ "method": "patch" }), "bad-job", "job.method");
    job_costs(json!({ "kind": "merge" }), "bad-job", "job.kind");
    job_costs(
        json!({ "budget": "never-declared" }),
        "unknown-budget",
        "job.budget",
    );
}

#[test]
fn a_cost_that_can_never_fit_is_refused() {
    job_costs(json!({ "cost": 101 }), "never-fits", "job.cost");
    costs(
        json!({ "type": "enqueue-many", "jobs": [job("a"), job_with("b", json!({ "cost": 101 }))] }),
        "never-fits",
        "jobs[1].cost",
    );
}

#[test]
fn a_number_that_is_none_is_refused() {
    for field in ["cost", "timeoutMs", "maxWaitMs"] {
        for value in [json!(-1), json!(0), json!(1.5), json!(1e300)] {
            job_costs(json!({ field: value }), "bad-job", &format!("job.{field}"));
        }
    }
    job_costs(json!({ "notBefore": -1 }), "bad-job", "job.notBefore");
    job_costs(json!({ "timeoutMs": 600_001 }), "bad-job", "job.timeoutMs");
}

#[test]
fn a_number_that_json_cannot_carry_is_refused() {
    for value in [f64::NAN, f64::INFINITY] {
        let mut world = World::with_tabs();
        let mut enqueue: Enqueue = serde_json::from_value(json!({ "job": job("bad") })).unwrap();
        enqueue.job.cost = Some(value);
        let request = Ok(Request::Enqueue(Box::new(enqueue)));
        world.request(1, 77.0, request, vec![(json!({}), 2)]);
        assert_refused(&mut world, 77.0, "bad-job", "job.cost", "NaN");

        let mut jobs = Jobs::default();
        jobs.filter.get_or_insert_default().limit = Some(value);
        world.request(1, 78.0, Ok(Request::Jobs(jobs)), Vec::new());
        assert_eq!(world.reply(78.0)["field"], "filter.limit");
    }
}

#[test]
fn a_secret_header_is_refused_in_any_case() {
    for header in [
        "Authorization",
        "authorization",
        "COOKIE",
        "Proxy-Authorization",
        "sEt-CoOkIe",
    ] {
        job_costs(
            json!({ "headers": { header: "secret" } }),
            "secret-header",
            &format!("job.headers.{header}"),
        );
    }
}

#[test]
fn a_refused_secret_is_not_repeated_in_the_error() {
    let mut world = World::with_tabs();
    let bad = job_with(
        "bad",
        json!({ "headers": { "Authorization": "Bearer 12345" } }),
    );

    let re = world.tell(1, json!({ "type": "enqueue", "job": bad }));

    assert!(!world.reply(re).to_string().contains("12345"));
}

#[test]
fn a_header_that_cannot_be_sent_is_refused() {
    job_costs(
        json!({ "headers": { "a b": "x" } }),
        "bad-job",
        "job.headers.a b",
    );
    job_costs(
        json!({ "headers": { "x-a": "x\r\ny: z" } }),
        "bad-job",
        "job.headers.x-a",
    );
    job_costs(
        json!({ "headers": { "x-a": "x".repeat(8_193) } }),
        "bad-job",
        "job.headers.x-a",
    );
}

#[test]
fn a_name_that_is_too_long_or_empty_is_refused() {
    for field in ["id", "key", "group", "budget"] {
        for name in ["", &"x".repeat(256)] {
            job_costs(json!({ field: name }), "bad-job", &format!("job.{field}"));
        }
    }
    job_costs(
        json!({ "idempotencyKey": "x".repeat(256) }),
        "bad-job",
        "job.idempotencyKey",
    );
    job_costs(
        json!({ "idempotencyKey": "ü" }),
        "bad-job",
        "job.idempotencyKey",
    );
    job_costs(
        json!({ "principal": "x".repeat(256) }),
        "bad-job",
        "job.principal",
    );
    costs(
        json!({ "type": "enqueue-many", "group": "", "jobs": [job("a")] }),
        "bad-job",
        "group",
    );
    costs(
        json!({ "type": "hello", "principal": "x".repeat(256) }),
        "bad-job",
        "principal",
    );
}

#[test]
fn a_request_above_16_mb_is_refused() {
    let mut world = World::with_tabs();

    let re = world.tell_sized(
        1,
        json!({ "type": "enqueue", "job": job("bad") }),
        Some(16 * 1_024 * 1_024 + 1),
    );

    assert_refused(
        &mut world,
        re,
        "bad-job",
        "job.body",
        "a body of 16 MB and a byte",
    );
}

#[test]
fn a_field_of_another_shape_is_refused() {
    job_costs(json!({ "url": 5 }), "bad-job", "job.url");
    job_costs(json!({ "headers": "none" }), "bad-job", "job.headers");
    job_costs(
        json!({ "headers": { "x-a": 5 } }),
        "bad-job",
        "job.headers.x-a",
    );
    job_costs(json!({ "cost": "5" }), "bad-job", "job.cost");
    job_costs(json!({ "repeatable": "yes" }), "bad-job", "job.repeatable");
    costs(json!({ "type": "enqueue", "job": "bad" }), "bad-job", "job");
    costs(json!({ "type": "enqueue", "job": null }), "bad-job", "job");
    costs(json!({ "type": "enqueue" }), "bad-job", "job");
    costs(json!({ "type": "enqueue-many" }), "bad-job", "jobs");
    costs(
        json!({ "type": "enqueue-many", "jobs": { "0": job("a") } }),
        "bad-job",
        "jobs",
    );
    costs(
        json!({ "type": "cancel", "jobs": ["a", 5] }),
        "bad-job",
        "jobs[1]",
    );
    costs(
        json!({ "type": "jobs", "filter": { "state": "lost" } }),
        "bad-job",
        "filter.state",
    );
    costs(
        json!({ "type": "jobs", "filter": { "limit": -1 } }),
        "bad-job",
        "filter.limit",
    );
}

#[test]
fn a_type_of_message_that_is_not_known_is_refused() {
    for kind in ["", "garbage", "Enqueue", "__proto__"] {
        costs(json!({ "type": kind }), "protocol", "type");
    }
}

#[test]
fn a_message_of_another_version_is_refused() {
    for version in [0, 2] {
        costs(
            json!({ "type": "enqueue", "paceline": version, "job": job("bad") }),
            "protocol",
            "paceline",
        );
    }
}

#[test]
fn one_bad_job_refuses_all_and_is_named() {
    let mut world = World::with_tabs();
    let bad = job_with("b", json!({ "lane": "fast" }));

    let re = world.tell(
        1,
        json!({ "type": "enqueue-many", "group": "g", "jobs": [job("a"), bad, job("c")] }),
    );

    assert_eq!(world.reply(re)["index"], 1);
    assert_refused(
        &mut world,
        re,
        "bad-job",
        "jobs[1].lane",
        "a bulk with a bad job",
    );
}

#[test]
fn one_cost_of_many_that_never_fits_refuses_all_and_is_named() {
    let mut world = World::with_tabs();
    let bad = job_with("b", json!({ "cost": 101 }));

    let re = world.tell(
        1,
        json!({ "type": "enqueue-many", "group": "g", "jobs": [job("a"), bad] }),
    );

    let reply = world.reply(re);
    assert_eq!(
        (&reply["index"], &reply["field"]),
        (&json!(1), &json!("jobs[1].cost"))
    );
    world.run();
    assert!(world.stored_names().is_empty());
}

#[test]
fn a_job_of_a_bulk_cannot_belong_to_another_group() {
    let stray = job_with("b", json!({ "group": "other" }));

    costs(
        json!({ "type": "enqueue-many", "group": "g", "jobs": [job("a"), stray] }),
        "bad-job",
        "jobs[1].group",
    );
}

#[test]
fn a_bad_budget_is_refused_and_names_its_field() {
    let with = |field: &str, value: Value| {
        let mut budget = api();
        budget[field] = value;
        json!([api(), budget])
    };
    let cases = [
        (with("id", json!("")), "budgets[1].id"),
        (with("id", json!("*")), "budgets[1].id"),
        (with("limits", json!(["many"])), "budgets[1].limits[0]"),
        (
            with(
                "limits",
                json!([{ "limit": 5, "window": "s", "algorithm": "magic" }]),
            ),
            "budgets[1].limits[0]",
        ),
        (
            with("limits", json!([{ "window": "s" }])),
            "budgets[1].limits[0]",
        ),
        (with("match", json!([""])), "budgets[1].match"),
        (with("maxInFlight", json!(0)), "budgets[1].maxInFlight"),
        (with("maxInFlight", json!(1.5)), "budgets[1].maxInFlight"),
        (with("share", json!(0)), "budgets[1].share"),
        (
            with("idempotency", json!({ "header": "a b" })),
            "budgets[1].idempotency.header",
        ),
        (
            with("idempotency", json!({})),
            "budgets[1].idempotency.header",
        ),
        (json!([api(), api()]), "budgets[1].id"),
        (json!([{ "limits": [] }]), "budgets[0].id"),
    ];

    for (budgets, field) in cases {
        costs(
            json!({ "type": "configure", "budgets": budgets }),
            "bad-job",
            field,
        );
        costs(
            json!({ "type": "hello", "budgets": budgets }),
            "bad-job",
            field,
        );
    }
    costs(json!({ "type": "configure" }), "bad-job", "budgets");
}

#[test]
fn a_hold_of_a_budget_that_is_not_known_is_refused() {
    costs(
        json!({ "type": "hold", "budget": "nobody" }),
        "unknown-budget",
        "budget",
    );
    costs(
        json!({ "type": "resume", "budget": "nobody" }),
        "unknown-budget",
        "budget",
    );
}

#[test]
fn a_cancel_or_retry_names_jobs_or_a_group() {
    for kind in ["cancel", "retry"] {
        costs(json!({ "type": kind }), "bad-job", "jobs");
        costs(
            json!({ "type": kind, "jobs": ["a"], "group": "g" }),
            "bad-job",
            "group",
        );
    }
}

#[test]
fn fields_that_are_not_known_are_ignored() {
    let mut world = World::with_tabs();
    let job = job_with("a", json!({ "fromTheFuture": { "deep": [1, 2] } }));

    let re = world.tell(1, json!({ "type": "enqueue", "job": job, "alsoNew": true }));

    assert_eq!(world.reply(re)["type"], "accepted");
}

#[test]
fn codes_are_kebab_case_on_the_wire() {
    let codes = [
        (Code::BadJob, "bad-job"),
        (Code::UnknownBudget, "unknown-budget"),
        (Code::SecretHeader, "secret-header"),
        (Code::NeverFits, "never-fits"),
        (Code::QueueFull, "queue-full"),
        (Code::StorageFull, "storage-full"),
        (Code::Storage, "storage"),
        (Code::Protocol, "protocol"),
    ];

    for (code, name) in codes {
        assert_eq!(serde_json::to_value(code).unwrap(), name);
    }
}
