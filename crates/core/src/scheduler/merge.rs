//! Lets jobs go together as one request: edits of one record, and identical jobs.
//!
//! A job is stored by itself first, then merged into an earlier one that nobody has tried: what it asked for is durable
//! before anything depends on it, and whatever commit comes last before a crash, each stored job is sent by itself or
//! with the one that carries it. The carrier keeps its name and its place; a merged job has neither a place in its key's
//! line nor a turn, is counted in its own group, and ends when and as its carrier does. Once an attempt was claimed, what
//! goes together stays together: a repeat under the same idempotency key must be what was sent.
//!
//! Invariant: a carrier is earlier than what it carries, is not merged itself, and has settled exactly when that has.

use std::collections::BTreeSet;

use super::{Core, Job};
use crate::count::Count;
use crate::ids::Seq;
use crate::job::{Outcome, Record, State};
use crate::kind::{Kind, MAX_MERGED, MAX_MERGED_BYTES, go_together, lays_over};
use crate::time::Now;

impl Core {
    /// Returns the jobs whose requests make up the request of a job, in order: the items of a batch, or patches to be laid
    /// over one another. None for an item that another job carries.
    pub fn parts(&self, seq: Seq) -> Vec<Seq> {
        let Some(job) = self.jobs.get(&seq) else {
            return vec![seq];
        };
        if job.record.carried_by.is_some() {
            return Vec::new();
        }
        if job.record.load.is_some() {
            return self.riders(seq);
        }
        let merges = lays_over(&job.card);
        match (job.card.kind, job.members.last()) {
            (Kind::Patch, Some(_)) if merges => std::iter::once(seq)
                .chain(job.members.iter().copied())
                .collect(),
            (Kind::Replace, Some(last)) if merges => vec![*last],
            (Kind::Patch | Kind::Replace | Kind::Create | Kind::Delete | Kind::Custom, _) => {
                vec![seq]
            }
        }
    }

    /// Returns the job that carries a job's request: another one where it was merged, else itself.
    pub(super) fn carrier(&self, seq: Seq) -> Seq {
        let into = self.jobs.get(&seq).and_then(|job| job.record.merged_into);
        into.filter(|into| self.jobs.contains_key(into))
            .unwrap_or(seq)
    }

    /// Returns a job's state: that of its carrier while it has not ended.
    pub(super) fn state_of(&self, job: &Job) -> State {
        let carrier = job.record.merged_into.and_then(|into| self.jobs.get(&into));
        match carrier {
            Some(carrier) if !job.record.state.is_settled() => carrier.record.state,
            Some(_) | None => job.record.state,
        }
    }

    pub(super) fn unsettled_members(&self, seq: Seq) -> Vec<Seq> {
        let members = self.jobs.get(&seq).map(|job| job.members.as_slice());
        let is_unsettled = |member: &Seq| {
            let job = self.jobs.get(member);
            job.is_some_and(|job| !job.record.state.is_settled())
        };
        let members = members.unwrap_or_default().iter().copied();
        members.filter(is_unsettled).collect()
    }

    /// Merges a stored job into the last one before it, if both may go together. Tells whether it did.
    pub(super) fn join_earlier(&mut self, seq: Seq, now: Now) -> bool {
        let earlier = self.last_before(seq);
        match earlier.filter(|earlier| self.may_join(*earlier, seq)) {
            Some(earlier) => {
                self.merge(earlier, seq, now);
                true
            }
            None => {
                self.note_newest(seq);
                false
            }
        }
    }

    /// Notes a job without a key as the newest one of its address.
    pub(super) fn note_newest(&mut self, seq: Seq) {
        let Some(job) = self.jobs.get(&seq).filter(|job| job.card.key.is_none()) else {
            return;
        };
        let is_own = !job.is_merged() && !job.record.state.is_settled();
        if let Some(likeness) = job.card.likeness.filter(|_| is_own) {
            self.newest.insert(likeness.place, seq);
        }
    }

    /// The job after which nothing was asked of the same record: an older one would undo what came between.
    fn last_before(&self, seq: Seq) -> Option<Seq> {
        let card = &self.jobs.get(&seq)?.card;
        match &card.key {
            Some(key) => self.keys.get(key)?.jobs.range(..seq).next_back().copied(),
            None => self.newest.get(&card.likeness?.place).copied(),
        }
    }

    fn may_join(&self, earlier: Seq, later: Seq) -> bool {
        let (Some(one), Some(other)) = (self.jobs.get(&earlier), self.jobs.get(&later)) else {
            return false;
        };
        let is_untried = |job: &Job| {
            let is_own = job.is_stored && !job.is_merged();
            is_own && job.record.state == State::Queued && job.record.attempt == 0
        };
        let bytes = one
            .members_bytes
            .saturating_add(u64::from(one.card.size))
            .saturating_add(u64::from(other.card.size));
        is_untried(one)
            && is_untried(other)
            && other.members.is_empty()
            && earlier < later
            && go_together(&one.card, &other.card)
            && one.members.len() < MAX_MERGED
            && bytes <= MAX_MERGED_BYTES
    }

    fn merge(&mut self, carrier: Seq, seq: Seq, now: Now) {
        self.take_out(seq);
        self.set_carrier(seq, Some(carrier), now);
        let Some((lane, size)) = self.jobs.get(&seq).map(|job| (job.lane(), job.card.size)) else {
            return;
        };
        let Some(job) = self.jobs.get_mut(&carrier) else {
            return;
        };
        job.members.push(seq);
        job.members_bytes = job.members_bytes.saturating_add(u64::from(size));
        if lane < job.lane() {
            self.set_lane(carrier, lane, now);
        }
    }

    /// Stores with a claim what it carries, where that is not stored yet: the commit that merged it may fail after this one
    /// has been begun, and what is sent together has to be found together.
    pub(super) fn claim_members(&mut self, carrier: Seq) {
        let Some(job) = self.jobs.get(&carrier) else {
            return;
        };
        let is_on_its_way = |member: &&Seq| {
            let touched = self.pending.values().map(|pending| &pending.touched);
            touched
                .chain([&self.unsaved.touched])
                .any(|touched| touched.records.contains(member))
        };
        let members = job.members.iter().filter(is_on_its_way).copied();
        self.draft.touched.records.extend(members);
    }

    fn set_carrier(&mut self, seq: Seq, carrier: Option<Seq>, now: Now) {
        self.exit(seq, State::Queued);
        if let Some(job) = self.jobs.get_mut(&seq) {
            job.record.merged_into = carrier;
        }
        self.enter(seq, State::Queued, now);
        self.draft.touched.records.insert(seq);
    }

    /// Tells whether a job cannot be taken out of what goes together, because that was tried and others want it.
    pub(super) fn is_bound(&self, seq: Seq, chosen: &BTreeSet<Seq>) -> bool {
        if let Some((carrier, _)) = self.load_of(seq) {
            return !self
                .riders(carrier)
                .iter()
                .all(|item| chosen.contains(item));
        }
        let carrier = self.carrier(seq);
        let members = self.unsettled_members(carrier);
        let is_whole =
            chosen.contains(&carrier) && members.iter().all(|member| chosen.contains(member));
        self.is_tried(seq) && !members.is_empty() && !is_whole
    }

    /// Tells whether an attempt of a job, or of what carries it, was claimed.
    pub(super) fn is_tried(&self, seq: Seq) -> bool {
        let carrier = self.jobs.get(&self.carrier(seq));
        carrier.is_some_and(|job| job.record.attempt > 0)
    }

    /// Makes a job that nobody has tried go alone: what it carried goes on without it.
    pub(super) fn part(&mut self, seq: Seq, now: Now) {
        let carrier = self.carrier(seq);
        if carrier == seq {
            self.hand_on(seq, now);
            return;
        }
        let size = self.jobs.get(&seq).map_or(0, |job| job.card.size);
        if let Some(job) = self.jobs.get_mut(&carrier) {
            job.members.retain(|member| *member != seq);
            job.members_bytes = job.members_bytes.saturating_sub(u64::from(size));
        }
        self.set_carrier(seq, None, now);
    }

    fn hand_on(&mut self, seq: Seq, now: Now) {
        let Some(job) = self.jobs.get_mut(&seq) else {
            return;
        };
        let members = std::mem::take(&mut job.members);
        let bytes = std::mem::take(&mut job.members_bytes);
        let Some((first, rest)) = members.split_first() else {
            return;
        };
        self.set_carrier(*first, None, now);
        for member in rest {
            self.set_carrier(*member, Some(*first), now);
        }
        let lane = members
            .iter()
            .filter_map(|member| self.jobs.get(member))
            .map(Job::lane)
            .min();
        if let Some(job) = self.jobs.get_mut(first) {
            job.members = rest.to_vec();
            job.members_bytes = bytes.saturating_sub(u64::from(job.card.size));
        }
        self.replace(*first, now);
        if let Some(lane) = lane {
            self.set_lane(*first, lane, now);
        }
        self.note_newest(*first);
    }

    /// Brings what had ended with a job back with it.
    pub(super) fn revive_members(&mut self, seq: Seq, now: Now) {
        let members = self.jobs.get(&seq).map(|job| job.members.clone());
        for member in members.unwrap_or_default() {
            let Some(job) = self
                .jobs
                .get(&member)
                .filter(|job| job.record.state == State::Failed)
            else {
                continue;
            };
            let group = job.card.group.clone();
            self.count_revived(member);
            self.no_longer_settling(member);
            self.exit(member, State::Failed);
            if let Some(job) = self.jobs.get_mut(&member) {
                job.record.state = State::Queued;
                job.record.outcome = None;
            }
            self.enter(member, State::Queued, now);
            self.draft.touched.records.insert(member);
            self.uncount_failed(group);
        }
    }

    /// Takes the link of a stored record that leads nowhere away.
    pub(super) fn with_known_carrier(&self, seq: Seq, mut record: Record) -> Record {
        let is_known = |into: Seq| {
            let carrier = self.jobs.get(&into).filter(|_| into < seq);
            carrier.is_some_and(|carrier| !carrier.is_merged())
        };
        if !record.state.is_settled() {
            record.merged_into = record.merged_into.filter(|into| is_known(*into));
        }
        record
    }

    /// Ties a recovered job to its carrier.
    pub(super) fn tie(&mut self, seq: Seq) {
        let carrier = self.carrier(seq);
        let size = self.jobs.get(&seq).map_or(0, |job| job.card.size);
        if carrier != seq
            && let Some(job) = self.jobs.get_mut(&carrier)
        {
            job.members.push(seq);
            job.members_bytes = job.members_bytes.saturating_add(u64::from(size));
        }
    }

    /// Ends recovered jobs whose carrier's end was stored and whose own record could not be read.
    pub(super) fn end_with_carriers(&mut self, now: Now) {
        let ended: Vec<(Seq, State, Outcome)> = self
            .jobs
            .iter()
            .filter(|(_, job)| !job.record.state.is_settled())
            .filter_map(|(seq, job)| {
                let carrier = &self.jobs.get(&job.record.merged_into?)?.record;
                Some((*seq, carrier.state, carrier.outcome.clone()?))
            })
            .collect();
        for (seq, state, outcome) in ended {
            self.settle(seq, state, outcome, now);
        }
    }

    /// Gives a waiting job another lane.
    pub(super) fn set_lane(&mut self, seq: Seq, lane: crate::job::Lane, now: Now) {
        let Some(job) = self.jobs.get(&seq).filter(|job| job.lane() != lane) else {
            return;
        };
        let (state, old) = (job.record.state, job.lane());
        self.count_as(seq, state, Count::Down);
        let Some(job) = self.jobs.get_mut(&seq) else {
            return;
        };
        job.record.lane = Some(lane);
        let line = job.card.key.as_ref().and_then(|key| self.keys.get_mut(key));
        if let Some(line) = line {
            super::place::add(&mut line.by_lane, old, Count::Down);
            super::place::add(&mut line.by_lane, lane, Count::Up);
        }
        self.count_as(seq, state, Count::Up);
        self.draft.touched.records.insert(seq);
        self.replace(seq, now);
        self.lend_lane(seq, now);
    }
}
