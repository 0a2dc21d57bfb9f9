//! Zendesk: the account's limit under a name without a suffix, and budgets of endpoints as `total=100; remaining=61`.
//!
//! Sources: developer.zendesk.com, rate limits, and best practices for avoiding rate limiting.

use paceline_core::signals::BudgetSignal;

use super::{Dialect, Facts, generic};
use crate::number::{millis, units, units_left};
use crate::reading::Reading;
use crate::view::{Reset, View, suffix};

pub(super) const DIALECT: Dialect = Dialect {
    name: "zendesk",
    reset: Reset::Seconds,
    window_ms: Some(60_000),
    knows: |view| view.has_prefix(ENDPOINT) || view.has("x-rate-limit"),
    read,
    ..Dialect::PLAIN
};

const ENDPOINT: &str = "zendesk-ratelimit-";

fn read(view: &View<'_>, facts: &Facts, reading: &mut Reading) {
    let endpoints = view
        .headers
        .iter()
        .filter_map(|(name, _)| suffix(name, ENDPOINT));
    let endpoints: Vec<&str> = endpoints.take(8).collect();
    if let Some(mut budget) = generic::usual(view, facts) {
        // Where the reset is told, the window is not certain to be the minute.
        budget.window_ms = budget.window_ms.filter(|_| budget.reset_in_ms.is_none());
        if !endpoints.is_empty() {
            budget.scope = Some("account".to_owned());
        }
        reading.push(budget);
    }
    for name in endpoints {
        let budget = view.parsed(ENDPOINT, name, endpoint);
        let budget = budget.map(|budget| BudgetSignal {
            scope: Some(generic::short(name).to_ascii_lowercase()),
            reset_in_ms: budget.reset_in_ms.map(|wait| view.bounded(wait)),
            ..budget
        });
        reading.push(budget.unwrap_or_default());
    }
}

fn endpoint(text: &str) -> Option<BudgetSignal> {
    let mut budget = BudgetSignal::default();
    for part in text.split(';') {
        let (name, value) = part.split_once('=')?;
        match name.trim() {
            "total" => budget.limit = units(value),
            "remaining" => budget.remaining = units_left(value),
            "resets" => budget.reset_in_ms = millis(value, 1_000),
            _ => {}
        }
    }
    Some(budget)
}
