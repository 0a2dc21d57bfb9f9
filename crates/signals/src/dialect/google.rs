//! Google's APIs: nothing in headers; a reason in the body, refusals as 403, `RetryInfo` with a duration.
//!
//! What Gmail's methods cost is in its documentation alone. Sources: Gmail API, usage limits and resolve errors;
//! YouTube Data API, errors; googleapis, google/rpc/error_details.proto.

use paceline_core::signals::BudgetSignal;

use super::{Dialect, Facts};
use crate::number::duration;
use crate::reading::{Found, Reading};
use crate::view::View;

pub(super) const DIALECT: Dialect = Dialect {
    name: "google",
    knows: |view| {
        reason(view).is_some()
            || view.body.at(&["error", "status"]).is("RESOURCE_EXHAUSTED")
            || view.url.starts_with(GMAIL)
    },
    read,
    ..Dialect::PLAIN
};

const GMAIL: &str = "https://gmail.googleapis.com/";
const DAY_MS: u64 = 86_400_000;
/// Units of Gmail's methods, by the end of their paths.
const COSTS: [(&str, &str, u32); 5] = [
    ("POST", "/messages/send", 100),
    ("POST", "/drafts/send", 100),
    ("POST", "/messages/batchDelete", 50),
    ("POST", "/modify", 5),
    ("GET", "/messages", 5),
];

fn read(view: &View<'_>, _: &Facts, reading: &mut Reading) {
    match reason(view) {
        Some("rateLimitExceeded") => reading.refuse_by("project"),
        Some("userRateLimitExceeded") => reading.refuse_by("user"),
        Some(reason @ ("quotaExceeded" | "dailyLimitExceeded")) => {
            reading.refuse_by(reason);
            let budget = BudgetSignal {
                scope: Some(reason.to_owned()),
                window_ms: Some(DAY_MS),
                ..BudgetSignal::default()
            };
            reading.add(Found {
                budget,
                ..Found::default()
            });
        }
        Some(_) | None => {}
    }
    if view.body.at(&["error", "status"]).is("RESOURCE_EXHAUSTED") {
        reading.refuse();
    }
    for detail in view.body.at(&["error", "details"]).items() {
        if let Some(delay) = detail.get("retryDelay").text() {
            let wait = view.counted(duration(delay));
            reading.wait(wait.map(|wait| view.bounded(wait)));
        }
    }
    if let Some(path) = view.url.strip_prefix(GMAIL).filter(|_| view.status < 400) {
        let path = path.split(['?', '#']).next().unwrap_or("");
        let fits =
            |(method, end, _): &&(&str, &str, u32)| *method == view.method && path.ends_with(end);
        reading.cost = COSTS.iter().find(fits).map(|(_, _, cost)| *cost);
    }
}

fn reason<'v>(view: &'v View<'_>) -> Option<&'v str> {
    let errors = view.body.at(&["error", "errors"]).items();
    let limits = errors.iter().find(|error| {
        error.get("domain").is("usageLimits") || error.get("domain").is("youtube.quota")
    });
    limits?.get("reason").text()
}
