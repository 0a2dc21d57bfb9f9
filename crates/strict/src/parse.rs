//! Scenarios from JSON.
//!
//! Every value is checked here and nowhere else; the first wrong field is named with its path, what was expected and
//! what was there. A scenario that parses cannot make the server panic or grow without bound.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use serde_json::{Map, Value};

use crate::scenario::{
    Algorithm, Anchor, Batch, Fault, FaultKind, FaultOn, ItemFailure, Limit, MAX_FAULTS, MAX_ITEMS,
    MAX_LATENCY_MS, MAX_LIMIT, MAX_OUTSIDE_PER_S, MAX_RULES, MAX_WINDOW_MS, Scenario, When,
};
use crate::words::Word;

/// The largest integer that JSON carries safely everywhere.
const MAX_SAFE: u64 = (1 << 53) - 1;

/// A field of a scenario that is not as it must be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("field {field}: expected {expected}, got {got}")]
pub struct BadField {
    /// Its path, as in `limits[0].algorithm`.
    pub field: String,
    /// What would have been right.
    pub expected: String,
    /// What was there, shortened.
    pub got: String,
}

type Parsed<T> = Result<T, BadField>;

impl Scenario {
    /// Makes a scenario from JSON, with defaults for what is not given.
    ///
    /// # Errors
    /// Names the first field that is unknown or has a wrong value.
    pub fn parse(value: &Value) -> Result<Self, BadField> {
        Self::default().patched(value)
    }

    /// Makes a scenario in which the given fields replace this one's.
    ///
    /// # Errors
    /// Names the first field that is unknown or has a wrong value.
    pub fn patched(&self, value: &Value) -> Result<Self, BadField> {
        let mut fields = Fields::of("", value)?;
        let mut next = self.clone();
        fields.set("limits", &mut next.limits, limits)?;
        fields.set("max_in_flight", &mut next.max_in_flight, |at, v| {
            optional(v, |v| integer(at, v, 1..=MAX_LIMIT))
        })?;
        fields.set("dialect", &mut next.dialect, word)?;
        fields.set("retry_after", &mut next.retry_after, |at, v| {
            optional(v, |v| word(at, v))
        })?;
        fields.set("latency_ms", &mut next.latency_ms, latency)?;
        fields.set("count_at", &mut next.count_at, word)?;
        fields.set("idempotency", &mut next.idempotency, boolean)?;
        fields.set("expose_headers", &mut next.expose_headers, boolean)?;
        fields.set("cors_on_refusals", &mut next.cors_on_refusals, boolean)?;
        fields.set("clock_skew_ms", &mut next.clock_skew_ms, skew)?;
        fields.set("outside_per_s", &mut next.outside_per_s, |at, v| {
            number(at, v, 0.0..=MAX_OUTSIDE_PER_S)
        })?;
        fields.set("cost", &mut next.cost, costs)?;
        fields.set("count_refused", &mut next.count_refused, boolean)?;
        fields.set("preflight", &mut next.preflight, word)?;
        fields.set("seed", &mut next.seed, |at, v| integer(at, v, 0..=MAX_SAFE))?;
        fields.set("authorization", &mut next.authorization, |at, v| {
            optional(v, |v| name(at, v))
        })?;
        fields.set("faults", &mut next.faults, |at, v| {
            list(at, v, MAX_FAULTS, fault)
        })?;
        fields.set("batch", &mut next.batch, |at, v| {
            optional(v, |v| batch(at, v))
        })?;
        fields.finish()?;
        Ok(next)
    }
}

fn limits(at: &str, value: &Value) -> Parsed<Vec<Limit>> {
    let mut limits = list(at, value, MAX_RULES, limit)?;
    for index in 1..limits.len() {
        let (before, rest) = limits.split_at_mut(index);
        if before.iter().any(|other| other.name == rest[0].name) {
            rest[0].name = format!("{}#{}", rest[0].name, index + 1);
        }
    }
    Ok(limits)
}

fn limit(at: &str, value: &Value) -> Parsed<Limit> {
    let mut fields = Fields::of(at, value)?;
    let limit = fields.need("limit", |at, v| integer(at, v, 1..=MAX_LIMIT))?;
    let window_ms = fields.need("window_ms", |at, v| integer(at, v, 1..=MAX_WINDOW_MS))?;
    let mut rule = Limit {
        name: format!("{limit}/{window_ms}ms"),
        limit,
        window_ms,
        algorithm: Algorithm::SlidingLog,
        refill_per_s: None,
        anchor: Anchor::Clock,
    };
    fields.set("name", &mut rule.name, name)?;
    fields.set("algorithm", &mut rule.algorithm, word)?;
    fields.set("refill_per_s", &mut rule.refill_per_s, |at, v| {
        optional(v, |v| number(at, v, 0.000_001..=1_000_000.0))
    })?;
    fields.set("anchor", &mut rule.anchor, word)?;
    fields.finish()?;
    Ok(rule)
}

fn fault(at: &str, value: &Value) -> Parsed<Fault> {
    let mut fields = Fields::of(at, value)?;
    let kind = fields.need("kind", word::<FaultKind>)?;
    let when = when(at, value, &mut fields)?;
    let mut fault = Fault {
        kind,
        when,
        on: FaultOn::Any,
        status: 500,
        retry_after_s: None,
        apply: None,
    };
    fields.set("on", &mut fault.on, word)?;
    if kind == FaultKind::Status {
        fault.status =
            u16::try_from(fields.need("status", |at, v| integer(at, v, 200..=599))?).unwrap_or(500);
        fields.set("retry_after_s", &mut fault.retry_after_s, |at, v| {
            optional(v, |v| integer(at, v, 0..=MAX_SAFE))
        })?;
    }
    fields.set("apply", &mut fault.apply, |at, v| {
        optional(v, |v| boolean(at, v))
    })?;
    fields.finish()?;
    Ok(fault)
}

fn batch(at: &str, value: &Value) -> Parsed<Batch> {
    let mut fields = Fields::of(at, value)?;
    let path = fields.need("path", |at, v| {
        let path = name(at, v)?;
        let is_path = path.starts_with('/') && !path.contains('?');
        is_path
            .then_some(path)
            .ok_or_else(|| bad(at, "a path that begins with /", v))
    })?;
    let max = fields.need("max", |at, v| integer(at, v, 1..=MAX_ITEMS))?;
    let mut batch = Batch {
        path,
        max: usize::try_from(max).unwrap_or(usize::MAX),
        fails: Vec::new(),
    };
    fields.set("fails", &mut batch.fails, |at, v| {
        list(at, v, MAX_FAULTS, item_failure)
    })?;
    fields.finish()?;
    Ok(batch)
}

fn item_failure(at: &str, value: &Value) -> Parsed<ItemFailure> {
    let mut fields = Fields::of(at, value)?;
    let every = fields.need("every", |at, v| integer(at, v, 1..=MAX_SAFE))?;
    let status = fields.need("status", |at, v| integer(at, v, 300..=599))?;
    fields.finish()?;
    Ok(ItemFailure {
        every,
        status: u16::try_from(status).unwrap_or(500),
    })
}

fn when(at: &str, value: &Value, fields: &mut Fields<'_>) -> Parsed<When> {
    let nth = fields.maybe("nth", |at, v| integer(at, v, 1..=MAX_SAFE))?;
    let every = fields.maybe("every", |at, v| integer(at, v, 1..=MAX_SAFE))?;
    let rate = fields.maybe("rate", |at, v| number(at, v, 0.0..=1.0))?;
    match (nth, every, rate) {
        (Some(nth), None, None) => Ok(When::Nth(nth)),
        (None, Some(every), None) => Ok(When::Every(every)),
        (None, None, Some(rate)) => {
            let seed = fields.maybe("seed", |at, v| integer(at, v, 0..=MAX_SAFE))?;
            Ok(When::Rate {
                rate,
                seed: seed.unwrap_or(1),
            })
        }
        _ => Err(bad(at, "exactly one of nth, every, rate", value)),
    }
}

fn name(at: &str, value: &Value) -> Parsed<String> {
    let fits = |text: &&str| {
        (1..=64).contains(&text.len()) && text.bytes().all(|b| (b' '..=b'~').contains(&b))
    };
    let text = value
        .as_str()
        .filter(fits)
        .filter(|text| !text.contains(['"', '\\']));
    text.map(str::to_owned).ok_or_else(|| {
        bad(
            at,
            "1 to 64 printable ASCII characters without quotes",
            value,
        )
    })
}

fn latency(at: &str, value: &Value) -> Parsed<[u64; 2]> {
    let expected = || bad(at, "[lo, hi] in ms with lo <= hi", value);
    let [lo, hi] = value.as_array().map(Vec::as_slice).ok_or_else(expected)? else {
        return Err(expected());
    };
    let lo = integer(&format!("{at}[0]"), lo, 0..=MAX_LATENCY_MS)?;
    let hi = integer(&format!("{at}[1]"), hi, 0..=MAX_LATENCY_MS)?;
    if lo <= hi {
        Ok([lo, hi])
    } else {
        Err(expected())
    }
}

fn skew(at: &str, value: &Value) -> Parsed<i64> {
    const YEAR_MS: i64 = 366 * 86_400_000;
    let fits = |skew: &i64| (-YEAR_MS..=YEAR_MS).contains(skew);
    value
        .as_i64()
        .filter(fits)
        .ok_or_else(|| bad(at, "a whole number of ms within a year of 0", value))
}

fn costs(at: &str, value: &Value) -> Parsed<BTreeMap<String, u64>> {
    let map = value
        .as_object()
        .ok_or_else(|| bad(at, "an object of method to units", value))?;
    if map.len() > 32 {
        return Err(bad(at, "at most 32 methods", value));
    }
    map.iter()
        .map(|(method, units)| cost(&format!("{at}.{method}"), method, units))
        .collect()
}

fn cost(at: &str, method: &str, units: &Value) -> Parsed<(String, u64)> {
    let is_method = (1..=32).contains(&method.len())
        && method.bytes().all(|b| b.is_ascii_uppercase() || b == b'-');
    if !is_method {
        return Err(bad(at, "a method in capitals", &Value::from(method)));
    }
    Ok((method.to_owned(), integer(at, units, 0..=MAX_LIMIT)?))
}

fn integer(at: &str, value: &Value, range: RangeInclusive<u64>) -> Parsed<u64> {
    let expected = || format!("a whole number from {} to {}", range.start(), range.end());
    value
        .as_u64()
        .filter(|n| range.contains(n))
        .ok_or_else(|| bad(at, &expected(), value))
}

fn number(at: &str, value: &Value, range: RangeInclusive<f64>) -> Parsed<f64> {
    let expected = || format!("a number from {} to {}", range.start(), range.end());
    value
        .as_f64()
        .filter(|n| range.contains(n))
        .ok_or_else(|| bad(at, &expected(), value))
}

fn boolean(at: &str, value: &Value) -> Parsed<bool> {
    value
        .as_bool()
        .ok_or_else(|| bad(at, "true or false", value))
}

fn word<T: Word>(at: &str, value: &Value) -> Parsed<T> {
    let all = || {
        T::ALL
            .iter()
            .map(|(word, _)| *word)
            .collect::<Vec<_>>()
            .join(", ")
    };
    value
        .as_str()
        .and_then(T::from_word)
        .ok_or_else(|| bad(at, &format!("one of {}", all()), value))
}

fn optional<T>(value: &Value, parse: impl FnOnce(&Value) -> Parsed<T>) -> Parsed<Option<T>> {
    if value.is_null() {
        Ok(None)
    } else {
        parse(value).map(Some)
    }
}

fn list<T>(
    at: &str,
    value: &Value,
    most: usize,
    parse: impl Fn(&str, &Value) -> Parsed<T>,
) -> Parsed<Vec<T>> {
    let items = value.as_array().filter(|items| items.len() <= most);
    let items = items.ok_or_else(|| bad(at, &format!("a list of at most {most}"), value))?;
    items
        .iter()
        .enumerate()
        .map(|(index, item)| parse(&format!("{at}[{index}]"), item))
        .collect()
}

fn bad(field: &str, expected: &str, got: &Value) -> BadField {
    let field = if field.is_empty() {
        "(the whole scenario)"
    } else {
        field
    };
    let mut shown = got.to_string();
    if shown.len() > 80 {
        shown = shown.chars().take(77).chain("...".chars()).collect();
    }
    BadField {
        field: field.to_owned(),
        expected: expected.to_owned(),
        got: shown,
    }
}

/// The fields of one JSON object; those that nobody asked for are errors.
struct Fields<'a> {
    path: &'a str,
    map: &'a Map<String, Value>,
    known: Vec<&'static str>,
}

impl<'a> Fields<'a> {
    fn of(path: &'a str, value: &'a Value) -> Parsed<Self> {
        let map = value
            .as_object()
            .ok_or_else(|| bad(path, "an object", value))?;
        Ok(Self {
            path,
            map,
            known: Vec::new(),
        })
    }

    fn at(&self, name: &str) -> String {
        if self.path.is_empty() {
            name.to_owned()
        } else {
            format!("{}.{name}", self.path)
        }
    }

    fn maybe<T>(
        &mut self,
        name: &'static str,
        parse: impl FnOnce(&str, &Value) -> Parsed<T>,
    ) -> Parsed<Option<T>> {
        self.known.push(name);
        self.map
            .get(name)
            .map(|value| parse(&self.at(name), value))
            .transpose()
    }

    fn set<T>(
        &mut self,
        name: &'static str,
        slot: &mut T,
        parse: impl FnOnce(&str, &Value) -> Parsed<T>,
    ) -> Parsed<()> {
        if let Some(value) = self.maybe(name, parse)? {
            *slot = value;
        }
        Ok(())
    }

    fn need<T>(
        &mut self,
        name: &'static str,
        parse: impl FnOnce(&str, &Value) -> Parsed<T>,
    ) -> Parsed<T> {
        let value = self.map.get(name).unwrap_or(&Value::Null);
        self.known.push(name);
        parse(&self.at(name), value)
    }

    fn finish(self) -> Parsed<()> {
        let Some((name, value)) = self
            .map
            .iter()
            .find(|(name, _)| !self.known.contains(&name.as_str()))
        else {
            return Ok(());
        };
        Err(bad(
            &self.at(name),
            &format!("no such field; known are {}", self.known.join(", ")),
            value,
        ))
    }
}

#[cfg(test)]
#[path = "parse/tests.rs"]
mod tests;
