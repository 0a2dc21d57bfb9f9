//! Requests on their way: to the server, through its judgement, and back.

use paceline_core::ids::Seq;
use paceline_core::io::{Found, NoAnswer};
use paceline_host::{HostInput, ItemResult, Items};
use serde_json::json;

use super::World;
use crate::events::Event;
use crate::message::{Body, WRITES};
use crate::model::Entry;
use crate::transition::{Fault, Refusal};
use crate::upstream::{Arrival, Reply};

/// How long it takes to find out that there is no connection.
const UNREACHABLE_MS: u64 = 30;

/// A claim that takes longer than this leaves a request whose end only its own host knows.
const LATE_MS: u64 = 500;

/// One request.
#[derive(Clone, Debug)]
pub(crate) struct Flight {
    life: usize,
    seq: Seq,
    attempt: u32,
    aim: Aim,
    api: usize,
    job: String,
    method: String,
    key: Option<String>,
    /// The jobs that are its items, if it is a batch.
    items: Vec<String>,
    cost: u64,
    fault: Option<Fault>,
    back_ms: u64,
    end: Option<End>,
    /// Whether it left so long after its claim that a next owner cannot know how long it is on its way.
    is_late: bool,
    /// When its time-out is over.
    ends_ms: u64,
    is_excused: bool,
    /// Whether nothing more will come of it.
    pub(super) is_over: bool,
}

impl Flight {
    /// The host that waits for it.
    pub(super) const fn life(&self) -> usize {
        self.life
    }
}

/// What of a job is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Aim {
    /// Its own request.
    Request,
    /// Its check.
    Check,
}

/// What its host will learn.
#[derive(Clone, Debug)]
enum End {
    Answer(u16, Vec<(String, String)>, Option<Found>),
    Items(Vec<Option<u16>>),
    None(NoAnswer),
}

impl World {
    /// A host sends a request.
    pub(super) fn send(
        &mut self,
        life: usize,
        (seq, attempt): (Seq, u32),
        aim: Aim,
        request: &Body,
        headers: &[(String, String)],
        timeout_ms: u64,
    ) {
        let sent = self.model.sent(seq, attempt, self.lives[life].epoch);
        let Some((entry, begun_ms)) = self.judge(sent) else {
            return;
        };
        let url = match aim {
            Aim::Request => &request["url"],
            Aim::Check => &request["check"]["url"],
        };
        let url = url.as_str().unwrap_or_default();
        let Some(api) = self
            .settings
            .apis
            .iter()
            .position(|api| url.starts_with(api.origin))
        else {
            return self.fail("request", format!("{} is sent to {url}", entry.card.id));
        };
        let items = crate::message::items(request);
        let key = headers.first().map(|(_, key)| key.clone());
        let parts = match items.is_empty() {
            true => self.model.sent_parts(seq, crate::message::parts(request)),
            false => {
                let most = self.settings.apis[api].batch_max.unwrap_or(0);
                let epoch = self.lives[life].epoch;
                self.model
                    .sent_items(&entry, epoch, &items, key.as_deref(), most)
            }
        };
        if self.judge(parts).is_none() {
            return;
        }
        let paced = self.model.pacing.sent(
            entry.card.budget.as_str(),
            self.lives[life].epoch,
            self.now_ms,
        );
        self.judge(paced);
        self.judge_live(life, &entry, &items);
        let flight = self.flights.len();
        let fault = if self.is_offline {
            Some(Fault::Unreachable)
        } else {
            self.servers[api].next_fault()
        };
        let (out_ms, back_ms) = self.servers[api].next_latency();
        self.trace.note(
            self.now_ms,
            format_args!(
                "host {life} sends {}/{attempt} {aim:?} {headers:?}, {out_ms} + {back_ms} ms, {fault:?}",
                entry.card.id
            ),
        );
        self.flights.push(Flight {
            life,
            seq,
            attempt,
            aim,
            api,
            job: entry.card.id.as_str().to_owned(),
            method: request["method"].as_str().unwrap_or_default().to_owned(),
            key,
            items,
            cost: u64::from(entry.card.cost),
            fault,
            back_ms,
            end: None,
            is_late: self.now_ms - begun_ms > LATE_MS,
            ends_ms: self.now_ms + timeout_ms,
            is_excused: false,
            is_over: false,
        });
        self.judge_concurrency(api);
        self.launch(flight, out_ms, timeout_ms);
    }

    fn launch(&mut self, flight: usize, out_ms: u64, timeout_ms: u64) {
        match self.flights[flight].fault {
            Some(Fault::NeverLeaves) => {
                let (api, cost) = (self.flights[flight].api, self.flights[flight].cost);
                self.servers[api].give_back(cost);
                self.plan_end(flight, 0, End::None(NoAnswer::NeverLeft));
            }
            Some(Fault::Unreachable) => {
                self.plan_end(
                    flight,
                    UNREACHABLE_MS.min(timeout_ms),
                    End::None(NoAnswer::Network),
                );
            }
            Some(Fault::Hangs(_)) => {
                let out_ms = self.draws.wire.between(0, timeout_ms.saturating_sub(1));
                self.events
                    .push(self.now_ms + out_ms, Event::Arrives { flight });
            }
            Some(Fault::Refuses(_) | Fault::Fails(..) | Fault::Rejects(_) | Fault::Breaks(_))
            | None => {
                self.events
                    .push(self.now_ms + out_ms, Event::Arrives { flight });
            }
        }
        self.events
            .push(self.now_ms + timeout_ms, Event::TimesOut { flight });
    }

    fn plan_end(&mut self, flight: usize, after_ms: u64, end: End) {
        self.flights[flight].end = Some(end);
        let at_ms = (self.now_ms + after_ms).max(self.wakes_ms);
        self.events.push(at_ms, Event::Ends { flight });
    }

    /// One attempt of a job at a time, but for those of owners that are no more.
    fn judge_live(&mut self, life: usize, entry: &Entry, items: &[String]) {
        let is_of = |flight: &&Flight| {
            let is_item = |item: &String| items.contains(item) || item == entry.card.id.as_str();
            flight.seq == entry.seq || flight.items.iter().any(is_item)
        };
        let live = self.flights.iter().filter(|flight| !flight.is_over);
        let mut live = live.filter(is_of);
        let is_double = live.any(|flight| flight.life == life);
        if is_double {
            self.fail(
                "live-attempts",
                format!("{} has two attempts on their way", entry.card.id),
            );
        }
    }

    fn judge_concurrency(&mut self, api: usize) {
        // The time-out of another's request is over by the wall clock, though its host may be frozen or have slept.
        let is_forgotten =
            |flight: &Flight| self.owner != Some(flight.life) && self.now_ms > flight.ends_ms;
        let flights = self.flights.iter().filter(|flight| flight.api == api);
        let on_their_way = flights
            .filter(|flight| !flight.is_over && !flight.is_excused && !is_forgotten(flight))
            .count();
        let most = self.settings.apis[api].max_in_flight;
        if most.is_some_and(|most| u64::try_from(on_their_way).is_ok_and(|count| count > most)) {
            let origin = self.settings.apis[api].origin;
            self.fail("in-flight", format!("{on_their_way} requests to {origin}"));
        }
    }

    /// A request reaches its server, unless it was given up before.
    pub(super) fn arrive_at_server(&mut self, flight: usize) {
        let Flight {
            api,
            job,
            method,
            key,
            items,
            cost,
            fault,
            back_ms,
            is_over,
            is_excused,
            aim,
            ..
        } = self.flights[flight].clone();
        if is_over {
            return;
        }
        let server = &mut self.servers[api];
        let counted = match is_excused {
            true => Ok(()),
            false => {
                let is_write = WRITES.contains(&method.as_str());
                server.judge_arrival(self.now_ms, cost, flight, is_write)
            }
        };
        let arrival = Arrival {
            at_ms: self.now_ms,
            job: &job,
            key: key.as_deref(),
            items: &items,
            fault,
            is_check: aim == Aim::Check,
        };
        let reply = server.carry_out(&arrival);
        let named = if items.is_empty() { vec![job] } else { items };
        let times: Vec<u32> = named.iter().map(|job| server.times_applied(job)).collect();
        self.trace.note(
            self.now_ms,
            format_args!("{named:?} is counted: {reply:?}, applied {times:?} times"),
        );
        self.judge(counted.map_err(|text| ("limit", text)));
        for (job, times) in named.iter().zip(times.iter().copied()) {
            let effects = self.model.judge_effects(job, times, &method);
            self.judge(effects);
        }
        match reply {
            Reply::Items(items) => self.plan_end(flight, back_ms, End::Items(items)),
            Reply::Status(status, headers) => {
                let found =
                    (aim == Aim::Check).then(|| found(status, times.first().copied().unwrap_or(0)));
                self.plan_end(flight, back_ms, End::Answer(status, headers, found))
            }
            Reply::Broken => self.plan_end(flight, back_ms, End::None(NoAnswer::Network)),
            Reply::Silence => {}
        }
    }

    /// What became of a request reaches its host, if that still lives.
    pub(super) fn end_flight(&mut self, flight: usize) {
        if self.flights[flight].is_over {
            return;
        }
        self.flights[flight].is_over = true;
        let Flight {
            life,
            seq,
            attempt,
            ref job,
            ref end,
            fault,
            api,
            ..
        } = self.flights[flight];
        self.trace.note(
            self.now_ms,
            format_args!("{job}/{attempt} of host {life} ends: {end:?}"),
        );
        let input = match end.clone() {
            None => return,
            Some(End::None(cause)) => HostInput::NoAnswer {
                seq,
                attempt,
                cause,
            },
            Some(End::Items(items)) => HostInput::Answered {
                seq,
                attempt,
                status: 200,
                headers: Vec::new(),
                text: None,
                found: None,
                told: None,
                ended_at: self.now_of(life).mono,
                response: json!({ "status": 200 }),
                items: Items::Each(
                    items
                        .into_iter()
                        .map(|status| Some(said(status?)))
                        .collect(),
                ),
            },
            Some(End::Answer(status, headers, found)) => HostInput::Answered {
                seq,
                attempt,
                status,
                headers,
                text: (status >= 400).then(|| "no".to_owned()),
                found,
                told: None,
                ended_at: self.now_of(life).mono,
                response: json!({ "status": status }),
                items: Items::Shared,
            },
        };
        if let Some(Fault::Refuses(refusal)) = fault
            && self.lives[life].is_running()
        {
            let (api, epoch) = (&self.settings.apis[api], self.lives[life].epoch);
            self.model
                .pacing
                .refused(api, epoch, self.now_ms, asked_ms(refusal));
        }
        self.feed(life, input);
    }

    /// A new owner starts: late requests of others are beyond what it can know.
    pub(super) fn excuse_late(&mut self) {
        for (number, flight) in self.flights.iter_mut().enumerate() {
            // A frozen host ends no request in time.
            let is_old = self.now_ms > flight.ends_ms && !flight.is_over;
            if (flight.is_late || is_old) && !flight.is_excused {
                flight.is_excused = true;
                self.servers[flight.api].excuse(number);
            }
        }
    }

    /// The machine sleeps for so long that what no answer comes to is broken when it wakes.
    pub(super) fn break_silent(&mut self, ms: u64) {
        for flight in 0..self.flights.len() {
            let Flight { is_over, end, .. } = &self.flights[flight];
            if !is_over && end.is_none() {
                self.plan_end(flight, ms, End::None(NoAnswer::Network));
            }
        }
    }

    /// Ends the requests of a host that is no more.
    pub(super) fn cut_off(&mut self, life: usize) {
        for flight in self.flights.iter_mut().filter(|flight| flight.life == life) {
            flight.is_over = true;
        }
    }

    /// A request's time-out passes.
    pub(super) fn time_out(&mut self, flight: usize) {
        if self.flights[flight].is_over {
            return;
        }
        self.flights[flight].is_over = true;
        let Flight {
            life,
            seq,
            attempt,
            ref job,
            ..
        } = self.flights[flight];
        self.trace.note(
            self.now_ms,
            format_args!("{job}/{attempt} of host {life} times out"),
        );
        self.feed(
            life,
            HostInput::NoAnswer {
                seq,
                attempt,
                cause: NoAnswer::TimedOut,
            },
        );
    }
}

/// What the worker reads in the answer to a check.
const fn found(status: u16, times: u32) -> Found {
    match (status, times) {
        (200, 0) => Found::NotApplied,
        (200, _) => Found::Applied,
        _ => Found::Unclear,
    }
}

fn said(status: u16) -> ItemResult<Body> {
    ItemResult {
        status,
        text: (status >= 400).then(|| "no".to_owned()),
        response: json!({ "status": status }),
    }
}

/// How long a refusal asks to wait, where it can be read.
const fn asked_ms(refusal: Refusal) -> Option<u64> {
    match refusal {
        Refusal::Seconds(seconds) | Refusal::Busy(seconds) | Refusal::Date(seconds) => {
            Some(seconds * 1_000)
        }
        Refusal::Decimal => Some(1_250),
        Refusal::Zero | Refusal::PastDate => Some(0),
        Refusal::Silent | Refusal::Garbage | Refusal::TooEarly => None,
    }
}
