//! The demo in one binary: the contacts page, Paceline's modules and worker, and the strict server that they are paced
//! against.
//!
//! `--serve-only` is for tests and scripts: one line tells both addresses when they are ready.

mod args;
mod assets;
mod site;

use std::io::{self, Write};
use std::process::ExitCode;

use args::{Args, Asked};
use paceline_strict::Bound;

fn main() -> ExitCode {
    let asked = match args::parse(std::env::args().skip(1)) {
        Ok(asked) => asked,
        Err(error) => return fail(&format!("{error}\n\n{}", args::USAGE)),
    };
    let done = match asked {
        Asked::Help => say(args::USAGE),
        Asked::Run(args) => run(&args),
    };
    done.map_or_else(|error| fail(&error.to_string()), |()| ExitCode::SUCCESS)
}

fn fail(message: &str) -> ExitCode {
    let _ = writeln!(io::stderr(), "paceline-demo: {message}");
    ExitCode::FAILURE
}

fn say(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

#[tokio::main]
async fn run(args: &Args) -> io::Result<()> {
    let bound = Bound::bind(args.addr, Some(args.tls_addr))
        .await
        .map_err(|error| taken(args, &error))?;
    let http = format!("http://{}", bound.addr()?);
    let https = bound
        .tls_addr()?
        .map_or_else(String::new, |addr| format!(" https://{addr}"));
    let app = site::router(args).merge(paceline_strict::router());
    let ended = ended()?;
    say(&format!("listening {http}{https}"))?;
    if !args.serve_only {
        invite(args, &http)?;
    }
    bound.run(app, ended).await;
    Ok(())
}

fn taken(args: &Args, error: &io::Error) -> io::Error {
    let (addr, tls_addr) = (args.addr, args.tls_addr);
    let advice =
        "is another one running? `--addr 127.0.0.1:0 --tls-addr 127.0.0.1:0` takes free ports";
    io::Error::new(
        error.kind(),
        format!("cannot listen on {addr} and {tls_addr}: {error}; {advice}"),
    )
}

fn invite(args: &Args, url: &str) -> io::Result<()> {
    if let Some(reason) = assets::missing_worker(args.pkg.as_deref()) {
        say(&format!(
            "The queue's worker is missing ({reason}), so the page will not send anything."
        ))?;
    }
    say(&format!(
        "Open {url}/ in two tabs, change an owner in bulk, and reload in the middle. Ctrl-C ends it."
    ))?;
    if args.open && open(url).is_err() {
        say("No browser could be opened from here.")?;
    }
    Ok(())
}

fn open(url: &str) -> io::Result<()> {
    let opener = if cfg!(target_os = "macos") {
        "open"
    } else if cfg!(windows) {
        "explorer"
    } else {
        "xdg-open"
    };
    std::process::Command::new(opener)
        .arg(url)
        .spawn()
        .map(drop)
}

/// Becomes ready at Ctrl-C or when the system asks the process to end.
fn ended() -> io::Result<impl Future<Output = ()>> {
    #[cfg(unix)]
    let mut asked = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    Ok(async move {
        #[cfg(unix)]
        tokio::select! {
            _ = asked.recv() => {}
            _ = tokio::signal::ctrl_c() => {}
        }
        #[cfg(not(unix))]
        let _ = tokio::signal::ctrl_c().await;
    })
}
