//! Intercom: the quota of a minute in slices of ten seconds, the reset an instant.
//!
//! Source: intercom/intercom-ruby, lib/intercom/request.rb.

use super::Dialect;
use crate::view::Reset;

pub(super) const DIALECT: Dialect = Dialect {
    name: "intercom",
    reset: Reset::EpochSeconds,
    ..Dialect::PLAIN
};
