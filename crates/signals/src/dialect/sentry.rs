//! Sentry's ingest: categories that are closed for a while, told on served answers too.
//!
//! `retry_after:categories:scope:reason`, limits after commas, categories after semicolons.
//! Source: getsentry/sentry-docs, develop-docs/sdk/expected-features/rate-limiting.mdx.

use paceline_core::signals::BudgetSignal;

use super::{Dialect, Facts, generic};
use crate::number::millis;
use crate::reading::Reading;
use crate::view::View;

pub(super) const DIALECT: Dialect = Dialect {
    name: "sentry",
    knows: |view| view.has(LIMITS),
    read,
    ..Dialect::PLAIN
};

const LIMITS: &str = "x-sentry-rate-limits";

fn read(view: &View<'_>, _: &Facts, reading: &mut Reading) {
    let mut longest: Option<(u64, Option<String>)> = None;
    for limit in view.header(LIMITS).unwrap_or("").split(',').take(16) {
        let mut parts = limit.trim().split(':');
        let wait = parts.next().and_then(|seconds| millis(seconds, 1_000));
        let Some(wait) = view.counted(wait).map(|wait| view.bounded(wait)) else {
            continue;
        };
        let scope = parts
            .next()
            .filter(|scope| !scope.is_empty())
            .map(generic::short);
        if longest.as_ref().is_none_or(|(other, _)| wait > *other) {
            longest = Some((wait, scope.clone()));
        }
        reading.push(BudgetSignal {
            scope,
            remaining: Some(0),
            reset_in_ms: Some(wait),
            ..BudgetSignal::default()
        });
    }
    if let Some((wait, scope)) = longest {
        // Closed, not empty: there is no budget to speak of.
        reading.headline(BudgetSignal {
            scope,
            ..BudgetSignal::default()
        });
        reading.wait(Some(wait));
    }
}
