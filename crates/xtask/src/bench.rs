//! The measurements: figures are printed side by side, and judge nothing.

use std::path::Path;

use paceline_wasm_build::{run as run_command, step};

use crate::{Outcome, demo, node, setup};

/// Runs the benches in real browsers; ARGS go to Playwright (`--project=chromium`, `-g NAME`).
pub(crate) fn run(root: &Path, args: &[String]) -> Outcome {
    let machine = setup::all(root)?;
    demo::build(root)?;
    let mut playwright = node::program(root, "playwright");
    playwright.args(["test", "--config", "playwright.bench.config.ts"]);
    playwright.args(args).envs(machine.browsers.environment());
    step("benches", || run_command(&mut playwright))?;
    Ok(())
}
