//! What went wrong in the browser, sorted by what can be done about it.

use wasm_bindgen::JsValue;

use super::js;
use crate::StoreError;

/// Why one attempt failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// The connection or the transaction broke: a new connection may do better.
    Lost(String),
    /// Trying again would end the same way.
    Final(StoreError),
}

impl Failure {
    /// Sorts a thrown or reported value, mostly a `DOMException`, by its name.
    pub(super) fn of_exception(exception: &JsValue, doing: &str) -> Self {
        let name = js::text(exception, "name").unwrap_or_default();
        let text = describe(exception, doing);
        match name.as_str() {
            "QuotaExceededError" => Self::Final(StoreError::Full(text)),
            "ConstraintError" => Self::Final(StoreError::Invalid(format!(
                "batch exists already ({text})"
            ))),
            "DataCloneError" | "DataError" => Self::Final(StoreError::Invalid(text)),
            "SecurityError" | "NotAllowedError" => Self::Final(StoreError::Unavailable(text)),
            _ => Self::Lost(text),
        }
    }

    /// Sorts an error of rexie, whose own text says nothing.
    pub(super) fn of_rexie(error: &rexie::Error, doing: &str) -> Self {
        match thrown(error) {
            Some(exception) => Self::of_exception(exception, doing),
            None => {
                let inner = std::error::Error::source(error).map(ToString::to_string);
                Self::Lost(format!(
                    "{doing}: {}",
                    inner.unwrap_or_else(|| error.to_string())
                ))
            }
        }
    }

    /// What the caller is told when no more attempts are made.
    pub(super) fn into_error(self) -> StoreError {
        match self {
            Self::Lost(text) => StoreError::Transient(text),
            Self::Final(error) => error,
        }
    }
}

/// The name of the exception behind an error of rexie.
pub(super) fn exception_name(error: &rexie::Error) -> Option<String> {
    js::text(thrown(error)?, "name")
}

fn thrown(error: &rexie::Error) -> Option<&JsValue> {
    use idb::Error as Idb;
    let rexie::Error::IdbError(inner) = error else {
        return None;
    };
    if let Idb::DomException(exception) = inner {
        return Some(exception.as_ref());
    }
    if let Idb::AddFailed(value)
    | Idb::DeleteFailed(value)
    | Idb::GetAllFailed(value)
    | Idb::GetAllKeysFailed(value)
    | Idb::GetFailed(value)
    | Idb::IndexedDbNotFound(value)
    | Idb::IndexedDbOpenFailed(value)
    | Idb::ObjectStoreNotFound(value)
    | Idb::TransactionAbortError(value)
    | Idb::TransactionCommitError(value)
    | Idb::TransactionOpenFailed(value)
    | Idb::UpdateFailed(value) = inner
    {
        return Some(value);
    }
    None
}

fn describe(exception: &JsValue, doing: &str) -> String {
    let name = js::text(exception, "name");
    let message = js::text(exception, "message").filter(|message| !message.is_empty());
    match (name, message) {
        (Some(name), Some(message)) => format!("{doing}: {name}: {message}"),
        (Some(name), None) => format!("{doing}: {name}"),
        _ => format!("{doing}: {exception:?}"),
    }
}
