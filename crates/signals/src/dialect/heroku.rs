//! Heroku: what is left alone, of 4,500 that refill at 75 a minute.
//!
//! Source: Heroku Platform API reference, rate limits.

use super::Dialect;

pub(super) const DIALECT: Dialect = Dialect {
    name: "heroku",
    window_ms: Some(3_600_000),
    ..Dialect::PLAIN
};
