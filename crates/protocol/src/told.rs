//! What an app's own function says of an answer, as the worker took it out: plain values of any kind and size.
//!
//! Owns their bounds. Invariant: what is not as expected counts as absent, is counted, and makes an error that names its
//! field; nothing makes an answer unusable.

use std::collections::BTreeMap;

use paceline_core::config::MAX_WINDOW_MS;
use paceline_core::signals::{BudgetSignal, MAX_BUDGETS};
use paceline_signals::{MAX_WAIT_MS, Told};
use serde::Deserialize;

use crate::error::{Code, WireError};

/// What a call came to: a value, or why there is none.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct ToldMessage {
    /// What it returned.
    #[serde(default)]
    pub value: Loose,
    /// Why nothing can be made of it: it threw, or returned a promise.
    #[serde(default)]
    pub fault: Option<String>,
}

/// A plain value of any kind.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Loose {
    /// `true` or `false`.
    Flag(bool),
    /// A number.
    Number(f64),
    /// A text.
    Text(String),
    /// An array.
    List(Vec<Loose>),
    /// An object.
    Fields(BTreeMap<String, Loose>),
    /// `null` or `undefined`.
    #[default]
    Nothing,
}

const FORM: &str =
    "null, or an object such as { isRateLimited: true, retryAfterMs: 2000, budgets: [] }";
const FIELD: &str =
    "one of isRateLimited, retryAfterMs, budgets, cost, concurrency, retryable, estimated";
const BUDGET_FIELD: &str = "one of scope, limit, remaining, resetInMs, windowMs";
const BUDGETS: &str = "up to 16 objects such as { limit: 100, remaining: 12, resetInMs: 3000 }";
/// The most units, and the longest name of a scope, that are believed.
const MAX_UNITS: u64 = 1_000_000_000_000;
const MAX_SCOPE_BYTES: usize = 100;

impl ToldMessage {
    /// Reads what the function of that name said, and all that is wrong with it.
    pub fn parse(&self, name: &str) -> (Told, Vec<WireError>) {
        let mut reader = Reader::default();
        let path = format!("dialects.{name}");
        let mut told = Told::default();
        match (&self.fault, &self.value) {
            (Some(fault), _) => reader.wrong(&path, FORM, fault),
            (None, Loose::Nothing) => {}
            (None, Loose::Fields(fields)) => {
                for (field, value) in fields {
                    reader.field(&mut told, &path, field, value);
                }
            }
            (None, other) => reader.wrong(&path, FORM, &other.shown()),
        }
        told.unreadable = u32::try_from(reader.errors.len()).unwrap_or(u32::MAX);
        (told, reader.errors)
    }
}

impl Loose {
    const fn as_flag(&self) -> Option<bool> {
        if let Self::Flag(flag) = self {
            Some(*flag)
        } else {
            None
        }
    }

    const fn as_number(&self) -> Option<f64> {
        if let Self::Number(number) = self {
            Some(*number)
        } else {
            None
        }
    }

    fn as_text(&self) -> Option<&str> {
        if let Self::Text(text) = self {
            Some(text)
        } else {
            None
        }
    }

    fn as_list(&self) -> Option<&[Self]> {
        if let Self::List(list) = self {
            Some(list)
        } else {
            None
        }
    }

    const fn as_fields(&self) -> Option<&BTreeMap<String, Self>> {
        if let Self::Fields(fields) = self {
            Some(fields)
        } else {
            None
        }
    }

    fn shown(&self) -> String {
        match self {
            Self::Flag(flag) => flag.to_string(),
            Self::Number(number) => number.to_string(),
            Self::Text(text) => format!("\"{text}\""),
            Self::List(_) => "an array".to_owned(),
            Self::Fields(_) => "an object".to_owned(),
            Self::Nothing => "nothing".to_owned(),
        }
    }
}

/// Reads values, and keeps what is wrong with them.
#[derive(Debug, Default)]
struct Reader {
    errors: Vec<WireError>,
}

impl Reader {
    fn field(&mut self, told: &mut Told, path: &str, field: &str, value: &Loose) {
        let at = &format!("{path}.{field}");
        match field {
            "isRateLimited" => told.is_rate_limited = self.flag(at, value),
            "retryAfterMs" => told.retry_after_ms = self.millis(at, value, 0..=MAX_WAIT_MS),
            "budgets" => told.budgets = self.budgets(at, value),
            "cost" => told.cost = self.count(at, value, 0),
            "concurrency" => told.concurrency = self.count(at, value, 1),
            "retryable" => told.is_retryable = self.flag(at, value),
            "estimated" => told.is_estimate = self.flag(at, value).unwrap_or(false),
            _ => self.wrong(at, FIELD, &value.shown()),
        }
    }

    fn budgets(&mut self, path: &str, value: &Loose) -> Vec<BudgetSignal> {
        let list = value.as_list().filter(|list| list.len() <= MAX_BUDGETS);
        let list = self.take(path, value, BUDGETS, list).unwrap_or_default();
        let read = list.iter().enumerate().filter_map(|(index, budget)| {
            let at = format!("{path}[{index}]");
            let fields = self.take(&at, budget, "an object", budget.as_fields())?;
            let mut signal = BudgetSignal::default();
            for (field, value) in fields {
                self.budget_field(&mut signal, &at, field, value);
            }
            Some(signal)
        });
        read.collect()
    }

    fn budget_field(&mut self, signal: &mut BudgetSignal, path: &str, field: &str, value: &Loose) {
        let at = &format!("{path}.{field}");
        match field {
            "scope" => signal.scope = self.scope(at, value),
            "limit" => signal.limit = self.units(at, value, 0..=MAX_UNITS),
            "remaining" => signal.remaining = self.units(at, value, 0..=MAX_UNITS),
            "resetInMs" => signal.reset_in_ms = self.millis(at, value, 0..=MAX_WAIT_MS),
            "windowMs" => signal.window_ms = self.millis(at, value, 1..=MAX_WINDOW_MS),
            _ => self.wrong(at, BUDGET_FIELD, &value.shown()),
        }
    }

    fn flag(&mut self, path: &str, value: &Loose) -> Option<bool> {
        self.take(path, value, "true or false", value.as_flag())
    }

    fn scope(&mut self, path: &str, value: &Loose) -> Option<String> {
        let scope = value.as_text();
        let scope = scope.filter(|scope| (1..=MAX_SCOPE_BYTES).contains(&scope.len()));
        let scope = self.take(path, value, "a text of 1 to 100 bytes", scope);
        scope.map(str::to_owned)
    }

    fn count(&mut self, path: &str, value: &Loose, least: u64) -> Option<u32> {
        let count = self.units(path, value, least..=u64::from(u32::MAX))?;
        u32::try_from(count).ok()
    }

    /// Reads units; a part of one is none.
    fn units(
        &mut self,
        path: &str,
        value: &Loose,
        range: std::ops::RangeInclusive<u64>,
    ) -> Option<u64> {
        self.number(path, value, range, f64::floor)
    }

    /// Reads milliseconds; a part of one is a whole one.
    fn millis(
        &mut self,
        path: &str,
        value: &Loose,
        range: std::ops::RangeInclusive<u64>,
    ) -> Option<u64> {
        self.number(path, value, range, f64::ceil)
    }

    fn number(
        &mut self,
        path: &str,
        value: &Loose,
        range: std::ops::RangeInclusive<u64>,
        round: fn(f64) -> f64,
    ) -> Option<u64> {
        let number = value.as_number().and_then(|number| whole(number, round));
        let number = number.filter(|number| range.contains(number));
        let expected = format!("a number from {} to {}", range.start(), range.end());
        self.take(path, value, &expected, number)
    }

    /// Passes on what was made of a value; where it is there and nothing was made of it, that is wrong.
    fn take<T>(&mut self, path: &str, value: &Loose, expected: &str, made: Option<T>) -> Option<T> {
        if made.is_none() && *value != Loose::Nothing {
            self.wrong(path, expected, &value.shown());
        }
        made
    }

    fn wrong(&mut self, path: &str, expected: &str, got: &str) {
        let error = WireError::field(Code::BadJob, path, expected, got);
        self.errors.push(error);
    }
}

/// Rounds a number that is at least 0; none that is not finite or more than can be counted.
fn whole(number: f64, round: fn(f64) -> f64) -> Option<u64> {
    // 2^53: above it a number of JavaScript is no count.
    let is_count = number.is_finite() && (0.0..=9_007_199_254_740_992.0).contains(&number);
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a whole number from 0 to 2^53"
    )]
    is_count.then(|| round(number) as u64)
}

#[cfg(test)]
#[path = "told/tests.rs"]
mod tests;
