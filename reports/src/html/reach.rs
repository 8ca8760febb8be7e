//! Who reached whom: a matrix for every fault that was probed, one way at a time, and what it says in words.

use super::Input;
use super::lanes::brief_words;
use super::markup::Markup;
use runs::faults::{FaultRecord, Reach};
use runs::findings::shortened;
use runs::numbers::moment;

/// Matrices drawn at most; the rest is in the run folder.
const MOST_MATRICES: usize = 60;
/// Members of a matrix that is put into words at most.
const MOST_MEMBERS: usize = 32;
/// Characters of a matrix's name at most.
const MOST_NAME: usize = 80;

pub(super) fn write(m: &mut Markup, input: &Input<'_>) {
    let probed: Vec<&FaultRecord> = input.faults.iter().filter(|fault| fault.matrix.is_some()).collect();
    if probed.is_empty() {
        return;
    }
    m.el("h3", &[("class", "later")], |m| {
        m.text("Who reached whom ");
        m.leaf("span", &[("class", "quiet")], "row speaks, column hears; probed while the fault held");
    });
    m.el("div", &[("class", "matrices")], |m| {
        let ids: Vec<u64> = input.spans.keys().copied().collect();
        for fault in probed.iter().take(MOST_MATRICES) {
            matrix(m, fault, &ids);
        }
        how_to_read(m, &probed);
    });
    if probed.len() > MOST_MATRICES {
        m.leaf("p", &[("class", "caption")], "The matrices of the other faults are in faults.jsonl.");
    }
    m.line();
}

fn matrix(m: &mut Markup, fault: &FaultRecord, ids: &[u64]) {
    m.el("div", &[("class", "matrix")], |m| {
        let name = format!("{} {}", fault.id, brief_words(fault));
        m.leaf("h3", &[], &shortened(&name, MOST_NAME));
        let during = fault.matrix.as_deref().unwrap_or_default();
        let names = names(during, ids);
        grid(m, during, &names);
        let Tally { cut, late, pairs } = Tally::of(during);
        let mut caption = match (cut, late) {
            (0, 0) => format!("All {pairs} open."),
            (0, late) => format!("{late} of {pairs} late."),
            (cut, 0) => format!("{cut} of {pairs} cut"),
            (cut, late) => format!("{cut} of {pairs} cut, {late} late"),
        };
        if cut > 0 {
            caption
                .push_str(&shape(during, &names).map_or_else(|| ".".to_owned(), |text| format!(": {text}.")));
        }
        let healed = fault.healed_matrix.as_deref().unwrap_or_default();
        let after = Tally::of(healed);
        if after.pairs > 0 && after.cut == 0 {
            caption.push_str(&format!(" All {} open", after.pairs));
            match fault.verified_healed_ns {
                Some(at) => caption.push_str(&format!(" at {}\u{a0}s.", moment(at))),
                None => caption.push_str(" again."),
            }
        }
        m.leaf("p", &[("class", "caption")], &caption);
        if after.cut > 0 {
            let text = format!("After healing {} of {} were still cut:", after.cut, after.pairs);
            m.leaf("p", &[("class", "caption")], &text);
            grid(m, healed, &names);
        }
    });
}

/// Ordered pairs of a matrix, counted.
struct Tally {
    cut: usize,
    late: usize,
    pairs: usize,
}

impl Tally {
    fn of(matrix: &[Vec<Reach>]) -> Self {
        let mut tally = Self { cut: 0, late: 0, pairs: 0 };
        for (i, row) in matrix.iter().enumerate() {
            for (_, reach) in row.iter().enumerate().filter(|(j, _)| i != *j) {
                tally.pairs += 1;
                tally.cut += usize::from(*reach == Reach::NotReached);
                tally.late += usize::from(*reach == Reach::Late);
            }
        }
        tally
    }
}

/// What a matrix with cuts says, where it has a name: one side, one way, a ring, a bridge.
fn shape(matrix: &[Vec<Reach>], names: &[String]) -> Option<String> {
    let n = matrix.len();
    if n > MOST_MEMBERS {
        return None;
    }
    let open = |from: usize, to: usize| matrix[from].get(to).is_none_or(|reach| *reach != Reach::NotReached);
    let others = |member: usize| (0..n).filter(move |other| *other != member);
    let heard = |member: usize| others(member).filter(|&other| open(member, other)).count();
    let hears = |member: usize| others(member).filter(|&other| open(other, member)).count();
    let all = n.checked_sub(1)?;
    let list = |members: &[usize]| members.iter().map(|&at| names[at].as_str()).collect::<Vec<_>>().join(" ");
    let which = |test: &dyn Fn(usize) -> bool| (0..n).filter(|&at| test(at)).collect::<Vec<usize>>();
    if (0..n).all(|at| heard(at) == 0) {
        return Some("nobody reaches anybody".to_owned());
    }
    let deaf = which(&|at| hears(at) == 0 && heard(at) > 0);
    if let [one] = deaf.as_slice() {
        return Some(format!("{} speaks and hears nobody", names[*one]));
    }
    let mute = which(&|at| heard(at) == 0 && hears(at) > 0);
    if let [one] = mute.as_slice() {
        return Some(format!("{} hears and is not heard", names[*one]));
    }
    let mutual = (0..n).all(|at| others(at).all(|other| open(at, other) == open(other, at)));
    if !mutual {
        return Some("not the same both ways".to_owned());
    }
    // The first member with its side, and whether every member's side is the same for all in it.
    let side = |member: usize| which(&|other| other == member || open(member, other));
    let sides: Vec<Vec<usize>> = (0..n).map(side).collect();
    let clean = sides.iter().all(|side| side.iter().all(|&member| sides[member] == *side));
    if clean {
        let mut parts: Vec<&Vec<usize>> = Vec::new();
        for side in &sides {
            if !parts.contains(&side) {
                parts.push(side);
            }
        }
        parts.sort_by_key(|part| part.len());
        let alone: Vec<usize> = parts.iter().filter(|part| part.len() == 1).map(|part| part[0]).collect();
        return match (parts.as_slice(), alone.as_slice()) {
            (_, [one]) if parts.len() == 2 => Some(format!("{} is alone", names[*one])),
            ([small, large], _) => Some(format!("{} apart from {}", list(small), list(large))),
            (_, many) if many.len() + 1 == parts.len() => Some(format!("{} each alone", list(many))),
            (parts, _) => Some(parts.iter().map(|part| list(part)).collect::<Vec<_>>().join(", apart from ")),
        };
    }
    let bridges = which(&|at| heard(at) == all);
    match bridges.as_slice() {
        [] if (0..n).all(|at| heard(at) == 2) => Some("each reaches two others, a ring".to_owned()),
        [one] => Some(format!("{} reaches both sides, which do not reach each other", names[*one])),
        _ => None,
    }
}

/// The members' names in the order of a matrix; their places where the run did not say.
fn names(matrix: &[Vec<Reach>], ids: &[u64]) -> Vec<String> {
    if ids.len() == matrix.len() {
        ids.iter().map(|id| format!("n{id}")).collect()
    } else {
        (1..=matrix.len()).map(|place| format!("n{place}")).collect()
    }
}

fn grid(m: &mut Markup, matrix: &[Vec<Reach>], names: &[String]) {
    let short = |name: &str| name.strip_prefix('n').unwrap_or(name).to_owned();
    m.el("table", &[], |m| {
        m.el("tr", &[], |m| {
            m.leaf("th", &[], "");
            for name in names {
                m.leaf("th", &[("scope", "col")], &short(name));
            }
        });
        for (i, (row, name)) in matrix.iter().zip(names).enumerate() {
            m.el("tr", &[], |m| {
                m.leaf("th", &[("scope", "row")], &short(name));
                for (j, reach) in row.iter().enumerate() {
                    if i == j { m.leaf("td", &[("class", "self")], "") } else { cell(m, *reach) }
                }
            });
        }
    });
}

fn cell(m: &mut Markup, reach: Reach) {
    match reach {
        Reach::Reached => m.leaf("td", &[], "·"),
        Reach::NotReached => m.leaf("td", &[("class", "cut")], "×"),
        Reach::Late => m.leaf("td", &[("class", "late")], ""),
        Reach::Unknown => m.leaf("td", &[("class", "what")], "?"),
    }
}

/// The key, with what occurs.
fn how_to_read(m: &mut Markup, probed: &[&FaultRecord]) {
    let occurs = |reach: Reach| {
        let matrices = probed.iter().flat_map(|fault| [&fault.matrix, &fault.healed_matrix]).flatten();
        matrices.flatten().flatten().any(|found| *found == reach)
    };
    m.el("div", &[("class", "matrix")], |m| {
        m.leaf("h3", &[], "How to read");
        m.el("table", &[], |m| {
            for (reach, text) in [
                (Reach::Reached, "reached"),
                (Reach::NotReached, "not reached"),
                (Reach::Late, "reached late"),
                (Reach::Unknown, "not known"),
            ] {
                if matches!(reach, Reach::Reached | Reach::NotReached) || occurs(reach) {
                    m.el("tr", &[], |m| {
                        cell(m, reach);
                        m.leaf("th", &[("class", "text")], text);
                    });
                }
            }
        });
        let text = "Every ordered pair is probed. Not reached counts only beside a control that was; a cell \
                    that differs from what was asked leaves the fault unverified.";
        m.leaf("p", &[("class", "caption")], text);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(members: usize, cut: &dyn Fn(usize, usize) -> bool) -> Option<String> {
        let cell = |i, j| if i != j && cut(i, j) { Reach::NotReached } else { Reach::Reached };
        let matrix: Vec<Vec<Reach>> =
            (0..members).map(|i| (0..members).map(|j| cell(i, j)).collect()).collect();
        let ids: Vec<u64> = (1..).take(members).collect();
        shape(&matrix, &names(&matrix, &ids))
    }

    #[test]
    fn a_matrix_is_put_into_words() {
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(said(5, &|i, j| i == 4 || j == 4), text("n5 is alone"));
        assert_eq!(said(5, &|i, j| (i < 2) != (j < 2)), text("n1 n2 apart from n3 n4 n5"));
        assert_eq!(said(5, &|_, j| j == 2), text("n3 speaks and hears nobody"));
        assert_eq!(said(5, &|i, _| i == 2), text("n3 hears and is not heard"));
        assert_eq!(said(3, &|_, _| true), text("nobody reaches anybody"));
        let ring = |i: usize, j: usize| (i + 1) % 5 != j && (j + 1) % 5 != i;
        assert_eq!(said(5, &ring), text("each reaches two others, a ring"));
        let bridge = |i: usize, j: usize| i != 2 && j != 2 && (i < 2) != (j < 2);
        assert_eq!(said(5, &bridge), text("n3 reaches both sides, which do not reach each other"));
        assert_eq!(said(5, &|i, j| (i, j) == (0, 1)), text("not the same both ways"));
        assert_eq!(said(5, &|i, j| i > 2 || j > 2), text("n4 n5 each alone"));
        assert_eq!(said(0, &|_, _| true), None);
    }

    #[test]
    fn a_matrix_that_is_not_square_is_no_panic() {
        let names: Vec<String> = (0..3).map(|n| format!("n{n}")).collect();
        let _ = shape(&[vec![Reach::NotReached], vec![], vec![Reach::Reached; 9]], &names);
    }
}
