//! When attempts may be claimed: not in a pause that a server asked for, not all at once after it.
//!
//! Counts by the wall clock as records show it, so it judges only while nobody sets that clock.

use std::collections::BTreeMap;

use paceline_core::time::Wall;

use super::Broken;
use crate::clock::EPOCH_MS;
use crate::profile::Api;

/// The longest time for which starts are spaced after a pause.
const MAX_RAMP_MS: u64 = 10_000;
/// Pauses without any jitter after which it is no chance any more.
const ENOUGH_PAUSES: u32 = 3;

#[derive(Debug, Default)]
struct Line {
    spacing_ms: u64,
    ramp_ms: u64,
    asked: Option<Asked>,
    /// Until when the stored pause lasts, and in which epoch that was stored.
    stored: Option<(u64, u64)>,
    last_claim: Option<(u64, u64, u64)>,
    claims: Vec<(u64, u64)>,
    given_back: u64,
}

/// What the last refusal asked for.
#[derive(Clone, Copy, Debug)]
struct Asked {
    heard_ms: u64,
    until: u64,
    /// Whether the server named the wait, and it is not added to one that goes on: the jitter is drawn now.
    draws_jitter: bool,
}

/// The pauses of all budgets.
#[derive(Debug, Default)]
pub(crate) struct Pacing {
    lines: BTreeMap<String, Line>,
    epoch: u64,
    is_blind: bool,
    is_split: bool,
    exact: u32,
    jittered: u32,
}

impl Pacing {
    pub(super) fn new(apis: &[Api]) -> Self {
        let mut lines = BTreeMap::new();
        for api in apis {
            let windows = || api.rules.iter().filter(|rule| rule.kind.is_window());
            let line = Line {
                spacing_ms: windows()
                    .map(|rule| rule.window_ms.div_ceil(rule.limit))
                    .max()
                    .unwrap_or(0),
                ramp_ms: windows()
                    .map(|rule| rule.window_ms)
                    .max()
                    .unwrap_or(0)
                    .min(MAX_RAMP_MS),
                ..Line::default()
            };
            lines.insert(name(api), line);
        }
        Self {
            lines,
            ..Self::default()
        }
    }

    /// Somebody sets the clock: nothing can be judged by it any more.
    pub(crate) fn blind(&mut self) {
        self.is_blind = true;
    }

    /// Transactions may fail and be tried again in parts, so that older states are stored after newer ones were.
    pub(crate) fn split(&mut self) {
        self.is_split = true;
    }

    /// A new owner knows of pauses only what is stored.
    pub(crate) fn owner_starts(&mut self, epoch: u64) {
        self.epoch = epoch;
        for line in self.lines.values_mut() {
            line.asked = None;
        }
    }

    /// The owner's epoch.
    pub(super) const fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The owner hears a refusal.
    pub(crate) fn refused(&mut self, api: &Api, epoch: u64, now_ms: u64, asked_ms: Option<u64>) {
        let Some(line) = self
            .lines
            .get_mut(&name(api))
            .filter(|_| epoch == self.epoch)
        else {
            return;
        };
        let now = EPOCH_MS + now_ms;
        let until = now + asked_ms.unwrap_or(0).max(1_000);
        let before = line.asked.map_or(0, |asked| asked.until);
        let paused_until = line.stored.map_or(0, |(until, _)| until).max(before);
        line.asked = Some(Asked {
            heard_ms: now_ms,
            until: before.max(until),
            draws_jitter: asked_ms.is_some() && paused_until < now,
        });
    }

    /// Judges what a transaction that was begun after a refusal was heard stores of its budget, in the end.
    ///
    /// # Errors
    /// When it is without the pause: a next owner would not know of it.
    pub(super) fn judge_kept(
        &self,
        budget: &str,
        until: Option<Wall>,
        begun_ms: u64,
    ) -> Result<(), Broken> {
        let asked = self.lines.get(budget).and_then(|line| line.asked);
        let is_lost = asked.is_some_and(|asked| {
            let is_on = asked.heard_ms < begun_ms && EPOCH_MS + begun_ms < asked.until;
            is_on && until.is_none()
        });
        if is_lost && !self.is_blind && !self.is_split {
            return Err(("pause", format!("{budget} is stored without its pause")));
        }
        Ok(())
    }

    /// A pause is stored, or the end of one.
    pub(super) fn stored(&mut self, budget: &str, until: Option<Wall>) -> Result<(), Broken> {
        let Some(line) = self.lines.get_mut(budget) else {
            return Ok(());
        };
        let Some(until) = until.map(Wall::as_millis) else {
            return Ok(());
        };
        if line.stored.is_some_and(|(before, _)| before == until) {
            return Ok(());
        }
        line.stored = Some((until, self.epoch));
        if self.is_blind {
            return Ok(());
        }
        if let Some(asked) = line.asked.filter(|asked| asked.draws_jitter) {
            let count = if asked.until == until {
                &mut self.exact
            } else {
                &mut self.jittered
            };
            *count += 1;
        }
        if self.jittered == 0 && self.exact >= ENOUGH_PAUSES {
            return Err((
                "jitter",
                format!("{} pauses end without jitter", self.exact),
            ));
        }
        Ok(())
    }

    /// An attempt was claimed at an instant of the wall clock.
    pub(super) fn claimed(
        &mut self,
        budget: &str,
        cost: u64,
        at: Option<Wall>,
        epoch: u64,
    ) -> Result<(), Broken> {
        let (Some(line), Some(at)) = (self.lines.get_mut(budget), at.map(Wall::as_millis)) else {
            return Ok(());
        };
        if self.is_blind {
            return Ok(());
        }
        line.claims.push((at.saturating_sub(EPOCH_MS), cost));
        let pause_end = line.stored.map_or(0, |(until, _)| until);
        let last = line.last_claim.replace((at, cost, epoch));
        if let Some((last_at, last_cost, last_epoch)) = last
            && last_epoch == epoch
            && last_at >= pause_end
            && line.stored.is_some_and(|(_, by)| by == epoch)
            && at < pause_end + line.ramp_ms
        {
            let due = last_at + line.spacing_ms * last_cost;
            if at < due && due < pause_end + line.ramp_ms {
                return Err((
                    "ramp",
                    format!(
                        "{budget} is asked at {last_at} and {at}, soon after the pause until {pause_end}"
                    ),
                ));
            }
        }
        Ok(())
    }

    /// A request of a host of `epoch` leaves.
    ///
    /// # Errors
    /// When it leaves in a pause that its host has heard of, or found stored.
    pub(crate) fn sent(&mut self, budget: &str, epoch: u64, now_ms: u64) -> Result<(), Broken> {
        let Some(line) = self.lines.get(budget).filter(|_| !self.is_blind) else {
            return Ok(());
        };
        let now = EPOCH_MS + now_ms;
        let asked = line
            .asked
            .filter(|_| epoch == self.epoch)
            .map_or(0, |asked| asked.until);
        let stored = line
            .stored
            .filter(|(_, by)| *by < epoch)
            .map_or(0, |(until, _)| until);
        let until = asked.max(stored);
        if now < until {
            return Err((
                "pause",
                format!("{budget} is asked at {now}, in a pause until {until}"),
            ));
        }
        Ok(())
    }

    /// A claim was given back before anything was sent.
    pub(super) fn given_back(&mut self, budget: &str, cost: u64) {
        if let Some(line) = self.lines.get_mut(budget) {
            line.given_back += cost;
            line.last_claim = None;
        }
    }

    /// Takes the units that were given back since the last call.
    pub(crate) fn take_given_back(&mut self, api: &Api) -> u64 {
        self.lines
            .get_mut(&name(api))
            .map_or(0, |line| std::mem::take(&mut line.given_back))
    }

    /// Takes the claims that were not judged by the server's buckets yet, in true time.
    pub(crate) fn take_claims(&mut self, api: &Api) -> Vec<(u64, u64)> {
        self.lines
            .get_mut(&name(api))
            .map(|line| std::mem::take(&mut line.claims))
            .unwrap_or_default()
    }
}

/// The budget that paces an API.
pub(crate) fn name(api: &Api) -> String {
    match api.budget {
        Some(budget) => budget.to_owned(),
        None => format!("origin:{}", api.origin),
    }
}
