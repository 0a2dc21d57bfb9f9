//! The strict server: rate-limited mock APIs that record everything and judge by their own clock and arithmetic.
//!
//! Each account of the server is one mock API with limits, latency, faults and a dialect of its own, given as JSON by
//! `PUT /strict/{account}`. Whatever is sent to `/strict/{account}/api/...` is admitted or refused, recorded, and told
//! by `GET /strict/{account}/report`. The crate depends on no other of Paceline's, so that a mistake there cannot hide
//! here; its README has every field.
//!
//! What it promises: an account's instants are read under its lock and never go back; limits and report count the same
//! instant of a request; a request that one rule refuses uses none; a request that was read is carried out to its end
//! whether or not its client stays; memory is bounded and the report says when a bound was reached.

mod accounts;
mod api;
mod batch;
mod control;
mod cors;
mod cut;
mod dialect;
mod draw;
mod effects;
mod judge;
mod limiter;
mod memory;
mod parse;
mod problem;
mod record;
mod report;
mod rule;
mod scenario;
mod seen;
mod serve;
mod tls;
mod wire;
mod words;

pub use control::router;
pub use parse::BadField;
pub use scenario::{
    Algorithm, Anchor, CountAt, Dialect, Fault, FaultKind, FaultOn, Limit, Preflight, RetryAfter,
    Scenario, When,
};
pub use serve::Bound;
