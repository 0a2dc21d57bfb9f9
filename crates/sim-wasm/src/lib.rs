//! The simulator as wasm, so that a run there can be compared with the same run natively: the scheduler that users get is
//! compiled for 32 bits, and must decide nothing by the width of a number or by an order in memory.
//!
//! Owns one export and no glue: `hash.mjs` beside it runs it in Node, `cargo xtask test` compares.

use paceline_sim::{Profile, run};

/// Runs one seed of a profile, by its place among all of them, and returns the hash of its trace; 0 when there is no such
/// profile.
#[unsafe(no_mangle)]
pub extern "C" fn trace_hash(profile: u32, seed: u64) -> u64 {
    let place = usize::try_from(profile).unwrap_or(usize::MAX);
    Profile::ALL
        .get(place)
        .map_or(0, |profile| run(seed, *profile).hash)
}
