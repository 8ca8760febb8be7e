//! How many files a process may have open, which is how many connections it may hold.
//!
//! Shells give few by default and let a program take more, up to a bound that only the administrator raises.
//! So a run takes what it may, and where that is too little it is refused before anything is started: a
//! member that runs out of them looks like one that is ill.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::exit::Failure;

/// Nothing here needs more on a bad day.
const WANTED: u64 = 65_536;
/// What a process of ours has open before the first client and the first member.
const BASE: u64 = 64;
/// What the harness has open for each member: its words, its files, its process.
const EACH_MEMBER: u64 = 8;
/// What a client holds while it moves from one member to another.
const EACH_CLIENT: u64 = 2;
/// What the links hold for each direction between two members: listeners, and both ends of connections, those
/// that are held by a partition too.
const EACH_DIRECTION: u64 = 6;

/// Takes as many as this process may have, and gives how many that are.
pub fn raise() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let allowed = limit.maximum.unwrap_or(WANTED).min(WANTED);
    let Some(current) = limit.current else { return u64::MAX };
    if current >= allowed {
        return current;
    }
    match setrlimit(Resource::Nofile, Rlimit { current: Some(allowed), maximum: limit.maximum }) {
        Ok(()) => allowed,
        Err(_) => current,
    }
}

/// How many the process of a run needs that needs the most.
pub fn needed(nodes: u32, clients: u32) -> u64 {
    let (nodes, clients) = (u64::from(nodes), u64::from(clients));
    let harness = BASE + nodes * EACH_MEMBER + clients * EACH_CLIENT;
    let links = BASE + nodes * nodes * EACH_DIRECTION;
    harness.max(links)
}

/// Takes what it may, and refuses a run that needs more.
pub fn enough_for(nodes: u32, clients: u32) -> Result<(), Failure> {
    match shortage(raise(), needed(nodes, clients)) {
        None => Ok(()),
        Some(words) => Err(Failure::usage(format!("{words}, or lower --nodes and --concurrency"))),
    }
}

/// What is wrong when so many are allowed and so many needed, and what to do.
pub fn shortage(allowed: u64, needed: u64) -> Option<String> {
    (allowed < needed).then(|| {
        format!(
            "a process may have {allowed} files open here and needs {needed}, because each connection is \
             one: raise the hard limit (`ulimit -Hn {needed}` as root, LimitNOFILE= of a service, --ulimit \
             nofile={needed} of a container)"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_needed_grows_with_clients_and_with_pairs_of_members() {
        assert_eq!(needed(1, 1), 74);
        assert_eq!(needed(5, 20), 214);
        assert_eq!(needed(5, 2000), 4104);
        assert_eq!(needed(9, 20), 550);
        // The usual soft limit is enough for the defaults.
        assert!(needed(5, 20) < 1024);
    }

    #[test]
    fn a_shortage_names_both_numbers_and_what_raises_the_limit() {
        assert_eq!(shortage(1024, 214), None);
        let words = shortage(64, 214).expect("too few");
        assert!(words.contains("64 files") && words.contains("ulimit -Hn 214"), "{words}");
    }

    #[test]
    fn what_may_be_had_is_taken() {
        let allowed = raise();
        assert_eq!(getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX), allowed);
        assert_eq!(raise(), allowed);
    }
}
