//! The head of a script: how many members, how they are configured, who may come.

use node_wire::ids::Zxid;

use crate::drawn::Drawn;
use harness_core::fault::SwarmFault;
use harness_world::dice::Chance;

/// Settings that are not about luck.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) members: usize,
    pub(crate) clients: usize,
    pub(crate) prompt: Prompt,
    /// Only what clients see can convict.
    pub(crate) outside: bool,
    /// In the order of [`SETTINGS`].
    pub(crate) settings: [u64; SETTINGS.len()],
}

/// What happens by itself behind every line, because nothing hangs on when it does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Prompt {
    /// What clients and members say to each other arrives.
    pub(crate) clients: bool,
    /// Stores finish what they were given.
    pub(crate) disks: bool,
    /// Votes arrive.
    pub(crate) votes: bool,
}

impl Prompt {
    /// Its words in a script.
    pub(crate) fn words(&self) -> [(&'static str, bool); 3] {
        [("clients", self.clients), ("disks", self.disks), ("votes", self.votes)]
    }
}

/// A setting: its name, its unit, its usual value, and the greatest one that is allowed.
pub(crate) struct Setting {
    pub(crate) name: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) usual: u64,
    pub(crate) most: u64,
    /// Whether it counts entries until something happens.
    pub(crate) counts: bool,
    get: fn(&Drawn) -> u64,
    set: fn(&mut Drawn, u64),
}

/// Members of an ensemble at most.
pub(crate) const MAX_MEMBERS: usize = 16;

/// Clients at most.
pub(crate) const MAX_CLIENTS: u64 = 64;

/// [`Zxid::LAST_COUNTER`].
const LAST_COUNTER: u64 = 0xffff_ffff;

/// [`node_core::JOURNAL_ENTRIES`].
const JOURNAL_ENTRIES: u64 = 4_096;

/// What members and clients are told before they begin.
pub(crate) const SETTINGS: [Setting; 16] = [
    Setting {
        name: "observers",
        unit: "",
        usual: 0,
        most: 7,
        counts: false,
        get: |drawn| u64::try_from(drawn.observers).unwrap_or(0),
        set: |drawn, observers| drawn.observers = usize::try_from(observers).unwrap_or(0),
    },
    Setting {
        name: "changes",
        unit: "",
        usual: 0,
        most: 1,
        counts: false,
        get: |drawn| drawn.changes.into(),
        set: |drawn, changes| drawn.changes = changes > 0,
    },
    Setting {
        name: "strangers",
        unit: "",
        usual: 0,
        most: 1,
        counts: false,
        get: |drawn| drawn.strangers.into(),
        set: |drawn, strangers| drawn.strangers = strangers > 0,
    },
    Setting {
        name: "alone",
        unit: "",
        usual: 0,
        most: 1,
        counts: false,
        get: |drawn| drawn.alone.into(),
        set: |drawn, alone| drawn.alone = alone > 0,
    },
    Setting {
        name: "local",
        unit: "",
        usual: 0,
        most: 1,
        counts: false,
        get: |drawn| drawn.local.into(),
        set: |drawn, local| drawn.local = local > 0,
    },
    Setting {
        name: "read-only",
        unit: "",
        usual: 0,
        most: 1,
        counts: false,
        get: |drawn| drawn.read_only.into(),
        set: |drawn, read_only| drawn.read_only = read_only > 0,
    },
    Setting {
        name: "peer-timeout",
        unit: "ms",
        usual: 250,
        most: 100_000,
        counts: false,
        get: |drawn| drawn.peer_timeout_ms,
        set: |drawn, ms| drawn.peer_timeout_ms = ms,
    },
    Setting {
        name: "tick-time",
        unit: "ms",
        usual: 200,
        most: 100_000,
        counts: false,
        get: |drawn| drawn.tick_time_ms,
        set: |drawn, ms| drawn.tick_time_ms = ms,
    },
    Setting {
        name: "init-limit",
        unit: "",
        usual: 10,
        most: 1_000,
        counts: false,
        get: |drawn| u64::from(drawn.init_limit),
        set: |drawn, ticks| drawn.init_limit = u32::try_from(ticks).unwrap_or(10),
    },
    Setting {
        name: "snap-count",
        unit: "",
        usual: 1000,
        most: 1_000_000,
        counts: true,
        get: |drawn| drawn.snap_count,
        set: |drawn, entries| drawn.snap_count = entries.max(1),
    },
    Setting {
        name: "preallocate",
        unit: "B",
        usual: 0,
        most: 1 << 20,
        counts: false,
        get: |drawn| drawn.preallocate_bytes,
        set: |drawn, bytes| drawn.preallocate_bytes = bytes,
    },
    Setting {
        name: "roll",
        unit: "B",
        usual: 65_536,
        most: 1 << 20,
        counts: false,
        get: |drawn| drawn.roll_bytes,
        set: |drawn, bytes| drawn.roll_bytes = bytes.max(1),
    },
    Setting {
        name: "session-timeout",
        unit: "ms",
        usual: 4000,
        most: 1_000_000,
        counts: false,
        get: |drawn| drawn.session_timeout_ms,
        set: |drawn, ms| drawn.session_timeout_ms = ms,
    },
    Setting {
        name: "reaping",
        unit: "ms",
        usual: 60_000,
        most: 1_000_000,
        counts: false,
        get: |drawn| drawn.reaping_ms,
        set: |drawn, ms| drawn.reaping_ms = ms.max(1),
    },
    Setting {
        name: "last-counter",
        unit: "",
        usual: LAST_COUNTER,
        most: LAST_COUNTER,
        counts: true,
        get: |drawn| u64::from(drawn.last_counter),
        set: |drawn, last| drawn.last_counter = u32::try_from(last.max(1)).unwrap_or(Zxid::LAST_COUNTER),
    },
    Setting {
        name: "journal",
        unit: "",
        usual: JOURNAL_ENTRIES,
        most: 1_000_000,
        counts: true,
        get: |drawn| u64::try_from(drawn.journal_entries).unwrap_or(JOURNAL_ENTRIES),
        set: |drawn, entries| drawn.journal_entries = usize::try_from(entries.max(1)).unwrap_or(1),
    },
];

impl Head {
    /// The usual settings of so many members.
    pub(crate) fn usual(members: usize) -> Self {
        let settings = std::array::from_fn(|index| SETTINGS[index].usual);
        Self { members, clients: 1, prompt: Prompt::default(), outside: false, settings }
    }

    /// The settings of a drawn world.
    pub(crate) fn of(drawn: &Drawn, outside: bool) -> Self {
        let settings = std::array::from_fn(|index| (SETTINGS[index].get)(drawn));
        let (members, clients) = (drawn.members, drawn.everybody());
        Self { members, clients, prompt: Prompt::default(), outside, settings }
    }

    /// All members, with and without a vote.
    pub(crate) fn hosts(&self) -> usize {
        let observers = SETTINGS.iter().position(|setting| setting.name == "observers");
        let observers = observers.map_or(0, |place| self.settings[place]);
        self.members + usize::try_from(observers).unwrap_or(0)
    }

    /// Options with which nothing happens by itself.
    pub(crate) fn drawn(&self) -> Drawn {
        let mut drawn = Drawn::of_seed(0);
        drawn.members = self.members;
        drawn.clients = self.clients;
        drawn.visitors = 0;
        drawn.watchers = 0;
        drawn.operators = 0;
        drawn.probers = 0;
        drawn.siege = false;
        drawn.rare = crate::rare::Rare::default();
        drawn.pace_ppm = 0;
        for (setting, value) in SETTINGS.iter().zip(self.settings) {
            (setting.set)(&mut drawn, value);
        }
        for chance in [
            &mut drawn.spike,
            &mut drawn.stall,
            &mut drawn.codec,
            &mut drawn.told_late,
            &mut drawn.abrupt,
            &mut drawn.power,
            &mut drawn.mid_step,
            &mut drawn.refuse,
        ] {
            *chance = Chance::NEVER;
        }
        drawn.weights = [0; SwarmFault::ALL.len()];
        drawn
    }
}
