//! What a built wasm depends on, as one number. Contents, not times: a fresh checkout of the same sources is the same.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use crate::Error;

/// The files and directories whose contents reach the wasm, from the workspace root.
pub(crate) const INPUTS: [&str; 15] = [
    "Cargo.toml",
    "Cargo.lock",
    "sw/Cargo.toml",
    "sw/src",
    "crates/core/Cargo.toml",
    "crates/core/src",
    "crates/signals/Cargo.toml",
    "crates/signals/src",
    "crates/protocol/Cargo.toml",
    "crates/protocol/src",
    "crates/store/Cargo.toml",
    "crates/store/src",
    "crates/host/Cargo.toml",
    "crates/host/src",
    "crates/wasm-build/src",
];

/// The part of [`INPUTS`] that decides what becomes of a compiled module.
const OWN: &str = "crates/wasm-build/src";

/// Hashes all inputs, and the words that describe the tools.
///
/// # Errors
/// When an input cannot be read.
pub(crate) fn of_inputs(root: &Path, tools: &[&str]) -> Result<String, Error> {
    of(INPUTS.map(|input| root.join(input)), tools)
}

/// Hashes a compiled module, what we do to it, and the words that describe the tools.
///
/// # Errors
/// When a file cannot be read.
pub(crate) fn of_module(root: &Path, module: &Path, tools: &[&str]) -> Result<String, Error> {
    of([module.to_owned(), root.join(OWN)], tools)
}

fn of<const N: usize>(paths: [PathBuf; N], tools: &[&str]) -> Result<String, Error> {
    let mut hasher = DefaultHasher::new();
    tools.hash(&mut hasher);
    paths
        .iter()
        .try_for_each(|path| hash_path(path, &mut hasher))?;
    Ok(format!("{:016x}", hasher.finish()))
}

fn hash_path(path: &Path, hasher: &mut DefaultHasher) -> Result<(), Error> {
    if path.is_dir() {
        return sorted(path)?
            .iter()
            .try_for_each(|entry| hash_path(entry, hasher));
    }
    path.file_name().hash(hasher);
    fs::read(path).map_err(Error::file(path))?.hash(hasher);
    Ok(())
}

fn sorted(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let entries = fs::read_dir(directory).map_err(Error::file(directory))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    Ok(paths)
}
