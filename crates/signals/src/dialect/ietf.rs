//! The fields of the IETF: `RateLimit` and `RateLimit-Policy`, and the problem types.
//!
//! Source: draft-ietf-httpapi-ratelimit-headers, revisions 00 to 06 (three fields), 07 (a dictionary) and 08 to 11 (a
//! list of named items, `application/problem+json` types). Reset is in seconds in all of them.

use paceline_core::signals::BudgetSignal;

use super::{Dialect, Facts, generic};
use crate::reading::Reading;
use crate::sf::{self, Bare, Member};
use crate::view::{Reset, View};

pub(super) const DIALECT: Dialect = Dialect {
    name: "ietf",
    reset: Reset::Seconds,
    knows: |view| view.has("ratelimit"),
    read,
    ..Dialect::PLAIN
};

const PROBLEMS: &str = "https://iana.org/assignments/http-problem-types#";

pub(super) fn read(view: &View<'_>, facts: &Facts, reading: &mut Reading) {
    if view.has("age") && view.units("", "age") != Some(0) {
        return problem(view, reading);
    }
    if !view.has("ratelimit") {
        return generic::read(view, facts, reading);
    }
    let policies = policies(view);
    let combined = view.header("ratelimit").and_then(combined);
    match combined {
        Some(budget) => reading.push(with_window(budget, &policies)),
        None => structured(view, &policies, reading),
    }
    problem(view, reading);
}

/// The policies; those of a field that is not valid are none.
fn policies(view: &View<'_>) -> Vec<Member> {
    let read = || view.parsed("", "ratelimit-policy", sf::list);
    let is_there = view.has("ratelimit-policy");
    is_there.then(read).flatten().unwrap_or_default()
}

/// Revision 07: `limit=100, remaining=50, reset=30`.
fn combined(text: &str) -> Option<BudgetSignal> {
    let members = sf::dictionary(text)?;
    let whole = |name: &str| {
        let member = members.iter().rev().find(|member| member.name == name)?;
        match member.value.as_ref()? {
            Bare::Whole(whole) => Some(*whole),
            Bare::Text(_) | Bare::Other => None,
        }
    };
    let budget = BudgetSignal {
        limit: whole("limit"),
        remaining: whole("remaining"),
        reset_in_ms: whole("reset").map(|seconds| seconds.saturating_mul(1_000)),
        ..BudgetSignal::default()
    };
    (budget != BudgetSignal::default()).then_some(budget)
}

fn with_window(mut budget: BudgetSignal, policies: &[Member]) -> BudgetSignal {
    let limit = budget.limit.map(Bare::Whole);
    let mut same = policies.iter().filter(|policy| policy.value == limit);
    budget.window_ms = same
        .find_map(|policy| policy.whole("w"))
        .map(|s| s.saturating_mul(1_000));
    budget
}

/// Revision 08 and later: `"burst";r=0;t=4, "daily";r=4100;t=41200`.
fn structured(view: &View<'_>, policies: &[Member], reading: &mut Reading) {
    let Some(items) = view.parsed("", "ratelimit", sf::list) else {
        return;
    };
    for item in &items {
        let Some(Bare::Text(name)) = &item.value else {
            continue;
        };
        let policy = policies.iter().find(|policy| policy.value == item.value);
        let seconds = |seconds: u64| view.bounded(seconds.saturating_mul(1_000));
        let quota = policy.and_then(|policy| policy.whole("q"));
        let scope = Some(generic::short(name));
        let unit = policy.and_then(|policy| policy.text("qu"));
        if unit == Some("concurrent-requests") {
            reading.push_concurrency(scope, quota, item.whole("r"));
            continue;
        }
        reading.push(BudgetSignal {
            scope,
            limit: quota,
            remaining: item.whole("r"),
            reset_in_ms: item.whole("t").map(seconds),
            window_ms: policy.and_then(|policy| policy.whole("w")).map(seconds),
        });
    }
}

/// The problem types that say that a limit refused, under whatever status.
pub(super) fn problem(view: &View<'_>, reading: &mut Reading) {
    let Some(kind) = view
        .body
        .get("type")
        .text()
        .and_then(|kind| kind.strip_prefix(PROBLEMS))
    else {
        return;
    };
    if ![
        "quota-exceeded",
        "temporary-reduced-capacity",
        "abnormal-usage-detected",
    ]
    .contains(&kind)
    {
        return;
    }
    match view
        .body
        .get("violated-policies")
        .items()
        .first()
        .and_then(|policy| policy.text())
    {
        Some(policy) => reading.refuse_by(&generic::short(policy)),
        None => reading.refuse(),
    }
}
