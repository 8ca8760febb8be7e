//! Orders that are right almost everywhere, repaired where they are wrong.
//!
//! The order that [`super::blocks`] finds knows nothing of refused compare-and-sets, and
//! `order::place_what_fits` finds a place for nearly all of them. For the few others the operations around
//! them have to stand in another order. Whether they can is a question about a small stretch of the order:
//! any rearrangement of a contiguous stretch that respects real time within the stretch respects it in the
//! whole, because nothing outside moved. So the stretch becomes a problem of its own, which begins with the
//! value that the register held there and ends before a write, to which it does not matter what is left
//! behind; and the searches decide it.
//!
//! A stretch that has no order is no proof of anything: a longer one may have. The stretch is made longer a
//! few times; then the caller has to search the whole. And what is repaired is confirmed as a whole, like any
//! other order.

use super::problem::{Action, Entry, NIL, Problem, Val};
use super::spares::Spares;
use crate::budget::{Budget, Exhausted, Meter};
use crate::history::NEVER;
use crate::model::Call;
use crate::model::register::{Register, calls};
use crate::search::{Found, depth_first, frontier};

/// Operations before and after the one that does not fit, in the first stretch and in further ones.
const MARGINS: [usize; 5] = [8, 24, 80, 240, 720];
/// Steps for one stretch, for each operation of its margin.
const STEPS_PER_MARGIN: u64 = 2_000;
/// Unobserved open writes that a stretch may use.
const SPARES: usize = 4;

/// Why an order was not repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unrepaired {
    /// No stretch around this entry could be put in order.
    Around(usize),
    /// The budget ran out.
    Exhausted(Exhausted),
}

/// Rearranges `order`, which respects real time and holds all operations that happened, until every answer is
/// right.
///
/// # Errors
/// [`Unrepaired`], which says nothing about the history.
pub fn settle(problem: &Problem, mut order: Vec<usize>, budget: &Budget) -> Result<Vec<usize>, Unrepaired> {
    let mut meter = Meter::new(budget);
    let mut unused = Unused::of(problem, &order);
    let mut state = NIL;
    let mut position = 0;
    while let Some(&at) = order.get(position) {
        meter.step().map_err(Unrepaired::Exhausted)?;
        if let Some(next) = problem.entries[at].action.apply(state) {
            state = next;
            position += 1;
            continue;
        }
        let stretch = rearranged(problem, &order, position, &unused, budget, &mut meter)?;
        unused.forget(&stretch.order);
        position = stretch.start;
        state = stretch.initial;
        if stretch.order.len() == stretch.end - stretch.start {
            order[stretch.start..stretch.end].copy_from_slice(&stretch.order);
        } else {
            order.splice(stretch.start..stretch.end, stretch.order);
        }
    }
    Ok(order)
}

/// A stretch of an order, in its new order.
struct Stretch {
    start: usize,
    end: usize,
    initial: Val,
    order: Vec<usize>,
}

fn rearranged(
    problem: &Problem,
    order: &[usize],
    position: usize,
    unused: &Unused,
    budget: &Budget,
    meter: &mut Meter,
) -> Result<Stretch, Unrepaired> {
    let is_write = |&at: &usize| matches!(problem.entries[at].action, Action::Write(_));
    for margin in MARGINS {
        let start = position.saturating_sub(margin);
        let least = (position + margin).min(order.len());
        let end = order[least..].iter().position(is_write).map_or(order.len(), |more| least + more);
        let initial = order[..start].iter().rev().find_map(|&at| problem.entries[at].action.written());
        let initial = initial.unwrap_or(NIL);
        let mut members: Vec<usize> = order[start..end].to_vec();
        members.extend(unused.writes.iter().take(SPARES));
        let local = Local::of(problem, &members, initial);
        let steps = STEPS_PER_MARGIN * u64::try_from(margin).unwrap_or(u64::MAX);
        if let Some(found) = local.order(&budget.with_steps(steps), meter)? {
            let order = found.into_iter().filter_map(|at| local.whole(at)).collect();
            return Ok(Stretch { start, end, initial, order });
        }
    }
    Err(Unrepaired::Around(order[position]))
}

/// Unobserved open writes that the order does not use yet, by call.
struct Unused {
    writes: Vec<usize>,
}

impl Unused {
    fn of(problem: &Problem, order: &[usize]) -> Self {
        Self { writes: Spares::outside(problem, order).into_writes() }
    }

    fn forget(&mut self, used: &[usize]) {
        if !self.writes.is_empty() {
            self.writes.retain(|at| !used.contains(at));
        }
    }
}

/// Some operations as a problem of their own, with values numbered anew.
struct Local {
    problem: Problem,
    members: Vec<usize>,
}

/// Ranks that the write of the initial value takes.
const ROOM: u32 = 2;

impl Local {
    fn of(problem: &Problem, members: &[usize], initial: Val) -> Self {
        let mut values: Vec<Val> = vec![NIL, initial];
        for &at in members {
            let action = problem.entries[at].action;
            values.extend(action.written().into_iter().chain(action.mentioned()));
        }
        values.sort_unstable();
        values.dedup();
        let local = |value: Val| {
            let at = values.binary_search(&value).unwrap_or(0);
            Val::try_from(at).unwrap_or(NIL)
        };
        let mut entries: Vec<Entry> = Vec::with_capacity(members.len() + 1);
        if initial != NIL {
            let action = Action::Write(local(initial));
            entries.push(Entry { call: 0, ret: 1, action, version: None, op: usize::MAX });
        }
        entries.extend(members.iter().map(|&at| {
            let entry = &problem.entries[at];
            let ret = if entry.ret == NEVER { NEVER } else { entry.ret + ROOM };
            let action = entry.action.map_values(local);
            Entry { call: entry.call + ROOM, ret, action, version: None, op: at }
        }));
        // What was open and stands in the order must stay possible, and so may be left out again; that is
        // right.
        let problem = Problem::new(entries);
        let members = problem.entries.iter().map(|entry| entry.op).collect();
        Self { problem, members }
    }

    /// An order, if one of the searches finds one: each is quick where the other is lost.
    fn order(&self, budget: &Budget, meter: &mut Meter) -> Result<Option<Vec<usize>>, Unrepaired> {
        let calls = calls(&self.problem);
        let calls: Vec<&Call<Action>> = calls.iter().collect();
        let register = Register::seeing(&calls);
        let by_depth = |meter: &mut Meter| depth_first::search(&register, &calls, meter);
        let by_breadth = |meter: &mut Meter| frontier::search(&register, &calls, true, meter);
        let searches: [&dyn Fn(&mut Meter) -> Found; 2] = [&by_depth, &by_breadth];
        for search in searches {
            let mut local = Meter::new(budget);
            let found = search(&mut local);
            meter.pay(local.spent()).map_err(Unrepaired::Exhausted)?;
            match found {
                Found::Order(order) => return Ok(order),
                // Both are complete.
                Found::NoOrder { .. } => return Ok(None),
                Found::GaveUp { .. } => {}
            }
        }
        Ok(None)
    }

    fn whole(&self, at: usize) -> Option<usize> {
        self.members.get(at).copied().filter(|&at| at != usize::MAX)
    }
}
