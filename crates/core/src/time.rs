//! The two kinds of time, and the one place that converts between them.
//!
//! Owns [`Mono`] (for waits) and [`Wall`] (for what is stored or said by a server). Does not read any clock:
//! every instant comes in as an argument. Invariant: arithmetic saturates, and an observed instant never goes back.

use serde::{Deserialize, Serialize};

/// An instant of the host's monotonic clock, in whole milliseconds since an arbitrary start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mono(u64);

/// An instant of the wall clock, in whole milliseconds since the Unix epoch.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Wall(u64);

/// Both clocks read at one instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// The monotonic reading.
    pub mono: Mono,
    /// The wall-clock reading.
    pub wall: Wall,
}

impl Mono {
    /// Makes an instant from milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// Returns the milliseconds since the clock's start.
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// Returns the instant `millis` later, saturating.
    pub const fn plus(self, millis: u64) -> Self {
        Self(self.0.saturating_add(millis))
    }

    /// Returns the instant `millis` earlier, saturating at the clock's start.
    pub const fn minus(self, millis: u64) -> Self {
        Self(self.0.saturating_sub(millis))
    }

    /// Returns the milliseconds from `earlier` to this instant, 0 if it is not earlier.
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl Wall {
    /// Makes an instant from milliseconds since the Unix epoch.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// Returns the milliseconds since the Unix epoch.
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// Returns the instant `millis` later, saturating.
    pub const fn plus(self, millis: u64) -> Self {
        Self(self.0.saturating_add(millis))
    }

    /// Returns the instant `millis` earlier, saturating at the epoch.
    pub const fn minus(self, millis: u64) -> Self {
        Self(self.0.saturating_sub(millis))
    }

    /// Returns the milliseconds from `earlier` to this instant, 0 if it is not earlier.
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl Now {
    /// Makes a pair of readings from milliseconds of each clock.
    pub const fn from_millis(mono: u64, wall: u64) -> Self {
        Self {
            mono: Mono(mono),
            wall: Wall(wall),
        }
    }

    /// Converts a wall instant into the monotonic instant at which it is due; one that has passed is due now.
    pub const fn mono_of(self, due: Wall) -> Mono {
        self.mono.plus(due.since(self.wall))
    }

    /// Converts a monotonic instant into the wall instant at which it is due; one that has passed is due now.
    pub const fn wall_of(self, due: Mono) -> Wall {
        self.wall.plus(due.since(self.mono))
    }
}

/// A jump of the wall clock over the monotonic one, above which the machine is taken to have slept.
pub const SUSPEND_MS: u64 = 2_000;

/// What [`Clock::observe`] noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    /// Both clocks went on together.
    Steady,
    /// The wall clock ran ahead of the monotonic one by more than [`SUSPEND_MS`].
    Suspended,
    /// One of the clocks went back and was held.
    WentBack,
}

/// Clamps what comes in, so that time never goes back, and notices suspends.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    last: Option<Now>,
    went_back: u64,
}

impl Clock {
    /// Takes a reading and returns it clamped.
    ///
    /// Only the monotonic clock is clamped: the wall clock may be set back, which is counted and told.
    pub fn observe(&mut self, now: Now) -> (Now, Passage) {
        let Some(last) = self.last else {
            self.last = Some(now);
            return (now, Passage::Steady);
        };
        let clamped = Now {
            mono: now.mono.max(last.mono),
            wall: now.wall,
        };
        self.last = Some(clamped);
        if now.mono < last.mono || now.wall < last.wall {
            self.went_back = self.went_back.saturating_add(1);
            return (clamped, Passage::WentBack);
        }
        let ahead = now
            .wall
            .since(last.wall)
            .saturating_sub(clamped.mono.since(last.mono));
        if ahead > SUSPEND_MS {
            return (clamped, Passage::Suspended);
        }
        (clamped, Passage::Steady)
    }

    /// Returns how often a clock went back.
    pub const fn went_back(&self) -> u64 {
        self.went_back
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn monotonic_time_never_goes_back() {
        let mut clock = Clock::default();
        clock.observe(Now::from_millis(100, 1_000));

        let (now, passage) = clock.observe(Now::from_millis(90, 1_001));

        assert_eq!(now, Now::from_millis(100, 1_001));
        assert_eq!(passage, Passage::WentBack);
        assert_eq!(clock.went_back(), 1);
    }

    #[test]
    fn wall_running_ahead_is_a_suspend() {
        let mut clock = Clock::default();
        clock.observe(Now::from_millis(100, 1_000));

        assert_eq!(
            clock.observe(Now::from_millis(200, 3_100)).1,
            Passage::Steady
        );
        assert_eq!(
            clock.observe(Now::from_millis(300, 3_600_000)).1,
            Passage::Suspended
        );
    }

    #[test]
    fn an_instant_that_has_passed_is_due_now() {
        let now = Now::from_millis(50, 1_000);

        assert_eq!(now.mono_of(Wall::from_millis(10)), Mono::from_millis(50));
        assert_eq!(now.mono_of(Wall::from_millis(1_030)), Mono::from_millis(80));
    }
}
