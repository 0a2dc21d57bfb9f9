//! The Paceline worker: for now one export, which proves that the wasm pipeline works.

use wasm_bindgen::prelude::wasm_bindgen;

/// Returns the version of the worker.
#[wasm_bindgen]
#[must_use]
pub fn version() -> String {
    env!("CARGO_PKG_VERSION").to_owned()
}
