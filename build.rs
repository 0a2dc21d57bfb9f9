//! Embeds the built worker into the demo; `crates/wasm-build` knows how it is built. `PACELINE_SKIP_WASM=1` leaves it out.

use std::env;
use std::error::Error;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let out = PathBuf::from(env::var("OUT_DIR")?);
    paceline_wasm_build::embed(&root, &out)?;
    Ok(())
}
