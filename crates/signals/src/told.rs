//! What an app's own function has read in an answer, where no table of headers is enough.
//!
//! Owns what such a reading adds to that of status and `Retry-After`. Invariant: the values are bounded before they come
//! here; what the function does not say is absent, and the status speaks for itself.

use paceline_core::signals::BudgetSignal;

use crate::reading::Reading;

/// The normal form as a function gives it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// Whether the answer is a refusal for a limit; none where the status tells.
    pub is_rate_limited: Option<bool>,
    /// How long to wait, in milliseconds; wins over `Retry-After`.
    pub retry_after_ms: Option<u64>,
    /// The limits.
    pub budgets: Vec<BudgetSignal>,
    /// What the request has cost.
    pub cost: Option<u32>,
    /// How many requests may be in flight at once.
    pub concurrency: Option<u32>,
    /// Whether the same request may be sent again.
    pub is_retryable: Option<bool>,
    /// Whether the wait is a guess.
    pub is_estimate: bool,
    /// Values that were there and could not be read.
    pub unreadable: u32,
}

impl Told {
    pub(crate) fn add_to(&self, reading: &mut Reading) {
        match self.is_rate_limited {
            Some(true) => reading.refuse(),
            Some(false) => reading.no_limit(),
            None => {}
        }
        for budget in &self.budgets {
            reading.push(budget.clone());
        }
        if let Some(most) = self.concurrency {
            reading.push_concurrency(None, Some(u64::from(most)), None);
        }
        reading.cost = self.cost;
        reading.is_estimate = self.is_estimate;
        reading.is_retryable = self.is_retryable.or(reading.is_retryable);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use paceline_core::io::Verdict;
    use paceline_core::time::Wall;

    use super::*;
    use crate::{AnyDialect, BodyNeed, Response, Sent, read};

    const NOW: Wall = Wall::from_millis(1_788_264_000_000);

    fn answer(status: u16, headers: &[(String, String)], told: &Told) -> paceline_core::io::Answer {
        let response = Response {
            status,
            headers,
            told: Some(told),
            ..Response::default()
        };
        read(&response, defined(), Sent::First, NOW)
    }

    fn defined() -> AnyDialect {
        AnyDialect::Defined(Arc::from("mine"))
    }

    #[test]
    fn a_function_says_that_a_success_is_a_refusal_and_for_how_long() {
        let told = Told {
            is_rate_limited: Some(true),
            retry_after_ms: Some(2_500),
            ..Told::default()
        };

        let answer = answer(200, &[], &told);

        assert_eq!(answer.verdict, Verdict::Refused);
        assert_eq!(answer.signals.retry_after_ms, Some(2_500));
    }

    #[test]
    fn a_function_says_that_a_429_is_no_limit() {
        let told = Told {
            is_rate_limited: Some(false),
            ..Told::default()
        };

        assert_eq!(answer(429, &[], &told).verdict, Verdict::Final);
    }

    #[test]
    fn its_wait_wins_over_the_header_which_is_read_where_it_says_none() {
        let header = [("retry-after".to_owned(), "7".to_owned())];
        let told = Told {
            retry_after_ms: Some(1_200),
            ..Told::default()
        };

        let with = answer(429, &header, &told).signals.retry_after_ms;
        let without = answer(429, &header, &Told::default())
            .signals
            .retry_after_ms;

        assert_eq!((with, without), (Some(1_200), Some(7_000)));
    }

    #[test]
    fn its_limits_are_signals_like_any_others() {
        let budget = |scope: &str, remaining| BudgetSignal {
            scope: Some(scope.to_owned()),
            limit: Some(10),
            remaining: Some(remaining),
            reset_in_ms: Some(4_000),
            window_ms: Some(10_000),
        };
        let told = Told {
            budgets: vec![budget("wide", 8), budget("narrow", 0)],
            cost: Some(3),
            concurrency: Some(2),
            ..Told::default()
        };

        let signals = answer(429, &[], &told).signals;

        assert_eq!(signals.first(), Some(&budget("narrow", 0)));
        assert_eq!(signals.retry_after_ms, Some(4_000), "the used-up one opens");
        assert_eq!((signals.cost, signals.concurrency), (Some(3), Some(2)));
    }

    #[test]
    fn a_function_sees_the_body_of_every_answer() {
        assert_eq!(defined().body(), BodyNeed::All);
        assert_eq!(defined().name(), "worker");
    }
}
