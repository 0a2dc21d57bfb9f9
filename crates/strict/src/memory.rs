//! What all accounts of one server may keep together.
//!
//! Reservations are given back when the account that made them is dropped. A refused reservation is an outcome that the
//! report tells; nothing grows past it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Requests that one account keeps.
pub(crate) const RECORDS_PER_ACCOUNT: usize = 200_000;
/// Requests that all accounts keep together.
const RECORDS: usize = 2_000_000;
/// Bytes of paths, keys and bodies that one account keeps.
const TEXT_PER_ACCOUNT: usize = 64 << 20;
/// Bytes of paths, keys and bodies that all accounts keep together.
const TEXT: usize = 512 << 20;

/// The server's whole store of records, shared by its accounts.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    records: AtomicUsize,
    text: AtomicUsize,
}

/// One account's part of the pool.
#[derive(Debug)]
pub(crate) struct Share {
    pool: Arc<Pool>,
    records: usize,
    text: usize,
}

impl Share {
    pub(crate) fn of(pool: &Arc<Pool>) -> Self {
        Self {
            pool: Arc::clone(pool),
            records: 0,
            text: 0,
        }
    }

    /// Reserves one record, or tells that there is no more room.
    pub(crate) fn record(&mut self) -> bool {
        let fits = self.records < RECORDS_PER_ACCOUNT && reserve(&self.pool.records, 1, RECORDS);
        self.records += usize::from(fits);
        fits
    }

    /// Reserves bytes of text, or tells that there is no more room.
    pub(crate) fn text(&mut self, bytes: usize) -> bool {
        let fits = self.text + bytes <= TEXT_PER_ACCOUNT && reserve(&self.pool.text, bytes, TEXT);
        self.text += if fits { bytes } else { 0 };
        fits
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.pool.records.fetch_sub(self.records, Ordering::Relaxed);
        self.pool.text.fetch_sub(self.text, Ordering::Relaxed);
    }
}

fn reserve(counter: &AtomicUsize, amount: usize, most: usize) -> bool {
    let grown = |used: usize| used.checked_add(amount).filter(|sum| *sum <= most);
    counter
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, grown)
        .is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_account_gives_its_share_back() {
        let pool = Arc::new(Pool::default());
        let mut share = Share::of(&pool);
        assert!(share.record() && share.text(1_000));

        drop(share);

        assert_eq!(pool.records.load(Ordering::Relaxed), 0);
        assert_eq!(pool.text.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn an_account_stops_at_its_own_bound() {
        let mut share = Share::of(&Arc::new(Pool::default()));
        let kept = (0..RECORDS_PER_ACCOUNT + 10)
            .filter(|_| share.record())
            .count();

        assert_eq!(kept, RECORDS_PER_ACCOUNT);
        assert!(!share.text(TEXT_PER_ACCOUNT + 1));
    }
}
