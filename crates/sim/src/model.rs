//! What must be true, kept more simply than the real thing keeps it: one entry a job, moved only by what is durable.
//!
//! Invariant: an error of this module names the rule that was broken; nothing here decides what happens.

pub(crate) mod pacing;

use std::collections::{BTreeMap, BTreeSet};

use paceline_core::change::Change;
use paceline_core::ids::Seq;
use paceline_core::job::{Card, Record, Repeat, State};
use paceline_core::kind::Kind;

use self::pacing::Pacing;
use crate::profile::Api;

/// Why a run is wrong: the rule's name, and what was seen.
pub(crate) type Broken = (&'static str, String);

/// A job that is stored, or was.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) card: Card,
    pub(crate) seq: Seq,
    pub(crate) state: State,
    pub(crate) attempt: u32,
    /// Whether clean-up has removed it.
    pub(crate) is_dropped: bool,
    /// Retries that were asked for and have not been seen to be carried out.
    retries: u32,
    /// Retries that took the risk of doing it twice.
    pub(crate) forced: u32,
    /// The job that carries its request.
    merged_into: Option<Seq>,
    /// Whose requests made up the one that was sent last.
    parts: Vec<String>,
    claims: BTreeMap<u32, Claim>,
    /// Whether a job of this name, which is forgotten since, may have been sent.
    pub(crate) was_sent_before: bool,
    /// The transaction that brought it back after it had failed.
    revived_in: u64,
}

/// An attempt whose record is durable.
#[derive(Clone, Copy, Debug)]
struct Claim {
    epoch: u64,
    /// When its transaction was begun.
    begun_ms: u64,
    /// The transaction that stored it.
    stored_in: u64,
    is_sent: bool,
    /// Whether another job's request carries it.
    is_carried: bool,
}

/// The reference model.
#[derive(Debug, Default)]
pub(crate) struct Model {
    jobs: BTreeMap<String, Entry>,
    names: BTreeMap<Seq, String>,
    unsettled_of_key: BTreeMap<String, BTreeSet<Seq>>,
    transactions: u64,
    /// The items that were sent under each key.
    batches: BTreeMap<String, Vec<String>>,
    pub(crate) pacing: Pacing,
}

impl Model {
    /// Makes the model of an empty store.
    pub(crate) fn new(apis: &[Api]) -> Self {
        Self {
            pacing: Pacing::new(apis),
            ..Self::default()
        }
    }

    /// Returns a job by its name.
    pub(crate) fn job(&self, name: &str) -> Option<&Entry> {
        self.jobs.get(name)
    }

    /// Returns all jobs.
    pub(crate) fn jobs(&self) -> impl Iterator<Item = &Entry> {
        self.jobs.values()
    }

    /// Somebody asks for failed jobs again. Returns those whose ends it is to be told of.
    pub(crate) fn retry_asked(
        &mut self,
        names: &[String],
        group: Option<&str>,
        is_forced: bool,
    ) -> Vec<String> {
        let in_group = |job: &Entry| {
            group.is_some() && job.card.group.as_ref().map(|group| group.as_str()) == group
        };
        // What went together is retried together.
        let carrier = |job: &Entry| job.merged_into.unwrap_or(job.seq);
        let asked: Vec<(&String, &Entry)> = self
            .jobs
            .iter()
            .filter(|(name, job)| names.contains(name) || in_group(job))
            .collect();
        let carriers: BTreeSet<Seq> = asked.iter().map(|(_, job)| carrier(job)).collect();
        let asked = asked.into_iter().map(|(name, _)| name.clone()).collect();
        for job in self.jobs.values_mut() {
            if carriers.contains(&carrier(job)) {
                job.retries += 1;
                job.forced += u32::from(is_forced);
            }
        }
        asked
    }

    /// Takes a transaction that the disk has stored.
    ///
    /// # Errors
    /// When it does what must never be done.
    #[allow(
        clippy::wildcard_enum_match_arm,
        reason = "the enum of another crate may grow; what this model does not know stops a debug run"
    )]
    pub(crate) fn stored(
        &mut self,
        epoch: u64,
        begun_ms: u64,
        changes: &[Change],
    ) -> Result<(), Broken> {
        self.transactions += 1;
        let mut claimed = Vec::new();
        let mut kept = BTreeMap::new();
        for change in changes {
            match change {
                Change::AddBatch { batch, cards } => {
                    for (index, card) in (0..=u8::MAX).zip(cards) {
                        self.add(Seq::new(*batch, index), card)?;
                    }
                }
                Change::PutRecord { seq, record } => {
                    if self.put(*seq, record, epoch, begun_ms)? {
                        claimed.push((*seq, record.current.map(|spent| spent.started_at)));
                    }
                }
                Change::PutBudget { budget, record } => {
                    self.pacing.stored(budget.as_str(), record.paused_until)?;
                    kept.insert(budget.as_str(), record.paused_until);
                }
                Change::DropBatch { batch, .. } => self.drop_batch(batch.0)?,
                other => ignored(other),
            }
        }
        if epoch == self.pacing.epoch() {
            for (budget, until) in kept {
                self.pacing.judge_kept(budget, until, begun_ms)?;
            }
        }
        claimed.sort_by_key(|(_, started_at)| *started_at);
        for (seq, started_at) in claimed {
            if let Some(job) = self.names.get(&seq).and_then(|name| self.jobs.get(name)) {
                let cost = u64::from(job.card.cost);
                self.pacing
                    .claimed(job.card.budget.as_str(), cost, started_at, epoch)?;
            }
        }
        Ok(())
    }

    fn add(&mut self, seq: Seq, card: &Card) -> Result<(), Broken> {
        let name = card.id.as_str().to_owned();
        let before = self.jobs.get(&name);
        let entry = Entry {
            card: card.clone(),
            seq,
            state: State::Queued,
            attempt: 0,
            is_dropped: false,
            retries: 0,
            forced: 0,
            merged_into: None,
            parts: Vec::new(),
            claims: BTreeMap::new(),
            revived_in: 0,
            was_sent_before: before.is_some_and(|old| old.attempt > 0 || old.was_sent_before),
        };
        if let Some(key) = &card.key {
            self.unsettled_of_key
                .entry(key.as_str().to_owned())
                .or_default()
                .insert(seq);
        }
        self.names.insert(seq, name.clone());
        match self.jobs.insert(name, entry) {
            None => Ok(()),
            // Names of jobs that ended otherwise than done are forgotten with them, and when that is depends on the host.
            Some(old) if old.state.is_settled() && old.state != State::Done => Ok(()),
            Some(old) => Err((
                "accepted-twice",
                format!("{} is stored as {:?} and {seq:?}", card.id, old.seq),
            )),
        }
    }

    /// Returns whether the record is a new claim.
    fn put(
        &mut self,
        seq: Seq,
        record: &Record,
        epoch: u64,
        begun_ms: u64,
    ) -> Result<bool, Broken> {
        let Some(job) = self
            .names
            .get(&seq)
            .and_then(|name| self.jobs.get_mut(name))
        else {
            return Err(("lost", format!("a record of {seq:?}, which is no job")));
        };
        let told = |what: &str| {
            format!(
                "{} {what}: {:?}/{} becomes {:?}/{}",
                job.card.id, job.state, job.attempt, record.state, record.attempt
            )
        };
        match job.state {
            State::Done | State::Cancelled if record.state != job.state => {
                return Err(("settled-changes", told("had ended")));
            }
            State::Failed if record.state != State::Failed && job.retries == 0 => {
                return Err(("settled-changes", told("had failed and nobody asked again")));
            }
            State::Queued
            | State::Sending
            | State::RetryWait
            | State::Done
            | State::Failed
            | State::Cancelled => {}
        }
        if record.attempt < job.attempt {
            // A claim that was given back before anything was sent never was.
            let claim = job.claims.remove(&job.attempt);
            let is_unsent = claim.is_some_and(|claim| !claim.is_sent);
            if !is_unsent || record.attempt + 1 != job.attempt {
                return Err(("attempts", told("forgets attempts")));
            }
            if claim.is_some_and(|claim| !claim.is_carried) {
                self.pacing
                    .given_back(job.card.budget.as_str(), u64::from(job.card.cost));
            }
        }
        let is_claim = record.attempt > job.attempt;
        if is_claim && job.state.is_settled() && !matches!(job.state, State::Failed) {
            return Err(("settled-changes", told("was sent after its end")));
        }
        if is_claim {
            job.claims.insert(
                record.attempt,
                Claim {
                    epoch,
                    begun_ms,
                    stored_in: self.transactions,
                    is_sent: false,
                    is_carried: record.carried_by.is_some(),
                },
            );
        }
        if job.state.is_settled() && !record.state.is_settled() {
            job.revived_in = self.transactions;
        }
        job.state = record.state;
        job.attempt = record.attempt;
        job.merged_into = record.merged_into;
        if let Some(key) = &job.card.key {
            let line = self
                .unsettled_of_key
                .entry(key.as_str().to_owned())
                .or_default();
            match record.state.is_settled() || record.merged_into.is_some() {
                true => line.remove(&seq),
                false => line.insert(seq),
            };
        }
        Ok(is_claim && record.state == State::Sending && record.carried_by.is_none())
    }

    fn drop_batch(&mut self, batch: u64) -> Result<(), Broken> {
        for (seq, name) in &self.names {
            let is_of = |job: &&mut Entry| seq.batch().0 == batch && job.seq == *seq;
            // A name may have been taken anew: what was known under it before goes, not the job that has it now.
            let Some(job) = self.jobs.get_mut(name).filter(is_of) else {
                continue;
            };
            if !job.state.is_settled() {
                return Err(("lost", format!("{name} is removed while {:?}", job.state)));
            }
            job.is_dropped = true;
        }
        Ok(())
    }

    /// A job that is sent is the first of its key, but for those that failed and were brought back after it was claimed,
    /// and the only one on its way.
    fn check_order(&self, seq: Seq, attempt: u32) -> Result<(), Broken> {
        let key = self
            .names
            .get(&seq)
            .and_then(|name| self.jobs.get(name))
            .and_then(|job| job.card.key.as_ref());
        let Some(line) = key.and_then(|key| self.unsettled_of_key.get(key.as_str())) else {
            return Ok(());
        };
        let name = |seq: &Seq| self.names.get(seq).map_or("?", String::as_str).to_owned();
        let claim = self
            .job(&name(&seq))
            .and_then(|job| job.claims.get(&attempt));
        let claimed_in = claim.map_or(0, |claim| claim.stored_in);
        let is_ahead = |first: &&Seq| {
            let job = self.job(&name(first));
            **first < seq && job.is_none_or(|job| job.revived_in < claimed_in)
        };
        if let Some(first) = line.iter().find(is_ahead) {
            return Err((
                "order",
                format!("{} is sent before {}", name(&seq), name(first)),
            ));
        }
        let other = line.iter().find(|other| {
            **other != seq
                && self
                    .job(&name(other))
                    .is_some_and(|job| job.state == State::Sending)
        });
        match other {
            Some(other) => Err((
                "order",
                format!("{} is sent while {} is on its way", name(&seq), name(other)),
            )),
            None => Ok(()),
        }
    }

    /// Judges what a tab is told of a whole group.
    ///
    /// # Errors
    /// When a job of the group has not settled.
    pub(crate) fn judge_group(&self, group: &str) -> Result<(), Broken> {
        let mut jobs = self.jobs.values().filter(|job| {
            job.card
                .group
                .as_ref()
                .is_some_and(|of| of.as_str() == group)
        });
        match jobs.find(|job| !job.state.is_settled()) {
            Some(job) => Err((
                "finals",
                format!(
                    "{group} is told as settled, and {} is {:?}",
                    job.card.id, job.state
                ),
            )),
            None => Ok(()),
        }
    }

    /// Takes a request that a host of `epoch` sends. Returns its job, and when its claim was begun.
    ///
    /// # Errors
    /// When its claim is not durable, or it was sent before.
    pub(crate) fn sent(
        &mut self,
        seq: Seq,
        attempt: u32,
        epoch: u64,
    ) -> Result<(Entry, u64), Broken> {
        self.check_order(seq, attempt)?;
        let Some(job) = self
            .names
            .get(&seq)
            .and_then(|name| self.jobs.get_mut(name))
        else {
            return Err(("unclaimed", format!("{seq:?} is sent and not stored")));
        };
        let name = &job.card.id;
        match job.claims.get_mut(&attempt) {
            Some(claim) if claim.epoch == epoch && !claim.is_sent => {
                claim.is_sent = true;
                let begun_ms = claim.begun_ms;
                Ok((job.clone(), begun_ms))
            }
            Some(claim) => Err((
                "unclaimed",
                format!("{name}/{attempt} is sent by {epoch}, its claim is {claim:?}"),
            )),
            None => Err((
                "unclaimed",
                format!("{name}/{attempt} is sent before its claim is durable"),
            )),
        }
    }

    /// Takes the names of the jobs whose requests make up a request that is sent.
    ///
    /// # Errors
    /// When they are not edits of one record in their order, or a repeat differs from what was sent before.
    pub(crate) fn sent_parts(&mut self, seq: Seq, parts: Vec<String>) -> Result<(), Broken> {
        let entries: Vec<&Entry> = parts
            .iter()
            .filter_map(|name| self.jobs.get(name))
            .collect();
        let Some(job) = self.names.get(&seq).and_then(|name| self.jobs.get(name)) else {
            return Err(("unclaimed", format!("{seq:?} is sent and not stored")));
        };
        let of_one = entries.iter().all(|part| {
            let (one, other) = (&part.card, &job.card);
            (&one.key, &one.principal, &one.budget) == (&other.key, &other.principal, &other.budget)
                && one.kind == other.kind
                && part.seq >= job.seq
        });
        let is_in_order = entries.is_sorted_by_key(|part| part.seq);
        let is_replaced = job.card.kind == Kind::Replace && entries.len() == 1;
        let has_own = entries.first().is_some_and(|part| part.seq == seq) || is_replaced;
        let told = || {
            format!(
                "{} is sent as {parts:?}, before as {:?}",
                job.card.id, job.parts
            )
        };
        if entries.len() != parts.len() || !of_one || !is_in_order || !has_own {
            return Err(("merge", told()));
        }
        if !job.parts.is_empty() && job.parts != parts {
            return Err(("merge", told()));
        }
        let name = job.card.id.as_str().to_owned();
        if let Some(job) = self.jobs.get_mut(&name) {
            job.parts = parts;
        }
        Ok(())
    }

    /// Takes the names of the items of a batch request that is sent; its carrier has been taken by `sent`.
    ///
    /// # Errors
    /// When an item is not claimed with it, does not belong with the others, or the key was used for other items.
    pub(crate) fn sent_items(
        &mut self,
        carrier: &Entry,
        epoch: u64,
        items: &[String],
        key: Option<&str>,
        most: u64,
    ) -> Result<(), Broken> {
        let told = |what: &str| ("batch", format!("{items:?}: {what}"));
        if u64::try_from(items.len()).is_ok_and(|count| count > most) {
            return Err(told("too many"));
        }
        if items.first().map(String::as_str) != Some(carrier.card.id.as_str()) {
            return Err(told("its carrier is not the first"));
        }
        let mut keys = BTreeSet::new();
        for item in items {
            let Some(job) = self.jobs.get(item) else {
                return Err(told("an item is no job"));
            };
            let (one, other) = (&job.card, &carrier.card);
            if (&one.batch, &one.budget, &one.principal)
                != (&other.batch, &other.budget, &other.principal)
            {
                return Err(told("items that do not belong together"));
            }
            if one
                .key
                .as_ref()
                .is_some_and(|key| !keys.insert(key.clone()))
            {
                return Err(told("two items of one key"));
            }
            if job.seq == carrier.seq {
                continue;
            }
            // An owner that has lost its place and does not know yet sends what it claimed itself.
            let own = job
                .claims
                .iter()
                .rev()
                .find(|(_, claim)| claim.epoch == epoch);
            let (seq, attempt) = (job.seq, own.map_or(job.attempt, |(attempt, _)| *attempt));
            self.check_order(seq, attempt)?;
            let claim = self
                .jobs
                .get_mut(item)
                .and_then(|job| job.claims.get_mut(&attempt));
            match claim {
                Some(claim) if claim.epoch == epoch && !claim.is_sent => claim.is_sent = true,
                Some(_) | None => {
                    return Err((
                        "unclaimed",
                        format!("{item}/{attempt} is sent in {items:?}"),
                    ));
                }
            }
        }
        let Some(key) = key else { return Ok(()) };
        let before = self
            .batches
            .entry(key.to_owned())
            .or_insert_with(|| items.to_vec());
        match before == items {
            true => Ok(()),
            false => Err(told(&format!("under the key of {before:?}"))),
        }
    }

    /// A merged job that is done was a part of what was sent, or was replaced or the same as that.
    fn judge_carried(&self, job: &Entry, carrier: Seq) -> Result<(), Broken> {
        let carrier = self
            .names
            .get(&carrier)
            .and_then(|name| self.jobs.get(name));
        let name = job.card.id.as_str().to_owned();
        let is_sent = carrier.is_some_and(|carrier| {
            let is_laid_over = job.card.kind == Kind::Patch && job.card.key.is_some();
            !carrier.parts.is_empty() && (!is_laid_over || carrier.parts.contains(&name))
        });
        match is_sent {
            true => Ok(()),
            false => Err((
                "effects",
                format!("{name} is done and was never a part of a request"),
            )),
        }
    }

    /// Judges how often a job may have taken effect.
    ///
    /// # Errors
    /// When it took effect more often, or not at all though it is said to be done.
    pub(crate) fn judge_effects(&self, name: &str, times: u32, method: &str) -> Result<(), Broken> {
        let Some(job) = self.jobs.get(name) else {
            return Err(("effects", format!("{name} took effect and is not stored")));
        };
        if let Some(carrier) = job.merged_into.filter(|_| job.state == State::Done) {
            return self.judge_carried(job, carrier);
        }
        let may_repeat = job.card.repeat == Repeat::Always;
        if !may_repeat && times > 1 + job.forced {
            return Err(("effects", format!("{name} took effect {times} times")));
        }
        if job.state == State::Done && times == 0 && method != "GET" {
            return Err(("effects", format!("{name} is done and took no effect")));
        }
        Ok(())
    }
}

/// Changes that move no job.
fn ignored(change: &Change) {
    debug_assert!(
        matches!(
            change,
            Change::PutGroup { .. } | Change::ForgetIds { .. } | Change::DropGroup { .. }
        ),
        "a change that this model does not know: {change:?}"
    );
}
