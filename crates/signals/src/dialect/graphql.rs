//! GraphQL servers at large: a refusal under 200 or 400 with a code in `extensions`.
//!
//! Sources: Apollo and graphql-rate-limit error codes; Linear, Shopify and monday.com, which use the same place.

use super::{BodyNeed, Dialect, Facts, generic};
use crate::json::Value;
use crate::reading::Reading;
use crate::view::View;

pub(super) const DIALECT: Dialect = Dialect {
    name: "graphql",
    body: BodyNeed::GraphQl,
    knows: |view| refusal(view).is_some(),
    read,
    ..Dialect::PLAIN
};

const CODES: [&str; 7] = [
    "RATELIMITED",
    "RATE_LIMITED",
    "RATE_LIMIT_EXCEEDED",
    "THROTTLED",
    "TOO_MANY_REQUESTS",
    "COMPLEXITY_BUDGET_EXHAUSTED",
    "MINUTE_LIMIT_EXCEEDED",
];

fn read(view: &View<'_>, facts: &Facts, reading: &mut Reading) {
    generic::read(view, facts, reading);
    if refusal(view).is_some() {
        reading.refuse();
    }
}

/// Returns the `extensions` of the error that is a refusal.
pub(super) fn refusal<'v, 'a>(view: &'v View<'a>) -> Option<&'v Value<'a>> {
    let errors = view.body.get("errors").items().iter();
    let mut extensions = errors.map(|error| error.get("extensions"));
    extensions.find(|extensions| code(extensions).is_some_and(|code| CODES.contains(&code)))
}

/// The code of an error.
pub(super) fn code<'v>(extensions: &'v Value<'_>) -> Option<&'v str> {
    extensions.get("code").text()
}

/// Reads what a query has cost.
pub(super) fn cost(view: &View<'_>, value: &Value<'_>) -> Option<u32> {
    u32::try_from(view.body_units(value)?).ok()
}
