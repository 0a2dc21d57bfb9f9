//! Clean-up: rides on commits that happen anyway, so that it needs no timer.

use super::Core;
use crate::change::Change;
use crate::ids::{BatchNo, JobId};
use crate::job::State;
use crate::time::Now;

/// The most batches that one commit drops.
const MAX_DROPS: usize = 4;
/// How long the names of dropped jobs are remembered.
const KEEP_IDS_MS: u64 = 7 * 86_400_000;

impl Core {
    /// Adds to the draft what may go.
    pub(super) fn clean(&mut self, now: Now) {
        for _ in 0..MAX_DROPS {
            let Some((keep_until, batch)) = self.droppable.first().copied() else {
                break;
            };
            if keep_until > now.wall || self.has_untold(batch) {
                break;
            }
            self.droppable.remove(&(keep_until, batch));
            self.drop_batch(batch, now);
        }
        let old = self
            .dropped
            .first_key_value()
            .filter(|(_, (_, at))| now.wall.since(*at) >= KEEP_IDS_MS);
        if let Some(batch) = old.map(|(batch, _)| *batch) {
            self.forget_ids(batch);
        }
    }

    /// Tells whether the outcome of one of its jobs is not stored yet, and so not told: the machine may have slept for
    /// longer than outcomes are kept.
    fn has_untold(&self, batch: BatchNo) -> bool {
        let jobs = self.batches.get(&batch).map(|batch| &batch.jobs);
        let mut jobs = jobs
            .into_iter()
            .flatten()
            .filter_map(|seq| self.jobs.get(seq));
        jobs.any(|job| job.is_settling)
    }

    fn drop_batch(&mut self, batch: BatchNo, now: Now) {
        let Some(jobs) = self.batches.remove(&batch).map(|batch| batch.jobs) else {
            return;
        };
        let mut ids: Vec<JobId> = Vec::with_capacity(jobs.len());
        for seq in jobs {
            let Some(job) = self.jobs.get(&seq) else {
                continue;
            };
            let state = job.record.state;
            self.exit(seq, state);
            let Some(job) = self.jobs.remove(&seq) else {
                continue;
            };
            // Its name may be another job's by now, if an earlier drop of it was not stored.
            if self.ids.get(&job.card.id) == Some(&seq) {
                self.ids.remove(&job.card.id);
            }
            self.draft.touched.records.remove(&seq);
            // Only what was done must never be sent again; what was not may be wanted anew.
            if state == State::Done {
                ids.push(job.card.id);
            }
            let Some(group_id) = job.card.group else {
                continue;
            };
            let Some(group) = self.groups.get_mut(&group_id) else {
                continue;
            };
            group.jobs.remove(&seq);
            if group.jobs.is_empty() {
                self.groups.remove(&group_id);
                self.draft.touched.groups.remove(&group_id);
                self.draft.drops.push(Change::DropGroup { group: group_id });
            }
        }
        self.dropped_ids.extend(ids.iter().cloned());
        self.dropped.insert(batch, (ids.clone(), now.wall));
        self.draft.drops.push(Change::DropBatch {
            batch,
            ids,
            at: now.wall,
        });
    }

    fn forget_ids(&mut self, batch: BatchNo) {
        let Some((ids, _)) = self.dropped.remove(&batch) else {
            return;
        };
        for id in ids {
            self.dropped_ids.remove(&id);
        }
        self.draft.drops.push(Change::ForgetIds { batch });
    }
}
