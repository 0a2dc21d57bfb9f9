//! What the answer of a batch endpoint says of each item: the verdicts for the core, the responses for who asked.

use paceline_core::ids::Seq;
use paceline_core::io::{Answer, Found, ItemAnswer, Verdict};
use paceline_core::time::Now;
use paceline_signals::{Dialect, Response, Sent};

use crate::{Host, ItemResult, Items};

impl<B: Clone + Default> Host<B> {
    /// Adds what is said of items to the answer of a request, and keeps the responses of those that end with it.
    pub(crate) fn read_items(
        &mut self,
        seq: Seq,
        answer: &mut Answer,
        response: B,
        items: Items<B>,
        now: Now,
    ) {
        let jobs = self.core.riders(seq);
        match items {
            Items::Each(items) if answer.verdict == Verdict::Success => {
                let items = items.into_iter().chain(std::iter::repeat_with(|| None));
                let items = jobs.into_iter().zip(items);
                let said = items.map(|(job, item)| Some(self.read_item(seq, job, item?, now)));
                answer.items = Some(said.collect());
            }
            Items::Unreadable if answer.verdict == Verdict::Success => {
                answer.verdict = Verdict::Unavailable;
                self.keep_responses(&jobs, &response);
            }
            Items::Shared | Items::Unreadable | Items::Each(_) => {
                if is_for_asker(answer.verdict) {
                    self.keep_responses(&jobs, &response);
                }
            }
        }
    }

    fn keep_responses(&mut self, jobs: &[Seq], response: &B) {
        let responses = jobs.iter().map(|job| (*job, response.clone()));
        self.responses.extend(responses);
    }

    fn read_item(&mut self, carrier: Seq, job: Seq, item: ItemResult<B>, now: Now) -> ItemAnswer {
        let status = item.status;
        let response = Response {
            status,
            text: item.text.as_deref(),
            ..Response::default()
        };
        let read = paceline_signals::read(&response, Dialect::auto(), Sent::First, now.wall);
        let budget = self.core.budget_at(carrier);
        let meant = budget.and_then(|budget| self.budgets.verdict(budget, status));
        let verdict = meant.unwrap_or(read.verdict);
        if is_for_asker(verdict) {
            self.responses.insert(job, item.response);
        }
        ItemAnswer {
            status,
            verdict,
            text: read.text,
        }
    }
}

/// Tells whether an answer may be what a job's asker receives.
const fn is_for_asker(verdict: Verdict) -> bool {
    match verdict {
        Verdict::Refused
        | Verdict::Unauthorized
        | Verdict::Checked(Found::NotApplied | Found::Unclear) => false,
        Verdict::Success
        | Verdict::Unavailable
        | Verdict::StillRunning
        | Verdict::KeyReused
        | Verdict::Final
        | Verdict::Checked(Found::Applied) => true,
    }
}
