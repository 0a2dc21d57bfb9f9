//! Bluesky: the fields of the IETF with its policy, but the reset is an instant.
//!
//! Source: bluesky-social/atproto, xrpc-server rate limiter.

use super::Dialect;
use crate::view::Reset;

pub(super) const DIALECT: Dialect = Dialect {
    name: "bluesky",
    reset: Reset::EpochSeconds,
    ..Dialect::PLAIN
};
