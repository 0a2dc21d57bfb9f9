//! A transaction as requests: encoded before the database is touched, then made in one synchronous burst.

use std::collections::BTreeSet;

use js_sys::Array;
use paceline_core::change::Change;
use paceline_core::ids::{BatchNo, Epoch, JobId, Seq};
use paceline_core::time::Wall;
use rexie::KeyRange;
use wasm_bindgen::JsValue;

use super::burst::Burst;
use super::codec::{self, Dropped};
use super::connection::Connection;
use super::failure::Failure;
use super::load;
use super::schema::{BODIES, BUDGETS, CARDS, DROPPED, GROUPS, META, RECORDS};
use crate::{ReadBodies, StoreError, Transaction};

/// One request of a write.
enum Write {
    Add {
        store: &'static str,
        key: JsValue,
        value: JsValue,
    },
    Put {
        store: &'static str,
        key: JsValue,
        value: JsValue,
    },
    Delete {
        store: &'static str,
        query: JsValue,
    },
}

/// A transaction that can be tried more than once.
pub(super) struct Prepared {
    epoch: Epoch,
    token: u64,
    writes: Vec<Write>,
    reads: Vec<(BatchNo, JsValue)>,
}

impl Prepared {
    /// Encodes a checked transaction; `token` tells it from every other one.
    pub(super) fn new(transaction: &Transaction<JsValue>, token: u64) -> Result<Self, StoreError> {
        let mut writes = Vec::with_capacity(transaction.changes.len() + 1);
        for change in &transaction.changes {
            encode(change, transaction, &mut writes)?;
        }
        let reads = transaction.read_bodies.iter();
        let reads = reads
            .map(|batch| Ok((*batch, codec::batch_key(*batch)?)))
            .collect::<Result<_, StoreError>>()?;
        Ok(Self {
            epoch: transaction.epoch,
            token,
            writes,
            reads,
        })
    }

    fn stores(&self) -> Vec<&'static str> {
        let mut names: BTreeSet<_> = self.writes.iter().map(Write::store).collect();
        names.insert(META);
        if !self.reads.is_empty() {
            names.insert(BODIES);
        }
        names.into_iter().collect()
    }

    /// Stores the transaction whole, or fails and leaves nothing of it.
    pub(super) async fn store(
        &self,
        connection: &Connection,
    ) -> Result<ReadBodies<JsValue>, Failure> {
        let (mut burst, outcome) = Burst::begin(connection, &self.stores())?;
        match self.request(&mut burst).await {
            Ok(()) => outcome.complete().await?,
            Err(failure) => {
                outcome.abort().await;
                return Err(failure);
            }
        }
        let answers = burst.answers()?;
        let bodies =
            |((batch, _), record): (&(BatchNo, JsValue), JsValue)| (*batch, load::bodies(&record));
        Ok(self.reads.iter().zip(answers).map(bodies).collect())
    }

    /// Compares the epoch, then makes every request before anything else can happen.
    async fn request(&self, burst: &mut Burst) -> Result<(), Failure> {
        let mut meta = burst
            .meta()
            .await?
            .ok_or_else(|| self.stale(Epoch::default()))?;
        if meta.epoch != self.epoch {
            return Err(self.stale(meta.epoch));
        }
        if meta.commit != self.token {
            meta.commit = self.token;
            burst.put_meta(&meta)?;
            self.writes
                .iter()
                .try_for_each(|write| write.request(burst))?;
        }
        self.reads
            .iter()
            .try_for_each(|(_, key)| burst.get(BODIES, key))
    }

    fn stale(&self, found: Epoch) -> Failure {
        Failure::Final(StoreError::StaleEpoch {
            expected: self.epoch.0,
            found: found.0,
        })
    }
}

impl Write {
    fn store(&self) -> &'static str {
        match self {
            Self::Add { store, .. } | Self::Put { store, .. } | Self::Delete { store, .. } => store,
        }
    }

    fn request(&self, burst: &mut Burst) -> Result<(), Failure> {
        match self {
            Self::Add { store, key, value } => burst.add(store, key, value),
            Self::Put { store, key, value } => burst.put(store, key, value),
            Self::Delete { store, query } => burst.delete(store, query),
        }
    }
}

fn encode(
    change: &Change,
    transaction: &Transaction<JsValue>,
    writes: &mut Vec<Write>,
) -> Result<(), StoreError> {
    match change {
        Change::AddBatch { batch, cards } => {
            let key = codec::batch_key(*batch)?;
            let bodies: Array = transaction
                .bodies_of(*batch)
                .unwrap_or_default()
                .iter()
                .collect();
            let (cards, bodies) = (codec::encode(CARDS, cards)?, codec::wrap(BODIES, &bodies)?);
            writes.push(Write::Add {
                store: CARDS,
                key: key.clone(),
                value: cards,
            });
            writes.push(Write::Add {
                store: BODIES,
                key,
                value: bodies,
            });
        }
        Change::PutRecord { seq, record } => {
            writes.push(put(
                RECORDS,
                codec::number_key(seq.as_u64())?,
                codec::encode("record", record)?,
            ));
        }
        Change::PutGroup { group, record } => {
            writes.push(put(
                GROUPS,
                JsValue::from_str(group.as_str()),
                codec::encode("group", record)?,
            ));
        }
        Change::PutBudget { budget, record } => {
            writes.push(put(
                BUDGETS,
                JsValue::from_str(budget.as_str()),
                codec::encode("budget", record)?,
            ));
        }
        Change::DropBatch { batch, ids, at } => drop_batch(*batch, ids, *at, writes)?,
        Change::ForgetIds { batch } => {
            writes.push(Write::Delete {
                store: DROPPED,
                query: codec::batch_key(*batch)?,
            });
        }
        Change::DropGroup { group } => {
            writes.push(Write::Delete {
                store: GROUPS,
                query: JsValue::from_str(group.as_str()),
            });
        }
        other => unreachable!("unknown changes are refused by `Transaction::check`: {other:?}"),
    }
    Ok(())
}

fn put(store: &'static str, key: JsValue, value: JsValue) -> Write {
    Write::Put { store, key, value }
}

fn drop_batch(
    batch: BatchNo,
    ids: &[JobId],
    at: Wall,
    writes: &mut Vec<Write>,
) -> Result<(), StoreError> {
    let key = codec::batch_key(batch)?;
    let dropped = codec::encode(
        DROPPED,
        &Dropped {
            ids: ids.to_vec(),
            at,
        },
    )?;
    writes.push(Write::Delete {
        store: CARDS,
        query: key.clone(),
    });
    writes.push(Write::Delete {
        store: BODIES,
        query: key.clone(),
    });
    writes.push(Write::Delete {
        store: RECORDS,
        query: records_of(batch)?.into(),
    });
    writes.push(put(DROPPED, key, dropped));
    Ok(())
}

/// The places of a batch's jobs.
pub(super) fn records_of(batch: BatchNo) -> Result<KeyRange, StoreError> {
    let first = codec::number_key(Seq::new(batch, 0).as_u64())?;
    let last = codec::number_key(Seq::new(batch, u8::MAX).as_u64())?;
    KeyRange::bound(&first, &last, None, None)
        .map_err(|error| StoreError::Invalid(error.to_string()))
}
