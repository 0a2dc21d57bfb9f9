//! Budgets as an app declares them, parsed into the core's.

use std::collections::BTreeMap;

use paceline_core::config::{
    Algorithm, Anchor, BudgetConfig, ConfigError, LimitRule, LongWait, MAX_RESERVE_PERMILLE, Pace,
    parse_window,
};
use paceline_core::ids::{BatchName, BudgetId};
use paceline_signals::AnyDialect;
use serde::Deserialize;

use crate::batch::{Batch, BatchMessage, parse_batches};
use crate::cost::{Cost, CostMessage, parse_costs};
use crate::counts::{Counts, CountsMessage, parse_counts};
use crate::dialect::{DialectMessage, parse_dialect};
use crate::error::{Code, WireError};
use crate::preset;
use crate::statuses::{Statuses, parse_statuses};

/// The most budgets of one queue.
pub const MAX_BUDGETS: usize = 1_000;
/// The most patterns of one budget.
pub const MAX_MATCHES: usize = 100;
/// The longest pattern or header name, in bytes.
pub const MAX_PATTERN_BYTES: usize = 2_048;

/// A budget of `connect` or `configure`.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields = nullable))]
#[serde(rename_all = "camelCase")]
pub struct BudgetMessage {
    /// The budget's name.
    pub id: String,
    /// URL patterns; `*` stands for any text. The longest that matches wins.
    #[serde(default, rename = "match")]
    #[cfg_attr(test, ts(as = "Option<Vec<String>>", optional))]
    pub matches: Vec<String>,
    /// The rules, all of which must admit.
    #[serde(default)]
    #[cfg_attr(test, ts(as = "Option<Vec<LimitMessage>>", optional))]
    pub limits: Vec<LimitMessage>,
    /// The most requests in flight at once.
    #[serde(default)]
    pub max_in_flight: Option<f64>,
    /// The share of each limit that is used, above 0 and up to 1.
    #[serde(default)]
    pub share: Option<f64>,
    /// What requests cost by method and path, where a job names no cost; the first that fits counts.
    #[serde(default)]
    pub costs: Option<Vec<CostMessage>>,
    /// A budget whose rules must admit too.
    #[serde(default)]
    pub parent: Option<String>,
    /// The budgets that its server's scopes stand for.
    #[serde(default)]
    pub scopes: Option<BTreeMap<String, String>>,
    /// How bulk and background jobs start: `auto` (the default), `burst` or `even`.
    #[serde(default)]
    pub pace: Option<String>,
    /// What bulk and background jobs leave for other lanes.
    #[serde(default)]
    pub reserve: Option<ReserveMessage>,
    /// How the server takes idempotency keys.
    #[serde(default)]
    pub idempotency: Option<IdempotencyMessage>,
    /// What is documented of an API, by name; fields that are given win over it.
    #[serde(default)]
    pub preset: Option<String>,
    /// The plan of the preset.
    #[serde(default)]
    pub plan: Option<String>,
    /// How the server writes what it says of limits: a dialect's name, `auto`, or which header says what.
    #[serde(default)]
    pub dialect: Option<DialectMessage>,
    /// What becomes of jobs where the server asks for a long wait.
    #[serde(default)]
    pub long_wait: Option<LongWaitMessage>,
    /// Whether nothing is sent before it was given credentials; none keeps what was said before.
    #[serde(default)]
    pub credentials: Option<bool>,
    /// What statuses mean for its jobs where this API means something else by them than others: `done`, `failed`, `retry`,
    /// `refused` (the budget pauses) or `credentials`.
    #[serde(default)]
    pub statuses: Option<BTreeMap<String, String>>,
    /// Endpoints that take several jobs as one request, by the names that jobs give as their `batch`.
    #[serde(default)]
    pub batches: Option<BTreeMap<String, BatchMessage>>,
}

/// What bulk and background jobs leave for other lanes.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields = nullable))]
#[serde(rename_all = "camelCase")]
pub struct ReserveMessage {
    /// The part of each limit that is kept for the interactive lane, from 0 to 0.9.
    #[serde(default)]
    pub interactive: Option<f64>,
}

/// What becomes of jobs where a server asks for a long wait.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields = nullable))]
#[serde(rename_all = "camelCase")]
pub struct LongWaitMessage {
    /// Longer than this is long, in milliseconds; an hour by default.
    #[serde(default)]
    pub above_ms: Option<f64>,
    /// `park` (the default) or `fail`.
    #[serde(default)]
    pub then: Option<String>,
}

/// A rule: `"100/10s"`, or its parts.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(untagged)]
pub enum LimitMessage {
    /// `"N/window"` with the default algorithm.
    Text(String),
    /// The parts.
    Parts {
        /// Units per window.
        limit: f64,
        /// The window as text (`"10s"`) or in milliseconds.
        window: WindowMessage,
        /// The algorithm's name.
        #[serde(default)]
        #[cfg_attr(test, ts(optional = nullable))]
        algorithm: Option<String>,
        /// Where a fixed window begins: `first` (with its first request) or `clock`.
        #[serde(default)]
        #[cfg_attr(test, ts(optional = nullable))]
        anchor: Option<String>,
        /// Whether the numbers are a guess: what the server publishes may raise them.
        #[serde(default)]
        #[cfg_attr(test, ts(optional = nullable))]
        learn: Option<bool>,
        /// Which requests it counts; all when absent. Two limits count the same requests, or such of other methods.
        #[serde(default)]
        #[cfg_attr(test, ts(optional = nullable))]
        counts: Option<CountsMessage>,
    },
}

/// A window as text or in milliseconds.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(untagged)]
pub enum WindowMessage {
    /// Milliseconds.
    Millis(f64),
    /// Text such as `10s`.
    Text(String),
}

/// How the server takes idempotency keys.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields = nullable))]
#[serde(rename_all = "camelCase")]
pub struct IdempotencyMessage {
    /// The header's name.
    pub header: String,
    /// How long the server honours a key, in milliseconds; a day by default.
    #[serde(default)]
    pub ttl_ms: Option<f64>,
}

/// A parsed budget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Budget {
    /// What the core needs.
    pub config: BudgetConfig,
    /// The patterns.
    pub matches: Vec<String>,
    /// The header for idempotency keys.
    pub key_header: Option<String>,
    /// What requests cost.
    pub costs: Vec<Cost>,
    /// How its server writes what it says of limits.
    pub dialect: AnyDialect,
    /// Whether it was said that it needs credentials.
    pub credentials: Option<bool>,
    /// What statuses mean for its jobs.
    pub statuses: Statuses,
    /// Its batch endpoints.
    pub batches: BTreeMap<BatchName, Batch>,
    /// Its parts with the limits that count only some requests; no request is of two.
    pub parts: Vec<Part>,
}

/// The part of a budget whose limits count only some requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Which.
    pub counts: Counts,
    /// What the core needs.
    pub config: BudgetConfig,
}

const IN_FLIGHT: &str = "a whole number from 1 to 1000";
const RESERVE: &str = "a number from 0 to 0.9";
const DAY_MS: u64 = 86_400_000;

/// Parses the budgets of one message.
///
/// # Errors
/// Names the first field that is not as expected, as `budgets[i].field`.
pub fn parse_budgets(budgets: &[BudgetMessage]) -> Result<Vec<Budget>, WireError> {
    if budgets.len() > MAX_BUDGETS {
        let got = budgets.len().to_string();
        return Err(WireError::field(
            Code::BadJob,
            "budgets",
            "at most 1000 budgets",
            &got,
        ));
    }
    let parsed: Vec<Budget> = budgets
        .iter()
        .enumerate()
        .map(|(index, budget)| parse_budget(budget, &format!("budgets[{index}]")))
        .collect::<Result<_, _>>()?;
    for (index, budget) in parsed.iter().enumerate() {
        if parsed
            .iter()
            .take(index)
            .any(|other| other.config.id == budget.config.id)
        {
            let field = format!("budgets[{index}].id");
            return Err(WireError::field(
                Code::BadJob,
                field,
                "a name used once",
                budget.config.id.as_str(),
            ));
        }
    }
    Ok(parsed)
}

fn parse_budget(message: &BudgetMessage, path: &str) -> Result<Budget, WireError> {
    let message = &preset::filled(message, path)?;
    let dialect = parse_dialect(message.dialect.as_ref(), &format!("{path}.dialect"))?;
    let bad = |field: &str, expected: &str, got: &str| {
        WireError::field(Code::BadJob, format!("{path}.{field}"), expected, got)
    };
    let id =
        BudgetId::parse(&message.id).map_err(|_| bad("id", "1 to 255 characters", &message.id))?;
    if id.as_str() == BudgetId::QUEUE {
        return Err(bad("id", "a name other than that of the whole queue", "*"));
    }
    if id.whole().is_some() {
        return Err(bad(
            "id",
            "a name that does not end in #counted",
            &message.id,
        ));
    }
    let (rules, counting) = parse_limits(&message.limits, path)?;
    let max_in_flight = message
        .max_in_flight
        .map(|value| whole(value).ok_or_else(|| bad("maxInFlight", IN_FLIGHT, &value.to_string())))
        .transpose()?;
    let share = message.share.unwrap_or(1.0);
    if !(share > 0.0 && share <= 1.0) {
        return Err(bad(
            "share",
            "a number above 0 and up to 1",
            &share.to_string(),
        ));
    }
    let share_permille = ((share * 1_000.0) as u32).max(1);
    if message.matches.len() > MAX_MATCHES {
        return Err(bad(
            "match",
            "at most 100 patterns",
            &message.matches.len().to_string(),
        ));
    }
    if let Some(pattern) = message.matches.iter().find(|pattern| !is_pattern(pattern)) {
        return Err(bad(
            "match",
            "a URL pattern of up to 2048 characters",
            pattern,
        ));
    }
    let (key_header, key_ttl_ms) = match &message.idempotency {
        None => (None, None),
        Some(idempotency) => {
            if !is_header_name(&idempotency.header) {
                return Err(bad(
                    "idempotency.header",
                    "a header name",
                    &idempotency.header,
                ));
            }
            let ttl_ms = match idempotency.ttl_ms {
                None => DAY_MS,
                Some(ttl) => whole(ttl).filter(|ttl| *ttl > 0).ok_or_else(|| {
                    bad(
                        "idempotency.ttlMs",
                        "milliseconds above 0",
                        &ttl.to_string(),
                    )
                })?,
            };
            (Some(idempotency.header.clone()), Some(ttl_ms))
        }
    };
    let id_text = id.as_str().to_owned();
    let config = BudgetConfig::new(id, rules, max_in_flight, share_permille, key_ttl_ms);
    let config = config.map_err(|error| {
        if let ConfigError::InFlight(got) = error {
            return bad("maxInFlight", IN_FLIGHT, &got.to_string());
        }
        if let ConfigError::Rules(got) = error {
            return bad("limits", "up to 8 limits", &got.to_string());
        }
        WireError::plain(Code::BadJob, format!("{path}: {error}"))
    })?;
    let config = match message.credentials {
        Some(true) => config.with_credentials(),
        Some(false) | None => config,
    };
    let parent = parse_parent(message, &id_text, path)?;
    let config = config.with_parent(parent);
    let config = config.with_scopes(parse_scopes(message, path)?);
    let config = config.map_err(|error| bad("scopes", "up to 64 scopes", &error.to_string()))?;
    let config = config.with_long_wait(parse_long_wait(message, path)?);
    let config = config
        .with_pace(parse_pace(message, path)?)
        .with_reserve(parse_reserve(message, path)?)
        .map_err(|error| bad("reserve.interactive", RESERVE, &error.to_string()))?;
    let batches = match &message.batches {
        None => BTreeMap::new(),
        Some(batches) => parse_batches(batches, path)?,
    };
    let rules = batches
        .iter()
        .map(|(name, batch)| (name.clone(), batch.rule));
    let config = config
        .with_batches(rules.collect())
        .map_err(|error| bad("batches", "up to 64 batches", &error.to_string()))?;
    let part = |(counts, rules): Counting| match config.part(counts.methods(), rules) {
        Ok(config) => Ok(Part { counts, config }),
        Err(ConfigError::Rules(got)) => Err(bad("limits", "up to 8 limits", &got.to_string())),
        Err(error) => Err(bad("id", &error.to_string(), &message.id)),
    };
    let parts = counting.into_iter().map(part).collect::<Result<_, _>>()?;
    Ok(Budget {
        parts,
        config,
        batches,
        matches: message.matches.clone(),
        key_header,
        costs: parse_costs(message.costs.as_deref().unwrap_or_default(), path)?,
        dialect,
        credentials: message.credentials,
        statuses: match &message.statuses {
            None => Statuses::new(),
            Some(statuses) => parse_statuses(statuses, &format!("{path}.statuses"))?,
        },
    })
}

/// The longest name of a scope, in characters.
const MAX_SCOPE_CHARS: usize = 100;

fn parse_parent(
    message: &BudgetMessage,
    id: &str,
    path: &str,
) -> Result<Option<BudgetId>, WireError> {
    let Some(name) = &message.parent else {
        return Ok(None);
    };
    let field = || format!("{path}.parent");
    if name == id || name == BudgetId::QUEUE {
        let expected = "the name of another budget";
        return Err(WireError::field(Code::BadJob, field(), expected, name));
    }
    let parsed = BudgetId::parse(name);
    let parsed =
        parsed.map_err(|_| WireError::field(Code::BadJob, field(), "1 to 255 characters", name));
    parsed.map(Some)
}

fn parse_scopes(
    message: &BudgetMessage,
    path: &str,
) -> Result<BTreeMap<String, BudgetId>, WireError> {
    let mut scopes = BTreeMap::new();
    for (scope, name) in message.scopes.iter().flatten() {
        let bad = |expected: &str, got: &str| {
            WireError::field(
                Code::BadJob,
                format!("{path}.scopes.{scope}"),
                expected,
                got,
            )
        };
        if scope.is_empty() || scope.chars().count() > MAX_SCOPE_CHARS {
            let field = format!("{path}.scopes");
            let expected = "names of scopes of 1 to 100 characters";
            return Err(WireError::field(Code::BadJob, field, expected, scope));
        }
        let id = BudgetId::parse(name).map_err(|_| bad("1 to 255 characters", name))?;
        if id.as_str() == BudgetId::QUEUE {
            return Err(bad("the name of a budget", name));
        }
        scopes.insert(scope.clone(), id);
    }
    Ok(scopes)
}

fn parse_long_wait(message: &BudgetMessage, path: &str) -> Result<LongWait, WireError> {
    let usual = LongWait::default();
    let Some(message) = &message.long_wait else {
        return Ok(usual);
    };
    let bad = |field: &str, expected: &str, got: &str| {
        WireError::field(
            Code::BadJob,
            format!("{path}.longWait.{field}"),
            expected,
            got,
        )
    };
    let above_ms = match message.above_ms {
        None => usual.above_ms,
        Some(above) => whole(above)
            .filter(|above| *above > 0)
            .ok_or_else(|| bad("aboveMs", "milliseconds above 0", &above.to_string()))?,
    };
    let fails = match message.then.as_deref() {
        None | Some("park") => false,
        Some("fail") => true,
        Some(other) => return Err(bad("then", "park or fail", other)),
    };
    Ok(LongWait { above_ms, fails })
}

fn parse_pace(message: &BudgetMessage, path: &str) -> Result<Pace, WireError> {
    let Some(name) = &message.pace else {
        return Ok(Pace::default());
    };
    Pace::parse(name).ok_or_else(|| {
        let expected = format!("a pace: {}", Pace::ALL.map(Pace::as_str).join(", "));
        WireError::field(Code::BadJob, format!("{path}.pace"), expected, name)
    })
}

/// Takes the part that is kept for the interactive lane, rounded up to thousandths.
fn parse_reserve(message: &BudgetMessage, path: &str) -> Result<u32, WireError> {
    let part = message.reserve.and_then(|reserve| reserve.interactive);
    let part = part.unwrap_or(0.0);
    if !(0.0..=f64::from(MAX_RESERVE_PERMILLE) / 1_000.0).contains(&part) {
        let field = format!("{path}.reserve.interactive");
        return Err(WireError::field(
            Code::BadJob,
            field,
            RESERVE,
            &part.to_string(),
        ));
    }
    Ok(((part * 1_000.0).ceil() as u32).min(MAX_RESERVE_PERMILLE))
}

/// The rules that count only some requests, and which.
type Counting = (Counts, Vec<LimitRule>);

/// Parses the rules that count all requests, and those that do not.
fn parse_limits(
    limits: &[LimitMessage],
    path: &str,
) -> Result<(Vec<LimitRule>, Vec<Counting>), WireError> {
    let (mut rules, mut counting) = (Vec::new(), Vec::<Counting>::new());
    for (index, limit) in limits.iter().enumerate() {
        let at = format!("{path}.limits[{index}]");
        let rule = parse_limit(limit, &at)?;
        let LimitMessage::Parts {
            counts: Some(message),
            ..
        } = limit
        else {
            rules.push(rule);
            continue;
        };
        let at = format!("{at}.counts");
        let counts = parse_counts(message, &at)?;
        if let Some((_, known)) = counting.iter_mut().find(|(known, _)| *known == counts) {
            known.push(rule);
            continue;
        }
        if counting.iter().any(|(known, _)| known.may_overlap(&counts)) {
            let expected = "the same as another limit's, or other methods; \
                else a budget of their own with this one as parent";
            return Err(WireError::field(Code::BadJob, at, expected, "an overlap"));
        }
        counting.push((counts, vec![rule]));
    }
    Ok((rules, counting))
}

fn parse_limit(limit: &LimitMessage, path: &str) -> Result<LimitRule, WireError> {
    let bad = |expected: &str, got: &str| WireError::field(Code::BadJob, path, expected, got);
    match limit {
        LimitMessage::Text(text) => LimitRule::parse(text, Algorithm::ArrivalLog)
            .map_err(|_| bad("\"N/window\" such as \"100/10s\"", text)),
        LimitMessage::Parts {
            limit,
            window,
            algorithm,
            anchor,
            learn,
            counts: _,
        } => {
            let limit = whole(*limit).ok_or_else(|| bad("a whole limit", &limit.to_string()))?;
            let window_ms = match window {
                WindowMessage::Millis(millis) => whole(*millis),
                WindowMessage::Text(text) => parse_window(text),
            }
            .ok_or_else(|| {
                bad(
                    "a window such as \"10s\" or milliseconds",
                    &format!("{window:?}"),
                )
            })?;
            let name = algorithm.as_deref().unwrap_or("arrival-log");
            let algorithm = Algorithm::parse(name).ok_or_else(|| bad(&algorithms(), name))?;
            let anchor = match anchor.as_deref() {
                None | Some("first") => Anchor::First,
                Some("clock") => Anchor::Clock,
                Some(other) => return Err(bad("anchor first or clock", other)),
            };
            let rule =
                LimitRule::new(limit, window_ms, algorithm).map(|rule| rule.anchored(anchor));
            let rule = rule.map(|rule| match learn {
                Some(true) => rule.learning(),
                Some(false) | None => rule,
            });
            rule.map_err(|_| {
                let got = format!("{limit} per {window_ms} ms");
                bad("1 to 10000000 per 1 ms to 31 days", &got)
            })
        }
    }
}

fn algorithms() -> String {
    let names: Vec<&str> = Algorithm::ALL
        .iter()
        .map(|algorithm| algorithm.as_str())
        .collect();
    format!("an algorithm: {}", names.join(", "))
}

/// Takes a JavaScript number as a whole, non-negative one.
pub(crate) fn whole(value: f64) -> Option<u64> {
    let is_whole = (0.0..=9_007_199_254_740_991.0).contains(&value) && value.fract() == 0.0;
    is_whole.then_some(value as u64)
}

fn is_pattern(pattern: &str) -> bool {
    !pattern.is_empty() && pattern.len() <= MAX_PATTERN_BYTES
}

/// Tells whether a text is a header name (RFC 9110, section 5.1).
pub(crate) fn is_header_name(name: &str) -> bool {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.len() <= MAX_PATTERN_BYTES && name.bytes().all(is_token)
}

/// Tells whether a URL matches a pattern in which `*` stands for any text.
pub fn matches(pattern: &str, url: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or("");
    let Some(mut rest) = url.strip_prefix(first) else {
        return false;
    };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        let Some(at) = rest.find(part) else {
            return false;
        };
        rest = &rest[at + part.len()..];
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(limits: serde_json::Value) -> Result<Vec<Budget>, WireError> {
        let message = serde_json::json!([{ "id": "b", "limits": limits }]);
        parse_budgets(&serde_json::from_value::<Vec<BudgetMessage>>(message).unwrap())
    }

    #[test]
    fn reads_rules_in_both_forms() {
        let parsed = budget(
            serde_json::json!(["100/10s", { "limit": 5, "window": "1s", "algorithm": "token-bucket" }]),
        );

        let rules = parsed.unwrap().remove(0).config.rules().to_vec();
        assert_eq!((rules[0].limit(), rules[0].window_ms()), (100, 10_000));
        assert_eq!(rules[1].algorithm(), Algorithm::TokenBucket);
    }

    #[test]
    fn names_the_field_that_is_wrong() {
        let error = budget(serde_json::json!(["5/s", "many"])).unwrap_err();

        assert_eq!(error.code, Code::BadJob);
        assert_eq!(error.field.as_deref(), Some("budgets[0].limits[1]"));
    }

    fn linked(fields: serde_json::Value) -> Result<BudgetConfig, WireError> {
        let mut message = serde_json::json!({ "id": "b" });
        let fields = fields.as_object().unwrap().clone();
        message.as_object_mut().unwrap().extend(fields);
        let message: BudgetMessage = serde_json::from_value(message).unwrap();
        Ok(parse_budgets(&[message])?.remove(0).config)
    }

    #[test]
    fn reads_what_becomes_of_jobs_in_a_long_wait() {
        let of = |long_wait: serde_json::Value| {
            let message = serde_json::json!([{ "id": "b", "longWait": long_wait }]);
            let messages: Vec<BudgetMessage> = serde_json::from_value(message).expect("a message");
            let parsed = parse_budgets(&messages);
            parsed.map(|budgets| budgets[0].config.long_wait())
        };
        let terms = |above_ms, fails| Ok(LongWait { above_ms, fails });
        let field = |value| of(value).expect_err("bad").field;
        let at = |field: &str| Some(format!("budgets[0].longWait.{field}"));

        assert_eq!(of(serde_json::json!({})), terms(3_600_000, false));
        assert_eq!(
            of(serde_json::json!({ "aboveMs": 5000, "then": "fail" })),
            terms(5_000, true)
        );
        assert_eq!(field(serde_json::json!({ "aboveMs": 0 })), at("aboveMs"));
        assert_eq!(field(serde_json::json!({ "then": "give up" })), at("then"));
    }

    #[test]
    fn reads_parent_scopes_and_guessed_rules() {
        let config = linked(serde_json::json!({
            "parent": "all", "scopes": { "search": "b:search" },
            "limits": [{ "limit": 5, "window": "1s", "learn": true }],
        }));

        let config = config.unwrap();
        assert_eq!(config.parent().unwrap().as_str(), "all");
        assert_eq!(config.scopes()["search"].as_str(), "b:search");
        assert!(config.learns());
    }

    #[test]
    fn names_the_parent_or_scope_that_is_wrong() {
        let field = |fields| linked(fields).unwrap_err().field.unwrap();

        assert_eq!(
            field(serde_json::json!({ "parent": "b" })),
            "budgets[0].parent"
        );
        assert_eq!(
            field(serde_json::json!({ "parent": "" })),
            "budgets[0].parent"
        );
        let unnamed = serde_json::json!({ "scopes": { "search": "" } });
        assert_eq!(field(unnamed), "budgets[0].scopes.search");
        let many: BTreeMap<String, String> =
            (0..65).map(|n| (format!("s{n}"), "c".to_owned())).collect();
        assert_eq!(
            field(serde_json::json!({ "scopes": many })),
            "budgets[0].scopes"
        );
    }

    #[test]
    fn reads_pace_and_reserve() {
        let config = linked(
            serde_json::json!({ "limits": ["200/10s"], "pace": "even", "reserve": { "interactive": 0.05 } }),
        );
        let plain =
            linked(serde_json::json!({ "limits": ["200/10s"], "pace": null, "reserve": {} }))
                .unwrap();

        let config = config.unwrap();
        assert_eq!(config.pace(), Pace::Even);
        assert_eq!(config.reserve(config.rules()[0]), 10);
        assert_eq!(plain.pace(), Pace::Auto);
        assert_eq!(plain.reserve(plain.rules()[0]), 0);
    }

    #[test]
    fn names_the_pace_or_reserve_that_is_wrong() {
        let field = |fields| linked(fields).unwrap_err().field.unwrap();

        assert_eq!(
            field(serde_json::json!({ "pace": "fast" })),
            "budgets[0].pace"
        );
        for part in [-0.1, 0.95, 5.0] {
            let reserve = serde_json::json!({ "reserve": { "interactive": part } });
            assert_eq!(field(reserve), "budgets[0].reserve.interactive");
        }
    }

    #[test]
    fn a_star_stands_for_any_text() {
        assert!(matches("https://a.test/*", "https://a.test/x/y?z"));
        assert!(matches(
            "https://*.test/v*/items",
            "https://api.test/v2/items"
        ));
        assert!(!matches("https://a.test/*", "https://b.test/"));
        assert!(!matches("https://a.test/x", "https://a.test/xy"));
        assert!(matches("*", "anything"));
    }
}
