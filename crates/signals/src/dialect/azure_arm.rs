//! Azure Resource Manager: what is left for each scope, in the headers' names; calling early starts the wait anew.
//!
//! Compute lists its policies in one header (`Microsoft.Compute/GetVM3Min;747,...`).
//! Source: MicrosoftDocs/azure-docs, azure-resource-manager/management/request-limits-and-throttling.md.

use paceline_core::signals::BudgetSignal;

use super::{Dialect, Facts, generic};
use crate::number::units_left;
use crate::reading::Reading;
use crate::view::{View, suffix};

pub(super) const DIALECT: Dialect = Dialect {
    name: "azure-arm",
    knows: |view| view.has_prefix(PREFIX),
    read,
    ..Dialect::PLAIN
};

const PREFIX: &str = "x-ms-ratelimit-remaining-";

fn read(view: &View<'_>, _: &Facts, reading: &mut Reading) {
    for (name, value) in view.headers {
        let Some(scope) = suffix(name, PREFIX) else {
            continue;
        };
        if value.len() <= 2_048 && value.contains(';') {
            let policies = value
                .split(',')
                .take(8)
                .filter_map(|policy| policy.split_once(';'));
            for (policy, left) in policies {
                push(reading, policy.trim(), view.counted(units_left(left)));
            }
            continue;
        }
        push(
            reading,
            &scope.to_ascii_lowercase(),
            view.units_left(PREFIX, scope),
        );
    }
}

fn push(reading: &mut Reading, scope: &str, remaining: Option<u64>) {
    let scope = Some(generic::short(scope));
    reading.push(BudgetSignal {
        scope,
        remaining,
        ..BudgetSignal::default()
    });
}
