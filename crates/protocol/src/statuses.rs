//! What an app says of single statuses of one API, parsed: decisions by number, never by text.
//!
//! Invariant: only statuses from 200 to 599, at most [`MAX_STATUSES`], each with one of a fixed set of meanings.

use std::collections::BTreeMap;

use paceline_core::io::Verdict;

use crate::error::{Code, WireError};

/// The most statuses of one budget.
pub const MAX_STATUSES: usize = 64;

/// The meanings, by their names.
const MEANINGS: [(&str, Verdict); 5] = [
    ("done", Verdict::Success),
    ("failed", Verdict::Final),
    ("retry", Verdict::Unavailable),
    ("refused", Verdict::Refused),
    ("credentials", Verdict::Unauthorized),
];

/// What statuses mean for the jobs of a budget, where that is not what they mean elsewhere.
pub type Statuses = BTreeMap<u16, Verdict>;

/// Parses what an app says of statuses. `path` is where it stands in the message.
///
/// # Errors
/// Names the first status that is none, or has no such meaning.
pub(crate) fn parse_statuses(
    statuses: &BTreeMap<String, String>,
    path: &str,
) -> Result<Statuses, WireError> {
    let bad = |field: String, expected: &str, got: &str| {
        WireError::field(Code::BadJob, field, expected, got)
    };
    if statuses.len() > MAX_STATUSES {
        let got = statuses.len().to_string();
        return Err(bad(path.to_owned(), "at most 64 statuses", &got));
    }
    let parse = |(status, meaning): (&String, &String)| {
        let number = status.parse::<u16>().ok();
        let number = number.filter(|number| (200..=599).contains(number));
        let number =
            number.ok_or_else(|| bad(path.to_owned(), "statuses from 200 to 599", status))?;
        let known = MEANINGS.iter().find(|(name, _)| name == meaning);
        let (_, verdict) = known.ok_or_else(|| {
            let expected = "done, failed, retry, refused or credentials";
            bad(format!("{path}.{number}"), expected, meaning)
        })?;
        Ok((number, *verdict))
    };
    statuses.iter().map(parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(statuses: serde_json::Value) -> Result<Statuses, WireError> {
        let statuses = serde_json::from_value(statuses).expect("of that shape");
        parse_statuses(&statuses, "budgets[0].statuses")
    }

    #[test]
    fn a_status_may_mean_something_else() {
        let parsed = parse(serde_json::json!({ "423": "retry", "404": "done" }));

        let expected = [(404, Verdict::Success), (423, Verdict::Unavailable)];
        assert_eq!(parsed, Ok(expected.into()));
    }

    #[test]
    fn what_is_no_status_or_no_meaning_is_refused_with_its_field() {
        for (statuses, field) in [
            (serde_json::json!({ "600": "done" }), "budgets[0].statuses"),
            (serde_json::json!({ "199": "done" }), "budgets[0].statuses"),
            (serde_json::json!({ "4xx": "done" }), "budgets[0].statuses"),
            (
                serde_json::json!({ "404": "ignore" }),
                "budgets[0].statuses.404",
            ),
        ] {
            let error = parse(statuses).expect_err(field);

            assert_eq!(error.field.as_deref(), Some(field));
        }
        let many: BTreeMap<String, &str> = (400..465).map(|n| (n.to_string(), "done")).collect();
        assert!(parse(serde_json::json!(many)).is_err());
    }
}
