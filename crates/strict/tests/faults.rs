//! Each kind of fault as a client on a bare socket meets it, first proved to have happened.

mod kit;

use std::io::ErrorKind;

use kit::{Answer, Server};
use serde_json::{Value, json};

const ORIGIN: (&str, &str) = ("origin", "https://app.test");

/// Sends one request to an account whose first request is hit, and gives what came and the report.
async fn hit(fault: Value) -> (std::io::Result<Answer>, Value) {
    let server = Server::with(json!({ "faults": [fault] })).await;
    let answer = server
        .connect()
        .await
        .send("POST", "/strict/a/api/orders", &[ORIGIN], "{}")
        .await;
    let report = server.report().await;
    let kind = fault["kind"].as_str().expect("a kind");
    assert_eq!(report["faults"][kind], 1, "the fault has to happen");
    assert_eq!(report["requests"][0]["fault"], kind);
    (answer, report)
}

fn error_kind(answer: std::io::Result<Answer>) -> Option<ErrorKind> {
    answer.err().map(|error| error.kind())
}

#[tokio::test]
async fn a_status_fault_answers_another_status_and_applies_nothing() {
    let (answer, report) =
        hit(json!({ "nth": 1, "kind": "status", "status": 503, "retry_after_s": 3 })).await;

    let answer = answer.expect("an answer");
    assert_eq!(
        (answer.status, answer.header("retry-after")),
        (503, Some("3"))
    );
    assert_eq!(
        (&report["applied"], &report["requests"][0]["status"]),
        (&json!(0), &json!(503))
    );
}

#[tokio::test]
async fn a_drop_closes_without_a_byte_before_or_after_the_effect() {
    for (kind, applied) in [("drop-before-apply", 0), ("drop-after-apply", 1)] {
        let (answer, report) = hit(json!({ "nth": 1, "kind": kind })).await;

        assert_eq!(error_kind(answer), Some(ErrorKind::UnexpectedEof), "{kind}");
        assert_eq!(
            (&report["applied"], &report["requests"][0]["status"]),
            (&json!(applied), &Value::Null),
            "{kind}"
        );
    }
}

#[tokio::test]
async fn a_reset_resets_the_connection() {
    let (answer, report) = hit(json!({ "nth": 1, "kind": "reset" })).await;

    assert_eq!(error_kind(answer), Some(ErrorKind::ConnectionReset));
    assert_eq!(report["applied"], 0);
}

#[tokio::test]
async fn a_truncated_answer_ends_half_way_after_its_effect() {
    let (answer, report) = hit(json!({ "nth": 1, "kind": "truncate" })).await;

    let answer = answer.expect("a head and a half");
    assert_eq!(answer.status, 200);
    assert!(answer.is_cut && !answer.body.is_empty(), "{answer:?}");
    assert_eq!(report["applied"], 1);
}

#[tokio::test]
async fn a_no_cors_answer_is_whole_but_not_for_another_origin() {
    let (answer, report) = hit(json!({ "nth": 1, "kind": "no-cors" })).await;

    let answer = answer.expect("an answer");
    assert_eq!(answer.status, 200);
    assert!(
        answer
            .headers
            .keys()
            .all(|name| !name.starts_with("access-control-")),
        "{answer:?}"
    );
    assert_eq!(report["applied"], 1);
}

#[tokio::test]
async fn a_hang_says_nothing_until_the_client_leaves() {
    let server = Server::with(json!({ "faults": [{ "nth": 1, "kind": "hang" }] })).await;
    let mut client = server.connect().await;
    client
        .begin("POST", "/strict/a/api/orders", &[], "{}")
        .await
        .expect("sent");
    server
        .report_when(|report| report["faults"]["hang"] == 1)
        .await;

    let served = server.post(&[], "{}").await;

    assert_eq!(served.status, 200);
    assert!(client.is_silent());
    let report = server.report().await;
    assert_eq!(
        (&report["in_flight"], &report["requests"][0]["answered_ms"]),
        (&json!(1), &Value::Null)
    );
    drop(client);
    server.report_when(|report| report["in_flight"] == 0).await;
}

#[tokio::test]
async fn a_hidden_refusal_is_a_refusal_without_cors() {
    let server = Server::with(json!({
        "limits": [{ "limit": 1, "window_ms": 600_000 }],
        "faults": [{ "every": 1, "on": "refused", "kind": "no-cors" }] }))
    .await;

    let answers = [
        server.post(&[ORIGIN], "{}").await,
        server.post(&[ORIGIN], "{}").await,
    ];

    let seen = answers.map(|answer| {
        (
            answer.status,
            answer.header("access-control-allow-origin").is_some(),
        )
    });
    assert_eq!(seen, [(200, true), (429, false)]);
}

#[tokio::test]
async fn a_request_whose_client_left_is_carried_out_all_the_same() {
    let server = Server::with(json!({ "latency_ms": [300, 300], "count_at": "answer" })).await;
    let mut client = server.connect().await;
    client
        .begin("POST", "/strict/a/api/orders", &[], "{}")
        .await
        .expect("sent");
    server.report_when(|report| report["in_flight"] == 1).await;

    drop(client);

    let report = server
        .report_when(|report| report["in_flight"] == 0 && report["total"] == 1)
        .await;
    assert_eq!(report["applied"], 1);
}

#[tokio::test]
async fn a_connection_goes_on_after_an_answer_that_was_no_fault() {
    let server =
        Server::with(json!({ "faults": [{ "nth": 2, "kind": "drop-before-apply" }] })).await;
    let mut client = server.connect().await;
    let first = client.send("POST", "/strict/a/api/orders", &[], "1").await;

    let second = client.send("POST", "/strict/a/api/orders", &[], "2").await;

    assert_eq!(first.expect("an answer").status, 200);
    assert_eq!(error_kind(second), Some(ErrorKind::UnexpectedEof));
}
