//! What a member shows when it is asked from outside.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

use runs::member::MemberId;

use crate::Async;

/// Where a member is found from here.
#[derive(Clone)]
pub struct Whereabouts {
    /// Which.
    pub id: MemberId,
    /// Its client port.
    pub client: SocketAddr,
    /// Where questions go that ask at other ports, by the member's own number of the port.
    pub others: BTreeMap<u16, SocketAddr>,
    /// The folder of its data, where that is on this machine.
    pub data: Option<PathBuf>,
    /// What runs a command beside it, where that is not this machine.
    pub inside: Option<Arc<dyn Inside>>,
}

impl Whereabouts {
    /// A member of which nothing but the client port is known.
    #[must_use]
    pub fn of(id: MemberId, client: SocketAddr) -> Self {
        Self { id, client, others: BTreeMap::new(), data: None, inside: None }
    }
}

/// Runs commands where a member is.
pub trait Inside: Send + Sync {
    /// Runs one to its end, which is to come within this time. Whoever gives it up leaves it running.
    fn run(&self, member: MemberId, words: Vec<String>, within: Duration) -> Async<'static, io::Result<Ran>>;
}

/// How a command ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ran {
    /// Its exit status; none where a signal ended it.
    pub status: Option<i64>,
    /// What it wrote to its standard output.
    pub output: Vec<u8>,
    /// What it wrote to its standard error.
    pub errors: Vec<u8>,
}

/// What shells and container runtimes say of a program that can't be run, or is not there.
const NOT_RUN: [i64; 2] = [126, 127];
/// So much of a command's words is shown: the last of them say what was wrong.
const SHOWN: usize = 2_000;

impl Ran {
    /// Whether its exit status is 0.
    #[must_use]
    pub fn succeeded(&self) -> bool {
        self.status == Some(0)
    }

    /// The same, unless it says that the program could not be run: then nothing was asked, and what was
    /// written says why.
    ///
    /// # Errors
    /// That it was not run.
    pub fn if_it_was_run(self) -> io::Result<Self> {
        match self.status {
            Some(status) if NOT_RUN.contains(&status) => {
                Err(io::Error::other(format!("it can't be run (exit status {status}): {}", self.words())))
            }
            _ => Ok(self),
        }
    }

    /// What it wrote, its errors last, for people: the end of it where it is long.
    #[must_use]
    pub fn words(&self) -> String {
        let texts =
            [&self.output, &self.errors].map(|bytes| String::from_utf8_lossy(bytes).trim().to_owned());
        let said: Vec<String> = texts.into_iter().filter(|text| !text.is_empty()).collect();
        let said = said.join("\n");
        match said.char_indices().rev().nth(SHOWN) {
            Some((at, _)) => format!("... {}", &said[at..]),
            None => said,
        }
    }
}

/// Whom a member follows, by its own word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whom {
    /// It leads.
    Itself,
    /// This one.
    Member(MemberId),
    /// It follows and does not say whom.
    Unsaid,
}

/// What a member says it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Role {
    /// Whom it follows.
    pub whom: Whom,
    /// The epoch that it shows. Where it does not say whom it follows, this may still be the epoch before.
    pub epoch: u32,
}

/// What came of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// It answers as a member of a standing epoch.
    Serves(Role),
    /// It answers clients, and tells nobody whom it follows.
    Answers,
    /// It answers that it serves nobody, or refuses.
    ServesNobody,
    /// Nothing, in time.
    Nothing,
}

/// Asks one member, again and again.
pub trait Look: Send {
    /// Asks now.
    fn look(&mut self) -> Async<'_, Seen>;
}

/// What a member's client port does when it is asked anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortState {
    /// It answers.
    Answers,
    /// It accepts, or not even that, and says nothing.
    Silent,
    /// It accepts, and ends the connection before it said anything.
    HangsUp,
    /// The connection is refused.
    Refuses,
}

impl PortState {
    /// What it means where somebody else may stand before the port: a proxy accepts, and hangs up when nobody
    /// listens behind it. That is its way to refuse; a member that hangs up by itself is there, and answers
    /// nobody.
    #[must_use]
    pub fn behind(self, proxy: bool) -> Self {
        match self {
            Self::HangsUp if proxy => Self::Refuses,
            Self::HangsUp => Self::Silent,
            other => other,
        }
    }

    /// What a question says that ended like this.
    #[must_use]
    pub fn of_error(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::ConnectionRefused => Self::Refuses,
            io::ErrorKind::ConnectionReset | io::ErrorKind::UnexpectedEof => Self::HangsUp,
            _ => Self::Silent,
        }
    }
}

impl fmt::Display for PortState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Answers => "answers",
            Self::Silent => "is silent",
            Self::HangsUp => "hangs up",
            Self::Refuses => "refuses",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_behind_a_proxy_refuses_by_hanging_up() {
        let of = |kind| PortState::of_error(&io::Error::from(kind));
        let reset = of(io::ErrorKind::ConnectionReset);
        assert_eq!((reset.behind(true), reset.behind(false)), (PortState::Refuses, PortState::Silent));
        let refused = of(io::ErrorKind::ConnectionRefused);
        assert_eq!((refused.behind(true), refused.behind(false)), (PortState::Refuses, PortState::Refuses));
        assert_eq!(PortState::Answers.behind(true), PortState::Answers);
        assert_eq!(of(io::ErrorKind::TimedOut).behind(true), PortState::Silent);
    }
}
