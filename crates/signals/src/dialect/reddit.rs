//! Reddit: used instead of a limit, decimals in what is left, the reset in seconds; ten minutes.
//!
//! Source: praw-dev/prawcore, prawcore/rate_limit.py.

use super::Dialect;
use crate::view::Reset;

pub(super) const DIALECT: Dialect = Dialect {
    name: "reddit",
    reset: Reset::Seconds,
    window_ms: Some(600_000),
    ..Dialect::PLAIN
};
