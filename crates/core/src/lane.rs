//! Which of the ready jobs of one budget goes first.
//!
//! Interactive before bulk before background, but under pressure bulk gets at least 1 of 10 starts and background 1 of
//! 50, oldest first, so that none starves. Bounds, while nothing pauses or holds the budget: before the oldest ready job of
//! the background lane at most [`BACKGROUND_SHARE`] - 1 others start, before the oldest of the bulk lane at most
//! [`BULK_SHARE`] (one of them may be a background job that is due), however many interactive jobs come; so the n-th of
//! a lane starts within n times as many and its own. At R starts a second that is 11 / R and 50 / R seconds for the oldest.
//! A job that the server refused unread goes before others of its lane.
//! The choice does not change while it waits for room (unless a more urgent job comes), so that a heavy job is not
//! overtaken for ever by light ones.

use std::collections::BTreeSet;

use crate::ids::Seq;
use crate::job::Lane;

/// Bulk gets one of this many starts at least.
pub const BULK_SHARE: u32 = 10;
/// Background gets one of this many starts at least.
pub const BACKGROUND_SHARE: u32 = 50;

/// Returns of how many starts a lane gets one at least, under pressure.
pub const fn starts_for_one(lane: Lane) -> u32 {
    match lane {
        Lane::Interactive => 1,
        Lane::Bulk => BULK_SHARE,
        Lane::Background => BACKGROUND_SHARE,
    }
}

/// A job's place within its lane: refused ones first, then in order of acceptance.
pub type Place = (Rank, Seq);

/// Whether a job goes before those that were never sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// The server refused it unread.
    Refused,
    /// In its turn.
    InTurn,
}

/// The ready jobs of one budget.
#[derive(Clone, Debug, Default)]
pub struct Lanes {
    ready: [BTreeSet<Place>; 3],
    starts_since_bulk: u32,
    starts_since_background: u32,
}

impl Lanes {
    /// Adds a ready job.
    pub fn insert(&mut self, lane: Lane, place: Place) {
        self.lane_mut(lane).insert(place);
    }

    /// Removes a job.
    pub fn remove(&mut self, lane: Lane, place: Place) {
        self.lane_mut(lane).remove(&place);
    }

    /// Returns lanes without jobs that know whose turn it is.
    pub fn emptied(&self) -> Self {
        Self {
            ready: Default::default(),
            ..*self
        }
    }

    /// Returns the ready jobs of a lane, in their order.
    pub fn ready(&self, lane: Lane) -> impl Iterator<Item = Seq> {
        self.lane(lane).iter().map(|(_, seq)| *seq)
    }

    /// Tells whether no job is ready.
    pub fn is_empty(&self) -> bool {
        self.ready.iter().all(BTreeSet::is_empty)
    }

    /// Returns the job that goes next.
    pub fn next(&self) -> Option<(Lane, Seq)> {
        let lane = self.next_lane()?;
        self.lane(lane).first().map(|(_, seq)| (lane, *seq))
    }

    /// Tells whether a lane's guaranteed share is due: it goes next whatever else waits.
    pub fn is_due(&self, lane: Lane) -> bool {
        match lane {
            Lane::Interactive => false,
            Lane::Bulk => self.starts_since_bulk >= BULK_SHARE - 1,
            Lane::Background => self.starts_since_background >= BACKGROUND_SHARE - 1,
        }
    }

    /// Notes a start from `lane`, after the job was removed.
    pub fn started(&mut self, lane: Lane) {
        self.starts_since_bulk = Self::count(
            self.starts_since_bulk,
            lane == Lane::Bulk,
            self.lane(Lane::Bulk),
        );
        self.starts_since_background = Self::count(
            self.starts_since_background,
            lane == Lane::Background,
            self.lane(Lane::Background),
        );
    }

    fn next_lane(&self) -> Option<Lane> {
        let waits = |lane: Lane| !self.lane(lane).is_empty();
        let due = [Lane::Background, Lane::Bulk].into_iter();
        if let Some(lane) = due
            .filter(|lane| waits(*lane))
            .find(|lane| self.is_due(*lane))
        {
            return Some(lane);
        }
        Lane::ALL.into_iter().find(|lane| waits(*lane))
    }

    fn count(starts: u32, is_own: bool, waiting: &BTreeSet<Place>) -> u32 {
        if is_own || waiting.is_empty() {
            0
        } else {
            starts.saturating_add(1)
        }
    }

    fn lane(&self, lane: Lane) -> &BTreeSet<Place> {
        match lane {
            Lane::Interactive => &self.ready[0],
            Lane::Bulk => &self.ready[1],
            Lane::Background => &self.ready[2],
        }
    }

    fn lane_mut(&mut self, lane: Lane) -> &mut BTreeSet<Place> {
        match lane {
            Lane::Interactive => &mut self.ready[0],
            Lane::Bulk => &mut self.ready[1],
            Lane::Background => &mut self.ready[2],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn starts(lanes: &mut Lanes, count: usize) -> Vec<Lane> {
        (0..count)
            .map(|_| {
                let (lane, seq) = lanes.next().unwrap();
                lanes.remove(lane, (Rank::InTurn, seq));
                lanes.started(lane);
                lane
            })
            .collect()
    }

    fn filled(per_lane: u64) -> Lanes {
        let mut lanes = Lanes::default();
        for (index, lane) in Lane::ALL.into_iter().enumerate() {
            for n in 0..per_lane {
                lanes.insert(
                    lane,
                    (Rank::InTurn, Seq::from_u64(index as u64 * 1_000 + n)),
                );
            }
        }
        lanes
    }

    #[test]
    fn endless_urgent_work_starves_nobody() {
        let mut lanes = filled(500);

        let starts = starts(&mut lanes, 100);

        assert_eq!(
            starts
                .iter()
                .filter(|lane| **lane == Lane::Background)
                .count(),
            2
        );
        assert!(
            starts
                .chunks(10)
                .all(|ten| ten.contains(&Lane::Bulk) || ten.contains(&Lane::Background))
        );
        assert!(starts.iter().filter(|lane| **lane == Lane::Bulk).count() >= 9);
    }

    #[test]
    fn a_refused_job_goes_before_others_of_its_lane() {
        let mut lanes = filled(3);

        lanes.insert(Lane::Interactive, (Rank::Refused, Seq::from_u64(99)));

        assert_eq!(lanes.next(), Some((Lane::Interactive, Seq::from_u64(99))));
    }
}
