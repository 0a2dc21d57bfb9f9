//! Whether a budget has credentials, as far as the core needs to know. What they are is known to the driver alone.
//!
//! Owns which of them an attempt was sent with, so that a 401 for old ones says nothing of the new. Invariant: the first
//! 401 for one set of credentials tells what is wrong with them; fresh ones that are refused at once are never taken for
//! ones that have expired, which would ask for others without end.

use super::Budget;
use crate::io::{Cause, Wanted};
use crate::job::HoldCause;

/// The credentials of one budget.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Access {
    is_given: bool,
    have_worked: bool,
    generation: u32,
}

impl Access {
    /// Tells whether there are any.
    pub(crate) const fn is_given(self) -> bool {
        self.is_given
    }

    /// Returns the number of the present ones, to be kept with what is sent with them.
    pub(crate) const fn generation(self) -> u32 {
        self.generation
    }

    /// Notes that there are new ones.
    pub(crate) const fn give(&mut self) {
        self.is_given = true;
        self.have_worked = false;
        self.generation = self.generation.saturating_add(1);
    }

    /// Notes that there are none any more.
    pub(crate) const fn take_away(&mut self) {
        self.is_given = false;
        self.have_worked = false;
        self.generation = self.generation.saturating_add(1);
    }

    /// Notes that the server took what was sent with these.
    pub(crate) const fn worked(&mut self, generation: u32) {
        if generation == self.generation {
            self.have_worked = true;
        }
    }

    /// Notes a 401 for what was sent with these. Returns what is wanted, unless there are newer ones by now.
    pub(crate) fn refused(self, generation: u32) -> Option<Wanted> {
        let wanted = match (self.is_given, self.have_worked) {
            (false, _) => Wanted::Missing,
            (true, true) => Wanted::Expired,
            (true, false) => Wanted::Refused,
        };
        (generation == self.generation).then_some(wanted)
    }
}

impl Budget {
    /// Takes note of new credentials. What waited for them goes on, with one request first. Returns whether it did wait.
    pub(crate) fn give_credentials(&mut self) -> bool {
        self.access.give();
        let has_waited = self.holds.remove(&HoldCause::Credentials);
        if has_waited {
            self.slow_start = Some(1);
        }
        has_waited
    }

    /// Tells whether nothing may be sent because its credentials are not there.
    pub(crate) const fn lacks_credentials(&self) -> bool {
        self.config.needs_credentials() && !self.access.is_given()
    }

    /// Why what is held waits.
    pub(crate) fn held_cause(&self) -> Cause {
        if self.holds.contains(&HoldCause::Credentials) {
            Cause::Credentials
        } else {
            Cause::Held
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_worked_has_expired_and_what_has_not_is_refused() {
        let mut access = Access::default();
        assert_eq!(access.refused(0), Some(Wanted::Missing));

        access.give();
        assert_eq!(access.refused(1), Some(Wanted::Refused));

        access.worked(1);
        assert_eq!(access.refused(1), Some(Wanted::Expired));
    }

    #[test]
    fn a_401_for_older_credentials_says_nothing_of_newer_ones() {
        let mut access = Access::default();
        access.give();
        access.give();

        access.worked(1);

        assert_eq!(access.refused(1), None);
        assert_eq!(access.refused(2), Some(Wanted::Refused));
    }
}
