//! Records as browser objects: `{ v: 1, <field>: ... }`, readable in any browser's tools.
//!
//! Objects, not JSON text: text is read and written two to three times as fast (20,000 cards in 35 ms against 130), but
//! its parser adds 23 KB to the compressed wasm that every user downloads, and a start with so many jobs is rare.
//!
//! Fields that this code does not know are passed over, so that a field can be added without a new version.

use js_sys::Object;
use paceline_core::ids::{BatchNo, Epoch, JobId};
use paceline_core::time::Wall;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_wasm_bindgen::Serializer;
use wasm_bindgen::JsValue;

use super::js;
use super::schema::SCHEMA;
use crate::StoreError;

/// The version of every stored record.
const VERSION: u32 = 1;

const SERIALIZER: Serializer = Serializer::json_compatible();

/// The record that says who owns the database.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Meta {
    /// The owner's epoch.
    pub(super) epoch: Epoch,
    /// The layout.
    pub(super) schema: u32,
    /// When the database was made.
    pub(super) birth: Wall,
    /// The token of the last commit, by which a retry knows whether it was stored after all.
    #[serde(default)]
    pub(super) commit: u64,
}

impl Meta {
    /// Makes the record of a database that has none.
    pub(super) const fn new(epoch: Epoch, birth: Wall) -> Self {
        Self {
            epoch,
            schema: SCHEMA,
            birth,
            commit: 0,
        }
    }
}

/// The names of a dropped batch.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Dropped {
    /// The names.
    pub(super) ids: Vec<JobId>,
    /// When the batch was dropped.
    pub(super) at: Wall,
}

/// Wraps a value as the field of a versioned record.
pub(super) fn encode<T: Serialize + ?Sized>(field: &str, value: &T) -> Result<JsValue, StoreError> {
    let value = value
        .serialize(&SERIALIZER)
        .map_err(|error| StoreError::Invalid(format!("{field}: {error}")))?;
    wrap(field, &value)
}

/// Wraps a browser's value as the field of a versioned record.
pub(super) fn wrap(field: &str, value: &JsValue) -> Result<JsValue, StoreError> {
    let record = Object::new();
    js::set(&record, "v", &VERSION.into())
        .and_then(|()| js::set(&record, field, value))
        .map_err(|error| StoreError::Invalid(format!("{field}: {error:?}")))?;
    Ok(record.into())
}

/// Reads the field of a versioned record.
///
/// # Errors
/// A sentence that says why the record does not parse.
pub(super) fn decode<T: DeserializeOwned>(field: &str, record: &JsValue) -> Result<T, String> {
    serde_wasm_bindgen::from_value(unwrap(field, record)?)
        .map_err(|error| format!("{field}: {error}"))
}

/// Reads the field of a versioned record as a browser's value.
///
/// # Errors
/// A sentence that says why the record does not parse.
pub(super) fn unwrap(field: &str, record: &JsValue) -> Result<JsValue, String> {
    let version = js::property(record, "v");
    if js::whole(&version) != Some(VERSION.into()) {
        return Err(format!(
            "expected a record of version {VERSION}, got {version:?}"
        ));
    }
    Ok(js::property(record, field))
}

/// Makes the key of a batch.
pub(super) fn batch_key(batch: BatchNo) -> Result<JsValue, StoreError> {
    number_key(batch.0)
}

/// Makes the key of a number.
pub(super) fn number_key(number: u64) -> Result<JsValue, StoreError> {
    js::number(number)
        .ok_or_else(|| StoreError::Invalid(format!("expected a number up to 2^53-1, got {number}")))
}
