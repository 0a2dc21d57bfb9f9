//! Rounds of chaos in a real browser: what happens is drawn from a seed, and the strict server judges.

use std::path::Path;

use paceline_wasm_build::{run as run_command, step};

use crate::{Outcome, demo, node, setup};

const USAGE: &str = "usage: cargo xtask chaos [--rounds N] [--seed S], both whole numbers from 1";

/// Runs `--rounds N` (20) of `--seed S` (1).
///
/// # Errors
/// When an argument is none of these, something cannot be set up, or the judge found anything lost, doubled or too fast.
pub(crate) fn run(root: &Path, args: &[String]) -> Outcome {
    let mut playwright = node::program(root, "playwright");
    playwright.args(["test", "--config", "playwright.chaos.config.ts"]);
    for pair in args.chunks(2) {
        let [name, value] = pair else {
            return Err(USAGE.into());
        };
        let variable = match name.as_str() {
            "--rounds" => "PACELINE_CHAOS_ROUNDS",
            "--seed" => "PACELINE_CHAOS_SEED",
            _ => return Err(USAGE.into()),
        };
        let number = value.parse::<u32>().ok().filter(|number| *number > 0);
        let number = number.ok_or(USAGE)?;
        playwright.env(variable, number.to_string());
    }
    let machine = setup::all(root)?;
    demo::build(root)?;
    playwright.envs(machine.browsers.environment());
    step("chaos", || run_command(&mut playwright))?;
    Ok(())
}
