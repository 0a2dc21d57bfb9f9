//! Setting aside what does not parse: moved, never deleted, so that a later version or a person can look at it.
//!
//! A batch whose cards do not parse goes with its bodies and its records, so that its number is free again and no record
//! speaks of a job that nobody knows. A job whose record does not parse is given one that says that it may have been sent.

use std::collections::BTreeSet;

use paceline_core::ids::{BatchNo, Epoch, Seq};
use paceline_core::job::{Record, State};
use paceline_core::time::Wall;
use serde::Serialize;
use wasm_bindgen::JsValue;

use super::burst::Burst;
use super::codec;
use super::connection::Connection;
use super::failure::Failure;
use super::js;
use super::load::{Loaded, Unreadable};
use super::schema::{BODIES, CARDS, META, QUARANTINE, RECORDS, STORES};
use super::write::records_of;
use crate::StoreError;
use crate::join::both;

/// What is known of a record that was set aside, beside its key and value.
#[derive(Serialize)]
struct Found<'a> {
    store: &'a str,
    why: &'a str,
    at: Wall,
}

/// Moves what does not parse out of the way, and takes the records of its jobs out of what was loaded.
///
/// Where it cannot be moved it stays in its place and is found again at the next start.
pub(super) async fn set_aside(
    connection: &Connection,
    loaded: &mut Loaded,
    epoch: Epoch,
    now: Wall,
) -> u32 {
    if loaded.unreadable.is_empty() {
        return 0;
    }
    let batches = lost_batches(&loaded.unreadable);
    loaded
        .stored
        .records
        .retain(|(seq, _)| !batches.contains(&seq.batch()));
    loaded
        .stored
        .records
        .extend(undecided(&loaded.unreadable, &batches));
    // The start goes on without: what is in the way is only counted again next time.
    let _ = move_all(connection, &loaded.unreadable, &batches, epoch, now).await;
    u32::try_from(loaded.unreadable.len()).unwrap_or(u32::MAX)
}

/// A job whose record does not parse may have been sent: it is found as on its way, and the next owner decides.
fn undecided(
    unreadable: &[Unreadable],
    batches: &BTreeSet<BatchNo>,
) -> impl Iterator<Item = (Seq, Record)> {
    let of_records = unreadable.iter().filter(|record| record.store == RECORDS);
    let seqs = of_records
        .filter_map(|record| js::whole(&record.key))
        .map(Seq::from_u64);
    let record = Record {
        state: State::Sending,
        attempt: 1,
        ..Record::fresh()
    };
    let kept: Vec<Seq> = seqs.filter(|seq| !batches.contains(&seq.batch())).collect();
    kept.into_iter().map(move |seq| (seq, record.clone()))
}

fn lost_batches(unreadable: &[Unreadable]) -> BTreeSet<BatchNo> {
    let of_cards = unreadable.iter().filter(|record| record.store == CARDS);
    of_cards
        .filter_map(|record| js::whole(&record.key))
        .map(BatchNo)
        .collect()
}

async fn move_all(
    connection: &Connection,
    unreadable: &[Unreadable],
    batches: &BTreeSet<BatchNo>,
    epoch: Epoch,
    now: Wall,
) -> Result<(), Failure> {
    let (mut burst, outcome) = Burst::begin(connection, &STORES)?;
    match request_moves(&mut burst, unreadable, batches, epoch, now).await {
        Ok(()) => outcome.complete().await,
        Err(failure) => {
            outcome.abort().await;
            Err(failure)
        }
    }
}

async fn request_moves(
    burst: &mut Burst,
    unreadable: &[Unreadable],
    batches: &BTreeSet<BatchNo>,
    epoch: Epoch,
    now: Wall,
) -> Result<(), Failure> {
    let found = burst
        .meta()
        .await?
        .map_or(Epoch::default(), |meta| meta.epoch);
    if found != epoch {
        return Err(Failure::Final(StoreError::StaleEpoch {
            expected: epoch.0,
            found: found.0,
        }));
    }
    let mut with_them = Vec::new();
    for batch in batches {
        with_them.extend(of_batch(burst, *batch).await?);
    }
    for record in unreadable.iter().chain(&with_them) {
        burst.append(QUARANTINE, &wrapped(record, now).map_err(Failure::Final)?)?;
        burst.delete(record.store, &record.key)?;
    }
    for (seq, record) in undecided(unreadable, batches) {
        let record = codec::encode("record", &record).map_err(Failure::Final)?;
        burst.put(RECORDS, &js_number(seq), &record)?;
    }
    Ok(())
}

/// A place as the key of its record; places are below 2^53.
#[allow(clippy::cast_precision_loss, reason = "places are below 2^53")]
fn js_number(seq: Seq) -> JsValue {
    JsValue::from_f64(seq.as_u64() as f64)
}

async fn of_batch(burst: &Burst, batch: BatchNo) -> Result<Vec<Unreadable>, Failure> {
    let range = records_of(batch).map_err(Failure::Final)?;
    let key = codec::batch_key(batch).map_err(Failure::Final)?;
    let records = burst.store(RECORDS);
    let (keys, values) = both(
        records.get_all_keys(Some(range.clone()), None),
        records.get_all(Some(range), None),
    )
    .await;
    let bodies = burst
        .store(BODIES)
        .get(key.clone())
        .await
        .map_err(|error| Failure::of_rexie(&error, "read"))?;
    let read = |result: rexie::Result<Vec<JsValue>>| {
        result.map_err(|error| Failure::of_rexie(&error, "read"))
    };
    let with = |store, key, value| Unreadable {
        store,
        key,
        value,
        why: format!("its cards, batch {}", batch.0),
    };
    let records = read(keys)?
        .into_iter()
        .zip(read(values)?)
        .map(|(key, value)| with(RECORDS, key, value));
    Ok(records
        .chain(bodies.map(|value| with(BODIES, key, value)))
        .collect())
}

fn wrapped(record: &Unreadable, at: Wall) -> Result<JsValue, StoreError> {
    let found = Found {
        store: record.store,
        why: &record.why,
        at,
    };
    let wrapped = codec::encode("found", &found)?;
    js::set(&wrapped, "key", &record.key)
        .and_then(|()| js::set(&wrapped, "value", &record.value))
        .map_err(|error| StoreError::Invalid(format!("{error:?}")))?;
    Ok(wrapped)
}

/// Wraps a `meta` that does not parse.
pub(super) fn meta(value: JsValue, why: String, at: Wall) -> Result<JsValue, StoreError> {
    wrapped(
        &Unreadable {
            store: META,
            key: JsValue::from_str(META),
            value,
            why,
        },
        at,
    )
}
