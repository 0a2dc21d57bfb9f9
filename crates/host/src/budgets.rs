//! Which budget a job spends, and what the host knows of it beside the core.

use std::collections::BTreeMap;

use paceline_core::config::{BudgetConfig, MAX_PARENTS};
use paceline_core::ids::{BatchName, BudgetId};
use paceline_core::io::Verdict;
use paceline_protocol::WireError;
use paceline_protocol::batch::Batch;
use paceline_protocol::budget::{Budget, matches};
use paceline_protocol::cost::cost_of;
use paceline_protocol::error::Code;
use paceline_signals::AnyDialect;

/// The most budgets that are made for origins nobody declared.
const MAX_IMPLICIT: usize = 1_000;

#[derive(Debug, Default)]
pub(crate) struct Budgets {
    declared: BTreeMap<BudgetId, Budget>,
    implicit: BTreeMap<BudgetId, ()>,
}

impl Budgets {
    /// Takes over declared budgets. Returns what the core must be told, and nothing when all were the same before.
    pub(crate) fn declare(&mut self, budgets: Vec<Budget>) -> Vec<BudgetConfig> {
        let mut changed = Vec::new();
        for mut budget in budgets {
            let id = budget.config.id.clone();
            let before = self.declared.get(&id).and_then(|known| known.credentials);
            if budget.credentials.is_none() && before == Some(true) {
                budget.credentials = before;
                budget.config = budget.config.with_credentials();
                for part in &mut budget.parts {
                    part.config = part.config.clone().with_credentials();
                }
            }
            if self.declared.get(&id) == Some(&budget) {
                continue;
            }
            let parts = self.parts_to_tell(&budget);
            changed.push(budget.config.clone());
            changed.extend(parts);
            self.declared.insert(id, budget);
        }
        changed
    }

    /// Returns what the core must be told of a budget's parts; one that counts nothing any more keeps the jobs that wait in it.
    fn parts_to_tell(&self, budget: &Budget) -> Vec<BudgetConfig> {
        let now: Vec<BudgetConfig> = budget
            .parts
            .iter()
            .map(|part| part.config.clone())
            .collect();
        let before = self.declared.get(&budget.config.id);
        let before = before.into_iter().flat_map(|known| &known.parts);
        let ids = before.map(|part| part.config.id.clone());
        let gone = ids.filter(|id| now.iter().all(|part| part.id != *id));
        let gone: Vec<_> = gone.map(|id| budget.config.uncounted(id)).collect();
        [now, gone].concat()
    }

    /// Returns the part of a budget that a request belongs to, where limits of it count only some: itself otherwise.
    pub(crate) fn part_for(&self, id: BudgetId, method: &str, url: &str) -> BudgetId {
        let parts = self.declared.get(&id).map(|budget| budget.parts.as_slice());
        let mut parts = parts.unwrap_or_default().iter();
        match parts.find(|part| part.counts.fits(method, url)) {
            Some(part) => part.config.id.clone(),
            None => id,
        }
    }

    /// Checks that each parent is declared, and that none is its own ancestor.
    ///
    /// # Errors
    /// Names the first budget whose parent is not as expected, by its place in the message.
    pub(crate) fn check_parents(&self, budgets: &[Budget]) -> Result<(), WireError> {
        let parent_of = |id: &BudgetId| {
            let new = budgets.iter().find(|budget| budget.config.id == *id);
            let known = new.or_else(|| self.declared.get(id));
            known.map(|budget| budget.config.parent().cloned())
        };
        for (index, budget) in budgets.iter().enumerate() {
            let mut above = budget.config.parent().cloned();
            let mut depth = 0;
            while let Some(parent) = above {
                let field = || format!("budgets[{index}].parent");
                depth += 1;
                if parent == budget.config.id || depth > MAX_PARENTS {
                    let expected = "a budget with at most 4 above it, and not under this one";
                    return Err(WireError::field(
                        Code::BadJob,
                        field(),
                        expected,
                        parent.as_str(),
                    ));
                }
                above = parent_of(&parent).ok_or_else(|| {
                    WireError::field(Code::BadJob, field(), "a declared budget", parent.as_str())
                })?;
            }
        }
        Ok(())
    }

    /// Names the budget of a job: the one it asks for, else the longest pattern that matches, else its origin's own.
    ///
    /// None when it asks for one that is not declared, or too many origins have been seen.
    pub(crate) fn resolve(&self, asked: Option<&BudgetId>, url: &str) -> Option<BudgetId> {
        if let Some(asked) = asked {
            return self.is_known(asked).then(|| asked.clone());
        }
        let fits = self.declared.values().flat_map(|budget| {
            let fits = budget
                .matches
                .iter()
                .filter(|pattern| matches(pattern, url));
            fits.map(move |pattern| (pattern.len(), &budget.config.id))
        });
        if let Some((_, id)) = fits.max_by_key(|(length, _)| *length) {
            return Some(id.clone());
        }
        let id = BudgetId::parse(&format!("{}{}", BudgetId::IMPLICIT, origin(url))).ok()?;
        (self.implicit.contains_key(&id) || self.implicit.len() < MAX_IMPLICIT).then_some(id)
    }

    /// Notes that an origin's own budget is used. Returns what the core must be told when it is new.
    pub(crate) fn use_implicit(&mut self, id: &BudgetId) -> Option<BudgetConfig> {
        let is_own = id.is_implicit() && !self.declared.contains_key(id);
        let is_new = is_own && self.implicit.insert(id.clone(), ()).is_none();
        is_new.then(|| BudgetConfig::implicit(id.clone()))
    }

    /// Returns what a request costs by its budget's list, 1 where that does not name it.
    pub(crate) fn cost_of(&self, id: &BudgetId, method: &str, url: &str) -> u32 {
        let budget = self.declared.get(id);
        let cost = budget.and_then(|budget| cost_of(&budget.costs, method, url));
        cost.unwrap_or(1)
    }

    /// Returns a batch that a budget declares.
    pub(crate) fn batch(&self, id: &BudgetId, name: &BatchName) -> Option<&Batch> {
        self.declared.get(id)?.batches.get(name)
    }

    /// Tells whether it was declared, or a job has used it.
    pub(crate) fn is_known(&self, id: &BudgetId) -> bool {
        self.declared.contains_key(id) || self.implicit.contains_key(id)
    }

    /// Returns how a budget's server writes what it says of limits.
    pub(crate) fn dialect(&self, id: &BudgetId) -> AnyDialect {
        let declared = self.declared.get(id);
        declared.map_or_else(AnyDialect::default, |budget| budget.dialect.clone())
    }

    /// Returns what a status means for the jobs of a budget, where its app says so.
    pub(crate) fn verdict(&self, id: &BudgetId, status: u16) -> Option<Verdict> {
        let budget = self.declared.get(id)?;
        budget.statuses.get(&status).copied()
    }

    /// Returns the header that carries a budget's idempotency keys.
    pub(crate) fn key_header(&self, id: &BudgetId) -> Option<String> {
        self.declared
            .get(id)
            .and_then(|budget| budget.key_header.clone())
    }
}

/// The origin of an absolute URL.
fn origin(url: &str) -> &str {
    let host = url.find("://").map_or(0, |at| at + 3);
    let end = url[host..]
        .find(['/', '?', '#'])
        .map_or(url.len(), |at| host + at);
    &url[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_ends_before_the_path() {
        assert_eq!(origin("https://a.test:8443/x?y"), "https://a.test:8443");
        assert_eq!(origin("https://a.test?y"), "https://a.test");
    }
}
