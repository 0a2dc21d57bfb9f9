//! What happened, as a hash, and as lines when somebody wants to read it.
//!
//! Invariant: the hash is taken of the same text that is printed, so equal hashes are equal traces.

use std::fmt::{self, Write};

const OFFSET: u64 = 0xCBF2_9CE4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01B3;

/// The trace of one run.
#[derive(Debug)]
pub(crate) struct Trace {
    hash: u64,
    lines: Option<Vec<String>>,
    line: String,
}

impl Trace {
    /// Makes an empty trace that keeps its lines, or only their hash.
    pub(crate) fn new(keeps_lines: bool) -> Self {
        Self {
            hash: OFFSET,
            lines: keeps_lines.then(Vec::new),
            line: String::new(),
        }
    }

    /// Notes what happened at an instant.
    pub(crate) fn note(&mut self, at_ms: u64, what: fmt::Arguments<'_>) {
        self.line.clear();
        // Writing to a text does not fail.
        let _ = write!(self.line, "{at_ms:>9} {what}");
        for byte in self.line.bytes().chain([b'\n']) {
            self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(PRIME);
        }
        if let Some(lines) = &mut self.lines {
            lines.push(self.line.clone());
        }
    }

    /// Returns the hash (FNV-1a) and the kept lines.
    pub(crate) fn into_parts(self) -> (u64, Vec<String>) {
        (self.hash, self.lines.unwrap_or_default())
    }
}
