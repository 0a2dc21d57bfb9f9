//! Units that are free again at known instants: what both logs keep.
//!
//! Instants are rounded up to a ten-thousandth of the window, so that about 10,000 are kept at most, whatever the limit.

use std::collections::BTreeMap;

use crate::time::Mono;

/// Instants kept for one window.
const MAX_INSTANTS: u64 = 10_000;

/// Units by the instant at which they are free.
#[derive(Clone, Debug)]
pub(super) struct Closing {
    instants: BTreeMap<Mono, u64>,
    units: u64,
}

impl Closing {
    /// Makes one that holds nothing.
    pub(super) const fn new() -> Self {
        Self {
            instants: BTreeMap::new(),
            units: 0,
        }
    }

    /// Returns the units that are not free yet, as of the last `purge`.
    pub(super) const fn units(&self) -> u64 {
        self.units
    }

    /// Adds units that are free at an instant, for a rule of that window.
    pub(super) fn add(&mut self, units: u64, free_at: Mono, window_ms: u64) {
        let grain = (window_ms / MAX_INSTANTS).max(1);
        let rounded = free_at.as_millis().div_ceil(grain).saturating_mul(grain);
        let slot = self.instants.entry(Mono::from_millis(rounded)).or_default();
        *slot = slot.saturating_add(units);
        self.units = self.units.saturating_add(units);
    }

    /// Lets go of what is free by now.
    pub(super) fn purge(&mut self, now: Mono) {
        while let Some(entry) = self.instants.first_entry() {
            if *entry.key() > now {
                return;
            }
            self.units = self.units.saturating_sub(entry.remove());
        }
    }

    /// Returns the instant by which as many units are free; none if there are not as many.
    pub(super) fn until_free(&self, wanted: u64) -> Option<Mono> {
        let mut left = wanted;
        self.instants.iter().find_map(|(free_at, units)| {
            left = left.saturating_sub(*units);
            (left == 0).then_some(*free_at)
        })
    }

    /// Forgets units, the newest first.
    pub(super) fn forget_newest(&mut self, units: u64) {
        let mut left = units;
        while left > 0 {
            let Some(mut newest) = self.instants.last_entry() else {
                return;
            };
            let part = (*newest.get()).min(left);
            *newest.get_mut() -= part;
            if *newest.get() == 0 {
                newest.remove();
            }
            left -= part;
            self.units = self.units.saturating_sub(part);
        }
    }

    /// Moves every instant by the difference of two windows.
    pub(super) fn change_window(&mut self, old_ms: u64, new_ms: u64) {
        if old_ms == new_ms {
            return;
        }
        for (free_at, units) in std::mem::replace(self, Self::new()).instants {
            self.add(units, free_at.plus(new_ms).minus(old_ms), new_ms);
        }
    }

    /// Returns how many instants are kept.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.instants.len()
    }
}
