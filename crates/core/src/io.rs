//! What goes into the core and what comes out: values only.
//!
//! Invariant: effects keep their order, and a `Dispatch` or an accepting `Reply` never comes before the answer to the
//! `Commit` that records it.

use crate::change::{Change, Stored};
use crate::config::BudgetConfig;
use crate::ids::{BatchName, BudgetId, CommitId, GroupId, JobId, RequestId, Seq};
use crate::job::{Card, HoldCause, Lane, Outcome, Reason, State};
use crate::signals::Signals;
use crate::time::{Mono, Wall};

/// Jobs that a request speaks of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// These jobs.
    Jobs(Vec<JobId>),
    /// All jobs of a group.
    Group(GroupId),
}

/// What the answer of a server says, as the core needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// What the status means for the job.
    pub verdict: Verdict,
    /// What it says about limits.
    pub signals: Signals,
    /// The first 4 KiB of an error's text.
    pub text: Option<String>,
    /// What a batch endpoint says of each item, in the order of the request; nothing of those that it leaves out. None
    /// where it says the same of all.
    pub items: Option<Vec<Option<ItemAnswer>>>,
}

/// What a batch endpoint says of one item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemAnswer {
    /// The item's status.
    pub status: u16,
    /// What the status means for the job.
    pub verdict: Verdict,
    /// The first 4 KiB of an error's text.
    pub text: Option<String>,
}

/// What a status means for the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// 2xx and 304.
    Success,
    /// Refused unread for a limit: the budget pauses.
    Refused,
    /// 401: the budget waits for other credentials.
    Unauthorized,
    /// The outcome is unknown or the failure passing.
    Unavailable,
    /// 409 on a repeat with a key: the first is still running there.
    StillRunning,
    /// 422 on a repeat with a key.
    KeyReused,
    /// A final error.
    Final,
    /// The answer to a job's check, as far as its status means nothing else.
    Checked(Found),
}

/// What a check has found of the request before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Found {
    /// It was carried out.
    Applied,
    /// It was not.
    NotApplied,
    /// The answer does not tell.
    Unclear,
}

/// Why an attempt has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoAnswer {
    /// The connection failed, or the answer could not be read.
    Network,
    /// The time-out of the attempt passed.
    TimedOut,
    /// The request certainly never left.
    NeverLeft,
    /// There is no request: it is not in the store.
    Missing,
}

/// Why a commit failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitFailure {
    /// The storage is full.
    Full,
    /// The storage failed after all tries.
    Broken,
}

/// What happens to the core.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Input {
    /// The store was read at the start of an owner. Comes first, once.
    Recovered(Stored),
    /// Budgets are declared or changed; what they have consumed is kept.
    Configure(Vec<BudgetConfig>),
    /// A tab hands in jobs; all are accepted or none.
    Enqueue {
        /// The request to reply to.
        request: RequestId,
        /// The jobs; a known name is the same job, and the known one is kept.
        cards: Vec<Card>,
    },
    /// A tab that lost its host asks for jobs that had been accepted. A stored one that is not known any more has ended
    /// since and is not made anew; with none left, the reply is [`Refusal::Gone`].
    EnqueueAgain {
        /// The request to reply to.
        request: RequestId,
        /// The jobs, as they were handed in.
        cards: Vec<Card>,
    },
    /// A commit is durable.
    Committed(CommitId),
    /// A commit failed; nothing of it is stored.
    CommitFailed(CommitId, CommitFailure),
    /// An attempt was answered.
    Answered {
        /// The job.
        seq: Seq,
        /// The attempt.
        attempt: u32,
        /// When the answer's head came; the server counted before that.
        ended_at: Mono,
        /// The answer.
        answer: Answer,
    },
    /// An attempt ended without an answer.
    NoAnswer {
        /// The job.
        seq: Seq,
        /// The attempt.
        attempt: u32,
        /// Why.
        cause: NoAnswer,
    },
    /// A batch request cannot be put together, because requests of some of its jobs are not in the store.
    ItemsMissing {
        /// The job that carries it.
        seq: Seq,
        /// The attempt.
        attempt: u32,
        /// The jobs whose requests are missing.
        missing: Vec<Seq>,
    },
    /// Jobs are no longer wanted.
    Cancel {
        /// The request to reply to, if somebody waits for one.
        request: Option<RequestId>,
        /// The jobs.
        target: Target,
        /// `Cancelled` or `Aborted`.
        reason: Reason,
    },
    /// Failed jobs are wanted again.
    Retry {
        /// The request to reply to.
        request: RequestId,
        /// The jobs; others than failed ones are left alone.
        target: Target,
        /// Whether an unknown outcome that is not repeatable may be repeated.
        force: Force,
    },
    /// Waiting jobs are to run in another lane.
    Prioritise {
        /// The request to reply to.
        request: RequestId,
        /// The jobs; others than waiting ones are left alone.
        target: Target,
        /// The lane.
        lane: Lane,
    },
    /// A budget, or all, are closed by wish.
    Hold {
        /// The request to reply to, if somebody waits for one.
        request: Option<RequestId>,
        /// The budget; none for the whole queue.
        budget: Option<BudgetId>,
        /// Who wishes it.
        cause: HoldCause,
    },
    /// A budget, or all, are opened again; all causes are lifted.
    Resume {
        /// The request to reply to.
        request: RequestId,
        /// The budget; none for the whole queue.
        budget: Option<BudgetId>,
    },
    /// A budget has new credentials; what waited for them goes on.
    CredentialsGiven {
        /// The budget.
        budget: BudgetId,
    },
    /// A budget has no credentials any more.
    CredentialsTaken {
        /// The budget.
        budget: BudgetId,
    },
    /// The browser says whether there is a network. Only its no is believed: nothing is tried until it says yes, or
    /// something succeeds.
    Network(Network),
    /// A deadline of `poll_timeout` has come.
    Wake,
}

/// What the browser says of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// There is none.
    Offline,
    /// There may be one.
    Online,
}

/// Whether a retry accepts the risk of doing something twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Force {
    /// Only what is safe.
    No,
    /// The caller takes the risk.
    Yes,
}

/// What the core asks its driver to do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Effect {
    /// Store these changes in one transaction and answer with `Committed` or `CommitFailed`.
    Commit {
        /// The commit's number.
        commit: CommitId,
        /// The changes.
        changes: Vec<Change>,
        /// Whether it may wait a moment for others: nobody waits for it.
        may_wait: bool,
    },
    /// Send the request of a job now.
    Dispatch {
        /// The job.
        seq: Seq,
        /// Its name.
        id: JobId,
        /// The attempt's number, from 1.
        attempt: u32,
        /// The budget, for its idempotency header.
        budget: BudgetId,
        /// The key to send, if the budget has a header for it.
        idempotency_key: Option<String>,
        /// Whether the server may have acted on that key before.
        is_repeat: bool,
        /// Whether it is the job's check that is to be sent, and not its own request.
        is_check: bool,
        /// The time-out in milliseconds.
        timeout_ms: u32,
        /// The batch that it goes in, and the budget that declares that: the requests of all its parts go as one.
        batch: Option<(BudgetId, BatchName)>,
    },
    /// Answer a request.
    Reply {
        /// The request.
        request: RequestId,
        /// The answer.
        reply: Reply,
    },
    /// A job has settled, and its outcome is stored.
    Settled {
        /// The job.
        seq: Seq,
        /// Its name.
        id: JobId,
        /// Its group.
        group: Option<GroupId>,
        /// The state it ended in.
        state: State,
        /// How it ended.
        outcome: Outcome,
        /// How many attempts were made.
        attempts: u32,
        /// The job whose answer it was: another one where this one was merged. That one is told last.
        answered_by: Seq,
    },
    /// A group's last job has settled, and that is stored.
    GroupSettled {
        /// The group.
        group: GroupId,
        /// Jobs done.
        done: u32,
        /// Jobs failed.
        failed: u32,
        /// Jobs cancelled.
        cancelled: u32,
    },
    /// Something that every tab may want to know.
    Event(Event),
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reply {
    /// The jobs are stored.
    Accepted {
        /// Each job's present state, in the order asked.
        jobs: Vec<(JobId, State, Option<Outcome>)>,
    },
    /// The jobs are not stored.
    Refused(Refusal),
    /// The count of what a cancel did.
    Cancelled {
        /// Jobs that ended cancelled.
        cancelled: u32,
        /// Jobs whose request had left, or that had settled.
        already_sent: u32,
    },
    /// The count of what a retry did.
    Retried {
        /// Jobs that wait again.
        retried: u32,
        /// Jobs left failed because repeating them needs `force`.
        needs_force: u32,
        /// Jobs left failed because a later job of their key is done.
        stale: u32,
    },
    /// The count of what a change of lane did.
    Prioritised {
        /// Jobs that wait in the lane now.
        moved: u32,
        /// Jobs whose request had left.
        already_sent: u32,
    },
    /// Done.
    Ok,
}

/// A bound of the whole queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueBound {
    /// The most unsettled jobs.
    Jobs(u32),
    /// The most bytes of their stored requests.
    Bytes(u64),
}

/// Why an enqueue, hold or resume was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// A cost that its budget can never admit.
    NeverFits {
        /// The index of the job in the request.
        index: usize,
        /// Its cost.
        cost: u32,
        /// The largest cost that fits.
        largest: u32,
    },
    /// The queue has as many jobs or bytes as it may; nothing of the request was taken.
    QueueFull {
        /// The index of the first job in the request that does not fit.
        index: usize,
        /// Which bound that job is over.
        bound: QueueBound,
    },
    /// The storage is full.
    StorageFull,
    /// The storage failed.
    Storage,
    /// A budget that is not known.
    UnknownBudget(BudgetId),
    /// Jobs that had been accepted, have ended since, and are forgotten.
    Gone,
}

/// Something that every tab may want to know.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A budget is paused, or its pause is longer now.
    Paused {
        /// The budget.
        budget: BudgetId,
        /// Until when, jitter included.
        until: Wall,
        /// Whether that is our guess.
        is_estimate: bool,
        /// Whether it is longer than the app calls long: its jobs are parked, or fail.
        is_long: bool,
    },
    /// A budget's pause is over.
    Resumed {
        /// The budget.
        budget: BudgetId,
    },
    /// A server refused a request.
    Refused {
        /// The budget.
        budget: BudgetId,
        /// The job.
        id: JobId,
        /// The status.
        status: u16,
        /// Units that the limiter believed to be free, by the tightest rule.
        believed_free: u32,
        /// What the server said.
        retry_after_ms: Option<u64>,
    },
    /// A budget was closed by the core itself.
    Held {
        /// The budget; none for the whole queue.
        budget: Option<BudgetId>,
        /// Why.
        cause: HoldCause,
    },
    /// A budget waits for credentials. Told once, until it has them or is resumed.
    CredentialsWanted {
        /// The budget.
        budget: BudgetId,
        /// What is wrong with those that it has.
        wanted: Wanted,
    },
    /// Accepted jobs are neither settled nor live: a bug, told instead of hidden.
    Unaccounted {
        /// How many.
        jobs: u64,
    },
}

/// Why a budget wants credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// It has none.
    Missing,
    /// They worked before, and do no longer.
    Expired,
    /// They never worked.
    Refused,
}

impl Wanted {
    /// Returns the name used on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Expired => "expired",
            Self::Refused => "refused",
        }
    }
}

/// Why a job waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Cause {
    /// Its budget is paused.
    Paused,
    /// Its budget is paused for longer than the app calls long.
    Parked,
    /// Its budget's rule defers it.
    Rate,
    /// Its budget has as many requests in flight as it may.
    InFlight,
    /// An earlier job of its key is not settled.
    Order,
    /// Others go first.
    Lane,
    /// It waits after a failed attempt.
    Backoff,
    /// Its `notBefore` has not come.
    NotBefore,
    /// The queue or its budget is held.
    Held,
    /// There is no network.
    Offline,
    /// Its budget waits for credentials.
    Credentials,
}

impl Cause {
    /// Returns the name used on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Paused => "paused",
            Self::Parked => "parked",
            Self::Rate => "rate",
            Self::InFlight => "in-flight",
            Self::Order => "order",
            Self::Lane => "lane",
            Self::Backoff => "backoff",
            Self::NotBefore => "not-before",
            Self::Held => "held",
            Self::Offline => "offline",
            Self::Credentials => "credentials",
        }
    }
}

/// Which jobs a query asks for; each field narrows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Jobs of this name.
    pub id: Option<JobId>,
    /// Jobs in this state.
    pub state: Option<State>,
    /// Jobs of this group.
    pub group: Option<GroupId>,
    /// Jobs of this key.
    pub key: Option<crate::ids::OrderKey>,
    /// Jobs of this lane.
    pub lane: Option<Lane>,
    /// Jobs accepted after this one.
    pub after: Option<Seq>,
    /// At most so many.
    pub limit: usize,
}

/// One job as a query shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// Its place.
    pub seq: Seq,
    /// Its card.
    pub card: Card,
    /// Its state.
    pub state: State,
    /// The lane it runs in.
    pub lane: Lane,
    /// How many attempts were made.
    pub attempts: u32,
    /// Why it waits, while it does.
    pub cause: Option<Cause>,
    /// Until when, where that is known.
    pub until: Option<Wall>,
    /// How it ended.
    pub outcome: Option<Outcome>,
    /// How many later jobs were merged into it.
    pub coalesced: u32,
    /// The job that it was merged into, which tells its state.
    pub merged_into: Option<JobId>,
}
