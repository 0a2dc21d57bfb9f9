//! What the machine needs before anything is built or tested. Every part looks first and changes only what is missing.

use std::error::Error;
use std::path::Path;
use std::time::Instant;

use paceline_wasm_build::{Pkg, Toolchain};

use crate::browsers::{self, Browsers};
use crate::node;

/// What [`all`] found or installed.
pub(crate) struct Machine {
    pub(crate) toolchain: Toolchain,
    pub(crate) browsers: Browsers,
}

/// Sets everything up.
pub(crate) fn all(root: &Path) -> Result<Machine, Box<dyn Error>> {
    let started = Instant::now();
    let toolchain = toolchain(root)?;
    node::packages(root)?;
    let browsers = browsers::find_or_install(root)?;
    eprintln!("set-up complete: {:.1} s", started.elapsed().as_secs_f64());
    Ok(Machine {
        toolchain,
        browsers,
    })
}

/// Finds or installs a toolchain for the worker.
pub(crate) fn toolchain(root: &Path) -> Result<Toolchain, Box<dyn Error>> {
    let toolchain = Toolchain::install(root)?;
    eprintln!("wasm toolchain: {}", toolchain.name());
    Ok(toolchain)
}

/// Builds the worker.
pub(crate) fn worker(root: &Path, toolchain: &Toolchain) -> Result<Pkg, Box<dyn Error>> {
    Ok(paceline_wasm_build::build(root, toolchain)?)
}
