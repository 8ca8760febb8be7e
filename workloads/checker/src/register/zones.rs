//! The near-linear test for histories whose written values all differ.
//!
//! **Blocks.** When a value is written once, the register holds it during one stretch of time: from its write to
//! the next change. A compare-and-set that happened ties two stretches together, with nothing between. So the
//! operations fall into *blocks*: a value's write, its reads, then if some compare-and-set took the value away,
//! that one, its value's reads, and so on. A linearization is an order of blocks, each in one piece, and an order
//! within each.
//!
//! **Within a block** the segments (write, reads, compare-and-set, reads, ...) have a fixed order, which must not
//! contradict real time. **Between blocks** A must come before B when some operation of A returned before some
//! operation of B was called, that is, when `first(A) < last(B)` with `first` the earliest return and `last` the
//! latest call. An order of blocks exists if and only if no two blocks must each come before the other. (A longer
//! circle contains such a pair: of its blocks take the one, A, with the earliest return; every block of the
//! circle has a predecessor P in it with `first(P) < last`, and `first(A) <= first(P)`, so A must come before all
//! of them, also before its own predecessor.)
//!
//! **Open operations** take part only when somebody saw their value, directly or through a chain of
//! compare-and-sets; the others may be absent.
//!
//! **Refused compare-and-sets** say "not this value now", which is a choice (before its stretch or after it) and
//! not an order, so they are left out of the blocks. One contradiction is certain all the same: a refusal from v
//! that lies wholly between two operations that both show v. When some are refused, an order found here is a
//! candidate only.
//!
//! After Gibbons and Korach, "Testing shared memories" (SICOMP 1997), extended by the chains.

use super::problem::{Action, NIL, Problem, Val, index};
use crate::history::{NEVER, Rank};

/// What the test found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Zones {
    /// Some value has several sources: the test does not apply.
    Ambiguous,
    /// No order exists.
    Refuted(Contradiction),
    /// An order of everything but refused compare-and-sets. When none was refused it is a linearization.
    Order(Vec<usize>),
}

/// Why no order exists, by indices of entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Contradiction {
    /// A value was read, or taken by a compare-and-set, that nobody wrote.
    NeverWritten {
        /// The operation that saw it.
        seen_by: usize,
    },
    /// Two compare-and-sets took the same value away.
    TakenTwice {
        /// One of them.
        first: usize,
        /// The other.
        second: usize,
    },
    /// Compare-and-sets that each need the value of another one, in a circle.
    Circle {
        /// All of them.
        members: Vec<usize>,
    },
    /// The value decides that `earlier` comes first, but it was called only after `later` had returned.
    Inverted {
        /// What must come first.
        earlier: usize,
        /// What had returned before.
        later: usize,
    },
    /// Two stretches of time that would each have to come before the other.
    Entangled {
        /// The value A: an operation that returned before `b_last` was called. None is the register's beginning.
        a_first: Option<usize>,
        /// An operation of B.
        b_last: usize,
        /// An operation of B that returned before `a_last` was called.
        b_first: usize,
        /// An operation of A.
        a_last: usize,
        /// Compare-and-sets that tie operations of A together, and those of B.
        links: Vec<usize>,
    },
    /// A refusal from a value that the register held all the time.
    Held {
        /// An operation that shows the value and returned before the refused one was called; none is the
        /// register's beginning.
        before: Option<usize>,
        /// The refused compare-and-set.
        refused: usize,
        /// An operation that needs the value and was called after the refused one had returned.
        after: usize,
    },
}

/// A moment on the line of ranks, with room before the first: the register's beginning.
type Moment = i64;
const BEGINNING: Moment = -1;

fn moment(rank: Rank) -> Moment {
    if rank == NEVER { Moment::MAX } else { Moment::from(rank) }
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
    first: Moment,
    first_by: Option<usize>,
    last: Moment,
    last_by: Option<usize>,
}

/// Runs the test.
#[must_use]
pub fn test(problem: &Problem) -> Zones {
    if !problem.is_unambiguous() {
        return Zones::Ambiguous;
    }
    match blocks(problem).and_then(|(clusters, blocks)| {
        refused_between(problem, &clusters)?;
        arrange(problem, &clusters, blocks)
    }) {
        Ok(order) => Zones::Order(order),
        Err(contradiction) => Zones::Refuted(contradiction),
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
            let source = writer[index(from)].ok_or(Contradiction::NeverWritten { seen_by: at })?;
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
        return Err(circle(problem, &clusters, start));
    }
    Ok((clusters, blocks))
}

fn circle(problem: &Problem, clusters: &[Cluster], start: usize) -> Contradiction {
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
    Contradiction::Circle { members }
}

/// One chain of clusters, from the value that begins it.
fn block(
    problem: &Problem,
    clusters: &[Cluster],
    head: usize,
    chained: &mut [bool],
) -> Result<Block, Contradiction> {
    let mut block =
        Block { members: Vec::new(), first: Moment::MAX, first_by: None, last: BEGINNING, last_by: None };
    if head == index(NIL) {
        block.first = BEGINNING;
    }
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
            let overtaken = |&&at: &&usize| moment(problem.entries[at].ret) < self.last;
            if let Some(&later) = segment.iter().find(overtaken) {
                return Err(Contradiction::Inverted { earlier, later });
            }
        }
        let start = self.members.len();
        for &at in segment {
            let entry = &problem.entries[at];
            if moment(entry.ret) < self.first {
                (self.first, self.first_by) = (moment(entry.ret), Some(at));
            }
            if moment(entry.call) > self.last {
                (self.last, self.last_by) = (moment(entry.call), Some(at));
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
    blocks.sort_by_key(|block| block.first);
    // For each prefix by earliest return: which block has the latest call.
    let mut latest: Vec<usize> = Vec::with_capacity(blocks.len());
    for (at, block) in blocks.iter().enumerate() {
        let before = latest.last().copied();
        latest.push(before.filter(|&before| blocks[before].last > block.last).unwrap_or(at));
    }
    for (at, block) in blocks.iter().enumerate() {
        let must_precede = blocks.partition_point(|other| other.first < block.last).min(at);
        let Some(&other) = must_precede.checked_sub(1).and_then(|end| latest.get(end)) else { continue };
        if blocks[other].last > block.first {
            return Err(entangled(problem, clusters, &blocks[other], block));
        }
    }
    Ok(sequence(blocks))
}

fn entangled(problem: &Problem, clusters: &[Cluster], a: &Block, b: &Block) -> Contradiction {
    let end = |by: Option<usize>| by.unwrap_or_default();
    let mut links = links(problem, clusters, a.first_by, end(a.last_by));
    links.extend(self::links(problem, clusters, b.first_by, end(b.last_by)));
    Contradiction::Entangled {
        a_first: a.first_by,
        b_last: end(b.last_by),
        b_first: end(b.first_by),
        a_last: end(a.last_by),
        links,
    }
}

/// The compare-and-sets between the values that two operations of one block show, both ends left out. `from` is
/// none for the register's beginning.
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
    let occupied: Vec<(Moment, Moment)> = blocks
        .iter()
        .filter(|block| block.first < block.last || block.first == BEGINNING)
        .map(|block| (block.first, block.last))
        .collect();
    let place = |block: &Block| {
        if block.first < block.last || block.first == BEGINNING {
            return block.first;
        }
        let inside = occupied.partition_point(|&(first, _)| first < block.last);
        let (_, end) = inside.checked_sub(1).map_or((BEGINNING, BEGINNING), |at| occupied[at]);
        block.last.max(end)
    };
    let mut placed: Vec<(Moment, Block)> = blocks.into_iter().map(|block| (place(&block), block)).collect();
    // Stable, and blocks came by earliest return: equal places are free among each other.
    placed.sort_by_key(|&(place, _)| place);
    placed.into_iter().flat_map(|(_, block)| block.members).collect()
}

/// The values whose operations a contradiction is about, for reducing it to them.
#[must_use]
pub fn values_of(problem: &Problem, contradiction: &Contradiction) -> (Vec<Val>, Vec<usize>) {
    let ops: Vec<usize> = match contradiction {
        Contradiction::NeverWritten { seen_by } => vec![*seen_by],
        Contradiction::TakenTwice { first, second } => vec![*first, *second],
        Contradiction::Circle { members } => members.clone(),
        Contradiction::Inverted { earlier, later } => vec![*earlier, *later],
        Contradiction::Entangled { a_first, b_last, b_first, a_last, links } => {
            a_first.iter().chain([b_last, b_first, a_last]).chain(links).copied().collect()
        }
        Contradiction::Held { before, refused, after } => {
            before.iter().chain([refused, after]).copied().collect()
        }
    };
    let mut values: Vec<Val> = ops
        .iter()
        .flat_map(|&at| {
            let action = problem.entries[at].action;
            let refused = match action {
                Action::Refused(from) => Some(from),
                _ => None,
            };
            [action.written(), action.required(), refused]
        })
        .flatten()
        .collect();
    values.sort_unstable();
    values.dedup();
    (values, ops)
}
