//! Outages as clients saw them: intervals in which a write waited and none was acknowledged.
//!
//! A gap between two acknowledgements is no outage when nobody had asked for anything, so an outage begins
//! with the later of the last acknowledgement and the first moment at which a write was due and unanswered.
//! It ends with the next acknowledgement, of whatever write: clients do not care which one it was. An
//! interval, not an instant per client, because a service that answers one client of twenty is not down.

use checker::history::{History, Op, Outcome};

use crate::faults::FaultRecord;
use crate::numbers::NS_PER_MS;
use crate::operations::{due_ns, end_ns, is_update};
use crate::results::Outage;

/// Waits shorter than this are the load's own rhythm and a slow fsync, not an outage worth naming.
pub const MINIMUM_NS: u64 = 30 * NS_PER_MS;

/// A fault counts as the cause of an outage that begins this long after it was seen to be gone, since what
/// it left behind (a truncated follower, a reconnecting client) takes its time.
const AFTERMATH_NS: u64 = 400 * NS_PER_MS;

/// The outages of at least `minimum_ns` in `history`, in the order of time.
pub fn from_history(history: &History, faults: &[FaultRecord], minimum_ns: u64) -> Vec<Outage> {
    let end_ns = end_ns(history);
    let mut writes: Vec<&Op> = history.ops().iter().filter(|op| is_update(op)).collect();
    writes.sort_by_key(|op| due_ns(op));
    let mut acknowledged: Vec<u64> =
        writes.iter().filter(|op| op.outcome == Outcome::Ok).filter_map(|op| op.complete_ns).collect();
    acknowledged.sort_unstable();

    let mut waiting = Waiting::new(&writes);
    let mut last = 0;
    let mut found = Vec::new();
    for (to_ns, open) in acknowledged.iter().map(|&at| (at, false)).chain([(end_ns, true)]) {
        // Most gaps are far too short; the search for who waited is only made in the others.
        if to_ns.saturating_sub(last) >= minimum_ns
            && let Some(from_ns) = waiting.since(last, to_ns)
            && to_ns.saturating_sub(from_ns) >= minimum_ns
        {
            let fault = cause(faults, from_ns, to_ns, end_ns).map(|fault| fault.id.clone());
            found.push(Outage { from_ns, to_ns, fault, open });
        }
        last = to_ns;
    }
    found
}

/// Finds since when somebody waited, in one pass over the writes by the time at which they were due.
struct Waiting<'a> {
    by_due: &'a [&'a Op],
    /// Everything before this index was due before the gap now looked at.
    next: usize,
    /// Indices of earlier writes that may still be waiting.
    open: Vec<usize>,
}

impl<'a> Waiting<'a> {
    fn new(by_due: &'a [&'a Op]) -> Self {
        Self { by_due, next: 0, open: Vec::new() }
    }

    /// The first moment in `last..to` at which a write was due and not answered; None when nobody waited.
    fn since(&mut self, last: u64, to: u64) -> Option<u64> {
        while let Some(op) = self.by_due.get(self.next)
            && due_ns(op) <= last
        {
            self.open.push(self.next);
            self.next += 1;
        }
        // An operation whose fate stays unknown has no moment at which its client gave up, so it only counts
        // in the gap in which it was due; else it would turn every later gap into an outage.
        self.open.retain(|&at| self.by_due[at].complete_ns.is_some_and(|completed| completed > last));
        if !self.open.is_empty() {
            return Some(last);
        }
        self.by_due.get(self.next).map(|op| due_ns(op)).filter(|&due| due < to)
    }
}

/// The fault behind an outage: the latest that was at work when it began, or else the first asked for
/// before it ended.
fn cause(faults: &[FaultRecord], from_ns: u64, to_ns: u64, end_ns: u64) -> Option<&FaultRecord> {
    let at_work = faults
        .iter()
        .filter(|fault| {
            fault.interval(end_ns).is_some_and(|(_, gone)| gone.saturating_add(AFTERMATH_NS) >= from_ns)
        })
        .filter(|fault| fault.asked_ns <= from_ns)
        .max_by_key(|fault| fault.asked_ns);
    at_work.or_else(|| {
        faults
            .iter()
            .filter(|fault| fault.injected_ns.is_some())
            .filter(|fault| (from_ns..to_ns).contains(&fault.asked_ns))
            .min_by_key(|fault| fault.asked_ns)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::test_data::{Sketch, history, ok};
    use checker::history::{EventKind, Function};

    const MS: u64 = NS_PER_MS;

    fn steady(from_ms: u64, to_ms: u64) -> Vec<Sketch> {
        (from_ms..to_ms).map(|at| ok(Function::Write, at * MS, (at + 1) * MS)).collect()
    }

    #[test]
    fn a_gap_while_writes_wait_is_an_outage_from_the_last_acknowledgement() {
        let mut ops = steady(0, 100);
        ops.extend((100..300).map(|at| ok(Function::Write, at * MS, 301 * MS)));
        let found = from_history(&history(&ops), &[], MINIMUM_NS);
        assert_eq!(found, [Outage { from_ns: 100 * MS, to_ns: 301 * MS, fault: None, open: false }]);
    }

    #[test]
    fn a_gap_in_which_nobody_asked_is_no_outage() {
        let mut ops = steady(0, 100);
        ops.extend(steady(500, 600));
        assert_eq!(from_history(&history(&ops), &[], MINIMUM_NS), []);
    }

    #[test]
    fn a_rare_write_that_is_slow_counts_from_when_it_was_due() {
        let mut ops = steady(0, 10);
        ops.push(ok(Function::Write, 200 * MS, 290 * MS));
        let found = from_history(&history(&ops), &[], MINIMUM_NS);
        assert_eq!(found, [Outage { from_ns: 200 * MS, to_ns: 290 * MS, fault: None, open: false }]);
    }

    #[test]
    fn reads_do_not_end_an_outage_and_an_unanswered_write_leaves_it_open() {
        let mut ops = steady(0, 10);
        ops.push(Sketch(Function::Write, 20 * MS, 60 * MS, EventKind::Info));
        ops.push(ok(Function::Read, 90 * MS, 100 * MS));
        let found = from_history(&history(&ops), &[], MINIMUM_NS);
        assert_eq!(found, [Outage { from_ns: 20 * MS, to_ns: 100 * MS, fault: None, open: true }]);
    }

    #[test]
    fn the_latest_fault_at_work_is_named() {
        let fault = |id: &str, asked, gone| FaultRecord {
            id: id.to_owned(),
            asked_ns: asked * MS,
            injected_ns: Some(asked * MS),
            verified_healed_ns: Some(gone * MS),
            ..FaultRecord::default()
        };
        let mut ops = steady(0, 1000);
        ops.push(ok(Function::Write, 1000 * MS, 1200 * MS));
        let faults = [fault("F1", 100, 200), fault("F2", 900, 1500), fault("F3", 1190, 1500)];
        let found = from_history(&history(&ops), &faults, MINIMUM_NS);
        assert_eq!(found[0].fault.as_deref(), Some("F2"));
        let found = from_history(&history(&ops), &faults[2..], MINIMUM_NS);
        assert_eq!(found[0].fault.as_deref(), Some("F3"));
    }
}
