//! What a start reads: everything but bodies, in pages, without cursors.

use js_sys::Array;
use paceline_core::change::Stored;
use paceline_core::ids::{BatchNo, BudgetId, GroupId, Seq};
use rexie::{KeyRange, TransactionMode};
use serde::de::DeserializeOwned;
use wasm_bindgen::{JsCast, JsValue};

use super::burst::{Stores, stores};
use super::codec::{self, Dropped};
use super::connection::Connection;
use super::failure::Failure;
use super::js;
use super::schema::{BODIES, BUDGETS, CARDS, DROPPED, GROUPS, RECORDS};
use crate::ReadBodies;
use crate::join::both;

/// A page of batches is up to 16,384 jobs.
const BATCH_PAGE: u32 = 64;
const RECORD_PAGE: u32 = 2_048;

/// A record that does not parse.
#[derive(Debug)]
pub(super) struct Unreadable {
    pub(super) store: &'static str,
    pub(super) key: JsValue,
    pub(super) value: JsValue,
    pub(super) why: String,
}

/// What a start found.
#[derive(Debug, Default)]
pub(super) struct Loaded {
    pub(super) stored: Stored,
    pub(super) unreadable: Vec<Unreadable>,
}

/// Reads everything but bodies in one read-only transaction.
pub(super) async fn load(connection: &Connection) -> Result<Loaded, Failure> {
    let names = [CARDS, RECORDS, GROUPS, BUDGETS, DROPPED];
    let (transaction, outcome) = connection.begin(&names, TransactionMode::ReadOnly)?;
    let result = match stores(&transaction, &names) {
        Ok(stores) => read_stores(stores).await,
        Err(failure) => Err(failure),
    };
    match result {
        Ok(loaded) => outcome.complete().await.map(|()| loaded),
        Err(failure) => {
            outcome.abort().await;
            Err(failure)
        }
    }
}

async fn read_stores(stores: Stores) -> Result<Loaded, Failure> {
    let mut unreadable = Vec::new();
    let mut reader = Reader {
        stores: &stores,
        unreadable: &mut unreadable,
    };
    let stored = Stored {
        batches: reader.read(CARDS, CARDS, BATCH_PAGE, batch_of).await?,
        records: reader
            .read(RECORDS, "record", RECORD_PAGE, |key| {
                js::whole(key).map(Seq::from_u64)
            })
            .await?,
        groups: reader
            .read(GROUPS, "group", RECORD_PAGE, |key| {
                GroupId::parse(&key.as_string()?).ok()
            })
            .await?,
        budgets: reader
            .read(BUDGETS, "budget", RECORD_PAGE, |key| {
                BudgetId::parse(&key.as_string()?).ok()
            })
            .await?,
        dropped: {
            let dropped = reader
                .read::<_, Dropped>(DROPPED, DROPPED, BATCH_PAGE, batch_of)
                .await?;
            dropped
                .into_iter()
                .map(|(batch, dropped)| (batch, dropped.ids, dropped.at))
                .collect()
        },
    };
    Ok(Loaded { stored, unreadable })
}

fn batch_of(key: &JsValue) -> Option<BatchNo> {
    js::whole(key).map(BatchNo)
}

struct Reader<'a> {
    stores: &'a Stores,
    unreadable: &'a mut Vec<Unreadable>,
}

impl Reader<'_> {
    /// Reads a whole store, ascending; what does not parse is put beside.
    async fn read<K, V: DeserializeOwned>(
        &mut self,
        store: &'static str,
        field: &str,
        page: u32,
        parse_key: impl Fn(&JsValue) -> Option<K>,
    ) -> Result<Vec<(K, V)>, Failure> {
        let mut found = Vec::new();
        let mut after = None;
        loop {
            let (keys, values) = read_page(&self.stores[store], after.as_ref(), page).await?;
            let last_page = keys.len() < page as usize;
            after = keys.last().cloned();
            for (key, value) in keys.into_iter().zip(values) {
                let parsed =
                    parse_key(&key).ok_or_else(|| format!("expected another key than {key:?}"));
                match parsed.and_then(|parsed| Ok((parsed, codec::decode(field, &value)?))) {
                    Ok(entry) => found.push(entry),
                    Err(why) => self.unreadable.push(Unreadable {
                        store,
                        key,
                        value,
                        why,
                    }),
                }
            }
            if last_page {
                return Ok(found);
            }
        }
    }
}

async fn read_page(
    store: &rexie::Store,
    after: Option<&JsValue>,
    limit: u32,
) -> Result<(Vec<JsValue>, Vec<JsValue>), Failure> {
    let range = after
        .map(|key| KeyRange::lower_bound(key, Some(true)))
        .transpose();
    let range = range.map_err(|error| Failure::Lost(error.to_string()))?;
    let (keys, values) = both(
        store.get_all_keys(range.clone(), Some(limit)),
        store.get_all(range, Some(limit)),
    )
    .await;
    let read = |result: rexie::Result<_>| result.map_err(|error| Failure::of_rexie(&error, "read"));
    Ok((read(keys)?, read(values)?))
}

/// Reads the bodies of batches in one read-only transaction.
pub(super) async fn load_bodies(
    connection: &Connection,
    batches: &[BatchNo],
) -> Result<ReadBodies<JsValue>, Failure> {
    let (transaction, outcome) = connection.begin(&[BODIES], TransactionMode::ReadOnly)?;
    let result = match stores(&transaction, &[BODIES]) {
        Ok(stores) => read_bodies(&stores[BODIES], batches).await,
        Err(failure) => Err(failure),
    };
    match result {
        Ok(read) => outcome.complete().await.map(|()| read),
        Err(failure) => {
            outcome.abort().await;
            Err(failure)
        }
    }
}

async fn read_bodies(
    store: &rexie::Store,
    batches: &[BatchNo],
) -> Result<ReadBodies<JsValue>, Failure> {
    let mut read = Vec::with_capacity(batches.len());
    for batch in batches {
        let key = codec::batch_key(*batch).map_err(Failure::Final)?;
        let record = store
            .get(key)
            .await
            .map_err(|error| Failure::of_rexie(&error, "read"))?;
        read.push((*batch, record.and_then(|record| bodies(&record))));
    }
    Ok(read)
}

/// Takes the bodies out of their record; nothing where there is none, or none that parses.
pub(super) fn bodies(record: &JsValue) -> Option<Vec<JsValue>> {
    let bodies: Array = codec::unwrap(BODIES, record).ok()?.dyn_into().ok()?;
    Some(bodies.to_vec())
}
