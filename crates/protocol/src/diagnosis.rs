//! What a host has seen of a budget's server, and what its owner should change, in words to send to them.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

/// What was seen since the host began, in memory only.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct DiagnosisMessage {
    /// The budget.
    pub budget: String,
    /// Requests that were answered.
    pub answers: u32,
    /// Requests that ended without an answer that a page may read.
    pub lost: u32,
    /// Answers that were refusals.
    pub refusals: u32,
    /// Values that were there and could not be read.
    pub unreadable: u32,
    /// Answers by their status.
    #[serde(serialize_with = "keyed_by_text")]
    pub statuses: BTreeMap<u16, u32>,
    /// The dialects that answers were read in.
    pub dialects: Vec<&'static str>,
    /// The headers that could be read, lower case.
    pub visible: Vec<String>,
    /// What is wrong; empty where nothing was seen to be.
    pub findings: Vec<FindingMessage>,
}

/// Writes the keys as text: the worker makes no object of a map whose keys are numbers.
fn keyed_by_text<S: Serializer>(
    statuses: &BTreeMap<u16, u32>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let by_text = |(status, count): (&u16, &u32)| (status.to_string(), *count);
    serializer.collect_map(statuses.iter().map(by_text))
}

/// One thing that the server's owner should change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct FindingMessage {
    /// `nothing-seen`, `headers-hidden`, `wait-hidden`, `key-not-allowed`, `answers-hidden` or `unreadable`.
    pub code: &'static str,
    /// What was seen and what to change, for the server's owner.
    pub message: String,
    /// The headers to expose or to allow.
    pub headers: Vec<String>,
}
