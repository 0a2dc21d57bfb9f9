//! The end of a run: faults stop, wishes to wait are taken back, and then everything must come to its end in time.

use serde_json::json;

use super::World;
use crate::events::Event;

/// How long after the first healing the last one comes: what was on its way may still have closed something.
const SECOND_HEALING_MS: u64 = 60_000;
/// What pauses, backoffs, time-outs and a page's wishes take at most, together.
const PATIENCE_MS: u64 = 1_800_000;

/// What is known of the end.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rest {
    healings: u32,
    deadline_ms: Option<u64>,
}

impl World {
    /// All faults stop; somebody is there to ask for what was held.
    pub(super) fn heal(&mut self) {
        self.trace
            .note(self.now_ms, format_args!("all is well from here on"));
        for server in &mut self.servers {
            server.heal();
        }
        self.disk_faults.clear();
        self.slow_disk_ms = 0;
        if self.is_offline {
            self.online();
        }
        for life in 0..self.lives.len() {
            self.lives[life].outputs_left = None;
            if self.owner != Some(life) && !self.lives[life].is_dead {
                self.kill(life);
            }
        }
        if self.owner.is_none() {
            self.plan_start(0);
        }
        self.ask(0, json!({ "type": "resume" }));
        self.rest.healings += 1;
        if self.rest.healings == 1 {
            self.events
                .push(self.now_ms + SECOND_HEALING_MS, Event::Heals);
            self.rest.deadline_ms = Some(self.now_ms + self.bound_ms());
        }
    }

    /// How long everything may take that is still to be done.
    fn bound_ms(&self) -> u64 {
        let unsettled = self.model.jobs().filter(|job| !job.state.is_settled());
        let cost: u64 = unsettled.map(|job| u64::from(job.card.cost) + 1).sum();
        let slowest = self
            .settings
            .apis
            .iter()
            .flat_map(|api| api.rules.iter().chain(&api.writes))
            .map(|rule| rule.window_ms.div_ceil(rule.limit))
            .max();
        PATIENCE_MS + self.set_back_ms + cost * (slowest.unwrap_or(0) + 5_000) * 3
    }

    /// Judges whether the end takes too long.
    pub(super) fn judge_time(&mut self) {
        let is_late = self
            .rest
            .deadline_ms
            .is_some_and(|deadline| self.now_ms > deadline);
        if is_late {
            let why = self
                .unfinished()
                .unwrap_or_else(|| "something goes on".to_owned());
            self.fail("liveness", format!("not at rest in time: {why}"));
        }
    }

    fn unfinished(&self) -> Option<String> {
        let job = self.model.jobs().find(|job| !job.state.is_settled());
        let job = job.map(|job| format!("{} is {:?}", job.card.id, job.state));
        let tab = self.tabs.iter().enumerate().filter(|(_, tab)| tab.is_open);
        let tab = tab.filter_map(|(number, tab)| {
            Some(format!("tab {number} waits for {}", tab.waits_for()?))
        });
        job.or_else(|| tab.into_iter().next())
    }

    /// Nothing more will happen: judges what is left.
    pub(super) fn judge_end(&mut self) {
        if let Some(why) = self.unfinished() {
            return self.fail("liveness", format!("nothing more happens, and {why}"));
        }
        let Some(owner) = self.owner else {
            return self.fail("liveness", "there is no host".to_owned());
        };
        if let Some((at, reason)) = self.lives[owner].timeout() {
            return self.fail(
                "idle",
                format!("an idle host has a timer at {at:?}: {reason}"),
            );
        }
        self.judge_all_effects();
        self.judge_memory(owner);
    }

    fn judge_all_effects(&mut self) {
        let jobs: Vec<(String, String)> = self
            .model
            .jobs()
            .map(|job| {
                (
                    job.card.id.as_str().to_owned(),
                    job.card.budget.as_str().to_owned(),
                )
            })
            .collect();
        for (job, budget) in jobs {
            let server = self
                .servers
                .iter()
                .find(|server| crate::model::pacing::name(server.api()) == budget);
            let Some(times) = server.map(|server| server.times_applied(&job)) else {
                continue;
            };
            let entry = self
                .model
                .job(&job)
                .map(|entry| entry.attempt > 0 || entry.was_sent_before);
            if times > 0 && entry == Some(false) {
                self.fail("effects", format!("{job} took effect and was never sent"));
            }
            let effects = self.model.judge_effects(&job, times, "POST");
            self.judge(effects);
        }
    }

    /// A host that has nothing to do remembers nobody who asks.
    fn judge_memory(&mut self, owner: usize) {
        let memory = self.lives[owner].memory();
        let empty = [
            "asked: {}",
            "askers: {}",
            "group_askers: {}",
            "responses: {}",
            "repeats: {}",
            "reads: []",
            "outputs: []",
            "incoming: {}",
            "in_memory: {}",
            "claimed: {}",
            "waiting: []",
            "alone: []",
            "missing: []",
            "running: None",
            "effects: []",
            "pending: {}",
            "keys: {}",
            "newest: {}",
            "companies: {}",
            "merged: 0,",
            "delayed: {}",
            "expiring: {}",
            "undecided: {}",
            "undeclared: {}",
        ];
        if let Some(full) = empty.into_iter().find(|field| !memory.contains(field)) {
            let name = full.split(':').next().unwrap_or(full);
            let at = memory.find(&format!(" {name}: ")).unwrap_or(0);
            let shown: String = memory.chars().skip(at).take(200).collect();
            self.fail("bounds", format!("an idle host still holds {shown}"));
        }
    }
}
