//! The processes of the agent's namespace, as `/proc` tells of them.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::str::FromStr;

use crate::protocol::ProcessLine;

/// Most processes that are told of; a namespace of one member has a handful.
pub const MAX_PROCESSES: usize = 1024;

/// Why processes can't be reached.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// Signals and patches would reach the whole machine.
    #[error(
        "reach processes: the agent is not process 1 of a namespace of its own; start it as the first \
            process of a container"
    )]
    NotFirst,
    /// The `/proc` of another namespace, or none.
    #[error("read /proc: it does not belong to the agent's namespace; mount one that does")]
    ForeignProc,
    /// Too many of them.
    #[error("tell of all processes: there are more than {MAX_PROCESSES}")]
    TooMany,
    /// The kernel said no.
    #[error("{what}: {error}")]
    Failed {
        /// What was tried.
        what: &'static str,
        /// Why not.
        error: io::Error,
    },
}

/// A process as `/proc/<pid>/stat` tells of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// What the harness is told.
    pub line: ProcessLine,
    /// Who waits for it; 0 when that is outside of the namespace.
    pub parent: u32,
}

impl Process {
    /// Whether it only waits to be waited for.
    #[must_use]
    pub fn is_dead(&self) -> bool {
        matches!(self.line.state, 'Z' | 'X' | 'x')
    }
}

/// A process namespace whose first process is this one: proof that a signal to "everybody" stays within.
#[derive(Clone, Copy, Debug)]
pub struct OwnNamespace {
    _proof: (),
}

impl OwnNamespace {
    /// Looks whether this process is the first of its namespace and `/proc` is the namespace's.
    ///
    /// # Errors
    /// When it is not.
    pub fn of_this_process() -> Result<Self, ProcessError> {
        if std::process::id() != 1 {
            return Err(ProcessError::NotFirst);
        }
        match fs::read_link("/proc/self") {
            Ok(own) if own.as_os_str() == "1" => Ok(Self { _proof: () }),
            _ => Err(ProcessError::ForeignProc),
        }
    }

    /// Every process but the agent's own, in the order of their ids. What vanishes meanwhile is left out.
    ///
    /// # Errors
    /// When `/proc` can't be read, or there are too many.
    pub fn processes(self) -> Result<Vec<Process>, ProcessError> {
        let failed = |error| ProcessError::Failed { what: "read /proc", error };
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()).filter(|pid| *pid > 1)
            else {
                continue;
            };
            // It may be gone by now.
            let Ok(stat) = fs::read(format!("/proc/{pid}/stat")) else { continue };
            let Some(process) = parse_stat(&stat).filter(|process| process.line.pid == pid) else { continue };
            if found.len() >= MAX_PROCESSES {
                return Err(ProcessError::TooMany);
            }
            found.push(process);
        }
        found.sort_by_key(|process| process.line.pid);
        Ok(found)
    }
}

/// The member's main process: of those that were started from outside of the namespace, as a container's
/// first process is, the one that started first; without any, whichever started first.
#[must_use]
pub fn main_process(processes: &[Process]) -> Option<&Process> {
    let alive = processes.iter().filter(|process| !process.is_dead());
    alive.min_by_key(|process| (process.parent != 0, process.line.start_ticks, process.line.pid))
}

/// The processes without those of commands that were run in the member's container from outside, such as
/// questions whether it serves: what they are says nothing of the member.
///
/// Each of these was started from outside of the namespace, as the member's main process was, and later.
/// What they started is left out with them, as long as its parents are there.
#[must_use]
pub fn of_the_member(processes: Vec<Process>) -> Vec<Process> {
    let Some(main) = main_process(&processes).map(|main| main.line.pid) else { return processes };
    let parents: BTreeMap<u32, u32> =
        processes.iter().map(|process| (process.line.pid, process.parent)).collect();
    let is_beside = |pid: u32| {
        let mut at = pid;
        // Ids may be given anew while they are read, so that a circle could be seen.
        for _ in 0..=parents.len() {
            match parents.get(&at) {
                Some(0) => return at != main,
                Some(parent) => at = *parent,
                None => return false,
            }
        }
        false
    };
    processes.into_iter().filter(|process| !is_beside(process.line.pid)).collect()
}

/// Reads `/proc/<pid>/stat`. The name stands in parentheses and may hold any bytes, parentheses and spaces
/// too: it ends at the last one.
fn parse_stat(stat: &[u8]) -> Option<Process> {
    let open = stat.iter().position(|byte| *byte == b'(')?;
    let close = stat.iter().rposition(|byte| *byte == b')')?;
    let pid = std::str::from_utf8(stat.get(..open)?).ok()?.trim().parse().ok()?;
    let name = String::from_utf8_lossy(stat.get(open + 1..close)?).into_owned();
    let rest = std::str::from_utf8(stat.get(close + 1..)?).ok()?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    // The fields behind the name, from 0: state, parent, ..., start time.
    let state = fields.first()?.chars().next()?;
    let line = ProcessLine { pid, start_ticks: field(&fields, 19)?, state, name };
    Some(Process { line, parent: field(&fields, 1)? })
}

fn field<T: FromStr>(fields: &[&str], index: usize) -> Option<T> {
    fields.get(index)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "42 (a name) S 0 42 42 0 -1 4194560 100 0 0 0 1 2 0 0 20 0 5 0 123456 1000 100 \
                        18446744073709551615 1 1 0 0 0 0 0 4096 0 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 0";

    fn process(pid: u32, parent: u32, start_ticks: u64, state: char) -> Process {
        Process { line: ProcessLine { pid, start_ticks, state, name: "it".to_owned() }, parent }
    }

    #[test]
    fn a_stat_line_is_read() {
        let read = parse_stat(STAT.as_bytes()).expect("sound");
        let line = ProcessLine { pid: 42, start_ticks: 123_456, state: 'S', name: "a name".to_owned() };
        assert_eq!(read, Process { line, parent: 0 });
    }

    #[test]
    fn a_process_may_call_itself_anything() {
        for name in [&b") R 1"[..], b"(((", b"", b"\xff\n", b") (x"] {
            let stat = [&b"42 ("[..], name, &STAT.as_bytes()[10..]].concat();
            let read = parse_stat(&stat).expect("sound");
            assert_eq!((read.line.pid, read.line.state), (42, 'S'));
            assert_eq!(read.line.name, String::from_utf8_lossy(name));
        }
    }

    #[test]
    fn a_cut_off_line_is_no_process_and_no_panic() {
        let start_time = STAT.find("123456").expect("the last field that is read");
        for length in 0..start_time {
            assert_eq!(parse_stat(&STAT.as_bytes()[..length]), None, "of {length} bytes");
        }
        for strange in ["", ")(", "()", "x (y) z", "1 (y)"] {
            assert_eq!(parse_stat(strange.as_bytes()), None, "{strange}");
        }
    }

    #[test]
    fn the_main_process_came_first_from_outside() {
        let all = [
            process(7, 1, 5, 'S'),
            process(9, 0, 50, 'Z'),
            process(11, 0, 70, 'T'),
            process(12, 11, 70, 'S'),
            process(20, 0, 90, 'S'),
        ];
        assert_eq!(main_process(&all).map(|process| process.line.pid), Some(11));
        assert_eq!(main_process(&all[..1]).map(|process| process.line.pid), Some(7));
        assert_eq!(main_process(&all[1..2]), None);
    }

    #[test]
    fn commands_that_were_run_beside_a_member_are_not_of_it() {
        let all = vec![
            process(7, 1, 5, 'S'),
            process(11, 0, 70, 'T'),
            process(12, 11, 70, 'T'),
            process(20, 0, 90, 'S'),
            process(21, 20, 91, 'R'),
            process(22, 99, 91, 'R'),
        ];
        let of_it = |all| of_the_member(all).iter().map(|process| process.line.pid).collect::<Vec<_>>();
        assert_eq!(of_it(all.clone()), [7, 11, 12, 22]);
        assert_eq!(of_it(all[..1].to_vec()), [7]);
        let circle = vec![process(11, 0, 70, 'T'), process(30, 31, 90, 'S'), process(31, 30, 90, 'S')];
        assert_eq!(of_it(circle), [11, 30, 31]);
    }

    #[test]
    fn a_test_is_not_the_first_process_and_reaches_nobody() {
        assert!(matches!(OwnNamespace::of_this_process(), Err(ProcessError::NotFirst)));
    }
}
