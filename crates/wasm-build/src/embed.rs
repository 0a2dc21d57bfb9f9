//! The root package's half: a Rust file that embeds the built worker, or says why there is none.

#![allow(
    clippy::print_stdout,
    reason = "a build script talks to cargo on standard output"
)]

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::fingerprint::INPUTS;
use crate::pkg::missing_marker;
use crate::{Error, Pkg, Toolchain, build};

const SKIP: &str = "PACELINE_SKIP_WASM";

/// Called by a build script: writes `pkg_assets.rs` to `out` and tells cargo what it depends on.
///
/// Only a toolchain that is already there is used: a plain `cargo build` or `cargo test` installs nothing. Without one, or
/// when the build fails, the file embeds nothing and has the reason, and cargo shows a warning.
///
/// # Errors
/// When the file cannot be written.
pub fn embed(root: &Path, out: &Path) -> Result<(), Error> {
    let started = SystemTime::now();
    depend_on(root);
    let result = attempt(root);
    let marker = missing_marker(root);
    let text = match &result {
        Ok(pkg) => {
            println!("cargo::rustc-cfg=paceline_pkg");
            assets(pkg)
        }
        Err(reason) => {
            mark(&marker, reason, started)?;
            println!("cargo::rerun-if-changed={}", marker.display());
            println!(
                "cargo::warning=the worker is not embedded: {}",
                reason.replace('\n', " ")
            );
            no_assets(reason)
        }
    };
    let file = out.join("pkg_assets.rs");
    fs::write(&file, text).map_err(Error::file(&file))
}

fn attempt(root: &Path) -> Result<Pkg, String> {
    if env::var_os(SKIP).is_some_and(|value| value == "1") {
        return Err(format!("{SKIP}=1"));
    }
    let toolchain = Toolchain::present(root)
        .map_err(|_| "no wasm toolchain; run: cargo xtask setup".to_owned())?;
    build(root, &toolchain).map_err(|error| error.to_string())
}

fn depend_on(root: &Path) {
    println!("cargo::rustc-check-cfg=cfg(paceline_pkg)");
    println!("cargo::rerun-if-env-changed={SKIP}");
    println!("cargo::rerun-if-env-changed=PACELINE_WASM_TOOLCHAIN");
    println!("cargo::rerun-if-changed=build.rs");
    // The lock file changes with every native dependency; when a new one reaches the worker, a manifest changes too.
    for input in INPUTS.iter().filter(|input| **input != "Cargo.lock") {
        println!("cargo::rerun-if-changed={}", root.join(input).display());
    }
}

/// Leaves a file that a later successful build removes, so that cargo then runs the build script again.
fn mark(marker: &Path, reason: &str, started: SystemTime) -> Result<(), Error> {
    if let Some(parent) = marker.parent() {
        fs::create_dir_all(parent).map_err(Error::file(parent))?;
    }
    fs::write(marker, reason).map_err(Error::file(marker))?;
    // Older than this run, or cargo would run the script once more for the file that the script itself wrote.
    let file = File::options()
        .write(true)
        .open(marker)
        .map_err(Error::file(marker))?;
    file.set_modified(started - Duration::from_secs(60))
        .map_err(Error::file(marker))
}

fn assets(pkg: &Pkg) -> String {
    let entry = |path: &PathBuf| {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        format!(
            "    ({name:?}, include_bytes!({:?})),\n",
            path.display().to_string()
        )
    };
    format!(
        "pub static PKG: &[(&str, &[u8])] = &[\n{}{}];\npub static PKG_MISSING: Option<&str> = None;\n",
        entry(&pkg.js),
        entry(&pkg.wasm)
    )
}

fn no_assets(reason: &str) -> String {
    format!(
        "pub static PKG: &[(&str, &[u8])] = &[];\npub static PKG_MISSING: Option<&str> = Some({reason:?});\n"
    )
}
