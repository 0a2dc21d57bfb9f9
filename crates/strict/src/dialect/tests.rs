//! What each dialect writes, compared with what the real API does.

use super::*;

const NOON_US: u64 = 1_788_264_000_000_000;

fn view(name: &str, limit: u64, window_ms: u64, remaining: u64, reset_us: u64) -> View {
    View {
        name: name.to_owned(),
        limit,
        window_us: window_ms * 1_000,
        remaining,
        reset_us,
    }
}

fn told(dialect: Dialect, views: &[View], refusal: Option<&Refusal>) -> Vec<(String, String)> {
    let moment = Moment {
        views,
        places: None,
        clock_us: NOON_US,
        refusal,
    };
    budget(dialect, &moment)
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

fn field<'a>(fields: &'a [(String, String)], name: &str) -> Option<&'a str> {
    fields
        .iter()
        .find(|(known, _)| known == name)
        .map(|(_, value)| value.as_str())
}

fn refused(wait_us: u64) -> Refusal {
    Refusal {
        rule: "burst".to_owned(),
        wait_us,
    }
}

fn after(form: RetryAfter, dialect: Dialect, wait_us: u64) -> Option<String> {
    let refusal = refused(wait_us);
    let moment = Moment {
        views: &[],
        places: None,
        clock_us: NOON_US + 1,
        refusal: Some(&refusal),
    };
    retry_after(form, dialect, &moment)
}

#[test]
fn ietf_lists_every_policy_and_what_is_left_of_it() {
    let views = [
        view("burst", 120, 60_000, 0, 3_000_001),
        view("daily", 5_000, 86_400_000, 4_100, 41_200_000_000),
    ];

    let fields = told(Dialect::Ietf, &views, None);

    assert_eq!(
        field(&fields, "ratelimit"),
        Some(r#""burst";r=0;t=4, "daily";r=4100;t=41200"#)
    );
    assert_eq!(
        field(&fields, "ratelimit-policy"),
        Some(r#""burst";q=120;w=60, "daily";q=5000;w=86400"#)
    );
}

#[test]
fn ietf_tells_places_as_a_policy_without_a_window() {
    let moment = Moment {
        views: &[],
        places: Some((5, 2)),
        clock_us: NOON_US,
        refusal: None,
    };

    let fields = budget(Dialect::Ietf, &moment);

    assert_eq!(
        fields[0].1,
        r#""max-in-flight";q=5;qu="concurrent-requests""#
    );
    assert_eq!(fields[1].1, r#""max-in-flight";r=2"#);
}

#[test]
fn the_triple_describes_the_tightest_rule_in_delta_seconds() {
    let views = [
        view("a", 100, 60_000, 99, 1),
        view("b", 50, 1_000, 17, 400_000),
    ];

    let fields = told(Dialect::IetfTriple, &views, None);

    assert_eq!(field(&fields, "ratelimit-limit"), Some("50"));
    assert_eq!(field(&fields, "ratelimit-remaining"), Some("17"));
    assert_eq!(field(&fields, "ratelimit-reset"), Some("1"));
    assert_eq!(field(&fields, "ratelimit-policy"), Some("100;w=60, 50;w=1"));
}

#[test]
fn github_resets_at_an_epoch_second() {
    let fields = told(
        Dialect::Github,
        &[view("core", 5_000, 3_600_000, 4_999, 1_800_000_000)],
        None,
    );

    assert_eq!(field(&fields, "x-ratelimit-used"), Some("1"));
    assert_eq!(field(&fields, "x-ratelimit-reset"), Some("1788265800"));
    assert_eq!(field(&fields, "x-ratelimit-resource"), Some("core"));
}

#[test]
fn hubspot_tells_interval_and_day_but_nothing_on_a_refusal() {
    let views = [
        view("a", 100, 10_000, 92, 1),
        view("b", 250_000, 86_400_000, 249_000, 1),
    ];

    let fields = told(Dialect::Hubspot, &views, None);

    assert_eq!(
        field(&fields, "x-hubspot-ratelimit-interval-milliseconds"),
        Some("10000")
    );
    assert_eq!(field(&fields, "x-hubspot-ratelimit-max"), Some("100"));
    assert_eq!(field(&fields, "x-hubspot-ratelimit-remaining"), Some("92"));
    assert_eq!(
        field(&fields, "x-hubspot-ratelimit-daily-remaining"),
        Some("249000")
    );
    assert!(told(Dialect::Hubspot, &views, Some(&refused(1))).is_empty());
    assert!(
        refusal(Dialect::Hubspot, &refused(1))
            .body()
            .contains("TEN_SECONDLY_ROLLING")
    );
}

#[test]
fn shopify_writes_used_of_bucket() {
    let fields = told(Dialect::Shopify, &[view("a", 40, 20_000, 13, 1)], None);

    assert_eq!(
        field(&fields, "x-shopify-shop-api-call-limit"),
        Some("27/40")
    );
}

#[test]
fn stripe_gives_a_reason_on_refusals_and_nothing_else() {
    assert!(told(Dialect::Stripe, &[view("a", 40, 20_000, 13, 1)], None).is_empty());

    let fields = told(Dialect::Stripe, &[], Some(&refused(1)));

    assert_eq!(field(&fields, "stripe-should-retry"), Some("true"));
    assert_eq!(
        field(&fields, "stripe-rate-limited-reason"),
        Some("global-rate")
    );
}

#[test]
fn every_form_of_retry_after_is_as_its_name_says() {
    assert_eq!(
        after(RetryAfter::Seconds, Dialect::Ietf, 1).as_deref(),
        Some("1")
    );
    assert_eq!(
        after(RetryAfter::Seconds, Dialect::Ietf, 2_000_000).as_deref(),
        Some("2")
    );
    assert_eq!(
        after(RetryAfter::Seconds, Dialect::Ietf, 2_000_001).as_deref(),
        Some("3")
    );
    assert_eq!(
        after(RetryAfter::Seconds, Dialect::Shopify, 2_000_000).as_deref(),
        Some("2.0")
    );
    let date = after(RetryAfter::Date, Dialect::Ietf, 90_000_000);
    assert_eq!(date.as_deref(), Some("Tue, 01 Sep 2026 12:01:31 GMT"));
    assert_eq!(
        after(RetryAfter::Zero, Dialect::Ietf, 5).as_deref(),
        Some("0")
    );
    assert_eq!(after(RetryAfter::None, Dialect::Ietf, 5), None);
    let garbage = after(RetryAfter::Garbage, Dialect::Ietf, 5).unwrap_or_default();
    assert!(
        garbage.parse::<f64>().is_err() && httpdate::parse_http_date(&garbage).is_err(),
        "{garbage}"
    );
}

#[test]
fn a_refusal_names_the_violated_policy() {
    let body = refusal(Dialect::Ietf, &refused(1)).body();

    let body: serde_json::Value = serde_json::from_str(&body).expect("JSON");
    assert_eq!(body["status"], 429);
    assert_eq!(body["violated-policies"], json!(["burst"]));
    assert_eq!(
        body["type"],
        "https://iana.org/assignments/http-problem-types#quota-exceeded"
    );
}

#[test]
fn the_body_alone_tells_what_is_left_and_how_long_to_wait() {
    let views = [view("burst", 10, 2_000, 3, 1_400_001)];
    let body = Bytes::from_static(b"{\"ok\":true}");

    let served_in = |dialect| served(dialect, &views, body.clone());
    let answer: Value = serde_json::from_slice(&served_in(Dialect::Body)).expect("JSON");
    let problem = refusal(Dialect::Body, &refused(1_400_001)).body();
    let problem: Value = serde_json::from_str(&problem).expect("JSON");

    let quota = json!({ "limit": 10, "left": 3, "opens_in_ms": 1_401, "window_ms": 2_000 });
    assert_eq!(answer, json!({ "ok": true, "quota": quota }));
    assert_eq!(told(Dialect::Body, &views, Some(&refused(1))), []);
    assert_eq!(problem["wait_ms"], json!(1_401));
    assert_eq!(served_in(Dialect::None), body);
}
