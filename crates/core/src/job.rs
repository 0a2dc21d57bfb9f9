//! A job as the core sees it: the card that never changes, and the record of what has happened to it.
//!
//! Owns the shapes that are stored. Does not own bodies (the store has them) nor the rules that move a job from one
//! state to the next (`scheduler`). Invariant: a settled record never changes, but for a failed one that is retried.

use serde::{Deserialize, Serialize};

use crate::batch::{BatchLoad, Batched};
use crate::ids::{BudgetId, GroupId, JobId, OrderKey, Seq};
use crate::kind::{Kind, Likeness, OnFailure};
use crate::time::Wall;

/// The priority class of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lane {
    /// A person waits for it.
    Interactive,
    /// Part of a bulk action.
    Bulk,
    /// Nobody waits for it.
    Background,
}

impl Lane {
    /// All lanes, most urgent first.
    pub const ALL: [Self; 3] = [Self::Interactive, Self::Bulk, Self::Background];

    /// Returns the lane's place in [`Lane::ALL`].
    pub const fn index(self) -> usize {
        match self {
            Self::Interactive => 0,
            Self::Bulk => 1,
            Self::Background => 2,
        }
    }

    /// Returns the name used on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Interactive => "interactive",
            Self::Bulk => "bulk",
            Self::Background => "background",
        }
    }
}

/// Whether a request whose outcome is unknown may be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Repeat {
    /// Sending it twice is the same as once.
    Always,
    /// Only with an idempotency key that the server honours and that is still young.
    WithKey,
}

/// What the scheduler needs to know of a job; immutable once accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Card {
    /// The job's name.
    pub id: JobId,
    /// The budget that it spends.
    pub budget: BudgetId,
    /// The lane that it was given; `prioritise` stores another one in the [`Record`].
    pub lane: Lane,
    /// Its ordering key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<OrderKey>,
    /// The bulk action that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<GroupId>,
    /// The signed-in user that it is sent for; empty for none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub principal: String,
    /// Units of the budget that one attempt uses; at least 1.
    pub cost: u32,
    /// Whether it may be repeated.
    pub repeat: Repeat,
    /// The idempotency key sent with every attempt, where the budget names a header for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// The instant before which it does not start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Wall>,
    /// The instant after which it fails as expired, unless it has started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Wall>,
    /// The time-out of one attempt, in milliseconds.
    pub timeout_ms: u32,
    /// When it was accepted.
    pub created_at: Wall,
    /// The size of its stored request, in bytes.
    pub size: u32,
    /// Whether its request is kept in memory only and lost with the tab that asked.
    #[serde(default, skip_serializing_if = "is_false")]
    pub ephemeral: bool,
    /// What it does to the record that its key stands for.
    #[serde(default, skip_serializing_if = "Kind::is_custom")]
    pub kind: Kind,
    /// By what it is known to be like another job; none when it always goes alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub likeness: Option<Likeness>,
    /// Whether it makes earlier edits of its key that wait needless; a removal only.
    #[serde(default, skip_serializing_if = "is_false")]
    pub supersedes: bool,
    /// What becomes of its key when it fails.
    #[serde(default, skip_serializing_if = "OnFailure::is_continue")]
    pub on_failure: OnFailure,
    /// The batch that it goes in; none when it is a request of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<Batched>,
    /// How it is found out whether a request of unknown outcome was carried out; none where nothing tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<Check>,
}

/// A request beside a job's own that tells whether that one was carried out. What it is, is stored with the job's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// How long after the end of an attempt it is sent at the earliest: an API may show a new record late.
    pub after_ms: u32,
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "the form that serde asks for"
)]
const fn is_zero(value: &u32) -> bool {
    *value == 0
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "the form that serde asks for"
)]
fn is_false(value: &bool) -> bool {
    !value
}

/// The state of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Waits for its turn.
    Queued,
    /// An attempt is recorded; its request may have left.
    Sending,
    /// Waits after a failed attempt.
    RetryWait,
    /// The server answered well.
    Done,
    /// Ended without success; may be retried.
    Failed,
    /// Ended by the user's wish.
    Cancelled,
}

impl State {
    /// All states, in the order of a job's life.
    pub const ALL: [Self; 6] = [
        Self::Queued,
        Self::Sending,
        Self::RetryWait,
        Self::Done,
        Self::Failed,
        Self::Cancelled,
    ];

    /// Tells whether the job has ended.
    pub const fn is_settled(self) -> bool {
        match self {
            Self::Queued | Self::Sending | Self::RetryWait => false,
            Self::Done | Self::Failed | Self::Cancelled => true,
        }
    }

    /// Returns the state's place in [`State::ALL`].
    pub const fn index(self) -> usize {
        match self {
            Self::Queued => 0,
            Self::Sending => 1,
            Self::RetryWait => 2,
            Self::Done => 3,
            Self::Failed => 4,
            Self::Cancelled => 5,
        }
    }

    /// Returns the name used on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Sending => "sending",
            Self::RetryWait => "retry-wait",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// Why a job ended without success; its wire code is stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Reason {
    /// The server answered with a final error status.
    Http,
    /// Every allowed attempt failed.
    RetriesExhausted,
    /// The request may or may not have been applied, and repeating it is not safe.
    OutcomeUnknown,
    /// The server says that its idempotency key was used for another request.
    KeyReused,
    /// It waited longer than its `maxWaitMs`.
    Expired,
    /// The user or the app cancelled it.
    Cancelled,
    /// The caller's signal was aborted while it waited.
    Aborted,
    /// Its stored request could not be read.
    Storage,
    /// It made or removed a record that the server never saw, and so did the other one.
    CancelledOut,
    /// A later removal of its record made it needless.
    Superseded,
    /// Its server asked for a longer wait than its budget is ready for.
    WaitTooLong,
    /// An earlier job of its key failed, and asked for later ones to fail too.
    KeyFailed,
}

impl Reason {
    /// Returns the code used on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::RetriesExhausted => "retries-exhausted",
            Self::OutcomeUnknown => "outcome-unknown",
            Self::KeyReused => "key-reused",
            Self::Expired => "expired",
            Self::Cancelled => "cancelled",
            Self::Aborted => "aborted",
            Self::Storage => "storage",
            Self::CancelledOut => "cancelled-out",
            Self::Superseded => "superseded",
            Self::KeyFailed => "key-failed",
            Self::WaitTooLong => "wait-too-long",
        }
    }
}

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// The reason; none for success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// The HTTP status of the last answer, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The first 4 KiB of a refused answer's text, for a person to read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// When the job ended.
    pub at: Wall,
    /// Whether it was done by what its check found, so that the status is that of the check.
    #[serde(default, skip_serializing_if = "is_false")]
    pub by_check: bool,
}

impl Outcome {
    /// Makes the outcome of a job that ended without an answer.
    pub const fn unanswered(reason: Reason, at: Wall) -> Self {
        Self {
            reason: Some(reason),
            status: None,
            text: None,
            at,
            by_check: false,
        }
    }
}

/// Units that an earlier attempt took from the budget, kept until no limiter remembers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    /// When the attempt was claimed.
    pub started_at: Wall,
    /// When it was answered or given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Wall>,
    /// How many milliseconds after its claim its request may have left, where that is more than half a second.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub late_ms: u32,
}

/// What has happened to a job; one small stored record, replaced whole. A job without one is fresh.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The job's state.
    pub state: State,
    /// How many attempts were claimed, refused ones too; the number of the newest attempt.
    pub attempt: u32,
    /// How many attempts count against the cap.
    pub attempts_counted: u32,
    /// When the newest attempt was claimed, and how it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<Spent>,
    /// The attempts before it that a limiter still remembers, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<Spent>,
    /// When the first attempt was claimed; the idempotency key's age counts from here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_claimed_at: Option<Wall>,
    /// How often `retry` gave it a new idempotency key.
    #[serde(default)]
    pub key_generation: u32,
    /// Whether the server may have acted on it: the outcome of an attempt under its present idempotency key is not known.
    #[serde(default, skip_serializing_if = "is_false")]
    pub key_seen: bool,
    /// Whether its newest attempt is its check, and not its own request.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_check: bool,
    /// The instant before which it is not tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Wall>,
    /// Whether the server refused it unread, so that it goes before others of its lane.
    #[serde(default)]
    pub refused: bool,
    /// The lane that `prioritise` gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lane: Option<Lane>,
    /// The budget that it waits for since the server refused it under another scope than its own budget's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved_to: Option<BudgetId>,
    /// The earlier job of its key that carries its request, and with which it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged_into: Option<Seq>,
    /// The batch request that it carries, while that is on its way or its outcome is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<BatchLoad>,
    /// The job whose batch request it is an item of, for as long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carried_by: Option<Seq>,
    /// Whether it failed and later jobs of its key wait until somebody decides.
    #[serde(default, skip_serializing_if = "is_false")]
    pub holds_key: bool,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
}

impl Record {
    /// Makes the record of a job that nothing has happened to.
    pub const fn fresh() -> Self {
        Self {
            state: State::Queued,
            attempt: 0,
            attempts_counted: 0,
            current: None,
            earlier: Vec::new(),
            first_claimed_at: None,
            key_generation: 0,
            key_seen: false,
            is_check: false,
            not_before: None,
            refused: false,
            lane: None,
            moved_to: None,
            merged_into: None,
            load: None,
            carried_by: None,
            holds_key: false,
            outcome: None,
        }
    }
}

/// The durable counts of a bulk action; clean-up of its jobs does not shrink them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupRecord {
    /// Jobs accepted.
    pub total: u32,
    /// Jobs that ended done.
    pub done: u32,
    /// Jobs that ended failed and were not retried.
    pub failed: u32,
    /// Jobs that were cancelled.
    pub cancelled: u32,
    /// When the group was made.
    pub created_at: Wall,
    /// When its last job settled; none while one is unsettled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled_at: Option<Wall>,
}

impl GroupRecord {
    /// Tells whether none of its jobs is unsettled.
    pub const fn is_settled(&self) -> bool {
        let settled = self
            .done
            .saturating_add(self.failed)
            .saturating_add(self.cancelled);
        settled == self.total
    }
}

/// Who closed a budget, or the whole queue, by wish.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HoldCause {
    /// The user asked for it.
    User,
    /// Too many refusals in a row.
    Refusing,
    /// The store does not take writes. Not stored itself.
    Storage,
    /// The browser says that there is no network. Not stored: a new owner asks anew.
    Offline,
    /// A newer host waits for this one to end. Not stored, and not lifted by anybody.
    Yielding,
    /// The server wants other credentials, or none are there. Not stored: a new owner begins with one request.
    Credentials,
    /// Too many of its attempts were repeats. Goes on by itself; not stored.
    RetryBudget,
}

impl HoldCause {
    /// Returns the name used on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Refusing => "refusing",
            Self::Storage => "storage",
            Self::Offline => "offline",
            Self::Yielding => "yielding",
            Self::Credentials => "credentials",
            Self::RetryBudget => "retry-budget",
        }
    }

    /// Tells whether a hold is meant to last longer than its owner.
    pub const fn is_lasting(self) -> bool {
        match self {
            Self::User | Self::Refusing => true,
            Self::Storage
            | Self::Offline
            | Self::Yielding
            | Self::Credentials
            | Self::RetryBudget => false,
        }
    }
}

/// What is stored of a budget.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetRecord {
    /// The instant until which it is paused, jitter included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_until: Option<Wall>,
    /// Whether that instant is our guess.
    #[serde(default)]
    pub pause_is_estimate: bool,
    /// Refusals since the last success.
    #[serde(default)]
    pub refusals_in_a_row: u32,
    /// When the first of them came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusing_since: Option<Wall>,
    /// Its holds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holds: Vec<HoldCause>,
    /// Whether the next owner begins with one request: the last one waited for credentials.
    #[serde(default, skip_serializing_if = "is_false")]
    pub probe: bool,
    /// Thousandths of its rules that are used after refusals nobody expected; none for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub factor_permille: Option<u32>,
    /// The reset before which the server grants nothing more, where that is far enough to matter to a next owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_up_until: Option<Wall>,
    /// Limits that the server published, and that are used instead of the rules' own numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub learned: Vec<LearnedLimit>,
    /// The most requests in flight that the server published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub learned_in_flight: Option<u32>,
    /// Thousandths of its guessed rules beyond which it does not grow back: the server refused there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling_permille: Option<u32>,
}

/// A limit that a server published, less what the app's share leaves to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LearnedLimit {
    /// Units per window.
    pub limit: u32,
    /// The window in milliseconds.
    pub window_ms: u64,
}
