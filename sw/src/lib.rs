//! The Paceline worker: web adapters over the host.
//!
//! Owns the one drive loop of a worker. Does not own lock, ports, timer or `fetch`: the JavaScript shell does, because
//! they must outlive a trap. Invariant: the host is entered from one place and never from inside itself; what arrives
//! while it is driven waits in the inbox.

mod message;
mod shell;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;

use js_sys::{Error, Reflect};
use paceline_core::ids::Seq;
use paceline_core::io::{Network, NoAnswer};
use paceline_core::scheduler::Bounds;
use paceline_core::time::{Mono, Now, Wall};
use paceline_host::{Host, HostConfig, HostInput, HostOutput};
use paceline_store::indexeddb::IndexedDbStore;
use paceline_store::{Store, StoreError};
use serde::Deserialize;
use wasm_bindgen::prelude::{JsValue, wasm_bindgen};
use wasm_bindgen_futures::{JsFuture, spawn_local};

use shell::{Shell, clock, random_seed};

/// What the shell starts an engine with.
#[derive(Debug, Deserialize)]
struct Options {
    queue: String,
    instance: String,
    host: String,
    version: String,
    /// The functions of the app's worker that read answers.
    #[serde(default)]
    dialects: BTreeSet<String>,
}

/// The scheduler of one queue in a worker. The shell holds the queue's Web Lock for as long as it lives.
#[wasm_bindgen]
#[derive(Debug, Clone)]
pub struct Engine {
    inner: Rc<Inner>,
}

#[derive(Debug)]
struct Inner {
    host: RefCell<Host<JsValue>>,
    store: IndexedDbStore,
    shell: Shell,
    inbox: RefCell<VecDeque<HostInput<JsValue>>>,
    is_driving: Cell<bool>,
    timer: Cell<Option<Mono>>,
}

#[wasm_bindgen]
impl Engine {
    /// Opens the store, raises the epoch and recovers what the last owner left.
    ///
    /// # Errors
    /// An `Error` with a `code`: `storage` when the store cannot be opened.
    pub async fn start(options: JsValue, shell: Shell) -> Result<Engine, JsValue> {
        std::panic::set_hook(Box::new(shell::report_panic));
        let options: Options = serde_wasm_bindgen::from_value(options)?;
        let store = IndexedDbStore::new(&options.queue);
        let opened = store
            .open(clock().wall)
            .await
            .map_err(|error| coded(&error))?;
        let config = HostConfig {
            kind: options.host,
            instance: options.instance,
            version: options.version,
            durable: true,
            seed: random_seed(),
            bounds: Bounds::default(),
            dialects: options.dialects,
        };
        let host = Host::new(config, opened, clock());
        let inner = Inner {
            host: RefCell::new(host),
            store,
            shell,
            inbox: RefCell::new(VecDeque::new()),
            is_driving: Cell::new(false),
            timer: Cell::new(None),
        };
        let engine = Self {
            inner: Rc::new(inner),
        };
        let weak = Rc::downgrade(&engine.inner);
        engine.inner.store.on_lost(move |_| {
            if let Some(inner) = weak.upgrade() {
                Self { inner }.feed(HostInput::StoreLost);
            }
        });
        engine.drive();
        Ok(engine)
    }

    /// Takes a tab's message. `requests` and `sizes` are the stored requests of its jobs, in their order.
    pub fn message(&self, tab: u32, message: JsValue, requests: Vec<JsValue>, sizes: Vec<f64>) {
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a size in bytes; `as` saturates"
        )]
        let sizes = sizes.into_iter().map(|size| size as u32);
        match message::parse(&message) {
            Ok((re, request)) => {
                let bodies = requests.into_iter().zip(sizes).collect();
                self.feed(HostInput::Message {
                    tab,
                    re,
                    request,
                    bodies,
                });
            }
            // The shell checks the head of each message; one that still does not parse has no number to answer to.
            Err(error) => {
                let (re, request) = (f64::NAN, Err(error));
                self.feed(HostInput::Message {
                    tab,
                    re,
                    request,
                    bodies: Vec::new(),
                });
            }
        }
    }

    /// Forgets a tab.
    pub fn tab_left(&self, tab: u32) {
        self.feed(HostInput::TabLeft(tab));
    }

    /// The one timer has fired.
    pub fn wake(&self) {
        self.inner.timer.set(None);
        self.feed(HostInput::Wake);
    }

    /// A newer host waits: starts nothing more, and ends once what has left is over and stored.
    pub fn retire(&self) {
        self.feed(HostInput::Retire);
    }

    /// The browser says whether there is a network.
    pub fn online(&self, is_online: bool) {
        self.feed(HostInput::Network(if is_online {
            Network::Online
        } else {
            Network::Offline
        }));
    }

    fn feed(&self, input: HostInput<JsValue>) {
        self.inner.inbox.borrow_mut().push_back(input);
        self.drive();
    }

    /// Handles all that has arrived, and carries out what comes of it.
    fn drive(&self) {
        if self.inner.is_driving.replace(true) {
            return;
        }
        loop {
            self.perform_all();
            let next = self.inner.inbox.borrow_mut().pop_front();
            let Some(input) = next else { break };
            self.inner.host.borrow_mut().handle(input, clock());
        }
        self.arm();
        self.inner.is_driving.set(false);
    }

    fn perform_all(&self) {
        loop {
            let output = self.inner.host.borrow_mut().poll_output();
            match output {
                Some(output) => self.perform(output),
                None => return,
            }
        }
    }

    fn perform(&self, output: HostOutput<JsValue>) {
        match output {
            HostOutput::Post {
                tab,
                stamp,
                message,
                response,
                requests,
            } => match message::build(&stamp, &message, response, requests) {
                Ok(object) => self.inner.shell.post(tab, &object),
                Err(error) => shell::complain("a message cannot be built", &error),
            },
            HostOutput::Store(transaction) => {
                let engine = self.clone();
                spawn_local(async move {
                    let result = engine.inner.store.commit(transaction).await;
                    engine.feed(HostInput::StoreDone(result));
                });
            }
            HostOutput::Read(batches) => {
                let engine = self.clone();
                spawn_local(async move {
                    let result = engine.inner.store.read_bodies(batches).await;
                    engine.feed(HostInput::BodiesRead(result));
                });
            }
            HostOutput::Send {
                seq,
                attempt,
                request,
                later,
                batch,
                is_check,
                mut headers,
                secrets,
                timeout_ms,
                body,
                dialect,
            } => {
                headers.extend(secrets.reveal());
                match message::send_options(
                    headers, timeout_ms, later, batch, body, is_check, dialect,
                ) {
                    Ok(options) => self.send(seq, attempt, &request, &options),
                    Err(error) => {
                        shell::complain("a request cannot be sent", &error);
                        let cause = NoAnswer::NeverLeft;
                        let input = HostInput::NoAnswer {
                            seq,
                            attempt,
                            cause,
                        };
                        self.inner.inbox.borrow_mut().push_back(input);
                    }
                }
            }
            HostOutput::Stop(error) => self.inner.shell.stopped(&error.to_string()),
            HostOutput::Retired => self.inner.shell.stopped("a newer host takes over"),
        }
    }

    /// Sends in this very task, so that nothing comes between the claim's `complete` and its request.
    fn send(&self, seq: Seq, attempt: u32, request: &JsValue, options: &JsValue) {
        let answer = self.inner.shell.send(request, options);
        let engine = self.clone();
        spawn_local(async move {
            let input = match JsFuture::from(answer).await {
                Ok(answer) => message::answered(seq, attempt, answer, clock()),
                Err(_) => HostInput::NoAnswer {
                    seq,
                    attempt,
                    cause: NoAnswer::Network,
                },
            };
            engine.feed(input);
        });
    }

    /// Sets the one timer to the next deadline, if that has changed; an idle host has none.
    fn arm(&self) {
        let due = self.inner.host.borrow().poll_timeout().map(|(at, _)| at);
        if due == self.inner.timer.get() {
            return;
        }
        self.inner.timer.set(due);
        #[allow(
            clippy::cast_precision_loss,
            reason = "a wait; the shell cuts it to what a timer can take"
        )]
        let wait = due.map(|at| at.since(clock().mono) as f64);
        self.inner.shell.set_timer(wait);
    }
}

/// A start's failure as the shell expects it.
fn coded(error: &StoreError) -> JsValue {
    let object = Error::new(&error.to_string());
    let code = JsValue::from_str("storage");
    if Reflect::set(&object, &JsValue::from_str("code"), &code).is_err() {
        shell::complain("an error takes no code", &object);
    }
    object.into()
}

/// Reads both clocks, in whole milliseconds rounded down.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "positive milliseconds; `as` saturates"
)]
pub(crate) fn now_of(mono_ms: f64, wall_ms: f64) -> Now {
    Now {
        mono: Mono::from_millis(mono_ms as u64),
        wall: Wall::from_millis(wall_ms as u64),
    }
}
