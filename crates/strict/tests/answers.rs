//! What the server says: refusals, reports, cross-origin headers, idempotency, and errors of the one who set it up.

mod kit;

use kit::Server;
use serde_json::{Value, json};

const ORIGIN: (&str, &str) = ("origin", "https://app.test");

fn one_per_ten_minutes(more: Value) -> Value {
    let mut scenario = json!({ "limits": [{ "limit": 1, "window_ms": 600_000 }] });
    for (name, value) in more.as_object().expect("an object") {
        scenario[name] = value.clone();
    }
    scenario
}

#[tokio::test]
async fn a_refusal_is_a_problem_that_says_when_to_come_back() {
    for (form, expected) in [
        ("seconds", Some("600")),
        ("none", None),
        ("zero", Some("0")),
    ] {
        let server = Server::with(one_per_ten_minutes(json!({ "retry_after": form }))).await;
        server.post(&[], "{}").await;

        let refused = server.post(&[], "{}").await;

        assert_eq!(
            (refused.status, refused.header("retry-after")),
            (429, expected),
            "{form}"
        );
        assert_eq!(
            refused.header("content-type"),
            Some("application/problem+json")
        );
        assert_eq!(refused.json()["violated-policies"], json!(["1/600000ms"]));
    }
}

#[tokio::test]
async fn a_refusal_can_say_a_date_by_a_clock_that_is_off() {
    let skew_ms = 86_400_000;
    let scenario = json!({ "retry_after": "date", "clock_skew_ms": skew_ms, "dialect": "github" });
    let server = Server::with(one_per_ten_minutes(scenario)).await;
    server.post(&[], "{}").await;

    let refused = server.post(&[], "{}").await;

    let parse = |name: &str| {
        httpdate::parse_http_date(refused.header(name).expect("a date")).expect("a date")
    };
    let (date, retry_after) = (parse("date"), parse("retry-after"));
    let wait_s = retry_after.duration_since(date).expect("a wait").as_secs();
    assert!((598..=601).contains(&wait_s), "{wait_s}");
    let ahead_s = date
        .duration_since(std::time::SystemTime::now())
        .expect("a clock ahead")
        .as_secs();
    assert!((86_300..=86_400).contains(&ahead_s), "{ahead_s}");
    let reset_s: u64 = refused
        .header("x-ratelimit-reset")
        .expect("a reset")
        .parse()
        .expect("seconds");
    let date_s = date
        .duration_since(std::time::UNIX_EPOCH)
        .expect("an epoch")
        .as_secs();
    assert!((598..=602).contains(&(reset_s - date_s)), "{reset_s}");
}

#[tokio::test]
async fn another_origin_may_read_everything_or_only_what_is_safelisted() {
    let server = Server::with(json!({ "limits": [{ "limit": 9, "window_ms": 1000 }] })).await;
    let open = server.post(&[ORIGIN], "{}").await;
    server.patch(json!({ "expose_headers": false })).await;

    let closed = server.post(&[ORIGIN], "{}").await;

    for answer in [&open, &closed] {
        assert_eq!(answer.header("access-control-allow-origin"), Some(ORIGIN.1));
        assert_eq!(
            answer.header("access-control-allow-credentials"),
            Some("true")
        );
        assert!(answer.header("ratelimit").is_some());
    }
    assert_eq!(
        open.header("access-control-expose-headers"),
        Some("ratelimit-policy, ratelimit, date")
    );
    assert_eq!(closed.header("access-control-expose-headers"), None);
}

#[tokio::test]
async fn an_edge_may_hide_its_refusals_from_another_origin() {
    let server = Server::with(json!({
        "limits": [{ "limit": 1, "window_ms": 600_000 }], "cors_on_refusals": false }))
    .await;

    let served = server.post(&[ORIGIN], "{}").await;
    let refused = server.post(&[ORIGIN], "{}").await;

    let origin = |answer: &kit::Answer| {
        let origin = answer.header("access-control-allow-origin");
        (answer.status, origin.map(str::to_owned))
    };
    assert_eq!(origin(&served), (200, Some(ORIGIN.1.to_owned())));
    assert_eq!(origin(&refused), (429, None));
}

#[tokio::test]
async fn preflights_are_answered_at_once_and_counted_apart() {
    let server = Server::with(one_per_ten_minutes(
        json!({ "latency_ms": [600_000, 600_000] }),
    ))
    .await;
    let asks = [
        ORIGIN,
        ("access-control-request-method", "PATCH"),
        (
            "access-control-request-headers",
            "content-type,idempotency-key",
        ),
    ];

    let preflight = server
        .send("OPTIONS", "/strict/a/api/orders", &asks, "")
        .await;

    assert_eq!(preflight.status, 204);
    assert_eq!(preflight.header("access-control-max-age"), Some("7200"));
    assert_eq!(
        preflight.header("access-control-allow-methods"),
        Some("PATCH")
    );
    assert_eq!(
        preflight.header("access-control-allow-headers"),
        Some("content-type,idempotency-key")
    );
    let report = server.report().await;
    assert_eq!(
        (&report["preflights"], &report["arrivals"]),
        (&json!(1), &json!(0))
    );
}

#[tokio::test]
async fn a_key_gets_a_conflict_while_its_first_request_is_at_work() {
    let server =
        Server::with(json!({ "latency_ms": [600_000, 600_000], "count_at": "arrival" })).await;
    let key = ("idempotency-key", "k");
    let mut first = server.connect().await;
    first
        .begin("POST", "/strict/a/api/orders", &[key], "1")
        .await
        .expect("sent");
    server.report_when(|report| report["total"] == 1).await;
    server.patch(json!({ "latency_ms": [0, 0] })).await;

    let second = server.post(&[key], "1").await;

    assert_eq!(second.status, 409);
    let report = server.report().await;
    assert_eq!(
        (&report["applied"], &report["conflicts"]),
        (&json!(1), &json!(1))
    );
}

#[tokio::test]
async fn a_known_key_replays_its_answer_and_refuses_another_body() {
    let server = Server::with(json!({})).await;
    let key = ("idempotency-key", "k");
    let first = server.post(&[key], "1").await;

    let replay = server.post(&[key], "1").await;
    let other = server.post(&[key], "2").await;

    assert_eq!((replay.status, &replay.body), (200, &first.body));
    assert_eq!(replay.header("idempotent-replayed"), Some("true"));
    assert_eq!(other.status, 422);
    let report = server.report().await;
    assert_eq!(
        (
            &report["applied"],
            &report["duplicated"],
            &report["replayed"]
        ),
        (&json!(1), &json!(0), &json!(1))
    );
}

#[tokio::test]
async fn a_request_is_recorded_as_it_came() {
    let server = Server::with(json!({ "cost": { "PATCH": 2 } })).await;
    let headers = [("idempotency-key", "k-1")];
    let answer = server
        .send(
            "PATCH",
            "/strict/a/api/contacts/42?x=1",
            &headers,
            "{\"owner\":\"Ada\"}",
        )
        .await;

    let report = server.report().await;

    assert_eq!(
        answer.json(),
        json!({ "ok": true, "method": "PATCH", "path": "/contacts/42?x=1", "n": 1 })
    );
    let request = &report["requests"][0];
    assert_eq!(request["method"], "PATCH");
    assert_eq!(request["path"], "/contacts/42?x=1");
    assert_eq!(request["body"], "{\"owner\":\"Ada\"}");
    assert_eq!(request["idempotency_key"], "k-1");
    assert_eq!(
        (&request["status"], &request["cost"], &request["in_flight"]),
        (&json!(200), &json!(2), &json!(1))
    );
    assert!(request["answered_ms"].is_number());
}

#[tokio::test]
async fn a_long_body_is_taken_and_kept_short() {
    let server = Server::with(json!({})).await;
    let body = "x".repeat(100_000);

    let answer = server.post(&[], &body).await;

    assert_eq!(answer.status, 200);
    let request = &server.report().await["requests"][0];
    assert_eq!(request["body"].as_str().map(str::len), Some(4_096));
    assert_eq!(request["body_bytes"], 100_000);
}

#[tokio::test]
async fn a_body_above_the_bound_is_refused_and_does_not_arrive() {
    let server = Server::with(json!({})).await;
    let mut client = server.connect().await;
    let length = (32 << 20) + 1;
    let head = format!(
        "POST /strict/a/api/x HTTP/1.1\r\nhost: strict\r\ncontent-length: {length}\r\n\r\n"
    );
    client.write(head.as_bytes()).await.expect("sent");

    let answer = client.receive().await.expect("an answer");

    assert_eq!(answer.status, 413);
    assert_eq!(server.report().await["arrivals"], 0);
}

#[tokio::test]
async fn a_report_can_carry_only_what_is_new_or_nothing() {
    let server = Server::with(json!({})).await;
    for _ in 0..3 {
        server.post(&[], "{}").await;
    }

    let newer = server
        .send("GET", "/strict/a/report?since=2", &[], "")
        .await
        .json();
    let summary = server
        .send("GET", "/strict/a/report?summary=1", &[], "")
        .await
        .json();
    let wrong = server
        .send("GET", "/strict/a/report?since=x", &[], "")
        .await;

    assert_eq!(newer["requests"].as_array().map(Vec::len), Some(1));
    assert_eq!((&newer["total"], &newer["since"]), (&json!(3), &json!(2)));
    assert_eq!(summary["total"], 3);
    assert!(summary.get("requests").is_none());
    assert_eq!(wrong.status, 400);
}

#[tokio::test]
async fn a_bad_scenario_is_refused_by_its_field_and_changes_nothing() {
    let server = Server::with(json!({ "seed": 4 })).await;
    let bad = json!({ "seed": 5, "limits": [{ "limit": 1, "window_ms": 1, "algorithm": "gcra" }] })
        .to_string();
    for method in ["PUT", "PATCH"] {
        let answer = server.send(method, "/strict/a", &[], &bad).await;

        assert_eq!(answer.status, 400, "{method}");
        assert_eq!(
            answer.header("content-type"),
            Some("application/problem+json")
        );
        assert_eq!(answer.json()["field"], "limits[0].algorithm");
        assert_eq!(
            answer.json()["expected"],
            "one of sliding-log, fixed-window, token-bucket"
        );
    }
    assert_eq!(
        server.send("GET", "/strict/a", &[], "").await.json()["seed"],
        4
    );
}

#[tokio::test]
async fn what_is_no_json_and_what_is_no_account_are_problems() {
    let server = Server::start().await;

    let no_json = server.send("PUT", "/strict/a", &[], "{").await;
    let absent = server
        .send("GET", "/strict/nobody/report", &[ORIGIN], "")
        .await;
    let no_api = server
        .send("POST", "/strict/nobody/api/x", &[ORIGIN], "")
        .await;

    assert_eq!(no_json.status, 400);
    for answer in [absent, no_api] {
        assert_eq!(answer.status, 404);
        assert_eq!(answer.header("access-control-allow-origin"), Some(ORIGIN.1));
        assert!(
            answer.json()["detail"]
                .as_str()
                .is_some_and(|detail| detail.contains("nobody"))
        );
    }
}

#[tokio::test]
async fn the_blank_page_is_html() {
    let server = Server::start().await;

    let page = server.send("GET", "/blank", &[], "").await;

    assert_eq!(page.status, 200);
    assert_eq!(
        page.header("content-type"),
        Some("text/html; charset=utf-8")
    );
}

fn batch(fails: Value) -> Value {
    json!({ "batch": { "path": "/items", "max": 3, "fails": fails } })
}

#[tokio::test]
async fn each_item_of_a_batch_is_an_effect_of_its_own() {
    let server = Server::with(batch(json!([]))).await;
    let post = |body: Value| {
        let server = &server;
        async move {
            server
                .send("POST", "/strict/a/api/items", &[], &body.to_string())
                .await
        }
    };
    let first = post(json!({ "items": [{ "id": 1 }, { "id": 2 }] })).await;

    post(json!({ "items": [{ "id": 2 }, { "id": 3 }] })).await;

    let results = json!([{ "id": 1, "status": 200 }, { "id": 2, "status": 200 }]);
    assert_eq!(first.json()["results"], results);
    let report = server.report().await;
    assert_eq!(
        (&report["applied"], &report["duplicated"]),
        (&json!(3), &json!(1))
    );
}

#[tokio::test]
async fn items_that_are_to_fail_do_so_once_and_without_effect() {
    let server = Server::with(batch(json!([{ "every": 2, "status": 503 }]))).await;
    let body = json!({ "items": [{ "id": 1 }, { "id": 2 }, { "id": 3 }] }).to_string();
    let statuses = |answer: &kit::Answer| {
        let results = answer.json()["results"].as_array().cloned();
        let results = results.into_iter().flatten();
        results
            .map(|result| result["status"].as_u64())
            .collect::<Vec<_>>()
    };

    let first = server.send("POST", "/strict/a/api/items", &[], &body).await;
    let again = server.send("POST", "/strict/a/api/items", &[], &body).await;

    assert_eq!(statuses(&first), [Some(200), Some(503), Some(200)]);
    assert_eq!(statuses(&again), [Some(200), Some(200), Some(200)]);
    let report = server.report().await;
    assert_eq!(
        (&report["applied"], &report["duplicated"]),
        (&json!(3), &json!(2))
    );
}

#[tokio::test]
async fn a_repeat_under_the_key_of_a_batch_is_replayed_and_other_items_under_it_are_refused() {
    let server = Server::with(batch(json!([]))).await;
    let key = ("idempotency-key", "k");
    let send = |id: u32| {
        let server = &server;
        let body = json!({ "items": [{ "id": id }] }).to_string();
        async move {
            server
                .send("POST", "/strict/a/api/items", &[key], &body)
                .await
        }
    };
    let first = send(1).await;

    let (again, other) = (send(1).await, send(2).await);

    assert_eq!((again.status, &again.body), (200, &first.body));
    assert_eq!(other.status, 422);
    let report = server.report().await;
    assert_eq!(
        (&report["applied"], &report["duplicated"]),
        (&json!(1), &json!(0))
    );
}

#[tokio::test]
async fn what_is_no_batch_or_too_large_a_one_has_no_effect() {
    let server = Server::with(batch(json!([]))).await;
    let items: Vec<Value> = (0..4).map(|id| json!({ "id": id })).collect();
    for (body, status) in [
        ("{}".to_owned(), 400),
        (json!({ "items": items }).to_string(), 413),
    ] {
        let answer = server.send("POST", "/strict/a/api/items", &[], &body).await;

        assert_eq!(answer.status, status);
    }
    assert_eq!(server.report().await["applied"], 0);
}
