//! Kraken: refusals under 200, as texts in a list.
//!
//! Source: docs.kraken.com, API errors; the error maps of public clients.

use super::{BodyNeed, Dialect};
use crate::view::View;

pub(super) const DIALECT: Dialect = Dialect {
    name: "kraken",
    body: BodyNeed::All,
    knows: is_refusal,
    read: |view, _, reading| {
        if is_refusal(view) {
            reading.refuse();
        }
    },
    ..Dialect::PLAIN
};

const ERRORS: [&str; 4] = [
    "EAPI:Rate limit exceeded",
    "EOrder:Rate limit exceeded",
    "EGeneral:Too many requests",
    "EService:Throttled",
];

fn is_refusal(view: &View<'_>) -> bool {
    let errors = view.body.get("error").items().iter();
    let mut errors = errors.filter_map(|error| error.text());
    errors.any(|error| ERRORS.iter().any(|known| error.starts_with(known)))
}
