//! All that a process started: its descendants, whatever group or session they moved to.
//!
//! A process that called [`adopt`] becomes the parent of each descendant whose own parent ends (Linux:
//! `PR_SET_CHILD_SUBREAPER`). So nothing that was started below it gets away from it by a double fork or by
//! `setsid`, and when it has no child left, nothing of what was started is left.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper, waitpid};

/// A process, as `/proc` tells of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Process {
    /// Its number.
    pub(super) pid: Pid,
    /// The number of its parent.
    parent: i32,
    /// The number of its process group.
    pub(super) group: i32,
    /// It ended, and its parent has not asked how.
    is_zombie: bool,
}

/// From now on this process is the parent of all below it whose parents end.
///
/// # Errors
/// When the system refuses.
pub(super) fn adopt() -> io::Result<()> {
    Ok(set_child_subreaper(Some(getpid()))?)
}

/// A line of `/proc/PID/stat`. The name in it may hold anything, also parentheses and spaces.
fn parse(stat: &str) -> Option<Process> {
    let (pid, _) = stat.split_once(' ')?;
    let (_, behind_name) = stat.rsplit_once(") ")?;
    let mut words = behind_name.split(' ');
    let state = words.next()?;
    let parent = words.next()?.parse().ok()?;
    let group = words.next()?.parse().ok()?;
    let pid = Pid::from_raw(pid.parse().ok()?)?;
    Some(Process { pid, parent, group, is_zombie: matches!(state, "Z" | "X") })
}

/// All processes that can be seen.
fn all() -> io::Result<Vec<Process>> {
    let mut processes = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        let name = entry?.file_name();
        if !name.as_encoded_bytes().first().is_some_and(u8::is_ascii_digit) {
            continue;
        }
        // One that is gone meanwhile has no file any more. A name need not be text.
        if let Ok(stat) = std::fs::read(Path::new("/proc").join(name).join("stat")) {
            processes.extend(parse(&String::from_utf8_lossy(&stat)));
        }
    }
    Ok(processes)
}

/// Of these, all below one, but none of the spared and nothing below them.
fn below(root: Pid, spared: &[u32], processes: &[Process]) -> Vec<Process> {
    let mut children: BTreeMap<i32, Vec<Process>> = BTreeMap::new();
    for process in processes {
        children.entry(process.parent).or_default().push(*process);
    }
    let mut found = Vec::new();
    let mut open = vec![root.as_raw_nonzero().get()];
    while let Some(parent) = open.pop() {
        for child in children.remove(&parent).unwrap_or_default() {
            let pid = child.pid.as_raw_nonzero().get();
            if !spared.iter().any(|spared| i32::try_from(*spared) == Ok(pid)) {
                open.push(pid);
                found.push(child);
            }
        }
    }
    found
}

/// The living descendants of this process.
///
/// # Errors
/// When `/proc` can't be read.
pub(super) fn descendants() -> io::Result<Vec<Process>> {
    let mut found = below(getpid(), &[], &all()?);
    found.retain(|process| !process.is_zombie);
    Ok(found)
}

/// Kills all descendants of this process but the spared and what is below those, and takes the exit statuses
/// of those that ended. Gives those that were alive: when there are none, nothing is left.
///
/// # Errors
/// When `/proc` can't be read.
pub(super) fn sweep(spared: &[u32]) -> io::Result<Vec<Process>> {
    let (dead, living): (Vec<Process>, Vec<Process>) =
        below(getpid(), spared, &all()?).into_iter().partition(|process| process.is_zombie);
    for process in &living {
        // One that is gone meanwhile needs no signal; one that may not be killed is seen again.
        let _ = kill_process(process.pid, Signal::KILL);
    }
    for process in dead {
        // Only a child of this process can be asked, and only once.
        let _ = waitpid(Some(process.pid), WaitOptions::NOHANG);
    }
    Ok(living)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: i32, parent: i32) -> Process {
        Process { pid: Pid::from_raw(pid).expect("not zero"), parent, group: pid, is_zombie: false }
    }

    #[test]
    fn a_process_is_read_whatever_its_name_is() {
        for name in ["sh", "a b", "x) S 1 (y", ") ", ""] {
            let line = format!("7 ({name}) S 3 5 5 0 -1 4194560");
            assert_eq!(parse(&line), Some(Process { group: 5, ..process(7, 3) }), "{name}");
        }
        assert!(parse("7 (sh) Z 3 5 5").expect("a process").is_zombie);
        for bad in ["", "7", "7 (sh)", "7 (sh) S", "7 (sh) S x 5", "0 (sh) S 3 5"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn descendants_are_found_at_any_depth_and_the_spared_keep_their_own() {
        let all = [process(9, 8), process(2, 1), process(3, 2), process(8, 2), process(4, 3), process(5, 1)];
        let pids = |spared: &[u32]| {
            let found = below(Pid::from_raw(2).expect("not zero"), spared, &all);
            let mut pids: Vec<i32> = found.iter().map(|it| it.pid.as_raw_nonzero().get()).collect();
            pids.sort_unstable();
            pids
        };
        assert_eq!(pids(&[]), [3, 4, 8, 9]);
        assert_eq!(pids(&[8]), [3, 4]);
        assert_eq!(pids(&[9]), [3, 4, 8]);
    }
}
