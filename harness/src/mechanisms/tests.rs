//! Proofs beside a cluster that lies: what it says is as it would be under a fault, but for one thing.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use harness_core::condition::{Delay, LinkCondition};
use harness_core::cut::Pair;
use harness_core::fault::Server;
use harness_core::fault::application::{Harm, Holder};
use harness_core::mechanism::clock::{Clock, offset_ns};
use harness_core::mechanism::kill::Kill;
use harness_core::mechanism::latency::{LATENCY, Slow};
use harness_core::mechanism::pause::Pause;
use harness_core::mechanism::replace::Replace;
use harness_core::parameter::Parameters;
use harness_systems::{Order, Ran};
use runs::events::{Event, Said, Stamped};
use runs::member::MemberId;
use serde_json::Value;

use super::*;
use crate::cluster::{ClockReading, Cut, PortState, ProcessState, Severing, Traffic};
use crate::events::EventLog;
use crate::links::protocol::{Count, Delayed, ProbeRound, Probed};
use crate::mechanisms::proof::applications::{
    ApplicationsSeen, application_is_harmed, application_is_well, at_the_end_of_a_cut_application,
};

const MEMBERS: [MemberId; 3] = [MemberId(1), MemberId(2), MemberId(3)];
const JAVA: Server = Server::new("java", "node");

/// What three members show. A test begins with the truth and changes one thing.
struct Lying {
    states: BTreeMap<MemberId, ProcessState>,
    ports: BTreeMap<MemberId, PortState>,
    offsets: BTreeMap<MemberId, i64>,
    served_by: BTreeMap<MemberId, Server>,
    /// The directions in which a probe does not arrive.
    lost: Vec<Pair>,
    /// Whether the control arrives.
    control: bool,
    /// Bytes that got through in every direction, and what was refused.
    forwarded: u64,
    refused: u64,
    way_round: Option<String>,
    /// How long what members say in each direction takes, in us; where nobody is named they say nothing.
    took: BTreeMap<Pair, u64>,
    /// How long probes take.
    probes: BTreeMap<Pair, u64>,
    /// By how much each direction is held back.
    held: BTreeMap<Pair, Delay>,
    /// Where members' packets wait in queues, who refuses to be told anything of them.
    refuses: Option<MemberId>,
    /// Who was told to be slow, and who to heal.
    ordered: Mutex<Vec<(MemberId, bool, bool)>>,
    /// Where clocks can be shifted on the first tries alone, how many are left.
    clocks_can: Option<AtomicUsize>,
    /// How often what is told first was on its way before, and so was quick.
    early: AtomicUsize,
    /// How it is asked at its end: whether members say nothing any more by then.
    ends_silent: Option<bool>,
    silent: AtomicBool,
    events: EventLog,
}

impl Lying {
    /// What an honest cluster shows while these faults are in force.
    fn truth(in_force: &InForce) -> Self {
        let events = EventLog::new(&MEMBERS);
        let push = |member: MemberId, event| events.push(Stamped { time: 0, node: member, event });
        for member in MEMBERS {
            push(member, Event::Spawned);
            push(member, Event::Said(Said::Established { leader: 1, epoch: 1 }));
            push(member, Event::Said(Said::Serving {}));
        }
        let mut all = Self {
            states: MEMBERS.map(|member| (member, ProcessState::Running)).into(),
            ports: MEMBERS.map(|member| (member, PortState::Answers)).into(),
            offsets: MEMBERS.map(|member| (member, offset_ns(in_force, member))).into(),
            served_by: MEMBERS.map(|member| (member, JAVA)).into(),
            lost: Vec::new(),
            control: true,
            forwarded: 0,
            refused: 0,
            way_round: None,
            took: BTreeMap::new(),
            probes: BTreeMap::new(),
            held: BTreeMap::new(),
            refuses: None,
            ordered: Mutex::default(),
            clocks_can: None,
            early: AtomicUsize::new(0),
            ends_silent: None,
            silent: AtomicBool::new(false),
            events,
        };
        for member in in_force.killed() {
            all.states.insert(member, ProcessState::Gone("killed by signal 9".to_owned()));
            all.ports.insert(member, PortState::Refuses);
        }
        for member in in_force.paused() {
            all.states.insert(member, ProcessState::Stopped);
            all.ports.insert(member, PortState::Silent);
        }
        let pairs = MEMBERS.iter().flat_map(|from| MEMBERS.map(|to| Pair::new(*from, to)));
        let pairs: Vec<Pair> = pairs.filter(|pair| pair.from != pair.to).collect();
        let slow = |pair: &Pair| in_force.link(*pair).delay.latency.as_micros();
        all.took =
            pairs.iter().map(|pair| (*pair, 300 + u64::try_from(slow(pair)).expect("not so slow"))).collect();
        all.probes = all.took.clone();
        all.held = pairs.iter().map(|pair| (*pair, in_force.link(*pair).delay)).collect();
        all.lost = pairs.into_iter().filter(|pair| in_force.severs(*pair)).collect();
        all
    }

    fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    fn state(self, member: MemberId, state: ProcessState) -> Self {
        self.with(|all| all.states.extend([(member, state)]))
    }

    fn port(self, member: MemberId, port: PortState) -> Self {
        self.with(|all| all.ports.extend([(member, port)]))
    }

    fn reads(self, member: MemberId, offset_ns: i64) -> Self {
        self.with(|all| all.offsets.extend([(member, offset_ns)]))
    }

    async fn bites(self, action: &Action, in_force: &InForce) -> bool {
        self.bites_and_ends(action, in_force).await.0
    }

    /// Whether it bites, and whether what is seen at its end says that it did until then.
    async fn bites_and_ends(self, action: &Action, in_force: &InForce) -> (bool, bool) {
        let ends = self.ends_silent;
        let (this, kept) = (Arc::new(self), Kept::default());
        let cluster: Arc<dyn Cluster> = Arc::<Self>::clone(&this);
        let driver = kept.driver(action.mechanism(), &*cluster).expect("it can");
        let at = At { cluster: &cluster, applications: None, fault: "F1", action, in_force, kept: &kept };
        let bit = bites(driver, &at).await.expect("it can be asked").holds;
        let Some(silent) = ends else { return (bit, true) };
        this.silent.store(silent, Ordering::Relaxed);
        let seen = driver.undo(&at, 0).await.expect("it can be undone");
        (bit, seen.is_none_or(|seen| seen.holds))
    }

    async fn healed(self, action: &Action, rest: &InForce) -> bool {
        let (cluster, kept): (Arc<dyn Cluster>, _) = (Arc::new(self), Kept::default());
        let driver = on(action.mechanism(), &*cluster).expect("it can");
        let at =
            At { cluster: &cluster, applications: None, fault: "F1", action, in_force: rest, kept: &kept };
        is_gone(driver, &at).await.expect("it can be asked").holds
    }
}

fn said<'a, T: Send + 'a>(value: T) -> Async<'a, T> {
    Box::pin(std::future::ready(Ok(value)))
}

fn nobody_asks<'a, T: 'a>() -> Async<'a, T> {
    unreachable!("a proof looks and does nothing")
}

impl Cluster for Lying {
    fn name(&self) -> &'static str {
        "lying"
    }

    fn can_shift_clocks(&self) -> Result<(), String> {
        let Some(left) = &self.clocks_can else { return Ok(()) };
        let tried = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        tried.map(drop).map_err(|_| "this try failed".to_owned())
    }

    fn can_replace(&self) -> Result<(), String> {
        Ok(())
    }

    fn members(&self) -> &[MemberId] {
        &MEMBERS
    }

    fn voters(&self) -> &[MemberId] {
        &MEMBERS
    }

    fn client_address(&self, _: MemberId) -> SocketAddr {
        unreachable!("a proof has no client")
    }

    fn events(&self) -> &EventLog {
        &self.events
    }

    fn traffic(&self) -> Async<'_, Traffic> {
        let pairs = MEMBERS.iter().flat_map(|from| MEMBERS.map(|to| Pair::new(*from, to)));
        let count = |pair| Count {
            pair,
            forwarded: self.forwarded,
            waiting: 0,
            dials_waiting: 0,
            refused: self.refused,
        };
        said(Traffic { counts: pairs.map(count).collect() })
    }

    fn can_delay(&self) -> Result<(), String> {
        if self.refuses.is_none() { Ok(()) } else { Err("there are queues".to_owned()) }
    }

    fn can_use(&self, _: &str) -> Result<(), String> {
        Ok(())
    }

    fn device<'a>(&'a self, member: MemberId, _: &'a str, order: Value) -> Async<'a, Value> {
        let of = |key: &str| order.get(key).is_some();
        self.ordered.lock().expect("nobody panicked").push((member, of("slow"), of("heal")));
        let refuses = self.refuses == Some(member);
        Box::pin(async move {
            anyhow::ensure!(!refuses, "n{} refuses", member.0);
            Ok(Value::Array(Vec::new()))
        })
    }

    fn delays(&self) -> Async<'_, Vec<Delayed>> {
        let early = self.early.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        let is_early = early.is_ok();
        let told = |(pair, by): (&Pair, &Delay)| {
            let took = self.took.get(pair).filter(|_| !self.silent.load(Ordering::Relaxed));
            let took = took.map(|took| if is_early { 300 } else { *took });
            let [latency_us, jitter_us] =
                [by.latency, by.jitter].map(|time| u64::try_from(time.as_micros()).expect("not so slow"));
            let took_us = took.map(|took| vec![took; 5]).unwrap_or_default();
            Delayed { pair: *pair, took_us, latency_us, jitter_us }
        };
        said(self.held.iter().map(told).collect())
    }

    fn way_round<'a>(&'a self, _: &'a [Pair]) -> Async<'a, Option<String>> {
        said(self.way_round.clone())
    }

    fn probe(&self, _: Duration) -> Async<'_, ProbeRound> {
        let pairs = MEMBERS.iter().flat_map(|from| MEMBERS.map(|to| Pair::new(*from, to)));
        let took = |pair| self.probes.get(&pair).copied().unwrap_or(90);
        let probed = |pair| Probed { pair, took_us: (!self.lost.contains(&pair)).then(|| took(pair)) };
        let probes = pairs.filter(|pair| pair.from != pair.to).map(probed).collect();
        said(ProbeRound { probes, control_us: self.control.then_some(90) })
    }

    fn process_state(&self, member: MemberId) -> Async<'_, ProcessState> {
        said(self.states[&member].clone())
    }

    fn read_clock(&self, member: MemberId) -> Async<'_, ClockReading> {
        said(ClockReading { offset_ns: self.offsets[&member], error_ns: 1_000 })
    }

    fn ask(&self, member: MemberId) -> Async<'_, PortState> {
        said(self.ports[&member])
    }

    fn who_answers(&self, member: MemberId) -> Async<'_, Option<(Server, String)>> {
        said(self.served_by.get(&member).map(|server| (*server, "3.9".to_owned())))
    }

    fn start(&self) -> Async<'_, ()> {
        nobody_asks()
    }

    fn kill<'a>(&'a self, _: &'a [MemberId]) -> Async<'a, ()> {
        nobody_asks()
    }

    fn restart<'a>(&'a self, _: &'a [MemberId], _: bool) -> Async<'a, ()> {
        nobody_asks()
    }

    fn pause<'a>(&'a self, _: &'a [MemberId]) -> Async<'a, ()> {
        nobody_asks()
    }

    fn resume<'a>(&'a self, _: &'a [MemberId]) -> Async<'a, ()> {
        nobody_asks()
    }

    fn link<'a>(&'a self, _: &'a str, _: &'a [(Pair, LinkCondition)]) -> Async<'a, Traffic> {
        nobody_asks()
    }

    fn heal<'a>(&'a self, _: &'a str) -> Async<'a, Traffic> {
        self.traffic()
    }

    fn shift_clock<'a>(&'a self, _: &'a [MemberId], _: i64) -> Async<'a, ()> {
        nobody_asks()
    }

    fn run_own(&self, _: MemberId, _: Order) -> Async<'_, Ran> {
        nobody_asks()
    }

    fn broken(&self) -> Async<'_, String> {
        nobody_asks()
    }

    fn stop(&self) -> Async<'_, ()> {
        nobody_asks()
    }
}

fn first() -> Vec<MemberId> {
    vec![MEMBERS[0]]
}

fn kill(members: Vec<MemberId>) -> Action {
    Kill { members, loses_unsynced: false }.into()
}

#[test]
fn every_mechanism_is_done_by_something() {
    for mechanism in Mechanism::ALL {
        assert!(of(mechanism).count() > 0 || mechanism.virtually.is_ok(), "{}", mechanism.name);
    }
}

#[tokio::test]
async fn a_kill_is_proven_by_a_process_that_is_gone_and_a_port_that_refuses() {
    let killed = kill(first());
    let in_force = InForce::only("F1", &killed);
    let truth = || Lying::truth(&in_force);
    let [member, ..] = MEMBERS;
    assert!(truth().bites(&killed, &in_force).await);
    for state in [ProcessState::Running, ProcessState::Stopped, ProcessState::Dying] {
        let lying = truth().state(member, state.clone());
        assert!(!lying.bites(&killed, &in_force).await, "it is {state}");
    }
    for port in [PortState::Answers, PortState::Silent, PortState::HangsUp] {
        let lying = truth().port(member, port);
        assert!(!lying.bites(&killed, &in_force).await, "its port {port}");
    }
    let both = kill(MEMBERS[..2].to_vec());
    let in_force = InForce::only("F1", &both);
    let lying = Lying::truth(&in_force).state(MEMBERS[1], ProcessState::Running);
    assert!(!lying.bites(&both, &in_force).await, "the second one lives");
}

#[tokio::test]
async fn a_pause_is_proven_by_a_stopped_process_a_silent_port_and_another_that_answers() {
    let pause = Action::from(Pause { members: first() });
    let in_force = InForce::only("F1", &pause);
    let truth = || Lying::truth(&in_force);
    let [member, other, _] = MEMBERS;
    assert!(truth().bites(&pause, &in_force).await);
    let frozen = ProcessState::Frozen("cgroup.freeze 1".to_owned());
    assert!(truth().state(member, frozen).bites(&pause, &in_force).await);
    for state in [ProcessState::Running, ProcessState::Dying, ProcessState::Gone("0".to_owned())] {
        let lying = truth().state(member, state.clone());
        assert!(!lying.bites(&pause, &in_force).await, "it is {state}");
    }
    for port in [PortState::Answers, PortState::Refuses, PortState::HangsUp] {
        let lying = truth().port(member, port);
        assert!(!lying.bites(&pause, &in_force).await, "its port {port}");
    }
    let mute = truth().port(other, PortState::Silent);
    assert!(!mute.bites(&pause, &in_force).await, "nobody answers beside it either");
}

#[tokio::test]
async fn a_shifted_clock_is_proven_by_its_own_reading_and_the_right_ones_of_all_others() {
    let shift = Action::from(Clock { members: first(), offset_ns: 60_000_000_000 });
    let in_force = InForce::only("F1", &shift);
    let truth = || Lying::truth(&in_force);
    assert!(truth().bites(&shift, &in_force).await);
    for (member, reads) in [(MEMBERS[0], 0), (MEMBERS[0], -60_000_000_000), (MEMBERS[1], 60_000_000_000)] {
        let lying = truth().reads(member, reads);
        assert!(!lying.bites(&shift, &in_force).await, "n{} reads {reads}", member.0);
    }
    let rest = InForce::default();
    assert!(Lying::truth(&rest).healed(&shift, &rest).await);
    let shifted = Lying::truth(&rest).reads(MEMBERS[0], 60_000_000_000);
    assert!(!shifted.healed(&shift, &rest).await, "what was asked for while it was in force is a leak now");
}

fn slow_first(parameters: &str) -> Action {
    let parameters = Parameters::read(LATENCY.parameters, parameters).expect("parameters");
    Slow::around(MEMBERS[0], &MEMBERS, &parameters).into()
}

fn set(all: &mut BTreeMap<Pair, u64>, pair: (u64, u64), us: u64) {
    *all.get_mut(&Pair::from(pair)).expect("a direction") = us;
}

#[tokio::test]
async fn what_is_slow_is_proven_by_how_long_members_words_took_and_how_quick_others_were() {
    let slow = slow_first("latency=50ms");
    let in_force = InForce::only("F1", &slow);
    let truth = || Lying::truth(&in_force);
    let bites = async |change: fn(&mut Lying)| truth().with(change).bites(&slow, &in_force).await;
    assert!(bites(|_| ()).await);
    assert!(!bites(|all| set(&mut all.took, (1, 2), 300)).await, "one direction is as quick as ever");
    assert!(!bites(|all| set(&mut all.probes, (1, 2), 300)).await, "in one a probe is");
    assert!(!bites(|all| set(&mut all.probes, (2, 3), 50_300)).await, "one is slow that nobody made so");
    assert!(
        !bites(|all| all.held.retain(|pair, _| *pair != Pair::from((3, 1)))).await,
        "nothing holds one back"
    );
    assert!(!bites(|all| all.took.clear()).await, "probes alone were slow");
    assert!(!bites(|all| all.control = false).await, "there is no control");
    let past = |all: &mut Lying| all.way_round = Some("n1 and n2 are connected past the links".to_owned());
    assert!(!bites(past).await, "members talk past what holds them back");
    let others_silent = |all: &mut Lying| all.took.retain(|pair, _| *pair == Pair::from((1, 2)));
    assert!(bites(others_silent).await, "who has nothing to say is shown by probes");
    let early = truth().with(|all| {
        others_silent(all);
        all.early = AtomicUsize::new(2);
    });
    assert!(early.bites(&slow, &in_force).await, "what was on its way before counts no more");
}

#[tokio::test]
async fn what_is_slow_is_gone_only_when_each_direction_is_as_quick_as_other_faults_let_it_be() {
    let slow = slow_first("latency=50ms");
    let in_force = InForce::only("F1", &slow);
    let other = InForce::only("F2", &slow_first("latency=20ms"));
    for rest in [InForce::default(), other] {
        let gone = async |change: fn(&mut Lying)| Lying::truth(&rest).with(change).healed(&slow, &rest).await;
        assert!(gone(|_| ()).await);
        assert!(
            !gone(|all| *all.took.get_mut(&Pair::from((3, 1))).expect("one") += 50_000).await,
            "half of it"
        );
        let held = |all: &mut Lying| {
            let one = all.held.get_mut(&Pair::from((1, 3))).expect("a direction");
            one.latency += Duration::from_millis(50);
        };
        assert!(!gone(held).await, "one direction is held back still");
        assert!(!Lying::truth(&in_force).healed(&slow, &rest).await, "it is slow still");
    }
    let rest = InForce::default();
    let probe = Lying::truth(&rest).with(|all| set(&mut all.probes, (3, 1), 50_300));
    assert!(!probe.healed(&slow, &rest).await, "one probe of four is slow");
}

#[tokio::test]
async fn what_is_slow_beside_a_cut_is_looked_at_where_it_is_held_back() {
    let slow = slow_first("latency=50ms");
    let mut both = InForce::only("F1", &slow);
    both.insert("F2", Cut::between(&[first(), MEMBERS[1..].to_vec()], Severing::Silence).into());
    let silent = || Lying::truth(&both).with(|all| all.took.clear());
    assert!(silent().bites(&slow, &both).await);
    let nothing = silent().with(|all| all.held.values_mut().for_each(|by| *by = Delay::default()));
    assert!(!nothing.bites(&slow, &both).await, "nothing holds it back");
    let one = silent().with(|all| all.held.retain(|pair, _| *pair != Pair::from((3, 1))));
    assert!(!one.bites(&slow, &both).await, "one direction is not held back");
}

#[tokio::test]
async fn the_end_of_what_is_slow_says_nothing_where_members_never_said_anything() {
    let slow = slow_first("latency=50ms");
    let in_force = InForce::only("F1", &slow);
    let ends = |silent| Lying::truth(&in_force).with(|all| all.ends_silent = Some(silent));
    assert_eq!(ends(false).bites_and_ends(&slow, &in_force).await, (true, true));
    assert_eq!(ends(true).bites_and_ends(&slow, &in_force).await, (true, true), "they had before");
    let never = ends(true).with(|all| all.took.clear());
    assert_eq!(never.bites_and_ends(&slow, &in_force).await, (false, false));
    let quick = ends(false).with(|all| set(&mut all.took, (1, 2), 300));
    assert_eq!(quick.bites_and_ends(&slow, &in_force).await, (false, false));
}

/// What becomes of a fault that makes the first member slow, where members' packets wait in queues.
async fn injected(
    this: &Arc<Lying>,
    asked: impl Fn() -> anyhow::Result<()> + Send,
) -> anyhow::Result<Option<u64>> {
    let (slow, kept, in_force) = (slow_first("latency=50ms"), Kept::default(), InForce::default());
    let cluster: Arc<dyn Cluster> = Arc::<Lying>::clone(this);
    let driver = kept.driver(&LATENCY, &*cluster).expect("it can");
    let (action, in_force) = (&slow, &in_force);
    let at = At { cluster: &cluster, applications: None, fault: "F1", action, in_force, kept: &kept };
    inject(driver, &at, Box::new(asked), || 7).await
}

fn with_queues(refuses: MemberId) -> Arc<Lying> {
    Arc::new(Lying::truth(&InForce::default()).with(|all| all.refuses = Some(refuses)))
}

#[tokio::test]
async fn a_member_that_refuses_leaves_no_other_one_slow() {
    for refuses in MEMBERS {
        let this = with_queues(refuses);
        let failure = injected(&this, || Ok(())).await.expect_err("one refuses");
        assert_eq!(failure.to_string(), format!("n{} refuses", refuses.0));
        let all = this.ordered.lock().expect("nobody panicked").clone();
        let told = |is: fn(&(MemberId, bool, bool)) -> bool| all.iter().filter(|one| is(one)).count();
        assert_eq!((told(|one| one.1), told(|one| one.2)), (3, 3), "n{} refuses: {all:?}", refuses.0);
    }
}

#[tokio::test]
async fn what_could_not_be_written_down_is_not_done_and_not_undone() {
    let this = with_queues(MemberId(9));
    assert!(injected(&this, || anyhow::bail!("the disk is full")).await.is_err());
    assert!(this.ordered.lock().expect("nobody panicked").is_empty());
    assert_eq!(injected(&this, || Ok(())).await.expect("it can be"), Some(7));
}

#[tokio::test]
async fn whether_a_thing_can_be_done_is_tried_once_and_healing_asks_for_no_other_try() {
    let lying = Lying::truth(&InForce::default()).with(|all| all.clocks_can = Some(AtomicUsize::new(1)));
    let kept = Kept::default();
    let clock = Clock { members: first(), offset_ns: 1_000_000_000 };
    for _ in 0..3 {
        assert!(kept.driver(clock.mechanism(), &lying).is_ok());
    }
    assert!(on(clock.mechanism(), &lying).is_err(), "another try fails");
    assert!(Kept::default().driver(clock.mechanism(), &lying).is_err());
}

#[tokio::test]
async fn a_cut_is_proven_only_where_no_direction_passes_and_no_way_leads_round_it() {
    let groups = [vec![MEMBERS[0]], MEMBERS[1..].to_vec()];
    for how in [Severing::Silence, Severing::Reject] {
        let cut = Action::from(Cut::between(&groups, how));
        let in_force = InForce::only("F1", &cut);
        let truth = || Lying::truth(&in_force).with(|all| all.refused = 1);
        assert!(truth().bites(&cut, &in_force).await);
        let one_way = Pair::from((2, 1));
        let lying = truth().with(|all| all.lost.retain(|pair| *pair != one_way));
        assert!(!lying.bites(&cut, &in_force).await, "one direction passes");
        let lying = truth().with(|all| all.lost.push(Pair::from((2, 3))));
        assert!(!lying.bites(&cut, &in_force).await, "it cuts who was to stay together");
        assert!(!truth().with(|all| all.control = false).bites(&cut, &in_force).await, "nothing arrives");
        assert!(!truth().with(|all| all.forwarded = 1).bites(&cut, &in_force).await, "a byte crossed");
        let way = Some("n1 and n2 are connected past the links".to_owned());
        assert!(!truth().with(|all| all.way_round = way).bites(&cut, &in_force).await, "a way round");
        let refused = truth().with(|all| all.refused = 0).bites(&cut, &in_force).await;
        assert_eq!(refused, how == Severing::Silence, "resets alone are counted");
    }
}

#[tokio::test]
async fn a_replacement_is_proven_by_a_server_that_ended_and_another_kind_that_serves() {
    let replace = Action::from(Replace { members: first(), by: JAVA });
    let in_force = InForce::only("F1", &replace);
    let truth = || Lying::truth(&in_force);
    assert!(truth().bites(&replace, &in_force).await);
    let lives = truth().state(MEMBERS[0], ProcessState::Running);
    assert!(!lives.bites(&replace, &in_force).await, "the old one did not end");
    let serves = truth().port(MEMBERS[0], PortState::Answers);
    assert!(!serves.bites(&replace, &in_force).await, "the old one still answers");

    // Its end is what comes: with nothing else broken, and beside a fault that is still in force.
    let other = InForce::only("F2", &Pause { members: vec![MEMBERS[2]] }.into());
    for rest in [InForce::default(), other] {
        let back = || Lying::truth(&rest);
        assert!(back().healed(&replace, &rest).await);
        let same = back().with(|all| all.served_by = [(MEMBERS[0], JAVA.other())].into());
        assert!(!same.healed(&replace, &rest).await, "the kind of server that was there before");
        let nobody = back().with(|all| all.served_by.clear());
        assert!(!nobody.healed(&replace, &rest).await, "nobody says who serves");
    }
}

#[tokio::test]
async fn a_fault_is_gone_only_when_processes_run_ports_answer_and_probes_arrive() {
    let other = InForce::only("F2", &kill(vec![MEMBERS[2]]));
    for rest in [InForce::default(), other] {
        let back = || Lying::truth(&rest);
        for action in [kill(first()), Action::from(Pause { members: first() })] {
            assert!(back().healed(&action, &rest).await);
            for state in [ProcessState::Stopped, ProcessState::Dying, ProcessState::Gone("9".to_owned())] {
                let lying = back().state(MEMBERS[0], state.clone());
                assert!(!lying.healed(&action, &rest).await, "it is {state}");
            }
            for port in [PortState::Silent, PortState::HangsUp, PortState::Refuses] {
                let lying = back().port(MEMBERS[0], port);
                assert!(!lying.healed(&action, &rest).await, "its port {port}");
            }
        }
        let cut = Action::from(Cut::between(&[vec![MEMBERS[0]], vec![MEMBERS[1]]], Severing::Silence));
        assert!(back().healed(&cut, &rest).await);
        let lying = back().with(|all| all.lost.push(Pair::from((1, 2))));
        assert!(!lying.healed(&cut, &rest).await, "one direction is still cut");
        assert!(!back().with(|all| all.control = false).healed(&cut, &rest).await, "not even the control");
    }
}

#[tokio::test]
async fn an_ensemble_in_which_a_member_does_not_serve_is_not_well() {
    let rest = InForce::default();
    let killed = kill(first());
    let lying = Lying::truth(&rest);
    lying.events.push(Stamped { time: 0, node: MEMBERS[1], event: Event::Exited("1".to_owned()) });
    assert!(!lying.healed(&killed, &rest).await);
}

/// Two applications, as a test wants them seen.
#[derive(Clone)]
struct Stage {
    state: ProcessState,
    other: Option<ProcessState>,
    /// Bytes that passed the links of the one that is hit, since the cut, and those that wait.
    crossed: u64,
    waiting: u64,
    offset_ns: i64,
    others_offset_ns: i64,
    /// Whether bytes pass the links of the other one.
    others_pass: bool,
    ready: usize,
}

impl ApplicationsSeen for Stage {
    fn wanted(&self) -> usize {
        2
    }

    fn ready(&self) -> usize {
        self.ready
    }

    fn state(&self, application: u64) -> ProcessState {
        if application == 1 { self.state.clone() } else { self.other.clone().expect("it is there") }
    }

    fn another(&self, _: u64) -> Option<u64> {
        self.other.as_ref().map(|_| 2)
    }

    fn traffic(&self, application: u64) -> (u64, u64) {
        use std::sync::atomic::AtomicU64;
        static PASSED: AtomicU64 = AtomicU64::new(1);
        let passes = if application == 1 { self.crossed > 0 } else { self.others_pass };
        let passed = if passes { PASSED.fetch_add(1, Ordering::Relaxed) } else { 0 };
        (passed, if application == 1 { self.waiting } else { 0 })
    }

    fn passed_since(&self, _: u64) -> u64 {
        self.crossed
    }

    async fn read_clock(&self, application: u64) -> anyhow::Result<ClockReading> {
        let offset_ns = if application == 1 { self.offset_ns } else { self.others_offset_ns };
        Ok(ClockReading { offset_ns, error_ns: 1_000 })
    }
}

const HOLDER: Holder =
    Holder { application: 1, thing: harness_core::fault::application::Thing::Lock, key: 0, token: 7 };

fn calm() -> Stage {
    Stage {
        state: ProcessState::Running,
        other: Some(ProcessState::Running),
        crossed: 0,
        waiting: 0,
        offset_ns: 0,
        others_offset_ns: 0,
        others_pass: true,
        ready: 2,
    }
}

async fn harmed(stage: Stage, harm: Harm) -> bool {
    application_is_harmed(&stage, &HOLDER, harm).await.holds
}

async fn well(stage: Stage, harm: Harm) -> bool {
    application_is_well(&stage, &HOLDER, harm).await.holds
}

#[tokio::test]
async fn an_application_that_was_to_stop_or_die_is_asked_of_the_kernel_beside_one_that_runs() {
    let gone = ProcessState::Gone("killed by signal 9".to_owned());
    for (harm, is, is_not) in
        [(Harm::Pause, ProcessState::Stopped, gone.clone()), (Harm::Kill, gone, ProcessState::Dying)]
    {
        let under = |state: &ProcessState| Stage { state: state.clone(), ..calm() };
        assert!(harmed(under(&is), harm).await);
        assert!(!harmed(under(&is_not), harm).await);
        assert!(!harmed(under(&ProcessState::Running), harm).await);
        assert!(!harmed(Stage { other: None, ..under(&is) }, harm).await, "nothing runs beside it");
        let stopped = Some(ProcessState::Stopped);
        assert!(!harmed(Stage { other: stopped, ..under(&is) }, harm).await, "all are stopped");
    }
    assert!(well(calm(), Harm::Pause).await);
    assert!(!well(Stage { state: ProcessState::Stopped, ..calm() }, Harm::Pause).await);
    assert!(well(calm(), Harm::Kill).await);
    assert!(!well(Stage { ready: 1, ..calm() }, Harm::Kill).await, "nobody took its place");
}

#[tokio::test]
async fn an_application_is_cut_off_only_if_it_speaks_nothing_passes_and_others_are_heard() {
    let cut = || Stage { waiting: 40, ..calm() };
    assert!(harmed(cut(), Harm::Cut).await);
    assert!(!harmed(Stage { waiting: 0, ..cut() }, Harm::Cut).await, "it is mute");
    assert!(!harmed(Stage { crossed: 1, ..cut() }, Harm::Cut).await, "a byte crossed");
    assert!(!harmed(Stage { others_pass: false, ..cut() }, Harm::Cut).await, "nobody is heard");
    assert!(!harmed(Stage { other: None, ..cut() }, Harm::Cut).await, "nobody is beside it");
    assert!(well(Stage { crossed: 1, ..calm() }, Harm::Cut).await);
    assert!(!well(cut(), Harm::Cut).await, "nothing passes yet");
    assert!(at_the_end_of_a_cut_application(0).holds);
    assert!(!at_the_end_of_a_cut_application(1).holds);
}

#[tokio::test]
async fn an_applications_clock_is_read_beside_one_that_nobody_shifted() {
    let harm = Harm::Clock { offset_ns: 60_000_000_000 };
    let shifted = || Stage { offset_ns: 60_000_000_000, ..calm() };
    assert!(harmed(shifted(), harm).await);
    assert!(!harmed(calm(), harm).await, "it reads the true time");
    assert!(!harmed(Stage { others_offset_ns: 60_000_000_000, ..shifted() }, harm).await, "all are shifted");
    assert!(well(calm(), harm).await);
    assert!(!well(shifted(), harm).await);
}
