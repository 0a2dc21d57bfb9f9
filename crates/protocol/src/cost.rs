//! What a request costs by its method and path, where an API weighs them.
//!
//! Invariant: a cost is at least 1; the first entry that fits counts.

use serde::Deserialize;

use crate::budget::{MAX_PATTERN_BYTES, matches, whole};
use crate::error::{Code, WireError};
use crate::job::METHODS;

/// The most costs of one budget.
pub const MAX_COSTS: usize = 64;

/// What requests of a kind cost.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields = nullable))]
pub struct CostMessage {
    /// The method; any when absent.
    #[serde(default)]
    pub method: Option<String>,
    /// The path, without query; `*` stands for any text. Any when absent.
    #[serde(default)]
    pub path: Option<String>,
    /// Units that one attempt uses.
    pub cost: f64,
}

/// A parsed cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cost {
    method: Option<String>,
    path: Option<String>,
    cost: u32,
}

/// Parses the costs of one budget; `path` is where that stands.
///
/// # Errors
/// Names the first field that is not as expected, as `path.costs[i].field`.
pub fn parse_costs(costs: &[CostMessage], path: &str) -> Result<Vec<Cost>, WireError> {
    if costs.len() > MAX_COSTS {
        let got = costs.len().to_string();
        let field = format!("{path}.costs");
        return Err(WireError::field(
            Code::BadJob,
            field,
            "at most 64 costs",
            &got,
        ));
    }
    let parsed = costs.iter().enumerate();
    let parsed = parsed.map(|(index, cost)| parse_cost(cost, &format!("{path}.costs[{index}]")));
    parsed.collect()
}

fn parse_cost(message: &CostMessage, at: &str) -> Result<Cost, WireError> {
    let bad = |field: &str, expected: &str, got: &str| {
        WireError::field(Code::BadJob, format!("{at}.{field}"), expected, got)
    };
    if let Some(method) = message
        .method
        .as_deref()
        .filter(|method| !METHODS.contains(method))
    {
        return Err(bad(
            "method",
            "GET, HEAD, POST, PUT, PATCH or DELETE",
            method,
        ));
    }
    let is_path = |path: &&str| {
        (path.starts_with('/') || path.starts_with('*')) && path.len() <= MAX_PATTERN_BYTES
    };
    if let Some(path) = message.path.as_deref().filter(|path| !is_path(path)) {
        return Err(bad(
            "path",
            "a path that begins with / or *, up to 2048 bytes",
            path,
        ));
    }
    let cost = whole(message.cost).filter(|cost| *cost > 0);
    let cost = cost.and_then(|cost| u32::try_from(cost).ok());
    Ok(Cost {
        method: message.method.clone(),
        path: message.path.clone(),
        cost: cost
            .ok_or_else(|| bad("cost", "a whole number from 1", &message.cost.to_string()))?,
    })
}

/// Returns what a request costs by the first entry that fits; none if none does.
pub fn cost_of(costs: &[Cost], method: &str, url: &str) -> Option<u32> {
    let path = path_of(url);
    let fits = |cost: &&Cost| {
        let is_method = cost.method.as_deref().is_none_or(|own| own == method);
        is_method && cost.path.as_deref().is_none_or(|own| matches(own, path))
    };
    costs.iter().find(fits).map(|cost| cost.cost)
}

/// Tells whether the path of a URL fits a pattern.
pub(crate) fn is_path(pattern: &str, url: &str) -> bool {
    matches(pattern, path_of(url))
}

/// The path of an absolute URL, without query and fragment.
fn path_of(url: &str) -> &str {
    let host = url.split_once("://").map_or(url, |(_, rest)| rest);
    let path = host.find('/').map_or("/", |at| &host[at..]);
    path.split(['?', '#']).next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(costs: serde_json::Value) -> Result<Vec<Cost>, WireError> {
        let costs: Vec<CostMessage> = serde_json::from_value(costs).expect("costs");
        parse_costs(&costs, "budgets[0]")
    }

    #[test]
    fn the_first_entry_that_fits_method_and_path_counts() {
        let costs = parse(serde_json::json!([
            { "method": "POST", "path": "/search*", "cost": 10 },
            { "method": "POST", "cost": 5 },
            { "path": "/heavy", "cost": 3 },
        ]))
        .expect("costs");
        let of = |method, url| cost_of(&costs, method, url);

        assert_eq!(of("POST", "https://a.test/search/x?y=/heavy"), Some(10));
        assert_eq!(of("POST", "https://a.test/heavy"), Some(5));
        assert_eq!(of("GET", "https://a.test/heavy?q"), Some(3));
        assert_eq!(of("GET", "https://a.test"), None);
    }

    #[test]
    fn names_the_field_that_is_wrong() {
        let field = |cost| parse(serde_json::json!([cost])).expect_err("bad").field;
        let at = |field: &str| Some(format!("budgets[0].costs[0].{field}"));

        assert_eq!(field(serde_json::json!({ "cost": 0 })), at("cost"));
        assert_eq!(field(serde_json::json!({ "cost": 1.5 })), at("cost"));
        assert_eq!(
            field(serde_json::json!({ "method": "post", "cost": 1 })),
            at("method")
        );
        assert_eq!(
            field(serde_json::json!({ "path": "x", "cost": 1 })),
            at("path")
        );
    }
}
