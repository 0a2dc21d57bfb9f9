//! Crossref: a limit with its interval, and how many requests may be in flight.
//!
//! Source: Crossref REST API, as its headers are recorded in public repositories.

use paceline_core::signals::BudgetSignal;

use super::{Dialect, Facts, generic};
use crate::number::duration;
use crate::reading::Reading;
use crate::view::View;

pub(super) const DIALECT: Dialect = Dialect {
    name: "crossref",
    knows: |view| view.has("x-rate-limit-interval") || view.has("x-concurrency-limit"),
    read,
    ..Dialect::PLAIN
};

fn read(view: &View<'_>, _: &Facts, reading: &mut Reading) {
    if view.has("x-rate-limit-limit") {
        let budget = BudgetSignal {
            scope: Some("rate".to_owned()),
            limit: view.units("", "x-rate-limit-limit"),
            window_ms: view.parsed("", "x-rate-limit-interval", duration),
            ..BudgetSignal::default()
        };
        reading.headline(BudgetSignal {
            scope: view.header("x-api-pool").map(generic::short),
            ..budget.clone()
        });
        reading.push(budget);
    }
    if view.has("x-concurrency-limit") {
        let limit = view.units("", "x-concurrency-limit");
        reading.push_concurrency(Some("concurrency".to_owned()), limit, None);
    }
}
