//! What the person sees while things are built: one line when a step starts, one with its time when it ends.

use std::fmt::Display;
use std::time::Instant;

/// Runs one named step; tells on standard error that it started, how it ended and how long it took.
///
/// # Errors
/// Those of `work`.
pub fn step<T, E: Display>(name: &str, work: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    eprintln!("==> {name}");
    let started = Instant::now();
    let result = work();
    let seconds = started.elapsed().as_secs_f64();
    match &result {
        Ok(_) => eprintln!("    {name}: {seconds:.1} s"),
        Err(error) => eprintln!("    {name}: failed after {seconds:.1} s: {error}"),
    }
    result
}
