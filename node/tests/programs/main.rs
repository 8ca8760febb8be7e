//! `node elect`, `node lock` and `node standby`, as somebody at a shell uses them.

mod active;
mod killed;
#[path = "../ensemble/members.rs"]
#[allow(dead_code, reason = "what other tests look at")]
mod members;
mod place;
mod words;

use std::time::{Duration, Instant};

use place::{Place, STUBBORN, handed_over, runs, two, until, writes};
use rustix::process::Signal;

#[test]
fn exit_statuses_are_those_of_the_command_and_five_more() {
    let place = Place::new();
    assert_eq!(place.status(&["elect", "/none"], &["true"]), Some(125), "no such resource");
    assert_eq!(place.status(&["elect", "/e", "--create"], &["sh", "-c", "exit 7"]), Some(7));
    assert_eq!(place.status(&["lock", "/l"], &["sh", "-c", "kill -INT $$"]), Some(130));
    assert_eq!(place.status(&["lock", "/l"], &["/nonesuch"]), Some(127));
    assert_eq!(place.status(&["lock", "/l"], &["/"]), Some(126));
    let _held = place.run("held", &["lock", "/l"], &["sh", "-c", STUBBORN]);
    writes(&place.lines(), "held");
    assert_eq!(place.status(&["lock", "/l", "--wait", "0s"], &["true"]), Some(124));
    assert_eq!(place.status(&["lock", "/free", "--wait", "0s"], &["true"]), Some(0));
}

#[test]
fn a_command_is_ended_before_another_leads_when_its_program_is_stopped() {
    let place = Place::new();
    let (first, _second) = two(&place);
    first.signal(Signal::STOP);
    handed_over(&place);
    first.signal(Signal::CONT);
}

#[test]
fn a_command_is_ended_at_once_when_its_program_is_killed() {
    let place = Place::new();
    let (mut first, _second) = two(&place);
    first.signal(Signal::KILL);
    first.ends();
    handed_over(&place);
}

#[test]
fn a_command_is_ended_and_its_place_given_up_when_its_program_is_told_to_end() {
    let place = Place::new();
    let (mut first, _second) = two(&place);
    let told = Instant::now();
    first.signal(Signal::TERM);
    assert_eq!(first.ends().code(), Some(143));
    handed_over(&place);
    assert!(told.elapsed() < Duration::from_secs(4), "nobody waits for a session's end");
}

#[test]
fn a_lost_ensemble_ends_the_command_of_a_lock_with_75() {
    let mut place = Place::new();
    let mut program = place.run("held", &["lock", "/l"], &["sh", "-c", STUBBORN]);
    writes(&place.lines(), "held");
    place.ensemble.stop(1);
    let (_, _, process, _) = writes(&place.lines(), "held");
    until("the command ends without an ensemble", || (!runs(process)).then_some(()));
    place.ensemble.start_again(1);
    assert_eq!(program.ends().code(), Some(75));
}

#[test]
fn a_standby_fences_the_one_that_was_active_and_did_not_say_good_bye() {
    let place = Place::new();
    let fenced = place.folder.path().join("fenced");
    let fence = format!("echo \"$FENCE_DATA\" >> {}", fenced.display());
    let standby = |name| {
        let program = ["standby", "/jobs", "--data", name, "--fence", &fence];
        place.run(name, &program, &["sh", "-c", STUBBORN])
    };
    let mut first = standby("first");
    writes(&place.lines(), "first");
    let mut second = standby("second");
    first.signal(Signal::KILL);
    first.ends();
    handed_over(&place);
    assert_eq!(std::fs::read_to_string(&fenced).expect("it was fenced"), "first\n");

    // One that ends well need not be fenced.
    second.signal(Signal::TERM);
    assert_eq!(second.ends().code(), Some(143));
    let _third = standby("third");
    writes(&place.lines(), "third");
    assert_eq!(std::fs::read_to_string(&fenced).expect("it was fenced"), "first\n");
}
