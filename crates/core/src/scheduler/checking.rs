//! Finds out whether a request of unknown outcome was carried out, where it may not be repeated: its check is sent first.
//!
//! A check is an attempt like any other: claimed before it leaves, paced and counted by the job's own budget, refused,
//! paused and tried again. While the outcome of a job's own request is not known, every attempt is its check; which of the
//! two an attempt is, is decided at its claim from what is stored, so that a crash at any point changes nothing. What the
//! check finds ends the job, or lets its own request be sent again. A check that cannot tell, or fails as often as a
//! request may, leaves the outcome unknown.
//!
//! **When.** A server may still be at work on a request whose answer was lost, and may show a new record late. So a check
//! is sent once the attempt before it would have timed out, or was answered, and the time that the job asks for has passed.
//! Invariant: a job's own request is not sent while its outcome is open, unless it may be repeated or somebody forced it.

use super::Core;
use super::claim::end_at_latest;
use crate::ids::Seq;
use crate::io::{Found, Verdict};
use crate::job::{Outcome, Reason, State};
use crate::time::{Now, Wall};

impl Core {
    /// Tells whether a job goes on although its outcome is not known: by a repeat, or by its check.
    pub(super) fn may_go_on(&self, seq: Seq, now: Now) -> bool {
        let job = self.jobs.get(&seq);
        job.is_some_and(|job| job.card.check.is_some()) || self.is_repeatable(seq, now)
    }

    /// Tells whether the next attempt of a job is its check.
    pub(super) fn is_unsure(&self, seq: Seq, now: Now) -> bool {
        let job = self.jobs.get(&seq);
        let is_open = job.is_some_and(|job| job.card.check.is_some() && job.record.key_seen);
        is_open && !self.is_repeatable(seq, now)
    }

    /// Tells whether a job's own request was claimed, and its check has to go first by now.
    pub(super) fn lacks_its_check(&self, seq: Seq, now: Now) -> bool {
        let job = self.jobs.get(&seq);
        let is_own = job.is_some_and(|job| !job.record.is_check);
        is_own && self.is_unsure(seq, now)
    }

    /// Returns when the server is done with an attempt that was not answered, at the latest.
    pub(super) fn over_at(&self, seq: Seq, now: Now) -> Wall {
        let job = self.jobs.get(&seq);
        let spent = job.and_then(|job| Some((job.record.current?, job.card.timeout_ms)));
        spent.map_or(now.wall, |(spent, timeout_ms)| {
            spent.started_at.plus(u64::from(timeout_ms)).max(now.wall)
        })
    }

    /// The server may have acted on the attempt, with which it is done at `over_at`.
    pub(super) fn note_seen(&mut self, seq: Seq, over_at: Wall, now: Now) {
        for rider in self.riders(seq) {
            if let Some(job) = self.jobs.get_mut(&rider) {
                job.record.key_seen = true;
            }
        }
        self.delay_check(seq, over_at, now);
    }

    /// Lets a job's check wait, after a time in which nobody knows what has become of its request.
    pub(super) fn wait_for_check(&mut self, seq: Seq, now: Now) {
        let Some(job) = self.jobs.get(&seq) else {
            return;
        };
        let (record, timeout_ms) = (&job.record, job.card.timeout_ms);
        let last = record.current.or_else(|| record.earlier.last().copied());
        let started = last.map(|spent| {
            end_at_latest(spent, timeout_ms).max(spent.started_at.plus(u64::from(timeout_ms)))
        });
        if let Some(over_at) = started {
            self.delay_check(seq, over_at, now);
        }
    }

    fn delay_check(&mut self, seq: Seq, over_at: Wall, now: Now) {
        let is_unsure = self.is_unsure(seq, now);
        let Some(job) = self.jobs.get_mut(&seq).filter(|_| is_unsure) else {
            return;
        };
        let Some(check) = job.card.check.filter(|_| !job.record.is_check) else {
            return;
        };
        let due = over_at.plus(u64::from(check.after_ms));
        job.record.not_before = job.record.not_before.max(Some(due));
        job.ready_at = job.record.not_before.map(|due| now.mono_of(due));
    }

    /// Lets a job wait for a while, or for as long as it has to anyhow.
    pub(super) fn wait_for(&mut self, seq: Seq, wait_ms: u64, now: Now) {
        let Some(job) = self.jobs.get_mut(&seq) else {
            return;
        };
        let due = job.record.not_before.max(Some(now.wall.plus(wait_ms)));
        job.record.not_before = due;
        job.ready_at = due.map(|due| now.mono_of(due));
    }

    /// Reads an answer as one to what was sent: a check's says nothing of the job but by what it found.
    pub(super) fn verdict_for(&self, seq: Seq, verdict: Verdict) -> Verdict {
        let is_check = self.jobs.get(&seq).is_some_and(|job| job.record.is_check);
        match (verdict, is_check) {
            (Verdict::Success | Verdict::Final | Verdict::KeyReused, true) => {
                Verdict::Checked(Found::Unclear)
            }
            (Verdict::Checked(_), false) => Verdict::Unavailable,
            (
                Verdict::Success
                | Verdict::Final
                | Verdict::KeyReused
                | Verdict::Refused
                | Verdict::Unauthorized
                | Verdict::Unavailable
                | Verdict::StillRunning
                | Verdict::Checked(_),
                _,
            ) => verdict,
        }
    }

    /// Goes on by what a check has found.
    pub(super) fn checked(&mut self, seq: Seq, found: Found, status: u16, now: Now) {
        match found {
            Found::Applied => {
                let outcome = Outcome {
                    reason: None,
                    status: Some(status),
                    text: None,
                    at: now.wall,
                    by_check: true,
                };
                self.settle(seq, State::Done, outcome, now);
            }
            Found::NotApplied => self.send_again(seq, now),
            Found::Unclear => {
                let text =
                    format!("its check was answered with status {status}, which does not tell");
                self.fail(seq, Reason::OutcomeUnknown, None, Some(text), now);
            }
        }
    }

    fn send_again(&mut self, seq: Seq, now: Now) {
        if let Some(job) = self.jobs.get_mut(&seq) {
            job.record.key_seen = false;
            job.ready_at = None;
        }
        self.set_state(seq, State::Queued);
        self.replace(seq, now);
        self.draft.touched.records.insert(seq);
    }
}
