//! The portfolio for registers: the claimed order, what follows from the answers, and the search that both
//! guide.

use super::claims;
use super::cycle;
use super::graph::{Graph, Node, at, number};
use super::registers::{Held, Registers};
use super::saturate::{Saturation, add_sources, saturate};
use super::search::{Found, Task, search};
use super::{Algorithm, RealTime};
use crate::budget::{Budget, Exhausted, Meter};
use crate::confirm::{Unfit, confirm};

/// What came of it.
#[derive(Clone, Debug)]
pub(super) enum Decision {
    /// An order explains every answer, and was confirmed.
    Order {
        /// Entries in that order.
        order: Vec<Node>,
        /// Who found it.
        by: Algorithm,
    },
    /// No order exists.
    None {
        /// Entries that show it, or near which the search got stuck.
        near: Vec<usize>,
        /// Whether those alone are enough.
        enough: bool,
        /// Who found out.
        by: Algorithm,
    },
    /// Not decided.
    Undecided {
        /// Why, and how far it got.
        reason: String,
    },
}

/// Decides whether the operations have an order that keeps `real_time`.
pub(super) fn decide(registers: &Registers, real_time: RealTime, budget: &Budget) -> Decision {
    if let Some(entry) = registers.unexplained() {
        return Decision::None { near: vec![entry], enough: true, by: Algorithm::Cycle };
    }
    let mut meter = Meter::new(budget);
    let spans = registers.spans();
    let mut graph = Graph::of(&spans, real_time);
    add_sources(&mut graph, registers);
    let attempt = |graph: &Graph, retreats: u64, meter: &mut Meter| {
        let ranks = graph.deadlines(&spans);
        let task = Task { graph, optional: &registers.optional, ranks: &ranks, eager: true, retreats };
        search(&task, Held::new(registers, true), meter)
    };
    let confirmed = |order: Vec<Node>, by: Algorithm| match confirm_registers(registers, real_time, &order) {
        Ok(()) => Decision::Order { order, by },
        // Not to be met; if it is, nothing is claimed.
        Err(reason) => {
            Decision::Undecided { reason: format!("an order was found but not confirmed: {reason}") }
        }
    };
    let given = graph.edge_count();
    if claims::add(&mut graph, registers).is_some() {
        if let (Found::Order(order), _) = attempt(&graph, 0, &mut meter) {
            return confirmed(order, Algorithm::Claims);
        }
        graph.truncate(given);
    }
    match saturate(&mut graph, registers, &mut meter) {
        Ok(Saturation::Complete) | Err(Exhausted::Memory) => {}
        Ok(Saturation::Cycle(closing)) => {
            let cycle = cycle::shortest(&graph, closing);
            let near = cycle::involved(&graph, registers, &cycle).into_iter().collect();
            return Decision::None { near, enough: true, by: Algorithm::Cycle };
        }
        Err(why) => return Decision::Undecided { reason: format!("{why} while deriving what must be") },
    }
    match attempt(&graph, u64::MAX, &mut meter) {
        (Found::Order(order), 0) => confirmed(order, Algorithm::Guided),
        (Found::Order(order), _) => confirmed(order, Algorithm::Search),
        (Found::NoOrder { stuck }, _) => {
            let near = stuck.into_iter().map(at).collect();
            Decision::None { near, enough: false, by: Algorithm::Search }
        }
        (Found::GaveUp { why, placed }, _) => {
            let why = why.map_or_else(|| "too many choices".to_owned(), |why| why.to_string());
            let all = registers.entries.len();
            Decision::Undecided {
                reason: format!("{why} when at most {placed} of {all} operations had a place"),
            }
        }
    }
}

/// Confirms an order of entries from the answers alone.
///
/// # Errors
/// What does not fit.
pub(super) fn confirm_registers(
    registers: &Registers,
    real_time: RealTime,
    order: &[Node],
) -> Result<(), Unfit> {
    let mut holds: Vec<u32> = (0..number(registers.keys)).collect();
    let spans = registers.spans();
    let places = order.iter().map(|&node| at(node));
    confirm(
        spans.len(),
        |entry| spans[entry].bound(real_time),
        places,
        |entry| {
            let entry = &registers.entries[entry];
            let held = &mut holds[at(entry.key)];
            entry.action.apply(*held).map(|then| *held = then).is_some()
        },
    )
}

/// The search without any cleverness: nothing derived, nothing hurried, nothing pruned. It is what others are
/// judged by.
pub(super) fn plain(registers: &Registers, real_time: RealTime, meter: &mut Meter) -> Found {
    let spans = registers.spans();
    let graph = Graph::of(&spans, real_time);
    let ranks: Vec<u32> = spans.iter().map(|span| span.ret).collect();
    let task = Task {
        graph: &graph,
        optional: &registers.optional,
        ranks: &ranks,
        eager: false,
        retreats: u64::MAX,
    };
    search(&task, Held::new(registers, false), meter).0
}
