//! What a run does with the ensemble. Faults go to the agents, many at once; none needs the engine, except
//! the start of a member, and what is done to the processes of one that is process 1 of its own namespace.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use anyhow::bail;
use futures_util::future::try_join_all;
use harness_agent::protocol::{Arrival, Command, Peer, PeerCount, ProcessLine, Refusal, SignalName};
use harness_core::condition::LinkCondition;
use harness_systems::{Alongside, Order, Ran};
use runs::events::Event;
use runs::member::MemberId;
use serde_json::Value;

use super::agent::peer;
use super::client_container::ClientContainer;
use super::ensemble::{DockerCluster, STOP_PATIENCE};
use super::process_1;
use super::within::Within;
use crate::cluster::containers::Containers;
use crate::cluster::{Async, ClockReading, Cluster, Cut, PortState, ProcessState, Severing, Traffic, every};
use crate::events::EventLog;
use crate::links::protocol::{Count, Pair, ProbeRound, Probed};

/// How long a killed process may take to be reaped, and the engine to tell.
const SIGNAL_PATIENCE: Duration = Duration::from_secs(10);
/// How long a probe may take once the controls arrived.
const PROBE_PATIENCE: Duration = Duration::from_millis(100);
/// How long a process that was started may take to be there for its clock to be shifted.
const SHIFT_PATIENCE: Duration = Duration::from_secs(5);
/// Between two looks for it.
const LOOK_EVERY: Duration = Duration::from_millis(2);

impl DockerCluster {
    /// Sends a signal to the processes of members, by their agents; of members that no agent is with, the
    /// engine does what comes of it.
    async fn signal(&self, members: &[MemberId], signal: SignalName) -> anyhow::Result<()> {
        every(members.iter().map(|id| self.signal_one(*id, signal))).await.map(drop)
    }

    pub(super) async fn signal_one(&self, id: MemberId, signal: SignalName) -> anyhow::Result<()> {
        if !self.is_process_1(id) {
            return self.agent(id)?.signal(signal).await;
        }
        // As with signals, one that was never started hears nothing.
        let Some(container) = self.inside.container(id) else { return Ok(()) };
        let engine = self.resources.engine();
        match signal {
            SignalName::Kill => process_1::kill(engine, &container).await,
            SignalName::Stop => process_1::pause(engine, &container).await,
            SignalName::Continue => process_1::resume(engine, &container).await,
            SignalName::Term => {
                process_1::end(engine, &container, STOP_PATIENCE).await;
                Ok(())
            }
        }
    }

    fn note(&self, members: &[MemberId], event: &Event) -> anyhow::Result<()> {
        for id in members {
            self.member(*id)?.place.note(event.clone());
        }
        Ok(())
    }

    async fn start_again(&self, id: MemberId, lose_unsynced: bool) -> anyhow::Result<()> {
        self.member(id)?.ended(SIGNAL_PATIENCE).await?;
        let spawned = self.start_member(id, lose_unsynced).await?;
        let offset_ns = self.offset(id);
        if offset_ns == 0 {
            return Ok(());
        }
        self.shift_when_it_runs(id, offset_ns).await?;
        let gap_ns = self.clock.now().saturating_sub(spawned);
        self.member(id)?.place.note(Event::Clock { offset_ns, gap_ns: Some(gap_ns) });
        Ok(())
    }

    fn offset(&self, id: MemberId) -> i64 {
        let shifted = self.shifted.lock().unwrap_or_else(PoisonError::into_inner);
        shifted.get(&id).copied().unwrap_or(0)
    }

    /// A container that was started may still be on its way to its own program.
    async fn shift_when_it_runs(&self, id: MemberId, offset_ns: i64) -> anyhow::Result<()> {
        let agent = self.agent(id)?;
        let shifting = async {
            loop {
                let processes = agent.processes().await?;
                if processes.iter().any(runs_its_program) && agent.shift_clock(offset_ns).await? > 0 {
                    return anyhow::Ok(());
                }
                tokio::time::sleep(LOOK_EVERY).await;
            }
        };
        match tokio::time::timeout(SHIFT_PATIENCE, shifting).await {
            Ok(done) => done,
            Err(_) => bail!("n{} was started again, and there is no process to shift the clock of", id.0),
        }
    }

    async fn shift(&self, id: MemberId, offset_ns: i64) -> anyhow::Result<()> {
        self.shifted.lock().unwrap_or_else(PoisonError::into_inner).insert(id, offset_ns);
        // One that is down is shifted when it is started.
        if self.member(id)?.how_it_ended().is_none() {
            self.agent(id)?.shift_clock(offset_ns).await?;
            self.member(id)?.place.note(Event::Clock { offset_ns, gap_ns: None });
        }
        Ok(())
    }

    /// Puts a command to the agents of these members, and gives the counters of that moment.
    async fn counted(
        &self,
        commands: impl IntoIterator<Item = (MemberId, Command)>,
    ) -> anyhow::Result<Traffic> {
        let asked: Vec<_> = commands
            .into_iter()
            .map(async |(to, command)| {
                let counts = self.agent(to)?.counts(command).await?;
                anyhow::Ok(counts.into_iter().map(move |count| as_link_count(to, count)))
            })
            .collect();
        let counts = every(asked).await?;
        Ok(Traffic { counts: counts.into_iter().flatten().collect() })
    }

    /// Lets nothing in where that is said. All of it is refused in one way.
    async fn put_in_force(&self, fault: &str, links: &[(Pair, LinkCondition)]) -> anyhow::Result<Traffic> {
        if links.iter().any(|(_, link)| !link.delay.is_none()) {
            bail!("packets are let in or dropped, and not held back");
        }
        let severed = |(pair, link): &(Pair, LinkCondition)| Some((*pair, link.severed?));
        let (pairs, ways): (Vec<Pair>, Vec<Severing>) = links.iter().filter_map(severed).unzip();
        let how = ways.into_iter().max().unwrap_or(Severing::Silence);
        let cut = Cut { pairs, how };
        let refusal = match how {
            Severing::Silence => Refusal::Silence,
            Severing::Reject => Refusal::Reset,
        };
        self.cuts.lock().unwrap_or_else(PoisonError::into_inner).insert(fault.to_owned(), cut.clone());
        let commands = by_receiver(&cut)
            .into_iter()
            .map(|(to, from)| (to, Command::Cut { fault: fault.to_owned(), from, refusal }));
        self.counted(commands).await
    }

    async fn take_away(&self, fault: &str) -> anyhow::Result<Traffic> {
        let cut = self.cuts.lock().unwrap_or_else(PoisonError::into_inner).remove(fault);
        // A cut that is not known here may still be known there.
        let receivers = match &cut {
            Some(cut) => by_receiver(cut).into_keys().collect(),
            None => self.ids.clone(),
        };
        // Counted first: what waited in the senders' queues gets through the moment the cut is gone.
        let counted = self.counted(receivers.iter().map(|to| (*to, Command::Counters))).await;
        let heal = |to| (to, Command::Heal { fault: fault.to_owned() });
        self.counted(receivers.into_iter().map(heal)).await?;
        counted
    }

    async fn probe_all(&self, slower: Duration) -> anyhow::Result<ProbeRound> {
        let round = self.round.fetch_add(1, Ordering::Relaxed);
        let send = |id: &MemberId| {
            let id = *id;
            async move { self.agent(id)?.ask(Command::SendProbes { round }).await }
        };
        try_join_all(self.ids.iter().map(send)).await?;
        let arrived = try_join_all(self.ids.iter().map(async |id| {
            let arrivals = self.agent(*id)?.arrivals(round, PROBE_PATIENCE + slower).await?;
            anyhow::Ok((*id, arrivals))
        }))
        .await?;
        Ok(as_round(&self.ids, &arrived))
    }

    async fn ask_port(&self, id: MemberId) -> anyhow::Result<PortState> {
        let state = self.settings.system.port(&self.whereabouts(id)).await;
        Ok(state.behind(self.published))
    }
}

impl Cluster for DockerCluster {
    fn name(&self) -> &'static str {
        "docker"
    }

    fn can_pause(&self) -> Result<(), String> {
        self.abilities.pauses.clone()
    }

    fn can_shift_clocks(&self) -> Result<(), String> {
        self.abilities.clocks.clone()
    }

    fn members(&self) -> &[MemberId] {
        &self.ids
    }

    fn voters(&self) -> &[MemberId] {
        &self.ids[..self.settings.voters()]
    }

    fn client_address(&self, member: MemberId) -> SocketAddr {
        let nowhere = SocketAddr::from(([0, 0, 0, 0], 0));
        self.clients.get(&member).copied().unwrap_or(nowhere)
    }

    fn events(&self) -> &EventLog {
        &self.events
    }

    fn start(&self) -> Async<'_, ()> {
        Box::pin(self.start_all())
    }

    fn kill<'a>(&'a self, members: &'a [MemberId]) -> Async<'a, ()> {
        Box::pin(self.signal(members, SignalName::Kill))
    }

    fn restart<'a>(&'a self, members: &'a [MemberId], lose_unsynced: bool) -> Async<'a, ()> {
        Box::pin(async move {
            let again: Vec<_> = members.iter().map(|id| self.start_again(*id, lose_unsynced)).collect();
            every(again).await.map(drop)
        })
    }

    fn pause<'a>(&'a self, members: &'a [MemberId]) -> Async<'a, ()> {
        Box::pin(async move {
            self.signal(members, SignalName::Stop).await?;
            self.note(members, &Event::Paused)
        })
    }

    fn resume<'a>(&'a self, members: &'a [MemberId]) -> Async<'a, ()> {
        Box::pin(async move {
            self.note(members, &Event::Resumed)?;
            self.signal(members, SignalName::Continue).await
        })
    }

    fn link<'a>(&'a self, fault: &'a str, links: &'a [(Pair, LinkCondition)]) -> Async<'a, Traffic> {
        Box::pin(self.put_in_force(fault, links))
    }

    fn heal<'a>(&'a self, fault: &'a str) -> Async<'a, Traffic> {
        Box::pin(self.take_away(fault))
    }

    fn traffic(&self) -> Async<'_, Traffic> {
        Box::pin(self.counted(self.ids.iter().map(|id| (*id, Command::Counters))))
    }

    fn probe(&self, slower: Duration) -> Async<'_, ProbeRound> {
        Box::pin(self.probe_all(slower))
    }

    fn can_use(&self, device: &str) -> Result<(), String> {
        let unknown = || Err(format!("the members' agents have no {device}"));
        self.abilities.devices.get(device).cloned().unwrap_or_else(unknown)
    }

    fn device<'a>(&'a self, member: MemberId, device: &'a str, order: Value) -> Async<'a, Value> {
        Box::pin(async move { self.agent(member)?.device(device, order).await })
    }

    fn process_state(&self, member: MemberId) -> Async<'_, ProcessState> {
        Box::pin(async move {
            // Asked first: a process that ends in between is then dying, and not running for ever.
            let ended = self.member(member)?.how_it_ended();
            if self.is_process_1(member) {
                return match (ended, self.inside.container(member)) {
                    (Some(how), _) => Ok(ProcessState::Gone(how)),
                    (None, Some(container)) => process_1::state(self.resources.engine(), &container).await,
                    (None, None) => Ok(ProcessState::Dying),
                };
            }
            let processes = self.agent(member)?.processes().await?;
            Ok(as_process_state(&processes, ended))
        })
    }

    fn shift_clock<'a>(&'a self, members: &'a [MemberId], offset_ns: i64) -> Async<'a, ()> {
        Box::pin(async move {
            let shifted: Vec<_> = members.iter().map(|id| self.shift(*id, offset_ns)).collect();
            every(shifted).await.map(drop)
        })
    }

    fn read_clock(&self, member: MemberId) -> Async<'_, ClockReading> {
        Box::pin(async move {
            let reading = self.agent(member)?.read_clock().await?;
            Ok(ClockReading { offset_ns: reading.offset_ns, error_ns: reading.error_ns })
        })
    }

    fn run_own(&self, member: MemberId, order: Order) -> Async<'_, Ran> {
        Box::pin(async move { Ok(self.settings.system.run_own(order, &self.whereabouts(member)).await?) })
    }

    fn ask(&self, member: MemberId) -> Async<'_, PortState> {
        Box::pin(self.ask_port(member))
    }

    fn containers(&self) -> Option<Arc<dyn Containers>> {
        let within: Arc<dyn Containers> = Arc::<Within>::clone(self.within.as_ref()?);
        Some(within)
    }

    fn alongside(&self) -> Option<Arc<dyn Alongside>> {
        let client = self.clients_in.lock().unwrap_or_else(PoisonError::into_inner);
        let client: Arc<dyn Alongside> = Arc::<ClientContainer>::clone(client.as_ref()?);
        Some(client)
    }

    fn broken(&self) -> Async<'_, String> {
        Box::pin(async move { Ok(self.failure.wait().await) })
    }

    fn stop(&self) -> Async<'_, ()> {
        Box::pin(self.end())
    }
}

/// Whether a process has become what its container is for: until then it is the engine's own.
fn runs_its_program(process: &ProcessLine) -> bool {
    !process.name.starts_with("runc") && !matches!(process.state, 'Z' | 'X' | 'x')
}

/// From whom each receiver of a cut hears nothing.
fn by_receiver(cut: &Cut) -> BTreeMap<MemberId, Vec<Peer>> {
    let mut receivers: BTreeMap<MemberId, Vec<Peer>> = BTreeMap::new();
    for pair in &cut.pairs {
        receivers.entry(pair.to).or_default().push(peer(pair.from));
    }
    receivers
}

/// A packet filter holds nothing back, so nothing waits in it.
fn as_link_count(to: MemberId, count: PeerCount) -> Count {
    Count {
        pair: Pair::new(MemberId(count.from), to),
        forwarded: count.passed_bytes,
        waiting: 0,
        dials_waiting: 0,
        refused: count.refused_packets,
    }
}

/// What all agents saw of a round. Without every control it proves nothing.
fn as_round(ids: &[MemberId], arrived: &[(MemberId, Vec<Arrival>)]) -> ProbeRound {
    let seen = |pair: Pair| {
        let (_, arrivals) = arrived.iter().find(|(to, _)| *to == pair.to)?;
        arrivals.iter().find(|arrival| arrival.from == peer(pair.from)).copied()
    };
    let pairs = ids
        .iter()
        .flat_map(|from| ids.iter().filter(move |to| *to != from).map(move |to| Pair::new(*from, *to)));
    let mut probes = Vec::new();
    let mut slowest = Some(0);
    for pair in pairs {
        let arrival = seen(pair);
        let control = arrival.and_then(|arrival| arrival.control_us);
        slowest = slowest.zip(control).map(|(slowest, control)| slowest.max(control));
        probes.push(Probed { pair, took_us: arrival.and_then(|arrival| arrival.probe_us) });
    }
    ProbeRound { probes, control_us: slowest }
}

/// What the processes of a member's namespace are together.
fn as_process_state(processes: &[ProcessLine], ended: Option<String>) -> ProcessState {
    let mut living = processes.iter().filter(|process| !matches!(process.state, 'Z' | 'X' | 'x')).peekable();
    if living.peek().is_none() {
        return ended.map_or(ProcessState::Dying, ProcessState::Gone);
    }
    if living.all(|process| process.state == 'T') { ProcessState::Stopped } else { ProcessState::Running }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(state: char) -> ProcessLine {
        ProcessLine { pid: 7, start_ticks: 1, state, name: "harness".to_owned() }
    }

    #[test]
    fn a_member_is_stopped_when_all_its_processes_are_and_gone_when_the_engine_says_how() {
        let ended = || Some("killed by signal 9".to_owned());
        assert_eq!(as_process_state(&[process('S'), process('T')], None), ProcessState::Running);
        assert_eq!(as_process_state(&[process('Z'), process('T')], None), ProcessState::Stopped);
        assert_eq!(as_process_state(&[process('Z')], None), ProcessState::Dying);
        assert_eq!(as_process_state(&[], None), ProcessState::Dying);
        assert_eq!(as_process_state(&[], ended()), ProcessState::Gone("killed by signal 9".to_owned()));
    }

    #[test]
    fn a_cut_is_made_where_it_is_heard() {
        let pairs = [(1, 2), (1, 3), (2, 3)].map(Pair::from).to_vec();
        let receivers = by_receiver(&Cut { pairs, how: Severing::Silence });
        assert_eq!(receivers, BTreeMap::from([(MemberId(2), vec![1]), (MemberId(3), vec![1, 2])]));
    }

    #[test]
    fn a_round_counts_only_with_every_control() {
        let ids = [MemberId(1), MemberId(2)];
        let arrival = |from, control_us| Arrival { from, probe_us: Some(90), control_us };
        let whole = [(ids[0], vec![arrival(2, Some(80))]), (ids[1], vec![arrival(1, Some(70))])];
        let round = as_round(&ids, &whole);
        assert_eq!(round.control_us, Some(80));
        assert_eq!(round.probes.len(), 2);
        let torn = [(ids[0], vec![arrival(2, None)]), (ids[1], vec![arrival(1, Some(70))])];
        assert_eq!(as_round(&ids, &torn).control_us, None);
    }
}
