//! The batch endpoint of a mock API: one request, many items, each with an effect and a result of its own.
//!
//! An item's identity is its text. Items are numbered as each first comes; the failures of a scenario hit by that number,
//! once, and leave the item without effect.

use std::collections::HashSet;

use bytes::Bytes;
use serde_json::{Value, json};

use crate::effects::{Effects, MAX_EFFECTS, Stored, hash};
use crate::record::Call;
use crate::scenario::Batch;

/// The items of an account that have come.
#[derive(Debug, Default)]
pub(crate) struct Items {
    seen: HashSet<u64>,
}

impl Items {
    /// Carries out a request to the batch endpoint.
    pub(crate) fn carry_out(
        &mut self,
        batch: &Batch,
        call: &Call,
        effects: &mut Effects,
    ) -> Stored {
        let whole: Option<Value> = serde_json::from_slice(&call.body).ok();
        let Some(items) = whole.as_ref().and_then(|whole| whole["items"].as_array()) else {
            return answer(400, &json!({ "title": "no items" }));
        };
        if items.len() > batch.max {
            return answer(413, &json!({ "title": "too many items", "max": batch.max }));
        }
        let results = items.iter().map(|item| {
            let identity = hash(&("item", &call.path, item.to_string()));
            let status = self.status_of(identity, batch);
            if status < 300 {
                effects.apply_once(identity);
            }
            json!({ "id": item["id"], "status": status })
        });
        let results: Vec<Value> = results.collect();
        answer(200, &json!({ "results": results }))
    }

    fn status_of(&mut self, identity: u64, batch: &Batch) -> u16 {
        let is_new = self.seen.len() < MAX_EFFECTS && self.seen.insert(identity);
        let number = u64::try_from(self.seen.len()).unwrap_or(u64::MAX);
        let hit = batch
            .fails
            .iter()
            .find(|fails| number.is_multiple_of(fails.every));
        hit.filter(|_| is_new).map_or(200, |fails| fails.status)
    }
}

/// Tells whether a call goes to the batch endpoint.
pub(crate) fn is_batch(batch: &Batch, call: &Call) -> bool {
    call.path.split('?').next() == Some(batch.path.as_str())
}

fn answer(status: u16, body: &Value) -> Stored {
    Stored {
        status,
        body: Bytes::from(body.to_string()),
    }
}
