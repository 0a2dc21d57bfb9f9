//! One open database: rexie's handle, and the hooks that rexie does not offer.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use js_sys::{Object, Reflect};
use rexie::{Rexie, Transaction, TransactionMode};
use wasm_bindgen::closure::Closure;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{Event, IdbDatabase, IdbTransaction, IdbVersionChangeEvent};

use super::failure::Failure;
use super::js;
use super::outcome::Outcome;
use crate::StoreError;

/// Why a connection ended without our wish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Lost {
    /// Another connection wants to upgrade or delete the database, so ours was closed to let it.
    VersionChange,
    /// The browser closed the connection: its storage was cleared, or failed.
    Closed,
}

/// Told when a connection is lost.
pub(super) type Listener = Rc<dyn Fn(Lost)>;

type Begin = Closure<dyn FnMut(JsValue, JsValue) -> Result<JsValue, JsValue>>;

/// An open connection; closed when dropped.
pub(super) struct Connection {
    rexie: Rexie,
    database: IdbDatabase,
    lost: Rc<Cell<bool>>,
    begun: Rc<RefCell<Option<IdbTransaction>>>,
    _begin: Begin,
    _version_change: Closure<dyn FnMut(IdbVersionChangeEvent)>,
    _close: Closure<dyn FnMut(Event)>,
}

impl Connection {
    /// Hooks an opened database; the handler for `versionchange` takes the place of rexie's, which closes and tells nobody.
    pub(super) fn new(
        rexie: Rexie,
        database: IdbDatabase,
        listener: Listener,
    ) -> Result<Self, Failure> {
        let lost = Rc::new(Cell::new(false));
        let begun = Rc::new(RefCell::new(None));
        let begin = begin_strict(database.clone(), Rc::clone(&begun));
        js::set(&database, "transaction", begin.as_ref())
            .map_err(|error| Failure::of_exception(&error, "hook the database"))?;
        let version_change = on_version_change(&database, &lost, &listener);
        let close = on_close(&database, &lost, listener);
        Ok(Self {
            rexie,
            database,
            lost,
            begun,
            _begin: begin,
            _version_change: version_change,
            _close: close,
        })
    }

    /// Tells whether the connection was closed under us.
    pub(super) fn is_lost(&self) -> bool {
        self.lost.get()
    }

    /// Begins a transaction, and with it the watch on how it ends.
    pub(super) fn begin(
        &self,
        stores: &[&str],
        mode: TransactionMode,
    ) -> Result<(Transaction, Outcome), Failure> {
        let transaction = self
            .rexie
            .transaction(stores, mode)
            .map_err(|error| Failure::of_rexie(&error, "begin"))?;
        let Some(begun) = self.begun.take() else {
            let text = "the database does not let transactions be watched".to_owned();
            return Err(Failure::Final(StoreError::Unavailable(text)));
        };
        Outcome::watch(begun)
            .map(|outcome| (transaction, outcome))
            .map_err(|error| Failure::of_exception(&error, "watch"))
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.database.set_onversionchange(None);
        self.database.set_onclose(None);
        // Nobody has this database but us; a property that stays is a property of a closed one.
        let _ = Reflect::delete_property(&self.database, &JsValue::from_str("transaction"));
        self.database.close();
    }
}

/// Makes the `transaction` method of our database alone: the inherited one, with the durability that rexie cannot ask for.
///
/// Every write of a store is a claim, an outcome, an acceptance, a pause or an epoch, so every write is `strict`.
fn begin_strict(database: IdbDatabase, begun: Rc<RefCell<Option<IdbTransaction>>>) -> Begin {
    Closure::new(move |stores: JsValue, mode: JsValue| {
        let options = Object::new();
        if mode.as_string().as_deref() == Some("readwrite") {
            js::set(&options, "durability", &JsValue::from_str("strict"))?;
        }
        let transaction =
            js::inherited(&database, "transaction")?.call3(&database, &stores, &mode, &options)?;
        begun.replace(Some(transaction.clone().dyn_into()?));
        Ok(transaction)
    })
}

fn on_version_change(
    database: &IdbDatabase,
    lost: &Rc<Cell<bool>>,
    listener: &Listener,
) -> Closure<dyn FnMut(IdbVersionChangeEvent)> {
    let (ours, lost, listener) = (database.clone(), Rc::clone(lost), Rc::clone(listener));
    let closure = Closure::new(move |_| {
        ours.close();
        lost.set(true);
        listener(Lost::VersionChange);
    });
    database.set_onversionchange(Some(closure.as_ref().unchecked_ref()));
    closure
}

fn on_close(
    database: &IdbDatabase,
    lost: &Rc<Cell<bool>>,
    listener: Listener,
) -> Closure<dyn FnMut(Event)> {
    let lost = Rc::clone(lost);
    let closure = Closure::new(move |_| {
        lost.set(true);
        listener(Lost::Closed);
    });
    database.set_onclose(Some(closure.as_ref().unchecked_ref()));
    closure
}
