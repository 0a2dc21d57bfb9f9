//! Carries out the transitions of the plan.

use paceline_core::io::Network;
use paceline_host::HostInput;
use paceline_protocol::Request;
use paceline_protocol::job::JobMessage;
use paceline_protocol::request::Enqueue;
use serde_json::{Value, json};

use super::World;
use crate::events::Event;
use crate::message;
use crate::model::pacing;
use crate::profile::Terms;
use crate::tab::Tab;
use crate::transition::{Transition, Wish};

/// How far back the clock is set in one run, in all.
const MAX_SET_BACK_MS: u64 = 600_000;
/// Numbers of requests that the client never gives.
const FOREIGN: u64 = 1_000_000_000;
/// A sleep that no connection outlives.
const DEAD_CONNECTION_MS: u64 = 30_000;
/// How long a host needs to notice that a page has gone.
const NOTICE_MS: u64 = 200;

impl World {
    /// Carries out one transition.
    pub(super) fn act(&mut self, index: usize) {
        let transition = self.plan[index].transition;
        self.trace
            .note(self.now_ms, format_args!("-- {transition:?}"));
        match transition {
            Transition::Server { api, times, fault } => self.servers[api].plan_fault(fault, times),
            Transition::Offline { ms } => self.go_offline(ms),
            Transition::Crash { after_ms } => self.crash(after_ms),
            Transition::CrashAmidOutputs { outputs } => {
                if let Some(life) = self.owner {
                    self.lives[life].outputs_left = Some(outputs);
                }
            }
            Transition::TakeOver => self.plan_start(0),
            Transition::Release { terms, is_asked } => self.release(terms, is_asked),
            Transition::Freeze { ms } => {
                if let Some(life) = self.owner {
                    self.freeze(life, ms);
                }
            }
            Transition::Sleep { ms } => self.sleep(ms),
            Transition::SetClock { by_ms } => self.set_clock(by_ms),
            Transition::Stumble { ms } => self.clocks.stumble(ms),
            Transition::Disk { times, fault } => {
                self.model.pacing.split();
                self.disk_faults.extend((0..times).map(|_| fault));
            }
            Transition::SlowDisk { ms, for_ms } => {
                self.slow_disk_ms = ms;
                self.events.push(self.now_ms + for_ms, Event::DiskRecovers);
            }
            Transition::DiskLost => {
                if let Some(life) = self.owner {
                    self.feed(life, HostInput::StoreLost);
                }
            }
            Transition::Enqueue { .. }
            | Transition::EnqueueMany { .. }
            | Transition::EnqueueAgain { .. }
            | Transition::BulkOfKnown { .. }
            | Transition::Cancel { .. }
            | Transition::CancelGroup { .. }
            | Transition::Retry { .. }
            | Transition::RetryGroup { .. }
            | Transition::Hold { .. }
            | Transition::Resume { .. }
            | Transition::Subscribe { .. }
            | Transition::Unsubscribe { .. }
            | Transition::Snapshot { .. }
            | Transition::Query { .. }
            | Transition::Configure { .. }
            | Transition::SetLimits { .. }
            | Transition::Close { .. }
            | Transition::Reload { .. }
            | Transition::Garbage { .. }
            | Transition::Flood { .. } => self.act_in_tab(transition),
        }
    }

    fn act_in_tab(&mut self, transition: Transition) {
        match transition {
            Transition::Enqueue { tab, wish } => {
                let job = self.job(&wish);
                self.in_tab(tab, |tab| tab.enqueue(job));
            }
            Transition::EnqueueMany { tab, jobs, wish } => self.enqueue_many(tab, jobs, &wish),
            Transition::EnqueueAgain { tab, pick } => {
                let known = self.tabs[tab].known.clone();
                if let Some(job) = picked(&known, pick) {
                    self.in_tab(tab, |tab| tab.enqueue(job.clone()));
                }
            }
            Transition::BulkOfKnown { tab } => {
                let known = self.tabs[tab].known.iter().rev().take(5);
                let mut jobs: Vec<Value> = known.cloned().collect();
                jobs.dedup();
                if !jobs.is_empty() {
                    let group = self.fresh_name("group");
                    self.in_tab(tab, |tab| tab.enqueue_many(&group, jobs));
                }
            }
            Transition::Cancel { tab, pick } => {
                if let Some(id) = self.picked_id(tab, pick) {
                    let is_aborted = pick.is_multiple_of(2);
                    self.ask(
                        tab,
                        json!({ "type": "cancel", "jobs": [id], "aborted": is_aborted }),
                    );
                }
            }
            Transition::CancelGroup { tab, pick } => {
                if let Some(group) = picked(&self.tabs[tab].groups.clone(), pick) {
                    self.ask(tab, json!({ "type": "cancel", "group": group }));
                }
            }
            Transition::Retry { tab, pick, force } => {
                if let Some(id) = self.picked_id(tab, pick) {
                    self.ask(
                        tab,
                        json!({ "type": "retry", "jobs": [id], "force": force }),
                    );
                }
            }
            Transition::RetryGroup { tab, pick } => {
                if let Some(group) = picked(&self.tabs[tab].groups.clone(), pick) {
                    self.ask(tab, json!({ "type": "retry", "group": group }));
                }
            }
            Transition::Hold { tab, api } => self.ask(tab, self.about(api, "hold")),
            Transition::Resume { tab, api } => self.ask(tab, self.about(api, "resume")),
            Transition::Subscribe { tab } => {
                self.tabs[tab].is_subscribed = true;
                self.ask(tab, json!({ "type": "subscribe" }));
            }
            Transition::Unsubscribe { tab } => {
                self.tabs[tab].is_subscribed = false;
                self.ask(tab, json!({ "type": "unsubscribe" }));
            }
            Transition::Snapshot { tab } => self.ask(tab, json!({ "type": "snapshot" })),
            Transition::Query { tab } => {
                self.ask(tab, json!({ "type": "jobs", "filter": { "limit": 20 } }))
            }
            Transition::Configure { tab } => {
                let terms = self.tabs[tab].terms;
                self.set_limits(tab, terms);
            }
            Transition::SetLimits { tab, terms } => self.set_limits(tab, terms),
            Transition::Close { tab } => self.close(tab),
            Transition::Reload { tab } => self.reload(tab),
            Transition::Garbage { tab, kind } => self.garbage(tab, kind),
            Transition::Flood { tab, jobs } => self.enqueue_many(tab, jobs, &Wish::plain(2)),
            Transition::Server { .. }
            | Transition::Offline { .. }
            | Transition::Crash { .. }
            | Transition::CrashAmidOutputs { .. }
            | Transition::TakeOver
            | Transition::Release { .. }
            | Transition::Freeze { .. }
            | Transition::Sleep { .. }
            | Transition::SetClock { .. }
            | Transition::Stumble { .. }
            | Transition::Disk { .. }
            | Transition::SlowDisk { .. }
            | Transition::DiskLost => {}
        }
    }

    /// Does something in a tab, which is opened if it is not.
    fn in_tab(&mut self, tab: usize, act: impl FnOnce(&mut Tab) -> Vec<Value>) {
        self.open(tab);
        let messages = act(&mut self.tabs[tab]);
        self.post_to_host(tab, messages);
    }

    /// Makes sure that a page is open.
    pub(super) fn open(&mut self, tab: usize) {
        if self.tabs[tab].is_open {
            return;
        }
        self.tabs[tab] = Tab::open(self.terms);
        if let Some(life) = self.owner {
            self.meet(tab, life);
        }
    }

    fn set_limits(&mut self, tab: usize, terms: Terms) {
        let budgets = message::budgets(&self.settings.apis, terms);
        self.ask(tab, json!({ "type": "configure", "budgets": budgets }));
    }

    /// A release goes out; pages that are open stay as they are.
    fn release(&mut self, terms: Terms, is_asked: bool) {
        self.terms = terms;
        self.releases += 1;
        match self.owner.filter(|_| is_asked) {
            // The next one starts when this one has retired.
            Some(life) => self.feed(life, HostInput::Retire),
            None => self.plan_start(0),
        }
    }

    /// Sends a request of a tab that makes no job.
    pub(super) fn ask(&mut self, tab: usize, message: Value) {
        self.in_tab(tab, |tab| tab.request(message));
    }

    fn job(&mut self, wish: &Wish) -> Value {
        let id = self.fresh_name("job");
        message::job(wish, &self.settings.apis[wish.api], &id, self.now_ms)
    }

    fn enqueue_many(&mut self, tab: usize, jobs: u64, wish: &Wish) {
        let group = self.fresh_name("group");
        let jobs: Vec<Value> = (0..jobs).map(|_| self.job(wish)).collect();
        self.in_tab(tab, |tab| tab.enqueue_many(&group, jobs));
    }

    fn picked_id(&self, tab: usize, pick: u64) -> Option<String> {
        // Now and then a job of another tab.
        let other = usize::from(pick.is_multiple_of(5)).wrapping_add(tab) % self.tabs.len();
        picked(&self.tabs[other].known, pick)?["id"]
            .as_str()
            .map(str::to_owned)
    }

    fn about(&self, api: Option<usize>, what: &str) -> Value {
        let budget = api.map(|api| pacing::name(&self.settings.apis[api]));
        json!({ "type": what, "budget": budget })
    }

    fn close(&mut self, tab: usize) {
        if !self.tabs[tab].is_open {
            return;
        }
        self.post_to_host(
            tab,
            vec![json!({ "paceline": 1, "id": FOREIGN, "type": "bye" })],
        );
        self.leave(tab);
        self.tabs[tab] = Tab::default();
    }

    fn reload(&mut self, tab: usize) {
        self.leave(tab);
        let known = std::mem::take(&mut self.tabs[tab].known);
        self.tabs[tab] = Tab::open(self.terms);
        self.tabs[tab].known = known;
        if let Some(life) = self.owner {
            self.meet(tab, life);
        }
    }

    fn leave(&mut self, tab: usize) {
        if let Some((port, life)) = self.tabs[tab].port {
            let at_ms = self.now_ms + self.draws.ports.between(0, NOTICE_MS);
            self.events.push(
                at_ms.max(self.ports[&port].to_host_ms()),
                Event::TabLeft { life, port },
            );
        }
    }

    fn go_offline(&mut self, ms: u64) {
        if self.is_offline {
            return;
        }
        self.is_offline = true;
        self.events.push(self.now_ms + ms, Event::Online);
        if let Some(life) = self.owner {
            self.feed(life, HostInput::Network(Network::Offline));
        }
    }

    fn sleep(&mut self, ms: u64) {
        self.events.sleep(self.now_ms, ms);
        self.wakes_ms = self.now_ms + ms;
        for port in self.ports.values_mut() {
            port.sleep(self.now_ms, ms);
        }
        self.clocks.sleep(ms);
        for life in self
            .lives
            .iter_mut()
            .filter(|life| life.frozen_until_ms > self.now_ms)
        {
            life.frozen_until_ms += ms;
        }
        if ms >= DEAD_CONNECTION_MS {
            self.break_silent(ms);
        }
    }

    fn set_clock(&mut self, by_ms: i64) {
        if by_ms < 0 {
            let back_ms = self.set_back_ms + by_ms.unsigned_abs();
            if back_ms > MAX_SET_BACK_MS {
                return;
            }
            self.set_back_ms = back_ms;
        }
        self.model.pacing.blind();
        self.clocks.set_wall(by_ms);
    }

    /// A page posts what no client would.
    fn garbage(&mut self, tab: usize, kind: u64) {
        self.open(tab);
        let id = self.fresh_name("odd");
        let message = garbage(kind, &id);
        match (message, self.tabs[tab].port) {
            (Some(message), _) => self.post_to_host(tab, vec![message]),
            // What JSON cannot carry.
            (None, Some((port, life))) => {
                let job = JobMessage {
                    url: Some("https://other.test/nan".to_owned()),
                    cost: Some(f64::NAN),
                    timeout_ms: Some(f64::INFINITY),
                    ..JobMessage::default()
                };
                let request = Ok(Request::Enqueue(Box::new(Enqueue { job, again: None })));
                self.feed(
                    life,
                    HostInput::Message {
                        tab: port,
                        re: f64::NAN,
                        request,
                        bodies: Vec::new(),
                    },
                );
            }
            (None, None) => {}
        }
    }
}

impl Wish {
    /// A job without any wishes.
    const fn plain(api: usize) -> Self {
        Self {
            api,
            method: "POST",
            key: None,
            lane: None,
            cost: 1,
            has_idempotency_key: true,
            ephemeral: false,
            max_wait_ms: None,
            not_before_in_ms: None,
            timeout_ms: None,
            is_item: false,
            check_after_ms: None,
        }
    }
}

fn picked<T>(all: &[T], pick: u64) -> Option<&T> {
    let count = u64::try_from(all.len()).ok()?;
    // The latest are the most interesting.
    let back = pick.checked_rem(count.min(8))?;
    all.iter().rev().nth(usize::try_from(back).ok()?)
}

/// One of the things that a broken or hostile page sends; none for what JSON cannot say.
fn garbage(kind: u64, id: &str) -> Option<Value> {
    let re = FOREIGN + kind % 1_000;
    let ask = |fields: Value| {
        let mut message = json!({ "paceline": 1, "id": re });
        if let (Some(message), Value::Object(fields)) = (message.as_object_mut(), fields) {
            message.extend(fields);
        }
        message
    };
    let url = format!("https://other.test/{id}");
    let job = |fields: Value| {
        let mut job = json!({ "id": id, "url": url });
        if let (Some(job), Value::Object(fields)) = (job.as_object_mut(), fields) {
            job.extend(fields);
        }
        ask(json!({ "type": "enqueue", "job": job }))
    };
    Some(match kind / 1_000 % 44 {
        0 => return None,
        1 => json!(null),
        2 => json!("hello"),
        3 => json!([1, 2, 3]),
        4 => json!({ "paceline": 2, "id": re, "type": "enqueue" }),
        5 => json!({ "paceline": -1, "id": re, "type": "hello" }),
        6 => json!({ "paceline": 1, "id": "one", "type": "snapshot" }),
        7 => json!({ "paceline": 1, "id": 1e308, "type": "snapshot" }),
        8 => ask(json!({ "type": "explode" })),
        9 => ask(json!({ "type": 7 })),
        10 => ask(json!({ "type": "enqueue" })),
        11 => ask(json!({ "type": "enqueue", "job": [] })),
        12 => ask(json!({ "type": "enqueue", "job": { "id": id } })),
        13 => job(json!({ "url": "javascript:alert(1)" })),
        14 => job(json!({ "url": format!("https://{}", "x".repeat(9_000)) })),
        15 => job(json!({ "method": "BREW" })),
        16 => job(json!({ "cost": 0 })),
        17 => job(json!({ "cost": -1 })),
        18 => job(json!({ "cost": 1e300 })),
        19 => job(json!({ "cost": 4_294_967_295_u64 })),
        20 => job(json!({ "cost": 1.5 })),
        21 => job(json!({ "timeoutMs": 1e15 })),
        22 => job(json!({ "maxWaitMs": 9_007_199_254_740_991_u64 })),
        23 => job(json!({ "maxWaitMs": 1e300 })),
        24 => job(json!({ "id": "x".repeat(300) })),
        25 => job(json!({ "id": "" })),
        26 => job(json!({ "headers": { "Authorization": "secret" } })),
        27 => job(json!({ "headers": { "x\r\ny": "z" } })),
        28 => job(json!({ "lane": "fast" })),
        29 => job(json!({ "budget": "nobody's" })),
        30 => job(json!({ "key": "ключ", "principal": "p".repeat(300) })),
        31 => job(json!({ "idempotencyKey": "\u{7f}" })),
        32 => job(json!({ "key": "ключ", "body": { "deep": [[[[[[{}]]]]]] } })),
        33 => ask(json!({ "type": "enqueue-many", "jobs": [] })),
        34 => {
            ask(json!({ "type": "enqueue-many", "jobs": [{ "id": id, "url": url }, { "url": 3 }] }))
        }
        35 => ask(
            json!({ "type": "enqueue-many", "group": id, "jobs": [{ "id": id, "url": url }, { "id": id, "url": url }] }),
        ),
        36 => ask(json!({ "type": "cancel", "jobs": ["a"], "group": "b" })),
        37 => ask(json!({ "type": "cancel", "jobs": ["nobody", "nobody"] })),
        38 => ask(json!({ "type": "retry", "group": "nobody", "force": true })),
        39 => ask(json!({ "type": "hold", "budget": "nobody's" })),
        40 => ask(json!({ "type": "configure", "budgets": [{ "id": "*" }] })),
        41 => ask(json!({ "type": "configure", "budgets": [{ "id": "api", "limits": ["0/s"] }] })),
        42 => ask(json!({ "type": "jobs", "filter": { "limit": -3, "after": 1e300 } })),
        _ => ask(json!({ "type": "hello", "principal": "x".repeat(400) })),
    })
}
