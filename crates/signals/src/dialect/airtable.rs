//! Airtable: a refusal says nothing, and lasts 30 seconds.
//!
//! Source: airtable.com/developers/web/api, rate limits; Airtable/airtable.js.

use super::{Dialect, generic};

pub(super) const DIALECT: Dialect = Dialect {
    name: "airtable",
    read: |view, facts, reading| {
        reading.penalty(30_000);
        generic::read(view, facts, reading);
    },
    ..Dialect::PLAIN
};
