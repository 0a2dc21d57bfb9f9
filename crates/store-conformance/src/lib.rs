//! The conformance suite of the IndexedDB store, and a store to break, exported to JavaScript.
//!
//! Owns nothing but the exports: the claims that hold for every store are `paceline_store::conformance`'s, those that only
//! a browser can try are in `tests/e2e/store`. Empty unless built for wasm.

#[cfg(target_arch = "wasm32")]
pub mod handle;
#[cfg(target_arch = "wasm32")]
pub mod suite;
