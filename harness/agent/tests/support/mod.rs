//! Members in namespaces of their own, agents as their first processes, a switch between them.
//!
//! Nothing has a name on the machine: namespaces live as long as their processes, links as long as their
//! namespaces, and every process ends when its standard input is closed or the test is. So a test that fails,
//! or is killed, leaves nothing behind.

#![allow(dead_code)] // Each test file uses another part of it.

use std::collections::VecDeque;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command as Process, Stdio};
use std::str::FromStr;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use harness_agent::protocol::{
    Arrival, Command, Line, Outcome, Peer, PeerCount, ProcessLine, RENEWAL_MS, Request,
};

/// How long anything may take before a test gives up.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
pub(crate) const PROBE_PORT: u16 = 7001;
pub(crate) const CONTROL_PORT: u16 = 7002;
/// All that an agent may do in its container, as `setpriv` names it.
pub(crate) const CAPABILITIES: &str = "+net_admin,+sys_ptrace,+kill";
/// The port at which members listen for each other.
pub(crate) const MEMBER_PORT: u16 = 2888;

/// Why tests with namespaces can't run here; printed once for each test that is skipped.
pub(crate) fn not_permitted() -> Option<String> {
    let tried = Process::new("unshare").args(["-n", "-p", "-f", "--mount-proc", "true"]).output();
    let why = match tried {
        Err(error) => format!("unshare can't be run: {error}"),
        Ok(output) if !output.status.success() => {
            format!("no namespaces can be made: {}", String::from_utf8_lossy(&output.stderr).trim())
        }
        Ok(_) => match Process::new("ip").arg("-V").output() {
            Err(error) => format!("ip can't be run: {error}"),
            Ok(_) => return None,
        },
    };
    let why = format!("skipped: {why}");
    eprintln!("{why}");
    Some(why)
}

/// Whether `nft` is here to look from outside.
pub(crate) fn has_nft() -> bool {
    Process::new("nft").arg("--version").output().is_ok_and(|output| output.status.success())
}

/// Whether `setpriv` is here to take rights away.
pub(crate) fn has_setpriv() -> bool {
    Process::new("setpriv").arg("--version").output().is_ok_and(|output| output.status.success())
}

/// An example of this package, made when it is not there yet.
pub(crate) fn example(name: &str) -> PathBuf {
    static MADE: OnceLock<()> = OnceLock::new();
    let own = std::env::current_exe().expect("a test has a path");
    let folder = own.parent().and_then(Path::parent).expect("deps is in a profile's folder").join("examples");
    MADE.get_or_init(|| {
        if !["agent", "member"].iter().all(|name| folder.join(name).exists()) {
            let made =
                Process::new(env!("CARGO")).args(["build", "-p", "harness-agent", "--examples"]).status();
            assert!(made.expect("cargo can be run").success(), "the examples can be built");
        }
    });
    let path = folder.join(name);
    assert!(path.exists(), "run `cargo build -p harness-agent --examples` in this profile first");
    path
}

/// Runs a command that must succeed.
pub(crate) fn must(program: &str, arguments: &[&str]) -> String {
    let output = Process::new(program).args(arguments).output().expect("it can be run");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {error}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Looks until it is so.
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        thread::yield_now();
    }
}

/// The only child of a process.
pub(crate) fn child_of(pid: u32) -> u32 {
    let path = format!("/proc/{pid}/task/{pid}/children");
    until("a child", || fs::read_to_string(&path).ok()?.split_ascii_whitespace().next()?.parse().ok())
}

/// A process that lives until its input is closed or it is dropped.
pub(crate) struct Held {
    child: Child,
}

impl Held {
    /// A network namespace with nothing in it but `setup`, run by a shell.
    pub(crate) fn network(setup: &str) -> Self {
        let script = format!("{setup} && echo ready && read -r end");
        let mut command = Process::new("unshare");
        command.args(["-n", "sh", "-c", &script]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("unshare can be run");
        let mut line = String::new();
        let stdout = child.stdout.as_mut().expect("piped");
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        assert_eq!(line.trim(), "ready", "{setup}");
        Self { child }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Runs a command in this network namespace.
    pub(crate) fn run(&self, command: &str) -> String {
        must("nsenter", &["-t", &self.pid().to_string(), "-n", "sh", "-c", command])
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An agent, driven through its pipes.
pub(crate) struct Agent {
    child: Child,
    /// The agent's process id, seen from here.
    pub(crate) pid: u32,
    input: Arc<Mutex<Option<ChildStdin>>>,
    lines: Receiver<Line>,
    /// Answers that came before they were asked for.
    answers: VecDeque<(u64, Outcome)>,
    notices: VecDeque<String>,
    next: u64,
    /// Dropped, it ends the renewals.
    renewals: Option<Sender<()>>,
}

impl Agent {
    /// As process 1 of new namespaces.
    pub(crate) fn start() -> Self {
        let agent = example("agent");
        let mut command = Process::new("unshare");
        command.args(["-n", "-p", "-f", "--mount-proc", "--kill-child"]).arg(agent);
        Self::spawn(command, true)
    }

    /// As process 1 of new namespaces, with these rights and no others.
    pub(crate) fn start_with(capabilities: &str) -> Self {
        let mut command = Process::new("unshare");
        command.args(["-n", "-p", "-f", "--mount-proc", "--kill-child", "setpriv"]);
        command.arg(format!("--bounding-set=-all,{capabilities}")).arg("--no-new-privs");
        command.arg(example("agent"));
        Self::spawn(command, true)
    }

    /// As process 1 of a new process namespace, in the network of another process.
    pub(crate) fn start_in(network: &Held, read_output: bool) -> Self {
        let agent = example("agent");
        let mut command = Process::new("nsenter");
        command.args(["-t", &network.pid().to_string(), "-n"]);
        command.args(["unshare", "-p", "-f", "--mount-proc", "--kill-child"]).arg(agent);
        Self::spawn(command, read_output)
    }

    /// With a command that starts `unshare`, which forks the agent.
    pub(crate) fn spawn(mut command: Process, read_output: bool) -> Self {
        // Some versions of unshare complain about a signal mask; what matters is said on standard output.
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("it can be run");
        let input = Arc::new(Mutex::new(child.stdin.take()));
        let (tell, lines) = mpsc::channel();
        if read_output {
            let output = child.stdout.take().expect("piped");
            thread::spawn(move || read(output, &tell));
        }
        let pid = child_of(child.id());
        let mut agent = Self {
            child,
            pid,
            input,
            lines,
            answers: VecDeque::new(),
            notices: VecDeque::new(),
            next: 1,
            renewals: None,
        };
        agent.renew(true);
        agent
    }

    /// Renews the lease from now on, or no more.
    pub(crate) fn renew(&mut self, renew: bool) {
        self.renewals = None;
        if !renew {
            return;
        }
        let (keep, kept) = mpsc::channel::<()>();
        self.renewals = Some(keep);
        let input = Arc::clone(&self.input);
        thread::spawn(move || {
            let rhythm = Duration::from_millis(RENEWAL_MS);
            while kept.recv_timeout(rhythm) == Err(RecvTimeoutError::Timeout) {
                write(&input, &Request { id: 0, command: Command::Renew });
            }
        });
    }

    pub(crate) fn tell(&mut self, command: Command) -> u64 {
        let id = self.next;
        self.next += 1;
        write(&self.input, &Request { id, command });
        id
    }

    /// Writes bytes as they are.
    pub(crate) fn tell_raw(&mut self, bytes: &[u8]) {
        let mut input = self.input.lock().expect("unpoisoned");
        let _ = input.as_mut().expect("open").write_all(bytes);
    }

    pub(crate) fn ask(&mut self, command: Command) -> Outcome {
        let id = self.tell(command);
        self.answer(id)
    }

    /// The answer to a request, however many others come before.
    pub(crate) fn answer(&mut self, id: u64) -> Outcome {
        if let Some(place) = self.answers.iter().position(|(answered, _)| *answered == id) {
            return self.answers.remove(place).expect("it is there").1;
        }
        loop {
            match self.lines.recv_timeout(PATIENCE).expect("an answer") {
                Line::Answer { id: answered, outcome } if answered == id => return outcome,
                Line::Answer { id, outcome } => self.answers.push_back((id, outcome)),
                Line::Notice { notice } => self.notices.push_back(notice),
            }
        }
    }

    pub(crate) fn notice(&mut self) -> String {
        loop {
            if let Some(notice) = self.notices.pop_front() {
                return notice;
            }
            match self.lines.recv_timeout(PATIENCE).expect("a notice") {
                Line::Notice { notice } => return notice,
                Line::Answer { id, outcome } => self.answers.push_back((id, outcome)),
            }
        }
    }

    pub(crate) fn counts(&mut self, command: Command) -> Vec<PeerCount> {
        match self.ask(command) {
            Outcome::Done(counts) => counts,
            other => panic!("no counters: {other:?}"),
        }
    }

    pub(crate) fn processes(&mut self) -> Vec<ProcessLine> {
        match self.ask(Command::Processes) {
            Outcome::Processes(processes) => processes,
            other => panic!("no processes: {other:?}"),
        }
    }

    pub(crate) fn failure(&mut self, command: Command) -> String {
        match self.ask(command) {
            Outcome::Failed(why) => why,
            other => panic!("it did not fail: {other:?}"),
        }
    }

    pub(crate) fn hello(&mut self, own: Peer, peers: Vec<(Peer, std::net::IpAddr)>) -> Vec<PeerCount> {
        self.counts(Command::Hello {
            run: "test".to_owned(),
            own,
            peers,
            probe_port: PROBE_PORT,
            control_port: CONTROL_PORT,
            peer_ports: vec![MEMBER_PORT],
        })
    }

    pub(crate) fn arrivals(&mut self, round: u64) -> Vec<Arrival> {
        match self.ask(Command::Arrivals { round, patience_ms: 200 }) {
            Outcome::Arrived(arrivals) => arrivals,
            other => panic!("no arrivals: {other:?}"),
        }
    }

    /// Closes the input, as a harness that is killed does.
    pub(crate) fn fall_away(&mut self) {
        self.renewals = None;
        self.input.lock().expect("unpoisoned").take();
    }

    /// Waits for the end; whether it was a good one.
    pub(crate) fn ended(&mut self) -> bool {
        until("the agent's end", || self.child.try_wait().expect("a child")).success()
    }

    /// Runs a command in the agent's network namespace.
    pub(crate) fn run(&self, command: &str) -> String {
        must("nsenter", &["-t", &self.pid.to_string(), "-n", "sh", "-c", command])
    }

    /// A member in the agent's namespaces.
    pub(crate) fn member(&self) -> Member {
        let mut command = self.enter();
        command.arg(example("member"));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it can be run");
        let output = BufReader::new(child.stdout.take().expect("piped"));
        Member { child, output }
    }

    /// A command that starts another in the agent's namespaces. Its parent stays outside, and is a shell that
    /// waits for no more than its end: `nsenter` itself would stop when its child does.
    pub(crate) fn enter(&self) -> Process {
        let mut command = Process::new("nsenter");
        command.args(["-t", &self.pid.to_string(), "-n", "-p", "-m", "--no-fork"]);
        command.args(["sh", "-c", "\"$0\" \"$@\"; exit"]).stderr(Stdio::null());
        command
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.fall_away();
        let _ = Process::new("kill").args(["-9", &self.pid.to_string()]).stderr(Stdio::null()).status();
        let _ = self.child.wait();
    }
}

fn write(input: &Mutex<Option<ChildStdin>>, request: &Request) {
    let mut line = serde_json::to_vec(request).expect("a request is JSON");
    line.push(b'\n');
    if let Some(input) = input.lock().expect("unpoisoned").as_mut() {
        // An agent that has ended reads no more; the test finds out by what it waits for.
        let _ = input.write_all(&line);
    }
}

fn read(output: ChildStdout, tell: &Sender<Line>) {
    for line in BufReader::new(output).lines() {
        let Ok(line) = line else { return };
        let line = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line}: {error}"));
        if tell.send(line).is_err() {
            return;
        }
    }
}

/// A stand-in for a member.
pub(crate) struct Member {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Member {
    pub(crate) fn ask(&mut self, line: &str) -> String {
        let input = self.child.stdin.as_mut().expect("piped");
        writeln!(input, "{line}").expect("the member reads");
        let mut answer = String::new();
        self.output.read_line(&mut answer).expect("the member answers");
        answer.trim().to_owned()
    }

    /// How far its wall clock is ahead of ours, in milliseconds, give or take a conversation.
    pub(crate) fn ahead_ms(&mut self) -> i128 {
        let now = i128::from_str(&self.ask("now")).expect("a number");
        let ours = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
        now - i128::try_from(ours.as_millis()).expect("a number")
    }

    /// Waits for its end.
    pub(crate) fn ended(&mut self) {
        until("the member's end", || self.child.try_wait().expect("a child"));
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Agents that know each other, at a switch. Peer n has the addresses 10.77.0.n and fd77::n.
pub(crate) struct Room {
    pub(crate) agents: Vec<Agent>,
    switch: Held,
    round: u64,
}

impl Room {
    /// So many agents that have said hello, with each other's IPv4 addresses, or IPv6.
    pub(crate) fn of(count: u8, ipv6: bool) -> Self {
        let switch = Held::network("ip link add br0 type bridge mcast_snooping 0 && ip link set br0 up");
        let mut agents: Vec<Agent> = (0..count).map(|_| Agent::start()).collect();
        for (number, agent) in (1..=count).zip(&mut agents) {
            // The first answer says that it is in its namespaces.
            agent.processes();
            connect(&switch, agent.pid, number);
        }
        let address = |number: u8| -> std::net::IpAddr {
            if ipv6 { format!("fd77::{number}") } else { format!("10.77.0.{number}") }
                .parse()
                .expect("an address")
        };
        for (number, agent) in (1..=count).zip(&mut agents) {
            let others = (1..=count).filter(|other| *other != number);
            agent.hello(number.into(), others.map(|other| (other.into(), address(other))).collect());
        }
        let mut room = Self { agents, switch, round: 0 };
        // A link takes its time to come up.
        until("all to reach each other", || {
            room.round().iter().all(|(_, _, arrived)| *arrived == (true, true)).then_some(())
        });
        room
    }

    pub(crate) fn agent(&mut self, peer: usize) -> &mut Agent {
        &mut self.agents[peer - 1]
    }

    /// A round of probes: from, to, and whether the probe and the control arrived.
    fn round(&mut self) -> Vec<(Peer, Peer, (bool, bool))> {
        self.round += 1;
        let round = self.round;
        for agent in &mut self.agents {
            assert_eq!(agent.ask(Command::SendProbes { round }), Outcome::Done(Vec::new()));
        }
        let mut pairs = Vec::new();
        for (own, agent) in (1..).zip(&mut self.agents) {
            for arrival in agent.arrivals(round) {
                pairs.push((arrival.from, own, (arrival.probe_us.is_some(), arrival.control_us.is_some())));
            }
        }
        pairs
    }

    /// The pairs (from, to) whose probe did not arrive. Every control must.
    pub(crate) fn unreached(&mut self) -> Vec<(Peer, Peer)> {
        let pairs = self.round();
        assert!(pairs.iter().all(|(_, _, (_, control))| *control), "controls arrive: {pairs:?}");
        pairs.into_iter().filter(|(_, _, (probe, _))| !probe).map(|(from, to, _)| (from, to)).collect()
    }
}

/// Connects a process's network namespace to the switch.
pub(crate) fn connect(switch: &Held, pid: u32, number: u8) {
    switch.run(&format!(
        "ip link add port{number} type veth peer name eth0 netns {pid} && ip link set port{number} master \
            br0 up"
    ));
    let setup = format!(
        "ip link set lo up && ip addr add 10.77.0.{number}/24 dev eth0 && \
         ip addr add fd77::{number}/64 dev eth0 nodad && ip link set eth0 up"
    );
    must("nsenter", &["-t", &pid.to_string(), "-n", "sh", "-c", &setup]);
}
