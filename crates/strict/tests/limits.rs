//! Limits as real clients meet them.

mod kit;

use kit::Server;
use serde_json::{Value, json};

/// Sends requests over many connections at once and gives their statuses.
async fn flood(server: &Server, connections: usize, each: usize) -> Vec<u16> {
    let mut clients = Vec::new();
    for _ in 0..connections {
        clients.push(server.connect().await);
    }
    let one = |mut client: kit::Client| async move {
        let mut statuses = Vec::new();
        for n in 0..each {
            let answer = client
                .send("POST", "/strict/a/api/orders", &[], &n.to_string())
                .await;
            statuses.push(answer.expect("an answer").status);
        }
        statuses
    };
    let tasks: Vec<_> = clients
        .into_iter()
        .map(|client| tokio::spawn(one(client)))
        .collect();
    let mut all = Vec::new();
    for task in tasks {
        all.extend(task.await.expect("a client"));
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_at_once_against_a_hundred_pass_exactly_a_hundred() {
    let server = Server::with(json!({ "limits": [{ "limit": 100, "window_ms": 600_000 }] })).await;

    let statuses = flood(&server, 100, 10).await;

    assert_eq!(
        statuses.iter().filter(|status| **status == 200).count(),
        100
    );
    assert_eq!(
        statuses.iter().filter(|status| **status == 429).count(),
        900
    );
    let report = server.report().await;
    assert_eq!(
        (&report["accepted"], &report["rejected"]),
        (&json!(100), &json!(900))
    );
    assert_eq!(report["windows"][0]["max_seen"], 1_000);
    assert_eq!(report["windows"][0]["allowed"], 100);
    assert_eq!(report["in_flight"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_is_in_the_order_of_its_instants() {
    let server = Server::with(json!({ "latency_ms": [0, 4] })).await;

    flood(&server, 20, 20).await;

    let report = server.report().await;
    let requests = report["requests"].as_array().expect("requests");
    let instants: Vec<f64> = requests
        .iter()
        .filter_map(|request| request["at_ms"].as_f64())
        .collect();
    assert_eq!(instants.len(), 400);
    assert!(instants.is_sorted());
    assert!(
        requests
            .iter()
            .all(|r| r["arrived_ms"].as_f64() <= r["at_ms"].as_f64())
    );
}

#[tokio::test]
async fn all_limits_must_admit_and_the_refusing_one_is_named() {
    let server = Server::with(json!({ "limits": [
        { "limit": 3, "window_ms": 600_000, "name": "short" },
        { "limit": 5, "window_ms": 600_000, "algorithm": "token-bucket", "name": "long" } ] }))
    .await;
    let mut statuses = Vec::new();
    for _ in 0..4 {
        statuses.push(server.post(&[], "{}").await.status);
    }
    server
        .patch(json!({ "limits": [
        { "limit": 100, "window_ms": 600_000, "name": "short" },
        { "limit": 5, "window_ms": 600_000, "algorithm": "token-bucket", "name": "long" } ] }))
        .await;
    for _ in 0..3 {
        statuses.push(server.post(&[], "{}").await.status);
    }

    assert_eq!(statuses, [200, 200, 200, 429, 200, 200, 429]);
    let report = server.report().await;
    let rules: Vec<&Value> = [3, 6]
        .iter()
        .map(|n| &report["requests"][n]["rule"])
        .collect();
    assert_eq!(rules, ["short", "long"]);
}

#[tokio::test]
async fn more_at_a_time_than_may_be_are_refused() {
    let server = Server::with(json!({
        "max_in_flight": 1, "latency_ms": [600_000, 600_000], "count_at": "arrival" }))
    .await;
    let mut waiting = server.connect().await;
    waiting
        .begin("POST", "/strict/a/api/orders", &[], "{}")
        .await
        .expect("sent");
    server.report_when(|report| report["in_flight"] == 1).await;
    server.patch(json!({ "latency_ms": [0, 0] })).await;

    let refused = server.post(&[], "{}").await;

    assert_eq!(refused.status, 429);
    let report = server.report().await;
    assert_eq!(report["requests"][1]["rule"], "max-in-flight");
    assert_eq!(report["max_in_flight"], 2);
}

#[tokio::test]
async fn a_patch_keeps_counts_and_log_and_a_put_starts_anew() {
    let server = Server::with(json!({ "limits": [{ "limit": 5, "window_ms": 600_000 }] })).await;
    for _ in 0..3 {
        server.post(&[], "{}").await;
    }

    server
        .patch(json!({ "limits": [{ "limit": 3, "window_ms": 600_000 }] }))
        .await;

    assert_eq!(server.post(&[], "{}").await.status, 429);
    assert_eq!(server.report().await["total"], 4);
    let again = server.send("PUT", "/strict/a", &[], "{}").await;
    assert_eq!(again.status, 200);
    assert_eq!(server.report().await["total"], 0);
}
