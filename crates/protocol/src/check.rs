//! A job's check as a tab hands it in, parsed and bounded. What its answer means is read where bodies are: by the worker.
//!
//! Invariant: a check speaks to the origin of its job, because the credentials of that one's budget go with it.

use paceline_core::job::Check;
use serde::Deserialize;

use crate::budget::whole;
use crate::error::{Code, WireError};
use crate::job::is_http_url;

/// How long after the end of an attempt its check is sent when the job says nothing, in milliseconds.
pub const DEFAULT_AFTER_MS: u32 = 1_000;
/// The longest such wait, in milliseconds.
pub const MAX_AFTER_MS: u32 = 600_000;
/// The longest pointer, in bytes.
pub const MAX_POINTER_BYTES: usize = 1_024;
/// The most statuses that tell that a request was carried out.
pub const MAX_STATUSES: usize = 16;

/// A request that tells whether the job's own was carried out.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields = nullable))]
#[serde(rename_all = "camelCase")]
pub struct CheckMessage {
    /// `GET` (the default) or `HEAD`.
    #[serde(default)]
    pub method: Option<String>,
    /// An absolute URL of the job's origin.
    #[serde(default)]
    pub url: Option<String>,
    /// What tells that it was.
    #[serde(default)]
    pub exists: Option<ExistsMessage>,
    /// How long after the end of the attempt before it it is sent at the earliest, in milliseconds; 1000 by default.
    #[serde(default)]
    pub after_ms: Option<f64>,
}

/// What tells that a request was carried out: `status`, or `pointer` and `min`.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields = nullable))]
pub struct ExistsMessage {
    /// The statuses of which the answer has one, 200 to 499.
    #[serde(default)]
    pub status: Option<Vec<f64>>,
    /// A JSON pointer (RFC 6901) to a number, or to an array whose length counts, in a served answer.
    #[serde(default)]
    pub pointer: Option<String>,
    /// How much there is at least; 1 by default.
    #[serde(default)]
    pub min: Option<f64>,
}

/// Parses the check of a job for `url` by `method`. `path` is where it stands in the message.
///
/// # Errors
/// Names the first field that is not as expected.
pub(crate) fn parse_check(
    message: &CheckMessage,
    path: &str,
    url: &str,
    method: &str,
) -> Result<Check, WireError> {
    let bad = |field: &str, expected: &str, got: &str| {
        WireError::field(Code::BadJob, format!("{path}{field}"), expected, got)
    };
    if matches!(method, "GET" | "HEAD") {
        return Err(bad("", "none with GET and HEAD", "an object"));
    }
    let own = message.method.as_deref().unwrap_or("GET");
    if !matches!(own, "GET" | "HEAD") {
        return Err(bad(".method", "GET or HEAD", own));
    }
    let asked = message.url.as_deref().unwrap_or_default();
    if !is_http_url(asked) || origin(asked) != origin(url) {
        return Err(bad(".url", "an absolute URL of the job's origin", asked));
    }
    match &message.exists {
        Some(exists) => parse_exists(exists, &format!("{path}.exists"), own)?,
        None => return Err(bad(".exists", "a status, or a pointer", "nothing")),
    }
    let after_ms = message
        .after_ms
        .map_or(Some(u64::from(DEFAULT_AFTER_MS)), whole);
    let after_ms = after_ms.and_then(|ms| u32::try_from(ms).ok());
    match after_ms.filter(|ms| *ms <= MAX_AFTER_MS) {
        Some(after_ms) => Ok(Check { after_ms }),
        None => {
            let got = message.after_ms.unwrap_or_default().to_string();
            Err(bad(".afterMs", "a whole number from 0 to 600000", &got))
        }
    }
}

fn parse_exists(exists: &ExistsMessage, path: &str, method: &str) -> Result<(), WireError> {
    let bad = |field: &str, expected: &str, got: &str| {
        Err(WireError::field(
            Code::BadJob,
            format!("{path}{field}"),
            expected,
            got,
        ))
    };
    match (&exists.status, &exists.pointer) {
        (Some(statuses), None) => {
            let is_status =
                |status: &f64| whole(*status).is_some_and(|status| (200..=499).contains(&status));
            let is_some = (1..=MAX_STATUSES).contains(&statuses.len());
            if !is_some || !statuses.iter().all(is_status) {
                let got = format!("{statuses:?}");
                return bad(".status", "1 to 16 statuses from 200 to 499", &got);
            }
            if exists.min.is_some() {
                return bad(".min", "none without a pointer", "a number");
            }
            Ok(())
        }
        (None, Some(pointer)) => {
            if method == "HEAD" {
                return bad(".pointer", "none with HEAD", pointer);
            }
            if !is_pointer(pointer) {
                return bad(".pointer", "a JSON pointer of up to 1024 bytes", pointer);
            }
            match exists.min {
                Some(min) if whole(min).is_none_or(|min| min < 1) => {
                    bad(".min", "a whole number from 1", &min.to_string())
                }
                Some(_) | None => Ok(()),
            }
        }
        (Some(_), Some(_)) => bad("", "either a status or a pointer", "both"),
        (None, None) => bad("", "a status, or a pointer", "nothing"),
    }
}

/// RFC 6901: empty, or parts that begin with `/`, in which `~` is followed by 0 or 1.
fn is_pointer(text: &str) -> bool {
    let mut escapes = text.split('~').skip(1);
    let is_begun = text.is_empty() || text.starts_with('/');
    is_begun && text.len() <= MAX_POINTER_BYTES && escapes.all(|rest| rest.starts_with(['0', '1']))
}

fn origin(url: &str) -> String {
    let host = url.find("://").map_or(0, |at| at + 3);
    let rest = url.get(host..).unwrap_or_default();
    let end = rest.find(['/', '?', '#']).map_or(url.len(), |at| host + at);
    url.get(..end).unwrap_or(url).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(check: serde_json::Value) -> Result<Check, WireError> {
        let message = serde_json::from_value(check).expect("of that shape");
        parse_check(&message, "job.check", "https://a.test/notes", "POST")
    }

    #[test]
    fn a_check_is_read_in_both_forms() {
        let by_status = serde_json::json!({
            "method": "HEAD", "url": "https://A.test/notes/7", "exists": { "status": [200] }, "afterMs": 0
        });
        let by_pointer = serde_json::json!({
            "url": "https://a.test?ref=7", "exists": { "pointer": "/a~1b/items", "min": 2 }
        });

        assert_eq!(parse(by_status), Ok(Check { after_ms: 0 }));
        assert_eq!(parse(by_pointer), Ok(Check { after_ms: 1_000 }));
    }

    #[test]
    fn what_is_no_check_is_refused_with_its_field() {
        let url = "https://a.test/notes/7";
        let status = serde_json::json!({ "status": [200] });
        for (check, field) in [
            (
                serde_json::json!({ "method": "POST", "url": url, "exists": status }),
                ".method",
            ),
            (
                serde_json::json!({ "url": "https://b.test/notes/7", "exists": status }),
                ".url",
            ),
            (
                serde_json::json!({ "url": "http://a.test/notes/7", "exists": status }),
                ".url",
            ),
            (serde_json::json!({ "exists": status }), ".url"),
            (serde_json::json!({ "url": url }), ".exists"),
            (serde_json::json!({ "url": url, "exists": {} }), ".exists"),
            (
                serde_json::json!({ "url": url, "exists": { "status": [200], "pointer": "" } }),
                ".exists",
            ),
            (
                serde_json::json!({ "url": url, "exists": { "status": [] } }),
                ".exists.status",
            ),
            (
                serde_json::json!({ "url": url, "exists": { "status": [503] } }),
                ".exists.status",
            ),
            (
                serde_json::json!({ "url": url, "exists": { "status": [200], "min": 1 } }),
                ".exists.min",
            ),
            (
                serde_json::json!({ "url": url, "exists": { "pointer": "items" } }),
                ".exists.pointer",
            ),
            (
                serde_json::json!({ "url": url, "exists": { "pointer": "/a~2" } }),
                ".exists.pointer",
            ),
            (
                serde_json::json!({ "url": url, "exists": { "pointer": "/a", "min": 0 } }),
                ".exists.min",
            ),
            (
                serde_json::json!({ "method": "HEAD", "url": url, "exists": { "pointer": "/a" } }),
                ".exists.pointer",
            ),
            (
                serde_json::json!({ "url": url, "exists": status, "afterMs": 600_001 }),
                ".afterMs",
            ),
            (
                serde_json::json!({ "url": url, "exists": status, "afterMs": -1 }),
                ".afterMs",
            ),
        ] {
            let error = parse(check).expect_err(field);

            assert_eq!(
                error.field.as_deref(),
                Some(format!("job.check{field}").as_str())
            );
        }
    }
}
