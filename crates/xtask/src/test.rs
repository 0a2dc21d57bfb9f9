//! All checks and tests. A failed step does not stop the others: one run tells everything that is wrong.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use paceline_wasm_build::{Error, Toolchain, capture, compile, run as run_command, step};
use serde_json::Value;

use crate::browsers::Browsers;
use crate::tally::Tally;
use crate::{Outcome, cargo, node, setup};

/// Where the browser tests leave their report; tests/e2e.rs hands it to Playwright.
const REPORT: &str = "target/e2e-report.json";

/// Seeds of each profile whose runs are compared with those in wasm.
const TRACED_SEEDS: &str = "20";

/// Sets up, runs lints and tests, and prints the sum as the last line.
pub(crate) fn run(root: &Path, args: &[String]) -> Outcome {
    let (flags, filters): (Vec<_>, Vec<_>) =
        args.iter().cloned().partition(|arg| arg.starts_with("--"));
    if let Some(unknown) = flags.iter().find(|flag| *flag != "--no-e2e") {
        return Err(format!("unknown flag `{unknown}`; expected --no-e2e").into());
    }
    let mut suite = Suite {
        root: root.to_owned(),
        filters,
        tally: Tally::default(),
        failed: Vec::new(),
    };
    let done = if flags.is_empty() {
        suite.everything()
    } else {
        suite.without_browsers()
    };
    if let Err(error) = done {
        eprintln!("error: {error}");
        suite.add("set-up", Tally::default(), false);
    }
    suite.close()
}

struct Suite {
    root: PathBuf,
    filters: Vec<String>,
    tally: Tally,
    failed: Vec<String>,
}

impl Suite {
    fn everything(&mut self) -> Outcome {
        let machine = setup::all(&self.root)?;
        self.native(&machine.toolchain);
        self.types();
        self.traces(&machine.toolchain);
        self.browsers(&machine.browsers);
        Ok(())
    }

    fn without_browsers(&mut self) -> Outcome {
        let toolchain = setup::toolchain(&self.root)?;
        self.native(&toolchain);
        Ok(())
    }

    /// The worker first: it is what the native packages embed. Lints only when all tests run.
    fn native(&mut self, toolchain: &Toolchain) {
        if setup::worker(&self.root, toolchain).is_err() {
            self.add("worker", Tally::default(), false);
        }
        if self.filters.is_empty() {
            self.lints(toolchain);
        }
        let mut tests = cargo(&self.root, "test");
        tests
            .args([
                "--workspace",
                "--exclude",
                "paceline-sw",
                "--no-fail-fast",
                "--",
            ])
            .args(&self.filters);
        self.count("cargo test", &mut tests);
    }

    fn lints(&mut self, toolchain: &Toolchain) {
        let mut format = cargo(&self.root, "fmt");
        self.check("cargo fmt --check", format.args(["--all", "--check"]));
        let mut clippy = cargo(&self.root, "clippy");
        clippy.args(["--workspace", "--exclude", "paceline-sw", "--all-targets"]);
        clippy.args(["--features", "paceline-demo/e2e", "--", "-D", "warnings"]);
        self.check("clippy", &mut clippy);
        let mut worker = toolchain.lint(&self.root);
        if worker.get_args().any(|arg| arg == "clippy") {
            worker.args(["--", "-D", "warnings"]);
        }
        self.check("clippy of the worker", &mut worker);
    }

    fn types(&mut self) {
        if !self.filters.is_empty() {
            return;
        }
        for project in ["tsconfig.json", "tests/e2e/tsconfig.json"] {
            let mut tsc = node::program(&self.root, "tsc");
            self.check(&format!("tsc {project}"), tsc.args(["--project", project]));
        }
    }

    /// The simulator's runs are the same in wasm as they are natively.
    fn traces(&mut self, toolchain: &Toolchain) {
        if !self.filters.is_empty() {
            return;
        }
        let compared = step("traces in wasm", || compare_traces(&self.root, toolchain));
        let tally = if compared.is_ok() {
            Tally::one_pass()
        } else {
            Tally::default()
        };
        self.add("traces in wasm", tally, compared.is_ok());
    }

    fn browsers(&mut self, browsers: &Browsers) {
        let report = self.root.join(REPORT);
        // Gone or never there: either way no older run is counted.
        let _ = fs::remove_file(&report);
        let mut tests = cargo(&self.root, "test");
        tests.args([
            "--release",
            "--package",
            "paceline-demo",
            "--features",
            "e2e",
            "--test",
            "e2e",
            "--",
        ]);
        tests.arg("--nocapture").envs(browsers.environment());
        tests
            .env("PACELINE_E2E_REPORT", &report)
            .env("PACELINE_E2E_FILTERS", self.filters.join("|"));
        let ended = step("browser tests", || run_command(&mut tests));
        let tally = read_report(&report);
        self.add("browser tests", tally, ended.is_ok());
    }

    fn check(&mut self, name: &str, command: &mut Command) {
        if step(name, || run_command(command)).is_err() {
            self.add(name, Tally::default(), false);
        }
    }

    fn count(&mut self, name: &str, command: &mut Command) {
        let mut tally = Tally::default();
        let ended = step(name, || {
            echo(command, |line| tally += Tally::of_cargo_line(line))
        });
        self.add(name, tally, ended.is_ok_and(|success| success));
    }

    fn add(&mut self, name: &str, mut tally: Tally, success: bool) {
        if !success && tally.failed == 0 {
            tally += Tally::one_failure();
        }
        if tally.failed > 0 {
            self.failed.push(name.to_owned());
        }
        self.tally += tally;
    }

    fn close(self) -> Outcome {
        if self.tally.skipped > 0 {
            eprintln!("{} tests left out", self.tally.skipped);
        }
        if !self.failed.is_empty() {
            eprintln!("failed: {}", self.failed.join(", "));
        }
        println!("{}", self.tally);
        if self.failed.is_empty() {
            Ok(())
        } else {
            std::process::exit(1)
        }
    }
}

/// Compares the hashes of all runs of some seeds, one line each, and names the first that differs.
fn compare_traces(root: &Path, toolchain: &Toolchain) -> Result<(), Box<dyn std::error::Error>> {
    let module = compile(root, toolchain, "paceline-sim-wasm")?;
    let mut wasm = Command::new("node");
    wasm.arg(root.join("crates/sim-wasm/hash.mjs"))
        .arg(module)
        .arg(TRACED_SEEDS);
    let mut native = cargo(root, "run");
    native.args(["--quiet", "--package", "paceline-sim", "--"]);
    native.args(["--hashes", "--seeds", TRACED_SEEDS]);
    let (wasm, native) = (capture(&mut wasm)?, capture(&mut native)?);
    let mut pairs = wasm.lines().zip(native.lines());
    if let Some((wasm, native)) = pairs.find(|(wasm, native)| wasm != native) {
        return Err(format!("wasm runs {wasm:?}, which natively is {native:?}").into());
    }
    if wasm.is_empty() || wasm.lines().count() != native.lines().count() {
        return Err("wasm and native run not as many seeds".into());
    }
    Ok(())
}

/// Runs a command, shows its output line by line and hands each line on; returns whether it succeeded.
fn echo(command: &mut Command, mut each: impl FnMut(&str)) -> Result<bool, Error> {
    let name = command.get_program().to_string_lossy().into_owned();
    let failed = |source| Error::Start {
        command: name.clone(),
        source,
    };
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    if let Some(output) = child.stdout.take() {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            eprintln!("{line}");
            each(&line);
        }
    }
    Ok(child.wait().map_err(failed)?.success())
}

fn read_report(path: &Path) -> Tally {
    let report = fs::read(path)
        .ok()
        .and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
    report.map_or_else(Tally::default, |report| Tally::of_playwright(&report))
}
