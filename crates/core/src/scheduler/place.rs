//! Keeps every job in exactly one place: a lane, a delay, behind its key, on its way, or settled.

use super::{After, Core, Slot};
use crate::count::Count;
use crate::ids::{OrderKey, Seq};
use crate::io::Event;
use crate::job::{Lane, Outcome, Reason, State};
use crate::lane::Rank;
use crate::metrics::Meter;
use crate::time::{Mono, Now, Wall};

/// How long a done or cancelled job is kept.
const KEEP_DONE_MS: u64 = 3_600_000;
/// How long a failed job is kept.
const KEEP_FAILED_MS: u64 = 7 * 86_400_000;

impl Core {
    /// Counts a job into the state that it is in, and into its key's line while it is unsettled.
    pub(super) fn enter(&mut self, seq: Seq, state: State, now: Now) {
        self.count_as(seq, state, Count::Up);
        if state.is_settled() {
            return;
        }
        self.count_live(seq, Count::Up);
        let Some(job) = self.jobs.get(&seq) else {
            return;
        };
        let lane = job.lane();
        self.unsettled_bytes = self
            .unsettled_bytes
            .saturating_add(u64::from(job.card.size));
        if job.is_merged() {
            Count::Up.apply(&mut self.merged);
        } else if let Some(key) = job.card.key.clone() {
            let line = self.keys.entry(key).or_default();
            line.jobs.insert(seq);
            add(&mut line.by_lane, lane, Count::Up);
        }
        let expires_at = job.card.expires_at.filter(|_| job.record.attempt == 0);
        self.set_expiry(seq, expires_at.map(|due| now.mono_of(due)));
        if let Some(batch) = self.batches.get_mut(&seq.batch()) {
            self.droppable.remove(&(batch.keep_until, seq.batch()));
            batch.unsettled = batch.unsettled.saturating_add(1);
        }
    }

    /// The reverse of `enter`, before the job's state changes for good.
    pub(super) fn exit(&mut self, seq: Seq, state: State) {
        self.count_as(seq, state, Count::Down);
        if state.is_settled() {
            return;
        }
        self.count_live(seq, Count::Down);
        let Some(job) = self.jobs.get(&seq) else {
            return;
        };
        let lane = job.lane();
        self.unsettled_bytes = self
            .unsettled_bytes
            .saturating_sub(u64::from(job.card.size));
        if let Some(place) = job.card.likeness.map(|likeness| likeness.place)
            && self.newest.get(&place) == Some(&seq)
        {
            self.newest.remove(&place);
        }
        if job.is_merged() {
            Count::Down.apply(&mut self.merged);
        } else if let Some(key) = &job.card.key
            && let Some(line) = self.keys.get_mut(key)
        {
            line.jobs.remove(&seq);
            line.live = line.live.filter(|live| *live != seq);
            add(&mut line.by_lane, lane, Count::Down);
            if line.jobs.is_empty() && line.held_by.is_none() {
                self.keys.remove(key);
            }
        }
        self.set_expiry(seq, None);
        if let Some(batch) = self.batches.get_mut(&seq.batch()) {
            batch.unsettled = batch.unsettled.saturating_sub(1);
        }
    }

    /// Moves an unsettled job to another unsettled state.
    pub(super) fn set_state(&mut self, seq: Seq, state: State) {
        let Some(job) = self.jobs.get_mut(&seq) else {
            return;
        };
        let old = std::mem::replace(&mut job.record.state, state);
        if old == state {
            return;
        }
        if let Some(line) = job.card.key.as_ref().and_then(|key| self.keys.get_mut(key)) {
            if state == State::Sending {
                line.live = Some(seq);
            } else if line.live == Some(seq) {
                line.live = None;
            }
        }
        self.count_as(seq, old, Count::Down);
        self.count_as(seq, state, Count::Up);
    }

    /// Puts a job where it belongs now, and the first job of its key too if that was held up by it.
    pub(super) fn replace(&mut self, seq: Seq, now: Now) {
        self.replace_alone(seq, now);
        let line = self
            .jobs
            .get(&seq)
            .and_then(|job| job.card.key.as_ref())
            .and_then(|key| self.keys.get(key));
        let head = line
            .filter(|line| line.live.is_none())
            .and_then(|line| line.jobs.first())
            .copied();
        if let Some(head) = head.filter(|head| *head != seq)
            && self
                .jobs
                .get(&head)
                .is_some_and(|job| matches!(job.slot, Slot::Ordered | Slot::Carried))
        {
            self.replace_alone(head, now);
        }
    }

    fn replace_alone(&mut self, seq: Seq, now: Now) {
        self.take_out(seq);
        let slot = self.slot_of(seq, now);
        if let Slot::Ready(lane, place) = slot {
            for rider in self.riders(seq) {
                self.set_state(rider, State::Queued);
            }
            self.note_ready(seq, lane, place, true);
        }
        let Some(job) = self.jobs.get_mut(&seq) else {
            return;
        };
        job.slot = slot;
        if slot != Slot::None {
            self.placed = self.placed.saturating_add(1);
        }
        match slot {
            Slot::None | Slot::Ordered => {}
            // What it waits for may be what its carrier waits for.
            Slot::Carried => {
                if let Some(carrier) = self.carrier_if_carried(seq) {
                    self.replace_alone(carrier, now);
                }
            }
            Slot::Undeclared => {
                self.undeclared.insert(seq);
            }
            Slot::Delayed(at) => {
                self.delayed.insert((at, seq));
            }
            Slot::Ready(lane, place) => {
                if let Some(budget) = self.budgets.get_mut(&job.card.budget) {
                    budget.lanes.insert(lane, place);
                }
            }
        }
    }

    /// Lets the first job of a key come forward.
    pub(super) fn bring_forward(&mut self, key: Option<&OrderKey>, now: Now) {
        let head = key
            .and_then(|key| self.keys.get(key))
            .and_then(|line| line.jobs.first())
            .copied();
        if let Some(head) = head {
            self.replace(head, now);
        }
    }

    /// Brings a job to its end, and those that were merged into it: the outcomes go into the draft, and are told once that
    /// is stored.
    pub(super) fn settle(&mut self, seq: Seq, state: State, outcome: Outcome, now: Now) {
        self.leave_load(seq, now);
        for member in self.unsettled_members(seq) {
            self.settle_alone(member, state, outcome.clone(), now);
        }
        let reason = outcome.reason;
        self.settle_alone(seq, state, outcome, now);
        if state == State::Failed {
            self.key_failed(seq, reason, now);
        }
    }

    fn settle_alone(&mut self, seq: Seq, state: State, outcome: Outcome, now: Now) {
        let Some(job) = self.jobs.get(&seq) else {
            return;
        };
        let (old, key) = (job.record.state, job.card.key.clone());
        self.take_out(seq);
        self.exit(seq, old);
        self.bring_forward(key.as_ref(), now);
        let keep_until = self.keep_until(seq, state, outcome.at);
        let Some(job) = self.jobs.get_mut(&seq) else {
            return;
        };
        job.record.state = state;
        job.record.outcome = Some(outcome);
        job.is_settling = true;
        job.settlements = job.settlements.saturating_add(1);
        let nth = job.settlements;
        job.record.not_before = None;
        let group = job.card.group.clone();
        self.count(seq, Meter::decide);
        self.enter(seq, state, now);
        self.draft.touched.records.insert(seq);
        self.draft.after.push(After::Settled(seq, nth));
        if let Some(count) = self.settling.get_mut(state.index()) {
            Count::Up.apply(count);
        }
        if let Some(batch) = self.batches.get_mut(&seq.batch()) {
            batch.keep_until = batch.keep_until.max(keep_until);
            if batch.unsettled == 0 {
                self.droppable.insert((batch.keep_until, seq.batch()));
            }
        }
        let Some(group_id) = group else { return };
        let Some(group) = self.groups.get_mut(&group_id) else {
            return;
        };
        *settled_count(&mut group.record, state) =
            settled_count(&mut group.record, state).saturating_add(1);
        if group.record.is_settled() {
            group.record.settled_at = Some(now.wall);
            self.draft.after.push(After::GroupSettled(group_id.clone()));
        }
        self.draft.touched.groups.insert(group_id);
    }

    /// Brings a job to its end without success.
    pub(super) fn fail(
        &mut self,
        seq: Seq,
        reason: Reason,
        status: Option<u16>,
        text: Option<String>,
        now: Now,
    ) {
        let outcome = Outcome {
            reason: Some(reason),
            status,
            text,
            at: now.wall,
            by_check: false,
        };
        self.settle(seq, State::Failed, outcome, now);
    }

    /// Brings jobs to their end that waited too long.
    pub(super) fn expire(&mut self, now: Now) {
        while let Some((at, seq)) = self.expiring.first().copied()
            && at <= now.mono
        {
            self.set_expiry(seq, None);
            let is_unsent = self
                .jobs
                .get(&seq)
                .is_some_and(|job| job.is_waiting() && job.record.attempt == 0);
            let is_stored = self.jobs.get(&seq).is_some_and(|job| job.is_stored);
            if is_unsent && !is_stored {
                self.unwanted.insert(seq, Reason::Expired);
            } else if is_unsent {
                self.fail(seq, Reason::Expired, None, None, now);
            }
        }
    }

    /// The lane that a job runs in: the most urgent of the jobs that wait behind it by key, or its own.
    pub(super) fn running_lane(&self, seq: Seq) -> Lane {
        let Some(job) = self.jobs.get(&seq) else {
            return Lane::Background;
        };
        let line = job.card.key.as_ref().and_then(|key| self.keys.get(key));
        let lent = line.and_then(|line| {
            Lane::ALL.into_iter().find(|lane| {
                line.by_lane
                    .get(lane.index())
                    .is_some_and(|count| *count > 0)
            })
        });
        lent.map_or(job.lane(), |lent| lent.min(job.lane()))
    }

    /// Puts the first job of a key again into its lane: a more urgent one may have come behind it.
    pub(super) fn lend_lane(&mut self, seq: Seq, now: Now) {
        let Some(key) = self.jobs.get(&seq).and_then(|job| job.card.key.as_ref()) else {
            return;
        };
        let head = self
            .keys
            .get(key)
            .and_then(|line| line.jobs.first())
            .copied();
        let Some(head) = head.filter(|head| *head != seq) else {
            return;
        };
        let Some(job) = self.jobs.get(&head) else {
            return;
        };
        let is_elsewhere = match job.slot {
            Slot::Ready(lane, _) => lane != self.running_lane(head),
            Slot::Carried => true,
            Slot::None | Slot::Ordered | Slot::Undeclared | Slot::Delayed(_) => false,
        };
        if is_elsewhere {
            self.replace(head, now);
        }
    }

    pub(super) fn tell(&mut self, event: Event) {
        self.draft.after.push(After::Event(event));
    }

    /// Sets or clears the instant at which an unsent job expires.
    pub(super) fn set_expiry(&mut self, seq: Seq, at: Option<Mono>) {
        let Some(job) = self.jobs.get_mut(&seq) else {
            return;
        };
        if let Some(old) = std::mem::replace(&mut job.expires_at, at) {
            self.expiring.remove(&(old, seq));
        }
        if let Some(at) = at {
            self.expiring.insert((at, seq));
        }
    }

    fn slot_of(&self, seq: Seq, now: Now) -> Slot {
        let Some(job) = self
            .jobs
            .get(&seq)
            .filter(|job| job.is_stored && job.is_waiting())
        else {
            return Slot::None;
        };
        if job.record.carried_by.is_some() {
            return Slot::Carried;
        }
        if !self.budgets.contains_key(&job.card.budget) || self.lacks_batch(seq) {
            return Slot::Undeclared;
        }
        let riders = self.riders(seq);
        if riders.iter().any(|rider| self.is_behind(*rider)) {
            return Slot::Ordered;
        }
        if let Some(at) = job.ready_at.filter(|at| *at > now.mono) {
            return Slot::Delayed(at);
        }
        let rank = if job.record.refused {
            Rank::Refused
        } else {
            Rank::InTurn
        };
        let lanes = riders.iter().map(|rider| self.running_lane(*rider));
        let lane = lanes.min().unwrap_or(Lane::Background);
        Slot::Ready(lane, (rank, seq))
    }

    /// Tells whether an earlier job of its key holds a job up.
    fn is_behind(&self, seq: Seq) -> bool {
        let key = self.jobs.get(&seq).and_then(|job| job.card.key.as_ref());
        let line = key.and_then(|key| self.keys.get(key));
        line.is_some_and(|line| {
            line.held_by.is_some() || line.live.is_some() || line.jobs.first() != Some(&seq)
        })
    }

    pub(super) fn take_out(&mut self, seq: Seq) {
        let Some(job) = self.jobs.get_mut(&seq) else {
            return;
        };
        let slot = std::mem::replace(&mut job.slot, Slot::None);
        if slot != Slot::None {
            self.placed = self.placed.saturating_sub(1);
        }
        match slot {
            Slot::None | Slot::Ordered | Slot::Carried => {}
            Slot::Undeclared => {
                self.undeclared.remove(&seq);
            }
            Slot::Delayed(at) => {
                self.delayed.remove(&(at, seq));
            }
            Slot::Ready(lane, place) => {
                if let Some(budget) = self.budgets.get_mut(&job.card.budget) {
                    budget.lanes.remove(lane, place);
                }
                self.note_ready(seq, lane, place, false);
            }
        }
    }

    pub(super) fn keep_until(&self, seq: Seq, state: State, settled_at: Wall) -> Wall {
        let keep_ms = if state == State::Failed {
            KEEP_FAILED_MS
        } else {
            KEEP_DONE_MS
        };
        let Some(job) = self.jobs.get(&seq) else {
            return settled_at;
        };
        let window_ms = self.longest_window_ms(seq);
        settled_at.plus(keep_ms.max(window_ms.saturating_add(u64::from(job.card.timeout_ms))))
    }

    pub(super) fn count_as(&mut self, seq: Seq, state: State, way: Count) {
        let Some(job) = self.jobs.get(&seq) else {
            return;
        };
        // One request, one count, but in the group that it belongs to.
        let is_carried = job.is_merged() && !state.is_settled();
        if let Some(count) = self.counts.get_mut(state.index())
            && !is_carried
        {
            way.apply(count);
        }
        let is_waiting = matches!(state, State::Queued | State::RetryWait);
        let lane = job.lane();
        if let Some(group) = job
            .card
            .group
            .as_ref()
            .and_then(|group| self.groups.get_mut(group))
        {
            if let Some(count) = group.by_state.get_mut(state.index()) {
                way.apply(count);
            }
            if is_waiting {
                add(&mut group.waiting_by_lane, lane, way);
            }
        }
        if is_carried {
            return;
        }
        if state == State::Sending {
            add(&mut self.sending_by_lane, lane, way);
            match way {
                Count::Up => self.sending.insert(seq),
                Count::Down => self.sending.remove(&seq),
            };
        }
        if let Some(budget) = self
            .budgets
            .get_mut(&job.card.budget)
            .filter(|_| is_waiting)
        {
            budget.count_waiting(lane, &job.card, way);
        }
    }
}

pub(super) fn add(by_lane: &mut [u32; 3], lane: Lane, way: Count) {
    if let Some(count) = by_lane.get_mut(lane.index()) {
        way.apply(count);
    }
}

/// The count of a group that a settled state belongs to.
pub(super) fn settled_count(record: &mut crate::job::GroupRecord, state: State) -> &mut u32 {
    match state {
        State::Done => &mut record.done,
        State::Cancelled => &mut record.cancelled,
        State::Failed | State::Queued | State::Sending | State::RetryWait => &mut record.failed,
    }
}
