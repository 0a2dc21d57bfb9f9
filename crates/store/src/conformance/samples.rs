//! Jobs, records and transactions to try a store with.

use paceline_core::batch::BatchLoad;
use paceline_core::change::Change;
use paceline_core::ids::{BatchNo, BudgetId, Epoch, GroupId, JobId, OrderKey, Seq};
use paceline_core::job::{
    BudgetRecord, Card, Check, GroupRecord, HoldCause, Lane, LearnedLimit, Outcome, Reason, Record,
    Repeat, Spent, State,
};
use paceline_core::kind::{Fingerprint, Kind, Likeness, OnFailure};
use paceline_core::time::Wall;

use crate::Transaction;

/// The largest integer that a browser's number holds exactly.
pub const MAX_SAFE: u64 = (1 << 53) - 1;

/// Makes a job's name.
pub fn job_id(number: u64) -> JobId {
    JobId::parse(&format!("job-{number}")).expect("a short text that is not empty is a name")
}

/// Makes a group's name.
pub fn group_id(text: &str) -> GroupId {
    GroupId::parse(text).expect("samples use short texts")
}

/// Makes a budget's name.
pub fn budget_id(text: &str) -> BudgetId {
    BudgetId::parse(text).expect("samples use short texts")
}

/// Makes a card with only what every card has.
pub fn plain_card(number: u64) -> Card {
    Card {
        id: job_id(number),
        budget: budget_id("crm"),
        lane: Lane::Bulk,
        key: None,
        group: None,
        principal: String::new(),
        cost: 1,
        repeat: Repeat::Always,
        idempotency_key: None,
        not_before: None,
        expires_at: None,
        timeout_ms: 30_000,
        created_at: Wall::from_millis(1_700_000_000_000),
        size: 512,
        ephemeral: false,
        kind: Kind::Custom,
        likeness: None,
        supersedes: false,
        on_failure: OnFailure::Continue,
        batch: None,
        check: None,
    }
}

/// Makes a card with every field set, some to their extremes.
pub fn full_card(number: u64) -> Card {
    Card {
        key: Some(OrderKey::parse("contact/\u{1f980}/\"7\"").expect("samples use short texts")),
        group: Some(group_id("bulk \u{e9}dit\n")),
        principal: "user-1".to_owned(),
        lane: Lane::Interactive,
        cost: u32::MAX,
        repeat: Repeat::WithKey,
        idempotency_key: Some(format!("key-{number}")),
        not_before: Some(Wall::from_millis(0)),
        expires_at: Some(Wall::from_millis(MAX_SAFE)),
        timeout_ms: u32::MAX,
        size: u32::MAX,
        ephemeral: true,
        kind: Kind::Patch,
        supersedes: true,
        on_failure: OnFailure::FailLater,
        check: Some(Check { after_ms: u32::MAX }),
        likeness: Some(Likeness {
            place: Fingerprint::of(["place"]),
            form: Fingerprint::of(["form"]),
            body: Fingerprint::new(Fingerprint::MAX),
        }),
        ..plain_card(number)
    }
}

/// Makes a record with every field set.
pub fn full_record() -> Record {
    let spent = |started, ended: Option<u64>| Spent {
        started_at: Wall::from_millis(started),
        ended_at: ended.map(Wall::from_millis),
        late_ms: 1_500,
    };
    Record {
        state: State::Failed,
        attempt: 4,
        attempts_counted: 3,
        current: Some(spent(1_700_000_003_000, None)),
        earlier: vec![
            spent(1_700_000_001_000, Some(1_700_000_001_300)),
            spent(MAX_SAFE, None),
        ],
        first_claimed_at: Some(Wall::from_millis(1_700_000_001_000)),
        key_generation: 2,
        key_seen: true,
        is_check: true,
        not_before: Some(Wall::from_millis(1_700_000_009_000)),
        refused: true,
        lane: Some(Lane::Background),
        moved_to: BudgetId::parse("github:search").ok(),
        merged_into: Some(Seq::from_u64(MAX_SAFE)),
        load: Some(BatchLoad {
            members: vec![Seq::from_u64(MAX_SAFE), Seq::from_u64(3)],
            attempt: 4,
            claimed_at: Wall::from_millis(1_700_000_002_000),
        }),
        carried_by: Some(Seq::from_u64(MAX_SAFE)),
        holds_key: true,
        outcome: Some(Outcome {
            reason: Some(Reason::RetriesExhausted),
            status: Some(503),
            text: Some("Service \u{1f4a5} unavailable\u{0}".to_owned()),
            at: Wall::from_millis(1_700_000_004_000),
            by_check: true,
        }),
    }
}

/// Makes the record of a claimed job.
pub fn sending(started_at: u64) -> Record {
    let started_at = Wall::from_millis(started_at);
    Record {
        state: State::Sending,
        attempt: 1,
        attempts_counted: 1,
        current: Some(Spent {
            started_at,
            ended_at: None,
            late_ms: 0,
        }),
        first_claimed_at: Some(started_at),
        ..Record::fresh()
    }
}

/// Makes a group's record with every field set.
pub fn full_group() -> GroupRecord {
    GroupRecord {
        total: u32::MAX,
        done: 1,
        failed: 2,
        cancelled: 3,
        created_at: Wall::from_millis(1_700_000_000_000),
        settled_at: Some(Wall::from_millis(1_700_000_005_000)),
    }
}

/// Makes a budget's record with every field set.
pub fn full_budget() -> BudgetRecord {
    BudgetRecord {
        paused_until: Some(Wall::from_millis(1_700_000_060_000)),
        pause_is_estimate: true,
        refusals_in_a_row: 9,
        refusing_since: Some(Wall::from_millis(1_700_000_000_000)),
        holds: vec![HoldCause::User, HoldCause::Refusing, HoldCause::Storage],
        probe: true,
        factor_permille: Some(250),
        learned: vec![LearnedLimit {
            limit: 90,
            window_ms: 60_000,
        }],
        learned_in_flight: Some(3),
        ceiling_permille: Some(900),
        used_up_until: Some(Wall::from_millis(1_700_003_600_000)),
    }
}

/// Makes a transaction without changes.
pub const fn empty<B>(epoch: Epoch) -> Transaction<B> {
    Transaction {
        epoch,
        changes: Vec::new(),
        bodies: Vec::new(),
        read_bodies: Vec::new(),
    }
}

/// Makes a transaction of changes that bring no bodies.
pub fn changes<B>(epoch: Epoch, changes: Vec<Change>) -> Transaction<B> {
    Transaction {
        changes,
        ..empty(epoch)
    }
}

/// Makes a transaction that adds one batch of cards, with a body made for each from its number.
///
/// The bodies are numbered from 256 times the batch's number, as the jobs are.
pub fn add<B>(
    epoch: Epoch,
    batch: BatchNo,
    cards: Vec<Card>,
    body: impl Fn(u64) -> B,
) -> Transaction<B> {
    let bodies = (batch.0 * 256..).take(cards.len()).map(body).collect();
    let changes = vec![Change::AddBatch { batch, cards }];
    Transaction {
        changes,
        bodies: vec![(batch, bodies)],
        ..empty(epoch)
    }
}
