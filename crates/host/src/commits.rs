//! The transaction on its way, and the commits that wait for it.

use std::collections::VecDeque;

use paceline_core::change::Change;
use paceline_core::ids::{BatchNo, CommitId, Epoch, Seq};
use paceline_core::io::{CommitFailure, Input, NoAnswer};
use paceline_core::job::State;
use paceline_core::time::{Mono, Now};
use paceline_protocol::HostMessage;
use paceline_protocol::reply::EventMessage;
use paceline_store::{ReadBodies, StoreError, Transaction};

use crate::{Host, HostOutput};

/// How long a claim takes, by the clock that saw more, above which the claim is compared again: the host was frozen.
const FREEZE_MS: u64 = 500;
/// How often a claim is compared again before it is let go on: the store is just slow.
const MAX_COMPARES: u32 = 3;
/// How long outcomes that nobody waits for gather before they go into a transaction of their own. A transaction costs far
/// more than one record more in it; the next claim takes them along at once.
const GATHER_MS: u64 = 20;

#[derive(Debug)]
struct Commit<B> {
    id: CommitId,
    changes: Vec<Change>,
    bodies: Vec<(BatchNo, Vec<B>)>,
}

#[derive(Debug)]
struct Running<B> {
    ids: Vec<CommitId>,
    /// What to try again one by one, when several went together.
    commits: Vec<Commit<B>>,
    begun: Now,
    claims: Vec<Seq>,
    compares: u32,
}

#[derive(Debug)]
pub(crate) struct Commits<B> {
    waiting: VecDeque<Commit<B>>,
    /// While only such commits wait as may: until when.
    gather_until: Option<Mono>,
    is_urgent: bool,
    /// Commits that failed together and go one by one.
    alone: VecDeque<Commit<B>>,
    running: Option<Running<B>>,
    /// Dispatches whose request could not be found.
    pub(crate) missing: Vec<(Seq, u32, Vec<Seq>)>,
}

impl<B> Default for Commits<B> {
    fn default() -> Self {
        Self {
            waiting: VecDeque::new(),
            gather_until: None,
            is_urgent: false,
            alone: VecDeque::new(),
            running: None,
            missing: Vec::new(),
        }
    }
}

impl<B> Commits<B> {
    /// Returns when what gathers goes out.
    pub(crate) const fn gathered_at(&self) -> Option<Mono> {
        self.gather_until
    }

    /// Tells whether nothing is on its way to the store, nor waits for that.
    pub(crate) fn is_idle(&self) -> bool {
        self.running.is_none() && self.waiting.is_empty() && self.alone.is_empty()
    }

    /// Tells whether what waits goes on gathering, and begins that.
    fn is_gathering(&mut self, now: Now) -> bool {
        if self.is_urgent || self.waiting.is_empty() || !self.alone.is_empty() {
            return false;
        }
        let until = *self.gather_until.get_or_insert(now.mono.plus(GATHER_MS));
        now.mono < until
    }

    fn take_waiting(&mut self) -> Vec<Commit<B>> {
        self.gather_until = None;
        self.is_urgent = false;
        self.waiting.drain(..).collect()
    }
}

impl<B: Clone + Default> Host<B> {
    /// Takes a commit that the core asks for, with the requests of the jobs that it adds.
    pub(crate) fn push_commit(&mut self, id: CommitId, changes: Vec<Change>, may_wait: bool) {
        let bodies = self.bodies_of(&changes);
        self.commits.is_urgent |= !may_wait;
        self.commits.waiting.push_back(Commit {
            id,
            changes,
            bodies,
        });
    }

    /// The connection was closed under us: an empty transaction finds out what has become of the database.
    pub(crate) fn store_lost(&mut self) {
        if self.commits.running.is_none() && self.commits.waiting.is_empty() {
            self.commits.is_urgent = true;
            self.commits.waiting.push_back(Commit {
                id: CommitId(0),
                changes: Vec::new(),
                bodies: Vec::new(),
            });
        }
    }

    /// Sends all waiting commits as one transaction, unless one is on its way.
    pub(crate) fn start_transaction(&mut self, now: Now) {
        if self.commits.running.is_some() || self.is_stopped || self.commits.is_gathering(now) {
            return;
        }
        let commits: Vec<Commit<B>> = match self.commits.alone.pop_front() {
            Some(alone) => vec![alone],
            None => self.commits.take_waiting(),
        };
        if commits.is_empty() {
            return;
        }
        let changes: Vec<Change> = commits
            .iter()
            .flat_map(|commit| commit.changes.iter().cloned())
            .collect();
        let bodies = commits
            .iter()
            .flat_map(|commit| commit.bodies.iter().cloned())
            .collect();
        let claimed = changes.iter().filter_map(claimed);
        let claims: Vec<Seq> = claimed.flat_map(|seq| self.core.parts(seq)).collect();
        let read_bodies = self.bodies.claim(&claims);
        let ids = commits.iter().map(|commit| commit.id).collect();
        self.commits.running = Some(Running {
            ids,
            commits,
            begun: now,
            claims,
            compares: 0,
        });
        let transaction = Transaction {
            epoch: Epoch(self.epoch),
            changes,
            bodies,
            read_bodies,
        };
        self.outputs.push_back(HostOutput::Store(transaction));
    }

    pub(crate) fn store_done(&mut self, result: Result<ReadBodies<B>, StoreError>, now: Now) {
        let Some(running) = self.commits.running.take() else {
            return;
        };
        match result {
            Ok(read) => {
                self.bodies.claim_read(&running.claims, &read);
                self.keep_read(read);
                self.stored(running, now);
            }
            Err(error) if is_final(&error) || running.compares > 0 => {
                self.is_stopped = true;
                self.outputs.push_back(HostOutput::Stop(error));
            }
            Err(error) => self.not_stored(running, &error, now),
        }
        self.fail_missing(now);
    }

    fn stored(&mut self, mut running: Running<B>, now: Now) {
        // The monotonic clock may stand still in a sleep, and the wall clock may be set back.
        let by_wall_ms = now.wall.since(running.begun.wall);
        let took_ms = by_wall_ms.max(now.mono.since(running.begun.mono));
        if !running.claims.is_empty() && took_ms > FREEZE_MS && running.compares < MAX_COMPARES {
            running.begun = now;
            running.compares += 1;
            running.commits.clear();
            self.commits.running = Some(running);
            let (changes, bodies, read_bodies) = (Vec::new(), Vec::new(), Vec::new());
            let compare = Transaction {
                epoch: Epoch(self.epoch),
                changes,
                bodies,
                read_bodies,
            };
            self.outputs.push_back(HostOutput::Store(compare));
            return;
        }
        for id in running.ids {
            self.drive(Input::Committed(id), now);
        }
    }

    fn not_stored(&mut self, running: Running<B>, error: &StoreError, now: Now) {
        self.bodies.unclaim(&running.claims);
        if running.commits.len() > 1 {
            self.commits.alone.extend(running.commits);
            return;
        }
        for change in running.commits.iter().flat_map(|commit| &commit.changes) {
            if let Change::AddBatch { batch, .. } = change {
                self.bodies.forget_batch(*batch);
            }
        }
        let failure = if matches!(error, StoreError::Full(_)) {
            CommitFailure::Full
        } else {
            CommitFailure::Broken
        };
        let tabs: Vec<_> = self.tabs.keys().copied().collect();
        for tab in tabs {
            let event = EventMessage::Storage {
                message: error.to_string(),
            };
            self.post(tab, None, HostMessage::Event(event));
        }
        for id in running.ids {
            self.drive(Input::CommitFailed(id, failure), now);
        }
    }

    /// A job whose request is not in the store cannot be sent; that is a failure of the store, and is told.
    fn fail_missing(&mut self, now: Now) {
        for (seq, attempt, missing) in std::mem::take(&mut self.commits.missing) {
            self.repeats.remove(&seq);
            self.dialects.remove(&seq);
            let input = match self.core.riders(seq).len() {
                1 => Input::NoAnswer {
                    seq,
                    attempt,
                    cause: NoAnswer::Missing,
                },
                _ => Input::ItemsMissing {
                    seq,
                    attempt,
                    missing,
                },
            };
            self.drive(input, now);
        }
    }

    fn bodies_of(&mut self, changes: &[Change]) -> Vec<(BatchNo, Vec<B>)> {
        let mut bodies = Vec::new();
        for change in changes {
            let Change::AddBatch { batch, cards } = change else {
                continue;
            };
            let mut requests = Vec::with_capacity(cards.len());
            let mut bytes = 0_u64;
            for (index, card) in (0..=u8::MAX).zip(cards) {
                let request = self.bodies.take_incoming(&card.id);
                bytes = bytes.saturating_add(u64::from(card.size));
                if card.ephemeral {
                    self.bodies.keep_in_memory(Seq::new(*batch, index), request);
                    requests.push(B::default());
                } else {
                    requests.push(request);
                }
            }
            self.bodies.keep(*batch, requests.clone(), bytes);
            bodies.push((*batch, requests));
        }
        bodies
    }

    pub(crate) fn keep_read(&mut self, read: ReadBodies<B>) {
        for (batch, bodies) in read {
            if let Some(bodies) = bodies {
                let bytes = self.core.batch_bytes(batch);
                self.bodies.keep(batch, bodies, bytes);
            }
        }
    }
}

/// Tells whether this owner must end: there is another one, the database is no longer ours to write, or a connection
/// broke so that nobody knows what is stored. The next owner reads it and goes on from there.
fn is_final(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::StaleEpoch { .. }
            | StoreError::Transient(_)
            | StoreError::TooNew { .. }
            | StoreError::Blocked
            | StoreError::Unavailable(_)
    )
}

fn claimed(change: &Change) -> Option<Seq> {
    let Change::PutRecord { seq, record } = change else {
        return None;
    };
    (record.state == State::Sending).then_some(*seq)
}
