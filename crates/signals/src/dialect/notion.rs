//! Notion: `Retry-After`, and in the body which limit refused; 529 for an overload, safe for every method.
//!
//! Sources: developers.notion.com, request limits; makenotion/notion-sdk-js, src/Client.ts.

use super::{Dialect, generic};

pub(super) const DIALECT: Dialect = Dialect {
    name: "notion",
    knows: |view| view.body.get("object").is("error"),
    read: |view, _, reading| {
        let code = view.body.get("code");
        if code.is("service_overload") {
            reading.refuse();
        }
        if !code.is("rate_limited") {
            return;
        }
        match view
            .body
            .at(&["additional_data", "rate_limit_reason"])
            .text()
        {
            Some(reason) => reading.refuse_by(&generic::short(reason)),
            None => reading.refuse(),
        }
    },
    ..Dialect::PLAIN
};
