//! DigitalOcean: names of the IETF, but the reset is the instant at which the oldest request leaves the rolling hour.
//!
//! Source: digitalocean/godo, godo.go; API reference, rate limit.

use super::Dialect;
use crate::view::Reset;

pub(super) const DIALECT: Dialect = Dialect {
    name: "digitalocean",
    reset: Reset::EpochSeconds,
    window_ms: Some(3_600_000),
    ..Dialect::PLAIN
};
