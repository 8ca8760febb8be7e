//! Histories from elsewhere: what is read of them, what is refused and by which words, and that nothing
//! panics.

use std::io::{BufReader, Write as _};
use std::path::Path;

use checker::history::{
    Datum, Event, EventKind, Format, Function, HistoryWriter, LoadError, MAX_LINE_BYTES, OpKind, Outcome,
    Record, Value, load, records,
};
use checker::verdict::Verdict;
use proptest::prelude::*;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

/// Every record up to the first error, and that.
fn all(bytes: &[u8]) -> (Vec<Record>, Option<LoadError>) {
    let mut read = Vec::new();
    match records(bytes) {
        Err(error) => return (read, Some(error)),
        Ok(records) => {
            for record in records {
                match record {
                    Ok(record) => read.push(record),
                    Err(error) => return (read, Some(error)),
                }
            }
        }
    }
    (read, None)
}

fn whole(text: &str) -> Vec<Record> {
    let (read, error) = all(text.as_bytes());
    assert!(error.is_none(), "{error:?}");
    read
}

fn error(text: &str) -> String {
    all(text.as_bytes()).1.expect("an error").to_string()
}

fn fixtures() -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/histories");
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| (path.display().to_string(), std::fs::read(path).unwrap())).collect()
}

#[test]
fn every_prefix_of_a_good_file_is_a_prefix_of_its_records_or_an_error() {
    for (name, bytes) in fixtures() {
        let (full, error) = all(&bytes);
        assert!(error.is_none() && !full.is_empty(), "{name}");
        for cut in 0..bytes.len() {
            let (read, _) = all(&bytes[..cut]);
            assert!(full.starts_with(&read), "{name} cut at {cut}");
        }
    }
}

#[test]
fn how_a_reader_hands_out_its_bytes_makes_no_difference() {
    for (name, bytes) in fixtures() {
        let slowly = records(BufReader::with_capacity(1, bytes.as_slice())).unwrap();
        let slowly: Vec<Record> = slowly.collect::<Result<_, _>>().unwrap();
        assert_eq!(slowly, all(&bytes).0, "{name}");
    }
}

#[test]
fn a_format_is_recognised_by_what_is_in_it() {
    for (text, format) in [
        ("\n {\"process\":0,\"type\":\"invoke\",\"f\":\"read\"}\n", Format::JsonLines),
        ("{:process 0 :type :invoke :f :read}", Format::Edn),
        ("[{:process 0 :type :invoke :f :read}]", Format::Edn),
        ("; a comment\n({:process 0 :type :invoke :f :read})", Format::Edn),
        ("#jepsen.history.Op{:process 0, :type :invoke, :f :read}", Format::Edn),
        ("0\t:invoke\t:read\tnil\n", Format::TextLog),
        ("started\nINFO  jepsen.util - 0 :invoke :read nil\n", Format::TextLog),
    ] {
        for bytes in [
            text.as_bytes().to_vec(),
            [b"\xef\xbb\xbf", text.as_bytes()].concat(),
            compress_to_vec(text.as_bytes(), CompressionLevel::Fastest),
        ] {
            let mut records = records(bytes.as_slice()).unwrap();
            assert_eq!(records.format(), format, "{text}");
            let record = records.next().unwrap().unwrap();
            assert_eq!((record.process, &*record.f, record.kind), (0, "read", EventKind::Invoke));
            assert!(records.next().is_none() && records.completeness().extent.is_whole());
        }
    }
}

#[test]
fn what_is_not_read_says_what_it_is() {
    for (bytes, reason) in [
        (&b"[{\"process\":0}]"[..], "an array of JSON is not read here; write one object to a line"),
        (b"\x1f\x8b\x08\x00", "compressed with gzip, which is not read here; unpack it first"),
        (b"\xff\xfe{\0", "the text is UTF-16, not UTF-8"),
        (
            b"a letter\nto a friend\n",
            "this is no history: neither lines of JSON, nor EDN, nor a log with an operation in it",
        ),
    ] {
        let error = all(bytes).1.unwrap();
        assert_eq!(error.to_string(), format!("line 1: {reason}"));
    }
}

#[test]
fn an_empty_history_is_an_error_whatever_is_around_it() {
    for text in ["", "\n \n", "[]", "; nothing\n", "[ #_ {:process 0} ]", "#_ {:a 1} "] {
        assert!(matches!(all(text.as_bytes()).1, Some(LoadError::Empty)), "{text}");
        assert!(matches!(load(text.as_bytes()), Err(LoadError::Empty)), "{text}");
        let compressed = compress_to_vec(text.as_bytes(), CompressionLevel::Fastest);
        assert!(matches!(all(&compressed).1, Some(LoadError::Empty)), "{text}");
    }
}

#[test]
fn a_history_without_an_operation_says_what_is_in_it_instead() {
    let nobody = "{:process :nemesis, :type :info, :f :start}\n";
    for (text, found) in [
        (nobody.to_owned(), "its only record is no client's"),
        (nobody.repeat(3), "none of its 3 records is a client's"),
        ("\0\0\0".to_owned(), "line 1, the last, has no end: it may be cut short"),
        ("{:process 0, :type :invoke".to_owned(), "line 1: the last element is cut short"),
        ("[".to_owned(), "the list is not closed: the end of the history may be lost"),
    ] {
        let expected = format!("nothing in it was read as an operation: {found}");
        assert_eq!(all(text.as_bytes()).1.map(|error| error.to_string()), Some(expected.clone()), "{text:?}");
        assert_eq!(
            load(text.as_bytes()).map(drop).map_err(|error| error.to_string()),
            Err(expected),
            "{text:?}"
        );
    }
}

#[test]
fn clients_by_name_are_clients_in_every_format() {
    let json = r#"{"process":"worker-1","type":"invoke","f":"read","value":null}
{"process":"worker-1","type":"ok","f":"read","value":7}
{"process":"nemesis","type":"info","f":"start","value":null}
{"process":"worker-2","type":"invoke","f":"read","value":null}
{"process":"worker-2","type":"ok","f":"read","value":7}
"#;
    let edn = "{:process :worker-1 :type :invoke :f :read :value nil} \
{:process :worker-1 :type :ok :f :read :value 7}
{:process :nemesis :type :info :f :start :value nil}
{:process :worker-2 :type :invoke :f :read :value nil} {:process :worker-2 :type :ok :f :read :value 7}";
    let log = "worker-1 :invoke :read nil\nworker-1 :ok :read 7\n:nemesis :info :start nil\n\
               worker-2 :invoke :read nil\nworker-2 :ok :read 7\n";
    for text in [json, edn, log] {
        let loaded = load(text.as_bytes()).unwrap();
        let processes: Vec<u64> = loaded.history.ops().iter().map(|op| op.process).collect();
        assert_eq!((processes, loaded.skipped), (vec![0, 1], 1), "{text}");
        assert_eq!(loaded.renamed, [("worker-1".to_owned(), 0), ("worker-2".to_owned(), 1)]);
        let (read, error) = all(text.as_bytes());
        assert!(error.is_none() && read.len() == 4, "{text}: {error:?}");
    }
}

#[test]
fn a_process_that_is_no_natural_number_is_named_with_its_line() {
    for number in ["1.5", "18446744073709551616", "1e-3"] {
        let text = format!(
            "{{\"process\":0,\"type\":\"invoke\",\"f\":\"read\"}}\n\
             {{\"process\":{number},\"type\":\"invoke\",\"f\":\"read\"}}\n"
        );
        for error in [all(text.as_bytes()).1.unwrap(), load(text.as_bytes()).unwrap_err()] {
            let error = error.to_string();
            assert!(error.starts_with("line 2: ") && error.contains("is neither"), "{error}");
        }
    }
    let edn = "{:process 99999999999999999999999N :type :invoke :f :read}";
    assert!(all(edn.as_bytes()).1.unwrap().to_string().contains("is neither"));
}

#[test]
fn a_field_that_stands_twice_is_named_with_its_line() {
    let twice = r#"{"process":1,"process":2,"type":"invoke","f":"read","value":null}"#;
    let nested = r#"{"process":1,"type":"invoke","f":"txn","value":{"a":1,"a":2}}"#;
    for (text, reason) in [
        (twice, "line 1: the field process stands twice"),
        (nested, "line 1: the key a stands twice in a map"),
        ("{:process 1 :process 2 :type :invoke :f :read}", "line 1: the field process stands twice"),
    ] {
        let text = format!("{text}\n");
        let error = all(text.as_bytes()).1.unwrap().to_string();
        assert!(error.starts_with(reason), "{error}");
        assert!(load(text.as_bytes()).is_err());
    }
}

#[test]
fn a_malformed_line_is_named_by_its_number_with_the_reason() {
    let edn = "[{:process 0 :type :invoke :f :read}\n; a comment\n";
    let log = "junk\n0 :invoke :read nil\n";
    for (text, message) in [
        (
            format!("{edn} {{:process 0\n :type :maybe}}]"),
            "line 4: maybe is none of invoke, ok, fail and info",
        ),
        (format!("{edn} {{:process 0 :type :ok}}]"), "line 3: the field f is missing"),
        (
            format!("{edn} {{:process 0 :type :ok :f :read :value\n [1 }}}}]"),
            "line 4: a form can't begin with '}'",
        ),
        (format!("{edn} 17]"), "line 3: an operation is a map"),
        (format!("{edn} {{:process 0 :type :ok :f :read :time -1}}]"), "line 3: a time is not negative"),
        (format!("{edn}]\n{{:process 0}}"), "line 4: something follows the end of the list"),
        (format!("{edn})"), "line 3: ')' closes nothing"),
        (format!("{log}0 :ok :read\n"), "line 3: the value is missing"),
        (format!("{log}0 :ok :read [1\n"), "line 3: the value: the end comes before the ]"),
    ] {
        assert_eq!(error(&text), message, "{text}");
    }
}

#[test]
fn a_completion_without_invocation_is_named_by_its_line() {
    let text = "[{:process 0 :type :invoke :f :read}\n{:process 1 :type :ok :f :read :value 1}]";
    assert_eq!(
        load(text.as_bytes()).unwrap_err().to_string(),
        "line 2: process 1 completes an operation that it did not invoke"
    );
}

#[test]
fn what_a_register_has_not_is_named_by_its_line() {
    for (value, f, message) in [
        ("1", "dequeue", "line 2: a dequeue can not have this value"),
        ("\"x\"", "write", "line 2: the value x has no integer, pair or list of integers in it"),
        ("1.5", "write", "line 2: the value 1.5 has no integer, pair or list of integers in it"),
    ] {
        let text = format!("[\n{{:process 0 :type :invoke :f :{f} :value {value}}}]");
        assert_eq!(load(text.as_bytes()).unwrap_err().to_string(), message);
    }
}

#[test]
fn a_word_that_no_check_knows_stays_what_it_is() {
    let text = "[\n{:process 0 :type :invoke :f :increment :value 1}]";
    let history = load(text.as_bytes()).unwrap().history;
    let op = &history.ops()[0];
    assert_eq!((op.f.as_str(), op.kind(), op.is_change()), ("increment", OpKind::Other, true));
}

#[test]
fn who_is_no_client_is_skipped_and_counted() {
    for (name, skipped) in [
        ("valid-read-of-an-open-write.edn", 2),
        ("valid-open-write-read-late.log", 3),
        ("valid-from-elsewhere.jsonl", 1),
    ] {
        let (_, bytes) = fixtures().into_iter().find(|(path, _)| path.ends_with(name)).unwrap();
        let mut records = records(bytes.as_slice()).unwrap();
        assert!(!records.completeness().extent.is_whole(), "it was not read yet");
        let events = u64::try_from(records.by_ref().count()).unwrap();
        let known = records.completeness();
        assert!(known.extent.is_whole() && known.plain, "{name}: {known:?}");
        assert_eq!((known.events, known.skipped), (events, skipped), "{name}");
    }
}

#[test]
fn a_history_that_is_cut_short_shows_violations_only() {
    for (text, problem) in [
        (
            "[{:process 0 :type :invoke :f :read}",
            "the list is not closed: the end of the history may be lost",
        ),
        ("{:process 0 :type :invoke :f :read}\n{:process 0 :ty", "line 2: the last element is cut short"),
        ("0 :invoke :read nil\n0 :ok :read 1", "line 2, the last, has no end: it may be cut short"),
        ("{\"process\":0,\"type\":\"invoke\",\"f\":\"read\"}\n{\"pro", "line 2, the last, is cut short"),
    ] {
        let mut records = records(text.as_bytes()).unwrap();
        assert_eq!(records.by_ref().filter_map(Result::ok).count(), 1, "{text}");
        let known = records.completeness();
        assert_eq!(known.problem.as_deref(), Some(problem));
        assert_eq!(known.extent.limit(Verdict::Valid), Verdict::Unknown);
        assert_eq!(known.extent.limit(Verdict::Invalid), Verdict::Invalid);
        assert_eq!(load(text.as_bytes()).unwrap().problem.as_deref(), Some(problem));
    }
}

#[test]
fn one_element_is_in_memory_and_no_more_than_fits_a_line() {
    let long = "x".repeat(MAX_LINE_BYTES);
    let edn = format!("[\n{{:process 0 :type :invoke :f :write :value \"{long}\"}}]");
    assert_eq!(error(&edn), format!("line 2: an element is longer than {MAX_LINE_BYTES} bytes"));
    let log = format!("\n0 :invoke :write \"{long}\"\n");
    assert_eq!(error(&log), format!("line 2: longer than {MAX_LINE_BYTES} bytes"));
}

#[test]
fn keys_errors_and_further_fields_are_kept() {
    let text = "{:process 3, :type :fail, :f :append, :key \"k\", :value \"a\", :error [:net {:code 7}], \
                 :node \"n1\",
                 :time 12, :at #inst \"2026-03-01\"}";
    let [record] = &whole(text)[..] else { panic!("one record") };
    assert_eq!((record.key.as_text(), record.value.as_text(), record.time), (Some("k"), Some("a"), Some(12)));
    assert_eq!(record.error.as_deref(), Some("[net {code 7}]"));
    assert_eq!(record.extra.get("node").and_then(Datum::as_text), Some("n1"));
    assert_eq!(record.extra.get("at").and_then(Datum::as_text), Some("2026-03-01"));
}

#[test]
fn a_keyword_in_the_place_of_a_lost_answer_is_the_error() {
    let edn = "{:process 0 :type :invoke :f :read}{:process 0 :type :fail :f :read :value :timed-out}";
    let log = "0 :invoke :read nil\n0 :fail :read :timed-out\n";
    for text in [edn, log] {
        let read = &whole(text)[1];
        assert_eq!((read.error.as_deref(), &read.value), (Some("timed-out"), &Datum::Nil));
    }
}

/// The fate of a failed compare-and-set of 1 to 2, as `line` has it after its invocation.
fn is_refusal(line: &str) -> bool {
    let (invocation, completion) = match line.as_bytes()[0] {
        b'{' if line.starts_with("{\"") => {
            ("{\"process\":0,\"type\":\"invoke\",\"f\":\"cas\",\"value\":[1,2]}", line)
        }
        b'{' => ("{:process 0 :type :invoke :f :cas :value [1 2]}", line),
        _ => ("0 :invoke :cas [1 2]", line),
    };
    let history = load(format!("{invocation}\n{completion}\n").as_bytes()).unwrap().history;
    assert_eq!(history.ops()[0].kind(), OpKind::Cas { from: Some(1), to: 2 });
    assert_eq!(history.ops()[0].outcome, Outcome::Fail);
    history.ops()[0].is_refused_cas()
}

#[test]
fn a_failed_cas_is_an_observation_only_where_its_source_says_so() {
    for (line, refusal) in [
        ("{\"process\":0,\"type\":\"fail\",\"f\":\"cas\",\"value\":[1,2]}", true),
        ("{\"process\":0,\"type\":\"fail\",\"f\":\"cas\",\"value\":[1,2],\"error\":\"bad-version\"}", true),
        ("{\"process\":0,\"type\":\"fail\",\"f\":\"cas\",\"value\":[1,2],\"error\":\"no-node\"}", false),
        ("0 :fail :cas [1 2]", true),
        ("0 :fail :cas [1 2] :bad-version", false),
        ("0 :fail :cas :timed-out", false),
        ("{:process 0 :type :fail :f :cas :value [1 2]}", false),
        ("{:process 0 :type :fail :f :cas :value [1 2] :error nil}", false),
        ("{:process 0 :type :fail :f :cas :value [1 2] :error :bad-version}", false),
    ] {
        assert_eq!(is_refusal(line), refusal, "{line}");
    }
}

#[test]
fn a_process_that_goes_on_after_an_unknown_fate_leaves_its_operation_open() {
    let text = "0 :invoke :write 1\n0 :info :write :timed-out\n0 :invoke :read nil\n0 :ok :read nil\n";
    let history = load(text.as_bytes()).unwrap().history;
    assert!(history.ops()[0].is_open_change());
    assert_eq!(history.ops()[1].outcome, Outcome::Ok);
}

#[test]
fn sets_and_lists_are_read_from_edn_too() {
    let text = "[{:process 0 :type :invoke :f :add :value 3} {:process 0 :type :ok :f :add :value 3}
                 {:process 0 :type :invoke :f :read :value nil} \
                 {:process 0 :type :ok :f :read :value #{1 3 2}}]";
    let history = load(text.as_bytes()).unwrap().history;
    assert_eq!(history.ops()[1].list().map(|list| &list[..]), Some(&[1, 3, 2][..]));
}

fn recorded() -> Vec<u8> {
    let mut writer = HistoryWriter::new(Vec::new());
    for (kind, time) in [(EventKind::Invoke, 10), (EventKind::Ok, 20)] {
        let mut event = Event::new(7, kind, Function::WRITE, 2, Value::One(5), time);
        event.session = Some(u64::MAX);
        event.zxid = Some(0x1_0000_0002);
        event.due = Some(9);
        writer.write(&mut event).unwrap();
    }
    writer.finish().unwrap().into_inner
}

#[test]
fn a_history_of_ours_is_complete_with_its_trailer_only_compressed_or_not() {
    let ours = recorded();
    let compressed = compress_to_vec(ours.as_slice(), CompressionLevel::Fastest);
    for bytes in [&ours, &compressed] {
        let mut records = records(bytes.as_slice()).unwrap();
        let read: Vec<Record> = records.by_ref().collect::<Result<_, _>>().unwrap();
        let known = records.completeness();
        assert!(known.extent.is_whole() && !known.plain, "{known:?}");
        assert_eq!((read[1].session, read[1].zxid), (Some(u64::MAX), Some(0x1_0000_0002)));
        assert_eq!((&read[1].key, read[1].line, read[1].index), (&Datum::Int(2), 2, 1));
        assert_eq!(read[1].extra, Datum::Nil);
        let loaded = load(bytes.as_slice()).unwrap();
        assert!(loaded.extent.is_whole() && !loaded.plain);
        assert_eq!(loaded.history.ops()[0].session, Some(u64::MAX));
    }
    let changed = String::from_utf8(ours).unwrap().replace("\"time\":20", "\"time\":21");
    let mut records = records(changed.as_bytes()).unwrap();
    assert_eq!(records.by_ref().count(), 2);
    assert!(records.completeness().problem.unwrap().contains("not those"));
}

#[test]
fn a_damaged_compressed_history_is_an_error_and_no_shorter_one() {
    let mut lines = Vec::new();
    for n in 0..5000 {
        writeln!(lines, "{{:process {n}, :type :invoke, :f :write, :value {}}}", n * n % 977).unwrap();
    }
    let whole = compress_to_vec(lines.as_slice(), CompressionLevel::Fastest);
    let error = load(&whole[..whole.len() / 2]).unwrap_err();
    assert_eq!(error.to_string(), "read the history: zstd frame 1 is cut short");
    assert_eq!(load(whole.as_slice()).unwrap().history.ops().len(), 5000);
}

proptest! {
    #[test]
    fn any_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = all(&bytes);
        let _ = load(bytes.as_slice());
    }

    #[test]
    fn a_good_file_with_bytes_changed_never_panics(
        which in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..3), 1..8),
    ) {
        let fixtures = fixtures();
        let mut bytes = fixtures[which.index(fixtures.len())].1.clone();
        for (at, byte, how) in changes {
            let at = at.index(bytes.len());
            match how {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                _ => drop(bytes.remove(at)),
            }
        }
        let _ = all(&bytes);
        let _ = load(bytes.as_slice());
    }
}
