//! Lets jobs of one batch name go as one request.
//!
//! A batch takes what is ready when its first job's turn comes, the most urgent first, and waits for nothing: the limit
//! itself lets items gather. Each item stays a job of its own, with its state, its key's line and its end; what the
//! carrier has alone is the attempt: the ticket, the cost, the time-out. Two jobs of one ordering key are never ready at
//! once, so they are never in one request.
//!
//! **Composition.** It is stored with the claim, in one commit. Once the outcome is known, the items part: each settles
//! or waits by itself, with others the next time. While the outcome is unknown they stay together, because only the same
//! items under the same key are the same request to the server. A request that certainly was not read is put together
//! anew, under another key.
//!
//! Invariant: a load's members name their carrier, and it names them; none of them has settled, and while they wait only
//! the carrier stands in a lane.

use std::collections::BTreeSet;

use super::{Core, Slot};
use crate::batch::{BatchLoad, BatchRule};
use crate::ids::{BatchName, BudgetId, Seq};
use crate::job::{Card, Lane, Reason, Repeat, State};
use crate::kind::Fingerprint;
use crate::lane::Place;
use crate::time::{Now, Wall};

/// What jobs have in common that may share a request.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Company {
    name: BatchName,
    budget: BudgetId,
    /// The budget that declares the batch.
    home: BudgetId,
    principal: String,
    form: Fingerprint,
    repeat: Repeat,
    has_key: bool,
    cost: u32,
    timeout_ms: u32,
}

impl Company {
    pub(super) fn of(card: &Card, home: &BudgetId) -> Option<Self> {
        let batch = card.batch.as_ref()?;
        Some(Self {
            name: batch.name.clone(),
            budget: card.budget.clone(),
            home: home.clone(),
            principal: card.principal.clone(),
            form: batch.form,
            repeat: card.repeat,
            has_key: card.idempotency_key.is_some(),
            cost: card.cost,
            timeout_ms: card.timeout_ms,
        })
    }
}

impl Core {
    /// Returns the jobs that share what comes of a job's attempt, the carrier first; most often itself alone.
    pub fn riders(&self, carrier: Seq) -> Vec<Seq> {
        let load = self
            .jobs
            .get(&carrier)
            .and_then(|job| job.record.load.as_ref());
        let members = load.map(|load| load.members.as_slice()).unwrap_or_default();
        std::iter::once(carrier)
            .chain(members.iter().copied())
            .collect()
    }

    /// Returns the job that carries the batch request which a job is an item of, while that is on its way or unknown.
    pub(super) fn load_of(&self, seq: Seq) -> Option<(Seq, &BatchLoad)> {
        let carrier = self.jobs.get(&seq)?.record.carried_by.unwrap_or(seq);
        let load = self.jobs.get(&carrier)?.record.load.as_ref()?;
        Some((carrier, load))
    }

    /// Tells whether the budget of a job does not declare the batch that it goes in.
    pub(super) fn lacks_batch(&self, seq: Seq) -> bool {
        let is_batched = self
            .jobs
            .get(&seq)
            .is_some_and(|job| job.card.batch.is_some());
        is_batched && self.batch_rule(seq).is_none()
    }

    fn batch_rule(&self, seq: Seq) -> Option<BatchRule> {
        let job = self.jobs.get(&seq)?;
        let batches = self.budgets.get(&job.home)?.config().batches();
        batches.get(&job.card.batch.as_ref()?.name).copied()
    }

    /// Notes that a job is ready, or no longer, for requests that it may share.
    pub(super) fn note_ready(&mut self, seq: Seq, lane: Lane, place: Place, is_ready: bool) {
        let Some(job) = self.jobs.get(&seq).filter(|job| job.record.load.is_none()) else {
            return;
        };
        let Some(company) = Company::of(&job.card, &job.home) else {
            return;
        };
        if is_ready {
            let ready = self.companies.entry(company).or_default();
            ready.insert((lane, place));
        } else if let Some(ready) = self.companies.get_mut(&company) {
            ready.remove(&(lane, place));
            if ready.is_empty() {
                self.companies.remove(&company);
            }
        }
    }

    /// Fills the request of a job that was just claimed: with the same items as before, or with what is ready now.
    pub(super) fn fill_batch(&mut self, carrier: Seq, longest_ms: u64, now: Now) {
        let Some(job) = self
            .jobs
            .get(&carrier)
            .filter(|job| job.card.batch.is_some())
        else {
            return;
        };
        let attempt = job.record.attempt;
        let members = match &job.record.load {
            Some(load) => load.members.clone(),
            None => self.choose_items(carrier),
        };
        for member in members.iter().copied() {
            self.take_out(member);
            self.claim_item(member, carrier, longest_ms, now);
        }
        if let Some(job) = self.jobs.get_mut(&carrier) {
            let claimed_at = now.wall;
            job.record.load.get_or_insert(BatchLoad {
                members,
                attempt,
                claimed_at,
            });
        }
    }

    fn choose_items(&self, carrier: Seq) -> Vec<Seq> {
        let (Some(job), Some(rule)) = (self.jobs.get(&carrier), self.batch_rule(carrier)) else {
            return Vec::new();
        };
        let company = Company::of(&job.card, &job.home);
        let ready = company.and_then(|company| self.companies.get(&company));
        let size = |seq: Seq| {
            self.jobs
                .get(&seq)
                .map_or(0, |job| u64::from(job.card.size))
        };
        let mut bytes = size(carrier);
        let fits = |seq: &Seq| {
            bytes = bytes.saturating_add(size(*seq));
            bytes <= rule.max_bytes()
        };
        let others = usize::try_from(rule.max_items().saturating_sub(1)).unwrap_or(0);
        let ready = ready.into_iter().flatten().map(|(_, (_, seq))| *seq);
        ready.take(others).take_while(fits).collect()
    }

    fn claim_item(&mut self, seq: Seq, carrier: Seq, longest_ms: u64, now: Now) {
        self.set_state(seq, State::Sending);
        self.set_expiry(seq, None);
        let Some(job) = self.jobs.get_mut(&seq) else {
            return;
        };
        super::claim::begin_attempt(&job.card, &mut job.record, longest_ms, now.wall);
        job.record.carried_by = Some(carrier);
        self.draft.touched.records.insert(seq);
    }

    /// Takes the claim of a request's other items back. Those that were put together for it go their own ways again.
    pub(super) fn unclaim_items(&mut self, carrier: Seq, attempt: u32, now: Now) {
        let load = self
            .jobs
            .get(&carrier)
            .and_then(|job| job.record.load.as_ref());
        let Some(is_new) = load.map(|load| load.attempt == attempt) else {
            return;
        };
        let is_refused = self
            .jobs
            .get(&carrier)
            .is_some_and(|job| job.record.refused);
        let items = match is_new {
            true => self.disband(carrier),
            false => self.riders(carrier),
        };
        for item in items.into_iter().filter(|item| *item != carrier) {
            let Some(job) = self.jobs.get_mut(&item) else {
                continue;
            };
            job.record.refused |= is_refused;
            job.record.attempt = job.record.attempt.saturating_sub(1);
            if job.record.attempt == 0 {
                job.record.first_claimed_at = None;
            }
            let expires_at = job.card.expires_at.filter(|_| job.record.attempt == 0);
            self.set_state(item, State::Queued);
            self.set_expiry(item, expires_at.map(|due| now.mono_of(due)));
            self.draft.touched.records.insert(item);
            self.replace(item, now);
        }
    }

    /// Lets the items of a request part. Returns them, the carrier first; they stand nowhere until they are put somewhere.
    pub(super) fn disband(&mut self, carrier: Seq) -> Vec<Seq> {
        let items = self.riders(carrier);
        for item in items.iter().copied() {
            // A carrier with a load stands in its lane otherwise than one without.
            self.take_out(item);
            if let Some(job) = self.jobs.get_mut(&item) {
                job.record.load = None;
                job.record.carried_by = None;
            }
            self.draft.touched.records.insert(item);
        }
        items
    }

    /// Lets the items of a request part that the server certainly did not act on. Returns all that share its end.
    pub(super) fn part_unless_seen(&mut self, carrier: Seq) -> Vec<Seq> {
        let is_seen = self
            .jobs
            .get(&carrier)
            .is_some_and(|job| job.record.key_seen);
        match is_seen {
            true => self.riders(carrier),
            false => self.disband(carrier),
        }
    }

    /// One of a request's items ends by itself: what waits with it can no longer be the same request.
    pub(super) fn leave_load(&mut self, seq: Seq, now: Now) {
        let Some((carrier, _)) = self.load_of(seq) else {
            return;
        };
        for item in self.disband(carrier) {
            let waits = self.jobs.get(&item).is_some_and(super::Job::is_waiting);
            if item == seq || !waits {
                continue;
            }
            if self.has_outlived_its_key(item, now) {
                self.fail(item, Reason::OutcomeUnknown, None, None, now);
            } else {
                self.replace(item, now);
            }
        }
    }

    /// Puts the items of a budget's batches where they belong now that it declares others.
    pub(super) fn replace_batched(&mut self, id: &BudgetId, now: Now) {
        let is_own = |job: &super::Job| job.card.batch.is_some() && job.home == *id;
        let jobs = self
            .jobs
            .iter()
            .filter(|(_, job)| is_own(job) && job.is_waiting());
        let seqs: Vec<Seq> = jobs.map(|(seq, _)| *seq).collect();
        for seq in seqs {
            self.replace(seq, now);
        }
    }

    /// Unties recovered jobs whose composition is not whole: a record of it could not be read.
    pub(super) fn mend_loads(&mut self) {
        let is_whole = |carrier: Seq, load: &BatchLoad| {
            load.members.iter().all(|member| {
                let job = self.jobs.get(member);
                job.is_some_and(|job| {
                    job.record.carried_by == Some(carrier) && !job.record.state.is_settled()
                })
            })
        };
        let mut whole: BTreeSet<Seq> = BTreeSet::new();
        for (seq, job) in &self.jobs {
            if let Some(load) = job.record.load.as_ref()
                && !job.record.state.is_settled()
                && is_whole(*seq, load)
            {
                whole.insert(*seq);
                whole.extend(load.members.iter().copied());
            }
        }
        for (seq, job) in &mut self.jobs {
            if !whole.contains(seq) {
                job.record.load = None;
                job.record.carried_by = None;
            }
        }
    }

    /// When the key of a job's request was first sent, where it goes in a batch: as long as that stays the same request.
    pub(super) fn batch_claimed_at(&self, seq: Seq) -> Option<Wall> {
        self.load_of(seq).map(|(_, load)| load.claimed_at)
    }

    /// Returns the job that an item waits with, if it does.
    pub(super) fn carrier_if_carried(&self, seq: Seq) -> Option<Seq> {
        let job = self
            .jobs
            .get(&seq)
            .filter(|job| job.slot == Slot::Carried)?;
        job.record.carried_by
    }
}
