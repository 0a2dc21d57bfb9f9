//! The accounts of one server, and the clock of each.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::judge::Judge;
use crate::memory::Pool;
use crate::scenario::Scenario;

/// Accounts at a time; the one that was longest untouched makes room.
const MAX_ACCOUNTS: usize = 256;

/// One account with its clock.
#[derive(Debug)]
pub(crate) struct Account {
    origin: Instant,
    judge: Mutex<Judge>,
}

impl Account {
    fn new(scenario: Scenario, pool: &Arc<Pool>) -> Self {
        Self {
            origin: Instant::now(),
            judge: Mutex::new(Judge::new(scenario, wall_us(), pool)),
        }
    }

    /// Locks the account and then reads its clock, so that instants never go back between two holders.
    pub(crate) fn now(&self) -> (u64, MutexGuard<'_, Judge>) {
        let judge = self.judge.lock().unwrap_or_else(PoisonError::into_inner);
        let now_us = u64::try_from(self.origin.elapsed().as_micros()).unwrap_or(u64::MAX);
        (now_us, judge)
    }

    /// The real instant at which an account's clock shows `us`.
    pub(crate) fn instant(&self, us: u64) -> Instant {
        self.origin + std::time::Duration::from_micros(us)
    }
}

/// The true wall clock.
pub(crate) fn wall_us() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

/// All accounts.
#[derive(Debug, Default)]
pub(crate) struct Accounts {
    pool: Arc<Pool>,
    known: Mutex<HashMap<String, (Instant, Arc<Account>)>>,
}

impl Accounts {
    /// Starts an account or starts it anew; tells whether it is new.
    pub(crate) fn start(&self, name: &str, scenario: Scenario) -> bool {
        let account = Arc::new(Account::new(scenario, &self.pool));
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = known
            .insert(name.to_owned(), (Instant::now(), account))
            .is_none();
        if known.len() > MAX_ACCOUNTS
            && let Some(oldest) = known
                .iter()
                .min_by_key(|(_, (touched, _))| *touched)
                .map(|(name, _)| name.clone())
        {
            known.remove(&oldest);
        }
        is_new
    }

    pub(crate) fn find(&self, name: &str) -> Option<Arc<Account>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (touched, account) = known.get_mut(name)?;
        *touched = Instant::now();
        Some(Arc::clone(account))
    }

    /// Ends an account; tells whether it was there.
    pub(crate) fn end(&self, name: &str) -> bool {
        self.known
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(name)
            .is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_untouched_account_makes_room() {
        let accounts = Accounts::default();
        for n in 0..MAX_ACCOUNTS {
            accounts.start(&n.to_string(), Scenario::default());
        }
        accounts.find("0");

        accounts.start("one more", Scenario::default());

        assert!(accounts.find("0").is_some());
        assert!(accounts.find("1").is_none());
    }
}
