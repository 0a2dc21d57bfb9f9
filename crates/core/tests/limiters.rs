//! Each limiter against an oracle that is written another way.

use paceline_core::config::{Algorithm, LimitRule};
use paceline_core::ids::Seq;
use paceline_core::limit::{Admission, Limiter};
use paceline_core::time::{Mono, Now};
use proptest::prelude::*;

fn rule(limit: u64, window_ms: u64, algorithm: Algorithm) -> LimitRule {
    LimitRule::new(limit, window_ms, algorithm).expect("a rule")
}

fn limiter(limit: u64, window_ms: u64, algorithm: Algorithm) -> Limiter {
    Limiter::new(rule(limit, window_ms, algorithm), Mono::default())
}

fn now(millis: u64) -> Now {
    Now::from_millis(millis, millis)
}

/// A limiter that is asked at instants, each attempt ending `answer_ms` after its start.
struct Driven {
    limiter: Limiter,
    open: Vec<(u64, (Seq, u32))>,
    answer_ms: u64,
    next: u64,
}

impl Driven {
    fn new(limiter: Limiter, answer_ms: u64) -> Self {
        Self {
            limiter,
            open: Vec::new(),
            answer_ms,
            next: 0,
        }
    }

    fn check(&mut self, cost: u32, at: u64) -> Admission {
        let due: Vec<_> = self
            .open
            .iter()
            .copied()
            .filter(|(ends, _)| *ends <= at)
            .collect();
        self.open.retain(|(ends, _)| *ends > at);
        for (ends, ticket) in due {
            self.limiter.end(ticket, 0, Mono::from_millis(ends));
        }
        self.limiter.check(cost, Mono::from_millis(at))
    }

    /// Takes the cost if it fits now; else says how long to wait.
    fn arrive(&mut self, cost: u32, at: u64) -> Result<u32, Option<u64>> {
        match self.check(cost, at) {
            Admission::Admit => {
                self.next += 1;
                let ticket = (Seq::from_u64(self.next), 1);
                self.limiter.take(ticket, cost, now(at));
                self.open.push((at + self.answer_ms, ticket));
                Ok(self.limiter.free(Mono::from_millis(at)))
            }
            Admission::Defer(until) => Err(Some(until.as_millis() - at)),
            Admission::DeferToAnswer | Admission::Never => Err(None),
        }
    }
}

#[test]
fn an_idle_window_does_not_throttle_what_comes_after() {
    let mut window = Driven::new(limiter(2, 1_000, Algorithm::FixedWindow), 0);
    window.arrive(1, 0).unwrap();
    window.arrive(1, 600).unwrap();

    assert!(window.arrive(1, 1_100).is_ok());
}

#[test]
fn a_batch_rests_until_nothing_was_in_flight_for_a_window() {
    let mut batch = Driven::new(limiter(2, 1_000, Algorithm::BatchRest), 300);
    batch.arrive(1, 0).unwrap();
    batch.arrive(1, 100).unwrap();

    assert_eq!(batch.arrive(1, 150), Err(None));
    assert_eq!(batch.arrive(1, 400), Err(Some(1_001)));
    assert!(batch.arrive(1, 1_401).is_ok());
}

#[test]
fn limits_that_are_set_again_and_again_give_nothing_away() {
    for algorithm in Algorithm::ALL {
        let mut often = Driven::new(limiter(5, 5_000, algorithm), 0);
        let mut never = Driven::new(limiter(5, 5_000, algorithm), 0);

        for at in (0..20_000).step_by(90) {
            often
                .limiter
                .configure(rule(3, 5_000, algorithm), Mono::from_millis(at));
            often
                .limiter
                .configure(rule(5, 5_000, algorithm), Mono::from_millis(at));
            let _ = (often.arrive(1, at), never.arrive(1, at));
        }

        assert_eq!(often.next, never.next, "{algorithm:?}");
    }
}

#[test]
fn a_longer_window_keeps_what_was_consumed_for_as_long() {
    // A queue's next start was fixed by its last one; it keeps no more than that.
    let all = Algorithm::ALL.into_iter();
    for algorithm in all.filter(|algorithm| *algorithm != Algorithm::LeakyQueue) {
        let mut changed = Driven::new(limiter(2, 1_000, algorithm), 0);
        for at in [0, 500] {
            changed.arrive(1, at).unwrap();
        }

        changed
            .limiter
            .configure(rule(2, 10_000, algorithm), Mono::from_millis(600));

        assert!(changed.arrive(2, 1_600).is_err(), "{algorithm:?}");
    }
}

#[test]
fn a_batch_of_an_earlier_owner_rests_before_the_next() {
    let mut batch = Driven::new(limiter(5, 500, Algorithm::BatchRest), 0);

    batch
        .limiter
        .restore(1, now(900).wall, now(950).wall, now(1_000));

    assert_eq!(batch.arrive(1, 1_000), Err(Some(451)));
    assert!(batch.arrive(1, 1_451).is_ok());
}

/// One that was sent: its start, its end, its cost.
type Entry = (u64, u64, u64);

/// Whether a cost fits at an instant, counted anew from all that was sent before, by each algorithm's own definition.
fn fits(algorithm: Algorithm, limit: u64, window: u64, log: &[Entry], at: u64, cost: u64) -> bool {
    let sum = |counts: &dyn Fn(&Entry) -> bool| -> u64 {
        log.iter()
            .filter(|entry| counts(entry))
            .map(|entry| entry.2)
            .sum()
    };
    match algorithm {
        // The server may have counted any instant from the start to the end.
        Algorithm::ArrivalLog => sum(&|(_, end, _)| at <= end + window) + cost <= limit,
        Algorithm::SlidingLog => sum(&|(start, _, _)| at <= start + window) + cost <= limit,
        Algorithm::FixedWindow => {
            let mut began = None;
            let mut used = 0;
            for (start, _, units) in log {
                if began.is_none_or(|began| *start >= began + window) {
                    (began, used) = (Some(*start), 0);
                }
                used += units;
            }
            began.is_none_or(|began| at >= began + window) || used + cost <= limit
        }
        Algorithm::SlidingCounter => {
            let of = |nth: u64| sum(&|(start, _, _)| start / window == nth);
            let (nth, gone) = (at / window, at % window);
            let last = nth.checked_sub(1).map_or(0, of);
            last * (window - gone) + (of(nth) + cost) * window <= limit * window
        }
        Algorithm::TokenBucket | Algorithm::LeakyBucket | Algorithm::Gcra => {
            // What was sent since any start is at most the capacity and what came in since then.
            let mut spent = cost;
            log.iter().rev().all(|(start, _, units)| {
                spent += units;
                spent * window <= limit * (window + at - start)
            })
        }
        Algorithm::LeakyQueue => {
            // Paces follow one another without a gap, or begin with a start.
            let mut free_at = 0;
            for (start, _, units) in log {
                free_at = free_at.max(start * limit) + units * window;
            }
            at * limit >= free_at
        }
        Algorithm::BatchRest => {
            let mut used = 0;
            let mut busy_until = None;
            for (start, end, units) in log {
                if busy_until.is_some_and(|busy| *start > busy + window) {
                    used = 0;
                }
                used += units;
                busy_until = busy_until.max(Some(*end));
            }
            busy_until.is_none_or(|busy| at > busy + window) || used + cost <= limit
        }
    }
}

/// Sends each arrival as soon as the limiter lets it, first come first served, and returns how many were sent.
///
/// On the way, holds each answer to the oracle: it fits when it is admitted and at the instant that is named, and at none
/// that is before.
fn serve(
    driven: &mut Driven,
    algorithm: Algorithm,
    (limit, window): (u64, u64),
    arrivals: &[(u64, u32)],
) -> Result<usize, TestCaseError> {
    let mut log: Vec<Entry> = Vec::new();
    let mut clock = 0_u64;
    for (gap, cost) in arrivals {
        clock += gap;
        let fits = |at: u64| fits(algorithm, limit, window, &log, at, u64::from(*cost));
        loop {
            match driven.check(*cost, clock) {
                Admission::Admit => break,
                Admission::Defer(until) => {
                    let until = until.as_millis();
                    prop_assert!(
                        until > clock,
                        "{:?} names {} at {}",
                        algorithm,
                        until,
                        clock
                    );
                    prop_assert!(fits(until), "{:?} names {} too early", algorithm, until);
                    for early in [clock, clock.midpoint(until - 1), until - 1] {
                        prop_assert!(!fits(early), "{:?} fits at {} already", algorithm, early);
                    }
                    clock = until;
                }
                Admission::DeferToAnswer => {
                    prop_assert!(!fits(clock), "{:?} fits at {} already", algorithm, clock);
                    let ends = driven.open.iter().map(|(ends, _)| *ends).min();
                    clock = ends.expect("something is in flight");
                }
                Admission::Never => return Err(TestCaseError::fail("it never fits")),
            }
        }
        prop_assert!(
            fits(clock),
            "{:?} admits at {} what does not fit",
            algorithm,
            clock
        );
        driven
            .arrive(*cost, clock)
            .map_err(|wait| TestCaseError::fail(format!("deferred by {wait:?}")))?;
        log.push((clock, clock + driven.answer_ms, u64::from(*cost)));
    }
    Ok(log.len())
}

fn cases() -> u32 {
    std::env::var("PACELINE_LIMITER_CASES")
        .ok()
        .and_then(|cases| cases.parse().ok())
        .unwrap_or(256)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn each_limiter_admits_exactly_when_counting_anew_does(
        limit in 1_u64..12,
        window in 1_u64..3_000,
        answer_ms in 0_u64..400,
        arrivals in prop::collection::vec((0_u64..400, 1_u32..4), 1..60),
    ) {
        for algorithm in Algorithm::ALL {
            let mut driven = Driven::new(limiter(limit, window, algorithm), answer_ms);
            let fitting: Vec<_> = arrivals.iter().copied().filter(|(_, cost)| u64::from(*cost) <= limit).collect();
            let sent = serve(&mut driven, algorithm, (limit, window), &fitting)?;
            prop_assert_eq!(sent, fitting.len(), "{:?} lets everything through in the end", algorithm);
        }
    }

    /// A meter, a bucket and GCRA of one size admit the same traffic.
    #[test]
    fn three_names_of_one_limit(
        limit in 1_u64..20,
        window in 1_u64..3_000,
        arrivals in prop::collection::vec((0_u64..400, 1_u32..4), 1..80),
    ) {
        let logs: Vec<_> = [Algorithm::TokenBucket, Algorithm::LeakyBucket, Algorithm::Gcra]
            .into_iter()
            .map(|algorithm| {
                let mut driven = Driven::new(limiter(limit, window, algorithm), 0);
                let mut clock = 0;
                arrivals.iter().map(|(gap, cost)| { clock += gap; driven.arrive(*cost, clock) }).collect::<Vec<_>>()
            })
            .collect();

        prop_assert_eq!(&logs[0], &logs[1]);
        prop_assert_eq!(&logs[0], &logs[2]);
    }
}
