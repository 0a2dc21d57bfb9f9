//! What the mock API has done, and the answers that it may have to give again.
//!
//! An effect's identity is its idempotency key, else method, path and body. Both stores are bounded: past the bound an
//! effect is counted as untracked, and the oldest finished answer is forgotten.

use std::collections::hash_map::{DefaultHasher, Entry};
use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{Hash, Hasher};

use bytes::Bytes;

use crate::record::Call;

/// Distinct effects that an account tells apart.
pub(crate) const MAX_EFFECTS: usize = 200_000;
/// Idempotency keys that an account remembers.
const MAX_KEYS: usize = 50_000;

/// The effects of accepted requests that are not reads.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    seen: HashSet<u64>,
    /// How often something took effect, by method and path.
    at: HashMap<u64, u64>,
    pub(crate) applied: u64,
    pub(crate) duplicated: u64,
    pub(crate) untracked: u64,
}

impl Effects {
    /// Applies a request's effect.
    pub(crate) fn apply(&mut self, call: &Call) {
        let identity = match &call.key {
            Some(key) => hash(&("key", key)),
            None => hash(&(&call.method, &call.path, &call.body)),
        };
        let place = place(&call.method, &call.path);
        if self.at.len() < MAX_EFFECTS || self.at.contains_key(&place) {
            *self.at.entry(place).or_default() += 1;
        }
        self.apply_once(identity);
    }

    /// Applies an effect by its identity.
    pub(crate) fn apply_once(&mut self, identity: u64) {
        if self.seen.contains(&identity) {
            self.duplicated += 1;
        } else if self.seen.len() >= MAX_EFFECTS {
            self.untracked += 1;
        } else {
            self.seen.insert(identity);
            self.applied += 1;
        }
    }
}

impl Effects {
    /// Tells how often a method took effect at a path.
    pub(crate) fn times(&self, method: &str, path: &str) -> u64 {
        self.at.get(&place(method, path)).copied().unwrap_or(0)
    }
}

fn place(method: &str, path: &str) -> u64 {
    let path = path.split('?').next().unwrap_or_default();
    hash(&("place", method, path))
}

/// An answer that can be given again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) status: u16,
    pub(crate) body: Bytes,
}

/// What is known of a key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// It is new and now taken by the asker.
    Taken,
    /// Its first request has no answer yet.
    InFlight,
    /// Another request used it.
    Mismatch,
    /// Its answer.
    Replay(Stored),
}

#[derive(Debug)]
struct Known {
    fingerprint: u64,
    answer: Option<Stored>,
}

/// The idempotency keys of an account.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    known: HashMap<String, Known>,
    finished: VecDeque<String>,
}

impl Keys {
    /// Claims a key for a request, or tells what stands in the way.
    pub(crate) fn claim(&mut self, key: &str, call: &Call) -> Claim {
        let fingerprint = hash(&(&call.method, &call.path, &call.body));
        match self.known.entry(key.to_owned()) {
            Entry::Vacant(entry) => {
                entry.insert(Known {
                    fingerprint,
                    answer: None,
                });
                Claim::Taken
            }
            Entry::Occupied(entry) if entry.get().fingerprint != fingerprint => Claim::Mismatch,
            Entry::Occupied(entry) => entry
                .get()
                .answer
                .clone()
                .map_or(Claim::InFlight, Claim::Replay),
        }
    }

    /// Stores the answer of a claimed key.
    pub(crate) fn settle(&mut self, key: &str, answer: Stored) {
        let Some(known) = self.known.get_mut(key) else {
            return;
        };
        known.answer = Some(answer);
        self.finished.push_back(key.to_owned());
        while self.known.len() > MAX_KEYS
            && let Some(oldest) = self.finished.pop_front()
        {
            self.known.remove(&oldest);
        }
    }
}

pub(crate) fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(key: Option<&str>, body: &str) -> Call {
        Call {
            method: "POST".to_owned(),
            path: "/x".to_owned(),
            key: key.map(str::to_owned),
            body: Bytes::from(body.to_owned()),
            ..Call::default()
        }
    }

    #[test]
    fn one_key_is_one_effect_and_without_keys_the_body_tells() {
        let mut effects = Effects::default();
        for request in [
            call(Some("a"), "1"),
            call(Some("b"), "1"),
            call(None, "1"),
            call(None, "2"),
            call(None, "1"),
        ] {
            effects.apply(&request);
        }
        effects.apply(&call(Some("a"), "1"));

        assert_eq!((effects.applied, effects.duplicated), (4, 2));
    }

    #[test]
    fn a_key_is_in_flight_until_settled_then_replays_and_refuses_another_body() {
        let mut keys = Keys::default();
        let answer = Stored {
            status: 200,
            body: Bytes::from_static(b"{}"),
        };
        assert_eq!(keys.claim("k", &call(None, "1")), Claim::Taken);
        assert_eq!(keys.claim("k", &call(None, "1")), Claim::InFlight);

        keys.settle("k", answer.clone());

        assert_eq!(keys.claim("k", &call(None, "1")), Claim::Replay(answer));
        assert_eq!(keys.claim("k", &call(None, "2")), Claim::Mismatch);
    }

    #[test]
    fn the_oldest_answers_are_forgotten_at_the_bound() {
        let mut keys = Keys::default();
        for n in 0..MAX_KEYS + 5 {
            keys.claim(&n.to_string(), &call(None, ""));
            keys.settle(
                &n.to_string(),
                Stored {
                    status: 200,
                    body: Bytes::new(),
                },
            );
        }

        assert_eq!(keys.known.len(), MAX_KEYS);
        assert_eq!(keys.claim("0", &call(None, "")), Claim::Taken);
    }
}
