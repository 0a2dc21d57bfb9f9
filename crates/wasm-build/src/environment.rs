//! The environment of the inner cargo. An outer cargo, rustup or clippy leaves variables behind that would point the inner
//! one at the wrong compiler, the wrong flags or the outer target directory.

use std::env;
use std::process::Command;

/// Settings of the person's cargo that the inner one needs too.
const KEPT: [&str; 8] = [
    "CARGO_HOME",
    "CARGO_HTTP_",
    "CARGO_NET_",
    "CARGO_REGISTRY_",
    "CARGO_REGISTRIES_",
    "CARGO_SOURCE_",
    "CARGO_TERM_",
    "CARGO_BUILD_JOBS",
];

/// What an outer cargo sets for its build scripts and wrappers.
const DROPPED: [&str; 7] = [
    "MAKEFLAGS",
    "MFLAGS",
    "TARGET",
    "HOST",
    "PROFILE",
    "OPT_LEVEL",
    "DEBUG",
];

/// Removes from a child what an outer cargo or clippy set.
pub(crate) fn clean(command: &mut Command) {
    for (name, _) in env::vars_os() {
        if name.to_str().is_some_and(leaks) {
            command.env_remove(name);
        }
    }
}

fn leaks(name: &str) -> bool {
    let of_cargo = name.starts_with("CARGO") && !KEPT.iter().any(|kept| name.starts_with(kept));
    let of_rustc = name.starts_with("RUSTC") || name.starts_with("RUSTDOC") || name == "RUSTFLAGS";
    of_cargo || of_rustc || name == "CLIPPY_ARGS" || DROPPED.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::leaks;

    #[test]
    fn outer_compiler_and_flags_are_dropped() {
        for name in [
            "RUSTC_WORKSPACE_WRAPPER",
            "RUSTFLAGS",
            "CARGO_ENCODED_RUSTFLAGS",
            "CARGO_TARGET_DIR",
            "CARGO",
        ] {
            assert!(leaks(name), "{name} leaks");
        }
    }

    #[test]
    fn home_and_network_settings_are_kept() {
        for name in [
            "CARGO_HOME",
            "CARGO_NET_OFFLINE",
            "CARGO_HTTP_CAINFO",
            "PATH",
            "RUSTUP_HOME",
        ] {
            assert!(!leaks(name), "{name} is kept");
        }
    }
}
