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

/// What a strict outside judge says of starts and their costs, by its own arithmetic.
fn judge(
    algorithm: Algorithm,
    limit: u64,
    window: u64,
    answer_ms: u64,
    log: &[(u64, u64)],
) -> Result<(), String> {
    let within = |from: u64, to: u64| -> u64 {
        log.iter()
            .filter(|(at, _)| (from..=to).contains(at))
            .map(|(_, cost)| cost)
            .sum()
    };
    for (index, (at, cost)) in log.iter().enumerate() {
        let over =
            |what: &str, sum: u64, most: u64| Err(format!("{what} at {at}: {sum} of {most}"));
        match algorithm {
            Algorithm::ArrivalLog | Algorithm::SlidingLog => {
                let sum = within(at.saturating_sub(window), *at);
                if sum > limit {
                    return over("window", sum, limit);
                }
            }
            Algorithm::FixedWindow | Algorithm::SlidingCounter | Algorithm::BatchRest => {
                // Each of them lets less than two limits through in any window.
                let sum = within((at + 1).saturating_sub(window), *at);
                if sum > 2 * limit {
                    return over("two windows", sum, 2 * limit);
                }
            }
            Algorithm::TokenBucket | Algorithm::LeakyBucket | Algorithm::Gcra => {
                for (from, _) in &log[..=index] {
                    let sum = within(*from, *at);
                    let most = limit * window + limit * (at - from);
                    if sum * window > most {
                        return over("bucket", sum * window, most);
                    }
                }
            }
            Algorithm::LeakyQueue => {
                if let Some((before, weight)) = index.checked_sub(1).map(|before| log[before])
                    && (at - before) * limit < weight * window
                {
                    return over("gap", at - before, weight * window / limit);
                }
            }
        }
        let _ = (cost, answer_ms);
    }
    Ok(())
}

/// Sends each arrival as soon as the limiter lets it, first come first served, and returns the starts.
///
/// On the way, checks that the limiter admits at the instant that it names and not a millisecond before.
fn serve(driven: &mut Driven, arrivals: &[(u64, u32)]) -> Result<Vec<(u64, u64)>, TestCaseError> {
    let mut log = Vec::new();
    let mut clock = 0_u64;
    for (gap, cost) in arrivals {
        clock += gap;
        loop {
            match driven.check(*cost, clock) {
                Admission::Admit => break,
                Admission::Defer(until) => {
                    let until = until.as_millis();
                    prop_assert!(until > clock, "named {} at {}", until, clock);
                    // Before, it must not fit, or the wait would be longer than needed.
                    let mut probe = driven.limiter.clone();
                    let early = probe.check(*cost, Mono::from_millis(until - 1));
                    prop_assert!(early != Admission::Admit, "fits a millisecond early");
                    clock = until;
                }
                Admission::DeferToAnswer => {
                    clock = driven
                        .open
                        .iter()
                        .map(|(ends, _)| *ends)
                        .min()
                        .expect("something is in flight");
                }
                Admission::Never => return Ok(log),
            }
        }
        driven
            .arrive(*cost, clock)
            .map_err(|wait| TestCaseError::fail(format!("deferred by {wait:?}")))?;
        log.push((clock, u64::from(*cost)));
    }
    Ok(log)
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
    fn each_limiter_satisfies_an_outside_judge(
        limit in 1_u64..12,
        window in 1_u64..3_000,
        answer_ms in 0_u64..400,
        arrivals in prop::collection::vec((0_u64..400, 1_u32..4), 1..60),
    ) {
        for algorithm in Algorithm::ALL {
            let mut driven = Driven::new(limiter(limit, window, algorithm), answer_ms);
            let fitting: Vec<_> = arrivals.iter().copied().filter(|(_, cost)| u64::from(*cost) <= limit).collect();
            let log = serve(&mut driven, &fitting)?;
            prop_assert_eq!(log.len(), fitting.len(), "{:?} lets everything through in the end", algorithm);
            let verdict = judge(algorithm, limit, window, answer_ms, &log);
            prop_assert!(verdict.is_ok(), "{:?}: {:?}", algorithm, verdict);
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
