//! What one commit changes in the store: values, so that the core asks for a write without doing one.
//!
//! Invariant: the changes of one commit are stored all together or not at all.

use crate::ids::{BatchNo, BudgetId, GroupId, JobId, Seq};
use crate::job::{BudgetRecord, Card, GroupRecord, Record};
use crate::time::Wall;

/// One change to what is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// Adds an immutable batch of 1 to 256 jobs; their bodies are added beside it, in the same order.
    AddBatch {
        /// The batch's number; adding one that exists is an error.
        batch: BatchNo,
        /// The cards, in order of acceptance.
        cards: Vec<Card>,
    },
    /// Replaces the record of one job.
    PutRecord {
        /// The job's place.
        seq: Seq,
        /// What has happened to it.
        record: Record,
    },
    /// Replaces the record of one group.
    PutGroup {
        /// The group.
        group: GroupId,
        /// Its counts.
        record: GroupRecord,
    },
    /// Replaces the record of one budget.
    PutBudget {
        /// The budget.
        budget: BudgetId,
        /// Its pause, refusals and holds.
        record: BudgetRecord,
    },
    /// Removes a batch whose jobs have all settled and whose keep time is over, with their records.
    DropBatch {
        /// The batch.
        batch: BatchNo,
        /// The names of its jobs that are done, remembered so that a late re-send is recognised.
        ids: Vec<JobId>,
        /// When it was dropped.
        at: Wall,
    },
    /// Forgets the remembered names of a dropped batch.
    ForgetIds {
        /// The batch that they belonged to.
        batch: BatchNo,
    },
    /// Removes the record of a group whose jobs are all gone.
    DropGroup {
        /// The group.
        group: GroupId,
    },
}

/// Everything that a start reads: cards and records, no bodies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stored {
    /// The batches, ascending.
    pub batches: Vec<(BatchNo, Vec<Card>)>,
    /// The records of jobs that have one, ascending.
    pub records: Vec<(Seq, Record)>,
    /// The groups.
    pub groups: Vec<(GroupId, GroupRecord)>,
    /// The budgets.
    pub budgets: Vec<(BudgetId, BudgetRecord)>,
    /// Remembered names of dropped batches, with the instant of dropping.
    pub dropped: Vec<(BatchNo, Vec<JobId>, Wall)>,
}
