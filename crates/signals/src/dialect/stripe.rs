//! Stripe: no budget and no wait, a reason on refusals, and whether to try again.
//!
//! `lock_timeout` is a 429 that is no limit: another request held the object.
//! Sources: docs.stripe.com, rate limits; stripe/stripe-node, src/RequestSender.ts.

use super::{Dialect, generic};

pub(super) const DIALECT: Dialect = Dialect {
    name: "stripe",
    knows: |view| {
        view.has("stripe-should-retry")
            || view.has("stripe-rate-limited-reason")
            || view.body.at(&["error", "code"]).is("lock_timeout")
    },
    read: |view, _, reading| {
        if let Some(reason) = view.header("stripe-rate-limited-reason") {
            reading.name(&generic::short(reason));
        }
        if view.body.at(&["error", "code"]).is("lock_timeout") {
            reading.no_limit();
            reading.is_retryable = Some(true);
        }
    },
    ..Dialect::PLAIN
};
