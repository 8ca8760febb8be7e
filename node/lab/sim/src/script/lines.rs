//! The transitions that a script knows, and how each is written.

use std::fmt;

use node_wire::ids::Zxid;
use node_wire::quorum::PacketType;

use super::client_action::ClientAction;
use crate::network::HostIndex;

/// A line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    /// When it happens, in virtual microseconds; shortly after the line before it when nothing is said.
    pub(crate) at_us: Option<u64>,
    pub(crate) transition: Transition,
    /// What it did when it was written down. For the reader.
    pub(crate) note: String,
}

/// How a process ends, and what its disk keeps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Crash {
    /// In the middle of its next step: behind so many effects.
    pub(crate) in_step: Option<u64>,
    /// When its disk fails it, and not before.
    pub(crate) at_failure: bool,
    /// The page cache goes too.
    pub(crate) power: bool,
    /// The disk operation at which the writer is interrupted; the first when nothing is said.
    pub(crate) store: Option<u64>,
    /// Likewise of a snapshot that is being written.
    pub(crate) snapshot: Option<u64>,
    /// How much of each unsynchronized thing is kept, in the order the disk asks; nothing of what is not
    /// said.
    pub(crate) keeps: Vec<u64>,
}

/// What arrives on a quorum connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Packet(PacketType),
    /// The tree behind a SNAP.
    Image,
}

/// How a disk changes, for the worse or for the better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DiskChange {
    /// Nothing that needs space can be written any more.
    Full,
    /// There is space again.
    Roomy,
    /// The next synchronization fails, and keeps so many bytes all the same.
    SyncFails(u64),
    /// A bit that had turned over turns back.
    Restored,
    /// All of it is well again.
    Sound,
}

/// What a healed ensemble is asked for at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// One established leader that all follow.
    Elected,
    /// Every client was served.
    Serving,
    /// All are of one mind.
    Converged,
    /// What was acknowledged is there.
    Acknowledged,
    /// No session is left.
    Closed,
}

/// One transition of a world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Transition {
    /// A process starts.
    Start { host: HostIndex },
    /// A process ends.
    Crash { host: HostIndex, crash: Crash },
    /// A process's timer expires.
    Tick { host: HostIndex, times: u32 },
    /// A writer finishes so many operations, or its whole batch; the process hears of it.
    Stored { host: HostIndex, ops: Option<usize> },
    /// Likewise, but the process stands still and does not hear of it.
    Wrote { host: HostIndex, ops: Option<usize> },
    /// The process hears of what was written.
    Told { host: HostIndex },
    /// A snapshot is written.
    Snapshot { host: HostIndex },
    /// Clocks are set: how far the wall clock is off and how much faster it runs, how much faster the
    /// monotonic one runs and how far it jumps.
    Clock { host: HostIndex, wall_ms: i64, drift_ppm: i64, fast_ppm: i64, jump_us: u64 },
    /// A disk operation from now fails, and perhaps all behind it.
    DiskFails { host: HostIndex, nth: u64, lasting: bool },
    /// A disk gets a fault, or loses one.
    Disk { host: HostIndex, change: DiskChange },
    /// A bit of a file turns over while its member is down.
    Rots { host: HostIndex, file: String, bit: usize },
    /// An election connection stands.
    Meets { host: HostIndex, peer: HostIndex },
    /// An election connection is gone.
    Misses { host: HostIndex, peer: HostIndex },
    /// The next vote arrives.
    Vote { from: HostIndex, to: HostIndex },
    /// A dial is heard by its target and by the dialler.
    Dials { host: HostIndex, peer: HostIndex },
    /// A dial is heard by its target.
    Accepts { host: HostIndex, peer: HostIndex },
    /// The dialler hears that its dial succeeded.
    Dialled { host: HostIndex, peer: HostIndex },
    /// The dialler hears that its dial failed.
    Refused { host: HostIndex, peer: HostIndex },
    /// What is in flight arrives, up to the next of this kind. Of several connections the newest, or one that
    /// is so many older.
    Packet { from: HostIndex, to: HostIndex, kind: Kind, zxid: Option<Zxid>, old: usize },
    /// A process notices that a quorum connection broke.
    Loses { host: HostIndex, peer: HostIndex, old: usize },
    /// A client connects; with a new session, or with the one it has.
    Connects { client: usize, host: HostIndex, anew: bool },
    /// A client asks.
    Asks { client: usize, action: ClientAction },
    /// A client keeps its session alive.
    Pings { client: usize },
    /// A client closes its connection.
    HangsUp { client: usize },
    /// The next thing a client sent arrives at a member.
    Hears { host: HostIndex, client: usize, old: usize },
    /// A member notices that a client is gone.
    Drops { host: HostIndex, client: usize, old: usize },
    /// The next answer arrives at a client.
    Listens { client: usize },
    /// A client notices that its connection broke.
    Cut { client: usize },
    /// A look whether the ensemble has got where it must.
    Look(Target),
}

impl Kind {
    /// All kinds.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let packets = (0..32).filter_map(|code| PacketType::try_from(code).ok()).map(Self::Packet);
        packets.chain([Self::Image])
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packet(kind) => f.write_str(&format!("{kind:?}").to_uppercase()),
            Self::Image => f.write_str("IMAGE"),
        }
    }
}

impl Target {
    /// All of them.
    pub(crate) const ALL: [Self; 5] =
        [Self::Elected, Self::Serving, Self::Converged, Self::Acknowledged, Self::Closed];

    /// Its word in a script.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Elected => "elected",
            Self::Serving => "serving",
            Self::Converged => "converged",
            Self::Acknowledged => "acknowledged",
            Self::Closed => "closed",
        }
    }
}

impl fmt::Display for DiskChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => f.write_str("full"),
            Self::Roomy => f.write_str("roomy"),
            Self::SyncFails(keeps) => write!(f, "sync-fails keeps={keeps}"),
            Self::Restored => f.write_str("restored"),
            Self::Sound => f.write_str("sound"),
        }
    }
}

impl fmt::Display for Crash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.at_failure {
            f.write_str(" at-failure")?;
        }
        if self.power {
            f.write_str(" power")?;
        }
        for (name, value) in [("in-step", self.in_step), ("store", self.store), ("snapshot", self.snapshot)] {
            if let Some(value) = value {
                write!(f, " {name}={value}")?;
            }
        }
        for (index, kept) in self.keeps.iter().enumerate() {
            write!(f, "{}{kept}", if index == 0 { " keeps=" } else { "," })?;
        }
        Ok(())
    }
}

/// A member's name.
struct S(HostIndex);

impl fmt::Display for S {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "s{}", self.0 + 1)
    }
}

/// A client's name.
struct C(usize);

impl fmt::Display for C {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "c{}", self.0 + 1)
    }
}

/// ` old=N` of an older connection; nothing of the newest.
struct Old(usize);

impl fmt::Display for Old {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 { Ok(()) } else { write!(f, " old={}", self.0) }
    }
}

/// ` xN` of a count that is said.
struct Times<T>(Option<T>);

impl<T: fmt::Display> fmt::Display for Times<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_ref().map_or(Ok(()), |times| write!(f, " x{times}"))
    }
}

impl fmt::Display for Transition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start { host } => write!(f, "{} start", S(*host)),
            Self::Crash { host, crash } => write!(f, "{} crash{crash}", S(*host)),
            Self::Tick { host, times } => {
                write!(f, "{} tick{}", S(*host), Times((*times != 1).then_some(*times)))
            }
            Self::Stored { host, ops } => write!(f, "{} stored{}", S(*host), Times(*ops)),
            Self::Wrote { host, ops } => write!(f, "{} wrote{}", S(*host), Times(*ops)),
            Self::Told { host } => write!(f, "{} told", S(*host)),
            Self::Snapshot { host } => write!(f, "{} snapshot", S(*host)),
            Self::Clock { host, wall_ms, drift_ppm, fast_ppm, jump_us } => {
                write!(f, "{} clock wall={wall_ms}ms", S(*host))?;
                for (name, ppm) in [("drift", drift_ppm), ("fast", fast_ppm)] {
                    if *ppm != 0 {
                        write!(f, " {name}={ppm}ppm")?;
                    }
                }
                if *jump_us == 0 { Ok(()) } else { write!(f, " jump={jump_us}us") }
            }
            Self::Disk { host, change } => write!(f, "{} disk {change}", S(*host)),
            Self::Rots { host, file, bit } => write!(f, "{} rots {file} bit={bit}", S(*host)),
            Self::DiskFails { host, nth, lasting } => {
                let lasting = if *lasting { " lasting" } else { "" };
                write!(f, "{} disk-fails at={nth}{lasting}", S(*host))
            }
            Self::Meets { host, peer } => write!(f, "{} meets {}", S(*host), S(*peer)),
            Self::Misses { host, peer } => write!(f, "{} misses {}", S(*host), S(*peer)),
            Self::Vote { from, to } => write!(f, "{}>{} vote", S(*from), S(*to)),
            Self::Dials { host, peer } => write!(f, "{} dials {}", S(*host), S(*peer)),
            Self::Accepts { host, peer } => write!(f, "{} accepts {}", S(*host), S(*peer)),
            Self::Dialled { host, peer } => write!(f, "{} dialled {}", S(*host), S(*peer)),
            Self::Refused { host, peer } => write!(f, "{} refused {}", S(*host), S(*peer)),
            Self::Packet { from, to, kind, zxid, old } => {
                write!(f, "{}>{} {kind}", S(*from), S(*to))?;
                zxid.map_or(Ok(()), |zxid| write!(f, " {zxid}"))?;
                write!(f, "{}", Old(*old))
            }
            Self::Loses { host, peer, old } => write!(f, "{} loses {}{}", S(*host), S(*peer), Old(*old)),
            Self::Connects { client, host, anew } => {
                let anew = if *anew { " anew" } else { "" };
                write!(f, "{} connects {}{anew}", C(*client), S(*host))
            }
            Self::Asks { client, action } => write!(f, "{} asks {action}", C(*client)),
            Self::Pings { client } => write!(f, "{} pings", C(*client)),
            Self::HangsUp { client } => write!(f, "{} hangs-up", C(*client)),
            Self::Hears { host, client, old } => {
                write!(f, "{} hears {}{}", S(*host), C(*client), Old(*old))
            }
            Self::Drops { host, client, old } => {
                write!(f, "{} drops {}{}", S(*host), C(*client), Old(*old))
            }
            Self::Listens { client } => write!(f, "{} listens", C(*client)),
            Self::Cut { client } => write!(f, "{} cut", C(*client)),
            Self::Look(target) => write!(f, "look {}", target.name()),
        }
    }
}
