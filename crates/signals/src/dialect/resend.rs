//! Resend: the draft's three fields, a second.
//!
//! Source: resend.com, rate limit.

use super::Dialect;
use crate::view::Reset;

pub(super) const DIALECT: Dialect = Dialect {
    name: "resend",
    reset: Reset::Seconds,
    window_ms: Some(1_000),
    ..Dialect::PLAIN
};
