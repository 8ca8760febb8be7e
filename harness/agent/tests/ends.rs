//! How faults end by themselves: silence, a closed input, signals, death; and what reaches processes.

mod support;

use std::fs;
use std::time::{Duration, Instant};

use harness_agent::protocol::{Command, END_MS, LEASE_MS, Outcome, Refusal, SignalName};
use support::{
    Agent, CAPABILITIES, Held, MEMBER_PORT, Room, connect, has_nft, has_setpriv, must, not_permitted, until,
};

const DONE: Outcome = Outcome::Done(Vec::new());

fn cut(from: u64) -> Command {
    Command::Cut { fault: "a".to_owned(), from: vec![from], refusal: Refusal::Silence }
}

fn signal(signal: SignalName) -> Command {
    Command::Signal { signal }
}

#[test]
fn silence_heals_everything_and_then_ends_everybody() {
    if not_permitted().is_some() {
        return;
    }
    let mut room = Room::of(2, false);
    let mut member = room.agent(1).member();
    assert_eq!(member.ask(&format!("listen 10.77.0.1:{MEMBER_PORT}")), "listening");
    let mut client = room.agent(2).member();
    room.agent(1).counts(cut(2));
    assert_eq!(room.agent(1).ask(signal(SignalName::Stop)), DONE);
    room.agent(1).renew(false);
    let silent = Instant::now();
    let notice = room.agent(1).notice();
    assert!(notice.contains("everything was healed"), "{notice}");
    let healed = silent.elapsed();
    assert!(healed >= Duration::from_millis(LEASE_MS - 1_000), "after {healed:?}: too early");
    assert_eq!(client.ask(&format!("dial 10.77.0.1:{MEMBER_PORT} 10000")), "connected");
    assert_eq!(client.ask("say 10000"), "echo", "it was let go on");
    member.ended();
    let ended = silent.elapsed();
    assert!(ended >= Duration::from_millis(END_MS - 1_000), "after {ended:?}: too early");
    assert!(!room.agent(1).ended(), "being left alone is a failure");
}

#[test]
fn a_harness_that_comes_back_finds_the_agent_healed_and_ready() {
    if not_permitted().is_some() {
        return;
    }
    let mut room = Room::of(2, false);
    room.agent(1).counts(cut(2));
    room.agent(1).renew(false);
    room.agent(1).notice();
    room.agent(1).renew(true);
    assert_eq!(room.unreached(), []);
    room.agent(1).counts(cut(2));
    assert_eq!(room.unreached(), [(2, 1)]);
}

#[test]
fn an_agent_that_was_held_does_not_blame_the_harness() {
    if not_permitted().is_some() {
        return;
    }
    let mut room = Room::of(2, false);
    room.agent(1).counts(cut(2));
    room.agent(1).renew(false);
    let pid = room.agent(1).pid.to_string();
    must("kill", &["-STOP", &pid]);
    let held = Instant::now();
    until("the lease to be over, if it were judged", || {
        // The other one must not be left alone meanwhile; asking it takes time as well.
        room.agent(2).arrivals(1_000_000);
        (held.elapsed() > Duration::from_millis(LEASE_MS + 1_000)).then_some(())
    });
    must("kill", &["-CONT", &pid]);
    assert_eq!(room.unreached(), [(2, 1)], "the cut is still in force");
}

#[test]
fn an_agent_whose_answers_nobody_reads_heals_all_the_same() {
    if not_permitted().is_some() {
        return;
    }
    let switch = Held::network("ip link add br0 type bridge mcast_snooping 0 && ip link set br0 up");
    let networks = [Held::network("true"), Held::network("true")];
    connect(&switch, networks[0].pid(), 1);
    connect(&switch, networks[1].pid(), 2);
    let mut deaf = Agent::start_in(&networks[0], false);
    let mut other = Agent::start_in(&networks[1], true);
    other.processes();
    let hello = Command::Hello {
        run: "r".to_owned(),
        own: 1,
        peers: vec![(2, [10, 77, 0, 2].into())],
        probe_port: 7001,
        control_port: 7002,
        peer_ports: vec![MEMBER_PORT],
    };
    let mut server = deaf.member();
    assert_eq!(server.ask(&format!("listen 10.77.0.1:{MEMBER_PORT}")), "listening");
    deaf.tell(hello);
    deaf.tell(cut(2));
    for _ in 0..5_000 {
        deaf.tell(Command::Counters);
    }
    let mut client = other.member();
    let dial = format!("dial 10.77.0.1:{MEMBER_PORT} 200");
    until("the cut", || (client.ask(&dial) == "timeout").then_some(()));
    deaf.renew(false);
    until("the healing", || (client.ask(&dial) == "connected").then_some(()));
    server.ended();
    deaf.ended();
}

#[test]
fn whatever_ends_the_agent_no_rule_stays() {
    if not_permitted().is_some() || !has_nft() {
        return;
    }
    type End = fn(&mut Agent);
    let ways: [(&str, End); 4] = [
        ("stop", |agent| assert_eq!(agent.ask(Command::Stop), DONE)),
        ("a closed input", Agent::fall_away),
        ("SIGTERM", |agent| drop(must("kill", &["-TERM", &agent.pid.to_string()]))),
        ("SIGKILL", |agent| drop(must("kill", &["-KILL", &agent.pid.to_string()]))),
    ];
    for (way, end) in ways {
        let network = Held::network("ip link set lo up");
        let mut agent = Agent::start_in(&network, true);
        agent.hello(1, vec![(2, [10, 0, 0, 2].into())]);
        agent.counts(cut(2));
        assert!(network.run("nft list ruleset").contains("chain fault-a"));
        let mut member = agent.member();
        assert_eq!(member.ask("what"), "what?");
        end(&mut agent);
        let well = agent.ended();
        assert!(well || way == "SIGKILL", "{way}");
        member.ended();
        until("the table to go", || network.run("nft list ruleset").trim().is_empty().then_some(()));
    }
}

#[test]
fn signals_reach_everybody_but_the_agent_and_orphans_are_buried() {
    if not_permitted().is_some() {
        return;
    }
    let mut agent = Agent::start();
    assert_eq!(agent.processes(), []);
    assert_eq!(agent.ask(signal(SignalName::Term)), DONE, "nobody to signal is no error");
    let mut member = agent.member();
    assert_eq!(member.ask("what"), "what?");
    // Its parent ends at once: it is the agent's now.
    must("nsenter", &["-t", &agent.pid.to_string(), "-p", "-m", "sh", "-c", "sleep 1000 > /dev/null 2>&1 &"]);
    let states = |agent: &mut Agent| -> Vec<(String, char)> {
        agent.processes().into_iter().map(|process| (process.name, process.state)).collect()
    };
    let named = |states: &[(String, char)], state: char| {
        states.len() == 2
            && ["member", "sleep"].iter().all(|name| states.contains(&((*name).to_owned(), state)))
    };
    until("both", || named(&states(&mut agent), 'S').then_some(()));
    assert_eq!(agent.ask(signal(SignalName::Stop)), DONE);
    until("both to stop", || named(&states(&mut agent), 'T').then_some(()));
    assert_eq!(agent.ask(signal(SignalName::Continue)), DONE);
    until("both to go on", || named(&states(&mut agent), 'S').then_some(()));
    assert_eq!(agent.ask(signal(SignalName::Kill)), DONE);
    until("both to be gone and buried", || states(&mut agent).is_empty().then_some(()));
    member.ended();
}

#[test]
fn a_storm_of_orphans_leaves_no_dead() {
    if not_permitted().is_some() {
        return;
    }
    let mut agent = Agent::start();
    agent.processes();
    let script = "i=0; while [ $i -lt 200 ]; do (true &) ; i=$((i+1)); done";
    must("nsenter", &["-t", &agent.pid.to_string(), "-p", "-m", "sh", "-c", script]);
    until("an empty namespace", || agent.processes().is_empty().then_some(()));
}

#[test]
fn three_capabilities_are_enough_and_without_net_admin_it_says_so() {
    if not_permitted().is_some() || !has_setpriv() {
        return;
    }
    let hello = Command::Hello {
        run: "r".to_owned(),
        own: 1,
        peers: vec![(2, [10, 0, 0, 2].into())],
        probe_port: 7001,
        control_port: 7002,
        peer_ports: vec![],
    };
    let mut poor = Agent::start_with("+sys_ptrace,+kill");
    let why = poor.failure(hello.clone());
    assert!(why.contains("NET_ADMIN"), "{why}");
    let mut agent = Agent::start_with(CAPABILITIES);
    agent.counts(hello);
    agent.counts(cut(2));
    let status = fs::read_to_string(format!("/proc/{}/status", agent.pid)).expect("it lives");
    assert!(status.contains("CapEff:\t0000000000081020"), "{status}");
    // A member of another user, as most are.
    let mut member = agent.enter();
    let mut member =
        member.args(["setpriv", "--reuid=12345", "sleep", "1000"]).spawn().expect("it can be run");
    until("the member", || agent.processes().iter().any(|process| process.name == "sleep").then_some(()));
    assert_eq!(agent.ask(signal(SignalName::Kill)), DONE);
    member.wait().expect("a child");
    assert_eq!(agent.ask(Command::Stop), DONE);
    assert!(agent.ended());
}

#[test]
fn hostile_lines_are_answered_or_noted_and_change_nothing() {
    if not_permitted().is_some() {
        return;
    }
    let mut agent = Agent::start();
    agent.tell_raw(b"\xff\xfe\n\n{}\n[]\n{\"id\":-1}\n");
    agent.tell_raw(&[b'x'; 200_000]);
    agent.tell_raw(b"\n{\"id\":77,\"cmd\":\"explode\"}\n");
    let Outcome::Failed(why) = agent.answer(77) else { panic!("it is no command") };
    assert!(why.contains("explode"), "{why}");
    let why = agent.failure(Command::Counters);
    assert!(why.contains("say hello first"), "{why}");
    let notices: Vec<String> = (0..5).map(|_| agent.notice()).collect();
    assert!(notices.iter().any(|notice| notice.contains("65536 bytes")), "{notices:?}");
    agent.hello(1, vec![]);
    let why = agent.failure(Command::Hello {
        run: "again".to_owned(),
        own: 1,
        peers: vec![],
        probe_port: 7001,
        control_port: 7002,
        peer_ports: vec![],
    });
    assert!(why.contains("before"), "{why}");
    assert_eq!(agent.arrivals(1), []);
}
