//! The first and the last operations of a run: every key is created, and read on every member at the end.
//!
//! Both are in the history like all others.

use std::time::Duration;

use anyhow::{anyhow, bail};
use checker::durability::FinalState;
use checker::history::EventKind;
use harness_systems::{Client, Connected};
use runs::member::MemberId;
use tokio::time::Instant;
use workloads::{Op, Outcome};

use super::Shared;
use super::client::{Place, note_completion};

/// How long an operation may take when nothing is broken.
const CALM_PATIENCE: Duration = Duration::from_secs(5);
/// How long a key may be refused before it is made.
const SET_UP_PATIENCE: Duration = Duration::from_secs(10);
/// How long one attempt to connect may take.
const CONNECT_PATIENCE: Duration = Duration::from_secs(1);
/// The pause between two attempts.
const PAUSE: Duration = Duration::from_millis(20);
/// How often a member is asked for one key before the others.
const ATTEMPTS: usize = 2;
/// How long a member that serves may take to let a client in that reads it a last time.
const CONNECTING_PATIENCE: Duration = Duration::from_secs(10);

/// Creates every key. Process 0 does it, before any client uses that number. Whoever refuses may be a member
/// that takes no writes, so the next one is asked.
pub async fn set_up(shared: &Shared) -> anyhow::Result<()> {
    let operations = shared.load.rules().workload_mut().setup();
    if operations.is_empty() {
        return Ok(());
    }
    let mut members = shared.cluster.members().iter().copied().cycle();
    let mut member = members.next().ok_or_else(|| anyhow!("no member"))?;
    let mut client = client_at(shared, member, CALM_PATIENCE).await?;
    let mut is_told = false;
    for op in operations {
        let deadline = Instant::now() + SET_UP_PATIENCE;
        loop {
            let outcome = perform(shared, &mut *client, member, 0, &op).await;
            match outcome.kind {
                EventKind::Ok => break,
                // It certainly had no effect: a system that has just begun may not be ready for it yet.
                EventKind::Fail if Instant::now() < deadline => {
                    if !is_told {
                        let error = outcome.error.as_deref().unwrap_or_default();
                        tracing::warn!("a first key is refused, and asked for again for a while: {error}");
                        is_told = true;
                    }
                    tokio::time::sleep(PAUSE).await;
                    member = members.next().unwrap_or(member);
                    let _ = client.connect(shared.cluster.client_address(member), CONNECT_PATIENCE).await;
                }
                kind => bail!(
                    "creating key {} ended as {kind:?} although nothing is broken: {}",
                    op.key,
                    outcome.error.unwrap_or_default()
                ),
            }
        }
    }
    // The session's end is not part of what is judged.
    let _ = client.perform(&Op::close(), CALM_PATIENCE).await;
    Ok(())
}

/// Members that are read a last time, with a client for each of them.
pub struct Readers {
    clients: Vec<(MemberId, Box<dyn Client>)>,
    /// The first of as many process numbers that are free.
    process: u64,
    /// How much there is to be read.
    wanted: usize,
}

impl Readers {
    /// A client at each of these members. One that can't be reached is left out, and what it has is missing.
    pub async fn connect(shared: &Shared, members: &[MemberId]) -> Self {
        let (process, reads) = {
            let rules = shared.load.rules();
            (rules.next_process(), rules.workload().final_reads().iter().filter(|op| !op.is_watch()).count())
        };
        let mut clients = Vec::new();
        for member in members.iter().filter(|_| reads > 0) {
            if let Ok(client) = client_at(shared, *member, CONNECTING_PATIENCE).await {
                clients.push((*member, client));
            }
        }
        Self { clients, process, wanted: reads * members.len() }
    }

    /// Reads every key on each of them once, one member after the other: whoever reads a queue by taking what
    /// is there, and giving it back, must be alone. What could not be read is missing.
    pub async fn read(&mut self, shared: &Shared) -> Vec<FinalState> {
        let reads = shared.load.rules().workload().final_reads();
        let mut states = Vec::new();
        for (process, (member, client)) in (self.process..).zip(&mut self.clients) {
            states.extend(read_all(shared, &mut **client, *member, process, &reads).await);
        }
        states
    }

    /// Whether all was read, and nothing may change any more.
    pub fn are_settled(&self, shared: &Shared, states: &[FinalState]) -> bool {
        states.len() == self.wanted && shared.load.rules().workload().is_settled(states)
    }
}

/// Reads every key on one member. A client that gives no answer does not cost the member's word: it connects
/// again, and asks once more. Who gave none then is not asked for the rest.
async fn read_all(
    shared: &Shared,
    client: &mut dyn Client,
    member: MemberId,
    process: u64,
    reads: &[Op],
) -> Vec<FinalState> {
    let mut states = Vec::new();
    for op in reads {
        let mut is_mute = false;
        for _ in 0..ATTEMPTS {
            if !client.is_connected() {
                let _ = client.connect(shared.cluster.client_address(member), CONNECT_PATIENCE).await;
            }
            let outcome = perform(shared, client, member, process, op).await;
            states.extend(shared.load.rules().workload().final_state(member.0, op, &outcome));
            is_mute = outcome.kind != EventKind::Ok && outcome.refusal.is_none();
            if outcome.kind == EventKind::Ok || client.is_connected() {
                break;
            }
        }
        if is_mute {
            break;
        }
    }
    states
}

/// One operation, written down.
async fn perform(
    shared: &Shared,
    client: &mut dyn Client,
    member: MemberId,
    process: u64,
    op: &Op,
) -> Outcome {
    let place = Some(Place::of(member, client));
    shared.recorder.record(|now| {
        let mut event = op.event(process, now);
        Place::note(place, &mut event);
        event
    });
    let outcome = client.perform(op, CALM_PATIENCE).await;
    shared.load.rules().workload_mut().complete(process, op, &outcome);
    note_completion(shared, &outcome, op, process, place);
    outcome
}

/// A client at a member, tried again and again: the member is known to serve, or about to.
async fn client_at(shared: &Shared, member: MemberId, patience: Duration) -> anyhow::Result<Box<dyn Client>> {
    let deadline = Instant::now() + patience;
    let mut client = shared.client();
    loop {
        let why = match client.connect(shared.cluster.client_address(member), CONNECT_PATIENCE).await {
            Connected::Resumed | Connected::Opened { .. } => return Ok(client),
            Connected::Refused(why) => why,
            Connected::Replaced => "the client is being replaced".to_owned(),
            Connected::Expired { .. } => "the session expired".to_owned(),
        };
        if Instant::now() > deadline {
            bail!("connecting to member {}: {why}", member.0);
        }
        tokio::time::sleep(PAUSE).await;
    }
}
