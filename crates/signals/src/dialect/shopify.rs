//! Shopify: a leaky bucket, as used/size in a header or as points in the body of GraphQL.
//!
//! How fast it drains depends on the plan and is told in GraphQL alone; a throttled query says by it how long to wait.
//! Sources: shopify.dev, REST and GraphQL Admin API rate limits; Shopify/shopify-api-ruby, docs/usage/rest.md.

use paceline_core::signals::BudgetSignal;

use super::{BodyNeed, Dialect, Facts, graphql};
use crate::reading::Reading;
use crate::view::View;

pub(super) const DIALECT: Dialect = Dialect {
    name: "shopify",
    body: BodyNeed::GraphQl,
    knows: |view| {
        view.has(CALLS)
            || view
                .body
                .at(&["extensions", "cost", "throttleStatus"])
                .is_some()
    },
    read,
    ..Dialect::PLAIN
};

const CALLS: &str = "x-shopify-shop-api-call-limit";

fn read(view: &View<'_>, _: &Facts, reading: &mut Reading) {
    if view.has(CALLS) {
        let pair = view.parsed("", CALLS, |text| {
            let (used, limit) = text.split_once('/')?;
            Some((crate::number::units(used)?, crate::number::units(limit)?))
        });
        reading.push(BudgetSignal {
            limit: pair.map(|(_, limit)| limit),
            remaining: pair.map(|(used, limit)| limit.saturating_sub(used)),
            ..BudgetSignal::default()
        });
    }
    let cost = view.body.at(&["extensions", "cost"]);
    let bucket = cost.get("throttleStatus");
    let available = view.body_units(bucket.get("currentlyAvailable"));
    reading.push(BudgetSignal {
        limit: view.body_units(bucket.get("maximumAvailable")),
        remaining: available,
        ..BudgetSignal::default()
    });
    let requested = graphql::cost(view, cost.get("requestedQueryCost"));
    if graphql::refusal(view).is_none() {
        reading.cost = graphql::cost(view, cost.get("actualQueryCost")).or(requested);
        return;
    }
    reading.refuse();
    let rate = view
        .body_units(bucket.get("restoreRate"))
        .filter(|rate| *rate > 0);
    if let (Some(requested), Some(available), Some(rate)) = (requested, available, rate) {
        let missing = u64::from(requested).saturating_sub(available);
        reading.wait(Some(
            view.bounded(missing.saturating_mul(1_000).div_ceil(rate))
                .max(1),
        ));
    }
}
