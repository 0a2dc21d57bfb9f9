//! What the server publishes of its limits, and what it lets us guess.
//!
//! A published limit takes the place of the number of the rule with that window: down at once, up only where the rule is
//! a guess (`learn: true`, implicit budgets). A window that no rule has replaces the first guessed rule. Of what is
//! published the app's share is used; of what was only found by a refusal, nine tenths.
//!
//! **An unstated limit.** Some servers reset connections instead of refusing, and some refuse without the headers that
//! would let a browser read it. Three attempts in a row without an answer, over at least two jobs, are taken for a
//! refusal: the budget pauses by a guess, and the third costs no attempt. At the least rate there is nothing to halve, and
//! the failures count like others: so a server that is dead is not waited for without end.
//! Invariant: what is learned is in range, and at most as many limits are kept as a budget may have rules.

use super::Budget;
use super::adapt::{TENTH, WHOLE};
use crate::config::{Algorithm, LimitRule, MAX_IN_FLIGHT, MAX_RULES};
use crate::ids::Seq;
use crate::job::LearnedLimit;
use crate::limit::Ticket;
use crate::signals::BudgetSignal;
use crate::time::Mono;

/// The part of what a refusal has shown that is used, in thousandths.
const SHARE_OF_FOUND: u32 = 900;
/// How long the ceiling stands after the last change, in milliseconds.
const CEILING_MS: u64 = 600_000;
/// Attempts in a row without an answer that are taken for a limit.
const LOST_IN_A_ROW: u32 = 3;

/// Attempts that ended without an answer since the last one that had one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lost {
    count: u32,
    first: Option<Seq>,
    is_of_several: bool,
}

/// What a published number has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Published {
    /// Nothing.
    Nothing,
    /// The rules; those at these places are new, to be given what was spent before.
    Rules(Vec<usize>),
}

impl Budget {
    /// Takes over the limit and window that an answer publishes.
    pub(crate) fn publish(&mut self, signal: &BudgetSignal, now: Mono) -> Published {
        let (Some(limit), Some(window_ms)) = (signal.limit, signal.window_ms) else {
            return Published::Nothing;
        };
        let share = u64::from(self.config.share_permille());
        let limit = limit.saturating_mul(share) / u64::from(WHOLE);
        let Ok(limit) = u32::try_from(limit.max(1)) else {
            return Published::Nothing;
        };
        let known = self
            .config
            .rules()
            .iter()
            .find(|rule| rule.window_ms() == window_ms);
        let is_taken = match known {
            Some(rule) => rule.learns() || limit < rule.limit(),
            None => self.config.learns() || self.config.is_of_scope(),
        };
        let before = self.learned.clone();
        self.learned
            .retain(|learned| learned.window_ms != window_ms);
        if is_taken && self.learned.len() < MAX_RULES {
            self.learned.push(LearnedLimit { limit, window_ms });
            self.learned.sort_by_key(|learned| learned.window_ms);
        }
        if self.learned == before {
            return Published::Nothing;
        }
        Published::Rules(self.apply_rules(now))
    }

    /// Takes over how many requests the server lets be in flight. Returns whether that is new.
    pub(crate) fn publish_in_flight(&mut self, places: u32) -> bool {
        let places = Some(places.clamp(1, MAX_IN_FLIGHT));
        std::mem::replace(&mut self.learned_in_flight, places) != places
    }

    /// Returns the most requests in flight: the server's number may raise a guess, and lower any.
    pub(crate) fn max_in_flight(&self) -> Option<u32> {
        match (self.config.max_in_flight(), self.learned_in_flight) {
            (Some(own), Some(_)) if !self.config.learns() => {
                self.learned_in_flight.map(|learned| learned.min(own))
            }
            (_, Some(learned)) => Some(learned),
            (own, None) => own,
        }
    }

    /// Returns the longest window of any rule that is used, 0 without rules.
    pub(crate) fn longest_window_ms(&self) -> u64 {
        let used = self
            .limiters
            .iter()
            .map(|limiter| limiter.rule().window_ms());
        used.max().unwrap_or(0).max(self.config.longest_window_ms())
    }

    /// Returns the window of a rule that a signal speaks of: the one that it names, or that of the only rule if it has the
    /// same limit.
    pub(super) fn window_spoken_of(&self, signal: &BudgetSignal) -> Option<u64> {
        let rules = self.rules_now();
        let is_meant = |rule: &&LimitRule| match signal.window_ms {
            Some(window_ms) => rule.window_ms() == window_ms,
            None => rules.len() == 1 && signal.limit == Some(u64::from(rule.limit())),
        };
        rules.iter().find(is_meant).map(|rule| rule.window_ms())
    }

    /// Tells whether what a server says is used of a window may all be ours. Then its word adds nothing to our log, which
    /// is safe in any window of that length, and knows which of ours come back when. Not where others are known to spend:
    /// then it is more likely theirs than a request of ours that was counted early.
    pub(super) fn explains(&self, ticket: Ticket, signal: &BudgetSignal, at: Mono) -> bool {
        let rules = self.rules_now();
        let is_only = rules.len() == 1 && signal.window_ms.is_none() && signal.limit.is_none();
        let window_ms = match self.window_spoken_of(signal) {
            None if is_only => rules.first().map(|rule| rule.window_ms()),
            known => known,
        };
        let (Some(window_ms), Some(left)) = (window_ms, signal.remaining) else {
            return false;
        };
        let rule = rules.iter().find(|rule| rule.window_ms() == window_ms);
        let Some(ours) = rule.map(|rule| u64::from(rule.limit())) else {
            return false;
        };
        let limit = signal.limit.unwrap_or(ours);
        let used = self.sync.used_by_us(ticket, window_ms);
        // Resets are told in whole seconds, rounded up.
        let is_of_window = |reset_ms: u64| reset_ms <= window_ms.next_multiple_of(1_000);
        limit >= ours
            && !self.sync.others.are_there(window_ms, at)
            && used.is_some_and(|used| limit.saturating_sub(left) <= used)
            && signal.reset_in_ms.is_none_or(is_of_window)
    }

    /// Returns the rules with the numbers that the server published.
    pub(super) fn rules_now(&self) -> Vec<LimitRule> {
        let is_known = |window_ms| {
            let mut rules = self.config.rules().iter();
            rules.any(|rule| rule.window_ms() == window_ms)
        };
        let (own, mut others): (Vec<&LearnedLimit>, Vec<&LearnedLimit>) = self
            .learned
            .iter()
            .partition(|learned| is_known(learned.window_ms));
        if self.config.is_of_scope() {
            let rule = |learned: &LearnedLimit| {
                let limit = u64::from(learned.limit);
                LimitRule::new(limit, learned.window_ms, Algorithm::ArrivalLog).ok()
            };
            return self.learned.iter().filter_map(rule).collect();
        }
        let mut rules = Vec::new();
        for rule in self.config.rules() {
            let learned = own.iter().find(|own| own.window_ms == rule.window_ms());
            match learned {
                Some(learned) => rules.extend(numbers(*rule, learned)),
                None if rule.learns() && !others.is_empty() => {
                    rules.extend(others.drain(..).filter_map(|other| numbers(*rule, other)));
                }
                None => rules.push(*rule),
            }
        }
        rules.truncate(MAX_RULES);
        rules
    }

    /// Remembers where a guess was refused, before the rate is halved for it.
    pub(super) fn note_found(&mut self) {
        if self.config.learns() && self.learned.is_empty() {
            let found = self.factor_permille.saturating_mul(SHARE_OF_FOUND) / WHOLE;
            self.ceiling_permille = found.max(TENTH);
        }
    }

    /// Lets a guess grow beyond where it was refused once, after a long time.
    pub(super) fn raise_ceiling(&mut self, now: Mono) {
        let is_reached = self.factor_permille >= self.ceiling_permille;
        if is_reached && now.since(self.adapted_at) >= CEILING_MS {
            let raised = self.ceiling_permille.saturating_add(TENTH);
            self.ceiling_permille = raised.min(WHOLE);
        }
    }

    /// Notes an attempt of a job that ended without an answer. Returns whether that is taken for a limit: the attempt is not
    /// the job's fault then.
    pub(crate) fn lost(&mut self, job: Seq) -> bool {
        let lost = &mut self.lost;
        lost.count = lost.count.saturating_add(1);
        lost.is_of_several |= *lost.first.get_or_insert(job) != job;
        let is_limit = lost.count >= LOST_IN_A_ROW && lost.is_of_several;
        if !is_limit || self.factor_permille <= TENTH {
            return false;
        }
        self.lost = Lost::default();
        self.latency.forget();
        true
    }

    /// Returns the thousandths of its rules that are used.
    pub(crate) const fn used_permille(&self) -> u32 {
        self.factor_permille
    }
}

fn numbers(rule: LimitRule, learned: &LearnedLimit) -> Option<LimitRule> {
    rule.published(u64::from(learned.limit), learned.window_ms)
}
