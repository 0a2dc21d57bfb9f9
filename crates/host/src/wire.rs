//! The core's values as messages: one mapping each.

use paceline_core::ids::{BudgetId, GroupId, JobId};
use paceline_core::io::{Event, QueueBound, Refusal, View};
use paceline_core::job::{HoldCause, Lane, Outcome, State};
use paceline_core::scheduler::{BudgetSnapshot, GroupSnapshot, Snapshot};
use paceline_core::time::Wall;
use paceline_protocol::error::Code;
use paceline_protocol::reply::{
    AcceptedJob, BudgetView, Counts, EventMessage, FailureView, GroupView, HostView, JobView,
    LaneView, SettledJob, SnapshotMessage,
};
use paceline_protocol::{HostMessage, WireError};

use crate::{HostConfig, What};

/// The error that a refusal is for the tab. One of several jobs is named by its index.
pub(crate) fn refusal(refusal: &Refusal, what: &What) -> WireError {
    match refusal {
        Refusal::NeverFits {
            index,
            cost,
            largest,
        } => {
            let expected = format!("a cost of at most {largest}");
            let error = |field: String| {
                WireError::field(Code::NeverFits, field, &*expected, &cost.to_string())
            };
            match what {
                What::Many(_) => error(format!("jobs[{index}].cost")).at(*index),
                What::One | What::Other => error("job.cost".to_owned()),
            }
        }
        Refusal::QueueFull { index, bound } => {
            let error = queue_full(*bound);
            match what {
                What::Many(_) => error.at(*index),
                What::One | What::Other => error,
            }
        }
        Refusal::StorageFull => WireError::plain(Code::StorageFull, "the origin's storage is full"),
        Refusal::Storage => WireError::plain(Code::Storage, "the storage failed"),
        Refusal::UnknownBudget(budget) => WireError::field(
            Code::UnknownBudget,
            "budget",
            "a declared budget",
            budget.as_str(),
        ),
        Refusal::Gone => {
            WireError::plain(Code::Cleared, "it has ended, and how is no longer known")
        }
        _ => WireError::plain(Code::Protocol, "refused"),
    }
}

fn queue_full(bound: QueueBound) -> WireError {
    let (field, most) = match bound {
        QueueBound::Jobs(max) => ("maxQueue.jobs", format!("at most {max} unsettled jobs")),
        QueueBound::Bytes(max) => (
            "maxQueue.bytes",
            format!("at most {max} bytes of unsettled requests"),
        ),
    };
    WireError {
        field: Some(field.to_owned()),
        expected: Some(most.clone()),
        ..WireError::plain(Code::QueueFull, format!("the queue takes {most}"))
    }
}

/// The budget as the app declared it, where this is its part that counts only some requests.
fn whole(id: &BudgetId) -> BudgetId {
    id.whole().unwrap_or_else(|| id.clone())
}

pub(crate) fn accepted(id: &JobId, state: State, outcome: Option<&Outcome>) -> AcceptedJob {
    AcceptedJob {
        id: id.as_str().to_owned(),
        state,
        code: outcome
            .and_then(|outcome| outcome.reason)
            .map(|reason| reason.as_str()),
        status: outcome.and_then(|outcome| outcome.status),
        by_check: outcome.and_then(by_check),
    }
}

pub(crate) fn settled(
    id: &JobId,
    group: Option<&GroupId>,
    state: State,
    outcome: Outcome,
    attempts: u32,
) -> SettledJob {
    SettledJob {
        id: id.as_str().to_owned(),
        state,
        code: outcome.reason.map(|reason| reason.as_str()),
        status: outcome.status,
        by_check: by_check(&outcome),
        text: outcome.text,
        group: group.map(|group| group.as_str().to_owned()),
        attempts,
    }
}

fn by_check(outcome: &Outcome) -> Option<bool> {
    outcome.by_check.then_some(true)
}

pub(crate) fn group_settled(
    group: &GroupId,
    done: u32,
    failed: u32,
    cancelled: u32,
) -> HostMessage {
    HostMessage::GroupSettled {
        group: group.as_str().to_owned(),
        done,
        failed,
        cancelled,
    }
}

pub(crate) fn event(event: &Event) -> Option<EventMessage> {
    Some(match event {
        Event::Paused {
            budget,
            until,
            is_estimate,
            is_long,
        } => EventMessage::Paused {
            budget: budget.as_str().to_owned(),
            until: until.as_millis(),
            is_estimate: *is_estimate,
            is_long: *is_long,
        },
        Event::Resumed { budget } => EventMessage::Resumed {
            budget: budget.as_str().to_owned(),
        },
        Event::Refused {
            budget,
            id,
            status,
            believed_free,
            retry_after_ms,
        } => EventMessage::Refused {
            budget: budget.as_str().to_owned(),
            job: id.as_str().to_owned(),
            status: *status,
            believed_free: *believed_free,
            retry_after_ms: *retry_after_ms,
        },
        Event::Held { budget, cause } => EventMessage::Held {
            budget: budget.as_ref().map(|budget| budget.as_str().to_owned()),
            cause: cause.as_str().to_owned(),
        },
        Event::Unaccounted { jobs } => EventMessage::Error {
            message: format!("{jobs} accepted jobs are nowhere; please report this"),
        },
        // A tab is asked before any is told.
        Event::CredentialsWanted { .. } | _ => return None,
    })
}

pub(crate) fn view(view: View) -> JobView {
    let outcome = view.outcome.as_ref();
    let failure = outcome.and_then(|outcome| {
        let code = outcome.reason?.as_str();
        Some(FailureView {
            code,
            status: outcome.status,
            text: outcome.text.clone(),
        })
    });
    JobView {
        id: view.card.id.as_str().to_owned(),
        cursor: view.seq.as_u64(),
        state: view.state,
        lane: view.lane.as_str(),
        key: view.card.key.map(|key| key.as_str().to_owned()),
        group: view.card.group.map(|group| group.as_str().to_owned()),
        budget: whole(&view.card.budget).as_str().to_owned(),
        attempts: view.attempts,
        cause: view.cause.map(|cause| cause.as_str()),
        until: view.until.map(Wall::as_millis),
        failure,
        coalesced: view.coalesced,
        merged_into: view.merged_into.map(|into| into.as_str().to_owned()),
        settled_at: outcome.map(|outcome| outcome.at.as_millis()),
    }
}

pub(crate) fn snapshot(snapshot: Snapshot, config: &HostConfig, epoch: u64) -> SnapshotMessage {
    let [queued, sending, retry_wait, done, failed, cancelled] = snapshot.counts;
    let lanes = Lane::ALL.into_iter().zip(
        snapshot
            .waiting_by_lane
            .into_iter()
            .zip(snapshot.sending_by_lane),
    );
    SnapshotMessage {
        counts: Counts {
            queued,
            sending,
            retry_wait,
            done,
            failed,
            cancelled,
        },
        paused_until: snapshot.paused_until.map(Wall::as_millis),
        eta_ms: snapshot.eta_ms,
        eta_is_estimate: snapshot.eta_is_estimate,
        next_wake_at: snapshot.next_wake_at.map(Wall::as_millis),
        held: holds(&snapshot.holds),
        host: HostView {
            kind: config.kind.clone(),
            durable: config.durable,
            instance: config.instance.clone(),
            epoch,
        },
        by_lane: lanes
            .map(|(lane, (waiting, sending))| (lane.as_str(), LaneView { waiting, sending }))
            .collect(),
        by_group: snapshot
            .groups
            .iter()
            .map(|(id, group)| (id.as_str().to_owned(), group_view(group)))
            .collect(),
        by_budget: snapshot
            .budgets
            .iter()
            .map(|(id, budget)| (id.as_str().to_owned(), budget_view(budget)))
            .collect(),
    }
}

fn group_view(group: &GroupSnapshot) -> GroupView {
    let [queued, sending, retry_wait] = group.unsettled;
    let record = group.record;
    let counts = Counts {
        queued,
        sending,
        retry_wait,
        done: record.done,
        failed: record.failed,
        cancelled: record.cancelled,
    };
    GroupView {
        total: record.total,
        counts,
        eta_ms: group.eta_ms,
    }
}

fn budget_view(budget: &BudgetSnapshot) -> BudgetView {
    BudgetView {
        waiting: budget.waiting,
        sending: budget.sending,
        paused_until: budget.paused_until.map(Wall::as_millis),
        pause_is_estimate: budget.pause_is_estimate,
        held: holds(&budget.holds),
        cause: budget.cause.map(|cause| cause.as_str()),
        rule: budget
            .rule
            .map(|(limit, window_ms)| format!("{limit} per {window_ms} ms")),
        by: budget.by.as_ref().map(|by| by.as_str().to_owned()),
        used_permille: budget.used_permille,
        eta_ms: budget.eta_ms,
    }
}

fn holds(holds: &[HoldCause]) -> Vec<&'static str> {
    holds.iter().map(|cause| cause.as_str()).collect()
}
