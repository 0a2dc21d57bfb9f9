//! What a response says about limits, in one normal form.
//!
//! Owns the form alone: how an API writes it is known to the `signals` crate, what a budget makes of it to the budget.
//! Invariant: what was not said, or could not be read, is absent; an absent value never means zero.

/// The most budgets of one response.
pub const MAX_BUDGETS: usize = 16;

/// The signals of one response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Signals {
    /// Whether this response is a refusal for a rate, a quota, concurrency or a stated overload.
    pub is_rate_limited: bool,
    /// How long the server asks to wait, in milliseconds. 0 is what the server said, not what will be waited.
    pub retry_after_ms: Option<u64>,
    /// The limits that it names, the one that matters most first.
    pub budgets: Vec<BudgetSignal>,
    /// What the request has cost, in units of its budget.
    pub cost: Option<u32>,
    /// How many requests may be in flight at once.
    pub concurrency: Option<u32>,
    /// Whether the server says that the same request may be sent again; none where it does not say.
    pub is_retryable: Option<bool>,
    /// Whether the wait that it tells is a guess. Where it tells none, the guess is ours.
    pub is_estimate: bool,
}

/// One limit of a response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BudgetSignal {
    /// What the server calls it: a resource, a policy, `global`.
    pub scope: Option<String>,
    /// Units in a window, or a bucket's capacity.
    pub limit: Option<u64>,
    /// Units left.
    pub remaining: Option<u64>,
    /// How long until the window starts anew, or the bucket is full, in milliseconds.
    pub reset_in_ms: Option<u64>,
    /// The window, in milliseconds.
    pub window_ms: Option<u64>,
}

impl Signals {
    /// Returns what matters most: the limit that is used up, else the one with the least left.
    pub fn first(&self) -> Option<&BudgetSignal> {
        self.budgets.first()
    }
}
