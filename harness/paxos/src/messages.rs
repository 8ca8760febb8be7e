//! What members of Multi-Paxos say to each other, what they write, and what they wait for.

use std::fmt;

use harness_protocols::{Id, Request};

use crate::ballot::Ballot;
use crate::register::Action;

/// A place in the log, from 1.
pub type Slot = u32;

/// What stands in a slot.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Command {
    /// Nothing happens: it fills a hole.
    NoOp,
    /// A client's request.
    Client(Request, Action),
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoOp => f.write_str("no-op"),
            Self::Client(request, action) => write!(f, "{}:{action}", request.0),
        }
    }
}

/// A command that was accepted in a slot.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Vote {
    /// Where.
    pub slot: Slot,
    /// In which ballot.
    pub ballot: Ballot,
    /// What.
    pub command: Command,
}

/// What members say to each other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Message {
    /// I run; and in this ballot I lead.
    Alive(Option<Ballot>),
    /// A client asked me; lead it.
    Forward(Request, Action),
    /// Promise for all slots from this one on.
    Prepare(Ballot, Slot),
    /// I promise, and this is all that I have accepted there; below the slot everything is chosen.
    Promise(Ballot, Vec<Vote>, Slot),
    /// Accept this; everything below the slot is chosen.
    Accept(Vote, Slot),
    /// I did; this is the first slot of which I do not know that it is chosen.
    Accepted(Ballot, Slot, Slot),
    /// I promised another ballot.
    Refuse(Ballot),
    /// This is chosen.
    Success(Slot, Command),
    /// I know; and this is the first slot of which I do not.
    Known(Slot),
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Alive(None) => f.write_str("alive"),
            Self::Alive(Some(ballot)) => write!(f, "alive, leads {ballot}"),
            Self::Forward(request, action) => write!(f, "forward {}:{action}", request.0),
            Self::Prepare(ballot, from) => write!(f, "prepare {ballot} from {from}"),
            Self::Promise(ballot, votes, chosen) => {
                write!(f, "promise {ballot}, chosen below {chosen}")?;
                votes.iter().try_for_each(|vote| write!(f, ", {}={}", vote.slot, vote.command))
            }
            Self::Accept(vote, chosen) => {
                write!(f, "accept {} {}={}, chosen below {chosen}", vote.ballot, vote.slot, vote.command)
            }
            Self::Accepted(ballot, slot, chosen) => {
                write!(f, "accepted {ballot} {slot}, chosen below {chosen}")
            }
            Self::Refuse(promised) => write!(f, "refuse for {promised}"),
            Self::Success(slot, command) => write!(f, "success {slot}={command}"),
            Self::Known(slot) => write!(f, "chosen below {slot}"),
        }
    }
}

/// What is on disk.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Record {
    /// The highest round that it proposed in.
    Round(u32),
    /// The highest ballot that it promised, for all slots.
    Promised(Ballot),
    /// What it accepted.
    Accepted(Vote),
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Round(round) => write!(f, "round {round}"),
            Self::Promised(ballot) => write!(f, "promised {ballot}"),
            Self::Accepted(vote) => write!(f, "accepted {} {}={}", vote.ballot, vote.slot, vote.command),
        }
    }
}

/// What a member waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Timer {
    /// To say that it runs.
    Heartbeat,
    /// To hear of a member with a higher id.
    Silence(Id),
    /// To be answered, as leader.
    Retry,
}

impl fmt::Display for Timer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Heartbeat => f.write_str("heartbeat"),
            Self::Silence(id) => write!(f, "{id} is silent"),
            Self::Retry => f.write_str("retry"),
        }
    }
}
