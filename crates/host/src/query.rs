//! `jobs`: what the core knows of jobs, joined with their stored requests.

use paceline_core::ids::{BatchNo, Seq};
use paceline_core::io::{Filter, View};
use paceline_core::time::Now;
use paceline_protocol::reply::f64_eq::F64;
use paceline_protocol::request::FilterMessage;
use paceline_protocol::{HostMessage, WireError, error::Code};
use paceline_store::{ReadBodies, StoreError};

use crate::{Host, HostOutput, TabId, wire};

/// Jobs that one query returns when it names no limit.
const DEFAULT_LIMIT: usize = 100;
/// The most jobs that one query returns.
const MAX_LIMIT: usize = 1_000;

/// A query that waits for stored requests.
#[derive(Debug)]
pub(crate) struct Query {
    tab: TabId,
    re: F64,
    views: Vec<View>,
    limit: usize,
}

impl<B: Clone + Default> Host<B> {
    pub(crate) fn query(
        &mut self,
        tab: TabId,
        re: F64,
        message: FilterMessage,
        now: Now,
    ) -> Result<(), WireError> {
        let filter = parse(message)?;
        let views = self.core.jobs(&filter, now);
        let query = Query {
            tab,
            re,
            views,
            limit: filter.limit,
        };
        let missing = self.missing(&query);
        if missing.is_empty() && self.reads.is_empty() {
            self.answer(query, &Vec::new());
            return Ok(());
        }
        if self.reads.is_empty() {
            self.outputs.push_back(HostOutput::Read(missing));
        }
        self.reads.push_back(query);
        Ok(())
    }

    pub(crate) fn bodies_read(&mut self, result: Result<ReadBodies<B>, StoreError>) {
        let Some(query) = self.reads.pop_front() else {
            return;
        };
        match result {
            Ok(read) => self.answer(query, &read),
            Err(error) => {
                let error = WireError::plain(Code::Storage, error.to_string());
                self.post(query.tab, Some(query.re), HostMessage::Error(error));
            }
        }
        if let Some(next) = self.reads.front() {
            let missing = self.missing(next);
            self.outputs.push_back(HostOutput::Read(missing));
        }
    }

    fn missing(&self, query: &Query) -> Vec<BatchNo> {
        let seqs = query.views.iter().map(|view| view.seq);
        let mut batches: Vec<BatchNo> = seqs
            .filter(|seq| !self.bodies.has(*seq))
            .map(Seq::batch)
            .collect();
        batches.dedup();
        batches
    }

    fn answer(&mut self, query: Query, read: &ReadBodies<B>) {
        let stored = |seq: Seq| {
            let (_, bodies) = read.iter().find(|(batch, _)| *batch == seq.batch())?;
            bodies.as_ref()?.get(usize::from(seq.index())).cloned()
        };
        let requests = query
            .views
            .iter()
            .map(|view| self.bodies.request(view.seq).or_else(|| stored(view.seq)))
            .collect();
        let is_whole = query.views.len() == query.limit;
        let next = query
            .views
            .last()
            .filter(|_| is_whole)
            .map(|view| view.seq.as_u64());
        let jobs = query.views.into_iter().map(wire::view).collect();
        self.post_with(
            query.tab,
            Some(query.re),
            HostMessage::Jobs { jobs, next },
            None,
            requests,
        );
    }
}

fn parse(message: FilterMessage) -> Result<Filter, WireError> {
    let number = |value: f64, field: &str| {
        let is_whole = (0.0..=9_007_199_254_740_991.0).contains(&value) && value.fract() == 0.0;
        let bad = || WireError::field(Code::BadJob, field, "a whole number", &value.to_string());
        is_whole.then_some(value as u64).ok_or_else(bad)
    };
    let limit = message
        .limit
        .map(|limit| number(limit, "filter.limit"))
        .transpose()?;
    let after = message
        .after
        .map(|after| number(after, "filter.after"))
        .transpose()?;
    let limit = limit.map_or(DEFAULT_LIMIT, |limit| {
        usize::try_from(limit).unwrap_or(MAX_LIMIT)
    });
    Ok(Filter {
        id: message.id,
        state: message.state,
        group: message.group,
        key: message.key,
        lane: message.lane,
        after: after.map(Seq::from_u64),
        limit: limit.clamp(1, MAX_LIMIT),
    })
}
