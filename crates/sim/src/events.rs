//! What is to happen, by its instant.

use std::collections::BTreeMap;

use paceline_host::TabId;
use serde_json::Value;

/// One thing that will happen.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// A transition of the plan.
    Act(usize),
    /// A message of a tab arrives at a host.
    ToHost {
        life: usize,
        port: TabId,
        message: Value,
    },
    /// A host notices that a tab has gone.
    TabLeft { life: usize, port: TabId },
    /// A message of a host arrives at a tab.
    ToTab {
        tab: usize,
        port: TabId,
        message: Value,
    },
    /// A new owner opens the store.
    HostStarts,
    /// A tab finds a new host.
    Meets { tab: usize, life: usize },
    /// The disk carries out an operation.
    DiskApplies { life: usize, op: u64 },
    /// The disk answers.
    DiskAnswers { life: usize, op: u64 },
    /// A host's one timer fires.
    Wakes { life: usize, armed: u64 },
    /// A request reaches its server.
    Arrives { flight: usize },
    /// What became of a request reaches its host.
    Ends { flight: usize },
    /// A request's time-out passes.
    TimesOut { flight: usize },
    /// The requests of a host that is no more are ended.
    CutOff { life: usize },
    /// A host's thread goes on.
    Thaws { life: usize },
    /// There is a network again.
    Online,
    /// The disk is fast again.
    DiskRecovers,
    /// All faults stop, and all wishes to wait are taken back.
    Heals,
}

impl Event {
    /// Tells whether it goes on while the machine sleeps.
    const fn is_elsewhere(&self) -> bool {
        matches!(self, Self::Arrives { .. })
    }

    /// Tells whether it is waiting at the network card when the machine wakes.
    const fn is_received(&self) -> bool {
        matches!(self, Self::Ends { .. })
    }
}

/// The events to come; equal instants keep the order in which they were planned.
#[derive(Debug, Default)]
pub(crate) struct Events {
    queue: BTreeMap<(u64, u64), Event>,
    next: u64,
}

impl Events {
    /// Plans an event.
    pub(crate) fn push(&mut self, at_ms: u64, event: Event) {
        self.queue.insert((at_ms, self.next), event);
        self.next += 1;
    }

    /// Takes the next event.
    pub(crate) fn pop(&mut self) -> Option<(u64, Event)> {
        self.queue.pop_first().map(|((at, _), event)| (at, event))
    }

    /// The machine sleeps from `now`: what it does comes later, what its network received comes at once on waking.
    pub(crate) fn sleep(&mut self, now_ms: u64, millis: u64) {
        let wake_ms = now_ms.saturating_add(millis);
        for ((at, number), event) in std::mem::take(&mut self.queue) {
            let at = if event.is_elsewhere() {
                at
            } else if event.is_received() {
                at.max(wake_ms)
            } else {
                at.saturating_add(millis)
            };
            self.queue.insert((at, number), event);
        }
    }
}
