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
use crate::io::{Answer, Event, Network, NoAnswer, Verdict};
use crate::job::{HoldCause, Outcome, Reason, State};
use crate::signals::Signals;
use crate::time::{Mono, Now};

/// The most attempts that count before a job fails.
const MAX_ATTEMPTS: u32 = 5;
/// The bound of the first wait.
pub(super) const BASE_BACKOFF_MS: u64 = 500;
/// The bound of every wait.
const MAX_BACKOFF_MS: u64 = 30_000;

impl Core {
    pub(super) fn answered(
        &mut self,
        seq: Seq,
        attempt: u32,
        ended_at: Mono,
        answer: Answer,
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
        self.learn((seq, attempt), &answer.signals, ended_at, now);
        let Some(job) = self.jobs.get(&seq) else {
            return;
        };
        let budget_id = job.card.budget.clone();
        if let Some(budget) = self.budgets.get_mut(&budget_id) {
            budget.answered((seq, attempt), took_ms, ended_at);
            if is_heard(answer.verdict) {
                budget.access.worked(job.sent_with);
                if budget.succeeded(now.mono) {
                    self.draft.touched.budgets.insert(budget_id);
                }
            }
        }
        let parents = self.take_parents(seq);
        let is_heard = answer.verdict != Verdict::Refused && answer.verdict != Verdict::Unavailable;
        self.each_of(&parents, |parent| {
            parent.answered((seq, attempt), took_ms, ended_at);
            is_heard && parent.succeeded(now.mono)
        });
        self.network(Network::Online);
        match answer.verdict {
            Verdict::Success => {
                let outcome = Outcome {
                    reason: None,
                    status: Some(answer.status),
                    text: None,
                    at: now.wall,
                };
                self.settle(seq, State::Done, outcome, now);
            }
            Verdict::Refused => self.put_back(seq, &answer, now),
            Verdict::Unauthorized => self.put_back_unauthorized(seq, now),
            Verdict::Unavailable | Verdict::StillRunning => {
                self.try_later(
                    seq,
                    Some(answer.status),
                    answer.text,
                    answer.signals.retry_after_ms,
                    now,
                );
            }
            Verdict::KeyReused => self.fail(
                seq,
                Reason::KeyReused,
                Some(answer.status),
                answer.text,
                now,
            ),
            Verdict::Final => self.fail(seq, Reason::Http, Some(answer.status), answer.text, now),
        }
    }

    pub(super) fn no_answer(&mut self, seq: Seq, attempt: u32, cause: NoAnswer, now: Now) {
        if !self.is_live(seq, attempt) {
            return;
        }
        let Some(job) = self.jobs.get_mut(&seq) else {
            return;
        };
        let ticket = (seq, attempt);
        let parents = std::mem::take(&mut job.parents);
        let cost = job.card.cost;
        self.each_of(&parents, |parent| {
            match cause {
                NoAnswer::NeverLeft | NoAnswer::Missing => {
                    parent.never_left(ticket, cost, now.mono)
                }
                NoAnswer::Network | NoAnswer::TimedOut => parent.unanswered(ticket, now.mono),
            }
            false
        });
        let Some(job) = self.jobs.get_mut(&seq) else {
            return;
        };
        let budget = self.budgets.get_mut(&job.card.budget);
        match cause {
            NoAnswer::NeverLeft => {
                if let Some(budget) = budget {
                    budget.never_left(ticket, job.card.cost, now.mono);
                }
                job.record.current = None;
                self.back_off(seq, None, None, None, now);
            }
            NoAnswer::Missing => {
                if let Some(budget) = budget {
                    budget.never_left(ticket, job.card.cost, now.mono);
                }
                job.record.current = None;
                self.fail(seq, Reason::Storage, None, None, now);
            }
            NoAnswer::Network | NoAnswer::TimedOut => {
                if let Some(budget) = budget {
                    budget.unanswered(ticket, now.mono);
                }
                if let Some(current) = &mut job.record.current {
                    current.ended_at = Some(now.wall);
                }
                if self.holds.contains(&HoldCause::Offline) && self.is_repeatable(seq, now) {
                    // Costs no attempt: it goes on when there is a network again.
                    self.note_seen(seq);
                    self.set_state(seq, State::Queued);
                    self.replace(seq, now);
                    self.draft.touched.records.insert(seq);
                    return;
                }
                if cause == NoAnswer::Network && self.may_be_refused(seq, now) {
                    self.note_seen(seq);
                    let signals = Signals {
                        is_rate_limited: true,
                        is_estimate: true,
                        ..Signals::default()
                    };
                    let (status, verdict, text) = (0, Verdict::Refused, None);
                    let answer = Answer {
                        status,
                        verdict,
                        signals,
                        text,
                    };
                    self.put_back(seq, &answer, now);
                    return;
                }
                if self.is_unstated_limit(seq, now) {
                    self.put_back_lost(seq, now);
                    return;
                }
                self.try_later(seq, None, None, None, now);
            }
        }
    }

    /// Tells whether a connection that was lost may be a refusal that CORS hides, and sending again is safe.
    fn may_be_refused(&self, seq: Seq, now: Now) -> bool {
        let Some(job) = self.jobs.get(&seq) else {
            return false;
        };
        let hides = self
            .budgets
            .get(&job.card.budget)
            .is_some_and(|budget| budget.may_hide_refusals(now.mono));
        hides && self.is_repeatable(seq, now)
    }

    fn is_live(&self, seq: Seq, attempt: u32) -> bool {
        self.jobs
            .get(&seq)
            .is_some_and(|job| job.record.state == State::Sending && job.record.attempt == attempt)
    }

    /// The server refused the request unread: the budget pauses, the job goes to the front of its lane.
    fn put_back(&mut self, seq: Seq, answer: &Answer, now: Now) {
        let Some(home) = self.jobs.get(&seq).map(|job| job.card.budget.clone()) else {
            return;
        };
        let budget_id = self.refused_budget(seq, home, &answer.signals, now);
        let (Some(job), Some(budget)) = (self.jobs.get_mut(&seq), self.budgets.get_mut(&budget_id))
        else {
            return;
        };
        let believed_free = budget.believed_free(now.mono);
        if answer.status != 0 {
            budget.note_refusal(now.mono);
        }
        let refusal = budget.refused(
            job.claimed_at,
            asked_ms(&answer.signals),
            now,
            &mut self.rng,
        );
        job.record.refused = true;
        if refusal.earlier_refused > 0 {
            let spread_ms = self.rng.rand_range(0..refusal.spread_ms.saturating_add(1));
            job.record.not_before = Some(refusal.until.plus(spread_ms));
        }
        job.ready_at = job.record.not_before.map(|due| now.mono_of(due));
        let id = job.card.id.clone();
        self.set_state(seq, State::Queued);
        self.replace(seq, now);
        self.draft.touched.records.insert(seq);
        self.draft.touched.budgets.insert(budget_id.clone());
        self.tell(Event::Refused {
            budget: budget_id.clone(),
            id,
            status: answer.status,
            believed_free,
            retry_after_ms: answer.signals.retry_after_ms,
        });
        if refusal.is_longer {
            let (until, is_estimate) = (refusal.until, refusal.is_estimate);
            self.tell(Event::Paused {
                budget: budget_id.clone(),
                until,
                is_estimate,
            });
        }
        if refusal.holds_now {
            self.tell(Event::Held {
                budget: Some(budget_id),
                cause: HoldCause::Refusing,
            });
        }
    }

    /// The server may have acted on the attempt.
    pub(super) fn note_seen(&mut self, seq: Seq) {
        if let Some(job) = self.jobs.get_mut(&seq) {
            job.record.key_seen = true;
        }
    }

    /// The outcome is unknown: tries again where that is safe.
    fn try_later(
        &mut self,
        seq: Seq,
        status: Option<u16>,
        text: Option<String>,
        asked_ms: Option<u64>,
        now: Now,
    ) {
        self.note_seen(seq);
        if self.is_repeatable(seq, now) {
            self.back_off(seq, status, text, asked_ms, now);
        } else {
            self.fail(seq, Reason::OutcomeUnknown, status, text, now);
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
        let Some(job) = self.jobs.get_mut(&seq) else {
            return;
        };
        job.record.attempts_counted = job.record.attempts_counted.saturating_add(1);
        let failures = job.record.attempts_counted;
        if failures >= MAX_ATTEMPTS {
            self.fail(seq, Reason::RetriesExhausted, status, text, now);
            return;
        }
        let bound_ms = BASE_BACKOFF_MS << failures.saturating_sub(1).min(16);
        let drawn_ms = self
            .rng
            .rand_range(0..bound_ms.min(MAX_BACKOFF_MS).saturating_add(1));
        let wait_ms = asked_ms.unwrap_or(drawn_ms);
        job.record.not_before = Some(now.wall.plus(wait_ms));
        job.ready_at = Some(now.mono.plus(wait_ms));
        self.set_state(seq, State::RetryWait);
        self.replace(seq, now);
        self.draft.touched.records.insert(seq);
    }
}

/// Tells whether the server has dealt with the request, as it does with others now.
const fn is_heard(verdict: Verdict) -> bool {
    match verdict {
        Verdict::Refused | Verdict::Unavailable | Verdict::Unauthorized => false,
        Verdict::Success | Verdict::StillRunning | Verdict::KeyReused | Verdict::Final => true,
    }
}
