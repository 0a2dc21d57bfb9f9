//! Child processes: no standard input, output to standard error, a name in every error.

use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::Error;

/// How often a limited command is looked at.
const POLL: Duration = Duration::from_millis(50);

/// Runs a command to its end; its output goes to standard error.
///
/// # Errors
/// When it does not start or does not succeed.
pub fn run(command: &mut Command) -> Result<(), Error> {
    let status = spawn(command)?
        .wait()
        .map_err(|source| start_error(command, source))?;
    succeeded(command, status)
}

/// Runs a command like [`run`], and ends it once `limit` has passed: for what may wait for a network that is not there.
///
/// # Errors
/// When it does not start, does not succeed or takes too long.
pub fn run_limited(command: &mut Command, limit: Duration) -> Result<(), Error> {
    let mut child = spawn(command)?;
    let deadline = Instant::now() + limit;
    loop {
        let ended = child
            .try_wait()
            .map_err(|source| start_error(command, source))?;
        if let Some(status) = ended {
            return succeeded(command, status);
        }
        if Instant::now() >= deadline {
            return Err(end(&mut child, command, limit));
        }
        thread::sleep(POLL);
    }
}

/// Returns what a command wrote to standard output, trimmed.
///
/// # Errors
/// When it does not start or does not succeed.
pub fn capture(command: &mut Command) -> Result<String, Error> {
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .map_err(|source| start_error(command, source))?;
    succeeded(command, output.status)?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn spawn(command: &mut Command) -> Result<Child, Error> {
    command
        .stdin(Stdio::null())
        .stdout(std::io::stderr())
        .spawn()
        .map_err(|source| start_error(command, source))
}

fn end(child: &mut Child, command: &Command, limit: Duration) -> Error {
    // It may have ended meanwhile; either way it is gone after the wait.
    let _ = child.kill();
    let _ = child.wait();
    Error::Failed {
        command: shown(command),
        status: format!("no end after {} s", limit.as_secs()),
    }
}

fn succeeded(command: &Command, status: ExitStatus) -> Result<(), Error> {
    if status.success() {
        return Ok(());
    }
    Err(Error::Failed {
        command: shown(command),
        status: status.to_string(),
    })
}

fn start_error(command: &Command, source: std::io::Error) -> Error {
    Error::Start {
        command: shown(command),
        source,
    }
}

fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words
        .map(|word| word.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn limited_command_is_ended_when_its_time_is_over() {
        let started = Instant::now();

        let result = run_limited(Command::new("sleep").arg("60"), Duration::from_millis(100));

        assert!(matches!(result, Err(Error::Failed { .. })));
        assert!(started.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn failure_names_the_command() {
        let error = run(Command::new("sh").args(["-c", "exit 3"])).expect_err("it exits with 3");

        assert!(error.to_string().contains("sh -c exit 3"), "{error}");
    }
}
