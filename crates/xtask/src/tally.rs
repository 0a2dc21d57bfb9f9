//! Counts tests by what their runners print.

use std::fmt;
use std::ops::AddAssign;

use serde_json::Value;

/// How many tests passed, failed, and were left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
}

impl Tally {
    /// Reads a closing line of cargo's test runner; any other line counts nothing.
    pub(crate) fn of_cargo_line(line: &str) -> Self {
        let Some(rest) = line.trim().strip_prefix("test result: ") else {
            return Self::default();
        };
        let count = |word: &str| {
            let part = rest
                .split([';', '.'])
                .find(|part| part.trim().ends_with(word));
            part.and_then(|part| part.split_whitespace().next()?.parse().ok())
                .unwrap_or(0)
        };
        Self {
            passed: count("passed"),
            failed: count("failed"),
            skipped: count("ignored"),
        }
    }

    /// Reads Playwright's JSON report. An error outside any test, as in a file that does not load, counts as one failure.
    pub(crate) fn of_playwright(report: &Value) -> Self {
        let count = |key: &str| report["stats"][key].as_u64().unwrap_or(0);
        let errors = report["errors"].as_array().map_or(0, Vec::len) as u64;
        Self {
            passed: count("expected"),
            failed: count("unexpected") + count("flaky") + errors,
            skipped: count("skipped"),
        }
    }

    /// One test that is a step of its own.
    pub(crate) fn one_pass() -> Self {
        Self {
            passed: 1,
            ..Self::default()
        }
    }

    /// One failure: of a step that has no tests of its own, or died before it could count them.
    pub(crate) fn one_failure() -> Self {
        Self {
            failed: 1,
            ..Self::default()
        }
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closing_line_of_cargo_is_counted() {
        let line = "test result: FAILED. 12 passed; 3 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.02s";

        assert_eq!(
            Tally::of_cargo_line(line),
            Tally {
                passed: 12,
                failed: 3,
                skipped: 1
            }
        );
    }

    #[test]
    fn other_lines_count_nothing() {
        assert_eq!(
            Tally::of_cargo_line("test foo::bar ... ok"),
            Tally::default()
        );
        assert_eq!(Tally::of_cargo_line("running 12 tests"), Tally::default());
    }

    #[test]
    fn error_outside_any_browser_test_is_a_failure() {
        let report = serde_json::json!({
            "stats": { "expected": 4, "unexpected": 1, "flaky": 0, "skipped": 2 },
            "errors": [{ "message": "does not load" }],
        });

        assert_eq!(
            Tally::of_playwright(&report),
            Tally {
                passed: 4,
                failed: 2,
                skipped: 2
            }
        );
    }
}
