//! The wire codes, and the error that a tab receives.

use serde::Serialize;

/// A stable code of the public contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Code {
    /// A job, filter or configuration has a field that is not as expected.
    BadJob,
    /// A budget that was not declared.
    UnknownBudget,
    /// A header that must not be stored.
    SecretHeader,
    /// A cost above what its budget can ever admit.
    NeverFits,
    /// The queue has as many jobs or bytes as it may.
    QueueFull,
    /// The origin's storage is full.
    StorageFull,
    /// The storage failed.
    Storage,
    /// A job or bulk action that had been accepted, has ended since, and is forgotten.
    Cleared,
    /// The message is none of this protocol.
    Protocol,
}

/// Why a request was refused, as sent to the tab.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[error("{message}")]
pub struct WireError {
    /// The code.
    pub code: Code,
    /// The field, as a path in the message: `job.lane`, `jobs[3].url`. For `queue-full` the bound: `maxQueue.jobs` or
    /// `maxQueue.bytes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub field: Option<String>,
    /// What was expected there.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub expected: Option<String>,
    /// What came, shortened.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub got: Option<String>,
    /// The index of the job in its request.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub index: Option<usize>,
    /// All of this as one sentence.
    pub message: String,
}

/// The longest piece of what came that an error repeats, in characters.
const GOT_CHARS: usize = 80;

impl WireError {
    /// Makes an error that names a field.
    pub fn field(
        code: Code,
        field: impl Into<String>,
        expected: impl Into<String>,
        got: &str,
    ) -> Self {
        let field = field.into();
        let expected = expected.into();
        let got: String = got.chars().take(GOT_CHARS).collect();
        let message = format!("{field}: expected {expected}, got {got}");
        Self {
            code,
            field: Some(field),
            expected: Some(expected),
            got: Some(got),
            index: None,
            message,
        }
    }

    /// Makes an error that has no field.
    pub fn plain(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            field: None,
            expected: None,
            got: None,
            index: None,
            message: message.into(),
        }
    }

    /// Leaves out what came.
    #[must_use]
    pub fn without_value(mut self) -> Self {
        let field = self.field.as_deref().unwrap_or("message");
        let expected = self.expected.as_deref().unwrap_or("another value");
        self.message = format!("{field}: expected {expected}");
        self.got = None;
        self
    }

    /// Adds the index of the job that is to blame.
    #[must_use]
    pub fn at(mut self, index: usize) -> Self {
        self.index = Some(index);
        self
    }
}
