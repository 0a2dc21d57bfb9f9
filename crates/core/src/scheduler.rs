//! The scheduler: one machine that owns every job, and asks for commits, dispatches and notifications.
//!
//! Owns the order of things. Does not own arithmetic of limits (`limit`), pauses (`budget`) or lanes (`lane`).
//!
//! **The drain rule.** Call [`Core::handle`] once, then [`Core::poll_effect`] until it returns `None`, then read
//! [`Core::poll_timeout`]; only then comes the next input. Breaking it is a [`Misuse`], in every build.
//!
//! **Write before act.** All that one input changes goes into one commit. What must not happen before that commit is
//! durable (a dispatch, a reply, a settled promise) is kept beside it and comes out when `Committed` comes in.

mod accept;
mod answer;
mod batching;
mod checking;
mod claim;
mod clean;
mod commit;
mod control;
mod credentials;
mod family;
mod forecast;
mod items;
mod key;
mod lateness;
mod learn;
mod merge;
mod meters;
mod place;
mod recover;
mod repeats;
mod stale;
mod view;

use lateness::Lateness;
pub use view::{BudgetSnapshot, GroupSnapshot, Snapshot};

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use oorandom::Rand64;

use crate::budget::Budget;
use crate::change::Change;
use crate::config::BudgetConfig;
use crate::ids::{BatchNo, BudgetId, CommitId, GroupId, JobId, OrderKey, Seq};
use crate::io::{Cause, Effect, Event, Input, Reply};
use crate::job::{Card, GroupRecord, HoldCause, Lane, Reason, Record, State};
use crate::kind::Fingerprint;
use crate::lane::Place;
use crate::time::{Clock, Mono, Now, Passage, Wall};

use batching::Company;

/// The caller broke the drain rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected all effects to be polled before the next input, {left} are left")]
pub struct Misuse {
    /// Effects that were not polled.
    pub left: usize,
}

/// Bounds of the whole queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The most unsettled jobs.
    pub max_jobs: u32,
    /// The most bytes of their stored requests.
    pub max_bytes: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            max_jobs: 100_000,
            max_bytes: 256 * 1024 * 1024,
        }
    }
}

/// Where an unsettled job stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slot {
    /// In no line: its batch is not stored yet, it is on its way, or it has settled.
    None,
    /// Behind an earlier job of its key.
    Ordered,
    /// Its budget is not declared yet.
    Undeclared,
    /// With the job whose batch request it is an item of.
    Carried,
    /// Until an instant.
    Delayed(Mono),
    /// In a lane of its budget.
    Ready(Lane, Place),
}

#[derive(Debug)]
struct Job {
    card: Card,
    record: Record,
    slot: Slot,
    is_stored: bool,
    ready_at: Option<Mono>,
    expires_at: Option<Mono>,
    /// Its outcome is decided and not stored yet.
    is_settling: bool,
    /// How often it has settled: a retried job settles anew, and only its last outcome is told.
    settlements: u32,
    claimed_at: Mono,
    dispatched_at: Mono,
    /// The budget that it was handed in for.
    home: BudgetId,
    /// The budgets above its own that its attempt was taken from.
    parents: Vec<BudgetId>,
    /// Later jobs whose requests it carries, in order.
    members: Vec<Seq>,
    /// The bytes of those requests.
    members_bytes: u64,
    /// The number of the credentials that its attempt was sent with.
    sent_with: u32,
}

impl Job {
    fn lane(&self) -> Lane {
        self.record.lane.unwrap_or(self.card.lane)
    }

    /// Tells whether it waits for a turn of its own.
    const fn is_waiting(&self) -> bool {
        !self.is_merged() && matches!(self.record.state, State::Queued | State::RetryWait)
    }

    /// Tells whether another job carries its request.
    const fn is_merged(&self) -> bool {
        self.record.merged_into.is_some()
    }
}

/// The unsettled jobs of one ordering key.
#[derive(Debug, Default)]
struct KeyLine {
    jobs: BTreeSet<Seq>,
    /// The job that is on its way; a retried one may stand before it.
    live: Option<Seq>,
    /// The failed job that holds the others up until somebody decides.
    held_by: Option<Seq>,
    by_lane: [u32; 3],
}

#[derive(Debug, Default)]
struct Group {
    record: GroupRecord,
    jobs: BTreeSet<Seq>,
    by_state: [u32; 6],
    waiting_by_lane: [u32; 3],
    /// Whether it is to be told as settled once the outcome of its last job is stored.
    is_untold: bool,
}

#[derive(Debug, Default)]
struct Batch {
    jobs: Vec<Seq>,
    unsettled: u32,
    keep_until: Wall,
}

/// What happens when a commit is durable.
#[derive(Debug)]
enum After {
    Accept {
        request: crate::ids::RequestId,
        asked: Vec<JobId>,
        new: Vec<Seq>,
    },
    Dispatch {
        seq: Seq,
        attempt: u32,
        start: Mono,
    },
    /// The nth settlement of a job.
    Settled(Seq, u32),
    GroupSettled(GroupId),
    Reply(crate::ids::RequestId, Reply),
    Event(Event),
}

/// What the next commit will hold.
#[derive(Debug, Default)]
struct Draft {
    batches: Vec<(BatchNo, Vec<Card>)>,
    touched: Touched,
    drops: Vec<Change>,
    after: Vec<After>,
}

/// Records whose newest form is to be stored.
#[derive(Debug, Default)]
struct Touched {
    records: BTreeSet<Seq>,
    groups: BTreeSet<GroupId>,
    budgets: BTreeSet<BudgetId>,
    holds: bool,
}

#[derive(Debug, Default)]
struct Pending {
    touched: Touched,
    drops: Vec<Change>,
    after: Vec<After>,
    begun: Now,
}

/// The scheduler of one queue. See the module's documentation for how to drive it.
#[derive(Debug)]
pub struct Core {
    bounds: Bounds,
    clock: Clock,
    rng: Rand64,
    jobs: BTreeMap<Seq, Job>,
    ids: BTreeMap<JobId, Seq>,
    keys: BTreeMap<OrderKey, KeyLine>,
    budgets: BTreeMap<BudgetId, Budget>,
    budget_records: BTreeMap<BudgetId, crate::job::BudgetRecord>,
    groups: BTreeMap<GroupId, Group>,
    batches: BTreeMap<BatchNo, Batch>,
    next_batch: BatchNo,
    droppable: BTreeSet<(Wall, BatchNo)>,
    dropped: BTreeMap<BatchNo, (Vec<JobId>, Wall)>,
    dropped_ids: BTreeSet<JobId>,
    delayed: BTreeSet<(Mono, Seq)>,
    /// Attempts that are stored and start at an instant that is still to come.
    claimed: BTreeSet<(Mono, Seq, u32)>,
    lead_ms: u64,
    lateness: Lateness,
    /// Claims on their way to the store.
    claiming: usize,
    expiring: BTreeSet<(Mono, Seq)>,
    undecided: BTreeSet<Seq>,
    /// Jobs that were cancelled before they were stored; they end as soon as they are.
    unwanted: BTreeMap<Seq, Reason>,
    /// Jobs by the state that they ended in, whose outcome is not stored yet.
    settling: [u32; 6],
    undeclared: BTreeSet<Seq>,
    /// The newest unsettled job without a key, by the address that it speaks to.
    newest: BTreeMap<Fingerprint, Seq>,
    /// Ready jobs that may share a batch request, the most urgent first.
    companies: BTreeMap<Company, BTreeSet<(Lane, Place)>>,
    /// Unsettled jobs that others carry.
    merged: u32,
    /// Jobs in a line: ready, delayed, behind their key, or without their budget.
    placed: u64,
    meters: meters::Meters,
    sending_by_lane: [u32; 3],
    /// Jobs on their way.
    sending: BTreeSet<Seq>,
    holds: BTreeSet<HoldCause>,
    counts: [u32; 6],
    unsettled_bytes: u64,
    effects: VecDeque<Effect>,
    draft: Draft,
    /// Counts starts under parents, for their turns.
    turns: u64,
    pending: BTreeMap<CommitId, Pending>,
    unsaved: Pending,
    next_commit: CommitId,
}

/// Why the core wants to be woken.
pub type WakeReason = &'static str;

impl Core {
    /// Makes an empty scheduler; the seed decides all jitter.
    pub fn new(seed: u64, bounds: Bounds) -> Self {
        Self {
            bounds,
            clock: Clock::default(),
            rng: Rand64::new(u128::from(seed)),
            jobs: BTreeMap::new(),
            ids: BTreeMap::new(),
            keys: BTreeMap::new(),
            budgets: BTreeMap::new(),
            budget_records: BTreeMap::new(),
            groups: BTreeMap::new(),
            batches: BTreeMap::new(),
            next_batch: BatchNo(1),
            droppable: BTreeSet::new(),
            dropped: BTreeMap::new(),
            dropped_ids: BTreeSet::new(),
            delayed: BTreeSet::new(),
            claimed: BTreeSet::new(),
            lead_ms: 0,
            lateness: Lateness::default(),
            claiming: 0,
            expiring: BTreeSet::new(),
            undecided: BTreeSet::new(),
            unwanted: BTreeMap::new(),
            settling: [0; 6],
            undeclared: BTreeSet::new(),
            newest: BTreeMap::new(),
            companies: BTreeMap::new(),
            merged: 0,
            placed: 0,
            meters: meters::Meters::default(),
            sending_by_lane: [0; 3],
            sending: BTreeSet::new(),
            holds: BTreeSet::new(),
            counts: [0; 6],
            unsettled_bytes: 0,
            effects: VecDeque::new(),
            draft: Draft::default(),
            turns: 0,
            pending: BTreeMap::new(),
            unsaved: Pending::default(),
            next_commit: CommitId(1),
        }
    }

    /// Takes one input. Poll effects until `None` afterwards, then the timeout.
    ///
    /// # Errors
    /// When effects of the input before are left; the input is not taken then.
    pub fn handle(&mut self, input: Input, now: Now) -> Result<(), Misuse> {
        if !self.effects.is_empty() {
            return Err(Misuse {
                left: self.effects.len(),
            });
        }
        let (now, passage) = self.clock.observe(now);
        self.begin_metrics(now);
        if passage == Passage::Suspended {
            self.suspended(now);
        }
        match input {
            Input::Recovered(stored) => self.recover(stored, now),
            Input::Configure(budgets) => self.configure(budgets, now),
            Input::Enqueue { request, cards } => self.accept(request, cards, now),
            Input::EnqueueAgain { request, cards } => self.accept_again(request, cards, now),
            Input::Committed(commit) => self.committed(commit, now),
            Input::CommitFailed(commit, failure) => self.commit_failed(commit, failure, now),
            Input::Answered {
                seq,
                attempt,
                ended_at,
                answer,
            } => self.answered(seq, attempt, ended_at, answer, now),
            Input::NoAnswer {
                seq,
                attempt,
                cause,
            } => self.no_answer(seq, attempt, cause, now),
            Input::ItemsMissing {
                seq,
                attempt,
                missing,
            } => self.items_missing(seq, attempt, &missing, now),
            Input::Cancel {
                request,
                target,
                reason,
            } => self.cancel(request, &target, reason, now),
            Input::Retry {
                request,
                target,
                force,
            } => self.retry(request, &target, force, now),
            Input::Prioritise {
                request,
                target,
                lane,
            } => self.prioritise(request, &target, lane, now),
            Input::Hold {
                request,
                budget,
                cause,
            } => self.hold(request, budget, cause),
            Input::Resume { request, budget } => self.resume(request, budget, now),
            Input::CredentialsGiven { budget } => self.credentials_given(budget),
            Input::CredentialsTaken { budget } => self.credentials_taken(&budget),
            Input::Network(network) => self.network(network),
            Input::Wake => {}
        }
        self.advance(now);
        self.flush(now);
        self.tell_unaccounted();
        Ok(())
    }

    /// Returns the next thing to do, in order. Its answer may have changed after each `handle`.
    #[must_use]
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// Returns when to call `handle` with [`Input::Wake`] at the latest, and why; none when idle.
    ///
    /// Its answer may have changed after each `handle`.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<(Mono, WakeReason)> {
        let delayed = self
            .delayed
            .first()
            .map(|(at, _)| (*at, "a job's delay is over"));
        let expiring = self.expiring.first().map(|(at, _)| (*at, "a job expires"));
        let budgets = self
            .budgets
            .values()
            .filter(|budget| budget.waiting() > 0)
            .filter_map(|budget| {
                let pause = budget.pause().map(|pause| (pause.until, "a pause ends"));
                let blocked = budget.blocked.filter(|_| !budget.lanes.is_empty());
                let blocked = blocked.and_then(|blocked| {
                    let lead_ms = if blocked.cause == Cause::Rate {
                        self.lead_ms
                    } else {
                        0
                    };
                    Some((blocked.until?.minus(lead_ms), wake_reason(blocked.cause)))
                });
                pause.into_iter().chain(blocked).min_by_key(|(at, _)| *at)
            });
        let budgets = budgets.filter(|_| self.holds.is_empty());
        let claimed = self
            .claimed
            .first()
            .map(|(at, ..)| (*at, "a claimed request starts"));
        claimed
            .into_iter()
            .chain(delayed)
            .chain(expiring)
            .chain(budgets)
            .min_by_key(|(at, _)| *at)
    }

    /// Returns how many jobs are on their way.
    pub fn sending(&self) -> u32 {
        let index = crate::job::State::Sending.index();
        self.counts.get(index).copied().unwrap_or(0)
    }

    /// Does what time alone brings.
    fn advance(&mut self, now: Now) {
        self.reopen(now);
        self.end_share_holds(now);
        self.start_claimed(now);
        self.expire(now);
        while let Some((at, seq)) = self.delayed.first().copied()
            && at <= now.mono
        {
            self.replace(seq, now);
        }
        self.pump(now);
        self.note_demand(now);
    }

    fn reopen(&mut self, now: Now) {
        for (id, budget) in &mut self.budgets {
            if budget.reopen_if_due(now.mono) {
                self.effects
                    .push_back(Effect::Event(Event::Resumed { budget: id.clone() }));
            }
        }
    }

    fn suspended(&mut self, now: Now) {
        self.put_claims_back(now);
        for budget in self.budgets.values_mut() {
            budget.suspended(now);
        }
        let delayed: Vec<Seq> = self.delayed.iter().map(|(_, seq)| *seq).collect();
        for seq in delayed {
            if let Some(job) = self.jobs.get_mut(&seq) {
                job.ready_at = job
                    .ready_at
                    .map(|at| at.min(due_mono(&job.card, &job.record, now)));
            }
            self.replace(seq, now);
        }
        let expiring: Vec<(Mono, Seq)> = self.expiring.iter().copied().collect();
        for (at, seq) in expiring {
            let due = self
                .jobs
                .get(&seq)
                .and_then(|job| job.card.expires_at)
                .map(|due| now.mono_of(due));
            self.set_expiry(seq, due.map(|due| due.min(at)));
        }
    }

    fn configure(&mut self, configs: Vec<BudgetConfig>, now: Now) {
        for config in configs {
            let id = config.id.clone();
            match self.budgets.get_mut(&id) {
                Some(budget) => {
                    let has_other_batches = budget.config().batches() != config.batches();
                    let new = budget.configure(config, now.mono);
                    if !new.is_empty() {
                        let spends = self.spends(&id, now);
                        if let Some(budget) = self.budgets.get_mut(&id) {
                            budget.seed(&new, &spends, now);
                        }
                    }
                    if has_other_batches {
                        self.replace_batched(&id, now);
                    }
                }
                None => self.declare(id, config, now),
            }
        }
    }
}

fn wake_reason(cause: Cause) -> WakeReason {
    match cause {
        Cause::Paused | Cause::Parked => "a pause ends",
        Cause::Held => "the retry budget allows more",
        Cause::Rate => "a rule admits again",
        Cause::InFlight => "an earlier owner's attempt is over",
        Cause::Order
        | Cause::Lane
        | Cause::Backoff
        | Cause::NotBefore
        | Cause::Offline
        | Cause::Credentials => "a job may start",
    }
}

/// The instant from which on a job may start, as far as it names one itself.
fn due_mono(card: &Card, record: &Record, now: Now) -> Mono {
    let due = record.not_before.max(card.not_before);
    due.map_or(now.mono, |due| now.mono_of(due))
}
