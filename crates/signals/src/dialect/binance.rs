//! Binance: the weight used, with its window in the header's name; 429, and 418 for who goes on.
//!
//! The limit is not told here but by `exchangeInfo`. Source: binance/binance-spot-api-docs, rest-api.md.

use paceline_core::signals::BudgetSignal;

use super::{Dialect, Facts};
use crate::reading::{Found, Reading};
use crate::view::{View, suffix};

pub(super) const DIALECT: Dialect = Dialect {
    name: "binance",
    knows: |view| view.has_prefix("x-mbx-"),
    read,
    ..Dialect::PLAIN
};

fn read(view: &View<'_>, _: &Facts, reading: &mut Reading) {
    for (name, _) in view.headers {
        let Some(scope) = suffix(name, "x-mbx-").map(str::to_ascii_lowercase) else {
            continue;
        };
        let window = ["used-weight-", "order-count-"];
        let window = window.iter().find_map(|kind| scope.strip_prefix(kind));
        let Some(window_ms) = window.and_then(crate::number::duration) else {
            continue;
        };
        let used = view.units("x-mbx-", &scope);
        let budget = BudgetSignal {
            window_ms: Some(window_ms),
            scope: Some(super::generic::short(&scope)),
            ..BudgetSignal::default()
        };
        reading.add(Found {
            budget,
            used,
            ..Found::default()
        });
    }
    if view.status == 418 {
        reading.refuse();
    }
}
