//! The data of the memory store, and the one place that says what each change does to it.

use std::collections::BTreeMap;

use paceline_core::change::{Change, Stored};
use paceline_core::ids::{BatchNo, BudgetId, Epoch, GroupId, JobId, Seq};
use paceline_core::job::{BudgetRecord, Card, GroupRecord, Record};
use paceline_core::time::Wall;

use crate::check::exists;
use crate::{Opened, ReadBodies, StoreError, Transaction};

#[derive(Debug)]
struct Batch<B> {
    cards: Vec<Card>,
    bodies: Vec<B>,
}

#[derive(Debug)]
pub(super) struct Disk<B> {
    epoch: Epoch,
    birth: Option<Wall>,
    batches: BTreeMap<BatchNo, Batch<B>>,
    records: BTreeMap<Seq, Record>,
    groups: BTreeMap<GroupId, GroupRecord>,
    budgets: BTreeMap<BudgetId, BudgetRecord>,
    dropped: BTreeMap<BatchNo, (Vec<JobId>, Wall)>,
}

impl<B> Default for Disk<B> {
    fn default() -> Self {
        Self {
            epoch: Epoch::default(),
            birth: None,
            batches: BTreeMap::new(),
            records: BTreeMap::new(),
            groups: BTreeMap::new(),
            budgets: BTreeMap::new(),
            dropped: BTreeMap::new(),
        }
    }
}

impl<B: Clone> Disk<B> {
    pub(super) fn open(&mut self, now: Wall) -> Opened {
        self.epoch = self.epoch.next();
        let birth = *self.birth.get_or_insert(now);
        Opened {
            epoch: self.epoch,
            birth,
            stored: self.stored(),
            quarantined: 0,
        }
    }

    pub(super) fn commit(
        &mut self,
        transaction: Transaction<B>,
    ) -> Result<ReadBodies<B>, StoreError> {
        transaction.check()?;
        self.compare(transaction.epoch)?;
        self.refuse_existing(&transaction.changes)?;
        let mut bodies: BTreeMap<_, _> = transaction.bodies.into_iter().collect();
        for change in transaction.changes {
            self.apply(change, &mut bodies);
        }
        Ok(self.read_bodies(&transaction.read_bodies))
    }

    /// The first open gives 1, so that epoch 0 writes nothing.
    fn compare(&self, epoch: Epoch) -> Result<(), StoreError> {
        if epoch == self.epoch && epoch != Epoch::default() {
            return Ok(());
        }
        Err(StoreError::StaleEpoch {
            expected: epoch.0,
            found: self.epoch.0,
        })
    }

    /// Adding is the one change that can fail, so it is looked at before the first change is made.
    fn refuse_existing(&self, changes: &[Change]) -> Result<(), StoreError> {
        let mut gone = Vec::new();
        for change in changes {
            if let Change::DropBatch { batch, .. } = change {
                gone.push(*batch);
            }
            if let Change::AddBatch { batch, .. } = change
                && self.batches.contains_key(batch)
                && !gone.contains(batch)
            {
                return Err(exists(*batch));
            }
        }
        Ok(())
    }

    fn apply(&mut self, change: Change, bodies: &mut BTreeMap<BatchNo, Vec<B>>) {
        match change {
            Change::AddBatch { batch, cards } => {
                let bodies = bodies.remove(&batch).unwrap_or_default();
                self.batches.insert(batch, Batch { cards, bodies });
            }
            Change::PutRecord { seq, record } => {
                self.records.insert(seq, record);
            }
            Change::PutGroup { group, record } => {
                self.groups.insert(group, record);
            }
            Change::PutBudget { budget, record } => {
                self.budgets.insert(budget, record);
            }
            Change::DropBatch { batch, ids, at } => self.drop_batch(batch, ids, at),
            Change::ForgetIds { batch } => {
                self.dropped.remove(&batch);
            }
            Change::DropGroup { group } => {
                self.groups.remove(&group);
            }
            other => unreachable!("unknown changes are refused by `Transaction::check`: {other:?}"),
        }
    }

    fn drop_batch(&mut self, batch: BatchNo, ids: Vec<JobId>, at: Wall) {
        self.batches.remove(&batch);
        for index in 0..=u8::MAX {
            self.records.remove(&Seq::new(batch, index));
        }
        self.dropped.insert(batch, (ids, at));
    }

    pub(super) fn read_bodies(&self, batches: &[BatchNo]) -> ReadBodies<B> {
        let read = |no: &BatchNo| (*no, self.batches.get(no).map(|batch| batch.bodies.clone()));
        batches.iter().map(read).collect()
    }

    pub(super) fn stored(&self) -> Stored {
        Stored {
            batches: self
                .batches
                .iter()
                .map(|(no, batch)| (*no, batch.cards.clone()))
                .collect(),
            records: clone_pairs(&self.records),
            groups: clone_pairs(&self.groups),
            budgets: clone_pairs(&self.budgets),
            dropped: self
                .dropped
                .iter()
                .map(|(no, (ids, at))| (*no, ids.clone(), *at))
                .collect(),
        }
    }

    pub(super) fn epoch(&self) -> Epoch {
        self.epoch
    }
}

fn clone_pairs<K: Clone, V: Clone>(map: &BTreeMap<K, V>) -> Vec<(K, V)> {
    map.iter()
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}
