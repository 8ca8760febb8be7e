//! What test commands in the containers found, where those worked on the members (`harness wrap --template`):
//! a result for each kind of command, and one for each assertion.
//!
//! A command's exit status is its word, as it is of a command of the user's own. An execution that was cut
//! short, by a fault that took its container along or for the last command, said nothing. So a command is
//! shown by one execution at least that came to its end.
//!
//! An assertion that was broken is a violation. One that asks to be met and never was (`sometimes`,
//! `reachable`, an `always` that must be reached) is `unknown`: Antithesis counts it as failed, over
//! thousands of histories that are steered towards it. Here there is one history, and what it did not reach
//! accuses nobody. It shows that too little was tried, which is what `unknown` says.

use checker::verdict::{CheckResult, Verdict};
use serde_json::json;

use super::{Case, Check, command};
use crate::assertions::{Asserted, AssertionKind, Property};
use crate::findings::shortened;
use crate::numbers::plural;
use crate::template::{CommandKind, Execution, Tally, TemplateRun, Word};

/// What the one about all commands is called.
pub const NAME: &str = "test-commands";
/// What the one about lines that could not be read is called.
pub const LINES: &str = "assertion-lines";

/// Characters of an assertion's message in the name of its check.
const MOST_MESSAGE: usize = 80;
/// Characters of details in a summary.
const MOST_DETAILS: usize = 300;

/// The check.
pub(super) const CHECK: Check = Check { about: "what test commands found", judge };

fn judge(case: &Case<'_>) -> Vec<CheckResult> {
    if case.run.template.is_none() {
        return Vec::new();
    }
    let Some(ran) = &case.observed.template else {
        let summary = "what the test commands did is not on record";
        return vec![CheckResult::new(NAME, Verdict::Unknown, summary)];
    };
    let mut results = vec![commands(ran)];
    results.extend(CommandKind::ALL.into_iter().filter_map(|kind| of_kind(ran, kind)));
    let span = (ran.from_ns, ran.to_ns);
    results.extend(command::met_faults(case.run, case.faults, span, "the test commands"));
    let mut asserted: Vec<CheckResult> = ran.asserted.properties.iter().map(of_property).collect();
    // What is broken is read first.
    asserted.sort_by_key(|result| std::cmp::Reverse(result.verdict));
    results.extend(asserted);
    results.extend(lines(&ran.asserted));
    results
}

/// Whether the template was tried at all.
fn commands(ran: &TemplateRun) -> CheckResult {
    let works = |tally: &&Tally| tally.command.kind.is_driver() || tally.command.kind == CommandKind::Anytime;
    let started: u64 = ran.commands.iter().map(|tally| tally.started).sum();
    let all = ran.commands.iter().filter(works);
    let shown = all.clone().filter(|tally| tally.succeeded > 0).count();
    let (of, name) = (all.count(), &ran.template);
    let others = match ran.templates.len().saturating_sub(1) {
        0 => String::new(),
        others => format!("; {} had no turn, which other seeds give", plural(wide(others), "other template")),
    };
    let evidence = json!({
        "template": name, "templates": ran.templates, "commands": ran.commands, "ignored": ran.ignored,
    });
    let (verdict, summary) = if shown == 0 {
        let summary = format!("no driver of the template {name} came to its end with exit status 0{others}");
        (Verdict::Unknown, summary)
    } else {
        let runs = plural(started, "execution");
        let summary = format!("{runs} of the template {name}: {shown} of {of} drivers succeeded{others}");
        (Verdict::Valid, summary)
    };
    CheckResult::new(NAME, verdict, summary).with_evidence(evidence)
}

/// What the commands of a kind found; none where the template has none of them.
fn of_kind(ran: &TemplateRun, kind: CommandKind) -> Option<CheckResult> {
    let all: Vec<&Tally> = ran.commands.iter().filter(|tally| tally.command.kind == kind).collect();
    if all.is_empty() {
        return None;
    }
    // As in `test-serial-driver`, of the prefix `serial_driver_`.
    let name = format!("test-{}", kind.prefix().trim_end_matches('_').replace('_', "-"));
    let accused = all.iter().find_map(|tally| tally.first_other.as_ref().filter(|first| accuses(first)));
    let open = all.iter().find_map(|tally| why_open(tally));
    let kept_from = ran.last.as_ref().filter(|last| last.command.kind == kind);
    let kept_from = kept_from.and_then(|last| Some((&last.command.name, last.kept_from.as_ref()?)));
    let (verdict, summary) = match (accused, open, kept_from) {
        (Some(execution), _, _) => (Verdict::Invalid, failure_of(execution)),
        (None, _, Some((command, why))) => (Verdict::Unknown, format!("{command} did not run: {why}")),
        (None, Some(why), None) => (Verdict::Unknown, why),
        (None, None, None) => (Verdict::Valid, in_numbers(&all)),
    };
    Some(CheckResult::new(&name, verdict, summary).with_evidence(json!(all)))
}

/// Whether its exit status says that the system is at fault.
fn accuses(execution: &Execution) -> bool {
    execution.status.is_some_and(|status| Word::of(status).accuses())
}

/// How an execution failed, in one sentence.
fn failure_of(execution: &Execution) -> String {
    let Execution { number, command, status, words, .. } = execution;
    let how = match status.map(Word::of) {
        Some(Word::Crashed(signal)) => format!("crashed ({signal})"),
        _ => format!("failed with exit status {}", status.unwrap_or_default()),
    };
    let words = if words.is_empty() { String::new() } else { format!("; its last words: {words}") };
    format!("{} in {} {how} (execution #{number} in tests.log){words}", command.name, command.container)
}

/// Why nothing is known of a command that was started: it never came to an end of its own.
fn why_open(tally: &Tally) -> Option<String> {
    if tally.started == 0 || tally.succeeded > 0 {
        return None;
    }
    let command = &tally.command;
    let who = format!("{} in {}", command.name, command.container);
    Some(match tally.first_other.as_ref().and_then(|first| first.status).map(Word::of) {
        Some(Word::CantRun(status)) => {
            format!("{who} ended with exit status {status}: a program is not there or can't be run")
        }
        Some(Word::FromOutside(signal)) => {
            format!("signal {signal} ended {who} from outside, and it never came to its end")
        }
        _ if tally.lost > 0 => {
            format!("{who} never came to its end: its container went each time that it ran there")
        }
        _ => format!("{who} was ended with the run, and never came to its end"),
    })
}

/// How the commands of a kind ended.
fn in_numbers(all: &[&Tally]) -> String {
    let sum = |of: fn(&Tally) -> u64| all.iter().map(|tally| of(tally)).sum::<u64>();
    let started = plural(sum(|tally| tally.started), "execution");
    let mut text = format!("{} of {started} succeeded", sum(|tally| tally.succeeded));
    for (number, words) in [
        (sum(|tally| tally.ended), "were ended with the run"),
        (sum(|tally| tally.lost), "went with their container"),
        (sum(|tally| tally.otherwise), "were ended from outside"),
        (wide(all.iter().filter(|tally| tally.started == 0).count()), "of its commands had no turn"),
    ] {
        if number > 0 {
            text.push_str(&format!("; {number} {words}"));
        }
    }
    text
}

fn wide(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

/// What was seen of an assertion.
fn of_property(property: &Property) -> CheckResult {
    let Property { kind, held, did_not, broken, .. } = property;
    let at = if property.place.is_empty() { String::new() } else { format!(" ({})", property.place) };
    let (verdict, summary) = match (broken, kind) {
        (Some(example), kind) => {
            let was = match kind {
                AssertionKind::Unreachable => "was reached",
                _ => "did not hold",
            };
            let details = shortened(&example.details.to_string(), MOST_DETAILS);
            let where_to = format!("in {}, {}", example.container, example.file);
            (Verdict::Invalid, format!("it {was}{at} {where_to}; details: {details}"))
        }
        (None, AssertionKind::Unreachable) => (Verdict::Valid, format!("it was never reached{at}")),
        (None, AssertionKind::AlwaysOrUnreachable) if *held == 0 => {
            (Verdict::Valid, format!("it was never reached{at}, which it need not be"))
        }
        (None, AssertionKind::Sometimes) if *held == 0 && *did_not > 0 => {
            (Verdict::Unknown, format!("it was reached and never held{at}: the run did not get there"))
        }
        (None, _) if *held == 0 => {
            (Verdict::Unknown, format!("it was never reached{at}: the run did not get there"))
        }
        (None, AssertionKind::Reachable) => (Verdict::Valid, format!("it was reached{at}")),
        (None, AssertionKind::Sometimes) => (Verdict::Valid, format!("it held at least once{at}")),
        (None, AssertionKind::Always) => (Verdict::Valid, format!("it held whenever it was reached{at}")),
        (None, AssertionKind::AlwaysOrUnreachable) => {
            (Verdict::Valid, format!("it held whenever it was reached{at}"))
        }
    };
    let name = format!("{}: {}", kind.name(), shortened(&property.message, MOST_MESSAGE));
    CheckResult::new(&name, verdict, summary).with_evidence(json!(property))
}

/// What could not be read, where there is any.
fn lines(asserted: &Asserted) -> Option<CheckResult> {
    let unread = asserted.unread.as_ref().map(|unread| {
        let those = plural(unread.lines, "line");
        format!("{those} could not be read, and may hold a violation; the first: {}", unread.first)
    });
    let summary = asserted.incomplete.clone().or(unread)?;
    Some(CheckResult::new(LINES, Verdict::Unknown, summary).with_evidence(json!(asserted.unread)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assertions::Example;
    use crate::template::{How, Last, TestCommand};

    fn command(name: &str) -> TestCommand {
        let kind = CommandKind::of_name(name).expect("a kind");
        TestCommand { container: "client".to_owned(), name: name.to_owned(), kind }
    }

    fn tally(name: &str, ends: &[(How, Option<i64>)]) -> Tally {
        let mut tally = Tally::of(command(name));
        for (number, (how, status)) in (1..).zip(ends) {
            let (how, status) = (*how, *status);
            let words = "out of luck".to_owned();
            let command = command(name);
            tally.count(&Execution { number, command, from_ns: 0, to_ns: 1, how, status, words });
        }
        tally
    }

    fn ran(commands: Vec<Tally>) -> TemplateRun {
        TemplateRun {
            template: "main".to_owned(),
            templates: vec!["main".to_owned()],
            ignored: Vec::new(),
            from_ns: 0,
            to_ns: 9,
            interrupted: false,
            last: None,
            commands,
            asserted: Asserted::default(),
        }
    }

    const DONE: (How, Option<i64>) = (How::Exited, Some(0));

    #[test]
    fn one_execution_that_fails_convicts_and_those_cut_short_do_not() {
        for (ends, verdict, words) in [
            (&[DONE, (How::Exited, Some(3))][..], Verdict::Invalid, "exit status 3"),
            (&[DONE, (How::Exited, Some(139))], Verdict::Invalid, "SIGSEGV"),
            (&[(How::Exited, Some(137)), (How::Exited, Some(1))], Verdict::Invalid, "#2"),
            (&[DONE, (How::Exited, Some(137)), (How::Lost, None)], Verdict::Valid, "1 went with"),
            (&[DONE, (How::Ended, Some(137))], Verdict::Valid, "1 were ended with"),
            (&[(How::Ended, None)], Verdict::Unknown, "never came to its end"),
            (&[(How::Lost, None)], Verdict::Unknown, "its container went"),
            (&[(How::Exited, Some(127))], Verdict::Unknown, "can't be run"),
            (&[(How::Exited, Some(143))], Verdict::Unknown, "signal 15"),
            (&[], Verdict::Valid, "1 of its commands had no turn"),
        ] {
            let ran = ran(vec![tally("parallel_driver_x", ends)]);
            let found = of_kind(&ran, CommandKind::ParallelDriver).expect("a result");
            assert_eq!(found.verdict, verdict, "{}", found.summary);
            assert!(found.summary.contains(words), "{}", found.summary);
            assert_eq!(of_kind(&ran, CommandKind::Finally), None);
        }
    }

    #[test]
    fn a_template_of_which_no_driver_succeeded_shows_nothing() {
        let tried = |commands| commands_verdict(&ran(commands));
        assert_eq!(tried(vec![tally("first_x", &[DONE])]), Verdict::Unknown);
        assert_eq!(tried(vec![tally("serial_driver_x", &[(How::Ended, None)])]), Verdict::Unknown);
        assert_eq!(tried(vec![tally("anytime_x", &[DONE])]), Verdict::Valid);
    }

    fn commands_verdict(ran: &TemplateRun) -> Verdict {
        commands(ran).verdict
    }

    #[test]
    fn a_last_command_that_could_not_run_leaves_it_open() {
        let mut ran = ran(vec![tally("finally_x", &[])]);
        ran.last = Some(Last { command: command("finally_x"), kept_from: Some("a driver was lost".into()) });
        let found = of_kind(&ran, CommandKind::Finally).expect("a result");
        assert_eq!(found.verdict, Verdict::Unknown, "{}", found.summary);
    }

    fn property(kind: AssertionKind, held: u64, did_not: u64, broken: bool) -> Property {
        let example = || Example { container: "n1".into(), file: "f".into(), details: json!({ "k": 1 }) };
        Property {
            id: "m".to_owned(),
            kind,
            message: "nothing is lost".to_owned(),
            place: "a.go:7".to_owned(),
            held,
            did_not,
            broken: broken.then(example),
        }
    }

    #[test]
    fn what_is_broken_convicts_and_what_was_never_met_is_unknown() {
        use AssertionKind::{Always, AlwaysOrUnreachable, Reachable, Sometimes, Unreachable};
        for (kind, held, did_not, broken, verdict) in [
            (Always, 1, 0, false, Verdict::Valid),
            (Always, 1, 1, true, Verdict::Invalid),
            (Always, 0, 0, false, Verdict::Unknown),
            (AlwaysOrUnreachable, 0, 0, false, Verdict::Valid),
            (AlwaysOrUnreachable, 0, 1, true, Verdict::Invalid),
            (Sometimes, 1, 1, false, Verdict::Valid),
            (Sometimes, 0, 1, false, Verdict::Unknown),
            (Sometimes, 0, 0, false, Verdict::Unknown),
            (Reachable, 1, 0, false, Verdict::Valid),
            (Reachable, 0, 0, false, Verdict::Unknown),
            (Unreachable, 0, 0, false, Verdict::Valid),
            (Unreachable, 0, 1, true, Verdict::Invalid),
        ] {
            let found = of_property(&property(kind, held, did_not, broken));
            assert_eq!(found.verdict, verdict, "{}: {}", found.name, found.summary);
            assert_eq!(found.summary.contains("{\"k\":1}"), broken, "{}", found.summary);
        }
    }
}
