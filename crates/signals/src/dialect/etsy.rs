//! Etsy: a budget of a second and one of a day, under names of its own.
//!
//! Source: developers.etsy.com, rate limits.

use paceline_core::signals::BudgetSignal;

use super::{Dialect, Facts};
use crate::reading::Reading;
use crate::view::View;

pub(super) const DIALECT: Dialect = Dialect {
    name: "etsy",
    knows: |view| view.has("x-limit-per-second") || view.has("x-limit-per-day"),
    read,
    ..Dialect::PLAIN
};

const BUDGETS: [(&str, &str, &str, u64); 2] = [
    (
        "second",
        "x-limit-per-second",
        "x-remaining-this-second",
        1_000,
    ),
    ("day", "x-limit-per-day", "x-remaining-today", 86_400_000),
];

fn read(view: &View<'_>, _: &Facts, reading: &mut Reading) {
    for (scope, limit, remaining, window_ms) in BUDGETS {
        let number = |name: &str| view.has(name).then(|| view.units_left("", name))?;
        reading.push(BudgetSignal {
            scope: Some(scope.to_owned()),
            limit: number(limit),
            remaining: number(remaining),
            reset_in_ms: None,
            window_ms: Some(window_ms),
        });
    }
}
