//! Builds this package's wasm and its glue, and says in which directory they are.

#![allow(
    clippy::print_stdout,
    reason = "the directory is this program's output"
)]

#[cfg(not(target_arch = "wasm32"))]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    use std::path::Path;

    use paceline_wasm_build::{Toolchain, run};
    use wasm_bindgen_cli_support::Bindgen;

    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .ok_or("no workspace above this package")?;
    let target = root.join("target/wasm");
    let mut cargo = Toolchain::present(root)?.cargo(root, "build");
    cargo
        .args([
            "--package",
            env!("CARGO_PKG_NAME"),
            "--lib",
            "--profile",
            "wasm-release",
            "--target-dir",
        ])
        .arg(&target);
    run(&mut cargo)?;

    let wasm = target.join("wasm32-unknown-unknown/wasm-release/paceline_store_conformance.wasm");
    let out = target.join("store-conformance");
    Bindgen::new().input_path(wasm).web(true)?.generate(&out)?;
    println!("{}", out.display());
    Ok(())
}

#[cfg(target_arch = "wasm32")]
fn main() {}
