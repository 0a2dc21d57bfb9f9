//! Names of things: bounded, non-empty texts, and the numbers that the core gives out itself.
//!
//! Invariant: a value of these types has been checked; nothing longer than [`MAX_NAME_CHARS`] exists.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};

/// The longest name of a job, group, key, budget or principal, in characters.
pub const MAX_NAME_CHARS: usize = 255;

/// Why a text is no name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// The text has no characters.
    #[error("expected 1 to 255 characters, got none")]
    Empty,
    /// The text is too long.
    #[error("expected 1 to 255 characters, got {0}")]
    TooLong(usize),
}

fn check(text: &str) -> Result<(), NameError> {
    match text.chars().count() {
        0 => Err(NameError::Empty),
        chars if chars > MAX_NAME_CHARS => Err(NameError::TooLong(chars)),
        _ => Ok(()),
    }
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks a text and takes it as a name.
            ///
            /// # Errors
            /// When it is empty or longer than [`MAX_NAME_CHARS`].
            pub fn parse(text: &str) -> Result<Self, NameError> {
                check(text)?;
                Ok(Self(text.into()))
            }

            /// Returns the text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                Self::parse(&text).map_err(serde::de::Error::custom)
            }
        }
    };
}

name!(
    /// The name of a job, made by its sender; the same name twice is the same job.
    JobId
);
name!(
    /// The name of a bulk action that jobs belong to.
    GroupId
);
name!(
    /// An ordering key: jobs with one key run in order, one at a time.
    OrderKey
);
name!(
    /// The name of a budget.
    BudgetId
);
name!(
    /// The name under which a budget declares a batch endpoint.
    BatchName
);

impl BudgetId {
    /// What the name of a budget begins with that nobody declared; an origin follows.
    pub const IMPLICIT: &str = "origin:";

    /// The name under which holds of the whole queue are stored; no budget may have it.
    pub const QUEUE: &str = "*";

    /// Returns the name of its part for the requests of some methods, such as `github#PATCH,POST`, or `github#*` for all.
    ///
    /// # Errors
    /// When the name would be too long.
    pub fn part(&self, methods: &[String]) -> Result<Self, NameError> {
        let which = match methods {
            [] => "*".to_owned(),
            methods => methods.join(","),
        };
        Self::parse(&format!("{}#{which}", self.as_str()))
    }

    /// Returns the name of the budget that this is a part of.
    pub fn whole(&self) -> Option<Self> {
        let (whole, which) = self.as_str().rsplit_once('#')?;
        let is_method =
            |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_uppercase());
        let is_part = which == "*" || which.split(',').all(is_method);
        Self::parse(whole).ok().filter(|_| is_part)
    }

    /// Tells whether the budget is one that nobody declared.
    pub fn is_implicit(&self) -> bool {
        self.as_str().starts_with(Self::IMPLICIT)
    }
}

/// A job's place in the order of acceptance: its batch's number and its index there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seq(u64);

impl Seq {
    /// Makes the place of the job at `index` of `batch`.
    pub const fn new(batch: BatchNo, index: u8) -> Self {
        Self(batch.0.saturating_mul(256).saturating_add(index as u64))
    }

    /// Makes a place from its number, as stored.
    pub const fn from_u64(number: u64) -> Self {
        Self(number)
    }

    /// Returns the number, as stored.
    pub const fn as_u64(self) -> u64 {
        self.0
    }

    /// Returns the batch that holds the job.
    pub const fn batch(self) -> BatchNo {
        BatchNo(self.0 / 256)
    }

    /// Returns the job's index in its batch.
    pub const fn index(self) -> u8 {
        (self.0 % 256) as u8
    }
}

macro_rules! number {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl $name {
            /// Returns the number after this one.
            #[must_use]
            pub const fn next(self) -> Self {
                Self(self.0.saturating_add(1))
            }
        }
    };
}

number!(
    /// The number of a stored batch of up to 256 jobs; given out in order of acceptance.
    BatchNo
);
number!(
    /// The fencing number of an owner, raised by each new one.
    Epoch
);
number!(
    /// The number of one commit that the core asked for.
    CommitId
);
number!(
    /// The number of one request of a tab, given out by the host.
    RequestId
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_names_its_batch_and_index() {
        let seq = Seq::new(BatchNo(7), 255);

        assert_eq!((seq.batch(), seq.index()), (BatchNo(7), 255));
        assert!(seq < Seq::new(BatchNo(8), 0));
    }

    #[test]
    fn names_are_bounded() {
        assert_eq!(JobId::parse(""), Err(NameError::Empty));
        assert_eq!(JobId::parse(&"x".repeat(256)), Err(NameError::TooLong(256)));
        assert!(JobId::parse(&"ü".repeat(255)).is_ok());
    }
}
