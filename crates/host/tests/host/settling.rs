//! Who is told that a job has settled, and what they are given.

use paceline_core::io::NoAnswer;
use serde_json::json;

use crate::kit::{World, job, job_with};

#[test]
fn settled_goes_to_the_tab_that_asked_with_the_response() {
    let mut world = World::with_tabs();
    world.enqueue(1, "a");

    world.run();

    let told = world.heard(1, "settled");
    assert_eq!(told.len(), 1);
    assert_eq!(told[0]["job"]["state"], "done");
    assert_eq!(told[0]["response"], json!({ "status": 200 }));
    assert!(world.heard(2, "settled").is_empty());
}

#[test]
fn a_bulk_is_told_of_each_job_without_responses_and_of_the_group_at_the_end() {
    let mut world = World::with_tabs();
    world.script("b", &[404]);
    world.tell(
        1,
        json!({ "type": "enqueue-many", "group": "g", "jobs": [job("a"), job("b")] }),
    );

    world.run();

    let told = world.heard(1, "settled");
    assert_eq!(told.len(), 2);
    assert!(told.iter().all(|post| post.get("response").is_none()));
    let group = world.heard(1, "group-settled");
    assert_eq!(group.len(), 1);
    assert_eq!(group[0]["group"], "g");
    assert_eq!(
        (&group[0]["done"], &group[0]["failed"]),
        (&json!(1), &json!(1))
    );
    assert!(world.heard(2, "group-settled").is_empty());
}

#[test]
fn a_group_settles_once_and_after_its_last_job() {
    let mut world = World::with_tabs();
    world.tell(
        1,
        json!({ "type": "enqueue-many", "group": "g", "jobs": [job("a"), job("b")] }),
    );

    world.answer(0, 200, &[]);
    assert!(world.heard(1, "group-settled").is_empty());
    world.answer(1, 200, &[]);

    assert_eq!(world.heard(1, "group-settled").len(), 1);
}

#[test]
fn a_job_that_two_tabs_enqueued_settles_in_both() {
    let mut world = World::with_tabs();
    world.enqueue(1, "a");
    world.enqueue(2, "a");

    world.run();

    assert_eq!(world.sent.len(), 1);
    for tab in [1, 2] {
        assert_eq!(world.heard(tab, "settled").len(), 1);
        assert_eq!(world.heard(tab, "settled")[0]["response"]["status"], 200);
    }
}

#[test]
fn a_failure_is_told_with_its_code_status_and_attempts() {
    let mut world = World::with_tabs();
    world.script("a", &[503, 404]);
    world.enqueue(1, "a");

    world.run();

    let told = world.heard(1, "settled")[0];
    assert_eq!(
        told["job"],
        json!({ "id": "a", "state": "failed", "code": "http", "status": 404, "attempts": 2 })
    );
    assert_eq!(told["response"]["status"], 404);
}

#[test]
fn settled_is_told_only_after_the_outcome_is_stored() {
    let mut world = World::with_tabs();
    world.enqueue(1, "a");
    world.slow_disk();

    world.answer(0, 200, &[]);

    assert!(world.heard(1, "settled").is_empty());
    world.disk_answers();
    assert_eq!(world.heard(1, "settled").len(), 1);
}

#[test]
fn a_job_that_ends_without_an_answer_has_no_response_of_an_earlier_attempt() {
    let mut world = World::with_tabs();
    let job = job_with(
        "a",
        json!({ "method": "POST", "kind": "create", "idempotencyKey": null }),
    );
    world.tell(1, json!({ "type": "enqueue", "job": job }));
    world.answer(0, 429, &[("retry-after", "1")]);
    world.pass(3_000);
    assert_eq!(world.sent.len(), 2);

    world.lose(1, NoAnswer::Network);

    let told = world.heard(1, "settled")[0];
    assert_eq!(told["job"]["code"], "outcome-unknown");
    assert_eq!(told.get("response"), None);
}

#[test]
fn a_cancelled_job_has_no_response_of_an_earlier_attempt() {
    let mut world = World::with_tabs();
    world.enqueue(1, "a");
    world.answer(0, 429, &[("retry-after", "60")]);

    let re = world.tell(2, json!({ "type": "cancel", "jobs": ["a"] }));

    assert_eq!(world.reply(re)["cancelled"], 1);
    let told = world.heard(1, "settled")[0];
    assert_eq!(told["job"]["code"], "cancelled");
    assert_eq!(told.get("response"), None);
}

#[test]
fn a_tab_that_has_left_is_told_nothing_more() {
    let mut world = World::with_tabs();
    world.enqueue(1, "a");
    world.enqueue(2, "a");
    world.tell(
        1,
        json!({ "type": "enqueue-many", "group": "g", "jobs": [job("b")] }),
    );

    world.leave(1);
    world.run();

    assert!(world.heard(1, "settled").is_empty());
    assert!(world.heard(1, "group-settled").is_empty());
    assert_eq!(world.heard(2, "settled").len(), 1);
    assert_eq!(world.sent.len(), 2);
}

#[test]
fn a_tab_that_says_bye_is_told_nothing_more() {
    let mut world = World::with_tabs();
    world.enqueue(1, "a");

    let re = world.tell(1, json!({ "type": "bye" }));
    world.run();

    assert!(!world.is_answered(re));
    assert!(world.heard(1, "settled").is_empty());
}

#[test]
fn a_retried_job_settles_again_for_the_tab_that_retried_it() {
    let mut world = World::with_tabs();
    world.script("a", &[404]);
    world.enqueue(1, "a");
    world.run();

    let re = world.tell(
        2,
        json!({ "type": "retry", "jobs": ["a", "never-heard-of"] }),
    );
    world.run();

    assert_eq!(world.reply(re)["retried"], 1);
    assert_eq!(world.heard(1, "settled").len(), 1);
    assert_eq!(world.heard(2, "settled")[0]["job"]["state"], "done");
}

#[test]
fn an_aborted_job_ends_as_aborted() {
    let mut world = World::with_tabs();
    let late = job_with("a", json!({ "notBefore": 1_800_000_000_000_u64 }));
    world.tell(1, json!({ "type": "enqueue", "job": late }));

    world.tell(
        1,
        json!({ "type": "cancel", "jobs": ["a"], "aborted": true }),
    );

    assert_eq!(world.heard(1, "settled")[0]["job"]["code"], "aborted");
}

#[test]
fn a_group_is_told_as_settled_only_once_that_is_stored() {
    let mut world = World::with_tabs();
    let many = json!({ "type": "enqueue-many", "group": "g", "jobs": [job("a")] });
    world.tell(1, many.clone());
    world.slow_disk();
    world.tell(2, many);
    world.answer(0, 200, &[]);

    world.disk_answers();
    assert!(world.heard(2, "group-settled").is_empty());

    world.fast_disk();
    assert_eq!(world.heard(2, "group-settled").len(), 1);
}

#[test]
fn a_bulk_of_jobs_that_another_bulk_brought_settles_too() {
    let mut world = World::with_tabs();
    world.tell(1, json!({ "type": "hold" }));
    let jobs = [job("a"), job("b")];
    world.tell(
        1,
        json!({ "type": "enqueue-many", "jobs": jobs, "group": "first" }),
    );
    let jobs = [job("a"), job("b"), job("c")];
    world.tell(
        2,
        json!({ "type": "enqueue-many", "jobs": jobs, "group": "second" }),
    );

    world.tell(1, json!({ "type": "resume" }));
    world.run();

    let ended = world.heard(2, "group-settled");
    assert_eq!(ended.len(), 1);
    assert_eq!(
        (&ended[0]["group"], &ended[0]["done"]),
        (&json!("second"), &json!(3))
    );
}

#[test]
fn an_abort_speaks_for_its_own_tab_only() {
    let mut world = World::with_tabs();
    world.tell(1, json!({ "type": "hold" }));
    world.enqueue(1, "shared");
    world.enqueue(2, "shared");

    world.tell(
        1,
        json!({ "type": "cancel", "jobs": ["shared"], "aborted": true }),
    );
    world.tell(2, json!({ "type": "resume" }));
    world.run();

    assert_eq!(world.heard(2, "settled")[0]["job"]["state"], "done");
    assert!(world.heard(1, "settled").is_empty());
}

#[test]
fn a_job_whose_request_is_not_in_the_store_fails_for_that_reason() {
    let mut world = World::with_tabs();
    world.tell(1, json!({ "type": "hold" }));
    world.enqueue(1, "a");
    world.crash();
    world.lose_requests();
    world.hello(1);
    world.enqueue(1, "a");

    world.tell(1, json!({ "type": "resume" }));
    world.run();

    let told = world.heard(1, "settled");
    assert_eq!(told.len(), 1);
    assert_eq!(told[0]["job"]["code"], "storage");
    assert!(world.sent.is_empty());
}

#[test]
fn a_tab_that_retries_a_group_hears_of_its_jobs_and_of_its_end() {
    let mut world = World::with_tabs();
    world.script("b", &[400]);
    let jobs = [job("a"), job("b")];
    world.tell(
        1,
        json!({ "type": "enqueue-many", "group": "g", "jobs": jobs }),
    );
    world.run();

    let re = world.tell(2, json!({ "type": "retry", "group": "g" }));
    world.run();

    assert_eq!(world.reply(re)["retried"], 1);
    let told = world.heard(2, "settled");
    assert_eq!(told.len(), 1);
    assert_eq!(
        (&told[0]["job"]["id"], &told[0]["job"]["state"]),
        (&json!("b"), &json!("done"))
    );
    let group = world.heard(2, "group-settled");
    assert_eq!(group.len(), 1);
    assert_eq!(
        (&group[0]["done"], &group[0]["failed"]),
        (&json!(2), &json!(0))
    );
}

#[test]
fn a_retry_that_is_refused_as_stale_leaves_nobody_asking() {
    let mut world = World::with_tabs();
    world.script("a", &[400]);
    for name in ["a", "b"] {
        let job = job_with(name, json!({ "key": "k" }));
        world.tell(1, json!({ "type": "enqueue", "job": job }));
    }
    world.run();

    let re = world.tell(2, json!({ "type": "retry", "jobs": ["a"] }));
    world.run();

    assert_eq!(
        (&world.reply(re)["retried"], &world.reply(re)["stale"]),
        (&json!(0), &json!(1))
    );
    assert!(world.heard(2, "settled").is_empty());
}

#[test]
fn a_status_means_what_the_app_says_it_means() {
    let mut world = World::new();
    let mut api = crate::kit::api();
    api["statuses"] = json!({
        "404": "done", "423": "retry", "403": "refused", "418": "credentials", "503": "failed",
    });
    world.tell(1, json!({ "type": "hello", "budgets": [api] }));
    let expected = [("a", 404, "done"), ("b", 423, "done"), ("c", 503, "failed")];

    for (name, status, state) in expected {
        world.script(name, &[status]);
        world.enqueue(1, name);
        world.run();
        let told = world.heard(1, "settled");
        assert_eq!(
            told.last().expect("told")["job"]["state"],
            state,
            "{status}"
        );
    }
    assert_eq!(world.names_sent(), ["a", "b", "b", "c"]);
    assert_eq!(
        world.heard(1, "settled")[0]["response"],
        json!({ "status": 404 })
    );

    world.script("d", &[403]);
    world.enqueue(1, "d");
    world.answer_all();
    world.script("e", &[418]);
    world.run();
    world.enqueue(1, "e");
    world.run();
    let events = world.heard(1, "event");
    let names: Vec<_> = events.iter().map(|event| event["name"].as_str()).collect();
    assert!(names.contains(&Some("paused")), "{names:?}");
    assert_eq!(names.last(), Some(&Some("credentials-needed")));
    assert_eq!(world.record("d").expect("stored").attempts_counted, 0);
}
