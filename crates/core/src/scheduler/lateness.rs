//! How long after its claim a request may leave.
//!
//! Whoever takes over knows of a claim whose owner died only when it was made, and what was stored of how late its request
//! may have left: from the later instant on it counts the attempt's time-out, and keeps its slot. So a request that is
//! later than that is claimed anew. Half a second is enough for a store that works; where commits are slow, each next claim
//! allows twice what the last ones took, so that a slow store makes a takeover more careful and never stops the sending.
//!
//! Invariant: a request leaves at most [`allowed_ms`] after the start that its stored claim names.

use crate::job::Spent;

/// How late any claimed request may leave.
const LEAST_MS: u64 = 500;
/// The most that is allowed however slow the store is: a start that is later was frozen.
const MOST_MS: u64 = 120_000;

/// What is allowed for the next claim.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lateness {
    next_ms: u64,
}

impl Default for Lateness {
    fn default() -> Self {
        Self { next_ms: LEAST_MS }
    }
}

impl Lateness {
    /// Learns how long a commit took. Grows at once, shrinks slowly.
    pub(super) fn learn(&mut self, took_ms: u64) {
        let slowly = self.next_ms.saturating_sub(self.next_ms / 8);
        let next_ms = took_ms.saturating_mul(2).max(slowly);
        self.next_ms = next_ms.clamp(LEAST_MS, MOST_MS);
    }

    /// Returns what is stored with a claim: nothing where the least is enough.
    pub(super) fn to_store(self) -> u32 {
        let beyond = Some(self.next_ms).filter(|next| *next > LEAST_MS);
        beyond
            .and_then(|next| u32::try_from(next).ok())
            .unwrap_or(0)
    }
}

/// Returns how late the request of a claim may leave.
pub(super) fn allowed_ms(claim: Spent) -> u64 {
    LEAST_MS.max(u64::from(claim.late_ms)).min(MOST_MS)
}
