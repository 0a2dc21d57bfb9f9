//! Dropbox: `Retry-After`, and a tag in the body that tells a limit from a write lock.
//!
//! Source: dropbox/dropbox-sdk-python, dropbox_client.py and auth.py.

use super::{Dialect, generic};

pub(super) const DIALECT: Dialect = Dialect {
    name: "dropbox",
    knows: |view| view.body.get("error_summary").is_some(),
    read: |view, _, reading| {
        let tag = view.body.at(&["error", "reason", ".tag"]).text();
        if let Some(tag) = tag.filter(|_| view.status == 429) {
            reading.name(&generic::short(tag));
        }
        if !view.has("retry-after") {
            reading.wait(view.body_wait(view.body.at(&["error", "retry_after"]), 1_000));
        }
    },
    ..Dialect::PLAIN
};
