use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use paceline_core::change::Change;
use paceline_core::ids::{BatchNo, Epoch, Seq};
use paceline_core::time::Wall;

use super::{MemoryStore, Operation};
use crate::conformance::samples::{changes, full_record, sending};
use crate::conformance::{self, Kit, Verdict};
use crate::{ReadBodies, Store, StoreError, Transaction};

struct MemoryKit;

impl Kit for MemoryKit {
    type Store = MemoryStore<u64>;

    async fn fresh(&self, _: &str) -> Self::Store {
        MemoryStore::new()
    }

    async fn again(&self, store: &Self::Store) -> Self::Store {
        store.clone()
    }

    fn body(&self, number: u64) -> u64 {
        number
    }

    fn number(&self, body: &u64) -> Option<u64> {
        Some(*body)
    }
}

fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

fn at_once<F: Future>(future: F) -> F::Output {
    match poll(pin!(future)) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("the memory store answers at once unless it is held"),
    }
}

fn opened() -> MemoryStore<u64> {
    let store = MemoryStore::new();
    at_once(store.open(Wall::from_millis(1))).unwrap();
    store
}

fn put(number: u64) -> Transaction<u64> {
    changes(
        Epoch(1),
        vec![Change::PutRecord {
            seq: Seq::new(BatchNo(1), 0),
            record: sending(number),
        }],
    )
}

fn commit(
    store: &MemoryStore<u64>,
    transaction: Transaction<u64>,
) -> Result<ReadBodies<u64>, StoreError> {
    at_once(store.commit(transaction))
}

#[test]
fn memory_store_conforms() {
    let verdicts = at_once(conformance::run(&MemoryKit));

    let failed: Vec<&Verdict> = verdicts
        .iter()
        .filter(|verdict| verdict.result.is_err())
        .collect();
    assert!(failed.is_empty(), "{failed:#?}");
    assert!(
        verdicts.len() >= 17,
        "only {} claims were tried",
        verdicts.len()
    );
}

#[test]
fn injected_failures_hit_their_operation_once_and_change_nothing() {
    let store = opened();
    store.fail_next(Operation::Commit, StoreError::Full("test".to_owned()));
    store.fail_next(Operation::Open, StoreError::Blocked);
    store.fail_next(Operation::Read, StoreError::Transient("test".to_owned()));

    assert_eq!(
        at_once(store.open(Wall::from_millis(2))).unwrap_err(),
        StoreError::Blocked
    );
    assert_eq!(
        commit(&store, put(1)),
        Err(StoreError::Full("test".to_owned()))
    );
    assert!(at_once(store.read_bodies(vec![BatchNo(1)])).is_err());

    assert_eq!(
        (store.epoch(), store.commits(), store.stored().records.len()),
        (Epoch(1), 0, 0)
    );
    assert_eq!(commit(&store, put(1)), Ok(vec![]));
}

#[test]
fn held_commits_are_applied_in_order_when_released() {
    let store = opened();
    store.hold_commits();
    let (mut first, mut second) = (pin!(store.commit(put(1))), pin!(store.commit(put(2))));
    assert!(poll(first.as_mut()).is_pending());
    assert!(poll(second.as_mut()).is_pending());

    assert!(store.release_one());

    assert_eq!(poll(first.as_mut()), Poll::Ready(Ok(vec![])));
    assert!(poll(second.as_mut()).is_pending());
    assert_eq!((store.pending(), store.commits()), (1, 1));
    store.release_all();
    assert_eq!(poll(second.as_mut()), Poll::Ready(Ok(vec![])));
    assert_eq!(
        store.stored().records,
        vec![(Seq::new(BatchNo(1), 0), sending(2))]
    );
}

#[test]
fn crash_drops_what_is_pending_and_keeps_what_is_committed() {
    let store = opened();
    commit(&store, put(1)).unwrap();
    store.hold_commits();
    let mut lost = pin!(store.commit(put(2)));
    assert!(poll(lost.as_mut()).is_pending());

    store.crash();

    assert!(matches!(
        poll(lost.as_mut()),
        Poll::Ready(Err(StoreError::Transient(_)))
    ));
    let restarted = at_once(store.clone().open(Wall::from_millis(9))).unwrap();
    assert_eq!(restarted.epoch, Epoch(2));
    assert_eq!(
        restarted.stored.records,
        vec![(Seq::new(BatchNo(1), 0), sending(1))]
    );
}

#[test]
fn commit_held_across_a_new_owner_is_stale_when_released() {
    let store = opened();
    store.hold_commits();
    let mut late = pin!(store.commit(put(1)));
    assert!(poll(late.as_mut()).is_pending());
    at_once(store.open(Wall::from_millis(2))).unwrap();

    store.release_all();

    assert_eq!(
        poll(late.as_mut()),
        Poll::Ready(Err(StoreError::StaleEpoch {
            expected: 1,
            found: 2
        }))
    );
}

#[test]
fn lost_answer_is_an_error_of_a_stored_commit() {
    let store = opened();
    store.lose_next_answer();

    let result = commit(
        &store,
        changes(
            Epoch(1),
            vec![Change::PutRecord {
                seq: Seq::new(BatchNo(1), 0),
                record: full_record(),
            }],
        ),
    );

    assert!(matches!(result, Err(StoreError::Transient(_))));
    assert_eq!(store.stored().records.len(), 1);
}
