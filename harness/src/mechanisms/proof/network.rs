//! The network, one direction at a time: probes, and the counters of bytes and of what was refused.

use std::time::{Duration, Instant};

use runs::results::Reach;

use super::{LOOK_EVERY, PATIENCE, Proof};
use crate::cluster::{Cluster, Cut, Severing, Traffic, matrix};
use crate::links::protocol::{ProbeRound, Probed};
use harness_core::fault::in_force::{Expected, InForce};

/// Rounds of probes until one is clear: on a busy machine a probe that should arrive may be late.
const PROBE_ROUNDS: u32 = 5;

/// Whether a cut is in force: nothing goes through in its directions, everything in those that no fault
/// severs, and who is to be refused is refused.
pub async fn cut_bites(
    cluster: &dyn Cluster,
    cut: &Cut,
    before: &Traffic,
    in_force: &InForce,
) -> anyhow::Result<Proof> {
    let mut proof = Proof::new(false, "no probe was sent".to_owned());
    for _ in 0..PROBE_ROUNDS {
        let round = cluster.probe(slower(in_force)).await?;
        let crossed = cluster.traffic().await?.forwarded(cut).saturating_sub(before.forwarded(cut));
        let bytes = Proof::new(crossed == 0, format!("{crossed} bytes crossed"));
        proof = judge(&round, in_force).and(bytes);
        proof.detail.matrix = Some(measured(cluster, &round, in_force));
        if proof.holds || round.control_us.is_none() {
            break;
        }
    }
    if cut.how == Severing::Reject {
        proof = proof.and(refuses(cluster, cut, before, in_force).await?);
    }
    // Probes go over what is cut. Whether members have another way is to be seen elsewhere.
    Ok(match cluster.way_round(&cut.pairs).await? {
        None => proof,
        Some(way) => proof.and(Proof::new(false, way)),
    })
}

/// Whether probes go where the faults in force let them, and nowhere else.
pub async fn is_as_expected(cluster: &dyn Cluster, in_force: &InForce) -> anyhow::Result<Proof> {
    Ok(expected_round(cluster, in_force).await?.0)
}

/// The same, and the round of probes that shows it.
pub async fn expected_round(
    cluster: &dyn Cluster,
    in_force: &InForce,
) -> anyhow::Result<(Proof, ProbeRound)> {
    let mut round = cluster.probe(slower(in_force)).await?;
    for _ in 1..PROBE_ROUNDS {
        if judge(&round, in_force).holds {
            break;
        }
        round = cluster.probe(slower(in_force)).await?;
    }
    let mut proof = judge(&round, in_force);
    proof.detail.matrix = Some(measured(cluster, &round, in_force));
    Ok((proof, round))
}

/// By how much a probe may take longer than usual.
fn slower(in_force: &InForce) -> Duration {
    Duration::from_nanos(in_force.slows_ns())
}

fn measured(cluster: &dyn Cluster, round: &ProbeRound, in_force: &InForce) -> Vec<Vec<Reach>> {
    let mut seen = matrix(round, cluster.members());
    in_force.leave_out_absent(&mut seen, cluster.members());
    seen
}

/// Severed directions must not be crossed, all others must be, and the control too: without it a probe that
/// did not arrive shows nothing.
fn judge(round: &ProbeRound, in_force: &InForce) -> Proof {
    let count = |expected: Expected| {
        let of: Vec<&Probed> =
            round.probes.iter().filter(|probe| in_force.expected(probe.pair) == expected).collect();
        (of.iter().filter(|probe| probe.took_us.is_some()).count(), of.len())
    };
    let (crossed, severed) = count(Expected::Severed);
    let (arrived, passing) = count(Expected::Arrives);
    let control = match round.control_us {
        Some(took) => format!("the control in {took} us"),
        None => "not even the control".to_owned(),
    };
    let holds = crossed == 0 && arrived == passing && round.control_us.is_some();
    let evidence = if severed == 0 {
        format!("{arrived} of {passing} probes arrived, {control}")
    } else {
        format!("{crossed} of {severed} probes crossed, {arrived} of {passing} arrived elsewhere, {control}")
    };
    Proof::new(holds, evidence)
}

/// Whether somebody was refused since the cut came into force, where there was anybody to be.
async fn refuses(
    cluster: &dyn Cluster,
    cut: &Cut,
    before: &Traffic,
    in_force: &InForce,
) -> anyhow::Result<Proof> {
    let absent = in_force.absent();
    let is_there = |member| !absent.contains(member);
    if !cut.pairs.iter().any(|pair| is_there(&pair.from) && is_there(&pair.to)) {
        return Ok(Proof::new(true, "nobody was there to be refused".to_owned()));
    }
    let deadline = Instant::now() + PATIENCE;
    loop {
        let refused = cluster.traffic().await?.refused(cut).saturating_sub(before.refused(cut));
        if refused > 0 || Instant::now() >= deadline {
            return Ok(Proof::new(refused > 0, format!("{refused} refused")));
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// What the counters tell when a cut ends: what crossed it, and what wanted to. `way` is how members that it
/// separated talked all the same, if they did.
///
/// Where nothing was ever said over what was cut, and nothing wanted to be, nothing shows that members talk
/// by it at all.
pub fn at_the_end_of_a_cut(cut: &Cut, before: &Traffic, after: &Traffic, way: Option<String>) -> Proof {
    let crossed = after.forwarded(cut).saturating_sub(before.forwarded(cut));
    let refused = after.refused(cut).saturating_sub(before.refused(cut));
    let (bytes, dials) = after.waiting(cut);
    let wanted = match cut.how {
        Severing::Reject => format!("{refused} were refused"),
        // Where packets are counted nothing waits, and they are what wanted to cross.
        Severing::Silence if refused > 0 => format!("{refused} packets were dropped"),
        Severing::Silence => format!("{bytes} bytes and {dials} connections waited"),
    };
    let proof = Proof::new(crossed == 0, format!("{crossed} bytes crossed while it held; {wanted}"));
    let used = after.forwarded(cut) > 0 || refused > 0 || bytes > 0 || dials > 0;
    let proof = if used { proof } else { proof.and(Proof::new(false, UNUSED.to_owned())) };
    match way {
        None => proof,
        Some(way) => proof.and(Proof::new(false, way)),
    }
}

/// Of a cut that nothing ever wanted to cross.
const UNUSED: &str = "nothing was said that way before it either, so nothing shows that members talk by it";

#[cfg(test)]
mod tests {
    use runs::member::MemberId;

    use super::*;
    use crate::links::protocol::{Count, Pair};

    const ALL: [(u64, u64); 6] = [(1, 2), (1, 3), (2, 1), (2, 3), (3, 1), (3, 2)];

    fn round(arrived: &[(u64, u64)], control: Option<u64>) -> ProbeRound {
        let probes = ALL
            .iter()
            .map(|pair| Probed { pair: Pair::from(*pair), took_us: arrived.contains(pair).then_some(100) })
            .collect();
        ProbeRound { probes, control_us: control }
    }

    fn cut(pairs: &[(u64, u64)], how: Severing) -> Cut {
        Cut { pairs: pairs.iter().copied().map(Pair::from).collect(), how }
    }

    fn silence(pairs: &[(u64, u64)]) -> InForce {
        InForce::only("F1", &cut(pairs, Severing::Silence).into())
    }

    fn off() -> InForce {
        silence(&[(1, 2), (1, 3), (2, 1), (3, 1)])
    }

    #[test]
    fn a_cut_is_proven_by_probes_one_way_at_a_time() {
        assert!(judge(&round(&[(2, 3), (3, 2)], Some(90)), &off()).holds);
        let leaky = judge(&round(&[(2, 3), (3, 2), (3, 1)], Some(90)), &off());
        assert!(!leaky.holds);
        assert!(leaky.detail.evidence.expect("words").starts_with("1 of 4 probes crossed"));
    }

    #[test]
    fn a_deaf_member_must_be_heard_and_a_mute_one_must_hear() {
        let deaf = silence(&[(2, 1), (3, 1)]);
        let speaks = [(1, 2), (1, 3), (2, 3), (3, 2)];
        assert!(judge(&round(&speaks, Some(90)), &deaf).holds);
        assert!(!judge(&round(&[(2, 3), (3, 2)], Some(90)), &deaf).holds, "it was cut off altogether");
        let mute = silence(&[(1, 2), (1, 3)]);
        assert!(!judge(&round(&speaks, Some(90)), &mute).holds);
        assert!(judge(&round(&[(2, 1), (3, 1), (2, 3), (3, 2)], Some(90)), &mute).holds);
    }

    #[test]
    fn a_cut_is_not_proven_without_a_control_nor_when_it_cuts_too_much() {
        assert!(!judge(&round(&[(2, 3), (3, 2)], None), &off()).holds);
        assert!(!judge(&round(&[(2, 3)], Some(90)), &off()).holds);
    }

    #[test]
    fn what_another_fault_severs_is_no_leak_and_no_want() {
        let mut both = off();
        assert!(!judge(&round(&[(3, 2)], Some(90)), &both).holds);
        both.insert("F2", cut(&[(2, 3)], Severing::Silence).into());
        assert!(judge(&round(&[(3, 2)], Some(90)), &both).holds);
        assert!(!judge(&round(&[(2, 3), (3, 2)], Some(90)), &both).holds);
        both.remove("F1");
        assert!(judge(&round(&[(1, 2), (1, 3), (2, 1), (3, 1), (3, 2)], Some(90)), &both).holds);
    }

    #[test]
    fn beside_resets_in_one_direction_the_other_may_or_may_not_pass() {
        let force = InForce::only("F1", &cut(&[(1, 2)], Severing::Reject).into());
        let others = [(1, 3), (2, 3), (3, 1), (3, 2)];
        assert!(judge(&round(&others, Some(90)), &force).holds);
        assert!(judge(&round(&[&others[..], &[(2, 1)]].concat(), Some(90)), &force).holds);
        assert!(!judge(&round(&[&others[..], &[(1, 2)]].concat(), Some(90)), &force).holds);
    }

    #[test]
    fn a_byte_that_crossed_while_a_cut_held_refutes_it_at_its_end() {
        let silence = cut(&[(1, 2)], Severing::Silence);
        let traffic = |forwarded, waiting, refused| Traffic {
            counts: vec![Count {
                pair: Pair::new(MemberId(1), MemberId(2)),
                forwarded,
                waiting,
                dials_waiting: 0,
                refused,
            }],
        };
        let end = |after| at_the_end_of_a_cut(&silence, &traffic(7, 0, 0), &after, None);
        assert!(end(traffic(7, 30, 0)).holds);
        assert!(!end(traffic(8, 30, 0)).holds);
        let words = |proof: Proof| proof.detail.evidence.expect("words");
        assert!(words(end(traffic(7, 30, 0))).ends_with("30 bytes and 0 connections waited"));
        let reject = cut(&[(1, 2)], Severing::Reject);
        let refused = at_the_end_of_a_cut(&reject, &traffic(7, 0, 1), &traffic(7, 0, 5), None);
        assert!(words(refused).ends_with("4 were refused"));
    }

    #[test]
    fn a_cut_that_nothing_wanted_to_cross_or_that_members_go_round_shows_nothing() {
        let silence = cut(&[(1, 2)], Severing::Silence);
        let traffic = |forwarded, waiting| Traffic {
            counts: vec![Count {
                pair: Pair::new(MemberId(1), MemberId(2)),
                forwarded,
                waiting,
                dials_waiting: 0,
                refused: 0,
            }],
        };
        let end = |forwarded, waiting, way: Option<&str>| {
            let (before, after) = (traffic(forwarded, 0), traffic(forwarded, waiting));
            at_the_end_of_a_cut(&silence, &before, &after, way.map(str::to_owned))
        };
        assert!(!end(0, 0, None).holds, "nobody talks that way");
        assert!(end(0, 1, None).holds, "somebody wanted to");
        assert!(end(7, 0, None).holds, "they did before, and had nothing to say");
        let round = end(7, 30, Some("n1 and n2 are connected past the links"));
        assert!(!round.holds);
        assert!(round.detail.evidence.expect("words").ends_with("past the links"));
    }
}
