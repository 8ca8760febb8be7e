//! Who talks past the links.
//!
//! A cut of the links cuts nobody who has another way: a system that tells the others where it listens, or a
//! file that hands one member the address at which another one listens, leaves members connected while every
//! probe says that they are apart. On one host that can be seen. Both ends of such a connection are in the
//! kernel's tables, and each belongs to a member; an honest one ends at a process of the links.
//!
//! A connection may be there for a moment only. So there is a look-out while a cut is in force, which asks
//! the kernel many times a second, and for no more than that takes: members' processes are looked for once a
//! second, their open files when there is a connection of which both ends are known.
//!
//! What is not connected, datagrams above all, can't be seen so, nor can sockets that have no address.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use runs::member::MemberId;

use super::owner::{self, Marks, Row, rows};
use super::protocol::Pair;

/// The state of a socket that is connected, in the kernel's tables.
const ESTABLISHED: &str = "01";

/// The pairs of members that are connected directly, the smaller number first.
pub fn connected(marks: &Marks) -> BTreeSet<Pair> {
    among(&marks.processes())
}

/// How often the look-out asks.
const LOOK_EVERY: Duration = Duration::from_millis(40);
/// How often it looks for processes.
const PROCESSES: Duration = Duration::from_secs(1);

/// Looks out for members that talk past the links, until it is dropped.
#[derive(Debug)]
pub struct LookOut {
    seen: Arc<Mutex<BTreeSet<Pair>>>,
}

impl LookOut {
    /// Begins, on a thread of its own.
    pub fn new(marks: Marks) -> std::io::Result<Self> {
        let seen = Arc::new(Mutex::new(BTreeSet::new()));
        let told = Arc::downgrade(&seen);
        std::thread::Builder::new().name("look-out".to_owned()).spawn(move || {
            let mut members: Vec<(PathBuf, MemberId)> = Vec::new();
            let mut since: Option<Instant> = None;
            while let Some(seen) = told.upgrade() {
                if since.is_none_or(|since| since.elapsed() >= PROCESSES) {
                    members = marks.processes();
                    since = Some(Instant::now());
                }
                let found = among(&members);
                seen.lock().unwrap_or_else(PoisonError::into_inner).extend(found);
                drop(seen);
                std::thread::park_timeout(LOOK_EVERY);
            }
        })?;
        Ok(Self { seen })
    }

    /// Who was seen to be connected so far.
    pub fn seen(&self) -> BTreeSet<Pair> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The pairs of these members that are connected directly.
fn among(members: &[(PathBuf, MemberId)]) -> BTreeSet<Pair> {
    let tables = tables();
    let ends: Vec<Row<'_>> = tables.iter().flat_map(|table| established(table)).collect();
    let both: BTreeSet<(&str, &str)> = ends.iter().map(|end| (end.here, end.there)).collect();
    if !ends.iter().any(|end| both.contains(&(end.there, end.here))) {
        return BTreeSet::new();
    }
    pairs(&ends, &owner::sockets_of(members))
}

/// The kernel's tables of sockets.
fn tables() -> Vec<String> {
    let tables = ["/proc/self/net/tcp", "/proc/self/net/tcp6"];
    tables.iter().filter_map(|table| fs::read_to_string(table).ok()).collect()
}

/// What is connected, in a table.
fn established(table: &str) -> impl Iterator<Item = Row<'_>> {
    rows(table).filter(|row| row.state == ESTABLISHED)
}

/// Whose connections join two members.
fn pairs(ends: &[Row<'_>], owners: &BTreeMap<u64, MemberId>) -> BTreeSet<Pair> {
    let owned: BTreeMap<(&str, &str), MemberId> =
        ends.iter().filter_map(|end| Some(((end.here, end.there), *owners.get(&end.socket)?))).collect();
    let joined = owned.iter().filter_map(|((here, there), one)| {
        let other = owned.get(&(*there, *here))?;
        (one < other).then(|| Pair::new(*one, *other))
    });
    joined.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::lock::TOKEN_VARIABLE;

    /// Behind state and addresses: queues, timer, retransmissions, user, time-out, number.
    const TABLE: &str = "  sl  local_address rem_address   st\n\
         0: 0100007F:9C40 0100007F:2710 01 00000000:00000000 00:00000000 00000000 0 0 777 1 0 20\n\
         1: 0100007F:2710 0100007F:9C40 01 00000000:00000000 00:00000000 00000000 0 0 778 1 0 20\n\
         2: 0100007F:2711 0100007F:9C40 06 00000000:00000000 03:00000000 00000000 0 0 0 3 0\n";
    const NEWER: &str = "0: 0000000000000000FFFF00000100007F:2710 0000000000000000FFFF00000100007F:9C40 01 \
         00000000:00000000 00:00000000 00000000 0 0 778 1 0 20\n";

    fn owners(owned: &[(u64, u64)]) -> BTreeMap<u64, MemberId> {
        owned.iter().map(|(socket, member)| (*socket, MemberId(*member))).collect()
    }

    #[test]
    fn two_members_with_one_connection_talk_past_the_links() {
        let ends: Vec<Row<'_>> = established(TABLE).collect();
        assert_eq!(ends.len(), 2, "what is about to end is not connected");
        let found = pairs(&ends, &owners(&[(777, 3), (778, 1)]));
        assert_eq!(found, BTreeSet::from([Pair::from((1, 3))]));
    }

    /// What holds one end of a connection, as a process of a member does.
    struct Holding(std::process::Child);

    impl Holding {
        fn start(end: std::net::TcpStream, marks: &Marks, member: &str) -> Self {
            let mut command = std::process::Command::new("sleep");
            command.arg("600").stdin(std::os::fd::OwnedFd::from(end));
            command.env(TOKEN_VARIABLE, &marks.token).env(owner::MEMBER_VARIABLE, member);
            Self(command.spawn().expect("sleep is everywhere"))
        }
    }

    impl Drop for Holding {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    #[test]
    fn what_was_there_for_a_while_is_remembered() {
        let token = format!("look-out-{}", std::process::id()).into();
        let marks = Marks { token, folder: PathBuf::from("/nowhere") };
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let one =
            std::net::TcpStream::connect(listener.local_addr().expect("an address")).expect("connected");
        let (other, _) = listener.accept().expect("accepted");
        let look_out = LookOut::new(marks.clone()).expect("a thread");
        assert!(look_out.seen().is_empty() && connected(&marks).is_empty(), "nobody is a member yet");
        let holding = [Holding::start(one, &marks, "3"), Holding::start(other, &marks, "1")];
        let pair = BTreeSet::from([Pair::from((1, 3))]);
        let deadline = Instant::now() + Duration::from_secs(30);
        while look_out.seen() != pair {
            assert!(Instant::now() < deadline, "the two were never seen");
            std::thread::park_timeout(LOOK_EVERY);
        }
        drop(holding);
        assert!(connected(&marks).is_empty(), "they are gone");
        assert_eq!(look_out.seen(), pair);
    }

    #[test]
    fn a_connection_that_ends_at_a_link_or_at_its_own_member_does_not() {
        let ends: Vec<Row<'_>> = established(TABLE).collect();
        assert!(pairs(&ends, &owners(&[(777, 3)])).is_empty());
        assert!(pairs(&ends, &owners(&[(777, 3), (778, 3)])).is_empty());
    }

    #[test]
    fn the_ends_of_a_connection_may_be_in_different_tables() {
        let ends: Vec<Row<'_>> = established(TABLE).take(1).chain(established(NEWER)).collect();
        let found = pairs(&ends, &owners(&[(777, 3), (778, 1)]));
        assert_eq!(found, BTreeSet::from([Pair::from((1, 3))]));
    }
}
