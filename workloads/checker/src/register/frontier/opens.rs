//! Changes of unknown fate that have been called, in classes: those that do the same are interchangeable,
//! none has a return, and the one that was called first goes first.

use std::collections::{HashMap, VecDeque};

use super::super::problem::{Action, Val, index};
use super::sets::{ClassId, SetId, Sets};

struct Class {
    action: Action,
    /// Names of those that some configuration has not used, by call.
    ops: VecDeque<u32>,
}

#[derive(Default)]
pub(super) struct Opens {
    classes: Vec<Class>,
    numbers: HashMap<Action, ClassId>,
    /// Numbers of classes that are over, for use again.
    free: Vec<ClassId>,
    /// Classes that have members.
    live: Vec<ClassId>,
    members: usize,
}

/// Bytes of a member and of a class, tables included.
const MEMBER_BYTES: usize = 8;
const CLASS_BYTES: usize = 96;

impl Opens {
    pub(super) fn add(&mut self, op: u32, action: Action) {
        let class = match self.numbers.get(&action) {
            Some(&known) => known,
            None => self.new_class(action),
        };
        let ops = &mut self.classes[index(class)].ops;
        if ops.is_empty() {
            self.live.push(class);
        }
        ops.push_back(op);
        self.members += 1;
    }

    fn new_class(&mut self, action: Action) -> ClassId {
        let class = Class { action, ops: VecDeque::new() };
        let number = match self.free.pop() {
            Some(free) => {
                self.classes[index(free)] = class;
                free
            }
            None => {
                self.classes.push(class);
                ClassId::try_from(self.classes.len() - 1).unwrap_or(ClassId::MAX)
            }
        };
        self.numbers.insert(action, number);
        number
    }

    pub(super) fn bytes(&self) -> usize {
        self.members * MEMBER_BYTES + self.classes.len() * CLASS_BYTES
    }

    pub(super) fn live(&self) -> usize {
        self.live.len()
    }

    pub(super) fn nth_live(&self, nth: usize) -> (ClassId, Action) {
        let class = self.live[nth];
        (class, self.classes[index(class)].action)
    }

    pub(super) fn class_of(&self, action: Action) -> Option<ClassId> {
        self.numbers.get(&action).copied()
    }

    /// The member that a configuration which has used `used` would use next.
    pub(super) fn next_member(&self, class: ClassId, used: SetId, sets: &Sets) -> Option<u32> {
        self.classes[index(class)].ops.get(sets.count(used, class)).copied()
    }

    /// Whether something that a configuration with `used` has not used writes `value`.
    pub(super) fn can_write(&self, value: Val, used: SetId, sets: &Sets) -> bool {
        self.live.iter().any(|&class| {
            let Class { action, ops } = &self.classes[index(class)];
            action.written() == Some(value) && sets.count(used, class) < ops.len()
        })
    }

    /// Every configuration has used these: they are over.
    pub(super) fn release(&mut self, classes: &[ClassId]) {
        for &class in classes {
            let Class { action, ops } = &mut self.classes[index(class)];
            self.members -= usize::from(ops.pop_front().is_some());
            if ops.is_empty() {
                self.live.retain(|&live| live != class);
                // No configuration names it any more: those that used a member have been released from it.
                self.numbers.remove(action);
                self.free.push(class);
            }
        }
    }
}
