//! Words between members, held back: by the links, or by a queue in the receiver's network.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use anyhow::Context;
use harness_core::condition::Delay;
use harness_core::cut::Pair;
use harness_core::fault::in_force::{Expected, InForce};
use harness_core::mechanism::Mechanism;
use harness_core::mechanism::latency::{LATENCY, Slow};
use harness_core::proof::Proof;
use runs::member::MemberId;
use serde::Deserialize;
use serde_json::json;

use super::{Asked, At, Driver};
use crate::clock::{RunNs, nanoseconds};
use crate::cluster::{Async, Cluster, every};
use crate::links::protocol::{Delayed, ProbeRound};
use crate::mechanisms::proof::given::{Given, are_held, control_was_quick, were_quick, were_slow};
use crate::mechanisms::proof::network;

/// What does it.
pub(super) const DRIVERS: &[&dyn Driver] = &[&Delays { by: &Links }, &Delays { by: &Queues }];

/// The device of agents that holds packets back.
const QUEUE: &str = "queue";
/// How long it may take to be seen, and to be gone, beyond what was asked for.
const PATIENCE: Duration = if cfg!(test) { Duration::ZERO } else { Duration::from_secs(3) };
/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// So many pieces of each direction are to be seen, where there is time for it.
const ENOUGH: usize = 5;

/// What holds words back.
trait Holds: Send + Sync {
    fn can(&self, cluster: &dyn Cluster) -> Result<(), String>;

    fn begin<'a>(&'a self, at: &'a At<'a>) -> Async<'a, ()>;

    fn end<'a>(&'a self, at: &'a At<'a>) -> Async<'a, ()>;

    /// How long what members said since the last look was on its way, and by how much it is held back.
    fn told<'a>(&'a self, at: &'a At<'a>) -> Async<'a, Vec<Delayed>>;
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

    fn told<'a>(&'a self, at: &'a At<'a>) -> Async<'a, Vec<Delayed>> {
        at.cluster.delays()
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
            let (latency, jitter) = (whole_us(*latency), whole_us(*jitter));
            let begun = receivers(pairs).into_iter().map(|to| {
                let from: Vec<u64> =
                    pairs.iter().filter(|pair| pair.to == to).map(|pair| pair.from.0).collect();
                let slow =
                    json!({"fault": at.fault, "from": from, "latency_us": latency, "jitter_us": jitter});
                at.cluster.device(to, QUEUE, json!({"slow": slow}))
            });
            every(begun).await.map(drop)
        })
    }

    fn end<'a>(&'a self, at: &'a At<'a>) -> Async<'a, ()> {
        Box::pin(async move {
            let receivers = receivers(&at.act::<Slow>()?.pairs);
            let heal = |to| at.cluster.device(to, QUEUE, json!({"heal": at.fault}));
            every(receivers.into_iter().map(heal)).await.map(drop)
        })
    }

    fn told<'a>(&'a self, at: &'a At<'a>) -> Async<'a, Vec<Delayed>> {
        Box::pin(async move {
            let asked = at.cluster.members().iter().map(async |to| {
                let told = at.cluster.device(*to, QUEUE, json!("report")).await?;
                let told: Vec<Held> = serde_json::from_value(told).context("reading a queue")?;
                let of = |Held { from, took_us, latency_us, jitter_us }| {
                    Delayed { pair: Pair::new(MemberId(from), *to), took_us, latency_us, jitter_us }
                };
                Ok(told.into_iter().map(of).collect::<Vec<Delayed>>())
            });
            Ok(every(asked).await?.concat())
        })
    }
}

/// What a queue tells of a peer.
#[derive(Deserialize)]
struct Held {
    from: u64,
    took_us: Vec<u64>,
    latency_us: u64,
    jitter_us: u64,
}

fn whole_us(time: Duration) -> u64 {
    nanoseconds(time) / 1000
}

fn receivers(pairs: &[Pair]) -> BTreeSet<MemberId> {
    pairs.iter().map(|pair| pair.to).collect()
}

/// Words that one of these holds back.
struct Delays {
    by: &'static dyn Holds,
}

/// All directions that are to be slow, by how much.
fn slow(in_force: &InForce, members: &[MemberId]) -> BTreeMap<Pair, Delay> {
    let pairs = members.iter().flat_map(|from| members.iter().map(|to| Pair::new(*from, *to)));
    let delays = pairs.map(|pair| (pair, in_force.link(pair).delay));
    delays.filter(|(_, delay)| !delay.is_none()).collect()
}

/// What a look shows.
#[derive(Default)]
struct Seen {
    /// How long what members said took.
    said: Given,
    /// How long probes took.
    probes: Given,
    control: Vec<u64>,
    /// By how much what carries it holds it back.
    held: BTreeMap<Pair, Delay>,
}

impl Seen {
    fn add(of: &mut Given, more: impl IntoIterator<Item = (Pair, Vec<u64>)>) {
        for (pair, took) in more {
            of.entry(pair).or_default().extend(took);
        }
    }

    fn told(&mut self, told: Vec<Delayed>) {
        self.held = told.iter().map(|one| (one.pair, one.by())).collect();
        Self::add(&mut self.said, told.into_iter().map(|one| (one.pair, one.took_us)));
    }

    fn probed(&mut self, round: &ProbeRound) {
        let arrived = round.probes.iter().filter_map(|probe| Some((probe.pair, vec![probe.took_us?])));
        Self::add(&mut self.probes, arrived);
        self.control.extend(round.control_us);
    }
}

/// What of these is of these directions.
fn of(given: &Given, is_one: impl Fn(&Pair) -> bool) -> Given {
    given.iter().filter(|(pair, _)| is_one(pair)).map(|(pair, took)| (*pair, took.clone())).collect()
}

/// What was seen of it when it was proven.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    /// Members' words were slow.
    Felt,
    /// Other faults let nothing pass.
    Hidden,
}

const NOTHING_SAID: &str = "members said nothing in any of its directions, so nothing shows it";

impl Delays {
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
            let (network, round) = network::expected_round(&**at.cluster, at.in_force).await?;
            seen.probed(&round);
            seen.told(self.by.told(at).await?);
            let proof = network.and(judge(&seen));
            if proof.holds && enough(&seen) || Instant::now() >= deadline {
                return Ok(proof);
            }
            // What was on its way before counts no more.
            if enough(&seen) {
                seen = Seen::default();
            } else if !proof.holds {
                seen.said.retain(|_, took| took.len() < ENOUGH);
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Whether members' words go past what holds them back.
    async fn past(at: &At<'_>, pairs: &[Pair]) -> anyhow::Result<Option<Proof>> {
        Ok(at.cluster.way_round(pairs).await?.map(|way| Proof::new(false, way)))
    }
}

impl Driver for Delays {
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
        Box::pin(async move { self.by.told(at).await.map(drop) })
    }

    /// In each direction what members said is slow, where they said anything, and so is a probe; in all
    /// others none is. Where other faults let nothing pass, only what holds words back can be looked at.
    fn bites<'a>(&'a self, at: &'a At<'a>) -> Async<'a, Proof> {
        Box::pin(async move {
            let Slow { pairs, delay } = at.act()?;
            let all = slow(at.in_force, at.cluster.members());
            let absent = at.in_force.absent();
            let passes = |pair: &Pair| {
                let is_there = !absent.contains(&pair.from) && !absent.contains(&pair.to);
                is_there && at.in_force.expected(*pair) == Expected::Arrives
            };
            let own: BTreeMap<Pair, Delay> = pairs
                .iter()
                .filter(|pair| passes(pair))
                .filter_map(|pair| Some((*pair, *all.get(pair)?)))
                .collect();
            let enough =
                |seen: &Seen| own.keys().all(|pair| seen.said.get(pair).map_or(0, Vec::len) >= ENOUGH);
            let judge = |seen: &Seen| {
                let held = are_held(&all, &seen.held);
                let given = if own.is_empty() {
                    Proof::new(true, "other faults let nothing pass in any of its directions".to_owned())
                } else {
                    let said = were_slow(&own, &seen.said);
                    let probed = were_slow(&own, &seen.probes);
                    let nothing = |words: &str| Proof::new(false, words.to_owned());
                    said.unwrap_or_else(|| nothing(NOTHING_SAID))
                        .and(labelled("probes", probed.unwrap_or_else(|| nothing("none arrived"))))
                };
                let control = control_was_quick(delay.latency, &seen.control);
                let others = of(&seen.probes, |pair| !all.contains_key(pair));
                let others = were_quick(&BTreeMap::new(), delay.latency, &others);
                let others = others.map(|proof| labelled("other probes", proof));
                [Some(held), Some(control), others].into_iter().flatten().fold(given, Proof::and)
            };
            // What is seen is as slow as all faults together make it, and one look waits for that twice.
            let longest = Duration::from_nanos(at.in_force.slows_ns());
            let proof = self.look(at, PATIENCE + longest * 4, enough, judge).await?;
            if proof.holds {
                at.keep(if own.is_empty() { Shown::Hidden } else { Shown::Felt });
            }
            Ok(Self::past(at, pairs).await?.into_iter().fold(proof, Proof::and))
        })
    }

    /// What members said until its end was slow; and something must have been said that it could hit.
    fn undo<'a>(&'a self, at: &'a At<'a>, _: RunNs) -> Async<'a, Option<Proof>> {
        Box::pin(async move {
            let Slow { pairs, delay } = at.act()?;
            let (past, told) = (Self::past(at, pairs).await, self.by.told(at).await);
            self.by.end(at).await?;
            let mut seen = Seen::default();
            seen.told(told?);
            let wanted: BTreeMap<Pair, Delay> = pairs.iter().map(|pair| (*pair, *delay)).collect();
            let is_held = |pair| seen.held.get(pair).is_some_and(|held| held.latency >= delay.latency);
            let proof = were_slow(&wanted, &seen.said).unwrap_or_else(|| match at.kept::<Shown>() {
                Some(Shown::Felt) => Proof::new(true, "members said nothing since that look".to_owned()),
                Some(Shown::Hidden) if pairs.iter().all(is_held) => Proof::new(
                    true,
                    "other faults let nothing pass, and each of its directions was held back".to_owned(),
                ),
                Some(Shown::Hidden) | None => Proof::new(false, NOTHING_SAID.to_owned()),
            });
            Ok(Some(past?.into_iter().fold(proof, Proof::and)))
        })
    }

    /// In each of its directions what is still held back, and what members' words and probes still take
    /// longer, is other faults' doing alone.
    fn gone<'a>(&'a self, at: &'a At<'a>) -> Async<'a, Option<Proof>> {
        Box::pin(async move {
            let Slow { pairs, delay } = at.act()?;
            let rest = slow(at.in_force, at.cluster.members());
            let judge = |seen: &Seen| {
                let held = are_held(&rest, &seen.held);
                let said = were_quick(&rest, delay.latency, &of(&seen.said, |pair| pairs.contains(pair)));
                // A probe that connects and then speaks is slow twice, so those of slow directions tell less.
                let own = |pair: &Pair| pairs.contains(pair) && !rest.contains_key(pair);
                let probed = were_quick(&rest, delay.latency, &of(&seen.probes, own));
                let seen = [said, probed.map(|proof| labelled("probes", proof))];
                seen.into_iter().flatten().fold(held, Proof::and)
            };
            // What was held when it ended is still to come, and tells nothing.
            tokio::time::sleep(delay.most()).await;
            self.by.told(at).await?;
            self.look(at, PATIENCE + delay.most(), |_| true, judge).await.map(Some)
        })
    }
}

/// With what it is of before its words.
fn labelled(what: &str, mut proof: Proof) -> Proof {
    let words = proof.detail.evidence.take().unwrap_or_default();
    proof.detail.evidence = Some(format!("{what}: {words}"));
    proof
}
