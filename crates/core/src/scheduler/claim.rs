//! Starts jobs: chooses the next of each budget, takes its cost, and records the attempt.

use super::{After, Core};
use crate::ids::{BudgetId, Seq};
use crate::io::{Cause, Effect};
use crate::job::{Card, Record, Repeat, Spent, State};
use crate::limit::Ticket;
use crate::time::{Now, Wall};

/// Attempts before the current one that a record remembers for the limiter.
const MAX_EARLIER: usize = 32;
/// The longest idempotency key that is sent.
const MAX_KEY_BYTES: usize = 255;

impl Core {
    /// Starts what may start now.
    pub(super) fn pump(&mut self, now: Now) {
        let budgets: Vec<BudgetId> = self
            .budgets
            .iter()
            .filter(|(_, budget)| !budget.lanes.is_empty())
            .map(|(id, _)| id.clone())
            .collect();
        for id in budgets {
            self.pump_budget(&id, now);
        }
    }

    fn pump_budget(&mut self, id: &BudgetId, now: Now) {
        loop {
            let is_held = !self.holds.is_empty();
            let Some(budget) = self.budgets.get_mut(id) else {
                return;
            };
            budget.blocked = None;
            let Some((lane, seq)) = budget.lanes.next() else {
                return;
            };
            let Some(cost) = self.jobs.get(&seq).map(|job| job.card.cost) else {
                return;
            };
            if is_held {
                budget.blocked = Some(crate::budget::Blocked {
                    cause: Cause::Held,
                    until: None,
                    rule: None,
                });
                return;
            }
            if let Err(blocked) = budget.check(cost, now.mono) {
                budget.blocked = Some(blocked);
                return;
            }
            self.take_out(seq);
            self.claim(seq, cost, now);
            if let Some(budget) = self.budgets.get_mut(id) {
                budget.lanes.started(lane);
            }
        }
    }

    fn claim(&mut self, seq: Seq, cost: u32, now: Now) {
        self.set_state(seq, State::Sending);
        self.set_expiry(seq, None);
        let Some(job) = self.jobs.get_mut(&seq) else {
            return;
        };
        let Some(budget) = self.budgets.get_mut(&job.card.budget) else {
            return;
        };
        let window_ms = budget.config().longest_window_ms();
        let record = &mut job.record;
        record.attempt = record.attempt.saturating_add(1);
        remember_current(&job.card, record, window_ms, now.wall);
        record.current = Some(Spent {
            started_at: now.wall,
            ended_at: None,
        });
        record.first_claimed_at.get_or_insert(now.wall);
        record.not_before = None;
        record.refused = false;
        job.claimed_at = now.mono;
        let attempt = record.attempt;
        budget.take((seq, attempt), cost, now);
        self.draft.touched.records.insert(seq);
        self.draft.after.push(After::Dispatch { seq, attempt });
    }

    /// Sends a request whose claim is durable.
    pub(super) fn dispatch(&mut self, seq: Seq, attempt: u32, now: Now) {
        let Some(job) = self.jobs.get_mut(&seq) else {
            return;
        };
        job.dispatched_at = now.mono;
        let effect = Effect::Dispatch {
            seq,
            id: job.card.id.clone(),
            attempt,
            budget: job.card.budget.clone(),
            idempotency_key: key_to_send(&job.card, &job.record),
            is_repeat: job.record.key_seen,
            timeout_ms: job.card.timeout_ms,
        };
        self.effects.push_back(effect);
    }

    /// Undoes a claim that could not be stored.
    pub(super) fn unclaim(&mut self, seq: Seq, attempt: u32, now: Now) {
        let Some(job) = self.jobs.get_mut(&seq) else {
            return;
        };
        let ticket: Ticket = (seq, attempt);
        job.record.attempt = attempt.saturating_sub(1);
        job.record.current = None;
        if job.record.attempt == 0 {
            job.record.first_claimed_at = None;
        }
        let (budget, cost) = (job.card.budget.clone(), job.card.cost);
        if let Some(budget) = self.budgets.get_mut(&budget) {
            budget.never_left(ticket, cost, now.mono);
        }
        self.set_state(seq, State::Queued);
        self.replace(seq, now);
    }

    /// Tells whether a job whose outcome is unknown may be sent again.
    pub(super) fn is_repeatable(&self, seq: Seq, now: Now) -> bool {
        let Some(job) = self.jobs.get(&seq) else {
            return false;
        };
        let ttl_ms = self
            .budgets
            .get(&job.card.budget)
            .and_then(|budget| budget.config().key_ttl_ms());
        match (job.card.repeat, ttl_ms, job.record.first_claimed_at) {
            (Repeat::Always, _, _) => true,
            (Repeat::WithKey, Some(ttl_ms), Some(claimed)) => {
                job.card.idempotency_key.is_some() && now.wall.since(claimed) < ttl_ms
            }
            (Repeat::WithKey, _, _) => false,
        }
    }
}

/// Moves the current attempt's use to the earlier ones, and forgets those that no limiter remembers.
fn remember_current(card: &Card, record: &mut Record, window_ms: u64, now: Wall) {
    record.earlier.extend(record.current.take());
    record
        .earlier
        .retain(|spent| end_at_latest(*spent, card.timeout_ms).plus(window_ms) >= now);
    let surplus = record.earlier.len().saturating_sub(MAX_EARLIER);
    record.earlier.drain(..surplus);
}

/// When an attempt ended, at the latest.
pub(super) fn end_at_latest(spent: Spent, timeout_ms: u32) -> Wall {
    spent
        .ended_at
        .unwrap_or_else(|| spent.started_at.plus(u64::from(timeout_ms)))
}

/// The key that goes with an attempt: the same for all attempts, another after a `retry` that wants a new one.
fn key_to_send(card: &Card, record: &Record) -> Option<String> {
    let key = card.idempotency_key.as_ref()?;
    if record.key_generation == 0 {
        return Some(key.clone());
    }
    let suffix = format!(".{}", record.key_generation);
    let room = MAX_KEY_BYTES.saturating_sub(suffix.len());
    let stem: String = key.chars().take(room).collect();
    Some(stem + &suffix)
}
