//! Small help at the JavaScript boundary: properties, safe numbers, a timer.

use std::cell::Cell;
use std::pin::Pin;
use std::task::{Context, Poll};

use js_sys::{Function, Promise, Reflect};
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;

const MAX_SAFE: u64 = (1 << 53) - 1;

/// Reads a property; `undefined` where it cannot be read.
pub(super) fn property(object: &JsValue, name: &str) -> JsValue {
    Reflect::get(object, &JsValue::from_str(name)).unwrap_or(JsValue::UNDEFINED)
}

/// Reads a property that is a string.
pub(super) fn text(object: &JsValue, name: &str) -> Option<String> {
    property(object, name).as_string()
}

/// Reads a property that is a function.
pub(super) fn function(object: &JsValue, name: &str) -> Result<Function, JsValue> {
    property(object, name).dyn_into()
}

/// Reads the method that an object has from its prototype, past a property of its own of the same name.
pub(super) fn inherited(object: &JsValue, name: &str) -> Result<Function, JsValue> {
    let prototype = Reflect::get_prototype_of(object)?;
    function(&prototype, name)
}

/// Sets a property.
pub(super) fn set(object: &JsValue, name: &str, value: &JsValue) -> Result<(), JsValue> {
    Reflect::set(object, &JsValue::from_str(name), value).map(drop)
}

/// Makes the key of a number, if a browser's number holds it exactly.
#[allow(
    clippy::cast_precision_loss,
    reason = "checked: the number is a safe integer"
)]
pub(super) fn number(value: u64) -> Option<JsValue> {
    (value <= MAX_SAFE).then(|| JsValue::from_f64(value as f64))
}

/// Reads a whole number that is not negative and safe.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "checked: the number is a safe integer"
)]
pub(super) fn whole(value: &JsValue) -> Option<u64> {
    let number = value.as_f64()?;
    let fits = number >= 0.0 && number <= MAX_SAFE as f64 && number.fract() == 0.0;
    fits.then_some(number as u64)
}

/// A timer of any global scope, cleared when it is dropped.
pub(super) struct Timer {
    id: JsValue,
    done: JsFuture,
}

impl Timer {
    /// Starts a timer.
    pub(super) fn start(millis: u32) -> Result<Self, JsValue> {
        let set_timeout = function(&js_sys::global(), "setTimeout")?;
        let id = Cell::new(Ok(JsValue::UNDEFINED));
        let promise = Promise::new(&mut |resolve, _| {
            id.set(set_timeout.call2(&JsValue::UNDEFINED, &resolve, &millis.into()));
        });
        Ok(Self {
            id: id.into_inner()?,
            done: promise.into(),
        })
    }
}

impl Future for Timer {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.done).poll(context).map(drop)
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        if let Ok(clear) = function(&js_sys::global(), "clearTimeout") {
            // A timer that cannot be cleared fires once, and nobody listens.
            let _ = clear.call1(&JsValue::UNDEFINED, &self.id);
        }
    }
}
