//! The deterministic simulator of Paceline: the real host, core and protocol over simulated ports, clocks, a disk and
//! servers, judged after every step by a model that is simpler than they are.
//!
//! Owns what can happen, in which mix, and what must be true whatever happens. Does not own any pacing: limits are
//! judged by arithmetic of its own. Invariant: everything follows from seed and profile; the same seed twice gives the
//! same trace, and every violation is reproduced by one command.

mod clock;
mod draw;
mod events;
mod message;
mod model;
mod profile;
mod shrink;
mod tab;
mod trace;
mod transition;
mod upstream;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};

pub use profile::Profile;
use profile::Settings;
use transition::Step;
use world::World;

/// A rule that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule's name.
    pub rule: &'static str,
    /// What was seen.
    pub text: String,
}

/// What came of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The hash of the trace.
    pub hash: u64,
    /// How many events happened.
    pub steps: u64,
    /// What was wrong, if anything was.
    pub violation: Option<Violation>,
    /// The trace, where it was asked for.
    pub lines: Vec<String>,
}

/// A failing seed, made smaller.
#[derive(Clone, Debug)]
pub struct Shrunk {
    /// The transitions that are left, one a line.
    pub transitions: Vec<String>,
    /// The run with only these, its trace included.
    pub outcome: Outcome,
}

/// Runs one seed of a profile.
pub fn run(seed: u64, profile: Profile) -> Outcome {
    carry_out(seed, profile, &plan(seed, profile), false)
}

/// Runs one seed of a profile and keeps its trace.
pub fn run_with_trace(seed: u64, profile: Profile) -> Outcome {
    carry_out(seed, profile, &plan(seed, profile), true)
}

/// Drops what a violation does not need.
pub fn shrink(seed: u64, profile: Profile, rule: &str) -> Shrunk {
    let plan = shrink::shrink(plan(seed, profile), |plan| {
        let outcome = carry_out(seed, profile, plan, false);
        outcome
            .violation
            .is_some_and(|violation| violation.rule == rule)
    });
    Shrunk {
        transitions: plan
            .iter()
            .map(|step| format!("{:>9} {:?}", step.at_ms, step.transition))
            .collect(),
        outcome: carry_out(seed, profile, &plan, true),
    }
}

fn plan(seed: u64, profile: Profile) -> Vec<Step> {
    transition::plan(seed, profile, &Settings::draw(seed, profile))
}

/// Carries out a plan in the world of a seed. A panic of what is simulated is a violation like any other.
pub(crate) fn carry_out(seed: u64, profile: Profile, plan: &[Step], keeps_lines: bool) -> Outcome {
    let mut world = World::new(seed, profile, plan, keeps_lines);
    let panicked = catch_unwind(AssertUnwindSafe(|| world.run())).err();
    let panic = panicked.map(|what| {
        let text = what.downcast_ref::<String>().cloned();
        let text = text.or_else(|| what.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        ("panic", text.unwrap_or_default())
    });
    let broken = panic.or(world.broken);
    let (hash, lines) = world.trace.into_parts();
    Outcome {
        hash,
        steps: world.steps,
        violation: broken.map(|(rule, text)| Violation { rule, text }),
        lines,
    }
}
