//! The bytes of the protocol. `wire/request-*.json` are what tabs have sent, and stay readable for ever: a new version
//! adds files and edits none. `wire/host-*.json` are what the host says. `wire/bad-*.json` are refused, with the field.
//!
//! `UPDATE_WIRE=1` writes what requests are read as (`request-*.txt`), to be looked at before it is committed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use paceline_core::job::State;
use paceline_protocol::diagnosis::{DiagnosisMessage, FindingMessage};
use paceline_protocol::error::Code;
use paceline_protocol::metrics::{
    AttemptsMessage, BudgetMetricsMessage, FailuresMessage, MeterMessage, MetricsMessage,
};
use paceline_protocol::plan::{
    BudgetUseMessage, EstimateMessage, PointMessage, RuleUseMessage, SimulationMessage,
    TimelineMessage, WaitsMessage,
};
use paceline_protocol::reply::f64_eq::F64;
use paceline_protocol::reply::{
    AcceptedJob, BudgetView, Counts, EventMessage, FailureView, GroupView, HostView, JobView,
    LaneView, SettledJob, SnapshotMessage,
};
use paceline_protocol::{Head, HostMessage, PROTOCOL, Request, Stamp, WireError};
use serde_json::Value;

const KINDS: [&str; 19] = [
    "hello",
    "enqueue",
    "enqueue-many",
    "cancel",
    "retry",
    "prioritise",
    "hold",
    "resume",
    "subscribe",
    "unsubscribe",
    "snapshot",
    "jobs",
    "estimate",
    "simulate",
    "metrics",
    "diagnose",
    "configure",
    "credentials",
    "bye",
];

#[test]
fn requests_of_every_type_are_read_as_before_whatever_else_they_carry() {
    for kind in KINDS {
        let message = read(&format!("request-{kind}"));

        let request = parse(&message).unwrap_or_else(|error| panic!("{kind}: {error}"));

        let path = wire(&format!("request-{kind}.txt"));
        let is_read_as = format!("{request:#?}\n");
        if std::env::var_os("UPDATE_WIRE").is_some() {
            std::fs::write(&path, &is_read_as).expect("writes");
        }
        let before = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(is_read_as, before, "{kind}");
    }
}

#[test]
fn every_request_on_file_is_of_a_type_that_is_read() {
    let mut on_file: Vec<String> = names("request-");
    on_file.sort();

    let mut kinds = KINDS.map(str::to_owned);
    kinds.sort();

    assert_eq!(on_file, kinds);
}

#[test]
fn bad_messages_are_refused_with_their_field() {
    let bad = names("bad-");
    assert!(bad.len() >= 15, "{bad:?}");

    for name in bad {
        let file = read(&format!("bad-{name}"));

        let error = parse(&file["message"]).expect_err(&name);

        assert_eq!(
            serde_json::to_value(error.code).unwrap(),
            file["code"],
            "{name}: {error}"
        );
        assert_eq!(
            error.field.as_deref(),
            file["field"].as_str(),
            "{name}: {error}"
        );
    }
}

#[test]
fn host_messages_are_written_as_on_file() {
    let messages = host_messages();
    let mut on_file = names("host-");
    on_file.sort();
    assert_eq!(on_file, messages.keys().copied().collect::<Vec<_>>());

    for (name, (re, message)) in messages {
        let written = write(re, &message);

        assert_eq!(written, read(&format!("host-{name}")), "{name}");
    }
}

fn host_messages() -> BTreeMap<&'static str, (Option<f64>, HostMessage)> {
    let asked = [
        (1.0, "welcome", welcome()),
        (2.0, "accepted", accepted()),
        (3.0, "accepted-many", accepted_many()),
        (4.0, "error", HostMessage::Error(field_error())),
        (4.0, "error-plain", HostMessage::Error(plain_error())),
        (5.0, "cancelled", cancelled()),
        (6.0, "retried", retried()),
        (
            11.0,
            "prioritised",
            HostMessage::Prioritised {
                moved: 3,
                already_sent: 1,
            },
        ),
        (7.0, "ok", HostMessage::Ok),
        (8.0, "jobs", jobs()),
        (9.0, "estimate", estimate()),
        (10.0, "simulation", simulation()),
        (12.0, "metrics", HostMessage::Metrics { metrics: metrics() }),
        (12.0, "diagnosis", diagnosis()),
    ];
    let unasked = [
        ("snapshot", snapshot()),
        ("settled", settled(failed())),
        ("settled-done", settled(done())),
        ("settled-by-check", settled(found())),
        ("group-settled", group_settled()),
        ("credentials-wanted", credentials_wanted()),
    ];
    let asked = asked.map(|(re, name, message)| (name, (Some(re), message)));
    let unasked = unasked.map(|(name, message)| (name, (None, message)));
    let events = events().map(|(name, event)| (name, (None, HostMessage::Event(event))));
    asked.into_iter().chain(unasked).chain(events).collect()
}

fn welcome() -> HostMessage {
    HostMessage::Welcome {
        host: "shared-worker".into(),
        durable: true,
        version: "0.1.0".into(),
        birth: 1_700_000_000_000,
    }
}

fn accepted() -> HostMessage {
    let job = AcceptedJob {
        id: "a".into(),
        state: State::Failed,
        code: Some("http"),
        status: Some(404),
        by_check: None,
    };
    HostMessage::Accepted {
        job: Some(job),
        group: None,
        total: 1,
        known: Vec::new(),
    }
}

fn accepted_many() -> HostMessage {
    let known = AcceptedJob {
        id: "a".into(),
        state: State::Done,
        code: None,
        status: Some(200),
        by_check: Some(true),
    };
    HostMessage::Accepted {
        job: None,
        group: Some("g".into()),
        total: 2,
        known: vec![known],
    }
}

fn field_error() -> WireError {
    let expected = "interactive, bulk or background";
    WireError::field(Code::BadJob, "jobs[3].lane", expected, "fast").at(3)
}

fn plain_error() -> WireError {
    WireError::plain(Code::StorageFull, "the origin's storage is full")
}

fn cancelled() -> HostMessage {
    HostMessage::Cancelled {
        cancelled: 20,
        already_sent: 1,
    }
}

fn retried() -> HostMessage {
    HostMessage::Retried {
        retried: 4,
        needs_force: 2,
        stale: 1,
    }
}

fn jobs() -> HostMessage {
    let failure = FailureView {
        code: "retries-exhausted",
        status: Some(503),
        text: Some("busy".into()),
    };
    let full = JobView {
        id: "a".into(),
        cursor: 256,
        state: State::Failed,
        lane: "bulk",
        key: Some("k".into()),
        group: Some("g".into()),
        budget: "api".into(),
        attempts: 5,
        cause: Some("backoff"),
        until: Some(1_700_000_000_500),
        failure: Some(failure),
        coalesced: 3,
        merged_into: None,
        settled_at: Some(1_700_000_000_400),
    };
    let bare = JobView {
        id: "b".into(),
        cursor: 257,
        state: State::Queued,
        lane: "interactive",
        key: None,
        group: None,
        budget: "api".into(),
        attempts: 0,
        cause: None,
        until: None,
        failure: None,
        coalesced: 0,
        merged_into: Some("a".into()),
        settled_at: None,
    };
    HostMessage::Jobs {
        jobs: vec![full, bare],
        next: Some(257),
    }
}

fn diagnosis() -> HostMessage {
    let message = "please send `Retry-After`".to_owned();
    let finding = FindingMessage {
        code: "wait-hidden",
        message,
        headers: vec!["Retry-After".to_owned()],
    };
    let diagnosis = DiagnosisMessage {
        budget: "crm".to_owned(),
        answers: 3,
        lost: 1,
        refusals: 1,
        unreadable: 0,
        statuses: BTreeMap::from([(200, 2), (429, 1)]),
        dialects: vec!["github"],
        visible: vec!["content-type".to_owned()],
        findings: vec![finding],
    };
    HostMessage::Diagnosis {
        diagnosis: Box::new(diagnosis),
    }
}

fn estimate() -> HostMessage {
    HostMessage::Estimate {
        estimate: EstimateMessage {
            eta_ms: Some(42_000),
            starts_at: Some(1_700_000_000_000),
            done_at: Some(1_700_000_042_000),
            crosses_window: true,
            used_up_at: Some(1_700_000_001_000),
            rules: vec![rule_use()],
            is_estimate: false,
            is_extrapolated: false,
        },
    }
}

fn rule_use() -> RuleUseMessage {
    RuleUseMessage {
        limit: 100,
        window_ms: 10_000,
        used_up_at: 1_700_000_001_000,
    }
}

fn simulation() -> HostMessage {
    let wait = WaitsMessage {
        jobs: 500,
        p50_ms: Some(20_000),
        p95_ms: Some(39_000),
        max_ms: Some(41_000),
    };
    let timeline = TimelineMessage {
        starts_at: Some(1_700_000_000_000),
        done_at: Some(1_700_000_042_000),
        wait,
        points: vec![PointMessage {
            at: 1_700_000_042_000,
            done: 500,
        }],
    };
    let budget = BudgetUseMessage {
        jobs: 500,
        units: 1_000,
        used_up_at: Some(1_700_000_001_000),
        rules: vec![rule_use()],
    };
    let simulation = SimulationMessage {
        begins_at: 1_700_000_000_000,
        done_at: None,
        jobs: 500,
        units: 1_000,
        steps: vec![timeline, TimelineMessage::default()],
        by_lane: BTreeMap::from([("bulk", wait)]),
        by_budget: BTreeMap::from([("api".to_owned(), budget)]),
        is_estimate: true,
        is_extrapolated: true,
    };
    HostMessage::Simulation {
        simulation: Box::new(simulation),
    }
}

fn metrics() -> Box<MetricsMessage> {
    let wait = WaitsMessage {
        jobs: 990,
        p50_ms: Some(40_959),
        p95_ms: Some(98_303),
        max_ms: Some(99_000),
    };
    let meter = MeterMessage {
        accepted: 1_000,
        done: 980,
        failed: 7,
        cancelled: 3,
        live: 10,
        unaccounted: 0,
        requests: 1_002,
        refused: 2,
        refused_per_1000: Some(2),
        unanswered: 1,
        answers: BTreeMap::from([("200".to_owned(), 980), ("404".to_owned(), 7)]),
        failures: vec![FailuresMessage {
            code: "http",
            status: Some(404),
            jobs: 7,
        }],
        attempts: AttemptsMessage {
            jobs: 987,
            p50: Some(1),
            p95: Some(1),
            max: Some(3),
        },
        waits: BTreeMap::from([("bulk", wait)]),
    };
    let budget = BudgetMetricsMessage {
        meter: meter.clone(),
        busy_ms: 100_000,
        units: 940,
        allowed: Some(1_000),
        achieved_permille: Some(940),
    };
    Box::new(MetricsMessage {
        since: 1_700_000_000_000,
        at: 1_700_000_100_000,
        queue: meter,
        own: None,
        by_budget: BTreeMap::from([("api".to_owned(), budget)]),
    })
}

fn counts() -> Counts {
    Counts {
        queued: 4,
        sending: 2,
        retry_wait: 1,
        done: 90,
        failed: 3,
        cancelled: 0,
    }
}

fn snapshot() -> HostMessage {
    let host = HostView {
        kind: "shared-worker".into(),
        durable: true,
        instance: "1f8a".into(),
        epoch: 3,
    };
    let lane = LaneView {
        waiting: 5,
        sending: 2,
    };
    let group = GroupView {
        total: 100,
        counts: counts(),
        eta_ms: Some(12_000),
    };
    let budget = BudgetView {
        by: Some("api".to_owned()),
        used_permille: 500,
        waiting: 5,
        sending: 2,
        paused_until: Some(1_700_000_030_500),
        pause_is_estimate: false,
        held: vec!["refusing"],
        cause: Some("rate"),
        rule: Some("10 per 1000 ms".into()),
        eta_ms: None,
    };
    let snapshot = SnapshotMessage {
        counts: counts(),
        paused_until: Some(1_700_000_030_500),
        eta_ms: None,
        eta_is_estimate: true,
        next_wake_at: Some(1_700_000_030_500),
        held: vec!["user"],
        host,
        by_lane: BTreeMap::from([("bulk", lane)]),
        by_group: BTreeMap::from([("g".to_owned(), group)]),
        by_budget: BTreeMap::from([("api".to_owned(), budget)]),
    };
    HostMessage::Snapshot {
        snapshot: Box::new(snapshot),
    }
}

fn settled(job: SettledJob) -> HostMessage {
    HostMessage::Settled { job }
}

fn failed() -> SettledJob {
    SettledJob {
        id: "a".into(),
        state: State::Failed,
        code: Some("http"),
        status: Some(404),
        by_check: None,
        text: Some("no such contact".into()),
        group: Some("g".into()),
        attempts: 2,
    }
}

fn done() -> SettledJob {
    SettledJob {
        id: "a".into(),
        state: State::Done,
        code: None,
        status: Some(200),
        by_check: None,
        text: None,
        group: None,
        attempts: 1,
    }
}

fn found() -> SettledJob {
    SettledJob {
        by_check: Some(true),
        attempts: 2,
        ..done()
    }
}

fn group_settled() -> HostMessage {
    HostMessage::GroupSettled {
        group: "g".into(),
        done: 8,
        failed: 1,
        cancelled: 1,
    }
}

fn credentials_wanted() -> HostMessage {
    HostMessage::CredentialsWanted {
        budget: "api".into(),
        wanted: "missing",
    }
}

fn events() -> [(&'static str, EventMessage); 9] {
    let budget = || "api".to_owned();
    let paused = EventMessage::Paused {
        budget: budget(),
        until: 1_700_000_030_500,
        is_estimate: false,
        is_long: false,
    };
    let refused = EventMessage::Refused {
        budget: budget(),
        job: "a".into(),
        status: 429,
        believed_free: 3,
        retry_after_ms: Some(30_000),
    };
    let held = EventMessage::Held {
        budget: None,
        cause: "storage".into(),
    };
    let needed = EventMessage::CredentialsNeeded {
        budget: budget(),
        wanted: "refused",
    };
    let storage = EventMessage::Storage {
        message: "storage quota exceeded".into(),
    };
    let error = EventMessage::Error {
        message: "1 accepted jobs are nowhere".into(),
    };
    [
        ("event-paused", paused),
        ("event-resumed", EventMessage::Resumed { budget: budget() }),
        ("event-refused", refused),
        ("event-held", held),
        ("event-metrics", EventMessage::Metrics(metrics())),
        ("event-config-changed", EventMessage::ConfigChanged),
        ("event-credentials-needed", needed),
        ("event-storage", storage),
        ("event-error", error),
    ]
}

/// Reads a message as the worker does: its head, then the fields of its type.
fn parse(message: &Value) -> Result<Request, WireError> {
    let head: Head = serde_json::from_value(message.clone()).expect("a head");
    head.check()?;
    Request::parse(&head.kind, message)
}

/// Writes a message as the worker does: its stamp, and its fields beside it.
fn write(re: Option<f64>, message: &HostMessage) -> Value {
    let stamp = Stamp {
        paceline: PROTOCOL,
        instance: "1f8a".into(),
        epoch: 3,
        re: re.map(F64),
    };
    let mut all = serde_json::to_value(stamp).expect("serialises");
    let Value::Object(fields) = serde_json::to_value(message).expect("serialises") else {
        panic!("a message is an object");
    };
    all.as_object_mut()
        .expect("a stamp is an object")
        .extend(fields);
    all
}

fn wire(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/wire")
        .join(file)
}

fn read(name: &str) -> Value {
    let path = wire(&format!("{name}.json"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
    serde_json::from_str(&text).expect("JSON")
}

/// The files that begin so, without that and their ending.
fn names(prefix: &str) -> Vec<String> {
    let files = std::fs::read_dir(wire("")).expect("a directory");
    files
        .filter_map(|file| file.expect("a file").file_name().into_string().ok())
        .filter_map(|file| Some(file.strip_prefix(prefix)?.strip_suffix(".json")?.to_owned()))
        .collect()
}
