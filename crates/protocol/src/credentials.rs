//! Credentials of a budget as a tab gives them, parsed and bounded.
//!
//! Invariant: nothing here shows a value, neither in an error nor as debug output. Whoever holds one keeps it in memory.

use std::collections::BTreeMap;
use std::fmt;

use paceline_core::ids::BudgetId;
use serde::Deserialize;

use crate::budget::is_header_name;
use crate::error::{Code, WireError};

/// The most headers of one budget's credentials.
pub const MAX_HEADERS: usize = 32;
/// The longest value, in bytes.
pub const MAX_VALUE_BYTES: usize = 8_192;

/// Headers by name, as a tab gives them. Shows no value.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(transparent)]
pub struct Secrets(BTreeMap<String, String>);

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.keys()).finish()
    }
}

impl Secrets {
    /// Returns the headers, to be sent and to nothing else.
    pub fn reveal(self) -> impl Iterator<Item = (String, String)> {
        self.0.into_iter()
    }
}

/// The fields of `credentials`.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields = nullable))]
pub struct Credentials {
    /// The budget.
    #[cfg_attr(test, ts(as = "String"))]
    pub budget: BudgetId,
    /// The headers to add to each of its requests; none if the tab has none.
    #[serde(default)]
    pub headers: Option<Secrets>,
}

impl Credentials {
    /// Checks the headers.
    ///
    /// # Errors
    /// When there are too many, or one is no header; the error names it and never its value.
    pub fn check(&self) -> Result<(), WireError> {
        let Some(Secrets(headers)) = &self.headers else {
            return Ok(());
        };
        let bad = |field: &str, expected: &str, got: &str| {
            Err(WireError::field(Code::BadJob, field, expected, got))
        };
        if headers.len() > MAX_HEADERS {
            return bad("headers", "at most 32 headers", &headers.len().to_string());
        }
        for (name, value) in headers {
            if !is_header_name(name) {
                return bad("headers", "header names", "another text");
            }
            let is_sendable = |c: char| c <= '\u{ff}' && !matches!(c, '\r' | '\n' | '\0');
            if value.len() > MAX_VALUE_BYTES || !value.chars().all(is_sendable) {
                let field = format!("headers.{name}");
                let expected = "a header value of up to 8192 bytes";
                return bad(&field, expected, "another text");
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn credentials(headers: serde_json::Value) -> Credentials {
        let message = serde_json::json!({ "budget": "api", "headers": headers });
        serde_json::from_value(message).expect("of that shape")
    }

    #[test]
    fn no_value_is_shown() {
        let given = credentials(serde_json::json!({ "Authorization": "Bearer s3cret" }));

        assert!(given.check().is_ok());
        let shown = format!("{given:?}");
        assert!(
            shown.contains("Authorization") && !shown.contains("s3cret"),
            "{shown}"
        );
    }

    #[test]
    fn what_is_no_header_is_refused_without_being_repeated() {
        for headers in [
            serde_json::json!({ "Authorization": "s3cret\nX: y" }),
            serde_json::json!({ "Authorization": "s3cret \u{20ac}" }),
            serde_json::json!({ "not a name s3cret": "x" }),
        ] {
            let error = credentials(headers).check().expect_err("no header");

            assert_eq!(error.code, Code::BadJob);
            assert!(!format!("{error:?}").contains("s3cret"), "{error:?}");
        }
        let many: BTreeMap<String, &str> = (0..33).map(|n| (format!("x-{n}"), "y")).collect();
        assert!(credentials(serde_json::json!(many)).check().is_err());
    }
}
