//! Microsoft Graph: `Retry-After`, and from SharePoint the draft's three fields once 80% are used, in units a minute.
//!
//! Source: learn.microsoft.com, SharePoint throttling; microsoftgraph/microsoft-graph-docs, concepts/throttling.md.

use super::Dialect;
use crate::view::Reset;

pub(super) const DIALECT: Dialect = Dialect {
    name: "microsoft-graph",
    reset: Reset::Seconds,
    window_ms: Some(60_000),
    ..Dialect::PLAIN
};
