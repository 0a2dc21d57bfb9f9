//! A job as a tab hands it in, parsed into the core's card.

use std::collections::BTreeMap;

use paceline_core::batch::Batched;
use paceline_core::ids::{BatchName, BudgetId, GroupId, JobId, MAX_NAME_CHARS, OrderKey};
use paceline_core::job::{Card, Lane, Repeat};
use paceline_core::kind::{Fingerprint, Kind, Likeness, OnFailure};
use paceline_core::time::Wall;
use serde::Deserialize;

use crate::budget::{is_header_name, whole};
use crate::check::{CheckMessage, parse_check};
use crate::error::{Code, WireError};

/// The most jobs of one `enqueue-many`.
pub const MAX_JOBS: usize = 100_000;
/// The longest URL, in bytes.
pub const MAX_URL_BYTES: usize = 8_192;
/// The most bytes of one stored request.
pub const MAX_BODY_BYTES: u32 = 16 * 1024 * 1024;
/// The time-out of an attempt when the job names none, in milliseconds.
pub const DEFAULT_TIMEOUT_MS: u32 = 15_000;
/// The longest time-out of an attempt, in milliseconds.
pub const MAX_TIMEOUT_MS: u32 = 600_000;
/// The longest wait that a job may ask for: ten years, in milliseconds.
pub const MAX_WAIT_MS: u64 = 3_652 * 86_400_000;
/// The latest instant of JavaScript's `Date` (ECMA-262, time values), in milliseconds since the epoch.
pub const MAX_INSTANT_MS: u64 = 8_640_000_000_000_000;
/// Headers that carry secrets and are never stored.
pub const SECRET_HEADERS: [&str; 4] = [
    "authorization",
    "cookie",
    "proxy-authorization",
    "set-cookie",
];

/// The methods that a job may have.
pub(crate) const METHODS: [&str; 6] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];

/// A job of `enqueue` or `enqueue-many`. Its `body` and `meta` are opaque and not read here.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields = nullable))]
#[serde(rename_all = "camelCase")]
pub struct JobMessage {
    /// The job's name; the host makes one where a raw client gives none.
    #[serde(default)]
    pub id: Option<String>,
    /// The absolute URL.
    #[serde(default)]
    pub url: Option<String>,
    /// The method, `GET` by default, or `POST` with a body.
    #[serde(default)]
    pub method: Option<String>,
    /// The headers to send.
    #[serde(default)]
    pub headers: Option<BTreeMap<String, String>>,
    /// The lane's name.
    #[serde(default)]
    pub lane: Option<String>,
    /// The ordering key.
    #[serde(default)]
    pub key: Option<String>,
    /// The group.
    #[serde(default)]
    pub group: Option<String>,
    /// The budget; else the longest pattern that matches.
    #[serde(default)]
    pub budget: Option<String>,
    /// `patch`, `replace`, `create`, `delete` or `custom`; by method when absent.
    #[serde(default)]
    pub kind: Option<String>,
    /// Whether it may go together with another one that waits: edits of one key as one request, identical requests once.
    /// By default true. The worker says false where the body is none that could be merged.
    #[serde(default)]
    pub merge: Option<bool>,
    /// A number up to 2^53-1 that equal bodies share; absent where that is not known.
    #[serde(default)]
    pub body_hash: Option<f64>,
    /// Whether a `delete` cancels the edits of its key that wait before it.
    #[serde(default)]
    pub supersede: Option<bool>,
    /// What becomes of later jobs of its key when it fails: `continue` (the default), `hold-key` or `fail-later`.
    #[serde(default)]
    pub on_failure: Option<String>,
    /// The batch of its budget that it goes in, as one item of a request.
    #[serde(default)]
    pub batch: Option<String>,
    /// Units that one attempt uses; 1 by default.
    #[serde(default)]
    pub cost: Option<f64>,
    /// The idempotency key, made by the client.
    #[serde(default)]
    pub idempotency_key: Option<String>,
    /// Whether sending it twice is the same as once.
    #[serde(default)]
    pub repeatable: Option<bool>,
    /// The longest wait for its first attempt, in milliseconds.
    #[serde(default)]
    pub max_wait_ms: Option<f64>,
    /// The time-out of one attempt, in milliseconds.
    #[serde(default)]
    pub timeout_ms: Option<f64>,
    /// The instant before which it does not start, in milliseconds since the epoch.
    #[serde(default)]
    pub not_before: Option<f64>,
    /// The signed-in user that it is sent for.
    #[serde(default)]
    pub principal: Option<String>,
    /// How it is found out whether a request of unknown outcome was carried out, where it may not be repeated.
    #[serde(default)]
    pub check: Option<CheckMessage>,
    /// Whether its request is kept in memory only (GET and HEAD through `fetch`).
    #[serde(default)]
    pub ephemeral: Option<bool>,
    /// How its request carries cookies, as in fetch.
    #[serde(default)]
    pub credentials: Option<String>,
    /// Whether its request follows redirects, as in fetch.
    #[serde(default)]
    pub redirect: Option<String>,
}

/// What a job is given where it says nothing.
#[derive(Clone, Debug)]
pub struct Defaults<'a> {
    /// The lane.
    pub lane: Lane,
    /// The group of the whole request.
    pub group: Option<&'a GroupId>,
    /// The principal of the tab.
    pub principal: &'a str,
    /// The instant of acceptance.
    pub now: Wall,
    /// The bytes of its stored request.
    pub size: u32,
}

/// Parses one job. `path` is where it stands in the message; `resolve` names the budget of a job.
///
/// # Errors
/// Names the first field that is not as expected.
pub fn parse_job(
    message: &JobMessage,
    path: &str,
    defaults: &Defaults<'_>,
    fresh_id: impl FnOnce() -> String,
    resolve: impl FnOnce(Option<&BudgetId>, &str) -> Option<BudgetId>,
) -> Result<Card, WireError> {
    let bad = |field: &str, expected: &str, got: &str| {
        WireError::field(Code::BadJob, format!("{path}.{field}"), expected, got)
    };
    let url = message
        .url
        .as_deref()
        .ok_or_else(|| bad("url", "an absolute http(s) URL", "nothing"))?;
    if !is_http_url(url) {
        return Err(bad(
            "url",
            "an absolute http(s) URL of up to 8192 bytes",
            url,
        ));
    }
    let method = message.method.as_deref().unwrap_or("GET");
    if !METHODS.contains(&method) {
        return Err(bad(
            "method",
            "GET, HEAD, POST, PUT, PATCH or DELETE",
            method,
        ));
    }
    check_headers(message, path)?;
    let lane = match message.lane.as_deref() {
        None => defaults.lane,
        Some(name) => *Lane::ALL
            .iter()
            .find(|lane| lane.as_str() == name)
            .ok_or_else(|| bad("lane", "interactive, bulk or background", name))?,
    };
    let kind = parse_kind(message, method)
        .map_err(|got| bad("kind", "patch, replace, create, delete or custom", got))?;
    let repeat = parse_repeat(message, method, kind);
    let supersedes = message.supersede == Some(true);
    if supersedes && kind != Kind::Delete {
        return Err(bad("supersede", "true with kind delete only", "true"));
    }
    let on_failure = match message.on_failure.as_deref() {
        None => OnFailure::Continue,
        Some(name) => OnFailure::parse(name)
            .ok_or_else(|| bad("onFailure", "continue, hold-key or fail-later", name))?,
    };
    let asked = name(message.budget.as_deref(), BudgetId::parse, path, "budget")?;
    let budget = resolve(asked.as_ref(), url).ok_or_else(|| {
        let got = message.budget.as_deref().unwrap_or(url);
        WireError::field(
            Code::UnknownBudget,
            format!("{path}.budget"),
            "a declared budget",
            got,
        )
    })?;
    if defaults.size > MAX_BODY_BYTES {
        return Err(bad(
            "body",
            "at most 16777216 bytes",
            &defaults.size.to_string(),
        ));
    }
    let id = match name(message.id.as_deref(), JobId::parse, path, "id")? {
        Some(id) => id,
        None => {
            JobId::parse(&fresh_id()).map_err(|_| bad("id", "1 to 255 characters", "nothing"))?
        }
    };
    let group = name(message.group.as_deref(), GroupId::parse, path, "group")?
        .or_else(|| defaults.group.cloned());
    let max_wait_ms = number(message.max_wait_ms, path, "maxWaitMs", 1, MAX_WAIT_MS)?;
    let not_before = number(message.not_before, path, "notBefore", 0, MAX_INSTANT_MS)?;
    let timeout_ms = number(
        message.timeout_ms,
        path,
        "timeoutMs",
        1,
        u64::from(MAX_TIMEOUT_MS),
    )?;
    let cost = number(message.cost, path, "cost", 1, u64::from(u32::MAX))?;
    let principal = message.principal.as_deref().unwrap_or(defaults.principal);
    if principal.chars().count() > MAX_NAME_CHARS {
        return Err(bad("principal", "up to 255 characters", principal));
    }
    let ephemeral = message.ephemeral == Some(true) && matches!(method, "GET" | "HEAD");
    let body_hash = number(message.body_hash, path, "bodyHash", 0, Fingerprint::MAX)?;
    let batch = parse_batch(message, method, path)?;
    let check = message.check.as_ref();
    let check = check.map(|check| parse_check(check, &format!("{path}.check"), url, method));
    let check = check.transpose()?;
    if check.is_some() && batch.is_some() {
        return Err(bad("check", "none with a batch", "an object"));
    }
    let is_alone = ephemeral || batch.is_some() || message.merge == Some(false) || check.is_some();
    let may_join = !is_alone && (repeat == Repeat::Always || kind.merges());
    let likeness = may_join.then(|| likeness(message, url, method, body_hash));
    Ok(Card {
        id,
        budget,
        lane,
        key: name(message.key.as_deref(), OrderKey::parse, path, "key")?,
        group,
        principal: principal.to_owned(),
        cost: cost.and_then(|cost| u32::try_from(cost).ok()).unwrap_or(1),
        repeat,
        idempotency_key: parse_key(message, path)?,
        not_before: not_before.map(Wall::from_millis),
        expires_at: max_wait_ms.map(|wait| defaults.now.plus(wait)),
        timeout_ms: timeout_ms
            .and_then(|ms| u32::try_from(ms).ok())
            .unwrap_or(DEFAULT_TIMEOUT_MS),
        created_at: defaults.now,
        size: defaults.size,
        ephemeral,
        kind,
        likeness,
        supersedes,
        on_failure,
        batch,
        check,
    })
}

/// Reads the batch that a job goes in. That has its own cost and method; headers and cookies are the job's.
fn parse_batch(
    message: &JobMessage,
    method: &str,
    path: &str,
) -> Result<Option<Batched>, WireError> {
    let Some(name) = name(message.batch.as_deref(), BatchName::parse, path, "batch")? else {
        return Ok(None);
    };
    let bad = |field: &str, expected: &str, got: &str| {
        WireError::field(Code::BadJob, format!("{path}.{field}"), expected, got)
    };
    if matches!(method, "GET" | "HEAD") {
        return Err(bad("batch", "none with GET and HEAD", name.as_str()));
    }
    if let Some(cost) = message.cost {
        let expected = "none with a batch, which has its own";
        return Err(bad("cost", expected, &cost.to_string()));
    }
    let form = form_of(message, "");
    Ok(Some(Batched { name, form }))
}

/// By what the job is known to be like another one.
fn likeness(message: &JobMessage, url: &str, method: &str, body_hash: Option<u64>) -> Likeness {
    Likeness {
        place: Fingerprint::of([url]),
        form: form_of(message, method),
        body: body_hash.and_then(Fingerprint::new),
    }
}

/// How a job's request is sent.
fn form_of(message: &JobMessage, method: &str) -> Fingerprint {
    let text = |field: &'_ Option<String>| field.clone().unwrap_or_default();
    let (credentials, redirect) = (text(&message.credentials), text(&message.redirect));
    let headers: BTreeMap<String, &str> = message
        .headers
        .iter()
        .flatten()
        .map(|(name, value)| (name.to_ascii_lowercase(), value.as_str()))
        .collect();
    let headers = headers
        .iter()
        .flat_map(|(name, value)| [name.as_str(), *value]);
    Fingerprint::of([method, &credentials, &redirect].into_iter().chain(headers))
}

pub(crate) fn is_http_url(url: &str) -> bool {
    let rest = url
        .strip_prefix("https://")
        .or_else(|| url.strip_prefix("http://"));
    let has_host = rest.is_some_and(|rest| {
        rest.chars()
            .next()
            .is_some_and(|c| !matches!(c, '/' | '?' | '#'))
    });
    has_host && url.len() <= MAX_URL_BYTES && !url.chars().any(char::is_whitespace)
}

fn check_headers(message: &JobMessage, path: &str) -> Result<(), WireError> {
    for (header, value) in message.headers.iter().flatten() {
        let field = format!("{path}.headers.{header}");
        if SECRET_HEADERS.contains(&header.to_ascii_lowercase().as_str()) {
            let expected = "no secret in a stored job (give credentials by budget)";
            return Err(WireError::field(
                Code::SecretHeader,
                field,
                expected,
                header,
            ));
        }
        if !is_header_name(header) {
            return Err(WireError::field(
                Code::BadJob,
                field,
                "a header name",
                header,
            ));
        }
        if value.len() > MAX_URL_BYTES || value.contains(['\r', '\n', '\0']) {
            return Err(WireError::field(
                Code::BadJob,
                field,
                "a header value of up to 8192 bytes",
                "another text",
            ));
        }
    }
    Ok(())
}

fn parse_kind<'a>(message: &'a JobMessage, method: &str) -> Result<Kind, &'a str> {
    if let Some(name) = message.kind.as_deref() {
        return Kind::parse(name).ok_or(name);
    }
    Ok(match method {
        "PATCH" => Kind::Patch,
        "PUT" => Kind::Replace,
        "POST" => Kind::Create,
        "DELETE" => Kind::Delete,
        _ => Kind::Custom,
    })
}

fn parse_repeat(message: &JobMessage, method: &str, kind: Kind) -> Repeat {
    let by_method = matches!(method, "GET" | "HEAD" | "PUT" | "DELETE") || kind.merges();
    if message.repeatable.unwrap_or(by_method) {
        Repeat::Always
    } else {
        Repeat::WithKey
    }
}

fn parse_key(message: &JobMessage, path: &str) -> Result<Option<String>, WireError> {
    let Some(key) = message.idempotency_key.as_deref() else {
        return Ok(None);
    };
    let is_sendable = key.chars().all(|c| c.is_ascii_graphic() || c == ' ');
    if key.is_empty() || key.len() > MAX_NAME_CHARS || !is_sendable {
        let field = format!("{path}.idempotencyKey");
        return Err(WireError::field(
            Code::BadJob,
            field,
            "1 to 255 visible ASCII characters",
            key,
        ));
    }
    Ok(Some(key.to_owned()))
}

fn name<T, E>(
    text: Option<&str>,
    parse: impl FnOnce(&str) -> Result<T, E>,
    path: &str,
    field: &str,
) -> Result<Option<T>, WireError> {
    let Some(text) = text else { return Ok(None) };
    let bad = |_| {
        WireError::field(
            Code::BadJob,
            format!("{path}.{field}"),
            "1 to 255 characters",
            text,
        )
    };
    parse(text).map(Some).map_err(bad)
}

fn number(
    value: Option<f64>,
    path: &str,
    field: &str,
    min: u64,
    max: u64,
) -> Result<Option<u64>, WireError> {
    let Some(value) = value else { return Ok(None) };
    let parsed = whole(value).filter(|value| (min..=max).contains(value));
    let bad = || {
        let expected = match max {
            u64::MAX => format!("a whole number from {min}"),
            max => format!("a whole number from {min} to {max}"),
        };
        WireError::field(
            Code::BadJob,
            format!("{path}.{field}"),
            expected,
            &value.to_string(),
        )
    };
    parsed.ok_or_else(bad).map(Some)
}
