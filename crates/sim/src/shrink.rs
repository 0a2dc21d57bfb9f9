//! Makes a failing plan smaller: drops transitions as long as the same rule stays broken.

use crate::profile::Profile;
use crate::transition::Step;
use crate::{Outcome, carry_out};

/// Runs after which a plan is small enough.
const MAX_RUNS: usize = 2_000;

/// Drops what the violation of `rule` does not need, ever smaller pieces at a time.
pub(crate) fn shrink(seed: u64, profile: Profile, mut plan: Vec<Step>, rule: &str) -> Vec<Step> {
    let is_broken = |plan: &[Step]| {
        let Outcome { violation, .. } = carry_out(seed, profile, plan, false);
        violation.is_some_and(|violation| violation.rule == rule)
    };
    let mut runs = 0;
    let mut size = plan.len().div_ceil(2).max(1);
    loop {
        let mut at = 0;
        let mut is_smaller = false;
        while at < plan.len() && runs < MAX_RUNS {
            let end = (at + size).min(plan.len());
            let rest: Vec<Step> = plan[..at].iter().chain(&plan[end..]).copied().collect();
            runs += 1;
            if is_broken(&rest) {
                plan = rest;
                is_smaller = true;
            } else {
                at = end;
            }
        }
        if (size == 1 && !is_smaller) || runs >= MAX_RUNS {
            return plan;
        }
        size = (size / 2).max(1);
    }
}
