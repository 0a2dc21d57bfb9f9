//! The store in memory: the reference of what a store does, and a disk that fails on demand.
//!
//! Owns the semantics that the conformance suite asks of every store, and the faults that tests inject. Is not durable:
//! the data lives as long as one clone of the store, so a "restarted" host is given a clone. Invariant: without a fault
//! every operation is done at its first poll; commits are applied in the order of their first polls.

mod disk;
mod faults;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use paceline_core::change::Stored;
use paceline_core::ids::{BatchNo, Epoch};
use paceline_core::time::Wall;

use self::disk::Disk;
pub use self::faults::Operation;
use self::faults::{Faults, Slot};
use crate::{Opened, ReadBodies, Store, StoreError, Transaction};

/// A store in memory; clones share the data and the injected faults.
#[derive(Clone, Debug)]
pub struct MemoryStore<B> {
    inner: Rc<RefCell<Inner<B>>>,
}

#[derive(Debug)]
struct Inner<B> {
    disk: Disk<B>,
    faults: Faults<B>,
    commits: u64,
}

impl<B> Default for MemoryStore<B> {
    fn default() -> Self {
        let inner = Inner {
            disk: Disk::default(),
            faults: Faults::default(),
            commits: 0,
        };
        Self {
            inner: Rc::new(RefCell::new(inner)),
        }
    }
}

impl<B: Clone> MemoryStore<B> {
    /// Makes an empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns what is stored now, without raising the epoch.
    pub fn stored(&self) -> Stored {
        self.inner.borrow().disk.stored()
    }

    /// Returns the stored epoch; 0 before the first open.
    pub fn epoch(&self) -> Epoch {
        self.inner.borrow().disk.epoch()
    }

    /// Returns how many commits were applied.
    pub fn commits(&self) -> u64 {
        self.inner.borrow().commits
    }

    /// Returns how many commits wait to be released.
    pub fn pending(&self) -> usize {
        self.inner.borrow().faults.pending.len()
    }

    /// Makes the next operation of this kind fail with `error` and change nothing; several are used in order.
    pub fn fail_next(&self, operation: Operation, error: StoreError) {
        self.inner
            .borrow_mut()
            .faults
            .failures
            .push_back((operation, error));
    }

    /// Makes the next commit that is applied answer [`StoreError::Transient`] all the same, as when a connection dies
    /// between the write and its answer.
    pub fn lose_next_answer(&self) {
        self.inner.borrow_mut().faults.lose_answer = true;
    }

    /// Lets commits stay pending until [`MemoryStore::release_one`] or [`MemoryStore::release_all`].
    pub fn hold_commits(&self) {
        self.inner.borrow_mut().faults.held = true;
    }

    /// Applies the oldest pending commit and answers it; tells whether there was one.
    pub fn release_one(&self) -> bool {
        let Some((transaction, slot)) = self.inner.borrow_mut().faults.pending.pop_front() else {
            return false;
        };
        let result = self.inner.borrow_mut().apply(transaction);
        Slot::answer(&slot, result);
        true
    }

    /// Applies and answers every pending commit, in order, and holds no more.
    pub fn release_all(&self) {
        self.inner.borrow_mut().faults.held = false;
        while self.release_one() {}
    }

    /// Drops pending commits, unapplied, and all injected faults; what was committed stays.
    ///
    /// A future that still waits for a dropped commit gets [`StoreError::Transient`].
    pub fn crash(&self) {
        let faults = std::mem::take(&mut self.inner.borrow_mut().faults);
        for (_, slot) in faults.pending {
            Slot::answer(
                &slot,
                Err(StoreError::Transient(
                    "crashed before the commit".to_owned(),
                )),
            );
        }
    }
}

impl<B: Clone> Inner<B> {
    fn apply(&mut self, transaction: Transaction<B>) -> Result<ReadBodies<B>, StoreError> {
        if let Some(error) = self.faults.take(Operation::Commit) {
            return Err(error);
        }
        let read = self.disk.commit(transaction)?;
        self.commits = self.commits.saturating_add(1);
        if std::mem::take(&mut self.faults.lose_answer) {
            return Err(StoreError::Transient("the answer was lost".to_owned()));
        }
        Ok(read)
    }
}

impl<B: Clone> Store for MemoryStore<B> {
    type Body = B;

    async fn open(&self, now: Wall) -> Result<Opened, StoreError> {
        let inner = &mut *self.inner.borrow_mut();
        match inner.faults.take(Operation::Open) {
            Some(error) => Err(error),
            None => Ok(inner.disk.open(now)),
        }
    }

    async fn commit(&self, transaction: Transaction<B>) -> Result<ReadBodies<B>, StoreError> {
        let slot = {
            let inner = &mut *self.inner.borrow_mut();
            if !inner.faults.held {
                return inner.apply(transaction);
            }
            let slot = Slot::new();
            inner
                .faults
                .pending
                .push_back((transaction, Rc::clone(&slot)));
            slot
        };
        poll_fn(|context| Slot::poll(&slot, context)).await
    }

    async fn read_bodies(&self, batches: Vec<BatchNo>) -> Result<ReadBodies<B>, StoreError> {
        let inner = &mut *self.inner.borrow_mut();
        match inner.faults.take(Operation::Read) {
            Some(error) => Err(error),
            None => Ok(inner.disk.read_bodies(&batches)),
        }
    }
}

type Answer<B> = Poll<Result<ReadBodies<B>, StoreError>>;
