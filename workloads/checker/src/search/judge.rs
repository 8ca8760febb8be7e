//! Which search is tried when and on which part, and what is made of its answer.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::json;

use super::shrink::{self, Object, Shrunk};
use super::{Found, depth_first, explain, frontier};
use crate::budget::{Budget, Exhausted, Meter};
use crate::confirm;
use crate::figures;
use crate::model::{Call, Model, Shortcut};
use crate::parallel;
use crate::verdict::{CheckResult, Counterexample, Judged, PartOrder, Verdict};

/// The name of the check.
pub const NAME: &str = "linearizable";

/// A member of the portfolio.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Algorithm {
    /// What the object knows of its own.
    Shortcut,
    /// The order of the versions that the system reported.
    Witness,
    /// The order that the object knows, with what does not fit it placed or repaired.
    ShortcutOrder,
    /// Breadth-first search.
    Frontier,
    /// Depth-first search.
    DepthFirst,
}

impl Algorithm {
    /// The name in results.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Shortcut => "near-linear",
            Self::Witness => "witness",
            Self::ShortcutOrder => "near-linear-order",
            Self::Frontier => "frontier",
            Self::DepthFirst => "depth-first",
        }
    }
}

/// Steps of each search's first turn on a short part; each turn has [`TURN_GROWTH`] times the one before.
const FIRST_TURN_STEPS: u64 = 1 << 13;
/// Steps for each operation of a long part, so that one turn is enough where nothing has to be tried twice.
const STEPS_PER_CALL: u64 = 4;
const TURN_GROWTH: u64 = 2;
/// More parts than this are not told one by one.
const MAX_PARTS_TOLD: usize = 100;

/// What was found out about one part.
struct PartResult {
    verdict: Verdict,
    decided_by: Option<Algorithm>,
    reason: Option<String>,
    counterexample: Option<Counterexample>,
    order: Option<Vec<usize>>,
}

impl PartResult {
    fn new(verdict: Verdict, decided_by: Algorithm) -> Self {
        Self { verdict, decided_by: Some(decided_by), reason: None, counterexample: None, order: None }
    }

    fn unknown(reason: String) -> Self {
        let unknown = Self::new(Verdict::Unknown, Algorithm::Shortcut);
        Self { decided_by: None, reason: Some(reason), ..unknown }
    }
}

/// Judges a history: each part of the object by itself with the budget's steps, up to `threads` parts at a
/// time, which share its memory. With `want_witness` a valid verdict comes with an order for each part.
///
/// One part without an order decides about the whole, so no part is searched to its end before the next one
/// begins: all take turns, in rounds, and a round in which one was refuted is the last. What comes out is the
/// same for any number of threads.
pub fn judge<M>(
    model: &M,
    calls: &[Call<M::Op>],
    budget: &Budget,
    threads: usize,
    want_witness: bool,
) -> Judged
where
    M: Model + Sync,
    M::Op: Send + Sync,
{
    let mut parts: BTreeMap<Option<u64>, Vec<&Call<M::Op>>> = BTreeMap::new();
    for call in calls {
        parts.entry(model.part(&call.op)).or_default().push(call);
    }
    let parts: Vec<Part<'_, M::Op>> = parts.into_iter().collect();
    let known = parallel::each(&parts, budget, threads, |(_, calls), _| by_shortcut(model, calls));
    let mut refuted = known.iter().any(|known| matches!(known, Some(Decision::Refuted { .. })));
    let seen: Vec<Option<M>> = parts
        .iter()
        .zip(&known)
        .map(|((_, calls), known)| if known.is_none() { model.as_seen_by(calls) } else { None })
        .collect();
    let searches: Vec<Searching<'_, M>> = parts
        .iter()
        .zip(&seen)
        .zip(known)
        .map(|(((_, calls), seen), known)| {
            Searching::new(seen.as_ref().unwrap_or(model), calls, known, want_witness)
        })
        .collect();
    let mut turn = FIRST_TURN_STEPS;
    while !refuted && !take_turns(&searches, turn, budget, threads) {
        refuted = searches.iter().any(Searching::is_refuted);
        turn = turn.saturating_mul(TURN_GROWTH);
    }
    let mut decisions: Vec<Decision> = searches.into_iter().map(Searching::into_decision).collect();
    // Of several violations the one that shows first has the least to be explained.
    let shows_at = |at: &usize| match &decisions[*at] {
        Decision::Refuted { how: How::Stuck(stuck_at), .. } => parts[*at].1[*stuck_at].ret,
        _ => 0,
    };
    let mut order: Vec<usize> = (0..parts.len()).collect();
    order.sort_by_key(shows_at);
    let mut shown = false;
    let mut results: Vec<Option<PartResult>> = parts.iter().map(|_| None).collect();
    for at in order {
        let decision = std::mem::replace(&mut decisions[at], Decision::Undecided(String::new()));
        let object = Object { itself: model, seen: seen[at].as_ref().unwrap_or(model) };
        let result = told(object, &parts[at].1, decision, shown, budget);
        shown |= result.counterexample.is_some();
        results[at] = Some(result);
    }
    merge(model, &parts, results.into_iter().flatten().collect())
}

/// Decides one part by the searches alone.
pub(crate) fn decide<M>(model: &M, calls: &[&Call<M::Op>], budget: &Budget, want_witness: bool) -> Decision
where
    M: Model + Sync,
    M::Op: Send + Sync,
{
    let searching = [Searching::new(model, calls, None, want_witness)];
    let mut turn = FIRST_TURN_STEPS;
    while !take_turns(&searching, turn, budget, 1) {
        turn = turn.saturating_mul(TURN_GROWTH);
    }
    let [searching] = searching;
    searching.into_decision()
}

/// What is known of a part.
pub(crate) enum Decision {
    /// It has an order: this one, where it was kept.
    Order(Option<Vec<usize>>, Algorithm),
    /// It has none.
    Refuted { how: How, by: Algorithm },
    /// Nobody could tell, and why.
    Undecided(String),
}

/// From where a violation is explained.
pub(crate) enum How {
    /// This operation's return is the first by which it is certain.
    Stuck(usize),
    /// These elements show it.
    Elements(Vec<u64>, String),
}

fn by_shortcut<M: Model>(model: &M, calls: &[&Call<M::Op>]) -> Option<Decision> {
    match model.shortcut(calls) {
        Shortcut::None => None,
        Shortcut::Order(order) => confirm::object(model, calls, &order)
            .is_ok()
            .then_some(Decision::Order(Some(order), Algorithm::Shortcut)),
        Shortcut::Refuted { elements, sentence, .. } => {
            Some(Decision::Refuted { how: How::Elements(elements, sentence), by: Algorithm::Shortcut })
        }
    }
}

/// The searches of one part, and what came of them.
struct Searching<'a, M: Model> {
    model: &'a M,
    calls: &'a [&'a Call<M::Op>],
    want_witness: bool,
    depth: Mutex<Member<depth_first::Search<'a, M>>>,
    breadth: Mutex<Member<frontier::Search<'a, M>>>,
    known: Mutex<Option<Decision>>,
}

/// One search, while it may still decide.
struct Member<S> {
    search: Option<S>,
    /// Whether its first turn is still to come.
    fresh: bool,
    gave_up: (Exhausted, usize),
    spent: u64,
    /// The memory that was too little: with more, where other parts are decided, it may begin anew.
    too_little_bytes: Option<usize>,
}

impl<S> Member<S> {
    fn new(fresh: bool) -> Self {
        Self { search: None, fresh, gave_up: (Exhausted::Steps, 0), spent: 0, too_little_bytes: None }
    }

    /// Whether it can still decide with this much memory.
    fn is_open(&self, memory_bytes: usize) -> bool {
        self.is_under_way() || self.too_little_bytes.is_some_and(|too_little| memory_bytes > too_little)
    }

    fn is_under_way(&self) -> bool {
        self.fresh || self.search.is_some()
    }

    /// Nothing more is wanted of it.
    fn end(&mut self) {
        (self.fresh, self.search) = (false, None);
    }

    /// One turn; none when it decided nothing.
    fn take_turn(
        &mut self,
        steps: u64,
        budget: &Budget,
        begin: impl FnOnce() -> S,
        run: impl FnOnce(&mut S, &mut Meter) -> Found,
    ) -> Option<Found> {
        let left = (budget.steps / 2).saturating_sub(self.spent);
        if self.search.is_none() && self.is_open(budget.memory_bytes) {
            (self.fresh, self.search) = (false, Some(begin()));
        }
        let search = self.search.as_mut()?;
        let mut meter = Meter::new(&budget.with_steps(steps.min(left)));
        let found = run(search, &mut meter);
        self.spent += meter.spent();
        let Found::GaveUp { why, reached } = found else { return Some(found) };
        self.gave_up = (why, reached);
        // More steps do not help a search that lacks memory, room or time; and what it holds is of use to
        // others.
        if why != Exhausted::Steps || steps >= left {
            self.search = None;
        }
        self.too_little_bytes = (why == Exhausted::Memory && steps < left).then_some(budget.memory_bytes);
        None
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What a panic left behind is never looked at: it ends the judgement.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'a, M: Model> Searching<'a, M> {
    fn new(model: &'a M, calls: &'a [&'a Call<M::Op>], known: Option<Decision>, want_witness: bool) -> Self {
        let fresh = known.is_none();
        Self {
            model,
            calls,
            want_witness,
            depth: Mutex::new(Member::new(fresh)),
            breadth: Mutex::new(Member::new(fresh)),
            known: Mutex::new(known),
        }
    }

    /// One turn of one search. Depth first has the last word where both decide in one round.
    fn take_turn(&self, algorithm: Algorithm, steps: u64, budget: &Budget) {
        let (model, calls) = (self.model, self.calls);
        let length = u64::try_from(calls.len()).unwrap_or(u64::MAX);
        let steps = steps.saturating_mul(1 + length.saturating_mul(STEPS_PER_CALL) / FIRST_TURN_STEPS);
        let found = match algorithm {
            Algorithm::DepthFirst => {
                let begin = || depth_first::Search::new(model, calls);
                lock(&self.depth).take_turn(steps, budget, begin, |search, meter| search.run(meter))
            }
            _ if lock(&self.known).is_some() => None,
            _ => {
                let begin = || frontier::Search::new(model, calls, self.want_witness);
                lock(&self.breadth).take_turn(steps, budget, begin, |search, meter| search.run(meter))
            }
        };
        let decision = match found {
            Some(Found::Order(order)) => Decision::Order(order, algorithm),
            Some(Found::NoOrder { stuck_at }) => {
                Decision::Refuted { how: How::Stuck(stuck_at), by: algorithm }
            }
            None | Some(Found::GaveUp { .. }) => return,
        };
        let mut known = lock(&self.known);
        if algorithm == Algorithm::DepthFirst || known.is_none() {
            *known = Some(decision);
        }
    }

    fn is_refuted(&self) -> bool {
        matches!(*lock(&self.known), Some(Decision::Refuted { .. }))
    }

    /// Whether somebody may still decide it, with this much memory for each.
    fn is_open(&self, memory_bytes: usize) -> bool {
        lock(&self.known).is_none()
            && (lock(&self.depth).is_open(memory_bytes) || lock(&self.breadth).is_open(memory_bytes))
    }

    /// What a decided part held is given back.
    fn settle(&self) {
        if lock(&self.known).is_some() {
            lock(&self.depth).end();
            lock(&self.breadth).end();
        }
    }

    fn into_decision(self) -> Decision {
        if let Some(known) = self.known.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return known;
        }
        let (depth, breadth) = (lock(&self.depth), lock(&self.breadth));
        let still = if depth.is_under_way() || breadth.is_under_way() {
            "; it was left when another part was refuted"
        } else {
            ""
        };
        Decision::Undecided(format!(
            "{} of {} operations were explained when it stopped: breadth first, {}; depth first, {}{still}",
            breadth.gave_up.1.max(depth.gave_up.1),
            self.calls.len(),
            breadth.gave_up.0,
            depth.gave_up.0,
        ))
    }
}

/// One round: a turn for each search of each part that is not decided. Says whether that was the last.
fn take_turns<M>(searches: &[Searching<'_, M>], steps: u64, budget: &Budget, threads: usize) -> bool
where
    M: Model + Sync,
    M::Op: Send + Sync,
{
    // What is open stays in memory from round to round, so all of it shares, and each of both searches has
    // its half.
    let undecided = searches.iter().filter(|search| search.is_open(usize::MAX)).count();
    let share = Budget { memory_bytes: budget.memory_bytes / undecided.max(1) / 2, ..budget.clone() };
    let open: Vec<&Searching<'_, M>> =
        searches.iter().filter(|search| search.is_open(share.memory_bytes)).collect();
    let members = [Algorithm::DepthFirst, Algorithm::Frontier];
    let turns: Vec<(Algorithm, &Searching<'_, M>)> = members
        .into_iter()
        .flat_map(|algorithm| open.iter().map(move |search| (algorithm, *search)))
        .collect();
    parallel::each(&turns, budget, threads, |(algorithm, search), _| {
        search.take_turn(*algorithm, steps, &share);
    });
    open.iter().for_each(|search| search.settle());
    open.is_empty()
}

/// What is told of a part. One violation is explained; of others the verdict is enough.
fn told<M: Model>(
    object: Object<'_, M>,
    calls: &[&Call<M::Op>],
    decision: Decision,
    shown: bool,
    budget: &Budget,
) -> PartResult {
    let model = object.itself;
    match decision {
        Decision::Order(order, Algorithm::Shortcut) => {
            PartResult { order, ..PartResult::new(Verdict::Valid, Algorithm::Shortcut) }
        }
        Decision::Order(order, algorithm) => confirmed(model, calls, order, algorithm),
        Decision::Refuted { by, .. } if shown => PartResult::new(Verdict::Invalid, by),
        Decision::Refuted { how: How::Stuck(stuck_at), by } => {
            let shrunk = shrink::from_stuck(object, calls, stuck_at, budget);
            violation(model, calls, &shrunk, None, by, budget)
        }
        Decision::Refuted { how: How::Elements(elements, sentence), by } => {
            let shrunk = shrink::from_elements(object, calls, &elements, budget);
            violation(model, calls, &shrunk, Some(sentence), by, budget)
        }
        Decision::Undecided(reason) => PartResult::unknown(reason),
    }
}

/// An order that was asked for is confirmed, so that no bug of a search can pass for a proof.
fn confirmed<M: Model>(
    model: &M,
    calls: &[&Call<M::Op>],
    order: Option<Vec<usize>>,
    algorithm: Algorithm,
) -> PartResult {
    match order.as_ref().map(|order| confirm::object(model, calls, order)) {
        None | Some(Ok(())) => PartResult { order, ..PartResult::new(Verdict::Valid, algorithm) },
        Some(Err(unfit)) => PartResult::unknown(format!(
            "the order that {} found is none, {unfit}: a bug of this checker",
            algorithm.as_str()
        )),
    }
}

/// A violation stands only if the part of the history that is shown for it is one by the plain search too.
/// The plain search may give up on a part that could not be made small; an outright contradiction between the
/// two means that this checker is wrong somewhere, and then nothing is claimed.
fn violation<M: Model>(
    model: &M,
    calls: &[&Call<M::Op>],
    shrunk: &Shrunk<M::Op>,
    sentence: Option<String>,
    by: Algorithm,
    budget: &Budget,
) -> PartResult {
    if matches!(shrunk.plain, Found::Order(_)) {
        let by = by.as_str();
        let reason = format!("{by} refuted the history, the plain search did not: a bug of this checker");
        return PartResult::unknown(reason);
    }
    let counterexample = explain::counterexample(model, shrunk, sentence, calls, budget);
    PartResult { counterexample: Some(counterexample), ..PartResult::new(Verdict::Invalid, by) }
}

type Part<'a, O> = (Option<u64>, Vec<&'a Call<O>>);

fn merge<M: Model>(model: &M, parts: &[Part<'_, M::Op>], results: Vec<PartResult>) -> Judged {
    let name = |at: usize| parts[at].0.map(|part| model.part_name(part));
    let called =
        |at: usize| name(at).map_or_else(|| format!("the {}", model.name()), |name| format!("key {name}"));
    let verdict = results.iter().map(|result| result.verdict).fold(Verdict::Valid, Verdict::merge);
    let ops: usize = parts.iter().map(|(_, calls)| calls.len()).sum();
    let open = parts.iter().flat_map(|(_, calls)| calls).filter(|call| call.is_open()).count();
    let verdicts: Vec<Verdict> = results.iter().map(|result| result.verdict).collect();
    let with =
        |verdict| verdicts.iter().enumerate().filter(move |&(_, found)| *found == verdict).map(|(at, _)| at);
    let told = |items: Vec<String>, separator: &str| {
        let more = items.len().saturating_sub(MAX_PARTS_TOLD / 10);
        let more = if more == 0 { String::new() } else { format!("{separator}{more} more") };
        format!("{}{more}", items.into_iter().take(MAX_PARTS_TOLD / 10).collect::<Vec<_>>().join(separator))
    };
    let summary = match verdict {
        Verdict::Valid if ops == 0 => format!("no operation says anything about a {}", model.name()),
        Verdict::Valid => {
            format!("{} operations on {} are linearizable", figures::count(ops), count(model, parts))
        }
        Verdict::Invalid => {
            format!("not linearizable: {}", told(with(Verdict::Invalid).map(called).collect(), ", "))
        }
        Verdict::Unknown => {
            let reason = |at: usize| results[at].reason.as_deref().unwrap_or("no reason");
            let undecided =
                with(Verdict::Unknown).map(|at| format!("{}: {}", called(at), reason(at))).collect();
            format!("not decided within the budget: {}", told(undecided, "; "))
        }
    };
    let mut algorithms: Vec<Algorithm> = results.iter().filter_map(|result| result.decided_by).collect();
    algorithms.sort_unstable();
    algorithms.dedup();
    let algorithms: Vec<&str> = algorithms.into_iter().map(Algorithm::as_str).collect();
    // Whatever is not valid comes first, and is told first.
    let mut told: Vec<usize> = (0..results.len()).collect();
    told.sort_by_key(|&at| std::cmp::Reverse(results[at].verdict));
    let of_part = |at: usize| {
        let result = &results[at];
        json!({"key": name(at), "verdict": result.verdict, "ops": parts[at].1.len(), "reason": result.reason,
               "decided_by": result.decided_by.map(Algorithm::as_str)})
    };
    let per_part: Vec<serde_json::Value> = told.into_iter().take(MAX_PARTS_TOLD).map(of_part).collect();
    let evidence =
        json!({"model": model.name(), "ops": ops, "open": open, "parts": parts.len(), "keys": per_part});
    let mut result = CheckResult::new(NAME, verdict, summary).with_evidence(evidence);
    if !algorithms.is_empty() {
        result = result.with_decided_by(algorithms.join(", "));
    }
    let mut witness = Vec::new();
    let mut smallest: Option<Counterexample> = None;
    for ((part, calls), part_result) in parts.iter().zip(results) {
        if let Some(order) = part_result.order.filter(|_| verdict == Verdict::Valid) {
            witness.push(PartOrder {
                part: *part,
                order: order.into_iter().map(|at| calls[at].index).collect(),
            });
        }
        // The smallest of the counterexamples is the one to show.
        if let Some(found) = part_result.counterexample
            && smallest.as_ref().is_none_or(|smallest| found.ops.len() < smallest.ops.len())
        {
            smallest = Some(found);
        }
    }
    if let Some(counterexample) = smallest {
        result = result.with_counterexample(counterexample);
    }
    Judged { result, witness }
}

fn count<M: Model>(model: &M, parts: &[Part<'_, M::Op>]) -> String {
    match parts {
        [(None, _)] => format!("a {}", model.name()),
        [_] => "1 key".to_owned(),
        parts => format!("{} keys", parts.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::records;
    use crate::model::keyed::Keyed;
    use crate::model::kv::Kv;
    use crate::model::pair;

    /// `clients` append to a key at once, and then somebody reads this.
    fn appended_at_once(key: &str, clients: usize, read: &str) -> String {
        let line = |process: usize, kind: &str, f: &str, value: &str| {
            format!("{{:process {process} :type :{kind} :f :{f} :key \"{key}\" :value {value}}}\n")
        };
        let all = |kind: &str| -> String {
            (0..clients).map(|client| line(client, kind, "append", &format!("\"{client} \""))).collect()
        };
        let read = line(0, "invoke", "get", "nil") + &line(0, "ok", "get", &format!("{read:?}"));
        all("invoke") + &all("ok") + &read
    }

    fn judged(text: &str, budget: &Budget, threads: usize) -> CheckResult {
        let model = Keyed::new(Kv::default());
        let calls = pair(&model, records(text.as_bytes()).unwrap()).unwrap();
        judge(&model, &calls, budget, threads, false).result
    }

    /// All permutations of so many appends are beyond every budget.
    const MANY: usize = 20;

    #[test]
    fn what_explodes_breadth_first_is_answered_depth_first_in_little_memory() {
        let inorder: String = (0..MANY).map(|client| format!("{client} ")).collect();
        for memory_bytes in [0, 1 << 20] {
            let budget = Budget::new(1 << 20, memory_bytes);
            let result = judged(&appended_at_once("a", MANY, &inorder), &budget, 1);
            assert_eq!((result.verdict, result.decided_by.as_deref()), (Verdict::Valid, Some("depth-first")));
        }
    }

    #[test]
    fn a_part_that_nobody_can_decide_does_not_keep_another_from_being_refuted() {
        let hopeless = appended_at_once("a", MANY, "nothing of this");
        let refuted = appended_at_once("b", 2, "1 ");
        // More steps than anybody would wait for.
        let budget = Budget::new(u64::MAX, 64 << 20);
        for threads in [1, 2] {
            let result = judged(&(hopeless.clone() + &refuted), &budget, threads);
            assert_eq!(result.verdict, Verdict::Invalid);
            let left = &result.evidence["keys"][1];
            assert_eq!((&left["key"], &left["verdict"]), (&"a".into(), &"unknown".into()), "{left}");
            let reason = left["reason"].as_str().unwrap();
            assert!(reason.ends_with("it was left when another part was refuted"), "{reason}");
        }
    }

    #[test]
    fn a_search_that_is_interrupted_and_goes_on_says_the_same() {
        let text = appended_at_once("a", 4, "2 0 1 3 ");
        let model = Keyed::new(Kv::default());
        let calls = pair(&model, records(text.as_bytes()).unwrap()).unwrap();
        let calls: Vec<&Call<_>> = calls.iter().collect();
        let (mut depth, mut breadth) =
            (depth_first::Search::new(&model, &calls), frontier::Search::new(&model, &calls, true));
        let step_by_step = |run: &mut dyn FnMut(&mut Meter) -> Found, first: u64| {
            (first..).find_map(|steps| match run(&mut Meter::new(&Budget::new(steps, 1 << 20))) {
                Found::GaveUp { .. } => None,
                found => Some(found),
            })
        };
        for found in [
            step_by_step(&mut |meter| depth.run(meter), 1),
            // One event has to fit a turn.
            step_by_step(&mut |meter| breadth.run(meter), 1),
        ] {
            let Some(Found::Order(Some(order))) = found else { panic!("{found:?}") };
            assert!(confirm::object(&model, &calls, &order).is_ok(), "{order:?}");
        }
    }
}
