//! Turns an HTTP response into what the core needs to know.
//!
//! Owns the meaning of a status and the reading of `Retry-After`. Has no clock: `now` is an argument, and the `Date`
//! header, where it is visible, corrects a wrong one. Invariant: what cannot be read counts as absent, and nothing
//! that a server sends makes it panic or wait for nothing.

mod retry_after;

pub use retry_after::{MAX_RETRY_AFTER_MS, parse_retry_after};

use paceline_core::io::{Answer, Verdict};
use paceline_core::signals::Signals;
use paceline_core::time::Wall;

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

/// A response, as a transport hands it over.
#[derive(Clone, Debug, Default)]
pub struct Response<'a> {
    /// The status.
    pub status: u16,
    /// The headers that could be read, names in any case.
    pub headers: &'a [(String, String)],
    /// The beginning of the body of an error.
    pub text: Option<&'a str>,
}

impl Response<'_> {
    /// Returns the first header of that name.
    fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(other, _)| other.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }
}

/// Reads a response that came at `now`.
pub fn read(response: &Response<'_>, sent: Sent, now: Wall) -> Answer {
    let date = response.header("date").and_then(retry_after::parse_date);
    let retry_after_ms = response
        .header("retry-after")
        .and_then(|value| parse_retry_after(value, date.unwrap_or(now)));
    let verdict = verdict(
        response.status,
        response.header("retry-after").is_some(),
        sent,
    );
    let text = response
        .text
        .filter(|_| response.status >= 400)
        .map(|text| shortened(text).to_owned());
    Answer {
        status: response.status,
        verdict,
        signals: Signals {
            is_rate_limited: verdict == Verdict::Refused,
            retry_after_ms,
            ..Signals::default()
        },
        text,
    }
}

/// What a status means for the job.
///
/// 429 is RFC 6585 section 4, 425 is RFC 8470, 503 with Retry-After is RFC 9110 section 15.6.4; 409 and 422 on a repeat
/// are the answers of the Idempotency-Key draft (draft-ietf-httpapi-idempotency-key-header, section 2.7).
fn verdict(status: u16, has_retry_after: bool, sent: Sent) -> Verdict {
    match (status, sent) {
        (200..=299 | 304, _) => Verdict::Success,
        (425 | 429, _) => Verdict::Refused,
        (503, _) if has_retry_after => Verdict::Refused,
        (408 | 500 | 502 | 503 | 504, _) => Verdict::Unavailable,
        (409, Sent::AgainWithKey) => Verdict::StillRunning,
        (422, Sent::AgainWithKey) => Verdict::KeyReused,
        _ => Verdict::Final,
    }
}

/// The first 4 KiB, cut between characters.
fn shortened(text: &str) -> &str {
    let mut end = text.len().min(MAX_TEXT_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: Wall = Wall::from_millis(1_788_264_000_000);

    fn answer(status: u16, headers: &[(&str, &str)], sent: Sent) -> Answer {
        let headers: Vec<(String, String)> = headers
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        read(
            &Response {
                status,
                headers: &headers,
                text: None,
            },
            sent,
            NOW,
        )
    }

    #[test]
    fn a_refusal_is_no_failure() {
        assert_eq!(answer(429, &[], Sent::First).verdict, Verdict::Refused);
        assert_eq!(
            answer(503, &[("Retry-After", "5")], Sent::First).verdict,
            Verdict::Refused
        );
        assert_eq!(answer(503, &[], Sent::First).verdict, Verdict::Unavailable);
    }

    #[test]
    fn a_conflict_means_something_else_on_a_repeat() {
        assert_eq!(answer(409, &[], Sent::First).verdict, Verdict::Final);
        assert_eq!(
            answer(409, &[], Sent::AgainWithKey).verdict,
            Verdict::StillRunning
        );
        assert_eq!(
            answer(422, &[], Sent::AgainWithKey).verdict,
            Verdict::KeyReused
        );
    }

    #[test]
    fn the_date_header_corrects_a_wrong_clock() {
        let headers = [
            ("date", "Tue, 01 Sep 2026 12:00:00 GMT"),
            ("retry-after", "Tue, 01 Sep 2026 12:00:20 GMT"),
        ];

        assert_eq!(
            answer(429, &headers, Sent::First).signals.retry_after_ms,
            Some(20_000)
        );
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let text = "ü".repeat(4_000);

        let answer = read(
            &Response {
                status: 500,
                headers: &[],
                text: Some(&text),
            },
            Sent::First,
            NOW,
        );

        assert_eq!(answer.text.unwrap().len(), MAX_TEXT_BYTES);
    }

    proptest! {
        #[test]
        fn nothing_that_a_server_sends_makes_it_panic(status in any::<u16>(), value in ".{0,200}", date in ".{0,60}") {
            let headers = vec![("Retry-After".to_owned(), value), ("Date".to_owned(), date)];
            let answer = read(&Response { status, headers: &headers, text: None }, Sent::First, NOW);
            prop_assert!(answer.signals.retry_after_ms.is_none_or(|wait| wait <= MAX_RETRY_AFTER_MS));
        }
    }
}
