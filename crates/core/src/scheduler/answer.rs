//! What the end of an attempt does to its job and its budget.
//!
//! **Retry.** A failure that may pass is tried again with full jitter (a wait drawn evenly from zero to a bound that
//! doubles from 0.5 s to 30 s), at most [`MAX_ATTEMPTS`] times: full jitter spreads many jobs that failed together
//! better than any fixed ladder, and a cap keeps a dead server from holding jobs for ever. What may not be repeated
//! ends as `outcome-unknown`, because doing it twice may be worse than asking a person. A refusal is no failure: the
//! server did not read the request, so the job goes back to the front of its lane with its attempts unchanged.

use super::Core;
use super::learn::asked_ms;
use crate::ids::Seq;
use crate::io::{Answer, Event, ItemAnswer, Network, NoAnswer, Verdict};
use crate::job::{HoldCause, Outcome, Reason, State};
use crate::metrics::Meter;
use crate::signals::Signals;
use crate::time::{Mono, Now};

/// The most attempts that count before a job fails.
const MAX_ATTEMPTS: u32 = 5;
/// The bound of the first wait.
const BASE_BACKOFF_MS: u64 = 500;
/// The bound of every wait.
const MAX_BACKOFF_MS: u64 = 30_000;

impl Core {
    pub(super) fn answered(
        &mut self,
        seq: Seq,
        attempt: u32,
        ended_at: Mono,
        mut answer: Answer,
        now: Now,
    ) {
        if !self.is_live(seq, attempt) {
            return;
        }
        let Some(job) = self.jobs.get_mut(&seq) else {
            return;
        };
        let ended_at = ended_at.clamp(job.dispatched_at, now.mono);
        if let Some(current) = &mut job.record.current {
            current.ended_at = Some(now.wall.minus(now.mono.since(ended_at)));
        }
        let took_ms = ended_at.since(job.dispatched_at);
        let (status, verdict) = (answer.status, answer.verdict);
        self.count(seq, |meter| meter.answer(status, verdict));
        self.learn((seq, attempt), &answer.signals, ended_at, now);
        let Some(job) = self.jobs.get(&seq) else {
            return;
        };
        let (budget_id, claimed_at) = (job.card.budget.clone(), job.claimed_at);
        if let Some(budget) = self.budgets.get_mut(&budget_id) {
            budget.answered((seq, attempt), took_ms, ended_at);
            if is_heard(&answer) {
                budget.access.worked(job.sent_with);
                if budget.succeeded(claimed_at, now.mono) {
                    self.draft.touched.budgets.insert(budget_id);
                }
            }
        }
        let parents = self.take_parents(seq);
        let is_heard = is_heard(&answer) || answer.verdict == Verdict::Unauthorized;
        self.each_of(&parents, |parent| {
            parent.answered((seq, attempt), took_ms, ended_at);
            is_heard && parent.succeeded(claimed_at, now.mono)
        });
        self.network(Network::Online);
        match (answer.verdict, answer.items.take()) {
            (Verdict::Success, Some(items)) => self.settle_items(seq, items, &answer, now),
            (verdict, _) => self.end_attempt(seq, verdict, answer, now),
        }
    }

    /// Does what a status says to all that share a request.
    fn end_attempt(&mut self, seq: Seq, verdict: Verdict, answer: Answer, now: Now) {
        let status = Some(answer.status);
        let ended = |reason: Option<Reason>, text: Option<String>| Outcome {
            reason,
            status,
            text,
            at: now.wall,
            by_check: false,
        };
        match self.verdict_for(seq, verdict) {
            Verdict::Checked(found) => self.checked(seq, found, answer.status, now),
            Verdict::Success => self.settle_riders(seq, State::Done, &ended(None, None), now),
            Verdict::Refused => {
                let riders = self.part_unless_seen(seq);
                self.put_back(&riders, &answer, now);
            }
            Verdict::Unauthorized => self.put_back_unauthorized(seq, now),
            Verdict::Unavailable | Verdict::StillRunning => {
                self.note_seen(seq, now.wall, now);
                self.try_later(seq, status, answer.text, answer.signals.retry_after_ms, now);
            }
            Verdict::KeyReused => {
                let outcome = ended(Some(Reason::KeyReused), answer.text);
                self.settle_riders(seq, State::Failed, &outcome, now);
            }
            Verdict::Final => {
                let outcome = ended(Some(Reason::Http), answer.text);
                self.settle_riders(seq, State::Failed, &outcome, now);
            }
        }
    }

    pub(super) fn no_answer(&mut self, seq: Seq, attempt: u32, cause: NoAnswer, now: Now) {
        if !self.is_live(seq, attempt) {
            return;
        }
        match cause {
            NoAnswer::NeverLeft => {
                self.never_left(seq, attempt, now);
                self.back_off(seq, None, None, None, now);
            }
            NoAnswer::Missing => self.items_missing(seq, attempt, &[seq], now),
            NoAnswer::Network | NoAnswer::TimedOut => {
                self.unanswered(seq, attempt, now);
                let over_at = self.over_at(seq, now);
                self.note_seen(seq, over_at, now);
                if self.holds.contains(&HoldCause::Offline) && self.may_go_on(seq, now) {
                    // Costs no attempt: it goes on when there is a network again.
                    let riders = self.riders(seq);
                    self.put_all(&riders, State::Queued, now);
                    return;
                }
                let is_refusal = cause == NoAnswer::Network && self.may_be_refused(seq, now);
                if is_refusal || self.is_unstated_limit(seq, now) {
                    let riders = self.riders(seq);
                    self.put_back(&riders, &hidden_refusal(), now);
                    return;
                }
                self.try_later(seq, None, None, None, now);
            }
        }
    }

    /// Gives back what an attempt took that certainly never left.
    pub(super) fn never_left(&mut self, seq: Seq, attempt: u32, now: Now) {
        let parents = self.take_parents(seq);
        let Some(job) = self.jobs.get_mut(&seq) else {
            return;
        };
        let (ticket, cost) = ((seq, attempt), job.card.cost);
        job.record.current = None;
        if let Some(budget) = self.budgets.get_mut(&job.card.budget) {
            budget.never_left(ticket, cost, now.mono);
        }
        self.each_of(&parents, |parent| {
            parent.never_left(ticket, cost, now.mono);
            false
        });
    }

    /// Notes that an attempt ended without an answer.
    fn unanswered(&mut self, seq: Seq, attempt: u32, now: Now) {
        self.count(seq, Meter::lose);
        let parents = self.take_parents(seq);
        let Some(job) = self.jobs.get_mut(&seq) else {
            return;
        };
        let ticket = (seq, attempt);
        if let Some(current) = &mut job.record.current {
            current.ended_at = Some(now.wall);
        }
        if let Some(budget) = self.budgets.get_mut(&job.card.budget) {
            budget.unanswered(ticket, now.mono);
        }
        self.each_of(&parents, |parent| {
            parent.unanswered(ticket, now.mono);
            false
        });
    }

    /// Tells whether a connection that was lost may be a refusal that CORS hides, and sending again is safe.
    fn may_be_refused(&self, seq: Seq, now: Now) -> bool {
        let Some(job) = self.jobs.get(&seq) else {
            return false;
        };
        let hides = self
            .budgets
            .get(&self.spoken_to(&job.card.budget))
            .is_some_and(|budget| budget.may_hide_refusals(now.mono));
        hides && self.may_go_on(seq, now)
    }

    pub(super) fn is_live(&self, seq: Seq, attempt: u32) -> bool {
        self.jobs
            .get(&seq)
            .is_some_and(|job| job.record.state == State::Sending && job.record.attempt == attempt)
    }

    /// The server refused a request, or items of one, unread: the budget pauses, the jobs go to the front of their lanes.
    pub(super) fn put_back(&mut self, seqs: &[Seq], answer: &Answer, now: Now) {
        let Some(seq) = seqs.first().copied() else {
            return;
        };
        let Some(home) = self.jobs.get(&seq).map(|job| &job.card.budget) else {
            return;
        };
        let home = self.spoken_to(home);
        let budget_id = self.refused_budget(seqs, home, &answer.signals, now);
        let (Some(job), Some(budget)) = (self.jobs.get(&seq), self.budgets.get_mut(&budget_id))
        else {
            return;
        };
        let believed_free = budget.believed_free(now.mono);
        if answer.status != 0 {
            budget.note_refusal(now.mono);
        }
        let mut refusal = budget.refused(
            job.claimed_at,
            asked_ms(&answer.signals),
            now,
            &mut self.rng,
        );
        if answer.signals.is_estimate && refusal.is_longer {
            budget.guessed();
            refusal.is_estimate = true;
        }
        let id = job.card.id.clone();
        let not_before = (refusal.earlier_refused > 0).then(|| {
            let spread_ms = self.rng.rand_range(0..refusal.spread_ms.saturating_add(1));
            refusal.until.plus(spread_ms)
        });
        for seq in seqs {
            if let Some(job) = self.jobs.get_mut(seq) {
                job.record.refused = true;
                job.record.not_before = job.record.not_before.max(not_before);
                job.ready_at = job.record.not_before.map(|due| now.mono_of(due));
            }
        }
        self.put_all(seqs, State::Queued, now);
        self.draft.touched.budgets.insert(budget_id.clone());
        self.tell(Event::Refused {
            budget: budget_id.clone(),
            id,
            status: answer.status,
            believed_free,
            retry_after_ms: answer.signals.retry_after_ms,
        });
        if refusal.is_longer {
            self.tell(Event::Paused {
                budget: budget_id.clone(),
                until: refusal.until,
                is_estimate: refusal.is_estimate,
                is_long: refusal.is_long,
            });
        }
        if refusal.holds_now {
            self.tell(Event::Held {
                budget: Some(budget_id),
                cause: HoldCause::Refusing,
            });
        }
    }

    /// The outcome is unknown: tries again where that is safe.
    pub(super) fn try_later(
        &mut self,
        seq: Seq,
        status: Option<u16>,
        text: Option<String>,
        asked_ms: Option<u64>,
        now: Now,
    ) {
        if self.may_go_on(seq, now) {
            self.back_off(seq, status, text, asked_ms, now);
        } else {
            let outcome = Outcome {
                reason: Some(Reason::OutcomeUnknown),
                status,
                text,
                at: now.wall,
                by_check: false,
            };
            self.settle_riders(seq, State::Failed, &outcome, now);
        }
    }

    fn back_off(
        &mut self,
        seq: Seq,
        status: Option<u16>,
        text: Option<String>,
        asked_ms: Option<u64>,
        now: Now,
    ) {
        let mut riders = self.part_unless_seen(seq);
        let failures = riders.iter().map(|rider| self.count_failure(*rider)).max();
        let failures = failures.unwrap_or(0);
        if failures >= MAX_ATTEMPTS {
            self.end_exhausted(&mut riders, status, text.as_deref(), now);
        }
        if riders.is_empty() {
            return;
        }
        let bound_ms = BASE_BACKOFF_MS << failures.saturating_sub(1).min(16);
        let drawn_ms = self
            .rng
            .rand_range(0..bound_ms.min(MAX_BACKOFF_MS).saturating_add(1));
        self.delay_all(&riders, asked_ms.unwrap_or(drawn_ms), now);
    }

    fn count_failure(&mut self, seq: Seq) -> u32 {
        let Some(job) = self.jobs.get_mut(&seq) else {
            return 0;
        };
        job.record.attempts_counted = job.record.attempts_counted.saturating_add(1);
        job.record.attempts_counted
    }

    /// Ends those of a request's items that had their last attempt, and those that cannot be repeated without them.
    fn end_exhausted(
        &mut self,
        riders: &mut Vec<Seq>,
        status: Option<u16>,
        text: Option<&str>,
        now: Now,
    ) {
        if let Some(carrier) = riders.first() {
            self.disband(*carrier);
        }
        riders.retain(|rider| {
            let failures = self.jobs.get(rider);
            let failures = failures.map_or(0, |job| job.record.attempts_counted);
            let reason = if failures >= MAX_ATTEMPTS && self.is_unsure(*rider, now) {
                Reason::OutcomeUnknown
            } else if failures >= MAX_ATTEMPTS {
                Reason::RetriesExhausted
            } else if self.has_outlived_its_key(*rider, now) {
                Reason::OutcomeUnknown
            } else {
                return true;
            };
            self.fail(*rider, reason, status, text.map(str::to_owned), now);
            false
        });
    }

    /// Lets jobs that failed wait for another attempt.
    pub(super) fn delay_all(&mut self, seqs: &[Seq], wait_ms: u64, now: Now) {
        for seq in seqs {
            self.wait_for(*seq, wait_ms, now);
        }
        self.put_all(seqs, State::RetryWait, now);
    }

    /// Puts jobs whose attempt is over where they belong now.
    pub(super) fn put_all(&mut self, seqs: &[Seq], state: State, now: Now) {
        for seq in seqs {
            self.set_state(*seq, state);
            self.draft.touched.records.insert(*seq);
        }
        for seq in seqs {
            self.replace(*seq, now);
        }
    }
}

/// A refusal that could not be read.
fn hidden_refusal() -> Answer {
    Answer {
        status: 0,
        verdict: Verdict::Refused,
        signals: Signals {
            is_rate_limited: true,
            is_estimate: true,
            ..Signals::default()
        },
        text: None,
        items: None,
    }
}

/// Tells whether the server has dealt with the request, as it does with others now.
fn is_heard(answer: &Answer) -> bool {
    let is_refusal = |item: &ItemAnswer| item.verdict == Verdict::Refused;
    if answer.items.iter().flatten().flatten().any(is_refusal) {
        return false;
    }
    match answer.verdict {
        Verdict::Refused | Verdict::Unavailable | Verdict::Unauthorized => false,
        Verdict::Success
        | Verdict::StillRunning
        | Verdict::KeyReused
        | Verdict::Final
        | Verdict::Checked(_) => true,
    }
}
