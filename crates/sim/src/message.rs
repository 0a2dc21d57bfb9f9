//! Messages between tabs and hosts, as the worker's own adapter reads and builds them.

use paceline_host::HostInput;
use paceline_protocol::batch::BatchForm;
use paceline_protocol::error::Code;
use paceline_protocol::{Head, HostMessage, Request, Stamp, WireError};
use serde_json::{Value, json};

use crate::clock::EPOCH_MS;
use crate::profile::{Api, Rule, Terms};
use crate::transition::Wish;

/// What a stored request is in this world.
pub(crate) type Body = Value;

/// Reads a message of a tab as the worker does.
pub(crate) fn read(tab: u32, message: &Value) -> HostInput<Body> {
    let head: Result<Head, _> = serde_json::from_value(message.clone());
    let (re, request) = match head {
        Err(error) => (
            f64::NAN,
            Err(WireError::plain(Code::Protocol, error.to_string())),
        ),
        Ok(head) => (
            head.id,
            head.check()
                .and_then(|()| Request::parse(&head.kind, message)),
        ),
    };
    HostInput::Message {
        tab,
        re,
        request,
        bodies: bodies(message),
    }
}

/// The stored requests of the jobs in a message, with their sizes.
fn bodies(message: &Value) -> Vec<(Body, u32)> {
    let one = message.get("job").into_iter();
    let many = message
        .get("jobs")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    one.chain(many)
        .map(|job| {
            let mut request =
                json!({ "url": job["url"], "method": job["method"], "id": job["id"] });
            if !job["check"].is_null() {
                request["check"] = job["check"].clone();
            }
            (request, 200)
        })
        .collect()
}

/// Lays later requests over the first one: this world's bodies are the names of the jobs that they belong to.
pub(crate) fn laid_over(mut request: Body, later: &[Body]) -> Body {
    let ids: Vec<Value> = later.iter().map(|above| above["id"].clone()).collect();
    if !ids.is_empty() {
        request["over"] = Value::Array(ids);
    }
    request
}

/// Writes requests as the items of one.
pub(crate) fn as_items(form: &BatchForm, first: &Body, others: &[Body]) -> Body {
    let items = std::iter::once(first).chain(others).map(|item| &item["id"]);
    let items: Vec<&Value> = items.collect();
    json!({ "url": form.url, "method": form.method, "id": first["id"], "items": items })
}

/// The names of the jobs that are the items of a request, if it is a batch.
pub(crate) fn items(request: &Body) -> Vec<String> {
    let items = request["items"].as_array().into_iter().flatten();
    items
        .map(|id| id.as_str().unwrap_or_default().to_owned())
        .collect()
}

/// The names of the jobs whose requests make up a request.
pub(crate) fn parts(request: &Body) -> Vec<String> {
    let over = request["over"].as_array().into_iter().flatten();
    std::iter::once(&request["id"])
        .chain(over)
        .map(|id| id.as_str().unwrap_or_default().to_owned())
        .collect()
}

/// Builds a message for a tab as the worker does.
pub(crate) fn build(stamp: &Stamp, message: &HostMessage, response: Option<Body>) -> Value {
    let mut built = serde_json::to_value(stamp).unwrap_or_default();
    let fields = serde_json::to_value(message).unwrap_or_default();
    if let (Some(built), Value::Object(fields)) = (built.as_object_mut(), fields) {
        built.extend(fields);
        if let Some(response) = response {
            built.insert("response".to_owned(), response);
        }
    }
    built
}

/// The budgets that a tab of a release with these terms declares.
pub(crate) fn budgets(apis: &[Api], terms: Terms) -> Value {
    let declared = apis.iter().filter_map(|api| api.budget.map(|id| (id, api)));
    declared
        .map(|(id, api)| {
            let max_in_flight = match terms {
                Terms::OneByOne => Some(1),
                Terms::Whole | Terms::Halved | Terms::Longer | Terms::Reordered => {
                    api.max_in_flight
                }
            };
            let keys = api
                .key_ttl_ms
                .map(|ttl| json!({ "header": "Idempotency-Key", "ttlMs": ttl }));
            let mut budget = json!({
                "id": id,
                "match": [format!("{}/*", api.origin)],
                "limits": limits(api, terms),
                "maxInFlight": max_in_flight,
                "idempotency": keys,
                "longWait": api.gives_up_ms.map(|above| json!({ "aboveMs": above, "then": "fail" })),
            });
            if let Some(max) = api.batch_max {
                let url = format!("{}/batch", api.origin);
                budget["batches"] = json!({ "items": { "url": url, "max": max, "results": "" } });
            }
            budget
        })
        .collect()
}

/// The methods that [`Api::writes`] counts.
pub(crate) const WRITES: [&str; 2] = ["PATCH", "POST"];

fn limits(api: &Api, terms: Terms) -> Vec<Value> {
    let limit = |rule: &Rule| {
        let (limit, window_ms) = match terms {
            Terms::Whole | Terms::OneByOne | Terms::Reordered => (rule.limit, rule.window_ms),
            Terms::Halved => (rule.limit.div_ceil(2), rule.window_ms),
            Terms::Longer => (rule.limit, rule.window_ms * 2),
        };
        json!({ "limit": limit, "window": window_ms, "algorithm": rule.kind.algorithm() })
    };
    let mut limits: Vec<Value> = api.rules.iter().map(limit).collect();
    limits.extend(api.writes.iter().map(|rule| {
        let mut limit = limit(rule);
        limit["counts"] = json!({ "methods": WRITES });
        limit
    }));
    if terms == Terms::Reordered {
        limits.push(json!("1000000/1d"));
        limits.reverse();
    }
    limits
}

/// A job as the client hands it in; absent fields are left out.
pub(crate) fn job(wish: &Wish, api: &Api, id: &str, now_ms: u64) -> Value {
    // Edits of one key speak to one address, and so do some reads: they may go together.
    let address = match (wish.method, wish.key) {
        ("PATCH" | "PUT" | "DELETE", Some(key)) => format!("record-{key}"),
        ("GET", None) if wish.cost == 1 => "list".to_owned(),
        _ => id.to_owned(),
    };
    let url = format!("{}/{address}", api.origin);
    let mut job = json!({ "id": id, "url": url, "method": wish.method });
    let fields = [
        ("bodyHash", (wish.method == "GET").then(|| json!(0))),
        (
            "supersede",
            (wish.method == "DELETE" && wish.cost == 1).then_some(json!(true)),
        ),
        (
            "key",
            wish.key.map(|key| json!(format!("{}:{key}", api.origin))),
        ),
        ("lane", wish.lane.map(|lane| json!(lane))),
        ("cost", (wish.cost > 1).then(|| json!(wish.cost))),
        (
            "idempotencyKey",
            wish.has_idempotency_key.then(|| json!(format!("key-{id}"))),
        ),
        (
            "check",
            wish.check_after_ms.map(|after_ms| {
                let exists = json!({ "pointer": "/total" });
                json!({ "url": format!("{url}/times"), "exists": exists, "afterMs": after_ms })
            }),
        ),
        ("ephemeral", wish.ephemeral.then_some(json!(true))),
        ("maxWaitMs", wish.max_wait_ms.map(|wait| json!(wait))),
        (
            "notBefore",
            wish.not_before_in_ms
                .map(|wait| json!(EPOCH_MS + now_ms + wait)),
        ),
        ("batch", wish.is_item.then_some(json!("items"))),
        ("timeoutMs", wish.timeout_ms.map(|timeout| json!(timeout))),
    ];
    if let Some(job) = job.as_object_mut() {
        job.extend(
            fields
                .into_iter()
                .filter_map(|(name, value)| Some((name.to_owned(), value?))),
        );
    }
    job
}
