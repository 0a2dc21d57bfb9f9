//! Slack: `Retry-After` alone, for one method of one workspace.
//!
//! Source: docs.slack.dev, Web API rate limits.

use super::Dialect;

pub(super) const DIALECT: Dialect = Dialect {
    name: "slack",
    ..Dialect::PLAIN
};
