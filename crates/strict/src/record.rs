//! One request as the report tells it, and the log of an account's requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::memory::{Pool, Share};
use crate::scenario::FaultKind;
use crate::seen::Arrivals;

/// Bytes of a body that a record keeps.
const BODY_BYTES: usize = 4 << 10;
/// Bytes of a path that a record keeps.
const PATH_BYTES: usize = 1 << 10;
/// Bytes of a path that a record keeps when the account's text is used up.
const BARE_PATH_BYTES: usize = 32;
/// `answered_us` while there is no answer.
const NEVER: u64 = u64::MAX;

/// What a request brought.
#[derive(Debug, Clone, Default)]
pub(crate) struct Call {
    pub(crate) method: String,
    /// Below `/api`, with its query.
    pub(crate) path: String,
    pub(crate) key: Option<String>,
    pub(crate) authorization: Option<String>,
    pub(crate) body: bytes::Bytes,
}

/// One request that was counted.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) number: u64,
    /// The counted instant.
    pub(crate) at_us: u64,
    pub(crate) arrived_us: u64,
    answered_us: AtomicU64,
    pub(crate) method: String,
    pub(crate) path: String,
    /// None: cut off before any status.
    pub(crate) status: Option<u16>,
    pub(crate) key: Option<String>,
    pub(crate) body: Option<String>,
    pub(crate) body_bytes: usize,
    pub(crate) in_flight: u64,
    pub(crate) cost: u64,
    /// The rule that refused.
    pub(crate) rule: Option<String>,
    pub(crate) fault: Option<FaultKind>,
    pub(crate) replayed: bool,
}

/// What the judge adds to a call.
#[derive(Debug, Default)]
pub(crate) struct Finding {
    pub(crate) number: u64,
    pub(crate) at_us: u64,
    pub(crate) arrived_us: u64,
    pub(crate) status: Option<u16>,
    pub(crate) in_flight: u64,
    pub(crate) cost: u64,
    pub(crate) rule: Option<String>,
    pub(crate) fault: Option<FaultKind>,
    pub(crate) replayed: bool,
}

impl Record {
    /// Notes when the answer left.
    pub(crate) fn answered(&self, now_us: u64) {
        self.answered_us.store(now_us, Ordering::Relaxed);
    }
}

/// Milliseconds with the microseconds kept.
pub(crate) fn ms(us: u64) -> f64 {
    us as f64 / 1_000.0
}

impl Serialize for Record {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let answered = self.answered_us.load(Ordering::Relaxed);
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("n", &self.number)?;
        map.serialize_entry("at_ms", &ms(self.at_us))?;
        map.serialize_entry("arrived_ms", &ms(self.arrived_us))?;
        map.serialize_entry("answered_ms", &(answered != NEVER).then(|| ms(answered)))?;
        map.serialize_entry("method", &self.method)?;
        map.serialize_entry("path", &self.path)?;
        map.serialize_entry("status", &self.status)?;
        map.serialize_entry("idempotency_key", &self.key)?;
        map.serialize_entry("body", &self.body)?;
        map.serialize_entry("body_bytes", &self.body_bytes)?;
        map.serialize_entry("in_flight", &self.in_flight)?;
        map.serialize_entry("cost", &self.cost)?;
        if let Some(rule) = &self.rule {
            map.serialize_entry("rule", rule)?;
        }
        if let Some(fault) = self.fault {
            map.serialize_entry("fault", &fault)?;
        }
        if self.replayed {
            map.serialize_entry("replayed", &true)?;
        }
        map.end()
    }
}

/// The requests of an account, in the order of their counted instants.
#[derive(Debug)]
pub(crate) struct Log {
    share: Share,
    records: Vec<Arc<Record>>,
    arrivals: Vec<(u64, u64)>,
    unrecorded: u64,
}

impl Log {
    pub(crate) fn new(pool: &Arc<Pool>) -> Self {
        Self {
            share: Share::of(pool),
            records: Vec::new(),
            arrivals: Vec::new(),
            unrecorded: 0,
        }
    }

    /// Keeps a request, or counts it as unrecorded when there is no room.
    pub(crate) fn push(&mut self, call: &Call, finding: Finding) -> Option<Arc<Record>> {
        if !self.share.record() {
            self.unrecorded += 1;
            return None;
        }
        let record = Arc::new(self.make(call, finding));
        self.arrivals.push((record.at_us, record.cost));
        self.records.push(Arc::clone(&record));
        Some(record)
    }

    fn make(&mut self, call: &Call, finding: Finding) -> Record {
        let path = shortened(call.path.as_bytes(), PATH_BYTES);
        let body = shortened(&call.body, BODY_BYTES);
        let key_bytes = call.key.as_ref().map_or(0, String::len);
        let fits = self.share.text(path.len() + body.len() + key_bytes);
        Record {
            number: finding.number,
            at_us: finding.at_us,
            arrived_us: finding.arrived_us,
            answered_us: AtomicU64::new(NEVER),
            method: call.method.clone(),
            path: if fits {
                path
            } else {
                shortened(call.path.as_bytes(), BARE_PATH_BYTES)
            },
            status: finding.status,
            key: call.key.clone().filter(|_| fits),
            body: (fits && !call.body.is_empty()).then_some(body),
            body_bytes: call.body.len(),
            in_flight: finding.in_flight,
            cost: finding.cost,
            rule: finding.rule,
            fault: finding.fault,
            replayed: finding.replayed,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }

    /// Requests that found no room.
    pub(crate) fn unrecorded(&self) -> u64 {
        self.unrecorded
    }

    pub(crate) fn since(&self, index: usize) -> &[Arc<Record>] {
        self.records.get(index..).unwrap_or_default()
    }

    /// Counted instants and costs.
    pub(crate) fn arrivals(&self) -> &Arrivals {
        &self.arrivals
    }
}

fn shortened(bytes: &[u8], most: usize) -> String {
    let mut text = String::from_utf8_lossy(&bytes[..bytes.len().min(most)]).into_owned();
    text.shrink_to_fit();
    text
}
