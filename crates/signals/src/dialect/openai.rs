//! OpenAI, Azure OpenAI and Groq: budgets of requests and tokens with durations such as `6m0s`.
//!
//! `insufficient_quota` is a 429 that no waiting helps. Sources: developers.openai.com, rate limits and error codes;
//! openai/openai-python.

use super::{Dialect, Facts, generic, scoped};
use crate::reading::Reading;
use crate::view::{Reset, View};

pub(super) const DIALECT: Dialect = Dialect {
    name: "openai",
    reset: Reset::Duration,
    knows: |view| {
        view.has_prefix("x-ratelimit-limit-")
            || view.has_prefix("x-ratelimit-remaining-")
            || is_without_credit(view)
    },
    read,
    ..Dialect::PLAIN
};

const FAMILY: scoped::Family = scoped::Family {
    prefix: "x-ratelimit-",
    known: &["requests", "tokens"],
};

fn read(view: &View<'_>, facts: &Facts, reading: &mut Reading) {
    scoped::after(view, FAMILY, facts, reading);
    if reading.found.is_empty() {
        generic::read(view, facts, reading);
    }
    if is_without_credit(view) {
        reading.no_limit();
        reading.is_retryable = Some(false);
    }
}

fn is_without_credit(view: &View<'_>) -> bool {
    let error = view.body.get("error");
    error.get("code").is("insufficient_quota") || error.get("type").is("insufficient_quota")
}
