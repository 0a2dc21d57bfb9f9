//! What tabs ask, one request after the other.

use paceline_core::ids::{GroupId, JobId};
use paceline_core::io::{Force, Input, Target};
use paceline_core::job::{Card, HoldCause, Lane, Outcome, Reason, State};
use paceline_core::time::Now;
use paceline_protocol::budget::{BudgetMessage, parse_budgets};
use paceline_protocol::error::Code;
use paceline_protocol::job::{Defaults, JobMessage, MAX_JOBS, parse_job};
use paceline_protocol::reply::EventMessage;
use paceline_protocol::reply::f64_eq::F64;
use paceline_protocol::request::{Cancel, Enqueue, EnqueueMany, Hello, OneBudget, Retry};
use paceline_protocol::{HostMessage, Request, WireError};

use crate::{Host, Tab, TabId, Wants, What, wire};

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
            Err(error) => Err(error),
            Ok(Request::Hello(hello)) => self.hello(tab, re, hello, now),
            Ok(Request::Enqueue(enqueue)) => self.enqueue(tab, re, &enqueue, bodies, now),
            Ok(Request::EnqueueMany(enqueue)) => self.enqueue_many(tab, re, &enqueue, bodies, now),
            Ok(Request::Cancel(cancel)) => self.cancel(tab, re, cancel, now),
            Ok(Request::Retry(retry)) => self.retry(tab, re, retry, now),
            Ok(Request::Hold(hold)) => {
                self.hold(tab, re, hold, now);
                Ok(())
            }
            Ok(Request::Resume(resume)) => {
                let request = self.ask(tab, re, What::Other);
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
            Ok(Request::Configure(configure)) => {
                self.configure(&configure.budgets, now).map(|()| {
                    self.post(tab, Some(re), HostMessage::Ok);
                })
            }
            Ok(Request::Bye) => {
                self.tab_left(tab);
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
        if let Some(budgets) = &hello.budgets {
            self.configure(budgets, now)?;
        }
        let principal = hello.principal.unwrap_or_default();
        self.tabs.insert(
            tab,
            Tab {
                principal,
                is_subscribed: false,
            },
        );
        let message = HostMessage::Welcome {
            host: self.config.kind.clone(),
            durable: self.config.durable,
            version: self.config.version.clone(),
        };
        self.post(tab, Some(re), message);
        Ok(())
    }

    fn configure(&mut self, budgets: &[BudgetMessage], now: Now) -> Result<(), WireError> {
        let changed = self.budgets.declare(parse_budgets(budgets)?);
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
        let id = card.id.clone();
        self.askers
            .entry(id.clone())
            .or_default()
            .insert(tab, Wants::Response);
        self.hand_in(std::slice::from_ref(&card), bodies);
        let request = self.ask(tab, re, What::One(id));
        self.accept(request, vec![card], now);
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
            cards.push(card.map_err(|error| error.at(index))?);
        }
        let ids: Vec<JobId> = cards.iter().map(|card| card.id.clone()).collect();
        for id in &ids {
            self.askers
                .entry(id.clone())
                .or_default()
                .entry(tab)
                .or_insert(Wants::Outcome);
        }
        self.group_askers
            .entry(group.clone())
            .or_default()
            .insert(tab);
        self.hand_in(&cards, bodies);
        let request = self.ask(tab, re, What::Many { group, ids });
        self.accept(request, cards, now);
        Ok(())
    }

    fn accept(&mut self, request: paceline_core::ids::RequestId, cards: Vec<Card>, now: Now) {
        let implicit: Vec<_> = cards
            .iter()
            .filter_map(|card| self.budgets.use_implicit(&card.budget))
            .collect();
        if !implicit.is_empty() {
            self.drive(Input::Configure(implicit), now);
        }
        self.drive(Input::Enqueue { request, cards }, now);
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
        let fresh = self.fresh_name("job");
        let principal = self.tabs.get(&tab).map_or("", |tab| tab.principal.as_str());
        let defaults = Defaults {
            lane,
            group,
            principal,
            now: now.wall,
            size,
        };
        parse_job(
            job,
            path,
            &defaults,
            || fresh,
            |asked, url| self.budgets.resolve(asked, url),
        )
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
        for (id, state, _) in &jobs {
            if state.is_settled()
                && let Some(tabs) = self.askers.get_mut(id)
            {
                tabs.remove(&tab);
            }
        }
        let total = u32::try_from(jobs.len()).unwrap_or(u32::MAX);
        let accepted = jobs
            .into_iter()
            .map(|(id, state, outcome)| wire::accepted(&id, state, outcome.as_ref()));
        match what {
            What::One(_) => {
                let job = accepted.into_iter().next();
                let message = HostMessage::Accepted {
                    job,
                    group: None,
                    total,
                    known: Vec::new(),
                };
                self.post(tab, Some(re), message);
            }
            What::Many { group, .. } => {
                let known = accepted.filter(|job| job.state != State::Queued).collect();
                let name = Some(group.as_str().to_owned());
                self.post(
                    tab,
                    Some(re),
                    HostMessage::Accepted {
                        job: None,
                        group: name,
                        total,
                        known,
                    },
                );
                let record = self
                    .core
                    .group(&group)
                    .filter(|record| record.settled_at.is_some());
                if let Some(record) = record {
                    let message =
                        wire::group_settled(&group, record.done, record.failed, record.cancelled);
                    self.post(tab, None, message);
                }
            }
            What::Other => {}
        }
    }

    /// Takes back that a tab asked for jobs that were refused.
    pub(crate) fn forget_asker(&mut self, tab: TabId, what: &What) {
        let ids = match what {
            What::One(id) => std::slice::from_ref(id),
            What::Many { ids, .. } => ids,
            What::Other => return,
        };
        for id in ids {
            if let Some(tabs) = self.askers.get_mut(id) {
                tabs.remove(&tab);
                if tabs.is_empty() {
                    self.askers.remove(id);
                }
            }
        }
    }

    fn cancel(&mut self, tab: TabId, re: F64, cancel: Cancel, now: Now) -> Result<(), WireError> {
        let target = target(cancel.jobs, cancel.group)?;
        let reason = if cancel.aborted == Some(true) {
            Reason::Aborted
        } else {
            Reason::Cancelled
        };
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

    fn retry(&mut self, tab: TabId, re: F64, retry: Retry, now: Now) -> Result<(), WireError> {
        let target = target(retry.jobs, retry.group)?;
        if let Target::Jobs(ids) = &target {
            for id in ids {
                self.askers
                    .entry(id.clone())
                    .or_default()
                    .entry(tab)
                    .or_insert(Wants::Response);
            }
        }
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
        Ok(())
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

    fn subscribe(&mut self, tab: TabId, re: F64, is_subscribed: bool) {
        let entry = self.tabs.entry(tab);
        entry
            .or_insert_with(|| Tab {
                principal: String::new(),
                is_subscribed,
            })
            .is_subscribed = is_subscribed;
        if is_subscribed {
            self.is_dirty = true;
            self.snapshot_sent = None;
        }
        self.post(tab, Some(re), HostMessage::Ok);
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
