//! The claims themselves; the name of each function says what is claimed.

mod batches;
mod epochs;
mod records;

use paceline_core::change::Change;
use paceline_core::ids::{BatchNo, Epoch, Seq};
use paceline_core::job::{BudgetRecord, Card, GroupRecord, Record};
use paceline_core::time::Wall;

use super::samples::{
    add, budget_id, changes, empty, full_budget, full_card, full_group, full_record, group_id,
    job_id, plain_card, sending,
};
use super::{Failure, Kit, Verdict, both, expect_eq, expect_error};
use crate::{Opened, ReadBodies, Store, StoreError, Transaction};

type Claim = Result<(), Failure>;
type Body<K> = <<K as Kit>::Store as Store>::Body;

macro_rules! claims {
    ($($group:ident::$name:ident,)*) => {
        pub(super) async fn run<K: Kit>(kit: &K) -> Vec<Verdict> {
            let mut verdicts = Vec::new();
            $(
                let store = kit.fresh(stringify!($name)).await;
                let result = $group::$name(kit, &store).await;
                verdicts.push(Verdict { name: stringify!($name), result });
            )*
            verdicts
        }
    };
}

claims! {
    epochs::each_open_raises_the_epoch_and_keeps_the_birth,
    epochs::nothing_is_written_before_the_first_open,
    epochs::a_stale_epoch_changes_nothing,
    epochs::the_next_owner_fences_the_one_before,
    epochs::an_empty_transaction_compares_the_epoch,
    batches::a_batch_that_exists_is_refused,
    batches::one_refused_change_undoes_the_whole_transaction,
    batches::bodies_must_be_as_many_as_cards,
    batches::bodies_come_back_in_order,
    batches::reads_ride_on_the_commit_that_writes,
    records::records_groups_and_budgets_are_replaced_whole,
    records::changes_apply_in_order,
    records::commits_are_stored_in_the_order_they_were_begun,
    records::dropping_a_batch_takes_its_records_and_keeps_its_names,
    records::names_and_groups_are_forgotten_on_demand,
    records::a_later_open_reads_back_what_was_written,
    batches::twenty_thousand_jobs_are_read_back_in_order,
}

async fn open<S: Store>(store: &S) -> Result<Opened, StoreError> {
    store.open(Wall::from_millis(1_700_000_000_000)).await
}

async fn read<S: Store>(store: &S, batch: u64) -> Result<ReadBodies<S::Body>, StoreError> {
    store.read_bodies(vec![BatchNo(batch)]).await
}

fn numbers<K: Kit>(kit: &K, read: &[(BatchNo, Option<Vec<Body<K>>>)]) -> Option<Vec<u64>> {
    let bodies = read.first()?.1.as_ref()?;
    Some(
        bodies
            .iter()
            .map(|body| kit.number(body).unwrap_or(u64::MAX))
            .collect(),
    )
}

fn plain_cards(batch: u64, jobs: usize) -> Vec<Card> {
    (batch * 256..).take(jobs).map(plain_card).collect()
}

fn add_plain<K: Kit>(kit: &K, epoch: Epoch, batch: u64, jobs: usize) -> Transaction<Body<K>> {
    add(epoch, BatchNo(batch), plain_cards(batch, jobs), |number| {
        kit.body(number)
    })
}

fn is_stale(error: &StoreError, expected: u64, found: u64) -> bool {
    *error == StoreError::StaleEpoch { expected, found }
}

fn is_invalid(error: &StoreError) -> bool {
    matches!(error, StoreError::Invalid(_))
}
