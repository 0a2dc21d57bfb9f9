//! A browser around one host: the real memory store, tabs that speak JSON, a transport that answers as told, a clock
//! that goes on only when told. Checks at every output what must hold at all times.

mod messages;

use std::collections::{BTreeMap, VecDeque};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use paceline_core::ids::{BatchNo, JobId, Seq};
use paceline_core::io::{Found, NoAnswer};
use paceline_core::job::{Card, Record, State};
use paceline_core::scheduler::Bounds;
use paceline_core::time::{Mono, Now, Wall};
use paceline_host::{BodyNeed, Host, HostConfig, HostInput, HostOutput, Items, TabId};
use paceline_protocol::batch::BatchForm;
use paceline_protocol::{Head, Request};
use paceline_store::memory::MemoryStore;
use paceline_store::{Store, StoreError, Transaction};
use serde_json::{Value, json};

pub(crate) use self::messages::{api, job, job_with};
use self::messages::{build, stored_requests};

/// The wall clock at the world's start.
const EPOCH: u64 = 1_700_000_000_000;

/// A request that the host has sent.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) seq: Seq,
    pub(crate) attempt: u32,
    pub(crate) request: Value,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: BodyNeed,
    /// The credentials that it was sent with.
    pub(crate) secrets: Vec<(String, String)>,
    pub(crate) at_ms: u64,
    pub(crate) is_check: bool,
    /// The function of the worker that is to read its answer.
    pub(crate) dialect: Option<String>,
    is_live: bool,
}

impl Sent {
    /// The last part of its URL.
    pub(crate) fn name(&self) -> &str {
        let url = self.request["url"]
            .as_str()
            .expect("a stored request has a URL");
        url.rsplit('/').next().unwrap_or(url)
    }
}

#[derive(Debug)]
enum Disk {
    Store(Transaction<Value>),
    Read(Vec<BatchNo>),
}

/// Everything around one host. `crash` ends the host and starts the next one on the same store.
pub(crate) struct World {
    host: Host<Value>,
    pub(crate) store: MemoryStore<Value>,
    pub(crate) sent: Vec<Sent>,
    pub(crate) stopped: Option<StoreError>,
    /// It has yielded to a newer host.
    pub(crate) is_retired: bool,
    /// What each transaction read beside what it wrote.
    pub(crate) reads: Vec<Vec<BatchNo>>,
    posts: Vec<(u64, TabId, Value)>,
    scripts: BTreeMap<String, VecDeque<u16>>,
    disk: VecDeque<Disk>,
    is_disk_slow: bool,
    are_requests_gone: bool,
    mono_ms: u64,
    wall_ahead_ms: u64,
    lives: u32,
    next_re: u32,
    bounds: Bounds,
}

impl World {
    /// A host on an empty store, without tabs.
    pub(crate) fn new() -> Self {
        Self::bounded(Bounds::default())
    }

    /// A host whose queue has these bounds.
    pub(crate) fn bounded(bounds: Bounds) -> Self {
        let store = MemoryStore::new();
        let host = open(&store, 1, bounds, Now::from_millis(0, EPOCH));
        let mut world = Self {
            host,
            store,
            sent: Vec::new(),
            stopped: None,
            is_retired: false,
            reads: Vec::new(),
            posts: Vec::new(),
            scripts: BTreeMap::new(),
            disk: VecDeque::new(),
            is_disk_slow: false,
            are_requests_gone: false,
            mono_ms: 0,
            wall_ahead_ms: 0,
            lives: 1,
            next_re: 0,
            bounds,
        };
        world.drain();
        world
    }

    /// A host with two tabs and one budget, `api`, of 100 a second for `https://api.test/*`.
    pub(crate) fn with_tabs() -> Self {
        let mut world = Self::new();
        world.hello(1);
        world.hello(2);
        world
    }

    /// Kills the host and starts the next one on what is stored; what was on its way to the store is gone.
    pub(crate) fn crash(&mut self) {
        self.disk.clear();
        self.store.crash();
        self.lives += 1;
        self.stopped = None;
        self.is_retired = false;
        for sent in &mut self.sent {
            sent.is_live = false;
        }
        self.host = open(&self.store, self.lives, self.bounds, self.now());
        self.drain();
    }

    /// Raises the epoch, as a new owner elsewhere does.
    pub(crate) fn another_owner_starts(&self) {
        at_once(self.store.open(Wall::from_millis(EPOCH))).expect("opens");
    }

    /// Says hello for a tab, with the budget `api`.
    pub(crate) fn hello(&mut self, tab: TabId) -> f64 {
        self.tell(tab, json!({ "type": "hello", "budgets": [api()] }))
    }

    /// Sends a message of a tab, adding its head. Returns the number that an answer carries as `re`.
    pub(crate) fn tell(&mut self, tab: TabId, message: Value) -> f64 {
        self.tell_sized(tab, message, None)
    }

    /// The same, with the size of each job's request.
    pub(crate) fn tell_sized(&mut self, tab: TabId, message: Value, size: Option<u32>) -> f64 {
        self.next_re += 1;
        let re = f64::from(self.next_re);
        let mut message = message;
        let fields = message.as_object_mut().expect("a message is an object");
        fields.entry("paceline").or_insert(json!(1));
        fields.insert("id".into(), json!(re));
        self.receive(tab, &message, size);
        re
    }

    /// Sends what a tab sends, as the worker's shell hands it over.
    fn receive(&mut self, tab: TabId, message: &Value, size: Option<u32>) {
        let head: Head = serde_json::from_value(message.clone()).expect("the shell checks heads");
        let request = head
            .check()
            .and_then(|()| Request::parse(&head.kind, message));
        let bodies = stored_requests(message, size);
        self.request(tab, head.id, request, bodies);
    }

    /// Hands in a request that JSON cannot carry.
    pub(crate) fn request(
        &mut self,
        tab: TabId,
        re: f64,
        request: Result<Request, paceline_protocol::WireError>,
        bodies: Vec<(Value, u32)>,
    ) {
        self.input(HostInput::Message {
            tab,
            re,
            request,
            bodies,
        });
    }

    /// Enqueues a PATCH to the last part of a URL of `api`, under that name.
    pub(crate) fn enqueue(&mut self, tab: TabId, name: &str) -> f64 {
        self.tell(tab, json!({ "type": "enqueue", "job": job(name) }))
    }

    /// A newer host waits for this one.
    pub(crate) fn retire(&mut self) {
        self.input(HostInput::Retire);
    }

    /// The store's connection is closed.
    pub(crate) fn store_lost(&mut self) {
        self.input(HostInput::StoreLost);
    }

    /// The tab's port has closed.
    pub(crate) fn leave(&mut self, tab: TabId) {
        self.input(HostInput::TabLeft(tab));
    }

    /// The answer to a request.
    #[track_caller]
    pub(crate) fn reply(&self, re: f64) -> &Value {
        let replies: Vec<&Value> = self
            .posts
            .iter()
            .map(|(_, _, post)| post)
            .filter(|post| post["re"].as_f64() == Some(re))
            .collect();
        assert_eq!(replies.len(), 1, "the answers to {re}: {replies:?}");
        replies[0]
    }

    /// Whether a request has been answered.
    pub(crate) fn is_answered(&self, re: f64) -> bool {
        self.posts
            .iter()
            .any(|(_, _, post)| post["re"].as_f64() == Some(re))
    }

    /// What a tab was told of a type, in order.
    pub(crate) fn heard(&self, tab: TabId, kind: &str) -> Vec<&Value> {
        self.posts
            .iter()
            .filter(|(_, to, post)| *to == tab && post["type"] == kind)
            .map(|(_, _, post)| post)
            .collect()
    }

    /// All that all tabs were told, as text.
    pub(crate) fn heard_in_all(&self) -> String {
        let posts = self.posts.iter().map(|(_, _, post)| post.to_string());
        posts.collect()
    }

    /// When a tab was told something of a type.
    pub(crate) fn heard_at(&self, tab: TabId, kind: &str) -> Vec<u64> {
        self.posts
            .iter()
            .filter(|(_, to, post)| *to == tab && post["type"] == kind)
            .map(|(at, _, _)| *at)
            .collect()
    }

    /// The last parts of the URLs of all requests that were sent, in order.
    pub(crate) fn names_sent(&self) -> Vec<&str> {
        self.sent.iter().map(Sent::name).collect()
    }

    /// What the server answers to a job, attempt by attempt; 200 when it says no more.
    pub(crate) fn script(&mut self, name: &str, statuses: &[u16]) {
        self.scripts
            .insert(name.to_owned(), statuses.iter().copied().collect());
    }

    /// Answers every request that is on its way.
    pub(crate) fn answer_all(&mut self) {
        while let Some(at) = self.sent.iter().position(|sent| sent.is_live) {
            let script = self.scripts.get_mut(self.sent[at].name());
            let status = script.and_then(VecDeque::pop_front).unwrap_or(200);
            self.answer(at, status, &[]);
        }
    }

    /// Answers the n-th request.
    pub(crate) fn answer(&mut self, n: usize, status: u16, headers: &[(&str, &str)]) {
        self.answer_found(n, status, headers, None);
    }

    /// Answers the n-th request, of which the function of the worker says something.
    pub(crate) fn answer_told(&mut self, n: usize, status: u16, told: Value) {
        let sent = &mut self.sent[n];
        sent.is_live = false;
        let (seq, attempt) = (sent.seq, sent.attempt);
        self.input(HostInput::Answered {
            seq,
            attempt,
            status,
            headers: Vec::new(),
            text: None,
            found: None,
            told: Some(serde_json::from_value(told).expect("what a worker takes out")),
            ended_at: Mono::from_millis(self.mono_ms),
            response: json!({ "status": status }),
            items: Items::Shared,
        });
    }

    /// Answers the n-th request, a check.
    pub(crate) fn answer_check(&mut self, n: usize, status: u16, found: Found) {
        assert!(self.sent[n].is_check, "no check");
        self.answer_found(n, status, &[], Some(found));
    }

    fn answer_found(
        &mut self,
        n: usize,
        status: u16,
        headers: &[(&str, &str)],
        found: Option<Found>,
    ) {
        let sent = &mut self.sent[n];
        sent.is_live = false;
        let (seq, attempt) = (sent.seq, sent.attempt);
        let headers = headers
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        self.input(HostInput::Answered {
            seq,
            attempt,
            status,
            headers: headers.collect(),
            text: None,
            found,
            told: None,
            ended_at: Mono::from_millis(self.mono_ms),
            response: json!({ "status": status }),
            items: Items::Shared,
        });
    }

    /// Answers the n-th request with 200 and what is said of its items.
    pub(crate) fn answer_items(&mut self, n: usize, items: Items<Value>) {
        let sent = &mut self.sent[n];
        sent.is_live = false;
        let (seq, attempt) = (sent.seq, sent.attempt);
        self.input(HostInput::Answered {
            seq,
            attempt,
            status: 200,
            headers: Vec::new(),
            text: None,
            found: None,
            told: None,
            ended_at: Mono::from_millis(self.mono_ms),
            response: json!({ "status": 200, "whole": true }),
            items,
        });
    }

    /// Ends the n-th request without an answer.
    pub(crate) fn lose(&mut self, n: usize, cause: NoAnswer) {
        let sent = &mut self.sent[n];
        sent.is_live = false;
        let (seq, attempt) = (sent.seq, sent.attempt);
        self.input(HostInput::NoAnswer {
            seq,
            attempt,
            cause,
        });
    }

    /// Answers everything and lets time pass until the host has nothing more to do.
    pub(crate) fn run(&mut self) {
        for _ in 0..10_000 {
            self.answer_all();
            let Some((at, _)) = self.host.poll_timeout() else {
                return;
            };
            self.pass(at.as_millis().saturating_sub(self.mono_ms).max(1));
        }
        panic!("the host never comes to rest");
    }

    /// Lets time pass, waking the host whenever it asks for it.
    pub(crate) fn pass(&mut self, ms: u64) {
        let end = self.mono_ms + ms;
        while let Some(at) = self.timer().filter(|at| *at <= end) {
            self.mono_ms = at.max(self.mono_ms + 1);
            self.input(HostInput::Wake);
        }
        self.mono_ms = end.max(self.mono_ms);
    }

    /// Lets the wall clock run while the host is frozen.
    pub(crate) fn freeze(&mut self, ms: u64) {
        self.wall_ahead_ms += ms;
    }

    /// Sets the wall clock back, no further than it was frozen ahead.
    pub(crate) fn set_back(&mut self, ms: u64) {
        self.wall_ahead_ms -= ms;
    }

    /// When the host wants to be woken.
    pub(crate) fn timer(&self) -> Option<u64> {
        self.host.poll_timeout().map(|(at, _)| at.as_millis())
    }

    /// From now on the store finds no requests.
    pub(crate) fn lose_requests(&mut self) {
        self.are_requests_gone = true;
    }

    /// From now on the store answers only when told.
    pub(crate) fn slow_disk(&mut self) {
        self.is_disk_slow = true;
    }

    /// The store answers at once again.
    pub(crate) fn fast_disk(&mut self) {
        self.is_disk_slow = false;
        while self.disk_answers() {}
    }

    /// The store carries out the oldest operation; tells whether there was one.
    pub(crate) fn disk_answers(&mut self) -> bool {
        let input = match self.disk.pop_front() {
            None => return false,
            Some(Disk::Store(transaction)) => {
                let mut done = at_once(self.store.commit(transaction));
                if let Ok(read) = &mut done
                    && self.are_requests_gone
                {
                    read.iter_mut().for_each(|(_, bodies)| *bodies = None);
                }
                HostInput::StoreDone(done)
            }
            Some(Disk::Read(batches)) => {
                HostInput::BodiesRead(at_once(self.store.read_bodies(batches)))
            }
        };
        self.input(input);
        true
    }

    /// How many operations the store has not answered.
    pub(crate) fn disk_pending(&self) -> usize {
        self.disk.len()
    }

    /// The names of all stored jobs.
    pub(crate) fn stored_names(&self) -> Vec<String> {
        let cards = self.stored_cards().into_iter();
        cards.map(|card| card.id.as_str().to_owned()).collect()
    }

    /// The cards of all stored jobs.
    pub(crate) fn stored_cards(&self) -> Vec<Card> {
        let batches = self.store.stored().batches.into_iter();
        batches.flat_map(|(_, cards)| cards).collect()
    }

    /// The record of a stored job.
    pub(crate) fn record(&self, name: &str) -> Option<Record> {
        let stored = self.store.stored();
        let id = JobId::parse(name).expect("a name");
        let seq = stored.batches.iter().find_map(|(batch, cards)| {
            let index = cards.iter().position(|card| card.id == id)?;
            Some(Seq::new(*batch, u8::try_from(index).ok()?))
        })?;
        record_of(&self.store, seq)
    }

    /// The stored request of a job's batch, as it is on the disk.
    pub(crate) fn stored_requests(&self) -> Vec<Value> {
        let batches: Vec<BatchNo> = self
            .store
            .stored()
            .batches
            .iter()
            .map(|(no, _)| *no)
            .collect();
        let read = at_once(self.store.read_bodies(batches)).expect("reads");
        read.into_iter()
            .flat_map(|(_, bodies)| bodies.unwrap_or_default())
            .collect()
    }

    fn now(&self) -> Now {
        Now::from_millis(self.mono_ms, EPOCH + self.mono_ms + self.wall_ahead_ms)
    }

    fn input(&mut self, input: HostInput<Value>) {
        let now = self.now();
        self.host.handle(input, now);
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(output) = self.host.poll_output() {
            self.perform(output);
        }
        if !self.is_disk_slow {
            self.disk_answers();
        }
    }

    fn perform(&mut self, output: HostOutput<Value>) {
        assert!(
            self.stopped.is_none() && !self.is_retired,
            "after its stop came {output:?}"
        );
        match output {
            HostOutput::Post {
                tab,
                stamp,
                message,
                response,
                requests,
            } => {
                let post = build(&stamp, &message, response, requests);
                self.check_post(&post);
                self.posts.push((self.mono_ms, tab, post));
            }
            HostOutput::Store(transaction) => {
                let is_one = !self.disk.iter().any(|disk| matches!(disk, Disk::Store(_)));
                assert!(is_one, "two transactions at a time");
                self.reads.push(transaction.read_bodies.clone());
                self.disk.push_back(Disk::Store(transaction));
            }
            HostOutput::Read(batches) => self.disk.push_back(Disk::Read(batches)),
            HostOutput::Send {
                seq,
                attempt,
                request,
                later,
                batch,
                headers,
                body,
                secrets,
                is_check,
                dialect,
                ..
            } => {
                let request = match batch {
                    Some(form) => as_items(&form, request, later),
                    None => laid_over(request, later),
                };
                let record = record_of(&self.store, seq).expect("a claim before its request");
                assert_eq!((record.state, record.attempt), (State::Sending, attempt));
                self.sent.push(Sent {
                    seq,
                    attempt,
                    request,
                    headers,
                    body,
                    is_check,
                    dialect: dialect.map(|name| name.to_string()),
                    secrets: secrets.reveal().collect(),
                    at_ms: self.mono_ms,
                    is_live: true,
                });
            }
            HostOutput::Stop(error) => self.stopped = Some(error),
            HostOutput::Retired => self.is_retired = true,
        }
    }

    /// What a tab is told of a job is stored.
    fn check_post(&self, post: &Value) {
        let name = post["job"]["id"].as_str().unwrap_or_default();
        match post["type"].as_str() {
            Some("accepted") if !name.is_empty() => {
                let stored = self.store.stored();
                let mut dropped = stored.dropped.iter().flat_map(|(_, ids, _)| ids);
                let is_known = self.stored_names().iter().any(|stored| stored == name)
                    || dropped.any(|id| id.as_str() == name);
                assert!(is_known, "{name} was accepted and is not stored");
            }
            Some("settled") => {
                let record = self.record(name).expect("a record of a settled job");
                assert_eq!(json!(record.state), post["job"]["state"], "{name}");
            }
            _ => {}
        }
    }
}

/// Lays the bodies of later requests over that of the first, as the worker does.
fn as_items(form: &BatchForm, first: Value, others: Vec<Value>) -> Value {
    let items: Vec<Value> = std::iter::once(first).chain(others).collect();
    let items: Vec<&Value> = items.iter().map(|item| &item["body"]).collect();
    json!({ "url": form.url, "method": form.method, "body": { form.items.as_str(): items } })
}

fn laid_over(mut request: Value, later: Vec<Value>) -> Value {
    for request_above in later {
        let above = request_above["body"].as_object().expect("an object");
        let body = request["body"].as_object_mut().expect("an object");
        body.extend(
            above
                .iter()
                .map(|(field, value)| (field.clone(), value.clone())),
        );
    }
    request
}

fn open(store: &MemoryStore<Value>, life: u32, bounds: Bounds, now: Now) -> Host<Value> {
    let opened = at_once(store.open(now.wall)).expect("opens");
    let config = HostConfig {
        kind: "shared-worker".into(),
        instance: format!("life-{life}"),
        version: "1.2.3".into(),
        durable: true,
        seed: u64::from(life),
        bounds,
        dialects: ["mine".to_owned()].into(),
    };
    Host::new(config, opened, now)
}

fn record_of(store: &MemoryStore<Value>, seq: Seq) -> Option<Record> {
    let records = store.stored().records;
    let found = records.into_iter().find(|(other, _)| *other == seq);
    found.map(|(_, record)| record)
}

/// Runs a future that does not wait.
fn at_once<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("the memory store answers at once"),
    }
}
