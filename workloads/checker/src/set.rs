//! A set of unique elements: what was added is there for whoever looks afterwards.
//!
//! Each element is added once and never removed, so it has one moment at which it appears, somewhere between
//! the call of its add and the earliest return of anybody who knows of it: the add itself when it was
//! acknowledged, or a read that shows it. From then on every read that begins shows it too. That is
//! linearizability element by element, and it is decided by counting: a read that began when `k` elements
//! were known shows those `k`, or one of them is missing, and only then is it looked for. The work is linear
//! in the elements that the reads returned.
//!
//! An element that no later read shows is *lost*; one that a later read shows again was missed by a *stale*
//! read; one that was acknowledged and that no read began after is *never read*, which proves nothing. The
//! idea is from Jepsen's `set-full`.

use std::collections::{BTreeMap, HashMap};

use serde_json::json;

use crate::figures::count;
use crate::history::{BAD_VERSION, History, NEVER, Op, OpKind, Outcome, Rank, describe};
use crate::verdict::{CheckResult, Verdict};
use crate::versions::counterexample;

/// The name of the check.
pub const NAME: &str = "set";

/// The error of an add whose name was taken already.
pub const NODE_EXISTS: &str = "node-exists";

/// What is demanded of reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// They show everything that was there when they began.
    Current,
    /// They may show the past. What was never there they show neither.
    Stale,
}

/// What is known of one element.
struct Element<'a> {
    add: &'a Op,
    /// The earliest return of anybody who knows that it is there, and who that is.
    known: Rank,
    witness: &'a Op,
}

/// What became of the elements, counted.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    adds: usize,
    acknowledged: usize,
    open: usize,
    reads: usize,
    never_read: usize,
}

type Broken<'a> = (&'static str, String, Vec<&'a Op>);

/// Judges every set.
#[must_use]
pub fn check(history: &History, reads: Reads) -> CheckResult {
    let mut counts = Counts::default();
    for (key, ops) in history.by_key() {
        if let Err((what, why, culprits)) = judge(&ops, reads, &mut counts) {
            return CheckResult::new(NAME, Verdict::Invalid, format!("set {key}: {what}"))
                .with_evidence(json!({"key": key, "kind": what, "operations": ops.len()}))
                .with_counterexample(counterexample(why, &culprits, ops.len()));
        }
    }
    let Counts { adds, acknowledged, open, reads, never_read } = counts;
    let evidence = json!({"adds": adds, "acknowledged": acknowledged, "open": open, "reads": reads,
        "lost": 0, "stale": 0, "never_read": never_read});
    if adds == 0 || reads == 0 {
        let summary = "nothing was added or nothing was read, so nothing was tested";
        return CheckResult::new(NAME, Verdict::Unknown, summary).with_evidence(evidence);
    }
    if never_read > 0 {
        let summary = format!(
            "{} of {} acknowledged elements were never read afterwards",
            count(never_read),
            count(acknowledged)
        );
        return CheckResult::new(NAME, Verdict::Unknown, summary).with_evidence(evidence);
    }
    let summary = format!(
        "all {} acknowledged elements are in each of the {} reads that began afterwards ({} of unknown fate)",
        count(acknowledged),
        count(reads),
        count(open)
    );
    CheckResult::new(NAME, Verdict::Valid, summary).with_evidence(evidence)
}

fn judge<'a>(ops: &[&'a Op], reads: Reads, counts: &mut Counts) -> Result<(), Broken<'a>> {
    let mut elements = added(ops)?;
    let lists: Vec<(&Op, &[i64])> = ops
        .iter()
        .filter(|op| op.outcome == Outcome::Ok)
        .filter_map(|op| Some((*op, op.list.as_deref()?)))
        .collect();
    for &(read, list) in &lists {
        see(&mut elements, read, list)?;
    }
    let mut known: Vec<Rank> = elements.values().map(|element| element.known).collect();
    known.sort_unstable();
    if reads == Reads::Current {
        for &(read, list) in &lists {
            let there = known.partition_point(|known| *known < read.call);
            let shown = list.iter().filter(|value| elements[value].known < read.call).count();
            if shown < there {
                return Err(missing(&elements, read, list, &lists));
            }
        }
    }
    let last_call = lists.iter().map(|(read, _)| read.call).max();
    for element in elements.values() {
        counts.adds += 1;
        match element.add.outcome {
            Outcome::Ok => {
                counts.acknowledged += 1;
                counts.never_read += usize::from(last_call.is_none_or(|last| last < element.known));
            }
            Outcome::Info => counts.open += 1,
            Outcome::Fail => {}
        }
    }
    counts.reads += lists.len();
    Ok(())
}

/// Every element and who added it. An element is added once, or the history is not one of a set.
fn added<'a>(ops: &[&'a Op]) -> Result<HashMap<i64, Element<'a>>, Broken<'a>> {
    let mut elements = HashMap::new();
    for &op in ops {
        let OpKind::Add { value } = op.kind else { continue };
        let known = if op.outcome == Outcome::Ok { op.ret } else { NEVER };
        if let Some(Element { add, .. }) = elements.insert(value, Element { add: op, known, witness: op }) {
            let why = format!("{} and {}: an element has one add only", describe(add), describe(op));
            return Err(("an element was added twice", why, vec![add, op]));
        }
        if op.error.as_deref() == Some(NODE_EXISTS) {
            let why = format!(
                "{}, which was sent once and has a name that nobody else uses, and was told that the name \
                    is taken",
                describe(op)
            );
            return Err(("a unique add found itself done already", why, vec![op]));
        }
    }
    Ok(elements)
}

/// A read shows what may be there, each element once.
fn see<'a>(elements: &mut HashMap<i64, Element<'a>>, read: &'a Op, list: &[i64]) -> Result<(), Broken<'a>> {
    let mut sorted = list.to_vec();
    sorted.sort_unstable();
    if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        let why = format!("{} with element {} in it twice", describe(read), pair[0]);
        return Err(("an element is there twice", why, vec![read]));
    }
    for value in list {
        let Some(element) = elements.get_mut(value) else {
            let why = format!("{}, and element {value} in it was never added", describe(read));
            return Err(("a read shows what was never added", why, vec![read]));
        };
        let add = element.add;
        if add.call > read.ret {
            let why =
                format!("{} with element {value}, but {} only afterwards", describe(read), describe(add));
            return Err(("a read shows what was not yet added", why, vec![read, add]));
        }
        if add.outcome == Outcome::Fail {
            let error = add.error.as_deref().unwrap_or(BAD_VERSION);
            let why = format!(
                "{} with element {value}, but {} and was told that it did not happen ({error})",
                describe(read),
                describe(add)
            );
            return Err(("a read shows what was refused", why, vec![add, read]));
        }
        if read.ret < element.known {
            element.known = read.ret;
            element.witness = read;
        }
    }
    Ok(())
}

/// Names an element that a read must show and does not.
fn missing<'a>(
    elements: &HashMap<i64, Element<'a>>,
    read: &'a Op,
    list: &[i64],
    lists: &[(&'a Op, &[i64])],
) -> Broken<'a> {
    let shown: std::collections::HashSet<i64> = list.iter().copied().collect();
    // In the order of values, so that the same history names the same element.
    let by_value: BTreeMap<i64, &Element<'a>> = elements.iter().map(|(value, e)| (*value, e)).collect();
    let gone = by_value
        .into_iter()
        .filter(|(value, element)| element.known < read.call && !shown.contains(value))
        .max_by_key(|(_, element)| element.known);
    let Some((value, element)) = gone else {
        return ("a read shows too little", describe(read), vec![read]);
    };
    let again = lists.iter().find(|(later, list)| later.ret > read.ret && list.contains(&value));
    let kind = if again.is_some() { "a read was stale" } else { "an element was lost" };
    let since = if std::ptr::eq(element.witness, element.add) {
        describe(element.add)
    } else {
        format!("{} with {value}", describe(element.witness))
    };
    let mut why = format!("{since}, but {}, which began afterwards, without {value}", describe(read));
    if let Some((later, _)) = again {
        why.push_str(&format!("; process {} read it again later", later.process));
    }
    (kind, why, vec![element.witness, read])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::load;
    use proptest::prelude::*;

    /// One operation per line: `add VALUE OUTCOME CALL RETURN` or `read VALUES - CALL RETURN`, values joined
    /// by commas, a return of `-` for never.
    fn history(script: &str) -> History {
        let mut lines: Vec<(u64, u8, String)> = Vec::new();
        for (process, line) in script.lines().filter(|line| !line.trim().is_empty()).enumerate() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [f, value, outcome, call, ret] = words[..] else { panic!("five words: {line}") };
            let told = if f == "read" { format!("[{}]", value.trim_matches('.')) } else { value.to_owned() };
            let asked = if f == "read" { "null".to_owned() } else { told.clone() };
            let (kind, error) = match outcome {
                "exists" => ("info", r#","error":"node-exists""#),
                other => (other, ""),
            };
            let (call, at) = (call.parse::<u64>().unwrap() * 1_000_000, ret);
            let event = |kind: &str, value: &str, time: u64, error: &str| {
                let op = format!(r#""f":"{f}","key":3,"value":{value}"#);
                format!(r#"{{"process":{process},"type":"{kind}",{op},"time":{time}{error}}}"#)
            };
            lines.push((call, 0, event("invoke", &asked, call, "")));
            if at != "-" {
                let ret = at.parse::<u64>().unwrap() * 1_000_000;
                lines.push((ret, 1, event(kind, &told, ret, error)));
            }
        }
        lines.sort();
        let text: String = lines.into_iter().map(|(_, _, line)| line + "\n").collect();
        load(text.as_bytes()).unwrap().history
    }

    fn judged(script: &str) -> CheckResult {
        check(&history(script), Reads::Current)
    }

    fn broken(script: &str) -> (String, String, usize) {
        let result = judged(script);
        assert_eq!(result.verdict, Verdict::Invalid, "{}", result.summary);
        let found = result.counterexample.unwrap();
        (result.summary, found.sentence, found.ops.len())
    }

    #[test]
    fn a_set_that_keeps_what_was_added_is_valid() {
        let result = judged(
            "add  1    ok   0 1
             add  2    info 2 -
             read 1    ok   3 4
             add  3    ok   5 9
             read 1,3  ok   6 7
             add  4    fail 8 9
             read 1,2,3 ok  10 11",
        );
        assert_eq!(result.verdict, Verdict::Valid, "{}", result.summary);
        assert_eq!(result.evidence["open"], 1);
    }

    #[test]
    fn an_acknowledged_element_that_no_later_read_shows_is_lost() {
        let (summary, sentence, ops) = broken("add 1 ok 0 1\nadd 2 ok 0 1\nread 2 ok 2 3\nread 2 ok 4 5");
        assert_eq!((summary.as_str(), ops), ("set 3: an element was lost", 2));
        assert_eq!(
            sentence,
            "process 0 added 1 to set 3 (0.0000 s to 0.0010 s), but process 2 read 1 elements [2] from key 3 \
             (0.0020 s to 0.0030 s), which began afterwards, without 1"
        );
    }

    #[test]
    fn an_element_that_is_missing_once_was_missed_by_a_stale_read() {
        let (summary, sentence, _) = broken("add 1 ok 0 1\nread . ok 2 3\nread 1 ok 4 5");
        assert_eq!(summary, "set 3: a read was stale");
        assert!(sentence.ends_with("process 2 read it again later"), "{sentence}");
        let stale = check(&history("add 1 ok 0 1\nread . ok 2 3\nread 1 ok 4 5"), Reads::Stale);
        assert_eq!(stale.verdict, Verdict::Valid);
    }

    #[test]
    fn an_element_of_unknown_fate_must_stay_once_it_was_seen() {
        assert_eq!(judged("add 1 info 0 -\nread . ok 2 3\nread 1 ok 4 5").verdict, Verdict::Valid);
        let (summary, _, ops) = broken("add 1 info 0 -\nread 1 ok 2 3\nread . ok 4 5");
        assert_eq!((summary.as_str(), ops), ("set 3: an element was lost", 2));
    }

    #[test]
    fn what_was_never_or_not_yet_added_or_was_refused_is_not_there() {
        assert!(broken("add 1 ok 0 1\nread 1,7 ok 2 3").1.ends_with("element 7 in it was never added"));
        assert_eq!(broken("add 1 ok 4 5\nread 1 ok 2 3").2, 2);
        assert!(broken("add 1 fail 0 1\nread 1 ok 2 3").0.ends_with("a read shows what was refused"));
    }

    #[test]
    fn an_element_is_there_once_and_added_once() {
        assert_eq!(broken("add 1 ok 0 1\nadd 2 ok 0 1\nread 1,1,2 ok 2 3").2, 1);
        assert!(broken("add 1 exists 0 1\nread 1 ok 2 3").0.ends_with("found itself done already"));
    }

    #[test]
    fn what_nobody_read_afterwards_proves_nothing() {
        let result = judged("add 1 ok 0 1\nread 1 ok 2 3\nadd 2 ok 4 5");
        assert_eq!(result.verdict, Verdict::Unknown);
        assert_eq!(result.evidence["never_read"], 1);
        assert_eq!(judged("add 1 ok 0 1").verdict, Verdict::Unknown);
    }

    /// Whether each element has a moment at which it appears, tried one by one.
    fn naive(history: &History) -> bool {
        let ops = history.ops();
        let reads: Vec<&Op> = ops.iter().filter(|op| op.list.is_some()).collect();
        let lists = |read: &Op, value: i64| read.list.as_ref().is_some_and(|list| list.contains(&value));
        let adds = ops.iter().filter_map(|op| match op.kind {
            OpKind::Add { value } => Some((value, op)),
            _ => None,
        });
        adds.into_iter().all(|(value, add)| {
            let moments = add.call..=ops.iter().map(|op| op.call.max(add.call)).max().unwrap_or(0) + 1;
            let appears = |at: Rank| {
                (add.outcome != Outcome::Ok || at <= add.ret)
                    && reads.iter().all(|read| match lists(read, value) {
                        true => at <= read.ret,
                        false => at >= read.call,
                    })
            };
            let never = add.outcome != Outcome::Ok && reads.iter().all(|read| !lists(read, value));
            never || moments.into_iter().any(appears)
        })
    }

    proptest! {
        #[test]
        fn counting_agrees_with_trying_every_moment(
            adds in prop::collection::vec((0_u64..20, 1_u64..8, any::<bool>()), 1..4),
            reads in prop::collection::vec((0_u64..20, 1_u64..8, any::<u8>()), 1..4),
        ) {
            let mut script = String::new();
            for (value, (call, length, open)) in adds.iter().enumerate() {
                let (call, ret) = (call * 2, (call + length) * 2);
                match open {
                    true => script.push_str(&format!("add {value} info {call} -\n")),
                    false => script.push_str(&format!("add {value} ok {call} {ret}\n")),
                }
            }
            for (call, length, mask) in &reads {
                let shown: Vec<String> = (0..adds.len())
                    .filter(|value| mask >> value & 1 == 1 && adds[*value].0 * 2 < (call + length) * 2)
                    .map(|value| value.to_string())
                    .collect();
                let list = if shown.is_empty() { ".".to_owned() } else { shown.join(",") };
                script.push_str(&format!("read {list} ok {} {}\n", call * 2 + 1, (call + length) * 2 + 1));
            }
            let history = history(&script);
            let is_valid = check(&history, Reads::Current).verdict != Verdict::Invalid;
            prop_assert_eq!(is_valid, naive(&history), "{}", script);
        }
    }
}
