//! Lines that come late, against the brute-force oracle.
//!
//! Histories are those of [`crate::register::blocks::fuzz`], one process for each operation.

use super::{Answer, Checker};
use crate::chance::Chance;
use crate::history::{Event, EventKind, Function, Value};
use crate::register::blocks::fuzz::{Step, invented, shown, steps};
use crate::register::fuzz::{cases, oracle, random_problem};
use crate::register::problem::{Action, Problem};

/// The lines of a problem's history, one process for each operation; some completions are written late.
fn lines(problem: &Problem, chance: &mut Chance) -> Vec<Event> {
    let mut lines = Vec::new();
    for (position, (when, step, at)) in (0_u32..).zip(steps(problem, chance)) {
        let (kind, late) = match (step, problem.entries[at].action) {
            (Step::Call, _) => (EventKind::Invoke, 0),
            (Step::GiveUp, _) => (EventKind::Info, chance.below(4)),
            (Step::Answer, Action::Refused(_)) => (EventKind::Fail, chance.below(4)),
            (Step::Answer, _) => (EventKind::Ok, chance.below(4)),
        };
        let unique = 1000 + i64::try_from(at).unwrap();
        let (f, value) = match problem.entries[at].action {
            Action::Read(_) if kind == EventKind::Invoke => (Function::READ, Value::Null),
            Action::Read(value) => (Function::READ, shown(value).map_or(Value::Null, Value::One)),
            Action::Write(to) => (Function::WRITE, Value::One(i64::from(to))),
            Action::Cas { from, to } => (Function::CAS, Value::Pair(shown(from), i64::from(to))),
            Action::Refused(from) => (Function::CAS, Value::Pair(shown(from), unique)),
        };
        let line = Event::new(u64::try_from(at).unwrap(), kind, f, 3, value, when);
        lines.push((4 * position + 4 * late, line));
    }
    // Stable: a completion that is written late stands behind later lines, and never before its invocation.
    lines.sort_by_key(|&(place, _)| place);
    let mut lines: Vec<Event> = lines.into_iter().map(|(_, line)| line).collect();
    lines.iter_mut().zip(0..).for_each(|(line, index)| line.index = index);
    lines
}

#[test]
fn lines_that_come_late_are_put_in_the_order_of_time() {
    let (mut late, mut violations) = (0, 0);
    for seed in 0..cases() {
        let problem = if seed % 2 == 0 { random_problem(seed) } else { invented(seed) };
        let truth = oracle(&problem);
        let mut checker = Checker::new();
        let lines = lines(&problem, &mut Chance(seed));
        late += usize::from(lines.windows(2).any(|pair| pair[0].time > pair[1].time));
        for line in &lines {
            checker.push(line).unwrap();
        }
        match checker.finish().pop().map(|key| key.answer) {
            Some(Answer::Violation(alarm)) => {
                violations += 1;
                assert!(!truth, "seed {seed}, {alarm}: {:#?}", problem.entries);
            }
            Some(Answer::Valid) => {
                assert!(truth, "seed {seed}: {:#?}", problem.entries);
            }
            _ => {}
        }
    }
    assert!(late > 1000 && violations > 1000, "{late} {violations}");
}
