//! Trello: a budget for the token and one for the key, with their windows, without a reset.
//!
//! Source: developer.atlassian.com, Trello API rate limits.

use paceline_core::signals::BudgetSignal;

use super::{Dialect, Facts};
use crate::reading::Reading;
use crate::view::View;

pub(super) const DIALECT: Dialect = Dialect {
    name: "trello",
    knows: |view| view.has_prefix("x-rate-limit-api-"),
    read,
    ..Dialect::PLAIN
};

const BUDGETS: [(&str, &str); 2] = [
    ("api-token", "x-rate-limit-api-token-"),
    ("api-key", "x-rate-limit-api-key-"),
];

fn read(view: &View<'_>, _: &Facts, reading: &mut Reading) {
    for (scope, prefix) in BUDGETS {
        let number = |name: &str| {
            view.has_named(prefix, name)
                .then(|| view.units_left(prefix, name))?
        };
        reading.push(BudgetSignal {
            scope: Some(scope.to_owned()),
            limit: number("max"),
            remaining: number("remaining"),
            reset_in_ms: None,
            window_ms: number("interval-ms"),
        });
    }
}
