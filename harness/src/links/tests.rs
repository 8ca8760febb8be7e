//! The links in process: real sockets, the real server, a harness of the test's own.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::protocol::{Answer, Command, Count, Delayed, LinkSpec, Outcome, Pair, ProbeRound, Request};
use super::rules::{Mode, Rule};
use super::server::{Ended, serve};

/// Long enough for anything that happens at all.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long is waited for what must not happen.
const QUIET: Duration = Duration::from_millis(50);
/// A lease that no test outlives unless it means to.
const LONG_LEASE: Duration = Duration::from_secs(60);

struct Bench {
    commands: WriteHalf<DuplexStream>,
    answers: BufReader<ReadHalf<DuplexStream>>,
    server: JoinHandle<std::io::Result<Ended>>,
    target: TcpListener,
    link: SocketAddr,
    next: u64,
}

fn there() -> Pair {
    Pair::from((1, 2))
}

fn rule(mode: Mode) -> Rule {
    Rule { mode, ..Rule::default() }
}

impl Bench {
    /// Links with one link, from member 1 to member 2, which is the test.
    async fn start(lease: Duration) -> Self {
        let target = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a target");
        // Connections of others, which take ports of their own, come from 127.0.0.1.
        let free = TcpListener::bind((Ipv4Addr::new(127, 0, 0, 2), 0)).await.expect("a port");
        let link = free.local_addr().expect("its address");
        drop(free);
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (input, output) = tokio::io::split(theirs);
        let server = tokio::spawn(serve(input, output, lease));
        let (answers, commands) = tokio::io::split(ours);
        let mut bench = Self { commands, answers: BufReader::new(answers), server, target, link, next: 1 };
        let spec = LinkSpec {
            pair: there(),
            listen: link,
            target: bench.target.local_addr().expect("bound"),
            introduces: None,
        };
        let outcome = bench.ask(Command::Start { links: vec![spec], entrances: Vec::new() }).await;
        assert!(matches!(outcome, Outcome::Done(_)), "{outcome:?}");
        bench
    }

    async fn ask(&mut self, command: Command) -> Outcome {
        let id = self.next;
        self.next += 1;
        let line = serde_json::to_string(&Request { id, command }).expect("a line");
        self.commands.write_all(format!("{line}\n").as_bytes()).await.expect("written");
        let mut line = String::new();
        timeout(PATIENCE, self.answers.read_line(&mut line)).await.expect("in time").expect("read");
        let answer: Answer = serde_json::from_str(&line).expect("an answer");
        assert_eq!(answer.id, id);
        answer.outcome
    }

    async fn set(&mut self, pair: Pair, rule: Rule) {
        let outcome = self.ask(Command::Set { rules: vec![(pair, rule)] }).await;
        assert!(matches!(outcome, Outcome::Done(_)), "{outcome:?}");
    }

    async fn count(&mut self, pair: Pair) -> Count {
        match self.ask(Command::Counters).await {
            Outcome::Done(counts) => *counts.iter().find(|count| count.pair == pair).expect("the pair"),
            other => panic!("{other:?}"),
        }
    }

    async fn delayed(&mut self, pair: Pair) -> Delayed {
        match self.ask(Command::Delays).await {
            Outcome::Delays(all) => all.into_iter().find(|one| one.pair == pair).expect("the pair"),
            other => panic!("{other:?}"),
        }
    }

    async fn probe(&mut self) -> ProbeRound {
        match self.ask(Command::Probe { patience_ms: 50 }).await {
            Outcome::Probed(round) => round,
            other => panic!("{other:?}"),
        }
    }

    async fn dial(&self) -> TcpStream {
        timeout(PATIENCE, TcpStream::connect(self.link)).await.expect("in time").expect("connected")
    }

    async fn accept(&self) -> TcpStream {
        timeout(PATIENCE, self.target.accept()).await.expect("in time").expect("accepted").0
    }

    async fn connection(&self) -> (TcpStream, TcpStream) {
        let near = self.dial().await;
        let far = self.accept().await;
        (near, far)
    }
}

async fn expect(stream: &mut TcpStream, bytes: &[u8]) {
    let mut read = vec![0; bytes.len()];
    timeout(PATIENCE, stream.read_exact(&mut read)).await.expect("in time").expect("read");
    assert_eq!(read, bytes);
}

async fn expect_end(stream: &mut TcpStream) {
    let read = timeout(PATIENCE, stream.read(&mut [0])).await.expect("in time");
    assert_eq!(read.expect("a FIN, no reset"), 0);
}

async fn expect_quiet(stream: &mut TcpStream) {
    assert!(timeout(QUIET, stream.read(&mut [0])).await.is_err(), "something came through");
}

async fn expect_reset(stream: &mut TcpStream) {
    let read = timeout(PATIENCE, stream.read(&mut [0])).await.expect("in time");
    assert_eq!(read.expect_err("a reset").kind(), std::io::ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn bytes_go_through_both_ways_and_are_counted() {
    let mut bench = Bench::start(LONG_LEASE).await;
    let (mut near, mut far) = bench.connection().await;
    near.write_all(b"there").await.expect("written");
    expect(&mut far, b"there").await;
    far.write_all(b"back!!").await.expect("written");
    expect(&mut near, b"back!!").await;
    assert_eq!(bench.count(there()).await.forwarded, 5);
    assert_eq!(bench.count(there().back()).await.forwarded, 6);
}

#[tokio::test]
async fn a_hold_is_for_one_direction_and_loses_nothing() {
    let mut bench = Bench::start(LONG_LEASE).await;
    let (mut near, mut far) = bench.connection().await;
    bench.set(there(), Rule::HOLD).await;
    near.write_all(b"first ").await.expect("written");
    expect_quiet(&mut far).await;
    far.write_all(b"other way").await.expect("written");
    expect(&mut near, b"other way").await;
    near.write_all(b"second").await.expect("written");
    bench.ask(Command::Heal).await;
    expect(&mut far, b"first second").await;
}

#[tokio::test]
async fn a_fin_waits_behind_the_bytes_before_it() {
    let mut bench = Bench::start(LONG_LEASE).await;
    let (mut near, mut far) = bench.connection().await;
    bench.set(there(), Rule::HOLD).await;
    near.write_all(b"last words").await.expect("written");
    near.shutdown().await.expect("a FIN");
    expect_quiet(&mut far).await;
    bench.set(there(), Rule::default()).await;
    expect(&mut far, b"last words").await;
    expect_end(&mut far).await;
    far.write_all(b"heard").await.expect("the other half is open");
    expect(&mut near, b"heard").await;
}

#[tokio::test]
async fn a_connect_through_a_held_link_succeeds_and_carries_nothing() {
    let mut bench = Bench::start(LONG_LEASE).await;
    bench.set(there(), Rule::HOLD).await;
    let mut near = bench.dial().await;
    near.write_all(b"hello").await.expect("written");
    assert!(timeout(QUIET, bench.target.accept()).await.is_err(), "the connection came through");
    assert_eq!(bench.count(there()).await.dials_waiting, 1);
    bench.ask(Command::Heal).await;
    let mut far = bench.accept().await;
    expect(&mut far, b"hello").await;
}

#[tokio::test]
async fn a_connection_given_up_while_it_waited_never_arrives() {
    let mut bench = Bench::start(LONG_LEASE).await;
    bench.set(there(), Rule::HOLD).await;
    let mut near = bench.dial().await;
    near.write_all(b"hello").await.expect("written");
    drop(near);
    assert!(timeout(QUIET, bench.target.accept()).await.is_err(), "the connection came through");
    bench.ask(Command::Heal).await;
    let (mut near, mut far) = bench.connection().await;
    near.write_all(b"I am the next one").await.expect("written");
    expect(&mut far, b"I am the next one").await;
}

#[tokio::test]
async fn a_delay_keeps_the_order_and_the_distance() {
    let mut bench = Bench::start(LONG_LEASE).await;
    let (mut near, mut far) = bench.connection().await;
    let delay = Duration::from_millis(80);
    bench.set(there(), Rule { delay_ms: 80, ..Rule::default() }).await;
    let sent = std::time::Instant::now();
    near.write_all(b"a").await.expect("written");
    near.write_all(b"b").await.expect("written");
    expect(&mut far, b"ab").await;
    assert!(sent.elapsed() >= delay, "came after {:?}", sent.elapsed());
}

#[tokio::test]
async fn probes_go_as_members_words_go_and_are_neither_counted_nor_measured_as_such() {
    let mut bench = Bench::start(LONG_LEASE).await;
    bench.set(there(), Rule { delay_ms: 20, ..Rule::default() }).await;
    let round = bench.probe().await;
    let took = round.probes.iter().find(|probe| probe.pair == there()).expect("the pair").took_us;
    assert!(took.expect("it arrived") >= 20_000, "{took:?}");
    let (count, delayed) = (bench.count(there()).await, bench.delayed(there()).await);
    assert_eq!((count.forwarded, delayed.latency_us), (0, 20_000));
    assert!(delayed.took_us.is_empty(), "{delayed:?}");
    let (mut near, mut far) = bench.connection().await;
    near.write_all(b"word").await.expect("written");
    expect(&mut far, b"word").await;
    let said = bench.delayed(there()).await.took_us;
    assert!(matches!(said.as_slice(), [took] if *took >= 20_000), "{said:?}");
}

/// Whether a probe went through, by direction.
fn arrived(round: &ProbeRound, pair: Pair) -> bool {
    round.probes.iter().find(|probe| probe.pair == pair).expect("the pair").took_us.is_some()
}

#[tokio::test]
async fn a_reset_of_either_direction_reaches_both_ends_and_every_new_connection() {
    for direction in [there(), there().back()] {
        let mut bench = Bench::start(LONG_LEASE).await;
        let (mut near, mut far) = bench.connection().await;
        bench.set(direction, rule(Mode::Reset)).await;
        expect_reset(&mut near).await;
        expect_reset(&mut far).await;
        let mut next = bench.dial().await;
        expect_reset(&mut next).await;
        assert!(timeout(QUIET, bench.target.accept()).await.is_err(), "a refused connection came through");
        bench.ask(Command::Heal).await;
        let (mut near, mut far) = bench.connection().await;
        near.write_all(b"again").await.expect("written");
        expect(&mut far, b"again").await;
    }
}

#[tokio::test]
async fn what_a_reset_broke_is_counted_in_its_direction_and_probes_are_not() {
    for direction in [there(), there().back()] {
        let mut bench = Bench::start(LONG_LEASE).await;
        let (mut near, _far) = bench.connection().await;
        bench.set(direction, rule(Mode::Reset)).await;
        expect_reset(&mut near).await;
        let mut next = bench.dial().await;
        expect_reset(&mut next).await;
        let counted = async {
            // Counted by the connection's own task, a moment after its ends were reset.
            while bench.count(direction).await.refused < 2 {
                tokio::task::yield_now().await;
            }
        };
        timeout(PATIENCE, counted).await.expect("counted in time");
        let round = bench.probe().await;
        assert!(!arrived(&round, direction) && round.control_us.is_some());
        let count = bench.count(direction).await;
        assert_eq!((count.refused, count.forwarded), (2, 0));
        assert_eq!(bench.count(direction.back()).await.refused, 0);
    }
}

#[tokio::test]
async fn beside_a_reset_a_probe_of_the_other_direction_never_arrives_by_chance() {
    let mut bench = Bench::start(LONG_LEASE).await;
    for direction in [there(), there().back()] {
        bench.set(direction, rule(Mode::Reset)).await;
        for _ in 0..10 {
            assert!(!arrived(&bench.probe().await, direction.back()));
        }
        bench.set(direction, Rule::default()).await;
        assert!(arrived(&bench.probe().await, direction));
    }
}

#[tokio::test]
async fn refused_is_refused_until_it_is_healed() {
    let mut bench = Bench::start(LONG_LEASE).await;
    bench.set(there(), rule(Mode::Refuse)).await;
    let refused = async {
        // The listener is closed by its own task, a moment after the answer.
        while TcpStream::connect(bench.link).await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, refused).await.expect("refused in time");
    bench.ask(Command::Heal).await;
    let back = async {
        loop {
            if let Ok(near) = TcpStream::connect(bench.link).await {
                return near;
            }
            tokio::task::yield_now().await;
        }
    };
    let mut near = timeout(PATIENCE, back).await.expect("in time");
    let mut far = bench.accept().await;
    near.write_all(b"again").await.expect("written");
    expect(&mut far, b"again").await;
}

#[tokio::test]
async fn a_target_that_refuses_resets_the_connection_but_not_at_once() {
    let Bench { target, link, server, commands, answers, .. } = Bench::start(LONG_LEASE).await;
    drop(target);
    let dialled = std::time::Instant::now();
    let mut near = TcpStream::connect(link).await.expect("the link listens");
    expect_reset(&mut near).await;
    // Without a pause here, a member that dials again at once would do so thousands of times a second.
    assert!(dialled.elapsed() >= Duration::from_millis(50), "{:?}", dialled.elapsed());
    drop((commands, answers));
    assert_eq!(server.await.expect("no panic").expect("no error"), Ended::InputClosed);
}

#[tokio::test]
async fn probes_tell_each_direction_by_itself_and_the_control_arrives() {
    let mut bench = Bench::start(LONG_LEASE).await;
    let took = |round: &ProbeRound, pair| {
        round.probes.iter().find(|probe| probe.pair == pair).expect("the pair").took_us
    };
    let calm = bench.probe().await;
    assert!(took(&calm, there()).is_some() && took(&calm, there().back()).is_some());
    bench.set(there(), Rule::HOLD).await;
    let cut = bench.probe().await;
    assert!(cut.control_us.is_some());
    assert_eq!(took(&cut, there()), None);
    assert!(took(&cut, there().back()).is_some());
    assert_eq!(bench.count(there()).await.dials_waiting, 0, "probes leave nothing behind");
    bench.ask(Command::Heal).await;
    assert!(took(&bench.probe().await, there()).is_some());
}

#[tokio::test]
async fn a_harness_that_falls_silent_has_everything_healed() {
    let mut bench = Bench::start(Duration::from_millis(200)).await;
    let (mut near, mut far) = bench.connection().await;
    bench.set(there(), Rule::HOLD).await;
    near.write_all(b"held").await.expect("written");
    expect(&mut far, b"held").await;
    assert_eq!(bench.server.await.expect("no panic").expect("no error"), Ended::LeaseExpired);
}

#[tokio::test]
async fn renewals_keep_the_lease_and_are_not_answered() {
    let mut bench = Bench::start(Duration::from_millis(400)).await;
    let line = serde_json::to_string(&Request { id: 0, command: Command::Renew }).expect("a line");
    let mut beat = tokio::time::interval(Duration::from_millis(50));
    for _ in 0..20 {
        beat.tick().await;
        bench.commands.write_all(format!("{line}\n").as_bytes()).await.expect("the links live");
    }
    assert!(!bench.server.is_finished());
    assert!(matches!(bench.ask(Command::Stop).await, Outcome::Done(_)));
    assert_eq!(bench.server.await.expect("no panic").expect("no error"), Ended::Stopped);
}

#[tokio::test]
async fn a_port_that_is_taken_is_named_and_a_rule_for_nobody_is_refused() {
    let mut bench = Bench::start(LONG_LEASE).await;
    let taken = bench.target.local_addr().expect("bound");
    let spec = LinkSpec { pair: there(), listen: taken, target: taken, introduces: None };
    let outcome = bench.ask(Command::Set { rules: vec![(Pair::from((8, 9)), Rule::HOLD)] }).await;
    assert!(matches!(outcome, Outcome::Refused(_)), "{outcome:?}");
    assert_eq!(
        bench.ask(Command::Start { links: vec![spec], entrances: Vec::new() }).await,
        Outcome::Busy(taken)
    );
}
