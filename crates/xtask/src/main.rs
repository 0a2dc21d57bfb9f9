//! The developer commands of Paceline, started as `cargo xtask COMMAND`.
//!
//! It owns the order of the steps and the set-up of the machine; how the wasm is built is `paceline-wasm-build`'s. Progress
//! goes to standard error, the count of the tests to standard output, as its last line.

#![allow(
    clippy::print_stdout,
    reason = "the count of the tests and the help are this program's output"
)]

mod bench;
mod browsers;
mod chaos;
mod demo;
mod node;
mod setup;
mod size;
mod tally;
mod test;

use std::env;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const HELP: &str = "\
usage: cargo xtask COMMAND

  setup                       install what build and tests need: wasm toolchain, npm packages, browsers
  build                       build the worker wasm and the demo binary
  demo [ARGS]                 build and run the demo; ARGS go to it
  test [--no-e2e] [FILTERS]   run lints and all tests; with FILTERS only the tests whose names contain one
  bench [ARGS]                measure in real browsers; ARGS go to Playwright: --project=chromium, -g NAME
  chaos [--rounds N] [--seed S]
                              random kills, freezes, outages and versions in Chromium; ends with what the server saw
  size                        weigh the worker's wasm, and what the dialects add to it";

type Outcome = Result<(), Box<dyn Error>>;

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    match command(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn command(args: &[String]) -> Outcome {
    let Some((name, rest)) = args.split_first() else {
        println!("{HELP}");
        return Ok(());
    };
    let root = root()?;
    match name.as_str() {
        "setup" => setup::all(&root).map(drop),
        "build" => demo::build(&root),
        "demo" => demo::run(&root, rest),
        "test" => test::run(&root, rest),
        "bench" => bench::run(&root, rest),
        "chaos" => chaos::run(&root, rest),
        "size" => size::run(&root),
        "help" | "--help" | "-h" => {
            println!("{HELP}");
            Ok(())
        }
        other => Err(format!("unknown command `{other}`\n\n{HELP}").into()),
    }
}

/// The workspace root: cargo tells where this package is.
fn root() -> Result<PathBuf, Box<dyn Error>> {
    let package = env::var("CARGO_MANIFEST_DIR").map_err(
        |_| "start this program as `cargo xtask`, which tells it where the workspace is",
    )?;
    let root = Path::new(&package).ancestors().nth(2);
    Ok(root
        .ok_or("the package is not two directories below the workspace")?
        .to_owned())
}

/// The cargo that started us, in the workspace root.
fn cargo(root: &Path, verb: &str) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root).arg(verb);
    command
}
