//! What a response means for its job, and what the core is told.

use paceline_core::io::Verdict;

use super::*;

const NOW: Wall = Wall::from_millis(1_788_264_000_000);

fn answer(status: u16, headers: &[(&str, &str)], text: &str, sent: Sent) -> Answer {
    let headers: Vec<(String, String)> = headers
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    let response = Response {
        status,
        headers: &headers,
        text: Some(text),
        ..Response::default()
    };
    read(&response, Dialect::auto(), sent, NOW)
}

fn verdict(status: u16, headers: &[(&str, &str)], text: &str) -> Verdict {
    answer(status, headers, text, Sent::First).verdict
}

#[test]
fn a_refusal_is_no_failure() {
    assert_eq!(verdict(429, &[], ""), Verdict::Refused);
    assert_eq!(verdict(425, &[], ""), Verdict::Refused);
    assert_eq!(verdict(503, &[("Retry-After", "5")], ""), Verdict::Refused);
    assert_eq!(verdict(503, &[], ""), Verdict::Unavailable);
    assert_eq!(
        verdict(503, &[("Retry-After", "soon")], ""),
        Verdict::Unavailable
    );
}

#[test]
fn a_refusal_under_another_status_is_one_too() {
    let graphql = r#"{"data":null,"errors":[{"extensions":{"code":"RATELIMITED"}}]}"#;
    assert_eq!(verdict(200, &[], graphql), Verdict::Refused);
    let empty = [
        ("x-ratelimit-remaining", "0"),
        ("x-ratelimit-resource", "core"),
    ];
    assert_eq!(verdict(403, &empty, ""), Verdict::Refused);
    assert_eq!(
        verdict(403, &[], r#"{"message":"forbidden"}"#),
        Verdict::Final
    );
}

#[test]
fn a_429_that_no_waiting_helps_is_final() {
    let body = r#"{"error":{"code":"insufficient_quota"}}"#;

    assert_eq!(verdict(429, &[], body), Verdict::Final);
}

#[test]
fn a_429_for_a_lock_is_tried_later_without_closing_the_budget() {
    let body = r#"{"error":{"code":"lock_timeout"}}"#;
    let answer = answer(429, &[], body, Sent::First);

    assert_eq!(answer.verdict, Verdict::Unavailable);
    assert!(!answer.signals.is_rate_limited);
}

#[test]
fn a_conflict_means_something_else_on_a_repeat() {
    assert_eq!(verdict(409, &[], ""), Verdict::Final);
    assert_eq!(
        answer(409, &[], "", Sent::AgainWithKey).verdict,
        Verdict::StillRunning
    );
    assert_eq!(
        answer(422, &[], "", Sent::AgainWithKey).verdict,
        Verdict::KeyReused
    );
}

#[test]
fn the_date_header_corrects_a_wrong_clock() {
    let headers = [
        ("date", "Tue, 01 Sep 2026 12:00:00 GMT"),
        ("retry-after", "Tue, 01 Sep 2026 12:00:20 GMT"),
    ];

    assert_eq!(
        answer(429, &headers, "", Sent::First)
            .signals
            .retry_after_ms,
        Some(20_000)
    );
}

#[test]
fn a_date_header_that_is_no_clock_is_not_believed() {
    for date in [
        "Fri, 31 Dec 9999 23:59:59 GMT",
        "Sat, 01 Jan 1994 00:00:00 GMT",
        "soon",
    ] {
        let headers = [
            ("date", date),
            ("retry-after", "Tue, 01 Sep 2026 12:00:20 GMT"),
        ];

        assert_eq!(
            answer(429, &headers, "", Sent::First)
                .signals
                .retry_after_ms,
            Some(20_000),
            "{date}"
        );
    }
}

#[test]
fn the_limit_that_matters_most_comes_first() {
    let headers = [
        ("ratelimit", "\"day\";r=4100;t=41200, \"burst\";r=0;t=4"),
        (
            "ratelimit-policy",
            "\"burst\";q=120;w=60, \"day\";q=5000;w=86400",
        ),
    ];

    let signals = answer(200, &headers, "", Sent::First).signals;

    assert_eq!(signals.first().unwrap().scope.as_deref(), Some("burst"));
    assert_eq!(signals.budgets.len(), 2);
}

#[test]
fn a_limit_on_what_is_in_flight_is_no_budget() {
    let headers = [
        ("ratelimit", "\"conc\";r=0, \"default\";r=8;t=3"),
        (
            "ratelimit-policy",
            "\"conc\";q=5;qu=\"concurrent-requests\", \"default\";q=10;w=5",
        ),
    ];

    let signals = answer(200, &headers, "", Sent::First).signals;

    assert_eq!(signals.concurrency, Some(5));
    assert_eq!(signals.budgets.len(), 1);
    assert_eq!(signals.first().unwrap().limit, Some(10));
}

#[test]
fn a_refusal_by_a_limit_without_numbers_names_it_first() {
    let headers = [
        ("x-ratelimit-limit", "5000"),
        ("x-ratelimit-remaining", "4321"),
        ("x-ratelimit-resource", "core"),
        ("retry-after", "60"),
    ];

    let signals = answer(403, &headers, "", Sent::First).signals;

    assert_eq!(signals.first().unwrap().scope.as_deref(), Some("secondary"));
    assert_eq!(signals.first().unwrap().remaining, None);
    assert_eq!(signals.budgets[1].remaining, Some(4_321));
}

#[test]
fn a_name_removes_the_guess() {
    let headers = [
        ("ratelimit-limit".to_owned(), "100".to_owned()),
        ("ratelimit-remaining".to_owned(), "0".to_owned()),
        ("ratelimit-reset".to_owned(), "1788264060".to_owned()),
    ];
    let response = Response {
        status: 429,
        headers: &headers,
        ..Response::default()
    };
    let named = |name| read_all(&response, Dialect::named(name).unwrap(), NOW);

    assert_eq!(named("gitlab").retry_after_ms, Some(60_000));
    // Seconds by its specification: 56 years are none.
    let ietf = named("ietf");
    assert_eq!((ietf.retry_after_ms, ietf.unreadable), (None, 1));
}

#[test]
fn what_cannot_be_read_is_counted() {
    let headers = [
        ("ratelimit-limit".to_owned(), "unlimited".to_owned()),
        ("ratelimit-remaining".to_owned(), "n/a".to_owned()),
        ("ratelimit-reset".to_owned(), "soon".to_owned()),
        ("retry-after".to_owned(), "x".repeat(1_000_000)),
    ];
    let response = Response {
        status: 429,
        headers: &headers,
        ..Response::default()
    };

    let reading = read_all(&response, Dialect::auto(), NOW);

    assert_eq!(reading.unreadable, 4);
    assert_eq!(reading.first, Default::default());
}

#[test]
fn a_wait_beyond_the_bound_is_cut_and_marked() {
    let headers = [("retry-after".to_owned(), "99999999999".to_owned())];
    let response = Response {
        status: 429,
        headers: &headers,
        ..Response::default()
    };

    let reading = read_all(&response, Dialect::auto(), NOW);

    assert_eq!(reading.retry_after_ms, Some(MAX_WAIT_MS));
    assert!(reading.is_cut);
}

#[test]
fn a_long_text_is_cut_between_characters() {
    let text = "ü".repeat(40_000);

    assert_eq!(
        answer(500, &[], &text, Sent::First).text.unwrap().len(),
        MAX_TEXT_BYTES
    );
}
