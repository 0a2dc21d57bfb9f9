//! The sans-IO scheduler of Paceline.
//!
//! Owns the job model, limiters, budgets, lanes, ordering keys, retry and estimates. Has no clock, timer, randomness,
//! IO or async: inputs and instants come in as arguments, effects go out as values, and the same inputs give the
//! same effects on every machine.

pub mod change;
pub mod config;
pub mod ids;
pub mod io;
pub mod job;
pub mod time;
