//! Elections taken apart: how long until somebody noticed, until a vote was decided, until the new epoch
//! stood, until a write was acknowledged.
//!
//! A fault that leaves no quorum (all members killed) has no election before it is healed, so there the
//! phases count from the request to heal it; the outage beside them counts from the fault.
//!
//! A fault is behind a change of leader only where members left their leader while it was in force, or just
//! after it was gone. One that takes the leader or the quorum away may be noticed at any moment of its life.
//! Any other one must be followed by it soon: a follower that has been paused for seconds unseats nobody. A
//! member that left its leader and came back to it has no part in a later change, and no fault of an
//! application ever has one.
//!
//! What nobody said is not known, and is put down as none: never as 0 ms.
//!
//! Everything is on the harness's clock: the moment of injection, the arrival of the members' events, the
//! completion of clients' writes. A pure function of what was written down.
//!
//! [`election_kinds`] puts them together by kind of fault. [`terms`] do the same for the holders of
//! applications: who held what, and what a change cost.

pub mod election_kinds;
pub mod terms;

use std::collections::BTreeSet;

use checker::history::{History, Op};

use crate::clock::{RunNs, milliseconds};
use crate::consequence::Consequences;
use crate::events::{Event, Said, Stamped};
use crate::outages::AFTERMATH_NS;
use crate::results::{Election, FaultRecord, LeaderSeen, RunInfo};

/// The silence after which members give up on one another, where nobody knows it.
const USUAL_PATIENCE_MS: u64 = 1000;

/// What must be known of a system to take its elections apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traits {
    /// How a place in the system's order tells its epoch, so that a late answer of the old epoch is not taken
    /// for the first of the new one.
    pub epoch_shift: Option<u32>,
    /// The silence after which members give up on one another, in ns.
    pub patience_ns: u64,
    /// By how much the members' words may be late, in ns.
    pub lateness_ns: u64,
}

impl Traits {
    /// Of the system of this run.
    pub fn of(run: &RunInfo) -> Self {
        let lateness_ms = match run.system.leader {
            // A question, and its answer.
            LeaderSeen::Asked { every_ms } => every_ms.saturating_mul(2),
            LeaderSeen::Told | LeaderSeen::Untold => 0,
        };
        Self {
            epoch_shift: run.system.epoch_shift,
            patience_ns: run.patience_ms.unwrap_or(USUAL_PATIENCE_MS).saturating_mul(1_000_000),
            lateness_ns: lateness_ms.saturating_mul(1_000_000),
        }
    }
}

/// An epoch that a leader established.
#[derive(Clone, Copy, Debug)]
struct Reign {
    at: RunNs,
    leader: u64,
    epoch: u32,
}

/// Every change of leader after the first leader, in the order of time.
pub fn from_events(
    events: &[Stamped],
    faults: &[FaultRecord],
    history: &History,
    traits: &Traits,
) -> Vec<Election> {
    let timeline = Timeline::of(events, faults);
    let reigns = reigns(&timeline.events);
    let mut elections = Vec::new();
    for pair in reigns.windows(2) {
        let [before, after] = pair else { continue };
        let mut election = Election {
            id: format!("E{}", elections.len() + 1),
            from: Some(before.leader),
            to: after.leader,
            epoch: after.epoch,
            established_ns: Some(after.at),
            ..Election::default()
        };
        take_apart(&mut election, *before, *after, &timeline, traits);
        elections.push(election);
    }
    first_writes(&mut elections, &reigns, history, traits.epoch_shift);
    elections
}

/// The epochs that their own leaders called established, by time; a leader's word for an epoch counts once.
fn reigns(events: &[&Stamped]) -> Vec<Reign> {
    let mut known = BTreeSet::new();
    let mut reigns: Vec<Reign> = Vec::new();
    for stamped in events {
        if let Event::Said(Said::Established { leader, epoch }) = stamped.event
            && leader == stamped.node.0
            && known.insert(epoch)
        {
            reigns.push(Reign { at: stamped.time, leader, epoch });
        }
    }
    reigns
}

/// What happened, sorted once: a long run has as many more elections, faults and events, and none of them is
/// looked through for each of the others. An election is looked for between its own leader and the one
/// before, so every event is read for one election.
struct Timeline<'a> {
    events: Vec<&'a Stamped>,
    /// Faults by when they could be felt.
    felt: Moments<'a>,
    /// Of them those that take a leader away.
    felt_by_leaders: Moments<'a>,
    /// Faults by when their healing was asked for.
    healed: Moments<'a>,
}

impl<'a> Timeline<'a> {
    fn of(events: &'a [Stamped], faults: &'a [FaultRecord]) -> Self {
        let mut events: Vec<&Stamped> = events.iter().collect();
        events.sort_by_key(|stamped| stamped.time);
        let left: Vec<RunNs> =
            events.iter().filter(|stamped| left_a_leader(stamped)).map(|stamped| stamped.time).collect();
        let faults: Vec<&'a FaultRecord> = faults.iter().filter(|fault| !fault.hits_applications()).collect();
        let felt = |fault: &FaultRecord| onset(fault, &left);
        Self {
            felt: Moments::of(&faults, felt),
            felt_by_leaders: Moments::of(&faults, |fault| felt(fault).filter(|_| fault.took_the_leader())),
            healed: Moments::of(&faults, |fault| fault.heal_asked_ns),
            events,
        }
    }

    /// The events from one moment to another, both included.
    fn between(&self, from: RunNs, to: RunNs) -> &[&'a Stamped] {
        let from = self.events.partition_point(|stamped| stamped.time < from);
        let to = self.events.partition_point(|stamped| stamped.time <= to);
        self.events.get(from..to).unwrap_or_default()
    }
}

/// Faults by a moment of their lives.
struct Moments<'a>(Vec<(RunNs, &'a FaultRecord)>);

impl<'a> Moments<'a> {
    fn of(faults: &[&'a FaultRecord], moment: impl Fn(&FaultRecord) -> Option<RunNs>) -> Self {
        let mut moments: Vec<(RunNs, &FaultRecord)> =
            faults.iter().filter_map(|fault| Some((moment(fault)?, *fault))).collect();
        moments.sort_by_key(|(at, _)| *at);
        Self(moments)
    }

    /// The last of them between the old leader's beginning and the new one's for which this holds. A fault
    /// that begins in the moment in which the new leader stands is aimed at that one, as happens where time
    /// is virtual.
    fn last_between(
        &self,
        before: Reign,
        after: Reign,
        holds: impl Fn(&FaultRecord, RunNs) -> bool,
    ) -> Option<(&'a FaultRecord, RunNs)> {
        let all = &self.0[..self.0.partition_point(|(at, _)| *at < after.at)];
        let reign = &all[all.partition_point(|(at, _)| *at < before.at)..];
        let (at, fault) = *reign.iter().rev().find(|(at, fault)| holds(fault, *at))?;
        Some((fault, at))
    }
}

/// Who left the old leader between its beginning and the new one's, for good: whoever came back to it ended
/// nothing.
struct Departures<'a> {
    all: Vec<&'a Stamped>,
    before: Reign,
    after: Reign,
}

impl<'a> Departures<'a> {
    fn of(before: Reign, after: Reign, timeline: &Timeline<'a>) -> Self {
        let mut back = BTreeSet::new();
        let mut all: Vec<&Stamped> = Vec::new();
        for stamped in timeline.between(before.at, after.at).iter().rev() {
            match stamped.event {
                Event::Said(Said::Established { epoch, .. }) if epoch == before.epoch => {
                    back.insert(stamped.node);
                }
                _ if left_a_leader(stamped) && !back.contains(&stamped.node) => all.push(stamped),
                _ => {}
            }
        }
        all.reverse();
        Self { all, before, after }
    }

    /// Whether a fault that could be felt from `at` on is behind the change of leader.
    fn follow(&self, fault: &FaultRecord, at: RunNs, traits: &Traits) -> bool {
        let takes = fault.took_the_leader() || !fault.quorum_remained;
        // What one of the user's own does nobody knows, and what is slow may lose its followers late.
        let any_time = takes || fault.is_unknown() || fault.slows_ns() > 0;
        let soon = AFTERMATH_NS.saturating_add(traits.lateness_ns);
        let life = fault.gone_ns().unwrap_or(u64::MAX).saturating_add(soon);
        let short = at.saturating_add(traits.patience_ns).saturating_add(soon);
        let until = if any_time { life } else { life.min(short) };
        // A follower that it hits leaves; the leader has no part in that.
        let counts = |stamped: &&&Stamped| {
            any_time || stamped.node.0 == self.before.leader || !fault.targets.contains(&stamped.node.0)
        };
        match self.all.iter().filter(counts).find(|stamped| stamped.time >= at) {
            Some(first) => first.time <= until,
            None => (takes || self.all.is_empty()) && self.after.at <= until,
        }
    }

    /// Whether the end of a fault, which was asked for at this moment, is behind the change of leader.
    fn follow_healing(&self, fault: &FaultRecord, asked: RunNs, traits: &Traits) -> bool {
        let soon = AFTERMATH_NS.saturating_add(traits.lateness_ns);
        let until = fault.gone_ns().unwrap_or(u64::MAX).saturating_add(soon);
        match self.all.iter().find(|stamped| stamped.time >= asked) {
            Some(first) => first.time <= until,
            None => self.all.is_empty() && self.after.at <= until,
        }
    }
}

fn take_apart(
    election: &mut Election,
    before: Reign,
    after: Reign,
    timeline: &Timeline<'_>,
    traits: &Traits,
) {
    let departures = Departures::of(before, after, timeline);
    let cause = cause(&departures, timeline, traits);
    election.fault = cause.map(|cause| cause.fault.id.clone());
    election.healing = cause.is_some_and(|cause| cause.healing);
    let from = cause.map_or(before.at, |cause| cause.since);
    let window = timeline.between(from, after.at);
    let detected = departures
        .all
        .iter()
        .find(|stamped| stamped.time >= from)
        .or_else(|| window.iter().find(|stamped| looks(stamped)))
        .map(|stamped| stamped.time);
    // Without a fault nothing can have been noticed late: the phases count from the first who left.
    let since = cause.map(|cause| cause.since).or(detected);
    election.fault_ns = since.unwrap_or(after.at);
    let looked = timeline.between(detected.unwrap_or(election.fault_ns), after.at);
    let decided = looked
        .iter()
        .rfind(|stamped| stamped.node.0 == after.leader && elected(stamped) == Some(after.leader))
        .or_else(|| looked.iter().find(|stamped| elected(stamped) == Some(after.leader)))
        .map(|stamped| stamped.time);
    let took = |from: Option<RunNs>, to: Option<RunNs>| Some(milliseconds(to?.saturating_sub(from?)));
    election.detection_ms = took(cause.map(|cause| cause.since), detected);
    election.election_ms = took(detected, decided);
    election.sync_ms = took(decided, Some(after.at));
    // Whoever is asked now and then may be seen to leave and to lead in the same moment.
    election.total_ms = took(since, Some(after.at)).filter(|total| *total > 0.0);
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

/// The fault behind a change of leader, and since when an election was possible: the last one injected since
/// the old leader was established that members left it for, of those that take a leader away if there are
/// any, because others may act at the same time; or, when there is none, the last one whose healing they left
/// it for. Where no quorum remained, an election was possible since the last healing.
fn cause<'a>(departures: &Departures<'_>, timeline: &Timeline<'a>, traits: &Traits) -> Option<Cause<'a>> {
    let (before, after) = (departures.before, departures.after);
    let follow = |fault: &FaultRecord, at| departures.follow(fault, at, traits);
    let cause = timeline.felt_by_leaders.last_between(before, after, follow);
    let cause = cause.or_else(|| timeline.felt.last_between(before, after, follow));
    match cause {
        Some((fault, since)) if fault.quorum_remained => Some(Cause { fault, since, healing: false }),
        Some((fault, since)) => {
            let healed = timeline.healed.last_between(before, after, |_, at| at >= since).map(|(_, at)| at);
            Some(Cause { fault, since: healed.unwrap_or(since), healing: healed.is_some() })
        }
        None => {
            let follow = |fault: &FaultRecord, at| departures.follow_healing(fault, at, traits);
            let healed = timeline.healed.last_between(before, after, follow);
            healed.map(|(fault, since)| Cause { fault, since, healing: true })
        }
    }
}

/// Since when a fault could be felt. That it is in force is known only when the cluster has said so, and an
/// election may be over by then: with resets it takes a millisecond. Where somebody left a leader between the
/// asking and the answer, it counts from the asking.
fn onset(fault: &FaultRecord, left: &[RunNs]) -> Option<RunNs> {
    let injected = fault.injected_ns?;
    let first = left.get(left.partition_point(|at| *at < fault.asked_ns));
    let felt = first.is_some_and(|at| *at < injected);
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

/// For each election the first acknowledgement, in the new epoch, of a write that was due after the fault.
///
/// Acknowledgements go by once, in the order of time. An election waits for its own from the moment of its
/// fault on, so only those few wait at a time that nobody has written in yet.
fn first_writes(elections: &mut [Election], reigns: &[Reign], history: &History, epoch_shift: Option<u32>) {
    let mut acknowledged: Vec<(RunNs, &Op)> = (history.ops().iter())
        .filter(|op| op.is_acknowledged_change())
        .filter_map(|op| Some((op.complete_ns?, op)))
        .collect();
    acknowledged.sort_by_key(|(at, _)| *at);
    let mut by_fault: Vec<usize> = (0..elections.len()).collect();
    by_fault.sort_by_key(|place| elections[*place].fault_ns);
    let mut to_come = by_fault.into_iter().peekable();
    let mut waiting: Vec<usize> = Vec::new();
    for (at, op) in acknowledged {
        while let Some(place) = to_come.next_if(|place| elections[*place].fault_ns <= at) {
            waiting.push(place);
        }
        waiting.retain(|place| {
            // The first leader was not elected in any of these.
            let (election, after) = (&mut elections[*place], reigns[*place + 1]);
            let is_first = is_first_write(op, election.fault_ns, after, epoch_shift);
            if is_first {
                election.first_write_ms = Some(milliseconds(at.saturating_sub(after.at)));
                let total = milliseconds(at.max(after.at).saturating_sub(election.fault_ns));
                election.total_ms = election.total_ms.map(|_| total);
            }
            !is_first
        });
    }
}

/// Whether a write was due after the fault and acknowledged in the new epoch.
fn is_first_write(op: &Op, since: RunNs, after: Reign, epoch_shift: Option<u32>) -> bool {
    let epoch = op.zxid.zip(epoch_shift).and_then(|(place, bits)| place.checked_shr(bits));
    let in_epoch = match epoch {
        Some(epoch) => epoch >= u64::from(after.epoch),
        None => op.complete_ns.is_some_and(|at| at >= after.at),
    };
    in_epoch && op.due_ns.unwrap_or(op.invoke_ns) >= since
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::consequence::Consequence;
    use crate::member::MemberId;
    use checker::history::{Event as Line, EventKind, Function, Value};

    const MS: u64 = 1_000_000;
    const TRAITS: Traits = Traits { epoch_shift: Some(32), patience_ns: 250 * MS, lateness_ns: 0 };

    fn said(ms: u64, node: u64, said: Said) -> Stamped {
        Stamped { time: ms * MS, node: MemberId(node), event: Event::Said(said) }
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
            Line::new(process, EventKind::Invoke, Function::WRITE, 0, value.clone(), due_ms * MS);
        invoke.due = Some(due_ms * MS);
        let mut ok = Line::new(process, EventKind::Ok, Function::WRITE, 0, value, done_ms * MS);
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
        let elections = from_events(&failover(), &[fault(100)], &history, &TRAITS);
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
        let elections = from_events(&failover(), &[earlier, slow], &History::default(), &TRAITS);
        assert_eq!(elections[0].fault.as_deref(), Some("F1"));
        assert_eq!((elections[0].fault_ns, elections[0].detection_ms), (120 * MS, Some(10.0)));
    }

    #[test]
    fn a_fault_that_begins_when_the_new_leader_stands_is_not_why_it_was_elected() {
        let cause = fault(100);
        let next = FaultRecord { id: "F2".to_owned(), asked_ns: 170 * MS, ..fault(170) };
        let elections = from_events(&failover(), &[cause, next], &History::default(), &TRAITS);
        assert_eq!(elections[0].fault.as_deref(), Some("F1"));
        assert_eq!(elections[0].total_ms, Some(70.0));
    }

    #[test]
    fn a_write_of_the_old_epoch_or_due_before_the_fault_is_not_the_first_write() {
        let old_epoch = write(101, 172, 0x1_0000_0009);
        let due_before = write(99, 175, 0x2_0000_0001);
        let history = history(old_epoch.into_iter().chain(due_before));
        let elections = from_events(&failover(), &[fault(100)], &history, &TRAITS);
        assert_eq!(elections[0].first_write_ms, None);
        assert_eq!(elections[0].total_ms, Some(70.0));
    }

    #[test]
    fn an_election_without_a_fault_counts_from_the_first_who_left() {
        let elections = from_events(&failover(), &[], &History::default(), &TRAITS);
        assert_eq!(elections[0].fault, None);
        assert_eq!(elections[0].fault_ns, 130 * MS);
        assert_eq!((elections[0].detection_ms, elections[0].total_ms), (None, Some(40.0)));
    }

    #[test]
    fn an_election_that_healing_brought_about_belongs_to_the_fault_healed() {
        let mut fault = fault(5);
        fault.heal_asked_ns = Some(120 * MS);
        let elections = from_events(&failover(), &[fault], &History::default(), &TRAITS);
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
        let elections = from_events(&failover(), &[fault], &History::default(), &TRAITS);
        assert_eq!(elections[0].fault_ns, 125 * MS);
        assert_eq!(elections[0].detection_ms, Some(5.0));
        assert!(elections[0].healing, "a kind by itself: it counts from the healing");
    }

    #[test]
    fn of_faults_that_act_at_once_the_one_that_took_the_leader_is_the_cause() {
        let mut kill = fault(100);
        kill.leader_fault = true;
        let mut bump = fault(110);
        (bump.id, bump.leader_fault) = ("F2".to_owned(), false);
        let elections = from_events(&failover(), &[kill.clone(), bump.clone()], &History::default(), &TRAITS);
        assert_eq!(elections[0].fault.as_deref(), Some("F1"));
        assert_eq!(elections[0].fault_ns, 100 * MS);
        kill.quorum_remained = false;
        bump.heal_asked_ns = Some(128 * MS);
        let elections = from_events(&failover(), &[kill, bump], &History::default(), &TRAITS);
        assert_eq!(elections[0].fault_ns, 128 * MS, "the quorum came back with another fault's end");
    }

    #[test]
    fn the_healing_of_the_fault_before_is_not_taken_for_the_cause() {
        let mut before = fault(5);
        before.heal_asked_ns = Some(60 * MS);
        let mut second = fault(100);
        second.id = "F2".to_owned();
        let elections = from_events(&failover(), &[before, second], &History::default(), &TRAITS);
        assert_eq!(elections[0].fault.as_deref(), Some("F2"));
        assert_eq!(elections[0].fault_ns, 100 * MS);
    }

    #[test]
    fn the_first_leader_and_followers_words_are_no_elections_and_neither_is_a_word_twice() {
        let start = &failover()[..2];
        assert!(from_events(start, &[], &History::default(), &TRAITS).is_empty());
        let mut twice = failover();
        twice.push(said(250, 3, Said::Established { leader: 3, epoch: 2 }));
        let found = from_events(&twice, &[], &History::default(), &TRAITS);
        assert_eq!((found.len(), found[0].established_ns), (1, Some(170 * MS)));
    }

    /// n1 leads from 10 ms to 9,000 ms; n2 and n3 follow it. n3 leaves it at 2,100 and is back at 7,500.
    fn late_failover() -> Vec<Stamped> {
        vec![
            said(10, 1, Said::Established { leader: 1, epoch: 1 }),
            said(2100, 3, Said::Looking { left: Some(1) }),
            said(7500, 3, Said::Established { leader: 1, epoch: 1 }),
            said(9000, 2, Said::Looking { left: Some(1) }),
            said(9010, 2, Said::Elected { leader: 2 }),
            said(9030, 2, Said::Established { leader: 2, epoch: 2 }),
        ]
    }

    fn aimed(consequences: &[Consequence], gone_ms: Option<u64>) -> FaultRecord {
        FaultRecord {
            consequences: consequences.to_vec(),
            targets: vec![3],
            heal_asked_ns: gone_ms.map(|gone| (gone - 500) * MS),
            verified_healed_ns: gone_ms.map(|gone| gone * MS),
            ..fault(2000)
        }
    }

    fn blamed(faults: &[FaultRecord]) -> (Option<String>, bool) {
        let elections = from_events(&late_failover(), faults, &History::default(), &TRAITS);
        assert_eq!(elections[0].total_ms, Some(30.0), "it counts from who left");
        (elections[0].fault.clone(), elections[0].healing)
    }

    #[test]
    fn a_fault_that_is_long_gone_is_behind_no_election_and_neither_is_its_healing() {
        for consequences in [
            vec![Consequence::silences(Vec::new())],
            vec![Consequence::Stops],
            vec![Consequence::Ends],
            vec![Consequence::ShiftsTime],
        ] {
            assert_eq!(blamed(&[aimed(&consequences, Some(7500))]), (None, false), "{consequences:?}");
        }
        let mut leader = aimed(&[Consequence::Stops], Some(7500));
        (leader.targets, leader.leader_fault) = (vec![1], true);
        assert_eq!(blamed(&[leader.clone()]), (None, false));
        leader.quorum_remained = false;
        assert_eq!(blamed(&[leader]), (None, false), "nor one that took the quorum");
    }

    #[test]
    fn a_follower_that_was_hit_seconds_ago_unseats_nobody() {
        assert_eq!(blamed(&[aimed(&[Consequence::Stops], None)]), (None, false));
        assert_eq!(blamed(&[aimed(&[Consequence::Ends], None)]), (None, false));
    }

    #[test]
    fn no_fault_of_an_application_is_behind_an_election_of_members() {
        for consequences in [
            vec![Consequence::HitsApplications],
            vec![Consequence::HitsApplications, Consequence::ShiftsTime],
        ] {
            let mut at_work = aimed(&consequences, None);
            (at_work.asked_ns, at_work.injected_ns) = (8990 * MS, Some(8990 * MS));
            assert_eq!(blamed(&[at_work.clone()]), (None, false));
            at_work.heal_asked_ns = Some(8995 * MS);
            assert_eq!(blamed(&[at_work]), (None, false));
        }
    }

    #[test]
    fn the_end_of_a_fault_that_members_leave_their_leader_for_is_behind_the_election() {
        let mut returning = aimed(&[Consequence::silences(Vec::new())], Some(9100));
        returning.heal_asked_ns = Some(8900 * MS);
        let elections = from_events(&late_failover(), &[returning], &History::default(), &TRAITS);
        assert_eq!((elections[0].fault.as_deref(), elections[0].healing), (Some("F1"), true));
        assert_eq!((elections[0].fault_ns, elections[0].detection_ms), (8900 * MS, Some(100.0)));
    }

    #[test]
    fn what_nobody_said_is_not_known_and_no_zero() {
        let mut events = failover();
        events.retain(|stamped| !matches!(stamped.event, Event::Said(Said::Elected { .. })));
        let elections = from_events(&events, &[fault(100)], &History::default(), &TRAITS);
        let phases = |election: &Election| (election.detection_ms, election.election_ms, election.sync_ms);
        assert_eq!((phases(&elections[0]), elections[0].total_ms), ((Some(30.0), None, None), Some(70.0)));
        events.retain(|stamped| matches!(stamped.event, Event::Said(Said::Established { .. })));
        let elections = from_events(&events, &[fault(100)], &History::default(), &TRAITS);
        assert_eq!((phases(&elections[0]), elections[0].total_ms), ((None, None, None), Some(70.0)));
        // Whoever is asked now and then is seen to leave and to lead in one moment.
        let write = history(write(180, 190, 0x2_0000_0001));
        let elections = from_events(&events, &[], &write, &TRAITS);
        assert_eq!((phases(&elections[0]), elections[0].total_ms), ((None, None, None), None));
        assert_eq!(elections[0].first_write_ms, Some(20.0));
    }
}
