//! A path that breaks a promise, made as short as leaving things out can make it.
//!
//! The first path that a depth-first search finds wanders. Runs of transitions are left out, long runs first,
//! then any two, as long as what remains is a path that breaks the same promise. In the end no transition and
//! no two (a crash and its restart, say) can be left out.

use super::transition::Transition;
use crate::outcome::Rule;

/// Paths longer than this are not tried without any two of their transitions: that takes the square of their
/// length.
const MAX_FOR_PAIRS: usize = 150;

/// A way from a start to a state that breaks a promise.
#[derive(Clone, Debug)]
pub(super) struct Broken {
    pub(super) rule: Rule,
    pub(super) sentence: String,
    pub(super) path: Vec<Transition>,
}

/// The shortest path that leaving out comes to.
pub(super) fn shortest(mut broken: Broken, replay: impl Fn(&[Transition]) -> Option<Broken>) -> Broken {
    loop {
        let before = broken.path.len();
        without_runs(&mut broken, &replay);
        if broken.path.len() <= MAX_FOR_PAIRS {
            without_pairs(&mut broken, &replay);
        }
        if broken.path.len() == before {
            return broken;
        }
    }
}

/// Takes over a path if it breaks the same promise sooner.
fn improve(
    broken: &mut Broken,
    path: &[Transition],
    replay: &impl Fn(&[Transition]) -> Option<Broken>,
) -> bool {
    match replay(path) {
        Some(found) if found.rule == broken.rule && found.path.len() < broken.path.len() => {
            *broken = found;
            true
        }
        _ => false,
    }
}

fn without_runs(broken: &mut Broken, replay: &impl Fn(&[Transition]) -> Option<Broken>) {
    let mut run = broken.path.len().div_ceil(2);
    while run > 0 {
        let mut from = 0;
        while from < broken.path.len() {
            let mut path = broken.path.clone();
            path.drain(from..(from + run).min(broken.path.len()));
            if !improve(broken, &path, replay) {
                from += run;
            }
        }
        run /= 2;
    }
}

fn without_pairs(broken: &mut Broken, replay: &impl Fn(&[Transition]) -> Option<Broken>) {
    let mut first = 0;
    while first < broken.path.len() {
        let mut second = first + 1;
        while second < broken.path.len() {
            let mut path = broken.path.clone();
            path.remove(second);
            path.remove(first);
            if !improve(broken, &path, replay) {
                second += 1;
            }
        }
        first += 1;
    }
}
