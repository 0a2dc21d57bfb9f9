//! Batch endpoints as an app declares them: what is scheduled by, and how items are written and results read.
//!
//! The second is handed on as it is: whoever has the bodies does it. Invariant: what parsing returns is bounded, and an
//! error names the field, as `budgets[i].batches.name.field`.

use std::collections::BTreeMap;

use paceline_core::batch::{BatchRule, MAX_BATCH_BYTES};
use paceline_core::ids::{BatchName, MAX_NAME_CHARS};
use serde::{Deserialize, Serialize};

use crate::budget::whole;
use crate::error::{Code, WireError};
use crate::job::is_http_url;

/// The methods that a batch may have.
const METHODS: [&str; 3] = ["POST", "PUT", "PATCH"];

/// An endpoint that takes several jobs as one request.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields = nullable))]
#[serde(rename_all = "camelCase")]
pub struct BatchMessage {
    /// The absolute URL.
    pub url: String,
    /// The method, `POST` by default.
    #[serde(default)]
    pub method: Option<String>,
    /// The most items of one request, up to 1000; what the preset of the budget documents of the endpoint by default.
    #[serde(default)]
    pub max: Option<f64>,
    /// The most bytes of the stored requests of one, up to 16 MiB; that by default.
    #[serde(default)]
    pub max_bytes: Option<f64>,
    /// The field of the request's body that holds the items, `items` by default; empty when the body is the array itself.
    #[serde(default)]
    pub items: Option<String>,
    /// The field of an answer's body that holds a result for each item; empty when the body is the array itself. Absent
    /// when the status of the whole answer is that of each item.
    #[serde(default)]
    pub results: Option<String>,
    /// The field by which a result is found that an item has too; absent when results come in the order of the items.
    #[serde(default)]
    pub match_by: Option<String>,
    /// The field of a result that holds its HTTP status, `status` by default. A result without it has the answer's.
    #[serde(default)]
    pub status: Option<String>,
    /// Units that one request uses, however many items it has; 1 by default.
    #[serde(default)]
    pub cost: Option<f64>,
}

/// How the items of a batch are written, and its results read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BatchForm {
    /// The absolute URL.
    pub url: String,
    /// The method.
    pub method: String,
    /// The field that holds the items; empty for the whole body.
    pub items: String,
    /// The field that holds the results; empty for the whole body, none where there are none.
    pub results: Option<String>,
    /// The field that an item and its result share; none for their order.
    pub match_by: Option<String>,
    /// The field that holds a result's status.
    pub status: String,
}

/// A parsed batch endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// What it is scheduled by.
    pub rule: BatchRule,
    /// How it is written and read.
    pub form: BatchForm,
    /// Units that one request uses.
    pub cost: u32,
}

/// Parses the batches of one budget; `path` is where that stands.
///
/// # Errors
/// Names the first field that is not as expected.
pub(crate) fn parse_batches(
    batches: &BTreeMap<String, BatchMessage>,
    path: &str,
) -> Result<BTreeMap<BatchName, Batch>, WireError> {
    let parse = |(name, batch): (&String, &BatchMessage)| {
        let expected = "names of 1 to 255 characters";
        let bad = |_| WireError::field(Code::BadJob, format!("{path}.batches"), expected, name);
        let at = format!("{path}.batches.{name}");
        Ok((
            BatchName::parse(name).map_err(bad)?,
            parse_batch(batch, &at)?,
        ))
    };
    batches.iter().map(parse).collect()
}

fn parse_batch(message: &BatchMessage, at: &str) -> Result<Batch, WireError> {
    let bad = |field: &str, expected: &str, got: &str| {
        WireError::field(Code::BadJob, format!("{at}.{field}"), expected, got)
    };
    if !is_http_url(&message.url) {
        let expected = "an absolute http(s) URL of up to 8192 bytes";
        return Err(bad("url", expected, &message.url));
    }
    let method = message.method.as_deref().unwrap_or("POST");
    if !METHODS.contains(&method) {
        return Err(bad("method", "POST, PUT or PATCH", method));
    }
    let number = |field: &str, expected: &str, value: f64| {
        whole(value).ok_or_else(|| bad(field, expected, &value.to_string()))
    };
    let (items, bytes) = (
        "a whole number from 1 to 1000",
        "a whole number from 1 to 16777216",
    );
    let max = message.max.ok_or_else(|| bad("max", items, "none"))?;
    let max_items = number("max", items, max)?;
    let max_bytes = message
        .max_bytes
        .map(|value| number("maxBytes", bytes, value));
    let max_bytes = max_bytes.transpose()?.unwrap_or(MAX_BATCH_BYTES);
    let rule = BatchRule::new(max_items, max_bytes);
    let rule = rule.map_err(|_| match BatchRule::new(max_items, 1) {
        Ok(_) => bad("maxBytes", bytes, &max_bytes.to_string()),
        Err(_) => bad("max", items, &max_items.to_string()),
    })?;
    let cost = message.cost.map(|value| {
        let cost = whole(value).and_then(|cost| u32::try_from(cost).ok());
        let cost = cost.filter(|cost| *cost > 0);
        cost.ok_or_else(|| bad("cost", "a whole number from 1", &value.to_string()))
    });
    for (field, name) in [("matchBy", &message.match_by), ("status", &message.status)] {
        if let Some(name) = name.as_deref().filter(|_| message.results.is_none()) {
            return Err(bad(field, "none without results", name));
        }
        if name.as_deref() == Some("") {
            return Err(bad(field, "the name of a field", "none"));
        }
    }
    let fields = [
        &message.items,
        &message.results,
        &message.match_by,
        &message.status,
    ];
    for (name, value) in ["items", "results", "matchBy", "status"]
        .into_iter()
        .zip(fields)
    {
        let is_long = |value: &&str| value.chars().count() > MAX_NAME_CHARS;
        if let Some(value) = value.as_deref().filter(is_long) {
            return Err(bad(name, "a field's name of up to 255 characters", value));
        }
    }
    let or = |value: &Option<String>, usual: &str| value.clone().unwrap_or(usual.to_owned());
    Ok(Batch {
        rule,
        form: BatchForm {
            url: message.url.clone(),
            method: method.to_owned(),
            items: or(&message.items, "items"),
            results: message.results.clone(),
            match_by: message.match_by.clone(),
            status: or(&message.status, "status"),
        },
        cost: cost.transpose()?.unwrap_or(1),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::budget::{Budget, BudgetMessage, parse_budgets};

    fn parse(fields: Value) -> Result<Budget, WireError> {
        let mut batch = json!({ "url": "https://a.test/batch", "max": 20 });
        let fields = fields.as_object().expect("fields").clone();
        batch.as_object_mut().expect("an object").extend(fields);
        let message = json!([{ "id": "b", "batches": { "contacts": batch } }]);
        let message: Vec<BudgetMessage> = serde_json::from_value(message).expect("of that shape");
        Ok(parse_budgets(&message)?.remove(0))
    }

    #[test]
    fn what_is_not_given_is_the_usual() {
        let budget = parse(json!({})).expect("a batch");

        let (name, batch) = budget.batches.first_key_value().expect("one batch");
        let rule = budget.config.batches()[name];
        assert_eq!((rule.max_items(), rule.max_bytes()), (20, MAX_BATCH_BYTES));
        let form = &batch.form;
        assert_eq!(
            (form.method.as_str(), form.items.as_str()),
            ("POST", "items")
        );
        assert_eq!((&form.results, &form.match_by), (&None, &None));
        assert_eq!(batch.cost, 1);
    }

    #[test]
    fn what_is_given_is_taken() {
        let fields = json!({ "method": "PUT", "items": "inputs", "results": "", "matchBy": "id", "status": "code", "cost": 3 });
        let budget = parse(fields).expect("a batch");

        let (_, batch) = budget.batches.first_key_value().expect("one batch");
        let form = BatchForm {
            url: "https://a.test/batch".to_owned(),
            method: "PUT".to_owned(),
            items: "inputs".to_owned(),
            results: Some(String::new()),
            match_by: Some("id".to_owned()),
            status: "code".to_owned(),
        };
        assert_eq!((&batch.form, batch.cost), (&form, 3));
    }

    #[test]
    fn what_is_no_batch_is_refused_with_its_field() {
        let long = "x".repeat(256);
        for (fields, field) in [
            (json!({ "url": "/batch" }), "url"),
            (json!({ "method": "GET" }), "method"),
            (json!({ "max": 0 }), "max"),
            (json!({ "max": 1_001 }), "max"),
            (json!({ "max": 2.5 }), "max"),
            (json!({ "maxBytes": 0 }), "maxBytes"),
            (json!({ "maxBytes": 16_777_217 }), "maxBytes"),
            (json!({ "cost": 0 }), "cost"),
            (json!({ "matchBy": "id" }), "matchBy"),
            (json!({ "status": "code" }), "status"),
            (json!({ "results": "r", "matchBy": "" }), "matchBy"),
            (json!({ "items": long }), "items"),
            (json!({ "results": long }), "results"),
        ] {
            let error = parse(fields).expect_err(field);

            let expected = format!("budgets[0].batches.contacts.{field}");
            assert_eq!(error.field, Some(expected));
        }
    }

    #[test]
    fn too_many_batches_or_one_without_a_name_are_refused() {
        let batch = json!({ "url": "https://a.test/batch", "max": 1 });
        let many: BTreeMap<String, &Value> = (0..65).map(|n| (format!("b{n}"), &batch)).collect();
        for batches in [json!(many), json!({ "": batch })] {
            let message = json!([{ "id": "b", "batches": batches }]);
            let message: Vec<BudgetMessage> =
                serde_json::from_value(message).expect("of that shape");

            let error = parse_budgets(&message).expect_err("no batches");

            assert_eq!(error.field.as_deref(), Some("budgets[0].batches"));
        }
    }
}
