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

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory of this test, with one file.
    fn module(name: &str, bytes: &[u8]) -> PathBuf {
        let root = std::env::temp_dir().join(format!("paceline-{name}-{}", std::process::id()));
        fs::create_dir_all(root.join(OWN)).expect("the temporary directory is writable");
        fs::write(root.join("module"), bytes).expect("the temporary directory is writable");
        root
    }

    fn print(root: &Path, tool: &str) -> String {
        of_module(root, &root.join("module"), &[tool]).expect("the files are there")
    }

    #[test]
    fn follows_contents_and_tools_and_not_the_time() {
        let root = module("fingerprint", b"one");
        let first = print(&root, "tool 1");

        let again = module("fingerprint", b"one");
        assert_eq!(print(&again, "tool 1"), first);
        assert_ne!(print(&again, "tool 2"), first);
        let changed = module("fingerprint", b"two");
        assert_ne!(print(&changed, "tool 1"), first);

        fs::remove_dir_all(root).expect("it was made above");
    }

    #[test]
    fn every_input_is_there() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .ancestors()
            .nth(2)
            .expect("a workspace");

        for input in INPUTS {
            assert!(root.join(input).exists(), "{input} is not in the workspace");
        }
    }

    #[test]
    fn every_local_crate_of_the_worker_is_an_input() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .ancestors()
            .nth(2)
            .expect("a workspace");
        let manifest = fs::read_to_string(root.join("sw/Cargo.toml")).expect("the worker crate");

        for line in manifest
            .lines()
            .filter(|line| line.starts_with("paceline-"))
        {
            let name = line
                .trim_start_matches("paceline-")
                .split(['.', ' ', '='])
                .next()
                .unwrap_or_default();
            let source = format!("crates/{name}/src");
            assert!(
                INPUTS.contains(&source.as_str()),
                "{source} reaches the wasm and is no input"
            );
        }
    }
}
