//! What one job of a key does to others of it: a removal that makes earlier jobs needless, a failure that stops later ones.
//!
//! Both are decided once the job that causes them is stored. A crash before the next commit leaves jobs that are sent
//! needlessly, in their order, and nothing worse.
//!
//! Invariant: a key is held by at most one job, which is failed and says so in its record.

use std::collections::BTreeSet;

use super::{Core, Job};
use crate::ids::{BudgetId, OrderKey, Seq};
use crate::job::{Outcome, Reason, State};
use crate::kind::{Kind, OnFailure};
use crate::time::Now;

impl Core {
    /// Ends what a removal that has just been stored makes needless: all that waits for a record which the server has
    /// never seen, the removal included, or else, if it asks for that, the edits before it. Tells whether it ended itself.
    pub(super) fn remove_earlier(&mut self, seq: Seq, now: Now) -> bool {
        let Some(job) = self
            .jobs
            .get(&seq)
            .filter(|job| job.card.kind == Kind::Delete)
        else {
            return false;
        };
        let supersedes = job.card.supersedes;
        let unsent = self.unsent_life(seq);
        let is_removed = !unsent.is_empty();
        let (needless, reason) = match (is_removed, supersedes) {
            (true, _) => (unsent, Reason::CancelledOut),
            (false, true) => (self.waiting_edits_before(seq), Reason::Superseded),
            (false, false) => return false,
        };
        for seq in needless {
            let outcome = Outcome::unanswered(reason, now.wall);
            self.settle(seq, State::Cancelled, outcome, now);
        }
        is_removed
    }

    /// The jobs from a creation that nobody has tried to the removal `seq`, if there are only edits between them.
    fn unsent_life(&self, seq: Seq) -> Vec<Seq> {
        let mut life = vec![seq];
        for earlier in self.earlier_of_key(seq) {
            let Some(job) = self.jobs.get(&earlier).filter(|job| is_untried(job)) else {
                break;
            };
            let is_own = self.jobs.get(&seq).is_some_and(|removal| {
                removal.home == job.home && removal.card.principal == job.card.principal
            });
            if !is_own {
                break;
            }
            life.push(earlier);
            match job.card.kind {
                Kind::Patch | Kind::Replace => {}
                Kind::Create => return life,
                Kind::Delete | Kind::Custom => break,
            }
        }
        Vec::new()
    }

    fn waiting_edits_before(&self, seq: Seq) -> Vec<Seq> {
        let principal = self.jobs.get(&seq).map(|job| &job.card.principal);
        let is_needless = |seq: &Seq| {
            self.jobs.get(seq).is_some_and(|job| {
                job.card.kind.merges()
                    && job.is_waiting()
                    && self.load_of(*seq).is_none()
                    && job.is_stored
                    && !self.undecided.contains(seq)
                    && Some(&job.card.principal) == principal
            })
        };
        self.earlier_of_key(seq)
            .into_iter()
            .filter(is_needless)
            .collect()
    }

    /// The unsettled jobs of its key before a job, the last one first.
    fn earlier_of_key(&self, seq: Seq) -> Vec<Seq> {
        let key = self.jobs.get(&seq).and_then(|job| job.card.key.as_ref());
        let line = key.and_then(|key| self.keys.get(key));
        let earlier = line.map(|line| line.jobs.range(..seq).rev().copied().collect());
        earlier.unwrap_or_default()
    }

    /// Does to the later jobs of its key what a job asks for that has failed.
    pub(super) fn key_failed(&mut self, seq: Seq, reason: Option<Reason>, now: Now) {
        let Some(job) = self.jobs.get(&seq) else {
            return;
        };
        let Some(key) = job.card.key.clone() else {
            return;
        };
        match job.card.on_failure {
            OnFailure::Continue => {}
            OnFailure::HoldKey => self.hold_key(seq, key, now),
            // One failure ends all that is behind it; what it ends has nothing left to end.
            OnFailure::FailLater if reason == Some(Reason::KeyFailed) => {}
            OnFailure::FailLater => self.fail_later(seq, &key, now),
        }
    }

    fn hold_key(&mut self, seq: Seq, key: OrderKey, now: Now) {
        let line = self.keys.entry(key).or_default();
        if line.held_by.is_some() {
            return;
        }
        line.held_by = Some(seq);
        let first = line.jobs.first().copied();
        if let Some(job) = self.jobs.get_mut(&seq) {
            job.record.holds_key = true;
        }
        if let Some(first) = first {
            self.replace(first, now);
        }
    }

    fn fail_later(&mut self, seq: Seq, key: &OrderKey, now: Now) {
        let line = self.keys.get(key).map(|line| line.jobs.range(seq..));
        let later: Vec<Seq> = line.into_iter().flatten().copied().collect();
        for seq in later {
            let Some(job) = self.jobs.get(&seq).filter(|job| job.is_waiting()) else {
                continue;
            };
            // It may be done already, and so may what is to be sent again with it.
            if self.load_of(seq).is_some() {
                continue;
            }
            if job.is_stored {
                self.fail(seq, Reason::KeyFailed, None, None, now);
            } else {
                self.unwanted.insert(seq, Reason::KeyFailed);
            }
        }
    }

    /// Lets the key of a failed job go on.
    pub(super) fn release_key(&mut self, seq: Seq, now: Now) {
        let Some(job) = self.jobs.get_mut(&seq).filter(|job| job.record.holds_key) else {
            return;
        };
        job.record.holds_key = false;
        self.draft.touched.records.insert(seq);
        let Some(key) = job.card.key.clone() else {
            return;
        };
        if let Some(line) = self.keys.get_mut(&key) {
            line.held_by = line.held_by.filter(|held_by| *held_by != seq);
            if line.jobs.is_empty() && line.held_by.is_none() {
                self.keys.remove(&key);
            }
        }
        self.bring_forward(Some(&key), now);
    }

    /// Lets all held keys go on, or those of one budget.
    pub(super) fn release_keys(&mut self, budget: Option<&BudgetId>, now: Now) {
        let held: BTreeSet<Seq> = self.keys.values().filter_map(|line| line.held_by).collect();
        let is_meant = |seq: &Seq| {
            let job = self.jobs.get(seq);
            job.is_some_and(|job| {
                budget.is_none_or(|budget| job.card.budget == *budget || job.home == *budget)
            })
        };
        let held: Vec<Seq> = held.into_iter().filter(is_meant).collect();
        for seq in held {
            self.release_key(seq, now);
        }
    }

    /// Holds the key of a recovered job that had failed.
    pub(super) fn restore_key_hold(&mut self, seq: Seq) {
        let Some(job) = self.jobs.get(&seq).filter(|job| job.record.holds_key) else {
            return;
        };
        if let Some(key) = job.card.key.clone() {
            self.keys.entry(key).or_default().held_by = Some(seq);
        }
    }

    /// Tells whether a failed job holds up the key of a job, or of one that goes with it.
    pub(super) fn is_key_held(&self, seq: Seq) -> bool {
        let is_held = |seq: &Seq| {
            let key = self.jobs.get(seq).and_then(|job| job.card.key.as_ref());
            let line = key.and_then(|key| self.keys.get(key));
            line.is_some_and(|line| line.held_by.is_some())
        };
        self.riders(seq).iter().any(is_held)
    }
}

fn is_untried(job: &Job) -> bool {
    job.is_stored && job.is_waiting() && job.record.attempt == 0
}
