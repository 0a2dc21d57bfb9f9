//! What the judge says about a log of arrivals: the fullest window.
//!
//! Works over exact instants and shares nothing with the code that admits, so that a mistake there is seen here. A log only
//! grows, so each look at it costs what is new since the last one.

use crate::scenario::{Algorithm, Anchor, Limit};

/// Instants in microseconds with their units, in order.
pub(crate) type Arrivals = [(u64, u64)];

/// The fullest window of one limit so far.
#[derive(Debug)]
pub(crate) struct Fullest {
    any: AnyWindow,
    own: Option<OwnWindow>,
}

impl Fullest {
    /// Begins at an index of the log; `wall_us` is the server's clock at instant 0.
    pub(crate) fn from(index: usize, limit: &Limit, wall_us: u64) -> Self {
        let window_us = limit.window_ms * 1_000;
        let own = OwnWindow {
            window_us,
            anchor: limit.anchor,
            wall_us,
            next: index,
            start: None,
            units: 0,
            most: 0,
        };
        Self {
            any: AnyWindow {
                window_us,
                first: index,
                next: index,
                units: 0,
                most: 0,
            },
            own: (limit.algorithm == Algorithm::FixedWindow).then_some(own),
        }
    }

    /// The most units in any closed window: an entry exactly a window older than another is still in its window.
    pub(crate) fn in_any(&mut self, log: &Arrivals) -> u64 {
        self.any.most(log)
    }

    /// The most units in one of the server's own windows, for a limit that has such.
    pub(crate) fn in_own(&mut self, log: &Arrivals) -> Option<u64> {
        self.own.as_mut().map(|own| own.most(log))
    }
}

#[derive(Debug)]
struct AnyWindow {
    window_us: u64,
    /// The oldest entry that is in a window with the newest.
    first: usize,
    next: usize,
    units: u64,
    most: u64,
}

impl AnyWindow {
    fn most(&mut self, log: &Arrivals) -> u64 {
        while let Some(&(at_us, cost)) = log.get(self.next) {
            self.units += cost;
            while log[self.first].0 + self.window_us < at_us {
                self.units -= log[self.first].1;
                self.first += 1;
            }
            self.most = self.most.max(self.units);
            self.next += 1;
        }
        self.most
    }
}

#[derive(Debug)]
struct OwnWindow {
    window_us: u64,
    anchor: Anchor,
    wall_us: u64,
    next: usize,
    start: Option<u64>,
    units: u64,
    most: u64,
}

impl OwnWindow {
    fn most(&mut self, log: &Arrivals) -> u64 {
        while let Some(&(at_us, cost)) = log.get(self.next) {
            let wall = self.wall_us + at_us;
            if self
                .start
                .is_none_or(|start| wall >= start + self.window_us)
            {
                self.start = Some(self.start_of(wall));
                self.units = 0;
            }
            self.units += cost;
            self.most = self.most.max(self.units);
            self.next += 1;
        }
        self.most
    }

    fn start_of(&self, wall: u64) -> u64 {
        match self.anchor {
            Anchor::Clock => wall - wall % self.window_us,
            Anchor::First => wall,
        }
    }
}

/// The most units in any closed window of a whole log.
#[cfg(test)]
pub(crate) fn fullest_window(log: &Arrivals, window_us: u64) -> u64 {
    AnyWindow {
        window_us,
        first: 0,
        next: 0,
        units: 0,
        most: 0,
    }
    .most(log)
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
    fn own_windows_are_counted_from_where_the_server_begins_them() {
        let log = [(900, 1), (1_100, 1), (1_900, 1), (2_000, 1)];
        let own = |anchor| {
            let start = None;
            OwnWindow {
                window_us: 1_000,
                anchor,
                wall_us: 5_000,
                next: 0,
                start,
                units: 0,
                most: 0,
            }
            .most(&log)
        };

        assert_eq!(own(Anchor::Clock), 2);
        assert_eq!(own(Anchor::First), 2);
        assert_eq!(fullest_window(&log, 1_000), 3);
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

        #[test]
        fn looking_often_finds_the_same_as_looking_once(
            mut log in prop::collection::vec((0u64..5_000, 0u64..4), 0..80),
            looks in prop::collection::vec(0usize..80, 0..5),
        ) {
            log.sort_by_key(|(at, _)| *at);
            let mut fullest = AnyWindow { window_us: 700, first: 0, next: 0, units: 0, most: 0 };

            for until in looks {
                fullest.most(&log[..until.min(log.len()).max(fullest.next)]);
            }

            prop_assert_eq!(fullest.most(&log), naive(&log, 700));
        }
    }
}
