//! An app's own dialect: which header says what, and how it is written, without code.
//!
//! Owns the reading of such a declaration, and [`AnyDialect`], which is either this or a [known one](Dialect). Where the
//! declared header for a wait is not there, `Retry-After` is read as for every dialect. Invariant: the kind that is
//! declared is the only one that is read; a value of another kind counts as absent, and is counted.

use std::sync::Arc;

use paceline_core::signals::BudgetSignal;

use crate::dialect::{BodyNeed, Dialect, short};
use crate::reading::Reading;
use crate::view::{Reset, View};

/// How an instant or a wait is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// Told by shape and magnitude.
    #[default]
    Auto,
    /// Seconds from now, with or without decimals.
    DeltaSeconds,
    /// Milliseconds from now.
    DeltaMillis,
    /// Seconds since 1970.
    EpochSeconds,
    /// Milliseconds since 1970.
    EpochMillis,
    /// A date of HTTP.
    HttpDate,
    /// A date of ISO 8601.
    IsoDate,
    /// A duration with units, such as `1m30s`.
    Duration,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Auto,
        Self::DeltaSeconds,
        Self::DeltaMillis,
        Self::EpochSeconds,
        Self::EpochMillis,
        Self::HttpDate,
        Self::IsoDate,
        Self::Duration,
    ];

    /// Returns the kind of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }

    /// Returns its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::DeltaSeconds => "delta-seconds",
            Self::DeltaMillis => "delta-ms",
            Self::EpochSeconds => "epoch-seconds",
            Self::EpochMillis => "epoch-ms",
            Self::HttpDate => "http-date",
            Self::IsoDate => "iso-date",
            Self::Duration => "duration",
        }
    }

    const fn reset(self) -> Reset {
        match self {
            Self::Auto => Reset::Auto,
            Self::DeltaSeconds => Reset::Seconds,
            Self::DeltaMillis => Reset::Millis,
            Self::EpochSeconds => Reset::EpochSeconds,
            Self::EpochMillis => Reset::EpochMillis,
            Self::HttpDate | Self::IsoDate => Reset::Date,
            Self::Duration => Reset::Duration,
        }
    }
}

/// A header, and how its value is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timed {
    /// Its name, in any case.
    pub header: String,
    /// How it is written.
    pub kind: Kind,
}

/// The window of the limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Window {
    /// Always the same, in milliseconds.
    Fixed(u64),
    /// In a header.
    Told(Timed),
}

/// Which header says what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnDialect {
    /// Units in a window.
    pub limit: Option<String>,
    /// Units left.
    pub remaining: Option<String>,
    /// Units used.
    pub used: Option<String>,
    /// When the window starts anew.
    pub reset: Option<Timed>,
    /// How long to wait after a refusal.
    pub retry_after: Option<Timed>,
    /// What the request has cost.
    pub cost: Option<String>,
    /// The window.
    pub window: Option<Window>,
    /// What the server calls the limit.
    pub scope: Option<String>,
}

impl OwnDialect {
    pub(crate) fn read(&self, view: &View<'_>, reading: &mut Reading) {
        let units = |name: &Option<String>| name.as_deref().and_then(|name| units(view, name));
        let left = |name: &str| view.has(name).then(|| view.units_left("", name)).flatten();
        let (limit, used) = (units(&self.limit), units(&self.used));
        let unused = || limit?.checked_sub(used?).or(Some(0));
        let scope = self.scope.as_deref().and_then(|name| view.header(name));
        reading.push(BudgetSignal {
            scope: scope.map(short),
            limit,
            remaining: self.remaining.as_deref().and_then(left).or_else(unused),
            reset_in_ms: self.reset.as_ref().and_then(|reset| timed(view, reset)),
            window_ms: match &self.window {
                None => None,
                Some(Window::Fixed(window_ms)) => Some(*window_ms),
                Some(Window::Told(told)) => timed(view, told).filter(|window_ms| *window_ms > 0),
            },
        });
        reading.cost = units(&self.cost).and_then(|cost| u32::try_from(cost).ok());
    }

    /// Reads the declared header for a wait.
    pub(crate) fn wait(&self, view: &View<'_>) -> Option<u64> {
        timed(view, self.retry_after.as_ref()?)
    }
}

/// Reads a number; an absent header is not counted.
fn units(view: &View<'_>, name: &str) -> Option<u64> {
    view.has(name).then(|| view.units("", name)).flatten()
}

fn timed(view: &View<'_>, Timed { header, kind }: &Timed) -> Option<u64> {
    view.has(header)
        .then(|| view.reset("", header, kind.reset()))
        .flatten()
}

/// How a server writes its signals: in a known dialect, in an app's own, or so that a function of the app reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnyDialect {
    /// A known one.
    Known(Dialect),
    /// The app's own.
    Own(Arc<OwnDialect>),
    /// The app's function of that name has [told](crate::Told).
    Defined(Arc<str>),
}

impl AnyDialect {
    /// Returns its name, `own` for an app's own, `worker` for a function in the app's worker.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Known(dialect) => dialect.name(),
            Self::Own(_) => "own",
            Self::Defined(_) => "worker",
        }
    }

    /// Tells of which answers it needs the beginning of the body.
    pub const fn body(&self) -> BodyNeed {
        match self {
            Self::Known(dialect) => dialect.body(),
            Self::Own(_) => BodyNeed::Errors,
            Self::Defined(_) => BodyNeed::All,
        }
    }

    pub(crate) fn read(&self, view: &View<'_>, reading: &mut Reading) {
        match self {
            Self::Known(dialect) => dialect.read(view, reading),
            Self::Own(own) => {
                reading.dialect = self.name();
                own.read(view, reading);
            }
            Self::Defined(_) => {
                reading.dialect = self.name();
                if let Some(told) = view.told {
                    told.add_to(reading);
                }
            }
        }
    }

    /// Reads a wait in a header of its own, which wins over `Retry-After`.
    pub(crate) fn wait(&self, view: &View<'_>) -> Option<u64> {
        match self {
            Self::Known(_) => None,
            Self::Own(own) => own.wait(view),
            Self::Defined(_) => view.told?.retry_after_ms,
        }
    }
}

impl Default for AnyDialect {
    fn default() -> Self {
        Self::Known(Dialect::auto())
    }
}

impl From<Dialect> for AnyDialect {
    fn from(dialect: Dialect) -> Self {
        Self::Known(dialect)
    }
}

impl From<OwnDialect> for AnyDialect {
    fn from(own: OwnDialect) -> Self {
        Self::Own(Arc::new(own))
    }
}

#[cfg(test)]
#[path = "own/tests.rs"]
mod tests;
