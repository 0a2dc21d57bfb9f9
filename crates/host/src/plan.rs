//! `estimate` and `simulate`: what the core reckons, as messages. Nothing is changed by either.

use paceline_core::histogram::Histogram;
use paceline_core::plan::{BudgetUse, Estimate, PlanRefusal, RuleUse, Simulation, Timeline};
use paceline_core::time::{Now, Wall};
use paceline_protocol::error::Code;
use paceline_protocol::plan::{
    BudgetUseMessage, EstimateMessage, PointMessage, RuleUseMessage, Simulate, SimulationMessage,
    StepMessage, TimelineMessage, WaitsMessage, parse_plan, parse_question, step_path,
};
use paceline_protocol::reply::f64_eq::F64;
use paceline_protocol::{HostMessage, WireError};

use crate::{Host, TabId};

impl<B: Clone + Default> Host<B> {
    pub(crate) fn estimate(
        &mut self,
        tab: TabId,
        re: F64,
        question: &StepMessage,
        now: Now,
    ) -> Result<(), WireError> {
        let step = parse_question(question)?;
        let told = self.core.estimate(&step, now);
        let told = told.map_err(|refusal| refused(&refusal, |_| String::new()))?;
        let estimate = estimate(&told);
        self.post(tab, Some(re), HostMessage::Estimate { estimate });
        Ok(())
    }

    pub(crate) fn simulate(
        &mut self,
        tab: TabId,
        re: F64,
        question: &Simulate,
        now: Now,
    ) -> Result<(), WireError> {
        let plan = parse_plan(&question.plan)?;
        let told = self.core.simulate(&plan, now);
        let told = told.map_err(|refusal| refused(&refusal, step_path))?;
        let simulation = Box::new(simulation(told, now));
        self.post(tab, Some(re), HostMessage::Simulation { simulation });
        Ok(())
    }
}

/// The error that a refusal is for the tab; `path` is where a step stands in its message.
fn refused(refusal: &PlanRefusal, path: impl Fn(usize) -> String) -> WireError {
    let error = |code, index, field: &str, expected: &str, got: &str| {
        let at = path(index);
        let error = WireError::field(code, format!("{at}{field}"), expected, got);
        if at.is_empty() {
            error
        } else {
            error.at(index)
        }
    };
    match refusal {
        PlanRefusal::UnknownBudget { index, budget } => {
            let (code, expected) = (Code::UnknownBudget, "a declared budget");
            error(code, *index, "budget", expected, budget.as_str())
        }
        PlanRefusal::NeverFits {
            index,
            cost,
            largest,
        } => {
            let expected = format!("a cost of at most {largest}");
            error(
                Code::NeverFits,
                *index,
                "cost",
                &expected,
                &cost.to_string(),
            )
        }
        _ => WireError::plain(Code::Protocol, "refused"),
    }
}

fn estimate(told: &Estimate) -> EstimateMessage {
    let rules = rules(&told.used_up);
    EstimateMessage {
        eta_ms: told.eta_ms,
        starts_at: told.starts_at.map(Wall::as_millis),
        done_at: told.done_at.map(Wall::as_millis),
        crosses_window: !rules.is_empty(),
        used_up_at: first(&rules),
        rules,
        is_estimate: told.is_estimate,
        is_extrapolated: told.is_extrapolated,
    }
}

fn simulation(told: Simulation, now: Now) -> SimulationMessage {
    let budgets = || told.budgets.values();
    let lanes = told.waits.iter();
    SimulationMessage {
        begins_at: now.wall.as_millis(),
        done_at: told.done_at.map(Wall::as_millis),
        jobs: budgets().fold(0, |all, uses| all.saturating_add(uses.jobs)),
        units: budgets().fold(0, |all, uses| all.saturating_add(uses.units)),
        by_lane: lanes
            .map(|(lane, histogram)| (lane.as_str(), waits(histogram)))
            .collect(),
        by_budget: told
            .budgets
            .iter()
            .map(|(id, uses)| (id.as_str().to_owned(), budget_use(uses)))
            .collect(),
        is_estimate: told.is_estimate,
        is_extrapolated: told.is_extrapolated,
        steps: told.steps.iter().map(timeline).collect(),
    }
}

fn timeline(told: &Timeline) -> TimelineMessage {
    let points = told.points.iter();
    TimelineMessage {
        starts_at: told.starts_at.map(Wall::as_millis),
        done_at: told.done_at.map(Wall::as_millis),
        wait: waits(&told.waits),
        points: points
            .map(|(at, done)| PointMessage {
                at: at.as_millis(),
                done: *done,
            })
            .collect(),
    }
}

fn budget_use(told: &BudgetUse) -> BudgetUseMessage {
    let rules = rules(&told.used_up);
    BudgetUseMessage {
        jobs: told.jobs,
        units: told.units,
        used_up_at: first(&rules),
        rules,
    }
}

fn rules(told: &[RuleUse]) -> Vec<RuleUseMessage> {
    let rules = told.iter();
    rules
        .map(|used| RuleUseMessage {
            limit: used.rule.limit(),
            window_ms: used.rule.window_ms(),
            used_up_at: used.used_up_at.as_millis(),
        })
        .collect()
}

fn first(rules: &[RuleUseMessage]) -> Option<u64> {
    rules.iter().map(|rule| rule.used_up_at).min()
}

/// Waits as messages tell them.
pub(crate) fn waits(histogram: &Histogram) -> WaitsMessage {
    WaitsMessage {
        jobs: histogram.count(),
        p50_ms: histogram.quantile(500),
        p95_ms: histogram.quantile(950),
        max_ms: histogram.max(),
    }
}
