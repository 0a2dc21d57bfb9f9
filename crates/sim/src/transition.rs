//! All that can happen to a world, and how often in which profile.

use crate::draw::Draw;
use crate::profile::{Profile, Settings, Terms};

/// What a server does with the next requests that reach it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Refuses it unread.
    Refuses(Refusal),
    /// Answers with a status that leaves the outcome open; `true` when it was applied all the same.
    Fails(u16, bool),
    /// Answers with a final error.
    Rejects(u16),
    /// The connection breaks; `true` when it was applied.
    Breaks(bool),
    /// The connection is never made.
    Unreachable,
    /// No answer comes; `true` when it is applied, late.
    Hangs(bool),
    /// The browser cannot even begin.
    NeverLeaves,
}

/// How a server says that it refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// 429 with seconds.
    Seconds(u64),
    /// 429 with decimal seconds.
    Decimal,
    /// 503 with seconds.
    Busy(u64),
    /// 429 with a date, so many seconds ahead by the server's clock, which `Date` shows.
    Date(u64),
    /// 429 with a date that has passed.
    PastDate,
    /// 429 without a word.
    Silent,
    /// 429 with 0.
    Zero,
    /// 429 with nonsense.
    Garbage,
    /// 425.
    TooEarly,
}

/// What the disk does with the next transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DiskFault {
    /// Breaks; nothing is stored.
    Breaks,
    /// Stores it, and breaks before the answer.
    LosesAnswer,
    /// Has no room.
    Full,
}

/// One job, as an app describes it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish {
    pub(crate) api: usize,
    pub(crate) method: &'static str,
    pub(crate) key: Option<u64>,
    pub(crate) lane: Option<&'static str>,
    pub(crate) cost: u64,
    pub(crate) has_idempotency_key: bool,
    pub(crate) ephemeral: bool,
    pub(crate) max_wait_ms: Option<u64>,
    pub(crate) not_before_in_ms: Option<u64>,
    pub(crate) timeout_ms: Option<u64>,
    /// Whether it goes as an item of a batch.
    pub(crate) is_item: bool,
    pub(crate) check_after_ms: Option<u64>,
}

/// One thing that happens. `pick` chooses among what there is when it happens.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Transition {
    Enqueue {
        tab: usize,
        wish: Wish,
    },
    EnqueueMany {
        tab: usize,
        jobs: u64,
        wish: Wish,
    },
    EnqueueAgain {
        tab: usize,
        pick: u64,
    },
    /// A bulk of jobs that were handed in before, in another group or none.
    BulkOfKnown {
        tab: usize,
    },
    Cancel {
        tab: usize,
        pick: u64,
    },
    CancelGroup {
        tab: usize,
        pick: u64,
    },
    Retry {
        tab: usize,
        pick: u64,
        force: bool,
    },
    RetryGroup {
        tab: usize,
        pick: u64,
    },
    Hold {
        tab: usize,
        api: Option<usize>,
    },
    Resume {
        tab: usize,
        api: Option<usize>,
    },
    Subscribe {
        tab: usize,
    },
    Unsubscribe {
        tab: usize,
    },
    Snapshot {
        tab: usize,
    },
    Query {
        tab: usize,
    },
    Configure {
        tab: usize,
    },
    /// Limits are set while the queue runs.
    SetLimits {
        tab: usize,
        terms: Terms,
    },
    /// A release goes out: its host takes over, and pages that are loaded from now on are of it. The older host is
    /// asked to finish what has left, or knows nothing of it.
    Release {
        terms: Terms,
        is_asked: bool,
    },
    Close {
        tab: usize,
    },
    Reload {
        tab: usize,
    },
    Server {
        api: usize,
        times: u64,
        fault: Fault,
    },
    Offline {
        ms: u64,
    },
    Crash {
        after_ms: u64,
    },
    CrashAmidOutputs {
        outputs: u32,
    },
    TakeOver,
    Freeze {
        ms: u64,
    },
    Sleep {
        ms: u64,
    },
    SetClock {
        by_ms: i64,
    },
    Stumble {
        ms: u64,
    },
    Disk {
        times: u64,
        fault: DiskFault,
    },
    SlowDisk {
        ms: u64,
        for_ms: u64,
    },
    DiskLost,
    Garbage {
        tab: usize,
        kind: u64,
    },
    Flood {
        tab: usize,
        jobs: u64,
    },
}

/// A transition and its instant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) at_ms: u64,
    pub(crate) transition: Transition,
}

/// Kinds of transitions, by what they need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Group {
    People,
    Server,
    Clock,
    Death,
    Garbage,
    Disk,
    Release,
    Limits,
}

/// Draws the plan of a seed.
pub(crate) fn plan(seed: u64, profile: Profile, settings: &Settings) -> Vec<Step> {
    let mut draw = Draw::new(seed, profile.stream() + 200);
    let gap_ms = settings.horizon_ms / settings.transitions;
    let mut at_ms = 0;
    let step = |_| {
        // Some things happen at once, most after a while.
        at_ms += if draw.chance(250) {
            0
        } else {
            draw.between(0, gap_ms * 2)
        };
        let transition = transition(profile, settings, &mut draw);
        Step { at_ms, transition }
    };
    (0..settings.transitions).map(step).collect()
}

const fn weights(profile: Profile) -> &'static [(Group, u64)] {
    use Group::{Clock, Death, Disk, Garbage, Limits, People, Release, Server};
    match profile {
        Profile::Calm => &[(People, 1)],
        Profile::Storm => &[(People, 60), (Server, 40)],
        Profile::Suspend => &[(People, 60), (Clock, 25), (Server, 15)],
        Profile::Crash => &[(People, 60), (Death, 25), (Server, 12), (Disk, 3)],
        Profile::Hostile => &[(People, 40), (Garbage, 55), (Server, 4), (Death, 1)],
        Profile::SlowDisk => &[(People, 60), (Disk, 25), (Server, 7), (Death, 8)],
        Profile::Chaos => &[
            (People, 55),
            (Server, 15),
            (Clock, 8),
            (Death, 8),
            (Garbage, 6),
            (Disk, 8),
        ],
        Profile::Upgrade => &[
            (People, 70),
            (Release, 12),
            (Server, 10),
            (Death, 4),
            (Limits, 4),
        ],
        Profile::Batches => &[
            (People, 62),
            (Server, 20),
            (Death, 8),
            (Clock, 4),
            (Disk, 6),
        ],
        Profile::Checks => &[
            (People, 55),
            (Server, 25),
            (Death, 12),
            (Clock, 5),
            (Disk, 3),
        ],
        Profile::Limits => &[
            (People, 66),
            (Limits, 14),
            (Server, 8),
            (Clock, 6),
            (Death, 3),
            (Disk, 3),
        ],
    }
}

fn transition(profile: Profile, settings: &Settings, draw: &mut Draw) -> Transition {
    let weights = weights(profile);
    let mut left = draw.between(1, weights.iter().map(|(_, weight)| weight).sum());
    let group = weights.iter().find(|(_, weight)| {
        let is_it = left <= *weight;
        left = left.saturating_sub(*weight);
        is_it
    });
    match group.map_or(Group::People, |(group, _)| *group) {
        Group::People => people(settings, draw),
        Group::Server => server(settings, draw),
        Group::Clock => clock(settings, draw),
        Group::Death if settings.clock_jumps => people(settings, draw),
        Group::Death => death(draw),
        Group::Garbage => garbage(settings, draw),
        Group::Disk => disk(draw),
        Group::Release => Transition::Release {
            terms: draw.pick(&Terms::ALL),
            is_asked: draw.chance(600),
        },
        Group::Limits => Transition::SetLimits {
            tab: draw.index(settings.tabs),
            terms: draw.pick(&Terms::ALL),
        },
    }
}

fn people(settings: &Settings, draw: &mut Draw) -> Transition {
    let tab = draw.index(settings.tabs);
    let pick = draw.bits();
    match draw.between(0, 99) {
        0..=51 => Transition::Enqueue {
            tab,
            wish: wish(settings, draw),
        },
        52..=61 => {
            let jobs = draw.pick(&[1, 3, 10, 30]);
            Transition::EnqueueMany {
                tab,
                jobs,
                wish: wish(settings, draw),
            }
        }
        62..=63 => Transition::EnqueueAgain { tab, pick },
        64 => Transition::BulkOfKnown { tab },
        65..=70 => Transition::Cancel { tab, pick },
        71..=72 => Transition::CancelGroup { tab, pick },
        73..=78 => Transition::Retry {
            tab,
            pick,
            force: draw.chance(300),
        },
        79 => Transition::RetryGroup { tab, pick },
        80..=81 => Transition::Hold {
            tab,
            api: one_api(settings, draw),
        },
        82..=85 => Transition::Resume {
            tab,
            api: one_api(settings, draw),
        },
        86..=87 => Transition::Subscribe { tab },
        88 => Transition::Unsubscribe { tab },
        89..=90 => Transition::Snapshot { tab },
        91..=93 => Transition::Query { tab },
        94 => Transition::Configure { tab },
        95..=96 => Transition::Close { tab },
        _ => Transition::Reload { tab },
    }
}

fn one_api(settings: &Settings, draw: &mut Draw) -> Option<usize> {
    draw.chance(600).then(|| draw.index(settings.apis.len()))
}

fn wish(settings: &Settings, draw: &mut Draw) -> Wish {
    let method = draw.pick(&["POST", "POST", "POST", "PATCH", "PUT", "DELETE", "GET"]);
    let api = draw.pick(&[0, 0, 0, 1, 1, 2]);
    let is_item = settings.apis[api].batch_max.is_some() && draw.chance(700);
    let method = if is_item && method == "GET" {
        "PATCH"
    } else {
        method
    };
    let largest = settings.apis[api]
        .rules
        .iter()
        .chain(&settings.apis[api].writes)
        .map(|rule| rule.limit)
        .min()
        .unwrap_or(4);
    Wish {
        api,
        method,
        key: draw.chance(500).then(|| draw.between(0, 3)),
        lane: draw.pick(&[
            None,
            None,
            Some("interactive"),
            Some("bulk"),
            Some("background"),
        ]),
        cost: if !is_item && draw.chance(150) {
            draw.between(1, largest)
        } else {
            1
        },
        has_idempotency_key: method != "GET" && draw.chance(850),
        ephemeral: method == "GET" && draw.chance(300),
        max_wait_ms: draw.chance(60).then(|| draw.between(1, 20_000)),
        not_before_in_ms: draw.chance(60).then(|| draw.between(1, 20_000)),
        timeout_ms: draw.chance(200).then(|| draw.pick(&[500, 3_000, 30_000])),
        is_item,
        check_after_ms: check_after_ms(method, settings, draw),
    }
}

fn check_after_ms(method: &str, settings: &Settings, draw: &mut Draw) -> Option<u64> {
    let may_be_checked = settings.has_checks && method != "GET";
    (may_be_checked && draw.chance(800)).then(|| draw.pick(&[0, 1_000, 10_000]))
}

fn server(settings: &Settings, draw: &mut Draw) -> Transition {
    let fault = match draw.between(0, 9) {
        0..=3 => Fault::Refuses(refusal(draw)),
        4 | 5 => Fault::Fails(draw.pick(&[500, 502, 503, 504, 408]), draw.chance(500)),
        6 => Fault::Rejects(draw.pick(&[400, 401, 404, 409, 422])),
        7 => Fault::Breaks(draw.chance(500)),
        8 => draw.pick(&[Fault::Unreachable, Fault::NeverLeaves]),
        _ => Fault::Hangs(draw.chance(500)),
    };
    if draw.chance(80) {
        return Transition::Offline {
            ms: draw.between(10, 20_000),
        };
    }
    let times = draw.pick(&[1, 1, 2, 5, 12]);
    Transition::Server {
        api: draw.index(settings.apis.len()),
        times,
        fault,
    }
}

fn refusal(draw: &mut Draw) -> Refusal {
    match draw.between(0, 9) {
        0 | 1 => Refusal::Seconds(draw.pick(&[1, 2, 20, 90])),
        2 => Refusal::Decimal,
        3 => Refusal::Busy(draw.pick(&[1, 5])),
        4 => Refusal::Date(draw.pick(&[2, 20])),
        5 => Refusal::PastDate,
        6 => Refusal::Zero,
        7 => Refusal::Garbage,
        8 => Refusal::TooEarly,
        _ => Refusal::Silent,
    }
}

fn clock(settings: &Settings, draw: &mut Draw) -> Transition {
    match draw.between(0, 9) {
        0..=2 => Transition::Sleep {
            ms: draw.pick(&[700, 5_000, 60_000, 7_200_000]),
        },
        3..=5 => Transition::Freeze {
            ms: draw.pick(&[100, 600, 5_000, 40_000]),
        },
        6 => Transition::Stumble {
            ms: draw.between(1, 20),
        },
        7 | 8 if settings.clock_jumps => Transition::SetClock {
            by_ms: draw.pick(&[300, 1_900, 5_000, 3_600_000]),
        },
        _ => Transition::SetClock {
            by_ms: draw.pick(&[-300, -5_000, -60_000]),
        },
    }
}

fn death(draw: &mut Draw) -> Transition {
    match draw.between(0, 9) {
        0..=3 => Transition::Crash {
            after_ms: draw.pick(&[0, 20, 500, 4_000]),
        },
        4..=6 => {
            let outputs = u32::try_from(draw.between(0, 6)).unwrap_or(0);
            Transition::CrashAmidOutputs { outputs }
        }
        7 => Transition::Freeze {
            ms: draw.pick(&[100, 600, 5_000]),
        },
        _ => Transition::TakeOver,
    }
}

fn garbage(settings: &Settings, draw: &mut Draw) -> Transition {
    let tab = draw.index(settings.tabs);
    if draw.chance(60) {
        return Transition::Flood {
            tab,
            jobs: draw.pick(&[50, 300]),
        };
    }
    Transition::Garbage {
        tab,
        kind: draw.bits(),
    }
}

fn disk(draw: &mut Draw) -> Transition {
    match draw.between(0, 9) {
        0..=2 => Transition::SlowDisk {
            ms: draw.pick(&[50, 400, 700, 5_000]),
            for_ms: draw.between(100, 10_000),
        },
        3 | 4 => Transition::Disk {
            times: 1,
            fault: DiskFault::Breaks,
        },
        5 | 6 => Transition::Disk {
            times: draw.pick(&[1, 3]),
            fault: DiskFault::Full,
        },
        7 => Transition::Disk {
            times: 1,
            fault: DiskFault::LosesAnswer,
        },
        8 => Transition::DiskLost,
        _ => Transition::Freeze {
            ms: draw.pick(&[100, 600, 5_000]),
        },
    }
}
