//! What a dialect found, and what follows from it: which limit matters most, how long to wait, what it means for the job.
//!
//! Invariant: a wait that nobody stated is absent, never 0; the reset of a limit that is not used up is never a wait,
//! because then another limiter has refused.

use paceline_core::io::Verdict;
use paceline_core::signals::{BudgetSignal, MAX_BUDGETS, Signals};

use crate::Sent;
use crate::view::View;

/// One limit of a response, in the order of the response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// The limit.
    pub budget: BudgetSignal,
    /// Units used, where those are told instead of the units left.
    pub used: Option<u64>,
    /// What it counts.
    pub unit: Unit,
}

/// What a limit counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unit {
    /// Requests, points or tokens over time.
    #[default]
    Rate,
    /// Requests in flight.
    Concurrency,
}

/// All that one response says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// The dialect that was read.
    pub dialect: &'static str,
    /// Whether this response is a refusal for a rate, a quota, concurrency or a stated overload.
    pub is_rate_limited: bool,
    /// How long the server asks to wait, in milliseconds.
    pub retry_after_ms: Option<u64>,
    /// The limits in the order of the response.
    pub found: Vec<Found>,
    /// The one that matters most: used up and opening last, else the one of which the least is left.
    pub first: BudgetSignal,
    /// What the request has cost.
    pub cost: Option<u32>,
    /// Whether the server says that the same request may be sent again.
    pub is_retryable: Option<bool>,
    /// Whether the wait that it tells is a guess.
    pub is_estimate: bool,
    /// Values that were there and could not be read.
    pub unreadable: u32,
    /// Whether a wait was longer than [`MAX_WAIT_MS`](crate::MAX_WAIT_MS), and was cut to it.
    pub is_cut: bool,
    refusal: Option<bool>,
    named: Option<String>,
    headline: Option<BudgetSignal>,
    penalty_ms: Option<u64>,
}

impl Reading {
    /// Adds a limit, if it says anything.
    pub(crate) fn push(&mut self, budget: BudgetSignal) {
        let says =
            budget.limit.is_some() || budget.remaining.is_some() || budget.reset_in_ms.is_some();
        if says {
            self.add(Found {
                budget,
                ..Found::default()
            });
        }
    }

    /// Adds a limit on what is in flight.
    pub(crate) fn push_concurrency(
        &mut self,
        scope: Option<String>,
        limit: Option<u64>,
        remaining: Option<u64>,
    ) {
        let budget = BudgetSignal {
            scope,
            limit,
            remaining,
            ..BudgetSignal::default()
        };
        self.add(Found {
            budget,
            unit: Unit::Concurrency,
            used: None,
        });
    }

    pub(crate) fn add(&mut self, found: Found) {
        if self.found.len() < MAX_BUDGETS {
            self.found.push(found);
        }
    }

    /// The response is a refusal, whatever its status says.
    pub(crate) fn refuse(&mut self) {
        self.refusal = Some(true);
    }

    /// The response is a refusal by the limit of that name.
    pub(crate) fn refuse_by(&mut self, scope: &str) {
        self.refuse();
        self.name(scope);
    }

    /// Names the limit that the response speaks of, where no budget does.
    pub(crate) fn name(&mut self, scope: &str) {
        self.named = Some(scope.to_owned());
    }

    /// Sets what matters most by hand.
    pub(crate) fn headline(&mut self, budget: BudgetSignal) {
        self.headline = Some(budget);
    }

    /// The response is no refusal for a limit, whatever its status says.
    pub(crate) fn no_limit(&mut self) {
        self.refusal = Some(false);
    }

    /// States a wait, unless one is stated already.
    pub(crate) fn wait(&mut self, wait_ms: Option<u64>) {
        self.retry_after_ms = self.retry_after_ms.or(wait_ms);
    }

    /// States how long a refusal lasts that says nothing itself.
    pub(crate) fn penalty(&mut self, wait_ms: u64) {
        self.penalty_ms = Some(wait_ms);
    }

    /// Draws the conclusions.
    pub(crate) fn conclude(&mut self, view: &View<'_>) {
        self.is_rate_limited = self.refusal.unwrap_or(matches!(view.status, 429 | 529));
        let chosen = choose(self.found.iter(), self.named.as_deref());
        self.first = chosen.map(|found| found.budget.clone()).unwrap_or_default();
        if let Some(headline) = self.headline.take() {
            self.first = headline;
        }
        if self.is_rate_limited && self.retry_after_ms.is_none() {
            self.retry_after_ms = self.wait_for_reset().or(self.penalty_ms);
        }
        if let Some(named) = &self.named {
            self.first.scope = Some(named.clone());
        }
        self.unreadable = view.unreadable.get();
        self.is_cut = view.is_cut.get();
    }

    /// The wait of a refusal that shows a used-up limit, or nothing but an instant.
    fn wait_for_reset(&self) -> Option<u64> {
        let is_empty = self.first.remaining.unwrap_or(0) == 0;
        self.first.reset_in_ms.filter(|_| is_empty)
    }

    /// What the response means for its job.
    ///
    /// 429 is RFC 6585 section 4, 425 is RFC 8470, 503 with Retry-After is RFC 9110 section 15.6.4; 409 and 422 on a
    /// repeat are the answers of the Idempotency-Key draft (draft-ietf-httpapi-idempotency-key-header, section 2.7).
    pub(crate) fn verdict(&self, status: u16, sent: Sent) -> Verdict {
        if self.is_rate_limited {
            return Verdict::Refused;
        }
        match (status, sent) {
            (200..=299 | 304, _) => Verdict::Success,
            (401, _) => Verdict::Unauthorized,
            (425, _) => Verdict::Refused,
            (503, _) if self.retry_after_ms.is_some() => Verdict::Refused,
            (409, Sent::AgainWithKey) => Verdict::StillRunning,
            (422, Sent::AgainWithKey) => Verdict::KeyReused,
            (408 | 500 | 502 | 503 | 504, _) if self.is_retryable != Some(false) => {
                Verdict::Unavailable
            }
            // No limit, and yet to be sent again: another request held the object (Stripe's `lock_timeout`).
            (409 | 429, _) if self.is_retryable == Some(true) => Verdict::Unavailable,
            _ => Verdict::Final,
        }
    }

    /// The part that the core needs, the limit that matters most first.
    pub(crate) fn signals(&self) -> Signals {
        let rates = || self.found.iter().filter(|found| found.unit == Unit::Rate);
        let named = self.named.as_deref();
        let chosen = choose(rates(), named);
        let is_new = |name: &&str| rates().all(|found| found.budget.scope.as_deref() != Some(name));
        let without_numbers = named.filter(is_new).map(|name| BudgetSignal {
            scope: Some(name.to_owned()),
            ..BudgetSignal::default()
        });
        let others = rates().filter(|found| chosen.is_some_and(|one| !std::ptr::eq(one, *found)));
        let budgets = chosen.into_iter().chain(others);
        let in_flight = self
            .found
            .iter()
            .find(|found| found.unit == Unit::Concurrency);
        Signals {
            is_rate_limited: self.is_rate_limited,
            retry_after_ms: self.retry_after_ms,
            budgets: without_numbers
                .into_iter()
                .chain(budgets.map(|found| found.budget.clone()))
                .take(MAX_BUDGETS)
                .collect(),
            cost: self.cost,
            concurrency: in_flight.and_then(|found| u32::try_from(found.budget.limit?).ok()),
            is_retryable: self.is_retryable,
            is_estimate: self.is_estimate,
        }
    }
}

/// Chooses the limit that matters most: the one that the response names, else of the used-up ones the one that opens
/// last, else the one with the smallest share left, else the one with the least left, else the first.
fn choose<'f>(
    found: impl Iterator<Item = &'f Found> + Clone,
    named: Option<&str>,
) -> Option<&'f Found> {
    let is_named = |one: &&Found| named.is_some() && one.budget.scope.as_deref() == named;
    let most = found.clone().reduce(|best, other| {
        if matters_more(other, best) {
            other
        } else {
            best
        }
    });
    found.clone().find(is_named).or(most)
}

fn matters_more(one: &Found, other: &Found) -> bool {
    let is_empty = |found: &Found| found.budget.remaining == Some(0);
    match (is_empty(one), is_empty(other)) {
        (true, true) => return one.budget.reset_in_ms > other.budget.reset_in_ms,
        (true, false) => return true,
        (false, true) => return false,
        (false, false) => {}
    }
    if one.unit != other.unit {
        return one.unit == Unit::Rate;
    }
    let (one, other) = (&one.budget, &other.budget);
    match (share(one), share(other)) {
        (Some((left, limit)), Some((other_left, other_limit))) => {
            left * other_limit < other_left * limit
        }
        (Some(_), None) => true,
        (None, Some(_)) => false,
        (None, None) => one
            .remaining
            .is_some_and(|left| other.remaining.is_none_or(|other| left < other)),
    }
}

/// Units left and limit, for a comparison without a division.
fn share(budget: &BudgetSignal) -> Option<(u128, u128)> {
    let limit = budget.limit.filter(|limit| *limit > 0)?;
    Some((budget.remaining?.into(), limit.into()))
}
