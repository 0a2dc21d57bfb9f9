//! `Retry-After`: seconds, or a date (RFC 9110, section 10.2.3).

use std::time::{Duration, UNIX_EPOCH};

use paceline_core::time::Wall;

/// The longest wait that is believed: a year. What asks for more is cut to it.
pub const MAX_RETRY_AFTER_MS: u64 = 366 * 86_400_000;

/// Reads the header's value at `now`, the server's clock where it is known.
///
/// Decimal seconds are no legal form but are really sent (Shopify, Discord); they are rounded up to the millisecond.
/// A sign, another text, or an unreadable date is as good as no header. A date that has passed is 0.
pub fn parse_retry_after(value: &str, now: Wall) -> Option<u64> {
    let value = value.trim();
    if value.starts_with(|c: char| c.is_ascii_digit()) {
        return parse_seconds(value).map(|millis| millis.min(MAX_RETRY_AFTER_MS));
    }
    parse_date(value).map(|date| date.since(now).min(MAX_RETRY_AFTER_MS))
}

/// Reads a date in one of the three forms of HTTP.
pub(crate) fn parse_date(value: &str) -> Option<Wall> {
    let date = httpdate::parse_http_date(value.trim()).ok()?;
    let since = date.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    Some(Wall::from_millis(
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX),
    ))
}

fn parse_seconds(value: &str) -> Option<u64> {
    let (whole, fraction) = value.split_once('.').unwrap_or((value, ""));
    let is_number = !whole.is_empty()
        && whole
            .bytes()
            .chain(fraction.bytes())
            .all(|byte| byte.is_ascii_digit());
    if !is_number {
        return None;
    }
    let seconds: u64 = whole.parse().unwrap_or(u64::MAX);
    let digits: String = fraction.chars().chain("000".chars()).take(3).collect();
    let millis: u64 = digits.parse().ok()?;
    let is_above = fraction.bytes().skip(3).any(|byte| byte != b'0');
    Some(
        seconds
            .saturating_mul(1_000)
            .saturating_add(millis)
            .saturating_add(u64::from(is_above)),
    )
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
        ] {
            assert_eq!(parse_retry_after(garbage, NOW), None, "{garbage}");
        }
    }

    #[test]
    fn a_wait_is_bounded() {
        assert_eq!(
            parse_retry_after(&"9".repeat(35), NOW),
            Some(MAX_RETRY_AFTER_MS)
        );
        assert_eq!(
            parse_retry_after("Fri, 31 Dec 9999 23:59:59 GMT", NOW),
            Some(MAX_RETRY_AFTER_MS)
        );
    }
}
