//! Together AI: on a refusal a reset in seconds and nothing else.
//!
//! Source: Together AI, rate limits.

use super::Dialect;
use crate::view::Reset;

pub(super) const DIALECT: Dialect = Dialect {
    name: "together",
    reset: Reset::Seconds,
    ..Dialect::PLAIN
};
