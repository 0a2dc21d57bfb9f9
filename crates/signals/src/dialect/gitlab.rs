//! GitLab: names of the IETF, but the reset is an instant; the limit is counted for a minute.
//!
//! Limits of single features answer 429 without headers of their own: what the headers show is then not used up.
//! Source: gitlabhq/gitlabhq, doc/administration/settings/user_and_ip_rate_limits.md.

use super::Dialect;
use crate::view::Reset;

pub(super) const DIALECT: Dialect = Dialect {
    name: "gitlab",
    reset: Reset::EpochSeconds,
    window_ms: Some(60_000),
    knows: |view| view.has("ratelimit-name") || view.has("ratelimit-observed"),
    ..Dialect::PLAIN
};
