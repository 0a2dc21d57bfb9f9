//! What both stores refuse before they write.

use std::collections::BTreeSet;

use paceline_core::change::Change;
use paceline_core::ids::BatchNo;

use crate::{StoreError, Transaction};

/// The most jobs that one batch holds; a job's place leaves one byte for its index.
pub const MAX_BATCH_JOBS: usize = 256;

impl<B> Transaction<B> {
    /// Checks what can be checked without reading the store: every change is one that the stores know, every added
    /// batch has 1 to [`MAX_BATCH_JOBS`] jobs and as many bodies, and no bodies are without their batch.
    ///
    /// # Errors
    /// [`StoreError::Invalid`], naming the batch, what was expected and what was found.
    pub fn check(&self) -> Result<(), StoreError> {
        if !self.changes.iter().all(is_known) {
            return Err(StoreError::Invalid(
                "expected a change that this store knows".to_owned(),
            ));
        }
        let mut added = BTreeSet::new();
        for change in &self.changes {
            let Change::AddBatch { batch, cards } = change else {
                continue;
            };
            self.check_batch(*batch, cards.len())?;
            if !added.insert(*batch) {
                return Err(exists(*batch));
            }
        }
        match self.bodies.iter().find(|(batch, _)| !added.contains(batch)) {
            Some((batch, _)) => Err(invalid(*batch, "has bodies, but is not added")),
            None if self.bodies.len() > added.len() => Err(StoreError::Invalid(
                "expected bodies once a batch".to_owned(),
            )),
            None => Ok(()),
        }
    }

    fn check_batch(&self, batch: BatchNo, cards: usize) -> Result<(), StoreError> {
        if cards == 0 || cards > MAX_BATCH_JOBS {
            return Err(invalid(
                batch,
                &format!("expected 1 to {MAX_BATCH_JOBS} jobs, got {cards}"),
            ));
        }
        let bodies = self.bodies_of(batch).map_or(0, <[B]>::len);
        if bodies != cards {
            return Err(invalid(
                batch,
                &format!("expected {cards} bodies, got {bodies}"),
            ));
        }
        Ok(())
    }

    /// Returns the bodies of an added batch.
    pub fn bodies_of(&self, batch: BatchNo) -> Option<&[B]> {
        self.bodies
            .iter()
            .find(|(no, _)| *no == batch)
            .map(|(_, bodies)| bodies.as_slice())
    }
}

/// `Change` may grow; a store must refuse what it does not know, not skip it.
fn is_known(change: &Change) -> bool {
    matches!(
        change,
        Change::AddBatch { .. }
            | Change::PutRecord { .. }
            | Change::PutGroup { .. }
            | Change::PutBudget { .. }
            | Change::DropBatch { .. }
            | Change::ForgetIds { .. }
            | Change::DropGroup { .. }
    )
}

/// Makes the error of adding a batch that is stored already.
pub(crate) fn exists(batch: BatchNo) -> StoreError {
    invalid(batch, "exists already")
}

fn invalid(batch: BatchNo, what: &str) -> StoreError {
    StoreError::Invalid(format!("batch {}: {what}", batch.0))
}
