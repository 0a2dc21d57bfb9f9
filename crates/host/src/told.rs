//! What functions of the app's worker say of answers: whether there is one of that name, and what its owner is told.
//!
//! Invariant: each field that is not as expected is told once in a host's life, and at most [`MAX_WARNINGS`] are.

use std::collections::BTreeSet;

use paceline_protocol::budget::Budget;
use paceline_protocol::error::Code;
use paceline_protocol::told::ToldMessage;
use paceline_protocol::{HostMessage, WireError};
use paceline_signals::{AnyDialect, Told};

use crate::{Host, TabId};

/// The most different fields that are warned of.
const MAX_WARNINGS: usize = 64;

/// Checks that each function that budgets name is defined.
///
/// # Errors
/// Names the first field that is not as expected, with the functions that there are.
pub(crate) fn check_defined(
    budgets: &[Budget],
    defined: &BTreeSet<String>,
) -> Result<(), WireError> {
    for (index, budget) in budgets.iter().enumerate() {
        let AnyDialect::Defined(name) = &budget.dialect else {
            continue;
        };
        if !defined.contains(&**name) {
            let names: Vec<&str> = defined.iter().map(String::as_str).collect();
            let expected = match names.is_empty() {
                true => {
                    "a function of the worker, which defines none (see `definePaceline`)".to_owned()
                }
                false => format!("a function of the worker: {}", names.join(", ")),
            };
            let field = format!("budgets[{index}].dialect");
            let got = format!("worker:{name}");
            return Err(WireError::field(Code::BadJob, field, expected, &got));
        }
    }
    Ok(())
}

impl<B: Clone + Default> Host<B> {
    /// Reads what a function said, if one was asked, and tells the tabs what is wrong with it.
    pub(crate) fn read_told(
        &mut self,
        dialect: &AnyDialect,
        said: Option<&ToldMessage>,
    ) -> Option<Told> {
        let AnyDialect::Defined(name) = dialect else {
            return None;
        };
        let (told, errors) = said?.parse(name);
        for error in errors {
            let field = error.field.clone().unwrap_or_default();
            if self.warned.len() >= MAX_WARNINGS || !self.warned.insert(field) {
                continue;
            }
            let tabs: Vec<TabId> = self.tabs.keys().copied().collect();
            for tab in tabs {
                self.post(tab, None, HostMessage::Error(error.clone()));
            }
        }
        Some(told)
    }
}
