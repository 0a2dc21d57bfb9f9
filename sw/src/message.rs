//! Messages and answers between JavaScript objects and the host's types.

use std::sync::Arc;

use js_sys::{Array, ArrayBuffer, Object, Reflect};
use paceline_core::ids::Seq;
use paceline_core::io::{Found, NoAnswer};
use paceline_core::time::Now;
use paceline_host::{BodyNeed, HostInput, ItemResult, Items};
use paceline_protocol::batch::BatchForm;
use paceline_protocol::told::ToldMessage;
use paceline_protocol::{Head, HostMessage, Request, Stamp, WireError, error::Code};
use serde::{Deserialize, Serialize};
use serde_wasm_bindgen::{Deserializer, Serializer};
use wasm_bindgen::{JsCast, JsValue};

/// Reads a message of a tab: its number, and what it asks or why that cannot be read.
///
/// # Errors
/// When it has no head, and so no number to answer to.
pub(crate) fn parse(message: &JsValue) -> Result<(f64, Result<Request, WireError>), WireError> {
    let head: Head = serde_wasm_bindgen::from_value(message.clone())
        .map_err(|error| WireError::plain(Code::Protocol, error.to_string()))?;
    let request = head
        .check()
        .and_then(|()| Request::parse(&head.kind, Deserializer::from(message.clone())));
    Ok((head.id, request))
}

/// Builds a message for a tab. Opaque parts are set beside what is typed.
pub(crate) fn build(
    stamp: &Stamp,
    message: &HostMessage,
    response: Option<JsValue>,
    requests: Vec<Option<JsValue>>,
) -> Result<JsValue, JsValue> {
    let serializer = Serializer::json_compatible();
    let object = stamp.serialize(&serializer)?;
    let fields = message.serialize(&serializer)?;
    Object::assign(
        object.unchecked_ref::<Object>(),
        fields.unchecked_ref::<Object>(),
    );
    if let Some(response) = response {
        Reflect::set(&object, &"response".into(), &own_copy(&response)?)?;
    }
    if !requests.is_empty() {
        let jobs: Array = Reflect::get(&object, &"jobs".into())?.unchecked_into();
        for (job, request) in jobs.iter().zip(requests) {
            for name in ["url", "method", "meta"] {
                let Some(request) = &request else { continue };
                if request.is_object() {
                    Reflect::set(&job, &name.into(), &Reflect::get(request, &name.into())?)?;
                }
            }
        }
    }
    Ok(object)
}

/// Copies a response's body, which is transferred to the tab: another tab may have asked for it too.
fn own_copy(response: &JsValue) -> Result<JsValue, JsValue> {
    let copy = Object::assign(&Object::new(), response.unchecked_ref::<Object>());
    let body = Reflect::get(&copy, &"body".into())?;
    if let Some(buffer) = body.dyn_ref::<ArrayBuffer>() {
        Reflect::set(&copy, &"body".into(), &buffer.slice(0))?;
    }
    Ok(copy.into())
}

/// The options of one send.
pub(crate) fn send_options(
    headers: Vec<(String, String)>,
    timeout_ms: u32,
    later: Vec<JsValue>,
    batch: Option<BatchForm>,
    body: BodyNeed,
    is_check: bool,
    dialect: Option<Arc<str>>,
) -> Result<JsValue, JsValue> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Options {
        timeout_ms: u32,
        headers: Vec<(String, String)>,
        #[serde(skip_serializing_if = "Option::is_none")]
        batch: Option<BatchForm>,
        body: &'static str,
        check: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        dialect: Option<String>,
    }
    let options = Options {
        timeout_ms,
        headers,
        batch,
        body: body.as_str(),
        check: is_check,
        dialect: dialect.map(|name| name.to_string()),
    };
    let options = options.serialize(&Serializer::json_compatible())?;
    if !later.is_empty() {
        let later: Array = later.into_iter().collect();
        Reflect::set(&options, &"later".into(), &later)?;
    }
    Ok(options)
}

#[derive(Deserialize)]
struct Answer {
    kind: String,
    #[serde(default)]
    cause: Option<String>,
    #[serde(default)]
    status: Option<u16>,
    #[serde(default)]
    headers: Option<Vec<(String, String)>>,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    at: Option<f64>,
    #[serde(default)]
    found: Option<String>,
    #[serde(default)]
    told: Option<ToldMessage>,
}

/// What the worker has read in the answer to a check.
fn found(name: &str) -> Found {
    match name {
        "applied" => Found::Applied,
        "not-applied" => Found::NotApplied,
        _ => Found::Unclear,
    }
}

#[derive(Deserialize)]
struct Item {
    status: u16,
    #[serde(default)]
    text: Option<String>,
}

/// Reads what an answer says of the items of a batch; their responses stay opaque.
fn items_of(answer: &JsValue) -> Items<JsValue> {
    let items = Reflect::get(answer, &"items".into()).unwrap_or_default();
    if items.is_undefined() {
        return Items::Shared;
    }
    let Some(items) = items.dyn_ref::<Array>() else {
        return Items::Unreadable;
    };
    let read = |item: JsValue| {
        let Item { status, text } = serde_wasm_bindgen::from_value(item.clone()).ok()?;
        let response = Reflect::get(&item, &"response".into()).ok()?;
        Some(ItemResult {
            status,
            text,
            response,
        })
    };
    Items::Each(items.iter().map(read).collect())
}

/// Reads what a send came to.
pub(crate) fn answered(seq: Seq, attempt: u32, answer: JsValue, now: Now) -> HostInput<JsValue> {
    let none = |cause| HostInput::NoAnswer {
        seq,
        attempt,
        cause,
    };
    let Ok(read) = serde_wasm_bindgen::from_value::<Answer>(answer.clone()) else {
        return none(NoAnswer::Network);
    };
    let items = items_of(&answer);
    match (read.kind.as_str(), read.status, read.cause.as_deref()) {
        ("answer", Some(status), _) => HostInput::Answered {
            seq,
            attempt,
            status,
            headers: read.headers.unwrap_or_default(),
            text: read.text,
            found: read.found.as_deref().map(found),
            told: read.told,
            ended_at: read.at.map_or(now.mono, |at| crate::now_of(at, 0.0).mono),
            response: answer,
            items,
        },
        (_, _, Some("never-left")) => none(NoAnswer::NeverLeft),
        (_, _, Some("timed-out")) => none(NoAnswer::TimedOut),
        _ => none(NoAnswer::Network),
    }
}
