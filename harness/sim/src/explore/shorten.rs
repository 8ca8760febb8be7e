//! A path that breaks a promise, made as short as leaving things out can make it.
//!
//! The first path that a depth-first search finds wanders. Runs of transitions are left out, long runs first, as long
//! as what remains is a path that breaks the same promise; in the end no single transition can be left out.

use super::search::Broken;

/// The shortest path that leaving out comes to.
pub(super) fn shortest(
    mut broken: Broken,
    replay: impl Fn(&[super::transition::Transition]) -> Option<Broken>,
) -> Broken {
    let mut run = broken.path.len().div_ceil(2);
    while run > 0 {
        let mut shorter = false;
        let mut from = 0;
        while from < broken.path.len() {
            let until = (from + run).min(broken.path.len());
            let mut path = broken.path.clone();
            path.drain(from..until);
            match replay(&path) {
                Some(found) if found.rule == broken.rule && found.path.len() < broken.path.len() => {
                    broken = found;
                    shorter = true;
                }
                _ => from += run,
            }
        }
        if run == 1 && !shorter {
            break;
        }
        run = if run == 1 { 1 } else { run / 2 };
    }
    broken
}
