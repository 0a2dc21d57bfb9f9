//! Runs seeds of the simulator: `--seeds N --profile P`, or one with its trace: `--seed N --profile P`.
//!
//! Ends with status 1 when a rule was broken. The last line counts seeds, steps and violations.

#![allow(
    clippy::print_stdout,
    reason = "a command line program speaks on the standard output"
)]

use std::process::ExitCode;
use std::time::Instant;

use paceline_sim::{Profile, run, run_with_trace, shrink};

const USAGE: &str = "expected --seeds N [--from N] [--hashes] | --seed N [--quiet], and --profile calm | storm | suspend | crash | hostile | slow-disk | chaos | upgrade | limits | batches | checks | all";
/// Violations after which the rest of the seeds is not looked at.
const ENOUGH: u64 = 10;

#[derive(Debug, Default)]
struct Options {
    seeds: u64,
    from: u64,
    seed: Option<u64>,
    profiles: Vec<Profile>,
    is_quiet: bool,
    only_hashes: bool,
}

/// What was counted.
#[derive(Debug, Default)]
struct Counts {
    seeds: u64,
    steps: u64,
    violations: u64,
}

fn main() -> ExitCode {
    let Some(options) = parse(std::env::args().skip(1)) else {
        println!("{USAGE}");
        return ExitCode::from(2);
    };
    if options.only_hashes {
        show_hashes(&options);
        return ExitCode::SUCCESS;
    }
    let began = Instant::now();
    let counts = match options.seed {
        Some(seed) => show(seed, &options),
        None => run_all(&options),
    };
    let took_ms = began.elapsed().as_millis().max(1);
    let per_s = u128::from(counts.steps) * 1_000 / took_ms;
    let Counts {
        seeds,
        steps,
        violations,
    } = counts;
    println!("{seeds} seeds, {steps} steps, {violations} violations, {per_s} steps/s");
    if violations == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn parse(mut arguments: impl Iterator<Item = String>) -> Option<Options> {
    let mut options = Options {
        profiles: Profile::ALL.to_vec(),
        ..Options::default()
    };
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--seeds" => options.seeds = arguments.next()?.parse().ok()?,
            "--from" => options.from = arguments.next()?.parse().ok()?,
            "--seed" => options.seed = Some(arguments.next()?.parse().ok()?),
            "--quiet" => options.is_quiet = true,
            "--hashes" => options.only_hashes = true,
            "--profile" => {
                let name = arguments.next()?;
                if name != "all" {
                    options.profiles = vec![Profile::parse(&name)?];
                }
            }
            _ => return None,
        }
    }
    (options.seeds > 0 || options.seed.is_some()).then_some(options)
}

/// Runs the same seeds of every profile asked for.
fn run_all(options: &Options) -> Counts {
    let mut counts = Counts::default();
    for seed in options.from..options.from + options.seeds {
        for profile in &options.profiles {
            let outcome = run(seed, *profile);
            counts.seeds += 1;
            counts.steps += outcome.steps;
            let Some(violation) = outcome.violation else {
                continue;
            };
            counts.violations += 1;
            let name = profile.as_str();
            println!("{}: {}", violation.rule, violation.text);
            println!("  cargo run --release -p paceline-sim -- --seed {seed} --profile {name}");
            if counts.violations == ENOUGH {
                println!("stopped after {ENOUGH} violations");
                return counts;
            }
        }
    }
    counts
}

/// Prints the hash of each run, to be compared with what another machine or wasm makes of it.
fn show_hashes(options: &Options) {
    for seed in options.from..options.from + options.seeds {
        for (place, profile) in options.profiles.iter().enumerate() {
            println!("{place} {seed} {:016x}", run(seed, *profile).hash);
        }
    }
}

/// Shows one seed, and the little that its violation needs.
fn show(seed: u64, options: &Options) -> Counts {
    let mut counts = Counts::default();
    for profile in &options.profiles {
        let outcome = run_with_trace(seed, *profile);
        counts.seeds += 1;
        counts.steps += outcome.steps;
        let Some(violation) = outcome.violation else {
            if !options.is_quiet {
                outcome.lines.iter().for_each(|line| println!("{line}"));
            }
            println!(
                "{} seed {seed}: hash {:016x}",
                profile.as_str(),
                outcome.hash
            );
            continue;
        };
        counts.violations += 1;
        let shrunk = shrink(seed, *profile, violation.rule);
        shrunk
            .outcome
            .lines
            .iter()
            .for_each(|line| println!("{line}"));
        println!("{} transitions are enough:", shrunk.transitions.len());
        shrunk
            .transitions
            .iter()
            .for_each(|line| println!("{line}"));
        println!(
            "{} seed {seed}: {}: {}",
            profile.as_str(),
            violation.rule,
            violation.text
        );
    }
    counts
}
