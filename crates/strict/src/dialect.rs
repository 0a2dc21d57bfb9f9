//! Headers and refusals as each API really writes them.
//!
//! Every dialect refuses with 429 and problem details; what its API says in a body of its own is added as members.

use std::time::{Duration, UNIX_EPOCH};

use axum::body::Bytes;
use axum::http::StatusCode;
use serde_json::{Map, Value, json};

use crate::judge::CONCURRENCY;
use crate::limiter::Refusal;
use crate::problem::Problem;
use crate::rule::View;
use crate::scenario::{Dialect, RetryAfter};

/// Header fields in the order in which they are written.
pub(crate) type Fields = Vec<(&'static str, String)>;

/// All that a dialect may tell.
#[derive(Debug)]
pub(crate) struct Moment<'a> {
    /// The rules after the request.
    pub(crate) views: &'a [View],
    /// Places at a time, and those that are free.
    pub(crate) places: Option<(u64, u64)>,
    /// The server's wall clock.
    pub(crate) clock_us: u64,
    pub(crate) refusal: Option<&'a Refusal>,
}

/// The budget headers of an answer.
pub(crate) fn budget(dialect: Dialect, moment: &Moment<'_>) -> Fields {
    match dialect {
        Dialect::Ietf => ietf(moment),
        Dialect::IetfTriple => {
            tightest(moment.views).map_or_else(Vec::new, |view| triple(view, moment.views))
        }
        Dialect::Github => {
            tightest(moment.views).map_or_else(Vec::new, |view| github(view, moment.clock_us))
        }
        Dialect::Hubspot => hubspot(moment),
        Dialect::Shopify => tightest(moment.views).map_or_else(Vec::new, shopify),
        Dialect::Stripe => stripe(moment.refusal),
        Dialect::Body | Dialect::None => Vec::new(),
    }
}

/// The `Retry-After` of a refusal.
pub(crate) fn retry_after(
    form: RetryAfter,
    dialect: Dialect,
    moment: &Moment<'_>,
) -> Option<String> {
    let wait_us = moment.refusal?.wait_us;
    match form {
        RetryAfter::Seconds if dialect == Dialect::Shopify => {
            Some(format!("{}.0", seconds(wait_us)))
        }
        RetryAfter::Seconds => Some(seconds(wait_us).to_string()),
        RetryAfter::Date => Some(http_date(seconds(moment.clock_us + wait_us))),
        RetryAfter::None => None,
        RetryAfter::Zero => Some("0".to_owned()),
        RetryAfter::Garbage => Some("in a little while".to_owned()),
    }
}

/// The body of a refusal.
pub(crate) fn refusal(dialect: Dialect, refusal: &Refusal) -> Problem {
    let detail = format!("{} admits no more for now", refusal.rule);
    let problem = Problem::new(StatusCode::TOO_MANY_REQUESTS, "quota exceeded", &detail)
        .with(
            "type",
            json!("https://iana.org/assignments/http-problem-types#quota-exceeded"),
        )
        .with("violated-policies", json!([refusal.rule]));
    match dialect {
        Dialect::Github => problem
            .with("message", json!("API rate limit exceeded"))
            .with("documentation_url", json!("https://docs.github.com/rest/overview/rate-limits-for-the-rest-api")),
        Dialect::Hubspot => problem
            .with("message", json!("You have reached your limit."))
            .with("errorType", json!("RATE_LIMIT"))
            .with("policyName", json!(hubspot_policy(refusal))),
        Dialect::Shopify => problem.with("errors", json!("Exceeded the rate limit. Reduce request rates to resume.")),
        Dialect::Stripe => problem.with("error", json!({
            "type": "invalid_request_error", "code": "rate_limit", "message": "Request rate limit exceeded." })),
        Dialect::Body => problem.with("wait_ms", json!(refusal.wait_us.div_ceil(1_000))),
        Dialect::Ietf | Dialect::IetfTriple | Dialect::None => problem,
    }
}

/// The body of an answer that was served, with what is left where the dialect tells it there.
pub(crate) fn served(dialect: Dialect, views: &[View], body: Bytes) -> Bytes {
    let view = tightest(views).filter(|_| dialect == Dialect::Body);
    let object = serde_json::from_slice::<Map<String, Value>>(&body).ok();
    let Some((view, mut object)) = view.zip(object) else {
        return body;
    };
    let quota = json!({
        "limit": view.limit, "left": view.remaining,
        "opens_in_ms": view.reset_us.div_ceil(1_000), "window_ms": view.window_us.div_ceil(1_000),
    });
    object.insert("quota".to_owned(), quota);
    Bytes::from(Value::Object(object).to_string())
}

/// A date as `Date` and `Retry-After` write it.
pub(crate) fn http_date(epoch_s: u64) -> String {
    httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(epoch_s.min(253_402_300_799)))
}

/// Whole seconds, rounded up.
fn seconds(us: u64) -> u64 {
    us.div_ceil(1_000_000)
}

/// The rule of which the least is left.
fn tightest(views: &[View]) -> Option<&View> {
    views
        .iter()
        .min_by_key(|view| u128::from(view.remaining) * 1_000_000 / u128::from(view.limit))
}

fn ietf(moment: &Moment<'_>) -> Fields {
    let quota = |v: &View| format!("\"{}\";q={};w={}", v.name, v.limit, seconds(v.window_us));
    let left = |v: &View| format!("\"{}\";r={};t={}", v.name, v.remaining, seconds(v.reset_us));
    let mut policies: Vec<String> = moment.views.iter().map(quota).collect();
    let mut limits: Vec<String> = moment.views.iter().map(left).collect();
    if let Some((most, free)) = moment.places {
        policies.push(format!(
            "\"{CONCURRENCY}\";q={most};qu=\"concurrent-requests\""
        ));
        limits.push(format!("\"{CONCURRENCY}\";r={free}"));
    }
    if policies.is_empty() {
        return Vec::new();
    }
    vec![
        ("ratelimit-policy", policies.join(", ")),
        ("ratelimit", limits.join(", ")),
    ]
}

fn triple(view: &View, all: &[View]) -> Fields {
    let policy = |v: &View| format!("{};w={}", v.limit, seconds(v.window_us));
    vec![
        (
            "ratelimit-policy",
            all.iter().map(policy).collect::<Vec<_>>().join(", "),
        ),
        ("ratelimit-limit", view.limit.to_string()),
        ("ratelimit-remaining", view.remaining.to_string()),
        ("ratelimit-reset", seconds(view.reset_us).to_string()),
    ]
}

fn github(view: &View, clock_us: u64) -> Fields {
    vec![
        ("x-ratelimit-limit", view.limit.to_string()),
        ("x-ratelimit-remaining", view.remaining.to_string()),
        (
            "x-ratelimit-used",
            view.limit.saturating_sub(view.remaining).to_string(),
        ),
        (
            "x-ratelimit-reset",
            seconds(clock_us + view.reset_us).to_string(),
        ),
        ("x-ratelimit-resource", "core".to_owned()),
    ]
}

/// A refusal carries none; its body alone names the limit.
fn hubspot(moment: &Moment<'_>) -> Fields {
    const DAY_US: u64 = 86_400_000_000;
    if moment.refusal.is_some() {
        return Vec::new();
    }
    let mut fields = Fields::new();
    if let Some(day) = moment.views.iter().find(|view| view.window_us >= DAY_US) {
        fields.push(("x-hubspot-ratelimit-daily", day.limit.to_string()));
        fields.push((
            "x-hubspot-ratelimit-daily-remaining",
            day.remaining.to_string(),
        ));
    }
    if let Some(interval) = moment.views.iter().find(|view| view.window_us < DAY_US) {
        fields.push((
            "x-hubspot-ratelimit-interval-milliseconds",
            (interval.window_us / 1_000).to_string(),
        ));
        fields.push(("x-hubspot-ratelimit-max", interval.limit.to_string()));
        fields.push((
            "x-hubspot-ratelimit-remaining",
            interval.remaining.to_string(),
        ));
    }
    fields
}

fn hubspot_policy(refusal: &Refusal) -> &'static str {
    if refusal.wait_us > 60_000_000 {
        "DAILY"
    } else {
        "TEN_SECONDLY_ROLLING"
    }
}

fn shopify(view: &View) -> Fields {
    let used = view.limit.saturating_sub(view.remaining);
    vec![(
        "x-shopify-shop-api-call-limit",
        format!("{used}/{}", view.limit),
    )]
}

fn stripe(refusal: Option<&Refusal>) -> Fields {
    let Some(refusal) = refusal else {
        return Vec::new();
    };
    let reason = if refusal.rule == CONCURRENCY {
        "global-concurrency"
    } else {
        "global-rate"
    };
    vec![
        ("stripe-rate-limited-reason", reason.to_owned()),
        ("stripe-should-retry", "true".to_owned()),
    ]
}

#[cfg(test)]
#[path = "dialect/tests.rs"]
mod tests;
