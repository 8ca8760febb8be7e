//! Looks from the inside whether a fault bites, and whether it is gone.
//!
//! Asked-for is not done: a rule may hit the wrong pair, a signal may come late, a member may be back before
//! anybody cut it off. So after each injection the network is probed one way at a time, the kernel is asked
//! about processes, and a port is asked to answer. What can't be seen is said to be unverified, and a run
//! with such a fault proves nothing.

use std::time::{Duration, Instant};

use node_wire::ids::ServerId;
use reports::results::{FaultDetail, Reach};

use super::target::Action;
use crate::cluster::{Cluster, Cut, PortState, ProcessState, Traffic, matrix};
use crate::events;
use crate::links::protocol::{Pair, ProbeRound, Probed};

/// How long a signal may take to show.
const SIGNAL_PATIENCE: Duration = Duration::from_secs(2);
/// Rounds of probes until one is clear: on a busy machine a probe that should arrive may be late.
const PROBE_ROUNDS: u32 = 5;
/// How long members may take to serve again after healing.
const RECOVERY_PATIENCE: Duration = Duration::from_secs(20);
/// How often a state that only the kernel knows is looked at.
const GLANCE: Duration = Duration::from_millis(2);

/// What looking showed.
#[derive(Clone, Debug)]
pub struct Proof {
    /// Whether it is as it should be.
    pub holds: bool,
    /// What was seen.
    pub detail: FaultDetail,
}

impl Proof {
    fn new(holds: bool, evidence: String) -> Self {
        let detail = FaultDetail { evidence: Some(evidence), ..FaultDetail::default() };
        Self { holds, detail }
    }
}

/// Whether an injected fault bites. `before` is the traffic at its injection.
pub async fn bites(cluster: &dyn Cluster, action: &Action, before: &Traffic) -> anyhow::Result<Proof> {
    match action {
        Action::Cut(cut) => cut_bites(cluster, cut, before).await,
        Action::Kill { members } => {
            let wanted = |state: &ProcessState| matches!(state, ProcessState::Gone(_));
            processes(cluster, members, wanted, PortState::Refuses).await
        }
        Action::Pause { members } => {
            let wanted = |state: &ProcessState| *state == ProcessState::Stopped;
            let proof = processes(cluster, members, wanted, PortState::Silent).await?;
            with_control(cluster, members, proof).await
        }
    }
}

async fn cut_bites(cluster: &dyn Cluster, cut: &Cut, before: &Traffic) -> anyhow::Result<Proof> {
    let mut proof = Proof::new(false, "no probe was sent".to_owned());
    for _ in 0..PROBE_ROUNDS {
        let round = cluster.probe().await?;
        let crossed = cluster.traffic().await?.forwarded(cut).saturating_sub(before.forwarded(cut));
        proof = judge_cut(&round, cut, crossed);
        proof.detail.matrix = Some(matrix(&round, cluster.members()));
        if proof.holds || round.control_us.is_none() {
            break;
        }
    }
    Ok(proof)
}

/// A cut holds when no probe crossed it, every other one arrived, the control too, and the counters stand
/// still across it.
fn judge_cut(round: &ProbeRound, cut: &Cut, crossed_bytes: u64) -> Proof {
    let (across, within): (Vec<&Probed>, Vec<&Probed>) =
        round.probes.iter().partition(|probe| cut.severs(probe.pair));
    let crossed = across.iter().filter(|probe| probe.took_us.is_some()).count();
    let arrived = within.iter().filter(|probe| probe.took_us.is_some()).count();
    let control = match round.control_us {
        Some(took) => format!("the control in {took} us"),
        None => "not even the control".to_owned(),
    };
    // The count of bytes is taken after the cut was in force, so a single one is too many.
    let holds = crossed == 0 && arrived == within.len() && round.control_us.is_some() && crossed_bytes == 0;
    Proof::new(
        holds,
        format!(
            "{crossed} of {} probes crossed, {arrived} of {} arrived within, {control}; {crossed_bytes} bytes \
             crossed",
            across.len(),
            within.len()
        ),
    )
}

/// Waits until the processes of `members` are as wanted, then asks their ports.
async fn processes(
    cluster: &dyn Cluster,
    members: &[ServerId],
    wanted: impl Fn(&ProcessState) -> bool,
    port: PortState,
) -> anyhow::Result<Proof> {
    let deadline = Instant::now() + SIGNAL_PATIENCE;
    let mut holds = true;
    let mut words = Vec::new();
    for member in members {
        let mut state = cluster.process_state(*member).await?;
        while !wanted(&state) && Instant::now() < deadline {
            tokio::time::sleep(GLANCE).await;
            state = cluster.process_state(*member).await?;
        }
        let seen = ask_until(cluster, *member, port, deadline).await?;
        holds &= wanted(&state) && seen == port;
        words.push(format!("n{} is {state}, its port {seen}", member.0));
    }
    Ok(Proof::new(holds, words.join("; ")))
}

/// Asks a port until it does what is wanted; on a busy machine an answer may be late once.
async fn ask_until(
    cluster: &dyn Cluster,
    member: ServerId,
    wanted: PortState,
    deadline: Instant,
) -> anyhow::Result<PortState> {
    loop {
        let seen = cluster.ask(member).await?;
        if seen == wanted || Instant::now() >= deadline {
            return Ok(seen);
        }
        tokio::time::sleep(GLANCE).await;
    }
}

/// Silence proves something only beside somebody who answers.
async fn with_control(cluster: &dyn Cluster, silent: &[ServerId], mut proof: Proof) -> anyhow::Result<Proof> {
    let Some(other) = cluster.members().iter().find(|member| !silent.contains(member)) else {
        return Ok(proof);
    };
    let deadline = Instant::now() + SIGNAL_PATIENCE;
    let answer = ask_until(cluster, *other, PortState::Answers, deadline).await?;
    proof.holds &= answer == PortState::Answers;
    let evidence = proof.detail.evidence.take().unwrap_or_default();
    proof.detail.evidence = Some(format!("{evidence}; n{}, asked beside it, {answer}", other.0));
    Ok(proof)
}

/// What the counters tell when a cut ends: what crossed it, and what wanted to.
pub fn at_the_end_of_a_cut(cut: &Cut, before: &Traffic, after: &Traffic) -> Proof {
    let crossed = after.forwarded(cut).saturating_sub(before.forwarded(cut));
    let (bytes, dials) = after.waiting(cut);
    Proof::new(
        crossed == 0,
        format!("{crossed} bytes crossed while it held; {bytes} bytes and {dials} connections waited"),
    )
}

/// Whether nothing is left of any fault: everybody reaches everybody, every process runs, and every member
/// serves in one epoch.
pub async fn is_gone(cluster: &dyn Cluster) -> anyhow::Result<Proof> {
    // A member that ended by itself is not waited for: nobody starts it again.
    cluster.events().wait(RECOVERY_PATIENCE, events::settled).await;
    let serve = events::all_serve(&cluster.events().views());
    let mut round = cluster.probe().await?;
    for _ in 1..PROBE_ROUNDS {
        if everybody_reached(&round) {
            break;
        }
        round = cluster.probe().await?;
    }
    let reached = round.probes.iter().filter(|probe| probe.took_us.is_some()).count();
    let mut answering = 0;
    for member in cluster.members() {
        let runs = cluster.process_state(*member).await? == ProcessState::Running;
        let deadline = Instant::now() + if runs { SIGNAL_PATIENCE } else { Duration::ZERO };
        let answer = ask_until(cluster, *member, PortState::Answers, deadline).await?;
        answering += usize::from(runs && answer == PortState::Answers);
    }
    let all = cluster.members().len();
    let views = cluster.events().views();
    let stand = match (serve, events::leader_of(&views)) {
        (true, Some(leader)) => format!("all serve in epoch {} under n{}", leader.epoch, leader.id.0),
        _ => events::laggards(&views),
    };
    let evidence = format!(
        "{reached} of {} probes arrived; {answering} of {all} processes run and answer; {stand}",
        round.probes.len()
    );
    let mut proof = Proof::new(serve && everybody_reached(&round) && answering == all, evidence);
    proof.detail.matrix = Some(matrix(&round, cluster.members()));
    proof.detail.epoch = events::highest_epoch(&views).map(|epoch| epoch.0);
    Ok(proof)
}

fn everybody_reached(round: &ProbeRound) -> bool {
    round.probes.iter().all(|probe| probe.took_us.is_some())
}

/// The matrix that follows from processes that are down or stopped: nobody reaches them, nor they anybody.
pub fn matrix_without(members: &[ServerId], absent: &[ServerId]) -> Vec<Vec<Reach>> {
    let reach = |pair: Pair| {
        let unreachable = absent.contains(&pair.from) || absent.contains(&pair.to);
        if unreachable && pair.from != pair.to { Reach::NotReached } else { Reach::Reached }
    };
    members.iter().map(|from| members.iter().map(|to| reach(Pair::new(*from, *to))).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::Severing;
    use crate::links::protocol::Probed;

    fn groups() -> Cut {
        Cut::between(&[vec![ServerId(1)], vec![ServerId(2), ServerId(3)]], Severing::Silence)
    }

    fn round(arrived: &[(u64, u64)], control: Option<u64>) -> ProbeRound {
        let all = [(1, 2), (1, 3), (2, 1), (2, 3), (3, 1), (3, 2)];
        let probes = all
            .iter()
            .map(|pair| Probed { pair: Pair::from(*pair), took_us: arrived.contains(pair).then_some(100) })
            .collect();
        ProbeRound { probes, control_us: control }
    }

    #[test]
    fn a_cut_is_proven_by_probes_one_way_at_a_time() {
        assert!(judge_cut(&round(&[(2, 3), (3, 2)], Some(90)), &groups(), 0).holds);
        let leaky = judge_cut(&round(&[(2, 3), (3, 2), (3, 1)], Some(90)), &groups(), 0);
        assert!(!leaky.holds);
        assert!(leaky.detail.evidence.expect("words").starts_with("1 of 4 probes crossed"));
    }

    #[test]
    fn a_cut_is_not_proven_without_a_control_nor_when_it_cuts_too_much_nor_when_bytes_cross() {
        assert!(!judge_cut(&round(&[(2, 3), (3, 2)], None), &groups(), 0).holds);
        assert!(!judge_cut(&round(&[(2, 3)], Some(90)), &groups(), 0).holds);
        assert!(!judge_cut(&round(&[(2, 3), (3, 2)], Some(90)), &groups(), 7).holds);
    }

    #[test]
    fn who_is_down_reaches_nobody() {
        let members = [ServerId(1), ServerId(2), ServerId(3)];
        let seen = matrix_without(&members, &[ServerId(2)]);
        assert_eq!(seen[0], [Reach::Reached, Reach::NotReached, Reach::Reached]);
        assert_eq!(seen[1], [Reach::NotReached, Reach::Reached, Reach::NotReached]);
    }
}
