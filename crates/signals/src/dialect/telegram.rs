//! Telegram's Bot API: the wait in seconds in the body alone.
//!
//! Source: core.telegram.org/bots/api, ResponseParameters.

use super::Dialect;

pub(super) const DIALECT: Dialect = Dialect {
    name: "telegram",
    knows: |view| view.body.at(&["parameters", "retry_after"]).is_some(),
    read: |view, _, reading| {
        reading.wait(view.body_wait(view.body.at(&["parameters", "retry_after"]), 1_000));
    },
    ..Dialect::PLAIN
};
