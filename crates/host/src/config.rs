//! What a host is told when it is made.

use std::collections::BTreeSet;

use paceline_core::scheduler::Bounds;

/// The settings of one host.
#[derive(Clone, Debug)]
pub struct HostConfig {
    /// The kind of host: `shared-worker` or `service-worker`.
    pub kind: String,
    /// A random name of this life.
    pub instance: String,
    /// The version, for people.
    pub version: String,
    /// Whether what is stored survives a restart.
    pub durable: bool,
    /// The seed of all jitter.
    pub seed: u64,
    /// The queue's bounds.
    pub bounds: Bounds,
    /// The functions of the app's worker that read answers.
    pub dialects: BTreeSet<String>,
}
