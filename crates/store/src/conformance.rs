//! One suite of claims that every store keeps, run natively by the memory store and in browsers by the IndexedDB store.
//!
//! Owns the claims and the jobs they are tried with. Knows nothing of how a store is made: a [`Kit`] does. Invariant:
//! each claim uses a database of its own, named after the claim.

mod claims;
pub mod samples;

use std::fmt;

pub use crate::join::both;
use crate::{Store, StoreError};

/// Makes the stores and bodies that the claims are tried with.
#[allow(async_fn_in_trait, reason = "used on one thread, generically")]
pub trait Kit {
    /// The store that is tried.
    type Store: Store;

    /// Makes a store on a database of this name that does not exist yet.
    async fn fresh(&self, name: &str) -> Self::Store;

    /// Makes one more store on the database of `store`, as a host does that starts after it.
    async fn again(&self, store: &Self::Store) -> Self::Store;

    /// Makes a body that holds a number.
    fn body(&self, number: u64) -> <Self::Store as Store>::Body;

    /// Reads the number that a body holds, if it is one of [`Kit::body`].
    fn number(&self, body: &<Self::Store as Store>::Body) -> Option<u64>;
}

/// Why a claim does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure(String);

impl Failure {
    /// Makes a failure from a sentence.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self(format!("unexpected error: {error}"))
    }
}

/// What became of one claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The claim's name.
    pub name: &'static str,
    /// Whether it holds.
    pub result: Result<(), Failure>,
}

/// Tries every claim, in order.
pub async fn run<K: Kit>(kit: &K) -> Vec<Verdict> {
    claims::run(kit).await
}

/// Fails with both values unless they are equal.
///
/// # Errors
/// When they differ.
pub fn expect_eq<T: fmt::Debug + PartialEq>(
    what: &str,
    expected: &T,
    got: &T,
) -> Result<(), Failure> {
    if expected == got {
        return Ok(());
    }
    Err(Failure(format!(
        "{what}: expected {}, got {}",
        excerpt(expected),
        excerpt(got)
    )))
}

/// Fails unless the result is the error that the predicate wants.
///
/// # Errors
/// When it is not.
pub fn expect_error<T>(
    what: &str,
    result: &Result<T, StoreError>,
    wanted: impl FnOnce(&StoreError) -> bool,
) -> Result<(), Failure> {
    match result {
        Err(error) if wanted(error) => Ok(()),
        Err(error) => Err(Failure(format!(
            "{what}: expected another error than: {error}"
        ))),
        Ok(_) => Err(Failure(format!("{what}: expected an error, got success"))),
    }
}

/// 20,000 cards in a failure's text would hide what failed.
fn excerpt(value: &impl fmt::Debug) -> String {
    const MOST: usize = 2_000;
    let text = format!("{value:?}");
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}
