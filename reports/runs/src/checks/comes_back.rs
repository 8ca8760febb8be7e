//! Does the system come back? The check `comes-back`.
//!
//! When every fault is proven gone a system acknowledges changes again, unless it promises otherwise
//! ([`ComesBack`]). One that acknowledges none for longer than its bound has
//! stopped for good, and that is a violation, whether a fault came before or none. The same is asked of each
//! key while others are served, and of each member.
//!
//! It accuses, so its clock runs only where [`silence`](crate::silence) has evidence, in stretches without a
//! fault, and every member must have been found silent by fresh clients; one whose process ended by itself
//! needs none. Who ended for a reason that is not its own leaves the others to be asked, as long as they are
//! a quorum. Nothing is asked of a system before it acknowledged its first change.

use std::collections::{BTreeMap, BTreeSet};

use checker::history::{Extent, History, Op};
use checker::verdict::{CheckResult, Verdict};
use serde_json::json;

use super::Check;
use super::promises::MINIMUM_EACH;
use super::recovery::Logs;
use crate::causes::{self, Ender};
use crate::comes_back::{ComesBack, When};
use crate::consequence::Consequences;
use crate::events::{Event, Stamped};
use crate::faults::FaultRecord;
use crate::numbers::{count, duration, moment, ns_to_ms, plural};
use crate::observed::Observed;
use crate::operations::end_ns;
use crate::results::RunInfo;
use crate::silence::{Evidence, Sign, Silences, sign, sign_of_any};
use crate::stalls;

/// The check's name.
pub const NAME: &str = "comes-back";
/// To the bound so many times the harness's own worst lateness is added.
const LATENESS: u64 = 4;
/// A member was one of several that served at once if another did this shortly before its last answer. They
/// serve on if they do this shortly before the end.
const BESIDE_NS: u64 = 2_000_000_000;
/// A difference of spans that is worth saying.
const WORTH_SAYING_NS: u64 = 500_000_000;
/// A silence at the end that is shorter is nothing to speak of.
const WORTH_A_WORD_NS: u64 = 5_000_000_000;

/// The check.
pub(super) const CHECK: Check = Check {
    about: "the system comes back when nothing is broken any more",
    judge: |case| {
        let history = (&case.loaded.history, case.loaded.extent);
        check(case.run, case.faults, case.observed, history, case.logs).into_iter().collect()
    },
};

/// A stretch of the load in which changes must be acknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stretch {
    from: u64,
    to: u64,
    /// Members that no fault holds.
    members: Vec<u64>,
}

/// What is asked about, and what is known beside the history.
struct Judge<'a> {
    run: &'a RunInfo,
    observed: &'a Observed,
    logs: Logs<'a>,
    silences: Silences<'a>,
    /// From when on a silence is too long.
    bound: u64,
    /// When the load ended, or what is known of it.
    end: u64,
}

/// The check; none where nobody asked for it, where the system promises nothing, or where no clients of the
/// bench's asked for changes.
pub fn check(
    run: &RunInfo,
    faults: &[FaultRecord],
    observed: &Observed,
    (history, extent): (&History, Extent),
    logs: Logs<'_>,
) -> Option<CheckResult> {
    let promised = run.comes_back.as_ref().filter(|told| told.when != When::Never && !run.is_wrapped())?;
    let nothing = |why: String| Some(CheckResult::nothing_judged(NAME, format!("nothing was judged: {why}")));
    let Some(first) = lives(history.ops().iter()).first().copied() else {
        return nothing("no change was ever acknowledged, so there was nothing to come back".to_owned());
    };
    let Some(bound) = promised.bound_ns(run.patience_ms, first) else {
        return nothing("nobody knows after which silence members give up on one another".to_owned());
    };
    let judge = Judge {
        run,
        observed,
        logs,
        silences: Silences::of(history, observed, run.operation_timeout_ms.unwrap_or_default() * 1_000_000),
        bound: bound.saturating_add(LATENESS * observed.lag.max_ns()),
        end: load_end(history, extent, observed),
    };
    let stretches = stretches(promised, faults, &judge, first);
    let longest = stretches.iter().map(|stretch| stretch.to - stretch.from).max().unwrap_or(0);
    let (is_busy, mut findings, mut open) = (stalls::too_busy(observed), Vec::new(), None);
    if !is_busy {
        for stretch in &stretches {
            let (found, left) = judge.all(stretch, history);
            findings.extend(found);
            open = left.or(open);
        }
        if findings.is_empty() {
            findings.extend(stretches.iter().flat_map(|stretch| judge.keys(stretch, history)));
        }
        if findings.is_empty() {
            findings.extend(judge.members(faults, promised, history));
        }
    }
    let bounds = duration(ns_to_ms(judge.bound));
    let evidence = json!({
        "bound_ms": ns_to_ms(judge.bound), "longest_calm_ms": ns_to_ms(longest),
        "stretches": stretches.len(), "findings": findings, "source": promised.source,
        "kind": "it never came back",
    });
    let result = match findings.as_slice() {
        [] if is_busy => nothing("the machine was too busy for anybody's time to mean anything".to_owned())?,
        [] if open.is_some() => nothing(open.unwrap_or_default())?,
        [] if longest < judge.bound => nothing(format!(
            "only {bounds} without an acknowledged change are too long, and nothing was broken for {} at \
             most",
            duration(ns_to_ms(longest))
        ))?,
        [] => CheckResult::new(
            NAME,
            Verdict::Valid,
            format!(
                "changes were acknowledged again within {bounds} wherever nothing was broken, for {} at most",
                duration(ns_to_ms(longest))
            ),
        ),
        [only] => CheckResult::new(NAME, Verdict::Invalid, only.clone()),
        [first, rest @ ..] => {
            CheckResult::new(NAME, Verdict::Invalid, format!("{first} (and {} more)", rest.len()))
        }
    };
    Some(extent.allow(result.with_evidence(evidence)))
}

/// When the load ended: behind the end of a beginning anything may follow.
fn load_end(history: &History, extent: Extent, observed: &Observed) -> u64 {
    let last = end_ns(history);
    match observed.workload_to_ns {
        0 => last,
        to if extent.is_whole() => to,
        to => to.min(last),
    }
}

/// When changes were decided, ascending.
fn lives<'a>(ops: impl Iterator<Item = &'a Op>) -> Vec<u64> {
    let mut lives: Vec<u64> =
        ops.filter(|op| sign(op) == Sign::Life).filter_map(|op| op.complete_ns).collect();
    lives.sort_unstable();
    lives
}

/// When a fault was proven to be gone; never where nobody saw that. What kills or stops processes is gone
/// when these run again, whether they serve or not.
fn gone_ns(fault: &FaultRecord, observed: &Observed) -> u64 {
    if let Some(gone) = fault.verified_healed_ns {
        return gone;
    }
    let asked = fault.heal_asked_ns.filter(|_| fault.ends_only() || fault.stops());
    let Some(asked) = asked else { return u64::MAX };
    let runs_from = |member: &u64| {
        let again = |stamped: &&Stamped| {
            stamped.node.0 == *member
                && stamped.time >= asked
                && matches!(stamped.event, Event::Spawned | Event::Resumed)
        };
        observed.events.iter().filter(again).map(|stamped| stamped.time).min().unwrap_or(u64::MAX)
    };
    fault.targets.iter().map(runs_from).max().unwrap_or(u64::MAX)
}

/// Where changes must be acknowledged, from the first that was: between the faults; of a system that promises
/// to go on whatever is broken also beside those that were seen to bite and left a member alone.
fn stretches(promised: &ComesBack, faults: &[FaultRecord], judge: &Judge<'_>, first: u64) -> Vec<Stretch> {
    let active: Vec<(u64, u64, &FaultRecord)> = faults
        .iter()
        .filter(|fault| fault.injected_ns.is_some())
        .map(|fault| (fault.asked_ns, gone_ns(fault, judge.observed), fault))
        .collect();
    let from = first.max(judge.observed.workload_from_ns);
    let mut moments: BTreeSet<u64> = active.iter().flat_map(|(from, to, _)| [*from, *to]).collect();
    moments.extend([from, judge.end]);
    let moments: Vec<u64> = moments.into_iter().filter(|at| (from..=judge.end).contains(at)).collect();
    let mut found = Vec::new();
    for pair in moments.windows(2) {
        let at_work: Vec<&FaultRecord> = active
            .iter()
            .filter(|(from, to, _)| *from < pair[1] && *to > pair[0])
            .map(|(_, _, fault)| *fault)
            .collect();
        let knows = |fault: &&FaultRecord| {
            fault.verified_ns.is_some() && !fault.is_unknown() && !fault.hits_applications()
        };
        if !at_work.is_empty() && (promised.when != When::Always || !at_work.iter().all(knows)) {
            continue;
        }
        let is_free = |member: &u64| !at_work.iter().any(|fault| fault.targets.contains(member));
        let members: Vec<u64> = judge.run.members().filter(is_free).collect();
        if !members.is_empty() {
            found.push(Stretch { from: pair[0], to: pair[1], members });
        }
    }
    found
}

/// What became of a member's process by some moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Process {
    Runs,
    /// It ended by itself at that moment.
    Ended(u64),
    /// It ended, or stands still, for another reason.
    TakenAway,
}

/// Members that ended by themselves, and when.
type Ended = Vec<(u64, u64)>;

impl Judge<'_> {
    fn process(&self, member: u64, at: u64) -> Process {
        let mut state = Process::Runs;
        let own =
            self.observed.events.iter().filter(|stamped| stamped.node.0 == member && stamped.time <= at);
        for stamped in own {
            state = match &stamped.event {
                Event::Spawned | Event::Resumed => Process::Runs,
                Event::Paused => Process::TakenAway,
                Event::Exited(how) if causes::ender(how, &(self.logs)(member)) == Ender::Itself => {
                    Process::Ended(stamped.time)
                }
                Event::Exited(_) => Process::TakenAway,
                Event::Said(_) | Event::Clock { .. } => state,
            };
        }
        state
    }

    /// Who must have been asked, and which of them ended by themselves; none where too many were taken away.
    fn asked(&self, members: &[u64], at: u64) -> Option<(Vec<u64>, Ended)> {
        let (mut run, mut ended, mut away) = (Vec::new(), Vec::new(), 0);
        for member in members {
            match self.process(*member, at) {
                Process::Runs => run.push(*member),
                Process::Ended(when) => ended.push((*member, when)),
                Process::TakenAway => away += u32::from(self.run.votes(*member)),
            }
        }
        (away == 0 || self.run.nodes.saturating_sub(away) > self.run.nodes / 2).then_some((run, ended))
    }

    /// The silences of a stretch in which no change at all was decided; and, where the last of them is too
    /// short to accuse or lacks evidence, what is to be said of it.
    fn all(&self, stretch: &Stretch, history: &History) -> (Vec<String>, Option<String>) {
        let lives = lives(history.ops().iter());
        let mut open = None;
        let mut found = Vec::new();
        for (from, to) in gaps(&lives, stretch.from, stretch.to) {
            if to - from < self.bound.min(WORTH_A_WORD_NS) {
                continue;
            }
            let before = lives[..lives.partition_point(|at| *at <= from)].last().copied().unwrap_or(from);
            let since = |long: u64| {
                if to >= self.end {
                    format!("no write was acknowledged for the last {}", duration(ns_to_ms(long)))
                } else {
                    format!(
                        "no write was acknowledged for {} from {} s on",
                        duration(ns_to_ms(long)),
                        moment(before)
                    )
                }
            };
            let Some((run, ended)) = self.asked(&stretch.members, to) else { continue };
            let asked = [&run[..], &ended.iter().map(|(member, _)| *member).collect::<Vec<_>>()].concat();
            let evidence = self.silences.evidence((from, to), &asked, |_| true, sign);
            let is_shown = run.iter().all(|member| evidence.silent.contains(member));
            let enough = evidence.refused + evidence.unanswered + evidence.connects >= MINIMUM_EACH;
            if evidence.clock_ns >= self.bound && is_shown && enough {
                found.push(format!(
                    "{}, {}{}: {}",
                    since(to - before),
                    unbroken(to - before, to - from),
                    deaths(&ended),
                    told(&evidence, "every member")
                ));
            } else if to >= self.end && evidence.clock_ns > 0 {
                let short = format!(
                    "{}; {} of them count, and from {} on that is a violation",
                    since(to - before),
                    duration(ns_to_ms(evidence.clock_ns)),
                    duration(ns_to_ms(self.bound))
                );
                let lacking = run.iter().filter(|member| !evidence.silent.contains(member));
                let lacking: Vec<String> = lacking.map(|member| format!("n{member}")).collect();
                open = Some(match lacking.as_slice() {
                    [] => short,
                    some => format!("{short}; no fresh client found {} silent", some.join(" ")),
                });
            }
        }
        (found, open)
    }

    /// Keys that nobody could change any more though others were changed.
    fn keys(&self, stretch: &Stretch, history: &History) -> Vec<String> {
        if stretch.to - stretch.from < self.bound {
            return Vec::new();
        }
        let mut keys: BTreeMap<u64, Vec<&Op>> = BTreeMap::new();
        for op in history.ops() {
            keys.entry(op.key).or_default().push(op);
        }
        let all = lives(history.ops().iter());
        let mut found = Vec::new();
        for (key, ops) in keys {
            let own = lives(ops.into_iter());
            // What was never changed may be refused for a reason of its own.
            let Some(first) = own.first().copied() else { continue };
            for (from, to) in gaps(&own, stretch.from.max(first), stretch.to) {
                if to - from < self.bound {
                    continue;
                }
                let Some((run, ended)) = self.asked(&stretch.members, to) else { continue };
                let evidence = self.silences.evidence((from, to), &run, |op| op.key == key, sign);
                let others = &all[all.partition_point(|at| *at < from)..all.partition_point(|at| *at < to)];
                let enough = evidence.refused + evidence.unanswered >= MINIMUM_EACH;
                let is_shown = run.iter().all(|member| evidence.silent.contains(member));
                if evidence.clock_ns < self.bound || !is_shown || !enough || others.is_empty() {
                    continue;
                }
                let since = if to >= self.end { "for the last" } else { "for" };
                found.push(format!(
                    "no write to key {key} was acknowledged {since} {}, with nothing broken{}, while {} to \
                     other keys were: {}",
                    duration(ns_to_ms(to - from)),
                    deaths(&ended),
                    count(u64::try_from(others.len()).unwrap_or(u64::MAX)),
                    told(&evidence, "every member")
                ));
            }
        }
        found
    }

    /// Members that ended by themselves, or that answer nobody any more though others do, with no fault in
    /// force since they last served. One that never served beside others may be a standby, which refuses by
    /// design.
    fn members(&self, faults: &[FaultRecord], promised: &ComesBack, history: &History) -> Vec<String> {
        let mut found = Vec::new();
        for member in self.run.members() {
            let of_others = |op: &&Op| op.node.is_some_and(|node| node != member);
            let is_life = |op: &&Op| sign_of_any(op) == Sign::Life;
            let ended = |op: &Op| op.complete_ns;
            let own = history.ops().iter().filter(|op| op.node == Some(member)).filter(is_life);
            let Some(last) = own.filter_map(ended).max() else { continue };
            let others: Vec<u64> =
                history.ops().iter().filter(of_others).filter(is_life).filter_map(ended).collect();
            let calm =
                |fault: &FaultRecord| fault.injected_ns.is_none() || gone_ns(fault, self.observed) <= last;
            let served_until = others.iter().max().copied().unwrap_or(0);
            if !faults.iter().all(calm) {
                continue;
            }
            let process = self.process(member, u64::MAX);
            if let Process::Ended(at) = process {
                if !promised.restarted && served_until > at.saturating_add(BESIDE_NS) {
                    found.push(format!(
                        "n{member} ended by itself at {} s, with nothing broken, and nothing starts it again",
                        moment(at)
                    ));
                }
                continue;
            }
            let served_beside = others.iter().any(|at| (last.saturating_sub(BESIDE_NS)..=last).contains(at));
            let still_served = served_until.saturating_add(BESIDE_NS) > self.end;
            let is_long = self.end.saturating_sub(last) >= self.bound;
            if process != Process::Runs || !is_long || !served_beside || !still_served {
                continue;
            }
            let at_member = |op: &Op| op.node == Some(member);
            let evidence = self.silences.evidence((last, self.end), &[member], at_member, sign_of_any);
            if evidence.clock_ns >= self.bound && evidence.silent == [member] {
                found.push(format!(
                    "n{member} served nobody for the last {}, with nothing broken, while others served: {}",
                    duration(ns_to_ms(self.end - last)),
                    told(&evidence, "it")
                ));
            }
        }
        found
    }
}

/// The spans between these moments, and to both ends.
fn gaps(moments: &[u64], from: u64, to: u64) -> Vec<(u64, u64)> {
    let inside = &moments[moments.partition_point(|at| *at < from)..moments.partition_point(|at| *at <= to)];
    let all: Vec<u64> = [&[from], inside, &[to]].concat();
    all.windows(2).filter(|pair| pair[0] < pair[1]).map(|pair| (pair[0], pair[1])).collect()
}

/// Who ended by itself, in a subordinate sentence.
fn deaths(ended: &[(u64, u64)]) -> String {
    let words: Vec<String> =
        ended.iter().map(|(member, at)| format!("n{member} ended by itself at {} s", moment(*at))).collect();
    if words.is_empty() { String::new() } else { format!(" ({})", words.join(", ")) }
}

/// How much of a silence nothing was broken in.
fn unbroken(all: u64, part: u64) -> String {
    if all.saturating_sub(part) < WORTH_SAYING_NS {
        return "with nothing broken".to_owned();
    }
    format!("for {} of that with nothing broken", duration(ns_to_ms(part)))
}

/// The evidence in words.
fn told(evidence: &Evidence, who: &str) -> String {
    let Evidence { refused, unanswered, connects, .. } = *evidence;
    let words = [
        (refused, plural(refused, "refused operation")),
        (unanswered, format!("{} without an answer", plural(unanswered, "operation"))),
        (connects, format!("{} to connect", plural(connects, "failed attempt"))),
    ];
    let some: Vec<String> =
        words.into_iter().filter(|(number, _)| *number > 0).map(|(_, word)| word).collect();
    format!("{} at {who}, of fresh clients too", some.join(", "))
}

#[cfg(test)]
mod tests;
