//! Appends that nobody read, under snapshot isolation: whether they have an order, and which.
//!
//! Two transactions that append to one list must not overlap, and which of them comes first the reads tell,
//! as far as the list was read. Of two appends that nobody read either may come first. The edges say what is
//! certain, so any order that keeps them is tried, and where two such transactions overlap in it, one of the
//! two ways round is taken for certain as well: first the one, and where that leads to a cycle, the other.
//! That goes on until nothing overlaps or both ways are closed. So it decides, within the budget: the choices
//! are all that there are. (PolySI and Viper solve the same constraints by SMT: Huang and others, VLDB 2023;
//! Zhang and others, EuroSys 2023.)

use super::condition::Condition;
use super::cycle;
use super::graph::{Graph, View};
use super::intern::{NONE, to_u32};
use super::load::History;
use super::replay::Moment;
use crate::budget::{Exhausted, Meter};
use crate::hash::FastMap;
use crate::scc::{Digraph, Next, components};

/// That one transaction commits before another starts, and whether the other way round was not tried yet.
struct Choice {
    first: u32,
    second: u32,
    is_first: bool,
}

/// The starts and commits of all that took effect, in an order in which no two overlap that append to one
/// list; none if there is no such order.
///
/// # Errors
/// Why it gave up.
pub(super) fn order(
    history: &History,
    graph: &Graph,
    meter: &mut Meter,
) -> Result<Option<Vec<Moment>>, Exhausted> {
    let view = cycle::level(graph, Condition::SnapshotIsolation);
    let writers = writers(history);
    let mut choices: Vec<Choice> = Vec::new();
    loop {
        let found = components(&Chosen::of(view, &choices), meter)?;
        if found.cyclic.is_empty() {
            let moments = moments(graph, &found.reversed);
            match overlap(graph, &writers, &moments) {
                None => return Ok(Some(moments)),
                Some((first, second)) => choices.push(Choice { first, second, is_first: true }),
            }
            continue;
        }
        // The last choice that can still be made the other way round is.
        while choices.pop_if(|choice| !choice.is_first).is_some() {}
        let Some(last) = choices.last_mut() else { return Ok(None) };
        *last = Choice { first: last.second, second: last.first, is_first: false };
    }
}

/// For each key with several the transactions that append to it what nobody read.
fn writers(history: &History) -> Vec<Vec<u32>> {
    let mut writers: Vec<Vec<u32>> = vec![Vec::new(); history.lists.len()];
    for (element, number) in history.elements.iter().zip(0..) {
        if element.place == NONE
            && let Some(writer) = history.writer(number)
        {
            writers[element.key as usize].push(writer);
        }
    }
    for of_key in &mut writers {
        of_key.sort_unstable();
        of_key.dedup();
    }
    writers.retain(|of_key| of_key.len() > 1);
    writers
}

/// What the points of an order are, where transactions that took effect start and commit.
fn moments(graph: &Graph, reversed: &[u32]) -> Vec<Moment> {
    let points = reversed.iter().rev().map(|point| (point / 2, point % 2 == 1));
    let took_effect = |txn: u32| txn < graph.txns && graph.happened[txn as usize];
    points.filter(|(txn, _)| took_effect(*txn)).map(|(txn, commits)| Moment { txn, commits }).collect()
}

/// Two that overlap and append to one list.
fn overlap(graph: &Graph, writers: &[Vec<u32>], moments: &[Moment]) -> Option<(u32, u32)> {
    let mut spans = vec![(0, 0); graph.txns as usize];
    for (moment, at) in moments.iter().zip(0_u32..) {
        let span = &mut spans[moment.txn as usize];
        *(if moment.commits { &mut span.1 } else { &mut span.0 }) = at;
    }
    writers.iter().find_map(|of_key| {
        let mut sorted: Vec<((u32, u32), u32)> =
            of_key.iter().map(|&txn| (spans[txn as usize], txn)).collect();
        sorted.sort_unstable();
        let pair = sorted.windows(2).find(|pair| pair[1].0.0 < pair[0].0.1)?;
        // Who commits first is tried first.
        let (one, other) = (pair[0], pair[1]);
        Some(if one.0.1 < other.0.1 { (one.1, other.1) } else { (other.1, one.1) })
    })
}

/// The edges that are certain, and those that were chosen.
struct Chosen<'a> {
    view: View<'a>,
    /// For a commit the starts that come after it.
    chosen: FastMap<u32, Vec<u32>>,
}

impl<'a> Chosen<'a> {
    fn of(view: View<'a>, choices: &[Choice]) -> Self {
        let mut chosen: FastMap<u32, Vec<u32>> = FastMap::default();
        for &Choice { first, second, .. } in choices {
            chosen.entry(first * 2 + 1).or_default().push(second * 2);
        }
        Self { view, chosen }
    }
}

impl Digraph for Chosen<'_> {
    fn len(&self) -> u32 {
        self.view.len()
    }

    fn next(&self, point: u32, at: u32) -> Next {
        let chosen = self.chosen.get(&point).map_or(&[][..], Vec::as_slice);
        match chosen.get(at as usize) {
            Some(&to) => Next::To(to),
            None => self.view.next(point, at - to_u32(chosen.len())),
        }
    }
}

/// The transactions that have no order by themselves, as few as can be found: each is left out that the
/// others do without. What remains of an innocent history is innocent, so these are a violation.
pub(super) fn fewest(
    members: Vec<u32>,
    mut has_order: impl FnMut(&[u32]) -> Result<bool, Exhausted>,
) -> Vec<u32> {
    let mut kept = members;
    let mut at = 0;
    while at < kept.len() && kept.len() <= MOST_LEFT_OUT {
        let mut without = kept.clone();
        without.remove(at);
        match has_order(&without) {
            Ok(false) => kept = without,
            Ok(true) => at += 1,
            Err(_) => break,
        }
    }
    kept
}

/// Of more transactions none is left out.
const MOST_LEFT_OUT: usize = 64;
