//! What a host promises its tabs, shown on the real memory store with a fake clock and a fake transport.

mod accepting;
mod bad_input;
mod batching;
mod budgets;
mod checking;
mod credentials;
mod diagnosis;
mod keys;
mod kit;
mod merging;
mod metrics;
mod plans;
mod queries;
mod retiring;
mod sending;
mod settling;
mod snapshots;
mod storage;
mod told;
