//! Credentials of budgets: asks tabs for them, keeps them in memory, and adds them to what is sent.
//!
//! Owns who is asked and what was given. A budget that wants some is one flight: one tab at a time is asked, each once,
//! the newest first; a tab that answers nothing, nonsense or too late costs itself its turn. When nobody is left to ask, or
//! fresh ones were refused, all tabs are told once. Invariant: a value leaves this module only into a request that is
//! sent; nothing here is stored, logged or shown, and what one principal gave is gone when another signs in.

use std::collections::{BTreeMap, BTreeSet};

use paceline_core::ids::BudgetId;
use paceline_core::io::{Input, Wanted};
use paceline_core::time::{Mono, Now};
use paceline_protocol::credentials::Credentials as Given;
use paceline_protocol::reply::EventMessage;
use paceline_protocol::reply::f64_eq::F64;
use paceline_protocol::{Code, HostMessage, Secrets, WireError};

use crate::{Host, TabId};

/// How long a tab has to answer: it may have to fetch a token itself.
const ANSWER_MS: u64 = 30_000;

#[derive(Debug, Default)]
pub(crate) struct Credentials {
    /// The principal of the newest `hello`.
    signed_in: String,
    given: BTreeMap<BudgetId, Secrets>,
    flights: BTreeMap<BudgetId, Flight>,
    /// Budgets that get what they were given once more.
    again: BTreeSet<BudgetId>,
}

/// A budget that waits for credentials.
#[derive(Debug)]
struct Flight {
    wanted: Wanted,
    asking: Option<(TabId, Mono)>,
    asked: BTreeSet<TabId>,
    is_told: bool,
}

impl Credentials {
    /// Returns what is added to a budget's requests.
    pub(crate) fn of(&self, budget: &BudgetId) -> Secrets {
        self.given.get(budget).cloned().unwrap_or_default()
    }

    /// Returns when the first tab that is asked loses its turn.
    pub(crate) fn deadline(&self) -> Option<Mono> {
        let asking = |flight: &Flight| flight.asking.map(|(_, until)| until);
        self.flights.values().filter_map(asking).min()
    }

    /// Forgets flights that a resume has ended.
    pub(crate) fn resumed(&mut self, budget: Option<&BudgetId>) {
        match budget {
            Some(budget) => drop(self.flights.remove(budget)),
            None => self.flights.clear(),
        }
    }
}

impl<B: Clone + Default> Host<B> {
    /// A budget wants credentials: a tab is asked, or all are told.
    pub(crate) fn want_credentials(&mut self, budget: BudgetId, wanted: Wanted, now: Now) {
        if wanted == Wanted::Missing && self.credentials.given.contains_key(&budget) {
            // One for a scope of its server, made since.
            self.credentials.again.insert(budget);
            return;
        }
        let flight = self.credentials.flights.get(&budget);
        if flight.is_some_and(|flight| flight.asking.is_some()) {
            return;
        }
        let flight = Flight {
            wanted,
            asking: None,
            asked: BTreeSet::new(),
            is_told: false,
        };
        self.credentials.flights.insert(budget.clone(), flight);
        if wanted == Wanted::Refused {
            // Asking again at once would bring the same, without end.
            self.tell_needed(&budget);
        } else {
            self.ask_next(&budget, now);
        }
    }

    /// A tab gives credentials, whether or not it was asked.
    pub(crate) fn take_credentials(
        &mut self,
        tab: TabId,
        re: F64,
        given: Given,
        now: Now,
    ) -> Result<(), WireError> {
        given.check()?;
        let budget = given.budget;
        let Some(headers) = given.headers else {
            self.lost_its_turn(tab, Some(&budget), now);
            self.post(tab, Some(re), HostMessage::Ok);
            return Ok(());
        };
        self.check_giver(tab)?;
        if let Some(config) = self.budgets.use_implicit(&budget) {
            self.drive(Input::Configure(vec![config]), now);
        }
        if !self.core.has_budget(&budget) {
            let (field, expected) = ("budget", "a declared budget");
            let got = budget.as_str();
            return Err(WireError::field(Code::UnknownBudget, field, expected, got));
        }
        self.credentials.flights.remove(&budget);
        self.credentials.given.insert(budget.clone(), headers);
        self.drive(Input::CredentialsGiven { budget }, now);
        self.post(tab, Some(re), HostMessage::Ok);
        Ok(())
    }

    /// Only who is signed in may say what is sent in their name.
    fn check_giver(&self, tab: TabId) -> Result<(), WireError> {
        let principal = self.tabs.get(&tab).map(|tab| tab.principal.as_str());
        if principal == Some(self.credentials.signed_in.as_str()) {
            return Ok(());
        }
        let expected = "the principal of the newest connect";
        let got = principal.unwrap_or("a tab that said no hello");
        Err(WireError::field(Code::BadJob, "principal", expected, got))
    }

    /// Another principal signs in: what the one before gave is forgotten.
    pub(crate) fn sign_in(&mut self, principal: &str, now: Now) {
        if self.credentials.signed_in == principal {
            return;
        }
        principal.clone_into(&mut self.credentials.signed_in);
        for (budget, _) in std::mem::take(&mut self.credentials.given) {
            self.drive(Input::CredentialsTaken { budget }, now);
        }
        for flight in self.credentials.flights.values_mut() {
            flight.asking = None;
            flight.asked.clear();
        }
    }

    /// A tab that can answer has come: it is asked for what nobody is being asked for.
    pub(crate) fn ask_newcomer(&mut self, tab: TabId, now: Now) {
        for flight in self.credentials.flights.values_mut() {
            // It may have said hello once more, and not have heard what it was asked before.
            flight.asking = flight.asking.filter(|(asked, _)| *asked != tab);
            if flight.asking.is_none() {
                flight.asked.remove(&tab);
                flight.is_told = false;
            }
        }
        let flights = self.credentials.flights.iter();
        let waiting = flights.filter(|(_, flight)| flight.asking.is_none());
        let budgets: Vec<BudgetId> = waiting.map(|(budget, _)| budget.clone()).collect();
        for budget in budgets {
            self.ask_next(&budget, now);
        }
    }

    /// The tab does not answer, for one budget or any: the next is asked.
    pub(crate) fn lost_its_turn(&mut self, tab: TabId, budget: Option<&BudgetId>, now: Now) {
        let is_asked = |flight: &Flight| flight.asking.is_some_and(|(asked, _)| asked == tab);
        let flights = self.credentials.flights.iter();
        let lost: Vec<BudgetId> = flights
            .filter(|(id, flight)| is_asked(flight) && budget.is_none_or(|only| only == *id))
            .map(|(id, _)| id.clone())
            .collect();
        for budget in lost {
            self.ask_next(&budget, now);
        }
    }

    /// Tabs that have not answered in time lose their turn.
    pub(crate) fn end_late_answers(&mut self, now: Now) {
        while let Some(budget) = self.credentials.again.pop_first() {
            self.drive(Input::CredentialsGiven { budget }, now);
        }
        let is_late = |flight: &Flight| flight.asking.is_some_and(|(_, until)| until <= now.mono);
        let flights = self.credentials.flights.iter();
        let late: Vec<BudgetId> = flights
            .filter(|(_, flight)| is_late(flight))
            .map(|(budget, _)| budget.clone())
            .collect();
        for budget in late {
            self.ask_next(&budget, now);
        }
    }

    fn ask_next(&mut self, budget: &BudgetId, now: Now) {
        let signed_in = self.credentials.signed_in.as_str();
        let Some(flight) = self.credentials.flights.get_mut(budget) else {
            return;
        };
        let mut able = self
            .tabs
            .iter()
            .rev()
            .filter(|(_, tab)| tab.has_credentials && tab.principal == signed_in);
        let next = able.find_map(|(id, _)| flight.asked.insert(*id).then_some(*id));
        flight.asking = next.map(|tab| (tab, now.mono.plus(ANSWER_MS)));
        let wanted = flight.wanted.as_str();
        let Some(tab) = next else {
            return self.tell_needed(budget);
        };
        let budget = budget.as_str().to_owned();
        self.post(tab, None, HostMessage::CredentialsWanted { budget, wanted });
    }

    fn tell_needed(&mut self, budget: &BudgetId) {
        let tabs: Vec<TabId> = self.tabs.keys().copied().collect();
        let Some(flight) = self.credentials.flights.get_mut(budget) else {
            return;
        };
        if tabs.is_empty() || std::mem::replace(&mut flight.is_told, true) {
            return;
        }
        let (budget, wanted) = (budget.as_str().to_owned(), flight.wanted.as_str());
        let event = EventMessage::CredentialsNeeded { budget, wanted };
        for tab in tabs {
            self.post(tab, None, HostMessage::Event(event.clone()));
        }
    }

    /// Tells a tab that has just come of budgets that wait with nobody to ask.
    pub(crate) fn tell_newcomer(&mut self, tab: TabId) {
        let flights = self.credentials.flights.iter_mut();
        let told = flights.filter(|(_, flight)| flight.asking.is_none());
        let events: Vec<EventMessage> = told
            .map(|(budget, flight)| {
                flight.is_told = true;
                EventMessage::CredentialsNeeded {
                    budget: budget.as_str().to_owned(),
                    wanted: flight.wanted.as_str(),
                }
            })
            .collect();
        for event in events {
            self.post(tab, None, HostMessage::Event(event));
        }
    }
}
