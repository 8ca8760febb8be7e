//! Operations at one member, one after the other: the first ones of a run, and the last.
//!
//! Whoever is sent connects to that member and to no other, with a session of its own, and gives up when it is not
//! let in for long enough. What broke off is not tried again.

use std::collections::VecDeque;

use node_core::Plant;
use node_wire::ids::ServerId;
use workloads::{Completion, Invocation};

use super::super::World;
use super::seat::{CALM_PATIENCE_US, Seat, Wake};
use crate::dice::{Dice, Part};
use crate::time::Time;

/// Operations to be done.
pub(super) struct Errand {
    todo: VecDeque<Invocation>,
    pub(super) done: Vec<(Invocation, Completion)>,
    pub(super) over: bool,
    /// When it gives up connecting.
    until: Time,
}

impl Errand {
    /// An operation came to an end. One that stays open is the last: its process must not go on.
    pub(super) fn note(&mut self, invocation: Invocation, completion: Completion) {
        if completion.retires() {
            self.todo.clear();
        }
        self.done.push((invocation, completion));
    }
}

impl<P: Plant> World<P> {
    pub(super) fn begin_errand(&mut self, member: ServerId, process: u64, todo: Vec<Invocation>) -> usize {
        let Some(host) = self.index_of(member) else { return usize::MAX };
        let (until, seed, members) = (self.now + CALM_PATIENCE_US, self.drawn.seed, self.hosts.len());
        let index = self.plan_of().load.seats.len();
        let number = u64::try_from(index).expect("clients are few");
        let mut seat = Seat::new(host, members, process, Dice::part(seed, Part::Client(number)));
        seat.errand = Some(Errand { todo: todo.into(), done: Vec::new(), over: false, until });
        self.the_plan().load.seats.push(seat);
        self.set_seat(index, 0, Wake::connect);
        index
    }

    /// The next operation of an errand, or its end.
    pub(super) fn go_on_with_errand(&mut self, index: usize) {
        let Some(errand) = &mut self.the_plan().load.seats[index].errand else { return };
        match errand.todo.pop_front() {
            Some(invocation) => self.invoke_at(index, invocation, None),
            None => {
                errand.over = true;
                self.leave_seat(index);
            }
        }
    }

    /// Whether a connection that did not come about, or broke, ends an errand.
    pub(super) fn errand_failed_to_connect(&mut self, index: usize) -> bool {
        let now = self.now;
        let Some(errand) = &mut self.the_plan().load.seats[index].errand else { return false };
        errand.over |= now >= errand.until || errand.todo.is_empty();
        errand.over
    }
}
