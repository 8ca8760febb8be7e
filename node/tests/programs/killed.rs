//! Whoever is killed or stopped: a command and all that it started is ended before another can hold.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rustix::process::Signal;

use crate::place::{
    Place, Program, STUBBORN, child_of, read, runs, signal, signal_unless_gone, until, writes,
};

/// Starts a child, a child in a session of its own, an orphan, and a daemon. All write, as this does, and
/// none ends when it is asked to.
const FAMILY: &str = r#"
    W='trap "" TERM; while :; do echo "$NAME $TOKEN $$ $(date +%s%N)" >> "$LINES"; sleep 0.02; done'
    sh -c "$W" & setsid sh -c "$W" & (sh -c "$W" &); (setsid sh -c "$W" &); eval "$W""#;

/// How many write.
const MANY: usize = 5;

/// Whom a test kills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    Node,
    Outer,
    Inner,
}

fn writers(lines: &Path, name: &str) -> BTreeSet<i32> {
    read(lines).into_iter().filter(|line| line.0 == name).map(|line| line.2).collect()
}

/// Somebody who holds with such a family, and somebody who waits.
fn two(place: &Place, program: &[&str]) -> (Program, Program, BTreeSet<i32>) {
    let first = place.run("first", program, &["sh", "-c", FAMILY]);
    let family =
        until("all write", || Some(writers(&place.lines(), "first")).filter(|all| all.len() == MANY));
    let second = place.run("second", program, &["sh", "-c", STUBBORN]);
    place.says("second", "waiting behind");
    (first, second, family)
}

fn pids(program: &Program, victims: &[Who]) -> Vec<i32> {
    let [outer, inner] = program.guardians();
    let pid = |who: &Who| match who {
        Who::Node => program.pid(),
        Who::Outer => outer,
        Who::Inner => inner,
    };
    victims.iter().map(pid).collect()
}

/// Kills all of them before one can act on another's death.
fn kill_at_once(victims: &[i32]) {
    for pid in victims {
        signal(*pid, Signal::STOP);
    }
    for pid in victims {
        signal_unless_gone(*pid, Signal::KILL);
    }
}

/// That none of the family wrote behind the first line of the second, and that all of it is gone.
fn none_overlaps(lines: &Path, family: &BTreeSet<i32>, case: &str) {
    let second = writes(lines, "second");
    let all = read(lines);
    let last = all.iter().rev().find(|line| line.0 == "first").expect("it wrote");
    assert!(last.3 < second.3, "{case}: the first wrote {} ns behind the second", last.3 - second.3);
    assert!(last.1 < second.1, "{case}: tokens grow");
    for pid in family {
        assert!(!runs(*pid), "{case}: {pid} of the first goes on");
    }
}

#[test]
fn a_guardian_that_is_killed_is_a_loss_and_nothing_of_the_command_outlives_it() {
    for program in [&["elect", "/e", "--create"][..], &["lock", "/l"]] {
        for victims in [&[Who::Outer][..], &[Who::Inner], &[Who::Outer, Who::Inner]] {
            let place = Place::new();
            let (mut first, _second, family) = two(&place, program);
            kill_at_once(&pids(&first, victims));
            let case = format!("{program:?}, {victims:?}");
            assert_eq!(first.ends().code(), Some(75), "{case}");
            place.says("first", "the process that guards the command was killed");
            none_overlaps(&place.lines(), &family, &case);
        }
    }
}

#[test]
fn nothing_of_the_command_outlives_node_also_when_a_guardian_is_killed_with_it() {
    for victims in [&[Who::Node][..], &[Who::Node, Who::Outer], &[Who::Node, Who::Inner]] {
        let place = Place::new();
        let (first, _second, family) = two(&place, &["elect", "/e", "--create"]);
        kill_at_once(&pids(&first, victims));
        none_overlaps(&place.lines(), &family, &format!("{victims:?}"));
    }
}

#[test]
fn the_command_s_own_process_dies_also_when_node_and_both_guardians_are_killed_at_once() {
    let place = Place::new();
    let first = place.run("first", &["lock", "/l"], &["sh", "-c", STUBBORN]);
    let (_, _, command, _) = writes(&place.lines(), "first");
    kill_at_once(&pids(&first, &[Who::Node, Who::Outer, Who::Inner]));
    until("it is gone", || (!runs(command)).then_some(()));
}

#[test]
fn in_a_process_namespace_nothing_outlives_them_all() {
    let inside = ["unshare", "--pid", "--fork", "--kill-child", "--"];
    let may = std::process::Command::new(inside[0]).args(&inside[1..]).arg("true").status();
    if !may.is_ok_and(|status| status.success()) {
        // Only root makes one, and not in every container.
        return;
    }
    let place = Place::new();
    let first = place.run("first", &["lock", "/l"], &[&inside[..], &["sh", "-c", FAMILY]].concat());
    let all = until("all write", || Some(writers(&place.lines(), "first")).filter(|all| all.len() == MANY));
    let unshare = child_of(first.guardians()[1]);
    let init = child_of(unshare);
    kill_at_once(&pids(&first, &[Who::Node, Who::Outer, Who::Inner]));
    until("its first process is gone, and with it all", || (!runs(init)).then_some(()));
    assert_eq!(all.len(), MANY);
}

#[test]
fn a_guardian_that_is_stopped_does_not_keep_the_command_alive() {
    for stopped in [&[Who::Outer][..], &[Who::Inner], &[Who::Outer, Who::Inner]] {
        let place = Place::new();
        let (mut first, _second, family) = two(&place, &["elect", "/e", "--create"]);
        for pid in pids(&first, stopped) {
            signal(pid, Signal::STOP);
        }
        first.signal(Signal::TERM);
        assert_eq!(first.ends().code(), Some(143), "{stopped:?}");
        none_overlaps(&place.lines(), &family, &format!("{stopped:?}"));
    }
}

#[test]
fn a_command_is_ended_in_time_when_node_and_a_guardian_are_stopped() {
    for stopped in [[Who::Node, Who::Outer], [Who::Node, Who::Inner]] {
        let place = Place::new();
        let (first, _second, family) = two(&place, &["elect", "/e", "--create"]);
        let stopped_pids = pids(&first, &stopped);
        for pid in &stopped_pids {
            signal(*pid, Signal::STOP);
        }
        none_overlaps(&place.lines(), &family, &format!("{stopped:?}"));
        for pid in &stopped_pids {
            signal_unless_gone(*pid, Signal::CONT);
        }
    }
}

#[test]
fn guardians_are_not_hit_by_what_is_meant_for_node() {
    let place = Place::new();
    let mut first = place.run("first", &["lock", "/l"], &["sh", "-c", STUBBORN]);
    writes(&place.lines(), "first");
    for guardian in first.guardians() {
        let name = std::fs::read_to_string(format!("/proc/{guardian}/comm")).expect("a process");
        assert_eq!(name, "guardian\n", "so that killall node does not kill it");
        for with in [Signal::TERM, Signal::INT, Signal::HUP] {
            signal(guardian, with);
        }
    }
    let written = read(&place.lines()).len();
    until("the command goes on", || (read(&place.lines()).len() > written + 5).then_some(()));
    first.signal(Signal::TERM);
    assert_eq!(first.ends().code(), Some(143));
}

#[test]
fn what_a_command_leaves_behind_ends_with_it() {
    let place = Place::new();
    let leaves = format!("{FAMILY_BEHIND}; exit 3");
    let mut program = place.run("first", &["lock", "/l"], &["sh", "-c", &leaves]);
    assert_eq!(program.ends().code(), Some(3), "as the command says");
    let left = writers(&place.lines(), "first");
    assert_eq!(left.len(), 2);
    assert!(left.iter().all(|pid| !runs(*pid)), "they are gone when the lock is free");
}

/// Leaves an orphan and a daemon behind, once both wrote.
const FAMILY_BEHIND: &str = r#"
    W='trap "" TERM; while :; do echo "$NAME $TOKEN $$ $(date +%s%N)" >> "$LINES"; sleep 0.02; done'
    (sh -c "$W" &); (setsid sh -c "$W" &)
    until test "$(cut -d" " -f3 "$LINES" 2>/dev/null | sort -u | wc -l)" = 2; do sleep 0.02; done"#;

#[test]
fn a_standby_whose_guardian_is_killed_is_fenced_by_the_next() {
    let place = Place::new();
    let fenced: PathBuf = place.folder.path().join("fenced");
    let fence = format!("echo \"$FENCE_DATA\" >> {}", fenced.display());
    let standby = |name| {
        let program = ["standby", "/jobs", "--data", name, "--fence", &fence];
        place.run(name, &program, &["sh", "-c", FAMILY])
    };
    let mut first = standby("first");
    let family =
        until("all write", || Some(writers(&place.lines(), "first")).filter(|all| all.len() == MANY));
    let _second = standby("second");
    place.says("second", "standing by: first is active");
    signal(first.guardians()[0], Signal::KILL);
    assert_eq!(first.ends().code(), Some(75));
    place.says("first", "the process that guards the command was killed");
    none_overlaps(&place.lines(), &family, "standby");
    assert_eq!(std::fs::read_to_string(&fenced).expect("it was fenced"), "first\n");
}
