//! Asana: `Retry-After` alone, for its limits a minute, in flight and by cost alike.
//!
//! Source: developers.asana.com, rate limits.

use super::Dialect;

pub(super) const DIALECT: Dialect = Dialect {
    name: "asana",
    ..Dialect::PLAIN
};
