//! What kinds of trouble a run has, and the world that it has it in.

use crate::draw::Draw;

/// A mix of transitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Profile {
    /// People work, nothing breaks.
    Calm,
    /// Servers refuse, fail and swallow requests.
    Storm,
    /// The machine sleeps, its clock is set, hosts freeze.
    Suspend,
    /// Hosts die at any instant, or go on after another one has taken over.
    Crash,
    /// A tab sends whatever it likes.
    Hostile,
    /// The disk is slow, full or broken.
    SlowDisk,
    /// All of it.
    Chaos,
    /// Newer releases take over from older ones, whose tabs stay open, and declare other limits.
    Upgrade,
    /// Every algorithm, and limits that are set again while jobs wait.
    Limits,
    /// Most jobs are items of batches, whose answers differ from item to item.
    Batches,
    /// Servers that know no idempotency keys lose answers, and jobs have checks.
    Checks,
}

impl Profile {
    /// All profiles.
    pub const ALL: [Self; 11] = [
        Self::Calm,
        Self::Storm,
        Self::Suspend,
        Self::Crash,
        Self::Hostile,
        Self::SlowDisk,
        Self::Chaos,
        Self::Upgrade,
        Self::Limits,
        Self::Batches,
        Self::Checks,
    ];

    /// Returns the name used on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Calm => "calm",
            Self::Storm => "storm",
            Self::Suspend => "suspend",
            Self::Crash => "crash",
            Self::Hostile => "hostile",
            Self::SlowDisk => "slow-disk",
            Self::Chaos => "chaos",
            Self::Upgrade => "upgrade",
            Self::Limits => "limits",
            Self::Batches => "batches",
            Self::Checks => "checks",
        }
    }

    /// Parses the name used on the command line.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|profile| profile.as_str() == name)
    }

    /// The streams of draws of two profiles differ.
    pub(crate) const fn stream(self) -> u64 {
        self as u64
    }
}

/// How long requests are on their way.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Latency {
    /// Steady, and about as long one way as the other: what the limiter learns of it holds.
    Steady(u64),
    /// Any split between the ways, and every second request is as good as instant, so that nothing can be learned.
    Wild(u64),
    /// Long, then short from the given request on.
    Falls {
        from: u64,
        long_ms: u64,
        short_ms: u64,
    },
}

/// How a rule counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// In any window, from the answer on.
    Window,
    /// A bucket that refills.
    Bucket,
    /// In any window of starts.
    Log,
    /// From each window's start to its end.
    Fixed,
    /// By this window's count and the last one's.
    Counter,
    /// A bucket by another name.
    Gcra,
    /// At an even pace.
    Queue,
    /// So many, then a silence.
    Rest,
}

impl Kind {
    /// The name in a declaration.
    pub(crate) const fn algorithm(self) -> &'static str {
        match self {
            Self::Window => "arrival-log",
            Self::Bucket => "token-bucket",
            Self::Log => "sliding-log",
            Self::Fixed => "fixed-window",
            Self::Counter => "sliding-counter",
            Self::Gcra => "gcra",
            Self::Queue => "leaky-queue",
            Self::Rest => "batch-rest",
        }
    }

    /// Tells whether starts are spaced after a pause.
    pub(crate) const fn is_window(self) -> bool {
        match self {
            Self::Window | Self::Log | Self::Fixed | Self::Counter | Self::Rest => true,
            Self::Bucket | Self::Gcra | Self::Queue => false,
        }
    }

    /// Tells whether what reaches the server is judged, whatever happens on the way; else it is what was claimed.
    pub(crate) const fn is_judged_at_arrival(self) -> bool {
        match self {
            Self::Window | Self::Rest => true,
            Self::Log | Self::Fixed | Self::Counter | Self::Bucket | Self::Gcra | Self::Queue => {
                false
            }
        }
    }
}

/// What a release of the app declares of an API; never more than the server allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Terms {
    /// What the server allows.
    #[default]
    Whole,
    /// Half of it.
    Halved,
    /// As many in twice the window.
    Longer,
    /// One request at a time.
    OneByOne,
    /// The rules in another order, and one more that never matters.
    Reordered,
}

impl Terms {
    /// All that may be declared.
    pub(crate) const ALL: [Self; 5] = [
        Self::Whole,
        Self::Halved,
        Self::Longer,
        Self::OneByOne,
        Self::Reordered,
    ];
}

/// One rule, as the app declares it and the server keeps it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule {
    pub(crate) limit: u64,
    pub(crate) window_ms: u64,
    pub(crate) kind: Kind,
}

/// One API.
#[derive(Clone, Debug)]
pub(crate) struct Api {
    /// The budget's name; none when nobody declares it.
    pub(crate) budget: Option<&'static str>,
    pub(crate) origin: &'static str,
    pub(crate) rules: Vec<Rule>,
    /// A rule that counts only what is made or changed by POST and PATCH.
    pub(crate) writes: Option<Rule>,
    /// The wait above which its jobs fail, if they do.
    pub(crate) gives_up_ms: Option<u64>,
    pub(crate) max_in_flight: Option<u64>,
    /// How long it honours idempotency keys, if it does.
    pub(crate) key_ttl_ms: Option<u64>,
    pub(crate) latency: Latency,
    /// How far the server's wall clock is ahead of true time.
    pub(crate) clock_ahead_ms: i64,
    /// The most items of a request to its batch endpoint, if it has one.
    pub(crate) batch_max: Option<u64>,
}

/// The world of one run.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) tabs: usize,
    pub(crate) apis: Vec<Api>,
    pub(crate) disk_ms: (u64, u64),
    pub(crate) port_ms: u64,
    /// Messages in a thousand that come twice.
    pub(crate) twice_permille: u64,
    pub(crate) mono_stops_asleep: bool,
    pub(crate) max_jobs: u32,
    /// A clock set forward makes earlier spends look older than they are, and a new owner knows nothing else of them:
    /// worlds have this or new owners.
    pub(crate) clock_jumps: bool,
    /// Whether jobs have checks.
    pub(crate) has_checks: bool,
    pub(crate) transitions: u64,
    pub(crate) horizon_ms: u64,
}

const fn window(limit: u64, window_ms: u64) -> Rule {
    rule(limit, window_ms, Kind::Window)
}

const fn rule(limit: u64, window_ms: u64, kind: Kind) -> Rule {
    Rule {
        limit,
        window_ms,
        kind,
    }
}

/// Rules of worlds in which algorithms matter.
const OTHER_RULES: [&[Rule]; 12] = [
    &[rule(5, 1_000, Kind::Log)],
    &[rule(4, 2_000, Kind::Fixed)],
    &[rule(10, 1_000, Kind::Fixed)],
    &[rule(6, 1_000, Kind::Counter)],
    &[rule(8, 2_000, Kind::Gcra)],
    &[rule(5, 1_000, Kind::Queue)],
    &[rule(5, 500, Kind::Rest)],
    &[rule(3, 1_000, Kind::Bucket)],
    &[window(7, 1_000)],
    &[rule(5, 1_000, Kind::Log), rule(20, 10_000, Kind::Fixed)],
    &[window(10, 1_000), rule(20, 4_000, Kind::Gcra)],
    &[rule(4, 300, Kind::Rest), rule(30, 10_000, Kind::Counter)],
];

const RULES: [&[Rule]; 9] = [
    &[window(10, 1_000)],
    &[window(3, 1_000)],
    &[window(50, 1_000)],
    &[window(5, 5_000)],
    &[window(20, 10_000)],
    &[window(1, 500)],
    &[window(10, 1_000), window(20, 5_000)],
    &[],
    &[Rule {
        limit: 5,
        window_ms: 1_000,
        kind: Kind::Bucket,
    }],
];

/// How long a server honours keys in worlds in which that matters: shorter than a sleep.
const SHORT_TTL_MS: u64 = 600_000;
const DAY_MS: u64 = 86_400_000;

impl Settings {
    /// Draws the world of a seed.
    pub(crate) fn draw(seed: u64, profile: Profile) -> Self {
        let mut draw = Draw::new(seed, profile.stream() + 100);
        let mut of_writes = Draw::new(seed, profile.stream() + 200);
        let disk_ms = match profile {
            Profile::SlowDisk => (1, draw.pick(&[5, 100, 450])),
            Profile::Calm
            | Profile::Storm
            | Profile::Suspend
            | Profile::Crash
            | Profile::Hostile
            | Profile::Chaos
            | Profile::Upgrade
            | Profile::Limits
            | Profile::Batches
            | Profile::Checks => (0, draw.pick(&[0, 3, 20])),
        };
        Self {
            tabs: draw.pick(&[1, 2, 2, 3]),
            apis: [
                declared("api", "https://api.test", profile, &mut draw),
                declared("crm", "https://crm.test", profile, &mut draw),
                undeclared(&mut draw),
            ]
            .map(|api| Api {
                writes: writes(&api, profile, &mut of_writes),
                gives_up_ms: gives_up_ms(&api, profile, &mut of_writes),
                ..api
            })
            .into(),
            disk_ms,
            port_ms: draw.pick(&[0, 2, 30]),
            twice_permille: draw.pick(&[0, 0, 20]),
            mono_stops_asleep: draw.chance(700),
            max_jobs: draw.pick(&[100_000, 100_000, 40]),
            clock_jumps: profile == Profile::Suspend && draw.chance(500),
            has_checks: profile == Profile::Checks,
            transitions: draw.between(10, 70),
            horizon_ms: draw.between(2_000, 60_000),
        }
    }
}

fn declared(budget: &'static str, origin: &'static str, profile: Profile, draw: &mut Draw) -> Api {
    let rules = match profile {
        Profile::Limits => draw.pick(&OTHER_RULES).to_vec(),
        Profile::Calm
        | Profile::Storm
        | Profile::Suspend
        | Profile::Crash
        | Profile::Hostile
        | Profile::SlowDisk
        | Profile::Chaos
        | Profile::Upgrade
        | Profile::Batches
        | Profile::Checks => draw.pick(&RULES).to_vec(),
    };
    let max_in_flight = match rules.is_empty() {
        true => Some(draw.between(1, 4)),
        false => draw.chance(400).then(|| draw.between(1, 6)),
    };
    let key_ttl_ms = draw.chance(600).then(|| draw.pick(&[SHORT_TTL_MS, DAY_MS]));
    Api {
        budget: Some(budget),
        origin,
        rules,
        writes: None,
        gives_up_ms: None,
        max_in_flight,
        key_ttl_ms: key_ttl_ms.filter(|_| profile != Profile::Checks),
        latency: latency(draw),
        clock_ahead_ms: draw.pick(&[0, 0, -180_000, 180_000]),
        batch_max: (profile == Profile::Batches).then(|| draw.pick(&[1, 2, 5, 20])),
    }
}

fn gives_up_ms(api: &Api, profile: Profile, draw: &mut Draw) -> Option<u64> {
    let has = profile == Profile::Limits && api.budget.is_some() && draw.chance(300);
    has.then(|| draw.pick(&[500, 5_000]))
}

/// A rule for some requests, beside those for all.
fn writes(api: &Api, profile: Profile, draw: &mut Draw) -> Option<Rule> {
    let has = profile == Profile::Limits && api.budget.is_some() && draw.chance(400);
    has.then(|| draw.pick(&[window(2, 1_000), window(1, 500), window(4, 5_000)]))
}

/// The API that nobody declares: paced by what is assumed of unknown ones.
fn undeclared(draw: &mut Draw) -> Api {
    Api {
        budget: None,
        origin: "https://other.test",
        rules: vec![window(5, 1_000)],
        writes: None,
        gives_up_ms: None,
        max_in_flight: Some(2),
        key_ttl_ms: None,
        latency: latency(draw),
        clock_ahead_ms: 0,
        batch_max: None,
    }
}

fn latency(draw: &mut Draw) -> Latency {
    match draw.between(0, 4) {
        0 | 1 => Latency::Wild(draw.pick(&[20, 300, 2_000])),
        2 | 3 => Latency::Steady(draw.pick(&[4, 40, 200])),
        _ => Latency::Falls {
            from: draw.between(20, 60),
            long_ms: 120,
            short_ms: 8,
        },
    }
}
