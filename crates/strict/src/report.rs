//! What an account tells about itself.
//!
//! [`Report::of`] copies little and is called with the account locked; turning it into text needs no lock, so that a
//! long report delays no request.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use crate::judge::{Judge, Period};
use crate::limiter::Outside;
use crate::record::{Record, ms};
use crate::scenario::{Algorithm, Limit};
use crate::seen::{Arrivals, Fullest};

/// One limit and the fullest window that was seen.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Window {
    name: String,
    limit: u64,
    window_ms: u64,
    algorithm: Algorithm,
    max_seen: u64,
    allowed: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_in_own_window: Option<u64>,
}

impl Window {
    /// Judges a limit by what was counted since it came into force.
    pub(crate) fn judge(limit: &Limit, fullest: &mut Fullest, log: &Arrivals) -> Self {
        Self {
            name: limit.name.clone(),
            limit: limit.limit,
            window_ms: limit.window_ms,
            algorithm: limit.algorithm,
            max_seen: fullest.in_any(log),
            allowed: limit.allowed(),
            max_in_own_window: fullest.in_own(log),
        }
    }
}

/// Which requests a report carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// All from this index on.
    Since(usize),
    /// None.
    Summary,
}

/// The whole report.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    now_ms: f64,
    arrivals: u64,
    accepted: u64,
    rejected: u64,
    in_flight: u64,
    max_in_flight: u64,
    windows: Vec<Window>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    earlier: Vec<Period>,
    applied: u64,
    duplicated: u64,
    replayed: u64,
    conflicts: u64,
    preflights: u64,
    faults: BTreeMap<&'static str, u64>,
    outside: Outside,
    truncated: bool,
    unrecorded: u64,
    untracked_effects: u64,
    total: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    requests: Option<Vec<Arc<Record>>>,
}

impl Report {
    pub(crate) fn of(judge: &mut Judge, now_us: u64, part: Part) -> Self {
        judge.limiter.advance(now_us);
        let counts = judge.counts.clone();
        let since = match part {
            Part::Since(index) => Some(index),
            Part::Summary => None,
        };
        Self {
            now_ms: ms(now_us),
            arrivals: counts.arrivals,
            accepted: counts.accepted,
            rejected: counts.rejected,
            in_flight: counts.in_flight,
            max_in_flight: counts.max_in_flight,
            windows: judge.windows(),
            earlier: judge.earlier.clone(),
            applied: judge.effects.applied,
            duplicated: judge.effects.duplicated,
            replayed: counts.replayed,
            conflicts: counts.conflicts,
            preflights: counts.preflights,
            faults: counts.faults,
            outside: judge.limiter.outside(),
            truncated: judge.log.unrecorded() > 0,
            unrecorded: judge.log.unrecorded(),
            untracked_effects: judge.effects.untracked,
            total: judge.log.len(),
            since: since.filter(|index| *index > 0),
            requests: since.map(|index| judge.log.since(index).to_vec()),
        }
    }
}
