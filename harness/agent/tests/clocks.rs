//! Clocks of processes in a namespace, shifted by the namespace's first process, which also buries the dead.

mod support;

use harness_agent::protocol::{ClockReading, Command, Outcome, Shifted, SignalName};
use support::{Agent, CAPABILITIES, has_setpriv, must, not_permitted, until};

const HOUR_NS: i64 = 3_600_000_000_000;
const HOUR_MS: i128 = 3_600_000;
/// How far a shifted clock may be off: the time that it takes to ask for it, on a busy machine.
const TOLERANCE_MS: i128 = 5_000;

fn shift(agent: &mut Agent, offset_ns: i64) -> Shifted {
    match agent.ask(Command::ShiftClock { offset_ns }) {
        Outcome::Shifted(shifted) => shifted,
        other => panic!("not shifted: {other:?}"),
    }
}

fn read(agent: &mut Agent) -> ClockReading {
    match agent.ask(Command::ReadClock) {
        Outcome::Clock(reading) => reading,
        other => panic!("not read: {other:?}"),
    }
}

fn is_off_by(reading: ClockReading, offset_ns: i64) -> bool {
    reading.offset_ns.abs_diff(offset_ns) <= reading.error_ns
}

/// An agent where clocks can be shifted, or the reason why not.
fn agent() -> Option<Agent> {
    if not_permitted().is_some() {
        return None;
    }
    let mut agent = Agent::start();
    match agent.ask(Command::TryClock) {
        Outcome::Done(_) => Some(agent),
        other => {
            eprintln!("skipped: clocks can't be shifted here: {other:?}");
            None
        }
    }
}

#[test]
fn a_trial_leaves_nobody_behind() {
    let Some(mut agent) = agent() else { return };
    assert_eq!(agent.processes(), []);
    assert_eq!(shift(&mut agent, HOUR_NS), Shifted::default());
    let why = agent.failure(Command::ReadClock);
    assert!(why.contains("no process runs here"), "{why}");
}

#[test]
fn a_members_clock_is_shifted_read_and_restored() {
    let Some(mut agent) = agent() else { return };
    let mut member = agent.member();
    assert!(member.ahead_ms().abs() < TOLERANCE_MS);
    for offset_ns in [HOUR_NS, -2 * HOUR_NS, 0] {
        assert_eq!(shift(&mut agent, offset_ns).processes, 1);
        let reading = read(&mut agent);
        assert!(is_off_by(reading, offset_ns), "{reading:?} instead of {offset_ns}");
        let offset_ms = i128::from(offset_ns / HOUR_NS) * HOUR_MS;
        let ahead_ms = member.ahead_ms();
        assert!((ahead_ms - offset_ms).abs() < TOLERANCE_MS, "{ahead_ms} ms instead of {offset_ms}");
    }
}

#[test]
fn three_capabilities_reach_the_clock_of_another_users_process() {
    if agent().is_none() || !has_setpriv() {
        return;
    }
    let mut agent = Agent::start_with(CAPABILITIES);
    assert_eq!(agent.ask(Command::TryClock), Outcome::Done(Vec::new()));
    let mut command = agent.enter();
    command.args(["setpriv", "--reuid=12345", "--bounding-set=-all", "--no-new-privs", "sleep", "1000"]);
    let mut member = command.spawn().expect("it can be run");
    until("the member", || agent.processes().iter().any(|process| process.name == "sleep").then_some(()));
    for offset_ns in [HOUR_NS, 0] {
        assert_eq!(shift(&mut agent, offset_ns).processes, 1);
        let reading = read(&mut agent);
        assert!(is_off_by(reading, offset_ns), "{reading:?} instead of {offset_ns}");
    }
    assert_eq!(agent.ask(Command::Stop), Outcome::Done(Vec::new()));
    member.wait().expect("a child");
}

#[test]
fn silence_restores_clocks() {
    let Some(mut agent) = agent() else { return };
    let mut member = agent.member();
    assert_eq!(member.ask("what"), "what?");
    shift(&mut agent, HOUR_NS);
    assert!(member.ahead_ms() > TOLERANCE_MS);
    agent.renew(false);
    assert!(agent.notice().contains("everything was healed"));
    until("the clock to be restored", || (member.ahead_ms().abs() < TOLERANCE_MS).then_some(()));
}

#[test]
fn burying_orphans_and_shifting_clocks_do_not_disturb_each_other() {
    let Some(mut agent) = agent() else { return };
    let pid = agent.pid.to_string();
    let inside = |script: &str| must("nsenter", &["-t", &pid, "-n", "-p", "-m", "sh", "-c", script]);
    // An orphan is a child of the agent, whose stops a careless reaper would take.
    inside("sleep 1000 > /dev/null 2>&1 &");
    let storm = "(i=0; while [ $i -lt 300 ]; do (true &) ; i=$((i+1)); done) > /dev/null 2>&1 &";
    inside(storm);
    for round in 0..40 {
        let offset_ns = if round % 2 == 0 { HOUR_NS } else { 0 };
        assert!(shift(&mut agent, offset_ns).processes >= 1);
        let reading = read(&mut agent);
        assert!(is_off_by(reading, offset_ns), "{reading:?} instead of {offset_ns}");
    }
    until("the storm to be over", || {
        let processes = agent.processes();
        (processes.len() == 1 && processes[0].name == "sleep").then_some(())
    });
    assert_eq!(agent.ask(Command::Signal { signal: SignalName::Kill }), Outcome::Done(Vec::new()));
    until("the last one to be buried", || agent.processes().is_empty().then_some(()));
}

#[test]
fn a_stopped_member_has_a_clock_too() {
    let Some(mut agent) = agent() else { return };
    let mut member = agent.member();
    assert_eq!(member.ask("what"), "what?");
    let stopped = Command::Signal { signal: SignalName::Stop };
    assert_eq!(agent.ask(stopped), Outcome::Done(Vec::new()));
    assert_eq!(shift(&mut agent, HOUR_NS).processes, 1);
    // Whoever was held for it takes a moment to find out that it is still stopped.
    until("it to be stopped again", || {
        agent.processes().iter().all(|process| process.state == 'T').then_some(())
    });
    let going = Command::Signal { signal: SignalName::Continue };
    assert_eq!(agent.ask(going), Outcome::Done(Vec::new()));
    assert!(member.ahead_ms() > TOLERANCE_MS);
}
