//! Makes a failing plan smaller: drops transitions as long as the same rule stays broken.

use crate::transition::Step;

/// Runs after which a plan is small enough.
const MAX_RUNS: usize = 2_000;

/// Drops what a violation does not need, ever smaller pieces at a time.
pub(crate) fn shrink(mut plan: Vec<Step>, mut is_broken: impl FnMut(&[Step]) -> bool) -> Vec<Step> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transition::Transition;

    #[test]
    fn only_what_is_needed_is_left() {
        let plan: Vec<Step> = (0..50)
            .map(|at_ms| Step {
                at_ms,
                transition: Transition::DiskLost,
            })
            .collect();

        let left = shrink(plan, |plan| {
            let has = |at_ms| plan.iter().any(|step| step.at_ms == at_ms);
            has(7) && has(31)
        });

        let instants: Vec<u64> = left.iter().map(|step| step.at_ms).collect();
        assert_eq!(instants, [7, 31]);
    }
}
