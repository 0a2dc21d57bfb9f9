//! Node and the npm packages of the lock file.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use paceline_wasm_build::{capture, run, step};

/// Written into `node_modules` after an install: the lock file that it was made from.
const MARKER: &str = "node_modules/.paceline-lock.json";

/// The oldest Node that the browser tests run on.
const OLDEST: u32 = 20;

/// Installs the npm packages, unless those there are of this lock file.
pub(crate) fn packages(root: &Path) -> Result<(), Box<dyn Error>> {
    version()?;
    let lock = fs::read(root.join("package-lock.json"))?;
    let marker = root.join(MARKER);
    if fs::read(&marker).is_ok_and(|made_from| made_from == lock) {
        eprintln!("npm packages: as in package-lock.json");
        return Ok(());
    }
    let mut npm = Command::new("npm");
    npm.current_dir(root)
        .args(["ci", "--no-audit", "--no-fund"]);
    step("npm ci", || run(&mut npm))?;
    fs::write(&marker, lock)?;
    Ok(())
}

fn version() -> Result<(), Box<dyn Error>> {
    let text = capture(Command::new("node").arg("--version")).map_err(|_| {
        format!("Node is not there; install Node {OLDEST} or newer, with npm, and run again")
    })?;
    let major: Option<u32> = text
        .trim_start_matches('v')
        .split('.')
        .next()
        .and_then(|major| major.parse().ok());
    match major {
        Some(major) if major >= OLDEST => Ok(()),
        _ => Err(
            format!("Node {text} is too old; install Node {OLDEST} or newer and run again").into(),
        ),
    }
}

/// A program of an installed npm package.
pub(crate) fn program(root: &Path, name: &str) -> Command {
    let path: PathBuf = root.join("node_modules/.bin").join(name);
    let mut command = Command::new(path);
    command.current_dir(root);
    command
}
