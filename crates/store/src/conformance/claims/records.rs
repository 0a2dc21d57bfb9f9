//! What changes: records, groups, budgets, and what is removed.

use super::*;

pub(super) async fn records_groups_and_budgets_are_replaced_whole<K: Kit>(
    _: &K,
    store: &K::Store,
) -> Claim {
    let epoch = open(store).await?.epoch;
    let put = |record, group, budget| {
        vec![
            Change::PutRecord {
                seq: Seq::new(BatchNo(1), 5),
                record,
            },
            Change::PutGroup {
                group: group_id("g"),
                record: group,
            },
            Change::PutBudget {
                budget: budget_id("b"),
                record: budget,
            },
        ]
    };
    store
        .commit(changes(
            epoch,
            put(full_record(), full_group(), full_budget()),
        ))
        .await?;

    let second = put(
        Record::fresh(),
        GroupRecord::default(),
        BudgetRecord::default(),
    );
    store.commit(changes(epoch, second)).await?;

    let stored = open(store).await?.stored;
    expect_eq(
        "records",
        &vec![(Seq::new(BatchNo(1), 5), Record::fresh())],
        &stored.records,
    )?;
    expect_eq(
        "groups",
        &vec![(group_id("g"), GroupRecord::default())],
        &stored.groups,
    )?;
    expect_eq(
        "budgets",
        &vec![(budget_id("b"), BudgetRecord::default())],
        &stored.budgets,
    )
}

pub(super) async fn changes_apply_in_order<K: Kit>(kit: &K, store: &K::Store) -> Claim {
    let epoch = open(store).await?.epoch;
    store.commit(add_plain(kit, epoch, 1, 1)).await?;
    let seq = Seq::new(BatchNo(1), 0);
    let at = Wall::from_millis(5);
    let mut transaction = add_plain(kit, epoch, 1, 2);
    let add_again = std::mem::replace(
        &mut transaction.changes,
        vec![
            Change::PutGroup {
                group: group_id("g"),
                record: full_group(),
            },
            Change::DropGroup {
                group: group_id("g"),
            },
            Change::PutRecord {
                seq,
                record: full_record(),
            },
            Change::DropBatch {
                batch: BatchNo(1),
                ids: vec![job_id(1)],
                at,
            },
        ],
    );
    transaction.changes.extend(add_again);
    transaction
        .changes
        .extend([1, 2].map(|n| Change::PutRecord {
            seq,
            record: sending(n),
        }));

    store.commit(transaction).await?;

    let stored = open(store).await?.stored;
    expect_eq("groups", &0, &stored.groups.len())?;
    expect_eq(
        "batches",
        &vec![(BatchNo(1), plain_cards(1, 2))],
        &stored.batches,
    )?;
    expect_eq("records", &vec![(seq, sending(2))], &stored.records)?;
    expect_eq(
        "dropped",
        &vec![(BatchNo(1), vec![job_id(1)], at)],
        &stored.dropped,
    )
}

pub(super) async fn commits_are_stored_in_the_order_they_were_begun<K: Kit>(
    _: &K,
    store: &K::Store,
) -> Claim {
    let epoch = open(store).await?.epoch;
    let seq = Seq::new(BatchNo(1), 0);
    let put = |number| {
        changes(
            epoch,
            vec![Change::PutRecord {
                seq,
                record: sending(number),
            }],
        )
    };

    let (first, second) = both(store.commit(put(1)), store.commit(put(2))).await;

    first?;
    second?;
    expect_eq(
        "records",
        &vec![(seq, sending(2))],
        &open(store).await?.stored.records,
    )
}

pub(super) async fn dropping_a_batch_takes_its_records_and_keeps_its_names<K: Kit>(
    kit: &K,
    store: &K::Store,
) -> Claim {
    let epoch = open(store).await?.epoch;
    for batch in [6, 7, 8] {
        store.commit(add_plain(kit, epoch, batch, 256)).await?;
    }
    let kept = [Seq::new(BatchNo(6), 255), Seq::new(BatchNo(8), 0)];
    let gone = [
        Seq::new(BatchNo(7), 0),
        Seq::new(BatchNo(7), 100),
        Seq::new(BatchNo(7), 255),
    ];
    let put = |seq: &Seq| Change::PutRecord {
        seq: *seq,
        record: full_record(),
    };
    store
        .commit(changes(epoch, kept.iter().chain(&gone).map(put).collect()))
        .await?;
    let (ids, at) = (vec![job_id(2), job_id(1)], Wall::from_millis(77));

    let drop = Change::DropBatch {
        batch: BatchNo(7),
        ids: ids.clone(),
        at,
    };
    store.commit(changes(epoch, vec![drop])).await?;

    let stored = open(store).await?.stored;
    let batches: Vec<_> = stored.batches.iter().map(|(batch, _)| *batch).collect();
    expect_eq("batches", &vec![BatchNo(6), BatchNo(8)], &batches)?;
    expect_eq(
        "records",
        &kept.map(|seq| (seq, full_record())).to_vec(),
        &stored.records,
    )?;
    expect_eq("dropped", &vec![(BatchNo(7), ids, at)], &stored.dropped)?;
    expect_eq("bodies", &None, &numbers(kit, &read(store, 7).await?))
}

pub(super) async fn names_and_groups_are_forgotten_on_demand<K: Kit>(
    _: &K,
    store: &K::Store,
) -> Claim {
    let epoch = open(store).await?.epoch;
    let drop = |batch| Change::DropBatch {
        batch: BatchNo(batch),
        ids: vec![job_id(batch)],
        at: Wall::from_millis(5),
    };
    let group = |name| Change::PutGroup {
        group: group_id(name),
        record: full_group(),
    };
    store
        .commit(changes(
            epoch,
            vec![drop(1), drop(2), group("a"), group("b")],
        ))
        .await?;

    let forget = vec![
        Change::ForgetIds { batch: BatchNo(1) },
        Change::DropGroup {
            group: group_id("a"),
        },
    ];
    store.commit(changes(epoch, forget)).await?;

    let stored = open(store).await?.stored;
    expect_eq(
        "dropped",
        &vec![(BatchNo(2), vec![job_id(2)], Wall::from_millis(5))],
        &stored.dropped,
    )?;
    expect_eq(
        "groups",
        &vec![(group_id("b"), full_group())],
        &stored.groups,
    )
}

pub(super) async fn a_later_open_reads_back_what_was_written<K: Kit>(
    kit: &K,
    store: &K::Store,
) -> Claim {
    let epoch = open(store).await?.epoch;
    let cards = vec![full_card(256), plain_card(257)];
    let records = vec![
        (Seq::new(BatchNo(1), 0), full_record()),
        (Seq::new(BatchNo(1), 1), Record::fresh()),
        (Seq::new(BatchNo(1 << 44), 255), sending(3)),
    ];
    let mut transaction = add(epoch, BatchNo(1), cards.clone(), |number| kit.body(number));
    let put = |(seq, record): &(Seq, Record)| Change::PutRecord {
        seq: *seq,
        record: record.clone(),
    };
    transaction.changes.extend(records.iter().map(put));
    transaction.changes.extend([
        Change::PutGroup {
            group: group_id("a\u{e9}"),
            record: full_group(),
        },
        Change::PutGroup {
            group: group_id("b"),
            record: GroupRecord::default(),
        },
        Change::PutBudget {
            budget: budget_id("a"),
            record: full_budget(),
        },
        Change::PutBudget {
            budget: budget_id("b"),
            record: BudgetRecord::default(),
        },
    ]);
    store.commit(transaction).await?;

    let other = kit.again(store).await;
    let opened = open(&other).await?;

    let stored = opened.stored;
    expect_eq("quarantined", &0, &opened.quarantined)?;
    expect_eq("batches", &vec![(BatchNo(1), cards)], &stored.batches)?;
    expect_eq("records", &records, &stored.records)?;
    let groups = vec![
        (group_id("a\u{e9}"), full_group()),
        (group_id("b"), GroupRecord::default()),
    ];
    expect_eq("groups", &groups, &stored.groups)?;
    let budgets = vec![
        (budget_id("a"), full_budget()),
        (budget_id("b"), BudgetRecord::default()),
    ];
    expect_eq("budgets", &budgets, &stored.budgets)?;
    expect_eq(
        "bodies",
        &Some(vec![256, 257]),
        &numbers(kit, &read(&other, 1).await?),
    )
}
