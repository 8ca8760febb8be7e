//! A counterexample as text: lanes for the eye, and a line for each operation.
//!
//! One lane for each process and one step for each call and answer; only their order is drawn, as on the
//! page. A step is as wide as the words in it ask for, so that a few operations fit a terminal; where they
//! don't, the lines alone are printed.

use std::collections::BTreeMap;

use checker::history::Outcome;
use checker::verdict::{Counterexample, OpView};

use runs::numbers::{NS_PER_MS, count, moment};

/// Operations that are written at most; results as JSON have them all.
const MOST_OPS: usize = 40;
/// What stands around the words of an operation: `├ ` and ` ┤`.
const FRAME: usize = 4;
/// Room between two events, at least.
const GAP: usize = 2;
/// Room before the first lane.
const INDENT: &str = "  ";

/// Whether the history says when things happened, or in which order only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    /// Nanoseconds since the start.
    Time,
    /// The number of the event among all.
    Order,
}

/// The lanes, if they fit into `columns`, and the lines.
pub fn render(found: &Counterexample, axis: Axis, columns: usize) -> String {
    let ops: Vec<&OpView> = found.ops.iter().take(MOST_OPS).collect();
    let mut text = lanes(&ops, columns).unwrap_or_default();
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(&lines(&ops, axis));
    if found.ops.len() > ops.len() {
        text.push_str(&format!("{INDENT}and {} more\n", found.ops.len() - ops.len()));
    }
    text
}

/// The words in an operation's bar.
fn words(op: &OpView) -> String {
    let call = crate::terminal::printable(&op.call);
    match (op.impossible, op.outcome) {
        (true, _) => format!("{call} ✗"),
        (false, Outcome::Fail) => format!("{call} failed"),
        (false, Outcome::Ok | Outcome::Info) => call,
    }
}

/// One row for each process, or none where they do not fit.
fn lanes(ops: &[&OpView], columns: usize) -> Option<String> {
    let mut moments: Vec<u64> =
        ops.iter().flat_map(|op| [Some(op.invoke_ns), op.complete_ns]).flatten().collect();
    moments.sort_unstable();
    moments.dedup();
    let step = |at: u64| moments.partition_point(|moment| *moment < at);
    // The last place is where the bars of what was never answered end.
    let mut place = vec![0; moments.len() + 1];
    for at in 1..place.len() {
        let needed = ops
            .iter()
            .filter(|op| op.complete_ns.map_or(moments.len(), step) == at)
            .map(|op| place[step(op.invoke_ns)] + words(op).chars().count() + FRAME)
            .max();
        place[at] = needed.unwrap_or(0).max(place[at - 1] + GAP);
    }
    let names: Vec<String> = ops.iter().map(|op| format!("p{}", op.process)).collect();
    let name_width = names.iter().map(String::len).max()?;
    if INDENT.len() + name_width + GAP + place.last()? > columns {
        return None;
    }
    let mut processes: Vec<u64> = Vec::new();
    let mut by_process: BTreeMap<u64, Vec<&OpView>> = BTreeMap::new();
    for op in ops {
        if !processes.contains(&op.process) {
            processes.push(op.process);
        }
        by_process.entry(op.process).or_default().push(op);
    }
    let mut text = String::new();
    for process in processes {
        let name = format!("p{process}");
        let mut row = format!("{INDENT}{name:name_width$}  ");
        let start = row.chars().count();
        for op in &by_process[&process] {
            let from = place[step(op.invoke_ns)];
            let to = place[op.complete_ns.map_or(moments.len(), step)];
            let drawn = row.chars().count() - start;
            if drawn > from {
                // A process with two operations at once: the second has a row of its own.
                text.push_str(row.trim_end());
                row = format!("\n{}", " ".repeat(start));
                row.push_str(&" ".repeat(from));
            } else {
                row.push_str(&" ".repeat(from - drawn));
            }
            row.push_str(&bar(op, to - from));
        }
        text.push_str(row.trim_end());
        text.push('\n');
    }
    Some(text)
}

/// `├─ write k0 = 1 ─┤`, open to the right where no answer came.
fn bar(op: &OpView, width: usize) -> String {
    let words = words(op);
    let spare = width.saturating_sub(words.chars().count() + FRAME);
    let left = spare / 2;
    match op.complete_ns {
        Some(_) => format!("├{} {words} {}┤", "─".repeat(left), "─".repeat(spare - left)),
        None => format!("├{} {words} {}", "─".repeat(left), "┄".repeat(spare - left + 1)),
    }
}

/// The same in words: process, call, from when to when, and how it ended.
fn lines(ops: &[&OpView], axis: Axis) -> String {
    let stamps = Stamps::of(ops, axis);
    let rows: Vec<[String; 4]> = ops
        .iter()
        .map(|op| {
            let until = op.complete_ns.map_or_else(|| "…".to_owned(), |at| stamps.text(at));
            let unit = if axis == Axis::Time { " s" } else { "" };
            let when = format!("{} – {until}{unit}", stamps.text(op.invoke_ns));
            [
                format!("p{}", op.process),
                words(op),
                when,
                format!("{}, record {}", answer(op), count(op.index + 1)),
            ]
        })
        .collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let (process, call, when) = (width(0), width(1), width(2));
    rows.iter()
        .map(|row| format!("{INDENT}{:process$}  {:call$}  {:>when$}  {}\n", row[0], row[1], row[2], row[3]))
        .collect()
}

/// What became of an operation, who answered, and at which version.
pub(crate) fn answer(op: &OpView) -> String {
    let mut text = match (op.impossible, op.outcome) {
        (true, _) => "cannot be".to_owned(),
        (false, Outcome::Ok) => "ok".to_owned(),
        (false, Outcome::Fail) => "did not happen".to_owned(),
        (false, Outcome::Info) => "never answered".to_owned(),
    };
    if let Some(node) = op.node {
        text.push_str(&format!(", n{node}"));
    }
    if let Some(version) = op.version {
        text.push_str(&format!(", version {version}"));
    }
    text
}

/// Moments as text, with as many decimals as it takes to tell neighbours apart.
struct Stamps {
    axis: Axis,
    closest: u64,
}

impl Stamps {
    fn of(ops: &[&OpView], axis: Axis) -> Self {
        let mut all: Vec<u64> =
            ops.iter().flat_map(|op| [Some(op.invoke_ns), op.complete_ns]).flatten().collect();
        all.sort_unstable();
        all.dedup();
        let closest = all.windows(2).map(|pair| pair[1] - pair[0]).min().unwrap_or(u64::MAX);
        Self { axis, closest }
    }

    fn text(&self, at: u64) -> String {
        if self.axis == Axis::Order {
            return format!("event {}", count(at + 1));
        }
        let (whole, rest) = (count(at / (1000 * NS_PER_MS)), at % (1000 * NS_PER_MS));
        match self.closest {
            0..1000 => format!("{whole}.{rest:09}"),
            1000..NS_PER_MS => format!("{whole}.{:06}", rest / 1000),
            _ => moment(at),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use checker::history::Datum;

    fn op(process: u64, call: &str, from: u64, to: Option<u64>) -> OpView {
        OpView {
            index: from,
            process,
            f: "read".to_owned(),
            key: Datum::Nil,
            value: Datum::Nil,
            call: call.to_owned(),
            changes: call.starts_with("write"),
            invoke_ns: from * NS_PER_MS,
            complete_ns: to.map(|to| to * NS_PER_MS),
            outcome: if to.is_some() { Outcome::Ok } else { Outcome::Info },
            node: None,
            session: None,
            version: None,
            impossible: false,
        }
    }

    fn story() -> Counterexample {
        let mut stale = op(3, "read k0 → 1", 9, Some(12));
        stale.impossible = true;
        let ops = vec![
            op(0, "write k0 = 1", 1, Some(4)),
            op(1, "write k0 = 2", 5, Some(8)),
            op(2, "write k0 = 3", 6, None),
            stale,
        ];
        Counterexample { sentence: "a read was stale".to_owned(), ops, of_ops: 40, rechecked: true }
    }

    #[test]
    fn lanes_keep_the_order_of_calls_and_answers_and_leave_the_unanswered_open() {
        let text = render(&story(), Axis::Time, 100);
        let expected = "  p0  ├ write k0 = 1 ┤
  p1                    ├ write k0 = 2 ┤
  p2                      ├───────── write k0 = 3 ┄┄┄┄┄┄┄┄┄┄┄
  p3                                      ├ read k0 → 1 ✗ ┤

  p0  write k0 = 1   0.001 – 0.004 s  ok, record 2
  p1  write k0 = 2   0.005 – 0.008 s  ok, record 6
  p2  write k0 = 3       0.006 – … s  never answered, record 7
  p3  read k0 → 1 ✗  0.009 – 0.012 s  cannot be, record 10
";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_narrow_terminal_gets_the_lines_alone() {
        let text = render(&story(), Axis::Time, 40);
        assert!(!text.contains('├') && text.contains("p3  read k0 → 1 ✗"), "{text}");
    }

    #[test]
    fn without_stamps_events_are_counted() {
        let mut found = story();
        for op in &mut found.ops {
            op.invoke_ns /= NS_PER_MS;
            op.complete_ns = op.complete_ns.map(|at| at / NS_PER_MS);
        }
        assert!(render(&found, Axis::Order, 100).contains("event 10 – event 13  cannot be"));
    }

    #[test]
    fn what_a_terminal_would_obey_is_replaced() {
        let mut found = story();
        found.ops[0].call = "write \u{1b}[2J".to_owned();
        assert!(!render(&found, Axis::Time, 100).contains('\u{1b}'));
    }
}
