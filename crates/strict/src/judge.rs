//! One account: what it admits, answers, applies and records, over explicit instants.
//!
//! Instants are microseconds since the account began. A request passes here three times: [`Judge::arrive`] when it has
//! been read, [`Judge::decide`] at its counted instant, [`Judge::leave`] when its answer is ready. The caller waits in
//! between; nothing here waits, reads a clock or knows HTTP headers.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use crate::batch::{Items, is_batch};
use crate::draw::{Stream, between, unit};
use crate::effects::{Claim, Effects, Keys, Stored};
use crate::limiter::{Limiter, Refusal};
use crate::memory::Pool;
use crate::record::{Call, Finding, Log, Record, ms};
use crate::report::Window;
use crate::rule::View;
use crate::scenario::{CountAt, Fault, FaultKind, FaultOn, Limit, Scenario, When};
use crate::seen::Fullest;

/// The name of the concurrency rule in reports and headers.
pub(crate) const CONCURRENCY: &str = "max-in-flight";
/// Past sets of limits that the report still judges.
const MAX_PERIODS: usize = 64;

/// A request that has been read and not yet answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Arrival {
    pub(crate) number: u64,
    pub(crate) arrived_us: u64,
    /// From arrival to the counted instant.
    pub(crate) decide_after_us: u64,
    /// From arrival to the answer.
    pub(crate) answer_after_us: u64,
    /// There were already as many as may be at a time.
    crowded: bool,
    in_flight: u64,
}

/// What is answered, before any dialect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The mock API's own answer.
    Served {
        status: u16,
        body: Bytes,
        replayed: bool,
    },
    /// The limits refuse.
    Refused(Refusal),
    /// The key's first request is still at work.
    KeyInFlight,
    /// The key belongs to another request.
    KeyReused,
    /// A fault's status.
    Faulted {
        status: u16,
        retry_after_s: Option<u64>,
    },
}

impl Answer {
    pub(crate) fn status(&self) -> u16 {
        match self {
            Self::Served { status, .. } | Self::Faulted { status, .. } => *status,
            Self::Refused(_) => 429,
            Self::KeyInFlight => 409,
            Self::KeyReused => 422,
        }
    }
}

type Claimed = Option<(String, Stored)>;

/// A decided request.
#[derive(Debug)]
pub(crate) struct Verdict {
    pub(crate) answer: Answer,
    pub(crate) fault: Option<Fault>,
    /// The rules as they stood right after this request.
    pub(crate) views: Vec<View>,
    record: Option<Arc<Record>>,
    /// The key that was claimed and the answer to store for it.
    claimed: Claimed,
    /// Whether it still holds a place among those in flight.
    holds: bool,
}

/// Counters of an account.
#[derive(Debug, Default, Clone)]
pub(crate) struct Counts {
    pub(crate) arrivals: u64,
    pub(crate) accepted: u64,
    pub(crate) rejected: u64,
    pub(crate) replayed: u64,
    pub(crate) conflicts: u64,
    pub(crate) preflights: u64,
    pub(crate) in_flight: u64,
    pub(crate) max_in_flight: u64,
    pub(crate) faults: BTreeMap<&'static str, u64>,
}

/// Limits that were in force for a while, and what was seen meanwhile.
#[derive(Debug, Clone, serde::Serialize)]
pub(crate) struct Period {
    pub(crate) from_ms: f64,
    pub(crate) until_ms: f64,
    pub(crate) windows: Vec<Window>,
}

/// One account.
#[derive(Debug)]
pub(crate) struct Judge {
    pub(crate) scenario: Scenario,
    pub(crate) wall_us: u64,
    pub(crate) counts: Counts,
    pub(crate) log: Log,
    pub(crate) effects: Effects,
    items: Items,
    pub(crate) limiter: Limiter,
    fullest: Vec<Fullest>,
    limits_from_us: u64,
    pub(crate) earlier: Vec<Period>,
    keys: Keys,
    holding: u64,
}

impl Judge {
    /// Starts an account; `wall_us` is the true wall clock at its instant 0.
    pub(crate) fn new(scenario: Scenario, wall_us: u64, pool: &Arc<Pool>) -> Self {
        let wall_us = wall_us.saturating_add_signed(scenario.clock_skew_ms.saturating_mul(1_000));
        Self {
            limiter: Limiter::new(&scenario, wall_us),
            wall_us,
            counts: Counts::default(),
            log: Log::new(pool),
            effects: Effects::default(),
            items: Items::default(),
            fullest: fullest(&scenario.limits, 0, wall_us),
            limits_from_us: 0,
            earlier: Vec::new(),
            keys: Keys::default(),
            holding: 0,
            scenario,
        }
    }

    /// Puts a changed scenario in force; counts and log stay.
    pub(crate) fn patch(&mut self, now_us: u64, next: Scenario) {
        self.limiter.advance(now_us);
        if next.limits != self.scenario.limits {
            self.close_period(now_us);
            self.limiter.set_limits(&next.limits);
            self.fullest = fullest(&next.limits, self.log.len(), self.wall_us);
        }
        if next.outside_per_s.to_bits() != self.scenario.outside_per_s.to_bits() {
            self.limiter.set_outside(now_us, next.outside_per_s);
        }
        self.scenario = next;
    }

    fn close_period(&mut self, now_us: u64) {
        let windows = self.windows();
        let (from_ms, until_ms) = (ms(self.limits_from_us), ms(now_us));
        if self.earlier.len() == MAX_PERIODS {
            self.earlier.remove(0);
        }
        self.earlier.push(Period {
            from_ms,
            until_ms,
            windows,
        });
        self.limits_from_us = now_us;
    }

    /// Judges each limit in force over the arrivals since it came into force.
    pub(crate) fn windows(&mut self) -> Vec<Window> {
        let (limits, log) = (&self.scenario.limits, self.log.arrivals());
        let judged = |(limit, fullest)| Window::judge(limit, fullest, log);
        limits.iter().zip(&mut self.fullest).map(judged).collect()
    }

    /// Takes note of a request that has been read.
    pub(crate) fn arrive(&mut self, now_us: u64) -> Arrival {
        self.counts.arrivals += 1;
        self.counts.in_flight += 1;
        self.counts.max_in_flight = self.counts.max_in_flight.max(self.counts.in_flight);
        let crowded = self
            .scenario
            .max_in_flight
            .is_some_and(|most| self.holding >= most);
        self.holding += u64::from(!crowded);
        let number = self.counts.arrivals;
        let [lo, hi] = self.scenario.latency_ms;
        let answer_after_us = between(
            self.scenario.seed,
            Stream::Latency,
            number,
            lo * 1_000,
            hi * 1_000,
        );
        let decide_after_us = match self.scenario.count_at {
            _ if crowded => 0,
            CountAt::Arrival => 0,
            CountAt::Middle => answer_after_us / 2,
            CountAt::Answer => answer_after_us,
        };
        let in_flight = self.counts.in_flight;
        Arrival {
            number,
            arrived_us: now_us,
            decide_after_us,
            answer_after_us,
            crowded,
            in_flight,
        }
    }

    /// Decides a request at its counted instant: limits first, then who asks, the fault, key and effect.
    pub(crate) fn decide(&mut self, now_us: u64, arrival: &Arrival, call: &Call) -> Verdict {
        self.limiter.advance(now_us);
        let cost = self.scenario.cost_of(&call.method);
        let refusal = self.admit(now_us, arrival, cost);
        let fault = self.fault_for(arrival.number, refusal.is_some());
        let rule = refusal.as_ref().map(|refusal| refusal.rule.clone());
        let holds = refusal.is_none();
        let (answer, claimed) = match refusal {
            Some(refusal) => (Answer::Refused(refusal), None),
            None => self.carry_out(arrival.number, call, fault.as_ref()),
        };
        let finding = Finding {
            number: arrival.number,
            at_us: now_us,
            arrived_us: arrival.arrived_us,
            status: sends_status(fault.as_ref()).then(|| answer.status()),
            in_flight: arrival.in_flight,
            cost,
            rule,
            fault: fault.as_ref().map(|fault| fault.kind),
            replayed: matches!(answer, Answer::Served { replayed: true, .. }),
        };
        let record = self.log.push(call, finding);
        Verdict {
            answer,
            fault,
            views: self.limiter.views(now_us),
            record,
            claimed,
            holds,
        }
    }

    fn admit(&mut self, now_us: u64, arrival: &Arrival, cost: u64) -> Option<Refusal> {
        let refusal = if arrival.crowded {
            Some(Refusal {
                rule: CONCURRENCY.to_owned(),
                wait_us: 1_000_000,
            })
        } else {
            self.limiter.refusal(now_us, cost)
        };
        if refusal.is_none() || self.scenario.count_refused {
            self.limiter.take(now_us, cost);
        }
        if refusal.is_some() {
            self.counts.rejected += 1;
            self.holding -= u64::from(!arrival.crowded);
        } else {
            self.counts.accepted += 1;
        }
        refusal
    }

    fn fault_for(&mut self, number: u64, refused: bool) -> Option<Fault> {
        let fault = self
            .scenario
            .faults
            .iter()
            .find(|fault| hits(fault, number, refused))?
            .clone();
        *self.counts.faults.entry(fault.kind.as_str()).or_default() += 1;
        Some(fault)
    }

    fn carry_out(&mut self, number: u64, call: &Call, fault: Option<&Fault>) -> (Answer, Claimed) {
        let wanted = &self.scenario.authorization;
        if wanted.is_some() && *wanted != call.authorization {
            let (status, retry_after_s) = (401, None);
            let answer = Answer::Faulted {
                status,
                retry_after_s,
            };
            return (answer, None);
        }
        let faulted = fault.filter(|fault| fault.kind == FaultKind::Status);
        let faulted = faulted.map(|f| Answer::Faulted {
            status: f.status,
            retry_after_s: f.retry_after_s,
        });
        let (answer, claimed) = match fault {
            Some(fault) if !fault.applies() => (served(number, call), None),
            _ => self.apply(number, call),
        };
        (faulted.unwrap_or(answer), claimed)
    }

    fn apply(&mut self, number: u64, call: &Call) -> (Answer, Claimed) {
        if is_read(&call.method) {
            return (self.look_up(number, call), None);
        }
        let key = call.key.as_deref().filter(|_| self.scenario.idempotency);
        let answer = match key.map(|key| self.keys.claim(key, call)) {
            None | Some(Claim::Taken) => {
                let key = key.map(str::to_owned);
                let stored = self.act(number, call);
                let answer = Answer::Served {
                    status: stored.status,
                    body: stored.body.clone(),
                    replayed: false,
                };
                return (answer, key.map(|key| (key, stored)));
            }
            Some(Claim::InFlight) => Answer::KeyInFlight,
            Some(Claim::Mismatch) => Answer::KeyReused,
            Some(Claim::Replay(Stored { status, body })) => Answer::Served {
                status,
                body,
                replayed: true,
            },
        };
        let replays = matches!(answer, Answer::Served { .. });
        self.counts.replayed += u64::from(replays);
        self.counts.conflicts += u64::from(!replays);
        (answer, None)
    }

    /// Answers a read; one with `applied=METHOD` in its query tells how often that took effect at its path, one with
    /// `exists=METHOD` is a 404 if it never did.
    fn look_up(&self, number: u64, call: &Call) -> Answer {
        let query = call.path.split_once('?').map_or("", |(_, query)| query);
        let asked = |name: &str| {
            let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            let method = pairs.find_map(|(key, value)| (key == name).then_some(value))?;
            Some(self.effects.times(method, &call.path))
        };
        let mut body = served_value(number, call);
        if let Some(times) = asked("applied") {
            body["applied"] = times.into();
        }
        Answer::Served {
            status: if asked("exists") == Some(0) { 404 } else { 200 },
            body: Bytes::from(body.to_string()),
            replayed: false,
        }
    }

    /// Carries out a request that is not a repeat.
    fn act(&mut self, number: u64, call: &Call) -> Stored {
        if let Some(batch) = &self.scenario.batch
            && is_batch(batch, call)
        {
            return self.items.carry_out(batch, call, &mut self.effects);
        }
        self.effects.apply(call);
        Stored {
            status: 200,
            body: served_body(number, call),
        }
    }

    /// Takes note that a request's answer is ready.
    ///
    /// The place among those in flight is kept: [`Judge::gone`] gives it back.
    pub(crate) fn leave(&mut self, now_us: u64, verdict: &mut Verdict) {
        if let Some(record) = &verdict.record
            && verdict
                .fault
                .as_ref()
                .is_none_or(|fault| fault.kind != FaultKind::Hang)
        {
            record.answered(now_us);
        }
        if let Some((key, stored)) = verdict.claimed.take() {
            self.keys.settle(&key, stored);
        }
    }

    /// Gives back the place of a request that is answered, or whose client is gone.
    pub(crate) fn gone(&mut self, holds: bool) {
        self.counts.in_flight -= 1;
        self.holding -= u64::from(holds);
    }

    /// Counts a preflight, and tells why it is refused where preflights use the limits.
    pub(crate) fn preflight(&mut self, now_us: u64) -> Option<Refusal> {
        self.counts.preflights += 1;
        if self.scenario.preflight == crate::scenario::Preflight::Uncounted {
            return None;
        }
        self.limiter.advance(now_us);
        let refusal = self.limiter.refusal(now_us, 1);
        if refusal.is_none() || self.scenario.count_refused {
            self.limiter.take(now_us, 1);
        }
        refusal
    }

    /// Places at a time and how many are free, where that is limited.
    pub(crate) fn places(&self) -> Option<(u64, u64)> {
        self.scenario
            .max_in_flight
            .map(|most| (most, most.saturating_sub(self.holding)))
    }

    /// The server's wall clock, wrong by the scenario's skew.
    pub(crate) fn clock_us(&self, true_wall_us: u64) -> u64 {
        true_wall_us.saturating_add_signed(self.scenario.clock_skew_ms.saturating_mul(1_000))
    }
}

impl Arrival {
    /// Tells whether it holds a place while undecided.
    pub(crate) fn holds(&self) -> bool {
        !self.crowded
    }
}

impl Verdict {
    pub(crate) fn holds(&self) -> bool {
        self.holds
    }
}

fn fullest(limits: &[Limit], index: usize, wall_us: u64) -> Vec<Fullest> {
    limits
        .iter()
        .map(|limit| Fullest::from(index, limit, wall_us))
        .collect()
}

fn is_read(method: &str) -> bool {
    matches!(method, "GET" | "HEAD")
}

fn served(number: u64, call: &Call) -> Answer {
    Answer::Served {
        status: 200,
        body: served_body(number, call),
        replayed: false,
    }
}

fn served_body(number: u64, call: &Call) -> Bytes {
    Bytes::from(served_value(number, call).to_string())
}

fn served_value(number: u64, call: &Call) -> serde_json::Value {
    serde_json::json!({ "ok": true, "method": call.method, "path": call.path, "n": number })
}

fn hits(fault: &Fault, number: u64, refused: bool) -> bool {
    let on = match fault.on {
        FaultOn::Any => fault.kind != FaultKind::Status || !refused,
        FaultOn::Accepted => !refused,
        FaultOn::Refused => refused,
    };
    on && match fault.when {
        When::Nth(nth) => number == nth,
        When::Every(every) => number.is_multiple_of(every),
        When::Rate { rate, seed } => unit(seed, Stream::Fault, number) < rate,
    }
}

/// Tells whether a client that is hit by this fault gets a status at all.
fn sends_status(fault: Option<&Fault>) -> bool {
    fault.is_none_or(|fault| match fault.kind {
        FaultKind::Status | FaultKind::Truncate | FaultKind::NoCors => true,
        FaultKind::DropBeforeApply
        | FaultKind::DropAfterApply
        | FaultKind::Hang
        | FaultKind::Reset => false,
    })
}

#[cfg(test)]
#[path = "judge/tests.rs"]
mod tests;
