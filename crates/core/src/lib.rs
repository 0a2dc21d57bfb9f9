//! The sans-IO scheduler of Paceline.
//!
//! Owns the job model, limiters, budgets, lanes, ordering keys, retry and estimates. Has no clock, timer, randomness,
//! IO or async: inputs and instants come in as arguments, effects go out as values, and the same inputs give the
//! same effects on every machine.

#![deny(
    clippy::float_arithmetic,
    reason = "limits are whole units and milliseconds, the same on every machine"
)]

pub mod batch;
mod budget;
pub mod change;
pub mod config;
mod count;
pub mod forecast;
pub mod histogram;
pub mod ids;
pub mod io;
pub mod job;
pub mod kind;
pub mod lane;
pub mod latency;
pub mod limit;
pub mod metrics;
mod pacer;
pub mod plan;
pub mod scheduler;
pub mod signals;
pub mod time;

pub use scheduler::Core;
