//! Hands what an answer says of limits to the budgets that it speaks of.
//!
//! Owns which budget that is. What a budget makes of it is its own (`budget`). Invariant: an answer never loosens a
//! budget that it does not speak of.

use super::Core;
use crate::limit::Ticket;
use crate::signals::Signals;
use crate::time::{Mono, Now};

impl Core {
    /// Takes the word of an answer that came at `came_at`, before the attempt's end is noted.
    pub(super) fn learn(&mut self, ticket: Ticket, signals: &Signals, came_at: Mono, now: Now) {
        let Some(home) = self.jobs.get(&ticket.0).map(|job| job.card.budget.clone()) else {
            return;
        };
        for signal in &signals.budgets {
            let Some(budget) = self.budgets.get_mut(&home) else {
                continue;
            };
            if budget.hear(ticket, signal, came_at, now) {
                self.draft.touched.budgets.insert(home.clone());
            }
        }
    }
}
