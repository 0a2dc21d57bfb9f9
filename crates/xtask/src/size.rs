//! What the worker's wasm weighs, and what the dialects add to it: it is built without them, and both are compressed.

use std::path::Path;
use std::process::Command;

use paceline_wasm_build::{Pkg, build, build_with, capture};

use crate::{Outcome, node, setup};

/// Prints the bytes of a file, as they are and compressed as servers do it.
const WEIGH: &str = "\
    const { readFileSync } = require('node:fs'), { gzipSync, brotliCompressSync } = require('node:zlib');\
    const file = readFileSync(process.argv[1]);\
    console.log(file.length, gzipSync(file, { level: 9 }).length, brotliCompressSync(file).length);";

/// Builds the worker with and without the dialects, and prints both sizes and the difference.
pub(crate) fn run(root: &Path) -> Outcome {
    let toolchain = setup::toolchain(root)?;
    node::packages(root)?;
    let whole = weigh(&build(root, &toolchain)?)?;
    let plain = weigh(&build_with(root, &toolchain, "paceline_no_dialects")?)?;
    println!(
        "{:>22} {:>10} {:>10} {:>10}",
        "", "bytes", "gzip -9", "brotli"
    );
    line("the worker's wasm", |of| whole[of] as i64);
    line("without the dialects", |of| plain[of] as i64);
    line("the dialects", |of| whole[of] as i64 - plain[of] as i64);
    Ok(())
}

fn line(name: &str, bytes: impl Fn(usize) -> i64) {
    println!(
        "{name:>22} {:>10} {:>10} {:>10}",
        bytes(0),
        bytes(1),
        bytes(2)
    );
}

fn weigh(pkg: &Pkg) -> Result<[u32; 3], Box<dyn std::error::Error>> {
    let told = capture(Command::new("node").args(["-e", WEIGH]).arg(&pkg.wasm))?;
    let sizes: Vec<u32> = told
        .split_whitespace()
        .map(str::parse)
        .collect::<Result<_, _>>()?;
    sizes
        .try_into()
        .map_err(|told| format!("expected three sizes, got {told:?}").into())
}
