//! A budget that waits for credentials: after a 401, or before its first request where the app says that it needs some.
//!
//! A 401 is no failure of the job: the server has not looked at what is asked, so the job goes back to the front of its
//! lane with its attempts unchanged, and the budget holds. Budgets that were made for scopes of one server share the
//! credentials of the one that the app declared, which is what is asked for. The driver is told once a hold; what it gives is tried with one
//! request first.

use super::Core;
use crate::budget::Budget;
use crate::ids::{BudgetId, Seq};
use crate::io::{Effect, Event, Wanted};
use crate::job::{HoldCause, State};
use crate::time::Now;

impl Core {
    pub(super) fn credentials_given(&mut self, id: BudgetId) {
        for (own, budget) in &mut self.budgets {
            if *budget.config().declared() == id && budget.give_credentials() {
                self.draft.touched.budgets.insert(own.clone());
            }
        }
    }

    pub(super) fn credentials_taken(&mut self, id: &BudgetId) {
        for budget in self.budgets.values_mut() {
            if budget.config().declared() == id {
                budget.access.take_away();
            }
        }
    }

    /// Holds a budget that has work and lacks credentials.
    pub(super) fn want_missing_credentials(&mut self, id: &BudgetId) {
        let budget = self.budgets.get_mut(id);
        let Some(budget) = budget.filter(|budget| budget.lacks_credentials()) else {
            return;
        };
        if budget.hold(HoldCause::Credentials) {
            let (budget, wanted) = (budget.config().declared().clone(), Wanted::Missing);
            let event = Event::CredentialsWanted { budget, wanted };
            self.effects.push_back(Effect::Event(event));
        }
    }

    /// The server wants other credentials: the budget holds, unless it has newer ones by now.
    pub(super) fn put_back_unauthorized(&mut self, seq: Seq, now: Now) {
        let Some(job) = self.jobs.get(&seq) else {
            return;
        };
        let (id, sent_with) = (job.card.budget.clone(), job.sent_with);
        let riders = self.part_unless_seen(seq);
        for rider in &riders {
            if let Some(job) = self.jobs.get_mut(rider) {
                job.record.refused = true;
                job.ready_at = None;
            }
        }
        self.put_all(&riders, State::Queued, now);
        let Some(budget) = self.budgets.get_mut(&id) else {
            return;
        };
        if let Some(wanted) = hold_for(budget, sent_with) {
            let budget = budget.config().declared().clone();
            self.draft.touched.budgets.insert(id);
            self.tell(Event::CredentialsWanted { budget, wanted });
        }
    }
}

/// Holds a budget after a 401. Returns what is wanted, when that is new.
fn hold_for(budget: &mut Budget, sent_with: u32) -> Option<Wanted> {
    let wanted = budget.access.refused(sent_with)?;
    budget.hold(HoldCause::Credentials).then_some(wanted)
}
