//! Messages as tabs write them, and as the worker takes them apart and puts them together.

use paceline_protocol::{HostMessage, Stamp};
use serde_json::{Value, json};

/// The budget of the kit.
pub(crate) fn api() -> Value {
    json!({
        "id": "api",
        "match": ["https://api.test/*"],
        "limits": ["100/1s"],
        "idempotency": { "header": "Idempotency-Key" },
    })
}

/// A PATCH to `https://api.test/<name>`, under that name.
pub(crate) fn job(name: &str) -> Value {
    json!({
        "id": name,
        "url": format!("https://api.test/{name}"),
        "method": "PATCH",
        "body": { "owner": name },
        "meta": { "row": name },
        "idempotencyKey": format!("key-{name}"),
    })
}

/// A job with some fields changed.
pub(crate) fn job_with(name: &str, fields: Value) -> Value {
    let mut job = job(name);
    let all = job.as_object_mut().expect("an object");
    for (field, value) in fields.as_object().expect("an object") {
        all.insert(field.clone(), value.clone());
    }
    job
}

/// The stored requests of a message's jobs, as the shell takes them out.
pub(super) fn stored_requests(message: &Value, size: Option<u32>) -> Vec<(Value, u32)> {
    let one = message.get("job").into_iter();
    let many = message.get("jobs").and_then(Value::as_array);
    let jobs = one.chain(many.into_iter().flatten());
    jobs.filter(|job| job.is_object())
        .map(|job| {
            let request: serde_json::Map<String, Value> = ["url", "method", "body", "meta"]
                .iter()
                .filter_map(|field| Some(((*field).to_owned(), job.get(field)?.clone())))
                .collect();
            let request = Value::Object(request);
            let bytes = u32::try_from(request.to_string().len()).expect("small");
            (request, size.unwrap_or(bytes))
        })
        .collect()
}

/// A message as a tab sees it, as the worker builds it.
pub(super) fn build(
    stamp: &Stamp,
    message: &HostMessage,
    response: Option<Value>,
    requests: Vec<Option<Value>>,
) -> Value {
    let mut post = serde_json::to_value(stamp).expect("serialises");
    let fields = serde_json::to_value(message).expect("serialises");
    let (Value::Object(all), Value::Object(fields)) = (&mut post, fields) else {
        panic!("messages are objects");
    };
    all.extend(fields);
    all.extend(response.map(|response| ("response".to_owned(), response)));
    if let Some(Value::Array(jobs)) = all.get_mut("jobs") {
        assert_eq!(jobs.len(), requests.len(), "a request for each job");
        for (job, request) in jobs.iter_mut().zip(requests) {
            job["url"] = request.map_or(Value::Null, |request| request["url"].clone());
        }
    }
    post
}
