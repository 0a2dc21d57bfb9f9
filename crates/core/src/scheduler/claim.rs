//! Starts jobs: chooses the next of each budget, takes its cost, and records the attempt.

use super::lateness;
use super::{After, Core};
use crate::budget::Asked;
use crate::ids::{BudgetId, Seq};
use crate::io::{Cause, Effect};
use crate::job::{Card, Outcome, Reason, Record, Repeat, Spent, State};
use crate::limit::Ticket;
use crate::time::{Mono, Now, Wall};

/// Attempts before the current one that a record remembers for the limiter.
const MAX_EARLIER: usize = 32;
/// The most claims on their way to the store. A large burst goes in several commits, so that the answers to its first
/// requests are heard while its last ones leave; the next claims follow when a commit is done.
const MAX_CLAIMING: usize = 64;
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
            if self.parents(&id).is_empty() {
                while self.pump_one(&id, now) {}
            }
        }
        self.pump_families(now);
    }

    /// Starts what may start under parents, one job each in turn.
    fn pump_families(&mut self, now: Now) {
        let mut families = self.in_turn();
        families.retain(|id| !self.parents(id).is_empty());
        while !families.is_empty() {
            families.retain(|id| self.pump_one(id, now));
        }
    }

    /// Starts the next job of a budget. Returns whether there may be another.
    fn pump_one(&mut self, id: &BudgetId, now: Now) -> bool {
        let is_held = !self.holds.is_empty();
        let is_full = self.claiming >= MAX_CLAIMING;
        let horizon = self.claim_horizon(now);
        let Some(budget) = self.budgets.get_mut(id) else {
            return false;
        };
        budget.blocked = None;
        if is_full {
            return false;
        }
        let Some((lane, seq)) = budget.lanes.next() else {
            return false;
        };
        let urgency = budget.urgency(lane);
        let Some(cost) = self.jobs.get(&seq).map(|job| job.card.cost) else {
            return false;
        };
        if is_held {
            budget.blocked = Some(crate::budget::Blocked {
                cause: Cause::Held,
                until: None,
                rule: None,
                depth: 0,
            });
            return false;
        }
        if self.has_outlived_its_key(seq, now) {
            self.fail(seq, Reason::OutcomeUnknown, None, None, now);
            return true;
        }
        self.want_missing_credentials(id);
        self.keep_share(id, seq, now);
        let parents = self.parents(id);
        let asked = Asked {
            urgency,
            cost,
            horizon,
        };
        let checked = self.check_family(id, &parents, asked, now.mono);
        let start = match checked {
            Ok(start) => start,
            Err(_) if self.family_gives_up(id, &parents, now.mono) => {
                self.give_up(seq, now);
                return true;
            }
            Err(blocked) => {
                if let Some(budget) = self.budgets.get_mut(id) {
                    budget.blocked = Some(blocked);
                }
                return false;
            }
        };
        let start = Now {
            mono: start,
            wall: now.wall_of(start),
        };
        self.take_out(seq);
        self.claim(seq, cost, parents.clone(), start, now);
        self.turns = self.turns.saturating_add(1);
        self.each_of(&parents, |parent| {
            parent.space(lane, cost, start.mono);
            false
        });
        if let Some(budget) = self.budgets.get_mut(id) {
            budget.started(lane, cost, start.mono);
            budget.last_turn = self.turns;
        }
        true
    }

    /// Ends a job, and all that share its request, whose server asks for a longer wait than its budget is ready for.
    fn give_up(&mut self, seq: Seq, now: Now) {
        let is_seen = self.jobs.get(&seq).is_some_and(|job| job.record.key_seen);
        let reason = match is_seen {
            true => Reason::OutcomeUnknown,
            false => Reason::WaitTooLong,
        };
        let outcome = Outcome::unanswered(reason, now.wall);
        self.settle_riders(seq, State::Failed, &outcome, now);
    }

    /// Records the attempt of a job that starts at `start`, which is now or within the time that a commit takes.
    fn claim(&mut self, seq: Seq, cost: u32, parents: Vec<BudgetId>, start: Now, now: Now) {
        self.note_try(seq, start.mono);
        let is_check = self.is_unsure(seq, now);
        let longest = self.longest_window_ms(seq);
        self.set_state(seq, State::Sending);
        self.set_expiry(seq, None);
        let Some(job) = self.jobs.get_mut(&seq) else {
            return;
        };
        let Some(budget) = self.budgets.get_mut(&job.card.budget) else {
            return;
        };
        let record = &mut job.record;
        begin_attempt(&job.card, record, longest, now.wall);
        record.current = Some(Spent {
            started_at: start.wall,
            ended_at: None,
            late_ms: self.lateness.to_store(),
        });
        record.is_check = is_check;
        job.claimed_at = start.mono;
        let attempt = record.attempt;
        budget.take((seq, attempt), cost, start);
        job.parents.clone_from(&parents);
        self.each_of(&parents, |parent| {
            parent.take((seq, attempt), cost, start);
            false
        });
        self.draft.touched.records.insert(seq);
        self.claim_members(seq);
        self.fill_batch(seq, longest, now);
        self.claiming = self.claiming.saturating_add(1);
        let start = start.mono;
        self.draft.after.push(After::Dispatch {
            seq,
            attempt,
            start,
        });
    }

    /// Sends a request whose claim is durable, or waits for the instant that it was claimed for.
    pub(super) fn dispatch_at(&mut self, seq: Seq, attempt: u32, start: Mono, now: Now) {
        if start > now.mono {
            self.claimed.insert((start, seq, attempt));
        } else {
            self.start_or_put_back(seq, attempt, start, now);
        }
    }

    /// Sends what was claimed for an instant that has come.
    pub(super) fn start_claimed(&mut self, now: Now) {
        while let Some((start, seq, attempt)) = self.claimed.first().copied()
            && start <= now.mono
        {
            self.claimed.remove(&(start, seq, attempt));
            self.start_or_put_back(seq, attempt, start, now);
        }
    }

    /// Sends a claimed request, or claims anew: it may be later than the store was told, a pause or hold may have come
    /// since, and the server may have forgotten the job's key in a sleep.
    fn start_or_put_back(&mut self, seq: Seq, attempt: u32, start: Mono, now: Now) {
        let current = self.jobs.get(&seq).and_then(|job| job.record.current);
        let is_late = current.is_none_or(|current| {
            let by_wall_ms = now.wall.since(current.started_at);
            by_wall_ms.max(now.mono.since(start)) > lateness::allowed_ms(current)
        });
        let budget = self.jobs.get(&seq).map(|job| &job.card.budget);
        let is_closed = budget.is_some_and(|id| self.family_stops_claims(id));
        let is_too_late = self.has_outlived_its_key(seq, now) || self.lacks_its_check(seq, now);
        let is_stopped = !self.holds.is_empty() || self.lacks_batch(seq);
        if is_late || is_closed || is_too_late || is_stopped {
            self.put_claim_back(seq, attempt, now);
        } else {
            self.dispatch(seq, attempt, now);
        }
    }

    /// Takes back all claims whose request has not left: the machine slept, and another owner may have come.
    pub(super) fn put_claims_back(&mut self, now: Now) {
        for (_, seq, attempt) in std::mem::take(&mut self.claimed) {
            self.put_claim_back(seq, attempt, now);
        }
    }

    /// Takes back a claim that is stored and whose request has not left; the job stays at the front.
    fn put_claim_back(&mut self, seq: Seq, attempt: u32, now: Now) {
        if let Some(job) = self.jobs.get_mut(&seq) {
            job.record.refused = true;
        }
        self.unclaim(seq, attempt, now);
        self.draft.touched.records.insert(seq);
    }

    fn dispatch(&mut self, seq: Seq, attempt: u32, now: Now) {
        let Some(job) = self.jobs.get_mut(&seq) else {
            return;
        };
        job.dispatched_at = now.mono;
        self.count_wait(seq, now);
        let Some(job) = self.jobs.get_mut(&seq) else {
            return;
        };
        let budget = self.budgets.get(&job.card.budget);
        job.sent_with = budget.map_or(0, |budget| budget.access.generation());
        let declared = budget.map(|budget| budget.config().declared().clone());
        let batch = job.card.batch.as_ref();
        let effect = Effect::Dispatch {
            seq,
            id: job.card.id.clone(),
            attempt,
            budget: declared.unwrap_or_else(|| job.home.clone()),
            idempotency_key: key_to_send(&job.card, &job.record),
            is_repeat: job.record.key_seen,
            is_check: job.record.is_check,
            timeout_ms: job.card.timeout_ms,
            batch: batch.map(|batch| (job.home.clone(), batch.name.clone())),
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
        let parents = self.take_parents(seq);
        self.each_of(&parents, |parent| {
            parent.never_left(ticket, cost, now.mono);
            false
        });
        self.unclaim_items(seq, attempt, now);
        let Some(job) = self.jobs.get(&seq) else {
            return;
        };
        let expires_at = job.card.expires_at.filter(|_| job.record.attempt == 0);
        self.set_state(seq, State::Queued);
        self.set_expiry(seq, expires_at.map(|due| now.mono_of(due)));
        self.replace(seq, now);
    }

    /// Tells whether the server may have acted on a job, and has forgotten its key while the job waited.
    pub(super) fn has_outlived_its_key(&self, seq: Seq, now: Now) -> bool {
        let may_be_done = self.jobs.get(&seq).is_some_and(|job| job.record.key_seen);
        may_be_done && !self.may_go_on(seq, now)
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
        // To the server, a batch is another request as soon as it has other items.
        let claimed_at = match job.card.batch {
            Some(_) => self.batch_claimed_at(seq),
            None => job.record.first_claimed_at,
        };
        match (job.card.repeat, ttl_ms, claimed_at) {
            (Repeat::Always, _, _) => true,
            (Repeat::WithKey, Some(ttl_ms), Some(claimed)) => {
                job.card.idempotency_key.is_some() && now.wall.since(claimed) < ttl_ms
            }
            (Repeat::WithKey, _, _) => false,
        }
    }
}

/// Counts a new attempt in a record, and forgets what concerned the last one.
pub(super) fn begin_attempt(card: &Card, record: &mut Record, window_ms: u64, now: Wall) {
    record.attempt = record.attempt.saturating_add(1);
    remember_current(card, record, window_ms, now);
    record.first_claimed_at.get_or_insert(now);
    record.not_before = None;
    record.refused = false;
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

/// When an attempt ended, at the latest: its request may have left a little after its claim.
pub(super) fn end_at_latest(spent: Spent, timeout_ms: u32) -> Wall {
    let left_at = spent.started_at.plus(lateness::allowed_ms(spent));
    spent
        .ended_at
        .unwrap_or_else(|| left_at.plus(u64::from(timeout_ms)))
}

/// The key that goes with an attempt: the same for all attempts, another after a `retry` that wants a new one, and for
/// each composition of a batch.
fn key_to_send(card: &Card, record: &Record) -> Option<String> {
    let key = card.idempotency_key.as_ref().filter(|_| !record.is_check)?;
    let suffix = match (&record.load, record.key_generation) {
        (Some(load), generation) => format!(".{generation}.b{}", load.attempt),
        (None, 0) => return Some(key.clone()),
        (None, generation) => format!(".{generation}"),
    };
    let room = MAX_KEY_BYTES.saturating_sub(suffix.len());
    let stem: String = key.chars().take(room).collect();
    Some(stem + &suffix)
}
