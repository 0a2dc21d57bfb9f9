//! The clocks of the one machine on which tabs and hosts run, as they differ from true time.
//!
//! True time is the simulator's own, and the servers'. The wall clock may be set; the monotonic clock stops while the
//! machine sleeps, or goes on, as systems differ.

use paceline_core::time::Now;

/// The wall clock at the world's start.
pub(crate) const EPOCH_MS: u64 = 1_700_000_000_000;
/// What the monotonic clock of a machine shows at the world's start.
const BOOT_MS: u64 = 100_000;

/// Both clocks of the machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clocks {
    wall_ahead_ms: i64,
    slept_ms: u64,
    stops_asleep: bool,
}

impl Clocks {
    /// Makes clocks that are right.
    pub(crate) const fn new(stops_asleep: bool) -> Self {
        Self {
            wall_ahead_ms: 0,
            slept_ms: 0,
            stops_asleep,
        }
    }

    /// Reads both clocks; a host's monotonic clock began `origin_ms` after the machine's.
    pub(crate) const fn read(&self, true_ms: u64, origin_ms: u64) -> Now {
        let mono = true_ms
            .saturating_add(BOOT_MS)
            .saturating_sub(self.slept_ms);
        let wall = EPOCH_MS
            .saturating_add(true_ms)
            .saturating_add_signed(self.wall_ahead_ms);
        Now::from_millis(mono.saturating_sub(origin_ms), wall)
    }

    /// The machine sleeps.
    pub(crate) const fn sleep(&mut self, millis: u64) {
        if self.stops_asleep {
            self.slept_ms = self.slept_ms.saturating_add(millis);
        }
    }

    /// The wall clock is set, forward or back.
    pub(crate) const fn set_wall(&mut self, by_ms: i64) {
        self.wall_ahead_ms = self.wall_ahead_ms.saturating_add(by_ms);
    }

    /// The monotonic clock stumbles: it shows again what it has shown before.
    pub(crate) const fn stumble(&mut self, millis: u64) {
        self.slept_ms = self.slept_ms.saturating_add(millis);
    }
}
