//! What is documented of single APIs, for budgets that name one: `presets.json`, which a user can read.
//!
//! Owns the parsing of that file. The limits are what documentation said on the day beside them; every field may be
//! overridden by the app, and what the server announces replaces it. `counts` in a limit, `costs` and `batches` tell
//! what cannot be seen on the wire. Invariant: each preset of the file parses, as a test holds.

use std::fmt;

use paceline_core::config::{Algorithm, LimitRule, parse_window};

use crate::dialect::Dialect;
use crate::json::Value;

const FILE: &str = include_str!("../presets.json");
const DAY_MS: u64 = 86_400_000;

/// What is documented of one API.
#[derive(Clone, Debug, PartialEq)]
pub struct Preset {
    /// Its name.
    pub name: String,
    /// The day of the figures, as `YYYY-MM-DD`.
    pub as_of: String,
    /// Where they are documented.
    pub source: String,
    /// How the figures were come by.
    pub evidence: Evidence,
    /// URL patterns; `*` stands for any text.
    pub matches: Vec<String>,
    /// How it writes its signals.
    pub dialect: Dialect,
    /// The scopes by which its signals mean this budget, where others mean limits of their own.
    pub scopes: Vec<String>,
    /// The rules, all of which must admit.
    pub limits: Vec<PresetLimit>,
    /// The most requests in flight at once.
    pub max_in_flight: Option<u32>,
    /// What requests cost; the last that fits counts.
    pub costs: Vec<PresetCost>,
    /// Where several jobs go as one request.
    pub batches: Vec<PresetBatch>,
    /// The header for idempotency keys, and how long a key is honoured, in milliseconds.
    pub idempotency: Option<(String, u64)>,
    /// The plan, where the limits depend on one.
    pub plan: Option<String>,
}

/// How well the figures of a preset are founded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// The documentation, or the API's own client, was read.
    Read,
    /// An excerpt of the documentation was.
    Excerpt,
    /// From general knowledge: check before relying on it.
    Recalled,
}

/// A rule, and which requests it counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PresetLimit {
    /// The rule.
    pub rule: LimitRule,
    /// Which requests it counts; all if absent.
    pub counts: Option<Counts>,
}

/// Which requests a rule counts; each part narrows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Their methods.
    pub methods: Vec<String>,
    /// Patterns of their paths.
    pub paths: Vec<String>,
}

/// What some requests cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PresetCost {
    /// Their method; any if absent.
    pub method: Option<String>,
    /// The pattern of their path; any if absent.
    pub path: Option<String>,
    /// Units.
    pub cost: u32,
}

/// A batch endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PresetBatch {
    /// Its method.
    pub method: String,
    /// The pattern of its path.
    pub path: String,
    /// The most jobs in one request.
    pub max: u32,
    /// What a batch costs.
    pub charge: Charge,
}

/// What a batch costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charge {
    /// As much as one request.
    One,
    /// As much as its jobs alone.
    Each,
}

/// Why there is no such preset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PresetError {
    /// No preset of that name; these are there.
    Name(Vec<String>),
    /// No plan of that name; these are there.
    Plan(Vec<String>),
    /// The file itself is wrong there.
    File(String),
}

impl fmt::Display for PresetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(names) => write!(f, "a preset: {}", names.join(", ")),
            Self::Plan(names) if names.is_empty() => f.write_str("no plan"),
            Self::Plan(names) => write!(f, "a plan: {}", names.join(", ")),
            Self::File(place) => write!(f, "a preset that can be read, at {place}"),
        }
    }
}

impl std::error::Error for PresetError {}

impl Preset {
    /// Returns the preset of a name, for a plan or the file's own default.
    ///
    /// # Errors
    /// When there is no such preset or plan; names those that are there.
    pub fn named(name: &str, plan: Option<&str>) -> Result<Self, PresetError> {
        let file = Value::read(FILE).unwrap_or(Value::Null);
        let Value::Object(presets) = &file else {
            return Err(PresetError::File("the beginning".to_owned()));
        };
        let Some((_, preset)) = presets.iter().find(|(other, _)| other == name) else {
            return Err(PresetError::Name(names_of(&file)));
        };
        let plans = preset.get("plans");
        let chosen = match plan {
            Some(plan) if plans.has(plan) => Some(plan),
            Some(_) => return Err(PresetError::Plan(names_of(plans))),
            None => preset.get("plan").text(),
        };
        let overrides = chosen.map_or(&Value::Null, |plan| plans.get(plan));
        parse(name, preset, overrides, chosen).ok_or_else(|| PresetError::File(name.to_owned()))
    }

    /// Returns the names of all presets, in the file's order.
    pub fn names() -> Vec<String> {
        names_of(&Value::read(FILE).unwrap_or(Value::Null))
    }

    /// Returns the names of the plans of a preset.
    pub fn plans(name: &str) -> Vec<String> {
        let file = Value::read(FILE).unwrap_or(Value::Null);
        names_of(file.get(name).get("plans"))
    }
}

fn names_of(object: &Value<'_>) -> Vec<String> {
    match object {
        Value::Object(members) => members.iter().map(|(name, _)| name.to_string()).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Text(_) | Value::List(_) => {
            Vec::new()
        }
    }
}

/// Reads a preset; what its plan says wins.
fn parse(
    name: &str,
    preset: &Value<'_>,
    plan: &Value<'_>,
    plan_name: Option<&str>,
) -> Option<Preset> {
    let field = |name: &str| {
        if plan.has(name) {
            plan.get(name)
        } else {
            preset.get(name)
        }
    };
    let texts = |value: &Value<'_>| {
        let items = value.items().iter();
        items.map(owned).collect::<Option<Vec<String>>>()
    };
    Some(Preset {
        name: name.to_owned(),
        as_of: owned(field("asOf"))?,
        source: owned(field("source"))?,
        evidence: match field("evidence").text()? {
            "read" => Evidence::Read,
            "excerpt" => Evidence::Excerpt,
            "recalled" => Evidence::Recalled,
            _ => return None,
        },
        matches: texts(field("match"))?,
        dialect: Dialect::named(field("dialect").text()?)?,
        scopes: texts(field("scopes"))?,
        limits: each(field("limits"), limit)?,
        max_in_flight: optional(field("maxInFlight"), number)?,
        costs: each(field("costs"), cost)?,
        batches: each(field("batches"), batch)?,
        idempotency: optional(field("idempotency"), |value| {
            let ttl_ms = optional(value.get("ttlMs"), number)?;
            Some((owned(value.get("header"))?, ttl_ms.unwrap_or(DAY_MS)))
        })?,
        plan: plan_name.map(str::to_owned),
    })
}

fn owned(value: &Value<'_>) -> Option<String> {
    value.text().map(str::to_owned)
}

fn number<T: std::str::FromStr>(value: &Value<'_>) -> Option<T> {
    value.text()?.parse().ok()
}

/// Reads an array, or nothing as an empty one.
fn each<T>(value: &Value<'_>, read: impl Fn(&Value<'_>) -> Option<T>) -> Option<Vec<T>> {
    value.items().iter().map(read).collect()
}

/// Reads what may be absent; what is there and wrong is none.
fn optional<T>(value: &Value<'_>, read: impl Fn(&Value<'_>) -> Option<T>) -> Option<Option<T>> {
    if value.is_some() {
        read(value).map(Some)
    } else {
        Some(None)
    }
}

fn limit(value: &Value<'_>) -> Option<PresetLimit> {
    if let Some(text) = value.text() {
        let rule = LimitRule::parse(text, Algorithm::ArrivalLog).ok()?;
        return Some(PresetLimit { rule, counts: None });
    }
    let algorithm = optional(value.get("algorithm"), |name| {
        Algorithm::parse(name.text()?)
    })?;
    let window_ms = parse_window(value.get("window").text()?)?;
    let algorithm = algorithm.unwrap_or(Algorithm::ArrivalLog);
    let rule = LimitRule::new(number(value.get("limit"))?, window_ms, algorithm).ok()?;
    let counts = optional(value.get("counts"), |counts| {
        Some(Counts {
            methods: each(counts.get("methods"), owned)?,
            paths: each(counts.get("paths"), owned)?,
        })
    })?;
    Some(PresetLimit { rule, counts })
}

fn cost(value: &Value<'_>) -> Option<PresetCost> {
    Some(PresetCost {
        method: optional(value.get("method"), owned)?,
        path: optional(value.get("path"), owned)?,
        cost: number(value.get("cost"))?,
    })
}

fn batch(value: &Value<'_>) -> Option<PresetBatch> {
    Some(PresetBatch {
        method: owned(value.get("method"))?,
        path: owned(value.get("path"))?,
        max: number(value.get("max"))?,
        charge: match value.get("cost").text()? {
            "one" => Charge::One,
            "each" => Charge::Each,
            _ => return None,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_preset_and_each_of_its_plans_can_be_read() {
        let names = Preset::names();
        assert!(names.len() >= 20, "{} presets", names.len());
        for name in &names {
            let preset = Preset::named(name, None).unwrap();
            assert!(
                preset.limits.len() <= 8 && !preset.matches.is_empty(),
                "{name}"
            );
            assert!(
                !preset.limits.is_empty() || preset.max_in_flight.is_some(),
                "{name}"
            );
            assert!(
                preset
                    .matches
                    .iter()
                    .all(|pattern| pattern.starts_with("https://")),
                "{name}"
            );
            assert_eq!(preset.as_of.len(), 10, "{name}");
            assert!(!preset.source.is_empty(), "{name}");
            let plans = Preset::plans(name);
            assert_eq!(plans.is_empty(), preset.plan.is_none(), "{name}");
            for plan in plans {
                let of_plan = Preset::named(name, Some(&plan)).unwrap();
                assert_eq!(of_plan.plan, Some(plan));
            }
        }
    }

    #[test]
    fn the_whole_file_is_read() {
        // The reader keeps what came before a mistake: the last preset shows that there was none.
        assert_eq!(Preset::names().last().map(String::as_str), Some("supabase"));
        assert!(FILE.trim_end().ends_with('}'));
    }

    #[test]
    fn limits_depend_on_the_plan() {
        let limit = |name, plan| {
            let rule = Preset::named(name, plan).unwrap().limits[0].rule;
            (rule.limit(), rule.window_ms())
        };

        assert_eq!(limit("hubspot", None), (100, 10_000));
        assert_eq!(limit("hubspot", Some("pro")), (190, 10_000));
        assert_eq!(limit("notion", None), (180, 60_000));
        assert_eq!(limit("notion", Some("business")), (600, 60_000));
        assert_eq!(limit("shopify", None), (40, 20_000));
        assert_eq!(limit("shopify", Some("plus")), (400, 20_000));
    }

    #[test]
    fn content_creation_is_a_rule_of_its_own() {
        let limits = Preset::named("github", None).unwrap().limits;
        let counts = limits
            .iter()
            .find_map(|limit| limit.counts.as_ref())
            .unwrap();

        assert!(counts.methods.contains(&"POST".to_owned()));
    }

    #[test]
    fn what_is_not_there_names_what_is() {
        let names = Preset::named("githubb", None).unwrap_err();
        let plans = Preset::named("notion", Some("gold")).unwrap_err();

        assert!(names.to_string().contains("github, "));
        assert_eq!(plans.to_string(), "a plan: standard, business, enterprise");
        let none = Preset::named("slack", Some("gold")).unwrap_err();
        assert!(matches!(none, PresetError::Plan(names) if names.len() == 5));
    }
}
