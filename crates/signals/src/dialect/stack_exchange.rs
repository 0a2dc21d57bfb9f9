//! Stack Exchange: quota and a wait for the same method in the body of every answer; refusals as 400.
//!
//! Source: api.stackexchange.com, throttles.

use paceline_core::signals::BudgetSignal;

use super::{BodyNeed, Dialect, Facts};
use crate::reading::Reading;
use crate::view::View;

pub(super) const DIALECT: Dialect = Dialect {
    name: "stack-exchange",
    body: BodyNeed::All,
    window_ms: Some(86_400_000),
    knows: |view| {
        view.body.get("quota_max").is_some() || view.body.get("error_name").is("throttle_violation")
    },
    read,
    ..Dialect::PLAIN
};

fn read(view: &View<'_>, facts: &Facts, reading: &mut Reading) {
    reading.push(BudgetSignal {
        limit: view.body_units(view.body.get("quota_max")),
        remaining: view.body_units(view.body.get("quota_remaining")),
        window_ms: facts.window_ms,
        ..BudgetSignal::default()
    });
    reading.wait(view.body_wait(view.body.get("backoff"), 1_000));
    if view.body.get("error_name").is("throttle_violation") {
        reading.refuse();
    }
}
