//! `metrics`: what the core has counted, as messages, when it is asked for and to those that follow.

use paceline_core::job::{Lane, State};
use paceline_core::metrics::{BudgetMetrics, Meter, Metrics};
use paceline_core::time::Now;
use paceline_protocol::HostMessage;
use paceline_protocol::metrics::{
    AskMetrics, AttemptsMessage, BudgetMetricsMessage, FailuresMessage, MeterMessage,
    MetricsMessage,
};
use paceline_protocol::reply::EventMessage;
use paceline_protocol::reply::f64_eq::F64;

use crate::{Host, TabId, plan};

impl<B: Clone + Default> Host<B> {
    /// Answers a tab, and notes whether it goes on to be told.
    pub(crate) fn tell_metrics(&mut self, tab: TabId, re: F64, asked: &AskMetrics, now: Now) {
        if let Some(follows) = asked.follow {
            self.tab_mut(tab).follows_metrics = follows;
        }
        let metrics = Box::new(self.metrics(tab, now));
        self.post(tab, Some(re), HostMessage::Metrics { metrics });
    }

    /// Tells those that follow.
    pub(crate) fn send_metrics(&mut self, now: Now) {
        let following = self.tabs.iter().filter(|(_, tab)| tab.follows_metrics);
        let following: Vec<TabId> = following.map(|(id, _)| *id).collect();
        for tab in following {
            let metrics = Box::new(self.metrics(tab, now));
            self.post(
                tab,
                None,
                HostMessage::Event(EventMessage::Metrics(metrics)),
            );
        }
    }

    fn metrics(&mut self, tab: TabId, now: Now) -> MetricsMessage {
        let principal = self.tabs.get(&tab).map(|tab| tab.principal.clone());
        let told = self.core.metrics(&principal.unwrap_or_default(), now);
        message(&told, now)
    }
}

fn message(told: &Metrics, now: Now) -> MetricsMessage {
    let budgets = told.budgets.iter();
    MetricsMessage {
        since: told.since.as_millis(),
        at: now.wall.as_millis(),
        queue: meter(&told.queue),
        own: told.own.as_ref().map(meter),
        by_budget: budgets
            .map(|(id, budget)| (id.as_str().to_owned(), of_budget(budget)))
            .collect(),
    }
}

fn of_budget(told: &BudgetMetrics) -> BudgetMetricsMessage {
    let achieved = told.achieved;
    BudgetMetricsMessage {
        meter: meter(&told.meter),
        busy_ms: achieved.busy_ms,
        units: achieved.units,
        allowed: achieved.allowed,
        achieved_permille: achieved.permille(),
    }
}

fn meter(told: &Meter) -> MeterMessage {
    let answers = told.answers.iter();
    let answers = answers.map(|(status, count)| (status.to_string(), *count));
    let other = (told.other_answers > 0).then(|| ("other".to_owned(), told.other_answers));
    let failures = told.failures.iter();
    let attempts = &told.attempts;
    MeterMessage {
        accepted: told.accepted,
        done: told.settled_as(State::Done),
        failed: told.settled_as(State::Failed),
        cancelled: told.settled_as(State::Cancelled),
        live: told.live,
        unaccounted: told.unaccounted(),
        requests: told.requests,
        refused: told.refused,
        refused_per_1000: told.refused_per_1000(),
        unanswered: told.unanswered,
        answers: answers.chain(other).collect(),
        failures: failures
            .map(|((reason, status), jobs)| FailuresMessage {
                code: reason.as_str(),
                status: *status,
                jobs: *jobs,
            })
            .collect(),
        attempts: AttemptsMessage {
            jobs: attempts.count(),
            p50: attempts.quantile(500),
            p95: attempts.quantile(950),
            max: attempts.max(),
        },
        waits: Lane::ALL
            .into_iter()
            .map(|lane| (lane.as_str(), plan::waits(told.waits(lane))))
            .collect(),
    }
}
