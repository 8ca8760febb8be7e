//! Violations as a person gets to see them: a sentence and the operations to draw.

use checker::history::load;
use checker::verdict::{CheckResult, Verdict};
use checker::{Budget, linearizable};

/// One operation per line: process, what, call, return ("-" for never).
fn judge(script: &str) -> CheckResult {
    let mut lines: Vec<(u64, String)> = Vec::new();
    for (process, line) in script.lines().filter(|line| !line.trim().is_empty()).enumerate() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [f, value, outcome, call, ret] = words[..] else { panic!("five words: {line}") };
        let ms = |text: &str| text.parse::<u64>().unwrap() * 1_000_000;
        let event = |kind: &str, value: &str, time: u64| {
            format!(
                r#"{{"process":{process},"type":"{kind}","f":"{f}","key":7,"value":{value},"time":{time}}}"#
            )
        };
        let asked = if f == "read" { "null" } else { value };
        lines.push((ms(call), event("invoke", asked, ms(call))));
        if ret != "-" {
            lines.push((ms(ret), event(outcome, value, ms(ret))));
        }
    }
    lines.sort();
    let text: String = lines.into_iter().map(|(_, line)| line + "\n").collect();
    linearizable::check(&load(text.as_bytes()).unwrap().history, &Budget::default())
}

fn explain(script: &str) -> (String, Vec<usize>) {
    let result = judge(script);
    assert_eq!(result.verdict, Verdict::Invalid, "{}", result.summary);
    let counterexample = result.counterexample.unwrap();
    assert!(counterexample.rechecked, "{}", counterexample.sentence);
    let processes = counterexample.ops.iter().map(|op| usize::try_from(op.process).unwrap()).collect();
    (counterexample.sentence, processes)
}

#[test]
fn a_stale_read_names_the_write_that_replaced_its_value() {
    let (sentence, ops) = explain(
        "write 41    ok 0  1
         write 42    ok 2  3
         write 43    ok 10 11
         read  41    ok 4  5",
    );
    assert_eq!(
        sentence,
        "process 3 read 41 from key 7 (0.0040 s to 0.0050 s), but that value had been replaced: before that \
         process 1 wrote 42 to key 7 (0.0020 s to 0.0030 s), which was invoked only after process 0 wrote \
         41 to key 7 (0.0000 s to 0.0010 s) had returned; no value was written twice"
    );
    assert_eq!(ops, [0, 1, 3]);
}

#[test]
fn a_lost_write_is_shown_by_a_read_of_what_was_before_it() {
    let (sentence, ops) = explain(
        "write 1  ok 0 1
         read  1  ok 2 3
         write 2  ok 4 5
         read  1  ok 6 7",
    );
    assert!(sentence.starts_with("process 3 read 1 "), "{sentence}");
    assert!(ops.contains(&2) && ops.contains(&3) && ops.len() <= 4, "{ops:?}");
}

#[test]
fn a_value_that_nobody_wrote_needs_one_operation() {
    let (sentence, ops) = explain("write 1 ok 0 1\nread 5 ok 2 3");
    assert!(sentence.ends_with("a value that nobody ever wrote"), "{sentence}");
    assert_eq!(ops, [1]);
}

#[test]
fn a_value_read_before_it_was_written_names_the_write() {
    let (sentence, ops) = explain("read 5 ok 0 1\nwrite 5 ok 2 3");
    assert!(sentence.contains("before it was written: process 1 invoked the only write of 5"), "{sentence}");
    assert_eq!(ops, [0, 1]);
}

#[test]
fn two_successful_compare_and_sets_from_one_value_are_shown_together() {
    let (sentence, ops) = explain(
        "write 1     ok 0 1
         cas   [1,2] ok 2 5
         cas   [1,3] ok 2 6
         write 9     ok 7 8",
    );
    assert!(sentence.contains("both replaced the same value"), "{sentence}");
    assert_eq!(ops, [0, 1, 2]);
}

#[test]
fn of_a_counter_the_sentence_says_what_became_of_an_increment() {
    let counted = |script: &str| explain(script).0;
    let lost = counted("write 0 ok 0 1\ncas [0,1] ok 2 3\ncas [0,2] ok 4 5\nread 2 ok 6 7");
    assert!(lost.ends_with("written only once: one of these increments is lost"), "{lost}");
    let doubled = counted("write 0 ok 0 1\ncas [0,3] ok 2 3\nread 6 ok 4 5");
    assert!(doubled.ends_with("nobody ever wrote: an increment was doubled, or invented"), "{doubled}");
    let refused = counted("write 0 ok 0 1\ncas [0,3] fail 2 3\nread 3 ok 4 5");
    assert!(refused.ends_with(": an increment that was refused was made"), "{refused}");
    let stale = counted("write 0 ok 0 1\ncas [0,1] ok 2 3\nread 0 ok 4 5");
    assert!(stale.ends_with(": what was added before that is lost"), "{stale}");
    let no_counter = counted("write 0 ok 0 1\nwrite 9 ok 2 3\ncas [9,3] ok 4 5\nread 6 ok 6 7");
    assert!(no_counter.ends_with("nobody ever wrote"), "{no_counter}");
}

#[test]
fn a_refusal_while_the_value_was_held_throughout_is_a_violation() {
    let (sentence, ops) = explain(
        "write 1     ok   0 1
         cas   [1,2] fail 2 3
         read  1     ok   4 5
         write 8     info 0 -",
    );
    assert!(sentence.contains("although the register held that value throughout"), "{sentence}");
    assert_eq!(ops, [0, 1, 2]);
}

#[test]
fn a_refusal_that_nothing_can_explain_is_a_violation() {
    let (sentence, ops) = explain("write 1 ok 0 1\ncas [1,2] fail 2 3\nwrite 8 ok 6 7");
    assert!(
        sentence.ends_with("in every order that explains the other operation the register holds 1 then"),
        "{sentence}"
    );
    assert_eq!(ops, [0, 1]);
}

#[test]
fn the_beginning_can_not_be_read_once_something_was_written() {
    let (sentence, ops) = explain("write 1 ok 0 1\nread null ok 2 3");
    assert!(sentence.contains("as if nothing had been written"), "{sentence}");
    assert_eq!(ops, [0, 1]);
}

#[test]
fn repeated_values_are_judged_by_search_and_still_shrunk() {
    let (_, ops) = explain(
        "write 1 ok 0  1
         write 2 ok 2  3
         write 1 ok 4  5
         write 2 ok 6  7
         read  1 ok 8  9
         write 3 ok 10 11
         read  3 ok 12 13",
    );
    assert!(ops.contains(&4) && ops.len() <= 5, "{ops:?}");
}

#[test]
fn an_unanswered_write_explains_the_value_that_was_read() {
    assert_eq!(judge("write 1 ok 0 1\nwrite 2 info 2 -\nread 2 ok 8 9").verdict, Verdict::Valid);
    assert_eq!(judge("write 1 ok 0 1\nwrite 2 info 2 -\nread 1 ok 8 9").verdict, Verdict::Valid);
}

#[test]
fn a_search_without_budget_answers_unknown_and_never_valid() {
    let script = "write 1 ok 0 4\nwrite 1 ok 1 5\nwrite 2 ok 2 6\nread 1 ok 7 8";
    let result = judge(script);
    assert_eq!(result.verdict, Verdict::Valid);
    let text = r#"{"process":0,"type":"invoke","f":"write","value":1}
{"process":1,"type":"invoke","f":"write","value":1}
{"process":0,"type":"ok","f":"write","value":1}
{"process":1,"type":"ok","f":"write","value":1}
"#;
    let history = load(text.as_bytes()).unwrap().history;
    let starved = linearizable::check(&history, &Budget::new(1, 1 << 20));
    assert_eq!(starved.verdict, Verdict::Unknown);
    assert!(starved.summary.contains("budget"), "{}", starved.summary);
    // What a search remembers only spares it work.
    let forgetful = linearizable::check(&history, &Budget::new(1000, 0));
    assert_eq!(forgetful.verdict, Verdict::Valid, "{}", forgetful.summary);
}
