//! Histories checked while they are read: the same verdicts as from the whole, in bounded memory, and
//! explained.

#[path = "../examples/generate/simulation.rs"]
mod simulation;

use checker::history::{Event, HistoryWriter, load};
use checker::stream::{Answer, Checker, check_reader, explain};
use checker::verdict::Verdict;
use checker::{Budget, linearizable};
use simulation::{Corruption, Options, Simulation};

/// Operations of the long histories here; `CHECKER_STREAM_OPS` asks for more.
fn ops() -> u64 {
    std::env::var("CHECKER_STREAM_OPS").ok().and_then(|text| text.parse().ok()).unwrap_or(20_000)
}

fn bytes(events: impl Iterator<Item = Event>) -> Vec<u8> {
    let mut text = Vec::new();
    for event in events {
        text.extend(serde_json::to_vec(&event).unwrap());
        text.push(b'\n');
    }
    text
}

#[test]
fn memory_does_not_grow_with_the_history() {
    let most = |ops: u64| {
        let mut checker = Checker::new();
        let mut most = 0;
        for (event, at) in
            Simulation::new(Options { ops, conc: 50, cas: 0.1, ..Options::default() }).zip(0_u32..)
        {
            assert_eq!(checker.push(&event), Ok(None));
            if at % 64 == 0 {
                most = most.max(checker.memory_bytes());
            }
        }
        assert_eq!(checker.open(), 0);
        most
    };
    let (short, long) = (most(2_000), most(10 * ops()));
    assert!(long < 2 * short, "{short} bytes for 2,000 operations, {long} for {}", 10 * ops());
}

#[test]
fn a_falsified_answer_is_found_where_it_stands_and_explained_by_few_operations() {
    for seed in 0..10 {
        let corruption = [Corruption::Stale, Corruption::Inversion, Corruption::Phantom]
            [usize::try_from(seed).unwrap() % 3];
        let cas = if seed % 2 == 0 { 0.0 } else { 0.2 };
        let options = Options {
            ops: ops(),
            cas,
            seed,
            info: 0.001,
            corrupt: Some((corruption, 0.5)),
            ..Options::default()
        };
        let mut simulation = Simulation::new(options.clone());
        let mut checker = Checker::new();
        let alarm = simulation.by_ref().find_map(|event| checker.push(&event).unwrap());
        let alarm = alarm.or_else(|| checker.advance(u64::MAX).pop()).expect("an alarm");
        let falsified = simulation.corrupted().unwrap();
        assert!(alarm.at_record >= falsified, "{alarm} but line {falsified} was falsified");
        assert!(alarm.at_record < falsified + 2000, "{alarm} but line {falsified} was falsified");
        let counterexample =
            explain(&alarm, Simulation::new(options), &Budget::default()).expect("an explanation");
        assert!(counterexample.rechecked, "{}", counterexample.sentence);
        assert!(
            counterexample.ops.len() <= 8,
            "{} operations: {}",
            counterexample.ops.len(),
            counterexample.sentence
        );
        assert_eq!(counterexample.of_ops, ops());
    }
}

#[test]
fn several_keys_are_judged_each_by_itself() {
    let options =
        Options { ops: ops(), keys: 7, corrupt: Some((Corruption::Stale, 0.3)), ..Options::default() };
    let text = bytes(Simulation::new(options));
    let checked = check_reader(text.as_slice(), &Budget::default(), 2).unwrap();
    assert_eq!(checked.keys.len(), 7);
    let violations: Vec<u64> = checked
        .keys
        .iter()
        .filter(|key| matches!(key.answer, Answer::Violation(_)))
        .map(|key| key.key)
        .collect();
    assert_eq!(violations, [checked.alarm.unwrap().key]);
    let whole = linearizable::check(&load(text.as_slice()).unwrap().history, &Budget::default());
    assert_eq!(whole.verdict, Verdict::Invalid);
    assert_eq!(whole.summary, format!("not linearizable: key {}", violations[0]));
}

#[test]
fn a_recorded_history_is_complete_only_with_its_trailer() {
    let mut writer = HistoryWriter::new(Vec::new());
    for mut event in Simulation::new(Options { ops: 300, ..Options::default() }) {
        event.node = Some(1);
        writer.write(&mut event).unwrap();
    }
    let whole = writer.finish().unwrap().into_inner;
    for cut in [0, 1, 2, 50, 150, 20_000] {
        let text = &whole[..whole.len() - cut];
        for threads in [1, 2] {
            let checked = check_reader(text, &Budget::default(), threads).unwrap();
            assert_eq!(checked.seal.unwrap().problem, load(text).unwrap().problem, "cut by {cut}");
        }
    }
    let changed = String::from_utf8(whole).unwrap().replacen("\"node\":1", "\"node\":2", 1);
    let checked = check_reader(changed.as_bytes(), &Budget::default(), 2).unwrap();
    assert!(checked.seal.unwrap().problem.unwrap().contains("not those"));
}

#[test]
fn a_malformed_line_is_named_by_its_number_in_any_number_of_threads() {
    let good = bytes(Simulation::new(Options { ops: 6000, ..Options::default() }));
    let mut text = good.clone();
    text.extend(b"{\"process\":1}\n");
    let busy = [good.as_slice(), good.as_slice()].concat();
    for (text, begins) in [(&text, "line 12001: "), (&b"\n".to_vec(), "the history is empty")] {
        for threads in [1, 2] {
            let error = check_reader(text.as_slice(), &Budget::default(), threads).unwrap_err().to_string();
            assert!(error.starts_with(begins), "{error}");
            assert_eq!(error, load(text.as_slice()).unwrap_err().to_string());
        }
    }
    // The same history twice in a file is not one history: time goes back.
    assert!(
        check_reader(busy.as_slice(), &Budget::default(), 2)
            .is_ok_and(|checked| checked.undecided().count() == 1)
    );
}

#[test]
fn what_a_run_reports_does_not_wait_for_more_lines() {
    let line = |index: u64, text: &str| -> Event {
        let mut event: Event = serde_json::from_str(text).unwrap();
        event.index = index;
        event
    };
    let mut checker = Checker::new();
    for (index, text) in [
        r#"{"process":0,"type":"invoke","f":"write","value":1,"time":10}"#,
        r#"{"process":0,"type":"ok","f":"write","value":1,"time":20}"#,
        r#"{"process":1,"type":"invoke","f":"read","time":30}"#,
        r#"{"process":1,"type":"ok","f":"read","value":null,"time":40}"#,
    ]
    .into_iter()
    .enumerate()
    {
        assert_eq!(checker.push(&line(u64::try_from(index).unwrap(), text)), Ok(None));
    }
    assert_eq!(checker.advance(40), []);
    let alarms = checker.advance(41);
    assert_eq!(alarms.len(), 1);
    assert_eq!(alarms[0].contradiction.operations(), [0, 2]);
    assert!(matches!(checker.finish()[0].answer, Answer::Violation(_)));
}
