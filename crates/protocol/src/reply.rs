//! What the host tells a tab.
//!
//! Every message is `{ paceline: 1, re?, type, instance, epoch, ... }`. Answers to jobs (`settled` with a `response`)
//! carry the response beside what is typed here, because its body is opaque.

use std::collections::BTreeMap;

use paceline_core::job::State;
use serde::Serialize;

use crate::diagnosis::DiagnosisMessage;
use crate::error::WireError;
use crate::metrics::MetricsMessage;
use crate::plan::{EstimateMessage, SimulationMessage};

/// Who speaks: every message of a host carries it, so that a tab notices a new host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Stamp {
    /// The protocol's version.
    pub paceline: u32,
    /// A random name of the host's life.
    pub instance: String,
    /// Its epoch.
    pub epoch: u64,
    /// The tab's number of the request that this answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<f64>", optional))]
    pub re: Option<f64_eq::F64>,
}

/// A float that compares by its bits; request numbers are only ever given back.
pub mod f64_eq {
    use serde::Serialize;

    /// A number of a tab.
    #[derive(Clone, Copy, Debug, Serialize)]
    #[serde(transparent)]
    pub struct F64(pub f64);

    impl PartialEq for F64 {
        fn eq(&self, other: &Self) -> bool {
            self.0.to_bits() == other.0.to_bits()
        }
    }

    impl Eq for F64 {}
}

/// A message of the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(
    tag = "type",
    rename_all = "kebab-case",
    rename_all_fields = "camelCase"
)]
#[non_exhaustive]
pub enum HostMessage {
    /// Answers `hello`.
    Welcome {
        /// The kind of host.
        host: String,
        /// Whether jobs survive a restart.
        durable: bool,
        /// The host's version.
        version: String,
        /// When the database was made, in milliseconds since the epoch; another one has lost what was accepted.
        birth: u64,
    },
    /// The jobs are stored.
    Accepted {
        /// The one job of an `enqueue`.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[cfg_attr(test, ts(optional))]
        job: Option<AcceptedJob>,
        /// The group of an `enqueue-many`.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[cfg_attr(test, ts(optional))]
        group: Option<String>,
        /// How many jobs the request held.
        total: u32,
        /// Jobs of an `enqueue-many` that were known before and are not queued.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        #[cfg_attr(test, ts(as = "Option<Vec<AcceptedJob>>", optional))]
        known: Vec<AcceptedJob>,
    },
    /// A request was refused.
    Error(WireError),
    /// Answers `cancel`.
    Cancelled {
        /// Jobs that ended cancelled.
        cancelled: u32,
        /// Jobs whose request had left.
        already_sent: u32,
    },
    /// Answers `retry`.
    Retried {
        /// Jobs that wait again.
        retried: u32,
        /// Jobs that need `force`.
        needs_force: u32,
        /// Jobs of whose key a later one is done.
        stale: u32,
    },
    /// Answers `prioritise`.
    Prioritised {
        /// Jobs that wait in the lane now.
        moved: u32,
        /// Jobs whose request had left.
        already_sent: u32,
    },
    /// Answers what needs no more.
    Ok,
    /// Answers `snapshot`, and follows a `subscribe`.
    Snapshot {
        /// The snapshot.
        snapshot: Box<SnapshotMessage>,
    },
    /// Answers `jobs`.
    Jobs {
        /// The jobs, in order of acceptance. Each gets its `url`, `method` and `meta` beside what is typed here.
        jobs: Vec<JobView>,
        /// The cursor to ask on with, none at the end.
        next: Option<u64>,
    },
    /// Answers `estimate`.
    Estimate {
        /// The estimate.
        estimate: EstimateMessage,
    },
    /// Answers `simulate`.
    Simulation {
        /// The simulation.
        simulation: Box<SimulationMessage>,
    },
    /// Answers `metrics`.
    Metrics {
        /// What was counted.
        metrics: Box<MetricsMessage>,
    },
    /// Answers `diagnose`.
    Diagnosis {
        /// What was seen, and what is wrong.
        diagnosis: Box<DiagnosisMessage>,
    },
    /// A job of this tab has settled. A `response` may stand beside `job`.
    Settled {
        /// The job.
        job: SettledJob,
    },
    /// A group of this tab has settled.
    GroupSettled {
        /// The group.
        group: String,
        /// Jobs done.
        done: u32,
        /// Jobs failed.
        failed: u32,
        /// Jobs cancelled.
        cancelled: u32,
    },
    /// Asks a tab for a budget's credentials. It answers with a `credentials` request.
    CredentialsWanted {
        /// The budget.
        budget: String,
        /// `missing`, or `expired` when they worked before.
        wanted: &'static str,
    },
    /// Something that every tab may want to know.
    Event(EventMessage),
}

/// A job as accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct AcceptedJob {
    /// Its name.
    pub id: String,
    /// Its present state.
    #[cfg_attr(test, ts(as = "crate::typescript::State"))]
    pub state: State,
    /// The code of its failure, when it has failed before.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub code: Option<&'static str>,
    /// The status of its answer, when it has been answered before.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub status: Option<u16>,
    /// `true` where that is the status of its check, which found the job done.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub by_check: Option<bool>,
}

/// A job as settled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct SettledJob {
    /// Its name.
    pub id: String,
    /// `done`, `failed` or `cancelled`.
    #[cfg_attr(test, ts(as = "crate::typescript::State"))]
    pub state: State,
    /// The code of its failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub code: Option<&'static str>,
    /// The status of the last answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub status: Option<u16>,
    /// `true` where the answer is that of its check, which found the job done.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub by_check: Option<bool>,
    /// The first 4 KiB of a refused answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub text: Option<String>,
    /// Its group.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub group: Option<String>,
    /// How many attempts were made.
    pub attempts: u32,
}

/// A job as a query shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct JobView {
    /// Its name.
    pub id: String,
    /// Its place, to ask on with.
    pub cursor: u64,
    /// Its state.
    #[cfg_attr(test, ts(as = "crate::typescript::State"))]
    pub state: State,
    /// The lane it runs in.
    #[cfg_attr(test, ts(as = "crate::typescript::Lane"))]
    pub lane: &'static str,
    /// Its ordering key.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub key: Option<String>,
    /// Its group.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub group: Option<String>,
    /// Its budget.
    pub budget: String,
    /// How many attempts were made.
    pub attempts: u32,
    /// Why it waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub cause: Option<&'static str>,
    /// Until when, in milliseconds since the epoch, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub until: Option<u64>,
    /// How it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub failure: Option<FailureView>,
    /// How many later jobs were merged into it.
    #[serde(skip_serializing_if = "is_zero")]
    #[cfg_attr(test, ts(as = "Option<u32>", optional))]
    pub coalesced: u32,
    /// The job that it was merged into, whose state it has.
    #[serde(rename = "mergedInto", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub merged_into: Option<String>,
    /// When it settled.
    #[serde(rename = "settledAt", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub settled_at: Option<u64>,
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "the form that serde asks for"
)]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// How a job failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct FailureView {
    /// The code.
    pub code: &'static str,
    /// The status of the last answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub status: Option<u16>,
    /// The first 4 KiB of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub text: Option<String>,
}

/// The queue at one instant, as one principal may see it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct SnapshotMessage {
    /// Jobs by state.
    pub counts: Counts,
    /// The latest end of a pause, in milliseconds since the epoch.
    pub paused_until: Option<u64>,
    /// Milliseconds until all is sent, none while that cannot be known.
    pub eta_ms: Option<u64>,
    /// Whether the ETA rests on a guess.
    pub eta_is_estimate: bool,
    /// When the scheduler acts next, in milliseconds since the epoch.
    pub next_wake_at: Option<u64>,
    /// Holds of the whole queue.
    pub held: Vec<&'static str>,
    /// The kind of host.
    pub host: HostView,
    /// By lane.
    pub by_lane: BTreeMap<&'static str, LaneView>,
    /// By group.
    pub by_group: BTreeMap<String, GroupView>,
    /// By budget.
    pub by_budget: BTreeMap<String, BudgetView>,
}

/// Jobs by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    /// Waiting for their turn.
    pub queued: u32,
    /// An attempt is on its way.
    pub sending: u32,
    /// Waiting after a failed attempt.
    pub retry_wait: u32,
    /// Done.
    pub done: u32,
    /// Failed.
    pub failed: u32,
    /// Cancelled.
    pub cancelled: u32,
}

/// The host as a snapshot shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct HostView {
    /// The kind of host.
    pub kind: String,
    /// Whether jobs survive a restart.
    pub durable: bool,
    /// A random name of the host's life.
    pub instance: String,
    /// Its epoch.
    pub epoch: u64,
}

/// A lane as a snapshot shows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct LaneView {
    /// Jobs that wait.
    pub waiting: u32,
    /// Jobs on their way.
    pub sending: u32,
}

/// A group as a snapshot shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct GroupView {
    /// Jobs accepted.
    pub total: u32,
    /// Jobs by state.
    #[serde(flatten)]
    pub counts: Counts,
    /// Milliseconds until its last job is sent, none while that cannot be known.
    pub eta_ms: Option<u64>,
}

/// A budget as a snapshot shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct BudgetView {
    /// Jobs that wait.
    pub waiting: u32,
    /// Jobs on their way.
    pub sending: u32,
    /// The end of its pause, in milliseconds since the epoch.
    pub paused_until: Option<u64>,
    /// Whether that is our guess.
    pub pause_is_estimate: bool,
    /// Its holds.
    pub held: Vec<&'static str>,
    /// Why its next job waits.
    pub cause: Option<&'static str>,
    /// The rule that defers it, as text, when the cause is `rate`.
    pub rule: Option<String>,
    /// The budget whose rule, pause or hold that is, where it is a parent.
    pub by: Option<String>,
    /// Thousandths of its rules that are used: fewer than 1000 after refusals and lost connections.
    pub used_permille: u32,
    /// Milliseconds until all its jobs are sent.
    pub eta_ms: Option<u64>,
}

/// An event, by its `name`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(
    tag = "name",
    content = "detail",
    rename_all = "kebab-case",
    rename_all_fields = "camelCase"
)]
#[non_exhaustive]
pub enum EventMessage {
    /// A budget is paused, or its pause is longer now.
    Paused {
        /// The budget.
        budget: String,
        /// Until when, in milliseconds since the epoch.
        until: u64,
        /// Whether that is our guess.
        is_estimate: bool,
        /// Whether it is longer than what the budget calls long: its jobs are parked, or fail.
        is_long: bool,
    },
    /// A budget's pause is over.
    Resumed {
        /// The budget.
        budget: String,
    },
    /// A server refused a request.
    Refused {
        /// The budget.
        budget: String,
        /// The job.
        job: String,
        /// The status.
        status: u16,
        /// Units that the limiter believed to be free.
        believed_free: u32,
        /// What the server said, in milliseconds.
        retry_after_ms: Option<u64>,
    },
    /// The host closed a budget, or the queue, by itself.
    Held {
        /// The budget; none for the whole queue.
        budget: Option<String>,
        /// Why.
        cause: String,
    },
    /// A budget waits for credentials, and no tab that was asked has good ones.
    CredentialsNeeded {
        /// The budget.
        budget: String,
        /// `missing`, `expired`, or `refused` when fresh ones were.
        wanted: &'static str,
    },
    /// What was counted, for a tab that follows it.
    Metrics(Box<MetricsMessage>),
    /// Budgets were changed.
    ConfigChanged,
    /// The storage has trouble.
    Storage {
        /// What happened, for people.
        message: String,
    },
    /// Something is wrong with the host itself.
    Error {
        /// What, for people.
        message: String,
    },
}
