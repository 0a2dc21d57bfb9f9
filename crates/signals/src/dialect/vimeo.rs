//! Vimeo: the reset a date with an offset; a minute.
//!
//! Source: Vimeo, rate limiting guide.

use super::Dialect;
use crate::view::Reset;

pub(super) const DIALECT: Dialect = Dialect {
    name: "vimeo",
    reset: Reset::Date,
    window_ms: Some(60_000),
    ..Dialect::PLAIN
};
