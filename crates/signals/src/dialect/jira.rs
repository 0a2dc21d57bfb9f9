//! Jira and Confluence Cloud: the reset a date, and a reason that says which limit refused.
//!
//! Source: developer.atlassian.com, Jira Cloud rate limiting.

use super::{Dialect, generic};
use crate::view::Reset;

pub(super) const DIALECT: Dialect = Dialect {
    name: "jira",
    reset: Reset::Date,
    knows: |view| view.has("ratelimit-reason"),
    read: |view, facts, reading| {
        if let Some(reason) = view.header("ratelimit-reason") {
            reading.name(&generic::short(reason));
        }
        generic::read(view, facts, reading);
    },
    ..Dialect::PLAIN
};
