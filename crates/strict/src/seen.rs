//! What the judge says about a log of arrivals: the fullest window.
//!
//! Pure functions over exact instants; they share nothing with the code that admits, so that a mistake there is seen
//! here.

use crate::scenario::{Algorithm, Anchor, Limit};

/// The most units in any closed window: an entry exactly `window_us` older than another is still in its window.
pub(crate) fn fullest_window(log: &[(u64, u64)], window_us: u64) -> u64 {
    let (mut first, mut units, mut most) = (0, 0, 0);
    for &(at_us, cost) in log {
        units += cost;
        while log[first].0 + window_us < at_us {
            units -= log[first].1;
            first += 1;
        }
        most = most.max(units);
    }
    most
}

/// The most units in one of the server's own windows, for a limit that has such; `wall_us` is its clock at instant 0.
pub(crate) fn fullest_own_window(log: &[(u64, u64)], limit: &Limit, wall_us: u64) -> Option<u64> {
    if limit.algorithm != Algorithm::FixedWindow {
        return None;
    }
    let window_us = limit.window_ms * 1_000;
    let (mut start, mut units, mut most) = (None, 0, 0);
    for &(at_us, cost) in log {
        let wall = wall_us + at_us;
        if start.is_none_or(|start| wall >= start + window_us) {
            start = Some(match limit.anchor {
                Anchor::Clock => wall - wall % window_us,
                Anchor::First => wall,
            });
            units = 0;
        }
        units += cost;
        most = most.max(units);
    }
    Some(most)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Looks at each entry and adds up all that lie within a window after it.
    fn naive(log: &[(u64, u64)], window_us: u64) -> u64 {
        let from = |start: u64| {
            log.iter()
                .filter(move |(at, _)| (start..=start + window_us).contains(at))
        };
        log.iter()
            .map(|(start, _)| from(*start).map(|(_, cost)| cost).sum())
            .max()
            .unwrap_or(0)
    }

    #[test]
    fn an_entry_exactly_a_window_old_still_counts() {
        assert_eq!(fullest_window(&[(0, 1), (1_000, 1)], 1_000), 2);
        assert_eq!(fullest_window(&[(0, 1), (1_001, 1)], 1_000), 1);
    }

    #[test]
    fn an_empty_log_has_an_empty_window() {
        assert_eq!(fullest_window(&[], 1_000), 0);
    }

    proptest! {
        #[test]
        fn the_fullest_window_is_the_one_that_counting_each_finds(
            mut log in prop::collection::vec((0u64..5_000, 0u64..4), 0..80),
            window_us in 1u64..2_000,
        ) {
            log.sort_by_key(|(at, _)| *at);

            prop_assert_eq!(fullest_window(&log, window_us), naive(&log, window_us));
        }
    }
}
