//! `diagnose`: what was seen of a budget's server, and what its owner should change.
//!
//! Owns the counting, in memory and since the host began. Invariant: bounded whatever a server sends; no value of a header
//! is kept, only its name.

use std::collections::{BTreeMap, BTreeSet};

use paceline_core::ids::{BudgetId, Seq};
use paceline_protocol::diagnosis::{DiagnosisMessage, FindingMessage};
use paceline_protocol::error::Code;
use paceline_protocol::reply::f64_eq::F64;
use paceline_protocol::request::OneBudget;
use paceline_protocol::{HostMessage, WireError};
use paceline_signals::Reading;

use crate::{Host, TabId};

/// The most names of headers that are kept of one budget.
const MAX_NAMES: usize = 64;
/// The longest name that is kept, in bytes.
const MAX_NAME_BYTES: usize = 100;
/// The most statuses that are counted apart.
const MAX_STATUSES: usize = 32;

/// What another origin may always read (the Fetch standard's safelist).
const SAFELIST: [&str; 7] = [
    "cache-control",
    "content-language",
    "content-length",
    "content-type",
    "expires",
    "last-modified",
    "pragma",
];

/// What was seen of one budget.
#[derive(Debug, Default)]
struct Witness {
    statuses: BTreeMap<u16, u32>,
    answers: u32,
    /// Answers that said something of a limit.
    told: u32,
    refusals: u32,
    /// Refusals that stated a wait.
    waits: u32,
    unreadable: u32,
    lost: u32,
    keyed_answers: u32,
    keyed_lost: u32,
    dialects: BTreeSet<&'static str>,
    names: BTreeSet<String>,
}

/// What was seen of all of them.
#[derive(Debug, Default)]
pub(crate) struct Witnesses {
    seen: BTreeMap<BudgetId, Witness>,
    /// Requests on their way that carry an idempotency key.
    keyed: BTreeSet<Seq>,
}

impl Witnesses {
    /// Notes that a request leaves with an idempotency key.
    pub(crate) fn keyed(&mut self, seq: Seq) {
        self.keyed.insert(seq);
    }

    /// Notes an answer.
    pub(crate) fn answered(
        &mut self,
        seq: Seq,
        budget: Option<&BudgetId>,
        (status, headers): (u16, &[(String, String)]),
        reading: &Reading,
    ) {
        let is_keyed = self.keyed.remove(&seq);
        let Some(budget) = budget else {
            return;
        };
        let witness = self.seen.entry(budget.clone()).or_default();
        witness.answers = witness.answers.saturating_add(1);
        if witness.statuses.len() < MAX_STATUSES || witness.statuses.contains_key(&status) {
            count(witness.statuses.entry(status).or_default(), true);
        }
        count(&mut witness.keyed_answers, is_keyed);
        count(&mut witness.refusals, reading.is_rate_limited);
        let is_stated = reading.is_rate_limited && reading.retry_after_ms.is_some();
        count(&mut witness.waits, is_stated);
        count(&mut witness.told, is_stated || !reading.found.is_empty());
        witness.unreadable = witness.unreadable.saturating_add(reading.unreadable);
        witness.dialects.insert(reading.dialect);
        for (name, _) in headers {
            if name.len() <= MAX_NAME_BYTES && witness.names.len() < MAX_NAMES {
                witness.names.insert(name.to_ascii_lowercase());
            }
        }
    }

    /// Notes a request that ended without an answer; `is_seen` where it may have left.
    pub(crate) fn lost(&mut self, seq: Seq, budget: Option<&BudgetId>, is_seen: bool) {
        let is_keyed = self.keyed.remove(&seq);
        let Some(budget) = budget.filter(|_| is_seen) else {
            return;
        };
        let witness = self.seen.entry(budget.clone()).or_default();
        count(&mut witness.lost, true);
        count(&mut witness.keyed_lost, is_keyed);
    }
}

fn count(counter: &mut u32, does: bool) {
    *counter = counter.saturating_add(u32::from(does));
}

impl<B: Clone + Default> Host<B> {
    pub(crate) fn diagnose(
        &mut self,
        tab: TabId,
        re: F64,
        asked: &OneBudget,
    ) -> Result<(), WireError> {
        let bad = |code, got| WireError::field(code, "budget", "a known budget", got);
        let id = asked.budget.as_ref();
        let id = id.ok_or_else(|| bad(Code::BadJob, "nothing"))?;
        if !self.budgets.is_known(id) && !self.witnesses.seen.contains_key(id) {
            return Err(bad(Code::UnknownBudget, id.as_str()));
        }
        let nothing = Witness::default();
        let witness = self.witnesses.seen.get(id).unwrap_or(&nothing);
        let asks = Asks {
            headers: self.budgets.dialect(id).headers(),
            key: self.budgets.key_header(id),
        };
        let diagnosis = Box::new(witness.told_of(id, &asks));
        self.post(tab, Some(re), HostMessage::Diagnosis { diagnosis });
        Ok(())
    }
}

/// What a budget would read and send.
struct Asks {
    headers: Vec<String>,
    key: Option<String>,
}

impl Witness {
    fn told_of(&self, id: &BudgetId, asks: &Asks) -> DiagnosisMessage {
        let findings = [
            self.nothing(),
            self.headers_hidden(asks),
            self.wait_hidden(),
            self.key_not_allowed(asks),
            self.answers_hidden(asks),
            self.not_read(asks),
        ];
        DiagnosisMessage {
            budget: id.as_str().to_owned(),
            answers: self.answers,
            lost: self.lost,
            refusals: self.refusals,
            unreadable: self.unreadable,
            statuses: self.statuses.clone(),
            dialects: self.dialects.iter().copied().collect(),
            visible: self.names.iter().cloned().collect(),
            findings: findings.into_iter().flatten().collect(),
        }
    }

    fn nothing(&self) -> Option<FindingMessage> {
        let message =
            "no request of this budget has ended since the host began: send one, and ask again";
        (self.answers == 0 && self.lost == 0)
            .then(|| finding("nothing-seen", message.to_owned(), Vec::new()))
    }

    /// Nothing but the safelist can be read: a server of the page's own origin shows at least its `Date`.
    fn headers_hidden(&self, asks: &Asks) -> Option<FindingMessage> {
        let is_safe = |name: &String| SAFELIST.contains(&name.as_str());
        if self.answers == 0 || !self.names.iter().all(is_safe) {
            return None;
        }
        let list = asks.headers.join(", ");
        let message = format!(
            "a page of another origin can read none of the headers that tell of limits ({} answers looked at): please send \
             `Access-Control-Expose-Headers: {list}` with every answer, refusals too, as far as the API has these headers \
             (`*` stands for all only where no credentials are sent)",
            self.answers
        );
        Some(finding("headers-hidden", message, asks.headers.clone()))
    }

    fn wait_hidden(&self) -> Option<FindingMessage> {
        if self.refusals == 0 || self.waits > 0 {
            return None;
        }
        let message = format!(
            "none of {} refusals said for how long, as far as a page can read it, so each wait was a guess: please send \
             `Retry-After` with refusals, and name it in `Access-Control-Expose-Headers`",
            self.refusals
        );
        Some(finding(
            "wait-hidden",
            message,
            vec!["Retry-After".to_owned()],
        ))
    }

    fn key_not_allowed(&self, asks: &Asks) -> Option<FindingMessage> {
        let key = asks.key.as_ref()?;
        if self.keyed_lost == 0 || self.keyed_answers > 0 {
            return None;
        }
        let others = self.answers;
        let message = format!(
            "none of {} requests with the header `{key}` was answered, {others} without it were: please let preflights \
             (OPTIONS) answer with `Access-Control-Allow-Headers: {key}`, beside the other headers that are sent, without \
             asking for credentials and without counting them against the limit",
            self.keyed_lost
        );
        Some(finding("key-not-allowed", message, vec![key.clone()]))
    }

    fn answers_hidden(&self, asks: &Asks) -> Option<FindingMessage> {
        if self.lost == 0 || self.answers == 0 || self.key_not_allowed(asks).is_some() {
            return None;
        }
        let message = format!(
            "{} of {} requests ended without an answer that a page can read: if a gateway refuses or fails there, please let \
             it send `Access-Control-Allow-Origin` (and expose `Retry-After`) with every status",
            self.lost,
            self.lost.saturating_add(self.answers)
        );
        let headers = vec![
            "Access-Control-Allow-Origin".to_owned(),
            "Retry-After".to_owned(),
        ];
        Some(finding("answers-hidden", message, headers))
    }

    fn not_read(&self, asks: &Asks) -> Option<FindingMessage> {
        if self.unreadable == 0 {
            return None;
        }
        if self.dialects.contains("worker") {
            let message = format!(
                "{} values that a function of the app's own worker gave are not as expected: the app's `error` events name them",
                self.unreadable
            );
            return Some(finding("unreadable", message, Vec::new()));
        }
        let dialects: Vec<&str> = self.dialects.iter().copied().collect();
        let message = format!(
            "{} values that tell of limits could not be read as {}: please look at how {} are written, or declare `dialect`",
            self.unreadable,
            dialects.join(", "),
            asks.headers.join(", ")
        );
        Some(finding("unreadable", message, asks.headers.clone()))
    }
}

fn finding(code: &'static str, message: String, headers: Vec<String>) -> FindingMessage {
    FindingMessage {
        code,
        message,
        headers,
    }
}
