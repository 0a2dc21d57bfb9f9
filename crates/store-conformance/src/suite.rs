//! The shared suite, run with the IndexedDB store.

use js_sys::{Array, Object, Reflect};
use paceline_store::conformance::{Kit, Verdict, run};
use paceline_store::indexeddb::IndexedDbStore;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

struct IndexedDbKit {
    prefix: String,
}

impl Kit for IndexedDbKit {
    type Store = IndexedDbStore;

    async fn fresh(&self, name: &str) -> IndexedDbStore {
        IndexedDbStore::new(&format!("{}:{name}", self.prefix))
    }

    async fn again(&self, store: &IndexedDbStore) -> IndexedDbStore {
        IndexedDbStore::new(store.name().trim_start_matches("paceline:"))
    }

    fn body(&self, number: u64) -> JsValue {
        body(number)
    }

    fn number(&self, body: &JsValue) -> Option<u64> {
        let id = Reflect::get(body, &"id".into()).ok()?.as_string()?;
        id.parse().ok()
    }
}

/// Makes a body as a page sends one: an object of about 300 bytes.
pub(crate) fn body(number: u64) -> JsValue {
    let body = Object::new();
    let fields = [
        ("id", number.to_string()),
        ("url", format!("https://api.example/contacts/{number}")),
        ("method", "PATCH".to_owned()),
        ("body", format!("{{\"owner\":\"{}\"}}", "x".repeat(200))),
    ];
    for (name, value) in fields {
        // A plain object takes every property.
        let _ = Reflect::set(&body, &name.into(), &value.into());
    }
    body.into()
}

/// Tries every claim of the shared suite; answers `{ name, ok, error }` for each.
#[wasm_bindgen]
pub async fn conformance(prefix: String) -> Array {
    run(&IndexedDbKit { prefix })
        .await
        .iter()
        .map(verdict)
        .collect()
}

fn verdict(verdict: &Verdict) -> JsValue {
    let error = verdict.result.as_ref().err().map(ToString::to_string);
    let answer = Object::new();
    for (name, value) in [
        ("name", verdict.name.into()),
        ("ok", error.is_none().into()),
        ("error", error.into()),
    ] {
        // A plain object takes every property.
        let _ = Reflect::set(&answer, &name.into(), &value);
    }
    answer.into()
}
