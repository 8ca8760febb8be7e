//! The test by blocks, offline: the whole history is there, and blocks are sorted.

use super::{BEGINNING, Contradiction, Ends, Moment, Stretch};
use crate::history::{NEVER, Rank};
use crate::register::problem::{Action, NIL, Problem, Val, index};

/// What the test found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tested {
    /// Some value has several sources: the test does not apply.
    Ambiguous,
    /// No order exists.
    Refuted(Contradiction),
    /// An order of everything but refused compare-and-sets. When none was refused it is a linearization.
    Order(Vec<usize>),
}

fn moment(rank: Rank) -> Moment {
    if rank == NEVER { Moment::MAX } else { BEGINNING + 1 + Moment::from(rank) }
}

/// What is known of each value.
struct Cluster {
    writer: Option<usize>,
    reads: Vec<usize>,
    taken_by: Option<usize>,
}

struct Block {
    /// Segments in their fixed order, concatenated.
    members: Vec<usize>,
    stretch: Stretch,
    first_by: Option<usize>,
    last_by: Option<usize>,
}

/// Runs the test.
#[must_use]
pub fn test(problem: &Problem) -> Tested {
    if !problem.is_unambiguous() {
        return Tested::Ambiguous;
    }
    match blocks(problem).and_then(|(clusters, blocks)| {
        refused_between(problem, &clusters)?;
        arrange(problem, &clusters, blocks)
    }) {
        Ok(order) => Tested::Order(order),
        Err(contradiction) => Tested::Refuted(contradiction),
    }
}

/// Sorts the operations that must have happened into clusters by value.
fn clusters(problem: &Problem) -> Result<Vec<Cluster>, Contradiction> {
    let mut writer: Vec<Option<usize>> = vec![None; problem.values()];
    for (at, entry) in problem.entries.iter().enumerate() {
        if let Some(to) = entry.action.written() {
            writer[index(to)] = Some(at);
        }
    }
    let mut clusters: Vec<Cluster> =
        (0..problem.values()).map(|_| Cluster { writer: None, reads: Vec::new(), taken_by: None }).collect();
    // What happened, and whatever must have happened for it: writers of observed values, transitively.
    let mut pending: Vec<usize> =
        (0..problem.entries.len()).rev().filter(|&at| !problem.entries[at].is_open()).collect();
    while let Some(at) = pending.pop() {
        let action = problem.entries[at].action;
        if let Some(from) = action.required().filter(|&from| from != NIL) {
            let source =
                writer[index(from)].ok_or(Contradiction::Gone { seen_by: at, replaced_by: Vec::new() })?;
            let known = clusters[index(from)].writer.is_some();
            if !known && problem.entries[source].is_open() {
                clusters[index(from)].writer = Some(source);
                pending.push(source);
            }
        }
        match action {
            Action::Read(value) => clusters[index(value)].reads.push(at),
            Action::Write(to) => clusters[index(to)].writer = Some(at),
            Action::Cas { from, to } => {
                clusters[index(to)].writer = Some(at);
                if let Some(first) = clusters[index(from)].taken_by.replace(at) {
                    return Err(Contradiction::TakenTwice { first, second: at });
                }
            }
            Action::Refused(_) => {}
        }
    }
    Ok(clusters)
}

/// Chains clusters to blocks and checks the order within each.
fn blocks(problem: &Problem) -> Result<(Vec<Cluster>, Vec<Block>), Contradiction> {
    let clusters = clusters(problem)?;
    let is_cas = |at: usize| matches!(problem.entries[at].action, Action::Cas { .. });
    let mut chained = vec![false; clusters.len()];
    let mut blocks = Vec::new();
    for (value, cluster) in clusters.iter().enumerate() {
        let is_head = match cluster.writer {
            None => value == index(NIL),
            Some(writer) => !is_cas(writer),
        };
        if is_head {
            blocks.push(block(problem, &clusters, value, &mut chained)?);
        }
    }
    // What is left is taken from a value that is itself only reached from what is left.
    if let Some(start) = (0..clusters.len()).find(|&v| clusters[v].writer.is_some() && !chained[v]) {
        return Err(cycle(problem, &clusters, start));
    }
    Ok((clusters, blocks))
}

fn cycle(problem: &Problem, clusters: &[Cluster], start: usize) -> Contradiction {
    let mut members: Vec<usize> = Vec::new();
    let mut value = start;
    while let Some(writer) = clusters[value].writer {
        if let Some(at) = members.iter().position(|&member| member == writer) {
            members.drain(..at);
            break;
        }
        members.push(writer);
        let Action::Cas { from, .. } = problem.entries[writer].action else { break };
        value = index(from);
    }
    Contradiction::Cycle { members }
}

/// One chain of clusters, from the value that begins it.
fn block(
    problem: &Problem,
    clusters: &[Cluster],
    head: usize,
    chained: &mut [bool],
) -> Result<Block, Contradiction> {
    let first = if head == index(NIL) { BEGINNING } else { Moment::MAX };
    let stretch = Stretch { first, last: BEGINNING };
    let mut block = Block { members: Vec::new(), stretch, first_by: None, last_by: None };
    let mut value = head;
    let mut writer = clusters[head].writer;
    loop {
        chained[value] = true;
        if let Some(writer) = writer {
            block.append(problem, &[writer])?;
        }
        block.append(problem, &clusters[value].reads)?;
        writer = clusters[value].taken_by;
        match writer.and_then(|next| problem.entries[next].action.written()) {
            // A chain that comes back to itself would have no head, so this ends.
            Some(to) => value = index(to),
            None => return Ok(block),
        }
    }
}

impl Block {
    /// Adds a segment: everything in it comes after everything before it.
    fn append(&mut self, problem: &Problem, segment: &[usize]) -> Result<(), Contradiction> {
        if let Some(earlier) = self.last_by {
            let overtaken = |&&at: &&usize| moment(problem.entries[at].ret) < self.stretch.last;
            if let Some(&later) = segment.iter().find(overtaken) {
                return Err(Contradiction::Inverted { earlier, later });
            }
        }
        let start = self.members.len();
        for &at in segment {
            let entry = &problem.entries[at];
            if moment(entry.ret) < self.stretch.first {
                (self.stretch.first, self.first_by) = (moment(entry.ret), Some(at));
            }
            if moment(entry.call) > self.stretch.last {
                (self.stretch.last, self.last_by) = (moment(entry.call), Some(at));
            }
            self.members.push(at);
        }
        self.members[start..].sort_unstable();
        Ok(())
    }
}

/// A refusal from a value that the register certainly held from before its call until after its return.
fn refused_between(problem: &Problem, clusters: &[Cluster]) -> Result<(), Contradiction> {
    if !problem.has_refused {
        return Ok(());
    }
    let stretch = |value: usize| {
        let cluster = &clusters[value];
        let shows = cluster.writer.iter().chain(&cluster.reads);
        let before = shows.copied().min_by_key(|&at| problem.entries[at].ret);
        let needs = cluster.reads.iter().chain(&cluster.taken_by);
        let after = needs.copied().max_by_key(|&at| problem.entries[at].call);
        (before, after)
    };
    let stretches: Vec<_> = (0..clusters.len()).map(stretch).collect();
    for (refused, entry) in problem.entries.iter().enumerate() {
        let Action::Refused(from) = entry.action else { continue };
        let (before, after) = stretches[index(from)];
        let Some(after) = after.filter(|&after| problem.entries[after].call > entry.ret) else { continue };
        if from == NIL {
            return Err(Contradiction::Held { before: None, refused, after });
        }
        if before.is_some_and(|before| problem.entries[before].ret < entry.call) {
            return Err(Contradiction::Held { before, refused, after });
        }
    }
    Ok(())
}

/// Orders the blocks, or names two that must each come before the other.
fn arrange(
    problem: &Problem,
    clusters: &[Cluster],
    mut blocks: Vec<Block>,
) -> Result<Vec<usize>, Contradiction> {
    blocks.sort_by_key(|block| block.stretch.first);
    // For each prefix by earliest return: which block has the latest call.
    let mut latest: Vec<usize> = Vec::with_capacity(blocks.len());
    for (at, block) in blocks.iter().enumerate() {
        let before = latest.last().copied();
        latest.push(before.filter(|&before| blocks[before].stretch.last > block.stretch.last).unwrap_or(at));
    }
    for (at, block) in blocks.iter().enumerate() {
        let must_precede = blocks.partition_point(|other| other.stretch.must_precede(block.stretch)).min(at);
        let Some(&other) = must_precede.checked_sub(1).and_then(|end| latest.get(end)) else { continue };
        if block.stretch.must_precede(blocks[other].stretch) {
            return Err(entangled(problem, clusters, &blocks[other], block));
        }
    }
    Ok(sequence(blocks))
}

fn entangled(problem: &Problem, clusters: &[Cluster], one: &Block, other: &Block) -> Contradiction {
    let ends = |block: &Block| {
        let last = block.last_by.unwrap_or_default();
        Ends { first: block.first_by, last, links: links(problem, clusters, block.first_by, last) }
    };
    Contradiction::Entangled { one: ends(one), other: ends(other) }
}

/// The compare-and-sets between the values that two operations of one block show, both ends left out. `from`
/// is none for the register's beginning.
fn links(problem: &Problem, clusters: &[Cluster], from: Option<usize>, to: usize) -> Vec<usize> {
    let shown = |at: usize| match problem.entries[at].action {
        Action::Read(value) | Action::Write(value) | Action::Cas { to: value, .. } => index(value),
        Action::Refused(value) => index(value),
    };
    let walk = |start: usize, goal: usize| {
        let mut links = Vec::new();
        let mut value = start;
        while value != goal {
            let next = clusters[value].taken_by?;
            links.push(next);
            value = index(problem.entries[next].action.written()?);
        }
        Some(links)
    };
    let (from, to) = (from.map_or(index(NIL), shown), shown(to));
    walk(from, to).or_else(|| walk(to, from)).unwrap_or_default()
}

/// Puts blocks that can be ordered in order. Blocks whose operations do not all overlap occupy the time from
/// `first` to `last`, and these times are disjoint. The others can stand at any one moment between `last` and
/// `first`; they take the first one that is not inside an occupied time.
fn sequence(blocks: Vec<Block>) -> Vec<usize> {
    let occupies = |at: Stretch| at.first < at.last || at.first == BEGINNING;
    let occupied: Vec<Stretch> =
        blocks.iter().map(|block| block.stretch).filter(|&stretch| occupies(stretch)).collect();
    let place = |stretch: Stretch| {
        if occupies(stretch) {
            return stretch.first;
        }
        let inside = occupied.partition_point(|other| other.must_precede(stretch));
        inside.checked_sub(1).map_or(stretch.last, |at| stretch.last.max(occupied[at].last))
    };
    let mut placed: Vec<(Moment, Block)> =
        blocks.into_iter().map(|block| (place(block.stretch), block)).collect();
    // Stable, and blocks came by earliest return: equal places are free among each other.
    placed.sort_by_key(|&(place, _)| place);
    placed.into_iter().flat_map(|(_, block)| block.members).collect()
}

/// The values whose operations a contradiction is about, and these operations, for reducing it to them.
#[must_use]
pub fn values_of(problem: &Problem, contradiction: &Contradiction) -> (Vec<Val>, Vec<usize>) {
    let ops = contradiction.operations();
    let actions = ops.iter().map(|&at| problem.entries[at].action);
    let mut values: Vec<Val> =
        actions.flat_map(|action| [action.written(), action.mentioned()]).flatten().collect();
    values.sort_unstable();
    values.dedup();
    (values, ops)
}
