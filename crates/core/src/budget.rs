//! One budget at run time: its limiters, lanes, pause, ramp and holds.
//!
//! Owns when a cost may start. Does not know jobs beyond their place and cost, nor what is stored when.
//! Invariant: nothing is consumed unless all rules admit; while paused or held nothing starts.
//!
//! **Pauses.** A refusal closes the whole budget until the server's instant, plus up to a second of jitter drawn once.
//! Answers that were in flight when the pause began may only extend it, and count as the same refusal. Reopening is
//! never a burst: buckets start empty, starts under a log are spaced by window/limit for up to 10 s, and a budget that
//! has only a concurrency limit restarts with one in flight and doubles with each success.
//!
//! **Adaptation.** A refusal says that the rules allow more than the server does: somebody else spends the budget, or
//! it is smaller than we were told. So each one halves what is used of them, down to a tenth, and each clean stretch
//! gives a tenth back (additive increase, multiplicative decrease: it finds the server's limit and stays near it).

use std::collections::{BTreeMap, BTreeSet};

use oorandom::Rand64;

use crate::config::{Algorithm, BudgetConfig, LimitRule};
use crate::count::Count;
use crate::io::Cause;
use crate::job::{BudgetRecord, HoldCause, Lane};
use crate::lane::Lanes;
use crate::latency::Latency;
use crate::limit::{Admission, Limiter, Ticket};
use crate::time::{Mono, Now, Wall};

/// The least wait after a refusal, also when the server says 0.
const MIN_PAUSE_MS: u64 = 1_000;
/// The longest wait that we guess.
const MAX_GUESS_MS: u64 = 60_000;
/// Jitter at a pause's end.
const JITTER_MS: u64 = 1_000;
/// Refusals in a row after which the budget holds.
const MAX_REFUSALS: u32 = 10;
/// Pauses without a success after which the budget holds.
const MAX_REFUSING_MS: u64 = 15 * 60_000;
/// The whole of the rules, in thousandths.
const WHOLE: u32 = 1_000;
/// The least that is used of the rules, and what one clean stretch gives back, in thousandths.
const TENTH: u32 = 100;
/// The least clean stretch.
const MIN_CLEAN_MS: u64 = 10_000;
/// How long after a refusal a lost connection is taken for one too: a refusal without CORS headers looks so.
const HIDDEN_REFUSAL_MS: u64 = 60_000;
/// The longest ramp after a pause.
const MAX_RAMP_MS: u64 = 10_000;
/// What an answer is taken to need before one was seen.
const ASSUMED_LATENCY_MS: u64 = 200;

/// Why nothing starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Blocked {
    pub(crate) cause: Cause,
    /// From when on it may start; none while that depends on an answer or a wish.
    pub(crate) until: Option<Mono>,
    /// The rule that defers.
    pub(crate) rule: Option<LimitRule>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Pause {
    pub(crate) until: Mono,
    pub(crate) until_wall: Wall,
    pub(crate) is_estimate: bool,
    jitter_ms: u64,
    refused: u32,
}

#[derive(Clone, Copy, Debug)]
struct Ramp {
    until: Mono,
    next_at: Mono,
    spacing_ms: u64,
}

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

/// What a refusal did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) until: Wall,
    pub(crate) is_estimate: bool,
    pub(crate) is_longer: bool,
    /// How many refused jobs this pause has put back before this one.
    pub(crate) earlier_refused: u32,
    /// The window over which refused jobs are spread.
    pub(crate) spread_ms: u64,
    pub(crate) holds_now: bool,
}

#[derive(Debug)]
pub(crate) struct Budget {
    config: BudgetConfig,
    limiters: Vec<Limiter>,
    pub(crate) lanes: Lanes,
    latency: Latency,
    in_flight: u32,
    /// Attempts of an earlier owner without an answer, by the instant at which they are over.
    ghosts: BTreeMap<Mono, u32>,
    pause: Option<Pause>,
    closed_at: Option<Mono>,
    refusals_in_a_row: u32,
    refusing_since: Option<Wall>,
    refused_at: Option<Mono>,
    factor_permille: u32,
    adapted_at: Mono,
    /// The latest instant as of which the limiters were asked; they do not go back.
    judged_until: Mono,
    ramp: Option<Ramp>,
    slow_start: Option<u32>,
    holds: BTreeSet<HoldCause>,
    pub(crate) blocked: Option<Blocked>,
    waiting: [u32; 3],
    pub(crate) waiting_cost: [u64; 3],
}

impl Budget {
    pub(crate) fn new(config: BudgetConfig, now: Mono) -> Self {
        let limiters = config
            .rules()
            .iter()
            .map(|rule| Limiter::new(*rule, now))
            .collect();
        Self {
            config,
            limiters,
            lanes: Lanes::default(),
            latency: Latency::default(),
            in_flight: 0,
            ghosts: BTreeMap::new(),
            pause: None,
            closed_at: None,
            refusals_in_a_row: 0,
            refusing_since: None,
            refused_at: None,
            factor_permille: WHOLE,
            adapted_at: now,
            judged_until: Mono::default(),
            ramp: None,
            slow_start: None,
            holds: BTreeSet::new(),
            blocked: None,
            waiting: [0; 3],
            waiting_cost: [0; 3],
        }
    }

    /// Takes over a changed configuration and keeps what was consumed.
    /// Returns the places of rules that are new, to be given what was spent before.
    pub(crate) fn configure(&mut self, config: BudgetConfig, now: Mono) -> Vec<usize> {
        if config.rules() != self.config.rules() {
            self.factor_permille = WHOLE;
        }
        self.config = config;
        self.apply_rules(now)
    }

    /// Gives the limiters the rules, as much of them as is used now. A rule keeps what was consumed under the same algorithm
    /// and window, wherever it stood before; the others are new, and their places are returned.
    fn apply_rules(&mut self, now: Mono) -> Vec<usize> {
        let factor = self.factor_permille;
        let mut old = std::mem::take(&mut self.limiters);
        let mut new = Vec::new();
        for (index, rule) in self.config.rules().iter().enumerate() {
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
        new
    }

    /// Gives new limiters what was spent before they were made.
    pub(crate) fn seed(&mut self, new: &[usize], spends: &[Spend], now: Now) {
        for index in new {
            let Some(limiter) = self.limiters.get_mut(*index) else {
                continue;
            };
            for spend in spends {
                let cost = fitting(limiter, spend.cost);
                match spend.live {
                    Some(ticket) => limiter.take(ticket, cost, now),
                    None => limiter.restore(cost, spend.start, spend.end, now),
                }
            }
        }
    }

    /// Counts a job that waits for this budget, or does so no longer.
    pub(crate) fn count_waiting(&mut self, lane: Lane, cost: u32, way: Count) {
        if let Some(jobs) = self.waiting.get_mut(lane.index()) {
            way.apply(jobs);
        }
        if let Some(units) = self.waiting_cost.get_mut(lane.index()) {
            way.apply_units(units, u64::from(cost));
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

    /// Takes over what is stored of the budget.
    pub(crate) fn restore(&mut self, record: &BudgetRecord, now: Now) {
        self.refusals_in_a_row = record.refusals_in_a_row;
        self.refusing_since = record.refusing_since;
        self.holds = record.holds.iter().copied().collect();
        self.factor_permille = record.factor_permille.unwrap_or(WHOLE).clamp(TENTH, WHOLE);
        let _ = self.apply_rules(now.mono);
        let Some(until_wall) = record.paused_until.filter(|until| *until > now.wall) else {
            return;
        };
        self.closed_at = Some(now.mono);
        self.pause = Some(Pause {
            until: now.mono_of(until_wall),
            until_wall,
            is_estimate: record.pause_is_estimate,
            jitter_ms: 0,
            refused: 0,
        });
    }

    /// Takes what an attempt of an earlier owner used; attempts come in the order of their starts.
    pub(crate) fn restore_spent(&mut self, cost: u32, start: Wall, end: Wall, now: Now) {
        for limiter in &mut self.limiters {
            limiter.restore(cost, start, end, now);
        }
    }

    /// Counts an attempt of an earlier owner as in flight until it is over.
    pub(crate) fn restore_in_flight(&mut self, end: Wall, now: Now) {
        if end > now.wall {
            let ghosts = self.ghosts.entry(now.mono_of(end)).or_default();
            *ghosts = ghosts.saturating_add(1);
        }
    }

    pub(crate) fn record(&self) -> BudgetRecord {
        BudgetRecord {
            paused_until: self.pause.map(|pause| pause.until_wall),
            pause_is_estimate: self.pause.is_some_and(|pause| pause.is_estimate),
            refusals_in_a_row: self.refusals_in_a_row,
            refusing_since: self.refusing_since,
            holds: self.holds.iter().copied().collect(),
            factor_permille: (self.factor_permille < WHOLE).then_some(self.factor_permille),
        }
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
        self.holds.clear();
    }

    /// Tells from when on a cost may start, if that is now or before `horizon`; else why not, and until when.
    ///
    /// Once something was taken for an instant that is still to come, what follows is judged as of then.
    pub(crate) fn check(&mut self, cost: u32, now: Mono, horizon: Mono) -> Result<Mono, Blocked> {
        let mut start = now.max(self.judged_until);
        loop {
            match self.check_at(cost, now, start) {
                Ok(()) => return Ok(start),
                Err(Blocked {
                    cause: Cause::Rate,
                    until: Some(until),
                    ..
                }) if until > start && until <= horizon => {
                    start = until;
                    // The limiters have seen that instant, whether or not it is taken.
                    self.judged_until = start;
                }
                Err(blocked) => return Err(blocked),
            }
        }
    }

    fn check_at(&mut self, cost: u32, now: Mono, start: Mono) -> Result<(), Blocked> {
        let blocked = |cause, until| {
            Err(Blocked {
                cause,
                until,
                rule: None,
            })
        };
        if !self.holds.is_empty() {
            return blocked(Cause::Held, None);
        }
        if let Some(pause) = self.pause {
            return blocked(Cause::Paused, Some(pause.until));
        }
        if let Some(until) = self.full_until(now) {
            return blocked(Cause::InFlight, until);
        }
        if let Some(ramp) = self.ramp
            && start < ramp.next_at
        {
            return blocked(Cause::Rate, Some(ramp.next_at));
        }
        self.check_rules(cost, start)
    }

    fn check_rules(&mut self, cost: u32, now: Mono) -> Result<(), Blocked> {
        let mut worst = Admission::Admit;
        let mut rule = None;
        for limiter in &mut self.limiters {
            let both = worst.and(limiter.check(fitting(limiter, cost), now));
            if both != worst {
                worst = both;
                rule = Some(limiter.rule());
            }
        }
        match worst {
            Admission::Admit => Ok(()),
            Admission::Defer(at) => Err(Blocked {
                cause: Cause::Rate,
                until: Some(at),
                rule,
            }),
            Admission::DeferToAnswer | Admission::Never => Err(Blocked {
                cause: Cause::Rate,
                until: None,
                rule,
            }),
        }
    }

    /// Takes a cost that was admitted, for the instant that `check` named.
    pub(crate) fn take(&mut self, ticket: Ticket, cost: u32, now: Now) {
        self.judged_until = self.judged_until.max(now.mono);
        for limiter in &mut self.limiters {
            limiter.take(ticket, cost, now);
        }
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

    /// Notes an answer. `took_ms` is the time from its start.
    pub(crate) fn answered(&mut self, ticket: Ticket, took_ms: u64, now: Mono) {
        self.latency.push(took_ms, now);
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
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    fn end(&mut self, ticket: Ticket, floor_ms: u64, now: Mono) {
        for limiter in &mut self.limiters {
            limiter.end(ticket, floor_ms, now);
        }
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// Notes a success. Returns whether what is stored of the budget changed.
    pub(crate) fn succeeded(&mut self, now: Mono) -> bool {
        if let (Some(allowed), Some(max)) = (self.slow_start, self.config.max_in_flight()) {
            let doubled = allowed.saturating_mul(2);
            self.slow_start = (doubled < max).then_some(doubled);
        } else {
            self.slow_start = None;
        }
        let was_refusing = self.refusals_in_a_row > 0;
        self.refusals_in_a_row = 0;
        self.refusing_since = None;
        self.grow(now) || was_refusing
    }

    /// Gives a tenth of the rules back after a clean stretch. Returns whether it did.
    fn grow(&mut self, now: Mono) -> bool {
        let windows = self.config.rules().iter().map(|rule| rule.window_ms());
        let clean_ms = windows.min().unwrap_or(0).max(MIN_CLEAN_MS);
        if self.factor_permille >= WHOLE || now.since(self.adapted_at) < clean_ms {
            return false;
        }
        self.adapt(self.factor_permille.saturating_add(TENTH), now);
        true
    }

    fn adapt(&mut self, factor_permille: u32, now: Mono) {
        self.factor_permille = factor_permille.clamp(TENTH, WHOLE);
        self.adapted_at = now;
        let _ = self.apply_rules(now);
    }

    /// Notes a refusal that could be read; what hides for a while after it may be others.
    pub(crate) const fn note_refusal(&mut self, now: Mono) {
        self.refused_at = Some(now);
    }

    /// Tells whether nothing may start, whatever the rules say.
    pub(crate) fn is_closed(&self) -> bool {
        self.pause.is_some() || !self.holds.is_empty()
    }

    /// Tells whether a lost connection is more likely a refusal that we may not read.
    pub(crate) fn may_hide_refusals(&self, now: Mono) -> bool {
        self.refused_at
            .is_some_and(|at| now.since(at) < HIDDEN_REFUSAL_MS)
    }

    /// Notes a refusal of an attempt that was claimed at `started`.
    pub(crate) fn refused(
        &mut self,
        started: Mono,
        asked_ms: Option<u64>,
        now: Now,
        rng: &mut Rand64,
    ) -> Refusal {
        let is_late =
            self.pause.is_some() || self.closed_at.is_some_and(|closed| started <= closed);
        if !is_late {
            self.refusals_in_a_row = self.refusals_in_a_row.saturating_add(1);
            self.refusing_since.get_or_insert(now.wall);
            self.latency.forget();
            self.adapt(self.factor_permille / 2, now.mono);
        }
        let guess_ms = self.guess_ms();
        let wait_ms = asked_ms.map_or(guess_ms, |asked| asked.max(MIN_PAUSE_MS));
        let jitter_ms = match self.pause {
            Some(pause) => pause.jitter_ms,
            None => rng.rand_range(0..JITTER_MS.saturating_add(1)),
        };
        let until = now.mono.plus(wait_ms).plus(jitter_ms);
        let earlier_refused = self.pause.map_or(0, |pause| pause.refused);
        let is_longer = self.pause.is_none_or(|pause| until > pause.until);
        let mut pause = match self.pause {
            Some(pause) if !is_longer => pause,
            Some(_) | None => Pause {
                until,
                until_wall: now.wall_of(until),
                is_estimate: asked_ms.is_none(),
                jitter_ms,
                refused: earlier_refused,
            },
        };
        pause.refused = pause.refused.saturating_add(1);
        if self.pause.is_none() {
            self.closed_at = Some(now.mono);
        }
        self.pause = Some(pause);
        let too_long = self
            .refusing_since
            .is_some_and(|since| now.wall.since(since) >= MAX_REFUSING_MS);
        let holds_now =
            (self.refusals_in_a_row >= MAX_REFUSALS || too_long) && self.hold(HoldCause::Refusing);
        Refusal {
            until: pause.until_wall,
            is_estimate: pause.is_estimate,
            is_longer,
            earlier_refused,
            spread_ms: guess_ms,
            holds_now,
        }
    }

    /// Ends the pause if it is over. Returns whether it did.
    pub(crate) fn reopen_if_due(&mut self, now: Mono) -> bool {
        let Some(pause) = self.pause else {
            return false;
        };
        if now < pause.until {
            return false;
        }
        self.pause = None;
        for limiter in &mut self.limiters {
            limiter.restart(now);
        }
        self.ramp = self.ramp_from(now);
        if self.limiters.is_empty() && self.config.max_in_flight().is_some() {
            self.slow_start = Some(1);
        }
        true
    }

    /// Forgets how long the server takes: it may be reached another way now.
    pub(crate) fn network_changed(&mut self) {
        self.latency.forget();
    }

    /// Takes the wall clock's word for what is left of a pause: the machine slept.
    pub(crate) fn suspended(&mut self, now: Now) {
        self.latency.forget();
        if let Some(pause) = &mut self.pause {
            pause.until = pause.until.min(now.mono_of(pause.until_wall));
        }
    }

    /// Returns the units that the tightest rule would admit now.
    pub(crate) fn believed_free(&mut self, now: Mono) -> u32 {
        self.limiters
            .iter_mut()
            .map(|limiter| limiter.free(now))
            .min()
            .unwrap_or(u32::MAX)
    }

    /// Returns the milliseconds until `cost` more units are sent; none while held.
    ///
    /// Throughput is min(rate, concurrency / mean latency) (Little's law); a slot of a log turns over once a window
    /// plus a latency.
    pub(crate) fn eta_ms(&mut self, cost: u64, now: Mono) -> Option<u64> {
        if !self.holds.is_empty() {
            return None;
        }
        let paused_ms = self.pause.map_or(0, |pause| pause.until.since(now));
        if cost == 0 {
            return Some(0);
        }
        let latency_ms = self.latency.mean_ms().unwrap_or(ASSUMED_LATENCY_MS);
        let floor_ms = self.floor_ms();
        let starts_at_empty = self.pause.is_some();
        let by_rules = self.limiters.iter_mut().map(|limiter| {
            let free = if starts_at_empty {
                0
            } else {
                u64::from(limiter.free(now))
            };
            let rule = limiter.rule();
            let cycle_ms = match rule.algorithm() {
                Algorithm::ArrivalLog => rule
                    .window_ms()
                    .saturating_add(latency_ms)
                    .saturating_sub(floor_ms),
                Algorithm::BatchRest => rule.window_ms().saturating_add(latency_ms),
                Algorithm::SlidingLog
                | Algorithm::FixedWindow
                | Algorithm::SlidingCounter
                | Algorithm::TokenBucket
                | Algorithm::LeakyBucket
                | Algorithm::LeakyQueue
                | Algorithm::Gcra => rule.window_ms(),
            };
            cost.saturating_sub(free).saturating_mul(cycle_ms) / u64::from(rule.limit())
        });
        let by_rules = by_rules.max().unwrap_or(0);
        let by_flight = self
            .config
            .max_in_flight()
            .map_or(0, |max| cost.saturating_mul(latency_ms) / u64::from(max));
        Some(
            paused_ms
                .saturating_add(by_rules.max(by_flight))
                .saturating_add(latency_ms),
        )
    }

    /// Tells whether an estimate rests on a guess.
    pub(crate) fn is_guess(&self) -> bool {
        self.pause.is_some_and(|pause| pause.is_estimate) || self.latency.mean_ms().is_none()
    }

    /// Returns, when no further request may be in flight, the instant at which one is over by itself.
    fn full_until(&mut self, now: Mono) -> Option<Option<Mono>> {
        while let Some(entry) = self.ghosts.first_entry() {
            if *entry.key() > now {
                break;
            }
            entry.remove();
        }
        let configured = self.config.max_in_flight().unwrap_or(u32::MAX);
        let max = configured.min(self.slow_start.unwrap_or(u32::MAX));
        let ghosts: u32 = self.ghosts.values().sum();
        if self.in_flight.saturating_add(ghosts) < max {
            return None;
        }
        Some(self.ghosts.keys().next().copied())
    }

    fn floor_ms(&self) -> u64 {
        self.latency.floor_ms(self.config.longest_window_ms())
    }

    fn guess_ms(&self) -> u64 {
        let doublings = self.refusals_in_a_row.saturating_sub(1).min(6);
        (MIN_PAUSE_MS << doublings).min(MAX_GUESS_MS)
    }

    fn ramp_from(&self, now: Mono) -> Option<Ramp> {
        let logs = || {
            self.config
                .rules()
                .iter()
                .filter(|rule| rule.algorithm().is_window())
        };
        let spacing_ms = logs()
            .map(|rule| rule.window_ms().div_ceil(u64::from(rule.limit())))
            .max()?;
        let window_ms = logs().map(|rule| rule.window_ms()).max()?;
        Some(Ramp {
            until: now.plus(window_ms.min(MAX_RAMP_MS)),
            next_at: now,
            spacing_ms,
        })
    }
}

/// What a limiter is asked for: a cost above a limit that was lowered meanwhile needs all of it, and goes alone. It
/// still takes its whole cost, because the server counts that.
fn fitting(limiter: &Limiter, cost: u32) -> u32 {
    cost.min(limiter.rule().limit())
}

#[cfg(test)]
mod tests;
