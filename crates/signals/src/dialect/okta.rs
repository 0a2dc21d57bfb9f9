//! Okta: the reset an instant, measured against `Date`.
//!
//! Source: okta/okta-developer-docs, rl-best-practices; okta/okta-sdk-nodejs.

use super::Dialect;
use crate::view::Reset;

pub(super) const DIALECT: Dialect = Dialect {
    name: "okta",
    reset: Reset::EpochSeconds,
    ..Dialect::PLAIN
};
