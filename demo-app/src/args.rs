//! The command line.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

/// What `--help` says.
pub(crate) const USAGE: &str = "\
usage: paceline-demo [options]
  --serve-only      print only the line with the addresses
  --addr ADDR       HTTP address (127.0.0.1:8787; port 0 takes a free one)
  --tls-addr ADDR   the same again over TLS with HTTP/2 (127.0.0.1:8788)
  --web DIR         read the pages from DIR
  --sw DIR          read Paceline's modules from DIR
  --pkg DIR         read the built worker from DIR
  --open            open a browser";

/// How the demo is to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Args {
    pub(crate) serve_only: bool,
    pub(crate) open: bool,
    pub(crate) addr: SocketAddr,
    pub(crate) tls_addr: SocketAddr,
    pub(crate) web: Option<PathBuf>,
    pub(crate) sw: Option<PathBuf>,
    pub(crate) pkg: Option<PathBuf>,
}

impl Default for Args {
    fn default() -> Self {
        let local = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        Self {
            serve_only: false,
            open: false,
            addr: local(8787),
            tls_addr: local(8788),
            web: None,
            sw: None,
            pkg: None,
        }
    }
}

/// What the person asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// How to use it.
    Help,
    /// To serve.
    Run(Args),
}

/// Reads the arguments that follow the program's name.
///
/// # Errors
/// Tells which argument is unknown, lacks its value or has a wrong one.
pub(crate) fn parse(mut given: impl Iterator<Item = String>) -> Result<Asked, String> {
    let mut args = Args::default();
    while let Some(name) = given.next() {
        let mut value = || given.next().ok_or_else(|| format!("{name} needs a value"));
        match name.as_str() {
            "--help" | "-h" => return Ok(Asked::Help),
            "--serve-only" => args.serve_only = true,
            "--open" => args.open = true,
            "--addr" => args.addr = address(&name, &value()?)?,
            "--tls-addr" => args.tls_addr = address(&name, &value()?)?,
            "--web" => args.web = Some(folder(&name, value()?)?),
            "--sw" => args.sw = Some(folder(&name, value()?)?),
            "--pkg" => args.pkg = Some(folder(&name, value()?)?),
            _ => return Err(format!("unknown argument {name}")),
        }
    }
    Ok(Asked::Run(args))
}

fn address(name: &str, value: &str) -> Result<SocketAddr, String> {
    value
        .parse()
        .map_err(|_| format!("{name}: expected an address as in 127.0.0.1:8787, got {value}"))
}

fn folder(name: &str, value: String) -> Result<PathBuf, String> {
    let path = PathBuf::from(&value);
    if path.is_dir() {
        Ok(path)
    } else {
        Err(format!("{name}: expected a folder, got {value}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(given: &[&str]) -> Result<Asked, String> {
        parse(given.iter().map(|text| (*text).to_owned()))
    }

    #[test]
    fn free_ports_can_be_asked_for() {
        let asked = parsed(&[
            "--serve-only",
            "--addr",
            "127.0.0.1:0",
            "--tls-addr",
            "127.0.0.1:0",
        ]);

        let Ok(Asked::Run(args)) = asked else {
            panic!("expected to run, got {asked:?}")
        };
        assert!(args.serve_only);
        assert_eq!((args.addr.port(), args.tls_addr.port()), (0, 0));
    }

    #[test]
    fn a_wrong_argument_is_named_with_what_was_expected() {
        assert_eq!(parsed(&["--adr"]), Err("unknown argument --adr".to_owned()));
        assert_eq!(parsed(&["--addr"]), Err("--addr needs a value".to_owned()));
        assert!(parsed(&["--addr", "here"]).is_err_and(|error| error.contains("127.0.0.1:8787")));
        assert!(
            parsed(&["--web", "/no/such/folder"]).is_err_and(|error| error.starts_with("--web"))
        );
    }
}
