//! The layout of the database, and how an older one becomes this one.
//!
//! Migrations only go forward and only add: a store that this code does not know is left alone.

use wasm_bindgen::{JsCast, JsValue};
use web_sys::{IdbDatabase, IdbOpenDbRequest, IdbVersionChangeEvent};

/// The newest layout that this code knows; also the database's version.
///
/// The first layout is 2: version 1 is what a database gets from someone who opens it without knowing it, and that one
/// too is to be laid out by an upgrade.
pub(super) const SCHEMA: u32 = 2;

/// One record that says who owns the database.
pub(super) const META: &str = "meta";
/// Batches of cards, by batch number.
pub(super) const CARDS: &str = "cards";
/// Batches of bodies, by batch number.
pub(super) const BODIES: &str = "bodies";
/// Records of jobs, by place.
pub(super) const RECORDS: &str = "records";
/// Records of groups, by name.
pub(super) const GROUPS: &str = "groups";
/// Records of budgets, by name.
pub(super) const BUDGETS: &str = "budgets";
/// Names of jobs of dropped batches, by batch number.
pub(super) const DROPPED: &str = "dropped";
/// Records that did not parse, by the order in which they were found.
pub(super) const QUARANTINE: &str = "quarantine";

/// All stores.
pub(super) const STORES: [&str; 8] = [
    META, CARDS, BODIES, RECORDS, GROUPS, BUDGETS, DROPPED, QUARANTINE,
];

/// Brings the database of an `upgradeneeded` event to [`SCHEMA`]; throwing undoes the upgrade.
///
/// The event goes no further: the next handler is that of rexie's builder, which deletes every store it was not told of.
pub(super) fn upgrade(event: &IdbVersionChangeEvent) -> Result<(), JsValue> {
    event.stop_immediate_propagation();
    let request: IdbOpenDbRequest = event.target().ok_or(JsValue::NULL)?.dyn_into()?;
    let database: IdbDatabase = request.result()?.dyn_into()?;
    let present = database.object_store_names();
    for name in STORES.iter().filter(|name| !present.contains(name)) {
        create(&database, name)?;
    }
    Ok(())
}

fn create(database: &IdbDatabase, name: &str) -> Result<(), JsValue> {
    let parameters = web_sys::IdbObjectStoreParameters::new();
    parameters.set_auto_increment(name == QUARANTINE);
    database
        .create_object_store_with_optional_parameters(name, &parameters)
        .map(drop)
}
