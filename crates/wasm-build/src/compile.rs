//! The cargo call: its own target directory, so that it never waits for the cargo that called us.

use std::path::{Path, PathBuf};

use crate::toolchain::TARGET;
use crate::{Error, Toolchain, run};

const PROFILE: &str = "wasm-release";

/// The directory of everything we write. It does not follow `CARGO_TARGET_DIR`: type checks and tests find it by its path.
pub(crate) fn work_dir(root: &Path) -> PathBuf {
    root.join("target").join("wasm")
}

/// Compiles a package of the workspace; returns the module as the compiler left it.
///
/// # Errors
/// When cargo fails; it has told why on standard error.
pub fn compile(root: &Path, toolchain: &Toolchain, package: &str) -> Result<PathBuf, Error> {
    compile_into(&work_dir(root), root, toolchain, package, None)
}

/// Compiles a package into a directory, with a `--cfg` of rustc where one is given.
///
/// # Errors
/// When cargo fails; it has told why on standard error.
pub(crate) fn compile_into(
    target_dir: &Path,
    root: &Path,
    toolchain: &Toolchain,
    package: &str,
    cfg: Option<&str>,
) -> Result<PathBuf, Error> {
    let mut command = toolchain.cargo(root, "build");
    command
        .args(["--package", package, "--profile", PROFILE])
        .arg("--target-dir")
        .arg(target_dir);
    if let Some(cfg) = cfg {
        let flags = format!("build.rustflags = [\"--cfg\", \"{cfg}\"]");
        command.arg("--config").arg(flags);
    }
    run(&mut command)?;
    Ok(target_dir
        .join(TARGET)
        .join(PROFILE)
        .join(format!("{}.wasm", package.replace('-', "_"))))
}
