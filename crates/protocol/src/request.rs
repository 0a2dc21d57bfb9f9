//! What a tab may ask.
//!
//! Every message is `{ paceline: 1, id, type, ... }`; `id` is the tab's own and comes back as `re`.

use paceline_core::ids::{BudgetId, GroupId, JobId, OrderKey};
use paceline_core::job::{Lane, State};
use serde::Deserialize;

use crate::budget::BudgetMessage;
use crate::job::JobMessage;

/// A message of a tab.
#[derive(Clone, Debug, Deserialize)]
pub struct TabMessage {
    /// The protocol's version.
    pub paceline: u32,
    /// The tab's own number for the request.
    pub id: f64,
    /// What is asked.
    #[serde(flatten)]
    pub request: Request,
}

/// A request, by its `type`.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Request {
    /// Opens the conversation. Answered by `welcome`.
    Hello {
        /// The client's version, for people.
        #[serde(default)]
        version: String,
        /// The principal that is signed in; empty for none.
        #[serde(default)]
        principal: String,
        /// The budgets that the app declares; none keeps what the host has.
        #[serde(default)]
        budgets: Option<Vec<BudgetMessage>>,
    },
    /// Hands in one job. Answered by `accepted`, later `settled`.
    Enqueue {
        /// The job.
        job: Box<JobMessage>,
    },
    /// Hands in many jobs; all are accepted or none. Answered by `accepted`.
    EnqueueMany {
        /// The jobs.
        jobs: Vec<JobMessage>,
        /// The bulk action that they belong to.
        #[serde(default)]
        group: Option<String>,
    },
    /// Cancels jobs that have not left. Answered by `cancelled`.
    Cancel {
        /// Which.
        #[serde(flatten)]
        target: TargetMessage,
        /// Whether the caller's signal was aborted, so that the reason is `aborted`.
        #[serde(default)]
        aborted: bool,
    },
    /// Sends failed jobs again. Answered by `retried`.
    Retry {
        /// Which.
        #[serde(flatten)]
        target: TargetMessage,
        /// Whether an unknown outcome may be repeated although that is not safe.
        #[serde(default)]
        force: bool,
    },
    /// Closes a budget, or all. Answered by `ok`.
    Hold {
        /// The budget; none for the whole queue.
        #[serde(default)]
        budget: Option<BudgetId>,
    },
    /// Opens a budget, or all. Answered by `ok`.
    Resume {
        /// The budget; none for the whole queue.
        #[serde(default)]
        budget: Option<BudgetId>,
    },
    /// Asks for snapshots whenever something changes, at most four a second. Answered by `ok`.
    Subscribe,
    /// Ends that. Answered by `ok`.
    Unsubscribe,
    /// Asks for one snapshot. Answered by `snapshot` with `re`.
    Snapshot,
    /// Asks for jobs. Answered by `jobs`.
    Jobs {
        /// Which.
        #[serde(default)]
        filter: FilterMessage,
    },
    /// Changes budgets; what they have consumed is kept. Answered by `ok`.
    Configure {
        /// The budgets, whole.
        budgets: Vec<BudgetMessage>,
    },
    /// Says that the tab goes. Not answered.
    Bye,
}

/// Which jobs a cancel or retry speaks of: `jobs` or `group`.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct TargetMessage {
    /// Names of jobs.
    #[serde(default)]
    pub jobs: Option<Vec<JobId>>,
    /// A group.
    #[serde(default)]
    pub group: Option<GroupId>,
}

/// Which jobs a query asks for; each field narrows.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct FilterMessage {
    /// The job's name.
    #[serde(default)]
    pub id: Option<JobId>,
    /// Its state.
    #[serde(default)]
    pub state: Option<State>,
    /// Its group.
    #[serde(default)]
    pub group: Option<GroupId>,
    /// Its key.
    #[serde(default)]
    pub key: Option<OrderKey>,
    /// Its lane.
    #[serde(default)]
    pub lane: Option<Lane>,
    /// At most so many, up to 1000; 100 by default.
    #[serde(default)]
    pub limit: Option<u32>,
    /// Only jobs accepted after the one with this cursor, as `jobs` returned it.
    #[serde(default)]
    pub after: Option<f64>,
}
