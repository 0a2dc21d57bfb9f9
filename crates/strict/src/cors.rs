//! Cross-origin headers: the asking origin is echoed and what it asks for is allowed.

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};

/// Seconds for which a browser may keep a preflight's answer.
const MAX_AGE: &str = "7200";
const METHODS: &str = "GET, HEAD, POST, PUT, PATCH, DELETE";
const PRIVATE_NETWORK: HeaderName = HeaderName::from_static("access-control-allow-private-network");
const ASKS_PRIVATE_NETWORK: &str = "access-control-request-private-network";
/// Fields that a page may always read.
const SAFELISTED: [HeaderName; 7] = [
    header::CACHE_CONTROL,
    header::CONTENT_LANGUAGE,
    header::CONTENT_LENGTH,
    header::CONTENT_TYPE,
    header::EXPIRES,
    header::LAST_MODIFIED,
    header::PRAGMA,
];

/// What of a request matters for its answer's cross-origin headers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Asker {
    origin: Option<HeaderValue>,
    method: Option<HeaderValue>,
    headers: Option<HeaderValue>,
    private_network: bool,
}

impl Asker {
    pub(crate) fn of(parts: &Parts) -> Self {
        Self {
            origin: parts.headers.get(header::ORIGIN).cloned(),
            method: parts
                .headers
                .get(header::ACCESS_CONTROL_REQUEST_METHOD)
                .cloned(),
            headers: parts
                .headers
                .get(header::ACCESS_CONTROL_REQUEST_HEADERS)
                .cloned(),
            private_network: parts.headers.contains_key(ASKS_PRIVATE_NETWORK),
        }
    }

    /// Answers a preflight.
    pub(crate) fn preflight(&self) -> Response<Body> {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NO_CONTENT;
        self.admit(response.headers_mut());
        self.allow(response.headers_mut());
        response
    }

    fn allow(&self, headers: &mut HeaderMap) {
        let methods = self
            .method
            .clone()
            .unwrap_or(HeaderValue::from_static(METHODS));
        headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, methods);
        if let Some(asked) = &self.headers {
            headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, asked.clone());
        }
        if self.private_network {
            headers.insert(PRIVATE_NETWORK, HeaderValue::from_static("true"));
        }
        headers.insert(
            header::ACCESS_CONTROL_MAX_AGE,
            HeaderValue::from_static(MAX_AGE),
        );
    }

    /// Lets the asking origin read an answer.
    pub(crate) fn admit(&self, headers: &mut HeaderMap) {
        headers.append(header::VARY, HeaderValue::from_static("Origin"));
        let Some(origin) = &self.origin else { return };
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
        headers.insert(
            header::ACCESS_CONTROL_ALLOW_CREDENTIALS,
            HeaderValue::from_static("true"),
        );
    }

    /// Lets it read every header that is there. They are named one by one: `*` fails with credentials.
    pub(crate) fn expose(&self, headers: &mut HeaderMap) {
        if self.origin.is_none() {
            return;
        }
        let hidden = |name: &&HeaderName| {
            !SAFELISTED.contains(name)
                && !name.as_str().starts_with("access-control-")
                && **name != header::VARY
        };
        let names = headers
            .keys()
            .filter(hidden)
            .map(HeaderName::as_str)
            .collect::<Vec<_>>()
            .join(", ");
        if let Ok(names) = HeaderValue::from_str(&names) {
            headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, names);
        }
    }
}
