//! The one place that knows how the worker's wasm is built.
//!
//! It owns the search for a toolchain that can build wasm ([`Toolchain`]), the cargo call, the wasm-bindgen step and the
//! optimiser, and the directory they write to. It does not own what becomes of the result: the root `build.rs` embeds it,
//! `cargo xtask` calls it.
//!
//! Invariant: [`Pkg`] is complete. Its two files are renamed into place, and the stamp that makes them count as built is
//! removed before the first and written after the last, so an interrupted build is built again.

mod compile;
mod embed;
mod environment;
mod error;
mod fingerprint;
mod pkg;
mod run;
mod step;
mod toolchain;

pub use compile::compile;
pub use embed::embed;
pub use error::Error;
pub use pkg::{Pkg, build, build_with};
pub use run::{capture, run, run_limited};
pub use step::step;
pub use toolchain::{PACKAGES, Toolchain, apt_install, is_root};
