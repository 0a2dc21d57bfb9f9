//! Batches of jobs and their bodies.

use super::*;

pub(super) async fn a_batch_that_exists_is_refused<K: Kit>(kit: &K, store: &K::Store) -> Claim {
    let epoch = open(store).await?.epoch;
    store.commit(add_plain(kit, epoch, 1, 2)).await?;
    let mut twice = add_plain(kit, epoch, 2, 1);
    twice.changes.extend(add_plain(kit, epoch, 2, 1).changes);

    let again = store.commit(add_plain(kit, epoch, 1, 1)).await;
    let twice = store.commit(twice).await;

    expect_error("the second add", &again, is_invalid)?;
    expect_error("two adds at once", &twice, is_invalid)?;
    let opened = open(store).await?;
    expect_eq(
        "batches",
        &vec![(BatchNo(1), plain_cards(1, 2))],
        &opened.stored.batches,
    )?;
    expect_eq(
        "bodies",
        &Some(vec![256, 257]),
        &numbers(kit, &read(store, 1).await?),
    )
}

pub(super) async fn one_refused_change_undoes_the_whole_transaction<K: Kit>(
    kit: &K,
    store: &K::Store,
) -> Claim {
    let epoch = open(store).await?.epoch;
    store.commit(add_plain(kit, epoch, 7, 1)).await?;
    let before = open(store).await?;
    let mut transaction = add_plain(kit, before.epoch, 6, 3);
    transaction.changes.extend([
        Change::PutRecord {
            seq: Seq::new(BatchNo(7), 0),
            record: full_record(),
        },
        Change::PutGroup {
            group: group_id("g"),
            record: full_group(),
        },
        Change::PutBudget {
            budget: budget_id("b"),
            record: full_budget(),
        },
        Change::DropBatch {
            batch: BatchNo(5),
            ids: vec![job_id(1)],
            at: Wall::from_millis(1),
        },
    ]);
    let refused = add_plain(kit, before.epoch, 7, 1);
    transaction.changes.extend(refused.changes);
    transaction.bodies.extend(refused.bodies);

    let result = store.commit(transaction).await;

    expect_error("commit", &result, is_invalid)?;
    expect_eq("stored", &before.stored, &open(store).await?.stored)?;
    expect_eq(
        "bodies of batch 6",
        &None,
        &numbers(kit, &read(store, 6).await?),
    )
}

pub(super) async fn bodies_must_be_as_many_as_cards<K: Kit>(kit: &K, store: &K::Store) -> Claim {
    let epoch = open(store).await?.epoch;
    let mut one_less = add_plain(kit, epoch, 1, 3);
    one_less.bodies[0].1.pop();
    let mut none = add_plain(kit, epoch, 1, 3);
    none.bodies.clear();
    let mut another = add_plain(kit, epoch, 1, 3);
    another.bodies[0].0 = BatchNo(2);
    let wrong = [
        one_less,
        none,
        another,
        add_plain(kit, epoch, 1, 0),
        add_plain(kit, epoch, 1, 257),
    ];

    for (index, transaction) in wrong.into_iter().enumerate() {
        let result = store.commit(transaction).await;
        expect_error(&format!("transaction {index}"), &result, is_invalid)?;
    }
    expect_eq(
        "stored batches",
        &0,
        &open(store).await?.stored.batches.len(),
    )
}

pub(super) async fn bodies_come_back_in_order<K: Kit>(kit: &K, store: &K::Store) -> Claim {
    let epoch = open(store).await?.epoch;
    store.commit(add_plain(kit, epoch, 1, 256)).await?;
    store.commit(add_plain(kit, epoch, 2, 3)).await?;

    let read = store
        .read_bodies(vec![BatchNo(2), BatchNo(9), BatchNo(1)])
        .await?;

    let batches: Vec<_> = read.iter().map(|(batch, _)| *batch).collect();
    expect_eq(
        "batches",
        &vec![BatchNo(2), BatchNo(9), BatchNo(1)],
        &batches,
    )?;
    expect_eq(
        "batch 2",
        &Some((512..515).collect()),
        &numbers(kit, &read[..1]),
    )?;
    expect_eq("batch 9", &None, &numbers(kit, &read[1..2]))?;
    expect_eq(
        "batch 1",
        &Some((256..512).collect()),
        &numbers(kit, &read[2..]),
    )
}

pub(super) async fn reads_ride_on_the_commit_that_writes<K: Kit>(
    kit: &K,
    store: &K::Store,
) -> Claim {
    let epoch = open(store).await?.epoch;
    store.commit(add_plain(kit, epoch, 1, 2)).await?;
    let drop = Change::DropBatch {
        batch: BatchNo(1),
        ids: Vec::new(),
        at: Wall::from_millis(5),
    };
    let mut transaction = add_plain(kit, epoch, 2, 2);
    transaction.changes.push(drop);
    transaction.read_bodies = vec![BatchNo(1), BatchNo(2)];

    let read = store.commit(transaction).await?;

    expect_eq(
        "a batch dropped by the commit",
        &None,
        &numbers(kit, &read[..1]),
    )?;
    expect_eq(
        "a batch added by the commit",
        &Some(vec![512, 513]),
        &numbers(kit, &read[1..]),
    )
}

pub(super) async fn twenty_thousand_jobs_are_read_back_in_order<K: Kit>(
    kit: &K,
    store: &K::Store,
) -> Claim {
    let epoch = open(store).await?.epoch;
    let mut transaction = empty(epoch);
    for batch in 1..=79 {
        let jobs = if batch == 79 { 32 } else { 256 };
        let one = add_plain(kit, epoch, batch, jobs);
        transaction.changes.extend(one.changes);
        transaction.bodies.extend(one.bodies);
    }
    store.commit(transaction).await?;
    let records: Vec<_> = (0..2_000)
        .map(|n| (Seq::from_u64(256 + n * 10), sending(n)))
        .collect();
    let put = |(seq, record): &(Seq, Record)| Change::PutRecord {
        seq: *seq,
        record: record.clone(),
    };
    store
        .commit(changes(epoch, records.iter().map(put).collect()))
        .await?;

    let stored = open(&kit.again(store).await).await?.stored;

    let names: Vec<_> = stored
        .batches
        .iter()
        .flat_map(|(_, cards)| cards)
        .map(|card| card.id.clone())
        .collect();
    expect_eq("names", &(256..20_256).map(job_id).collect(), &names)?;
    expect_eq("records", &records, &stored.records)
}
