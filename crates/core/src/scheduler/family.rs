//! Budgets that count together: a budget and those that it names as parents.
//!
//! Owns who belongs to whom and whose turn it is. Invariant: an attempt is taken from all of its family or from none,
//! and ends in the very budgets that it was taken from.
//!
//! **Turns.** Budgets under one parent start in turn, one job each, whatever their lanes: a parent's room that is free
//! goes to the one that has waited longest for it, so that none starves.

use std::collections::{BTreeMap, BTreeSet};

use super::{Budget, Core, Snapshot};
use crate::budget::{Asked, Blocked, Work};
use crate::config::{MAX_PARENTS, MAX_WINDOW_MS};
use crate::ids::{BudgetId, Seq};
use crate::job::Lane;
use crate::time::{Mono, Now};

impl Core {
    /// Returns the known budgets above one, the nearest first.
    pub(super) fn parents(&self, id: &BudgetId) -> Vec<BudgetId> {
        let mut parents: Vec<BudgetId> = Vec::new();
        let mut at = id;
        while let Some(parent) = self
            .budgets
            .get(at)
            .and_then(|budget| budget.config().parent())
        {
            let is_cycle = parent == id || parents.contains(parent);
            if is_cycle || parents.len() >= MAX_PARENTS || !self.budgets.contains_key(parent) {
                break;
            }
            parents.push(parent.clone());
            at = parent;
        }
        parents
    }

    /// Returns a budget and all that are under it.
    pub(super) fn members(&self, id: &BudgetId) -> BTreeSet<BudgetId> {
        let mut members = BTreeSet::from([id.clone()]);
        if self
            .budgets
            .values()
            .any(|budget| budget.config().parent().is_some())
        {
            let under = self
                .budgets
                .keys()
                .filter(|other| self.parents(other).contains(id));
            members.extend(under.cloned().collect::<Vec<_>>());
        }
        members
    }

    /// Tells from when on a cost may start by the rules of a budget and of all above it; else which of them defers it.
    pub(super) fn check_family(
        &mut self,
        id: &BudgetId,
        parents: &[BudgetId],
        asked: Asked,
        now: Mono,
    ) -> Result<Mono, Blocked> {
        let mut start = now;
        loop {
            let before = start;
            for (depth, member) in (0..=u8::MAX).zip(std::iter::once(id).chain(parents)) {
                let Some(budget) = self.budgets.get_mut(member) else {
                    continue;
                };
                start = budget
                    .check(asked, start)
                    .map_err(|blocked| Blocked { depth, ..blocked })?;
            }
            // Whoever admits only later has to be asked about by the others again.
            if start == before || parents.is_empty() {
                return Ok(start);
            }
        }
    }

    /// Tells whether what waits for a budget fails, because its pause or that of one above it is longer than it is ready for.
    pub(super) fn family_gives_up(&self, id: &BudgetId, parents: &[BudgetId], now: Mono) -> bool {
        let mut family = std::iter::once(id).chain(parents);
        family.any(|id| {
            self.budgets
                .get(id)
                .is_some_and(|budget| budget.gives_up(now))
        })
    }

    /// Returns the longest window of the rules that count a job, 31 days while its budget is not known.
    pub(super) fn longest_window_ms(&self, seq: Seq) -> u64 {
        let Some(job) = self.jobs.get(&seq) else {
            return MAX_WINDOW_MS;
        };
        let Some(budget) = self.budgets.get(&job.card.budget) else {
            return MAX_WINDOW_MS;
        };
        let parents = self.parents(&job.card.budget);
        let parents = parents.iter().filter_map(|id| self.budgets.get(id));
        let windows = parents.map(Budget::longest_window_ms);
        windows.fold(budget.longest_window_ms(), u64::max)
    }

    /// Returns the budgets above its own that a job's attempt was taken from, which is over now.
    pub(super) fn take_parents(&mut self, seq: Seq) -> Vec<BudgetId> {
        let job = self.jobs.get_mut(&seq);
        job.map(|job| std::mem::take(&mut job.parents))
            .unwrap_or_default()
    }

    /// Does the same to each budget of a family; what is stored of those for which it returns true is stored anew.
    pub(super) fn each_of(
        &mut self,
        family: &[BudgetId],
        mut act: impl FnMut(&mut Budget) -> bool,
    ) {
        for id in family {
            if let Some(budget) = self.budgets.get_mut(id)
                && act(budget)
            {
                self.draft.touched.budgets.insert(id.clone());
            }
        }
    }

    /// Tells whether what was claimed ahead may not leave, whatever the rules say.
    pub(super) fn family_stops_claims(&self, id: &BudgetId) -> bool {
        let is_closed = |id: &BudgetId| {
            let budget = self.budgets.get(id);
            budget.is_some_and(Budget::stops_what_is_claimed)
        };
        is_closed(id) || self.parents(id).iter().any(is_closed)
    }

    /// Returns for each budget the one above it that defers its next job, where it is not its own rules that do.
    pub(super) fn deferring(&self) -> BTreeMap<BudgetId, BudgetId> {
        let deferred = self.budgets.iter().filter_map(|(id, budget)| {
            let above = usize::from(budget.blocked?.depth).checked_sub(1)?;
            Some((id.clone(), self.parents(id).into_iter().nth(above)?))
        });
        deferred.collect()
    }

    /// Shows at each budget what those above it do: their pauses, and how long all under them will take.
    pub(super) fn show_parents(&mut self, snapshot: &mut Snapshot, now: Now) {
        let under: Vec<BudgetId> = self.budgets.keys().cloned().collect();
        for id in under {
            for parent in self.parents(&id) {
                let eta_ms = self.family_eta_ms(&parent, now);
                let pause = self.budgets.get(&parent).and_then(Budget::pause);
                let Some(shown) = snapshot.budgets.get_mut(&id) else {
                    continue;
                };
                if let Some(pause) =
                    pause.filter(|pause| shown.paused_until < Some(pause.until_wall))
                {
                    shown.paused_until = Some(pause.until_wall);
                    shown.pause_is_estimate = pause.is_estimate;
                }
                if shown.waiting > 0 {
                    shown.eta_ms = shown.eta_ms.zip(eta_ms).map(|(own, all)| own.max(all));
                }
            }
        }
    }

    fn family_eta_ms(&mut self, id: &BudgetId, now: Now) -> Option<u64> {
        let members = self.members(id);
        let works = members.iter().filter_map(|id| self.budgets.get(id));
        let works = works.map(|budget| budget.work_up_to(Lane::Background));
        let all = works.fold(Work::default(), |all, work| Work {
            jobs: all.jobs.saturating_add(work.jobs),
            cost: all.cost.saturating_add(work.cost),
        });
        self.budgets.get_mut(id)?.eta_ms(all, now.mono)
    }

    /// Returns budgets whose jobs wait, in the order of their turns.
    pub(super) fn in_turn(&self) -> Vec<BudgetId> {
        let waiting = self
            .budgets
            .iter()
            .filter(|(_, budget)| !budget.lanes.is_empty());
        let mut waiting: Vec<_> = waiting
            .map(|(id, budget)| (budget.last_turn, id.clone()))
            .collect();
        waiting.sort();
        waiting.into_iter().map(|(_, id)| id).collect()
    }
}
