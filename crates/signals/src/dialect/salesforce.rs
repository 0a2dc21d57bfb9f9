//! Salesforce: used/limit of a rolling day in `Sforce-Limit-Info`, refusals as 403 with a list of errors.
//!
//! Sources: Salesforce REST API, Limit Info header and status codes; simple-salesforce, `parse_api_usage`.

use paceline_core::signals::BudgetSignal;

use super::{Dialect, Facts, generic};
use crate::number::units;
use crate::reading::Reading;
use crate::view::View;

pub(super) const DIALECT: Dialect = Dialect {
    name: "salesforce",
    knows: |view| view.has(INFO) || is_refusal(view),
    read,
    ..Dialect::PLAIN
};

const INFO: &str = "sforce-limit-info";
const DAY_MS: u64 = 86_400_000;

fn read(view: &View<'_>, _: &Facts, reading: &mut Reading) {
    if let Some(budgets) = view
        .has(INFO)
        .then(|| view.parsed("", INFO, usages))
        .flatten()
    {
        budgets.into_iter().for_each(|budget| reading.push(budget));
    }
    if is_refusal(view) {
        reading.refuse();
    }
}

/// `api-usage=212/15000; per-app-api-usage=17/250(appName=sample)`.
fn usages(text: &str) -> Option<Vec<BudgetSignal>> {
    let usage = |part: &str| {
        let (name, numbers) = part.trim().split_once('=')?;
        let (used, limit) = numbers.split('(').next()?.split_once('/')?;
        let limit = units(limit)?;
        Some(BudgetSignal {
            scope: Some(generic::short(name)),
            limit: Some(limit),
            remaining: Some(limit.saturating_sub(units(used)?)),
            reset_in_ms: None,
            window_ms: Some(DAY_MS),
        })
    };
    text.split([';', ',']).take(8).map(usage).collect()
}

fn is_refusal(view: &View<'_>) -> bool {
    let errors = view.body.items();
    errors
        .iter()
        .any(|error| error.get("errorCode").is("REQUEST_LIMIT_EXCEEDED"))
}
