//! Linear: several budgets of an hour with resets in milliseconds since 1970, a cost in `X-Complexity`, refusals as 400.
//!
//! Source: linear.app/developers/rate-limiting.

use super::{BodyNeed, Dialect, Facts, graphql, scoped};
use crate::reading::Reading;
use crate::view::{Reset, View};

pub(super) const DIALECT: Dialect = Dialect {
    name: "linear",
    body: BodyNeed::GraphQl,
    reset: Reset::EpochMillis,
    window_ms: Some(3_600_000),
    knows: |view| {
        view.has("x-complexity")
            || view.has("x-ratelimit-requests-limit")
            || view.has("x-ratelimit-complexity-limit")
    },
    read,
};

const FAMILY: scoped::Family = scoped::Family {
    prefix: "x-ratelimit-",
    known: &["requests", "complexity"],
};

fn read(view: &View<'_>, facts: &Facts, reading: &mut Reading) {
    scoped::before(view, FAMILY, facts, reading);
    if view.has("x-complexity") {
        let cost = view.units("", "x-complexity");
        reading.cost = cost.and_then(|cost| u32::try_from(cost).ok());
    }
    if graphql::refusal(view).is_some() {
        reading.refuse();
    }
}
