//! Words between members, held back: by the links, or by a queue in the receiver's network.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use anyhow::Context;
use harness_core::condition::Delay;
use harness_core::cut::Pair;
use harness_core::fault::in_force::InForce;
use harness_core::mechanism::Mechanism;
use harness_core::mechanism::latency::{LATENCY, Slow};
use harness_core::proof::Proof;
use runs::member::MemberId;
use serde_json::json;

use super::{Asked, At, Driver};
use crate::clock::RunNs;
use crate::cluster::{Async, Cluster};
use crate::mechanisms::proof::given::{Given, were_quick, were_slow};
use crate::mechanisms::proof::network;

/// What does it.
pub(super) const DRIVERS: &[&dyn Driver] = &[&Held { by: &Links }, &Held { by: &Queues }];

/// The device of agents that holds packets back.
const QUEUE: &str = "queue";
/// How long it may take to be seen, and to be gone, beyond what was asked for.
const PATIENCE: Duration = if cfg!(test) { Duration::ZERO } else { Duration::from_secs(3) };
/// Between two looks.
const GLANCE: Duration = Duration::from_millis(20);
/// So many pieces of each direction are to be seen, where there is time for it.
const ENOUGH: usize = 5;

/// What holds words back.
trait Holds: Send + Sync {
    fn can(&self, cluster: &dyn Cluster) -> Result<(), String>;

    fn begin<'a>(&'a self, at: &'a At<'a>) -> Async<'a, ()>;

    fn end<'a>(&'a self, at: &'a At<'a>) -> Async<'a, ()>;

    /// How long what was handed on since the last look was on its way.
    fn given<'a>(&'a self, at: &'a At<'a>) -> Async<'a, Given>;
}

/// Links of local processes.
struct Links;

impl Holds for Links {
    fn can(&self, cluster: &dyn Cluster) -> Result<(), String> {
        cluster.can_delay()
    }

    fn begin<'a>(&'a self, at: &'a At<'a>) -> Async<'a, ()> {
        Box::pin(async move { at.cluster.link(at.fault, &at.act::<Slow>()?.links()).await.map(drop) })
    }

    fn end<'a>(&'a self, at: &'a At<'a>) -> Async<'a, ()> {
        Box::pin(async move { at.cluster.heal(at.fault).await.map(drop) })
    }

    fn given<'a>(&'a self, at: &'a At<'a>) -> Async<'a, Given> {
        Box::pin(async move { Ok(at.cluster.delays().await?.into_iter().collect()) })
    }
}

/// Queues of the kernel's, where packets arrive in a member's network.
struct Queues;

impl Holds for Queues {
    fn can(&self, cluster: &dyn Cluster) -> Result<(), String> {
        cluster.can_use(QUEUE)
    }

    fn begin<'a>(&'a self, at: &'a At<'a>) -> Async<'a, ()> {
        Box::pin(async move {
            let Slow { pairs, delay: Delay { latency, jitter } } = at.act()?;
            for to in receivers(pairs) {
                let from: Vec<u64> =
                    pairs.iter().filter(|pair| pair.to == to).map(|pair| pair.from.0).collect();
                let (latency, jitter) = (latency.as_micros(), jitter.as_micros());
                let slow =
                    json!({"fault": at.fault, "from": from, "latency_us": latency, "jitter_us": jitter});
                at.cluster.device(to, QUEUE, json!({"slow": slow})).await?;
            }
            Ok(())
        })
    }

    fn end<'a>(&'a self, at: &'a At<'a>) -> Async<'a, ()> {
        Box::pin(async move {
            for to in receivers(&at.act::<Slow>()?.pairs) {
                at.cluster.device(to, QUEUE, json!({"heal": at.fault})).await?;
            }
            Ok(())
        })
    }

    fn given<'a>(&'a self, at: &'a At<'a>) -> Async<'a, Given> {
        Box::pin(async move {
            let mut given = Given::new();
            for to in at.cluster.members() {
                let told = at.cluster.device(*to, QUEUE, json!("report")).await?;
                let told: Vec<(u64, Vec<u64>)> = serde_json::from_value(told).context("reading a queue")?;
                given.extend(told.into_iter().map(|(from, took)| (Pair::new(MemberId(from), *to), took)));
            }
            Ok(given)
        })
    }
}

fn receivers(pairs: &[Pair]) -> BTreeSet<MemberId> {
    pairs.iter().map(|pair| pair.to).collect()
}

/// Words that one of these holds back.
struct Held {
    by: &'static dyn Holds,
}

/// All directions that are slow and let something pass, by how much.
fn slow(in_force: &InForce, members: &[MemberId]) -> BTreeMap<Pair, Delay> {
    let absent = in_force.absent();
    let there = members.iter().filter(|member| !absent.contains(member));
    let pairs = there.clone().flat_map(|from| there.clone().map(|to| Pair::new(*from, *to)));
    let links = pairs.map(|pair| (pair, in_force.link(pair)));
    links
        .filter(|(_, link)| link.severed.is_none() && !link.delay.is_none())
        .map(|(pair, link)| (pair, link.delay))
        .collect()
}

/// What a look shows: how long what was sent took, and how long probes took.
#[derive(Default)]
struct Seen {
    given: Given,
    probes: Given,
}

impl Seen {
    fn add(of: &mut Given, more: impl IntoIterator<Item = (Pair, Vec<u64>)>) {
        for (pair, took) in more {
            of.entry(pair).or_default().extend(took);
        }
    }
}

impl Held {
    /// Has probes sent, and looks how long they and what members say take, until that is as is wanted and
    /// there is enough of it.
    async fn look(
        &self,
        at: &At<'_>,
        patience: Duration,
        enough: impl Fn(&Seen) -> bool,
        judge: impl Fn(&Seen) -> Proof,
    ) -> anyhow::Result<Proof> {
        let deadline = Instant::now() + patience;
        let mut seen = Seen::default();
        loop {
            // Where nothing is in force it was looked at already that everybody reaches everybody.
            let mut network = None;
            if !at.in_force.is_empty() {
                network = Some(network::is_as_expected(&**at.cluster, at.in_force).await?);
            }
            let round = at.cluster.probe(Duration::from_nanos(at.in_force.slows_ns())).await?;
            let arrived = round.probes.iter().filter_map(|probe| Some((probe.pair, vec![probe.took_us?])));
            Seen::add(&mut seen.probes, arrived);
            Seen::add(&mut seen.given, self.by.given(at).await?);
            let shown = judge(&seen);
            let proof = match network {
                Some(network) => network.and(shown),
                None => shown,
            };
            if proof.holds && enough(&seen) || Instant::now() >= deadline {
                return Ok(proof);
            }
            if enough(&seen) {
                // What was on its way before counts no more.
                seen = Seen::default();
            }
            tokio::time::sleep(GLANCE).await;
        }
    }
}

impl Driver for Held {
    fn mechanism(&self) -> &'static Mechanism {
        &LATENCY
    }

    fn can(&self, cluster: &dyn Cluster) -> Result<(), String> {
        self.by.can(cluster)
    }

    fn inject<'a>(&'a self, at: &'a At<'a>, asked: Asked<'a>) -> Async<'a, bool> {
        Box::pin(async move {
            asked()?;
            self.by.begin(at).await?;
            Ok(true)
        })
    }

    /// What was on its way before is forgotten.
    fn settle<'a>(&'a self, at: &'a At<'a>) -> Async<'a, ()> {
        Box::pin(async move { self.by.given(at).await.map(drop) })
    }

    fn bites<'a>(&'a self, at: &'a At<'a>) -> Async<'a, Proof> {
        Box::pin(async move {
            let Slow { pairs, delay } = at.act()?;
            let all = slow(at.in_force, at.cluster.members());
            let own: BTreeMap<Pair, Delay> = all
                .iter()
                .filter(|(pair, _)| pairs.contains(pair))
                .map(|(pair, delay)| (*pair, *delay))
                .collect();
            if own.is_empty() {
                return Ok(Proof::new(
                    true,
                    "other faults let nothing pass in any of its directions".to_owned(),
                ));
            }
            let enough =
                |seen: &Seen| own.keys().all(|pair| seen.given.get(pair).map_or(0, Vec::len) >= ENOUGH);
            let nothing = || Proof::new(false, "nothing was sent in any of its directions".to_owned());
            let judge = |seen: &Seen| {
                let slow = were_slow(&own, &seen.given).unwrap_or_else(nothing);
                slow.and(were_quick(&all, delay.latency, &seen.probes))
            };
            self.look(at, PATIENCE + delay.most() * 4, enough, judge).await
        })
    }

    fn undo<'a>(&'a self, at: &'a At<'a>, _: RunNs) -> Async<'a, Option<Proof>> {
        Box::pin(async move {
            let Slow { pairs, delay } = at.act()?;
            let given = self.by.given(at).await;
            self.by.end(at).await?;
            let wanted = pairs.iter().map(|pair| (*pair, *delay)).collect();
            Ok(were_slow(&wanted, &given?))
        })
    }

    fn gone<'a>(&'a self, at: &'a At<'a>) -> Async<'a, Option<Proof>> {
        Box::pin(async move {
            let Slow { pairs, delay } = at.act()?;
            let rest = slow(at.in_force, at.cluster.members());
            let judge = |seen: &Seen| {
                let own = seen.probes.iter().filter(|(pair, _)| pairs.contains(pair));
                were_quick(&rest, delay.latency, &own.map(|(pair, took)| (*pair, took.clone())).collect())
            };
            // What was held when it ended is still to come.
            self.look(at, PATIENCE + delay.most(), |_| true, judge).await.map(Some)
        })
    }
}
