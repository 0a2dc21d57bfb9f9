//! What a preset adds to a budget.
//!
//! Invariant: a field that the app gives wins as a whole over the preset's.

use paceline_signals::{Charge, Preset, PresetBatch, PresetError, PresetLimit};

use crate::batch::BatchMessage;
use crate::budget::{BudgetMessage, IdempotencyMessage, LimitMessage, WindowMessage};
use crate::cost::{self, CostMessage};
use crate::counts::CountsMessage;
use crate::dialect::DialectMessage;
use crate::error::{Code, WireError};

/// Fills in from its preset what a budget does not say.
///
/// # Errors
/// Names `preset` or `plan`, with the names that are there.
pub(crate) fn filled(message: &BudgetMessage, path: &str) -> Result<BudgetMessage, WireError> {
    let mut filled = message.clone();
    let plan = message.plan.as_deref();
    let bad = |field: &str, expected: String, got: &str| {
        WireError::field(Code::BadJob, format!("{path}.{field}"), expected, got)
    };
    let Some(name) = &message.preset else {
        return match plan {
            Some(plan) => Err(bad("plan", "a preset beside the plan".to_owned(), plan)),
            None => Ok(filled),
        };
    };
    let preset = Preset::named(name, plan).map_err(|error| {
        let is_plan = matches!(error, PresetError::Plan(_));
        let (field, got) = if is_plan {
            ("plan", plan.unwrap_or(""))
        } else {
            ("preset", &**name)
        };
        bad(field, error.to_string(), got)
    })?;
    if filled.matches.is_empty() {
        filled.matches = preset.matches;
    }
    if filled.limits.is_empty() {
        filled.limits = preset.limits.iter().map(limit).collect();
    }
    if filled.costs.is_none() && !preset.costs.is_empty() {
        // Of the file's the last that fits counts, of a budget's the first.
        let costs = preset.costs.into_iter().rev().map(|cost| CostMessage {
            method: cost.method,
            path: cost.path,
            cost: f64::from(cost.cost),
        });
        filled.costs = Some(costs.collect());
    }
    if filled.scopes.is_none() && !preset.scopes.is_empty() {
        let own = preset.scopes.into_iter();
        filled.scopes = Some(own.map(|scope| (scope, message.id.clone())).collect());
    }
    for batch in filled.batches.iter_mut().flat_map(|all| all.values_mut()) {
        fill_batch(batch, &preset.batches);
    }
    filled.max_in_flight = filled.max_in_flight.or(preset.max_in_flight.map(f64::from));
    filled.idempotency = filled
        .idempotency
        .or(preset.idempotency.map(|(header, ttl_ms)| {
            let ttl_ms = Some(ttl_ms as f64);
            IdempotencyMessage { header, ttl_ms }
        }));
    filled.dialect = filled
        .dialect
        .or_else(|| Some(DialectMessage::Name(preset.dialect.name().to_owned())));
    Ok(filled)
}

/// Fills in what is documented of an endpoint that takes batches. Where each item counts, a batch is charged as a full one:
/// what it costs is told before its items are known.
fn fill_batch(batch: &mut BatchMessage, endpoints: &[PresetBatch]) {
    let method = batch.method.as_deref().unwrap_or("POST");
    let is_there = |endpoint: &&PresetBatch| {
        endpoint.method == method && cost::is_path(&endpoint.path, &batch.url)
    };
    let Some(endpoint) = endpoints.iter().find(is_there) else {
        return;
    };
    let max = *batch.max.get_or_insert(f64::from(endpoint.max));
    if endpoint.charge == Charge::Each {
        batch.cost.get_or_insert(max);
    }
}

fn limit(limit: &PresetLimit) -> LimitMessage {
    LimitMessage::Parts {
        limit: f64::from(limit.rule.limit()),
        window: WindowMessage::Millis(limit.rule.window_ms() as f64),
        algorithm: Some(limit.rule.algorithm().as_str().to_owned()),
        anchor: None,
        // What the server publishes of itself is newer than a documentation.
        learn: Some(limit.counts.is_none()),
        counts: limit.counts.as_ref().map(|counts| {
            let given = |list: &[String]| Some(list.to_vec()).filter(|list| !list.is_empty());
            CountsMessage {
                methods: given(&counts.methods),
                paths: given(&counts.paths),
            }
        }),
    }
}

#[cfg(test)]
mod tests {
    use crate::budget::{Budget, parse_budgets};

    use super::*;

    fn budget(fields: serde_json::Value) -> Result<Budget, WireError> {
        let mut message = serde_json::json!({ "id": "b" });
        let fields = fields.as_object().unwrap().clone();
        message.as_object_mut().unwrap().extend(fields);
        let message: BudgetMessage = serde_json::from_value(message).unwrap();
        Ok(parse_budgets(&[message])?.remove(0))
    }

    #[test]
    fn a_preset_fills_in_what_is_not_given() {
        let stripe = budget(serde_json::json!({ "preset": "stripe" })).unwrap();

        assert_eq!(stripe.matches, ["https://api.stripe.com/*"]);
        assert_eq!(stripe.config.rules()[0].limit(), 100);
        assert_eq!(stripe.config.max_in_flight(), Some(20));
        assert_eq!(stripe.key_header.as_deref(), Some("Idempotency-Key"));
        assert_eq!(stripe.config.key_ttl_ms(), Some(86_400_000));
        assert_eq!(stripe.dialect.name(), "stripe");
    }

    #[test]
    fn what_is_given_wins() {
        let own = budget(serde_json::json!({
            "preset": "stripe", "limits": ["5/s"], "match": ["https://proxy.test/*"], "maxInFlight": 1, "dialect": "auto",
        }))
        .unwrap();

        assert_eq!(own.matches, ["https://proxy.test/*"]);
        assert_eq!(own.config.rules()[0].limit(), 5);
        assert_eq!(own.config.max_in_flight(), Some(1));
        assert_eq!(own.dialect.name(), "auto");
    }

    #[test]
    fn a_preset_tells_its_own_scopes_from_those_of_other_limits() {
        let github = budget(serde_json::json!({ "preset": "github" })).unwrap();
        let of = |scope: &str| github.config.scopes().get(scope).map(|id| id.as_str());

        assert_eq!((of("core"), of("secondary")), (Some("b"), Some("b")));
        assert_eq!(of("search"), None);
    }

    #[test]
    fn a_preset_knows_how_much_goes_into_a_batch_and_what_it_costs() {
        let batch = |preset: &str, url: &str, fields: serde_json::Value| {
            let mut batch = serde_json::json!({ "url": url });
            let fields = fields.as_object().unwrap().clone();
            batch.as_object_mut().unwrap().extend(fields);
            let made =
                budget(serde_json::json!({ "preset": preset, "batches": { "all": batch } }))?;
            let (name, batch) = made.batches.first_key_value().unwrap();
            Ok::<_, WireError>((made.config.batches()[name].max_items(), batch.cost))
        };
        let hubspot = "https://api.hubapi.com/crm/v3/objects/contacts/batch/update";
        let asana = "https://app.asana.com/api/1.0/batch";
        let none = || serde_json::json!({});

        assert_eq!(batch("hubspot", hubspot, none()), Ok((100, 1)));
        assert_eq!(batch("asana", asana, none()), Ok((10, 10)));
        let fewer = serde_json::json!({ "max": 5 });
        assert_eq!(batch("asana", asana, fewer), Ok((5, 5)));
        let cheaper = serde_json::json!({ "cost": 2 });
        assert_eq!(batch("asana", asana, cheaper), Ok((10, 2)));
        let unknown = batch("asana", "https://app.asana.com/other", none()).unwrap_err();
        let field = "budgets[0].batches.all.max";
        assert_eq!(unknown.field.as_deref(), Some(field));
    }

    #[test]
    fn a_plan_chooses_the_limits() {
        let plus = budget(serde_json::json!({ "preset": "shopify", "plan": "plus" })).unwrap();

        assert_eq!(plus.config.rules()[0].limit(), 400);
    }

    #[test]
    fn a_preset_weighs_requests() {
        let gmail = budget(serde_json::json!({ "preset": "gmail" })).unwrap();
        let cost = |method: &str, path: &str| {
            let url = format!("https://gmail.googleapis.com/gmail/v1/users/me{path}");
            crate::cost::cost_of(&gmail.costs, method, &url)
        };

        assert_eq!(cost("POST", "/messages/send"), Some(100));
        assert_eq!(cost("GET", "/messages"), Some(5));
    }

    #[test]
    fn a_rule_for_some_requests_does_not_hold_up_all() {
        let github = budget(serde_json::json!({ "preset": "github" })).unwrap();
        let [part] = github.parts.as_slice() else {
            panic!("one part")
        };

        assert!(github.config.rules().iter().all(|rule| rule.limit() >= 900));
        let limits: Vec<_> = part
            .config
            .rules()
            .iter()
            .map(|rule| rule.limit())
            .collect();
        assert_eq!(limits, [80, 500]);
        assert!(
            part.counts
                .fits("POST", "https://api.github.com/repos/a/b/issues")
        );
        assert!(
            !part
                .counts
                .fits("GET", "https://api.github.com/repos/a/b/issues")
        );
    }

    #[test]
    fn each_preset_and_plan_makes_a_budget() {
        for name in Preset::names() {
            let plans = Preset::plans(&name).into_iter().map(Some);
            for plan in plans.chain([None]) {
                let fields = serde_json::json!({ "preset": name, "plan": plan });

                assert!(budget(fields).is_ok(), "{name} {plan:?}");
            }
        }
    }

    #[test]
    fn an_unknown_name_is_an_error_with_the_known_ones() {
        let wrong = |fields| budget(fields).unwrap_err();

        let preset = wrong(serde_json::json!({ "preset": "githubb" }));
        assert_eq!(preset.field.as_deref(), Some("budgets[0].preset"));
        assert!(preset.expected.unwrap().contains("github, "));
        let plan = wrong(serde_json::json!({ "preset": "notion", "plan": "gold" }));
        assert_eq!(plan.field.as_deref(), Some("budgets[0].plan"));
        let alone = wrong(serde_json::json!({ "plan": "gold" }));
        assert_eq!(alone.field.as_deref(), Some("budgets[0].plan"));
        let dialect = wrong(serde_json::json!({ "dialect": "klingon" }));
        assert_eq!(dialect.field.as_deref(), Some("budgets[0].dialect"));
        assert!(dialect.expected.unwrap().contains("hubspot"));
    }
}
