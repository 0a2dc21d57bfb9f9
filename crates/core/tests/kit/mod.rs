//! A scripted world for the scheduler: a fake clock, a store that keeps what was committed, and a strict server that
//! counts with its own arithmetic. Shares no limiter code with the core.

#![allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    reason = "each test file uses a part of the kit"
)]

use std::collections::{BTreeMap, BTreeSet};

use paceline_core::Core;
use paceline_core::batch::{BatchRule, Batched};
use paceline_core::change::{Change, Stored};
use paceline_core::config::{Algorithm, BudgetConfig, LimitRule};
use paceline_core::ids::{BatchName, BudgetId, CommitId, GroupId, JobId, OrderKey, RequestId, Seq};
use paceline_core::io::{
    Answer, CommitFailure, Effect, Event, Found, Input, ItemAnswer, NoAnswer, Reply, Verdict,
};
use paceline_core::job::{
    BudgetRecord, Card, Check, GroupRecord, Lane, Outcome, Record, Repeat, State,
};
use paceline_core::kind::{Fingerprint, Kind, Likeness, OnFailure};
use paceline_core::scheduler::Bounds;
use paceline_core::signals::Signals;
use paceline_core::time::{Now, Wall};

/// The wall clock at the world's start.
pub const EPOCH: u64 = 1_700_000_000_000;

/// What the server does with the n-th arrival of a job.
#[derive(Clone, Copy, Debug)]
pub enum Script {
    Status(u16),
    RetryAfter(u64),
    Lost,
    Broken,
    /// Carried out, and nothing comes back.
    LostApplied,
}

/// Stands for a connection that broke.
const BROKEN: u16 = 1;

/// A request that reached the server.
#[derive(Clone, Debug)]
pub struct Arrival {
    pub started_at: u64,
    pub counted_at: u64,
    pub id: String,
    pub key: Option<String>,
    pub status: u16,
    pub is_check: bool,
}

/// What the server knows when it answers: what it may say of its limit.
#[derive(Clone, Debug)]
pub struct Moment<'a> {
    pub at: u64,
    pub id: &'a str,
    pub status: u16,
    /// Units left in the window that ends now.
    pub left: u64,
    /// Milliseconds until the oldest of them is free again.
    pub reset_in: u64,
}

/// Writes the signals of an answer.
pub type Says = Box<dyn FnMut(&Moment<'_>) -> Signals>;

/// A server that refuses above `limit` in any sliding window, an entry exactly that old still counting.
pub struct Server {
    pub limit: Option<(usize, u64)>,
    pub arrivals: Vec<Arrival>,
    pub scripts: BTreeMap<String, Vec<Script>>,
    pub says: Option<Says>,
    /// Instants, ascending, at which others spend the limit.
    pub outside: std::collections::VecDeque<u64>,
    /// What becomes of an item of a served batch, each time it comes: its status, or not a word of it.
    pub items: BTreeMap<String, Vec<Script>>,
    /// How often an item took effect.
    pub applied: BTreeMap<String, u32>,
    /// What was answered to each key of a batch.
    keys: BTreeMap<String, Vec<Option<u16>>>,
    /// Jobs that were carried out, once for each time.
    pub effects: Vec<String>,
    admitted: Vec<u64>,
}

impl Server {
    fn arrive(
        &mut self,
        at: u64,
        started_at: u64,
        id: &str,
        key: Option<String>,
        is_check: bool,
    ) -> Option<(u16, Option<u64>)> {
        let script = self.scripts.get(id).and_then(|scripts| {
            let seen = self.arrivals.iter().filter(|arrival| arrival.id == id);
            scripts.get(seen.count()).copied()
        });
        while let Some(other) = self.outside.front().copied().filter(|other| *other <= at) {
            self.outside.pop_front();
            let used = self.used(other).len();
            if self.limit.is_some_and(|(limit, _)| used < limit) {
                self.admitted.push(other);
            }
        }
        let refused = self.limit.and_then(|(limit, window)| {
            let inside = self.used(at);
            (inside.len() >= limit).then(|| inside[0] + window - at)
        });
        let (status, retry) = match (refused, script) {
            (Some(wait), _) => (429, Some(wait)),
            (None, Some(Script::Status(status))) => (status, None),
            (None, Some(Script::RetryAfter(wait))) => (429, Some(wait)),
            (None, Some(Script::Lost | Script::LostApplied)) => (0, None),
            (None, Some(Script::Broken)) => (BROKEN, None),
            (None, None) => (200, None),
        };
        if refused.is_none() {
            self.admitted.push(at);
        }
        let is_applied = status == 200 || matches!(script, Some(Script::LostApplied));
        if refused.is_none() && is_applied && !is_check {
            self.effects.push(id.to_owned());
        }
        self.arrivals.push(Arrival {
            started_at,
            counted_at: at,
            id: id.to_owned(),
            key,
            status,
            is_check,
        });
        (status != 0).then_some((status, retry))
    }

    /// Carries out the items of a batch, once for each key.
    fn carry_out(&mut self, key: Option<&str>, names: &[String]) -> Vec<Option<u16>> {
        if let Some(before) = key.and_then(|key| self.keys.get(key)) {
            return before.clone();
        }
        let items = names.iter().map(|name| {
            let scripts = self
                .items
                .get_mut(name)
                .filter(|scripts| !scripts.is_empty());
            let status = match scripts.map(|scripts| scripts.remove(0)) {
                None => Some(200),
                Some(Script::Status(status)) => Some(status),
                Some(Script::RetryAfter(_)) => Some(429),
                Some(Script::Lost | Script::LostApplied | Script::Broken) => None,
            };
            if status.is_none_or(|status| status == 200) {
                *self.applied.entry(name.clone()).or_default() += 1;
            }
            status
        });
        let items: Vec<Option<u16>> = items.collect();
        if let Some(key) = key {
            self.keys.insert(key.to_owned(), items.clone());
        }
        items
    }

    fn used(&self, at: u64) -> Vec<u64> {
        let window = self.limit.map_or(0, |(_, window)| window);
        let inside = self.admitted.iter().rev().copied();
        let mut inside: Vec<u64> = inside.take_while(|then| at - then <= window).collect();
        inside.reverse();
        inside
    }

    fn signals(&mut self, at: u64, id: &str, status: u16, retry: Option<u64>) -> Signals {
        let used = self.used(at);
        let (limit, window) = self.limit.unwrap_or((0, 0));
        let moment = Moment {
            at,
            id,
            status,
            left: limit.saturating_sub(used.len()) as u64,
            reset_in: used.first().map_or(0, |oldest| oldest + window + 1 - at),
        };
        let said = self.says.as_mut().map(|says| says(&moment));
        let said = said.unwrap_or_default();
        Signals {
            is_rate_limited: verdict(status) == Verdict::Refused,
            retry_after_ms: said.retry_after_ms.or(retry),
            ..said
        }
    }

    /// The most arrivals in any closed window.
    pub fn max_seen(&self, window: u64) -> usize {
        let mut times: Vec<u64> = self
            .arrivals
            .iter()
            .map(|arrival| arrival.counted_at)
            .collect();
        times.sort_unstable();
        let mut from = 0;
        let mut most = 0;
        for (to, at) in times.iter().enumerate() {
            while at - times[from] > window {
                from += 1;
            }
            most = most.max(to + 1 - from);
        }
        most
    }

    pub fn refused(&self) -> usize {
        self.arrivals
            .iter()
            .filter(|arrival| arrival.status == 429)
            .count()
    }

    pub fn ids(&self) -> Vec<&str> {
        self.arrivals
            .iter()
            .map(|arrival| arrival.id.as_str())
            .collect()
    }

    pub fn starts(&self) -> Vec<u64> {
        self.arrivals
            .iter()
            .map(|arrival| arrival.started_at)
            .collect()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Commit(CommitId),
    Arrive {
        seq: Seq,
        attempt: u32,
        id: String,
        key: Option<String>,
        started_at: u64,
        back: u64,
        is_check: bool,
    },
    Answer {
        seq: Seq,
        attempt: u32,
        status: u16,
        found: Option<Found>,
    },
    TimeOut {
        seq: Seq,
        attempt: u32,
    },
}

/// What is durable.
#[derive(Clone, Default)]
pub struct Disk {
    pub batches: BTreeMap<u64, Vec<Card>>,
    pub records: BTreeMap<Seq, Record>,
    pub groups: BTreeMap<GroupId, GroupRecord>,
    pub budgets: BTreeMap<BudgetId, BudgetRecord>,
    pub dropped: BTreeMap<u64, (Vec<JobId>, Wall)>,
}

impl Disk {
    fn apply(&mut self, changes: Vec<Change>) {
        for change in changes {
            match change {
                Change::AddBatch { batch, cards } => {
                    assert!(
                        self.batches.insert(batch.0, cards).is_none(),
                        "batch added twice"
                    );
                }
                Change::PutRecord { seq, record } => {
                    let before = self.records.insert(seq, record.clone());
                    let frozen = before
                        .is_some_and(|old| matches!(old.state, State::Done | State::Cancelled));
                    assert!(!frozen, "a settled record changed: {seq:?}");
                }
                Change::PutGroup { group, record } => {
                    self.groups.insert(group, record);
                }
                Change::PutBudget { budget, record } => {
                    self.budgets.insert(budget, record);
                }
                Change::DropBatch { batch, ids, at } => {
                    self.batches.remove(&batch.0);
                    self.records.retain(|seq, _| seq.batch() != batch);
                    self.dropped.insert(batch.0, (ids, at));
                }
                Change::ForgetIds { batch } => {
                    self.dropped.remove(&batch.0);
                }
                Change::DropGroup { group } => {
                    self.groups.remove(&group);
                }
                other => panic!("unknown change {other:?}"),
            }
        }
    }

    /// The name of a stored job.
    pub fn name(&self, seq: Seq) -> Option<String> {
        let cards = self.batches.get(&seq.batch().0)?;
        Some(cards.get(usize::from(seq.index()))?.id.as_str().to_owned())
    }

    fn stored(&self) -> Stored {
        Stored {
            batches: self
                .batches
                .iter()
                .map(|(no, cards)| (paceline_core::ids::BatchNo(*no), cards.clone()))
                .collect(),
            records: self.records.clone().into_iter().collect(),
            groups: self.groups.clone().into_iter().collect(),
            budgets: self.budgets.clone().into_iter().collect(),
            dropped: self
                .dropped
                .iter()
                .map(|(no, (ids, at))| (paceline_core::ids::BatchNo(*no), ids.clone(), *at))
                .collect(),
        }
    }
}

pub struct World {
    pub core: Core,
    pub now: u64,
    pub server: Server,
    pub disk: Disk,
    pub latency: Box<dyn FnMut() -> (u64, u64)>,
    pub commit_ms: u64,
    /// How many of the next commits fail.
    pub commits_to_fail: u32,
    pub settled: BTreeMap<String, (State, Outcome, u64)>,
    pub settle_order: Vec<String>,
    /// The names of the jobs whose requests made up each request that left, in order.
    pub sent: Vec<Vec<String>>,
    pub replies: Vec<(RequestId, Reply)>,
    pub events: Vec<(u64, Event)>,
    pub groups_settled: Vec<(GroupId, u32, u32, u32)>,
    pub trace: Vec<String>,
    /// Whether effects are written down; that takes most of a long run's time.
    pub is_traced: bool,
    pub in_flight: usize,
    pub max_in_flight: usize,
    said: BTreeMap<(Seq, u32), Signals>,
    /// The items of batches on their way, then what was said of them.
    batches: BTreeMap<(Seq, u32), Vec<String>>,
    said_of_items: BTreeMap<(Seq, u32), Vec<Option<u16>>>,
    queue: BTreeSet<(u64, u64, Due)>,
    pending: BTreeMap<CommitId, Vec<Change>>,
    next_due: u64,
    next_request: u64,
    seed: u64,
}

impl World {
    pub fn new(rules: &[&str], max_in_flight: Option<u64>) -> Self {
        Self::with(budget("api", rules, max_in_flight), 7)
    }

    pub fn with(config: BudgetConfig, seed: u64) -> Self {
        let mut world = Self {
            core: Core::new(seed, Bounds::default()),
            now: 0,
            server: Server {
                limit: None,
                arrivals: Vec::new(),
                scripts: BTreeMap::new(),
                says: None,
                outside: std::collections::VecDeque::new(),
                items: BTreeMap::new(),
                applied: BTreeMap::new(),
                keys: BTreeMap::new(),
                effects: Vec::new(),
                admitted: Vec::new(),
            },
            disk: Disk::default(),
            latency: Box::new(|| (5, 5)),
            commit_ms: 0,
            commits_to_fail: 0,
            settled: BTreeMap::new(),
            settle_order: Vec::new(),
            sent: Vec::new(),
            replies: Vec::new(),
            events: Vec::new(),
            groups_settled: Vec::new(),
            trace: Vec::new(),
            is_traced: true,
            in_flight: 0,
            max_in_flight: 0,
            said: BTreeMap::new(),
            batches: BTreeMap::new(),
            said_of_items: BTreeMap::new(),
            queue: BTreeSet::new(),
            pending: BTreeMap::new(),
            next_due: 0,
            next_request: 0,
            seed,
        };
        world.input(Input::Recovered(Stored::default()));
        world.input(Input::Configure(vec![config]));
        world
    }

    /// Kills the host: what was not committed is gone, requests that left arrive all the same.
    pub fn crash_and_restart(&mut self, configs: Vec<BudgetConfig>) {
        self.pending.clear();
        self.queue
            .retain(|(_, _, due)| matches!(due, Due::Arrive { .. }));
        self.seed += 1;
        self.core = Core::new(self.seed, Bounds::default());
        self.in_flight = 0;
        let stored = self.disk.stored();
        self.input(Input::Recovered(stored));
        self.input(Input::Configure(configs));
    }

    pub fn clock(&self) -> Now {
        Now::from_millis(self.now, EPOCH + self.now)
    }

    pub fn input(&mut self, input: Input) {
        let now = self.clock();
        self.core.handle(input, now).expect("drained");
        while let Some(effect) = self.core.poll_effect() {
            if self.is_traced {
                self.trace.push(format!("{} {effect:?}", self.now));
            }
            self.perform(effect);
        }
        assert_eq!(
            self.core.unaccounted(),
            0,
            "a job is nowhere at {}",
            self.now
        );
    }

    pub fn enqueue(&mut self, cards: Vec<Card>) -> RequestId {
        self.next_request += 1;
        let request = RequestId(self.next_request);
        self.input(Input::Enqueue { request, cards });
        request
    }

    pub fn request(&mut self, make: impl FnOnce(RequestId) -> Input) -> RequestId {
        self.next_request += 1;
        let request = RequestId(self.next_request);
        self.input(make(request));
        request
    }

    pub fn reply(&self, request: RequestId) -> Option<&Reply> {
        self.replies
            .iter()
            .find(|(id, _)| *id == request)
            .map(|(_, reply)| reply)
    }

    /// Goes on to the next thing that is due, at most to `until`; false when nothing is due by then.
    pub fn step(&mut self, until: u64) -> bool {
        let timeout = self
            .core
            .poll_timeout()
            .map(|(at, _)| at.as_millis().max(self.now));
        let due = self.queue.first().map(|(at, _, _)| *at);
        let next = match (due, timeout) {
            (Some(due), Some(timeout)) => due.min(timeout),
            (Some(at), None) | (None, Some(at)) => at,
            (None, None) => return false,
        };
        if next > until {
            return false;
        }
        self.now = next;
        if due == Some(next) {
            let (_, _, due) = self.queue.pop_first().expect("due");
            self.happen(due);
        } else {
            self.input(Input::Wake);
        }
        true
    }

    pub fn run_until(&mut self, until: u64) {
        while self.step(until) {}
        self.now = self.now.max(until);
    }

    /// Runs until nothing is due any more; panics when that takes more than `bound`.
    pub fn run(&mut self, bound: u64) {
        while self.step(bound) {}
        assert!(
            self.queue.is_empty() && self.core.poll_timeout().is_none(),
            "not idle by {bound}"
        );
    }

    pub fn at(&mut self, millis: u64) -> &mut Self {
        self.run_until(millis);
        self
    }

    fn later(&mut self, delay: u64, due: Due) {
        self.next_due += 1;
        self.queue.insert((self.now + delay, self.next_due, due));
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Commit {
                commit, changes, ..
            } => {
                self.pending.insert(commit, changes);
                self.later(self.commit_ms, Due::Commit(commit));
            }
            Effect::Dispatch {
                seq,
                id,
                attempt,
                idempotency_key,
                timeout_ms,
                batch,
                is_check,
                ..
            } => {
                let record = self
                    .disk
                    .records
                    .get(&seq)
                    .expect("a dispatch without its commit");
                assert_eq!(
                    (record.state, record.attempt),
                    (State::Sending, attempt),
                    "dispatch before its claim"
                );
                let parts = self.core.parts(seq);
                let name = |seq: &Seq| self.disk.name(*seq).expect("a part that is stored");
                let names: Vec<String> = parts.iter().map(name).collect();
                if batch.is_some() {
                    for part in &parts {
                        let state = self.disk.records.get(part).map(|record| record.state);
                        assert_eq!(state, Some(State::Sending), "an item before its claim");
                    }
                    self.batches.insert((seq, attempt), names.clone());
                }
                self.sent.push(names);
                let (there, back) = (self.latency)();
                self.in_flight += 1;
                self.max_in_flight = self.max_in_flight.max(self.in_flight);
                let id = id.as_str().to_owned();
                let started_at = self.now;
                self.later(
                    there,
                    Due::Arrive {
                        seq,
                        attempt,
                        id,
                        key: idempotency_key,
                        started_at,
                        back,
                        is_check,
                    },
                );
                self.later(u64::from(timeout_ms), Due::TimeOut { seq, attempt });
            }
            Effect::Reply { request, reply } => {
                if let Reply::Accepted { jobs } = &reply {
                    for (id, _, _) in jobs {
                        let stored = self
                            .disk
                            .batches
                            .values()
                            .flatten()
                            .any(|card| card.id == *id);
                        let dropped = self.disk.dropped.values().any(|(ids, _)| ids.contains(id));
                        assert!(stored || dropped, "{id} accepted before its commit");
                    }
                }
                self.replies.push((request, reply));
            }
            Effect::Settled {
                seq,
                id,
                state,
                outcome,
                ..
            } => {
                let record = self
                    .disk
                    .records
                    .get(&seq)
                    .expect("settled without a record");
                assert_eq!(record.state, state, "settled before its outcome was stored");
                let id = id.as_str().to_owned();
                let now = self.now;
                let before = self.settled.insert(id.clone(), (state, outcome, now));
                let again = before.is_none_or(|(old, _, _)| old == State::Failed);
                assert!(again, "{id} settled twice");
                self.settle_order.push(id);
            }
            Effect::GroupSettled {
                group,
                done,
                failed,
                cancelled,
            } => {
                self.groups_settled.push((group, done, failed, cancelled));
            }
            Effect::Event(event) => self.events.push((self.now, event)),
            other => panic!("unknown effect {other:?}"),
        }
    }

    fn happen(&mut self, due: Due) {
        match due {
            Due::Commit(commit) => {
                let changes = self.pending.remove(&commit).expect("pending");
                if self.commits_to_fail > 0 {
                    self.commits_to_fail -= 1;
                    return self.input(Input::CommitFailed(commit, CommitFailure::Broken));
                }
                self.disk.apply(changes);
                self.input(Input::Committed(commit));
            }
            Due::Arrive {
                seq,
                attempt,
                id,
                key,
                started_at,
                back,
                is_check,
            } => {
                let batch_key = key.clone();
                let answer = self.server.arrive(self.now, started_at, &id, key, is_check);
                let is_carried_out =
                    answer.is_none_or(|(status, _)| matches!(status, 200 | BROKEN));
                if let Some(names) = self
                    .batches
                    .remove(&(seq, attempt))
                    .filter(|_| is_carried_out)
                {
                    let items = self.server.carry_out(batch_key.as_deref(), &names);
                    self.said_of_items.insert((seq, attempt), items);
                }
                if let Some((status, retry)) = answer {
                    let found = (is_check && status == 200).then(|| {
                        if self.server.effects.contains(&id) {
                            Found::Applied
                        } else {
                            Found::NotApplied
                        }
                    });
                    let signals = self.server.signals(self.now, &id, status, retry);
                    self.said.insert((seq, attempt), signals);
                    self.later(
                        back,
                        Due::Answer {
                            seq,
                            attempt,
                            status,
                            found,
                        },
                    );
                }
            }
            Due::Answer {
                seq,
                attempt,
                status,
                found,
            } => {
                self.drop_timeout(seq, attempt);
                self.in_flight = self.in_flight.saturating_sub(1);
                if status == BROKEN {
                    return self.input(Input::NoAnswer {
                        seq,
                        attempt,
                        cause: NoAnswer::Network,
                    });
                }
                let verdict = found.map_or(verdict(status), Verdict::Checked);
                let items = self.said_of_items.remove(&(seq, attempt));
                let answer = Answer {
                    status,
                    verdict,
                    signals: self.said.remove(&(seq, attempt)).unwrap_or_default(),
                    text: None,
                    items: items
                        .map(|items| items.into_iter().map(|item| item.map(said)).collect()),
                };
                self.input(Input::Answered {
                    seq,
                    attempt,
                    ended_at: self.clock().mono,
                    answer,
                });
            }
            Due::TimeOut { seq, attempt } => {
                self.in_flight = self.in_flight.saturating_sub(1);
                self.input(Input::NoAnswer {
                    seq,
                    attempt,
                    cause: NoAnswer::TimedOut,
                });
            }
        }
    }

    fn drop_timeout(&mut self, seq: Seq, attempt: u32) {
        self.queue
            .retain(|(_, _, due)| *due != Due::TimeOut { seq, attempt });
    }
}

fn said(status: u16) -> ItemAnswer {
    ItemAnswer {
        status,
        verdict: verdict(status),
        text: None,
    }
}

fn verdict(status: u16) -> Verdict {
    match status {
        200..=299 => Verdict::Success,
        429 => Verdict::Refused,
        401 => Verdict::Unauthorized,
        408 | 500..=599 => Verdict::Unavailable,
        _ => Verdict::Final,
    }
}

pub fn budget(id: &str, rules: &[&str], max_in_flight: Option<u64>) -> BudgetConfig {
    let rules = rules
        .iter()
        .map(|rule| LimitRule::parse(rule, Algorithm::ArrivalLog).expect("rule"))
        .collect();
    BudgetConfig::new(
        BudgetId::parse(id).expect("id"),
        rules,
        max_in_flight,
        1_000,
        Some(86_400_000),
    )
    .expect("budget")
}

/// A budget with one batch of up to so many items.
pub fn batching(rules: &[&str], max_in_flight: Option<u64>, items: u64) -> BudgetConfig {
    let rule = BatchRule::new(items, 1_000_000).expect("a rule");
    let name = BatchName::parse("contacts").expect("a name");
    let config = budget("api", rules, max_in_flight);
    config.with_batches([(name, rule)].into()).expect("a batch")
}

pub fn bucket(id: &str, limit: u64, window_ms: u64) -> BudgetConfig {
    let rule = LimitRule::new(limit, window_ms, Algorithm::TokenBucket).expect("rule");
    BudgetConfig::new(
        BudgetId::parse(id).expect("id"),
        vec![rule],
        None,
        1_000,
        None,
    )
    .expect("budget")
}

pub fn card(id: &str) -> Card {
    Card {
        id: JobId::parse(id).expect("id"),
        budget: BudgetId::parse("api").expect("id"),
        lane: Lane::Bulk,
        key: None,
        group: None,
        principal: String::new(),
        cost: 1,
        repeat: Repeat::Always,
        idempotency_key: Some(format!("key-{id}")),
        not_before: None,
        expires_at: None,
        timeout_ms: 15_000,
        created_at: Wall::from_millis(EPOCH),
        size: 100,
        ephemeral: false,
        kind: Kind::Custom,
        likeness: None,
        supersedes: false,
        on_failure: OnFailure::Continue,
        batch: None,
        check: None,
    }
}

pub fn cards(prefix: &str, count: usize) -> Vec<Card> {
    (0..count).map(|n| card(&format!("{prefix}{n}"))).collect()
}

pub trait CardExt {
    fn key(self, key: &str) -> Card;
    fn group(self, group: &str) -> Card;
    fn lane(self, lane: Lane) -> Card;
    fn cost(self, cost: u32) -> Card;
    fn budget(self, budget: &str) -> Card;
    fn create(self) -> Card;
    fn keyless(self) -> Card;
    fn checked(self, after_ms: u32) -> Card;
    fn edit(self, kind: Kind, address: &str) -> Card;
    fn body(self, body: &str) -> Card;
    fn batch(self, name: &str) -> Card;
}

impl CardExt for Card {
    fn key(mut self, key: &str) -> Card {
        self.key = Some(OrderKey::parse(key).expect("key"));
        self
    }

    fn group(mut self, group: &str) -> Card {
        self.group = Some(GroupId::parse(group).expect("group"));
        self
    }

    fn lane(mut self, lane: Lane) -> Card {
        self.lane = lane;
        self
    }

    fn cost(mut self, cost: u32) -> Card {
        self.cost = cost;
        self
    }

    fn budget(mut self, budget: &str) -> Card {
        self.budget = BudgetId::parse(budget).expect("budget");
        self
    }

    fn create(mut self) -> Card {
        self.repeat = Repeat::WithKey;
        self
    }

    fn keyless(mut self) -> Card {
        self.idempotency_key = None;
        self
    }

    fn checked(mut self, after_ms: u32) -> Card {
        self.repeat = Repeat::WithKey;
        self.check = Some(Check { after_ms });
        self
    }

    fn edit(mut self, kind: Kind, address: &str) -> Card {
        self.kind = kind;
        self.likeness = Some(Likeness {
            place: Fingerprint::of([address]),
            form: Fingerprint::of(["PATCH"]),
            body: None,
        });
        self
    }

    fn batch(mut self, name: &str) -> Card {
        self.batch = Some(Batched {
            name: BatchName::parse(name).expect("a name"),
            form: Fingerprint::of(["POST"]),
        });
        self
    }

    fn body(mut self, body: &str) -> Card {
        if let Some(likeness) = &mut self.likeness {
            likeness.body = Some(Fingerprint::of([body]));
        }
        self
    }
}
