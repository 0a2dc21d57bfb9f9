//! What a tab may ask.
//!
//! Every message is `{ paceline: 1, id, type, ... }`; `id` is the tab's own number and comes back as `re`. The head is
//! read first, then the fields of its `type` and no others, so that opaque parts (`body`, `meta`) are never walked.

use paceline_core::ids::{BudgetId, GroupId, JobId, OrderKey};
use paceline_core::job::{Lane, State};
use serde::{Deserialize, Deserializer};

use crate::PROTOCOL;
use crate::budget::BudgetMessage;
use crate::credentials::Credentials;
use crate::error::{Code, WireError};
use crate::job::JobMessage;
use crate::metrics::AskMetrics;
use crate::plan::{Simulate, StepMessage};

/// The head of a message.
#[derive(Clone, Debug, Deserialize)]
pub struct Head {
    /// The protocol's version.
    pub paceline: u32,
    /// The tab's own number for the request.
    pub id: f64,
    /// What is asked.
    #[serde(rename = "type")]
    pub kind: String,
}

impl Head {
    /// Checks the version.
    ///
    /// # Errors
    /// When the message is of another version, or its number cannot be given back.
    pub fn check(&self) -> Result<(), WireError> {
        if self.paceline != PROTOCOL {
            let got = self.paceline.to_string();
            return Err(WireError::field(
                Code::Protocol,
                "paceline",
                PROTOCOL.to_string(),
                &got,
            ));
        }
        if !self.id.is_finite() {
            return Err(WireError::field(
                Code::Protocol,
                "id",
                "a finite number",
                &self.id.to_string(),
            ));
        }
        Ok(())
    }
}

/// A request, by its `type`.
#[derive(Clone, Debug)]
#[cfg_attr(test, derive(ts_rs::TS), ts(tag = "type", rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Request {
    /// Opens the conversation. Answered by `welcome`.
    Hello(Hello),
    /// Hands in one job. Answered by `accepted`, later `settled`.
    Enqueue(Box<Enqueue>),
    /// Hands in many jobs; all are accepted or none. Answered by `accepted`, later `group-settled`.
    EnqueueMany(EnqueueMany),
    /// Cancels jobs that have not left. Answered by `cancelled`.
    Cancel(Cancel),
    /// Sends failed jobs again. Answered by `retried`.
    Retry(Retry),
    /// Gives waiting jobs another lane. Answered by `prioritised`.
    Prioritise(Prioritise),
    /// Closes a budget, or all. Answered by `ok`.
    Hold(OneBudget),
    /// Opens a budget, or all. Answered by `ok`.
    Resume(OneBudget),
    /// Asks for snapshots whenever something changes, at most four a second. Answered by `ok`.
    Subscribe,
    /// Ends that. Answered by `ok`.
    Unsubscribe,
    /// Asks for one snapshot. Answered by `snapshot` with `re`.
    Snapshot,
    /// Asks for jobs. Answered by `jobs`.
    Jobs(Jobs),
    /// Asks how long so many jobs would take. Answered by `estimate`.
    Estimate(StepMessage),
    /// Asks what a plan would come to; nothing is changed by it. Answered by `simulation`.
    Simulate(Simulate),
    /// Asks for what was counted. Answered by `metrics`.
    Metrics(AskMetrics),
    /// Asks what was seen of the server of a budget, which has to be named. Answered by `diagnosis`.
    Diagnose(OneBudget),
    /// Changes budgets; what they have consumed is kept. Answered by `ok`.
    Configure(Configure),
    /// Gives a budget's credentials, asked for by `credentials-wanted` or not. Answered by `ok`.
    Credentials(Credentials),
    /// Says that the tab goes. Not answered.
    Bye,
}

impl Request {
    /// Reads the fields of a message of `kind`.
    ///
    /// # Errors
    /// When the kind is not known, or a field is not of its shape; the error names it.
    pub fn parse<'de, D: Deserializer<'de>>(kind: &str, message: D) -> Result<Self, WireError> {
        Ok(match kind {
            "hello" => Self::Hello(fields(message)?),
            "enqueue" => Self::Enqueue(Box::new(fields(message)?)),
            "enqueue-many" => Self::EnqueueMany(fields(message)?),
            "cancel" => Self::Cancel(fields(message)?),
            "retry" => Self::Retry(fields(message)?),
            "prioritise" => Self::Prioritise(fields(message)?),
            "hold" => Self::Hold(fields(message)?),
            "resume" => Self::Resume(fields(message)?),
            "subscribe" => Self::Subscribe,
            "unsubscribe" => Self::Unsubscribe,
            "snapshot" => Self::Snapshot,
            "jobs" => Self::Jobs(fields(message)?),
            "estimate" => Self::Estimate(fields(message)?),
            "simulate" => Self::Simulate(fields(message)?),
            "metrics" => Self::Metrics(fields(message)?),
            "diagnose" => Self::Diagnose(fields(message)?),
            "configure" => Self::Configure(fields(message)?),
            "credentials" => {
                // What is wrong may be quoted with it, and that may be the secret.
                Self::Credentials(fields(message).map_err(WireError::without_value)?)
            }
            "bye" => Self::Bye,
            other => {
                return Err(WireError::field(
                    Code::Protocol,
                    "type",
                    "a known type of message",
                    other,
                ));
            }
        })
    }
}

fn fields<'de, D: Deserializer<'de>, T: Deserialize<'de>>(message: D) -> Result<T, WireError> {
    serde_path_to_error::deserialize(message).map_err(|error| {
        let path = error.path().to_string();
        let what = error.inner().to_string();
        let (field, expected) = match missing(&what) {
            Some(name) if path == "." => (name.to_owned(), "a value"),
            Some(name) => (format!("{path}.{name}"), "a value"),
            None if path == "." => ("message".to_owned(), "a value of another shape"),
            None => (path, "a value of another shape"),
        };
        WireError::field(Code::BadJob, field, expected, &what)
    })
}

/// The field that serde says is missing; its path names only what should have held it.
fn missing(what: &str) -> Option<&str> {
    let (_, rest) = what.split_once("missing field `")?;
    rest.split_once('`').map(|(name, _)| name)
}

/// The fields of `hello`.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields = nullable))]
pub struct Hello {
    /// The client's version, for people.
    #[serde(default)]
    pub version: Option<String>,
    /// The principal that is signed in; empty for none.
    #[serde(default)]
    pub principal: Option<String>,
    /// The budgets that the app declares; none keeps what the host has.
    #[serde(default)]
    pub budgets: Option<Vec<BudgetMessage>>,
    /// Whether it answers `credentials-wanted`.
    #[serde(default)]
    pub credentials: Option<bool>,
}

/// The fields of `enqueue`.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields = nullable))]
pub struct Enqueue {
    /// The job.
    pub job: JobMessage,
    /// Whether a host before this one had accepted it: a job that has ended since is not made anew.
    #[serde(default)]
    pub again: Option<bool>,
}

/// The fields of `enqueue-many`.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields = nullable))]
pub struct EnqueueMany {
    /// The jobs.
    pub jobs: Vec<JobMessage>,
    /// The bulk action that they belong to; the host makes a name where none is given.
    #[serde(default)]
    pub group: Option<String>,
    /// Whether a host before this one had accepted them: jobs that have ended since are not made anew.
    #[serde(default)]
    pub again: Option<bool>,
}

/// The fields of `cancel`: `jobs` or `group`.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields = nullable))]
pub struct Cancel {
    /// Names of jobs.
    #[serde(default)]
    #[cfg_attr(test, ts(as = "Option<Vec<String>>"))]
    pub jobs: Option<Vec<JobId>>,
    /// A group.
    #[serde(default)]
    #[cfg_attr(test, ts(as = "Option<String>"))]
    pub group: Option<GroupId>,
    /// Whether the caller's signal was aborted, so that the reason is `aborted`.
    #[serde(default)]
    pub aborted: Option<bool>,
}

/// The fields of `retry`: `jobs` or `group`.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields = nullable))]
pub struct Retry {
    /// Names of jobs.
    #[serde(default)]
    #[cfg_attr(test, ts(as = "Option<Vec<String>>"))]
    pub jobs: Option<Vec<JobId>>,
    /// A group.
    #[serde(default)]
    #[cfg_attr(test, ts(as = "Option<String>"))]
    pub group: Option<GroupId>,
    /// Whether an unknown outcome may be repeated although that is not safe.
    #[serde(default)]
    pub force: Option<bool>,
}

/// The fields of `prioritise`: `jobs` or `group`, and the lane.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields = nullable))]
pub struct Prioritise {
    /// Names of jobs.
    #[serde(default)]
    #[cfg_attr(test, ts(as = "Option<Vec<String>>"))]
    pub jobs: Option<Vec<JobId>>,
    /// A group.
    #[serde(default)]
    #[cfg_attr(test, ts(as = "Option<String>"))]
    pub group: Option<GroupId>,
    /// The lane that they are to run in.
    #[cfg_attr(test, ts(as = "crate::typescript::Lane"))]
    pub lane: Lane,
}

/// The fields of `hold` and `resume`.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields = nullable))]
pub struct OneBudget {
    /// The budget; none for the whole queue.
    #[serde(default)]
    #[cfg_attr(test, ts(as = "Option<String>"))]
    pub budget: Option<BudgetId>,
}

/// The fields of `jobs`.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields = nullable))]
pub struct Jobs {
    /// Which.
    #[serde(default)]
    pub filter: Option<FilterMessage>,
}

/// The fields of `configure`.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields = nullable))]
pub struct Configure {
    /// The budgets, whole.
    pub budgets: Vec<BudgetMessage>,
}

/// Which jobs a query asks for; each field narrows.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields = nullable))]
pub struct FilterMessage {
    /// The job's name.
    #[serde(default)]
    #[cfg_attr(test, ts(as = "Option<String>"))]
    pub id: Option<JobId>,
    /// Its state.
    #[serde(default)]
    #[cfg_attr(test, ts(as = "Option<crate::typescript::State>"))]
    pub state: Option<State>,
    /// Its group.
    #[serde(default)]
    #[cfg_attr(test, ts(as = "Option<String>"))]
    pub group: Option<GroupId>,
    /// Its key.
    #[serde(default)]
    #[cfg_attr(test, ts(as = "Option<String>"))]
    pub key: Option<OrderKey>,
    /// Its lane.
    #[serde(default)]
    #[cfg_attr(test, ts(as = "Option<crate::typescript::Lane>"))]
    pub lane: Option<Lane>,
    /// At most so many, up to 1000; 100 by default.
    #[serde(default)]
    pub limit: Option<f64>,
    /// Only jobs accepted after the one with this cursor, as `jobs` returned it.
    #[serde(default)]
    pub after: Option<f64>,
}
