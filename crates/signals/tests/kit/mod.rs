//! From a case of `fixtures/headers.json` to the normal form with the keys of `expect`.

use paceline_core::signals::BudgetSignal;
use paceline_core::time::Wall;
use paceline_signals::{Dialect, Found, Response, Unit, read_all};
use serde_json::{Map, Value, json};

/// The dialect that a case names, or whose provider it names, else `auto`.
pub(crate) fn dialect_of(case: &Value) -> Dialect {
    let named = |key: &str| case[key].as_str().and_then(Dialect::named);
    let alias = match case["provider"].as_str() {
        Some("ietf-draft") => "ietf",
        Some("x-twitter") => "x",
        Some("sentry-ingest") => "sentry",
        Some("meta-graph") => "meta",
        Some("cloudflare-api") => "cloudflare",
        Some("together-ai") => "together",
        Some(other) => other,
        None => "auto",
    };
    let named = named("dialect").or_else(|| Dialect::named(alias));
    // A case of no provider in particular has to be told by its shape.
    named
        .filter(|dialect| dialect.name() != "generic")
        .unwrap_or(Dialect::auto())
}

/// The normal form of a case.
pub(crate) fn normal_form(case: &Value, dialect: Dialect) -> Value {
    let empty = Map::new();
    let headers = case["headers"].as_object().unwrap_or(&empty).iter();
    let headers: Vec<(String, String)> = headers
        .map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned()))
        .collect();
    let request = &case["request"];
    let url = request["url"].as_str().or(request["url_shape"].as_str());
    let response = Response {
        status: case["status"]
            .as_u64()
            .and_then(|status| u16::try_from(status).ok())
            .unwrap_or(0),
        headers: &headers,
        text: case["body"].as_str(),
        method: request["method"].as_str().unwrap_or(""),
        url: url.unwrap_or(""),
        ..Response::default()
    };
    let now = Wall::from_millis(case["now_epoch_ms"].as_u64().unwrap_or(0));
    let reading = read_all(&response, dialect, now);
    let mut form = json!({
        "is_rate_limited": reading.is_rate_limited,
        "retry_after_ms": reading.retry_after_ms,
        "limit": reading.first.limit,
        "remaining": reading.first.remaining,
        "reset_in_ms": reading.first.reset_in_ms,
        "window_ms": reading.first.window_ms,
        "scope": reading.first.scope,
        "cost": reading.cost,
        "estimated": reading.is_estimate || (reading.is_rate_limited && reading.retry_after_ms.is_none()),
        "budgets": reading.found.iter().map(budget).collect::<Vec<_>>(),
    });
    for (key, value) in [
        ("id", case.get("id").cloned()),
        ("retryable", reading.is_retryable.map(Value::from)),
        (
            "unreadable",
            (reading.unreadable > 0).then(|| reading.unreadable.into()),
        ),
        ("cut", reading.is_cut.then_some(Value::Bool(true))),
        ("dialect", Some(reading.dialect.into())),
    ] {
        if let Some(value) = value {
            form[key] = value;
        }
    }
    form
}

fn budget(found: &Found) -> Value {
    let BudgetSignal {
        scope,
        limit,
        remaining,
        reset_in_ms,
        window_ms,
    } = &found.budget;
    let mut form = json!({
        "scope": scope, "limit": limit, "remaining": remaining, "reset_in_ms": reset_in_ms, "window_ms": window_ms,
    });
    if let Some(used) = found.used {
        form["used"] = used.into();
    }
    if found.unit == Unit::Concurrency {
        form["unit"] = "concurrent-requests".into();
    }
    form
}
