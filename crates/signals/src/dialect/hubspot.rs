//! HubSpot: a budget of ten seconds and one of a day in headers, and in a refusal the name of its policy.
//!
//! The `Secondly` pair is no longer enforced and is not read. A day ends at midnight in a zone that is not told.
//! Sources: developers.hubspot.com, API usage guidelines; HubSpot/hubspot-api-nodejs, RetryDecorator.

use paceline_core::signals::BudgetSignal;

use super::{Dialect, Facts, generic};
use crate::reading::{Found, Reading};
use crate::view::View;

pub(super) const DIALECT: Dialect = Dialect {
    name: "hubspot",
    knows: |view| {
        view.has_prefix("x-hubspot-ratelimit-")
            || (view.body.get("errorType").is("RATE_LIMIT")
                && view.body.get("policyName").is_some())
    },
    read,
    ..Dialect::PLAIN
};

const PREFIX: &str = "x-hubspot-ratelimit-";
const DAY_MS: u64 = 86_400_000;

fn read(view: &View<'_>, _: &Facts, reading: &mut Reading) {
    let number = |name: &str| {
        view.has_named(PREFIX, name)
            .then(|| view.units_left(PREFIX, name))?
    };
    reading.push(BudgetSignal {
        scope: Some("interval".to_owned()),
        limit: number("max"),
        remaining: number("remaining"),
        reset_in_ms: None,
        window_ms: number("interval-milliseconds"),
    });
    reading.push(BudgetSignal {
        scope: Some("daily".to_owned()),
        limit: number("daily"),
        remaining: number("daily-remaining"),
        reset_in_ms: None,
        window_ms: Some(DAY_MS),
    });
    let Some(policy) = view
        .body
        .get("policyName")
        .text()
        .filter(|_| view.status == 429)
    else {
        return;
    };
    let window_ms = match policy {
        "DAILY" => Some(DAY_MS),
        "TEN_SECONDLY_ROLLING" => Some(10_000),
        "SECONDLY" => Some(1_000),
        _ => None,
    };
    reading.refuse_by(&generic::short(policy));
    let scope = Some(generic::short(policy));
    let budget = BudgetSignal {
        scope,
        window_ms,
        ..BudgetSignal::default()
    };
    reading.add(Found {
        budget,
        ..Found::default()
    });
    if let Some(window_ms) = window_ms.filter(|window| *window < DAY_MS) {
        reading.penalty(window_ms);
    }
}
