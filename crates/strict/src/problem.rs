//! Refusals and errors as RFC 9457 problem details.

use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};
use serde_json::{Map, Value, json};

use crate::parse::BadField;

/// A problem on its way to becoming an answer.
#[derive(Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    members: Map<String, Value>,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, title: &str, detail: &str) -> Self {
        let mut members = Map::new();
        members.insert("type".to_owned(), json!("about:blank"));
        members.insert("title".to_owned(), json!(title));
        members.insert("status".to_owned(), json!(status.as_u16()));
        members.insert("detail".to_owned(), json!(detail));
        Self { status, members }
    }

    /// Adds or replaces a member.
    pub(crate) fn with(mut self, name: &str, value: Value) -> Self {
        self.members.insert(name.to_owned(), value);
        self
    }

    pub(crate) fn no_account(account: &str) -> Self {
        let detail =
            format!("no account {account:?}; PUT /strict/{account} with a scenario starts one");
        Self::new(StatusCode::NOT_FOUND, "no such account", &detail)
    }

    pub(crate) fn bad_field(bad: &BadField) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad scenario", &bad.to_string())
            .with("field", json!(bad.field))
            .with("expected", json!(bad.expected))
            .with("got", json!(bad.got))
    }

    pub(crate) fn body(&self) -> String {
        Value::Object(self.members.clone()).to_string()
    }

    pub(crate) fn response(self) -> Response<Body> {
        let mut response = Response::new(Body::from(self.body()));
        *response.status_mut() = self.status;
        let content_type = HeaderValue::from_static("application/problem+json");
        response
            .headers_mut()
            .insert(header::CONTENT_TYPE, content_type);
        response
    }
}
