use paceline_core::time::Wall;

use super::*;
use crate::{Response, Sent, read, read_all};

/// Noon of 1 September 2026.
const NOW: Wall = Wall::from_millis(1_788_264_000_000);

fn timed(header: &str, kind: Kind) -> Option<Timed> {
    let header = header.to_owned();
    Some(Timed { header, kind })
}

/// All that can be declared.
fn whole() -> OwnDialect {
    OwnDialect {
        limit: Some("X-My-Limit".to_owned()),
        remaining: Some("X-My-Left".to_owned()),
        used: Some("X-My-Used".to_owned()),
        reset: timed("X-My-Reset", Kind::EpochMillis),
        retry_after: timed("X-My-Wait", Kind::DeltaMillis),
        cost: Some("X-My-Cost".to_owned()),
        window: Some(Window::Fixed(60_000)),
        scope: Some("X-My-Pool".to_owned()),
    }
}

fn reading(own: OwnDialect, status: u16, headers: &[(&str, &str)]) -> Reading {
    let headers: Vec<(String, String)> = headers
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    let response = Response {
        status,
        headers: &headers,
        ..Response::default()
    };
    read_all(&response, own, NOW)
}

#[test]
fn reads_each_declared_header() {
    let told = reading(
        whole(),
        200,
        &[
            ("x-my-limit", "100"),
            ("x-my-left", "7"),
            ("x-my-reset", "1788264030000"),
            ("x-my-cost", "3"),
            ("x-my-pool", "search"),
        ],
    );

    assert_eq!(
        told.first,
        BudgetSignal {
            scope: Some("search".to_owned()),
            limit: Some(100),
            remaining: Some(7),
            reset_in_ms: Some(30_000),
            window_ms: Some(60_000),
        }
    );
    assert_eq!(
        (told.cost, told.dialect, told.unreadable),
        (Some(3), "own", 0)
    );
}

#[test]
fn what_is_used_tells_what_is_left() {
    let told = |used| {
        reading(whole(), 200, &[("x-my-limit", "100"), ("x-my-used", used)])
            .first
            .remaining
    };

    assert_eq!(told("40"), Some(60));
    assert_eq!(told("140"), Some(0));
}

#[test]
fn the_declared_wait_wins_over_retry_after() {
    let wait = |headers: &[(&str, &str)]| reading(whole(), 429, headers).retry_after_ms;

    assert_eq!(
        wait(&[("x-my-wait", "250"), ("retry-after", "9")]),
        Some(250)
    );
    assert_eq!(
        wait(&[("x-my-wait", "soon"), ("retry-after", "9")]),
        Some(9_000)
    );
    assert_eq!(wait(&[("retry-after", "9")]), Some(9_000));
}

#[test]
fn each_kind_is_read_as_it_is_written() {
    let cases = [
        (Kind::DeltaSeconds, "1.5", 1_500),
        (Kind::DeltaMillis, "1500", 1_500),
        (Kind::EpochSeconds, "1788264002", 2_000),
        (Kind::EpochMillis, "1788264002500", 2_500),
        (Kind::HttpDate, "Tue, 01 Sep 2026 12:00:03 GMT", 3_000),
        (Kind::IsoDate, "2026-09-01T12:00:04Z", 4_000),
        (Kind::Duration, "1m30s", 90_000),
        (Kind::Auto, "1788264002", 2_000),
    ];
    assert_eq!(cases.len(), Kind::ALL.len());
    for (kind, value, wait_ms) in cases {
        let own = OwnDialect {
            reset: timed("x-reset", kind),
            ..OwnDialect::default()
        };

        let told = reading(own, 200, &[("x-reset", value)]);

        assert_eq!(told.first.reset_in_ms, Some(wait_ms), "{}", kind.as_str());
        assert_eq!(Kind::parse(kind.as_str()), Some(kind));
    }
}

#[test]
fn a_value_of_another_kind_is_absent_and_counted() {
    let wrong = [
        (Kind::DeltaSeconds, "1788264002"),
        (Kind::DeltaMillis, "1m"),
        (Kind::EpochSeconds, "60"),
        (Kind::EpochMillis, "1788264002"),
        (Kind::HttpDate, "60"),
        (Kind::Duration, "60"),
        (Kind::Auto, "-1"),
    ];
    for (kind, value) in wrong {
        let own = OwnDialect {
            reset: timed("x-reset", kind),
            ..OwnDialect::default()
        };

        let told = reading(own, 200, &[("x-reset", value)]);

        assert_eq!(
            (told.first.reset_in_ms, told.unreadable),
            (None, 1),
            "{} {value}",
            kind.as_str()
        );
    }
}

#[test]
fn a_window_may_be_told_in_a_header() {
    let own = || OwnDialect {
        limit: Some("x-limit".to_owned()),
        window: timed("x-window", Kind::DeltaSeconds).map(Window::Told),
        ..OwnDialect::default()
    };
    let window = |value| {
        reading(own(), 200, &[("x-limit", "5"), ("x-window", value)])
            .first
            .window_ms
    };

    assert_eq!(window("10"), Some(10_000));
    assert_eq!(window("0"), None);
}

#[test]
fn other_headers_than_those_declared_say_nothing() {
    let told = reading(
        whole(),
        429,
        &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "60")],
    );

    assert!(told.is_rate_limited && told.found.is_empty());
    assert_eq!(told.retry_after_ms, None);
}

#[test]
fn what_the_core_hears_is_what_was_read() {
    let headers = [
        ("x-my-limit".to_owned(), "10".to_owned()),
        ("x-my-left".to_owned(), "0".to_owned()),
    ];
    let response = Response {
        status: 429,
        headers: &headers,
        ..Response::default()
    };

    let answer = read(&response, whole(), Sent::First, NOW);

    let budget = answer.signals.first().unwrap();
    assert_eq!(
        (budget.limit, budget.remaining, budget.window_ms),
        (Some(10), Some(0), Some(60_000))
    );
}
