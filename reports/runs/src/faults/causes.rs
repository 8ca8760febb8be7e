//! How a member's process ended, and who is to blame: itself, whoever sent a signal, or the place where it
//! ran.
//!
//! Only the first says something about the member. A signal may be the kernel's that needs memory, or
//! anybody's; an orderly end is what somebody asked for; a full disk or a taken port is the place's. None of
//! these is ever held against the member, and neither is what can't be told.

use crate::events::{Event, Said, Stamped};

/// Who ended a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ender {
    /// It gave up, or broke, by itself.
    Itself,
    /// Somebody else, or the place, or nobody knows.
    NotItself,
}

/// A member that was told something wrong by this harness.
const WRONG_USAGE: i32 = 254;
/// Shells and virtual machines tell of a signal as a status from here on, and for as many.
const SIGNAL_STATUSES: std::ops::RangeInclusive<i32> = 129..=192;
/// What the kernel sends to a process for what that did itself: an illegal instruction, an abort, a division,
/// an access.
const OWN_SIGNALS: [i32; 4] = [4, 6, 8, 11];

/// What a log says where the place is to blame, in lower case.
const PLACE: [&str; 15] = [
    "no space left on device",
    "disk quota exceeded",
    "read-only file system",
    "input/output error",
    "too many open files",
    "cannot allocate memory",
    "unable to create native thread",
    "outofmemory",
    "resource temporarily unavailable",
    "permission denied",
    "operation not permitted",
    "address already in use",
    "address in use",
    "bindexception",
    "another process uses it",
];

/// Who ended a process that ended so, when these were the last lines of its log.
pub fn ender(how: &str, log: &[String]) -> Ender {
    if log.iter().any(|line| blames_the_place(line)) || !by_itself(how) {
        return Ender::NotItself;
    }
    Ender::Itself
}

/// The last lines of a member's log, so many at most; where there are none, why it said that it stops.
pub fn last_words(member: u64, events: &[Stamped], mut log: Vec<String>, most: usize) -> Vec<String> {
    if log.is_empty() {
        log.extend(events.iter().rev().find_map(|stamped| match &stamped.event {
            Event::Said(Said::Halt { reason }) if stamped.node.0 == member => Some(reason.clone()),
            _ => None,
        }));
    }
    log.split_off(log.len().saturating_sub(most))
}

fn blames_the_place(line: &str) -> bool {
    let line = line.to_lowercase();
    PLACE.iter().any(|words| line.contains(words))
}

fn by_itself(how: &str) -> bool {
    let number = |prefix: &str| how.strip_prefix(prefix).and_then(|rest| rest.parse::<i32>().ok());
    if let Some(signal) = number("killed by signal ") {
        return OWN_SIGNALS.contains(&signal);
    }
    if let Some(status) = number("exit status ") {
        return status != 0 && status != WRONG_USAGE && !SIGNAL_STATUSES.contains(&status);
    }
    // What the simulator says of a member that can't go on.
    how == "stopped itself" || how.starts_with("panicked: ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_is_blamed_for_what_it_did_itself_and_for_nothing_else() {
        for how in [
            "exit status 1",
            "exit status 255",
            "killed by signal 6",
            "killed by signal 11",
            "stopped itself",
            "panicked: x",
        ] {
            assert_eq!(ender(how, &[]), Ender::Itself, "{how}");
        }
        for how in [
            "exit status 0",
            "exit status 254",
            "exit status 137",
            "exit status 143",
            "killed by signal 9",
            "killed by signal 9: its container reached its limit of 2.0 GiB of memory",
            "killed by signal 15",
            "killed by signal 7",
            "killed by a signal",
            "ended",
            "ended, and the engine does not tell how: gone",
        ] {
            assert_eq!(ender(how, &[]), Ender::NotItself, "{how}");
        }
    }

    #[test]
    fn a_member_is_not_blamed_for_its_disk_its_memory_or_its_ports() {
        for line in [
            "failed to write the log: No space left on device (os error 28)",
            "java.net.BindException: Address already in use",
            "java.lang.OutOfMemoryError: unable to create native thread",
        ] {
            assert_eq!(ender("exit status 1", &[line.to_owned()]), Ender::NotItself, "{line}");
        }
        assert_eq!(ender("exit status 1", &["the log is torn".to_owned()]), Ender::Itself);
    }
}
