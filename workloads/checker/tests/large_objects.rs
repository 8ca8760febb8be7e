//! Histories of many operations on locks, queues, sets and maps, made by a simulated object: how the general
//! searches fare. `CHECKER_LARGE_OPS` asks for more operations than the usual number; the times are printed.

use std::collections::{BTreeSet, VecDeque};
use std::time::Instant;

use checker::Budget;
use checker::chance::Chance;
use checker::history::{Datum, EventKind, LoadError, Record};
use checker::model::counter::Counter;
use checker::model::keyed::Keyed;
use checker::model::kv::Kv;
use checker::model::mutex::Mutex;
use checker::model::queue::Queue;
use checker::model::register::Register;
use checker::model::set::Set;
use checker::model::{Model, pair};
use checker::search;
use checker::verdict::{Counterexample, Verdict};

fn ops() -> usize {
    std::env::var("CHECKER_LARGE_OPS").ok().and_then(|text| text.parse().ok()).unwrap_or(2_000)
}

/// What was asked: the name, the key, the argument.
type Asked = (&'static str, Datum, Datum);

/// A history of `ops()` operations by ten processes. `ask` draws a question, `answer` lets it take effect;
/// none means that the process has to wait.
fn history(
    mut ask: impl FnMut(&mut Chance, i64) -> Asked,
    mut answer: impl FnMut(&Asked) -> Option<Datum>,
    open_per_mille: u64,
) -> Vec<Record> {
    let mut chance = Chance(0x2545_f491_4f6c_dd1d);
    let mut records: Vec<Record> = Vec::new();
    let mut running: Vec<Option<(u64, Asked, Option<Datum>)>> = vec![None; 10];
    let (mut asked, mut processes) = (0, 10);
    let mut push = |process: u64, kind: EventKind, (f, key, _): &Asked, value: Datum| {
        let index = u64::try_from(records.len()).unwrap();
        records.push(Record { line: index + 1, index, ..Record::new(process, kind, f, key.clone(), value) });
    };
    let mut names: Vec<u64> = (0..10).collect();
    let mut idle_turns = 0;
    while idle_turns < 10_000 {
        let at = chance.below(10_usize);
        idle_turns += 1;
        match running[at].take() {
            None if asked < ops() => {
                let question = ask(&mut chance, i64::try_from(asked).unwrap());
                asked += 1;
                push(names[at], EventKind::Invoke, &question, question.2.clone());
                running[at] = Some((names[at], question, None));
                idle_turns = 0;
            }
            None => {}
            Some((process, question, None)) => match answer(&question) {
                Some(_) if chance.below(1000) < open_per_mille => {
                    push(process, EventKind::Info, &question, Datum::Nil);
                    names[at] = processes;
                    processes += 1;
                }
                answered => running[at] = Some((process, question, answered)),
            },
            Some((process, question, Some(answered))) => {
                push(process, EventKind::Ok, &question, answered);
                idle_turns = 0;
            }
        }
    }
    records
}

fn judge<M: Model + Sync>(what: &str, model: &M, records: &[Record]) -> (Verdict, Option<Counterexample>)
where
    M::Op: Send + Sync,
{
    let began = Instant::now();
    let calls = pair(model, records.iter().cloned().map(Ok::<_, LoadError>)).unwrap();
    let paired = began.elapsed();
    let began = Instant::now();
    let judged = search::judge(model, &calls, &Budget::default(), 1, true);
    let by = judged.result.decided_by.as_deref().unwrap_or("nobody");
    println!(
        "{what}, {} operations: {} by {by} in {:?} (paired in {paired:?})",
        calls.len(),
        judged.result.verdict,
        began.elapsed()
    );
    if judged.result.verdict != Verdict::Valid {
        println!("    {}", judged.result.summary);
    }
    if let Some(counterexample) = &judged.result.counterexample {
        println!("    {} operations: {}", counterexample.ops.len(), counterexample.sentence);
        for op in &counterexample.ops {
            println!("        {} by process {}, line {}, {:?}", op.call, op.process, op.index, op.outcome);
        }
    }
    (judged.result.verdict, judged.result.counterexample)
}

fn queue(open_per_mille: u64, enqueue_percent: u64) -> Vec<Record> {
    let mut queue = VecDeque::new();
    history(
        |chance, n| match chance.below(100) < enqueue_percent {
            true => ("enqueue", Datum::Nil, Datum::Int(n)),
            false => ("dequeue", Datum::Nil, Datum::Nil),
        },
        move |(f, _, value)| {
            Some(match *f {
                "enqueue" => {
                    queue.push_back(value.clone());
                    value.clone()
                }
                _ => queue.pop_front().unwrap_or_default(),
            })
        },
        open_per_mille,
    )
}

#[test]
fn a_queue_of_values_that_differ_is_judged_without_a_search() {
    for (what, open, enqueue) in [("short", 0, 50), ("long", 0, 60), ("with open operations", 2, 55)] {
        let (verdict, _) = judge(&format!("queue, {what}"), &Queue::default(), &queue(open, enqueue));
        assert_eq!(verdict, Verdict::Valid, "{what}");
    }
}

#[test]
fn a_queue_that_gives_a_value_twice_or_out_of_order_is_told_by_a_few_operations() {
    let records = queue(0, 60);
    let out: Vec<usize> = (records.len() / 2..records.len())
        .filter(|&at| {
            &*records[at].f == "dequeue" && records[at].kind == EventKind::Ok && !records[at].value.is_nil()
        })
        .take(40)
        .collect();
    let (first, last) = (out[0], out[out.len() - 1]);
    let mut swapped = records.clone();
    (swapped[first].value, swapped[last].value) = (records[last].value.clone(), records[first].value.clone());
    let mut twice = records.clone();
    twice[last].value = records[first].value.clone();
    for (what, records) in [("out of order", swapped), ("twice", twice)] {
        let (verdict, counterexample) = judge(&format!("queue, {what}"), &Queue::default(), &records);
        let counterexample = counterexample.unwrap();
        assert_eq!(verdict, Verdict::Invalid);
        assert!(counterexample.rechecked && counterexample.ops.len() <= 8, "{}", counterexample.sentence);
    }
}

fn mutex() -> Vec<Record> {
    let (mut held, mut balance) = (false, 0_u64);
    history(
        // Never more releases than acquisitions, and never so many of these that everybody waits.
        |chance, _| match chance.below(10) < 2 * balance {
            true => {
                balance -= 1;
                ("release", Datum::Nil, Datum::Nil)
            }
            false => {
                balance += 1;
                ("acquire", Datum::Nil, Datum::Nil)
            }
        },
        move |(f, ..)| {
            let wanted = *f == "acquire";
            (held != wanted).then(|| {
                held = wanted;
                Datum::Nil
            })
        },
        0,
    )
}

#[test]
fn a_lock_is_judged_and_a_second_holder_is_told_by_a_few_operations() {
    let records = mutex();
    assert_eq!(judge("mutex", &Mutex, &records).0, Verdict::Valid);
    let mut broken = records.clone();
    let middle = broken.len() / 2;
    // As many acquisitions more as there are processes: not all can be explained by releases that are
    // pending.
    let more = (0..40).flat_map(|n| [(n, EventKind::Invoke), (n, EventKind::Ok)]);
    let more = more.map(|(n, kind)| Record::new(1_000_000 + n, kind, "acquire", Datum::Nil, Datum::Nil));
    broken.splice(middle..middle, more);
    broken.iter_mut().zip(0..).for_each(|(record, index)| record.index = index);
    let (verdict, counterexample) = judge("mutex, held twice", &Mutex, &broken);
    assert_eq!(verdict, Verdict::Invalid);
    let counterexample = counterexample.unwrap();
    assert!(counterexample.rechecked && counterexample.ops.len() <= 24, "{}", counterexample.sentence);
}

fn set(elements: u64, with_reads: bool) -> Vec<Record> {
    let mut set = BTreeSet::new();
    history(
        |chance, n| {
            let element = Datum::Int(i64::try_from(chance.below(elements)).unwrap());
            match chance.below(if with_reads { 101 } else { 100 }) {
                0..45 => ("add", Datum::Nil, if elements > 1000 { Datum::Int(n) } else { element }),
                45..60 => ("remove", Datum::Nil, element),
                60..100 => ("contains", Datum::Nil, element),
                _ => ("read", Datum::Nil, Datum::Nil),
            }
        },
        move |(f, _, value)| {
            Some(match *f {
                "add" => {
                    set.insert(value.clone());
                    value.clone()
                }
                "remove" => {
                    set.remove(value);
                    value.clone()
                }
                "contains" => Datum::Bool(set.contains(value)),
                _ => Datum::List(set.iter().cloned().collect()),
            })
        },
        1,
    )
}

#[test]
fn a_set_is_judged_by_element_and_as_a_whole() {
    let elements = u64::try_from(ops()).unwrap();
    assert_eq!(judge("set by element", &Set::default(), &set(elements, false)).0, Verdict::Valid);
    assert_eq!(judge("set, few elements", &Set::default(), &set(20, false)).0, Verdict::Valid);
    assert_eq!(
        judge("set with reads of all", &Set::default(), &set(elements.max(1001), true)).0,
        Verdict::Valid
    );
}

#[test]
fn a_counter_is_judged_and_a_sum_that_cannot_be_is_told_by_a_few_operations() {
    let mut sum = 0;
    let records = history(
        |chance, _| match chance.below(2) {
            0 => ("read", Datum::Nil, Datum::Nil),
            _ => ("add", Datum::Nil, Datum::Int(1 + chance.below(5_i64))),
        },
        move |(f, _, value)| {
            if *f == "add" {
                sum += value.as_int().unwrap();
                return Some(value.clone());
            }
            Some(Datum::Int(sum))
        },
        2,
    );
    assert_eq!(judge("counter", &Counter, &records).0, Verdict::Valid);
    let mut broken = records;
    let middle = broken.len() / 2;
    let read =
        broken[middle..].iter_mut().find(|record| &*record.f == "read" && record.kind == EventKind::Ok);
    let read = read.unwrap();
    // What nobody answered may be added until the end: more than all of that.
    read.value = Datum::Int(read.value.as_int().unwrap() + 1_000_000);
    let (verdict, counterexample) = judge("counter, too much", &Counter, &broken);
    assert_eq!(verdict, Verdict::Invalid);
    let counterexample = counterexample.unwrap();
    assert!(counterexample.rechecked && counterexample.ops.len() <= 24, "{}", counterexample.sentence);
}

/// Many append to one key at once, time and again, and then somebody reads this.
fn appended(rounds: usize, at_once: usize, read: impl Fn(String) -> String) -> Vec<Record> {
    let mut records: Vec<Record> = Vec::new();
    let mut note = |process: usize, kind, f, value: Datum| {
        let process = u64::try_from(process).unwrap();
        records.push(Record::new(process, kind, f, Datum::text("a"), value));
    };
    let mut text = String::new();
    for round in 0..rounds {
        let ends: Vec<String> = (0..at_once).map(|process| format!("{round}.{process} ")).collect();
        ends.iter()
            .zip(0..)
            .for_each(|(end, process)| note(process, EventKind::Invoke, "append", Datum::text(end)));
        ends.iter()
            .zip(0..)
            .for_each(|(end, process)| note(process, EventKind::Ok, "append", Datum::text(end)));
        // Not in the order of the returns.
        ends.iter().rev().for_each(|end| text.push_str(end));
    }
    note(0, EventKind::Invoke, "get", Datum::Nil);
    note(0, EventKind::Ok, "get", Datum::text(&read(text)));
    records.iter_mut().zip(0..).for_each(|(record, index)| (record.index, record.line) = (index, index + 1));
    records
}

#[test]
fn appends_at_once_are_put_in_the_order_that_is_read_or_in_none() {
    let (rounds, at_once) = (ops() / 100, 10);
    let right = appended(rounds, at_once, |text| text);
    assert_eq!(judge("appends at once", &Keyed::new(Kv::default()), &right).0, Verdict::Valid);
    // Two rounds that change places: all permutations of ten, of which none is right.
    let wrong =
        appended(rounds, at_once, |text| text.replace("3.", "x.").replace("4.", "3.").replace("x.", "4."));
    assert_eq!(
        judge("appends at once, out of order", &Keyed::new(Kv::default()), &wrong).0,
        Verdict::Invalid
    );
}

#[test]
fn a_map_and_a_register_are_judged() {
    let mut map = std::collections::BTreeMap::new();
    let records = history(
        |chance, n| {
            let key = Datum::Int(chance.below(10_i64));
            match chance.below(3) {
                0 => ("get", key, Datum::Nil),
                1 if chance.below(20) == 0 => ("put", key, Datum::text("")),
                _ => ("append", key, Datum::text(&format!("{n},"))),
            }
        },
        move |(f, key, value)| {
            let text: &mut String = map.entry(key.clone()).or_default();
            Some(match *f {
                "get" => Datum::text(text),
                "put" => {
                    text.clear();
                    value.clone()
                }
                _ => {
                    text.push_str(value.as_text().unwrap_or_default());
                    value.clone()
                }
            })
        },
        1,
    );
    assert_eq!(judge("kv", &Keyed::new(Kv::default()), &records).0, Verdict::Valid);
    let mut held = Datum::Nil;
    let records = history(
        |chance, n| match chance.below(10) {
            0..5 => ("read", Datum::Nil, Datum::Nil),
            _ => ("write", Datum::Nil, Datum::Int(n)),
        },
        move |(f, _, value)| {
            if *f == "write" {
                held = value.clone();
            }
            Some(held.clone())
        },
        0,
    );
    assert_eq!(judge("register", &Register::default(), &records).0, Verdict::Valid);
}
