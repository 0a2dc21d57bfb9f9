//! What the engine needs of JavaScript: its shell, two clocks, a seed, and a console to complain to.

use std::panic::PanicHookInfo;

use js_sys::{Promise, Reflect};
use paceline_core::time::Now;
use wasm_bindgen::prelude::{JsValue, wasm_bindgen};

#[wasm_bindgen]
extern "C" {
    /// The JavaScript around the engine. Its methods do not throw and never call the engine.
    #[wasm_bindgen(typescript_type = "EngineShell")]
    #[derive(Debug)]
    pub type Shell;

    /// Posts a message to a tab.
    #[wasm_bindgen(method)]
    pub(crate) fn post(this: &Shell, tab: u32, message: &JsValue);

    /// Sets the one timer, or clears it.
    #[wasm_bindgen(method)]
    pub(crate) fn set_timer(this: &Shell, ms: Option<f64>);

    /// Sends a request.
    #[wasm_bindgen(method)]
    pub(crate) fn send(this: &Shell, request: &JsValue, options: &JsValue) -> Promise;

    /// Ends the host.
    #[wasm_bindgen(method)]
    pub(crate) fn stopped(this: &Shell, reason: &str);

    #[wasm_bindgen(js_namespace = performance, js_name = now)]
    fn performance_now() -> f64;

    #[wasm_bindgen(js_namespace = console, js_name = error)]
    fn console_error(what: &str, value: &JsValue);
}

/// Reads both clocks.
pub(crate) fn clock() -> Now {
    crate::now_of(performance_now(), js_sys::Date::now())
}

/// Draws the seed of a host's jitter.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "between 0 and 2^53"
)]
pub(crate) fn random_seed() -> u64 {
    (js_sys::Math::random() * 9_007_199_254_740_992.0) as u64
}

/// Writes to the console.
pub(crate) fn complain(what: &str, value: &JsValue) {
    console_error(&format!("paceline: {what}"), value);
}

/// Leaves a panic's text where the shell finds it, for every tab to be told.
pub(crate) fn report_panic(info: &PanicHookInfo<'_>) {
    console_error_panic_hook::hook(info);
    let text = JsValue::from_str(&info.to_string());
    // A panic while panicking would hide the first one.
    let _ = Reflect::set(
        &js_sys::global(),
        &JsValue::from_str("pacelinePanic"),
        &text,
    );
}
