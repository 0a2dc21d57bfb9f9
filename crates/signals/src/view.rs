//! One response as a dialect sees it: headers by name, the body as JSON, the server's clock.
//!
//! Invariant: a header that is there and cannot be read is absent and counted; a wait above [`MAX_WAIT_MS`] is cut to it
//! and marked; nothing longer than [`MAX_HEADER_BYTES`] is looked into.

use std::cell::Cell;

use paceline_core::time::Wall;

use crate::date::parse_date;
use crate::json::Value;
use crate::number::{duration, millis, units, units_left};
use crate::{Response, Told};

/// The longest wait that is believed: a year. What asks for more is cut to it, and marked.
pub const MAX_WAIT_MS: u64 = 366 * 86_400_000;
/// The longest header that is read, in bytes.
pub const MAX_HEADER_BYTES: usize = 8 * 1024;
/// The longest beginning of a body that is read, in bytes.
pub const MAX_BODY_BYTES: usize = 16 * 1024;

/// A `Date` outside of these is no clock: 2015 and 2100.
const PLAUSIBLE_MS: std::ops::Range<u64> = 1_420_070_400_000..4_102_444_800_000;

/// What the value of a reset means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reset {
    /// Told by its size and shape.
    Auto,
    /// Seconds from now.
    Seconds,
    /// Milliseconds from now; never told by size.
    Millis,
    /// Seconds since 1970.
    EpochSeconds,
    /// Milliseconds since 1970.
    EpochMillis,
    /// Text with units.
    Duration,
    /// A date.
    Date,
}

impl Reset {
    /// Tells whether a value may have this meaning; naming a dialect narrows it, and never makes nonsense of a number.
    fn fits(self, shape: Self) -> bool {
        self == Self::Auto || self == shape
    }
}

pub(crate) struct View<'a> {
    pub(crate) status: u16,
    pub(crate) method: &'a str,
    pub(crate) url: &'a str,
    /// The beginning of the body.
    pub(crate) text: &'a str,
    /// The same as JSON; null where it is none.
    pub(crate) body: Value<'a>,
    pub(crate) headers: &'a [(String, String)],
    /// What a function of the app has read.
    pub(crate) told: Option<&'a Told>,
    /// The server's clock where it can be seen, else ours.
    pub(crate) now: Wall,
    pub(crate) unreadable: Cell<u32>,
    pub(crate) is_cut: Cell<bool>,
}

impl<'a> View<'a> {
    pub(crate) fn new(response: &Response<'a>, now: Wall) -> Self {
        let text = beginning(response.text.unwrap_or(""), MAX_BODY_BYTES);
        let mut view = Self {
            status: response.status,
            method: response.method,
            url: response.url,
            text,
            body: Value::read(text).unwrap_or(Value::Null),
            headers: response.headers,
            told: response.told,
            now,
            unreadable: Cell::new(response.told.map_or(0, |told| told.unreadable)),
            is_cut: Cell::new(false),
        };
        let date = view.parsed("", "date", |text| {
            parse_date(text).filter(|date| PLAUSIBLE_MS.contains(&date.as_millis()))
        });
        view.now = date.unwrap_or(now);
        view
    }

    /// Tells whether there is a header of that name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.raw("", name).is_some()
    }

    /// Tells whether there is a header whose name begins so.
    pub(crate) fn has_prefix(&self, prefix: &str) -> bool {
        self.headers
            .iter()
            .any(|(name, _)| suffix(name, prefix).is_some())
    }

    /// Returns the value of a header, without the blanks around it; an empty or overlong one is absent.
    pub(crate) fn header(&self, name: &str) -> Option<&'a str> {
        self.raw("", name)
            .filter(|value| value.len() <= MAX_HEADER_BYTES)
            .map(str::trim)
            .filter(|value| !value.is_empty())
    }

    /// Reads a number of units; of several, as a gateway and an origin write them, the first.
    pub(crate) fn units(&self, prefix: &str, name: &str) -> Option<u64> {
        self.parsed(prefix, name, |text| {
            units(text).or_else(|| units(text.split([',', ';']).next()?))
        })
    }

    /// Reads what is left; of several the least.
    pub(crate) fn units_left(&self, prefix: &str, name: &str) -> Option<u64> {
        self.parsed(prefix, name, |text| {
            if text == "-1" {
                return Some(None);
            }
            let items = text
                .split(',')
                .map(|item| item.split(';').next().and_then(units_left));
            items
                .collect::<Option<Vec<u64>>>()?
                .into_iter()
                .min()
                .map(Some)
        })
        .flatten()
    }

    /// Reads how long until an instant.
    pub(crate) fn reset(&self, prefix: &str, name: &str, reset: Reset) -> Option<u64> {
        self.parsed(prefix, name, |text| reset_in(text, reset, self.now))
            .map(|wait| self.bounded(wait))
    }

    /// Reads a wait of `unit_ms` each.
    pub(crate) fn wait(&self, prefix: &str, name: &str, unit_ms: u64) -> Option<u64> {
        self.parsed(prefix, name, |text| millis(text, unit_ms))
            .map(|wait| self.bounded(wait))
    }

    /// Reads a wait of `unit_ms` each from a body.
    pub(crate) fn body_wait(&self, value: &Value<'_>, unit_ms: u64) -> Option<u64> {
        let text = value.text()?;
        let wait = self.counted(millis(text, unit_ms));
        wait.map(|wait| self.bounded(wait))
    }

    /// Reads a number of units from a body.
    pub(crate) fn body_units(&self, value: &Value<'_>) -> Option<u64> {
        let text = value.text()?;
        self.counted(units_left(text))
    }

    /// Reads a header with `parse`. One that is there and gives nothing is counted.
    pub(crate) fn parsed<T>(
        &self,
        prefix: &str,
        name: &str,
        parse: impl FnOnce(&'a str) -> Option<T>,
    ) -> Option<T> {
        let value = self.raw(prefix, name)?;
        if value.len() > MAX_HEADER_BYTES {
            return self.counted(None);
        }
        self.counted(parse(value.trim()))
    }

    /// Passes a result on, and counts that there is none.
    pub(crate) fn counted<T>(&self, read: Option<T>) -> Option<T> {
        if read.is_none() {
            self.unreadable.set(self.unreadable.get().saturating_add(1));
        }
        read
    }

    /// Cuts a wait to what is believed.
    pub(crate) fn bounded(&self, wait_ms: u64) -> u64 {
        if wait_ms > MAX_WAIT_MS {
            self.is_cut.set(true);
        }
        wait_ms.min(MAX_WAIT_MS)
    }

    /// Tells whether a header of that name in two parts is there.
    pub(crate) fn has_named(&self, prefix: &str, name: &str) -> bool {
        self.raw(prefix, name).is_some()
    }

    fn raw(&self, prefix: &str, name: &str) -> Option<&'a str> {
        let headers = self.headers.iter();
        let mut named = headers.filter(|(other, _)| {
            suffix(other, prefix).is_some_and(|rest| rest.eq_ignore_ascii_case(name))
        });
        named.next().map(|(_, value)| value.as_str())
    }
}

/// Returns the rest of a name that begins so, in any case.
pub(crate) fn suffix<'n>(name: &'n str, prefix: &str) -> Option<&'n str> {
    let (start, rest) = name.split_at_checked(prefix.len())?;
    start.eq_ignore_ascii_case(prefix).then_some(rest)
}

/// Returns the beginning of a text, cut between characters.
pub(crate) fn beginning(text: &str, bytes: usize) -> &str {
    let mut end = text.len().min(bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Reads how long until an instant that is written in one of the ways of [`Reset`].
///
/// The magnitude tells seconds from instants: nobody waits 31 years, and no clock stands in the year 1970 or 5138.
fn reset_in(text: &str, reset: Reset, now: Wall) -> Option<u64> {
    const FROM_EPOCH_S: u64 = 1_000_000_000;
    const FROM_EPOCH_MS: u64 = 100_000_000_000;
    const TO_EPOCH_MS: u64 = 100_000_000_000_000;
    if reset == Reset::Millis {
        return millis(text, 1);
    }
    if let Some(whole) = units(text) {
        let (shape, unit_ms) = match whole {
            0..FROM_EPOCH_S => (Reset::Seconds, 1_000),
            FROM_EPOCH_S..FROM_EPOCH_MS => (Reset::EpochSeconds, 1_000),
            FROM_EPOCH_MS..TO_EPOCH_MS => (Reset::EpochMillis, 1),
            _ => return None,
        };
        let value = millis(text, unit_ms).filter(|_| reset.fits(shape))?;
        let is_instant = shape != Reset::Seconds;
        return Some(if is_instant {
            Wall::from_millis(value).since(now)
        } else {
            value
        });
    }
    if let Some(wait) = duration(text) {
        return reset.fits(Reset::Duration).then_some(wait);
    }
    let date = parse_date(text)?;
    reset.fits(Reset::Date).then(|| date.since(now))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Wall = Wall::from_millis(1_788_264_000_000);

    #[test]
    fn the_magnitude_tells_seconds_from_instants() {
        let auto = |text| reset_in(text, Reset::Auto, NOW);

        assert_eq!(auto("60"), Some(60_000));
        assert_eq!(auto("1788264007.250"), Some(7_250));
        assert_eq!(auto("1788264060000"), Some(60_000));
        assert_eq!(auto("6m0s"), Some(360_000));
        assert_eq!(auto("2026-09-01T12:00:02Z"), Some(2_000));
        assert_eq!(auto("1788263000"), Some(0));
        for garbage in ["", "-5", "soon", "nan", "99999999999999999999"] {
            assert_eq!(auto(garbage), None, "{garbage}");
        }
    }

    #[test]
    fn a_value_of_another_kind_than_the_dialect_names_is_none() {
        assert_eq!(reset_in("60", Reset::EpochSeconds, NOW), None);
        assert_eq!(reset_in("1788264060", Reset::Seconds, NOW), None);
        assert_eq!(
            reset_in("1788264060", Reset::EpochSeconds, NOW),
            Some(60_000)
        );
    }
}
