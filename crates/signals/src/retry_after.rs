//! `Retry-After` in all its forms, and its finer twins.
//!
//! RFC 9110, section 10.2.3: seconds or a date. Decimal seconds are no legal form but are really sent (Shopify,
//! Discord). `retry-after-ms` and `x-ms-retry-after-ms` are finer and win (OpenAI, Azure); `x-ratelimit-retry-after` is
//! Symfony's. Invariant: a sign, another text or an unreadable date is as good as no header.

use paceline_core::time::Wall;

use crate::date::parse_date;
use crate::number::millis;
use crate::view::{MAX_WAIT_MS, View};

/// Reads the header's value at `now`, the server's clock where it is known, cut to [`MAX_WAIT_MS`].
///
/// A date that has passed is 0.
pub fn parse_retry_after(value: &str, now: Wall) -> Option<u64> {
    parse(value.trim(), now).map(|wait| wait.min(MAX_WAIT_MS))
}

/// Reads the wait that a response states.
pub(crate) fn read(view: &View<'_>) -> Option<u64> {
    let finer = ["retry-after-ms", "x-ms-retry-after-ms"];
    let finer = finer.iter().filter(|name| view.has(name));
    let finer = finer.filter_map(|name| view.wait("", name, 1)).next();
    finer.or_else(|| stated(view)).or_else(|| {
        let name = "x-ratelimit-retry-after";
        view.has(name).then(|| view.wait("", name, 1_000))?
    })
}

fn stated(view: &View<'_>) -> Option<u64> {
    let wait = view.parsed("", "retry-after", |value| parse(value, view.now));
    wait.map(|wait| view.bounded(wait))
}

/// Two lines come joined by a comma: the longer wait is the careful one.
fn parse(value: &str, now: Wall) -> Option<u64> {
    if !value.starts_with(|c: char| c.is_ascii_digit()) {
        return parse_date(value).map(|date| date.since(now));
    }
    let seconds = value.split(',').map(|part| millis(part, 1_000));
    match seconds.collect::<Option<Vec<u64>>>() {
        Some(waits) => waits.into_iter().max(),
        None => parse_date(value).map(|date| date.since(now)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Wall = Wall::from_millis(1_788_264_000_000);

    #[test]
    fn reads_seconds_and_their_decimals() {
        assert_eq!(parse_retry_after("120", NOW), Some(120_000));
        assert_eq!(parse_retry_after("1.5", NOW), Some(1_500));
        assert_eq!(parse_retry_after("0.0001", NOW), Some(1));
        assert_eq!(parse_retry_after("0", NOW), Some(0));
    }

    #[test]
    fn of_two_lines_the_longer_wait_counts() {
        assert_eq!(parse_retry_after("30, 60", NOW), Some(60_000));
        assert_eq!(parse_retry_after("30, soon", NOW), None);
    }

    #[test]
    fn reads_dates_and_takes_a_past_one_as_zero() {
        assert_eq!(
            parse_retry_after("Tue, 01 Sep 2026 12:01:00 GMT", NOW),
            Some(60_000)
        );
        assert_eq!(
            parse_retry_after("Tuesday, 01-Sep-26 12:01:00 GMT", NOW),
            Some(60_000)
        );
        assert_eq!(
            parse_retry_after("Wed, 21 Oct 2015 07:28:00 GMT", NOW),
            Some(0)
        );
    }

    #[test]
    fn what_cannot_be_read_is_absent() {
        for garbage in [
            "",
            "-10",
            "soon",
            "1e3",
            "nan",
            "12 s",
            "1.2.3",
            "+5",
            "Tue, 99 Foo 2026",
            "99999999999999999999999999999999999",
        ] {
            assert_eq!(parse_retry_after(garbage, NOW), None, "{garbage}");
        }
    }

    #[test]
    fn a_wait_is_bounded() {
        assert_eq!(parse_retry_after("99999999999", NOW), Some(MAX_WAIT_MS));
        assert_eq!(
            parse_retry_after("Fri, 31 Dec 9999 23:59:59 GMT", NOW),
            Some(MAX_WAIT_MS)
        );
    }
}
