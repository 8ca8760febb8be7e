//! Processes as the kernel tells of them, and their ports.

use std::time::{Duration, Instant};

use runs::member::MemberId;

use super::{LOOK_EVERY, PATIENCE, Proof, RECOVERY_PATIENCE as SERVES_PATIENCE};
use crate::cluster::{Cluster, PortState, ProcessState};
use harness_core::fault::Server;
use harness_core::fault::in_force::InForce;

/// Waits until the processes of `members` are as wanted, then asks their ports.
pub async fn are(
    cluster: &dyn Cluster,
    members: &[MemberId],
    wanted: impl Fn(&ProcessState) -> bool,
    port: PortState,
) -> anyhow::Result<Proof> {
    let deadline = Instant::now() + PATIENCE;
    let mut holds = true;
    let mut words = Vec::new();
    for member in members {
        let mut state = cluster.process_state(*member).await?;
        while !wanted(&state) && Instant::now() < deadline {
            tokio::time::sleep(LOOK_EVERY).await;
            state = cluster.process_state(*member).await?;
        }
        let seen = ask_until(cluster, *member, port, deadline).await?;
        holds &= wanted(&state) && seen == port;
        words.push(format!("n{} is {state}, its port {seen}", member.0));
    }
    Ok(Proof::new(holds, words.join("; ")))
}

/// Waits until the processes of `members` are gone and their ports refuse.
pub async fn are_gone(cluster: &dyn Cluster, members: &[MemberId]) -> anyhow::Result<Proof> {
    are(cluster, members, |state| matches!(state, ProcessState::Gone(_)), PortState::Refuses).await
}

/// Whether the processes of `members` run and their ports answer. Those that do not are waited for only when
/// they are `expected` to come.
pub async fn run(cluster: &dyn Cluster, members: &[MemberId], expected: bool) -> anyhow::Result<Proof> {
    let mut answering = 0;
    for member in members {
        let deadline = Instant::now() + if expected { PATIENCE } else { Duration::ZERO };
        let mut runs = cluster.process_state(*member).await? == ProcessState::Running;
        while !runs && Instant::now() < deadline {
            tokio::time::sleep(LOOK_EVERY).await;
            runs = cluster.process_state(*member).await? == ProcessState::Running;
        }
        let deadline = if runs { Instant::now() + PATIENCE } else { deadline };
        let answer = ask_until(cluster, *member, PortState::Answers, deadline).await?;
        answering += usize::from(runs && answer == PortState::Answers);
    }
    let all = members.len();
    Ok(Proof::new(answering == all, format!("{answering} of {all} processes run and answer")))
}

/// Whether those that were replaced answer as the kind of server that was to come.
pub async fn answer_as(cluster: &dyn Cluster, members: &[MemberId], by: Server) -> anyhow::Result<Proof> {
    let mut holds = true;
    let mut words = Vec::new();
    for member in members {
        let deadline = Instant::now() + SERVES_PATIENCE;
        let mut seen = cluster.who_answers(*member).await?;
        while seen.is_none() && Instant::now() < deadline {
            tokio::time::sleep(LOOK_EVERY).await;
            seen = cluster.who_answers(*member).await?;
        }
        holds &= seen.as_ref().is_some_and(|(server, _)| *server == by);
        words.push(match seen {
            Some((server, version)) => format!("n{} serves as {server}, {version}", member.0),
            None => format!("n{} does not say who it is", member.0),
        });
    }
    Ok(Proof::new(holds, words.join("; ")))
}

/// Silence proves something only beside somebody who answers.
pub async fn control(cluster: &dyn Cluster, in_force: &InForce) -> anyhow::Result<Proof> {
    let absent = in_force.absent();
    let Some(other) = cluster.members().iter().find(|member| !absent.contains(member)) else {
        return Ok(Proof::new(true, "nobody was left to be asked beside it".to_owned()));
    };
    let answer = ask_until(cluster, *other, PortState::Answers, Instant::now() + PATIENCE).await?;
    let holds = answer == PortState::Answers;
    Ok(Proof::new(holds, format!("n{}, asked beside it, {answer}", other.0)))
}

/// Asks a port until it does what is wanted; on a busy machine an answer may be late once.
async fn ask_until(
    cluster: &dyn Cluster,
    member: MemberId,
    wanted: PortState,
    deadline: Instant,
) -> anyhow::Result<PortState> {
    loop {
        let seen = cluster.ask(member).await?;
        if seen == wanted || Instant::now() >= deadline {
            return Ok(seen);
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}
