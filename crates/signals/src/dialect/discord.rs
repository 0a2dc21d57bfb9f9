//! Discord: a bucket for each route, a reset in decimal seconds from now, scopes `user`, `shared` and `global`.
//!
//! Source: discord/discord-api-docs, developers/topics/rate-limits.mdx.

use super::{Dialect, Facts, generic};
use crate::reading::Reading;
use crate::view::{Reset, View};

pub(super) const DIALECT: Dialect = Dialect {
    name: "discord",
    reset: Reset::EpochSeconds,
    knows: |view| {
        view.has("x-ratelimit-bucket")
            || view.has("x-ratelimit-global")
            || view.has("x-ratelimit-scope")
    },
    read,
    ..Dialect::PLAIN
};

fn read(view: &View<'_>, facts: &Facts, reading: &mut Reading) {
    generic::read(view, facts, reading);
    if view.status != 429 {
        return;
    }
    // The user's scope is that of the bucket; the others are wider.
    let scope = view
        .header("x-ratelimit-scope")
        .filter(|scope| *scope != "user" || !view.has("x-ratelimit-bucket"));
    let is_global = view.body.get("global") == &crate::json::Value::Bool(true);
    if let Some(scope) = scope.or(is_global.then_some("global")) {
        reading.name(&generic::short(scope));
    }
    if !view.has("retry-after") {
        reading.wait(view.body_wait(view.body.get("retry_after"), 1_000));
    }
}
