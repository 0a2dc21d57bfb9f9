//! Twilio: a limit on requests in flight; error 20429.
//!
//! Source: Twilio, REST API best practices and error 20429.

use super::Dialect;

pub(super) const DIALECT: Dialect = Dialect {
    name: "twilio",
    knows: |view| view.has("twilio-concurrent-requests") || view.body.get("code").is("20429"),
    read: |view, _, reading| {
        if view.status == 429 {
            reading.refuse_by("concurrency");
        }
    },
    ..Dialect::PLAIN
};
