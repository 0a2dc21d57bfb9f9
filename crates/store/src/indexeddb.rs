//! The store in IndexedDB: one database a queue, named `paceline:<queue>`.
//!
//! Owns the layout, the connection and its recovery. Never looks into a body, which is any value that the browser can
//! clone. Invariant: every write compares the epoch in the transaction that it is part of, and every transaction ends
//! complete or aborted, never by being forgotten.
//!
//! A commit reads `meta`, compares, makes all its requests in one synchronous burst and waits for `complete`; nothing
//! else is awaited inside a transaction. When a connection breaks it is dropped and opened anew, and the same write is
//! tried again, up to three times; each commit leaves its token in `meta`, so a retry of one that was stored after all
//! writes nothing twice.
//!
//! # rexie, and where it is not enough
//!
//! Opening, transactions and requests are rexie's. What it cannot do is done beside it, here and nowhere else:
//!
//! - Its builder deletes every object store that it was not told of. Our own `upgradeneeded` listener runs first,
//!   migrates, and ends the event (`schema`).
//! - Its `build` waits for ever on `blocked`, and its handle hides the database, so that `versionchange`, `close` and
//!   `durability` are out of reach. `indexedDB.open` is replaced for the length of its one synchronous call (`opening`),
//!   and `transaction` on our own database object alone (`connection`). The prototypes stay as they are.
//! - A transaction that is dropped commits, and its waits lose the browser's reason. Every path ends in
//!   `Outcome::complete` or `Outcome::abort`, which listen for themselves (`outcome`).
//! - `put_all` waits for the last request only. Requests are kept and their transaction is waited for (`burst`).
//! - Its errors hide the `DOMException`; `failure` looks through them, by way of the idb crate.

mod burst;
mod codec;
mod connection;
mod failure;
mod js;
mod load;
mod opening;
mod outcome;
mod quarantine;
mod schema;
mod write;

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;

use paceline_core::ids::{BatchNo, Epoch};
use paceline_core::time::Wall;
use tokio::sync::{Mutex, oneshot};
use wasm_bindgen::JsValue;
use wasm_bindgen_futures::spawn_local;

use self::burst::Burst;
use self::codec::Meta;
pub use self::connection::Lost;
use self::connection::{Connection, Listener};
use self::failure::Failure;
use self::schema::{META, QUARANTINE, SCHEMA};
use self::write::Prepared;
use crate::{Opened, ReadBodies, Store, StoreError, Transaction};

/// How often a write is tried, each time on a new connection.
const ATTEMPTS: u32 = 3;

/// How long an open may take, in milliseconds, before it counts as blocked or failed.
pub const OPEN_PATIENCE_MS: u32 = 5_000;

type Watcher = Rc<dyn Fn(Lost)>;

/// The store of one queue in IndexedDB.
///
/// Its operations run one after another, each to its end even if its future is dropped: a request that nobody waits for
/// would else break off its transaction.
#[derive(Clone, Debug)]
pub struct IndexedDbStore {
    inner: Rc<Inner>,
}

struct Inner {
    name: String,
    patience_ms: Cell<u32>,
    connection: Mutex<Option<Connection>>,
    watcher: Rc<RefCell<Option<Watcher>>>,
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inner")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl IndexedDbStore {
    /// Names the store of a queue; nothing is opened yet.
    pub fn new(queue: &str) -> Self {
        let inner = Inner {
            name: format!("paceline:{queue}"),
            patience_ms: Cell::new(OPEN_PATIENCE_MS),
            connection: Mutex::const_new(None),
            watcher: Rc::default(),
        };
        Self {
            inner: Rc::new(inner),
        }
    }

    /// Sets how long an open may take, in milliseconds; see [`OPEN_PATIENCE_MS`].
    #[must_use]
    pub fn with_open_patience(self, patience_ms: u32) -> Self {
        self.inner.patience_ms.set(patience_ms);
        self
    }

    /// Returns the database's name.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Calls `watcher` whenever a connection ends without our wish; it replaces an earlier one.
    ///
    /// The next operation opens a new connection and so finds out what has become of the database. An owner should make
    /// one soon: an empty commit is enough.
    pub fn on_lost(&self, watcher: impl Fn(Lost) + 'static) {
        self.inner.watcher.replace(Some(Rc::new(watcher)));
    }

    /// Closes the connection, after what is under way; the next operation opens another.
    pub async fn close(&self) {
        self.inner.connection.lock().await.take();
    }

    /// Runs an operation to its end, whatever becomes of the returned future.
    async fn run<T: 'static>(
        &self,
        operation: impl AsyncFn(&Connection) -> Result<T, Failure> + 'static,
    ) -> Result<T, StoreError> {
        let inner = Rc::clone(&self.inner);
        let (sender, receiver) = oneshot::channel();
        spawn_local(async move {
            // The one who asked may be gone.
            let _ = sender.send(inner.attempt(operation).await);
        });
        let dropped = || {
            Err(StoreError::Transient(
                "the worker dropped the operation".to_owned(),
            ))
        };
        receiver.await.unwrap_or_else(|_| dropped())
    }
}

impl Inner {
    /// Lends the connection, opened first where there is none that lives.
    async fn connect<'a>(
        &self,
        slot: &'a mut Option<Connection>,
    ) -> Result<&'a Connection, Failure> {
        if slot.as_ref().is_some_and(Connection::is_lost) {
            *slot = None;
        }
        match slot {
            Some(connection) => Ok(connection),
            None => {
                let opened =
                    opening::open(&self.name, self.patience_ms.get(), self.listener()).await?;
                Ok(slot.insert(opened))
            }
        }
    }

    fn listener(&self) -> Listener {
        let watcher = Rc::clone(&self.watcher);
        Rc::new(move |lost| {
            // A copy, so that the watcher may replace itself.
            let watcher = watcher.borrow().clone();
            if let Some(watcher) = watcher {
                watcher(lost);
            }
        })
    }

    /// Tries up to [`ATTEMPTS`] times, on a new connection after each that broke.
    async fn attempt<T>(
        &self,
        operation: impl AsyncFn(&Connection) -> Result<T, Failure>,
    ) -> Result<T, StoreError> {
        let mut slot = self.connection.lock().await;
        let mut tried = 1;
        loop {
            let result = match self.connect(&mut slot).await {
                Ok(connection) => operation(connection).await,
                Err(failure) => Err(failure),
            };
            match result {
                Ok(value) => return Ok(value),
                Err(Failure::Lost(_)) if tried < ATTEMPTS => tried += 1,
                Err(failure) => {
                    let error = failure.into_error();
                    if matches!(error, StoreError::Full(_) | StoreError::Transient(_)) {
                        // Firefox keeps a connection that met the quota from writing until it is opened anew.
                        *slot = None;
                    }
                    return Err(error);
                }
            }
            *slot = None;
        }
    }
}

impl Store for IndexedDbStore {
    type Body = JsValue;

    async fn open(&self, now: Wall) -> Result<Opened, StoreError> {
        self.run(async move |connection| {
            let (meta, unreadable) = raise_epoch(connection, now).await?;
            let mut loaded = load::load(connection).await?;
            let set_aside = quarantine::set_aside(connection, &mut loaded, meta.epoch, now).await;
            Ok(Opened {
                epoch: meta.epoch,
                birth: meta.birth,
                stored: loaded.stored,
                quarantined: set_aside + u32::from(unreadable),
            })
        })
        .await
    }

    async fn commit(
        &self,
        transaction: Transaction<JsValue>,
    ) -> Result<ReadBodies<JsValue>, StoreError> {
        transaction.check()?;
        let prepared = Prepared::new(&transaction, fresh_token())?;
        self.run(async move |connection| prepared.store(connection).await)
            .await
    }

    async fn read_bodies(&self, batches: Vec<BatchNo>) -> Result<ReadBodies<JsValue>, StoreError> {
        self.run(async move |connection| load::load_bodies(connection, &batches).await)
            .await
    }
}

/// Makes a number that no other commit of this database has; 52 random bits, and 0 is no commit.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "between 1 and 2^52"
)]
fn fresh_token() -> u64 {
    (js_sys::Math::random() * 4_503_599_627_370_495.0) as u64 + 1
}

/// Takes ownership: one transaction that reads `meta`, raises the epoch and writes it back.
///
/// Tells also whether `meta` was there and did not parse. It is then begun anew from an epoch that no owner ever had.
async fn raise_epoch(connection: &Connection, now: Wall) -> Result<(Meta, bool), Failure> {
    let (mut burst, outcome) = Burst::begin(connection, &[META, QUARANTINE])?;
    match request_raise(&mut burst, now).await {
        Ok(raised) => outcome.complete().await.map(|()| raised),
        Err(failure) => {
            outcome.abort().await;
            Err(failure)
        }
    }
}

async fn request_raise(burst: &mut Burst, now: Wall) -> Result<(Meta, bool), Failure> {
    let (meta, unreadable) = match burst.read_meta().await? {
        None => (Meta::new(Epoch(1), now), false),
        Some(Ok(meta)) if meta.schema > SCHEMA => {
            return Err(Failure::Final(StoreError::TooNew {
                expected: SCHEMA,
                found: meta.schema,
            }));
        }
        Some(Ok(meta)) => (
            Meta {
                epoch: meta.epoch.next(),
                schema: SCHEMA,
                ..meta
            },
            false,
        ),
        Some(Err((value, why))) => {
            burst.append(
                QUARANTINE,
                &quarantine::meta(value, why, now).map_err(Failure::Final)?,
            )?;
            (Meta::new(Epoch(now.as_millis()), now), true)
        }
    };
    burst.put_meta(&meta)?;
    Ok((meta, unreadable))
}
