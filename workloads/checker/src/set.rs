//! A set of unique elements: what was added is there for whoever looks afterwards.
//!
//! Each element is added once and never removed, so it has one moment at which it appears, somewhere between
//! the call of its add and the earliest return of anybody who knows of it: the add itself when it was
//! acknowledged, or a read that shows it. From then on every read that begins shows it too. That is
//! linearizability element by element, and it is decided by counting: a read that began when `k` elements
//! were known shows those `k`, or one of them is missing, and only then is it looked for. The work is linear
//! in the elements that the reads returned.
//!
//! What is missing has one of three names, and all of it is counted, in every set. An element that no later
//! read shows is *lost*: *acknowledged and lost*, or, where nobody was told that its add was done, *read and
//! lost*. One that a later read shows again was missed by a *stale* read. One that was acknowledged and that
//! no read began after is *never read*, which proves nothing. The idea is from Jepsen's `set-full`.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::{Value, json};

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
    /// The latest return of a read that shows it.
    shown: Option<Rank>,
}

impl Element<'_> {
    /// Whether a read that returned later than that one shows it.
    fn is_shown_after(&self, read: &Op) -> bool {
        self.shown.is_some_and(|shown| shown > read.ret)
    }
}

/// What a missing element is, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Missing {
    AcknowledgedAndLost,
    ReadAndLost,
    Stale,
}

impl Missing {
    /// What it is in a read that must show it.
    fn of(element: &Element<'_>, read: &Op) -> Self {
        if element.is_shown_after(read) {
            Self::Stale
        } else if element.add.outcome == Outcome::Ok {
            Self::AcknowledgedAndLost
        } else {
            Self::ReadAndLost
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::AcknowledgedAndLost => "an acknowledged element was lost",
            Self::ReadAndLost => "an element was lost that had been read, and not acknowledged",
            Self::Stale => "a read was stale",
        }
    }
}

/// What became of the elements, counted.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    adds: usize,
    acknowledged: usize,
    open: usize,
    reads: usize,
    never_read: usize,
    /// Elements that were acknowledged and lost.
    lost: usize,
    /// Elements that were read and lost.
    read_and_lost: usize,
    /// Reads that lack what a later one shows.
    stale: usize,
}

impl Counts {
    fn evidence(&self) -> Value {
        json!({"adds": self.adds, "acknowledged": self.acknowledged, "open": self.open, "reads": self.reads,
            "lost": self.lost, "read_and_lost": self.read_and_lost, "stale": self.stale,
            "never_read": self.never_read})
    }

    /// What is missing in all sets, in words.
    fn missing(&self) -> String {
        let lost =
            format!("{} of {} acknowledged elements were lost", count(self.lost), count(self.acknowledged));
        let read = (self.read_and_lost > 0)
            .then(|| format!("{} were read and lost without being acknowledged", count(self.read_and_lost)));
        let stale = format!("{} of {} reads were stale", count(self.stale), count(self.reads));
        [Some(lost), read, Some(stale)].into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

type Broken<'a> = (&'static str, String, Vec<&'a Op>);

/// Judges every set.
#[must_use]
pub fn check(history: &History, reads: Reads) -> CheckResult {
    let mut counts = Counts::default();
    let by_key = history.by_key();
    // What can't be a set's history comes before what is missing, and of that the worst.
    let mut worst: Option<(Option<Missing>, u64, usize, Broken<'_>)> = None;
    for (key, ops) in &by_key {
        let found = match judge(ops, reads, &mut counts) {
            Err(broken) => Some((None, broken)),
            Ok(missing) => missing.map(|(missing, broken)| (Some(missing), broken)),
        };
        if let Some((kind, broken)) = found
            && worst.as_ref().is_none_or(|(worse, ..)| kind < *worse)
        {
            worst = Some((kind, *key, ops.len(), broken));
        }
    }
    if let Some((kind, key, ops, (what, why, culprits))) = worst {
        let in_all = kind.map(|_| format!("; in all {}", counts.missing())).unwrap_or_default();
        let mut evidence = counts.evidence();
        if let Some(evidence) = evidence.as_object_mut() {
            evidence.extend(
                [("key", json!(key)), ("kind", json!(what)), ("operations", json!(ops))]
                    .map(|(name, value)| (name.to_owned(), value)),
            );
        }
        return CheckResult::new(NAME, Verdict::Invalid, format!("set {key}: {what}{in_all}"))
            .with_evidence(evidence)
            .with_counterexample(counterexample(why, &culprits, ops));
    }
    let evidence = counts.evidence();
    let Counts { adds, acknowledged, open, reads, never_read, .. } = counts;
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

/// Counts one set. What is missing in it, if something is, by its worst case.
fn judge<'a>(
    ops: &[&'a Op],
    reads: Reads,
    counts: &mut Counts,
) -> Result<Option<(Missing, Broken<'a>)>, Broken<'a>> {
    let mut elements = added(ops)?;
    let lists: Vec<(&Op, &[i64])> = ops
        .iter()
        .filter(|op| op.outcome == Outcome::Ok)
        .filter_map(|op| Some((*op, op.list().map(|list| &list[..])?)))
        .collect();
    for &(read, list) in &lists {
        see(&mut elements, read, list)?;
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
    Ok(if reads == Reads::Current { missing(&elements, &lists, counts) } else { None })
}

/// Looks in every read for what it must show and does not, and names the worst of it.
fn missing<'a>(
    elements: &HashMap<i64, Element<'a>>,
    lists: &[(&'a Op, &[i64])],
    counts: &mut Counts,
) -> Option<(Missing, Broken<'a>)> {
    // In the order of values, so that the same history names the same element.
    let by_value: BTreeMap<i64, &Element<'a>> = elements.iter().map(|(value, e)| (*value, e)).collect();
    let mut known: Vec<Rank> = elements.values().map(|element| element.known).collect();
    known.sort_unstable();
    let mut lost: BTreeMap<i64, Missing> = BTreeMap::new();
    let mut worst: Option<(Missing, i64, &'a Op)> = None;
    for &(read, list) in lists {
        let there = known.partition_point(|known| *known < read.call);
        if list.iter().filter(|value| elements[value].known < read.call).count() >= there {
            continue;
        }
        let shown: HashSet<i64> = list.iter().copied().collect();
        let gone = by_value
            .iter()
            .filter(|(value, element)| element.known < read.call && !shown.contains(value))
            .map(|(value, element)| (Missing::of(element, read), *value, *element));
        let mut is_stale = false;
        // Of several the one that was known last.
        let mut here: Option<(Missing, i64, Rank)> = None;
        for (kind, value, element) in gone {
            match kind {
                Missing::Stale => is_stale = true,
                kind => drop(lost.insert(value, kind)),
            }
            if here.is_none_or(|(worse, _, since)| (kind, Reverse(element.known)) <= (worse, Reverse(since)))
            {
                here = Some((kind, value, element.known));
            }
        }
        counts.stale += usize::from(is_stale);
        if let Some((kind, value, _)) = here
            && worst.is_none_or(|(worse, ..)| kind < worse)
        {
            worst = Some((kind, value, read));
        }
    }
    let of = |kind| lost.values().filter(|lost| **lost == kind).count();
    counts.lost += of(Missing::AcknowledgedAndLost);
    counts.read_and_lost += of(Missing::ReadAndLost);
    let (kind, value, read) = worst?;
    Some((kind, told(kind, value, &elements[&value], read, lists)))
}

/// Every element and who added it. An element is added once, or the history is not one of a set.
fn added<'a>(ops: &[&'a Op]) -> Result<HashMap<i64, Element<'a>>, Broken<'a>> {
    let mut elements = HashMap::new();
    for &op in ops {
        let OpKind::Add { value } = op.kind() else { continue };
        let known = if op.outcome == Outcome::Ok { op.ret } else { NEVER };
        if let Some(Element { add, .. }) =
            elements.insert(value, Element { add: op, known, witness: op, shown: None })
        {
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
        element.shown = element.shown.max(Some(read.ret));
        if read.ret < element.known {
            element.known = read.ret;
            element.witness = read;
        }
    }
    Ok(())
}

/// The sentence about an element that a read must show and does not.
fn told<'a>(
    kind: Missing,
    value: i64,
    element: &Element<'a>,
    read: &'a Op,
    lists: &[(&'a Op, &[i64])],
) -> Broken<'a> {
    let since = if std::ptr::eq(element.witness, element.add) {
        describe(element.add)
    } else {
        format!("{} with {value}", describe(element.witness))
    };
    let mut why = format!("{since}, but {}, which began afterwards, without {value}", describe(read));
    if let Some((later, _)) = lists.iter().find(|(later, list)| later.ret > read.ret && list.contains(&value))
    {
        why.push_str(&format!("; process {} read it again later", later.process));
    }
    (kind.words(), why, vec![element.witness, read])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::load;
    use proptest::prelude::*;

    /// One operation per line: `add VALUE OUTCOME CALL RETURN` or `read VALUES - CALL RETURN`, values joined
    /// by commas, a return of `-` for never. `add@4` is of set 4, and without a number it is set 3.
    fn history(script: &str) -> History {
        let mut lines: Vec<(u64, u8, String)> = Vec::new();
        for (process, line) in script.lines().filter(|line| !line.trim().is_empty()).enumerate() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [f, value, outcome, call, ret] = words[..] else { panic!("five words: {line}") };
            let (f, key) = f.split_once('@').unwrap_or((f, "3"));
            let told = if f == "read" { format!("[{}]", value.trim_matches('.')) } else { value.to_owned() };
            let asked = if f == "read" { "null".to_owned() } else { told.clone() };
            let (kind, error) = match outcome {
                "exists" => ("info", r#","error":"node-exists""#),
                other => (other, ""),
            };
            let (call, at) = (call.parse::<u64>().unwrap() * 1_000_000, ret);
            let event = |kind: &str, value: &str, time: u64, error: &str| {
                let op = format!(r#""f":"{f}","key":{key},"value":{value}"#);
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
        let lost = "set 3: an acknowledged element was lost; in all 1 of 2 acknowledged elements were lost, \
                    0 of 2 reads were stale";
        assert_eq!((summary.as_str(), ops), (lost, 2));
        assert_eq!(
            sentence,
            "process 0 added 1 to set 3 (0.0000 s to 0.0010 s), but process 2 read 1 elements [2] from key 3 \
             (0.0020 s to 0.0030 s), which began afterwards, without 1"
        );
    }

    #[test]
    fn an_element_that_is_missing_once_was_missed_by_a_stale_read() {
        let (summary, sentence, _) = broken("add 1 ok 0 1\nread . ok 2 3\nread 1 ok 4 5");
        let stale = "set 3: a read was stale; in all 0 of 1 acknowledged elements were lost, \
                     1 of 2 reads were stale";
        assert_eq!(summary, stale);
        assert!(sentence.ends_with("process 2 read it again later"), "{sentence}");
        let stale = check(&history("add 1 ok 0 1\nread . ok 2 3\nread 1 ok 4 5"), Reads::Stale);
        assert_eq!(stale.verdict, Verdict::Valid);
    }

    #[test]
    fn an_element_of_unknown_fate_must_stay_once_it_was_seen() {
        assert_eq!(judged("add 1 info 0 -\nread . ok 2 3\nread 1 ok 4 5").verdict, Verdict::Valid);
        let (summary, _, ops) = broken("add 1 info 0 -\nread 1 ok 2 3\nread . ok 4 5");
        let lost = "set 3: an element was lost that had been read, and not acknowledged; in all 0 of 0 \
                    acknowledged elements were lost, 1 were read and lost without being acknowledged, \
                    0 of 2 reads were stale";
        assert_eq!((summary.as_str(), ops), (lost, 2));
    }

    #[test]
    fn all_sets_are_counted_and_the_worst_is_shown() {
        // Set 3: what 1 was is read again later. Set 4: 5 was read and 6 was acknowledged, and both are gone.
        let stale = "add 1 ok 0 1\nread . ok 2 3\nread 1 ok 4 5";
        let lost = "add@4 5 info 0 -\nadd@4 6 ok 0 1\nadd@4 7 ok 0 1\nread@4 5,6,7 ok 2 3\n\
                    read@4 5,7 ok 4 5\nread@4 7 ok 6 7";
        let script = format!("{stale}\n{lost}");
        let both = history(&script);
        let result = check(&both, Reads::Current);
        assert_eq!(
            result.summary,
            "set 4: an acknowledged element was lost; in all 1 of 3 acknowledged elements were lost, 1 were \
             read and lost without being acknowledged, 1 of 5 reads were stale"
        );
        assert_eq!(result.evidence["kind"], "an acknowledged element was lost");
        let counted = ["lost", "read_and_lost", "stale"].map(|name| result.evidence[name].as_u64());
        assert_eq!(counted, [Some(1); 3]);
    }

    #[test]
    fn what_was_shown_again_and_is_missing_at_the_end_is_lost() {
        let (summary, _, _) = broken("add 1 ok 0 1\nread . ok 2 3\nread 1 ok 4 5\nread . ok 6 7");
        let lost = "set 3: an acknowledged element was lost; in all 1 of 1 acknowledged elements were lost, \
                    1 of 3 reads were stale";
        assert_eq!(summary, lost);
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
        let reads: Vec<&Op> = ops.iter().filter(|op| op.list().is_some()).collect();
        let lists = |read: &Op, value: i64| read.list().is_some_and(|list| list.contains(&value));
        let adds = ops.iter().filter_map(|op| match op.kind() {
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
