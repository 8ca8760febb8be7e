//! Elections taken apart: how long until somebody noticed, until a vote was decided, until the new epoch
//! stood, until a write was acknowledged.
//!
//! A fault that leaves no quorum (all members killed) has no election before it is healed, so there the phases
//! count from the request to heal it; the outage beside them counts from the fault.
//!
//! Everything is on the harness's clock: the moment of injection, the arrival of the members' events, the
//! completion of clients' writes. A pure function of what was written down.

use checker::history::{History, Op};
use node_wire::ids::Zxid;
use reports::results::{Election, FaultRecord};

use super::checks::is_leader_fault;
use crate::clock::{RunNs, milliseconds};
use crate::events::{Event, Said, Stamped};

/// An epoch that a leader established.
#[derive(Clone, Copy, Debug)]
struct Reign {
    at: RunNs,
    leader: u64,
    epoch: u32,
}

/// Every change of leader after the first leader, in the order of time.
pub fn from_events(events: &[Stamped], faults: &[FaultRecord], history: &History) -> Vec<Election> {
    let reigns = reigns(events);
    let mut elections = Vec::new();
    for pair in reigns.windows(2) {
        let [before, after] = pair else { continue };
        let mut election = Election {
            id: format!("E{}", elections.len() + 1),
            from: Some(before.leader),
            to: after.leader,
            epoch: after.epoch,
            ..Election::default()
        };
        take_apart(&mut election, *before, *after, events, faults);
        first_write(&mut election, *after, history);
        elections.push(election);
    }
    elections
}

/// The epochs that their own leaders called established, by time; a leader's word for an epoch counts once.
fn reigns(events: &[Stamped]) -> Vec<Reign> {
    let mut reigns: Vec<Reign> = Vec::new();
    for stamped in events {
        if let Event::Said(Said::Established { leader, epoch }) = stamped.event
            && leader == stamped.node.0
            && reigns.iter().all(|reign| reign.epoch != epoch)
        {
            reigns.push(Reign { at: stamped.time, leader, epoch });
        }
    }
    reigns
}

fn take_apart(
    election: &mut Election,
    before: Reign,
    after: Reign,
    events: &[Stamped],
    faults: &[FaultRecord],
) {
    let cause = cause(before, after, events, faults);
    election.fault = cause.map(|cause| cause.fault.id.clone());
    election.healing = cause.is_some_and(|cause| cause.healing);
    let fault = cause.map(|cause| (cause.fault, cause.since));
    let window = |from: RunNs| events.iter().filter(move |stamped| (from..=after.at).contains(&stamped.time));
    let from = fault.map_or(before.at, |(_, since)| since);
    let detected =
        window(from).find(|stamped| left_a_leader(stamped)).or_else(|| window(from).find(|s| looks(s)));
    // Without a fault nothing can have been noticed late: the phases count from the first who left.
    election.fault_ns = match (fault, detected) {
        (Some((_, since)), _) => since,
        (None, Some(detected)) => detected.time,
        (None, None) => after.at,
    };
    let detected_at = detected.map_or(election.fault_ns, |stamped| stamped.time);
    let decided_at = window(detected_at)
        .rfind(|stamped| stamped.node.0 == after.leader && elected(stamped) == Some(after.leader))
        .or_else(|| window(detected_at).find(|stamped| elected(stamped) == Some(after.leader)))
        .map(|stamped| stamped.time);
    election.detection_ms = Some(milliseconds(detected_at.saturating_sub(election.fault_ns)));
    election.election_ms = decided_at.map(|decided| milliseconds(decided.saturating_sub(detected_at)));
    election.sync_ms = decided_at.map(|decided| milliseconds(after.at.saturating_sub(decided)));
    election.total_ms = Some(milliseconds(after.at.saturating_sub(election.fault_ns)));
}

/// The fault behind a change of leader.
#[derive(Clone, Copy, Debug)]
struct Cause<'a> {
    fault: &'a FaultRecord,
    /// Since when an election was possible.
    since: RunNs,
    /// Whether that is when its end was asked for.
    healing: bool,
}

/// The fault behind a change of leader, and since when an election was possible: the last one injected since the
/// old leader was established, of those that take a leader away if there are any, because others may act at the
/// same time; or, when there is none, the last one whose healing was asked for since. Where no quorum remained, an
/// election was possible since the last healing.
fn cause<'a>(
    before: Reign,
    after: Reign,
    events: &[Stamped],
    faults: &'a [FaultRecord],
) -> Option<Cause<'a>> {
    let within = |at: &RunNs| (before.at..=after.at).contains(at);
    let last = |moment: &dyn Fn(&FaultRecord) -> Option<RunNs>, of: fn(&FaultRecord) -> bool| {
        faults
            .iter()
            .filter(|fault| of(fault))
            .filter_map(|fault| moment(fault).filter(within).map(|at| (fault, at)))
            .max_by_key(|(_, at)| *at)
    };
    let bitten = |fault: &FaultRecord| onset(fault, events);
    let healing = |fault: &FaultRecord| fault.heal_asked_ns;
    let cause = last(&bitten, is_leader_fault).or_else(|| last(&bitten, |_| true));
    match cause {
        Some((fault, since)) if fault.quorum_remained => Some(Cause { fault, since, healing: false }),
        Some((fault, since)) => {
            let healed = last(&healing, |_| true).map(|(_, at)| at).filter(|at| *at >= since);
            Some(Cause { fault, since: healed.unwrap_or(since), healing: healed.is_some() })
        }
        None => last(&healing, |_| true).map(|(fault, since)| Cause { fault, since, healing: true }),
    }
}

/// Since when a fault could be felt. That it is in force is known only when the cluster has said so, and an election
/// may be over by then: with resets it takes a millisecond. Where somebody left a leader between the asking and the
/// answer, it counts from the asking.
fn onset(fault: &FaultRecord, events: &[Stamped]) -> Option<RunNs> {
    let injected = fault.injected_ns?;
    let meanwhile = |stamped: &&Stamped| (fault.asked_ns..injected).contains(&stamped.time);
    let felt = events.iter().filter(meanwhile).any(left_a_leader);
    Some(if felt { fault.asked_ns } else { injected })
}

fn left_a_leader(stamped: &Stamped) -> bool {
    matches!(stamped.event, Event::Said(Said::Looking { left: Some(_) }))
}

fn looks(stamped: &Stamped) -> bool {
    matches!(stamped.event, Event::Said(Said::Looking { .. }))
}

fn elected(stamped: &Stamped) -> Option<u64> {
    match stamped.event {
        Event::Said(Said::Elected { leader }) => Some(leader),
        _ => None,
    }
}

/// The first acknowledgement, in the new epoch, of a write that was due after the fault.
fn first_write(election: &mut Election, after: Reign, history: &History) {
    let since = election.fault_ns;
    let in_epoch = |op: &&Op| match op.zxid {
        Some(zxid) => Zxid(zxid).epoch().0 >= after.epoch,
        None => op.complete_ns.is_some_and(|at| at >= after.at),
    };
    let first = history
        .ops()
        .iter()
        .filter(|op| op.is_acknowledged_change() && op.due_ns.unwrap_or(op.invoke_ns) >= since)
        .filter(in_epoch)
        .filter_map(|op| op.complete_ns)
        .min();
    if let Some(at) = first {
        election.first_write_ms = Some(milliseconds(at.saturating_sub(after.at)));
        election.total_ms = Some(milliseconds(at.max(after.at).saturating_sub(since)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use checker::history::{Event as Line, EventKind, Function, Value};
    use node_wire::ids::ServerId;

    const MS: u64 = 1_000_000;

    fn said(ms: u64, node: u64, said: Said) -> Stamped {
        Stamped { time: ms * MS, node: ServerId(node), event: Event::Said(said) }
    }

    fn fault(injected_ms: u64) -> FaultRecord {
        FaultRecord {
            id: "F1".to_owned(),
            asked_ns: injected_ms * MS,
            injected_ns: Some(injected_ms * MS),
            quorum_remained: true,
            ..FaultRecord::default()
        }
    }

    fn write(due_ms: u64, done_ms: u64, zxid: u64) -> [Line; 2] {
        let value = Value::One(i64::try_from(due_ms).expect("small"));
        let process = due_ms;
        let mut invoke =
            Line::new(process, EventKind::Invoke, Function::Write, 0, value.clone(), due_ms * MS);
        invoke.due = Some(due_ms * MS);
        let mut ok = Line::new(process, EventKind::Ok, Function::Write, 0, value, done_ms * MS);
        ok.zxid = Some(zxid);
        [invoke, ok]
    }

    fn history(lines: impl IntoIterator<Item = Line>) -> History {
        let mut lines: Vec<Line> = lines.into_iter().collect();
        lines.sort_by_key(|line| line.time);
        History::from_events(lines).expect("a history")
    }

    fn failover() -> Vec<Stamped> {
        vec![
            said(10, 1, Said::Established { leader: 1, epoch: 1 }),
            said(11, 2, Said::Established { leader: 1, epoch: 1 }),
            said(130, 2, Said::Looking { left: Some(1) }),
            said(140, 3, Said::Looking { left: Some(1) }),
            said(150, 2, Said::Elected { leader: 3 }),
            said(152, 3, Said::Elected { leader: 3 }),
            said(170, 3, Said::Established { leader: 3, epoch: 2 }),
            said(171, 2, Said::Established { leader: 3, epoch: 2 }),
        ]
    }

    #[test]
    fn the_four_phases_add_up_to_the_whole() {
        let late = write(105, 180, 0x2_0000_0001);
        let later = write(160, 190, 0x2_0000_0002);
        let history = history(late.into_iter().chain(later));
        let elections = from_events(&failover(), &[fault(100)], &history);
        assert_eq!(elections.len(), 1);
        let election = &elections[0];
        assert_eq!((election.from, election.to, election.epoch), (Some(1), 3, 2));
        assert_eq!((election.fault.as_deref(), election.healing), (Some("F1"), false));
        assert_eq!(election.detection_ms, Some(30.0));
        assert_eq!(election.election_ms, Some(22.0));
        assert_eq!(election.sync_ms, Some(18.0));
        assert_eq!(election.first_write_ms, Some(10.0));
        assert_eq!(election.total_ms, Some(80.0));
    }

    #[test]
    fn an_election_that_was_over_before_the_cluster_answered_belongs_to_the_fault_all_the_same() {
        let mut slow = fault(175);
        slow.asked_ns = 120 * MS;
        let earlier = FaultRecord { id: "F0".to_owned(), heal_asked_ns: Some(60 * MS), ..fault(50) };
        let elections = from_events(&failover(), &[earlier, slow], &History::default());
        assert_eq!(elections[0].fault.as_deref(), Some("F1"));
        assert_eq!((elections[0].fault_ns, elections[0].detection_ms), (120 * MS, Some(10.0)));
    }

    #[test]
    fn a_write_of_the_old_epoch_or_due_before_the_fault_is_not_the_first_write() {
        let old_epoch = write(101, 172, 0x1_0000_0009);
        let due_before = write(99, 175, 0x2_0000_0001);
        let history = history(old_epoch.into_iter().chain(due_before));
        let elections = from_events(&failover(), &[fault(100)], &history);
        assert_eq!(elections[0].first_write_ms, None);
        assert_eq!(elections[0].total_ms, Some(70.0));
    }

    #[test]
    fn an_election_without_a_fault_counts_from_the_first_who_left() {
        let elections = from_events(&failover(), &[], &History::default());
        assert_eq!(elections[0].fault, None);
        assert_eq!(elections[0].fault_ns, 130 * MS);
        assert_eq!(elections[0].detection_ms, Some(0.0));
    }

    #[test]
    fn an_election_that_healing_brought_about_belongs_to_the_fault_healed() {
        let mut fault = fault(5);
        fault.heal_asked_ns = Some(120 * MS);
        let elections = from_events(&failover(), &[fault], &History::default());
        assert_eq!(elections[0].fault.as_deref(), Some("F1"));
        assert_eq!(elections[0].fault_ns, 120 * MS);
        assert_eq!(elections[0].detection_ms, Some(10.0));
        assert!(elections[0].healing);
    }

    #[test]
    fn without_a_quorum_the_phases_count_from_the_healing() {
        let mut fault = fault(20);
        fault.quorum_remained = false;
        fault.heal_asked_ns = Some(125 * MS);
        let elections = from_events(&failover(), &[fault], &History::default());
        assert_eq!(elections[0].fault_ns, 125 * MS);
        assert_eq!(elections[0].detection_ms, Some(5.0));
        assert!(elections[0].healing, "a kind by itself: it counts from the healing");
    }

    #[test]
    fn of_faults_that_act_at_once_the_one_that_took_the_leader_is_the_cause() {
        let mut kill = fault(100);
        kill.leader_fault = Some(true);
        let mut bump = fault(110);
        (bump.id, bump.leader_fault) = ("F2".to_owned(), Some(false));
        let elections = from_events(&failover(), &[kill.clone(), bump.clone()], &History::default());
        assert_eq!(elections[0].fault.as_deref(), Some("F1"));
        assert_eq!(elections[0].fault_ns, 100 * MS);
        kill.quorum_remained = false;
        bump.heal_asked_ns = Some(128 * MS);
        let elections = from_events(&failover(), &[kill, bump], &History::default());
        assert_eq!(elections[0].fault_ns, 128 * MS, "the quorum came back with another fault's end");
    }

    #[test]
    fn the_healing_of_the_fault_before_is_not_taken_for_the_cause() {
        let mut before = fault(5);
        before.heal_asked_ns = Some(60 * MS);
        let mut second = fault(100);
        second.id = "F2".to_owned();
        let elections = from_events(&failover(), &[before, second], &History::default());
        assert_eq!(elections[0].fault.as_deref(), Some("F2"));
        assert_eq!(elections[0].fault_ns, 100 * MS);
    }

    #[test]
    fn the_first_leader_and_followers_words_are_no_elections() {
        let start = &failover()[..2];
        assert!(from_events(start, &[], &History::default()).is_empty());
    }
}
