//! Dates as servers write them: HTTP's three forms, ISO 8601 and what JavaScript prints.
//!
//! Invariant: a date with a part out of its range is none; nothing rolls over. A date without a zone is UTC.

use std::time::{Duration, UNIX_EPOCH};

use paceline_core::time::Wall;

/// The longest date that is looked at, in bytes.
const MAX_DATE_BYTES: usize = 100;
const DAY_MS: u64 = 86_400_000;
const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// Reads a date in any known form. One before 1970 is the beginning of 1970.
pub(crate) fn parse_date(text: &str) -> Option<Wall> {
    let text = text.trim();
    if text.len() > MAX_DATE_BYTES {
        return None;
    }
    http_date(text)
        .or_else(|| iso_date(text))
        .or_else(|| js_date(text))
        .map(Wall::from_millis)
}

/// RFC 9110, section 5.6.7.
fn http_date(text: &str) -> Option<u64> {
    let date = httpdate::parse_http_date(text).ok()?;
    let since = date.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    u64::try_from(since.as_millis()).ok()
}

/// `2026-09-01T12:00:30.5Z`, with an offset, with a blank for the `T`, without seconds, without a zone.
fn iso_date(text: &str) -> Option<u64> {
    let (date, rest) = text.split_once(['T', ' '])?;
    let [year, month, day] = parts(date, '-')?;
    let zone = rest.find(['Z', 'z', '+', '-']).unwrap_or(rest.len());
    let (time, zone) = rest.split_at(zone);
    let at = day_ms(year, month, day)?.checked_add(time_ms(time)?)?;
    shifted(at, zone)
}

/// `Tue Sep 01 2026 12:00:42 GMT+0000 (Coordinated Universal Time)`.
fn js_date(text: &str) -> Option<u64> {
    let mut words = text.split_ascii_whitespace().skip(1);
    let month = words.next()?;
    let month = MONTHS.iter().position(|name| *name == month)? as u64 + 1;
    let day = number(words.next()?)?;
    let year = number(words.next()?)?;
    let at = day_ms(year, month, day)?.checked_add(time_ms(words.next()?)?)?;
    shifted(at, words.next()?.strip_prefix("GMT")?)
}

fn number(text: &str) -> Option<u64> {
    let is_digits = !text.is_empty() && text.len() <= 4;
    (is_digits && text.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| text.parse().ok())
        .flatten()
}

fn parts<const N: usize>(text: &str, separator: char) -> Option<[u64; N]> {
    let mut numbers = [0; N];
    let mut parts = text.split(separator);
    for place in &mut numbers {
        *place = number(parts.next()?)?;
    }
    parts.next().is_none().then_some(numbers)
}

/// The milliseconds from 1970 to a day of the Gregorian calendar (days_from_civil of Howard Hinnant).
fn day_ms(year: u64, month: u64, day: u64) -> Option<u64> {
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match month {
        2 => 28 + u64::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        _ => return None,
    };
    if !(1..=days).contains(&day) {
        return None;
    }
    // A year from March on puts the leap day last.
    let year = if month <= 2 {
        year.checked_sub(1)?
    } else {
        year
    };
    let month = (month + 9) % 12;
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    let since_0 = year * 365 + year / 4 - year / 100 + year / 400 + day_of_year;
    Some(since_0.saturating_sub(719_468) * DAY_MS)
}

/// `12:00`, `12:00:30` or `12:00:30.123456`, rounded up.
fn time_ms(text: &str) -> Option<u64> {
    let (hour, rest) = text.split_once(':')?;
    let (minute, second) = rest.split_once(':').unwrap_or((rest, "0"));
    let (hour, minute) = (number(hour)?, number(minute)?);
    let second_ms = crate::number::millis(second, 1_000)?;
    // 60 is a leap second.
    let is_time = hour < 24 && minute < 60 && second_ms <= 60_999;
    is_time.then(|| hour * 3_600_000 + minute * 60_000 + second_ms)
}

/// Applies an offset: an empty one and `Z` are UTC.
fn shifted(at: u64, zone: &str) -> Option<u64> {
    if zone.is_empty() || zone.eq_ignore_ascii_case("z") {
        return Some(at);
    }
    let offset = zone.strip_prefix(['+', '-'])?;
    let (hours, minutes) = match offset.split_once(':') {
        Some((hours, minutes)) => (number(hours)?, number(minutes)?),
        None => (number(offset)? / 100, number(offset)? % 100),
    };
    if hours > 23 || minutes > 59 {
        return None;
    }
    let offset_ms = hours * 3_600_000 + minutes * 60_000;
    Some(if zone.starts_with('+') {
        at.saturating_sub(offset_ms)
    } else {
        at.saturating_add(offset_ms)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: u64 = 1_788_264_000_000;

    fn parse(text: &str) -> Option<u64> {
        parse_date(text).map(Wall::as_millis)
    }

    #[test]
    fn reads_every_form_as_the_same_instant() {
        for text in [
            "Tue, 01 Sep 2026 12:00:00 GMT",
            "Tuesday, 01-Sep-26 12:00:00 GMT",
            "Tue Sep  1 12:00:00 2026",
            "2026-09-01T12:00:00Z",
            "2026-09-01T12:00Z",
            "2026-09-01 12:00:00",
            "2026-09-01T08:00:00-04:00",
            "2026-09-01T17:30:00.000+0530",
            "Tue Sep 01 2026 14:00:00 GMT+0200 (Central European Summer Time)",
        ] {
            assert_eq!(parse(text), Some(NOON), "{text}");
        }
    }

    #[test]
    fn a_fraction_is_rounded_up() {
        assert_eq!(parse("2026-09-01T12:00:00.123456Z"), Some(NOON + 124));
    }

    #[test]
    fn knows_the_calendar() {
        assert_eq!(parse("1970-01-01T00:00Z"), Some(0));
        assert_eq!(parse("2024-02-29T00:00Z"), Some(1_709_164_800_000));
        assert_eq!(parse("9999-12-31T23:59:59Z"), Some(253_402_300_799_000));
        assert_eq!(parse("1899-12-31T00:00Z"), Some(0));
    }

    #[test]
    fn nothing_rolls_over() {
        for text in [
            "2026-02-29T00:00Z",
            "2026-13-01T00:00Z",
            "2026-00-01T00:00Z",
            "2026-09-31T00:00Z",
            "2026-09-01T24:00Z",
            "2026-09-01T12:60Z",
            "2026-09-01T12:00:61Z",
            "2026-09-01T12:00+24:00",
            "2026-09-01T12:00+xx",
            "2026-09-01",
            "soon",
            "Mon, 32 Jan 2031 26:61:61 GMT",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
