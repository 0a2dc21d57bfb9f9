//! Envoy's rate limit filter: policies behind the limit (`100, 100;w=60`), reset in seconds.
//!
//! Source: Envoy documentation, rate limit filter.

use super::Dialect;
use crate::view::Reset;

pub(super) const DIALECT: Dialect = Dialect {
    name: "envoy",
    reset: Reset::Seconds,
    ..Dialect::PLAIN
};
