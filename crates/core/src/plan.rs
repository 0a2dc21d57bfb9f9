//! Plans: what an app asks about before it begins, and what it is told.
//!
//! Invariant: a [`Step`] that exists is in range. All instants of an answer are of the wall clock.

use std::collections::BTreeMap;

use crate::config::{LimitRule, MAX_LIMIT};
use crate::histogram::Histogram;
use crate::ids::BudgetId;
use crate::job::Lane;
use crate::time::Wall;

/// The most steps of one plan.
pub const MAX_STEPS: usize = 100;
/// The most jobs of one step.
pub const MAX_COUNT: u64 = 10_000_000;
/// The longest gap between two jobs of a step: a day.
pub const MAX_EVERY_MS: u64 = 86_400_000;

/// So many jobs of one kind for one budget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    budget: BudgetId,
    lane: Lane,
    count: u32,
    cost: u32,
    every_ms: u64,
}

/// Which number of a step is out of range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StepError {
    /// The number of jobs.
    #[error("expected 1 to 10000000 jobs, got {0}")]
    Count(u64),
    /// The cost of each.
    #[error("expected a cost from 1 to 10000000, got {0}")]
    Cost(u64),
    /// The gap between two.
    #[error("expected a gap of up to 86400000 ms, got {0}")]
    EveryMs(u64),
}

impl Step {
    /// Makes a step of `count` jobs of that cost; one is handed in every `every_ms`, 0 for all at once.
    ///
    /// # Errors
    /// When a number is out of range.
    pub fn new(
        budget: BudgetId,
        lane: Lane,
        count: u64,
        cost: u64,
        every_ms: u64,
    ) -> Result<Self, StepError> {
        if count == 0 || count > MAX_COUNT {
            return Err(StepError::Count(count));
        }
        if cost == 0 || cost > u64::from(MAX_LIMIT) {
            return Err(StepError::Cost(cost));
        }
        if every_ms > MAX_EVERY_MS {
            return Err(StepError::EveryMs(every_ms));
        }
        Ok(Self {
            budget,
            lane,
            count: u32::try_from(count).map_err(|_| StepError::Count(count))?,
            cost: u32::try_from(cost).map_err(|_| StepError::Cost(cost))?,
            every_ms,
        })
    }

    /// Returns the budget.
    pub const fn budget(&self) -> &BudgetId {
        &self.budget
    }

    /// Returns the lane.
    pub const fn lane(&self) -> Lane {
        self.lane
    }

    /// Returns the number of jobs.
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// Returns the units that each job costs.
    pub const fn cost(&self) -> u32 {
        self.cost
    }

    /// Returns the milliseconds between two jobs.
    pub const fn every_ms(&self) -> u64 {
        self.every_ms
    }
}

/// Why a plan has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlanRefusal {
    /// A budget that is not known.
    UnknownBudget {
        /// The step.
        index: usize,
        /// The budget.
        budget: BudgetId,
    },
    /// A cost above what its budget can ever admit.
    NeverFits {
        /// The step.
        index: usize,
        /// The cost.
        cost: u32,
        /// The largest cost that fits.
        largest: u32,
    },
}

/// When a rule of a budget would be used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleUse {
    /// The rule, as much of it as is used now.
    pub rule: LimitRule,
    /// When it defers a job for the first time: what it grants is used up by then.
    pub used_up_at: Wall,
}

/// How long a step would take with what waits now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Estimate {
    /// Milliseconds until its last job is done; none while held.
    pub eta_ms: Option<u64>,
    /// When its first job starts.
    pub starts_at: Option<Wall>,
    /// When its last job is done.
    pub done_at: Option<Wall>,
    /// The rules that defer a job before that: their windows are crossed.
    pub used_up: Vec<RuleUse>,
    /// Whether it rests on a guess: of a pause's end, of how long answers take, or of what follows the first starts.
    pub is_estimate: bool,
    /// Whether what follows the first starts was reckoned by whole windows.
    pub is_extrapolated: bool,
}

/// What a plan would come to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Simulation {
    /// The steps, in their order.
    pub steps: Vec<Timeline>,
    /// How long jobs of the plan wait, by lane.
    pub waits: BTreeMap<Lane, Histogram>,
    /// The budgets of the plan.
    pub budgets: BTreeMap<BudgetId, BudgetUse>,
    /// When the last job of all is done; none when a budget of the plan is held.
    pub done_at: Option<Wall>,
    /// Whether it rests on a guess.
    pub is_estimate: bool,
    /// Whether what follows the first starts was reckoned by whole windows.
    pub is_extrapolated: bool,
}

/// What a plan takes of one budget.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BudgetUse {
    /// Jobs of the plan.
    pub jobs: u64,
    /// Units that they cost.
    pub units: u64,
    /// The rules that defer a job of it, or of what waits before.
    pub used_up: Vec<RuleUse>,
}

/// The course of one step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    /// When its first job starts.
    pub starts_at: Option<Wall>,
    /// When its last job is done.
    pub done_at: Option<Wall>,
    /// From being handed in to the start, in milliseconds, of the jobs whose start was run.
    pub waits: Histogram,
    /// Instants with the number of jobs that are done by then; at most [`crate::forecast::POINTS`].
    pub points: Vec<(Wall, u32)>,
}
