//! What members acknowledged while a fault kept them from a quorum.
//!
//! A member that acknowledges changes alone may lose them, and other checks say whether it did. Or it has a
//! way round the cut that nobody saw. Which of the two it is nobody can tell from here, so it is a note and
//! no verdict: whoever knows the system knows whether such a member can acknowledge anything.

use checker::history::{History, Op, Outcome};

use crate::cluster_kind::ClusterKind;
use crate::faults::FaultRecord;
use crate::mechanism::Mechanism;
use crate::numbers::{len, plural};
use crate::operations::is_update;

/// The note, where there is something to be noted. It names the first such fault.
pub fn note(history: &History, faults: &[FaultRecord], cluster: ClusterKind) -> Option<String> {
    let mut found: Vec<(&FaultRecord, usize)> =
        faults.iter().map(|fault| (fault, acknowledged(history, fault))).collect();
    found.retain(|(_, number)| *number > 0);
    let (first, number) = *found.first()?;
    let way = match cluster {
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

/// Changes that were asked for and acknowledged on the smaller side of a cut while that was in force.
fn acknowledged(history: &History, fault: &FaultRecord) -> usize {
    let (Some(from), Some(to)) = (fault.verified_ns, fault.heal_asked_ns) else { return 0 };
    if !fault.acts_by(|by| matches!(by, Mechanism::Partition | Mechanism::Reject))
        || fault.majority_side.is_empty()
    {
        return 0;
    }
    let cut_off = |member: u64| {
        !fault.majority_side.contains(&member) && fault.sides.iter().any(|side| side.contains(&member))
    };
    let alone = |op: &&Op| {
        is_update(op)
            && op.outcome == Outcome::Ok
            && op.node.is_some_and(cut_off)
            && op.invoke_ns >= from
            && op.complete_ns.is_some_and(|at| at <= to)
    };
    history.ops().iter().filter(alone).count()
}

#[cfg(test)]
mod tests {
    use checker::history::{Event, EventKind, Function, Value};

    use super::*;

    #[test]
    fn what_the_smaller_side_acknowledges_under_a_cut_is_noted() {
        let write = |process: u64, node: u64, from: u64| {
            let event = |kind, time| {
                let mut event = Event::new(process, kind, Function::Write, 0, Value::One(7), time);
                event.node = Some(node);
                event
            };
            [event(EventKind::Invoke, from), event(EventKind::Ok, from + 1)]
        };
        // Before the cut, under it on either side, and behind it.
        let events = [write(1, 3, 5), write(2, 1, 20), write(3, 3, 30), write(4, 3, 60)].concat();
        let history = History::from_events(events).expect("a history");
        let cut = FaultRecord {
            id: "F1".to_owned(),
            mechanism: Some(Mechanism::Partition),
            verified_ns: Some(10),
            heal_asked_ns: Some(50),
            majority_side: vec![1, 2],
            sides: vec![vec![1, 2], vec![3]],
            ..FaultRecord::default()
        };
        let told = note(&history, std::slice::from_ref(&cut), ClusterKind::Docker).expect("one change");
        assert_eq!(
            told,
            "1 change acknowledged by who was cut off from the quorum by F1: such a member does so alone"
        );
        let killed = FaultRecord { mechanism: Some(Mechanism::Kill), ..cut };
        assert_eq!(note(&history, &[killed], ClusterKind::Process), None);
    }
}
