//! Anthropic: four budgets with dates, and 529 for an overload of the whole service.
//!
//! Sources: docs.anthropic.com, rate limits and errors; anthropics/anthropic-sdk-python.

use super::{Dialect, scoped};
use crate::view::Reset;

pub(super) const DIALECT: Dialect = Dialect {
    name: "anthropic",
    reset: Reset::Date,
    knows: |view| {
        view.has_prefix("anthropic-") || view.body.at(&["error", "type"]).is("overloaded_error")
    },
    read: |view, facts, reading| {
        scoped::before(view, FAMILY, facts, reading);
        if view.body.at(&["error", "type"]).is("overloaded_error") {
            reading.refuse();
        }
    },
    ..Dialect::PLAIN
};

const FAMILY: scoped::Family = scoped::Family {
    prefix: "anthropic-ratelimit-",
    known: &["requests", "input-tokens", "output-tokens", "tokens"],
};
