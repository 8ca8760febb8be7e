//! One client's conduct: where it connects, when it goes home, under which number it acts.

use runs::clock::RunNs;
use runs::member::MemberId;

use super::{BACKOFF_NS, HOMESICK_NS};

/// Where a client is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Nowhere. It tries the next member at this moment.
    Away { retry_at: RunNs },
    /// On its way to a member; connected to `from` meanwhile, where it is moving.
    Connecting { to: usize, from: Option<usize> },
    /// Connected.
    At(usize),
}

/// What a client may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum May {
    /// Connect to the next member.
    Connect(MemberId),
    /// Move home.
    MoveHome(MemberId),
    /// Take an operation. Away from home it thinks of moving at that moment.
    Take { homesick_at: Option<RunNs> },
    /// Nothing before that moment, and nothing at all while none is named.
    Rest(Option<RunNs>),
}

/// A client. Members are numbered by their place among those that it knows.
#[derive(Clone, Debug)]
pub(super) struct Client {
    home: usize,
    /// How many members beyond home are tried next.
    next: usize,
    backoff_ns: u64,
    go_home_at: RunNs,
    place: Place,
    /// The number of its process. One whose operation stays open is never heard of again, and another takes
    /// over.
    pub(super) process: u64,
    /// It changes nothing.
    pub(super) only_reads: bool,
    /// Whether it was being replaced when it last tried to connect.
    pub(super) is_replaced: bool,
    /// What it wrote off since it last tried to connect.
    pub(super) written_off: usize,
}

impl Client {
    pub(super) fn new(home: usize, process: u64, only_reads: bool) -> Self {
        Self {
            home,
            next: 0,
            backoff_ns: BACKOFF_NS.0,
            go_home_at: 0,
            place: Place::Away { retry_at: 0 },
            process,
            only_reads,
            is_replaced: false,
            written_off: 0,
        }
    }

    /// What it may do now.
    pub(super) fn may(&self, members: &[MemberId], now: RunNs) -> May {
        match self.place {
            Place::Away { retry_at } if now < retry_at => May::Rest(Some(retry_at)),
            Place::Away { .. } => May::Connect(members[(self.home + self.next) % members.len()]),
            Place::Connecting { .. } => May::Rest(None),
            Place::At(_) if self.homesick_at().is_some_and(|at| now >= at) => {
                May::MoveHome(members[self.home])
            }
            Place::At(_) => May::Take { homesick_at: self.homesick_at() },
        }
    }

    /// When it thinks of home next; none where it is at home, or nowhere.
    pub(super) fn homesick_at(&self) -> Option<RunNs> {
        match self.place {
            Place::At(member) if member != self.home => Some(self.go_home_at),
            _ => None,
        }
    }

    /// It sets out for where it may connect to.
    pub(super) fn sets_out(&mut self, members: usize, now: RunNs) {
        self.written_off = 0;
        if let Place::At(from) = self.place {
            self.go_home_at = now + HOMESICK_NS;
            self.place = Place::Connecting { to: self.home, from: Some(from) };
        } else {
            self.place = Place::Connecting { to: (self.home + self.next) % members, from: None };
            self.next = (self.next + 1) % members;
        }
    }

    /// The member that it set out for; none where it did not.
    pub(super) fn goes_to(&self, members: &[MemberId]) -> Option<MemberId> {
        match self.place {
            Place::Connecting { to, .. } => members.get(to).copied(),
            Place::Away { .. } | Place::At(_) => None,
        }
    }

    /// A member took it.
    pub(super) fn connected(&mut self, now: RunNs) {
        if let Place::Connecting { to, .. } = self.place {
            self.place = Place::At(to);
        }
        self.backoff_ns = BACKOFF_NS.0;
        self.go_home_at = now + HOMESICK_NS;
        self.is_replaced = false;
    }

    /// The member did not take it: it stays where it was, or tries another one after a pause.
    pub(super) fn refused(&mut self, now: RunNs) {
        self.is_replaced = false;
        match self.place {
            Place::Connecting { from: Some(from), .. } => self.place = Place::At(from),
            _ => {
                self.place = Place::Away { retry_at: now.saturating_add(self.backoff_ns) };
                // In whole microseconds: a virtual world knows nothing finer.
                self.backoff_ns = (self.backoff_ns * 3 / 2).min(BACKOFF_NS.1) / 1000 * 1000;
            }
        }
    }

    /// Its connection is gone, or was given up. Home is tried first, at once.
    pub(super) fn lost(&mut self, now: RunNs) {
        self.next = 0;
        self.backoff_ns = BACKOFF_NS.0;
        self.place = Place::Away { retry_at: now };
    }
}
