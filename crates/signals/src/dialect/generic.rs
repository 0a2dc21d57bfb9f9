//! The usual headers: a limit, what is left and a reset, under one of three prefixes.
//!
//! Sources: draft-ietf-httpapi-ratelimit-headers-06 (`RateLimit-*`), and what servers write under `X-RateLimit-*` and
//! `X-Rate-Limit-*`: Envoy's policies behind the limit (`100, 100;w=60`), Docker Hub's parameters (`100;w=21600`),
//! Reddit's used instead of a limit, Discord's `Reset-After`, Zendesk's limit without a suffix, GitLab's names and
//! `ResetTime`, Jira's reason.

use paceline_core::signals::BudgetSignal;

use super::{Facts, ietf};
use crate::reading::Reading;
use crate::sf::{self, Bare};
use crate::view::{Reset, View};

const PREFIXES: [&str; 3] = ["ratelimit-", "x-ratelimit-", "x-rate-limit-"];
const PARTS: [&str; 4] = ["limit", "remaining", "reset", "reset-after"];
/// Where a server says which of its limits it speaks of.
const SCOPES: [&str; 4] = [
    "x-ratelimit-resource",
    "x-ratelimit-bucket",
    "ratelimit-name",
    "ratelimit-reason",
];

pub(super) fn read(view: &View<'_>, facts: &Facts, reading: &mut Reading) {
    if let Some(budget) = usual(view, facts) {
        reading.push(budget);
    }
    ietf::problem(view, reading);
}

/// Reads the usual headers alone. An answer from a cache tells of another request's budget.
pub(super) fn usual(view: &View<'_>, facts: &Facts) -> Option<BudgetSignal> {
    if view.has("age") && view.units("", "age") != Some(0) {
        return None;
    }
    let has = |prefix: &&&str| PARTS.iter().any(|part| view.has_named(prefix, part));
    let prefix = PREFIXES.iter().find(has)?;
    let used = used(view, prefix);
    let (limit, own_window_ms) = limit(view, prefix);
    let mut remaining = if view.has_named(prefix, "remaining") {
        view.units_left(prefix, "remaining")
    } else {
        None
    };
    let limit = limit.or_else(|| used?.checked_add(remaining?));
    remaining = remaining.or_else(|| {
        limit
            .zip(used)
            .map(|(limit, used)| limit.saturating_sub(used))
    });
    Some(BudgetSignal {
        scope: scope(view),
        limit,
        remaining,
        reset_in_ms: reset(view, prefix, facts.reset),
        window_ms: own_window_ms
            .or_else(|| policy_window(view, limit?))
            .or(facts.window_ms),
    })
}

fn used(view: &View<'_>, prefix: &str) -> Option<u64> {
    view.has_named(prefix, "used")
        .then(|| view.units(prefix, "used"))?
}

/// Reads a limit, and the window that may stand beside it.
fn limit(view: &View<'_>, prefix: &str) -> (Option<u64>, Option<u64>) {
    if !view.has_named(prefix, "limit") {
        // Zendesk.
        let plain = prefix.trim_end_matches('-');
        let is_there = plain != "ratelimit" && view.has(plain);
        return (is_there.then(|| view.units("", plain)).flatten(), None);
    }
    let limit = view.units(prefix, "limit");
    let window_s = view.parsed(prefix, "limit", |text| {
        if !text.contains(';') {
            return Some(None);
        }
        Some(window_of(text, limit?))
    });
    (
        limit,
        window_s.flatten().map(|window_s| millis(view, window_s)),
    )
}

/// The window of the policy whose quota is the limit.
fn policy_window(view: &View<'_>, limit: u64) -> Option<u64> {
    let policies = view.header("ratelimit-policy")?;
    window_of(policies, limit).map(|window_s| millis(view, window_s))
}

fn window_of(policies: &str, limit: u64) -> Option<u64> {
    let policies = sf::list(policies)?;
    let same = policies
        .iter()
        .filter(|policy| policy.value == Some(Bare::Whole(limit)));
    same.filter_map(|policy| policy.whole("w")).next()
}

fn millis(view: &View<'_>, seconds: u64) -> u64 {
    view.bounded(seconds.saturating_mul(1_000))
}

fn reset(view: &View<'_>, prefix: &str, reset: Reset) -> Option<u64> {
    if view.has_named(prefix, "reset-after") {
        let after = view.wait(prefix, "reset-after", 1_000);
        if after.is_some() {
            return after;
        }
    }
    if view.has_named(prefix, "reset") {
        return view.reset(prefix, "reset", reset);
    }
    view.has("ratelimit-resettime")
        .then(|| view.reset("", "ratelimit-resettime", Reset::Date))?
}

fn scope(view: &View<'_>) -> Option<String> {
    let mut named = SCOPES.iter().filter_map(|name| view.header(name));
    named.next().map(short)
}

/// A scope is a name, not a text.
pub(crate) fn short(scope: &str) -> String {
    crate::view::beginning(scope, 100).to_owned()
}
