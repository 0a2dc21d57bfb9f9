//! The ladder of toolchains that can build wasm: the active one with its target, the same after `rustup target add`, and
//! Debian's packages, whose standard library is built from its source.
//!
//! Looking ([`Toolchain::present`]) changes nothing on the machine; only [`Toolchain::install`] does.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::compile::work_dir;
use crate::environment;
use crate::{Error, capture, run, run_limited, step};

/// The only target of the worker.
pub(crate) const TARGET: &str = "wasm32-unknown-unknown";

/// Debian's complete toolchain: compiler, cargo, library source, linker, and the lints.
pub const PACKAGES: [&str; 5] = [
    "rustc-web",
    "cargo-web",
    "rust-web-src",
    "lld-19",
    "rust-web-clippy",
];

const DEBIAN_CLIPPY: &str = "/usr/bin/cargo-clippy";

/// rustup asks one server; when that does not answer there is no point in waiting for long.
const RUSTUP_LIMIT: Duration = Duration::from_secs(120);

/// A compiler that builds for wasm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Toolchain {
    /// The active toolchain, which has the target's library.
    Active,
    /// Debian's packages beside it, with this linker; they build the target's library themselves.
    Debian {
        /// The path of `wasm-ld`.
        linker: PathBuf,
    },
}

impl Toolchain {
    /// Finds a toolchain that is already there.
    ///
    /// `PACELINE_WASM_TOOLCHAIN` set to `active` or `debian` looks at that one only.
    ///
    /// # Errors
    /// [`Error::NoToolchain`], with the command that brings one.
    pub fn present(root: &Path) -> Result<Self, Error> {
        let wanted = wanted();
        if wanted != Some(Rung::Debian) && active_has_target(root) {
            return Ok(Self::Active);
        }
        if wanted != Some(Rung::Active)
            && let Some(linker) = debian_linker()
        {
            return Ok(Self::Debian { linker });
        }
        Err(missing(
            "the active toolchain lacks the target and Debian's packages are not there",
        ))
    }

    /// Finds a toolchain, and climbs the ladder when there is none.
    ///
    /// # Errors
    /// [`Error::NoToolchain`] with each rung's answer when none holds.
    pub fn install(root: &Path) -> Result<Self, Error> {
        if let Ok(found) = Self::present(root) {
            return Ok(found);
        }
        let wanted = wanted();
        let mut answers = Vec::new();
        if wanted != Some(Rung::Debian) {
            answers.extend(
                step("rustup target add", || rustup_add(root))
                    .err()
                    .map(|e| e.to_string()),
            );
        }
        if Self::present(root).is_err() && wanted != Some(Rung::Active) {
            answers.extend(
                step("Debian's wasm toolchain", || apt_install(&PACKAGES))
                    .err()
                    .map(|e| e.to_string()),
            );
        }
        Self::present(root).map_err(|_| missing(&answers.join("; ")))
    }

    /// Returns a cargo of this toolchain that runs in `root`, its environment cleaned.
    #[must_use]
    pub fn cargo(&self, root: &Path, verb: &str) -> Command {
        let program = match self {
            Self::Active => "cargo",
            Self::Debian { .. } => "/usr/bin/cargo",
        };
        self.command(program, root, verb)
    }

    fn command(&self, program: &str, root: &Path, verb: &str) -> Command {
        let mut command = Command::new(program);
        environment::clean(&mut command);
        command
            .current_dir(root)
            .arg(verb)
            .args(["--target", TARGET]);
        if let Self::Debian { linker } = self {
            build_std(&mut command, linker);
        }
        command
    }

    /// Returns the command that lints the worker crate and what it is made of, or checks it where there is no clippy.
    #[must_use]
    pub fn lint(&self, root: &Path) -> Command {
        let mut command = match self {
            Self::Active => self.cargo(root, "clippy"),
            Self::Debian { .. } if !Path::new(DEBIAN_CLIPPY).exists() => {
                eprintln!(
                    "    rust-web-clippy is not installed: the worker is checked, not linted"
                );
                self.cargo(root, "check")
            }
            // Asked for clippy, cargo would start rustup's.
            Self::Debian { .. } => {
                let mut command = self.command(DEBIAN_CLIPPY, root, "clippy");
                command.env("CARGO", "/usr/bin/cargo");
                command
            }
        };
        command
            .args(["--package", "paceline-sw"])
            .arg("--target-dir")
            .arg(work_dir(root));
        command
    }

    /// Returns the compiler's version, as part of what a built wasm depends on.
    pub(crate) fn version(&self, root: &Path) -> Result<String, Error> {
        let mut command = match self {
            Self::Active => active_rustc(root),
            Self::Debian { .. } => Command::new("/usr/bin/rustc"),
        };
        capture(command.arg("--version"))
    }

    /// Names the toolchain for a person.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Active => "the active toolchain",
            Self::Debian { .. } => "Debian's toolchain, building the standard library too",
        }
    }
}

/// Installs Debian packages, if this is Debian and we may.
///
/// # Errors
/// [`Error::Failed`], which says why it was not tried, or that apt failed.
pub fn apt_install(packages: &[&str]) -> Result<(), Error> {
    let command = format!("apt-get install {}", packages.join(" "));
    if !Path::new("/usr/bin/apt-get").exists() {
        return Err(Error::Failed {
            command,
            status: "this machine has no apt".to_owned(),
        });
    }
    if !is_root() {
        return Err(Error::Failed {
            command,
            status: "it needs root".to_owned(),
        });
    }
    // A list that cannot be renewed may still be good enough for the install, whose own failure is the one that counts.
    let _ = run(&mut apt("update"));
    run(apt("install")
        .args(["--yes", "--no-install-recommends"])
        .args(packages))
}

/// Whether this process may install packages.
#[must_use]
pub fn is_root() -> bool {
    capture(Command::new("id").arg("-u")).is_ok_and(|id| id == "0")
}

fn apt(verb: &str) -> Command {
    let mut command = Command::new("apt-get");
    // Another apt may be at work: wait for it rather than fail.
    command.env("DEBIAN_FRONTEND", "noninteractive").args([
        "-q",
        "-o",
        "DPkg::Lock::Timeout=300",
        verb,
    ]);
    command
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Rung {
    Active,
    Debian,
}

fn wanted() -> Option<Rung> {
    match env::var("PACELINE_WASM_TOOLCHAIN").ok()?.as_str() {
        "active" => Some(Rung::Active),
        "debian" => Some(Rung::Debian),
        _ => None,
    }
}

fn active_rustc(root: &Path) -> Command {
    let mut command = Command::new("rustc");
    environment::clean(&mut command);
    command.current_dir(root);
    command
}

fn active_has_target(root: &Path) -> bool {
    let sysroot = capture(active_rustc(root).args(["--print", "sysroot"]));
    sysroot.is_ok_and(|sysroot| {
        Path::new(&sysroot)
            .join("lib/rustlib")
            .join(TARGET)
            .join("lib")
            .is_dir()
    })
}

fn rustup_add(root: &Path) -> Result<(), Error> {
    let mut command = Command::new("rustup");
    command.current_dir(root).args(["target", "add", TARGET]);
    run_limited(&mut command, RUSTUP_LIMIT)
}

/// Debian's linker, when the rest of its toolchain is there too.
fn debian_linker() -> Option<PathBuf> {
    if !Path::new("/usr/bin/cargo").exists() {
        return None;
    }
    let sysroot = capture(Command::new("/usr/bin/rustc").args(["--print", "sysroot"])).ok()?;
    if !Path::new(&sysroot)
        .join("lib/rustlib/src/rust/library/Cargo.lock")
        .exists()
    {
        return None;
    }
    let names = fs::read_dir("/usr/bin")
        .ok()?
        .flatten()
        .map(|entry| entry.path());
    names.filter(|path| is_wasm_linker(path)).max()
}

fn is_wasm_linker(path: &Path) -> bool {
    path.file_name()
        .and_then(|name| name.to_str())
        .is_some_and(|name| name.starts_with("wasm-ld"))
}

fn build_std(command: &mut Command, linker: &Path) {
    command
        .env_remove("RUSTUP_TOOLCHAIN")
        // An outer cargo points it at its own compiler's libraries.
        .env_remove("LD_LIBRARY_PATH")
        .env("RUSTC", "/usr/bin/rustc")
        .env("RUSTC_BOOTSTRAP", "1")
        .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker)
        .arg("-Zbuild-std=std,panic_abort");
}

fn missing(tried: &str) -> Error {
    Error::NoToolchain {
        tried: tried.to_owned(),
        remedy: remedy(),
    }
}

fn remedy() -> String {
    if Path::new("/usr/bin/apt-get").exists() {
        return format!(
            "rustup target add {TARGET}\n  or, without rustup's server: sudo apt-get install {}",
            PACKAGES.join(" ")
        );
    }
    format!("rustup target add {TARGET}")
}
