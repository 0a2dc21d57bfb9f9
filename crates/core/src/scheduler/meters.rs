//! When what is counted for the metrics, and for whom: the whole queue, the budget that a job was handed in for, and its
//! principal. Invariant: reading changes nothing, and nothing decided depends on it.

use std::collections::{BTreeMap, BTreeSet};

use super::{Core, Job};
use crate::budget::Demand;
use crate::count::Count;
use crate::ids::{BudgetId, Seq};
use crate::io::{Effect, Event};
use crate::metrics::{BudgetMetrics, Meter, Metrics};
use crate::time::{Now, Wall};

/// The most budgets that are counted apart; further ones count in the whole only.
const MAX_BUDGETS: usize = 1_000;
/// The most principals that are counted apart; further ones count in the whole only.
const MAX_PRINCIPALS: usize = 64;

/// The meters of one owner.
#[derive(Debug, Default)]
pub(super) struct Meters {
    since: Option<Wall>,
    queue: Meter,
    budgets: BTreeMap<BudgetId, Meter>,
    principals: BTreeMap<String, Meter>,
    told: u64,
}

impl Meters {
    fn each(&mut self, job: &Job, note: impl Fn(&mut Meter)) {
        note(&mut self.queue);
        let budgets = &mut self.budgets;
        if !budgets.contains_key(&job.home) && budgets.len() < MAX_BUDGETS {
            budgets.insert(job.home.clone(), Meter::default());
        }
        budgets.get_mut(&job.home).map(&note);
        let (principals, principal) = (&mut self.principals, &job.card.principal);
        if !principals.contains_key(principal) && principals.len() < MAX_PRINCIPALS {
            principals.insert(principal.clone(), Meter::default());
        }
        principals.get_mut(principal).map(&note);
    }
}

impl Core {
    /// Returns what was counted since this owner began, and of that what is of one principal's jobs.
    pub fn metrics(&mut self, principal: &str, now: Now) -> Metrics {
        let mut queue = self.meters.queue.clone();
        queue.live = self.standing().saturating_add(queue.settling());
        let mut metrics = Metrics {
            since: self.meters.since.unwrap_or(now.wall),
            queue,
            own: self.meters.principals.get(principal).map(whole),
            budgets: BTreeMap::new(),
        };
        for (id, budget) in &mut self.budgets {
            let meter = self.meters.budgets.get(id).map(whole).unwrap_or_default();
            let achieved = budget.achieved(now.mono);
            let shown = BudgetMetrics { meter, achieved };
            metrics.budgets.insert(id.clone(), shown);
        }
        metrics
    }

    /// Returns accepted jobs less those whose outcome is decided and those that stand where they could go on: 0, or there
    /// is a bug.
    pub fn unaccounted(&self) -> i64 {
        self.meters.queue.missing(self.standing())
    }

    /// Counts the jobs that stand somewhere: in a line, on their way, or carried by another.
    fn standing(&self) -> u64 {
        let merged = u64::from(self.merged);
        let sending = u64::try_from(self.sending.len()).unwrap_or(u64::MAX);
        self.placed.saturating_add(merged).saturating_add(sending)
    }

    /// Tells of jobs that are nowhere, once for each number of them.
    pub(super) fn tell_unaccounted(&mut self) {
        let jobs = self.unaccounted().unsigned_abs();
        if std::mem::replace(&mut self.meters.told, jobs) != jobs && jobs > 0 {
            self.effects
                .push_back(Effect::Event(Event::Unaccounted { jobs }));
        }
    }

    /// Notes when this owner began.
    pub(super) fn begin_metrics(&mut self, now: Now) {
        self.meters.since.get_or_insert(now.wall);
    }

    /// Counts something of a job.
    pub(super) fn count(&mut self, seq: Seq, note: impl Fn(&mut Meter)) {
        if let Some(job) = self.jobs.get(&seq) {
            self.meters.each(job, note);
        }
    }

    /// Notes that a job is stored, now or by an earlier owner, and counts it if it is not settled.
    pub(super) fn note_stored(&mut self, seq: Seq) {
        let Some(job) = self.jobs.get_mut(&seq) else {
            return;
        };
        job.is_stored = true;
        if !job.record.state.is_settled() {
            self.count(seq, Meter::accept);
            self.count_live(seq, Count::Up);
        }
    }

    /// Counts a failed job that is brought back, before it is: as accepted again, or as never failed where that is not
    /// stored yet.
    pub(super) fn count_revived(&mut self, seq: Seq) {
        let is_settling = self.jobs.get(&seq).is_some_and(|job| job.is_settling);
        match is_settling {
            true => self.count(seq, Meter::undecide),
            false => self.count(seq, Meter::accept),
        }
    }

    /// Counts a stored job as one that lives, or does so no longer.
    pub(super) fn count_live(&mut self, seq: Seq, way: Count) {
        if self.jobs.get(&seq).is_some_and(|job| job.is_stored) {
            self.count(seq, |meter| way.apply_units(&mut meter.live, 1));
        }
    }

    /// Counts a job whose outcome is stored now, before it is settling no longer.
    pub(super) fn count_settled(&mut self, seq: Seq) {
        let Some(job) = self.jobs.get(&seq).filter(|job| job.is_settling) else {
            return;
        };
        let (state, attempts) = (job.record.state, job.record.attempt);
        let outcome = job.record.outcome.as_ref();
        let failure = outcome.and_then(|outcome| Some((outcome.reason?, outcome.status)));
        let is_own = attempts > 0 && !job.is_merged();
        self.meters.each(job, |meter| {
            meter.settle(state, failure);
            if is_own {
                meter.attempts.add(u64::from(attempts));
            }
        });
    }

    /// Counts how long a job has waited whose first request leaves now.
    pub(super) fn count_wait(&mut self, seq: Seq, now: Now) {
        let Some(job) = self.jobs.get(&seq).filter(|job| job.record.attempt == 1) else {
            return;
        };
        let asked_for = job.card.not_before.max(Some(job.card.created_at));
        let waited_ms = asked_for.map_or(0, |at| now.wall.since(at));
        let lane = job.lane();
        self.meters.each(job, |meter| meter.wait(lane, waited_ms));
    }

    /// Notes which budgets have something to send that their limit, or those above it, let wait.
    pub(super) fn note_demand(&mut self, now: Now) {
        let is_held = !self.holds.is_empty();
        let above: BTreeSet<BudgetId> = self
            .budgets
            .iter()
            .filter(|(_, budget)| budget.config().parent().is_some())
            .filter(|(_, budget)| budget.has_demand() && !is_held)
            .flat_map(|(id, _)| self.parents(id))
            .collect();
        for (id, budget) in &mut self.budgets {
            let is_own = budget.has_demand() || above.contains(id);
            let demand = match is_own && !is_held {
                true => Demand::Some,
                false => Demand::None,
            };
            budget.note_demand(demand, now.mono);
        }
    }
}

/// A meter whose live jobs include those whose outcome is not stored yet.
fn whole(meter: &Meter) -> Meter {
    let mut meter = meter.clone();
    meter.live = meter.live.saturating_add(meter.settling());
    meter
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::Stored;
    use crate::config::BudgetConfig;
    use crate::ids::{CommitId, JobId, RequestId};
    use crate::io::Input;
    use crate::job::{Card, Lane, Repeat};
    use crate::kind::{Kind, OnFailure};
    use crate::scheduler::Bounds;

    fn card() -> Card {
        let budget = BudgetId::parse("api").unwrap();
        Card {
            id: JobId::parse("j").unwrap(),
            budget,
            lane: Lane::Bulk,
            key: None,
            group: None,
            principal: String::new(),
            cost: 1,
            repeat: Repeat::Always,
            idempotency_key: None,
            not_before: Some(Wall::from_millis(60_000)),
            expires_at: None,
            timeout_ms: 15_000,
            created_at: Wall::from_millis(0),
            size: 1,
            ephemeral: false,
            kind: Kind::Custom,
            likeness: None,
            supersedes: false,
            on_failure: OnFailure::Continue,
            batch: None,
            check: None,
        }
    }

    fn feed(core: &mut Core, input: Input) -> Vec<Effect> {
        core.handle(input, Now::from_millis(0, 0)).unwrap();
        std::iter::from_fn(|| core.poll_effect()).collect()
    }

    #[test]
    fn a_job_that_is_nowhere_is_told_once() {
        let mut core = Core::new(1, Bounds::default());
        feed(&mut core, Input::Recovered(Stored::default()));
        let budget = BudgetConfig::implicit(BudgetId::parse("api").unwrap());
        feed(&mut core, Input::Configure(vec![budget]));
        let (request, cards) = (RequestId(1), vec![card()]);
        feed(&mut core, Input::Enqueue { request, cards });
        feed(&mut core, Input::Committed(CommitId(1)));
        let seq = core.jobs.keys().next().copied().unwrap();
        assert_eq!(core.unaccounted(), 0);

        core.take_out(seq);

        let told = [feed(&mut core, Input::Wake), feed(&mut core, Input::Wake)];
        let event = Effect::Event(Event::Unaccounted { jobs: 1 });
        assert_eq!(told, [vec![event], Vec::new()]);
        let shown = core.metrics("", Now::from_millis(0, 0)).queue;
        assert_eq!((shown.unaccounted(), shown.live), (1, 0));
    }
}
