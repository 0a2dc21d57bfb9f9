//! The durable store of Paceline: one trait, a memory store and an IndexedDB store.
//!
//! Owns how jobs, records, groups and budgets are laid out and written. Does not decide what is written (`core` does)
//! and never looks into a request's body. Invariant: a [`Transaction`] is stored whole or not at all, and one whose
//! epoch is not the stored epoch changes nothing.

mod check;
pub mod conformance;
#[cfg(all(target_arch = "wasm32", feature = "indexeddb"))]
pub mod indexeddb;
mod join;
pub mod memory;

use paceline_core::change::{Change, Stored};
use paceline_core::ids::{BatchNo, Epoch};
use paceline_core::time::Wall;

pub use self::check::MAX_BATCH_JOBS;

/// One atomic write, and the reads that ride on it.
#[derive(Clone, Debug)]
pub struct Transaction<B> {
    /// The writer's epoch; compared with the stored one in the same transaction.
    pub epoch: Epoch,
    /// What to change, in order.
    pub changes: Vec<Change>,
    /// The stored requests of the jobs of each [`Change::AddBatch`], as many and in the same order.
    pub bodies: Vec<(BatchNo, Vec<B>)>,
    /// Batches whose requests are to be read.
    pub read_bodies: Vec<BatchNo>,
}

/// What a committed transaction read: for each batch asked for, its requests, or nothing where it does not exist.
pub type ReadBodies<B> = Vec<(BatchNo, Option<Vec<B>>)>;

/// What an owner finds when it opens the store and raises the epoch.
#[derive(Clone, Debug)]
pub struct Opened {
    /// The owner's own epoch, one above the last.
    pub epoch: Epoch,
    /// When the database was made; tells an eviction.
    pub birth: Wall,
    /// Everything that is stored, without bodies.
    pub stored: Stored,
    /// How many stored records did not parse and were set aside.
    pub quarantined: u32,
}

/// Why the store did not do what was asked, sorted by who can act.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Another owner has raised the epoch: stop at once.
    #[error("expected epoch {expected}, found {found}")]
    StaleEpoch {
        /// The writer's epoch.
        expected: u64,
        /// The stored epoch.
        found: u64,
    },
    /// The origin's storage is full; nothing was changed.
    #[error("storage quota exceeded: {0}")]
    Full(String),
    /// The connection or transaction broke, and trying again did not help. The last write may or may not be stored;
    /// only [`Store::open`] tells.
    #[error("storage failed: {0}")]
    Transient(String),
    /// The database was written by a newer version; it was not touched.
    #[error("expected schema {expected} or older, found {found}")]
    TooNew {
        /// The newest schema that this code knows.
        expected: u32,
        /// The stored schema.
        found: u32,
    },
    /// Another connection keeps the database from being opened.
    #[error("database is blocked by another connection")]
    Blocked,
    /// Storage is refused here (private mode, blocked third party, opaque origin).
    #[error("storage is not available: {0}")]
    Unavailable(String),
    /// The write is not one that can be stored (a batch that exists, bodies that do not match).
    #[error("invalid transaction: {0}")]
    Invalid(String),
}

/// A durable store of one queue. All futures run on one thread.
#[allow(
    async_fn_in_trait,
    reason = "the store is used on one thread, generically, never as a trait object"
)]
pub trait Store {
    /// A stored request; opaque here.
    type Body: Clone;

    /// Opens the database, raises the epoch in one transaction, and then reads all but bodies.
    ///
    /// # Errors
    /// When the database cannot be opened, read or is of a newer schema.
    async fn open(&self, now: Wall) -> Result<Opened, StoreError>;

    /// Writes one transaction; resolves when it is durable. Commits are stored in the order in which they were begun.
    ///
    /// # Errors
    /// Nothing of the transaction is stored, but after [`StoreError::Transient`] it is not known.
    async fn commit(
        &self,
        transaction: Transaction<Self::Body>,
    ) -> Result<ReadBodies<Self::Body>, StoreError>;

    /// Reads the requests of batches, without writing.
    ///
    /// # Errors
    /// When the database cannot be read.
    async fn read_bodies(
        &self,
        batches: Vec<BatchNo>,
    ) -> Result<ReadBodies<Self::Body>, StoreError>;
}
