//! The messages as TypeScript, for the client: `sw/messages.d.ts` is what this module writes.

use std::path::Path;

use paceline_core::job::{Lane as CoreLane, State as CoreState};
use ts_rs::{Config, TS};

use crate::batch::BatchMessage;
use crate::budget::{
    BudgetMessage, IdempotencyMessage, LimitMessage, ReserveMessage, WindowMessage,
};
use crate::check::{CheckMessage, ExistsMessage};
use crate::credentials::{Credentials, Secrets};
use crate::diagnosis::{DiagnosisMessage, FindingMessage};
use crate::dialect::{DialectMessage, OwnDialectMessage, OwnWindowMessage, TimedMessage};
use crate::error::{Code, WireError};
use crate::job::JobMessage;
use crate::metrics::{
    AskMetrics, AttemptsMessage, BudgetMetricsMessage, FailuresMessage, MeterMessage,
    MetricsMessage,
};
use crate::plan::{
    BudgetUseMessage, EstimateMessage, PointMessage, RuleUseMessage, Simulate, SimulationMessage,
    StepMessage, TimelineMessage, WaitsMessage,
};
use crate::reply::{
    AcceptedJob, BudgetView, Counts, EventMessage, FailureView, GroupView, HostMessage, HostView,
    JobView, LaneView, SettledJob, SnapshotMessage, Stamp,
};
use crate::request::{
    Cancel, Configure, Enqueue, EnqueueMany, FilterMessage, Hello, Jobs, OneBudget, Prioritise,
    Request, Retry,
};

const HEAD: &str = "\
// What travels between a tab and the host. Written by `UPDATE_TYPES=1 cargo test -p paceline-protocol`; do not edit.
// Opaque parts travel beside what is typed here: `body` and `meta` of a job, `response` of `settled`, and `url`, `method`
// and `meta` of `jobs`.

/** What a tab posts. */
export type ToHost = { paceline: 1, id: number } & Request;

/** What the host posts. */
export type FromHost = Stamp & HostMessage;
";

/// The state of a job.
#[derive(TS)]
#[ts(rename_all = "kebab-case")]
#[allow(dead_code, reason = "only its type is written")]
pub(crate) enum State {
    Queued,
    Sending,
    RetryWait,
    Done,
    Failed,
    Cancelled,
}

/// The priority class of a job.
#[derive(TS)]
#[ts(rename_all = "kebab-case")]
#[allow(dead_code, reason = "only its type is written")]
pub(crate) enum Lane {
    Interactive,
    Bulk,
    Background,
}

#[test]
fn typescript_types_are_those_of_the_messages() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sw/messages.d.ts");
    let types = types();

    if std::env::var_os("UPDATE_TYPES").is_some() {
        std::fs::write(&path, &types).expect("writes");
    }

    let on_file = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        on_file == types,
        "sw/messages.d.ts is out of date: UPDATE_TYPES=1 cargo test -p paceline-protocol"
    );
}

#[test]
fn typescript_names_states_and_lanes_as_the_core_does() {
    let names = |names: Vec<&str>| {
        let quoted: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
        quoted.join(" | ")
    };

    let states = names(CoreState::ALL.iter().map(|state| state.as_str()).collect());
    assert_eq!(State::inline(&Config::new()), states);
    let lanes = names(CoreLane::ALL.iter().map(|lane| lane.as_str()).collect());
    assert_eq!(Lane::inline(&Config::new()), lanes);
}

fn types() -> String {
    let requests = [
        one::<Request>(),
        one::<Hello>(),
        one::<Enqueue>(),
        one::<EnqueueMany>(),
        one::<Cancel>(),
        one::<Retry>(),
        one::<Prioritise>(),
        one::<OneBudget>(),
        one::<Jobs>(),
        one::<FilterMessage>(),
        one::<StepMessage>(),
        one::<Simulate>(),
        one::<AskMetrics>(),
        one::<Configure>(),
        one::<JobMessage>(),
        one::<CheckMessage>(),
        one::<ExistsMessage>(),
        one::<BudgetMessage>(),
        one::<BatchMessage>(),
        one::<LimitMessage>(),
        one::<DialectMessage>(),
        one::<OwnDialectMessage>(),
        one::<TimedMessage>(),
        one::<OwnWindowMessage>(),
        one::<WindowMessage>(),
        one::<IdempotencyMessage>(),
        one::<ReserveMessage>(),
        one::<Credentials>(),
        one::<Secrets>(),
    ];
    let replies = [
        one::<Stamp>(),
        one::<HostMessage>(),
        one::<AcceptedJob>(),
        one::<SettledJob>(),
        one::<JobView>(),
        one::<FailureView>(),
        one::<SnapshotMessage>(),
        one::<Counts>(),
        one::<HostView>(),
        one::<LaneView>(),
        one::<GroupView>(),
        one::<BudgetView>(),
        one::<EstimateMessage>(),
        one::<DiagnosisMessage>(),
        one::<FindingMessage>(),
        one::<RuleUseMessage>(),
        one::<SimulationMessage>(),
        one::<TimelineMessage>(),
        one::<PointMessage>(),
        one::<WaitsMessage>(),
        one::<BudgetUseMessage>(),
        one::<MetricsMessage>(),
        one::<MeterMessage>(),
        one::<FailuresMessage>(),
        one::<AttemptsMessage>(),
        one::<BudgetMetricsMessage>(),
        one::<EventMessage>(),
        one::<WireError>(),
        one::<Code>(),
        one::<State>(),
        one::<Lane>(),
    ];
    let all = requests.into_iter().chain(replies);
    std::iter::once(HEAD.to_owned())
        .chain(all)
        .collect::<Vec<_>>()
        .join("\n")
}

fn one<T: TS + 'static>() -> String {
    let config = Config::new().with_large_int("number");
    let docs = T::docs().unwrap_or_default();
    let docs = docs.replace("/**\n * ", "/** ").replace("\n */", " */");
    let fields = T::decl(&config)
        .replace("\n/**\n * ", "\n  /** ")
        .replace("\n */\n", " */\n  ")
        .replace(", }", ",\n}");
    let lines: Vec<&str> = fields.lines().map(str::trim_end).collect();
    format!("{docs}export {}\n", lines.join("\n"))
}
