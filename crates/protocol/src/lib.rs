//! Typed, versioned messages between tabs and the host.
//!
//! Owns the wire shapes, the parsing of what comes from a tab into the core's types, and the one mapping from errors
//! to wire codes. Knows nothing of ports, bodies or storage: a request's `body` and `meta` stay opaque beside the
//! message. Invariant: what parsing returns is bounded and usable; what it refuses names the field and what was
//! expected.

pub mod batch;
pub mod budget;
pub mod check;
pub mod cost;
pub mod counts;
pub mod credentials;
pub mod diagnosis;
pub mod dialect;
pub mod error;
pub mod job;
pub mod metrics;
pub mod plan;
mod preset;
pub mod reply;
pub mod request;
pub mod statuses;
pub mod told;
#[cfg(test)]
mod typescript;

/// The version of the messages; the value of each message's `paceline` field.
pub const PROTOCOL: u32 = 1;

pub use credentials::Secrets;
pub use error::{Code, WireError};
pub use reply::{HostMessage, Stamp};
pub use request::{Head, Request};
