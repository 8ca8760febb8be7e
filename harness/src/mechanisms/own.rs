//! Faults of the user's own at work: the commands that a system's file names for them.
//!
//! The rule of all faults holds for these too: asked-for is not done. What proves one is its `seen`, a
//! command that ends with 0 at a member where the fault is in force. Alone it would be the user's word, so it
//! must be able to say both: no at every target before the fault came, yes there while it is in force, and no
//! at a member beside them, the control. When the fault was undone it must say no again. A fault that nothing
//! undoes is done with when it was done, and what must be seen behind it is that the whole ensemble is well.
//!
//! A command that can't be run, or does not end in time, has said neither yes nor no. So it is while another
//! fault holds the member down or stopped: a refusal by somebody who is not there would pass for a no.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{anyhow, bail};
use harness_core::fault::in_force::InForce;
use harness_core::fault::own::Own;
use harness_core::mechanism::Mechanism;
use harness_core::mechanism::own::{OWN, Owned};
use harness_core::nemeses::RECOVERY_PATIENCE_NS;
use harness_core::proof::Proof;
use harness_systems::{Order, OwnCommand, Ran};
use runs::member::MemberId;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::{Asked, At, Driver};
use crate::clock::RunNs;
use crate::cluster::{Async, Cluster, ProcessState};

/// What does it.
pub(super) const DRIVERS: &[&dyn Driver] = &[&Commands];

struct Commands;

impl Driver for Commands {
    fn mechanism(&self) -> &'static Mechanism {
        &OWN
    }

    /// A file that describes some says what is run, and that it can be was looked at.
    fn can(&self, _: &dyn Cluster) -> Result<(), String> {
        Ok(())
    }

    fn look_before<'a>(&'a self, at: &'a At<'a>) -> Async<'a, bool> {
        Box::pin(async move {
            at.keep(Fault::of(at)?.is_not_there().await);
            Ok(true)
        })
    }

    fn inject<'a>(&'a self, at: &'a At<'a>, asked: Asked<'a>) -> Async<'a, bool> {
        Box::pin(async move {
            asked()?;
            Fault::of(at)?.inflict().await?;
            Ok(true)
        })
    }

    fn bites<'a>(&'a self, at: &'a At<'a>) -> Async<'a, Proof> {
        Box::pin(async move {
            let bites = Fault::of(at)?.bites(at.in_force).await;
            Ok(match at.kept::<Proof>() {
                Some(before) => before.and(bites),
                None => bites,
            })
        })
    }

    fn undo<'a>(&'a self, at: &'a At<'a>, _: RunNs) -> Async<'a, Option<Proof>> {
        Box::pin(async move { Fault::of(at)?.undo().await })
    }

    fn gone<'a>(&'a self, at: &'a At<'a>) -> Async<'a, Option<Proof>> {
        Box::pin(async move { Ok(Fault::of(at)?.is_gone(at.in_force).await) })
    }
}

/// How long a fault may take to show where it was brought.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long it may take to be gone: as long as members may take to serve again.
const RECOVERY_PATIENCE: Duration = Duration::from_nanos(RECOVERY_PATIENCE_NS);
/// Between two questions. Each costs a process.
const PAUSE: Duration = Duration::from_millis(100);

/// What a member shows of a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Says {
    Yes,
    No,
    /// Neither, and why.
    Nothing(String),
}

/// A fault of the user's own in a run.
#[derive(Clone, Copy)]
struct Fault<'a> {
    /// Where its members run.
    cluster: &'a Arc<dyn Cluster>,
    /// Its kind.
    own: Own,
    /// Whom it is aimed at.
    members: &'a [MemberId],
    /// Its name in this run.
    id: &'a str,
}

impl<'a> Fault<'a> {
    fn of(at: &At<'a>) -> anyhow::Result<Self> {
        let Owned { own, members } = at.act()?;
        Ok(Self { cluster: at.cluster, own: *own, members, id: at.fault })
    }

    /// Has a command run for each of these at once, and waits for all.
    async fn at_each(
        &self,
        members: &[MemberId],
        command: OwnCommand,
    ) -> BTreeMap<MemberId, anyhow::Result<Ran>> {
        let mut running = JoinSet::new();
        for member in members.iter().copied() {
            let (cluster, order) =
                (Arc::clone(self.cluster), Order { own: self.own, command, fault: self.id.to_owned() });
            running.spawn(async move { (member, cluster.run_own(member, order).await) });
        }
        // Who panics says nothing, and must not be taken for one that succeeded.
        let lost = |member: &MemberId| (*member, Err(anyhow!("it was not run to its end")));
        let mut answers: BTreeMap<MemberId, anyhow::Result<Ran>> = members.iter().map(lost).collect();
        while let Some(ended) = running.join_next().await {
            answers.extend(ended.ok());
        }
        answers
    }

    /// Brings it to every target. What can't be brought to one of them is undone at all.
    async fn inflict(&self) -> anyhow::Result<()> {
        let failures = self.failures(&self.at_each(self.members, OwnCommand::Exec).await, OwnCommand::Exec);
        if failures.is_empty() {
            return Ok(());
        }
        if self.own.lasts() {
            self.at_each(self.members, OwnCommand::Heal).await;
        }
        bail!("{}", failures.join("; "))
    }

    /// Undoes it at every target. Where a process is gone, nothing can be undone, and it is said.
    async fn undo(&self) -> anyhow::Result<Option<Proof>> {
        if !self.own.lasts() {
            return Ok(None);
        }
        let mut answers = self.at_each(self.members, OwnCommand::Heal).await;
        let mut gone = Vec::new();
        for member in self.members {
            if answers.get(member).is_some_and(|answer| !has_succeeded(answer))
                && let ProcessState::Gone(how) = self.cluster.process_state(*member).await?
            {
                answers.remove(member);
                gone.push(format!("n{} is gone ({how}), so nothing could be undone there", member.0));
            }
        }
        let failures = self.failures(&answers, OwnCommand::Heal);
        if failures.is_empty() {
            return Ok((!gone.is_empty()).then(|| Proof::new(true, gone.join("; "))));
        }
        bail!("{}", failures.join("; "))
    }

    fn failures(
        &self,
        answers: &BTreeMap<MemberId, anyhow::Result<Ran>>,
        command: OwnCommand,
    ) -> Vec<String> {
        let told = |(member, answer): (&MemberId, &anyhow::Result<Ran>)| {
            let why = why_it_failed(answer)?;
            Some(format!("{} {}: {} at n{}: {why}", self.id, self.own.name(), command.name(), member.0))
        };
        answers.iter().filter_map(told).collect()
    }

    /// What these members say, asked at once. Whoever another fault holds is not asked, and a no of somebody
    /// who does not run counts for nothing.
    async fn asked(&self, members: &[MemberId], in_force: &InForce) -> BTreeMap<MemberId, Says> {
        let absent = in_force.absent();
        let there: Vec<MemberId> =
            members.iter().copied().filter(|member| !absent.contains(member)).collect();
        let answers = self.at_each(&there, OwnCommand::Seen).await;
        let mut told = BTreeMap::new();
        for member in members {
            let mut said = match answers.get(member) {
                Some(answer) => says(answer),
                None => Says::Nothing("it is down or stopped".to_owned()),
            };
            if said == Says::No {
                said = match self.cluster.process_state(*member).await {
                    Ok(ProcessState::Running) => Says::No,
                    Ok(state) => Says::Nothing(format!("it is {state}")),
                    Err(error) => Says::Nothing(format!("{error:#}")),
                };
            }
            told.insert(*member, said);
        }
        told
    }

    /// Asks these until all say what is wanted, or for so long.
    async fn asked_until(
        &self,
        members: &[MemberId],
        wanted: &Says,
        in_force: &InForce,
        patience: Duration,
    ) -> Proof {
        let deadline = Instant::now() + patience;
        loop {
            let answers = self.asked(members, in_force).await;
            let holds = answers.values().all(|says| says == wanted);
            if holds || Instant::now() >= deadline {
                return Proof::new(holds, words(&answers));
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Whether no target shows it before it comes.
    async fn is_not_there(&self) -> Proof {
        let answers = self.asked(self.members, &InForce::default()).await;
        let holds = answers.values().all(|says| *says == Says::No);
        Proof::new(holds, format!("before it {}", words(&answers)))
    }

    /// Whether every target shows it, and another member does not.
    async fn bites(&self, in_force: &InForce) -> Proof {
        let shown = self.asked_until(self.members, &Says::Yes, in_force, PATIENCE).await;
        let mut proof = shown.and(self.control(in_force).await);
        proof.detail.matrix = Some(in_force.matrix(self.cluster.members()));
        proof
    }

    /// A yes proves something only beside somebody who says no.
    async fn control(&self, in_force: &InForce) -> Proof {
        let absent = in_force.absent();
        let free = |member: &&MemberId| !self.members.contains(member) && !absent.contains(member);
        let Some(other) = self.cluster.members().iter().find(free) else {
            return Proof::new(true, "nobody was left to be asked beside it".to_owned());
        };
        let answers = self.asked(&[*other], in_force).await;
        let holds = answers.values().all(|says| *says == Says::No);
        Proof::new(holds, format!("asked beside it, {}", words(&answers)))
    }

    /// Whether no target shows it any more, where something undid it.
    async fn is_gone(&self, in_force: &InForce) -> Option<Proof> {
        if !self.own.lasts() {
            return None;
        }
        Some(self.asked_until(self.members, &Says::No, in_force, RECOVERY_PATIENCE).await)
    }
}

fn has_succeeded(answer: &anyhow::Result<Ran>) -> bool {
    answer.as_ref().is_ok_and(Ran::succeeded)
}

/// How a command ended that did not succeed, with what it wrote.
fn why_it_failed(answer: &anyhow::Result<Ran>) -> Option<String> {
    match answer {
        Ok(ran) if ran.succeeded() => None,
        Ok(ran) => {
            let how = match ran.status {
                Some(status) => format!("it ended with exit status {status}"),
                None => "a signal ended it".to_owned(),
            };
            let said = ran.words();
            Some(if said.is_empty() { format!("{how} and wrote nothing") } else { format!("{how}: {said}") })
        }
        Err(error) => Some(format!("{error:#}")),
    }
}

fn says(answer: &anyhow::Result<Ran>) -> Says {
    match answer {
        Ok(ran) if ran.succeeded() => Says::Yes,
        Ok(Ran { status: Some(_), .. }) => Says::No,
        Ok(ran) => Says::Nothing(why_it_failed(&Ok(ran.clone())).unwrap_or_default()),
        Err(error) => Says::Nothing(format!("{error:#}")),
    }
}

fn words(answers: &BTreeMap<MemberId, Says>) -> String {
    let told = |(member, says): (&MemberId, &Says)| match says {
        Says::Yes => format!("n{} says yes", member.0),
        Says::No => format!("n{} says no", member.0),
        Says::Nothing(why) => format!("n{} says nothing: {why}", member.0),
    };
    answers.iter().map(told).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(status: Option<i64>) -> anyhow::Result<Ran> {
        Ok(Ran { status, output: b"out\n".to_vec(), errors: b"why\n".to_vec() })
    }

    #[test]
    fn an_exit_status_is_a_yes_or_a_no_and_anything_else_is_neither() {
        assert_eq!(says(&ended(Some(0))), Says::Yes);
        assert_eq!(says(&ended(Some(1))), Says::No);
        assert!(matches!(says(&ended(None)), Says::Nothing(why) if why.contains("a signal ended it")));
        assert!(matches!(says(&Err(anyhow!("no such program"))), Says::Nothing(_)));
    }

    #[test]
    fn what_failed_is_told_with_what_it_wrote() {
        assert_eq!(why_it_failed(&ended(Some(0))), None);
        assert_eq!(why_it_failed(&ended(Some(3))).as_deref(), Some("it ended with exit status 3: out\nwhy"));
        assert_eq!(why_it_failed(&Err(anyhow!("it was late"))).as_deref(), Some("it was late"));
    }
}
