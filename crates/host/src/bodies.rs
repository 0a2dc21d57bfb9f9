//! Stored requests that are at hand, so that a dispatch needs no read of its own.
//!
//! Invariant: bounded by count and bytes, but for two kinds that must not be let go: the request of a job that is kept
//! in memory only stays until it has settled, and that of a job whose claim is on its way to the store until it goes out.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use paceline_core::ids::{BatchNo, JobId, Seq};
use paceline_store::ReadBodies;

/// The most batches at hand.
const MAX_BATCHES: usize = 64;
/// The most bytes at hand, unless one batch alone has more.
const MAX_BYTES: u64 = 32 * 1024 * 1024;

#[derive(Debug)]
pub(crate) struct Bodies<B> {
    /// Handed in, and not yet in a batch.
    incoming: BTreeMap<JobId, B>,
    batches: BTreeMap<BatchNo, (Vec<B>, u64)>,
    /// Batches by use, the oldest first.
    order: VecDeque<BatchNo>,
    bytes: u64,
    in_memory: BTreeMap<Seq, B>,
    claimed: BTreeMap<Seq, B>,
}

impl<B> Default for Bodies<B> {
    fn default() -> Self {
        Self {
            incoming: BTreeMap::new(),
            batches: BTreeMap::new(),
            order: VecDeque::new(),
            bytes: 0,
            in_memory: BTreeMap::new(),
            claimed: BTreeMap::new(),
        }
    }
}

impl<B: Clone + Default> Bodies<B> {
    /// Takes the requests of jobs that are handed in.
    pub(crate) fn hand_in(&mut self, jobs: impl Iterator<Item = (JobId, B)>) {
        for (id, body) in jobs {
            // The same name twice is the same job, the first.
            self.incoming.entry(id).or_insert(body);
        }
    }

    /// Drops what was handed in and went into no batch: jobs that were known before, or refused.
    pub(crate) fn drop_incoming(&mut self) {
        self.incoming.clear();
    }

    /// Takes out the request of a job that goes into a batch.
    pub(crate) fn take_incoming(&mut self, id: &JobId) -> B {
        self.incoming.remove(id).unwrap_or_default()
    }

    /// Keeps the request of a job that is not stored.
    pub(crate) fn keep_in_memory(&mut self, seq: Seq, body: B) {
        self.in_memory.insert(seq, body);
    }

    /// Forgets what was kept in memory only.
    pub(crate) fn forget(&mut self, seq: Seq) {
        self.in_memory.remove(&seq);
        self.claimed.remove(&seq);
    }

    /// Forgets the requests of a batch that could not be stored.
    pub(crate) fn forget_batch(&mut self, batch: BatchNo) {
        self.drop_batch(batch);
        self.in_memory.retain(|seq, _| seq.batch() != batch);
    }

    /// Keeps the requests of claimed jobs until they go out. Returns the batches of those that are not at hand.
    pub(crate) fn claim(&mut self, seqs: &[Seq]) -> Vec<BatchNo> {
        let mut missing = BTreeSet::new();
        for seq in seqs {
            match self.request(*seq) {
                Some(body) => {
                    self.claimed.insert(*seq, body);
                }
                None => {
                    missing.insert(seq.batch());
                }
            }
        }
        missing.into_iter().collect()
    }

    /// Takes the requests of claimed jobs out of what was read with the claim.
    pub(crate) fn claim_read(&mut self, seqs: &[Seq], read: &ReadBodies<B>) {
        let read: BTreeMap<BatchNo, &Vec<B>> = read
            .iter()
            .filter_map(|(batch, bodies)| Some((*batch, bodies.as_ref()?)))
            .collect();
        for seq in seqs {
            let bodies = read.get(&seq.batch());
            if let Some(body) = bodies.and_then(|bodies| bodies.get(usize::from(seq.index()))) {
                self.claimed.insert(*seq, body.clone());
            }
        }
    }

    /// Takes the request of a claimed job, which goes out now.
    pub(crate) fn take_claimed(&mut self, seq: Seq) -> Option<B> {
        self.claimed.remove(&seq)
    }

    /// Lets the requests of claims go that came to nothing.
    pub(crate) fn unclaim(&mut self, seqs: &[Seq]) {
        for seq in seqs {
            self.claimed.remove(seq);
        }
    }

    /// Tells whether a job's request is at hand.
    pub(crate) fn has(&self, seq: Seq) -> bool {
        self.in_memory.contains_key(&seq) || self.batches.contains_key(&seq.batch())
    }

    /// Returns a job's request.
    pub(crate) fn request(&self, seq: Seq) -> Option<B> {
        if let Some(body) = self.in_memory.get(&seq) {
            return Some(body.clone());
        }
        let (bodies, _) = self.batches.get(&seq.batch())?;
        bodies.get(usize::from(seq.index())).cloned()
    }

    /// Keeps the requests of a batch at hand, and lets the least used go.
    pub(crate) fn keep(&mut self, batch: BatchNo, bodies: Vec<B>, bytes: u64) {
        self.drop_batch(batch);
        self.batches.insert(batch, (bodies, bytes));
        self.order.push_back(batch);
        self.bytes = self.bytes.saturating_add(bytes);
        while self.order.len() > 1 && (self.order.len() > MAX_BATCHES || self.bytes > MAX_BYTES) {
            let Some(oldest) = self.order.front().copied() else {
                return;
            };
            self.drop_batch(oldest);
        }
    }

    fn drop_batch(&mut self, batch: BatchNo) {
        if let Some((_, bytes)) = self.batches.remove(&batch) {
            self.bytes = self.bytes.saturating_sub(bytes);
            self.order.retain(|other| *other != batch);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_of_a_batch_that_was_not_stored() {
        let mut bodies: Bodies<u32> = Bodies::default();
        bodies.keep_in_memory(Seq::new(BatchNo(1), 0), 7);
        bodies.keep(BatchNo(1), vec![0], 10);

        bodies.forget_batch(BatchNo(1));

        assert!(!bodies.has(Seq::new(BatchNo(1), 0)));
        assert_eq!(bodies.bytes, 0);
    }

    #[test]
    fn the_least_used_go_when_there_is_too_much() {
        let mut bodies: Bodies<u32> = Bodies::default();
        for n in 0..100 {
            bodies.keep(BatchNo(n), vec![1, 2], MAX_BYTES / 10);
        }

        assert_eq!(bodies.batches.len(), 10);
        assert_eq!(bodies.request(Seq::new(BatchNo(99), 1)), Some(2));
        assert!(!bodies.has(Seq::new(BatchNo(0), 0)));
    }
}
