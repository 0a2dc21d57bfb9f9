//! Takes jobs in: known names are the same job, new ones go into batches.

use std::collections::BTreeMap;

use super::{After, Core, Job, Slot};
use crate::ids::{JobId, RequestId, Seq};
use crate::io::{Effect, QueueBound, Refusal, Reply};
use crate::job::{Card, Outcome, Reason, Record, State};
use crate::time::Now;

/// The most jobs of one stored batch.
const MAX_BATCH_JOBS: usize = 256;
/// The most bytes of requests in one stored batch, unless one job alone has more.
const MAX_BATCH_BYTES: u64 = 256 * 1024;

impl Core {
    pub(super) fn accept(&mut self, request: RequestId, cards: Vec<Card>, now: Now) {
        let asked: Vec<JobId> = cards.iter().map(|card| card.id.clone()).collect();
        if let Err(refusal) = self.check_cards(&cards) {
            self.effects.push_back(Effect::Reply {
                request,
                reply: Reply::Refused(refusal),
            });
            return;
        }
        let mut fresh = BTreeMap::new();
        let cards: Vec<Card> = cards
            .into_iter()
            .filter(|card| !self.is_known(&card.id) && fresh.insert(card.id.clone(), ()).is_none())
            .collect();
        let mut new = Vec::with_capacity(cards.len());
        for cards in into_batches(cards) {
            new.extend(self.add_batch(cards, now));
        }
        self.draft.after.push(After::Accept {
            request,
            asked,
            new,
        });
    }

    /// Takes jobs that had been accepted before. What is stored outlives its host, so one that is not known has ended: made
    /// anew, it would be sent although somebody cancelled it. Only what is not stored died with its host.
    pub(super) fn accept_again(&mut self, request: RequestId, mut cards: Vec<Card>, now: Now) {
        cards.retain(|card| card.ephemeral || self.is_known(&card.id));
        if cards.is_empty() {
            let reply = Reply::Refused(Refusal::Gone);
            self.effects.push_back(Effect::Reply { request, reply });
        } else {
            self.accept(request, cards, now);
        }
    }

    pub(super) fn is_known(&self, id: &JobId) -> bool {
        self.ids.contains_key(id) || self.dropped_ids.contains(id)
    }

    fn is_unstored(&self, id: &JobId) -> bool {
        let job = self.ids.get(id).and_then(|seq| self.jobs.get(seq));
        job.is_some_and(|job| !job.is_stored)
    }

    fn check_cards(&self, cards: &[Card]) -> Result<(), Refusal> {
        let (mut jobs, mut bytes) = (self.unsettled(), self.unsettled_bytes);
        for (index, card) in cards
            .iter()
            .enumerate()
            .filter(|(_, card)| !self.is_known(&card.id))
        {
            let Some(budget) = self.budgets.get(&card.budget) else {
                return Err(Refusal::UnknownBudget(card.budget.clone()));
            };
            let largest = budget.config().largest_cost();
            let parents = self.parents(&card.budget);
            let parents = parents.iter().filter_map(|id| self.budgets.get(id));
            let largest = parents.fold(largest, |least, parent| {
                least.min(parent.config().largest_cost())
            });
            if card.cost > largest {
                return Err(Refusal::NeverFits {
                    index,
                    cost: card.cost,
                    largest,
                });
            }
            jobs = jobs.saturating_add(1);
            bytes = bytes.saturating_add(u64::from(card.size));
            if let Some(bound) = self.passed_bound(jobs, bytes) {
                return Err(Refusal::QueueFull { index, bound });
            }
        }
        Ok(())
    }

    /// Returns the bound of the queue that so many jobs and bytes are over.
    const fn passed_bound(&self, jobs: u32, bytes: u64) -> Option<QueueBound> {
        if jobs > self.bounds.max_jobs {
            Some(QueueBound::Jobs(self.bounds.max_jobs))
        } else if bytes > self.bounds.max_bytes {
            Some(QueueBound::Bytes(self.bounds.max_bytes))
        } else {
            None
        }
    }

    fn add_batch(&mut self, cards: Vec<Card>, now: Now) -> Vec<Seq> {
        let batch = self.next_batch;
        self.next_batch = batch.next();
        let mut seqs = Vec::with_capacity(cards.len());
        for (index, card) in (0..=u8::MAX).zip(&cards) {
            let seq = Seq::new(batch, index);
            self.insert(seq, card.clone(), Record::fresh(), now);
            self.count_in_group(seq, now);
            seqs.push(seq);
        }
        self.draft.batches.push((batch, cards));
        seqs
    }

    /// Makes a job known to every index; its slot comes with `replace`.
    pub(super) fn insert(&mut self, seq: Seq, mut card: Card, record: Record, now: Now) {
        let home = card.budget.whole().unwrap_or_else(|| card.budget.clone());
        if let Some(moved) = &record.moved_to {
            card.budget = moved.clone();
        }
        let state = record.state;
        self.ids.insert(card.id.clone(), seq);
        let batch = self.batches.entry(seq.batch()).or_default();
        batch.jobs.push(seq);
        let job = Job {
            ready_at: Some(super::due_mono(&card, &record, now)),
            expires_at: None,
            is_settling: false,
            settlements: 0,
            claimed_at: now.mono,
            dispatched_at: now.mono,
            parents: Vec::new(),
            home,
            members: Vec::new(),
            members_bytes: 0,
            sent_with: 0,
            slot: Slot::None,
            is_stored: false,
            card,
            record,
        };
        if let Some(group) = &job.card.group {
            self.groups
                .entry(group.clone())
                .or_default()
                .jobs
                .insert(seq);
        }
        self.jobs.insert(seq, job);
        self.enter(seq, state, now);
    }

    fn count_in_group(&mut self, seq: Seq, now: Now) {
        let Some(group_id) = self.jobs.get(&seq).and_then(|job| job.card.group.clone()) else {
            return;
        };
        let group = self.groups.entry(group_id.clone()).or_default();
        if group.record.total == 0 {
            group.record.created_at = now.wall;
        }
        group.record.total = group.record.total.saturating_add(1);
        group.record.settled_at = None;
        self.draft.touched.groups.insert(group_id);
    }

    /// Takes out jobs whose batch could not be stored.
    pub(super) fn withdraw(&mut self, seqs: &[Seq], now: Now) {
        for seq in seqs {
            self.take_out(*seq);
            let Some(job) = self.jobs.get(seq) else {
                continue;
            };
            let state = job.record.state;
            self.exit(*seq, state);
            let Some(Job { card, .. }) = self.jobs.remove(seq) else {
                continue;
            };
            let (id, group) = (card.id, card.group);
            self.bring_forward(card.key.as_ref(), now);
            self.ids.remove(&id);
            self.batches.remove(&seq.batch());
            if let Some((group_id, group)) =
                group.and_then(|id| self.groups.get_mut(&id).map(|group| (id, group)))
            {
                group.jobs.remove(seq);
                group.record.total = group.record.total.saturating_sub(1);
                if group.jobs.is_empty() {
                    self.groups.remove(&group_id);
                } else {
                    if group.record.is_settled() && group.record.settled_at.is_none() {
                        group.record.settled_at = Some(now.wall);
                        self.draft.after.push(After::GroupSettled(group_id.clone()));
                    }
                    self.draft.touched.groups.insert(group_id);
                }
            }
        }
    }

    pub(super) fn unsettled(&self) -> u32 {
        let count = |state: State| self.counts.get(state.index()).copied().unwrap_or(0);
        count(State::Queued)
            .saturating_add(count(State::Sending))
            .saturating_add(count(State::RetryWait))
            .saturating_add(self.merged)
    }

    /// Answers an enqueue whose commit is durable.
    pub(super) fn accepted(
        &mut self,
        request: RequestId,
        asked: Vec<JobId>,
        new: &[Seq],
        now: Now,
    ) {
        for seq in new {
            self.note_stored(*seq);
            if let Some(reason) = self.unwanted.remove(seq) {
                let outcome = Outcome::unanswered(reason, now.wall);
                let has_failed = matches!(reason, Reason::Expired | Reason::KeyFailed);
                let state = if has_failed {
                    State::Failed
                } else {
                    State::Cancelled
                };
                self.settle(*seq, state, outcome, now);
                continue;
            }
            if self.join_earlier(*seq, now) || self.remove_earlier(*seq, now) {
                continue;
            }
            self.replace(*seq, now);
            self.lend_lane(*seq, now);
        }
        // What was known and not yet stored may have been withdrawn meanwhile.
        if asked.iter().any(|id| !self.is_known(id)) {
            let reply = Reply::Refused(Refusal::Storage);
            self.effects.push_back(Effect::Reply { request, reply });
            return;
        }
        // And handed in anew by a later request, whose commit is on its way: what becomes of that is told after it.
        if asked.iter().any(|id| self.is_unstored(id)) {
            let new = Vec::new();
            self.draft.after.push(After::Accept {
                request,
                asked,
                new,
            });
            return;
        }
        let jobs: Vec<_> = asked
            .into_iter()
            .filter_map(
                |id| match self.ids.get(&id).and_then(|seq| self.jobs.get(seq)) {
                    Some(job) if job.is_settling => Some((id, State::Sending, None)),
                    Some(job) => Some((id, self.state_of(job), job.record.outcome.clone())),
                    None => self
                        .dropped_ids
                        .contains(&id)
                        .then_some((id, State::Done, None)),
                },
            )
            .collect();
        self.effects.push_back(Effect::Reply {
            request,
            reply: Reply::Accepted { jobs },
        });
    }
}

fn into_batches(cards: Vec<Card>) -> Vec<Vec<Card>> {
    let mut batches: Vec<Vec<Card>> = Vec::new();
    let mut bytes = 0_u64;
    for card in cards {
        let size = u64::from(card.size);
        match batches.last_mut() {
            Some(batch)
                if batch.len() < MAX_BATCH_JOBS
                    && bytes.saturating_add(size) <= MAX_BATCH_BYTES =>
            {
                bytes = bytes.saturating_add(size);
                batch.push(card);
            }
            Some(_) | None => {
                bytes = size;
                batches.push(vec![card]);
            }
        }
    }
    batches
}
