//! `estimate` and `simulate`: what would be, asked before it is.

use serde_json::{Value, json};

use crate::kit::{World, job_with};

fn ask(world: &mut World, message: Value) -> Value {
    let re = world.tell(1, message);
    world.reply(re).clone()
}

#[test]
fn an_estimate_is_told_in_milliseconds_and_instants() {
    let mut world = World::with_tabs();

    let told = ask(
        &mut world,
        json!({ "type": "estimate", "budget": "api", "count": 250 }),
    );

    let estimate = &told["estimate"];
    assert_eq!(told["type"], "estimate");
    let (starts, done) = (&estimate["startsAt"], &estimate["doneAt"]);
    let took = done
        .as_u64()
        .zip(starts.as_u64())
        .map(|(done, starts)| done - starts);
    assert_eq!(took, estimate["etaMs"].as_u64());
    // Two hundred and fifty at 100 a second: the third window.
    assert!((2_000..3_000).contains(&took.expect("known")), "{estimate}");
    assert_eq!(estimate["crossesWindow"], true);
    assert_eq!(estimate["rules"][0]["limit"], 100);
    assert_eq!(estimate["usedUpAt"], estimate["rules"][0]["usedUpAt"]);
    // No answer was seen yet.
    assert_eq!(estimate["isEstimate"], true);
}

#[test]
fn a_simulation_has_a_timeline_for_each_step_and_sends_nothing() {
    let mut world = World::with_tabs();
    let plan = json!([
        { "budget": "api", "count": 300 },
        { "budget": "api", "count": 10, "cost": 2, "lane": "interactive", "everyMs": 100 },
    ]);

    let told = ask(&mut world, json!({ "type": "simulate", "plan": plan }));

    let simulation = &told["simulation"];
    assert_eq!(simulation["jobs"], 310);
    assert_eq!(simulation["units"], 320);
    assert_eq!(simulation["steps"].as_array().map(Vec::len), Some(2));
    assert_eq!(simulation["byLane"]["interactive"]["jobs"], 10);
    assert_eq!(simulation["byBudget"]["api"]["jobs"], 310);
    let ends: Vec<&Value> = [0, 1]
        .map(|step| &simulation["steps"][step]["doneAt"])
        .into();
    assert!(ends.contains(&&simulation["doneAt"]), "{simulation}");
    assert!(world.sent.is_empty());
}

#[test]
fn a_held_budget_has_no_end() {
    let mut world = World::with_tabs();
    world.tell(1, json!({ "type": "hold", "budget": "api" }));

    let question = json!({ "type": "estimate", "budget": "api", "count": 1 });
    let estimate = ask(&mut world, question);
    let plan = json!([{ "budget": "api", "count": 1 }]);
    let simulation = ask(&mut world, json!({ "type": "simulate", "plan": plan }));

    assert_eq!(estimate["estimate"]["etaMs"], Value::Null);
    assert_eq!(simulation["simulation"]["doneAt"], Value::Null);
}

#[test]
fn what_is_asked_badly_is_refused_with_its_field() {
    let mut world = World::with_tabs();
    let estimate = |fields: Value| job_of("estimate", fields);
    let step = |fields: Value| json!({ "type": "simulate", "plan": [{ "budget": "api", "count": 1 }, fields] });
    let steps = vec![json!({ "budget": "api", "count": 1 }); 101];
    let cases = [
        (
            estimate(json!({ "budget": "nobody", "count": 1 })),
            "unknown-budget",
            "budget",
        ),
        (
            estimate(json!({ "budget": "", "count": 1 })),
            "bad-job",
            "budget",
        ),
        (estimate(json!({ "budget": "api" })), "bad-job", "count"),
        (
            estimate(json!({ "budget": "api", "count": 0 })),
            "bad-job",
            "count",
        ),
        (
            estimate(json!({ "budget": "api", "count": 1.5 })),
            "bad-job",
            "count",
        ),
        (
            estimate(json!({ "budget": "api", "count": 1e300 })),
            "bad-job",
            "count",
        ),
        (
            estimate(json!({ "budget": "api", "count": "9" })),
            "bad-job",
            "count",
        ),
        (
            estimate(json!({ "budget": "api", "count": 1, "cost": -1 })),
            "bad-job",
            "cost",
        ),
        (
            estimate(json!({ "budget": "api", "count": 1, "cost": 101 })),
            "never-fits",
            "cost",
        ),
        (
            estimate(json!({ "budget": "api", "count": 1, "lane": "fast" })),
            "bad-job",
            "lane",
        ),
        (
            step(json!({ "budget": "nobody", "count": 1 })),
            "unknown-budget",
            "plan[1].budget",
        ),
        (
            step(json!({ "budget": "api", "count": 1, "cost": 101 })),
            "never-fits",
            "plan[1].cost",
        ),
        (
            step(json!({ "budget": "api", "count": 1, "everyMs": 1e9 })),
            "bad-job",
            "plan[1].everyMs",
        ),
        (json!({ "type": "simulate", "plan": [] }), "bad-job", "plan"),
        (
            json!({ "type": "simulate", "plan": steps }),
            "bad-job",
            "plan",
        ),
        (json!({ "type": "simulate" }), "bad-job", "plan"),
    ];

    for (message, code, field) in cases {
        let told = ask(&mut world, message.clone());
        assert_eq!(
            (&told["code"], &told["field"]),
            (&json!(code), &json!(field)),
            "{message}"
        );
    }
}

fn job_of(kind: &str, fields: Value) -> Value {
    let mut message = fields;
    message["type"] = json!(kind);
    message
}

#[test]
fn what_waits_already_goes_first() {
    let mut world = World::with_tabs();
    world.tell(1, json!({ "type": "hold" }));
    let jobs: Vec<Value> = (0..150)
        .map(|n| job_with(&format!("j{n}"), json!({})))
        .collect();
    world.tell(
        1,
        json!({ "type": "enqueue-many", "group": "g", "jobs": jobs }),
    );
    world.tell(1, json!({ "type": "resume" }));
    let question = json!({ "type": "estimate", "budget": "api", "count": 1 });

    let told = ask(&mut world, question);

    let eta_ms = told["estimate"]["etaMs"].as_u64();
    assert!(eta_ms.expect("known") >= 1_000, "{told}");
}
