//! What a budget may spend: limit rules and their text form, parsed and bounded.
//!
//! Invariant: a [`BudgetConfig`] that exists is usable; every number in it is in range.

use std::collections::BTreeMap;

use crate::batch::BatchRule;
use crate::ids::{BatchName, BudgetId};

/// The longest window of a rule: 31 days.
pub const MAX_WINDOW_MS: u64 = 31 * 24 * 3_600_000;
/// The most units that a rule may grant in one window.
pub const MAX_LIMIT: u32 = 10_000_000;
/// The most rules of one budget.
pub const MAX_RULES: usize = 8;
/// The most budgets above one.
pub const MAX_PARENTS: usize = 4;
/// The most scopes that one budget maps.
pub const MAX_SCOPES: usize = 64;
/// The most batch endpoints of one budget.
pub const MAX_BATCHES: usize = 64;
/// The most requests in flight that a budget may be given.
pub const MAX_IN_FLIGHT: u32 = 1_000;

/// The largest part of a rule that may be kept for the interactive lane, in thousandths.
pub const MAX_RESERVE_PERMILLE: u32 = 900;

/// How a rule counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// A slot is free one window after the *answer*: safe against every server that counts in a sliding window.
    ArrivalLog,
    /// A slot is free one window after the start.
    SlidingLog,
    /// N from each window's start to its end.
    FixedWindow,
    /// This window's count and the last one's in proportion.
    SlidingCounter,
    /// A bucket of `limit` units that refills evenly over the window.
    TokenBucket,
    /// The same as a meter that drains: the traffic of a token bucket.
    LeakyBucket,
    /// One unit each window/limit, never a burst.
    LeakyQueue,
    /// The generic cell rate algorithm: the traffic of a token bucket.
    Gcra,
    /// N at once, then a window with nothing in flight.
    BatchRest,
}

impl Algorithm {
    /// All algorithms.
    pub const ALL: [Self; 9] = [
        Self::ArrivalLog,
        Self::SlidingLog,
        Self::FixedWindow,
        Self::SlidingCounter,
        Self::TokenBucket,
        Self::LeakyBucket,
        Self::LeakyQueue,
        Self::Gcra,
        Self::BatchRest,
    ];

    /// Parses the name used in configurations.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|algorithm| algorithm.as_str() == name)
    }

    /// Returns the name used in configurations.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ArrivalLog => "arrival-log",
            Self::SlidingLog => "sliding-log",
            Self::FixedWindow => "fixed-window",
            Self::SlidingCounter => "sliding-counter",
            Self::TokenBucket => "token-bucket",
            Self::LeakyBucket => "leaky-bucket",
            Self::LeakyQueue => "leaky-queue",
            Self::Gcra => "gcra",
            Self::BatchRest => "batch-rest",
        }
    }

    /// Tells whether the rule counts in windows, so that starts after a pause must be spaced: a full window may be free.
    pub const fn is_window(self) -> bool {
        match self {
            Self::ArrivalLog
            | Self::SlidingLog
            | Self::FixedWindow
            | Self::SlidingCounter
            | Self::BatchRest => true,
            Self::TokenBucket | Self::LeakyBucket | Self::LeakyQueue | Self::Gcra => false,
        }
    }
}

/// When fixed windows begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Anchor {
    /// At the first start after the last window.
    #[default]
    First,
    /// At multiples of the window on the wall clock, in UTC.
    Clock,
}

/// How bulk and background jobs start while a rule over a window would let many start at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Pace {
    /// Evenly over windows longer than a second, small bulks at once.
    #[default]
    Auto,
    /// As fast as the rules admit.
    Burst,
    /// Evenly over every window, however short, small bulks too.
    Even,
}

impl Pace {
    /// All paces.
    pub const ALL: [Self; 3] = [Self::Auto, Self::Burst, Self::Even];

    /// Parses the name used in configurations.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|pace| pace.as_str() == name)
    }

    /// Returns the name used in configurations.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Burst => "burst",
            Self::Even => "even",
        }
    }
}

/// `limit` units per window, counted by one algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitRule {
    limit: u32,
    window_ms: u64,
    algorithm: Algorithm,
    anchor: Anchor,
    learns: bool,
}

/// Why a rule or budget is refused. The field is named by the caller, who knows where it stands.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The text form is not `"N/window"`.
    #[error("expected \"N/window\" with a window such as 10s, 500ms, 1m, 1h or 1d, got {0:?}")]
    Grammar(String),
    /// The limit is out of range.
    #[error("expected a limit from 1 to 10000000, got {0}")]
    Limit(u64),
    /// The window is out of range.
    #[error("expected a window from 1 ms to 31 days, got {0} ms")]
    Window(u64),
    /// The number of rules is out of range.
    #[error("expected up to 8 limits, got {0}")]
    Rules(usize),
    /// The concurrency is out of range.
    #[error("expected 1 to 1000 requests in flight, got {0}")]
    InFlight(u64),
    /// The name of a budget whose rules count only some requests is too long.
    #[error(
        "expected a name of up to 224 characters for a budget with a limit that counts only some requests"
    )]
    PartName,
    /// The number of scopes is out of range.
    #[error("expected up to 64 scopes, got {0}")]
    Scopes(usize),
    /// The number of batch endpoints is out of range.
    #[error("expected up to 64 batches, got {0}")]
    Batches(usize),
    /// The share is out of range.
    #[error("expected a share above 0 and up to 1, got {0}")]
    Share(String),
    /// The part that is kept for the interactive lane is out of range.
    #[error("expected 0 to 900 thousandths kept for the interactive lane, got {0}")]
    Reserve(u32),
}

impl LimitRule {
    /// Makes a rule of `limit` units per `window_ms`.
    ///
    /// # Errors
    /// When the limit or the window is out of range.
    pub fn new(limit: u64, window_ms: u64, algorithm: Algorithm) -> Result<Self, ConfigError> {
        if window_ms == 0 || window_ms > MAX_WINDOW_MS {
            return Err(ConfigError::Window(window_ms));
        }
        let limit = u32::try_from(limit)
            .ok()
            .filter(|limit| (1..=MAX_LIMIT).contains(limit))
            .ok_or(ConfigError::Limit(limit))?;
        Ok(Self {
            limit,
            window_ms,
            algorithm,
            anchor: Anchor::First,
            learns: false,
        })
    }

    /// Parses `"N/window"`, where window is an optional number and one of ms, s, m, h, d.
    ///
    /// # Errors
    /// When the text has another form or a number is out of range.
    pub fn parse(text: &str, algorithm: Algorithm) -> Result<Self, ConfigError> {
        let grammar = || ConfigError::Grammar(text.chars().take(40).collect());
        let (limit, window) = text.split_once('/').ok_or_else(grammar)?;
        let limit = limit.trim().parse().map_err(|_| grammar())?;
        let window_ms = parse_window(window.trim()).ok_or_else(grammar)?;
        Self::new(limit, window_ms, algorithm)
    }

    /// Returns the units granted in one window.
    pub const fn limit(self) -> u32 {
        self.limit
    }

    /// Returns the window in milliseconds.
    pub const fn window_ms(self) -> u64 {
        self.window_ms
    }

    /// Returns the rule with its fixed windows anchored.
    #[must_use]
    pub const fn anchored(self, anchor: Anchor) -> Self {
        Self { anchor, ..self }
    }

    /// Returns when fixed windows begin.
    pub const fn anchor(self) -> Anchor {
        self.anchor
    }

    /// Returns the rule as one whose numbers are a guess: what the server publishes may raise them.
    #[must_use]
    pub const fn learning(self) -> Self {
        Self {
            learns: true,
            ..self
        }
    }

    /// Tells whether what the server publishes may raise the rule's numbers.
    pub const fn learns(self) -> bool {
        self.learns
    }

    /// Returns the rule with the numbers that the server published; none if they are out of range.
    #[must_use]
    pub fn published(self, limit: u64, window_ms: u64) -> Option<Self> {
        let rule = Self::new(limit, window_ms, self.algorithm).ok()?;
        Some(Self {
            limit: rule.limit,
            window_ms: rule.window_ms,
            ..self
        })
    }

    /// Returns how the rule counts.
    pub const fn algorithm(self) -> Algorithm {
        self.algorithm
    }

    /// Returns the rule with `units` less, at least 1.
    #[must_use]
    pub(crate) fn without(self, units: u32) -> Self {
        let limit = self.limit.saturating_sub(units).max(1);
        Self { limit, ..self }
    }

    /// Returns the rule with its limit multiplied by `permille` thousandths, rounded down, at least 1.
    #[must_use]
    pub fn scaled(self, permille: u32) -> Self {
        let limit = (u64::from(self.limit).saturating_mul(u64::from(permille)) / 1_000).max(1);
        Self {
            limit: u32::try_from(limit).unwrap_or(self.limit),
            ..self
        }
    }
}

/// Parses a window such as `10s`, `500ms` or `h` into milliseconds.
pub fn parse_window(text: &str) -> Option<u64> {
    let digits = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: u64 = if number.is_empty() {
        1
    } else {
        number.parse().ok()?
    };
    let unit_ms = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    number.checked_mul(unit_ms)
}

/// What becomes of jobs where a server asks for a long wait. The wait itself is never shortened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongWait {
    /// Longer than this is long, in milliseconds.
    pub above_ms: u64,
    /// Whether the jobs fail then; else they are parked, and shown as that.
    pub fails: bool,
}

impl Default for LongWait {
    /// Parked for more than an hour.
    fn default() -> Self {
        Self {
            above_ms: 3_600_000,
            fails: false,
        }
    }
}

/// What a budget may spend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BudgetConfig {
    /// The budget's name.
    pub id: BudgetId,
    rules: Vec<LimitRule>,
    max_in_flight: Option<u32>,
    key_ttl_ms: Option<u64>,
    share_permille: u32,
    parent: Option<BudgetId>,
    scopes: BTreeMap<String, BudgetId>,
    base: Option<BudgetId>,
    is_part: bool,
    long_wait: LongWait,
    pace: Pace,
    reserve_permille: u32,
    needs_credentials: bool,
    batches: BTreeMap<BatchName, BatchRule>,
}

impl BudgetConfig {
    /// Makes a budget; `share_permille` thousandths of each rule are used.
    ///
    /// `key_ttl_ms` is how long the server honours an idempotency key, none if it does not.
    ///
    /// # Errors
    /// When a number is out of range.
    pub fn new(
        id: BudgetId,
        rules: Vec<LimitRule>,
        max_in_flight: Option<u64>,
        share_permille: u32,
        key_ttl_ms: Option<u64>,
    ) -> Result<Self, ConfigError> {
        if rules.len() > MAX_RULES {
            return Err(ConfigError::Rules(rules.len()));
        }
        if !(1..=1_000).contains(&share_permille) {
            return Err(ConfigError::Share(share_permille.to_string()));
        }
        let max_in_flight = max_in_flight.map(parse_in_flight).transpose()?;
        let rules = rules
            .into_iter()
            .map(|rule| rule.scaled(share_permille))
            .collect();
        Ok(Self {
            id,
            rules,
            max_in_flight,
            key_ttl_ms,
            share_permille,
            parent: None,
            scopes: BTreeMap::new(),
            base: None,
            is_part: false,
            long_wait: LongWait::default(),
            pace: Pace::default(),
            reserve_permille: 0,
            needs_credentials: false,
            batches: BTreeMap::new(),
        })
    }

    /// Returns the budget with other terms for long waits.
    #[must_use]
    pub fn with_long_wait(self, long_wait: LongWait) -> Self {
        Self { long_wait, ..self }
    }

    /// Returns what becomes of jobs where the server asks for a long wait.
    pub const fn long_wait(&self) -> LongWait {
        self.long_wait
    }

    /// Returns the budget with another pace of its bulk and background jobs.
    #[must_use]
    pub fn with_pace(self, pace: Pace) -> Self {
        Self { pace, ..self }
    }

    /// Returns the budget with that many thousandths of each rule kept for the interactive lane.
    ///
    /// # Errors
    /// When it is more than [`MAX_RESERVE_PERMILLE`].
    pub fn with_reserve(self, reserve_permille: u32) -> Result<Self, ConfigError> {
        if reserve_permille > MAX_RESERVE_PERMILLE {
            return Err(ConfigError::Reserve(reserve_permille));
        }
        Ok(Self {
            reserve_permille,
            ..self
        })
    }

    /// Returns the budget with a parent, whose rules must admit too.
    #[must_use]
    pub fn with_parent(self, parent: Option<BudgetId>) -> Self {
        Self { parent, ..self }
    }

    /// Returns the budget with the budgets that its server's scopes stand for.
    ///
    /// # Errors
    /// When there are more than [`MAX_SCOPES`].
    pub fn with_scopes(self, scopes: BTreeMap<String, BudgetId>) -> Result<Self, ConfigError> {
        if scopes.len() > MAX_SCOPES {
            return Err(ConfigError::Scopes(scopes.len()));
        }
        Ok(Self { scopes, ..self })
    }

    /// The budget of a scope of this one's server that nobody declared: without rules of its own, until the server
    /// names some.
    #[must_use]
    pub fn of_scope(&self, id: BudgetId) -> Self {
        Self {
            base: Some(self.base.clone().unwrap_or_else(|| self.id.clone())),
            id,
            rules: Vec::new(),
            scopes: BTreeMap::new(),
            ..self.clone()
        }
    }

    /// The budget of an unknown API: 5 per second, 2 in flight.
    pub fn implicit(id: BudgetId) -> Self {
        let rule = LimitRule {
            limit: 5,
            window_ms: 1_000,
            algorithm: Algorithm::ArrivalLog,
            anchor: Anchor::First,
            learns: true,
        };
        Self {
            id,
            rules: vec![rule],
            max_in_flight: Some(2),
            key_ttl_ms: None,
            share_permille: 1_000,
            parent: None,
            scopes: BTreeMap::new(),
            base: None,
            is_part: false,
            long_wait: LongWait::default(),
            pace: Pace::default(),
            reserve_permille: 0,
            needs_credentials: false,
            batches: BTreeMap::new(),
        }
    }

    /// Returns the part of the budget for the requests of some methods (all when empty) that `rules` count: a budget under
    /// this one, so that theirs and its own must admit. What their answers say of limits, and their refusals, are the whole
    /// budget's.
    ///
    /// # Errors
    /// When there are too many rules, or the name of the part would be too long.
    pub fn part(&self, methods: &[String], rules: Vec<LimitRule>) -> Result<Self, ConfigError> {
        if rules.len() > MAX_RULES {
            return Err(ConfigError::Rules(rules.len()));
        }
        let id = self.id.part(methods).map_err(|_| ConfigError::PartName)?;
        let rules = rules.into_iter();
        Ok(Self {
            rules: rules.map(|rule| rule.scaled(self.share_permille)).collect(),
            ..self.uncounted(id)
        })
    }

    /// Returns a part of the budget that nobody says any more what it counts.
    #[must_use]
    pub fn uncounted(&self, id: BudgetId) -> Self {
        Self {
            id,
            rules: Vec::new(),
            max_in_flight: None,
            parent: Some(self.id.clone()),
            scopes: BTreeMap::new(),
            base: Some(self.id.clone()),
            is_part: true,
            ..self.clone()
        }
    }

    /// Tells whether this is the part of another budget that counts only some requests.
    pub const fn is_part(&self) -> bool {
        self.is_part
    }

    /// Returns the budget with batch endpoints.
    ///
    /// # Errors
    /// When there are more than [`MAX_BATCHES`].
    pub fn with_batches(
        self,
        batches: BTreeMap<BatchName, BatchRule>,
    ) -> Result<Self, ConfigError> {
        if batches.len() > MAX_BATCHES {
            return Err(ConfigError::Batches(batches.len()));
        }
        Ok(Self { batches, ..self })
    }

    /// Returns the batch endpoints.
    pub const fn batches(&self) -> &BTreeMap<BatchName, BatchRule> {
        &self.batches
    }

    /// Returns the budget as one of which nothing is sent before it was given credentials.
    #[must_use]
    pub fn with_credentials(mut self) -> Self {
        self.needs_credentials = true;
        self
    }

    /// Tells whether nothing is sent before it was given credentials.
    pub const fn needs_credentials(&self) -> bool {
        self.needs_credentials
    }

    /// Returns the budget whose rules must admit too.
    pub const fn parent(&self) -> Option<&BudgetId> {
        self.parent.as_ref()
    }

    /// Returns the budgets that its server's scopes stand for.
    pub const fn scopes(&self) -> &BTreeMap<String, BudgetId> {
        &self.scopes
    }

    /// Returns the budget that the app declared, where this one was made for a scope of its server.
    pub fn declared(&self) -> &BudgetId {
        self.base.as_ref().unwrap_or(&self.id)
    }

    /// Tells whether this one was made for a scope of another one's server.
    pub const fn is_of_scope(&self) -> bool {
        self.base.is_some() && !self.is_part
    }

    /// Returns the share of a published limit that is used, in thousandths.
    pub const fn share_permille(&self) -> u32 {
        self.share_permille
    }

    /// Tells whether one of its rules is a guess.
    pub fn learns(&self) -> bool {
        self.rules.iter().any(|rule| rule.learns)
    }

    /// Returns the rules, all of which must admit.
    pub fn rules(&self) -> &[LimitRule] {
        &self.rules
    }

    /// Returns the most requests in flight at once.
    pub const fn max_in_flight(&self) -> Option<u32> {
        self.max_in_flight
    }

    /// Returns how long the server honours an idempotency key, in milliseconds.
    pub const fn key_ttl_ms(&self) -> Option<u64> {
        self.key_ttl_ms
    }

    /// Returns the pace of bulk and background jobs.
    pub const fn pace(&self) -> Pace {
        self.pace
    }

    /// Returns the units of a rule that are kept for the interactive lane: never all of them.
    pub fn reserve(&self, rule: LimitRule) -> u32 {
        let part = u64::from(rule.limit).saturating_mul(u64::from(self.reserve_permille));
        let units = u32::try_from(part.div_ceil(1_000)).unwrap_or(u32::MAX);
        units.min(rule.limit.saturating_sub(1))
    }

    /// Returns the largest cost that can ever be admitted.
    pub fn largest_cost(&self) -> u32 {
        self.rules
            .iter()
            .map(|rule| rule.limit)
            .min()
            .unwrap_or(u32::MAX)
    }

    /// Returns the longest window of any rule, 0 without rules.
    pub fn longest_window_ms(&self) -> u64 {
        self.rules
            .iter()
            .map(|rule| rule.window_ms)
            .max()
            .unwrap_or(0)
    }
}

fn parse_in_flight(value: u64) -> Result<u32, ConfigError> {
    u32::try_from(value)
        .ok()
        .filter(|value| (1..=MAX_IN_FLIGHT).contains(value))
        .ok_or(ConfigError::InFlight(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<(u32, u64), ConfigError> {
        LimitRule::parse(text, Algorithm::ArrivalLog).map(|rule| (rule.limit(), rule.window_ms()))
    }

    #[test]
    fn reads_the_text_form() {
        assert_eq!(parse("100/10s"), Ok((100, 10_000)));
        assert_eq!(parse("5/s"), Ok((5, 1_000)));
        assert_eq!(parse("250000 / 1d"), Ok((250_000, 86_400_000)));
        assert_eq!(parse("50/1000ms"), Ok((50, 1_000)));
    }

    #[test]
    fn refuses_what_is_no_rule() {
        assert!(matches!(parse("10"), Err(ConfigError::Grammar(_))));
        assert!(matches!(parse("10/5"), Err(ConfigError::Grammar(_))));
        assert!(matches!(parse("ten/s"), Err(ConfigError::Grammar(_))));
        assert_eq!(parse("0/s"), Err(ConfigError::Limit(0)));
        assert_eq!(parse("1/0s"), Err(ConfigError::Window(0)));
        assert_eq!(parse("1/32d"), Err(ConfigError::Window(32 * 86_400_000)));
    }

    #[test]
    fn a_share_never_rounds_to_nothing() {
        let rule = LimitRule::new(3, 1_000, Algorithm::ArrivalLog).unwrap();

        assert_eq!(rule.scaled(900).limit(), 2);
        assert_eq!(rule.scaled(1).limit(), 1);
    }
}
