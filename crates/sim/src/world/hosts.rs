//! The lives of hosts: they start, are driven, die at any instant, or go on after another one has taken over.

use std::collections::{BTreeMap, VecDeque};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use paceline_core::change::Stored;
use paceline_core::io::Network;
use paceline_core::job::Card;
use paceline_core::scheduler::Bounds;
use paceline_core::time::{Mono, Now};
use paceline_host::{Host, HostConfig, HostInput, HostOutput};
use paceline_store::Store;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::World;
use super::disk::Op;
use super::wire::Aim;
use crate::events::Event;
use crate::message::Body;

/// How long a lock takes from one host to the next.
const HANDOVER_MS: u64 = 50;
/// How long requests of a host that is no more may still reach a server: the browser ends them with their worker.
const LAST_WORDS_MS: u64 = 1_000;
/// Units by which a bucket may be too full after a takeover: the records of retried jobs forget what is older than a
/// window, and what a bucket holds depends on more than that.
const TAKEOVER_SLACK: u64 = 2;
/// Outputs of one turn that need no reason.
const FEW_OUTPUTS: usize = 200;

/// One host.
#[derive(Debug)]
pub(crate) struct Life {
    host: Host<Body>,
    pub(super) epoch: u64,
    origin_ms: u64,
    pub(super) is_dead: bool,
    pub(super) is_stopped: bool,
    pub(super) ops: BTreeMap<u64, Op>,
    pub(super) next_op: u64,
    armed: u64,
    armed_at: Option<Mono>,
    /// Its thread stands still until then.
    pub(super) frozen_until_ms: u64,
    /// What arrived meanwhile, in order.
    pub(super) backlog: VecDeque<Event>,
    /// How many outputs it will carry out before it dies.
    pub(super) outputs_left: Option<u32>,
}

impl Life {
    /// Tells whether it takes inputs.
    pub(super) const fn is_running(&self) -> bool {
        !self.is_dead && !self.is_stopped
    }

    /// Tells whether its timer is still the one that was set as the `armed`th.
    pub(super) const fn is_armed(&self, armed: u64) -> bool {
        self.armed == armed && self.is_running()
    }

    /// Returns when it wants to be woken.
    pub(super) fn timeout(&self) -> Option<(Mono, &'static str)> {
        self.host.poll_timeout()
    }

    /// All of its memory, to be looked at when it should hold nothing.
    pub(super) fn memory(&self) -> String {
        format!("{:?}", self.host)
    }
}

impl World {
    /// Plans the start of the next owner.
    pub(super) fn plan_start(&mut self, after_ms: u64) {
        if !self.is_start_planned {
            self.is_start_planned = true;
            self.events.push(self.now_ms + after_ms, Event::HostStarts);
        }
    }

    /// Opens the store for a new owner; one before it may still run and not know.
    pub(super) fn start_host(&mut self) {
        self.is_start_planned = false;
        let origin_ms = self.draws.hosts.between(0, 90_000);
        let seed = self.draws.hosts.bits();
        let now = self.clocks.read(self.now_ms, origin_ms);
        let mut opened = match at_once(self.store.open(now.wall)) {
            Some(Ok(opened)) => opened,
            Some(Err(_)) | None => return self.fail("store", "the store does not open".to_owned()),
        };
        if self.releases > 0 {
            match as_another_release(&opened.stored) {
                Ok(stored) => opened.stored = stored,
                Err(error) => return self.fail("release", error.to_string()),
            }
        }
        let (life, epoch) = (self.lives.len(), opened.epoch.0);
        self.trace.note(
            self.now_ms,
            format_args!("host {life} starts, epoch {epoch}, {now:?}"),
        );
        let config = HostConfig {
            kind: "shared-worker".to_owned(),
            instance: format!("life-{life}"),
            version: self.releases.to_string(),
            durable: true,
            seed,
            bounds: Bounds {
                max_jobs: self.settings.max_jobs,
                ..Bounds::default()
            },
            dialects: std::collections::BTreeSet::new(),
        };
        self.model.pacing.owner_starts(epoch);
        self.excuse_late();
        for server in &mut self.servers {
            server.give_back(TAKEOVER_SLACK);
        }
        let host = Host::new(config, opened, now);
        self.lives.push(Life {
            host,
            epoch,
            origin_ms,
            is_dead: false,
            is_stopped: false,
            ops: BTreeMap::new(),
            next_op: 0,
            armed: 0,
            armed_at: None,
            frozen_until_ms: 0,
            backlog: VecDeque::new(),
            outputs_left: None,
        });
        self.owner = Some(life);
        self.drain(life);
        if self.is_offline {
            self.feed(life, HostInput::Network(Network::Offline));
        }
        for tab in 0..self.tabs.len() {
            let delay_ms = self.draws.ports.between(0, self.settings.port_ms * 10);
            self.events
                .push(self.now_ms + delay_ms, Event::Meets { tab, life });
        }
    }

    /// Ends a host: what it has not written is gone, what it has sent is on its way.
    pub(super) fn kill(&mut self, life: usize) {
        self.trace
            .note(self.now_ms, format_args!("host {life} dies"));
        self.lives[life].is_dead = true;
        self.lives[life].ops.clear();
        self.lives[life].backlog.clear();
        self.events
            .push(self.now_ms + LAST_WORDS_MS, Event::CutOff { life });
        if self.owner == Some(life) {
            self.owner = None;
        }
    }

    /// A host's thread stands still.
    pub(super) fn freeze(&mut self, life: usize, ms: u64) {
        let frozen_until_ms = &mut self.lives[life].frozen_until_ms;
        *frozen_until_ms = (*frozen_until_ms).max(self.now_ms + ms);
        let thaws_ms = *frozen_until_ms;
        self.events.push(thaws_ms, Event::Thaws { life });
    }

    /// A host's thread goes on with what arrived meanwhile, unless it was frozen again.
    pub(super) fn thaw(&mut self, life: usize) {
        while self.lives[life].frozen_until_ms <= self.now_ms
            && let Some(event) = self.lives[life].backlog.pop_front()
        {
            if !self.is_stale(&event) {
                self.happen(event);
            }
        }
    }

    /// Ends the owner, and lets the next one start.
    pub(super) fn crash(&mut self, after_ms: u64) {
        if let Some(life) = self.owner {
            self.kill(life);
            self.plan_start(after_ms);
        }
    }

    /// Gives a host an input, and carries out what comes of it.
    pub(super) fn feed(&mut self, life: usize, input: HostInput<Body>) {
        if !self.lives[life].is_running() {
            return;
        }
        let now = self.now_of(life);
        self.lives[life].host.handle(input, now);
        self.drain(life);
    }

    /// Reads the clocks as a host does.
    pub(super) const fn now_of(&self, life: usize) -> Now {
        self.clocks
            .read(self.now_ms, self.lives.as_slice()[life].origin_ms)
    }

    fn drain(&mut self, life: usize) {
        let mut outputs = 0;
        while !self.lives[life].is_dead
            && let Some(output) = self.lives[life].host.poll_output()
        {
            if self.lives[life].outputs_left == Some(0) {
                self.crash_amid(life);
                return;
            }
            outputs += 1;
            if let Some(left) = &mut self.lives[life].outputs_left {
                *left -= 1;
            }
            self.perform(life, output);
        }
        let most = FEW_OUTPUTS + 4 * self.names_known() * self.ports.len().max(1);
        if outputs > most {
            self.fail("bounds", format!("{outputs} outputs of one turn"));
        }
        self.arm(life);
    }

    fn names_known(&self) -> usize {
        usize::try_from(self.names).unwrap_or(usize::MAX / 8)
    }

    fn crash_amid(&mut self, life: usize) {
        let is_owner = self.owner == Some(life);
        self.kill(life);
        if is_owner {
            self.plan_start(HANDOVER_MS);
        }
    }

    fn perform(&mut self, life: usize, output: HostOutput<Body>) {
        if self.lives[life].is_stopped {
            return self.fail(
                "epoch",
                format!("host {life} acts after its end: {output:?}"),
            );
        }
        match output {
            HostOutput::Post {
                tab,
                stamp,
                message,
                response,
                requests: _,
            } => {
                self.post_to_tab(life, tab, &stamp, &message, response);
            }
            HostOutput::Store(transaction) => {
                self.begin_op(life, Op::Store(transaction, self.now_ms));
            }
            HostOutput::Read(batches) => self.begin_op(life, Op::Read(batches)),
            HostOutput::Send {
                seq,
                attempt,
                request,
                later,
                batch,
                headers,
                timeout_ms,
                is_check,
                ..
            } => {
                let request = match batch {
                    Some(form) => crate::message::as_items(&form, &request, &later),
                    None => crate::message::laid_over(request, &later),
                };
                let aim = match is_check {
                    true => Aim::Check,
                    false => Aim::Request,
                };
                self.send(
                    life,
                    (seq, attempt),
                    aim,
                    &request,
                    &headers,
                    u64::from(timeout_ms),
                );
            }
            HostOutput::Stop(error) => self.stop(life, &error.to_string()),
            HostOutput::Retired => self.stop(life, "retired"),
        }
    }

    fn stop(&mut self, life: usize, cause: &str) {
        self.trace
            .note(self.now_ms, format_args!("host {life} stops: {cause}"));
        self.lives[life].is_stopped = true;
        self.events
            .push(self.now_ms + LAST_WORDS_MS, Event::CutOff { life });
        if self.owner == Some(life) {
            self.owner = None;
            self.plan_start(HANDOVER_MS);
        }
    }

    /// Sets a host's one timer.
    fn arm(&mut self, life: usize) {
        let now = self.now_of(life);
        let running = &mut self.lives[life];
        let due = running
            .host
            .poll_timeout()
            .map(|(at, _)| at)
            .filter(|_| !running.is_dead);
        if due == running.armed_at && due.is_none_or(|at| at > now.mono) {
            return;
        }
        running.armed += 1;
        running.armed_at = due;
        if let Some(due) = due {
            let at_ms = self.now_ms + due.since(now.mono).max(1);
            self.events.push(
                at_ms,
                Event::Wakes {
                    life,
                    armed: running.armed,
                },
            );
        }
    }

    /// A timer fires.
    pub(super) fn wake(&mut self, life: usize) {
        self.lives[life].armed_at = None;
        self.trace
            .note(self.now_ms, format_args!("host {life} wakes"));
        self.feed(life, HostInput::Wake);
    }

    /// There is a network again.
    pub(super) fn online(&mut self) {
        self.is_offline = false;
        if let Some(life) = self.owner {
            self.feed(life, HostInput::Network(Network::Online));
        }
    }
}

/// Reads what is stored as a release does whose records had one field more, or one less: through the stored form, in
/// which fields that are not known are left alone.
fn as_another_release(stored: &Stored) -> Result<Stored, serde_json::Error> {
    fn read<T: Serialize + DeserializeOwned>(value: &T) -> Result<T, serde_json::Error> {
        let mut value = serde_json::to_value(value)?;
        if let Some(fields) = value.as_object_mut() {
            fields.insert("since_the_next_release".to_owned(), json!([1, "two"]));
        }
        serde_json::from_value(value)
    }
    let batches = stored.batches.iter().map(|(batch, cards)| {
        let cards: Result<Vec<Card>, _> = cards.iter().map(read).collect();
        Ok((*batch, cards?))
    });
    let records = stored.records.iter();
    let groups = stored.groups.iter();
    let budgets = stored.budgets.iter();
    Ok(Stored {
        batches: batches.collect::<Result<_, serde_json::Error>>()?,
        records: records
            .map(|(seq, record)| Ok((*seq, read(record)?)))
            .collect::<Result<_, serde_json::Error>>()?,
        groups: groups
            .map(|(group, record)| Ok((group.clone(), read(record)?)))
            .collect::<Result<_, serde_json::Error>>()?,
        budgets: budgets
            .map(|(budget, record)| Ok((budget.clone(), read(record)?)))
            .collect::<Result<_, serde_json::Error>>()?,
        dropped: stored.dropped.clone(),
    })
}

/// Runs a future that does not wait.
pub(super) fn at_once<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}
