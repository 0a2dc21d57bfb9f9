//! The arrows between the crates, as ARCHITECTURE.md draws them. A crate that is new here, or that wants to know more,
//! says so in this file.

use std::collections::{BTreeMap, BTreeSet};

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package, PackageId};

/// What each crate may know of ours, tests included.
const MAY_KNOW: [(&str, &[&str]); 13] = [
    ("paceline-core", &[]),
    ("paceline-signals", &["core"]),
    ("paceline-protocol", &["core", "signals"]),
    ("paceline-store", &["core"]),
    ("paceline-host", &["core", "signals", "protocol", "store"]),
    (
        "paceline-sw",
        &["core", "signals", "protocol", "store", "host"],
    ),
    (
        "paceline-store-conformance",
        &["core", "store", "wasm-build"],
    ),
    // What is simulated; the judge counts for itself.
    ("paceline-sim", &["core", "protocol", "store", "host"]),
    // The simulator, compiled for where the worker runs.
    ("paceline-sim-wasm", &["sim"]),
    ("paceline-strict", &[]),
    ("paceline-wasm-build", &[]),
    ("xtask", &["wasm-build"]),
    ("paceline-demo", &["strict", "wasm-build"]),
];

/// Those that may speak with the browser, or build what does.
const BROWSER: [&str; 4] = [
    "paceline-sw",
    "paceline-store",
    "paceline-store-conformance",
    "paceline-wasm-build",
];

/// Those without clock, entropy, runtime and browser, all the way down.
const PURE: [&str; 4] = [
    "paceline-core",
    "paceline-signals",
    "paceline-protocol",
    "paceline-host",
];

#[test]
fn each_crate_knows_only_what_is_below_it() {
    let metadata = metadata();
    let may_know: BTreeMap<&str, &[&str]> = MAY_KNOW.into_iter().collect();

    for package in metadata.workspace_packages() {
        let name = package.name.as_str();
        let allowed = may_know
            .get(name)
            .unwrap_or_else(|| panic!("{name} is new: what may it know?"));
        for known in package.dependencies.iter().map(|dep| dep.name.as_str()) {
            let Some(ours) = known.strip_prefix("paceline-") else {
                continue;
            };
            assert!(allowed.contains(&ours), "{name} must not know {known}");
        }
    }
}

#[test]
fn only_the_edge_knows_the_browser() {
    let metadata = metadata();

    for package in metadata.workspace_packages() {
        let name = package.name.as_str();
        let known = package.dependencies.iter();
        let known: Vec<&str> = known
            .map(|dep| dep.name.as_str())
            .filter(|dep| is_browser(dep))
            .collect();
        assert!(
            known.is_empty() || BROWSER.contains(&name),
            "{name} must not know {known:?}"
        );
    }
}

#[test]
fn the_store_knows_the_browser_only_as_an_option_of_the_wasm_target() {
    let metadata = metadata();
    let store = package(&metadata, "paceline-store");

    let known: Vec<_> = store
        .dependencies
        .iter()
        .filter(|dep| is_browser(&dep.name))
        .collect();

    assert!(!known.is_empty());
    for dep in known {
        assert!(dep.optional, "{} is not optional", dep.name);
        assert!(dep.target.is_some(), "{} is for every target", dep.name);
    }
}

#[test]
fn the_pure_crates_have_no_clock_entropy_runtime_or_browser_below_them() {
    let metadata = metadata();

    for name in PURE {
        let below = below(&metadata, name);

        let bad: Vec<&String> = below
            .iter()
            .filter(|dep| is_browser(dep) || is_impure(dep))
            .collect();
        assert!(bad.is_empty(), "{name} has {bad:?} below it");
        assert!(below.contains("serde"), "{name}: {below:?}");
    }
}

/// The workspace as it is built for the browser.
fn metadata() -> Metadata {
    let platform = ["--filter-platform", "wasm32-unknown-unknown"];
    MetadataCommand::new()
        .manifest_path(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))
        .other_options(platform.map(str::to_owned))
        .exec()
        .expect("cargo metadata")
}

fn package<'a>(metadata: &'a Metadata, name: &str) -> &'a Package {
    let mut packages = metadata.packages.iter();
    let found = packages.find(|package| package.name.as_str() == name);
    found.unwrap_or_else(|| panic!("{name} is not here"))
}

/// All that a crate is built from, without what the store has for its wasm target only.
fn below(metadata: &Metadata, name: &str) -> BTreeSet<String> {
    let resolve = metadata.resolve.as_ref().expect("a resolved graph");
    let nodes: BTreeMap<&PackageId, _> =
        resolve.nodes.iter().map(|node| (&node.id, node)).collect();
    let mut seen = BTreeSet::new();
    let mut next = vec![&package(metadata, name).id];
    while let Some(id) = next.pop() {
        let is_ours = metadata.workspace_members.contains(id);
        for dep in &nodes.get(id).expect("a node").deps {
            let mut kinds = dep.dep_kinds.iter();
            let is_built_from = kinds.any(|kind| {
                kind.kind == DependencyKind::Normal && (kind.target.is_none() || !is_ours)
            });
            if is_built_from && seen.insert(&dep.pkg) {
                next.push(&dep.pkg);
            }
        }
    }
    let names = seen.into_iter().map(|id| metadata[id].name.to_string());
    names.collect()
}

fn is_browser(name: &str) -> bool {
    let exact = [
        "js-sys",
        "web-sys",
        "rexie",
        "idb",
        "serde-wasm-bindgen",
        "gloo",
    ];
    exact.contains(&name) || name.starts_with("wasm-bindgen") || name.starts_with("gloo-")
}

fn is_impure(name: &str) -> bool {
    let impure = [
        "tokio",
        "async-std",
        "smol",
        "mio",
        "rand",
        "rand_core",
        "getrandom",
        "fastrand",
        "chrono",
        "time",
        "instant",
        "web-time",
        "reqwest",
        "hyper",
        "uuid",
    ];
    impure.contains(&name)
}
