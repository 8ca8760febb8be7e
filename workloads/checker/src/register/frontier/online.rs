//! The frontier over a history that is still being written.
//!
//! Operations are pushed in the order of their calls, each as soon as it is known how it ended; so whoever
//! feeds it lags behind by the longest operation that is under way (a client's time-out, at most). On top of
//! that the last `lookahead` calls and returns are held back, because what is known of the near future keeps
//! the frontier narrow: a value that is about to be read can't be left. With no lookahead the answers are the
//! same and the work is more. A violation is therefore told `lookahead` events after the return that shows
//! it, and what is held back last is judged by [`Online::finish`].
//!
//! Memory is in proportion to the window, the lookahead, the width of the frontier, and the number of changes
//! of unknown fate that nobody has been seen to need: each of those may still take effect at any time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

use super::super::problem::{Action, NIL, Val, action_of};
use super::core::{Ahead, Core, Need};
use crate::budget::{Exhausted, Meter};
use crate::history::{NEVER, Op, Rank};

/// Words of the window: so many times 64 operations that happened may overlap.
const WORDS: usize = 4;
/// Values that are numbered before those no longer in use are looked for.
const FEW_VALUES: usize = 1 << 12;

/// What is known so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Everything that was judged has an order.
    Order,
    /// Nothing explains the answers up to this operation, which is named by the index of its invocation.
    NoOrder {
        /// The operation that no order can place.
        stuck_at: u64,
    },
}

/// A frontier that is fed.
pub struct Online {
    core: Core<WORDS>,
    coming: Coming,
    /// Calls and returns that are held back: rank, number of the operation.
    events: BinaryHeap<Reverse<(Rank, u32)>>,
    ops: HashMap<u32, Pending>,
    next_op: u32,
    lookahead: usize,
    numbers: HashMap<i64, Val>,
    free_numbers: Vec<Val>,
    sweep_at: usize,
    standing: Standing,
}

struct Pending {
    index: u64,
    action: Action,
    call: Rank,
    ret: Rank,
}

impl Online {
    /// A register that nobody wrote, looked at `lookahead` calls and returns late.
    #[must_use]
    pub fn new(lookahead: usize) -> Self {
        Self {
            core: Core::new(false),
            coming: Coming::default(),
            events: BinaryHeap::new(),
            ops: HashMap::new(),
            next_op: 0,
            lookahead,
            numbers: HashMap::new(),
            free_numbers: Vec::new(),
            sweep_at: FEW_VALUES,
            standing: Standing::Order,
        }
    }

    /// Takes the next operation, by the rank of its call. What says nothing about a register is passed over.
    ///
    /// # Errors
    /// [`Exhausted`] when `meter` has nothing left; then nothing more can be said.
    pub fn push(&mut self, op: &Op, meter: &mut Meter) -> Result<Standing, Exhausted> {
        let (numbers, free) = (&mut self.numbers, &mut self.free_numbers);
        let mut number = |value: Option<i64>| {
            let Some(value) = value else { return NIL };
            let next = Val::try_from(numbers.len() + free.len() + 1).unwrap_or(Val::MAX);
            *numbers.entry(value).or_insert_with(|| free.pop().unwrap_or(next))
        };
        let Some(action) = action_of(op, &mut number) else { return Ok(self.standing) };
        let name = self.next_op;
        self.next_op = self.next_op.wrapping_add(1);
        self.events.push(Reverse((op.call, name)));
        if op.ret != NEVER {
            self.events.push(Reverse((op.ret, name)));
        }
        self.coming.add(action, op.call, op.ret);
        self.ops.insert(name, Pending { index: op.index, action, call: op.call, ret: op.ret });
        if self.numbers.len() >= self.sweep_at {
            self.forget_values();
        }
        self.work(self.lookahead, meter)
    }

    /// Judges what is held back: no more operations come.
    ///
    /// # Errors
    /// As [`Self::push`].
    pub fn finish(&mut self, meter: &mut Meter) -> Result<Standing, Exhausted> {
        self.coming.horizon = NEVER;
        self.work(0, meter)
    }

    /// Configurations held.
    #[must_use]
    pub fn width(&self) -> usize {
        self.core.width()
    }

    fn work(&mut self, hold_back: usize, meter: &mut Meter) -> Result<Standing, Exhausted> {
        while self.standing == Standing::Order && self.events.len() > hold_back {
            let Some(&Reverse((rank, name))) = self.events.peek() else { break };
            // A return may still be preceded by the call of an operation that was not pushed yet.
            if rank > self.coming.horizon {
                break;
            }
            self.events.pop();
            let Some(pending) = self.ops.get(&name) else { continue };
            let &Pending { index, action, call, ret } = pending;
            if rank == call {
                self.coming.has_come(action, ret);
                if ret == NEVER {
                    self.core.call_open(name, action);
                    self.ops.remove(&name);
                } else {
                    self.core.call(name, action, ret)?;
                }
            } else {
                self.ops.remove(&name);
                if !self.core.ret(name, &mut self.coming, meter)? {
                    self.standing = Standing::NoOrder { stuck_at: index };
                }
            }
        }
        Ok(self.standing)
    }

    /// Frees the numbers of values that nothing in memory mentions: who mentions them again can't meet them.
    fn forget_values(&mut self) {
        let mut live = std::collections::HashSet::new();
        self.core.values(|value| {
            live.insert(value);
        });
        for pending in self.ops.values() {
            live.extend(pending.action.written().into_iter().chain(pending.action.mentioned()));
        }
        let free = &mut self.free_numbers;
        self.numbers.retain(|_, &mut value| {
            let is_live = live.contains(&value);
            if !is_live {
                free.push(value);
            }
            is_live
        });
        // The order of a hash map must not decide anything, not even the numbers of values.
        self.free_numbers.sort_unstable();
        self.sweep_at = FEW_VALUES.max(self.numbers.len() * 2);
    }
}

#[derive(Default)]
struct ComingOf {
    /// Returns of what happened and needs the value, by call.
    needs: VecDeque<Rank>,
    /// Calls of what writes it.
    sources: VecDeque<Rank>,
}

/// What is held back, by value.
#[derive(Default)]
struct Coming {
    by_value: HashMap<Val, ComingOf>,
    /// The latest call that was pushed: what is not known is called later.
    horizon: Rank,
}

impl Coming {
    fn add(&mut self, action: Action, call: Rank, ret: Rank) {
        self.horizon = self.horizon.max(call);
        if let Some(value) = action.required().filter(|_| ret != NEVER) {
            self.by_value.entry(value).or_default().needs.push_back(ret);
        }
        if let Some(value) = action.written() {
            self.by_value.entry(value).or_default().sources.push_back(call);
        }
    }

    /// The first of those that do `action` is called now.
    fn has_come(&mut self, action: Action, ret: Rank) {
        let needed = action.required().filter(|_| ret != NEVER);
        for (value, is_need) in
            needed.map(|v| (v, true)).into_iter().chain(action.written().map(|v| (v, false)))
        {
            let Some(of) = self.by_value.get_mut(&value) else { continue };
            if is_need {
                of.needs.pop_front();
            } else {
                of.sources.pop_front();
            }
            if of.needs.is_empty() && of.sources.is_empty() {
                self.by_value.remove(&value);
            }
        }
    }
}

impl Ahead for Coming {
    fn need_of(&mut self, value: Val) -> Option<Need> {
        let ret = *self.by_value.get(&value)?.needs.front()?;
        Some(Need { ret })
    }

    fn next_source(&mut self, value: Val) -> Rank {
        let known = self.by_value.get(&value).and_then(|of| of.sources.front().copied());
        known.unwrap_or(self.horizon)
    }
}
