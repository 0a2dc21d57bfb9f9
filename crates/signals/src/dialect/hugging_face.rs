//! Hugging Face: the list of the IETF, but a policy that is no structured field.
//!
//! `"fixed window";"api";q=500;w=300` has two texts in one item; the vendor's own client reads `q` and `w` by pattern.
//! Source: huggingface/hub-docs, docs/hub/rate-limits.md.

use super::{Dialect, Facts, ietf};
use crate::number::units;
use crate::reading::Reading;
use crate::view::{Reset, View};

pub(super) const DIALECT: Dialect = Dialect {
    name: "hugging-face",
    reset: Reset::Seconds,
    knows: |view| {
        view.header(POLICY)
            .is_some_and(|policy| policy.starts_with("\"fixed window\";\""))
    },
    read,
    ..Dialect::PLAIN
};

const POLICY: &str = "ratelimit-policy";

fn read(view: &View<'_>, facts: &Facts, reading: &mut Reading) {
    ietf::read(view, facts, reading);
    let policies: Vec<&str> = view
        .header(POLICY)
        .unwrap_or("")
        .split(',')
        .take(8)
        .collect();
    for found in &mut reading.found {
        let budget = &mut found.budget;
        let named = |policy: &&&str| {
            let mut names = policy
                .split(';')
                .filter_map(|part| part.trim().strip_prefix('"')?.strip_suffix('"'));
            names.next_back() == budget.scope.as_deref()
        };
        let Some(policy) = policies.iter().find(named) else {
            continue;
        };
        let part = |name: &str| {
            let mut parts = policy
                .split(';')
                .filter_map(|part| part.trim().strip_prefix(name));
            parts.next().and_then(units)
        };
        budget.limit = budget.limit.or_else(|| part("q="));
        let window_s = part("w=").map(|seconds| view.bounded(seconds.saturating_mul(1_000)));
        budget.window_ms = budget.window_ms.or(window_s);
    }
}
