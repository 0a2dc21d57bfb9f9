//! X: the reset an instant; fifteen minutes.
//!
//! Source: docs.x.com, rate limits.

use super::Dialect;
use crate::view::Reset;

pub(super) const DIALECT: Dialect = Dialect {
    name: "x",
    reset: Reset::EpochSeconds,
    window_ms: Some(900_000),
    ..Dialect::PLAIN
};
