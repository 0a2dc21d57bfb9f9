//! Drives one core: turns messages of tabs into inputs and effects into transactions, requests and messages.
//!
//! Owns who asked for what, which stored requests are at hand, and the one transaction that is on its way. Has no
//! browser types, no clock and no IO: like the core it is a machine that takes [`HostInput`]s and gives
//! [`HostOutput`]s, so that the same code runs in a worker and in a simulator.
//!
//! **The drain rule** is the core's: one `handle`, then `poll_output` until `None`, then `poll_timeout`.
//!
//! **Group commit.** One transaction is on its way at a time; all commits that the core asks for meanwhile go into the
//! next one. If a transaction with several commits fails, each is tried alone, so that a bad one costs only its sender.

mod bodies;
mod budgets;
mod commits;
mod config;
mod credentials;
mod diagnose;
mod items;
mod metrics;
mod plan;
mod query;
mod requests;
mod told;
mod wire;

pub use config::HostConfig;
pub use paceline_signals::BodyNeed;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use bodies::Bodies;
use budgets::Budgets;
use commits::Commits;
use credentials::Credentials;
use paceline_core::Core;
use paceline_core::ids::{BatchNo, GroupId, JobId, RequestId, Seq};
use paceline_core::io::{
    Effect, Event, Found, Input, Network, NoAnswer, Refusal, Reply, Target, Verdict,
};
use paceline_core::job::{GroupRecord, HoldCause, Reason};
use paceline_core::scheduler::WakeReason;
use paceline_core::time::{Mono, Now};
use paceline_protocol::batch::BatchForm;
use paceline_protocol::reply::f64_eq::F64;
use paceline_protocol::told::ToldMessage;
use paceline_protocol::{HostMessage, Request, Secrets, Stamp, WireError};
use paceline_signals::{AnyDialect, Response, Sent};
use paceline_store::{Opened, ReadBodies, StoreError, Transaction};

/// A tab's port, numbered by the shell.
pub type TabId = u32;

/// What happens to the host. `B` is a stored request or a response, opaque.
#[derive(Debug)]
pub enum HostInput<B> {
    /// A tab's message whose head was good.
    Message {
        /// The tab.
        tab: TabId,
        /// The tab's own number of the request.
        re: f64,
        /// What is asked, or why it cannot be read.
        request: Result<Request, WireError>,
        /// The stored requests of the jobs in it, in order, with their sizes in bytes.
        bodies: Vec<(B, u32)>,
    },
    /// A tab has gone.
    TabLeft(TabId),
    /// The transaction on its way has ended.
    StoreDone(Result<ReadBodies<B>, StoreError>),
    /// A read has ended.
    BodiesRead(Result<ReadBodies<B>, StoreError>),
    /// A request was answered.
    Answered {
        /// The job.
        seq: Seq,
        /// The attempt.
        attempt: u32,
        /// The status.
        status: u16,
        /// The headers that could be read.
        headers: Vec<(String, String)>,
        /// The beginning of the body of an error.
        text: Option<String>,
        /// What it tells of the job, where it is the answer to its check.
        found: Option<Found>,
        /// What the function of the app's worker said of it that `Send` named.
        told: Option<ToldMessage>,
        /// When the answer's head came.
        ended_at: Mono,
        /// The response for the tab that asked.
        response: B,
        /// What it says of the items of a batch.
        items: Items<B>,
    },
    /// A request ended without an answer.
    NoAnswer {
        /// The job.
        seq: Seq,
        /// The attempt.
        attempt: u32,
        /// Why.
        cause: NoAnswer,
    },
    /// The browser says whether there is a network.
    Network(Network),
    /// The store's connection was closed under us.
    StoreLost,
    /// A newer host waits: what has left is finished, nothing more starts, and `Retired` comes when that is stored.
    Retire,
    /// A deadline of `poll_timeout` has come.
    Wake,
}

/// What the answer of a batch endpoint says of its items.
#[derive(Debug)]
pub enum Items<B> {
    /// The same of all, or it was no batch.
    Shared,
    /// It should say something of each, and cannot be read.
    Unreadable,
    /// Of each, in the order of the request; nothing of those that it leaves out.
    Each(Vec<Option<ItemResult<B>>>),
}

/// What is said of one item.
#[derive(Debug)]
pub struct ItemResult<B> {
    /// The item's status.
    pub status: u16,
    /// The beginning of an error's text.
    pub text: Option<String>,
    /// The response for the tab that asked.
    pub response: B,
}

/// What the host asks its shell to do.
#[derive(Debug)]
pub enum HostOutput<B> {
    /// Post a message to a tab.
    Post {
        /// The tab.
        tab: TabId,
        /// Who speaks, and what is answered.
        stamp: Stamp,
        /// The message.
        message: Box<HostMessage>,
        /// The response of a settled job.
        response: Option<B>,
        /// The stored requests of a `jobs` message, in its order.
        requests: Vec<Option<B>>,
    },
    /// Run a transaction and answer with `StoreDone`. One at a time.
    Store(Transaction<B>),
    /// Read requests and answer with `BodiesRead`. One at a time.
    Read(Vec<BatchNo>),
    /// Send a request and answer with `Answered` or `NoAnswer`.
    Send {
        /// The job.
        seq: Seq,
        /// The attempt.
        attempt: u32,
        /// The stored request.
        request: B,
        /// Requests whose bodies, JSON objects like its own, are to be laid over its body, in order; or the further items
        /// of the batch.
        later: Vec<B>,
        /// How the bodies of all of them are written as the items of one request, if they are.
        batch: Option<BatchForm>,
        /// Whether the check that is stored with the request is to be sent in its place.
        is_check: bool,
        /// Headers to add.
        headers: Vec<(String, String)>,
        /// The budget's credentials, to add as well.
        secrets: Secrets,
        /// The time-out in milliseconds.
        timeout_ms: u32,
        /// Of which answers the beginning of the body is wanted.
        body: BodyNeed,
        /// The function of the app's worker that reads the answer, if one does.
        dialect: Option<Arc<str>>,
    },
    /// The store has another owner, or none: release everything and end.
    Stop(StoreError),
    /// What `Retire` asked for is done: release everything and end.
    Retired,
}

/// The gap between two snapshots to a tab, in milliseconds.
const SNAPSHOT_GAP_MS: u64 = 250;

#[derive(Debug)]
struct Tab {
    principal: String,
    is_subscribed: bool,
    /// Whether it answers when it is asked for credentials.
    has_credentials: bool,
    /// Whether it is told what was counted whenever that has changed.
    follows_metrics: bool,
}

#[derive(Debug)]
struct Asked {
    tab: TabId,
    re: F64,
    what: What,
}

#[derive(Debug)]
enum What {
    One,
    Many(GroupId),
    Other,
}

/// A bulk of which some jobs were known before, and belong to another group: its end is counted here.
#[derive(Debug)]
struct Bulk {
    tab: TabId,
    group: GroupId,
    unsettled: BTreeSet<JobId>,
    record: GroupRecord,
}

/// Whether an asker wants the response, or only to hear that the job has settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Wants {
    Outcome,
    Response,
}

/// The host of one queue. See the module's documentation for how to drive it.
#[derive(Debug)]
pub struct Host<B> {
    config: HostConfig,
    epoch: u64,
    core: Core,
    tabs: BTreeMap<TabId, Tab>,
    budgets: Budgets,
    credentials: Credentials,
    asked: BTreeMap<RequestId, Asked>,
    askers: BTreeMap<JobId, BTreeMap<TabId, Wants>>,
    group_askers: BTreeMap<GroupId, BTreeSet<TabId>>,
    bodies: Bodies<B>,
    commits: Commits<B>,
    responses: BTreeMap<Seq, B>,
    repeats: BTreeMap<Seq, Sent>,
    /// The dialects of requests on their way, where they are named.
    dialects: BTreeMap<Seq, AnyDialect>,
    witnesses: diagnose::Witnesses,
    /// The fields of the worker's functions that were warned of.
    warned: BTreeSet<String>,
    reads: VecDeque<query::Query>,
    outputs: VecDeque<HostOutput<B>>,
    next_request: RequestId,
    fresh_names: u64,
    snapshot_due: Option<Mono>,
    snapshot_sent: Option<Mono>,
    is_dirty: bool,
    is_stopped: bool,
    is_retiring: bool,
    /// Stored records that could not be read; told to each tab.
    quarantined: u32,
    birth: u64,
    bulks: Vec<Bulk>,
}

impl<B: Clone + Default> Host<B> {
    /// Makes the host of a store that was opened at `now`.
    pub fn new(config: HostConfig, opened: Opened, now: Now) -> Self {
        let mut host = Self {
            core: Core::new(config.seed, config.bounds),
            epoch: opened.epoch.0,
            config,
            tabs: BTreeMap::new(),
            budgets: Budgets::default(),
            credentials: Credentials::default(),
            asked: BTreeMap::new(),
            askers: BTreeMap::new(),
            group_askers: BTreeMap::new(),
            bodies: Bodies::default(),
            commits: Commits::default(),
            responses: BTreeMap::new(),
            repeats: BTreeMap::new(),
            dialects: BTreeMap::new(),
            witnesses: diagnose::Witnesses::default(),
            warned: BTreeSet::new(),
            reads: VecDeque::new(),
            outputs: VecDeque::new(),
            next_request: RequestId(1),
            fresh_names: 0,
            snapshot_due: None,
            snapshot_sent: None,
            is_dirty: false,
            is_stopped: false,
            is_retiring: false,
            quarantined: opened.quarantined,
            birth: opened.birth.as_millis(),
            bulks: Vec::new(),
        };
        host.drive(Input::Recovered(opened.stored), now);
        host.settle_turn(now);
        host
    }

    /// Takes one input.
    pub fn handle(&mut self, input: HostInput<B>, now: Now) {
        if self.is_stopped {
            return;
        }
        match input {
            HostInput::Message {
                tab,
                re,
                request,
                bodies,
            } => self.message(tab, F64(re), request, bodies, now),
            HostInput::TabLeft(tab) => self.tab_left(tab, now),
            HostInput::StoreDone(result) => self.store_done(result, now),
            HostInput::BodiesRead(result) => self.bodies_read(result),
            HostInput::Answered {
                seq,
                attempt,
                status,
                headers,
                text,
                found,
                told,
                ended_at,
                response,
                items,
            } => {
                let sent = self.repeats.remove(&seq).unwrap_or(Sent::First);
                let dialect = self.dialects.remove(&seq).unwrap_or_default();
                let told = self.read_told(&dialect, told.as_ref());
                let read = Response {
                    status,
                    headers: &headers,
                    text: text.as_deref(),
                    told: told.as_ref(),
                    ..Response::default()
                };
                let reading = paceline_signals::read_all(&read, dialect, now.wall);
                let mut answer = paceline_signals::answer(&read, &reading, sent);
                let budget = self.core.budget_at(seq);
                let seen = (status, &*headers);
                self.witnesses.answered(seq, budget, seen, &reading);
                let meant = budget.and_then(|budget| self.budgets.verdict(budget, status));
                if let Some(verdict) = meant {
                    answer.verdict = verdict;
                    answer.signals.is_rate_limited = verdict == Verdict::Refused;
                }
                if let Some(found) = found {
                    answer.verdict = of_check(answer.verdict, found);
                }
                self.read_items(seq, &mut answer, response, items, now);
                self.drive(
                    Input::Answered {
                        seq,
                        attempt,
                        ended_at,
                        answer,
                    },
                    now,
                );
            }
            HostInput::NoAnswer {
                seq,
                attempt,
                cause,
            } => {
                self.repeats.remove(&seq);
                self.dialects.remove(&seq);
                let is_seen = matches!(cause, NoAnswer::Network | NoAnswer::TimedOut);
                let budget = self.core.budget_at(seq);
                self.witnesses.lost(seq, budget, is_seen);
                self.drive(
                    Input::NoAnswer {
                        seq,
                        attempt,
                        cause,
                    },
                    now,
                );
            }
            HostInput::Network(network) => self.drive(Input::Network(network), now),
            HostInput::StoreLost => self.store_lost(),
            HostInput::Retire => self.retire(now),
            HostInput::Wake => self.drive(Input::Wake, now),
        }
        self.end_late_answers(now);
        self.settle_turn(now);
    }

    /// Returns the next thing to do, in order.
    #[must_use]
    pub fn poll_output(&mut self) -> Option<HostOutput<B>> {
        self.outputs.pop_front()
    }

    /// Returns when to call `handle` with [`HostInput::Wake`] at the latest, and why; none when idle.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<(Mono, WakeReason)> {
        if self.is_stopped {
            return None;
        }
        let snapshot = self.snapshot_due.map(|at| (at, "a snapshot is due"));
        let gathered = self
            .commits
            .gathered_at()
            .map(|at| (at, "outcomes have gathered"));
        let asked = self.credentials.deadline();
        let asked = asked.map(|at| (at, "a tab was asked for credentials"));
        self.core
            .poll_timeout()
            .into_iter()
            .chain(snapshot)
            .chain(gathered)
            .chain(asked)
            .min_by_key(|(at, _)| *at)
    }

    /// Returns the epoch that this host owns.
    pub const fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Hands an input to the core and carries out its effects.
    fn drive(&mut self, input: Input, now: Now) {
        let misuse = self.core.handle(input, now);
        debug_assert!(misuse.is_ok(), "effects are drained after each input");
        self.is_dirty = true;
        while let Some(effect) = self.core.poll_effect() {
            self.perform(effect, now);
        }
    }

    /// Ends a turn: what the core asked for goes out as one transaction, snapshots when they are due.
    fn settle_turn(&mut self, now: Now) {
        if self.is_stopped {
            return;
        }
        self.start_transaction(now);
        self.send_snapshots(now);
        if self.is_retiring && self.core.sending() == 0 && self.commits.is_idle() {
            self.is_stopped = true;
            self.outputs.push_back(HostOutput::Retired);
        }
    }

    fn retire(&mut self, now: Now) {
        self.is_retiring = true;
        let (request, budget, cause) = (None, None, HoldCause::Yielding);
        let hold = Input::Hold {
            request,
            budget,
            cause,
        };
        self.drive(hold, now);
    }

    fn perform(&mut self, effect: Effect, now: Now) {
        match effect {
            Effect::Commit {
                commit,
                changes,
                may_wait,
            } => self.push_commit(commit, changes, may_wait),
            Effect::Dispatch {
                seq,
                attempt,
                budget,
                idempotency_key,
                is_repeat,
                is_check,
                timeout_ms,
                batch,
                ..
            } => {
                let header = self.budgets.key_header(&budget);
                let headers: Vec<(String, String)> =
                    header.zip(idempotency_key).into_iter().collect();
                if !headers.is_empty() {
                    self.witnesses.keyed(seq);
                }
                if is_repeat && !headers.is_empty() {
                    self.repeats.insert(seq, Sent::AgainWithKey);
                }
                let dialect = self.budgets.dialect(&budget);
                let need = dialect.body();
                let function = match &dialect {
                    AnyDialect::Defined(name) => Some(Arc::clone(name)),
                    AnyDialect::Known(_) | AnyDialect::Own(_) => None,
                };
                if dialect != AnyDialect::default() {
                    self.dialects.insert(seq, dialect);
                }
                let form = batch.and_then(|(id, name)| {
                    let batch = self.budgets.batch(&id, &name);
                    batch.map(|batch| batch.form.clone())
                });
                match self.take_claimed_parts(seq) {
                    Ok((request, later)) => {
                        self.outputs.push_back(HostOutput::Send {
                            seq,
                            attempt,
                            request,
                            later,
                            batch: form,
                            is_check,
                            headers,
                            secrets: self.credentials.of(&budget),
                            timeout_ms,
                            body: need,
                            dialect: function,
                        });
                    }
                    Err(missing) => self.commits.missing.push((seq, attempt, missing)),
                }
            }
            Effect::Reply { request, reply } => self.reply(request, reply),
            Effect::Settled {
                seq,
                id,
                group,
                state,
                outcome,
                attempts,
                answered_by,
            } => {
                let job = wire::settled(&id, group.as_ref(), state, outcome, attempts);
                self.tell_settled(seq, answered_by, &id, job);
            }
            Effect::GroupSettled {
                group,
                done,
                failed,
                cancelled,
            } => {
                let message = wire::group_settled(&group, done, failed, cancelled);
                for tab in self.group_askers.remove(&group).unwrap_or_default() {
                    self.post(tab, None, message.clone());
                }
            }
            Effect::Event(Event::CredentialsWanted { budget, wanted }) => {
                self.want_credentials(budget, wanted, now);
            }
            Effect::Event(event) => self.tell_all(&event),
            _ => debug_assert!(false, "an effect that this host does not know at {now:?}"),
        }
    }

    /// Takes the requests that make up the request of a claimed job: the first, and what goes with it.
    /// Returns the parts whose requests are missing, if some are.
    fn take_claimed_parts(&mut self, seq: Seq) -> Result<(B, Vec<B>), Vec<Seq>> {
        // All are taken, also when one is missing: none is to stay.
        let (mut taken, mut missing) = (VecDeque::new(), Vec::new());
        for part in self.core.parts(seq) {
            match self.bodies.take_claimed(part) {
                Some(body) => taken.push_back(body),
                None => missing.push(part),
            }
        }
        let first = taken.pop_front().filter(|_| missing.is_empty());
        first.map(|first| (first, taken.into())).ok_or(missing)
    }

    fn tell_settled(
        &mut self,
        seq: Seq,
        answered_by: Seq,
        id: &JobId,
        job: paceline_protocol::reply::SettledJob,
    ) {
        // The job that carried others is told last.
        let response = match answered_by == seq {
            true => self.responses.remove(&seq),
            false => self.responses.get(&answered_by).cloned(),
        };
        // A job that ended without an answer may have been answered before.
        let response = response.filter(|_| job.status.is_some());
        self.bodies.forget(seq);
        self.count_in_bulks(id, job.state);
        for (tab, wants) in self.askers.remove(id).unwrap_or_default() {
            let response = response.clone().filter(|_| wants == Wants::Response);
            let message = HostMessage::Settled { job: job.clone() };
            self.post_with(tab, None, message, response, Vec::new());
        }
    }

    fn tell_all(&mut self, event: &Event) {
        let Some(message) = wire::event(event) else {
            return;
        };
        let tabs: Vec<TabId> = self.tabs.keys().copied().collect();
        for tab in tabs {
            self.post(tab, None, HostMessage::Event(message.clone()));
        }
    }

    /// Forgets a tab. What was kept in memory for it alone has nobody left to hear of it.
    fn tab_left(&mut self, tab: TabId, now: Now) {
        self.tabs.remove(&tab);
        self.lost_its_turn(tab, None, now);
        self.asked.retain(|_, asked| asked.tab != tab);
        let mut orphans = Vec::new();
        self.askers.retain(|id, tabs| {
            tabs.remove(&tab);
            if tabs.is_empty() {
                orphans.push(id.clone());
            }
            !tabs.is_empty()
        });
        orphans.retain(|id| self.core.is_ephemeral(id));
        if !orphans.is_empty() {
            let (target, reason) = (Target::Jobs(orphans), Reason::Cancelled);
            let request = None;
            self.drive(
                Input::Cancel {
                    request,
                    target,
                    reason,
                },
                now,
            );
        }
        self.bulks.retain(|bulk| bulk.tab != tab);
        self.group_askers.retain(|_, tabs| {
            tabs.remove(&tab);
            !tabs.is_empty()
        });
    }

    fn post(&mut self, tab: TabId, re: Option<F64>, message: HostMessage) {
        self.post_with(tab, re, message, None, Vec::new());
    }

    fn post_with(
        &mut self,
        tab: TabId,
        re: Option<F64>,
        message: HostMessage,
        response: Option<B>,
        requests: Vec<Option<B>>,
    ) {
        let stamp = Stamp {
            paceline: paceline_protocol::PROTOCOL,
            instance: self.config.instance.clone(),
            epoch: self.epoch,
            re,
        };
        self.outputs.push_back(HostOutput::Post {
            tab,
            stamp,
            message: Box::new(message),
            response,
            requests,
        });
    }

    fn send_snapshots(&mut self, now: Now) {
        let tabs: Vec<TabId> = self
            .tabs
            .iter()
            .filter(|(_, tab)| tab.is_subscribed)
            .map(|(id, _)| *id)
            .collect();
        let has_followers = self.tabs.values().any(|tab| tab.follows_metrics);
        if !self.is_dirty || (tabs.is_empty() && !has_followers) {
            self.snapshot_due = None;
            return;
        }
        let due = self
            .snapshot_sent
            .map_or(now.mono, |sent| sent.plus(SNAPSHOT_GAP_MS));
        if due > now.mono {
            self.snapshot_due = Some(due);
            return;
        }
        self.snapshot_due = None;
        self.snapshot_sent = Some(now.mono);
        self.is_dirty = false;
        self.send_metrics(now);
        if tabs.is_empty() {
            return;
        }
        let snapshot = self.snapshot(now);
        for tab in tabs {
            self.post(
                tab,
                None,
                HostMessage::Snapshot {
                    snapshot: Box::new(snapshot.clone()),
                },
            );
        }
    }

    fn snapshot(&mut self, now: Now) -> paceline_protocol::reply::SnapshotMessage {
        wire::snapshot(self.core.snapshot(now), &self.config, self.epoch)
    }

    fn ask(&mut self, tab: TabId, re: F64, what: What) -> RequestId {
        let request = self.next_request;
        self.next_request = request.next();
        self.asked.insert(request, Asked { tab, re, what });
        request
    }

    /// Tells whether this was asked of a group of which something is still known.
    fn is_group(&self, what: &What) -> bool {
        matches!(what, What::Many(group) if self.core.group(group).is_some())
    }

    fn reply(&mut self, request: RequestId, reply: Reply) {
        let Some(Asked { tab, re, what }) = self.asked.remove(&request) else {
            return;
        };
        match reply {
            Reply::Accepted { jobs } => self.reply_accepted(tab, re, what, jobs),
            Reply::Refused(Refusal::Gone) if self.is_group(&what) => {
                self.reply_accepted(tab, re, what, Vec::new());
            }
            Reply::Refused(refusal) => {
                let error = wire::refusal(&refusal, &what);
                self.post(tab, Some(re), HostMessage::Error(error));
            }
            Reply::Cancelled {
                cancelled,
                already_sent,
            } => {
                self.post(
                    tab,
                    Some(re),
                    HostMessage::Cancelled {
                        cancelled,
                        already_sent,
                    },
                );
            }
            Reply::Retried {
                retried,
                needs_force,
                stale,
            } => {
                self.post(
                    tab,
                    Some(re),
                    HostMessage::Retried {
                        retried,
                        needs_force,
                        stale,
                    },
                );
            }
            Reply::Prioritised {
                moved,
                already_sent,
            } => {
                self.post(
                    tab,
                    Some(re),
                    HostMessage::Prioritised {
                        moved,
                        already_sent,
                    },
                );
            }
            Reply::Ok => self.post(tab, Some(re), HostMessage::Ok),
            _ => debug_assert!(false, "a reply that this host does not know"),
        }
    }
}

/// What the answer to a check means: what it found, unless its status says that it was not even looked at.
const fn of_check(verdict: Verdict, found: Found) -> Verdict {
    match verdict {
        Verdict::Refused | Verdict::Unauthorized | Verdict::Unavailable => verdict,
        Verdict::Success
        | Verdict::Final
        | Verdict::StillRunning
        | Verdict::KeyReused
        | Verdict::Checked(_) => Verdict::Checked(found),
    }
}
