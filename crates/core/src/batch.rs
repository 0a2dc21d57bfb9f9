//! Batches: several jobs that go as one request to an endpoint that takes many items.
//!
//! Owns the stored shapes and what an app declares of such an endpoint, as far as it is scheduled by. Does not know how
//! items are written into a request, nor how results are read out of an answer: that needs bodies.

use serde::{Deserialize, Serialize};

use crate::ids::{BatchName, Seq};
use crate::kind::{Fingerprint, MAX_MERGED_BYTES};
use crate::time::Wall;

/// The most items of one request that an app may declare.
pub const MAX_ITEMS: u32 = 1_000;
/// The most bytes of the stored requests that go as one, unless one alone has more.
pub const MAX_BATCH_BYTES: u64 = MAX_MERGED_BYTES;

/// That a job goes in a batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batched {
    /// The name under which its budget declares the batch.
    pub name: BatchName,
    /// How its request is sent: headers, credentials. Others go in other requests.
    pub form: Fingerprint,
}

/// What an app declares of a batch, as far as it is scheduled by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchRule {
    max_items: u32,
    max_bytes: u64,
}

/// A number of a batch is out of range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BatchError {
    /// The most items.
    #[error("expected 1 to 1000 items, got {0}")]
    Items(u64),
    /// The most bytes.
    #[error("expected 1 to 16777216 bytes, got {0}")]
    Bytes(u64),
}

impl BatchRule {
    /// Makes the rule of a batch of up to so many items and so many bytes of their stored requests.
    ///
    /// # Errors
    /// When a number is out of range.
    pub fn new(max_items: u64, max_bytes: u64) -> Result<Self, BatchError> {
        let items = u32::try_from(max_items).ok();
        let items = items.filter(|items| (1..=MAX_ITEMS).contains(items));
        if !(1..=MAX_BATCH_BYTES).contains(&max_bytes) {
            return Err(BatchError::Bytes(max_bytes));
        }
        Ok(Self {
            max_items: items.ok_or(BatchError::Items(max_items))?,
            max_bytes,
        })
    }

    /// Returns the most items of one request.
    pub const fn max_items(self) -> u32 {
        self.max_items
    }

    /// Returns the most bytes of the stored requests that go as one, unless one alone has more.
    pub const fn max_bytes(self) -> u64 {
        self.max_bytes
    }

    /// Returns how many requests so many jobs make.
    pub const fn requests(self, jobs: u64) -> u64 {
        jobs.div_ceil(self.max_items as u64)
    }
}

/// The composition of a batch request, stored with its claim in the record of the job that carries it.
///
/// It outlives the attempt only while the outcome of that is unknown: a repeat has the same items under the same key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchLoad {
    /// The other jobs of the request, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<Seq>,
    /// The attempt of the carrier that it was put together for; sets its key apart from those of others.
    pub attempt: u32,
    /// When it was put together; its key's age counts from here.
    pub claimed_at: Wall,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_out_of_range_are_no_batch() {
        assert_eq!(BatchRule::new(0, 1), Err(BatchError::Items(0)));
        assert_eq!(BatchRule::new(1_001, 1), Err(BatchError::Items(1_001)));
        assert_eq!(BatchRule::new(1, 0), Err(BatchError::Bytes(0)));
        assert!(BatchRule::new(1_000, MAX_BATCH_BYTES).is_ok());
    }

    #[test]
    fn what_is_left_over_makes_one_more_request() {
        let rule = BatchRule::new(20, 1_000).expect("in range");

        assert_eq!([0, 1, 20, 21].map(|jobs| rule.requests(jobs)), [0, 1, 1, 2]);
    }
}
