//! Which transaction has to come before which.
//!
//! Every edge is certain: in any serial order that explains the answers its source comes first. With all that
//! was read being beginnings of one list, and each element appended once, the edges are also enough: any
//! order of the nodes that keeps them explains every answer (it is replayed before that is believed).
//!
//! An element that nobody read comes after all that was read, of the same key; so whoever read the whole
//! list, and whoever appended its last element, comes before each of its writers. One node for each such key,
//! its *tail*, stands between the two groups, so that the edges stay as few as the operations. It is
//! transparent: an edge into a tail is of its own kind, the one out of it continues that.
//!
//! Real time needs no edges at all. Transactions are sorted by call, so what was invoked after a return is a
//! suffix: node *i* of a chain stands for "the *i*-th and all later ones", and a transaction leads to the
//! first that was called after its return.

use super::condition::Order;
use super::intern::{NONE, to_u32};
use super::load::{History, Micro, What};
use super::rule::{Rule, broken};
use crate::hash::FastMap;
use crate::history::{NEVER, Outcome};
use crate::scc::{Digraph, Next};

/// Why one comes before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Kind {
    /// Its append is further on in the list.
    WriteWrite,
    /// It read what was appended.
    WriteRead,
    /// It appended what the other had not seen.
    ReadWrite,
    /// Out of a tail.
    Via,
}

impl Kind {
    pub(super) const fn bit(self) -> u8 {
        1 << self as u8
    }

    fn of(packed: u32) -> Self {
        match packed & 3 {
            0 => Self::WriteWrite,
            1 => Self::WriteRead,
            2 => Self::ReadWrite,
            _ => Self::Via,
        }
    }
}

/// Sets of kinds.
pub(super) const WRITES: u8 = Kind::WriteWrite.bit() | Kind::Via.bit();
pub(super) const COMMITS: u8 = WRITES | Kind::WriteRead.bit();
pub(super) const ALL: u8 = COMMITS | Kind::ReadWrite.bit();

/// Transactions, sorted by call, and the tails behind them.
#[derive(Debug)]
pub(super) struct Graph {
    /// How many of the nodes are transactions.
    pub(super) txns: u32,
    /// Nodes in all.
    pub(super) nodes: u32,
    offsets: Vec<u32>,
    edges: Vec<u32>,
    /// The next transaction of the same process, or [`NONE`].
    pub(super) next: Vec<u32>,
    /// The first transaction that was called after this one returned, or the number of transactions.
    pub(super) after: Vec<u32>,
    /// Which transactions took effect.
    pub(super) happened: Vec<bool>,
}

impl Graph {
    /// What can be inferred from a history.
    pub(super) fn infer(history: &History) -> Self {
        let txns = to_u32(history.txns.len());
        let tails = Tails::of(history);
        let nodes = txns + to_u32(history.lists.len());
        let mut offsets = vec![0_u32; nodes as usize + 1];
        each_edge(history, &tails, |from, _, _| offsets[from as usize + 1] += 1);
        for at in 1..offsets.len() {
            offsets[at] += offsets[at - 1];
        }
        let mut edges = vec![0_u32; *offsets.last().expect("never empty") as usize];
        let mut free = offsets.clone();
        each_edge(history, &tails, |from, to, kind| {
            edges[free[from as usize] as usize] = to << 2 | kind as u32;
            free[from as usize] += 1;
        });
        let (next, after, happened) =
            (next_in_process(history), after_return(history), history.happened.clone());
        Self { txns, nodes, offsets, edges, next, after, happened }
    }

    /// The nodes that come after one by what was read and written.
    pub(super) fn edges(&self, node: u32) -> impl Iterator<Item = (u32, Kind)> {
        let range = self.offsets[node as usize] as usize..self.offsets[node as usize + 1] as usize;
        self.edges[range].iter().map(|&packed| (packed >> 2, Kind::of(packed)))
    }

    /// The part of the graph that consists of `members`, which are sorted.
    pub(super) fn part(&self, members: &[u32]) -> Self {
        let local = |node: u32| members.binary_search(&node).ok().map(to_u32);
        let txns = to_u32(members.partition_point(|&node| node < self.txns));
        let mut offsets = vec![0];
        let mut edges = Vec::new();
        for &member in members {
            for (to, kind) in self.edges(member) {
                edges.extend(local(to).map(|to| to << 2 | kind as u32));
            }
            offsets.push(to_u32(edges.len()));
        }
        let only = &members[..txns as usize];
        let next = only.iter().map(|&txn| local(self.next[txn as usize]).unwrap_or(NONE)).collect();
        let after = only.iter().map(|&txn| {
            let first = self.after[txn as usize];
            to_u32(only.partition_point(|&other| other < first))
        });
        let nodes = to_u32(members.len());
        let happened = only.iter().map(|&txn| self.happened[txn as usize]).collect();
        Self { txns, nodes, offsets, edges, next, after: after.collect(), happened }
    }

    /// How many edges there are, real time and processes aside.
    pub(super) fn size(&self) -> usize {
        self.edges.len()
    }
}

/// The part of a graph that matters for one condition.
#[derive(Clone, Copy, Debug)]
pub(super) struct View<'a> {
    pub(super) graph: &'a Graph,
    /// The kinds of edges.
    pub(super) kinds: u8,
    pub(super) order: Order,
    /// Each transaction has a start and a commit: what it had not seen commits after its start, and
    /// everything else that follows starts after its commit. A cycle then has no two adjacent
    /// anti-dependencies, which is what snapshot isolation rules out.
    pub(super) split: bool,
}

impl View<'_> {
    /// Points in time, of transactions and of tails.
    fn points(&self) -> u32 {
        if self.split { self.graph.nodes * 2 } else { self.graph.nodes }
    }

    /// The node that a point belongs to, and whether it is its second point; none on the chain of time.
    pub(super) fn node(&self, point: u32) -> Option<(u32, bool)> {
        (point < self.points()).then_some(if self.split {
            (point / 2, point % 2 == 1)
        } else {
            (point, false)
        })
    }

    fn point(&self, node: u32, second: bool) -> u32 {
        if self.split { node * 2 + u32::from(second) } else { node }
    }
}

impl Digraph for View<'_> {
    fn len(&self) -> u32 {
        self.points() + if self.order == Order::Realtime { self.graph.txns } else { 0 }
    }

    fn next(&self, point: u32, at: u32) -> Next {
        let Some((node, second)) = self.node(point) else {
            let txn = point - self.points();
            return match at {
                0 => Next::To(self.point(txn, false)),
                1 if txn + 1 < self.graph.txns => Next::To(point + 1),
                _ => Next::End,
            };
        };
        let is_txn = node < self.graph.txns;
        // The first of two points leads to the second before anything else.
        let mut at = at;
        if self.split && is_txn && !second {
            if at == 0 {
                return Next::To(point + 1);
            }
            at -= 1;
        }
        let range = self.graph.offsets[node as usize]..self.graph.offsets[node as usize + 1];
        if let Some(&packed) = self.graph.edges[range.start as usize..range.end as usize].get(at as usize) {
            let kind = Kind::of(packed);
            let leaves_here = !self.split || !is_txn || (kind == Kind::ReadWrite) != second;
            if self.kinds & kind.bit() == 0 || !leaves_here {
                return Next::Skip;
            }
            let to_second = if kind == Kind::Via { second } else { kind == Kind::ReadWrite };
            return Next::To(self.point(packed >> 2, to_second));
        }
        let leaves_here = is_txn && (!self.split || second);
        if at != range.end - range.start || !leaves_here {
            return Next::End;
        }
        match self.order {
            Order::Free => Next::End,
            Order::Process => match self.graph.next[node as usize] {
                NONE => Next::End,
                next => Next::To(self.point(next, false)),
            },
            Order::Realtime => match self.graph.after[node as usize] {
                after if after < self.graph.txns => Next::To(self.points() + after),
                _ => Next::End,
            },
        }
    }
}

/// The writers of elements that nobody read.
struct Tails {
    /// For each key whose list ends in a known append, who made that.
    last: Vec<u32>,
    /// For each key whether there are any such writers.
    present: Vec<bool>,
}

impl Tails {
    fn of(history: &History) -> Self {
        let last = history.lists.iter().map(|list| {
            let writers = list.order.iter().rev().filter_map(|&element| history.writer(element));
            writers.take(1).next().unwrap_or(NONE)
        });
        let mut present = vec![false; history.lists.len()];
        for (number, element) in (0..).zip(&history.elements) {
            present[element.key as usize] |= element.place == NONE && history.writer(number).is_some();
        }
        Self { last: last.collect(), present }
    }
}

fn each_edge(history: &History, tails: &Tails, mut edge: impl FnMut(u32, u32, Kind)) {
    let txns = to_u32(history.txns.len());
    for (list, key) in history.lists.iter().zip(0..) {
        if list.tainted {
            continue;
        }
        let writers = list.order.iter().filter_map(|&element| history.writer(element));
        let mut last = NONE;
        for writer in writers {
            if last != NONE && last != writer && !broken(Rule::WriteAfterWrite) {
                edge(last, writer, Kind::WriteWrite);
            }
            last = writer;
        }
        if tails.present[key as usize] && last != NONE && !broken(Rule::UnseenAfterSeen) {
            edge(last, txns + key, Kind::WriteWrite);
        }
    }
    for (number, element) in (0..).zip(&history.elements) {
        let key = element.key as usize;
        if element.place == NONE
            && let Some(writer) = history.writer(number)
            && writer != tails.last[key]
            && !history.lists[key].tainted
        {
            edge(txns + element.key, writer, Kind::Via);
        }
    }
    let mut unseen = Unseen::of(history, tails);
    for txn in 0..txns {
        if history.txns[txn as usize].outcome != Outcome::Ok {
            continue;
        }
        unseen.look_at(history, txn);
        for micro in history.micros(txn) {
            let What::Read(length) = micro.what else { continue };
            if !history.lists[micro.key as usize].tainted {
                read_edges(history, tails, &mut unseen, txn, micro, length, &mut edge);
            }
        }
    }
}

fn read_edges(
    history: &History,
    tails: &Tails,
    unseen: &mut Unseen,
    txn: u32,
    micro: &Micro,
    length: u32,
    edge: &mut impl FnMut(u32, u32, Kind),
) {
    let order = &history.lists[micro.key as usize].order;
    if let Some(last) = length.checked_sub(1) {
        match history.writer(order[last as usize]) {
            Some(writer) if writer == txn => return,
            Some(writer) if !broken(Rule::ReadAfterWrite) => edge(writer, txn, Kind::WriteRead),
            _ => {}
        }
    }
    if let Some(&following) = order.get(length as usize) {
        if let Some(writer) = history.writer(following).filter(|&writer| writer != txn)
            && !broken(Rule::WriteAfterRead)
        {
            edge(txn, writer, Kind::ReadWrite);
        }
        return;
    }
    if !tails.present[micro.key as usize] {
        return;
    }
    if unseen.is_writer(txn, micro.key) && !broken(Rule::ReaderThatAppendsIsNotBeforeItself) {
        // The tail leads to this very transaction: it comes before the others only. Two such readers lose an
        // update, which is found elsewhere, so one of them for each key keeps the edges few.
        if unseen.is_first_reader(txn, micro.key) && !broken(Rule::UnseenAfterReaderThatAppends) {
            for &element in &unseen.elements[micro.key as usize] {
                if let Some(writer) = history.writer(element).filter(|&writer| writer != txn) {
                    edge(txn, writer, Kind::ReadWrite);
                }
            }
        }
    } else if !broken(Rule::UnseenAfterReaders) {
        edge(txn, to_u32(history.txns.len()) + micro.key, Kind::ReadWrite);
    }
}

/// Who appends what nobody read, while the transactions are gone through.
struct Unseen {
    /// For each key the elements.
    elements: Vec<Vec<u32>>,
    /// For each key the last transaction looked at that appends such an element.
    writer: Vec<u32>,
    /// For each key the first transaction that read the whole list and appends such an element.
    reader: Vec<u32>,
}

impl Unseen {
    fn of(history: &History, tails: &Tails) -> Self {
        let keys = history.lists.len();
        let mut elements = vec![Vec::new(); keys];
        for (number, element) in (0..).zip(&history.elements) {
            let key = element.key as usize;
            if element.place == NONE && tails.present[key] && history.writer(number).is_some() {
                elements[key].push(number);
            }
        }
        Self { elements, writer: vec![NONE; keys], reader: vec![NONE; keys] }
    }

    fn look_at(&mut self, history: &History, txn: u32) {
        for micro in history.micros(txn) {
            if let What::Append(element) = micro.what
                && history.elements[element as usize].place == NONE
            {
                self.writer[micro.key as usize] = txn;
            }
        }
    }

    fn is_writer(&self, txn: u32, key: u32) -> bool {
        self.writer[key as usize] == txn
    }

    fn is_first_reader(&mut self, txn: u32, key: u32) -> bool {
        let first = &mut self.reader[key as usize];
        if *first == NONE {
            *first = txn;
            return true;
        }
        false
    }
}

fn next_in_process(history: &History) -> Vec<u32> {
    let mut next = vec![NONE; history.txns.len()];
    let mut latest: FastMap<u64, u32> = FastMap::default();
    for (txn, number) in history.txns.iter().zip(0..) {
        if !history.happened[number as usize] {
            continue;
        }
        if let Some(before) = latest.insert(txn.process, number)
            && (history.txns[before as usize].outcome == Outcome::Ok || broken(Rule::OpenEndsNever))
            && !broken(Rule::ProcessOrder)
        {
            next[before as usize] = number;
        }
    }
    next
}

fn after_return(history: &History) -> Vec<u32> {
    let txns = &history.txns;
    let ends = |txn: &super::load::Txn| if broken(Rule::OpenEndsNever) { txn.call } else { txn.ret };
    let highest = txns.iter().flat_map(|txn| [txn.call, txn.ret]).filter(|&rank| rank != NEVER).max();
    let mut called = vec![0_u32; highest.map_or(0, |rank| rank as usize + 1)];
    for txn in txns {
        called[txn.call as usize] = 1;
    }
    let mut sum = 0;
    for count in &mut called {
        sum += *count;
        *count = sum;
    }
    let all = to_u32(txns.len());
    let after = txns.iter().zip(&history.happened).map(|(txn, &happened)| match txn.outcome {
        Outcome::Info if broken(Rule::OpenEndsNever) => called[ends(txn) as usize],
        _ if txn.ret == NEVER || !happened || broken(Rule::RealtimeOrder) => all,
        _ => called[txn.ret as usize],
    });
    after.collect()
}
