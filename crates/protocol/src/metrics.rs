//! What a host has counted since it took the queue over.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::plan::WaitsMessage;

/// The fields of `metrics`.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields = nullable))]
pub struct AskMetrics {
    /// Whether the tab is told again, as the event `metrics`, whenever something has changed, at most four times a second;
    /// `false` ends that, and without it nothing of that changes.
    #[serde(default)]
    pub follow: Option<bool>,
}

/// What was counted since a host became the owner. Nothing of it is stored: another owner counts anew.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct MetricsMessage {
    /// When it became the owner, in milliseconds since the epoch.
    pub since: u64,
    /// Now.
    pub at: u64,
    /// The whole queue.
    pub queue: MeterMessage,
    /// The jobs of the principal that asks; none when none were counted.
    pub own: Option<MeterMessage>,
    /// By the budget that jobs were handed in for.
    pub by_budget: BTreeMap<String, BudgetMetricsMessage>,
}

/// Counts of jobs and their requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct MeterMessage {
    /// Jobs that were stored, that an earlier owner left unsettled, or that a retry brought back.
    pub accepted: u64,
    /// Jobs done.
    pub done: u64,
    /// Jobs failed.
    pub failed: u64,
    /// Jobs cancelled.
    pub cancelled: u64,
    /// Jobs that wait, are on their way, or whose outcome is not stored yet.
    pub live: u64,
    /// `accepted` less those that settled and those that live: 0, or there is a bug.
    pub unaccounted: i64,
    /// Requests that left and came to an end.
    pub requests: u64,
    /// Those that the server refused unread for a limit.
    pub refused: u64,
    /// The same among a thousand requests, rounded up; none without requests.
    pub refused_per_1000: Option<u32>,
    /// Requests without an answer.
    pub unanswered: u64,
    /// Answers by status; those beyond 128 statuses as `other`.
    pub answers: BTreeMap<String, u64>,
    /// Failed jobs by code and last status.
    pub failures: Vec<FailuresMessage>,
    /// Requests that settled jobs needed.
    pub attempts: AttemptsMessage,
    /// From being handed in, or from `notBefore`, to the first request, by lane.
    pub waits: BTreeMap<&'static str, WaitsMessage>,
}

/// How many jobs failed for one reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct FailuresMessage {
    /// The code.
    pub code: &'static str,
    /// The status of the last answer.
    pub status: Option<u16>,
    /// How many.
    pub jobs: u64,
}

/// Requests a job. Quantiles are at most a quarter above the truth, and never below it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct AttemptsMessage {
    /// Settled jobs that were tried.
    pub jobs: u64,
    /// Half of them needed no more.
    pub p50: Option<u64>,
    /// Of twenty, nineteen needed no more.
    pub p95: Option<u64>,
    /// The most.
    pub max: Option<u64>,
}

/// Counts of one budget, and how much of its limit was used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct BudgetMetricsMessage {
    /// Its jobs.
    #[serde(flatten)]
    pub meter: MeterMessage,
    /// How long something waited for it that nobody's wish held up, here or in budgets under it.
    pub busy_ms: u64,
    /// Units of the requests that started in that time.
    pub units: u64,
    /// Units that its limit allowed in that time; none without rules.
    pub allowed: Option<u64>,
    /// The thousandths of the limit that were used; none when nothing had to wait.
    pub achieved_permille: Option<u32>,
}
