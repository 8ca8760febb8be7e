//! What members acknowledged while a fault kept them from a quorum, and who was cut off at all.
//!
//! A member that acknowledges changes alone may lose them, and other checks say whether it did. Or it has a
//! way round the cut that nobody saw. Which of the two it is nobody can tell from here, so it is a note and
//! no verdict: whoever knows the system knows whether such a member can acknowledge anything.
//!
//! It accuses a member, so whoever was merely down or paused when the cut came is left out: it may stand on
//! the quorum's side. And so is every change of which nobody knows who served it: where a client follows a
//! redirect, or goes through a proxy, the member that it asked is not the one that acknowledged.

use checker::history::{History, Op, Outcome};

use crate::absences::Absences;
use crate::cluster_kind::ClusterKind;
use crate::consequence::Consequences;
use crate::faults::{FaultRecord, Reach};
use crate::numbers::{len, plural};
use crate::operations::is_update;
use crate::results::RunInfo;

/// The note, where there is something to be noted. It names the first such fault.
pub fn note(history: &History, faults: &[FaultRecord], run: &RunInfo) -> Option<String> {
    let cuts = Cuts::of(faults);
    let served = |op: &Op| op.by.or(op.node.filter(|_| run.system.asked_serves));
    let alone = |cut: &Cut<'_>| {
        let is_alone = |op: &&Op| {
            is_update(op)
                && op.outcome == Outcome::Ok
                && served(op).is_some_and(|member| cut.members.contains(&member))
                && op.invoke_ns >= cut.from_ns
                && op.complete_ns.is_some_and(|at| at <= cut.to_ns)
        };
        history.ops().iter().filter(is_alone).count()
    };
    let mut found: Vec<(&FaultRecord, usize)> = cuts.0.iter().map(|cut| (cut.fault, alone(cut))).collect();
    found.retain(|(_, number)| *number > 0);
    let (first, number) = *found.first()?;
    let way = match run.cluster {
        ClusterKind::Process => {
            ", or has a way round the cut that is not seen (datagrams, Unix sockets, short connections)"
        }
        ClusterKind::Auto | ClusterKind::Docker | ClusterKind::Sim => "",
    };
    let more = match found.len() {
        1 => String::new(),
        more => format!(" (so it was under {} faults)", len(more)),
    };
    Some(format!(
        "{} acknowledged by who was cut off from the quorum by {}{more}: such a member does so alone{way}",
        plural(u64::try_from(number).unwrap_or(u64::MAX), "change"),
        first.id
    ))
}

/// The cuts of a run that kept members from a quorum, each with those members.
#[derive(Debug, Default)]
pub struct Cuts<'a>(Vec<Cut<'a>>);

/// A cut that was seen to be in force.
#[derive(Debug)]
struct Cut<'a> {
    fault: &'a FaultRecord,
    /// Who was kept from the quorum.
    members: Vec<u64>,
    /// Since when that was seen, and until its end was asked for.
    from_ns: u64,
    to_ns: u64,
}

impl<'a> Cuts<'a> {
    /// Of these faults.
    pub fn of(faults: &'a [FaultRecord]) -> Self {
        let taking = faults.iter().filter(|fault| fault.may_take_away());
        let absences = Absences::of(taking.map(|fault| (fault, fault.gone_ns().unwrap_or(u64::MAX))));
        Self(faults.iter().filter_map(|fault| cut(fault, &absences)).collect())
    }

    /// The fault that kept this member from the quorum all through this time.
    pub fn around(&self, member: u64, from_ns: u64, to_ns: u64) -> Option<&'a FaultRecord> {
        let covers =
            |cut: &&Cut<'a>| cut.members.contains(&member) && cut.from_ns <= from_ns && to_ns <= cut.to_ns;
        self.0.iter().find(covers).map(|cut| cut.fault)
    }
}

fn cut<'a>(fault: &'a FaultRecord, absences: &Absences<'_>) -> Option<Cut<'a>> {
    let (from_ns, to_ns) = fault.verified_ns.zip(fault.heal_asked_ns)?;
    if !fault.silences() {
        return None;
    }
    let is_with_the_quorum = |side: &&Vec<u64>| side.iter().any(|one| fault.majority_side.contains(one));
    let with_the_quorum: Vec<u64> =
        fault.sides.iter().filter(is_with_the_quorum).flatten().copied().collect();
    if fault.majority_side.is_empty() {
        return None;
    }
    // Down or paused when the cut came: no part of the quorum then, whichever side it stands on.
    let was_away = |member: u64| absences.lasting(member, from_ns, fault.asked_ns).next().is_some();
    let members = fault.sides.iter().flatten().copied();
    let members: Vec<u64> = members
        .filter(|member| !fault.majority_side.contains(member) && !with_the_quorum.contains(member))
        .filter(|member| !was_away(*member) && !reaches_the_quorum(fault, *member))
        .collect();
    (!members.is_empty()).then_some(Cut { fault, members, from_ns, to_ns })
}

/// Whether a member was seen to reach one of the quorum's, and to be reached by it, while the fault held.
fn reaches_the_quorum(fault: &FaultRecord, member: u64) -> bool {
    let Some(matrix) = &fault.matrix else { return false };
    let place = |member: u64| usize::try_from(member.checked_sub(1)?).ok();
    let reach = |from: u64, to: u64| matrix.get(place(from)?)?.get(place(to)?).copied();
    let passes = |from: u64, to: u64| matches!(reach(from, to), Some(Reach::Reached | Reach::Late));
    fault.majority_side.iter().any(|one| passes(member, *one) && passes(*one, member))
}

#[cfg(test)]
mod tests {
    use checker::history::{Event, EventKind, Function, Value};

    use super::*;
    use crate::consequence::Consequence;
    use crate::results::SystemInfo;

    fn write(process: u64, node: u64, from: u64) -> [Event; 2] {
        let event = |kind, time| {
            let mut event = Event::new(process, kind, Function::WRITE, 0, Value::One(7), time);
            event.node = Some(node);
            event
        };
        [event(EventKind::Invoke, from), event(EventKind::Ok, from + 1)]
    }

    fn history(lines: impl IntoIterator<Item = Event>) -> History {
        History::from_events(lines).expect("a history")
    }

    fn cut(id: &str) -> FaultRecord {
        FaultRecord {
            id: id.to_owned(),
            consequences: vec![Consequence::silences(Vec::new())],
            asked_ns: 8,
            injected_ns: Some(9),
            verified_ns: Some(10),
            heal_asked_ns: Some(50),
            majority_side: vec![1, 2],
            sides: vec![vec![1, 2], vec![3]],
            ..FaultRecord::default()
        }
    }

    fn direct() -> RunInfo {
        let system = SystemInfo { asked_serves: true, ..SystemInfo::default() };
        RunInfo { cluster: ClusterKind::Docker, system, ..RunInfo::default() }
    }

    #[test]
    fn what_the_smaller_side_acknowledges_under_a_cut_is_noted() {
        // Before the cut, under it on either side, and behind it.
        let events = [write(1, 3, 5), write(2, 1, 20), write(3, 3, 30), write(4, 3, 60)].concat();
        let (history, cut) = (history(events), cut("F1"));
        let told = note(&history, std::slice::from_ref(&cut), &direct()).expect("one change");
        assert_eq!(
            told,
            "1 change acknowledged by who was cut off from the quorum by F1: such a member does so alone"
        );
        let killed = FaultRecord { consequences: vec![Consequence::Ends], ..cut };
        assert_eq!(note(&history, &[killed], &direct()), None);
    }

    #[test]
    fn whoever_was_down_or_paused_when_the_cut_came_is_not_accused() {
        let history = history(write(1, 2, 30));
        // n2 was paused, so the quorum was n1 n3 n4; the cut leaves it on their side.
        let beside =
            FaultRecord { majority_side: vec![1, 3, 4], sides: vec![vec![1, 2, 3, 4], vec![5]], ..cut("F2") };
        assert_eq!(note(&history, std::slice::from_ref(&beside), &direct()), None);
        // Where nobody stands with anybody, only what kept it away tells that it may be no one's prisoner.
        let ring = FaultRecord { sides: vec![vec![1], vec![2], vec![3], vec![4], vec![5]], ..beside };
        for consequences in [
            vec![Consequence::Stops],
            vec![Consequence::Ends],
            vec![Consequence::Ends, Consequence::Replaces],
            vec![Consequence::Unknown],
        ] {
            let away = FaultRecord {
                id: "F1".to_owned(),
                consequences: consequences.clone(),
                targets: vec![2],
                asked_ns: 3,
                injected_ns: Some(4),
                verified_healed_ns: Some(25),
                ..FaultRecord::default()
            };
            assert_eq!(note(&history, &[away.clone(), ring.clone()], &direct()), None, "{consequences:?}");
            let long_back = FaultRecord { verified_healed_ns: Some(7), ..away };
            assert!(note(&history, &[long_back, ring.clone()], &direct()).is_some(), "{consequences:?}");
        }
    }

    #[test]
    fn whoever_was_seen_to_reach_the_quorum_both_ways_is_not_accused() {
        let history = history(write(1, 3, 30));
        let (yes, no) = (Reach::Reached, Reach::NotReached);
        let seen = |row: [Reach; 3], back: Reach| FaultRecord {
            matrix: Some(vec![vec![yes, yes, back], vec![yes, yes, no], row.to_vec()]),
            ..cut("F1")
        };
        assert_eq!(note(&history, &[seen([yes, no, yes], yes)], &direct()), None);
        assert!(note(&history, &[seen([yes, no, yes], no)], &direct()).is_some(), "one way is no way");
    }

    #[test]
    fn where_a_client_may_be_sent_on_only_the_answers_word_accuses() {
        let sent_on = RunInfo { cluster: ClusterKind::Docker, ..RunInfo::default() };
        let cut = cut("F1");
        let of = |by: Option<u64>, node: u64, run: &RunInfo| {
            let mut events = write(1, node, 30);
            events[1].by = by;
            note(&history(events), std::slice::from_ref(&cut), run).is_some()
        };
        assert!(!of(None, 3, &sent_on), "nobody knows who served");
        assert!(!of(Some(1), 3, &sent_on) && !of(Some(1), 3, &direct()), "the larger side served");
        assert!(of(Some(3), 3, &sent_on) && of(Some(3), 1, &sent_on), "the smaller side served");
    }
}
