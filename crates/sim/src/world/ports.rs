//! The ports between tabs and hosts: in order, late, sometimes twice, and dead with either end.

use std::fmt;

use paceline_core::job::State;
use paceline_host::{HostInput, TabId};
use paceline_protocol::reply::EventMessage;
use paceline_protocol::{HostMessage, Stamp};
use serde_json::{Value, json};

use super::World;
use crate::events::Event;
use crate::message::{self, Body};
use crate::profile::Terms;
use crate::tab::Final;

/// One port.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Port {
    tab: usize,
    life: usize,
    to_host_ms: u64,
    to_tab_ms: u64,
}

impl Port {
    /// What is on its way arrives later.
    pub(super) fn sleep(&mut self, now_ms: u64, ms: u64) {
        for last_ms in [&mut self.to_host_ms, &mut self.to_tab_ms] {
            if *last_ms >= now_ms {
                *last_ms += ms;
            }
        }
    }

    /// When the last message that was posted to the host arrives.
    pub(super) const fn to_host_ms(self) -> u64 {
        self.to_host_ms
    }
}

impl World {
    /// A tab finds a host and says hello.
    pub(super) fn meet(&mut self, tab: usize, life: usize) {
        let old = self.tabs[tab].port;
        let is_known = old.is_some_and(|(_, known)| known >= life);
        if !self.tabs[tab].is_open || is_known || self.lives[life].is_dead {
            return;
        }
        let is_after_death = old.is_some_and(|(_, old)| !self.lives[old].is_running());
        let port = TabId::try_from(self.ports.len() + 1).unwrap_or(TabId::MAX);
        self.ports.insert(
            port,
            Port {
                tab,
                life,
                to_host_ms: 0,
                to_tab_ms: 0,
            },
        );
        self.trace.note(
            self.now_ms,
            format_args!("tab {tab} meets host {life} as {port}"),
        );
        let budgets = message::budgets(&self.settings.apis, self.tabs[tab].terms);
        let (messages, finals) = self.tabs[tab].meet(port, life, is_after_death, budgets);
        self.note_finals(tab, &finals);
        self.post_to_host(tab, messages);
    }

    /// Posts messages of a tab.
    pub(super) fn post_to_host(&mut self, tab: usize, messages: Vec<Value>) {
        let Some((port, life)) = self.tabs[tab].port else {
            return;
        };
        let is_of_newer = self.tabs[tab].terms != Terms::Whole;
        for mut message in messages {
            if is_of_newer && message["paceline"] == 1 {
                message["sinceTheNextRelease"] = json!({ "what": ["nobody", "knows"] });
            }
            let delay_ms = self.draws.ports.between(0, self.settings.port_ms);
            let copies = 1 + u64::from(self.draws.ports.chance(self.settings.twice_permille));
            let Some(way) = self.ports.get_mut(&port) else {
                return;
            };
            way.to_host_ms = way.to_host_ms.max(self.now_ms + delay_ms);
            let at_ms = way.to_host_ms;
            for _ in 0..copies {
                let message = message.clone();
                self.events.push(
                    at_ms,
                    Event::ToHost {
                        life,
                        port,
                        message,
                    },
                );
            }
        }
    }

    /// A message of a tab arrives.
    pub(super) fn arrive_at_host(&mut self, life: usize, port: TabId, message: &Value) {
        if !self.lives[life].is_running() {
            return;
        }
        self.trace.note(
            self.now_ms,
            format_args!("{port} to host {life}: {}", Short(message)),
        );
        self.note_asked(port, message);
        self.feed(life, message::read(port, message));
    }

    /// Keeps the books of who may be told what.
    fn note_asked(&mut self, port: TabId, message: &Value) {
        let names = |jobs: &Value| -> Vec<String> {
            let jobs = jobs.as_array().into_iter().flatten();
            jobs.filter_map(|job| job["id"].as_str().or(job.as_str()))
                .map(str::to_owned)
                .collect()
        };
        let asked = match message["type"].as_str() {
            Some("enqueue") => names(&json!([message["job"]])),
            Some("enqueue-many") => names(&message["jobs"]),
            Some("retry") => {
                let jobs = names(&message["jobs"]);
                let is_forced = message["force"] == true;
                self.model
                    .retry_asked(&jobs, message["group"].as_str(), is_forced)
            }
            Some(_) | None => return,
        };
        for name in asked {
            *self.owed.entry((port, name)).or_default() += 1;
        }
    }

    /// A host notices that a tab has gone.
    pub(super) fn tab_left(&mut self, life: usize, port: TabId) {
        self.trace
            .note(self.now_ms, format_args!("{port} left host {life}"));
        self.feed(life, HostInput::TabLeft(port));
    }

    /// Posts a message of a host.
    pub(super) fn post_to_tab(
        &mut self,
        life: usize,
        port: TabId,
        stamp: &Stamp,
        message: &HostMessage,
        response: Option<Body>,
    ) {
        self.judge_post(port, message);
        let built = message::build(stamp, message, response);
        self.trace.note(
            self.now_ms,
            format_args!("host {life} to {port}: {}", Short(&built)),
        );
        let delay_ms = self.draws.ports.between(0, self.settings.port_ms);
        let copies = 1 + u64::from(self.draws.ports.chance(self.settings.twice_permille));
        let Some(way) = self.ports.get_mut(&port) else {
            return;
        };
        way.to_tab_ms = way.to_tab_ms.max(self.now_ms + delay_ms);
        let Port {
            life: peer,
            to_tab_ms: at_ms,
            tab,
            ..
        } = *way;
        if peer != life {
            return self.fail(
                "ports",
                format!("host {life} speaks to {port} of host {peer}"),
            );
        }
        for _ in 0..copies {
            let message = built.clone();
            self.events.push(at_ms, Event::ToTab { tab, port, message });
        }
    }

    /// What a tab is told is durable, and it asked for it.
    fn judge_post(&mut self, port: TabId, message: &HostMessage) {
        if let HostMessage::Accepted { job: Some(job), .. } = message {
            self.judge_told(&job.id, job.state, "accepted");
        }
        if let HostMessage::Event(EventMessage::Error { message }) = message {
            self.fail("lost", message.clone());
        }
        if let HostMessage::GroupSettled { group, .. } = message {
            let judged = self.model.judge_group(group);
            self.judge(judged);
        }
        if let HostMessage::Settled { job } = message {
            self.judge_told(&job.id, job.state, "settled");
            let owed = self.owed.entry((port, job.id.clone())).or_default();
            match owed.checked_sub(1) {
                Some(left) => *owed = left,
                None => self.fail(
                    "finals",
                    format!("{port} is told of {} once more than it asked", job.id),
                ),
            }
        }
    }

    fn judge_told(&mut self, name: &str, state: State, what: &str) {
        let Some(job) = self.model.job(name) else {
            return self.fail(
                "lost",
                format!("{name} is told as {what} and is not stored"),
            );
        };
        // Of a job that was cleaned up only its name is remembered, and that it has ended.
        let is_true = job.state == state || !state.is_settled() || job.is_dropped;
        if !is_true {
            let stored = job.state;
            self.fail(
                "finals",
                format!("{name} is told as {state:?} and stored as {stored:?}"),
            );
        }
    }

    /// A message of a host arrives.
    pub(super) fn arrive_at_tab(&mut self, tab: usize, port: TabId, message: &Value) {
        if self.tabs[tab].port.map(|(port, _)| port) != Some(port) || !self.tabs[tab].is_open {
            return;
        }
        let (messages, finals) = self.tabs[tab].hear(message);
        self.note_finals(tab, &finals);
        self.post_to_host(tab, messages);
    }

    fn note_finals(&mut self, tab: usize, finals: &[Final]) {
        for Final { id, state } in finals {
            self.trace.note(
                self.now_ms,
                format_args!("tab {tab}: the promise of {id} ends {state:?}"),
            );
        }
    }
}

/// A message as a trace shows it.
struct Short<'a>(&'a Value);

impl fmt::Display for Short<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let field = |name: &str| self.0.get(name).filter(|value| !value.is_null());
        let Some(kind) = field("type").and_then(Value::as_str) else {
            return write!(f, "{}", self.0);
        };
        f.write_str(kind)?;
        for name in [
            "id", "re", "job", "group", "total", "known", "code", "name", "detail", "budget",
            "force",
        ] {
            if let Some(value) = field(name) {
                write!(f, " {name} {value}")?;
            }
        }
        if let Some(jobs) = field("jobs").and_then(Value::as_array) {
            write!(
                f,
                " {} jobs from {}",
                jobs.len(),
                jobs.first().unwrap_or(&Value::Null)
            )?;
        }
        Ok(())
    }
}
