//! Supabase: GitHub's names, but the reset in seconds.
//!
//! Source: Supabase Management API reference.

use super::Dialect;
use crate::view::Reset;

pub(super) const DIALECT: Dialect = Dialect {
    name: "supabase",
    reset: Reset::Seconds,
    ..Dialect::PLAIN
};
