//! Everything that can happen, breadth first: so the first counterexample is a shortest one.
//!
//! A state is known by a number of 64 bits; that two share one by chance is less likely than one in a million
//! for a million states.

use std::collections::{HashMap, VecDeque};

/// A state, from which others are reached by events.
pub trait State: Clone {
    /// What can happen.
    type Event: Clone;
    /// What must not be.
    type Broken;

    /// A number that equal states share.
    fn fingerprint(&self) -> u64;
    /// What can happen now.
    fn events(&self) -> Vec<Self::Event>;
    /// It happens.
    fn apply(&mut self, event: &Self::Event);
    /// What is broken.
    fn broken(&self) -> Option<Self::Broken>;
    /// The same state let end well, where that is to be looked at too: what never happens shows only there.
    fn ended(&self) -> Option<Self> {
        None
    }
}

/// What was found.
#[derive(Clone, Debug)]
pub struct Explored<E, B> {
    /// How many states there were.
    pub states: usize,
    /// How many of them were let end well.
    pub settled: usize,
    /// Whether no state was left to look at.
    pub whole: bool,
    /// What was broken first, and a shortest way to it.
    pub broken: Option<(B, Vec<E>)>,
}

/// By which event a state was reached, and from which one.
type Before<E> = HashMap<u64, Option<(u64, E)>>;

/// Looks at up to so many states.
pub fn explore<S: State>(first: S, most: usize) -> Explored<S::Event, S::Broken> {
    let number = first.fingerprint();
    let mut before: Before<S::Event> = HashMap::from([(number, None)]);
    let mut open = VecDeque::from([(number, first)]);
    let mut explored = Explored { states: 1, settled: 0, whole: false, broken: None };
    while let Some((number, state)) = open.pop_front() {
        if let Some(ended) = state.ended() {
            explored.settled += 1;
            if let Some(broken) = ended.broken() {
                explored.broken = Some((broken, path(&before, number)));
                return explored;
            }
        }
        for event in state.events() {
            let mut next = state.clone();
            next.apply(&event);
            if let Some(broken) = next.broken() {
                let mut events = path(&before, number);
                events.push(event);
                explored.broken = Some((broken, events));
                return explored;
            }
            let reached = next.fingerprint();
            if before.contains_key(&reached) {
                continue;
            }
            if explored.states >= most {
                return explored;
            }
            before.insert(reached, Some((number, event)));
            explored.states += 1;
            open.push_back((reached, next));
        }
    }
    explored.whole = true;
    explored
}

fn path<E: Clone>(before: &Before<E>, mut number: u64) -> Vec<E> {
    let mut events = Vec::new();
    while let Some(Some((earlier, event))) = before.get(&number) {
        events.push(event.clone());
        number = *earlier;
    }
    events.reverse();
    events
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts up by one or doubles, up to a bound, and must never be this.
    #[derive(Clone)]
    struct Count(u64, u64);

    impl State for Count {
        type Event = char;
        type Broken = u64;

        fn fingerprint(&self) -> u64 {
            self.0
        }

        fn events(&self) -> Vec<char> {
            if self.0 < 40 { vec!['+', '*'] } else { Vec::new() }
        }

        fn apply(&mut self, event: &char) {
            self.0 = if *event == '+' { self.0 + 1 } else { self.0 * 2 };
        }

        fn broken(&self) -> Option<u64> {
            (self.0 == self.1).then_some(self.0)
        }
    }

    #[test]
    fn the_first_way_that_is_found_is_a_shortest_one() {
        let found = explore(Count(1, 12), 1_000).broken.expect("it is reached");
        assert_eq!(found.1.len(), 4, "{:?}", found.1);
        let whole = explore(Count(1, 99), 1_000);
        assert!(whole.whole && whole.broken.is_none());
        let part = explore(Count(1, 99), 5);
        assert_eq!((part.whole, part.states), (false, 5));
    }
}
