//! A tab: what `client.js` does with its port, its requests and its promises.
//!
//! Ids are made here, before anything is sent. A request that is not answered goes again to the next host, under its
//! number and its jobs' ids; what a host had accepted is asked for again once the next one has said welcome.

use std::collections::{BTreeMap, BTreeSet};

use paceline_host::TabId;
use serde_json::{Value, json};

use crate::profile::Terms;

/// Deaths of hosts after which a request that they had is given up: it may be what kills them.
const MAX_DEATHS: u32 = 3;
const SETTLED: [&str; 3] = ["done", "failed", "cancelled"];

/// What a request is about.
#[derive(Clone, Debug, PartialEq, Eq)]
enum What {
    Enqueue(String),
    Many(String),
    Other,
}

#[derive(Clone, Debug)]
struct Ask {
    message: Value,
    what: What,
    posted_on: Option<TabId>,
    deaths: u32,
}

/// What this tab waits for of a job or a bulk.
#[derive(Clone, Debug)]
struct Wait {
    message: Value,
    is_accepted: bool,
}

/// How a promise of a tab ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Final {
    pub(crate) id: String,
    /// The state that was told; none when the request was refused or given up.
    pub(crate) state: Option<String>,
}

/// One tab, and the promises that its page holds.
#[derive(Debug, Default)]
pub(crate) struct Tab {
    pub(crate) is_open: bool,
    pub(crate) port: Option<(TabId, usize)>,
    is_welcome: bool,
    hello: u64,
    last_re: u64,
    asks: BTreeMap<u64, Ask>,
    jobs: BTreeMap<String, Wait>,
    bulks: BTreeMap<String, Wait>,
    /// The page's latest jobs, for it to cancel and retry.
    pub(crate) known: Vec<Value>,
    pub(crate) groups: Vec<String>,
    pub(crate) is_subscribed: bool,
    /// What the release that this page was loaded from declares.
    pub(crate) terms: Terms,
}

impl Tab {
    /// Opens a page of a release.
    pub(crate) fn open(terms: Terms) -> Self {
        Self {
            is_open: true,
            terms,
            ..Self::default()
        }
    }

    /// Finds a host: says hello through a new port. Returns what to post.
    pub(crate) fn meet(
        &mut self,
        port: TabId,
        life: usize,
        is_after_death: bool,
        budgets: Value,
    ) -> (Vec<Value>, Vec<Final>) {
        let old = self.port.replace((port, life)).map(|(old, _)| old);
        self.is_welcome = false;
        let mut finals = Vec::new();
        if is_after_death {
            let given_up: Vec<u64> = self
                .asks
                .iter_mut()
                .filter(|(_, ask)| ask.posted_on.is_some() && ask.posted_on == old)
                .filter_map(|(re, ask)| {
                    ask.deaths += 1;
                    (ask.deaths >= MAX_DEATHS).then_some(*re)
                })
                .collect();
            finals.extend(given_up.into_iter().flat_map(|re| self.give_up(re)));
        }
        self.last_re += 1;
        self.hello = self.last_re;
        (
            vec![json!({ "paceline": 1, "id": self.hello, "type": "hello", "budgets": budgets })],
            finals,
        )
    }

    fn give_up(&mut self, re: u64) -> Vec<Final> {
        let Some(ask) = self.asks.remove(&re) else {
            return Vec::new();
        };
        self.end_of(&ask.what)
    }

    /// A request was refused or given up: its promise ends.
    fn end_of(&mut self, what: &What) -> Vec<Final> {
        let ended = match what {
            What::Enqueue(id) => self.jobs.remove(id).map(|_| id),
            What::Many(group) => self.bulks.remove(group).map(|_| group),
            What::Other => None,
        };
        ended
            .map(|id| Final {
                id: id.clone(),
                state: None,
            })
            .into_iter()
            .collect()
    }

    /// Asks for a job. Returns what to post now.
    pub(crate) fn enqueue(&mut self, job: Value) -> Vec<Value> {
        let Some(id) = job["id"].as_str().map(str::to_owned) else {
            return Vec::new();
        };
        let message = json!({ "type": "enqueue", "job": job });
        self.known.push(job);
        self.jobs.entry(id.clone()).or_insert(Wait {
            message: message.clone(),
            is_accepted: false,
        });
        self.ask(message, What::Enqueue(id))
    }

    /// Asks for a bulk action. Returns what to post now.
    pub(crate) fn enqueue_many(&mut self, group: &str, jobs: Vec<Value>) -> Vec<Value> {
        self.known.extend(jobs.iter().take(3).cloned());
        self.groups.push(group.to_owned());
        let message = json!({ "type": "enqueue-many", "jobs": jobs, "group": group });
        self.bulks.insert(
            group.to_owned(),
            Wait {
                message: message.clone(),
                is_accepted: false,
            },
        );
        self.ask(message, What::Many(group.to_owned()))
    }

    /// Asks for anything else. Returns what to post now.
    pub(crate) fn request(&mut self, message: Value) -> Vec<Value> {
        // A caller who aborts is told by its own page, at once: another tab's job may go on.
        if message["aborted"] == true {
            let ids = message["jobs"].as_array().into_iter().flatten();
            for id in ids.filter_map(Value::as_str) {
                self.jobs.remove(id);
            }
        }
        self.ask(message, What::Other)
    }

    fn ask(&mut self, message: Value, what: What) -> Vec<Value> {
        self.last_re += 1;
        self.asks.insert(
            self.last_re,
            Ask {
                message,
                what,
                posted_on: None,
                deaths: 0,
            },
        );
        if self.is_welcome {
            self.flush()
        } else {
            Vec::new()
        }
    }

    /// The requests that this port has not carried yet.
    fn flush(&mut self) -> Vec<Value> {
        let Some((port, _)) = self.port else {
            return Vec::new();
        };
        let waiting = self
            .asks
            .iter_mut()
            .filter(|(_, ask)| ask.posted_on != Some(port));
        waiting
            .map(|(re, ask)| {
                ask.posted_on = Some(port);
                let mut message = ask.message.clone();
                message["paceline"] = json!(1);
                message["id"] = json!(re);
                message
            })
            .collect()
    }

    /// Takes a message of the host. Returns what to post, and the promises that ended.
    pub(crate) fn hear(&mut self, message: &Value) -> (Vec<Value>, Vec<Final>) {
        let re = message["re"].as_f64().map(|re| re as u64);
        if re == Some(self.hello) {
            return (self.welcomed(message), Vec::new());
        }
        if let Some(ask) = re.and_then(|re| self.asks.remove(&re)) {
            return (Vec::new(), self.answered(&ask, message));
        }
        let finals = match message["type"].as_str() {
            Some("settled") => self.settled(&message["job"]),
            Some("group-settled") => self.group_settled(message["group"].as_str()),
            Some(_) | None => Vec::new(),
        };
        (Vec::new(), finals)
    }

    fn welcomed(&mut self, message: &Value) -> Vec<Value> {
        if message["type"] == "error" {
            return Vec::new();
        }
        self.is_welcome = true;
        let again: Vec<(Value, What)> = self
            .jobs
            .iter()
            .filter(|(_, wait)| wait.is_accepted)
            .map(|(id, wait)| (wait.message.clone(), What::Enqueue(id.clone())))
            .chain(
                self.bulks
                    .iter()
                    .filter(|(_, wait)| wait.is_accepted)
                    .map(|(group, wait)| (wait.message.clone(), What::Many(group.clone()))),
            )
            .collect();
        let asked: BTreeSet<String> = self
            .asks
            .values()
            .map(|ask| format!("{:?}", ask.what))
            .collect();
        for (mut message, what) in again {
            message["again"] = json!(true);
            if !asked.contains(&format!("{what:?}")) {
                self.last_re += 1;
                self.asks.insert(
                    self.last_re,
                    Ask {
                        message,
                        what,
                        posted_on: None,
                        deaths: 0,
                    },
                );
            }
        }
        if self.is_subscribed {
            self.last_re += 1;
            let message = json!({ "type": "subscribe" });
            self.asks.insert(
                self.last_re,
                Ask {
                    message,
                    what: What::Other,
                    posted_on: None,
                    deaths: 0,
                },
            );
        }
        self.flush()
    }

    fn answered(&mut self, ask: &Ask, message: &Value) -> Vec<Final> {
        if message["type"] == "error" {
            return self.end_of(&ask.what);
        }
        match &ask.what {
            What::Enqueue(id) => {
                if let Some(wait) = self.jobs.get_mut(id) {
                    wait.is_accepted = true;
                }
                let state = message["job"]["state"].as_str().unwrap_or_default();
                if SETTLED.contains(&state) {
                    self.settled(&message["job"])
                } else {
                    Vec::new()
                }
            }
            What::Many(group) => {
                if let Some(wait) = self.bulks.get_mut(group) {
                    wait.is_accepted = true;
                }
                Vec::new()
            }
            What::Other => Vec::new(),
        }
    }

    fn settled(&mut self, job: &Value) -> Vec<Final> {
        let Some(id) = job["id"].as_str() else {
            return Vec::new();
        };
        let state = job["state"].as_str().map(str::to_owned);
        self.jobs
            .remove(id)
            .map(|_| Final {
                id: id.to_owned(),
                state,
            })
            .into_iter()
            .collect()
    }

    fn group_settled(&mut self, group: Option<&str>) -> Vec<Final> {
        let Some(group) = group else {
            return Vec::new();
        };
        if self.bulks.get(group).is_some_and(|wait| wait.is_accepted) {
            self.bulks.remove(group);
        }
        Vec::new()
    }

    /// Tells what this tab still waits for.
    pub(crate) fn waits_for(&self) -> Option<String> {
        let job = self.jobs.keys().next().map(|id| format!("job {id}"));
        let bulk = self
            .bulks
            .keys()
            .next()
            .map(|group| format!("bulk {group}"));
        let ask = self
            .asks
            .values()
            .next()
            .map(|ask| format!("an answer to {}", ask.message["type"]));
        job.or(bulk).or(ask)
    }
}
