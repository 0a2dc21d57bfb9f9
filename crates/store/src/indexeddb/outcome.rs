//! How a transaction ends, with the browser's reason.
//!
//! rexie's own waits lose the reason, end before the abort does, never end when they begin after it, and drop handlers
//! that the browser then still calls, which throws. So the transaction itself is listened to and aborted.
//!
//! Nothing calls `commit`: a transaction commits by itself once its requests are answered. In Firefox one that was told
//! to commit earlier completes although a later answer is an error, and so stores half of what was asked.

use std::cell::Cell;
use std::rc::Rc;

use tokio::sync::oneshot;
use wasm_bindgen::closure::Closure;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{Event, IdbTransaction};

use super::failure::Failure;

type End = Result<(), Option<JsValue>>;
type OnEvent = Closure<dyn FnMut(Event)>;

/// The watch on one transaction.
pub(super) struct Outcome {
    end: oneshot::Receiver<End>,
    listeners: Listeners,
}

struct Listeners {
    transaction: IdbTransaction,
    complete: OnEvent,
    abort: OnEvent,
}

impl Outcome {
    /// Watches a transaction that has just begun.
    pub(super) fn watch(transaction: IdbTransaction) -> Result<Self, JsValue> {
        let (sender, end) = oneshot::channel();
        let sender = Rc::new(Cell::new(Some(sender)));
        let (on_complete, on_abort) = (Rc::clone(&sender), sender);
        let complete = Closure::new(move |_| tell(on_complete.take(), Ok(())));
        let aborted = transaction.clone();
        let abort =
            Closure::new(move |_| tell(on_abort.take(), Err(aborted.error().map(JsValue::from))));
        let listeners = Listeners {
            transaction,
            complete,
            abort,
        };
        listeners.add()?;
        Ok(Self { end, listeners })
    }

    /// Waits until the transaction is complete and so durable.
    ///
    /// All that was requested must be kept until then: the handlers of its requests are still called.
    pub(super) async fn complete(self) -> Result<(), Failure> {
        match self.end.await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(Some(exception))) => Err(Failure::of_exception(&exception, "commit")),
            Ok(Err(None)) | Err(_) => {
                Err(Failure::Lost("commit: aborted without a reason".to_owned()))
            }
        }
    }

    /// Aborts, and waits until nothing of the transaction is left.
    pub(super) async fn abort(self) {
        // Throws when the browser has aborted it already, which is as good.
        let _ = self.listeners.transaction.abort();
        // Aborted, or complete after all: there is nothing left to do about it.
        let _ = self.end.await;
    }
}

impl Listeners {
    fn add(&self) -> Result<(), JsValue> {
        let add = |event, listener: &OnEvent| {
            self.transaction
                .add_event_listener_with_callback(event, listener.as_ref().unchecked_ref())
        };
        add("complete", &self.complete)?;
        add("abort", &self.abort)
    }
}

impl Drop for Listeners {
    fn drop(&mut self) {
        for (event, listener) in [("complete", &self.complete), ("abort", &self.abort)] {
            // A listener that stays would be called after its end, which throws into the void.
            let _ = self
                .transaction
                .remove_event_listener_with_callback(event, listener.as_ref().unchecked_ref());
        }
    }
}

fn tell(sender: Option<oneshot::Sender<End>>, end: End) {
    if let Some(sender) = sender {
        // Nobody waits any more: the caller was dropped.
        let _ = sender.send(end);
    }
}
