//! The requests of one read-write transaction, made as they are asked for and answered together.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use rexie::TransactionMode;
use wasm_bindgen::JsValue;

use super::codec::{self, Meta};
use super::connection::Connection;
use super::failure::Failure;
use super::outcome::Outcome;
use super::schema::META;

/// The stores of a transaction, by name.
pub(super) type Stores = BTreeMap<&'static str, Rc<rexie::Store>>;

/// Opens the stores of a transaction.
pub(super) fn stores(
    transaction: &rexie::Transaction,
    names: &[&'static str],
) -> Result<Stores, Failure> {
    let open = |name: &&'static str| match transaction.store(name) {
        Ok(store) => Ok((*name, Rc::new(store))),
        Err(error) => Err(Failure::of_rexie(&error, name)),
    };
    names.iter().map(open).collect()
}

type Request = Pin<Box<dyn Future<Output = rexie::Result<JsValue>>>>;

/// Requests that are under way.
///
/// Their futures are polled once when they are made, which makes the request, and again when the transaction is
/// complete. The burst is kept until its transaction has ended: a future that is dropped takes its event handlers along,
/// and the browser's call to one that is gone throws and aborts the transaction.
pub(super) struct Burst {
    _transaction: rexie::Transaction,
    stores: Stores,
    writes: Vec<Request>,
    reads: Vec<Request>,
}

impl Burst {
    /// Begins a transaction over these stores.
    pub(super) fn begin(
        connection: &Connection,
        names: &[&'static str],
    ) -> Result<(Self, Outcome), Failure> {
        let (transaction, outcome) = connection.begin(names, TransactionMode::ReadWrite)?;
        let stores = stores(&transaction, names)?;
        Ok((
            Self {
                _transaction: transaction,
                stores,
                writes: Vec::new(),
                reads: Vec::new(),
            },
            outcome,
        ))
    }

    /// Reads who owns the database, before the first write; the browser's value too, where it does not parse.
    pub(super) async fn read_meta(
        &self,
    ) -> Result<Option<Result<Meta, (JsValue, String)>>, Failure> {
        let record = self.stores[META].get(JsValue::from_str(META)).await;
        let record = record.map_err(|error| Failure::of_rexie(&error, META))?;
        Ok(record.map(|record| codec::decode(META, &record).map_err(|why| (record, why))))
    }

    /// Reads who owns the database; nobody where there is no record, or none that parses.
    pub(super) async fn meta(&self) -> Result<Option<Meta>, Failure> {
        Ok(self.read_meta().await?.and_then(Result::ok))
    }

    /// Writes who owns the database.
    pub(super) fn put_meta(&mut self, meta: &Meta) -> Result<(), Failure> {
        let value = codec::encode(META, meta).map_err(Failure::Final)?;
        self.put(META, &JsValue::from_str(META), &value)
    }

    /// Lends a store, to be read before the first write.
    pub(super) fn store(&self, name: &str) -> Rc<rexie::Store> {
        Rc::clone(&self.stores[name])
    }

    /// Adds a value, which fails where there is one.
    pub(super) fn add(
        &mut self,
        store: &str,
        key: &JsValue,
        value: &JsValue,
    ) -> Result<(), Failure> {
        let (store, key, value) = (self.store(store), key.clone(), value.clone());
        let request = begin(async move { store.add(&value, Some(&key)).await })?;
        self.writes.push(request);
        Ok(())
    }

    /// Replaces a value.
    pub(super) fn put(
        &mut self,
        store: &str,
        key: &JsValue,
        value: &JsValue,
    ) -> Result<(), Failure> {
        let (store, key, value) = (self.store(store), key.clone(), value.clone());
        let request = begin(async move { store.put(&value, Some(&key)).await })?;
        self.writes.push(request);
        Ok(())
    }

    /// Adds a value under a key that the store makes.
    pub(super) fn append(&mut self, store: &str, value: &JsValue) -> Result<(), Failure> {
        let (store, value) = (self.store(store), value.clone());
        let request = begin(async move { store.put(&value, None).await })?;
        self.writes.push(request);
        Ok(())
    }

    /// Removes what a key or a range names.
    pub(super) fn delete(&mut self, store: &str, query: &JsValue) -> Result<(), Failure> {
        let (store, query) = (self.store(store), query.clone());
        let request = begin(async move { store.delete(query).await.map(|()| JsValue::UNDEFINED) })?;
        self.writes.push(request);
        Ok(())
    }

    /// Asks for a value.
    pub(super) fn get(&mut self, store: &str, key: &JsValue) -> Result<(), Failure> {
        let (store, key) = (self.store(store), key.clone());
        let request = begin(async move { store.get(key).await.map(Option::unwrap_or_default) })?;
        self.reads.push(request);
        Ok(())
    }

    /// Takes what the gets read, once the transaction is complete.
    pub(super) fn answers(self) -> Result<Vec<JsValue>, Failure> {
        let answer = |mut request: Request| match poll(&mut request) {
            Poll::Ready(result) => result.map_err(|error| Failure::of_rexie(&error, "read")),
            Poll::Pending => Err(Failure::Lost(
                "read: no answer in a complete transaction".to_owned(),
            )),
        };
        self.reads.into_iter().map(answer).collect()
    }
}

fn begin(
    future: impl Future<Output = rexie::Result<JsValue>> + 'static,
) -> Result<Request, Failure> {
    let mut request: Request = Box::pin(future);
    match poll(&mut request) {
        Poll::Ready(Err(error)) => Err(Failure::of_rexie(&error, "write")),
        Poll::Ready(Ok(_)) | Poll::Pending => Ok(request),
    }
}

fn poll(request: &mut Request) -> Poll<rexie::Result<JsValue>> {
    request
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
}
