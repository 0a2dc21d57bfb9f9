use std::io;
use std::path::{Path, PathBuf};

/// Why there is no wasm.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No toolchain on this machine builds for wasm, and none could be installed.
    #[error("no toolchain for wasm32-unknown-unknown: {tried}\n  run: {remedy}")]
    NoToolchain {
        /// What was looked at, and how it answered.
        tried: String,
        /// The command that the person should run.
        remedy: String,
    },
    /// A command could not be started.
    #[error("cannot start `{command}`: {source}")]
    Start {
        /// The command as typed in a shell.
        command: String,
        /// The operating system's reason.
        source: io::Error,
    },
    /// A command ended without success.
    #[error("`{command}` failed: {status}")]
    Failed {
        /// The command as typed in a shell.
        command: String,
        /// Its exit status.
        status: String,
    },
    /// A file could not be read or written.
    #[error("{path}: {source}")]
    File {
        /// The file or directory.
        path: PathBuf,
        /// The operating system's reason.
        source: io::Error,
    },
    /// wasm-bindgen refused the compiled module.
    #[error("wasm-bindgen: {0}")]
    Bindgen(String),
}

impl Error {
    /// Names the file in an I/O error.
    pub(crate) fn file(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        |source| Self::File {
            path: path.to_owned(),
            source,
        }
    }
}
