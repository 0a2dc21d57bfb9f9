//! Estimates and simulations: gathers what a budget has to do, and runs a copy of it ahead. Changes nothing.

use std::collections::BTreeMap;

use super::Core;
use crate::budget::Budget;
use crate::forecast::{Backlog, Course, Forecast, Load, Outlook};
use crate::ids::BudgetId;
use crate::job::Lane;
use crate::plan::{Estimate, PlanRefusal, RuleUse, Simulation, Step, Timeline};
use crate::time::{Mono, Now, Wall};

/// Starts that one call runs one by one, over all budgets of its plan.
const MAX_STARTS: u32 = 2_048;
/// Waiting jobs of a lane that are taken as they are; the others count with their mean cost.
const MAX_KNOWN: usize = 2_048;

impl Core {
    /// Returns how long a step would take with what waits now. It holds while nothing else is handed in.
    ///
    /// # Errors
    /// When its budget is not known, or its cost can never fit.
    pub fn estimate(&self, step: &Step, now: Now) -> Result<Estimate, PlanRefusal> {
        let budget = self.budget_of_step(0, step)?;
        if self.is_held(budget) {
            return Ok(Estimate {
                is_estimate: budget.is_guess(),
                ..Estimate::default()
            });
        }
        let mut outlook = self.run_ahead(budget, vec![load(step)], MAX_STARTS, now);
        let is_extrapolated = outlook.is_extrapolated;
        let course = outlook.courses.pop().unwrap_or_default();
        Ok(Estimate {
            eta_ms: course.last_end.map(|end| end.since(now.mono)),
            starts_at: course.first_start.map(|at| now.wall_of(at)),
            done_at: course.last_end.map(|at| now.wall_of(at)),
            used_up: rule_uses(&outlook, now),
            is_estimate: budget.is_guess() || is_extrapolated,
            is_extrapolated,
        })
    }

    /// Returns what a plan would come to with what waits now. Budgets do not wait for each other.
    ///
    /// # Errors
    /// When a step's budget is not known, or its cost can never fit.
    pub fn simulate(&self, plan: &[Step], now: Now) -> Result<Simulation, PlanRefusal> {
        let mut by_budget: BTreeMap<&BudgetId, Vec<usize>> = BTreeMap::new();
        for (index, step) in plan.iter().enumerate() {
            self.budget_of_step(index, step)?;
            by_budget.entry(step.budget()).or_default().push(index);
        }
        let budgets = u32::try_from(by_budget.len()).unwrap_or(u32::MAX);
        let max_starts = MAX_STARTS / budgets.max(1);
        let mut simulation = Simulation {
            steps: vec![Timeline::default(); plan.len()],
            done_at: Some(now.wall),
            ..Simulation::default()
        };
        for (id, indices) in by_budget {
            let steps = indices.into_iter();
            let steps = steps.filter_map(|index| Some((index, plan.get(index)?)));
            self.simulate_budget(
                &mut simulation,
                id,
                &steps.collect::<Vec<_>>(),
                max_starts,
                now,
            );
        }
        simulation.is_estimate |= simulation.is_extrapolated;
        Ok(simulation)
    }

    fn simulate_budget(
        &self,
        simulation: &mut Simulation,
        id: &BudgetId,
        steps: &[(usize, &Step)],
        max_starts: u32,
        now: Now,
    ) {
        let Some(budget) = self.budgets.get(id) else {
            return;
        };
        simulation.is_estimate |= budget.is_guess();
        let uses = simulation.budgets.entry(id.clone()).or_default();
        for (_, step) in steps {
            let (count, cost) = (u64::from(step.count()), u64::from(step.cost()));
            uses.jobs = uses.jobs.saturating_add(count);
            uses.units = uses.units.saturating_add(count.saturating_mul(cost));
        }
        if self.is_held(budget) {
            simulation.done_at = None;
            return;
        }
        let loads = steps.iter().map(|(_, step)| load(step)).collect();
        let outlook = self.run_ahead(budget, loads, max_starts, now);
        uses.used_up = rule_uses(&outlook, now);
        simulation.is_extrapolated |= outlook.is_extrapolated;
        for ((index, step), course) in steps.iter().zip(outlook.courses) {
            let done_at = course.last_end.map(|at| now.wall_of(at));
            simulation.done_at = later(simulation.done_at, done_at);
            let waits = simulation.waits.entry(step.lane()).or_default();
            waits.absorb(&course.waits);
            if let Some(timeline) = simulation.steps.get_mut(*index) {
                *timeline = timeline_of(course, now);
            }
        }
    }

    fn budget_of_step(&self, index: usize, step: &Step) -> Result<&Budget, PlanRefusal> {
        let unknown = || PlanRefusal::UnknownBudget {
            index,
            budget: step.budget().clone(),
        };
        let budget = self.budgets.get(step.budget()).ok_or_else(unknown)?;
        let (cost, largest) = (step.cost(), budget.config().largest_cost());
        if cost > largest {
            return Err(PlanRefusal::NeverFits {
                index,
                cost,
                largest,
            });
        }
        Ok(budget)
    }

    fn is_held(&self, budget: &Budget) -> bool {
        !self.holds.is_empty() || !budget.holds().is_empty()
    }

    fn run_ahead(&self, budget: &Budget, loads: Vec<Load>, max_starts: u32, now: Now) -> Outlook {
        let backlog = self.backlog(budget, now.mono);
        Forecast::new(budget.copy_ahead(), backlog, loads, now).run(max_starts)
    }

    fn backlog(&self, budget: &Budget, now: Mono) -> Backlog {
        let id = &budget.config().id;
        let mut backlog = Backlog::default();
        let mut rest = Lane::ALL.map(|lane| budget.work_in(lane));
        let mut take = |seq: &crate::ids::Seq| {
            let job = self.jobs.get(seq).filter(|job| job.card.budget == *id)?;
            // What shares requests counts with the rest, by requests.
            if job.card.batch.is_some() {
                return None;
            }
            if let Some(work) = rest.get_mut(job.lane().index()) {
                work.jobs = work.jobs.saturating_sub(1);
                work.cost = work.cost.saturating_sub(u64::from(job.card.cost));
            }
            Some(job)
        };
        for (lane, ready) in Lane::ALL.into_iter().zip(&mut backlog.ready) {
            for seq in budget.lanes.ready(lane).take(MAX_KNOWN) {
                ready.extend(take(&seq).map(|job| (job.card.cost, 1)));
            }
        }
        let delayed = self.delayed.iter().enumerate();
        let delayed = delayed.filter_map(|(number, (at, seq))| {
            let job = take(seq)?;
            Some((*at, number, self.running_lane(*seq), job.card.cost))
        });
        backlog.delayed = delayed.take(MAX_KNOWN).collect();
        for (work, ready) in rest.into_iter().zip(&mut backlog.ready) {
            let mean = work.cost.div_ceil(work.jobs.max(1)).max(1);
            let mean = u32::try_from(mean).unwrap_or(u32::MAX);
            let jobs = u32::try_from(work.jobs).unwrap_or(u32::MAX);
            ready.extend((jobs > 0).then_some((mean, jobs)));
        }
        let latency_ms = budget.usual_latency_ms();
        let sending = self.sending.iter().filter_map(|seq| {
            let job = self.jobs.get(seq).filter(|job| job.card.budget == *id)?;
            if job.record.carried_by.is_some() {
                return None;
            }
            let ends_at = job.claimed_at.max(job.dispatched_at).plus(latency_ms);
            Some((ends_at.max(now.plus(1)), (*seq, job.record.attempt)))
        });
        backlog.in_flight = sending.collect();
        backlog
    }
}

fn load(step: &Step) -> Load {
    Load {
        lane: step.lane(),
        cost: step.cost(),
        count: step.count(),
        every_ms: step.every_ms(),
    }
}

fn rule_uses(outlook: &Outlook, now: Now) -> Vec<RuleUse> {
    let uses = outlook.used_up.iter();
    uses.map(|(rule, at)| RuleUse {
        rule: *rule,
        used_up_at: now.wall_of(*at),
    })
    .collect()
}

fn timeline_of(course: Course, now: Now) -> Timeline {
    let points = course.points.into_iter();
    Timeline {
        starts_at: course.first_start.map(|at| now.wall_of(at)),
        done_at: course.last_end.map(|at| now.wall_of(at)),
        waits: course.waits,
        points: points.map(|(at, done)| (now.wall_of(at), done)).collect(),
    }
}

/// The later of two instants; none if one is not known.
fn later(left: Option<Wall>, right: Option<Wall>) -> Option<Wall> {
    left.zip(right).map(|(left, right)| left.max(right))
}
