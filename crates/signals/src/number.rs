//! Numbers and durations as servers write them, in integers only.
//!
//! Invariant: digits, with at most one point, and nothing else make a number; a sign, an exponent, a word, or more than
//! fits are none. Waits are rounded up, units that are left are rounded down.

/// A decimal number: its whole part, and billionths.
type Decimal = (u64, u64);

const BILLION: u64 = 1_000_000_000;

/// Reads `12`, `1.5` and `587.0`.
fn decimal(text: &str) -> Option<Decimal> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_digits(whole) || !is_digits(fraction) {
        return None;
    }
    let mut billionths = 0;
    let mut place = BILLION / 10;
    for (index, digit) in fraction
        .bytes()
        .map(|byte| u64::from(byte - b'0'))
        .enumerate()
    {
        if index >= 9 {
            // What is too small to count still makes a wait longer than none.
            billionths += u64::from(digit > 0 && billionths % 10 == 0);
            continue;
        }
        billionths += digit * place;
        place /= 10;
    }
    Some((whole.parse().ok()?, billionths))
}

/// Reads a number of units, rounded down.
pub(crate) fn units(text: &str) -> Option<u64> {
    decimal(text.trim()).map(|(whole, _)| whole)
}

/// Reads what is left: a limiter that counted past zero leaves nothing. -1 means unknown (Azure OpenAI).
pub(crate) fn units_left(text: &str) -> Option<u64> {
    let text = text.trim();
    match text.strip_prefix('-') {
        Some("1") | None => units(text),
        Some(below) => units(below).map(|_| 0),
    }
}

/// Reads a number of `unit_ms` each as milliseconds, rounded up.
pub(crate) fn millis(text: &str, unit_ms: u64) -> Option<u64> {
    let (whole, billionths) = decimal(text.trim())?;
    let part = billionths.saturating_mul(unit_ms).div_ceil(BILLION);
    whole.checked_mul(unit_ms)?.checked_add(part)
}

/// Reads a duration with units: `6m0s`, `1.44s`, `250ms` (Go's `time.Duration`), `5s` (protobuf's JSON).
pub(crate) fn duration(text: &str) -> Option<u64> {
    let mut rest = text.trim();
    let mut total: u64 = 0;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let number = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let after = &rest[number..];
        let unit = after
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(after.len());
        total = total.checked_add(duration_part(&rest[..number], &after[..unit])?)?;
        rest = &after[unit..];
    }
    Some(total)
}

fn duration_part(number: &str, unit: &str) -> Option<u64> {
    let unit_ms = match unit {
        "ns" | "us" | "µs" => {
            let (whole, part) = decimal(number)?;
            let per_ms = if unit == "ns" { 1_000_000 } else { 1_000 };
            return whole
                .checked_add(u64::from(part > 0))
                .map(|count| count.div_ceil(per_ms));
        }
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    millis(number, unit_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_digits_and_at_most_one_point() {
        assert_eq!(units("587.0"), Some(587));
        assert_eq!(millis("1.5", 1_000), Some(1_500));
        for garbage in [
            "", ".", ".5", "1e3", "+5", "-5", "0x10", "nan", "inf", "1.2.3", "1 2", "１",
        ] {
            assert_eq!(units(garbage), None, "{garbage}");
        }
    }

    #[test]
    fn what_does_not_fit_is_no_number() {
        assert_eq!(units(&"9".repeat(35)), None);
        assert_eq!(millis("18446744073709551615", 1_000), None);
    }

    #[test]
    fn a_wait_is_rounded_up_and_never_to_nothing() {
        assert_eq!(millis("0.0001", 1_000), Some(1));
        assert_eq!(millis("0.00000000000000001", 1_000), Some(1));
        assert_eq!(millis("0", 1_000), Some(0));
        assert_eq!(duration("17ns"), Some(1));
    }

    #[test]
    fn less_than_nothing_is_nothing_left_and_minus_one_unknown() {
        assert_eq!(units_left("-3"), Some(0));
        assert_eq!(units_left("-1"), None);
        assert_eq!(units_left("-soon"), None);
    }

    #[test]
    fn reads_durations_with_units() {
        assert_eq!(duration("6m0s"), Some(360_000));
        assert_eq!(duration("1.44s"), Some(1_440));
        assert_eq!(duration("1h2m3.5s"), Some(3_723_500));
        assert_eq!(duration("250ms"), Some(250));
        for garbage in ["", "5", "s", "5x", "5s5", "1..5s"] {
            assert_eq!(duration(garbage), None, "{garbage}");
        }
    }
}
