//! What can be seen: the snapshot, and jobs by filter. Reading changes nothing.

use std::collections::BTreeMap;

use super::{Core, Job, Slot};
use crate::budget::Budget;
use crate::ids::{BudgetId, GroupId, JobId, Seq};
use crate::io::{Cause, Filter, View};
use crate::job::{GroupRecord, HoldCause, Lane, State};
use crate::time::{Mono, Now, Wall};

/// The queue at one instant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Jobs by state, in the order of [`State::ALL`].
    pub counts: [u32; 6],
    /// Waiting jobs by lane, in the order of [`Lane::ALL`].
    pub waiting_by_lane: [u32; 3],
    /// Jobs on their way by lane.
    pub sending_by_lane: [u32; 3],
    /// The latest end of a pause.
    pub paused_until: Option<Wall>,
    /// Milliseconds until all is sent, none while that cannot be known.
    pub eta_ms: Option<u64>,
    /// Whether that rests on a guess.
    pub eta_is_estimate: bool,
    /// When the scheduler acts next.
    pub next_wake_at: Option<Wall>,
    /// Holds of the whole queue.
    pub holds: Vec<HoldCause>,
    /// The groups.
    pub groups: BTreeMap<GroupId, GroupSnapshot>,
    /// The budgets.
    pub budgets: BTreeMap<BudgetId, BudgetSnapshot>,
}

/// A group at one instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupSnapshot {
    /// Its durable counts.
    pub record: GroupRecord,
    /// Unsettled jobs: queued, sending, retry-wait.
    pub unsettled: [u32; 3],
    /// Milliseconds until its last job is sent, none while that cannot be known.
    pub eta_ms: Option<u64>,
}

/// A budget at one instant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BudgetSnapshot {
    /// Jobs that wait.
    pub waiting: u32,
    /// Jobs on their way.
    pub sending: u32,
    /// The end of its pause.
    pub paused_until: Option<Wall>,
    /// Whether that is our guess.
    pub pause_is_estimate: bool,
    /// Its holds.
    pub holds: Vec<HoldCause>,
    /// Why its next job waits.
    pub cause: Option<Cause>,
    /// The rule that defers it, as units and milliseconds.
    pub rule: Option<(u32, u64)>,
    /// The budget whose rule or pause that is, where it is one above it.
    pub by: Option<BudgetId>,
    /// Thousandths of its rules that are used.
    pub used_permille: u32,
    /// Milliseconds until all its jobs are sent.
    pub eta_ms: Option<u64>,
}

impl Core {
    /// Returns the queue as it is now.
    pub fn snapshot(&mut self, now: Now) -> Snapshot {
        let mut snapshot = Snapshot {
            counts: self.durable_counts(),
            holds: self.holds.iter().copied().collect(),
            next_wake_at: self.poll_timeout().map(|(at, _)| now.wall_of(at)),
            ..Snapshot::default()
        };
        snapshot.eta_ms = self.snapshot_budgets(&mut snapshot, now);
        self.snapshot_groups(&mut snapshot, now);
        for lane in Lane::ALL {
            let waiting: u64 = self
                .budgets
                .values()
                .map(|budget| budget.waiting_in(lane))
                .sum();
            if let Some(count) = snapshot.waiting_by_lane.get_mut(lane.index()) {
                *count = u32::try_from(waiting).unwrap_or(u32::MAX);
            }
        }
        snapshot.sending_by_lane = self.sending_by_lane;
        snapshot
    }

    /// Jobs by state, those on their way until their outcome is stored.
    fn durable_counts(&self) -> [u32; 6] {
        let mut counts = self.counts;
        for (count, settling) in counts.iter_mut().zip(self.settling) {
            *count = count.saturating_sub(settling);
        }
        if let Some(sending) = counts.get_mut(State::Sending.index()) {
            *sending = sending.saturating_add(self.settling.iter().sum());
        }
        counts
    }

    /// Returns jobs, in order of acceptance.
    pub fn jobs(&self, filter: &Filter, now: Now) -> Vec<View> {
        if let Some(id) = &filter.id {
            let seq = self.ids.get(id).into_iter();
            return seq.filter_map(|seq| self.view(*seq, filter, now)).collect();
        }
        let from = filter.after.map_or(Seq::from_u64(0), |after| {
            Seq::from_u64(after.as_u64().saturating_add(1))
        });
        if let Some(group) = &filter.group {
            let Some(group) = self.groups.get(group) else {
                return Vec::new();
            };
            let jobs = group.jobs.range(from..);
            return jobs
                .filter_map(|seq| self.view(*seq, filter, now))
                .take(filter.limit)
                .collect();
        }
        // What was merged is seen in what carries it.
        let own = |seq: &Seq| self.carrier(*seq) == *seq;
        let jobs = self.jobs.range(from..).map(|(seq, _)| *seq).filter(own);
        jobs.filter_map(|seq| self.view(seq, filter, now))
            .take(filter.limit)
            .collect()
    }

    /// Returns a group's counts. One whose last outcome is not stored yet has not settled.
    pub fn group(&self, group: &GroupId) -> Option<GroupRecord> {
        let group = self.groups.get(group)?;
        let is_settling = |seq: &Seq| self.jobs.get(seq).is_some_and(|job| job.is_settling);
        let settled_at = group.record.settled_at;
        let settled_at = settled_at.filter(|_| !group.jobs.iter().any(is_settling));
        Some(GroupRecord {
            settled_at,
            ..group.record
        })
    }

    /// Returns the bytes of the stored requests of a batch.
    pub fn batch_bytes(&self, batch: crate::ids::BatchNo) -> u64 {
        let jobs = self
            .batches
            .get(&batch)
            .map(|batch| batch.jobs.as_slice())
            .unwrap_or_default();
        jobs.iter()
            .filter_map(|seq| self.jobs.get(seq))
            .map(|job| u64::from(job.card.size))
            .sum()
    }

    /// Returns the budget of a job by its name.
    pub fn budget_of(&self, id: &str) -> Option<BudgetId> {
        let id = JobId::parse(id).ok()?;
        let job = self.ids.get(&id).and_then(|seq| self.jobs.get(seq))?;
        Some(job.card.budget.clone())
    }

    /// Returns the budget of a job, as the app declared it.
    pub fn budget_at(&self, seq: Seq) -> Option<&BudgetId> {
        let id = &self.jobs.get(&seq)?.card.budget;
        let budget = self.budgets.get(id);
        Some(budget.map_or(id, |budget| budget.config().declared()))
    }

    /// Tells whether a job's request is kept in memory only.
    pub fn is_ephemeral(&self, id: &JobId) -> bool {
        let job = self.ids.get(id).and_then(|seq| self.jobs.get(seq));
        job.is_some_and(|job| job.card.ephemeral)
    }

    /// Tells whether a budget is declared.
    pub fn has_budget(&self, budget: &BudgetId) -> bool {
        self.budgets.contains_key(budget)
    }

    fn view(&self, seq: Seq, filter: &Filter, now: Now) -> Option<View> {
        let job = self.jobs.get(&seq)?;
        let carrier = self.carrier(seq);
        let shown = self.jobs.get(&carrier)?;
        let state = self.state_of(job);
        let fits = filter.state.is_none_or(|wanted| wanted == state)
            && filter
                .group
                .as_ref()
                .is_none_or(|group| job.card.group.as_ref() == Some(group))
            && filter
                .key
                .as_ref()
                .is_none_or(|key| job.card.key.as_ref() == Some(key))
            && filter.lane.is_none_or(|lane| lane == job.lane());
        if !fits {
            return None;
        }
        let waits = shown.is_waiting().then(|| self.cause(carrier, shown));
        Some(View {
            seq,
            card: job.card.clone(),
            state,
            lane: shown.lane(),
            attempts: shown.record.attempt,
            cause: waits.map(|(cause, _)| cause),
            until: waits.and_then(|(_, until)| until).map(|at| now.wall_of(at)),
            outcome: job.record.outcome.clone(),
            coalesced: u32::try_from(job.members.len()).unwrap_or(u32::MAX),
            merged_into: (carrier != seq).then(|| shown.card.id.clone()),
        })
    }

    fn cause_of(&self, seq: Seq) -> (Cause, Option<Mono>) {
        let job = self.jobs.get(&seq);
        job.map_or((Cause::Held, None), |job| self.cause(seq, job))
    }

    /// Why a job waits, and until when: what closes its budget first, then what holds the job itself.
    fn cause(&self, seq: Seq, job: &Job) -> (Cause, Option<Mono>) {
        let budget = self.budgets.get(&job.card.budget);
        if self.holds.contains(&HoldCause::Offline) {
            return (Cause::Offline, None);
        }
        let is_held =
            !self.holds.is_empty() || budget.is_none_or(|budget| !budget.holds().is_empty());
        if is_held {
            let cause = budget.filter(|_| self.holds.is_empty());
            let until = cause.and_then(Budget::held_until);
            return (cause.map_or(Cause::Held, Budget::held_cause), until);
        }
        let parents = self.parents(&job.card.budget);
        let parents = || parents.iter().filter_map(|id| self.budgets.get(id));
        if parents().any(|parent| !parent.holds().is_empty()) {
            return (Cause::Held, None);
        }
        let pauses = budget.into_iter().chain(parents());
        let pauses = pauses.filter_map(crate::budget::Budget::pause);
        if let Some(pause) = pauses.max_by_key(|pause| pause.until) {
            return (pause.cause(), Some(pause.until));
        }
        match job.slot {
            Slot::None | Slot::Undeclared => (Cause::Held, None),
            Slot::Carried => match self.load_of(seq) {
                Some((carrier, _)) if carrier != seq => self.cause_of(carrier),
                Some(_) | None => (Cause::Held, None),
            },
            Slot::Ordered if self.is_key_held(seq) => (Cause::Held, None),
            Slot::Ordered => (Cause::Order, None),
            Slot::Delayed(at) if job.record.not_before.is_some() => (Cause::Backoff, Some(at)),
            Slot::Delayed(at) => (Cause::NotBefore, Some(at)),
            Slot::Ready(..) => {
                let is_next = budget
                    .and_then(|budget| budget.lanes.next())
                    .is_some_and(|(_, next)| next == seq);
                let blocked = budget.and_then(|budget| budget.blocked).filter(|_| is_next);
                blocked.map_or((Cause::Lane, None), |blocked| {
                    (blocked.cause, blocked.until)
                })
            }
        }
    }

    fn snapshot_budgets(&mut self, snapshot: &mut Snapshot, now: Now) -> Option<u64> {
        let is_held = !self.holds.is_empty();
        let by = self.deferring();
        for (id, budget) in &mut self.budgets {
            let work = budget.work_up_to(Lane::Background);
            let own = if is_held && budget.waiting() > 0 {
                None
            } else {
                budget.eta_ms(work, now.mono)
            };
            if budget.waiting() > 0 {
                snapshot.eta_is_estimate |= budget.is_guess();
            }
            let pause = budget.pause();
            snapshot.paused_until = snapshot
                .paused_until
                .max(pause.map(|pause| pause.until_wall));
            let blocked = budget.blocked.filter(|_| budget.waiting() > 0);
            snapshot.budgets.insert(
                id.clone(),
                BudgetSnapshot {
                    waiting: budget.waiting(),
                    sending: budget.in_flight(),
                    paused_until: pause.map(|pause| pause.until_wall),
                    pause_is_estimate: pause.is_some_and(|pause| pause.is_estimate),
                    holds: budget.holds().iter().copied().collect(),
                    cause: blocked.map(|blocked| blocked.cause),
                    rule: blocked
                        .and_then(|blocked| blocked.rule)
                        .map(|rule| (rule.limit(), rule.window_ms())),
                    by: by.get(id).cloned(),
                    used_permille: budget.used_permille(),
                    eta_ms: if budget.waiting() > 0 { own } else { Some(0) },
                },
            );
        }
        self.show_parents(snapshot, now);
        let waiting = snapshot
            .budgets
            .values()
            .filter(|budget| budget.waiting > 0);
        let eta_ms = waiting
            .map(|budget| budget.eta_ms)
            .try_fold(0_u64, |all, own| Some(all.max(own?)));
        eta_ms.filter(|_| self.undeclared.is_empty())
    }

    fn snapshot_groups(&mut self, snapshot: &mut Snapshot, now: Now) {
        let is_held = !self.holds.is_empty();
        for (id, group) in &self.groups {
            let unsettled = |state: State| group.by_state.get(state.index()).copied().unwrap_or(0);
            let unsettled = [
                unsettled(State::Queued),
                unsettled(State::Sending),
                unsettled(State::RetryWait),
            ];
            let is_waiting = group.waiting_by_lane.iter().any(|count| *count > 0);
            let last = || {
                let carriers = group.jobs.iter().rev().map(|seq| self.carrier(*seq));
                let mut jobs = carriers.filter_map(|seq| self.jobs.get(&seq));
                let last = jobs.find(|job| job.is_waiting())?;
                Some((last.card.budget.clone(), last.lane()))
            };
            let eta_ms = match is_waiting.then(last).flatten() {
                None => Some(0),
                Some(_) if is_held => None,
                Some((id, last)) => self
                    .budgets
                    .get_mut(&id)
                    .and_then(|budget| budget.eta_ms(budget.work_up_to(last), now.mono)),
            };
            snapshot.groups.insert(
                id.clone(),
                GroupSnapshot {
                    record: group.record,
                    unsettled,
                    eta_ms,
                },
            );
        }
    }
}
