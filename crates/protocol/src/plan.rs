//! Plans that an app asks about before it begins, and what it is told.

use std::collections::BTreeMap;

use paceline_core::ids::BudgetId;
use paceline_core::job::Lane;
use paceline_core::plan::{MAX_STEPS, Step, StepError};
use serde::{Deserialize, Serialize};

use crate::budget::whole;
use crate::error::{Code, WireError};

/// So many jobs of one kind for one budget.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields = nullable))]
#[serde(rename_all = "camelCase")]
pub struct StepMessage {
    /// The budget.
    pub budget: String,
    /// How many jobs, up to 10,000,000.
    pub count: f64,
    /// Units that each costs, 1 by default.
    #[serde(default)]
    pub cost: Option<f64>,
    /// Their lane, bulk by default.
    #[serde(default)]
    #[cfg_attr(test, ts(as = "Option<crate::typescript::Lane>"))]
    pub lane: Option<String>,
    /// Milliseconds between two of them, up to a day; all at once by default. `estimate` does not read it.
    #[serde(default)]
    pub every_ms: Option<f64>,
}

/// The fields of `simulate`.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Simulate {
    /// The steps, 1 to 100.
    pub plan: Vec<StepMessage>,
}

/// How long a step would take with what waits now. Instants are in milliseconds since the epoch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct EstimateMessage {
    /// Milliseconds until the last job is done; none while held.
    pub eta_ms: Option<u64>,
    /// When the first job starts.
    pub starts_at: Option<u64>,
    /// When the last job is done.
    pub done_at: Option<u64>,
    /// Whether a job has to wait for a window of a rule to turn.
    pub crosses_window: bool,
    /// When the budget is used up for the first time.
    pub used_up_at: Option<u64>,
    /// The rules that are used up, each with the instant when.
    pub rules: Vec<RuleUseMessage>,
    /// Whether it rests on a guess.
    pub is_estimate: bool,
    /// Whether what follows the first starts was reckoned by whole windows.
    pub is_extrapolated: bool,
}

/// When a rule is used up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct RuleUseMessage {
    /// Units that it grants in one window, as much as is used of them.
    pub limit: u32,
    /// Its window.
    pub window_ms: u64,
    /// When it defers a job for the first time.
    pub used_up_at: u64,
}

/// What a plan would come to. Instants are in milliseconds since the epoch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct SimulationMessage {
    /// Now.
    pub begins_at: u64,
    /// When the last job of all is done; none when a budget of the plan is held.
    pub done_at: Option<u64>,
    /// Jobs of the plan.
    pub jobs: u64,
    /// Units that they cost.
    pub units: u64,
    /// The steps, in their order.
    pub steps: Vec<TimelineMessage>,
    /// How long jobs of the plan wait, by lane.
    pub by_lane: BTreeMap<&'static str, WaitsMessage>,
    /// The budgets of the plan.
    pub by_budget: BTreeMap<String, BudgetUseMessage>,
    /// Whether it rests on a guess.
    pub is_estimate: bool,
    /// Whether what follows the first starts was reckoned by whole windows.
    pub is_extrapolated: bool,
}

/// The course of one step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct TimelineMessage {
    /// When its first job starts.
    pub starts_at: Option<u64>,
    /// When its last job is done.
    pub done_at: Option<u64>,
    /// From being handed in to the start.
    pub wait: WaitsMessage,
    /// How many jobs are done by when, at most 32 points.
    pub points: Vec<PointMessage>,
}

/// A point of a timeline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct PointMessage {
    /// The instant.
    pub at: u64,
    /// Jobs that are done by then.
    pub done: u32,
}

/// Waits in milliseconds. Quantiles are at most a quarter above the truth, and never below it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct WaitsMessage {
    /// Jobs that were counted.
    pub jobs: u64,
    /// Half of them wait no longer.
    pub p50_ms: Option<u64>,
    /// Of twenty, nineteen wait no longer.
    pub p95_ms: Option<u64>,
    /// The longest.
    pub max_ms: Option<u64>,
}

/// What a plan takes of one budget.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct BudgetUseMessage {
    /// Jobs of the plan.
    pub jobs: u64,
    /// Units that they cost.
    pub units: u64,
    /// When it is used up for the first time.
    pub used_up_at: Option<u64>,
    /// The rules that are used up, each with the instant when.
    pub rules: Vec<RuleUseMessage>,
}

/// Parses what `estimate` asks; all of its jobs are there at once.
///
/// # Errors
/// When a field is not as expected; the error names it.
pub fn parse_question(message: &StepMessage) -> Result<Step, WireError> {
    let at_once = StepMessage {
        every_ms: None,
        ..message.clone()
    };
    parse_step(&at_once, "")
}

/// Parses what `simulate` asks.
///
/// # Errors
/// When a field is not as expected; the error names it and the step.
pub fn parse_plan(plan: &[StepMessage]) -> Result<Vec<Step>, WireError> {
    if plan.is_empty() || plan.len() > MAX_STEPS {
        let got = format!("{} steps", plan.len());
        return Err(WireError::field(
            Code::BadJob,
            "plan",
            "1 to 100 steps",
            &got,
        ));
    }
    let steps = plan.iter().enumerate();
    steps
        .map(|(index, step)| parse_step(step, &step_path(index)).map_err(|error| error.at(index)))
        .collect()
}

/// Where a step stands in its message.
pub fn step_path(index: usize) -> String {
    format!("plan[{index}].")
}

fn parse_step(message: &StepMessage, path: &str) -> Result<Step, WireError> {
    let bad = |field: &str, expected: &str, got: &str| {
        WireError::field(Code::BadJob, format!("{path}{field}"), expected, got)
    };
    let budget = BudgetId::parse(&message.budget)
        .map_err(|_| bad("budget", "1 to 255 characters", &message.budget))?;
    let lane = match message.lane.as_deref() {
        None => Lane::Bulk,
        Some(name) => Lane::ALL
            .into_iter()
            .find(|lane| lane.as_str() == name)
            .ok_or_else(|| bad("lane", "interactive, bulk or background", name))?,
    };
    let number = |field: &str, expected: &str, value: f64| {
        whole(value).ok_or_else(|| bad(field, expected, &value.to_string()))
    };
    let cost = message.cost.unwrap_or(1.0);
    let every_ms = message.every_ms.unwrap_or(0.0);
    let (count, cost, every_ms) = (
        number("count", COUNT, message.count)?,
        number("cost", COST, cost)?,
        number("everyMs", EVERY_MS, every_ms)?,
    );
    Step::new(budget, lane, count, cost, every_ms).map_err(|error| match error {
        StepError::Count(got) => bad("count", COUNT, &got.to_string()),
        StepError::Cost(got) => bad("cost", COST, &got.to_string()),
        StepError::EveryMs(got) => bad("everyMs", EVERY_MS, &got.to_string()),
        other => bad("count", "a number in range", &other.to_string()),
    })
}

const COUNT: &str = "a whole number from 1 to 10000000";
const COST: &str = "a whole number from 1 to 10000000";
const EVERY_MS: &str = "a whole number from 0 to 86400000";
