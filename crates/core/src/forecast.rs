//! Runs a copy of one budget ahead: what `estimate` and `simulate` answer from.
//!
//! The copy is asked and told by the very calls that the scheduler makes (`check`, `take`, `answered`, `succeeded`,
//! `reopen_if_due`), so that whatever a budget knows of limits, pauses and ramps holds here too. Assumed is what nobody
//! can know: every request is answered with success after the mean time of the last answers, nothing else is handed
//! in, and jobs that wait behind their key may go after the ready ones of their lane.
//!
//! **Bounded work.** At most the given number of starts is run one by one. What is left then is reckoned by whole
//! windows of each rule, which errs late, by up to one window of the rule that binds.
//!
//! Owns no state of the scheduler and changes none.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::budget::{Asked, Blocked, Budget, Work};
use crate::config::LimitRule;
use crate::histogram::Histogram;
use crate::ids::Seq;
use crate::io::Cause;
use crate::job::Lane;
use crate::lane::Rank;
use crate::limit::Ticket;
use crate::time::{Mono, Now};

/// The most points of a step's timeline.
pub const POINTS: u32 = 32;

/// Where the places of imagined jobs begin, above those of all real ones.
const IMAGINED: u64 = 1 << 63;
/// Instants that are looked at for each start, on average, before a run is given up as too long.
const TURNS_A_START: u32 = 8;

/// Jobs of one kind that a plan adds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub(crate) lane: Lane,
    pub(crate) cost: u32,
    pub(crate) count: u32,
    pub(crate) every_ms: u64,
}

/// What a budget has to do before any plan.
#[derive(Clone, Debug, Default)]
pub(crate) struct Backlog {
    /// Costs and numbers of jobs that may go, by lane, in their order.
    pub(crate) ready: [VecDeque<(u32, u32)>; 3],
    /// Jobs that may go later, with a number that tells equal ones apart, their lane and cost.
    pub(crate) delayed: BTreeSet<(Mono, usize, Lane, u32)>,
    /// Attempts on their way, by the instant at which they are taken to end.
    pub(crate) in_flight: BTreeSet<(Mono, Ticket)>,
}

/// What became of one load.
#[derive(Clone, Debug, Default)]
pub(crate) struct Course {
    pub(crate) first_start: Option<Mono>,
    /// None when it never ends: the budget is held.
    pub(crate) last_end: Option<Mono>,
    pub(crate) waits: Histogram,
    pub(crate) points: Vec<(Mono, u32)>,
}

/// What a run came to.
#[derive(Clone, Debug)]
pub(crate) struct Outlook {
    pub(crate) courses: Vec<Course>,
    /// The rules that defer a start, each with the instant when it first does.
    pub(crate) used_up: Vec<(LimitRule, Mono)>,
    pub(crate) is_extrapolated: bool,
}

/// One budget that is run ahead.
#[derive(Debug)]
pub(crate) struct Forecast {
    budget: Budget,
    began: Now,
    now: Now,
    latency_ms: u64,
    backlog: Backlog,
    loads: Vec<Running>,
    /// Attempts on their way, and the load that each belongs to.
    ends: BTreeMap<(Mono, Ticket), Option<usize>>,
    started: u64,
    used_up: Vec<(LimitRule, Mono)>,
}

#[derive(Debug)]
struct Running {
    load: Load,
    started: u32,
    ended: u32,
    course: Course,
}

impl Running {
    const fn left(&self) -> u32 {
        self.load.count.saturating_sub(self.started)
    }

    /// When its next job is handed in.
    fn next_at(&self, began: Mono) -> Option<Mono> {
        let after_ms = self.load.every_ms.saturating_mul(u64::from(self.started));
        (self.left() > 0).then(|| began.plus(after_ms))
    }

    /// When its last job is handed in.
    fn last_at(&self, began: Mono) -> Mono {
        let gaps = u64::from(self.load.count.saturating_sub(1));
        began.plus(self.load.every_ms.saturating_mul(gaps))
    }
}

/// Whose turn it is.
#[derive(Clone, Copy, Debug)]
struct Next {
    owner: Option<usize>,
    cost: u32,
    handed_in: Mono,
}

impl Forecast {
    /// Makes one from a copy of a budget, what that has to do, and what a plan adds.
    pub(crate) fn new(budget: Budget, backlog: Backlog, loads: Vec<Load>, now: Now) -> Self {
        let ends = backlog.in_flight.iter().map(|end| (*end, None)).collect();
        let loads = loads.into_iter().map(|load| Running {
            load,
            started: 0,
            ended: 0,
            course: Course::default(),
        });
        Self {
            latency_ms: budget.usual_latency_ms(),
            budget,
            began: now,
            now,
            backlog,
            loads: loads.collect(),
            ends,
            started: 0,
            used_up: Vec::new(),
        }
    }

    /// Runs until the plan's last job has ended, nothing more can happen, or that many starts were run.
    pub(crate) fn run(mut self, max_starts: u32) -> Outlook {
        let mut left = max_starts;
        let mut turns = max_starts.saturating_mul(TURNS_A_START);
        loop {
            self.turn();
            let retry_at = self.pump(&mut left);
            turns = turns.saturating_sub(1);
            if left == 0 || turns == 0 || self.is_over() {
                break;
            }
            let Some(next) = self.next_instant(retry_at) else {
                return self.told(false);
            };
            self.go_to(next);
        }
        let is_over = self.loads.iter().all(|running| running.left() == 0);
        self.end_started();
        if !is_over {
            self.reckon();
        }
        self.told(!is_over)
    }

    fn told(self, is_extrapolated: bool) -> Outlook {
        Outlook {
            courses: self
                .loads
                .into_iter()
                .map(|running| running.course)
                .collect(),
            used_up: self.used_up,
            is_extrapolated,
        }
    }

    fn is_over(&self) -> bool {
        self.loads.iter().all(|running| running.left() == 0)
    }

    /// The earliest instant after now at which anything changes.
    fn next_instant(&self, retry_at: Option<Mono>) -> Option<Mono> {
        let ends = self.ends.keys().next().map(|(at, _)| *at);
        let delayed = self.backlog.delayed.first().map(|(at, ..)| *at);
        let began = self.began.mono;
        let arrivals = self
            .loads
            .iter()
            .filter_map(|running| running.next_at(began))
            .filter(|at| *at > self.now.mono)
            .min();
        let next = [retry_at, ends, delayed, arrivals]
            .into_iter()
            .flatten()
            .min();
        next.map(|at| at.max(self.now.mono.plus(1)))
    }

    fn go_to(&mut self, at: Mono) {
        let wall = self.began.wall.plus(at.since(self.began.mono));
        self.now = Now { mono: at, wall };
    }

    /// Does what time alone brings.
    fn turn(&mut self) {
        let now = self.now.mono;
        self.budget.reopen_if_due(now);
        while let Some(entry) = self.ends.first_entry() {
            let (at, ticket) = *entry.key();
            if at > now {
                break;
            }
            let owner = entry.remove();
            self.end(ticket, owner, at);
        }
        while let Some(first) = self.backlog.delayed.first().copied() {
            let (at, _, lane, cost) = first;
            if at > now {
                break;
            }
            self.backlog.delayed.remove(&first);
            if let Some(ready) = self.backlog.ready.get_mut(lane.index()) {
                ready.push_back((cost, 1));
            }
        }
    }

    fn end(&mut self, ticket: Ticket, owner: Option<usize>, at: Mono) {
        self.budget.answered(ticket, self.latency_ms, at);
        self.budget.succeeded(at, at);
        if let Some(running) = owner.and_then(|owner| self.loads.get_mut(owner)) {
            note_end(running, at);
        }
    }

    /// Starts what may start now. Returns when to try again at the latest, as far as that is known.
    fn pump(&mut self, left: &mut u32) -> Option<Mono> {
        while *left > 0 {
            self.fill_lanes();
            let (lane, _) = self.budget.lanes.next()?;
            let next = self.first_of(lane)?;
            let now = self.now.mono;
            let asked = Asked {
                urgency: self.budget.urgency(lane),
                cost: next.cost,
                horizon: now,
            };
            match self.budget.check(asked, now) {
                Ok(start) => self.start(lane, next, start),
                Err(blocked) => {
                    self.note_used_up(blocked);
                    return blocked.until;
                }
            }
            *left = left.saturating_sub(1);
        }
        None
    }

    /// Puts one place into each lane in which a job may go, so that the budget's own lanes choose.
    fn fill_lanes(&mut self) {
        for lane in Lane::ALL {
            let place = (Rank::InTurn, Seq::from_u64(0));
            if self.first_of(lane).is_some() {
                self.budget.lanes.insert(lane, place);
            } else {
                self.budget.lanes.remove(lane, place);
            }
        }
    }

    /// The job of a lane that goes first: what waited before the plan, then the plan in the order of handing in.
    fn first_of(&self, lane: Lane) -> Option<Next> {
        let began = self.began.mono;
        let ready = self.backlog.ready.get(lane.index());
        if let Some((cost, _)) = ready.and_then(VecDeque::front) {
            return Some(Next {
                owner: None,
                cost: *cost,
                handed_in: began,
            });
        }
        let arrived = self
            .loads
            .iter()
            .enumerate()
            .filter_map(|(owner, running)| {
                let at = running.next_at(began)?;
                let is_here = running.load.lane == lane && at <= self.now.mono;
                is_here.then_some((at, owner, running.load.cost))
            });
        let (handed_in, owner, cost) = arrived.min()?;
        Some(Next {
            owner: Some(owner),
            cost,
            handed_in,
        })
    }

    fn start(&mut self, lane: Lane, next: Next, start: Mono) {
        let wall = self.now.wall.plus(start.since(self.now.mono));
        let ticket = (Seq::from_u64(IMAGINED.saturating_add(self.started)), 1);
        self.started = self.started.saturating_add(1);
        self.budget
            .take(ticket, next.cost, Now { mono: start, wall });
        match next.owner.and_then(|owner| self.loads.get_mut(owner)) {
            Some(running) => {
                running.started = running.started.saturating_add(1);
                running.course.first_start.get_or_insert(start);
                running.course.waits.add(start.since(next.handed_in));
            }
            None => self.take_ready(lane),
        }
        self.fill_lanes();
        self.budget.started(lane, next.cost, start);
        let ends_at = start.plus(self.latency_ms);
        self.ends.insert((ends_at, ticket), next.owner);
    }

    fn take_ready(&mut self, lane: Lane) {
        let Some(ready) = self.backlog.ready.get_mut(lane.index()) else {
            return;
        };
        let Some((_, count)) = ready.front_mut() else {
            return;
        };
        *count = count.saturating_sub(1);
        if *count == 0 {
            ready.pop_front();
        }
    }

    fn note_used_up(&mut self, blocked: Blocked) {
        let Some(rule) = blocked.rule.filter(|_| blocked.cause == Cause::Rate) else {
            return;
        };
        self.note_rule(rule, self.now.mono);
    }

    fn note_rule(&mut self, rule: LimitRule, at: Mono) {
        let is_same = |(known, _): &(LimitRule, Mono)| {
            known.window_ms() == rule.window_ms() && known.algorithm() == rule.algorithm()
        };
        if !self.used_up.iter().any(is_same) {
            self.used_up.push((rule, at));
        }
    }

    /// Lets what has started come to its end, for the plan's own account.
    fn end_started(&mut self) {
        for ((at, ticket), owner) in std::mem::take(&mut self.ends) {
            self.end(ticket, owner, at);
        }
    }

    /// Reckons when loads end whose last jobs were not run.
    fn reckon(&mut self) {
        let began = self.began.mono;
        for index in 0..self.loads.len() {
            let Some(last_at) = self.loads.get(index).map(|running| running.last_at(began)) else {
                continue;
            };
            if self
                .loads
                .get(index)
                .is_some_and(|running| running.left() == 0)
            {
                continue;
            }
            let work = self.work_before(index);
            let reckoned = self.budget.reckon(work, self.now.mono);
            for (rule, at) in reckoned.used_up {
                self.note_rule(rule, at);
            }
            let last_start = self.now.mono.plus(reckoned.last_start_ms).max(last_at);
            let Some(running) = self.loads.get_mut(index) else {
                continue;
            };
            running.course.first_start.get_or_insert(last_start);
            let done_at = last_start.plus(self.latency_ms);
            running.ended = running.load.count;
            running.course.last_end = Some(done_at);
            running.course.points.push((done_at, running.load.count));
        }
    }

    /// What goes before the end of a load, itself included: the more urgent lanes, its own in order, and the shares of
    /// the less urgent ones.
    fn work_before(&self, index: usize) -> Work {
        let Some(lane) = self.loads.get(index).map(|running| running.load.lane) else {
            return Work::default();
        };
        let mut by_lane = [Work::default(); 3];
        for (work, ready) in by_lane.iter_mut().zip(&self.backlog.ready) {
            for (cost, count) in ready {
                work.add(u64::from(*count), *cost);
            }
        }
        for (other, running) in self.loads.iter().enumerate() {
            let goes_before = running.load.lane != lane || other <= index;
            if let Some(work) = by_lane.get_mut(running.load.lane.index())
                && goes_before
            {
                work.add(u64::from(running.left()), running.load.cost);
            }
        }
        let own = Lane::ALL.into_iter().zip(by_lane);
        let (before, after): (Vec<_>, Vec<_>) = own.partition(|(other, _)| *other <= lane);
        let mut work = before
            .into_iter()
            .fold(Work::default(), |all, (_, one)| all.plus(one));
        for (other, waiting) in after {
            work = work.plus(waiting.share_of(crate::lane::starts_for_one(other), work));
        }
        work
    }
}

fn note_end(running: &mut Running, at: Mono) {
    let before = running.ended;
    running.ended = before.saturating_add(1);
    let count = u64::from(running.load.count);
    let point = |ended: u32| u64::from(ended).saturating_mul(u64::from(POINTS - 1)) / count;
    let course = &mut running.course;
    if running.ended == running.load.count {
        course.last_end = Some(at);
    }
    if point(running.ended) == point(before) && before > 0 {
        return;
    }
    match course.points.last_mut() {
        Some((last, done)) if *last == at => *done = running.ended,
        Some(_) | None => course.points.push((at, running.ended)),
    }
}
