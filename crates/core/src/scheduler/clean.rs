//! Clean-up: rides on commits that happen anyway, so that it needs no timer.

use super::Core;
use crate::change::Change;
use crate::ids::{BatchNo, JobId, Seq};
use crate::job::State;
use crate::time::{Now, Wall};

/// The most batches that one commit drops.
const MAX_DROPS: usize = 4;
/// How long the names of dropped jobs are remembered.
const KEEP_IDS_MS: u64 = 7 * 86_400_000;
/// How long a job is kept at least while what carries it is.
const KEEP_WITH_CARRIER_MS: u64 = 60_000;

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
            if let Some(later) = self.needed_until(batch, now) {
                if let Some(batch) = self.batches.get_mut(&batch) {
                    batch.keep_until = later;
                }
                self.droppable.insert((later, batch));
                continue;
            }
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

    /// A failed job in another batch may be sent again, and carries the request of one of this batch's jobs.
    fn needed_until(&self, batch: BatchNo, now: Now) -> Option<Wall> {
        let jobs = &self.batches.get(&batch)?.jobs;
        let is_failed = |seq: &Seq| {
            let job = self.jobs.get(seq);
            job.is_some_and(|job| job.record.state == State::Failed)
        };
        let failed = jobs.iter().copied().filter(is_failed);
        let carriers = failed.map(|seq| self.carrier(seq).batch());
        let others = carriers.filter(|carrier| *carrier != batch);
        let latest = others
            .filter_map(|carrier| self.batches.get(&carrier))
            .map(|carrier| carrier.keep_until)
            .max()?;
        Some(latest.max(now.wall.plus(KEEP_WITH_CARRIER_MS)))
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
            self.release_key(seq, now);
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
