//! Whatever a server sends: no panic, bounded time, no wait of nothing by accident, none beyond the bound without a mark.
//!
//! `PACELINE_SIGNALS_CASES` sets how many inputs each property takes.

#![allow(clippy::disallowed_methods, reason = "a test that bounds real time")]

use std::time::Duration;

use paceline_core::signals::MAX_BUDGETS;
use paceline_core::time::Wall;
use paceline_signals::{
    AnyDialect, Dialect, Kind, MAX_WAIT_MS, OwnDialect, Response, Sent, Timed, Window, read,
    read_all,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::Config;

/// Noon of 1 September 2026.
const NOW: Wall = Wall::from_millis(1_788_264_000_000);

const NAMES: [&str; 58] = [
    "retry-after",
    "retry-after-ms",
    "x-ms-retry-after-ms",
    "x-ratelimit-retry-after",
    "date",
    "age",
    "ratelimit",
    "ratelimit-policy",
    "ratelimit-limit",
    "ratelimit-remaining",
    "ratelimit-reset",
    "ratelimit-name",
    "ratelimit-reason",
    "ratelimit-resettime",
    "x-ratelimit-limit",
    "x-ratelimit-remaining",
    "x-ratelimit-reset",
    "x-ratelimit-reset-after",
    "x-ratelimit-used",
    "x-ratelimit-resource",
    "x-ratelimit-bucket",
    "x-ratelimit-scope",
    "x-ratelimit-global",
    "x-rate-limit",
    "x-rate-limit-limit",
    "x-rate-limit-remaining",
    "x-rate-limit-reset",
    "x-rate-limit-interval",
    "x-concurrency-limit",
    "x-ratelimit-limit-requests",
    "x-ratelimit-remaining-requests",
    "x-ratelimit-reset-requests",
    "x-ratelimit-limit-tokens",
    "x-ratelimit-requests-limit",
    "x-ratelimit-requests-remaining",
    "x-ratelimit-requests-reset",
    "x-complexity",
    "anthropic-ratelimit-requests-limit",
    "anthropic-ratelimit-requests-remaining",
    "anthropic-ratelimit-requests-reset",
    "x-hubspot-ratelimit-max",
    "x-hubspot-ratelimit-remaining",
    "x-hubspot-ratelimit-interval-milliseconds",
    "x-shopify-shop-api-call-limit",
    "stripe-should-retry",
    "stripe-rate-limited-reason",
    "zendesk-ratelimit-tickets-index",
    "sforce-limit-info",
    "x-rate-limit-api-key-max",
    "x-rate-limit-api-key-remaining",
    "x-limit-per-day",
    "x-remaining-today",
    "x-mbx-used-weight-1m",
    "x-sentry-rate-limits",
    "x-business-use-case-usage",
    "x-ms-ratelimit-remaining-subscription-reads",
    "x-amzn-errortype",
    "twilio-concurrent-requests",
];

/// Values that have broken parsers, none of which says zero or a past instant.
const HOSTILE: [&str; 40] = [
    "",
    " ",
    "nan",
    "NaN",
    "inf",
    "-inf",
    "Infinity",
    "-1",
    "-10",
    "+30",
    "0x10",
    "1e3",
    "1e400",
    "12abc",
    ".",
    "1.",
    ".5",
    "1.2.3",
    "99999999999999999999999999999999999",
    "18446744073709551615",
    "9007199254740993",
    "340282366920938463463374607431768211456",
    "0.00000000000000000000000001",
    "30, 60",
    "Fri, 31 Dec 9999 23:59:59 GMT",
    "9999-12-31T23:59:59.999999999Z",
    "Mon, 32 Jan 2031 26:61:61 GMT",
    "2031-13-45T99:99:99Z",
    "\"default\";r=5;t=3",
    "\"default\";r=5;t=",
    "\"unfinished",
    "\"a\";q=1;w=1, \"b",
    "limit=10, remaining=5, reset=3",
    "limit=, remaining",
    "100;w=60",
    "(1 2",
    "6m5s",
    "99999999999999999999h",
    "{\"1\":[{\"type\":\"x\",\"estimated_time_to_regain_access\":19}]}",
    "total=100; remaining=61; resets=23",
];

const BODIES: [&str; 16] = [
    "",
    "error code: 1015",
    "<?xml version=\"1.0\"?><Error><Code>SlowDown</Code></Error>",
    "<?xml version=\"1.0\"?><Error><Code>",
    "{",
    "[[[[",
    "\u{feff}{\"retry_after\":12}",
    "{\"errors\":[{\"extensions\":{\"code\":\"RATELIMITED\",\"retry_in_seconds\":99999999999999999999999}}]}",
    "{\"parameters\":{\"retry_after\":-5}}",
    "{\"parameters\":{\"retry_after\":\"nan\"}}",
    "{\"error\":{\"details\":[{\"retryDelay\":\"5s\"}]}}",
    "{\"error\":{\"errors\":[{\"domain\":\"usageLimits\",\"reason\":\"quotaExceeded\"}]}}",
    "{\"extensions\":{\"cost\":{\"requestedQueryCost\":92,\"throttleStatus\":{\"maximumAvailable\":-1,\"restoreRate\":0}}}}",
    "{\"type\":\"https://iana.org/assignments/http-problem-types#quota-exceeded\",\"violated-policies\":[{}]}",
    "{\"quota_max\":300,\"backoff\":1e9,\"a\":\"\\ud800\"}",
    "{\"object\":\"error\",\"code\":\"rate_limited\",\"additional_data\":[]}",
];

fn cases() -> u32 {
    let cases = std::env::var("PACELINE_SIGNALS_CASES").ok();
    cases.and_then(|cases| cases.parse().ok()).unwrap_or(2_000)
}

fn config() -> Config {
    Config {
        cases: cases(),
        failure_persistence: None,
        ..Config::default()
    }
}

/// Tells whether a number is an instant before [`NOW`], in seconds or milliseconds since 1970.
fn is_past(text: &str) -> bool {
    let whole = text
        .split('.')
        .next()
        .and_then(|whole| whole.parse::<u64>().ok());
    whole.is_some_and(|whole| {
        let now_ms = NOW.as_millis();
        (1_000_000_000..=now_ms / 1_000).contains(&whole)
            || (100_000_000_000..=now_ms).contains(&whole)
    })
}

/// A value above zero, or one that cannot be read.
fn value() -> impl Strategy<Value = String> {
    let value = prop_oneof![
        6 => select(&HOSTILE[..]).prop_map(str::to_owned),
        3 => (1_u64..).prop_map(|number| number.to_string()),
        2 => (1_u32..100_000).prop_map(|number| number.to_string()),
        1 => (1_788_264_001_u64..1_900_000_000).prop_map(|number| number.to_string()),
        1 => "[1-9][0-9]{0,34}(\\.[0-9]{0,12})?",
        2 => "[ -~]{0,40}".prop_filter("may say zero", |text| !text.contains('0')),
        1 => "[a-zA-Z\";,=()?:*]{0,60}",
    ];
    value.prop_filter("is past", |text| !is_past(text))
}

/// A value that may say zero too, or an instant of the past.
fn any_value() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => value(),
        1 => select(vec!["0", "0.0", "00", "Sat, 01 Jan 1994 00:00:00 GMT", "1788263000", "0s", "0/0"]).prop_map(str::to_owned),
        1 => "\\PC{0,60}",
    ]
}

fn headers<V: Strategy<Value = String>>(
    value: fn() -> V,
) -> impl Strategy<Value = Vec<(String, String)>> {
    vec((select(&NAMES[..]).prop_map(str::to_owned), value()), 0..8)
}

fn body() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => select(&BODIES[..]).prop_map(str::to_owned),
        1 => "[\\[\\]{}\",:\\\\a-z0-9.eu-]{0,120}",
        // Cut anywhere, as a body is.
        2 => (select(&BODIES[..]), any::<prop::sample::Index>()).prop_map(|(body, at)| {
            let ends: Vec<usize> = body.char_indices().map(|(at, _)| at).collect();
            if ends.is_empty() { String::new() } else { body[..ends[at.index(ends.len())]].to_owned() }
        }),
    ]
}

fn status() -> impl Strategy<Value = u16> {
    prop_oneof![
        4 => select(vec![200_u16, 304, 400, 403, 418, 425, 429, 503, 529]),
        1 => any::<u16>(),
    ]
}

fn dialect() -> impl Strategy<Value = AnyDialect> {
    let all: Vec<Dialect> = Dialect::names().filter_map(Dialect::named).collect();
    prop_oneof![
        2 => Just(Dialect::auto().into()),
        3 => select(all).prop_map(AnyDialect::from),
        1 => own().prop_map(AnyDialect::from),
    ]
}

/// An app's own dialect, over the same headers.
fn own() -> impl Strategy<Value = OwnDialect> {
    let name = || prop::option::of(select(&NAMES[..]).prop_map(str::to_owned));
    let timed = || {
        let named = (select(&NAMES[..]), select(&Kind::ALL[..]));
        prop::option::of(named.prop_map(|(header, kind)| Timed {
            header: header.to_owned(),
            kind,
        }))
    };
    let numbers = (name(), name(), name(), name(), name());
    (numbers, (timed(), timed(), timed())).prop_map(|(numbers, times)| {
        let (limit, remaining, used, cost, scope) = numbers;
        let (reset, retry_after, window) = times;
        OwnDialect {
            limit,
            remaining,
            used,
            reset,
            retry_after,
            cost,
            window: window.map(Window::Told),
            scope,
        }
    })
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn what_a_server_sends_is_read_within_bounds(
        status in status(), headers in headers(any_value), body in body(), dialect in dialect(), now in any::<u64>(),
    ) {
        let response = Response { status, headers: &headers, text: Some(&body), method: "POST", url: "https://a.test/graphql", ..Response::default() };
        for now in [NOW, Wall::from_millis(now)] {
            let reading = read_all(&response, dialect.clone(), now);
            let answer = read(&response, dialect.clone(), Sent::First, now);

            let waits = reading.found.iter().map(|found| found.budget.reset_in_ms);
            for wait in waits.chain([reading.retry_after_ms, reading.first.reset_in_ms]).flatten() {
                prop_assert!(wait <= MAX_WAIT_MS);
                prop_assert!(wait < MAX_WAIT_MS || reading.is_cut);
            }
            prop_assert!(answer.signals.budgets.len() <= MAX_BUDGETS);
            prop_assert_eq!(answer.signals.is_rate_limited, reading.is_rate_limited);
        }
    }

    #[test]
    fn a_wait_of_nothing_is_only_what_was_said(
        status in status(), headers in headers(value), body in body(), dialect in dialect(),
    ) {
        let response = Response { status, headers: &headers, text: Some(&body), method: "GET", url: "https://a.test/", ..Response::default() };
        let reading = read_all(&response, dialect, NOW);

        prop_assert_ne!(reading.retry_after_ms, Some(0));
    }
}

#[test]
fn a_megabyte_of_anything_takes_no_time() {
    let longs = [
        "9".repeat(1_000_000),
        "\"a\";r=1, ".repeat(100_000),
        "1, ".repeat(300_000),
        "[".repeat(1_000_000),
        "ü".repeat(500_000),
    ];
    for long in &longs {
        let headers: Vec<(String, String)> = NAMES
            .iter()
            .map(|name| ((*name).to_owned(), long.clone()))
            .collect();
        let response = Response {
            status: 429,
            headers: &headers,
            text: Some(long),
            ..Response::default()
        };
        let started = std::time::Instant::now();
        for dialect in Dialect::names().filter_map(Dialect::named) {
            let wait = read_all(&response, dialect, NOW).retry_after_ms;
            // Airtable's refusals last 30 s, whatever they say.
            assert_eq!(wait, (dialect.name() == "airtable").then_some(30_000));
        }
        assert!(
            started.elapsed() < Duration::from_secs(5),
            "{:?}",
            started.elapsed()
        );
    }
}
