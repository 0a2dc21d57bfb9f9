//! One store, to be broken by a test in JavaScript.

use std::cell::RefCell;
use std::rc::Rc;
use std::task::{Context, Waker};

use js_sys::{Array, Error, Object, Reflect};
use paceline_core::change::Change;
use paceline_core::ids::{BatchNo, Epoch, Seq};
use paceline_core::time::Wall;
use paceline_store::conformance::samples::{add, changes, full_card, sending};
use paceline_store::indexeddb::{IndexedDbStore, Lost};
use paceline_store::{Opened, Store, StoreError, Transaction};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::suite::body;

type Answer = Result<JsValue, JsValue>;

/// A store whose numbers are all JavaScript numbers; it rejects with an error that has a `code`.
#[wasm_bindgen]
pub struct TestStore {
    store: IndexedDbStore,
    lost: Rc<RefCell<Vec<&'static str>>>,
}

#[wasm_bindgen]
impl TestStore {
    /// Names a store; an open that takes longer than `patience_ms` fails.
    #[wasm_bindgen(constructor)]
    pub fn new(queue: &str, patience_ms: u32) -> Self {
        let store = IndexedDbStore::new(queue).with_open_patience(patience_ms);
        let lost = Rc::<RefCell<Vec<_>>>::default();
        let losses = Rc::clone(&lost);
        store.on_lost(move |why| losses.borrow_mut().push(code_of_loss(why)));
        Self { store, lost }
    }

    /// Opens; answers the epoch, the birth and the counts of what is stored.
    pub async fn open(&self, now: u32) -> Answer {
        let opened = self
            .store
            .open(Wall::from_millis(now.into()))
            .await
            .map_err(thrown)?;
        Ok(summary(&opened))
    }

    /// Adds `batches` batches of `jobs` jobs each in one commit.
    pub async fn add(&self, epoch: u32, first: u32, batches: u32, jobs: u32) -> Answer {
        let mut all = changes(Epoch(epoch.into()), Vec::new());
        for batch in first..first + batches {
            let batch = u64::from(batch);
            let cards = (batch * 256..).take(jobs as usize).map(full_card).collect();
            let one = add(all.epoch, BatchNo(batch), cards, body);
            all.changes.extend(one.changes);
            all.bodies.extend(one.bodies);
        }
        self.commit(all).await
    }

    /// Begins to add a batch of two jobs and at once stops waiting for it.
    #[wasm_bindgen(js_name = addAndForget)]
    pub fn add_and_forget(&self, epoch: u32, batch: u32) {
        let cards = vec![full_card(0), full_card(1)];
        let commit =
            self.store
                .commit(add(Epoch(epoch.into()), BatchNo(batch.into()), cards, body));
        // Polled once: the store has it now.
        let _ = std::pin::pin!(commit).poll(&mut Context::from_waker(Waker::noop()));
    }

    /// Adds a batch of one job whose body is this value.
    #[wasm_bindgen(js_name = addBody)]
    pub async fn add_body(&self, epoch: u32, batch: u32, value: JsValue) -> Answer {
        let batch = BatchNo(batch.into());
        self.commit(add(Epoch(epoch.into()), batch, vec![full_card(0)], |_| {
            value.clone()
        }))
        .await
    }

    /// Puts the records of `count` jobs from the first one of `batch`, in one commit.
    pub async fn put(&self, epoch: u32, batch: u32, count: u32, started_at: u32) -> Answer {
        let first = Seq::new(BatchNo(batch.into()), 0).as_u64();
        let put = |n: u32| Change::PutRecord {
            seq: Seq::from_u64(first + u64::from(n)),
            record: sending(started_at.into()),
        };
        self.commit(changes(Epoch(epoch.into()), (0..count).map(put).collect()))
            .await
    }

    /// Reads the bodies of a batch; null where there are none.
    pub async fn bodies(&self, batch: u32) -> Answer {
        let mut read = self
            .store
            .read_bodies(vec![BatchNo(batch.into())])
            .await
            .map_err(thrown)?;
        let bodies = read.pop().and_then(|(_, bodies)| bodies);
        Ok(bodies.map_or(JsValue::NULL, |bodies| {
            bodies.iter().collect::<Array>().into()
        }))
    }

    /// Tells how connections were lost so far.
    pub fn lost(&self) -> Array {
        self.lost
            .borrow()
            .iter()
            .copied()
            .map(JsValue::from_str)
            .collect()
    }

    /// Closes the connection.
    pub async fn close(&self) {
        self.store.close().await;
    }
}

impl TestStore {
    async fn commit(&self, transaction: Transaction<JsValue>) -> Answer {
        let read = self.store.commit(transaction).await.map_err(thrown)?;
        Ok(u32::try_from(read.len()).unwrap_or(u32::MAX).into())
    }
}

fn code_of_loss(why: Lost) -> &'static str {
    match why {
        Lost::VersionChange => "version-change",
        Lost::Closed => "closed",
        _ => "unknown",
    }
}

fn summary(opened: &Opened) -> JsValue {
    let stored = &opened.stored;
    let jobs: usize = stored.batches.iter().map(|(_, cards)| cards.len()).sum();
    let answer = Object::new();
    set(&answer, "epoch", number(opened.epoch.0));
    set(&answer, "birth", number(opened.birth.as_millis()));
    set(
        &answer,
        "batches",
        stored
            .batches
            .iter()
            .map(|(batch, _)| number(batch.0))
            .collect::<Array>()
            .into(),
    );
    set(&answer, "jobs", number(jobs as u64));
    set(&answer, "records", number(stored.records.len() as u64));
    set(&answer, "quarantined", number(opened.quarantined.into()));
    answer.into()
}

fn thrown(error: StoreError) -> JsValue {
    let thrown = Error::new(&error.to_string());
    set(&thrown, "code", code(&error).into());
    if let StoreError::TooNew { found, .. } = error {
        set(&thrown, "found", found.into());
    }
    thrown.into()
}

fn code(error: &StoreError) -> &'static str {
    match error {
        StoreError::StaleEpoch { .. } => "stale-epoch",
        StoreError::Full(_) => "full",
        StoreError::Transient(_) => "transient",
        StoreError::TooNew { .. } => "too-new",
        StoreError::Blocked => "blocked",
        StoreError::Unavailable(_) => "unavailable",
        StoreError::Invalid(_) => "invalid",
        _ => "unknown",
    }
}

#[allow(clippy::cast_precision_loss, reason = "test values are small")]
fn number(value: u64) -> JsValue {
    JsValue::from_f64(value as f64)
}

fn set(object: &JsValue, name: &str, value: JsValue) {
    // A plain object takes every property.
    let _ = Reflect::set(object, &name.into(), &value);
}
