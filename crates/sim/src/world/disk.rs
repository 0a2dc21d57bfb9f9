//! The disk: operations that are pending until they are carried out, and carried out before they are answered.
//!
//! The semantics are those of the memory store, which the conformance suite holds to those of the real one.

use std::fmt;

use paceline_core::change::Change;
use paceline_core::ids::BatchNo;
use paceline_host::HostInput;
use paceline_store::{ReadBodies, Store, StoreError, Transaction};

use super::World;
use super::hosts::at_once;
use crate::events::Event;
use crate::message::Body;
use crate::transition::DiskFault;

/// Changes as a trace shows them.
struct Brief<'a>(&'a [Change]);

impl fmt::Display for Brief<'_> {
    #[allow(
        clippy::wildcard_enum_match_arm,
        reason = "what is not worth a word needs none, also when the enum grows"
    )]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for change in self.0 {
            match change {
                Change::AddBatch { batch, cards } => {
                    let first = cards.first().map_or("", |card| card.id.as_str());
                    write!(f, " batch {} ({first}, {} jobs)", batch.0, cards.len())?;
                }
                Change::PutRecord { seq, record } => {
                    let (number, state, attempt) = (seq.as_u64(), record.state, record.attempt);
                    write!(f, " {number} {state:?}/{attempt}")?;
                    if let Some(current) = record.current {
                        write!(f, " since {}", current.started_at.as_millis())?;
                    }
                }
                Change::PutBudget { budget, record } => {
                    write!(
                        f,
                        " {budget} paused {:?} held {:?}",
                        record.paused_until, record.holds
                    )?;
                }
                Change::DropBatch { batch, .. } => write!(f, " without batch {}", batch.0)?,
                _ => {}
            }
        }
        Ok(())
    }
}

type Answer = Result<ReadBodies<Body>, StoreError>;

/// What a host asked of the disk.
#[derive(Debug)]
pub(crate) enum Op {
    /// To store a transaction, since an instant.
    Store(Transaction<Body>, u64),
    /// To read requests.
    Read(Vec<BatchNo>),
    /// Done; the answer is on its way.
    Stored(Answer),
    /// Read; the answer is on its way.
    Found(Answer),
}

impl Op {
    const fn is_write(&self) -> bool {
        matches!(self, Self::Store(..) | Self::Stored(_))
    }
}

impl World {
    /// Takes an operation of a host.
    pub(super) fn begin_op(&mut self, life: usize, op: Op) {
        let is_second = self.lives[life]
            .ops
            .values()
            .any(|other| other.is_write() == op.is_write());
        if is_second {
            return self.fail(
                "bounds",
                format!("host {life} has two operations of a kind on their way"),
            );
        }
        if let Op::Store(transaction, _) = &op {
            let changes = transaction.changes.len();
            self.trace.note(
                self.now_ms,
                format_args!("host {life} stores {changes} changes"),
            );
            if transaction.epoch.0 != self.lives[life].epoch {
                return self.fail(
                    "epoch",
                    format!("host {life} writes as {:?}", transaction.epoch),
                );
            }
        }
        let (fast, slow) = self.settings.disk_ms;
        let slow = slow.max(self.slow_disk_ms);
        let mut delay = || self.draws.disk.between(fast, slow);
        let applied_ms = self.now_ms + delay();
        let answered_ms = applied_ms + delay() / 4;
        let number = self.lives[life].next_op;
        self.lives[life].next_op += 1;
        self.lives[life].ops.insert(number, op);
        self.events
            .push(applied_ms, Event::DiskApplies { life, op: number });
        self.events
            .push(answered_ms, Event::DiskAnswers { life, op: number });
    }

    /// Carries an operation out, unless its host died before.
    pub(super) fn disk_applies(&mut self, life: usize, number: u64) {
        let done = match self.lives[life].ops.remove(&number) {
            None => return,
            Some(Op::Store(transaction, begun_ms)) => {
                Op::Stored(self.commit(life, transaction, begun_ms))
            }
            Some(Op::Read(batches)) => Op::Found(self.read(batches)),
            Some(done @ (Op::Stored(_) | Op::Found(_))) => done,
        };
        self.lives[life].ops.insert(number, done);
    }

    fn commit(&mut self, life: usize, transaction: Transaction<Body>, begun_ms: u64) -> Answer {
        let fault = self.disk_faults.pop_front();
        match fault {
            Some(DiskFault::Breaks) => return Err(StoreError::Transient("broken".to_owned())),
            Some(DiskFault::Full) if !transaction.changes.is_empty() => {
                return Err(StoreError::Full("no room".to_owned()));
            }
            Some(DiskFault::Full | DiskFault::LosesAnswer) | None => {}
        }
        let changes = transaction.changes.clone();
        let newest = self.store.epoch().0;
        let result = at_once(self.store.commit(transaction));
        let Some(result) = result else {
            return Err(StoreError::Transient("the store waits".to_owned()));
        };
        match &result {
            Ok(_) => {
                let epoch = self.lives[life].epoch;
                self.trace.note(
                    self.now_ms,
                    format_args!("stored for host {life}:{}", Brief(&changes)),
                );
                if epoch < newest {
                    self.fail(
                        "epoch",
                        format!("a write of epoch {epoch} takes effect after epoch {newest}"),
                    );
                }
                let stored = self.model.stored(epoch, begun_ms, &changes);
                self.judge(stored);
            }
            Err(error) => {
                self.trace.note(
                    self.now_ms,
                    format_args!("not stored for host {life}: {error}"),
                );
                if matches!(error, StoreError::Invalid(_)) {
                    self.fail("store", error.to_string());
                }
            }
        }
        if fault == Some(DiskFault::LosesAnswer) {
            return Err(StoreError::Transient("the answer is lost".to_owned()));
        }
        result
    }

    fn read(&mut self, batches: Vec<BatchNo>) -> Answer {
        if self.disk_faults.front() == Some(&DiskFault::Breaks) {
            self.disk_faults.pop_front();
            return Err(StoreError::Transient("broken".to_owned()));
        }
        at_once(self.store.read_bodies(batches))
            .unwrap_or_else(|| Err(StoreError::Transient("the store waits".to_owned())))
    }

    /// Answers an operation.
    pub(super) fn disk_answers(&mut self, life: usize, number: u64) {
        match self.lives[life].ops.remove(&number) {
            Some(Op::Stored(answer)) => self.feed(life, HostInput::StoreDone(answer)),
            Some(Op::Found(answer)) => self.feed(life, HostInput::BodiesRead(answer)),
            Some(Op::Store(..) | Op::Read(_)) | None => {}
        }
    }
}
