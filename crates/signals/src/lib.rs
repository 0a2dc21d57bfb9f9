//! Turns an HTTP response into what the core needs to know.
//!
//! Owns the meaning of a status, the reading of `Retry-After`, and the [dialects](Dialect) in which servers write what is
//! left. Has no clock: `now` is an argument, and the `Date` header, where it is visible, corrects a wrong one.
//! Invariant: what cannot be read counts as absent and is counted; nothing that a server sends makes it panic, take
//! long, or wait for nothing; a wait beyond [`MAX_WAIT_MS`] is cut and marked.

mod date;
mod dialect;
mod expose;
mod json;
mod number;
mod own;
mod preset;
mod reading;
mod retry_after;
mod sf;
mod told;
mod view;

pub use dialect::{BodyNeed, Dialect};
pub use own::{AnyDialect, Kind, OwnDialect, Timed, Window};
pub use preset::{
    Charge, Counts, Evidence, Preset, PresetBatch, PresetCost, PresetError, PresetLimit,
};
pub use reading::{Found, Reading, Unit};
pub use retry_after::parse_retry_after;
pub use told::Told;
pub use view::{MAX_BODY_BYTES, MAX_HEADER_BYTES, MAX_WAIT_MS};

use paceline_core::io::Answer;
use paceline_core::time::Wall;
use view::View;

/// The longest error text that is kept, in bytes.
pub const MAX_TEXT_BYTES: usize = 4_096;

/// Whether the request was sent before with the same idempotency key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// For the first time, or without a key.
    First,
    /// Again, with the key of the first time.
    AgainWithKey,
}

/// A response, as a transport hands it over, and what it answers.
#[derive(Clone, Debug, Default)]
pub struct Response<'a> {
    /// The status.
    pub status: u16,
    /// The headers that could be read, names in any case.
    pub headers: &'a [(String, String)],
    /// The beginning of the body, of an error or where [`Dialect::body`] asks for it.
    pub text: Option<&'a str>,
    /// The request's method; empty if not known.
    pub method: &'a str,
    /// The request's URL; empty if not known.
    pub url: &'a str,
    /// What a function of the app has read in it; looked at where the dialect is [`AnyDialect::Defined`].
    pub told: Option<&'a Told>,
}

/// Reads a response that came at `now`.
pub fn read(
    response: &Response<'_>,
    dialect: impl Into<AnyDialect>,
    sent: Sent,
    now: Wall,
) -> Answer {
    let reading = read_all(response, dialect, now);
    answer(response, &reading, sent)
}

/// Draws from a reading what the core needs.
pub fn answer(response: &Response<'_>, reading: &Reading, sent: Sent) -> Answer {
    let text = response
        .text
        .filter(|_| response.status >= 400 || reading.is_rate_limited)
        .map(|text| view::beginning(text, MAX_TEXT_BYTES).to_owned());
    Answer {
        status: response.status,
        verdict: reading.verdict(response.status, sent),
        signals: reading.signals(),
        text,
        items: None,
    }
}

/// Reads all that a response says, in its own order.
pub fn read_all(response: &Response<'_>, dialect: impl Into<AnyDialect>, now: Wall) -> Reading {
    let dialect = dialect.into();
    let view = View::new(response, now);
    let mut reading = Reading::default();
    reading.wait(dialect.wait(&view));
    reading.wait(retry_after::read(&view));
    reading.is_retryable = should_retry(&view);
    dialect.read(&view, &mut reading);
    reading.conclude(&view);
    reading
}

/// What a server says outright of sending the same request again (Stripe; OpenAI and Anthropic).
fn should_retry(view: &View<'_>) -> Option<bool> {
    let names = ["stripe-should-retry", "x-should-retry"];
    match names.iter().find_map(|name| view.header(name))? {
        "true" => Some(true),
        "false" => Some(false),
        _ => view.counted(None),
    }
}

#[cfg(test)]
mod tests;
