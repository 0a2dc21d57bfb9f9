//! Twitch: names of the IETF, but the reset is the instant at which the bucket is full; 800 a minute.
//!
//! Source: dev.twitch.tv, API guide.

use super::Dialect;
use crate::view::Reset;

pub(super) const DIALECT: Dialect = Dialect {
    name: "twitch",
    reset: Reset::EpochSeconds,
    window_ms: Some(60_000),
    ..Dialect::PLAIN
};
