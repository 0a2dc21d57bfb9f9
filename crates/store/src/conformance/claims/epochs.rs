//! Who may write.

use super::*;

pub(super) async fn each_open_raises_the_epoch_and_keeps_the_birth<K: Kit>(
    kit: &K,
    store: &K::Store,
) -> Claim {
    let first = store.open(Wall::from_millis(1_000)).await?;
    let second = store.open(Wall::from_millis(2_000)).await?;
    let third = kit
        .again(store)
        .await
        .open(Wall::from_millis(3_000))
        .await?;

    let epochs = [first.epoch, second.epoch, third.epoch];
    expect_eq("epochs", &[Epoch(1), Epoch(2), Epoch(3)], &epochs)?;
    let births = [first.birth, second.birth, third.birth];
    expect_eq("births", &[Wall::from_millis(1_000); 3], &births)
}

pub(super) async fn nothing_is_written_before_the_first_open<K: Kit>(
    kit: &K,
    store: &K::Store,
) -> Claim {
    let none = store.commit(add_plain(kit, Epoch(0), 1, 1)).await;
    let guessed = store.commit(add_plain(kit, Epoch(1), 1, 1)).await;

    expect_error("epoch 0", &none, |error| is_stale(error, 0, 0))?;
    expect_error("epoch 1", &guessed, |error| is_stale(error, 1, 0))?;
    expect_eq(
        "stored batches",
        &0,
        &open(store).await?.stored.batches.len(),
    )
}

pub(super) async fn a_stale_epoch_changes_nothing<K: Kit>(kit: &K, store: &K::Store) -> Claim {
    let epoch = open(store).await?.epoch;
    store.commit(add_plain(kit, epoch, 1, 2)).await?;
    let before = open(store).await?;

    let record = Change::PutRecord {
        seq: Seq::new(BatchNo(1), 0),
        record: full_record(),
    };
    let put = store.commit(changes(epoch, vec![record])).await;
    let added = store.commit(add_plain(kit, epoch, 2, 1)).await;
    let from_the_future = store.commit(add_plain(kit, Epoch(99), 3, 1)).await;

    expect_error("put", &put, |error| is_stale(error, 1, 2))?;
    expect_error("add", &added, |error| is_stale(error, 1, 2))?;
    expect_error("future", &from_the_future, |error| is_stale(error, 99, 2))?;
    expect_eq("stored", &before.stored, &open(store).await?.stored)
}

pub(super) async fn the_next_owner_fences_the_one_before<K: Kit>(
    kit: &K,
    store: &K::Store,
) -> Claim {
    let first = open(store).await?.epoch;
    let other = kit.again(store).await;
    let second = open(&other).await?.epoch;

    let late = store.commit(add_plain(kit, first, 1, 1)).await;
    other.commit(add_plain(kit, second, 1, 1)).await?;

    expect_error("the first owner", &late, |error| is_stale(error, 1, 2))
}

pub(super) async fn an_empty_transaction_compares_the_epoch<K: Kit>(
    _: &K,
    store: &K::Store,
) -> Claim {
    let epoch = open(store).await?.epoch;

    let current = store.commit(empty(epoch)).await?;
    let stale = store.commit(empty(epoch.next())).await;

    expect_eq("bodies read", &0, &current.len())?;
    expect_error("another epoch", &stale, |error| is_stale(error, 2, 1))
}
