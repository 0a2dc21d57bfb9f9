//! What tabs ask, one request after the other.

use std::collections::{BTreeMap, BTreeSet};

use paceline_core::ids::{GroupId, JobId, MAX_NAME_CHARS, RequestId};
use paceline_core::io::{Filter, Force, Input, Target};
use paceline_core::job::{Card, GroupRecord, HoldCause, Lane, Outcome, Reason, State};
use paceline_core::time::Now;
use paceline_protocol::budget::{BudgetMessage, parse_budgets};
use paceline_protocol::error::Code;
use paceline_protocol::job::{Defaults, JobMessage, MAX_JOBS, parse_job};
use paceline_protocol::reply::EventMessage;
use paceline_protocol::reply::f64_eq::F64;
use paceline_protocol::request::{
    Cancel, Enqueue, EnqueueMany, Hello, OneBudget, Prioritise, Retry,
};
use paceline_protocol::{HostMessage, Request, WireError};

use crate::told::check_defined;
use crate::{Bulk, Host, Tab, TabId, Wants, What, wire};

impl<B: Clone + Default> Host<B> {
    pub(crate) fn message(
        &mut self,
        tab: TabId,
        re: F64,
        request: Result<Request, WireError>,
        bodies: Vec<(B, u32)>,
        now: Now,
    ) {
        let result = match request {
            Err(error) => {
                // It may have been meant as the answer that is waited for.
                self.lost_its_turn(tab, None, now);
                Err(error)
            }
            Ok(Request::Hello(hello)) => self.hello(tab, re, hello, now),
            Ok(Request::Enqueue(enqueue)) => self.enqueue(tab, re, &enqueue, bodies, now),
            Ok(Request::EnqueueMany(enqueue)) => self.enqueue_many(tab, re, &enqueue, bodies, now),
            Ok(Request::Cancel(cancel)) => self.cancel(tab, re, cancel, now),
            Ok(Request::Retry(retry)) => self.retry(tab, re, retry, now),
            Ok(Request::Prioritise(prioritise)) => self.prioritise(tab, re, prioritise, now),
            Ok(Request::Hold(hold)) => {
                self.hold(tab, re, hold, now);
                Ok(())
            }
            Ok(Request::Resume(resume)) => {
                let request = self.ask(tab, re, What::Other);
                self.credentials.resumed(resume.budget.as_ref());
                self.drive(
                    Input::Resume {
                        request,
                        budget: resume.budget,
                    },
                    now,
                );
                Ok(())
            }
            Ok(Request::Subscribe) => {
                self.subscribe(tab, re, true);
                Ok(())
            }
            Ok(Request::Unsubscribe) => {
                self.subscribe(tab, re, false);
                Ok(())
            }
            Ok(Request::Snapshot) => {
                let snapshot = Box::new(self.snapshot(now));
                self.post(tab, Some(re), HostMessage::Snapshot { snapshot });
                Ok(())
            }
            Ok(Request::Jobs(jobs)) => self.query(tab, re, jobs.filter.unwrap_or_default(), now),
            Ok(Request::Estimate(question)) => self.estimate(tab, re, &question, now),
            Ok(Request::Simulate(question)) => self.simulate(tab, re, &question, now),
            Ok(Request::Metrics(asked)) => {
                self.tell_metrics(tab, re, &asked, now);
                Ok(())
            }
            Ok(Request::Diagnose(asked)) => self.diagnose(tab, re, &asked),
            Ok(Request::Configure(configure)) => {
                self.configure(&configure.budgets, now).map(|()| {
                    self.post(tab, Some(re), HostMessage::Ok);
                })
            }
            Ok(Request::Credentials(given)) => {
                let result = self.take_credentials(tab, re, given, now);
                if result.is_err() {
                    self.lost_its_turn(tab, None, now);
                }
                result
            }
            Ok(Request::Bye) => {
                self.tab_left(tab, now);
                Ok(())
            }
            Ok(_) => Err(WireError::plain(
                Code::Protocol,
                "a request that this host does not know",
            )),
        };
        if let Err(error) = result {
            self.post(tab, Some(re), HostMessage::Error(error));
        }
    }

    fn hello(&mut self, tab: TabId, re: F64, hello: Hello, now: Now) -> Result<(), WireError> {
        let principal = hello.principal.unwrap_or_default();
        if principal.chars().count() > MAX_NAME_CHARS {
            let expected = "up to 255 characters";
            return Err(WireError::field(
                Code::BadJob,
                "principal",
                expected,
                &principal,
            ));
        }
        if let Some(budgets) = &hello.budgets {
            self.configure(budgets, now)?;
        }
        self.sign_in(&principal, now);
        self.tabs.insert(
            tab,
            Tab {
                principal,
                is_subscribed: false,
                has_credentials: hello.credentials == Some(true),
                follows_metrics: false,
            },
        );
        let message = HostMessage::Welcome {
            host: self.config.kind.clone(),
            durable: self.config.durable,
            version: self.config.version.clone(),
            birth: self.birth,
        };
        self.post(tab, Some(re), message);
        if hello.credentials == Some(true) {
            self.ask_newcomer(tab, now);
        } else {
            self.tell_newcomer(tab);
        }
        if self.quarantined > 0 {
            let message = format!(
                "{} stored records could not be read and were set aside",
                self.quarantined
            );
            self.post(
                tab,
                None,
                HostMessage::Event(EventMessage::Storage { message }),
            );
        }
        Ok(())
    }

    fn configure(&mut self, budgets: &[BudgetMessage], now: Now) -> Result<(), WireError> {
        let parsed = parse_budgets(budgets)?;
        check_defined(&parsed, &self.config.dialects)?;
        self.budgets.check_parents(&parsed)?;
        let changed = self.budgets.declare(parsed);
        if changed.is_empty() {
            return Ok(());
        }
        self.drive(Input::Configure(changed), now);
        let tabs: Vec<TabId> = self.tabs.keys().copied().collect();
        for tab in tabs {
            self.post(tab, None, HostMessage::Event(EventMessage::ConfigChanged));
        }
        Ok(())
    }

    fn enqueue(
        &mut self,
        tab: TabId,
        re: F64,
        enqueue: &Enqueue,
        bodies: Vec<(B, u32)>,
        now: Now,
    ) -> Result<(), WireError> {
        let size = bodies.first().map_or(0, |(_, size)| *size);
        let card = self.card(tab, &enqueue.job, "job", Lane::Interactive, None, size, now)?;
        self.hand_in(std::slice::from_ref(&card), bodies);
        let request = self.ask(tab, re, What::One);
        let is_again = enqueue.again == Some(true);
        self.accept(request, vec![card], is_again, now);
        Ok(())
    }

    fn enqueue_many(
        &mut self,
        tab: TabId,
        re: F64,
        enqueue: &EnqueueMany,
        bodies: Vec<(B, u32)>,
        now: Now,
    ) -> Result<(), WireError> {
        if enqueue.jobs.len() > MAX_JOBS {
            let got = enqueue.jobs.len().to_string();
            return Err(WireError::field(
                Code::BadJob,
                "jobs",
                "at most 100000 jobs",
                &got,
            ));
        }
        let name = match &enqueue.group {
            Some(name) => name.clone(),
            None => self.fresh_name("group"),
        };
        let bad = |_| WireError::field(Code::BadJob, "group", "1 to 255 characters", &name);
        let group = GroupId::parse(&name).map_err(bad)?;
        let mut cards = Vec::with_capacity(enqueue.jobs.len());
        for (index, job) in enqueue.jobs.iter().enumerate() {
            let size = bodies.get(index).map_or(0, |(_, size)| *size);
            let path = format!("jobs[{index}]");
            let card = self.card(tab, job, &path, Lane::Bulk, Some(&group), size, now);
            let card = card.and_then(|card| in_group(card, &group, &path));
            cards.push(card.map_err(|error| error.at(index))?);
        }
        self.hand_in(&cards, bodies);
        let request = self.ask(tab, re, What::Many(group));
        let is_again = enqueue.again == Some(true);
        self.accept(request, cards, is_again, now);
        Ok(())
    }

    fn accept(&mut self, request: RequestId, cards: Vec<Card>, is_again: bool, now: Now) {
        let implicit: Vec<_> = cards
            .iter()
            .filter_map(|card| self.budgets.use_implicit(&card.budget))
            .collect();
        if !implicit.is_empty() {
            self.drive(Input::Configure(implicit), now);
        }
        // A store in memory died with its host: all in it is made anew.
        let input = match is_again && self.config.durable {
            true => Input::EnqueueAgain { request, cards },
            false => Input::Enqueue { request, cards },
        };
        self.drive(input, now);
        self.bodies.drop_incoming();
    }

    fn hand_in(&mut self, cards: &[Card], bodies: Vec<(B, u32)>) {
        let ids = cards.iter().map(|card| card.id.clone());
        self.bodies
            .hand_in(ids.zip(bodies.into_iter().map(|(body, _)| body)));
    }

    #[allow(clippy::too_many_arguments, reason = "each is one fact about one job")]
    fn card(
        &mut self,
        tab: TabId,
        job: &JobMessage,
        path: &str,
        lane: Lane,
        group: Option<&GroupId>,
        size: u32,
        now: Now,
    ) -> Result<Card, WireError> {
        // Most jobs bring their name.
        let fresh = match job.id {
            Some(_) => String::new(),
            None => self.fresh_name("job"),
        };
        let principal = self.tabs.get(&tab).map_or("", |tab| tab.principal.as_str());
        let defaults = Defaults {
            lane,
            group,
            principal,
            now: now.wall,
            size,
        };
        let mut card = parse_job(
            job,
            path,
            &defaults,
            || fresh,
            |asked, url| {
                let known = || self.core.budget_of(job.id.as_deref()?);
                self.budgets.resolve(asked, url).or_else(known)
            },
        )?;
        let mut method = job.method.as_deref().unwrap_or("GET");
        let mut url = job.url.as_deref().unwrap_or_default();
        if let Some(batched) = &card.batch {
            let batch = self.budgets.batch(&card.budget, &batched.name);
            let is_known = || self.core.budget_of(card.id.as_str()).is_some();
            card.cost = match batch {
                Some(batch) => {
                    (method, url) = (&batch.form.method, &batch.form.url);
                    batch.cost
                }
                None if is_known() => card.cost,
                None => {
                    let (field, got) = (format!("{path}.batch"), batched.name.as_str());
                    let expected = "a batch that its budget declares";
                    return Err(WireError::field(Code::BadJob, field, expected, got));
                }
            };
        } else if job.cost.is_none() {
            card.cost = self.budgets.cost_of(&card.budget, method, url);
        }
        card.budget = self.budgets.part_for(card.budget, method, url);
        Ok(card)
    }

    fn fresh_name(&mut self, what: &str) -> String {
        self.fresh_names += 1;
        format!("{what}-{}-{}", self.config.instance, self.fresh_names)
    }

    pub(crate) fn reply_accepted(
        &mut self,
        tab: TabId,
        re: F64,
        what: What,
        jobs: Vec<(JobId, State, Option<Outcome>)>,
    ) {
        let wants = match &what {
            What::One => Wants::Response,
            What::Many(_) => Wants::Outcome,
            What::Other => return,
        };
        for (id, _, _) in jobs.iter().filter(|(_, state, _)| !state.is_settled()) {
            self.add_asker(tab, id, wants);
        }
        let total = u32::try_from(jobs.len()).unwrap_or(u32::MAX);
        let ended = count(&jobs);
        let unsettled: BTreeSet<JobId> = jobs
            .iter()
            .filter(|(_, state, _)| !state.is_settled())
            .map(|(id, _, _)| id.clone())
            .collect();
        let mut accepted = jobs
            .into_iter()
            .map(|(id, state, outcome)| wire::accepted(&id, state, outcome.as_ref()));
        let (job, group, known) = match what {
            What::Many(group) => {
                let known = accepted.filter(|job| job.state != State::Queued).collect();
                (None, Some(group), known)
            }
            What::One | What::Other => (accepted.next(), None, Vec::new()),
        };
        let message = HostMessage::Accepted {
            job,
            group: group.as_ref().map(|group| group.as_str().to_owned()),
            total,
            known,
        };
        self.post(tab, Some(re), message);
        if let Some(group) = group {
            self.add_group_asker(tab, group, unsettled, ended);
        }
    }

    fn add_asker(&mut self, tab: TabId, id: &JobId, wants: Wants) {
        let tabs = self.askers.entry(id.clone()).or_default();
        let before = tabs.entry(tab).or_insert(wants);
        *before = (*before).max(wants);
    }

    /// Tells a tab how its bulk ended, at once or once it does. Jobs that were known before may belong to another group,
    /// or clean-up may have left nothing of theirs: then the bulk is counted for itself.
    fn add_group_asker(
        &mut self,
        tab: TabId,
        group: GroupId,
        unsettled: BTreeSet<JobId>,
        ended: GroupRecord,
    ) {
        let whole = self
            .core
            .group(&group)
            .filter(|record| record.total >= ended.total);
        match whole {
            Some(record) if record.settled_at.is_none() => {
                self.group_askers.entry(group).or_default().insert(tab);
            }
            Some(record) => self.tell_bulk(tab, &group, record),
            None if unsettled.is_empty() => self.tell_bulk(tab, &group, ended),
            None => self.bulks.push(Bulk {
                tab,
                group,
                unsettled,
                record: ended,
            }),
        }
    }

    fn tell_bulk(&mut self, tab: TabId, group: &GroupId, record: GroupRecord) {
        let message = wire::group_settled(group, record.done, record.failed, record.cancelled);
        self.post(tab, None, message);
    }

    /// Counts a settled job in the bulks that wait for it, and tells those that have ended.
    pub(crate) fn count_in_bulks(&mut self, id: &JobId, state: State) {
        for bulk in &mut self.bulks {
            if bulk.unsettled.remove(id) {
                add(&mut bulk.record, state);
            }
        }
        let (ended, waiting) = std::mem::take(&mut self.bulks)
            .into_iter()
            .partition(|bulk| bulk.unsettled.is_empty());
        self.bulks = waiting;
        let ended: Vec<Bulk> = ended;
        for bulk in ended {
            self.tell_bulk(bulk.tab, &bulk.group, bulk.record);
        }
    }

    fn cancel(&mut self, tab: TabId, re: F64, cancel: Cancel, now: Now) -> Result<(), WireError> {
        let mut target = target(cancel.jobs, cancel.group)?;
        let is_abort = cancel.aborted == Some(true);
        let reason = if is_abort {
            Reason::Aborted
        } else {
            Reason::Cancelled
        };
        if let Target::Jobs(ids) = &mut target
            && is_abort
        {
            // An abort speaks for its caller alone: the job goes on while another tab asks for it.
            ids.retain(|id| !self.is_asked_by_others(tab, id));
        }
        let request = Some(self.ask(tab, re, What::Other));
        self.drive(
            Input::Cancel {
                request,
                target,
                reason,
            },
            now,
        );
        Ok(())
    }

    fn is_asked_by_others(&mut self, tab: TabId, id: &JobId) -> bool {
        let Some(tabs) = self.askers.get_mut(id) else {
            return false;
        };
        if tabs.keys().all(|other| *other == tab) {
            return false;
        }
        tabs.remove(&tab);
        true
    }

    fn retry(&mut self, tab: TabId, re: F64, retry: Retry, now: Now) -> Result<(), WireError> {
        let target = target(retry.jobs, retry.group)?;
        let (failed, wants) = self.failed_of(&target, now);
        let group = match &target {
            Target::Group(group) => Some(group.clone()),
            Target::Jobs(_) => None,
        };
        let force = if retry.force == Some(true) {
            Force::Yes
        } else {
            Force::No
        };
        let request = self.ask(tab, re, What::Other);
        self.drive(
            Input::Retry {
                request,
                target,
                force,
            },
            now,
        );
        let is_revived = |id: &JobId| !self.has_failed(id, now);
        let revived: Vec<JobId> = failed.into_iter().filter(is_revived).collect();
        if let Some(group) = group.filter(|_| !revived.is_empty()) {
            self.group_askers.entry(group).or_default().insert(tab);
        }
        for id in revived {
            self.add_asker(tab, &id, wants);
        }
        Ok(())
    }

    fn prioritise(
        &mut self,
        tab: TabId,
        re: F64,
        prioritise: Prioritise,
        now: Now,
    ) -> Result<(), WireError> {
        let target = target(prioritise.jobs, prioritise.group)?;
        let lane = prioritise.lane;
        let request = self.ask(tab, re, What::Other);
        self.drive(
            Input::Prioritise {
                request,
                target,
                lane,
            },
            now,
        );
        Ok(())
    }

    /// The failed jobs of a target, and what their asker wants to hear: of single jobs their responses, as of an `enqueue`.
    fn failed_of(&self, target: &Target, now: Now) -> (Vec<JobId>, Wants) {
        match target {
            Target::Jobs(ids) => {
                let failed = ids.iter().filter(|id| self.has_failed(id, now));
                (failed.cloned().collect(), Wants::Response)
            }
            Target::Group(group) => {
                let filter = Filter {
                    group: Some(group.clone()),
                    state: Some(State::Failed),
                    limit: usize::MAX,
                    ..Filter::default()
                };
                let failed = self.core.jobs(&filter, now).into_iter();
                (failed.map(|view| view.card.id).collect(), Wants::Outcome)
            }
        }
    }

    /// Tells whether a job has failed.
    fn has_failed(&self, id: &JobId, now: Now) -> bool {
        let filter = Filter {
            id: Some(id.clone()),
            state: Some(State::Failed),
            limit: 1,
            ..Filter::default()
        };
        !self.core.jobs(&filter, now).is_empty()
    }

    fn hold(&mut self, tab: TabId, re: F64, hold: OneBudget, now: Now) {
        let request = Some(self.ask(tab, re, What::Other));
        self.drive(
            Input::Hold {
                request,
                budget: hold.budget,
                cause: HoldCause::User,
            },
            now,
        );
    }

    /// A tab, also one that has not said hello.
    pub(crate) fn tab_mut(&mut self, tab: TabId) -> &mut Tab {
        self.tabs.entry(tab).or_insert_with(|| Tab {
            principal: String::new(),
            is_subscribed: false,
            has_credentials: false,
            follows_metrics: false,
        })
    }

    fn subscribe(&mut self, tab: TabId, re: F64, is_subscribed: bool) {
        self.tab_mut(tab).is_subscribed = is_subscribed;
        if is_subscribed {
            self.is_dirty = true;
            self.snapshot_sent = None;
        }
        self.post(tab, Some(re), HostMessage::Ok);
    }
}

/// A job of a bulk belongs to the bulk's group, whose end its tab waits for.
fn in_group(card: Card, group: &GroupId, path: &str) -> Result<Card, WireError> {
    match &card.group {
        Some(own) if own != group => Err(WireError::field(
            Code::BadJob,
            format!("{path}.group"),
            "none, or the group of the request",
            own.as_str(),
        )),
        Some(_) | None => Ok(card),
    }
}

/// Counts how jobs ended, each name once; the total counts those that have not, too.
fn count(jobs: &[(JobId, State, Option<Outcome>)]) -> GroupRecord {
    let states: BTreeMap<&JobId, State> = jobs.iter().map(|(id, state, _)| (id, *state)).collect();
    let mut record = GroupRecord::default();
    for state in states.into_values() {
        record.total += 1;
        add(&mut record, state);
    }
    record
}

fn add(record: &mut GroupRecord, state: State) {
    match state {
        State::Done => record.done += 1,
        State::Failed => record.failed += 1,
        State::Cancelled => record.cancelled += 1,
        State::Queued | State::Sending | State::RetryWait => {}
    }
}

fn target(jobs: Option<Vec<JobId>>, group: Option<GroupId>) -> Result<Target, WireError> {
    match (jobs, group) {
        (Some(jobs), None) => Ok(Target::Jobs(jobs)),
        (None, Some(group)) => Ok(Target::Group(group)),
        (Some(_), Some(_)) => Err(WireError::field(
            Code::BadJob,
            "group",
            "either jobs or a group",
            "both",
        )),
        (None, None) => Err(WireError::field(
            Code::BadJob,
            "jobs",
            "names of jobs, or a group",
            "nothing",
        )),
    }
}
