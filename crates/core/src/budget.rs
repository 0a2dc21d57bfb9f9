//! One budget at run time: its limiters, lanes, pause, ramp and holds.
//!
//! Owns when a cost may start. Does not know jobs beyond their place and cost, nor what is stored when.
//! Invariant: nothing is consumed unless all rules admit; while paused or held nothing starts.

mod access;
mod achieved;
mod adapt;
mod check;
mod estimate;
mod learned;
mod others;
mod pause;
mod repeats;
mod stored;
mod sync;

use std::collections::{BTreeMap, BTreeSet};

use crate::config::BudgetConfig;
use crate::count::Count;
use crate::ids::BatchName;
use crate::job::{Card, HoldCause, Lane, LearnedLimit};
use crate::lane::Lanes;
use crate::latency::Latency;
use crate::limit::{Limiter, Ticket};
use crate::pacer::{Pacer, Spacing};
use crate::signals::BudgetSignal;
use crate::time::{Mono, Now, Wall};

use access::Access;
pub(crate) use achieved::Demand;
use achieved::Stretches;
use adapt::WHOLE;
pub(crate) use check::{Asked, Blocked};
pub(crate) use estimate::Work;
use learned::Lost;
pub(crate) use learned::Published;
use pause::{MAX_REFUSALS, Pause, Ramp};
use repeats::Repeats;
pub(crate) use repeats::Try;
use sync::Sync;

/// Units that an attempt took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Spend {
    pub(crate) start: Wall,
    /// When it ended, at the latest.
    pub(crate) end: Wall,
    pub(crate) cost: u32,
    /// The attempt, while it is on its way.
    pub(crate) live: Option<Ticket>,
}

/// Waiting jobs of one batch.
#[derive(Clone, Copy, Debug, Default)]
struct WaitingItems {
    jobs: [u32; 3],
    /// What one request of them costs.
    cost: u32,
}

#[derive(Clone, Debug)]
pub(crate) struct Budget {
    config: BudgetConfig,
    limiters: Vec<Limiter>,
    pacer: Pacer,
    pub(crate) lanes: Lanes,
    latency: Latency,
    sync: Sync,
    in_flight: u32,
    /// Attempts of an earlier owner without an answer, by the instant at which they are over.
    ghosts: BTreeMap<Mono, u32>,
    pause: Option<Pause>,
    closed_at: Option<Mono>,
    refusals_in_a_row: u32,
    refusing_since: Option<Wall>,
    refused_at: Option<Mono>,
    factor_permille: u32,
    /// Beyond which a guess does not grow back.
    ceiling_permille: u32,
    learned: Vec<LearnedLimit>,
    learned_in_flight: Option<u32>,
    lost: Lost,
    adapted_at: Mono,
    /// The latest instant as of which the limiters were asked; they do not go back.
    judged_until: Mono,
    ramp: Option<Ramp>,
    slow_start: Option<u32>,
    holds: BTreeSet<HoldCause>,
    pub(crate) access: Access,
    pub(crate) repeats: Repeats,
    pub(crate) blocked: Option<Blocked>,
    /// When it last had its turn under a parent.
    pub(crate) last_turn: u64,
    waiting: [u32; 3],
    waiting_cost: [u64; 3],
    waiting_batched: BTreeMap<BatchName, WaitingItems>,
    stretches: Stretches,
}

impl Budget {
    pub(crate) fn new(config: BudgetConfig, now: Mono) -> Self {
        let limiters = config
            .rules()
            .iter()
            .map(|rule| Limiter::new(*rule, now))
            .collect();
        Self {
            pacer: Pacer::new(config.pace(), config.rules().iter().copied()),
            config,
            limiters,
            lanes: Lanes::default(),
            latency: Latency::default(),
            sync: Sync::default(),
            in_flight: 0,
            ghosts: BTreeMap::new(),
            pause: None,
            closed_at: None,
            refusals_in_a_row: 0,
            refusing_since: None,
            refused_at: None,
            factor_permille: WHOLE,
            ceiling_permille: WHOLE,
            learned: Vec::new(),
            learned_in_flight: None,
            lost: Lost::default(),
            adapted_at: now,
            judged_until: Mono::default(),
            ramp: None,
            slow_start: None,
            holds: BTreeSet::new(),
            access: Access::default(),
            repeats: Repeats::default(),
            blocked: None,
            last_turn: 0,
            waiting: [0; 3],
            waiting_cost: [0; 3],
            waiting_batched: BTreeMap::new(),
            stretches: Stretches::default(),
        }
    }

    /// Takes over a changed configuration and keeps what was consumed.
    /// Returns the places of rules that are new, to be given what was spent before.
    pub(crate) fn configure(&mut self, config: BudgetConfig, now: Mono) -> Vec<usize> {
        if config.rules() != self.config.rules() {
            self.factor_permille = WHOLE;
            self.ceiling_permille = WHOLE;
        }
        self.config = config;
        self.apply_rules(now)
    }

    /// Gives the limiters the rules, as much of them as is used now. A rule keeps what was consumed under the same algorithm
    /// and window, wherever it stood before; the others are new, and their places are returned.
    fn apply_rules(&mut self, now: Mono) -> Vec<usize> {
        self.close_stretch(now);
        let factor = self.factor_permille;
        let mut old = std::mem::take(&mut self.limiters);
        let mut new = Vec::new();
        for (index, rule) in self.rules_now().into_iter().enumerate() {
            let rule = rule.scaled(factor);
            let is_same = |limiter: &Limiter| {
                let known = limiter.rule();
                known.algorithm() == rule.algorithm() && known.window_ms() == rule.window_ms()
            };
            match old.iter().position(is_same) {
                Some(at) => {
                    let mut limiter = old.swap_remove(at);
                    limiter.configure(rule, now);
                    self.limiters.push(limiter);
                }
                None => {
                    new.push(index);
                    self.limiters.push(Limiter::new(rule, now));
                }
            }
        }
        let rules = self.limiters.iter().map(Limiter::rule);
        self.pacer.configure(self.config.pace(), rules);
        new
    }

    /// Gives new limiters what was spent before they were made.
    pub(crate) fn seed(&mut self, new: &[usize], spends: &[Spend], now: Now) {
        for index in new {
            let Some(limiter) = self.limiters.get_mut(*index) else {
                continue;
            };
            for spend in in_replay(spends) {
                restore(limiter, spend, now);
                let back_at = limiter.back_at(now.mono, now.wall.since(spend.start));
                self.pacer.restore(*index, spend.cost, now.mono, back_at);
            }
        }
    }

    /// Makes its limiters anew from all that was spent, of which some has only now become known.
    pub(crate) fn replay(&mut self, spends: &[Spend], now: Now) {
        for limiter in &mut self.limiters {
            *limiter = Limiter::new(limiter.rule(), now.mono);
            for spend in in_replay(spends) {
                restore(limiter, spend, now);
            }
        }
    }

    /// Spaces what follows as after an attempt of an earlier owner, which is in the limiters.
    pub(crate) fn space_after(&mut self, spend: &Spend, now: Now) {
        for (index, limiter) in self.limiters.iter().enumerate() {
            let back_at = limiter.back_at(now.mono, now.wall.since(spend.start));
            self.pacer.restore(index, spend.cost, now.mono, back_at);
        }
    }

    /// Counts a job that waits for this budget, or does so no longer.
    pub(crate) fn count_waiting(&mut self, lane: Lane, card: &Card, way: Count) {
        if let Some(jobs) = self.waiting.get_mut(lane.index()) {
            way.apply(jobs);
        }
        if let Some(batch) = &card.batch {
            let items = self.waiting_batched.entry(batch.name.clone()).or_default();
            items.cost = card.cost;
            if let Some(jobs) = items.jobs.get_mut(lane.index()) {
                way.apply(jobs);
            }
            if items.jobs == [0; 3] {
                self.waiting_batched.remove(&batch.name);
            }
        } else if let Some(units) = self.waiting_cost.get_mut(lane.index()) {
            way.apply_units(units, u64::from(card.cost));
        }
    }

    /// Returns how many jobs wait for this budget.
    pub(crate) fn waiting(&self) -> u32 {
        self.waiting.iter().sum()
    }

    /// Returns how many jobs of a lane wait for this budget.
    pub(crate) fn waiting_in(&self, lane: Lane) -> u64 {
        self.waiting.get(lane.index()).copied().map_or(0, u64::from)
    }

    pub(crate) const fn config(&self) -> &BudgetConfig {
        &self.config
    }

    pub(crate) const fn pause(&self) -> Option<Pause> {
        self.pause
    }

    pub(crate) const fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Tells whether nothing of it would be lost by making it anew: nothing waits, runs, or was spent or said lately.
    pub(crate) fn is_idle(&mut self, now: Mono) -> bool {
        let is_full = |limiter: &mut Limiter| limiter.free(now) >= limiter.rule().limit();
        self.waiting() == 0
            && self.in_flight == 0
            && !self.is_closed()
            && self.sync.left(now).is_none()
            && self.limiters.iter_mut().all(is_full)
    }

    pub(crate) const fn holds(&self) -> &BTreeSet<HoldCause> {
        &self.holds
    }

    pub(crate) fn hold(&mut self, cause: HoldCause) -> bool {
        self.holds.insert(cause)
    }

    /// Lifts all holds; after refusals the next start is a probe, and one more refusal holds again.
    pub(crate) fn resume(&mut self) {
        if self.holds.contains(&HoldCause::Refusing) {
            self.refusals_in_a_row = MAX_REFUSALS.saturating_sub(1);
            self.refusing_since = None;
            self.slow_start = Some(1);
        }
        if self.holds.contains(&HoldCause::Credentials) {
            self.slow_start = Some(1);
        }
        if self.holds.contains(&HoldCause::RetryBudget) {
            self.repeats = Repeats::default();
        }
        self.holds.clear();
    }

    /// Takes a cost that was admitted, for the instant that `check` named.
    pub(crate) fn take(&mut self, ticket: Ticket, cost: u32, now: Now) {
        self.judged_until = self.judged_until.max(now.mono);
        self.stretches.took(cost);
        for limiter in &mut self.limiters {
            limiter.take(ticket, cost, now);
        }
        let held = self.held(now.mono);
        self.sync.take(ticket, cost, now.mono, held);
        self.in_flight = self.in_flight.saturating_add(1);
        if let Some(ramp) = &mut self.ramp {
            ramp.next_at = now
                .mono
                .plus(ramp.spacing_ms.saturating_mul(u64::from(cost)));
            // A start within the ramp is followed by its gap, also when that ends after the ramp.
            if now.mono >= ramp.until {
                self.ramp = None;
            }
        }
    }

    /// The units that the log of each window holds.
    fn held(&mut self, at: Mono) -> Vec<(u64, u64)> {
        let logs = self.limiters.iter_mut().filter(|limiter| limiter.is_log());
        let held = logs.map(|limiter| {
            let (rule, free) = (limiter.rule(), limiter.free(at));
            (
                rule.window_ms(),
                u64::from(rule.limit().saturating_sub(free)),
            )
        });
        held.collect()
    }

    /// Notes that a job of `lane` was taken for the instant that `check` named, after it was removed from its lane.
    pub(crate) fn started(&mut self, lane: Lane, cost: u32, at: Mono) {
        self.space(lane, cost, at);
        self.lanes.started(lane);
    }

    /// Notes a start of `lane`, here or in a budget under this one, for the spacing of those that follow.
    pub(crate) fn space(&mut self, lane: Lane, cost: u32, at: Mono) {
        let spacing = match lane {
            Lane::Interactive => Spacing::None,
            Lane::Bulk | Lane::Background => Spacing::Gap,
        };
        self.note_others(at);
        for (index, limiter) in self.limiters.iter().enumerate() {
            let back_at = limiter.back_at(at, 0);
            self.pacer.started(index, cost, spacing, at, back_at);
        }
    }

    /// Tells the spacing what others usually have of each rule.
    pub(super) fn note_others(&mut self, at: Mono) {
        for (index, limiter) in self.limiters.iter().enumerate() {
            let rule = limiter.rule();
            let others = self.sync.others.mean(rule, at);
            self.pacer.beside(index, others);
        }
    }

    /// Notes an answer. `took_ms` is the time from its start.
    pub(crate) fn answered(&mut self, ticket: Ticket, took_ms: u64, now: Mono) {
        self.latency.push(took_ms, now);
        self.lost = Lost::default();
        let floor_ms = self.floor_ms();
        self.end(ticket, floor_ms, now);
    }

    /// Notes an attempt that ended without an answer.
    pub(crate) fn unanswered(&mut self, ticket: Ticket, now: Mono) {
        self.end(ticket, 0, now);
    }

    /// Notes an attempt whose request never left.
    pub(crate) fn never_left(&mut self, ticket: Ticket, cost: u32, now: Mono) {
        for limiter in &mut self.limiters {
            limiter.give_back(ticket, cost, now);
        }
        self.stretches.gave_back(cost);
        self.sync.forget(ticket);
        self.pacer.gave_back(cost);
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// Counts another cost for an attempt than was taken: its answer says what it was.
    pub(crate) fn correct(&mut self, ticket: Ticket, taken: u32, cost: u32, now: Now) {
        for limiter in &mut self.limiters {
            limiter.correct(ticket, taken, cost, now);
        }
        self.sync.correct(ticket, cost);
    }

    /// Takes the word of an attempt's answer for one of the server's windows, before the attempt's end is noted.
    /// Returns whether what is stored of the budget changed.
    pub(crate) fn hear(
        &mut self,
        ticket: Ticket,
        signal: &BudgetSignal,
        came_at: Mono,
        now: Now,
    ) -> bool {
        let window_ms = Some(self.longest_window_ms()).filter(|window| *window > 0);
        let is_explained = self.explains(ticket, signal, came_at);
        if let Some(counted_ms) = self.window_spoken_of(signal) {
            let latency_ms = self.usual_latency_ms();
            self.sync.hear_of_others(
                ticket,
                signal,
                counted_ms,
                latency_ms,
                came_at,
                is_explained,
            );
        }
        if is_explained {
            self.sync.hear_no_more_than_ours(ticket, signal, now.mono);
            return false;
        }
        self.sync.hear(ticket, signal, window_ms, came_at, now)
    }

    fn end(&mut self, ticket: Ticket, floor_ms: u64, now: Mono) {
        for limiter in &mut self.limiters {
            limiter.end(ticket, floor_ms, now);
        }
        self.sync.end(ticket, now);
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// Forgets how long the server takes: it may be reached another way now.
    pub(crate) fn network_changed(&mut self) {
        self.latency.forget();
    }

    fn floor_ms(&self) -> u64 {
        self.latency.floor_ms(self.longest_window_ms())
    }
}

/// The order in which a limiter is given what was spent: what is on its way comes last, because the history of a bucket is
/// replayed as one, and would forget it.
fn in_replay(spends: &[Spend]) -> impl Iterator<Item = &Spend> {
    let is_live = |spend: &&Spend| spend.live.is_some();
    let over = spends.iter().filter(move |spend| !is_live(spend));
    over.chain(spends.iter().filter(is_live))
}

fn restore(limiter: &mut Limiter, spend: &Spend, now: Now) {
    match spend.live {
        Some(ticket) => limiter.take_over(ticket, spend.cost, now),
        None => limiter.restore(spend.cost, spend.start, spend.end, now),
    }
}

/// What a limiter is asked for: a cost above a limit that was lowered meanwhile needs all of it, and goes alone. It
/// still takes its whole cost, because the server counts that.
fn fitting(limiter: &Limiter, cost: u32) -> u32 {
    cost.min(limiter.rule().limit())
}

#[cfg(test)]
mod tests;
