//! Cloudflare's API: a reset as a date in older answers, the fields of the IETF in newer ones; 1,200 in five minutes.
//!
//! Source: cloudflare/cloudflare-docs, fundamentals/api/reference/limits.

use super::Dialect;

pub(super) const DIALECT: Dialect = Dialect {
    name: "cloudflare",
    window_ms: Some(300_000),
    ..Dialect::PLAIN
};
