//! Opening the database through rexie, with the three things that rexie leaves out: an upgrade that deletes nothing, a
//! deadline, and the database itself for [`Connection`]'s hooks.
//!
//! `indexedDB.open` is replaced only during the synchronous call of rexie's builder and only for that call, so that
//! other users of `indexedDB` in the same worker never meet the replacement.

use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use js_sys::{Array, Promise, Reflect};
use rexie::{ObjectStore, Rexie};
use tokio::sync::oneshot;
use wasm_bindgen::closure::Closure;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::{JsFuture, spawn_local};
use web_sys::{Event, IdbDatabase, IdbFactory, IdbOpenDbRequest, IdbVersionChangeEvent};

use super::connection::{Connection, Listener};
use super::failure::{Failure, exception_name};
use super::js::{self, Timer};
use super::schema::{self, SCHEMA, STORES};
use crate::StoreError;

type Build = Pin<Box<dyn Future<Output = rexie::Result<Rexie>>>>;
type Hook = Closure<dyn FnMut(JsValue, JsValue) -> Result<JsValue, JsValue>>;

/// What is seen of an open request.
#[derive(Default)]
struct Seen {
    request: RefCell<Option<IdbOpenDbRequest>>,
    blocked: Cell<bool>,
}

/// The listeners of an open request; they live as long as it does.
struct Listeners {
    upgrade: Closure<dyn FnMut(IdbVersionChangeEvent) -> Result<(), JsValue>>,
    blocked: Closure<dyn FnMut(Event)>,
}

/// Opens the database, or gives up after `patience_ms`.
pub(super) async fn open(
    name: &str,
    patience_ms: u32,
    listener: Listener,
) -> Result<Connection, Failure> {
    let seen = Rc::new(Seen::default());
    let answer = begin(name, &seen)?;
    let timer = Timer::start(patience_ms).map_err(|error| unavailable(&error))?;
    let Some(answer) = before(timer, answer).await else {
        return Err(overdue(&seen, patience_ms));
    };
    match answer {
        Ok(Ok(rexie)) => Connection::new(rexie, database(&seen)?, listener),
        Ok(Err(error)) => Err(refused(name, &error).await),
        Err(_) => Err(Failure::Lost("opening was dropped".to_owned())),
    }
}

/// Starts the request; an answer that nobody waits for any more is closed again.
fn begin(name: &str, seen: &Rc<Seen>) -> Result<oneshot::Receiver<rexie::Result<Rexie>>, Failure> {
    let listeners = Rc::new(Listeners::new(seen));
    let mut build = build(name);
    let first = poll_hooked(&mut build, seen, &listeners).map_err(|error| unavailable(&error))?;
    let (sender, receiver) = oneshot::channel();
    spawn_local(async move {
        let result = match first {
            Poll::Ready(result) => result,
            Poll::Pending => build.await,
        };
        drop(listeners);
        if let Err(Ok(abandoned)) = sender.send(result) {
            abandoned.close();
        }
    });
    Ok(receiver)
}

/// The stores are named in case that the builder's own upgrade should ever run.
fn build(name: &str) -> Build {
    let add = |builder: rexie::RexieBuilder, store: &&str| {
        builder.add_object_store(ObjectStore::new(store))
    };
    Box::pin(
        STORES
            .iter()
            .fold(Rexie::builder(name).version(SCHEMA), add)
            .build(),
    )
}

/// Polls the builder once, which calls `indexedDB.open` before it returns.
fn poll_hooked(
    build: &mut Build,
    seen: &Rc<Seen>,
    listeners: &Rc<Listeners>,
) -> Result<Poll<rexie::Result<Rexie>>, JsValue> {
    let factory: IdbFactory = js::property(&js_sys::global(), "indexedDB").dyn_into()?;
    let hook = hook(factory.clone(), Rc::clone(seen), Rc::clone(listeners));
    js::set(&factory, "open", hook.as_ref())?;
    let first = build.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    Reflect::delete_property(&factory, &JsValue::from_str("open"))?;
    Ok(first)
}

fn hook(factory: IdbFactory, seen: Rc<Seen>, listeners: Rc<Listeners>) -> Hook {
    Closure::new(move |name: JsValue, version: JsValue| {
        let opened = js::inherited(&factory, "open")?.call2(&factory, &name, &version)?;
        let request: IdbOpenDbRequest = opened.clone().dyn_into()?;
        let add = |event, listener: &JsValue| {
            request.add_event_listener_with_callback(event, listener.unchecked_ref())
        };
        add("upgradeneeded", listeners.upgrade.as_ref())?;
        add("blocked", listeners.blocked.as_ref())?;
        seen.request.replace(Some(request));
        Ok(opened)
    })
}

impl Listeners {
    fn new(seen: &Rc<Seen>) -> Self {
        let seen = Rc::clone(seen);
        Self {
            upgrade: Closure::new(|event: IdbVersionChangeEvent| schema::upgrade(&event)),
            blocked: Closure::new(move |_| seen.blocked.set(true)),
        }
    }
}

async fn before<F: Future>(timer: Timer, future: F) -> Option<F::Output> {
    let (mut timer, mut future) = (std::pin::pin!(timer), std::pin::pin!(future));
    std::future::poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => timer.as_mut().poll(context).map(|()| None),
    })
    .await
}

fn database(seen: &Seen) -> Result<IdbDatabase, Failure> {
    let request = seen.request.borrow();
    let result = request
        .as_ref()
        .map_or(Ok(JsValue::UNDEFINED), |request| request.result());
    result.and_then(JsCast::dyn_into).map_err(|_| {
        Failure::Final(StoreError::Unavailable(
            "the database could not be reached for its hooks".to_owned(),
        ))
    })
}

fn overdue(seen: &Seen, patience_ms: u32) -> Failure {
    if seen.blocked.get() {
        return Failure::Final(StoreError::Blocked);
    }
    Failure::Lost(format!("open: no answer in {patience_ms} ms"))
}

fn unavailable(error: &JsValue) -> Failure {
    let text =
        js::text(error, "message").unwrap_or_else(|| "there is no indexedDB here".to_owned());
    Failure::Final(StoreError::Unavailable(text))
}

async fn refused(name: &str, error: &rexie::Error) -> Failure {
    if exception_name(error).as_deref() != Some("VersionError") {
        return Failure::of_rexie(error, "open");
    }
    let found = stored_version(name).await.unwrap_or(SCHEMA + 1);
    Failure::Final(StoreError::TooNew {
        expected: SCHEMA,
        found,
    })
}

/// Reads the version of a database without opening it.
async fn stored_version(name: &str) -> Option<u32> {
    let factory = js::property(&js_sys::global(), "indexedDB");
    let promise: Promise = js::function(&factory, "databases")
        .ok()?
        .call0(&factory)
        .ok()?
        .dyn_into()
        .ok()?;
    let databases: Array = JsFuture::from(promise).await.ok()?.dyn_into().ok()?;
    let found = databases
        .iter()
        .find(|entry| js::text(entry, "name").as_deref() == Some(name))?;
    u32::try_from(js::whole(&js::property(&found, "version"))?).ok()
}
