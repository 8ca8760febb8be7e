//! Whose connection it is, where everybody dials a member at one and the same address.
//!
//! The kernel knows: a connection on loopback has a socket at its other end, the socket has a number, and the
//! process that holds it has that number among its open files. The processes of a run's members carry the
//! run's token and their member's id in their environment, so neither a restart nor a stranger is taken for
//! another. Some programs write their title over their environment, as Redis and PostgreSQL do: those are
//! known by what their standard error is, which is their member's log.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use runs::member::MemberId;

use crate::store::RunFolder;
use crate::store::lock::TOKEN_VARIABLE;

/// Which member a process is, in its environment.
pub const MEMBER_VARIABLE: &str = "HARNESS_MEMBER";

/// The folder of the run, absolute, in the environment of its links.
pub const FOLDER_VARIABLE: &str = "HARNESS_FOLDER";

/// By what the processes of a run are known.
#[derive(Clone, Debug)]
pub struct Marks {
    /// The run's token.
    pub token: OsString,
    /// Its folder.
    pub folder: PathBuf,
}

impl Marks {
    /// Those that this process was started with.
    pub fn own() -> Self {
        let variable = |name| std::env::var_os(name).unwrap_or_default();
        Self { token: variable(TOKEN_VARIABLE), folder: variable(FOLDER_VARIABLE).into() }
    }

    /// The processes of the run's members: the folder of each, and whose it is.
    pub(super) fn processes(&self) -> Vec<(PathBuf, MemberId)> {
        let of_members = |process: PathBuf| {
            let member = self.member_of(&process)?;
            Some((process, member))
        };
        processes().filter_map(of_members).collect()
    }

    /// Which member a process of this run is of.
    fn member_of(&self, process: &Path) -> Option<MemberId> {
        let environment = fs::read(process.join("environ")).ok()?;
        member(&environment, &self.token).or_else(|| {
            let (folder, member) = RunFolder::of_a_members_log(&fs::read_link(process.join("fd/2")).ok()?)?;
            (folder.path() == self.folder).then_some(member)
        })
    }
}

/// The open sockets of members' processes, by the kernel's numbers.
pub(super) fn sockets_of(members: &[(PathBuf, MemberId)]) -> BTreeMap<u64, MemberId> {
    let mut sockets = BTreeMap::new();
    for (process, member) in members {
        let Ok(files) = fs::read_dir(process.join("fd")) else { continue };
        let links = files.filter_map(Result::ok).filter_map(|file| fs::read_link(file.path()).ok());
        sockets.extend(links.filter_map(|link| Some((socket_number(&link)?, *member))));
    }
    sockets
}

/// The folders of all processes.
fn processes() -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir("/proc").ok().into_iter().flatten().filter_map(Result::ok);
    entries
        .filter(|entry| entry.file_name().as_bytes().iter().all(u8::is_ascii_digit))
        .map(|entry| entry.path())
}

/// The number of a socket, as an open file's link names it: `socket:[777]`.
fn socket_number(link: &Path) -> Option<u64> {
    link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

/// The member whose process holds the socket at `peer` that is connected to `here`; none when no process of a
/// member of this run does.
pub fn of(marks: &Marks, peer: SocketAddr, here: SocketAddr) -> Option<MemberId> {
    let found = |table: &str| inode(&fs::read_to_string(table).ok()?, peer, here);
    // Java dials by IPv6 sockets, wherever it dials to.
    let inode = found("/proc/self/net/tcp").or_else(|| found("/proc/self/net/tcp6"))?;
    processes().find_map(|process| {
        let member = marks.member_of(&process)?;
        holds(&process.join("fd"), inode).then_some(member)
    })
}

/// The number of the socket at `peer` that is connected to `here`, in a table of IPv4's or of IPv6's sockets.
fn inode(table: &str, peer: SocketAddr, here: SocketAddr) -> Option<u64> {
    let (peer, here) = (as_in_table(peer)?, as_in_table(here)?);
    let found = rows(table).find(|row| row.here == peer && row.there == here)?;
    Some(found.socket).filter(|socket| *socket != 0)
}

/// A socket in one of the kernel's tables, in its words.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row<'a> {
    /// Its own address.
    pub(super) here: &'a str,
    /// The other end's.
    pub(super) there: &'a str,
    /// Its state.
    pub(super) state: &'a str,
    /// Its number; zero when nobody holds it any more.
    pub(super) socket: u64,
}

/// The sockets of a table of IPv4's or of IPv6's, the latter's addresses of IPv4 as in the former.
pub(super) fn rows(table: &str) -> impl Iterator<Item = Row<'_>> {
    let mapped = mapped();
    table.lines().filter_map(move |line| {
        let mut words = line.split_ascii_whitespace().skip(1);
        let mut address = || words.next().map(|word| word.strip_prefix(mapped.as_str()).unwrap_or(word));
        let (here, there) = (address()?, address()?);
        let state = words.next()?;
        // Behind the state: queues, timer, retransmissions, user, time-out.
        let socket = words.nth(5)?.parse().ok()?;
        Some(Row { here, there, state, socket })
    })
}

/// An address as the kernel's table has it: the bytes as one number in this machine's order, in hexadecimal.
fn as_in_table(address: SocketAddr) -> Option<String> {
    match address.ip() {
        IpAddr::V4(ip) => Some(format!("{:08X}:{:04X}", u32::from_ne_bytes(ip.octets()), address.port())),
        IpAddr::V6(_) => None,
    }
}

/// The member that an environment names, if it is of this run.
fn member(environment: &[u8], token: &OsStr) -> Option<MemberId> {
    let value = |name: &str| {
        environment.split(|byte| *byte == 0).find_map(|pair| {
            let (found, value) = pair.split_at_checked(name.len())?;
            (found == name.as_bytes()).then_some(value)?.strip_prefix(b"=")
        })
    };
    if value(TOKEN_VARIABLE)? != token.as_bytes() {
        return None;
    }
    std::str::from_utf8(value(MEMBER_VARIABLE)?).ok()?.parse().ok().map(MemberId)
}

/// What stands before an address of IPv4 in a table of IPv6's sockets: `::ffff:`.
fn mapped() -> String {
    format!("{:016X}{:08X}", 0, u32::from_ne_bytes([0, 0, 0xFF, 0xFF]))
}

fn holds(files: &Path, socket: u64) -> bool {
    let Ok(files) = fs::read_dir(files) else { return false };
    let mut links = files.filter_map(Result::ok).filter_map(|file| fs::read_link(file.path()).ok());
    links.any(|link| socket_number(&link) == Some(socket))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, TcpListener};
    use std::process::{Child, Command, Stdio};

    /// A process with this environment that dials a port and keeps the connection until its input ends.
    fn dialler(port: u16, token: &str, member: &str) -> Child {
        Command::new("bash")
            .args(["-c", &format!("exec 3<>/dev/tcp/127.0.0.1/{port}; read -r")])
            .env(TOKEN_VARIABLE, token)
            .env(MEMBER_VARIABLE, member)
            .stdin(Stdio::piped())
            .spawn()
            .expect("bash starts")
    }

    #[test]
    fn a_connection_is_the_members_whose_process_made_it_and_nobody_elses() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let here = listener.local_addr().expect("bound");
        for (token, member, owner) in
            [("a token", "3", Some(MemberId(3))), ("a token", "x", None), ("another", "3", None)]
        {
            let mut child = dialler(here.port(), token, member);
            let (_stream, peer) = listener.accept().expect("a connection");
            let marks = Marks { token: OsString::from("a token"), folder: PathBuf::from("/nowhere") };
            assert_eq!(of(&marks, peer, here), owner, "{token} {member}");
            drop(child.stdin.take());
            child.wait().expect("it ends");
        }
    }

    #[test]
    fn a_process_that_wrote_over_its_environment_is_known_by_its_log() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path().canonicalize().expect("absolute");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let here = listener.local_addr().expect("bound");
        for (log, owner) in [("nodes/4/log", Some(MemberId(4))), ("clients/4.log", None)] {
            let log = folder.join(log);
            fs::create_dir_all(log.parent().expect("a folder")).expect("made");
            let mut child = Command::new("bash")
                .args(["-c", &format!("exec 3<>/dev/tcp/127.0.0.1/{}; read -r", here.port())])
                .stdin(Stdio::piped())
                .stderr(fs::File::create(&log).expect("a log"))
                .spawn()
                .expect("bash starts");
            let (_stream, peer) = listener.accept().expect("a connection");
            let marks = Marks { token: OsString::from("a token"), folder: folder.clone() };
            assert_eq!(of(&marks, peer, here), owner, "{}", log.display());
            drop(child.stdin.take());
            child.wait().expect("it ends");
        }
    }

    #[test]
    fn a_socket_is_found_by_both_of_its_addresses() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  \
                     timeout inode\n\
                     0: 0100007F:9C40 0100007F:2710 01 00000000:00000000 00:00000000 00000000     0        0 \
                     777 1 0 20\n\
                     1: 0100007F:9C41 0100007F:2710 06 00000000:00000000 03:00000000 00000000     0        0 \
                     0 3 0\n";
        let at = |port| SocketAddr::from(([127, 0, 0, 1], port));
        assert_eq!(inode(table, at(40_000), at(10_000)), Some(777));
        assert_eq!(inode(table, at(40_001), at(10_000)), None, "nobody holds it any more");
        assert_eq!(inode(table, at(10_000), at(40_000)), None);
    }

    #[test]
    fn a_socket_of_ipv6_that_dials_an_address_of_ipv4_is_found() {
        let line = "   0: 0000000000000000FFFF00000100007F:9C40 0000000000000000FFFF00000100007F:2710 01 \
                    00000000:00000000 00:00000000 00000000     0        0 778 1 0 20\n";
        let at = |port| SocketAddr::from(([127, 0, 0, 1], port));
        assert_eq!(inode(line, at(40_000), at(10_000)), Some(778));
    }
}
