//! Whether a failed job has been overtaken: sending it again would undo what a later job of its key has done.

use std::collections::{BTreeMap, BTreeSet};

use super::Core;
use crate::ids::{OrderKey, Seq};
use crate::job::State;

impl Core {
    /// Returns the newest done job of each key that one of the jobs has, as far as jobs are remembered.
    pub(super) fn newest_done(&self, seqs: &BTreeSet<Seq>) -> BTreeMap<OrderKey, Seq> {
        let jobs = seqs.iter().filter_map(|seq| self.jobs.get(seq));
        let failed = jobs.filter(|job| job.record.state == State::Failed);
        let keys: BTreeSet<&OrderKey> = failed.filter_map(|job| job.card.key.as_ref()).collect();
        if keys.is_empty() {
            return BTreeMap::new();
        }
        let done = self.jobs.iter().filter_map(|(seq, job)| {
            let key = job.card.key.as_ref()?;
            (job.record.state == State::Done && keys.contains(key)).then(|| (key.clone(), *seq))
        });
        done.collect()
    }
}
