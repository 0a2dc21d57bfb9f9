//! Which requests a limit counts, where it does not count all: what an API documents beside its general limit.
//!
//! Invariant: what parsing returns is bounded and counts something.

use serde::Deserialize;

use crate::budget::MAX_PATTERN_BYTES;
use crate::cost::{MAX_COSTS, is_path};
use crate::error::{Code, WireError};
use crate::job::METHODS;

/// Which requests a limit counts; each part narrows.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields = nullable))]
pub struct CountsMessage {
    /// Their methods; all when absent.
    #[serde(default)]
    pub methods: Option<Vec<String>>,
    /// Their paths, without query; `*` stands for any text. All when absent.
    #[serde(default)]
    pub paths: Option<Vec<String>>,
}

/// Parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts {
    methods: Vec<String>,
    paths: Vec<String>,
}

impl Counts {
    /// The methods, in order; all when empty.
    pub fn methods(&self) -> &[String] {
        &self.methods
    }

    /// Tells whether one request may be counted by both.
    pub(crate) fn may_overlap(&self, other: &Self) -> bool {
        let is_theirs = |method: &String| other.methods.contains(method);
        self.methods.is_empty() || other.methods.is_empty() || self.methods.iter().any(is_theirs)
    }

    /// Tells whether a request is counted.
    pub fn fits(&self, method: &str, url: &str) -> bool {
        let is_method = self.methods.is_empty() || self.methods.iter().any(|own| own == method);
        is_method && (self.paths.is_empty() || self.paths.iter().any(|own| is_path(own, url)))
    }
}

/// Parses what a limit counts; `at` is where that stands.
///
/// # Errors
/// Names the first field that is not as expected, as `at.methods[i]`.
pub(crate) fn parse_counts(message: &CountsMessage, at: &str) -> Result<Counts, WireError> {
    let bad = |field: String, expected: &str, got: &str| {
        WireError::field(Code::BadJob, format!("{at}{field}"), expected, got)
    };
    let given = |list: &Option<Vec<String>>| list.clone().unwrap_or_default();
    let (mut methods, mut paths) = (given(&message.methods), given(&message.paths));
    if methods.is_empty() && paths.is_empty() {
        return Err(bad(String::new(), "methods or paths", "none"));
    }
    for (index, method) in methods.iter().enumerate() {
        if !METHODS.contains(&method.as_str()) {
            let expected = "GET, HEAD, POST, PUT, PATCH or DELETE";
            return Err(bad(format!(".methods[{index}]"), expected, method));
        }
    }
    if paths.len() > MAX_COSTS {
        let got = paths.len().to_string();
        return Err(bad(".paths".to_owned(), "at most 64 paths", &got));
    }
    for (index, path) in paths.iter().enumerate() {
        let is_path = path.starts_with('/') || path.starts_with('*');
        if !is_path || path.len() > MAX_PATTERN_BYTES {
            let expected = "a path that begins with / or *, up to 2048 bytes";
            return Err(bad(format!(".paths[{index}]"), expected, path));
        }
    }
    // The same, however it is written.
    for list in [&mut methods, &mut paths] {
        list.sort();
        list.dedup();
    }
    Ok(Counts { methods, paths })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::{Budget, BudgetMessage, parse_budgets};

    fn budget(limits: serde_json::Value) -> Result<Budget, WireError> {
        let message = serde_json::json!([{ "id": "b", "limits": limits }]);
        let messages: Vec<BudgetMessage> = serde_json::from_value(message).expect("a message");
        parse_budgets(&messages).map(|mut budgets| budgets.remove(0))
    }

    #[test]
    fn a_limit_may_count_only_some_requests() {
        let writes = serde_json::json!({ "methods": ["POST", "PATCH"], "paths": ["/repos/*"] });
        let same = serde_json::json!({ "methods": ["PATCH", "POST"], "paths": ["/repos/*"] });
        let made = budget(serde_json::json!([
            "900/1m",
            { "limit": 80, "window": "1m", "counts": writes },
            { "limit": 500, "window": "1h", "counts": same },
        ]))
        .expect("a budget");
        let [part] = made.parts.as_slice() else {
            panic!("one part")
        };
        let limits = |config: &paceline_core::config::BudgetConfig| {
            let rules = config.rules().iter();
            rules.map(|rule| rule.limit()).collect::<Vec<_>>()
        };

        assert_eq!(
            (limits(&made.config), limits(&part.config)),
            (vec![900], vec![80, 500])
        );
        assert_eq!(part.config.id.as_str(), "b#PATCH,POST");
        assert_eq!(part.config.parent(), Some(&made.config.id));
        let fits = |method, path| part.counts.fits(method, &format!("https://a.test{path}"));
        assert!(fits("POST", "/repos/x?y"));
        assert!(!fits("GET", "/repos/x") && !fits("POST", "/users/x"));
    }

    #[test]
    fn names_what_is_wrong_with_it() {
        let field = |counts: serde_json::Value| {
            let limit = serde_json::json!([{ "limit": 1, "window": "1m", "counts": counts }]);
            budget(limit).expect_err("bad").field.expect("a field")
        };
        let at = "budgets[0].limits[0].counts";

        assert_eq!(field(serde_json::json!({})), at);
        assert_eq!(
            field(serde_json::json!({ "methods": ["GET", "FETCH"] })),
            format!("{at}.methods[1]")
        );
        assert_eq!(
            field(serde_json::json!({ "paths": ["repos"] })),
            format!("{at}.paths[0]")
        );
        assert_eq!(
            field(serde_json::json!({ "paths": vec!["/"; 65] })),
            format!("{at}.paths")
        );
    }

    #[test]
    fn kinds_of_counting_in_one_budget_share_no_method() {
        let both = |other: serde_json::Value| {
            budget(serde_json::json!([
                { "limit": 80, "window": "1m", "counts": { "methods": ["POST"] } },
                { "limit": 5, "window": "1m", "counts": other },
            ]))
        };

        let apart = both(serde_json::json!({ "methods": ["DELETE"] })).expect("two parts");
        assert_eq!(apart.parts.len(), 2);
        let error = both(serde_json::json!({ "paths": ["/media"] })).expect_err("both");
        assert_eq!(error.field.as_deref(), Some("budgets[0].limits[1].counts"));
        assert!(error.message.contains("parent"), "{}", error.message);
    }
}
