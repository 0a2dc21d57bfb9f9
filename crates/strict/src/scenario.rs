//! What an account is told to be: its limits, its manners and its faults.
//!
//! Plain data with its defaults; [`crate::parse`] makes it from JSON and names the field that is wrong. Nothing here
//! counts or decides.

use std::collections::BTreeMap;

use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::words::words;

/// Units that one limit may hold; bounds the memory of a log.
pub(crate) const MAX_LIMIT: u64 = 1_000_000;
/// The longest window, 31 days.
pub(crate) const MAX_WINDOW_MS: u64 = 31 * 86_400_000;
/// Rules that one account may have.
pub(crate) const MAX_RULES: usize = 16;
/// Faults that one account may have.
pub(crate) const MAX_FAULTS: usize = 64;
/// Items that one batch request may be allowed.
pub(crate) const MAX_ITEMS: u64 = 10_000;
/// The longest latency.
pub(crate) const MAX_LATENCY_MS: u64 = 600_000;
/// The fastest stream of foreign requests.
pub(crate) const MAX_OUTSIDE_PER_S: f64 = 1_000.0;

words! {
    /// How a limit counts.
    Algorithm {
        /// Every counted instant is kept; one that is exactly a window old still counts.
        SlidingLog = "sliding-log",
        /// Counts start again at each window's end.
        FixedWindow = "fixed-window",
        /// A bucket of `limit` tokens that refills evenly.
        TokenBucket = "token-bucket",
    }
}

words! {
    /// Where fixed windows begin.
    Anchor {
        /// At whole multiples of the window on the server's wall clock.
        Clock = "clock",
        /// At the first request after the last window's end.
        First = "first",
    }
}

words! {
    /// Whose headers an account writes.
    Dialect {
        /// `RateLimit` and `RateLimit-Policy` of the IETF draft, revision 10.
        Ietf = "ietf",
        /// The three fields of the draft's earlier revisions.
        IetfTriple = "ietf-triple",
        /// `x-ratelimit-*` with an epoch reset.
        Github = "github",
        /// `X-HubSpot-RateLimit-*`; a refusal is told by its body alone.
        Hubspot = "hubspot",
        /// `X-Shopify-Shop-Api-Call-Limit`.
        Shopify = "shopify",
        /// A reason on refusals and nothing else.
        Stripe = "stripe",
        /// No header: what is left as the member `quota` of an answer's JSON, the wait as `wait_ms` of a refusal's.
        Body = "body",
        /// No budget headers.
        None = "none",
    }
}

words! {
    /// What a refusal says about when to come back.
    RetryAfter {
        /// Whole seconds, rounded up, of the refusing rule.
        Seconds = "seconds",
        /// An HTTP date by the server's clock, rounded up.
        Date = "date",
        /// No field.
        None = "none",
        /// `0`.
        Zero = "zero",
        /// A text that is neither seconds nor a date.
        Garbage = "garbage",
    }
}

words! {
    /// The instant of a request that limits and report count.
    CountAt {
        /// When the whole request has been read.
        Arrival = "arrival",
        /// Half of the latency later.
        Middle = "middle",
        /// When the answer is ready.
        Answer = "answer",
    }
}

words! {
    /// Whether an OPTIONS request uses the limits.
    Preflight {
        /// Answered at once, uses nothing.
        Uncounted = "uncounted",
        /// Costs one unit and may be refused.
        Counted = "counted",
    }
}

words! {
    /// What goes wrong.
    FaultKind {
        /// Another status is answered and nothing is applied.
        Status = "status",
        /// The connection closes without an answer, nothing is applied.
        DropBeforeApply = "drop-before-apply",
        /// The effect is applied, then the connection closes without an answer.
        DropAfterApply = "drop-after-apply",
        /// Nothing is ever answered, nothing is applied.
        Hang = "hang",
        /// The connection is reset, nothing is applied.
        Reset = "reset",
        /// The effect is applied; half of the answer's body comes, then the connection closes.
        Truncate = "truncate",
        /// The answer lacks every CORS header, so a page of another origin cannot read it.
        NoCors = "no-cors",
    }
}

words! {
    /// Which requests a fault may hit.
    FaultOn {
        /// All.
        Any = "any",
        /// Those that the limits admitted.
        Accepted = "accepted",
        /// Those that the limits refused.
        Refused = "refused",
    }
}

/// One limit rule.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Limit {
    /// Name in headers and reports.
    pub name: String,
    /// Units per window; a bucket's capacity.
    pub limit: u64,
    /// Length of the window.
    pub window_ms: u64,
    /// How it counts.
    pub algorithm: Algorithm,
    /// A bucket's refill, when it is not `limit` per window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refill_per_s: Option<f64>,
    /// Where fixed windows begin.
    pub anchor: Anchor,
}

/// Which requests of an account a fault hits, by their number from 1, preflights left out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum When {
    /// Only that one.
    Nth(u64),
    /// Each multiple.
    Every(u64),
    /// Each with this chance.
    Rate {
        /// Between 0 and 1.
        rate: f64,
        /// Makes the draws repeatable.
        seed: u64,
    },
}

/// One fault.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    /// What goes wrong.
    pub kind: FaultKind,
    /// Which requests it hits.
    pub when: When,
    /// Which of these, by what the limits said.
    pub on: FaultOn,
    /// The status of kind `status`.
    pub status: u16,
    /// A `Retry-After` in seconds for kind `status`.
    pub retry_after_s: Option<u64>,
    /// Overrides whether the effect is applied.
    pub apply: Option<bool>,
}

impl Fault {
    /// Tells whether a request hit by this fault still has its effect.
    #[must_use]
    pub fn applies(&self) -> bool {
        self.apply.unwrap_or(match self.kind {
            FaultKind::Status | FaultKind::DropBeforeApply | FaultKind::Hang | FaultKind::Reset => {
                false
            }
            FaultKind::DropAfterApply | FaultKind::Truncate | FaultKind::NoCors => true,
        })
    }
}

impl Serialize for Fault {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("kind", &self.kind)?;
        match self.when {
            When::Nth(nth) => map.serialize_entry("nth", &nth)?,
            When::Every(every) => map.serialize_entry("every", &every)?,
            When::Rate { rate, seed } => {
                map.serialize_entry("rate", &rate)?;
                map.serialize_entry("seed", &seed)?;
            }
        }
        map.serialize_entry("on", &self.on)?;
        if self.kind == FaultKind::Status {
            map.serialize_entry("status", &self.status)?;
        }
        if let Some(seconds) = self.retry_after_s {
            map.serialize_entry("retry_after_s", &seconds)?;
        }
        if let Some(apply) = self.apply {
            map.serialize_entry("apply", &apply)?;
        }
        map.end()
    }
}

/// Items of a batch that fail the first time they come.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ItemFailure {
    /// Each so-many-th item, as they first come.
    pub every: u64,
    /// Its status.
    pub status: u16,
}

/// An endpoint that takes many items as one request.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Batch {
    /// Its path below `/api`.
    pub path: String,
    /// The most items; a request with more is answered 413 without effect.
    pub max: usize,
    /// Which items fail; the first that fits.
    pub fails: Vec<ItemFailure>,
}

/// All of an account's settings.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Scenario {
    /// All must admit; a request that one refuses uses none of them.
    pub limits: Vec<Limit>,
    /// Most requests at a time.
    pub max_in_flight: Option<u64>,
    /// Whose headers are written.
    pub dialect: Dialect,
    /// What refusals say; `null` is the dialect's own way.
    pub retry_after: Option<RetryAfter>,
    /// Bounds of the one seeded draw per request.
    pub latency_ms: [u64; 2],
    /// The instant that counts.
    pub count_at: CountAt,
    /// Whether `Idempotency-Key` is honoured.
    pub idempotency: bool,
    /// Whether another origin may read the headers.
    pub expose_headers: bool,
    /// Whether a page of another origin may read a refusal; an edge that refuses before the API is asked may not say so.
    pub cors_on_refusals: bool,
    /// How far the server's wall clock is off.
    pub clock_skew_ms: i64,
    /// Foreign requests per second that use the same limits.
    pub outside_per_s: f64,
    /// Units by method; 1 where none is given.
    pub cost: BTreeMap<String, u64>,
    /// Whether refused requests use the limits too.
    pub count_refused: bool,
    /// Whether preflights use the limits.
    pub preflight: Preflight,
    /// Makes latencies and foreign requests repeatable.
    pub seed: u64,
    /// What `Authorization` must be; anything else is answered 401. `null` asks for nothing.
    pub authorization: Option<String>,
    /// What goes wrong, the first that fits.
    pub faults: Vec<Fault>,
    /// An endpoint that takes many items as one request.
    pub batch: Option<Batch>,
}

impl Default for Scenario {
    fn default() -> Self {
        Self {
            limits: Vec::new(),
            max_in_flight: None,
            dialect: Dialect::Ietf,
            retry_after: None,
            latency_ms: [0, 0],
            count_at: CountAt::Middle,
            idempotency: true,
            expose_headers: true,
            cors_on_refusals: true,
            clock_skew_ms: 0,
            outside_per_s: 0.0,
            cost: BTreeMap::new(),
            count_refused: false,
            preflight: Preflight::Uncounted,
            seed: 1,
            authorization: None,
            faults: Vec::new(),
            batch: None,
        }
    }
}

impl Scenario {
    /// Units that a request with this method uses.
    #[must_use]
    pub fn cost_of(&self, method: &str) -> u64 {
        self.cost.get(method).copied().unwrap_or(1)
    }

    /// What refusals say, with the dialect's own way where nothing was set.
    #[must_use]
    pub fn retry_after(&self) -> RetryAfter {
        self.retry_after.unwrap_or(match self.dialect {
            Dialect::Ietf | Dialect::IetfTriple | Dialect::Shopify | Dialect::None => {
                RetryAfter::Seconds
            }
            Dialect::Github | Dialect::Hubspot | Dialect::Stripe | Dialect::Body => {
                RetryAfter::None
            }
        })
    }
}
