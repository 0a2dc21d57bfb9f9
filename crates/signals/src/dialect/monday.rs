//! monday.com: errors under 200 with all numbers in `extensions`, a complexity budget of a minute.
//!
//! Source: developer.monday.com, rate limits and the changelogs of versions 2025-01 and 2025-07.

use paceline_core::signals::BudgetSignal;

use super::{BodyNeed, Dialect, Facts, generic, graphql};
use crate::json::Value;
use crate::reading::Reading;
use crate::view::View;

pub(super) const DIALECT: Dialect = Dialect {
    name: "monday",
    body: BodyNeed::All,
    knows: |view| refusal(view).is_some_and(|found| found.get("retry_in_seconds").is_some()),
    read,
    ..Dialect::PLAIN
};

const COMPLEXITY: &str = "COMPLEXITY_BUDGET_EXHAUSTED";
const CODES: [&str; 6] = [
    COMPLEXITY,
    "COMPLEXITY_QUERY_BUDGET_EXHAUSTED",
    "DAILY_LIMIT_EXCEEDED",
    "MINUTE_LIMIT_EXCEEDED",
    "CONCURRENCY_LIMIT_EXCEEDED",
    "IP_RATE_LIMIT_EXCEEDED",
];

fn read(view: &View<'_>, _: &Facts, reading: &mut Reading) {
    let Some(extensions) = refusal(view) else {
        return;
    };
    let code = graphql::code(extensions).unwrap_or_default();
    let is_complexity = code == COMPLEXITY;
    let scope = if is_complexity { "complexity" } else { code };
    reading.refuse_by(&generic::short(scope));
    if !view.has("retry-after") {
        reading.wait(view.body_wait(extensions.get("retry_in_seconds"), 1_000));
    }
    reading.cost = graphql::cost(view, extensions.get("complexity"));
    let limit = view.body_units(extensions.get("complexity_budget_limit"));
    reading.push(BudgetSignal {
        scope: Some(generic::short(scope)),
        window_ms: limit.filter(|_| is_complexity).map(|_| 60_000),
        limit,
        remaining: view.body_units(extensions.get("complexity_budget_left")),
        reset_in_ms: None,
    });
}

fn refusal<'v, 'a>(view: &'v View<'a>) -> Option<&'v Value<'a>> {
    let errors = view.body.get("errors").items().iter();
    let mut extensions = errors.map(|error| error.get("extensions"));
    extensions.find(|found| graphql::code(found).is_some_and(|code| CODES.contains(&code)))
}
