//! Owns everything, and steps from one due event to the next: the machine with its clocks, tabs and hosts, the ports
//! between them, the disk, and the servers. Judges after every step.
//!
//! Invariant: nothing happens but through an event, and every draw comes from the seed, so that equal plans of equal
//! seeds are equal runs.

mod act;
mod disk;
mod hosts;
mod ports;
mod rest;
mod wire;

use std::collections::{BTreeMap, VecDeque};

use paceline_host::TabId;
use paceline_store::memory::MemoryStore;

use self::hosts::Life;
use self::ports::Port;
use self::rest::Rest;
use self::wire::Flight;
use crate::clock::Clocks;
use crate::draw::Draw;
use crate::events::{Event, Events};
use crate::message::Body;
use crate::model::{Broken, Model};
use crate::profile::{Profile, Settings, Terms};
use crate::tab::Tab;
use crate::trace::Trace;
use crate::transition::{DiskFault, Step};
use crate::upstream::Upstream;

/// Steps after which a run is taken to go on for ever.
const MAX_STEPS: u64 = 2_000_000;

/// The draws of a run, by purpose.
#[derive(Debug)]
struct Draws {
    ports: Draw,
    disk: Draw,
    wire: Draw,
    hosts: Draw,
}

/// One world.
#[derive(Debug)]
pub(crate) struct World {
    settings: Settings,
    plan: Vec<Step>,
    clocks: Clocks,
    events: Events,
    now_ms: u64,
    pub(crate) trace: Trace,
    pub(crate) steps: u64,
    pub(crate) broken: Option<Broken>,
    draws: Draws,
    model: Model,
    servers: Vec<Upstream>,
    flights: Vec<Flight>,
    store: MemoryStore<Body>,
    lives: Vec<Life>,
    owner: Option<usize>,
    is_start_planned: bool,
    tabs: Vec<Tab>,
    ports: BTreeMap<TabId, Port>,
    /// What was asked for by a port and a job's name, and not told yet.
    owed: BTreeMap<(TabId, String), u32>,
    disk_faults: VecDeque<DiskFault>,
    slow_disk_ms: u64,
    is_offline: bool,
    names: u64,
    set_back_ms: u64,
    /// When the machine's last sleep ends.
    wakes_ms: u64,
    rest: Rest,
    /// What the newest release declares.
    terms: Terms,
    releases: u32,
}

impl World {
    /// Makes the world of a seed, in which a plan will be carried out.
    pub(crate) fn new(seed: u64, profile: Profile, plan: &[Step], keeps_lines: bool) -> Self {
        let settings = Settings::draw(seed, profile);
        let servers = settings.apis.iter().zip(300..);
        let servers = servers
            .map(|(api, stream)| Upstream::new(api.clone(), seed, stream))
            .collect();
        let draw = |stream| Draw::new(seed, profile.stream() + stream);
        let mut world = Self {
            clocks: Clocks::new(settings.mono_stops_asleep),
            events: Events::default(),
            now_ms: 0,
            trace: Trace::new(keeps_lines),
            steps: 0,
            broken: None,
            draws: Draws {
                ports: draw(400),
                disk: draw(500),
                wire: draw(600),
                hosts: draw(700),
            },
            model: Model::new(&settings.apis),
            servers,
            flights: Vec::new(),
            store: MemoryStore::new(),
            lives: Vec::new(),
            owner: None,
            is_start_planned: false,
            tabs: (0..settings.tabs)
                .map(|_| Tab::open(Terms::Whole))
                .collect(),
            ports: BTreeMap::new(),
            owed: BTreeMap::new(),
            disk_faults: VecDeque::new(),
            slow_disk_ms: 0,
            is_offline: false,
            names: 0,
            set_back_ms: 0,
            wakes_ms: 0,
            rest: Rest::default(),
            terms: Terms::Whole,
            releases: 0,
            plan: plan.to_vec(),
            settings,
        };
        world.trace.note(0, format_args!("{:?}", world.settings));
        world.begin();
        world
    }

    fn begin(&mut self) {
        for (index, step) in self.plan.iter().enumerate() {
            self.events.push(step.at_ms, Event::Act(index));
        }
        self.events
            .push(self.settings.horizon_ms * 2 + 1_000, Event::Heals);
        self.plan_start(0);
    }

    /// Runs to the end, or to the first thing that is wrong.
    pub(crate) fn run(&mut self) {
        while self.broken.is_none() {
            let Some((at_ms, event)) = self.events.pop() else {
                self.judge_end();
                return;
            };
            if self.is_stale(&event) {
                continue;
            }
            self.now_ms = self.now_ms.max(at_ms);
            if let Some(life) = self.frozen_life(&event) {
                self.lives[life].backlog.push_back(event);
                continue;
            }
            self.steps += 1;
            self.happen(event);
            self.judge_pace();
            self.judge_time();
            if self.steps > MAX_STEPS {
                self.fail("endless", "the run does not come to an end".to_owned());
            }
        }
    }

    /// The host whose thread an event needs, if that stands still or has not caught up.
    fn frozen_life(&self, event: &Event) -> Option<usize> {
        let life = match event {
            Event::ToHost { life, .. }
            | Event::TabLeft { life, .. }
            | Event::DiskAnswers { life, .. }
            | Event::Wakes { life, .. } => *life,
            Event::Ends { flight } | Event::TimesOut { flight } => self.flights[*flight].life(),
            Event::Act(_)
            | Event::ToTab { .. }
            | Event::HostStarts
            | Event::Meets { .. }
            | Event::DiskApplies { .. }
            | Event::Arrives { .. }
            | Event::CutOff { .. }
            | Event::Thaws { .. }
            | Event::Online
            | Event::DiskRecovers
            | Event::Heals => return None,
        };
        let thread = &self.lives[life];
        let is_frozen = thread.frozen_until_ms > self.now_ms || !thread.backlog.is_empty();
        (thread.is_running() && is_frozen).then_some(life)
    }

    /// A timer that was set anew, or the time-out of what is over, is as good as cleared.
    fn is_stale(&self, event: &Event) -> bool {
        match event {
            Event::Wakes { life, armed } => !self.lives[*life].is_armed(*armed),
            Event::TimesOut { flight } => self.flights[*flight].is_over,
            Event::Act(_)
            | Event::ToHost { .. }
            | Event::TabLeft { .. }
            | Event::ToTab { .. }
            | Event::HostStarts
            | Event::Meets { .. }
            | Event::DiskApplies { .. }
            | Event::DiskAnswers { .. }
            | Event::Arrives { .. }
            | Event::Ends { .. }
            | Event::CutOff { .. }
            | Event::Thaws { .. }
            | Event::Online
            | Event::DiskRecovers
            | Event::Heals => false,
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Act(index) => self.act(index),
            Event::ToHost {
                life,
                port,
                message,
            } => self.arrive_at_host(life, port, &message),
            Event::TabLeft { life, port } => self.tab_left(life, port),
            Event::ToTab { tab, port, message } => self.arrive_at_tab(tab, port, &message),
            Event::HostStarts => self.start_host(),
            Event::Meets { tab, life } => self.meet(tab, life),
            Event::DiskApplies { life, op } => self.disk_applies(life, op),
            Event::DiskAnswers { life, op } => self.disk_answers(life, op),
            Event::Wakes { life, armed: _ } => self.wake(life),
            Event::Arrives { flight } => self.arrive_at_server(flight),
            Event::Ends { flight } => self.end_flight(flight),
            Event::TimesOut { flight } => self.time_out(flight),
            Event::CutOff { life } => self.cut_off(life),
            Event::Thaws { life } => self.thaw(life),
            Event::Online => self.online(),
            Event::DiskRecovers => self.slow_disk_ms = 0,
            Event::Heals => self.heal(),
        }
    }

    /// What is not judged at arrival is judged by claims, which the model sees.
    fn judge_pace(&mut self) {
        for api in 0..self.servers.len() {
            let server = &mut self.servers[api];
            server.give_back(self.model.pacing.take_given_back(server.api()));
            let claims = self.model.pacing.take_claims(server.api());
            let judged: Result<(), String> = claims
                .into_iter()
                .try_for_each(|(at_ms, cost)| server.judge_claim(at_ms, cost));
            self.judge(judged.map_err(|text| ("limit", text)));
        }
    }

    fn judge<T>(&mut self, result: Result<T, Broken>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err((rule, text)) => {
                self.fail(rule, text);
                None
            }
        }
    }

    fn fail(&mut self, rule: &'static str, text: String) {
        if self.broken.is_none() {
            self.trace
                .note(self.now_ms, format_args!("BROKEN {rule}: {text}"));
            self.broken = Some((rule, text));
        }
    }

    fn fresh_name(&mut self, what: &str) -> String {
        self.names += 1;
        format!("{what}-{}", self.names)
    }
}
