//! Mastodon: the reset a date with microseconds; 300 in five minutes.
//!
//! Source: mastodon/documentation, api/rate-limits.md.

use super::Dialect;
use crate::view::Reset;

pub(super) const DIALECT: Dialect = Dialect {
    name: "mastodon",
    reset: Reset::Date,
    window_ms: Some(300_000),
    ..Dialect::PLAIN
};
