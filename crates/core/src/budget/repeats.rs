//! How many repeats a budget may spend: a tenth of its attempts of the last minute, and ten more.
//!
//! Retries help while few requests fail and do harm when most do: then they are the load that keeps a server down. A share
//! of the traffic, rather than a number a job, bounds that load whatever the number of jobs, and the free ones let a quiet
//! budget repeat at all. Counts are kept by the second and let go a little late, so the careful side errs. Invariant: at
//! most [`SLOTS`] seconds are remembered.

use std::collections::VecDeque;

use super::Budget;
use crate::job::HoldCause;
use crate::time::Mono;

/// The stretch of time that is counted, in seconds.
const WINDOW_S: u64 = 60;
/// Repeats in that time that need no attempts beside them.
const FREE: u32 = 10;
/// One repeat more for each so many attempts.
const ATTEMPTS_A_REPEAT: u32 = 10;
/// The most seconds that are remembered: the window's, the one that begins and one that is claimed ahead.
#[cfg(test)]
const SLOTS: usize = 62;

/// Whether an attempt is a job's first since it last was told nothing of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Try {
    /// No attempt before it has failed.
    First,
    /// One has.
    Repeat,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    second: u64,
    attempts: u32,
    repeats: u32,
}

impl Slot {
    /// From when on it counts no longer.
    const fn over_at(self) -> Mono {
        let seconds = self.second.saturating_add(WINDOW_S).saturating_add(1);
        Mono::from_millis(seconds.saturating_mul(1_000))
    }
}

/// The attempts of the last minute.
#[derive(Clone, Debug, Default)]
pub(crate) struct Repeats {
    slots: VecDeque<Slot>,
    held_until: Option<Mono>,
}

impl Repeats {
    /// Counts an attempt that starts at `start`.
    pub(crate) fn note(&mut self, attempt: Try, start: Mono) {
        self.forget(start);
        let second = start.as_millis() / 1_000;
        let is_new = self.slots.back().is_none_or(|slot| slot.second < second);
        if is_new {
            self.slots.push_back(Slot {
                second,
                ..Slot::default()
            });
        }
        let Some(slot) = self.slots.back_mut() else {
            return;
        };
        slot.attempts = slot.attempts.saturating_add(1);
        if attempt == Try::Repeat {
            slot.repeats = slot.repeats.saturating_add(1);
        }
    }

    /// Tells from when on one more repeat is within the share; none if it is now.
    pub(crate) fn closed_until(&mut self, now: Mono) -> Option<Mono> {
        self.forget(now);
        let slots = self.slots.iter();
        let (mut attempts, mut repeats) =
            slots.fold((0_u32, 0_u32), |(attempts, repeats), slot| {
                (
                    attempts.saturating_add(slot.attempts),
                    repeats.saturating_add(slot.repeats),
                )
            });
        let mut until = None;
        for slot in &self.slots {
            if repeats < FREE.saturating_add(attempts / ATTEMPTS_A_REPEAT) {
                break;
            }
            attempts = attempts.saturating_sub(slot.attempts);
            repeats = repeats.saturating_sub(slot.repeats);
            until = Some(slot.over_at());
        }
        until
    }

    /// Returns when the hold of the budget ends.
    pub(crate) const fn held_until(&self) -> Option<Mono> {
        self.held_until
    }

    fn forget(&mut self, now: Mono) {
        while self.slots.front().is_some_and(|slot| slot.over_at() <= now) {
            self.slots.pop_front();
        }
    }
}

impl Budget {
    /// Holds the budget if one more repeat is beyond its share. Returns whether that is new.
    pub(crate) fn hold_beyond_share(&mut self, now: Mono) -> bool {
        let Some(until) = self.repeats.closed_until(now) else {
            return false;
        };
        self.repeats.held_until = Some(until);
        self.hold(HoldCause::RetryBudget)
    }

    /// Ends that hold once its time has come. Returns whether it did.
    pub(crate) fn end_share_hold(&mut self, now: Mono) -> bool {
        let is_over = self.repeats.held_until.is_some_and(|until| until <= now);
        if is_over {
            self.repeats.held_until = None;
            self.holds.remove(&HoldCause::RetryBudget);
        }
        is_over
    }

    /// Returns when what is held goes on by itself.
    pub(crate) fn held_until(&self) -> Option<Mono> {
        let is_alone = self.holds.len() == 1 && self.holds.contains(&HoldCause::RetryBudget);
        self.repeats.held_until().filter(|_| is_alone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Mono {
        Mono::from_millis(millis)
    }

    #[test]
    fn ten_a_minute_are_free() {
        let mut repeats = Repeats::default();
        for n in 0..9 {
            repeats.note(Try::Repeat, at(n * 100));
        }
        assert_eq!(repeats.closed_until(at(1_000)), None);

        repeats.note(Try::Repeat, at(5_000));

        // Ten repeats are ten attempts too, which allow one more.
        assert_eq!(repeats.closed_until(at(6_000)), None);
        repeats.note(Try::Repeat, at(6_000));
        assert_eq!(repeats.closed_until(at(6_500)), Some(at(61_000)));
        assert_eq!(repeats.closed_until(at(60_999)), Some(at(61_000)));
        assert_eq!(repeats.closed_until(at(61_000)), None);
    }

    #[test]
    fn a_tenth_of_the_attempts_is_allowed_beside_them() {
        let mut repeats = Repeats::default();
        for _ in 0..100 {
            repeats.note(Try::First, at(0));
        }
        for _ in 0..21 {
            assert_eq!(repeats.closed_until(at(10)), None);
            repeats.note(Try::Repeat, at(10));
        }

        repeats.note(Try::Repeat, at(10));

        assert!(repeats.closed_until(at(10)).is_some());
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut repeats = Repeats::default();
        for n in 0..10_000 {
            repeats.note(Try::First, at(n * 777));
        }

        assert!(repeats.slots.len() <= SLOTS, "{}", repeats.slots.len());
    }
}
