//! Counting up and down, saturating: one word for both ways of every count that is kept.

/// Which way to count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Count {
    Up,
    Down,
}

impl Count {
    pub(crate) fn apply(self, count: &mut u32) {
        *count = match self {
            Self::Up => count.saturating_add(1),
            Self::Down => count.saturating_sub(1),
        };
    }

    pub(crate) fn apply_units(self, count: &mut u64, units: u64) {
        *count = match self {
            Self::Up => count.saturating_add(units),
            Self::Down => count.saturating_sub(units),
        };
    }
}
