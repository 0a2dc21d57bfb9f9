//! A server with limits, and the judge of whether it was ever asked for more.
//!
//! Counts with arithmetic of its own: nothing here knows how the scheduler counts. Closed windows: an arrival that is
//! exactly one window old still counts. Every arrival counts, refused ones too. Where only the distance of starts is
//! promised, attempts are judged by when they were claimed: what is between the claim and the server is no matter of it.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, UNIX_EPOCH};

use crate::clock::EPOCH_MS;
use crate::draw::Draw;
use crate::profile::{Api, Kind, Latency, Rule};
use crate::transition::{Fault, Refusal};

/// How long an answer that does not come keeps its first request running.
const HANGING_MS: u64 = 5_000;

/// A request as it reaches the server.
#[derive(Clone, Debug)]
pub(crate) struct Arrival<'a> {
    pub(crate) at_ms: u64,
    pub(crate) job: &'a str,
    pub(crate) key: Option<&'a str>,
    /// The jobs that are its items, if it is a batch.
    pub(crate) items: &'a [String],
    pub(crate) fault: Option<Fault>,
    /// Whether it only asks what has become of the job.
    pub(crate) is_check: bool,
}

/// What the server sends back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// An answer.
    Status(u16, Vec<(String, String)>),
    /// An answer that says something of each item of a batch, or leaves it out.
    Items(Vec<Option<u16>>),
    /// A broken connection.
    Broken,
    /// Nothing at all.
    Silence,
}

/// One arrival inside a window.
#[derive(Clone, Copy, Debug)]
struct Counted {
    at_ms: u64,
    cost: u64,
    flight: usize,
}

#[derive(Debug)]
struct Seen {
    first_at_ms: u64,
    running_until_ms: u64,
    /// What was said of each item.
    items: Vec<Option<u16>>,
}

/// What a rule has counted.
#[derive(Debug)]
struct Window {
    rule: Rule,
    counts_all: bool,
    inside: VecDeque<Counted>,
}

/// One server.
#[derive(Debug)]
pub(crate) struct Upstream {
    api: Api,
    windows: Vec<Window>,
    starts: Vec<(Rule, BTreeMap<u64, u64>)>,
    /// Units that were claimed and certainly never left.
    given_back: u64,
    faults: VecDeque<Fault>,
    seen: BTreeMap<String, Seen>,
    applied: BTreeMap<String, u32>,
    requests: u64,
    /// Whether items fail by themselves.
    are_items_failing: bool,
    draw: Draw,
}

impl Upstream {
    /// Makes a server that nobody has asked yet.
    pub(crate) fn new(api: Api, seed: u64, stream: u64) -> Self {
        let rules = |is_at_arrival: bool| {
            let rules = api.rules.iter().copied();
            rules.filter(move |rule| rule.kind.is_judged_at_arrival() == is_at_arrival)
        };
        Self {
            windows: rules(true)
                .map(|rule| (rule, true))
                .chain(api.writes.map(|rule| (rule, false)))
                .map(|(rule, counts_all)| Window {
                    rule,
                    counts_all,
                    inside: VecDeque::new(),
                })
                .collect(),
            starts: rules(false).map(|rule| (rule, BTreeMap::new())).collect(),
            given_back: 0,
            faults: VecDeque::new(),
            seen: BTreeMap::new(),
            applied: BTreeMap::new(),
            requests: 0,
            are_items_failing: true,
            draw: Draw::new(seed, stream),
            api,
        }
    }

    /// The next requests get this fault.
    pub(crate) fn plan_fault(&mut self, fault: Fault, times: u64) {
        self.faults.extend((0..times).map(|_| fault));
    }

    /// Takes all faults back.
    pub(crate) fn heal(&mut self) {
        self.faults.clear();
        self.are_items_failing = false;
    }

    /// Returns the fault of the next request.
    pub(crate) fn next_fault(&mut self) -> Option<Fault> {
        self.faults.pop_front()
    }

    /// Draws how long the next request takes, each way.
    pub(crate) fn next_latency(&mut self) -> (u64, u64) {
        self.requests += 1;
        match self.api.latency {
            Latency::Steady(base_ms) => {
                let total = self.draw.between(base_ms, base_ms + base_ms / 2);
                let out = total * self.draw.between(40, 60) / 100;
                (out, total - out)
            }
            Latency::Wild(_) if self.requests.is_multiple_of(2) => {
                let total = self.draw.between(0, 1);
                let out = self.draw.between(0, total);
                (out, total - out)
            }
            Latency::Wild(most_ms) => {
                let total = self.draw.between(0, most_ms);
                let out = self.draw.between(0, total);
                (out, total - out)
            }
            Latency::Falls {
                from,
                long_ms,
                short_ms,
            } => {
                let total = if self.requests < from {
                    long_ms
                } else {
                    short_ms
                };
                (total / 2, total - total / 2)
            }
        }
    }

    /// A claimed request never left.
    pub(crate) fn give_back(&mut self, cost: u64) {
        self.given_back += cost;
    }

    /// Returns what it is the server of.
    pub(crate) const fn api(&self) -> &Api {
        &self.api
    }

    /// Returns how often a job took effect.
    pub(crate) fn times_applied(&self, job: &str) -> u32 {
        self.applied.get(job).copied().unwrap_or(0)
    }

    /// Judges a claim against the rules that promise only the distance of starts.
    ///
    /// # Errors
    /// When more was claimed between two instants than a rule allows.
    pub(crate) fn judge_claim(&mut self, at_ms: u64, cost: u64) -> Result<(), String> {
        for (rule, claims) in &mut self.starts {
            *claims.entry(at_ms).or_default() += cost;
            let starts: Vec<u64> = claims.range(..=at_ms).map(|(start, _)| *start).collect();
            for start in starts {
                let mut spent = 0;
                for (end, cost) in claims.range(start..) {
                    spent += cost;
                    let allowed = allowed(rule, end - start, *cost) + self.given_back;
                    if *end >= at_ms && spent > allowed {
                        return Err(format!(
                            "{}: {spent} claimed from {start} to {end}, {} of {} per {} ms allows {allowed}",
                            self.api.origin,
                            rule.kind.algorithm(),
                            rule.limit,
                            rule.window_ms
                        ));
                    }
                }
            }
        }
        Ok(())
    }

    /// Counts an arrival.
    ///
    /// # Errors
    /// When it is more than a window allows.
    pub(crate) fn judge_arrival(
        &mut self,
        at_ms: u64,
        cost: u64,
        flight: usize,
        is_write: bool,
    ) -> Result<(), String> {
        let counting = |window: &&mut Window| window.counts_all || is_write;
        for Window { rule, inside, .. } in self.windows.iter_mut().filter(counting) {
            match rule.kind {
                // A silence of one window ends the batch.
                Kind::Rest => {
                    let last_ms = inside.back().map_or(0, |last| last.at_ms);
                    if at_ms - last_ms > rule.window_ms {
                        inside.clear();
                    }
                }
                Kind::Window
                | Kind::Bucket
                | Kind::Log
                | Kind::Fixed
                | Kind::Counter
                | Kind::Gcra
                | Kind::Queue => {
                    while inside
                        .front()
                        .is_some_and(|first| at_ms - first.at_ms > rule.window_ms)
                    {
                        inside.pop_front();
                    }
                }
            }
            inside.push_back(Counted {
                at_ms,
                cost,
                flight,
            });
            let seen: u64 = inside.iter().map(|counted| counted.cost).sum();
            if seen > rule.limit {
                return Err(format!(
                    "{}: {seen} in the window that ends at {at_ms}, the limit is {} per {} ms",
                    self.api.origin, rule.limit, rule.window_ms
                ));
            }
        }
        Ok(())
    }

    /// Counts a request no longer.
    pub(crate) fn excuse(&mut self, flight: usize) {
        for Window { inside, .. } in &mut self.windows {
            inside.retain(|counted| counted.flight != flight);
        }
    }

    /// Carries out a request, and says what goes back.
    pub(crate) fn carry_out(&mut self, arrival: &Arrival<'_>) -> Reply {
        if let Some(Fault::Refuses(refusal)) = arrival.fault {
            return self.refuse(refusal, arrival.at_ms);
        }
        if let Some(replay) = self.replay(arrival) {
            return replay;
        }
        match arrival.fault {
            Some(Fault::Refuses(_) | Fault::Unreachable | Fault::NeverLeaves) => Reply::Broken,
            Some(Fault::Fails(status, is_applied)) => {
                self.apply_if(is_applied, arrival, 0);
                Reply::Status(status, Vec::new())
            }
            Some(Fault::Rejects(status)) => Reply::Status(status, Vec::new()),
            Some(Fault::Breaks(is_applied)) => {
                self.apply_if(is_applied, arrival, 0);
                Reply::Broken
            }
            Some(Fault::Hangs(is_applied)) => {
                self.apply_if(is_applied, arrival, HANGING_MS);
                Reply::Silence
            }
            None if arrival.items.is_empty() => {
                self.apply_if(true, arrival, 0);
                Reply::Status(200, Vec::new())
            }
            None => {
                let items = arrival.items.iter().map(|_| self.draw_item()).collect();
                self.carry_out_items(arrival, items, 0)
            }
        }
    }

    /// What becomes of an item: most are carried out, some fail, some are carried out and left out of the answer.
    fn draw_item(&mut self) -> Option<u16> {
        if !self.are_items_failing {
            return Some(200);
        }
        match self.draw.between(0, 19) {
            0 => Some(503),
            1 => Some(404),
            2 => None,
            _ => Some(200),
        }
    }

    fn carry_out_items(
        &mut self,
        arrival: &Arrival<'_>,
        items: Vec<Option<u16>>,
        takes_ms: u64,
    ) -> Reply {
        for (job, status) in arrival.items.iter().zip(&items) {
            if status.is_none_or(|status| status == 200) {
                *self.applied.entry(job.clone()).or_default() += 1;
            }
        }
        self.remember(arrival, items.clone(), takes_ms);
        Reply::Items(items)
    }

    /// The answer to a key that was seen before.
    fn replay(&mut self, arrival: &Arrival<'_>) -> Option<Reply> {
        let ttl_ms = self.api.key_ttl_ms?;
        let seen = self.seen.get(arrival.key?)?;
        if arrival.at_ms - seen.first_at_ms > ttl_ms {
            return None;
        }
        let items = seen.items.clone();
        let status = if arrival.at_ms < seen.running_until_ms {
            409
        } else {
            200
        };
        // What breaks, breaks on a repeat too.
        Some(match arrival.fault {
            Some(Fault::Breaks(_)) => Reply::Broken,
            Some(Fault::Hangs(_)) => Reply::Silence,
            Some(Fault::Fails(status, _)) => Reply::Status(status, Vec::new()),
            Some(
                Fault::Refuses(_) | Fault::Rejects(_) | Fault::Unreachable | Fault::NeverLeaves,
            )
            | None
                if status == 200 && !items.is_empty() =>
            {
                Reply::Items(items)
            }
            Some(
                Fault::Refuses(_) | Fault::Rejects(_) | Fault::Unreachable | Fault::NeverLeaves,
            )
            | None => Reply::Status(status, Vec::new()),
        })
    }

    fn apply_if(&mut self, is_applied: bool, arrival: &Arrival<'_>, takes_ms: u64) {
        if !is_applied || arrival.is_check {
            return;
        }
        if !arrival.items.is_empty() {
            let items = vec![Some(200); arrival.items.len()];
            self.carry_out_items(arrival, items, takes_ms);
            return;
        }
        *self.applied.entry(arrival.job.to_owned()).or_default() += 1;
        self.remember(arrival, Vec::new(), takes_ms);
    }

    fn remember(&mut self, arrival: &Arrival<'_>, items: Vec<Option<u16>>, takes_ms: u64) {
        if self.api.key_ttl_ms.is_some()
            && let Some(key) = arrival.key
        {
            let running_until_ms = arrival.at_ms + takes_ms;
            self.seen.insert(
                key.to_owned(),
                Seen {
                    first_at_ms: arrival.at_ms,
                    running_until_ms,
                    items,
                },
            );
        }
    }

    fn refuse(&self, refusal: Refusal, at_ms: u64) -> Reply {
        let wall_ms = (EPOCH_MS + at_ms).saturating_add_signed(self.api.clock_ahead_ms);
        let date = |ahead_s: u64| {
            httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(wall_ms / 1_000 + ahead_s))
        };
        let after = |value: String| vec![("Retry-After".to_owned(), value)];
        let dated = |value: String| {
            vec![
                ("date".to_owned(), date(0)),
                ("retry-after".to_owned(), value),
            ]
        };
        match refusal {
            Refusal::Seconds(seconds) => Reply::Status(429, after(seconds.to_string())),
            Refusal::Decimal => Reply::Status(429, after("1.25".to_owned())),
            Refusal::Busy(seconds) => Reply::Status(503, after(seconds.to_string())),
            Refusal::Date(seconds) => Reply::Status(429, dated(date(seconds))),
            Refusal::PastDate => {
                Reply::Status(429, after("Wed, 21 Oct 2015 07:28:00 GMT".to_owned()))
            }
            Refusal::Silent => Reply::Status(429, Vec::new()),
            Refusal::Zero => Reply::Status(429, after("0".to_owned())),
            Refusal::Garbage => Reply::Status(429, after("soon, -1e3".to_owned())),
            Refusal::TooEarly => Reply::Status(425, Vec::new()),
        }
    }
}

/// The most that may be claimed from one instant to another, the last claim included.
fn allowed(rule: &Rule, span_ms: u64, last_cost: u64) -> u64 {
    let refilled = (span_ms + 1) * rule.limit / rule.window_ms;
    match rule.kind {
        // A bucket that a new owner fills again may be a unit too full.
        Kind::Bucket | Kind::Gcra => rule.limit + refilled + 1,
        Kind::Queue => last_cost + refilled,
        Kind::Log | Kind::Window | Kind::Rest if span_ms > rule.window_ms => u64::MAX / 2,
        Kind::Log | Kind::Window | Kind::Rest => rule.limit,
        // Two windows meet in any span that is no longer than one.
        Kind::Fixed | Kind::Counter if span_ms > rule.window_ms => u64::MAX / 2,
        Kind::Fixed | Kind::Counter => 2 * rule.limit,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(kind: Kind, key_ttl_ms: Option<u64>) -> Upstream {
        let rule = Rule {
            limit: 2,
            window_ms: 1_000,
            kind,
        };
        let api = Api {
            budget: Some("b"),
            origin: "https://b.test",
            rules: vec![rule],
            writes: None,
            gives_up_ms: None,
            max_in_flight: None,
            key_ttl_ms,
            latency: Latency::Steady(1),
            clock_ahead_ms: 0,
            batch_max: None,
        };
        Upstream::new(api, 1, 1)
    }

    fn arrival(at_ms: u64, fault: Option<Fault>) -> Arrival<'static> {
        let (job, key, is_check) = ("j", Some("k"), false);
        Arrival {
            at_ms,
            job,
            key,
            items: &[],
            fault,
            is_check,
        }
    }

    #[test]
    fn an_arrival_exactly_one_window_old_still_counts() {
        let mut server = server(Kind::Window, None);
        assert!(server.judge_arrival(0, 2, 0, true).is_ok());

        assert!(server.judge_arrival(1_000, 1, 1, true).is_err());
        assert!(server.judge_arrival(2_001, 1, 2, true).is_ok());
    }

    #[test]
    fn a_bucket_allows_what_it_holds_and_refills() {
        let mut server = server(Kind::Bucket, None);
        for _ in 0..3 {
            assert!(server.judge_claim(0, 1).is_ok());
        }

        assert!(server.judge_claim(0, 1).is_err());
        assert!(server.judge_claim(10_000, 3).is_ok());
    }

    #[test]
    fn starts_under_a_log_are_a_window_apart() {
        let mut server = server(Kind::Log, None);
        assert!(server.judge_claim(0, 2).is_ok());

        assert!(server.judge_claim(1_001, 2).is_ok());
        assert!(server.judge_claim(1_500, 1).is_err());
    }

    #[test]
    fn an_even_pace_allows_no_burst() {
        let mut server = server(Kind::Queue, None);
        assert!(server.judge_claim(0, 1).is_ok());
        assert!(server.judge_claim(500, 1).is_ok());

        assert!(server.judge_claim(510, 2).is_err());
    }

    #[test]
    fn a_batch_ends_only_with_a_silence() {
        let mut server = server(Kind::Rest, None);
        assert!(server.judge_arrival(0, 1, 0, true).is_ok());
        assert!(server.judge_arrival(900, 1, 1, true).is_ok());

        assert!(server.judge_arrival(1_800, 1, 2, true).is_err());
        assert!(server.judge_arrival(2_801, 2, 3, true).is_ok());
    }

    #[test]
    fn a_key_is_honoured_until_it_is_too_old() {
        let mut server = server(Kind::Window, Some(1_000));
        server.carry_out(&arrival(0, Some(Fault::Fails(500, true))));

        let again = server.carry_out(&arrival(900, None));
        assert_eq!(again, Reply::Status(200, Vec::new()));
        assert_eq!(server.times_applied("j"), 1);

        server.carry_out(&arrival(1_001, None));
        assert_eq!(server.times_applied("j"), 2);
    }
}
