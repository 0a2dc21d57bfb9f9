//! How a budget's server writes its signals: the name of a known dialect, which header says what, or `worker:NAME`, a
//! function in the app's own worker.
//!
//! Invariant: what is declared is read within bounds or refused with the name of its field; a declaration that says
//! nothing is refused, because nobody means that.

use std::sync::Arc;

use paceline_core::config::{MAX_WINDOW_MS, parse_window};
use paceline_signals::{AnyDialect, Dialect, Kind, OwnDialect, Timed, Window};
use serde::Deserialize;

use crate::budget::{is_header_name, whole};
use crate::error::{Code, WireError};

/// A known dialect by its name, a function of the app's worker as `worker:NAME`, or an app's own table.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(untagged)]
pub enum DialectMessage {
    /// The name, `auto`, or `worker:NAME`.
    Name(String),
    /// Which header says what.
    Own(Box<OwnDialectMessage>),
}

/// Which header says what; names in any case.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields = nullable))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OwnDialectMessage {
    /// Units in a window.
    #[serde(default)]
    pub limit: Option<String>,
    /// Units left.
    #[serde(default)]
    pub remaining: Option<String>,
    /// Units used.
    #[serde(default)]
    pub used: Option<String>,
    /// When the window starts anew.
    #[serde(default)]
    pub reset: Option<TimedMessage>,
    /// How long to wait after a refusal; wins over `Retry-After`.
    #[serde(default)]
    pub retry_after: Option<TimedMessage>,
    /// What the request has cost.
    #[serde(default)]
    pub cost: Option<String>,
    /// The window.
    #[serde(default)]
    pub window: Option<OwnWindowMessage>,
    /// What the server calls the limit.
    #[serde(default)]
    pub scope: Option<String>,
}

/// A header that tells a time: its name, or that and how it is written.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(untagged)]
pub enum TimedMessage {
    /// The name; how it is written is told by shape and magnitude.
    Name(String),
    /// Both.
    Parts {
        /// The name.
        header: String,
        /// `delta-seconds`, `delta-ms`, `epoch-seconds`, `epoch-ms`, `http-date`, `iso-date`, `duration` or `auto`.
        #[serde(default)]
        #[cfg_attr(test, ts(optional = nullable))]
        kind: Option<String>,
    },
}

/// A window: in a header, as text or in milliseconds.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(untagged)]
pub enum OwnWindowMessage {
    /// Milliseconds.
    Millis(f64),
    /// Text such as `10s`.
    Text(String),
    /// A header.
    Told {
        /// Its name.
        header: String,
        /// `delta-seconds`, `delta-ms` or `duration`.
        #[serde(default)]
        #[cfg_attr(test, ts(optional = nullable))]
        kind: Option<String>,
    },
}

/// What the name of a function begins with; no known dialect has a colon in its name.
const WORKER: &str = "worker:";
/// The longest name of a function.
const MAX_NAME: usize = 64;
const HEADER: &str = "a header name";
const WINDOW: &str = "a window such as \"10s\", milliseconds, or a header, of at most 31 days";
const WINDOW_KINDS: [Kind; 3] = [Kind::DeltaSeconds, Kind::DeltaMillis, Kind::Duration];

/// Parses the dialect of a budget; `auto` if absent.
///
/// # Errors
/// Names the field that is not as expected; for a name, with those that are there.
pub(crate) fn parse_dialect(
    message: Option<&DialectMessage>,
    path: &str,
) -> Result<AnyDialect, WireError> {
    match message {
        None => Ok(AnyDialect::default()),
        Some(DialectMessage::Name(name)) => match name.strip_prefix(WORKER) {
            Some(function) => defined(function, path),
            None => named(name, path).map(AnyDialect::from),
        },
        Some(DialectMessage::Own(own)) => parse_own(own, path).map(AnyDialect::from),
    }
}

/// Reads the name of a function; only the host knows whether there is one.
fn defined(name: &str, path: &str) -> Result<AnyDialect, WireError> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    if (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(is_plain) {
        return Ok(AnyDialect::Defined(Arc::from(name)));
    }
    let expected = "worker: and a name of 1 to 64 letters, digits, -, _ and .";
    Err(WireError::field(Code::BadJob, path, expected, name))
}

fn named(name: &str, path: &str) -> Result<Dialect, WireError> {
    Dialect::named(name).ok_or_else(|| {
        let names: Vec<&str> = Dialect::names().collect();
        let expected = format!("a dialect: {}", names.join(", "));
        WireError::field(Code::BadJob, path, expected, name)
    })
}

fn parse_own(message: &OwnDialectMessage, path: &str) -> Result<OwnDialect, WireError> {
    let header = |field: &str, name: &Option<String>| {
        let name = name.as_deref();
        name.map(|name| header_name(name, &format!("{path}.{field}")))
            .transpose()
    };
    let timed = |field: &str, message: &Option<TimedMessage>| {
        let message = message.as_ref();
        message
            .map(|message| parse_timed(message, &format!("{path}.{field}")))
            .transpose()
    };
    let window = message.window.as_ref();
    let own = OwnDialect {
        limit: header("limit", &message.limit)?,
        remaining: header("remaining", &message.remaining)?,
        used: header("used", &message.used)?,
        reset: timed("reset", &message.reset)?,
        retry_after: timed("retryAfter", &message.retry_after)?,
        cost: header("cost", &message.cost)?,
        window: window
            .map(|window| parse_own_window(window, &format!("{path}.window")))
            .transpose()?,
        scope: header("scope", &message.scope)?,
    };
    if own == OwnDialect::default() {
        let expected = "a dialect's name, or headers such as { remaining: \"X-Left\" }";
        return Err(WireError::field(Code::BadJob, path, expected, "nothing"));
    }
    Ok(own)
}

fn header_name(name: &str, path: &str) -> Result<String, WireError> {
    if is_header_name(name) {
        return Ok(name.to_owned());
    }
    Err(WireError::field(Code::BadJob, path, HEADER, name))
}

fn parse_timed(message: &TimedMessage, path: &str) -> Result<Timed, WireError> {
    match message {
        TimedMessage::Name(name) => {
            let (header, kind) = (header_name(name, path)?, Kind::Auto);
            Ok(Timed { header, kind })
        }
        TimedMessage::Parts { header, kind } => {
            let kind = kind.as_deref();
            told(header, kind, Kind::Auto, &Kind::ALL, path)
        }
    }
}

/// Reads a header and its kind, which is one of `allowed`.
fn told(
    header: &str,
    kind: Option<&str>,
    default: Kind,
    allowed: &[Kind],
    path: &str,
) -> Result<Timed, WireError> {
    let bad = |name: &str| {
        let names: Vec<&str> = allowed.iter().map(|kind| kind.as_str()).collect();
        let expected = format!("a kind: {}", names.join(", "));
        WireError::field(Code::BadJob, format!("{path}.kind"), expected, name)
    };
    let parse = |name: &str| {
        let kind = Kind::parse(name).filter(|kind| allowed.contains(kind));
        kind.ok_or_else(|| bad(name))
    };
    let kind = kind.map(parse).transpose()?.unwrap_or(default);
    let header = header_name(header, &format!("{path}.header"))?;
    Ok(Timed { header, kind })
}

fn parse_own_window(message: &OwnWindowMessage, path: &str) -> Result<Window, WireError> {
    let window_ms = match message {
        OwnWindowMessage::Millis(millis) => whole(*millis),
        OwnWindowMessage::Text(text) => parse_window(text),
        OwnWindowMessage::Told { header, kind } => {
            let kind = kind.as_deref();
            let told = told(header, kind, Kind::DeltaSeconds, &WINDOW_KINDS, path)?;
            return Ok(Window::Told(told));
        }
    };
    let window_ms = window_ms.filter(|window_ms| (1..=MAX_WINDOW_MS).contains(window_ms));
    let bad = || WireError::field(Code::BadJob, path, WINDOW, &format!("{message:?}"));
    window_ms.map(Window::Fixed).ok_or_else(bad)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn parsed(dialect: &Value) -> Result<AnyDialect, WireError> {
        let message: DialectMessage = serde_json::from_value(dialect.clone()).unwrap();
        parse_dialect(Some(&message), "budgets[0].dialect")
    }

    fn own(dialect: &Value) -> OwnDialect {
        match parsed(dialect).unwrap() {
            AnyDialect::Own(own) => (*own).clone(),
            other @ (AnyDialect::Known(_) | AnyDialect::Defined(_)) => {
                panic!("{} is no table", other.name())
            }
        }
    }

    #[test]
    fn reads_all_that_may_be_declared() {
        let own = own(&json!({
            "limit": "X-Limit", "remaining": "X-Left", "used": "X-Used", "cost": "X-Cost", "scope": "X-Pool",
            "reset": { "header": "X-Reset", "kind": "epoch-ms" }, "retryAfter": "X-Wait", "window": "1m",
        }));

        let timed = |header: &str, kind| {
            let header = header.to_owned();
            Some(Timed { header, kind })
        };
        assert_eq!(own.limit.as_deref(), Some("X-Limit"));
        assert_eq!(own.remaining.as_deref(), Some("X-Left"));
        assert_eq!(own.used.as_deref(), Some("X-Used"));
        assert_eq!(own.cost.as_deref(), Some("X-Cost"));
        assert_eq!(own.scope.as_deref(), Some("X-Pool"));
        assert_eq!(own.reset, timed("X-Reset", Kind::EpochMillis));
        assert_eq!(own.retry_after, timed("X-Wait", Kind::Auto));
        assert_eq!(own.window, Some(Window::Fixed(60_000)));
    }

    #[test]
    fn a_function_of_the_worker_has_a_name_that_no_dialect_has() {
        let function = parsed(&json!("worker:mine")).unwrap();

        assert_eq!(function, AnyDialect::Defined(Arc::from("mine")));
        assert!(Dialect::names().all(|name| !name.contains(':')));
    }

    #[test]
    fn a_window_is_text_milliseconds_or_a_header() {
        let window = |window: Value| own(&json!({ "window": window })).window.unwrap();

        assert_eq!(window(json!(10_000)), Window::Fixed(10_000));
        assert_eq!(window(json!("10s")), Window::Fixed(10_000));
        let Window::Told(told) = window(json!({ "header": "X-Window" })) else {
            panic!("it is in a header")
        };
        assert_eq!(
            (told.header.as_str(), told.kind),
            ("X-Window", Kind::DeltaSeconds)
        );
    }

    #[test]
    fn names_the_field_that_is_wrong() {
        let long = "x".repeat(2_049);
        let cases = [
            (json!("klingon"), ""),
            (json!({}), ""),
            (json!("worker:"), ""),
            (json!("worker:a b"), ""),
            (json!(format!("worker:{}", "x".repeat(65))), ""),
            (json!({ "limit": "" }), ".limit"),
            (json!({ "limit": long }), ".limit"),
            (json!({ "remaining": "X Left" }), ".remaining"),
            (json!({ "used": "X:Used" }), ".used"),
            (json!({ "cost": "ü" }), ".cost"),
            (json!({ "scope": "a\nb" }), ".scope"),
            (json!({ "reset": "X Reset" }), ".reset"),
            (json!({ "reset": { "header": "" } }), ".reset.header"),
            (
                json!({ "reset": { "header": "X-Reset", "kind": "minutes" } }),
                ".reset.kind",
            ),
            (
                json!({ "retryAfter": { "header": "X", "kind": "" } }),
                ".retryAfter.kind",
            ),
            (json!({ "window": "soon" }), ".window"),
            (json!({ "window": 0 }), ".window"),
            (json!({ "window": -5 }), ".window"),
            (json!({ "window": "32d" }), ".window"),
            (
                json!({ "window": { "header": "X", "kind": "epoch-ms" } }),
                ".window.kind",
            ),
        ];
        for (dialect, field) in cases {
            let error = parsed(&dialect).unwrap_err();

            assert_eq!(error.code, Code::BadJob);
            assert_eq!(
                error.field.unwrap(),
                format!("budgets[0].dialect{field}"),
                "{dialect}"
            );
            assert!(error.expected.is_some());
        }
    }

    #[test]
    fn a_field_that_nobody_knows_is_no_declaration() {
        let misspelt = json!({ "remaning": "X-Left" });

        assert!(serde_json::from_value::<DialectMessage>(misspelt).is_err());
    }
}
