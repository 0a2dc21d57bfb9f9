//! GitHub: the reset an instant, refusals as 403, secondary limits that show no budget.
//!
//! Sources: github/docs, rest/using-the-rest-api/rate-limits-for-the-rest-api.md and the page for GraphQL;
//! octokit/plugin-throttling.js; google/go-github.

use super::{BodyNeed, Dialect, Facts, generic, graphql};
use crate::reading::Reading;
use crate::view::{Reset, View};

pub(super) const DIALECT: Dialect = Dialect {
    name: "github",
    body: BodyNeed::GraphQl,
    reset: Reset::EpochSeconds,
    window_ms: Some(3_600_000),
    knows: |view| {
        view.has("x-ratelimit-resource") || view.has("x-github-request-id") || is_secondary(view)
    },
    read,
};

/// How long a secondary limit lasts at least that says nothing itself.
const SECONDARY_MS: u64 = 60_000;

fn read(view: &View<'_>, facts: &Facts, reading: &mut Reading) {
    let mut is_empty = false;
    if let Some(mut budget) = generic::usual(view, facts) {
        is_empty = budget.remaining == Some(0);
        let is_search = budget
            .scope
            .as_deref()
            .is_some_and(|scope| scope.ends_with("search"));
        if is_search {
            budget.window_ms = Some(60_000);
        }
        reading.push(budget);
    }
    let is_refusal = matches!(view.status, 403 | 429);
    if is_refusal && (is_secondary(view) || (reading.retry_after_ms.is_some() && !is_empty)) {
        reading.refuse_by("secondary");
        reading.penalty(SECONDARY_MS);
    } else if is_refusal && is_empty {
        reading.refuse();
    }
    let errors = view.body.get("errors").items();
    if errors
        .iter()
        .any(|error| error.get("type").is("RATE_LIMITED"))
    {
        reading.refuse();
    }
    reading.cost = graphql::cost(view, view.body.at(&["data", "rateLimit", "cost"]));
}

/// The secondary limits have no code of their own: the message or its link tells.
fn is_secondary(view: &View<'_>) -> bool {
    let says = |member: &str, part: &str| {
        view.body
            .get(member)
            .text()
            .is_some_and(|text| text.contains(part))
    };
    view.status >= 400
        && (says("message", "secondary rate limit")
            || says("documentation_url", "#about-secondary-rate-limits"))
}
