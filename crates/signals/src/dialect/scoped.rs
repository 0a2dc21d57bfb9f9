//! Several budgets whose names are part of the headers' names, those that are known in the order of their documentation.

use paceline_core::signals::BudgetSignal;

use super::{Facts, generic};
use crate::reading::Reading;
use crate::view::{View, suffix};

/// The most headers of one family that are looked at.
const MAX_SCOPES: usize = 16;

/// Headers that differ in a scope.
#[derive(Clone, Copy)]
pub(super) struct Family {
    /// What comes before everything else.
    pub(super) prefix: &'static str,
    /// The scopes that the documentation names.
    pub(super) known: &'static [&'static str],
}

/// Reads `{prefix}{scope}-limit`, `-remaining` and `-reset`.
pub(super) fn before(view: &View<'_>, family: Family, facts: &Facts, reading: &mut Reading) {
    let prefix = family.prefix;
    let parts = ["-limit", "-remaining", "-reset"];
    let scope_of = |name: &str| {
        let rest = suffix(name, prefix)?;
        let cut = |part: &str| {
            let at = rest.len().checked_sub(part.len())?;
            suffix(rest.get(at..)?, part).map(|_| &rest[..at])
        };
        parts
            .iter()
            .find_map(|part| cut(part))
            .map(str::to_ascii_lowercase)
    };
    for scope in scopes(view, family, scope_of) {
        let name = format!("{prefix}{scope}");
        let has = |part: &str| view.has_named(&name, part);
        let budget = BudgetSignal {
            limit: has("-limit").then(|| view.units(&name, "-limit")).flatten(),
            remaining: has("-remaining")
                .then(|| view.units_left(&name, "-remaining"))
                .flatten(),
            reset_in_ms: has("-reset")
                .then(|| view.reset(&name, "-reset", facts.reset))
                .flatten(),
            window_ms: facts.window_ms,
            scope: Some(generic::short(&scope)),
        };
        reading.push(budget);
    }
}

/// Reads `{prefix}limit-{scope}`, `remaining-` and `reset-`.
pub(super) fn after(view: &View<'_>, family: Family, facts: &Facts, reading: &mut Reading) {
    let prefix = family.prefix;
    let parts = ["limit-", "remaining-", "reset-"];
    let scope_of = |name: &str| {
        let rest = suffix(name, prefix)?;
        let mut scopes = parts.iter().filter_map(|part| suffix(rest, part));
        scopes.next().map(str::to_ascii_lowercase)
    };
    for scope in scopes(view, family, scope_of) {
        let read = |part: &str| format!("{prefix}{part}");
        let [limit, remaining, reset] = parts.map(read);
        let has = |part: &str| view.has_named(part, &scope);
        let budget = BudgetSignal {
            limit: has(&limit).then(|| view.units(&limit, &scope)).flatten(),
            remaining: has(&remaining)
                .then(|| view.units_left(&remaining, &scope))
                .flatten(),
            reset_in_ms: has(&reset)
                .then(|| view.reset(&reset, &scope, facts.reset))
                .flatten(),
            window_ms: facts.window_ms,
            scope: Some(generic::short(&scope)),
        };
        reading.push(budget);
    }
}

fn scopes(
    view: &View<'_>,
    family: Family,
    scope_of: impl Fn(&str) -> Option<String>,
) -> Vec<String> {
    let mut scopes: Vec<String> = Vec::new();
    for scope in view.headers.iter().filter_map(|(name, _)| scope_of(name)) {
        if scopes.len() < MAX_SCOPES && !scope.is_empty() && !scopes.contains(&scope) {
            scopes.push(scope);
        }
    }
    let place = |scope: &String| family.known.iter().position(|known| known == scope);
    scopes.sort_by_key(|scope| place(scope).unwrap_or(MAX_SCOPES));
    scopes
}
