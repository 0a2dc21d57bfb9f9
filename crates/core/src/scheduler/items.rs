//! What the end of a batch request does to its items: each ends or waits by itself once its outcome is known.
//!
//! An item that the server refused unread goes back to the front, and the budget pauses once for all such items. An item
//! of which the answer says nothing is one whose outcome is unknown. It may be repeated only where that is always safe:
//! no key speaks for it alone.

use super::Core;
use crate::ids::Seq;
use crate::io::{Answer, ItemAnswer, Verdict};
use crate::job::{Outcome, Reason, State};
use crate::time::Now;

impl Core {
    /// Takes what a batch endpoint says of each item.
    pub(super) fn settle_items(
        &mut self,
        carrier: Seq,
        items: Vec<Option<ItemAnswer>>,
        answer: &Answer,
        now: Now,
    ) {
        let sent_with = self.jobs.get(&carrier).map_or(0, |job| job.sent_with);
        let mut refused = Vec::new();
        let mut refusal = None;
        let mut said = items.into_iter();
        for seq in self.disband(carrier) {
            if let Some(job) = self.jobs.get_mut(&seq) {
                // Whatever came of earlier attempts, this answer tells.
                job.record.key_seen = false;
                job.sent_with = sent_with;
            }
            match said.next().flatten() {
                Some(item) if item.verdict == Verdict::Refused => {
                    refused.push(seq);
                    refusal.get_or_insert(item.status);
                }
                Some(item) => self.settle_item(seq, item, answer.signals.retry_after_ms, now),
                None => {
                    self.note_seen(seq, now.wall, now);
                    self.try_later(seq, None, None, None, now);
                }
            }
        }
        let answer = Answer {
            status: refusal.unwrap_or_default(),
            verdict: Verdict::Refused,
            ..answer.clone()
        };
        self.put_back(&refused, &answer, now);
    }

    fn settle_item(&mut self, seq: Seq, item: ItemAnswer, asked_ms: Option<u64>, now: Now) {
        let status = Some(item.status);
        match item.verdict {
            Verdict::Success => {
                let outcome = Outcome {
                    reason: None,
                    status,
                    text: None,
                    at: now.wall,
                    by_check: false,
                };
                self.settle(seq, State::Done, outcome, now);
            }
            Verdict::Refused => self.put_all(&[seq], State::Queued, now),
            Verdict::Unauthorized => self.put_back_unauthorized(seq, now),
            // No item has a check.
            Verdict::Unavailable | Verdict::StillRunning | Verdict::Checked(_) => {
                self.note_seen(seq, now.wall, now);
                self.try_later(seq, status, item.text, asked_ms, now);
            }
            Verdict::KeyReused => self.fail(seq, Reason::KeyReused, status, item.text, now),
            Verdict::Final => self.fail(seq, Reason::Http, status, item.text, now),
        }
    }

    /// Brings all that share a request to the same end.
    pub(super) fn settle_riders(
        &mut self,
        carrier: Seq,
        state: State,
        outcome: &Outcome,
        now: Now,
    ) {
        for seq in self.disband(carrier) {
            self.settle(seq, state, outcome.clone(), now);
        }
    }

    /// Some of a request's items have no stored request: those fail, and the others go without them.
    pub(super) fn items_missing(&mut self, carrier: Seq, attempt: u32, missing: &[Seq], now: Now) {
        if !self.is_live(carrier, attempt) {
            return;
        }
        self.never_left(carrier, attempt, now);
        let is_known = !self
            .jobs
            .get(&carrier)
            .is_some_and(|job| job.record.key_seen);
        let items = self.disband(carrier);
        for seq in items {
            if missing.contains(&seq) {
                self.fail(seq, Reason::Storage, None, None, now);
            } else if is_known || self.is_repeatable(seq, now) {
                self.set_state(seq, State::Queued);
                if let Some(job) = self.jobs.get_mut(&seq) {
                    job.record.refused = true;
                    job.ready_at = None;
                }
                self.replace(seq, now);
            } else {
                self.fail(seq, Reason::OutcomeUnknown, None, None, now);
            }
        }
    }
}
