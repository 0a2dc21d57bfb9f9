//! Hands what an answer says of limits to the budgets that it speaks of.
//!
//! Owns which budgets those are. What a budget makes of it is its own (`budget`).
//!
//! **Scopes.** Most APIs name their limits only to tell them apart (`daily`, `burst`): such a name means the job's own
//! budget. Where an app maps scopes to budgets, a name means the budget that it is mapped to, and one that is not mapped
//! makes a budget of its own. A job that is refused under such a scope moves there, so that it waits for the right
//! window, and its old budget goes on. `global` means the uppermost parent, and pauses all under it.
//! Invariant: an answer never loosens a budget that it does not speak of; at most [`MAX_SCOPE_BUDGETS`] are made.

use super::Core;
use crate::budget::Published;
use crate::ids::{BudgetId, Seq};
use crate::limit::Ticket;
use crate::signals::{BudgetSignal, Signals};
use crate::time::{Mono, Now};

/// The most budgets that are made for scopes nobody declared. With as many, the name means the job's own budget.
const MAX_SCOPE_BUDGETS: usize = 64;
/// The scope of a limit that counts whatever the client does.
const GLOBAL: &str = "global";

impl Core {
    /// Takes the word of an answer that came at `came_at`, before the attempt's end is noted.
    pub(super) fn learn(&mut self, ticket: Ticket, signals: &Signals, came_at: Mono, now: Now) {
        let Some(home) = self.jobs.get(&ticket.0).map(|job| &job.card.budget) else {
            return;
        };
        let home = self.spoken_to(home);
        if let Some(cost) = signals.cost {
            self.correct(ticket, cost.max(1), now);
        }
        for signal in &signals.budgets {
            let id = self.spoken_of(&home, signal.scope.as_deref(), now);
            self.hear(&id, ticket, signal, came_at, now);
        }
        if let (Some(places), Some(budget)) = (signals.concurrency, self.budgets.get_mut(&home))
            && budget.publish_in_flight(places)
        {
            self.draft.touched.budgets.insert(home);
        }
    }

    /// Counts what an attempt has really cost, in its budget and all above it.
    fn correct(&mut self, ticket: Ticket, cost: u32, now: Now) {
        let Some(job) = self.jobs.get(&ticket.0) else {
            return;
        };
        let taken = job.card.cost;
        let mut family = job.parents.clone();
        family.push(job.card.budget.clone());
        self.each_of(&family, |budget| {
            budget.correct(ticket, taken, cost, now);
            false
        });
    }

    fn hear(
        &mut self,
        id: &BudgetId,
        ticket: Ticket,
        signal: &BudgetSignal,
        came_at: Mono,
        now: Now,
    ) {
        let Some(budget) = self.budgets.get_mut(id) else {
            return;
        };
        let is_stored = budget.hear(ticket, signal, came_at, now);
        let published = budget.publish(signal, now.mono);
        if let Published::Rules(new) = &published
            && !new.is_empty()
        {
            let spends = self.spends(id, now);
            if let Some(budget) = self.budgets.get_mut(id) {
                budget.seed(new, &spends, now);
            }
        }
        if is_stored || published != Published::Nothing {
            self.draft.touched.budgets.insert(id.clone());
        }
    }

    /// Returns the budget that a refusal closes, and moves its jobs there if it is another scope's.
    pub(super) fn refused_budget(
        &mut self,
        seqs: &[Seq],
        home: BudgetId,
        signals: &Signals,
        now: Now,
    ) -> BudgetId {
        let scope = signals.first().and_then(|signal| signal.scope.as_deref());
        let id = self.spoken_of(&home, scope, now);
        if id != home && !self.parents(&home).contains(&id) {
            for seq in seqs {
                self.move_job(*seq, id.clone());
            }
        }
        id
    }

    fn move_job(&mut self, seq: Seq, id: BudgetId) {
        if let Some(job) = self.jobs.get_mut(&seq) {
            job.record.moved_to = Some(id.clone());
            job.card.budget = id;
        }
    }

    /// Returns the budget that answers to jobs of a budget speak of: the whole one, where that is a part that counts only
    /// some requests.
    pub(super) fn spoken_to(&self, id: &BudgetId) -> BudgetId {
        let config = self.budgets.get(id).map(|budget| budget.config());
        let part = config.filter(|config| config.is_part());
        part.map_or(id, |config| config.declared()).clone()
    }

    /// Returns the budget that a scope of an answer to a job of `home` means.
    fn spoken_of(&mut self, home: &BudgetId, scope: Option<&str>, now: Now) -> BudgetId {
        let (Some(scope), Some(budget)) = (scope, self.budgets.get(home)) else {
            return home.clone();
        };
        let declared = budget.config().declared().clone();
        let Some(config) = self
            .budgets
            .get(&declared)
            .map(|base| base.config().clone())
        else {
            return home.clone();
        };
        if let Some(mapped) = config.scopes().get(scope) {
            let mapped = mapped.clone();
            return self.budget_of_scope(&declared, mapped, home, now);
        }
        if scope == GLOBAL {
            return self.parents(home).pop().unwrap_or_else(|| home.clone());
        }
        if config.scopes().is_empty() {
            return home.clone();
        }
        match BudgetId::parse(&format!("{declared}:{scope}")) {
            Ok(id) => self.budget_of_scope(&declared, id, home, now),
            Err(_) => home.clone(),
        }
    }

    /// Returns the budget of a scope, and makes it when it is first seen; with too many of them, the job's own.
    fn budget_of_scope(
        &mut self,
        declared: &BudgetId,
        id: BudgetId,
        home: &BudgetId,
        now: Now,
    ) -> BudgetId {
        if self.budgets.contains_key(&id) {
            return id;
        }
        let made = self
            .budgets
            .values()
            .filter(|budget| budget.config().is_of_scope());
        if made.count() >= MAX_SCOPE_BUDGETS {
            self.sweep_scopes(now);
        }
        let made = self
            .budgets
            .values()
            .filter(|budget| budget.config().is_of_scope());
        let Some(base) = self
            .budgets
            .get(declared)
            .filter(|_| made.count() < MAX_SCOPE_BUDGETS)
        else {
            return home.clone();
        };
        let config = base.config().of_scope(id.clone());
        self.declare(id.clone(), config, now);
        id
    }

    /// Makes the budgets that jobs of a budget had moved to before this owner began.
    pub(super) fn declare_moved(&mut self, home: &BudgetId, now: Now) {
        let moved = self.jobs.values().filter(|job| job.home == *home);
        let mut moved: Vec<BudgetId> = moved
            .filter_map(|job| job.record.moved_to.clone())
            .collect();
        moved.sort();
        moved.dedup();
        for id in moved {
            let _ = self.budget_of_scope(home, id, home, now);
        }
    }

    /// Forgets budgets of scopes that are idle and full; settled jobs that had moved there are their old budget's again.
    fn sweep_scopes(&mut self, now: Now) {
        let idle = self.budgets.iter_mut().filter_map(|(id, budget)| {
            let is_idle = budget.config().is_of_scope() && budget.is_idle(now.mono);
            is_idle.then(|| id.clone())
        });
        let idle: Vec<BudgetId> = idle.collect();
        for id in idle {
            self.budgets.remove(&id);
            for job in self.jobs.values_mut().filter(|job| job.card.budget == id) {
                job.card.budget = job.home.clone();
                job.record.moved_to = None;
            }
        }
    }

    /// Takes an attempt that ended without an answer for a refusal, where it shows a limit that the server does not state.
    /// Returns whether the job waits for its turn again.
    pub(super) fn is_unstated_limit(&mut self, seq: Seq, now: Now) -> bool {
        let Some(id) = self.jobs.get(&seq).map(|job| &job.card.budget) else {
            return false;
        };
        let id = self.spoken_to(id);
        let may_go_on = self.may_go_on(seq, now);
        let Some(budget) = self.budgets.get_mut(&id) else {
            return false;
        };
        if !budget.lost(seq) {
            return false;
        }
        self.draft.touched.budgets.insert(id.clone());
        if !may_go_on {
            budget.halve(now.mono);
        }
        may_go_on
    }
}

/// How long a refusal asks to wait: what it says, else until the reset of what is used up.
pub(super) fn asked_ms(signals: &Signals) -> Option<u64> {
    let used_up = signals.first().filter(|first| first.remaining == Some(0));
    signals
        .retry_after_ms
        .or(used_up.and_then(|first| first.reset_in_ms))
}
