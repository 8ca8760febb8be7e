//! What a queue of values that all differ shows without a search.
//!
//! Who dequeued a value is known then, so every value has two intervals: in one it went in, in the other it
//! came out. A history has no order if a value comes out that never went in, comes out twice, comes out
//! before it goes in, or if of two values the one that went in later came out first (Henzinger, Sezgin and
//! Vafeiadis, CONCUR 2013, where these patterns, with one for the empty queue, are shown to be all).
//! Otherwise the values are sorted by both intervals at once, and the order of operations that follows is
//! proposed; it is confirmed by others.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

use super::queue_op::QueueOp;
use super::{Call, Shortcut};
use crate::history::{NEVER, Rank};

/// One value, with the places of its operations in the list, and when they may have taken place at the
/// earliest and must have at the latest.
#[derive(Clone, Copy, Debug)]
struct Value {
    enqueue: usize,
    dequeue: Option<usize>,
    /// Of the enqueue and of the dequeue.
    calls: [Rank; 2],
    returns: [Rank; 2],
}

/// What a queue knows of its own.
pub(super) fn shortcut(calls: &[&Call<QueueOp>], describe: &dyn Fn(&QueueOp) -> String) -> Shortcut {
    let told = |at: usize| format!("{} by process {}", describe(&calls[at].op), calls[at].process);
    let mut enqueues: HashMap<u32, Vec<usize>> = HashMap::new();
    let mut dequeues: HashMap<u32, Vec<usize>> = HashMap::new();
    let (mut takes, mut empties) = (VecDeque::new(), Vec::new());
    for (at, call) in calls.iter().enumerate() {
        match call.op {
            QueueOp::Enqueue(value) => enqueues.entry(value).or_default().push(at),
            // An answer without a return is not what records say; whatever says it is left to the searches.
            QueueOp::Dequeue(_) | QueueOp::Empty if call.is_open() => return Shortcut::None,
            QueueOp::Dequeue(value) => dequeues.entry(value).or_default().push(at),
            QueueOp::Empty => empties.push(at),
            QueueOp::Take => takes.push_back(at),
        }
    }
    let mut taken: Vec<(&u32, &Vec<usize>)> = dequeues.iter().collect();
    taken.sort_unstable();
    for (&value, out) in taken {
        let into = enqueues.get(&value).map_or(&[][..], Vec::as_slice);
        let culprit = out[out.len() - 1];
        let sentence = match (into, out.as_slice()) {
            ([], _) => format!("{}: nobody enqueued it", told(culprit)),
            (&[into], &[out]) if calls[out].ret < calls[into].call => {
                format!("{} returned before {} was called", told(out), told(into))
            }
            (&[_], &[first, second, ..]) => {
                format!("{} and {}: it was enqueued once", told(first), told(second))
            }
            _ => continue,
        };
        return Shortcut::Refuted { elements: vec![value.into()], sentence, culprit };
    }
    if enqueues.values().any(|into| into.len() > 1) {
        return Shortcut::None;
    }
    let no_takes = takes.is_empty();
    let Some(values) = values(calls, &enqueues, &dequeues, takes) else { return Shortcut::None };
    if let Some((a, b)) = inversion(&values) {
        if a.dequeue.is_none() && !no_takes {
            return Shortcut::None;
        }
        let out_of_b = b.dequeue.unwrap_or(b.enqueue);
        let (first, second) = (told(a.enqueue), told(b.enqueue));
        let sentence = format!(
            "{first} had returned before {second} was called, but {} came while the first was still in the \
                queue",
            told(out_of_b)
        );
        let element = |value: &Value| match calls[value.enqueue].op {
            QueueOp::Enqueue(value) => u64::from(value),
            _ => u64::MAX,
        };
        return Shortcut::Refuted { elements: vec![element(&a), element(&b)], sentence, culprit: out_of_b };
    }
    let order = sorted(&values).and_then(|values| Merge::new(calls, values, empties).run());
    order.map_or(Shortcut::None, Shortcut::Order)
}

/// The values whose enqueue certainly happened, with their intervals.
fn values(
    calls: &[&Call<QueueOp>],
    enqueues: &HashMap<u32, Vec<usize>>,
    dequeues: &HashMap<u32, Vec<usize>>,
    mut takes: VecDeque<usize>,
) -> Option<Vec<Value>> {
    let mut values: Vec<Value> = Vec::new();
    for (value, into) in enqueues {
        let enqueue = *into.first()?;
        let dequeue = dequeues.get(value).and_then(|out| out.first().copied());
        let (entered, left) = (calls[enqueue], dequeue.map(|at| calls[at]));
        if entered.is_open() && dequeue.is_none() {
            continue;
        }
        let returned = left.map_or(NEVER, |left| left.ret);
        values.push(Value {
            enqueue,
            dequeue,
            calls: [entered.call, left.map_or(NEVER, |left| left.call.max(entered.call))],
            returns: [entered.ret.min(returned), returned],
        });
    }
    values.sort_unstable_by_key(|value| value.returns);
    // What stayed although something that went in after it came out must have been taken by somebody who
    // never said so.
    let last = values.iter().filter(|value| value.dequeue.is_some()).map(|value| value.calls[0]).max();
    let mut stuck: Vec<&mut Value> = values.iter_mut().filter(|value| value.dequeue.is_none()).collect();
    stuck.sort_unstable_by_key(|value| value.returns[0]);
    for value in stuck.into_iter().filter(|value| last.is_some_and(|last| value.returns[0] < last)) {
        if let Some(take) = takes.pop_front() {
            value.dequeue = Some(take);
            value.calls[1] = calls[take].call.max(value.calls[0]);
            // Before whatever stays for good.
            value.returns[1] = NEVER - 1;
        }
    }
    Some(values)
}

/// Two values of which the first went in before the second and came out after it.
fn inversion(values: &[Value]) -> Option<(Value, Value)> {
    let mut by_return: Vec<&Value> = values.iter().collect();
    by_return.sort_unstable_by_key(|value| value.returns[0]);
    let mut by_call: Vec<&Value> = values.iter().collect();
    by_call.sort_unstable_by_key(|value| value.calls[0]);
    let mut before = by_return.into_iter().peekable();
    let mut last_out: Option<&Value> = None;
    for b in by_call {
        while let Some(a) = before.next_if(|a| a.returns[0] < b.calls[0]) {
            if last_out.is_none_or(|last| last.calls[1] < a.calls[1]) {
                last_out = Some(a);
            }
        }
        if let Some(a) = last_out.filter(|a| b.returns[1] < a.calls[1]) {
            return Some((*a, *b));
        }
    }
    None
}

/// The values in an order that agrees with both of their intervals, if there is one.
fn sorted(values: &[Value]) -> Option<Vec<Value>> {
    let orders = |key: &dyn Fn(&Value) -> Rank| {
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_by_key(|&at| key(&values[at]));
        order
    };
    let by_call = [0, 1].map(|side| orders(&|value| value.calls[side]));
    let by_return = [0, 1].map(|side| orders(&|value| value.returns[side]));
    let (mut called, mut returned) = ([0; 2], [0; 2]);
    let mut free = vec![0_u8; values.len()];
    let mut gone = vec![false; values.len()];
    let mut ready = BinaryHeap::new();
    let mut sorted = Vec::with_capacity(values.len());
    while sorted.len() < values.len() {
        for side in 0..2 {
            while by_return[side].get(returned[side]).is_some_and(|&at| gone[at]) {
                returned[side] += 1;
            }
            let limit = by_return[side].get(returned[side]).map_or(NEVER, |&at| values[at].returns[side]);
            while let Some(&at) = by_call[side].get(called[side])
                && values[at].calls[side] <= limit
            {
                called[side] += 1;
                free[at] += 1;
                if free[at] == 2 {
                    ready.push(Reverse((values[at].returns, at)));
                }
            }
        }
        let Reverse((_, at)) = ready.pop()?;
        gone[at] = true;
        sorted.push(values[at]);
    }
    Some(sorted)
}

/// Puts enqueues as late and dequeues as early as they may be, so that the queue is empty as often as it can
/// be.
struct Merge<'a> {
    calls: &'a [&'a Call<QueueOp>],
    values: Vec<Value>,
    empties: Vec<usize>,
    /// How many values have gone in, and come out.
    entered: usize,
    left: usize,
    /// Dequeues of nothing that are called and not yet placed.
    waiting: Vec<usize>,
    order: Vec<usize>,
}

impl<'a> Merge<'a> {
    fn new(calls: &'a [&'a Call<QueueOp>], values: Vec<Value>, empties: Vec<usize>) -> Self {
        Self { calls, values, empties, entered: 0, left: 0, waiting: Vec::new(), order: Vec::new() }
    }

    fn run(mut self) -> Option<Vec<usize>> {
        let mut events: Vec<(Rank, Event)> = Vec::new();
        for (at, value) in self.values.iter().enumerate() {
            events.push((self.calls[value.enqueue].ret, Event::Entered(at)));
            if let Some(dequeue) = value.dequeue {
                events.push((self.calls[dequeue].call, Event::Called));
                events.push((self.calls[dequeue].ret, Event::Left(at)));
            }
        }
        for &at in &self.empties {
            events.push((self.calls[at].call, Event::Asked(at)));
            events.push((self.calls[at].ret, Event::FoundNothing(at)));
        }
        events.sort_unstable_by_key(|&(rank, _)| rank);
        for (now, event) in events.into_iter().take_while(|&(rank, _)| rank != NEVER) {
            match event {
                Event::Entered(value) => self.enter(value, now)?,
                Event::Called => {}
                Event::Left(value) => self.enter(value, now)?,
                Event::Asked(at) => self.waiting.push(at),
                Event::FoundNothing(at) if self.waiting.contains(&at) => return None,
                Event::FoundNothing(_) => {}
            }
            self.leave(now);
            if let Event::Left(value) = event
                && self.left <= value
            {
                return None;
            }
        }
        Some(self.order)
    }

    /// All values up to this one go in.
    fn enter(&mut self, value: usize, now: Rank) -> Option<()> {
        while self.entered <= value {
            let enqueue = self.values[self.entered].enqueue;
            if self.calls[enqueue].call > now {
                return None;
            }
            self.order.push(enqueue);
            self.entered += 1;
            self.leave(now);
        }
        Some(())
    }

    /// All values come out that can, and whoever waits to find nothing does.
    fn leave(&mut self, now: Rank) {
        while self.left < self.entered
            && let Some(dequeue) = self.values[self.left].dequeue
            && self.calls[dequeue].call <= now
        {
            self.order.push(dequeue);
            self.left += 1;
        }
        if self.left == self.entered {
            self.order.append(&mut self.waiting);
        }
    }
}

#[derive(Clone, Copy)]
enum Event {
    /// The enqueue of this value returns.
    Entered(usize),
    /// A dequeue is called.
    Called,
    /// The dequeue of this value returns.
    Left(usize),
    /// A dequeue that will find nothing is called.
    Asked(usize),
    /// It returns.
    FoundNothing(usize),
}
