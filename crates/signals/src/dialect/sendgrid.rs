//! SendGrid: the reset an instant, a limit for each endpoint.
//!
//! Source: Twilio SendGrid v3 reference, rate limits.

use super::Dialect;
use crate::view::Reset;

pub(super) const DIALECT: Dialect = Dialect {
    name: "sendgrid",
    reset: Reset::EpochSeconds,
    ..Dialect::PLAIN
};
