//! Lines that belong together though they do not stand together: the ticks of a member, the votes from one to
//! another, what a client does.
//!
//! Chunks of neighbours are not enough: an election that nobody needs is spread over the lines of all
//! members, and none of its lines can be spared alone.

use std::collections::BTreeMap;

use super::Script;
use super::lines::{Line, Transition};
use super::parties::{client_of, hosts_of};
use super::shrinker::{Shrinker, with_lines};

/// Lines apart that two lines may be to be tried together.
const WINDOW: usize = 12;

/// Parts of groups whose pairs are tried at most.
const MAX_PARTS: usize = 90;

/// What lines of a group have in common.
fn key(transition: &Transition) -> (u8, usize, usize) {
    let hosts = hosts_of(transition);
    let (one, other) = (hosts[0].unwrap_or(99), hosts[1].unwrap_or(99));
    match transition {
        Transition::Tick { .. } => (0, one, 0),
        Transition::Vote { .. } => (1, one, other),
        Transition::Packet { .. } => (2, one, other),
        Transition::Meets { .. } | Transition::Misses { .. } => (3, one, other),
        Transition::Stored { .. } | Transition::Wrote { .. } | Transition::Told { .. } => (4, one, 0),
        Transition::Disk { .. } | Transition::DiskFails { .. } | Transition::Rots { .. } => (10, one, 0),
        Transition::Start { .. } | Transition::Crash { .. } => (5, one, 0),
        Transition::Connects { .. } | Transition::HangsUp { .. } | Transition::Cut { .. } => {
            (6, client_of(transition).unwrap_or(99), 0)
        }
        _ => match client_of(transition) {
            Some(client) => (7, client, 0),
            None => (8, one, other),
        },
    }
}

/// The members that only a transition's receiver counts for: who acts by it.
fn actor(transition: &Transition) -> Option<usize> {
    match transition {
        Transition::Vote { to, .. } | Transition::Packet { to, .. } => Some(*to),
        _ => hosts_of(transition)[0],
    }
}

/// Groups, whole and in parts, larger ones first.
fn parts(script: &Script, smallest: usize) -> Vec<Vec<usize>> {
    let mut groups: BTreeMap<(u8, usize, usize), Vec<usize>> = BTreeMap::new();
    for (index, line) in script.lines.iter().enumerate() {
        groups.entry(key(&line.transition)).or_default().push(index);
        if let Some(host) = actor(&line.transition) {
            groups.entry((9, host, 0)).or_default().push(index);
        }
    }
    let mut parts: Vec<Vec<usize>> = Vec::new();
    for group in groups.into_values() {
        let mut size = group.len();
        while size >= smallest.max(1) {
            parts.extend(group.chunks(size).map(<[usize]>::to_vec));
            size /= 2;
        }
    }
    parts.sort_by_key(|part| std::cmp::Reverse(part.len()));
    parts
}

fn without(script: &Script, spared: &[&[usize]]) -> Script {
    let stays = |index: &usize| !spared.iter().any(|part| part.binary_search(index).is_ok());
    let kept = (0..script.lines.len()).filter(stays).map(|index| script.lines[index].clone()).collect();
    with_lines(script, kept)
}

/// Each part of each group.
pub(super) fn without_groups(shrinker: &mut Shrinker) {
    let mut groups = parts(&shrinker.best, 2);
    let mut place = 0;
    while place < groups.len() && !shrinker.is_spent() {
        if shrinker.tries(without(&shrinker.best, &[&groups[place]])) {
            // Others have other lines now; those before this place were tried, more or less.
            groups = parts(&shrinker.best, 2);
        } else {
            place += 1;
        }
    }
}

/// Two parts of groups at once. True when something was found.
pub(super) fn without_two_groups(shrinker: &mut Shrinker) -> bool {
    let mut parts = parts(&shrinker.best, 2);
    parts.truncate(MAX_PARTS);
    for (index, one) in parts.iter().enumerate() {
        for other in &parts[..index] {
            if shrinker.is_spent() {
                return false;
            }
            if shrinker.tries(without(&shrinker.best, &[one, other])) {
                return true;
            }
        }
    }
    false
}

/// Two lines at once that stand close together. True when something was found.
pub(super) fn without_two_lines(shrinker: &mut Shrinker) -> bool {
    let mut found = false;
    let mut index = shrinker.best.lines.len();
    while index > 0 {
        index -= 1;
        for other in index + 1..shrinker.best.lines.len().min(index + WINDOW) {
            if shrinker.is_spent() {
                return found;
            }
            if shrinker.tries(without(&shrinker.best, &[&[index], &[other]])) {
                found = true;
                break;
            }
        }
        index = index.min(shrinker.best.lines.len());
    }
    found
}

/// Merges each line of a member's ticks with the next one: `s1 tick x2` and `s1 tick x3` give `s1 tick x5`.
/// It takes the later line's place, or the earlier one's, where the script still fails so.
pub(super) fn merge_ticks(shrinker: &mut Shrinker) {
    let tick = |line: &Line| match line.transition {
        Transition::Tick { host, times } => Some((host, times)),
        _ => None,
    };
    let mut index = 0;
    while index < shrinker.best.lines.len() && !shrinker.is_spent() {
        let lines = &shrinker.best.lines;
        let next = tick(&lines[index]).and_then(|(host, times)| {
            let behind =
                lines[index + 1..].iter().position(|line| tick(line).is_some_and(|(h, _)| h == host))?;
            let other = index + 1 + behind;
            let (_, more) = tick(&lines[other])?;
            Some((other, Transition::Tick { host, times: times.saturating_add(more) }))
        });
        let Some((other, merged)) = next else {
            index += 1;
            continue;
        };
        let mut later = lines.clone();
        later[other].transition = merged.clone();
        later.remove(index);
        let mut earlier = lines.clone();
        earlier[index].transition = merged;
        earlier.remove(other);
        let later = with_lines(&shrinker.best, later);
        let earlier = with_lines(&shrinker.best, earlier);
        if !shrinker.tries(later) && !shrinker.tries(earlier) {
            index += 1;
        }
    }
}
