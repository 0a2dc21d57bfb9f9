//! The demo: the worker, then the binary that embeds it.

use std::path::Path;
use std::process::Command;

use paceline_wasm_build::{run as run_command, step};

use crate::{Outcome, cargo, setup};

/// Builds the worker and the demo binary.
pub(crate) fn build(root: &Path) -> Outcome {
    let toolchain = setup::toolchain(root)?;
    setup::worker(root, &toolchain)?;
    let mut build = cargo(root, "build");
    build.args(["--release", "--package", "paceline-demo"]);
    step("demo binary", || run_command(&mut build))?;
    Ok(())
}

/// Builds and runs the demo until the person ends it.
pub(crate) fn run(root: &Path, args: &[String]) -> Outcome {
    build(root)?;
    let mut demo = cargo(root, "run");
    demo.args(["--quiet", "--release", "--package", "paceline-demo", "--"])
        .args(args);
    hand_over(&mut demo)
}

/// Becomes the demo, so that what ends this command ends the demo.
#[cfg(unix)]
fn hand_over(demo: &mut Command) -> Outcome {
    use std::os::unix::process::CommandExt;
    Err(demo.exec().into())
}

#[cfg(not(unix))]
fn hand_over(demo: &mut Command) -> Outcome {
    let status = demo.status()?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("the demo ended: {status}").into())
    }
}
