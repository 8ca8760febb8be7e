//! `harness check` as a new user meets it: a history from elsewhere, every flag, every refusal, every line.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_harness"));
    command.args(arguments).current_dir(folder);
    command
}

fn harness(folder: &Path, arguments: &[&str]) -> Output {
    command(folder, arguments).output().expect("the harness starts")
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What differs from one look to the next is replaced.
fn lines(output: &Output) -> String {
    let numbers = |line: &str| -> String {
        let mut text = String::new();
        for c in line.chars() {
            match c {
                '0'..='9' | '.' | ',' if text.ends_with('N') => {}
                '0'..='9' => text.push('N'),
                c => text.push(c),
            }
        }
        text.replace("N s", "N ms")
    };
    let replaced = |line: &str| if line.starts_with("time ") { numbers(line) } else { line.to_owned() };
    stdout(output).lines().map(|line| format!("{}\n", replaced(line))).collect()
}

fn refused(folder: &Path, arguments: &[&str], advice: &str) {
    let output = harness(folder, arguments);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(254), "{arguments:?}: {message}");
    assert!(message.contains(advice), "{arguments:?}: {message}");
    assert!(output.stdout.is_empty(), "{arguments:?} printed a result");
}

/// Somebody writes 1 and then 2; who reads afterwards sees 2, or 1.
fn registers(seen: i64) -> String {
    format!(
        "{{:process 0, :type :invoke, :f :write, :value 1, :time 1000000}}
{{:process 0, :type :ok, :f :write, :value 1, :time 2000000}}
{{:process 1, :type :invoke, :f :cas, :value [1 2], :time 3000000}}
{{:process 1, :type :ok, :f :cas, :value [1 2], :time 5000000}}
{{:process 2, :type :invoke, :f :write, :value 3, :time 4000000}}
{{:process 2, :type :info, :f :write, :value 3, :time 4500000}}
{{:process 0, :type :invoke, :f :read, :value nil, :time 6000000}}
{{:process 0, :type :ok, :f :read, :value {seen}, :time 7000000}}
"
    )
}

fn folder_with(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).expect("written");
    }
    folder
}

#[test]
fn a_valid_history_from_elsewhere_ends_in_these_lines() {
    let folder = folder_with(&[("history.edn", &registers(2))]);
    let output = harness(folder.path(), &["check", "--model", "cas-register", "history.edn"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(
        lines(&output),
        "✓ VALID  history.edn as cas-register: linearizable
model       cas-register
condition   linearizable
operations  4 by 3 processes: 3 ok, 0 failed, 1 of unknown fate; 8 records in EDN
found       4 operations on 1 key are linearizable
decided by  near-linear
time        N ms: N ms to read, N ms to judge; N MiB of memory at most
"
    );
}

#[test]
fn a_violation_is_told_drawn_and_listed() {
    let folder = folder_with(&[("history.edn", &registers(1))]);
    let output = harness(folder.path(), &["check", "history.edn"]);
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(
        lines(&output),
        "✗ VIOLATION  history.edn as cas-register: not linearizable
Process 0 read 1 from key 0 (0.0060 s to 0.0070 s) must have come before process 1 replaced 1 by 2
in key 0 (0.0030 s to 0.0050 s) in the order of values, but was invoked at 0.0060 s, after that one
had returned at 0.0050 s.
linearizable: 3 of 4 operations, judged again by themselves:

  p0  ├ write k0 = 1 ┤                    ├ read k0 → 1 ✗ ┤
  p1                    ├ cas k0 1 → 2 ┤

  p0  write k0 = 1   0.001 – 0.002 s  ok, record 1
  p1  cas k0 1 → 2   0.003 – 0.005 s  ok, record 3
  p0  read k0 → 1 ✗  0.006 – 0.007 s  cannot be, record 7

model       cas-register, guessed from cas, read, write; --model names another
condition   linearizable
operations  4 by 3 processes: 3 ok, 0 failed, 1 of unknown fate; 8 records in EDN
found       not linearizable: key 0
decided by  near-linear
time        N ms: N ms to read, N ms to judge; N MiB of memory at most
"
    );
}

#[test]
fn a_history_comes_through_a_pipe_and_its_judgement_as_json() {
    let folder = folder_with(&[]);
    let mut child = command(folder.path(), &["check", "-", "--format", "json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("starts");
    child.stdin.take().expect("piped").write_all(registers(1).as_bytes()).expect("taken");
    let output = child.wait_with_output().expect("ends");
    assert_eq!(output.status.code(), Some(1));
    let result: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&result["verdict"], &result["model"]), (&"invalid".into(), &"cas-register".into()));
    assert_eq!(result["guessed_from"], serde_json::json!(["cas", "read", "write"]));
    assert_eq!(result["checks"][0]["counterexample"]["rechecked"], true);
    assert!(result["checks"][0]["took_ms"].is_number() && result["peak_bytes"].is_number());
}

#[test]
fn what_can_not_be_done_is_refused_with_what_to_do_next() {
    let good = registers(2);
    let cut = good.replacen("{:process 1, :type :ok", "{:process 1, :type maybe", 1);
    let folder = folder_with(&[
        ("good.edn", &good),
        ("bad.edn", &cut),
        ("odd.edn", "{:process 0, :type :invoke, :f :frobnicate, :value 1}\n"),
        ("notes.txt", "dear diary\n"),
        ("empty.edn", ""),
        ("proof", "{\"witness\":9}\n"),
    ]);
    let table: [(&[&str], &str); 18] = [
        (&["check", "nowhere.edn"], "nowhere.edn can't be read: No such file"),
        (&["check", "good.edn", "--model", "cas-registre"], "did you mean `cas-register`?"),
        (&["check", "good.edn", "--model", "teapot"], "`harness list models`"),
        (&["check", "good.edn", "--condition", "linearisable"], "did you mean `linearizable`?"),
        (
            &["check", "good.edn", "--condition", "serializable"],
            "not of cas-register, which knows linearizable, ordered-sequential",
        ),
        (&["check", "good.edn", "--model", "mutex"], "line 1: a mutex has no write"),
        (&["check", "good.edn", "--model", "register"], "line 3: a register has no cas"),
        (&["check", "bad.edn"], "line 4: "),
        (&["check", "odd.edn"], "no model has the functions frobnicate. Name one with --model"),
        (&["check", "notes.txt"], "line 1"),
        (&["check", "empty.edn"], "the history is empty"),
        (&["check", "good.edn", "--timeout", "60"], "--timeout: `60` has no unit: write `60s`"),
        (&["check", "good.edn", "--timeout", "0s"], "write how long the check may take"),
        (&["check", "good.edn", "--memory", "2"], "--memory: `2` has no unit: write `2MiB`"),
        (&["check", "good.edn", "--memory", "1MiB"], "the harness itself takes part of it; write at least"),
        (&["check", "good.edn", "--threads", "0"], "write 1 or more"),
        (&["check", "good.edn", "--witness", "no/such/place"], "--witness no/such/place: can't be written"),
        (&["confirm", "proof", "good.edn"], "proof is no witness"),
    ];
    for (arguments, advice) in table {
        refused(folder.path(), arguments, advice);
    }
}

/// Values written twice, compare-and-sets that were refused, and as many writes at once that nothing but a
/// long search can tell.
fn hard() -> String {
    let mut text = String::new();
    let mut line = |process: u32, kind: &str, f: &str, value: &str| {
        text.push_str(&format!("{{:process {process}, :type :{kind}, :f :{f}, :value {value}}}\n"));
    };
    for process in 0..40 {
        line(process, "invoke", "write", &(process % 5).to_string());
    }
    for process in 40..60 {
        line(process, "invoke", "cas", &format!("[{} {}]", process % 5, (process * 7) % 5));
    }
    for round in 0..30 {
        line(100, "invoke", "read", "nil");
        line(100, "ok", "read", &((round * round + 3 * round) % 5).to_string());
    }
    for process in 0..40 {
        line(process, "ok", "write", &(process % 5).to_string());
    }
    for process in 40..60 {
        line(process, "fail", "cas", &format!("[{} {}]", process % 5, (process * 7) % 5));
    }
    line(101, "invoke", "read", "nil");
    line(101, "ok", "read", "7");
    text
}

#[test]
fn past_a_bound_on_time_the_answer_is_unknown_and_says_why() {
    let lines: String = (0..400_000)
        .map(|n| {
            let asked = "\"f\":\"write\",\"key\":0,\"value\"";
            let line = |kind| format!("{{\"process\":0,\"type\":\"{kind}\",{asked}:{n}}}\n");
            line("invoke") + &line("ok")
        })
        .collect();
    let folder = folder_with(&[("long.jsonl", &lines)]);
    // On a busy machine the shortest of these is over before anything was read, and that is said too.
    let is_told_while_reading = ["1ms", "10ms", "40ms"].into_iter().any(|bound| {
        let output = harness(folder.path(), &["check", "long.jsonl", "--timeout", bound]);
        assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
        let text = stdout(&output);
        let ran_out = format!("The time ran out (--timeout {bound})");
        if text.contains(&format!("{ran_out} before a record was found")) {
            assert!(text.starts_with("? UNKNOWN  long.jsonl was not judged\n"), "{text}");
            return false;
        }
        assert!(text.starts_with("? UNKNOWN  long.jsonl as cas-register: linearizable or not\n"), "{text}");
        assert!(text.contains(&format!("{ran_out} while reading, after ")), "{text}");
        true
    });
    assert!(is_told_while_reading, "there was time to read something");
    let json = harness(folder.path(), &["check", "long.jsonl", "--timeout", "1ms", "--format", "json"]);
    let result: Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!(result["verdict"], "unknown");
    let read = result["read"]["records"].as_u64().expect("a number");
    assert!(read < 800_000, "{read}");
}

#[test]
fn a_search_that_has_no_end_is_ended_by_its_bound() {
    let folder = folder_with(&[("hard.edn", &hard())]);
    let begun = std::time::Instant::now();
    let output = harness(folder.path(), &["check", "hard.edn", "--timeout", "300ms", "--threads", "1"]);
    assert!(begun.elapsed() < std::time::Duration::from_secs(20));
    assert!(matches!(output.status.code(), Some(1 | 2)), "{}", stdout(&output));
}

#[test]
fn each_model_judges_a_history_of_its_functions_without_being_named() {
    let pair = |f: &str, asked: &str, told: &str| {
        format!(
            "{{:process 0, :type :invoke, :f :{f}, :value {asked}}}\n{{:process 0, :type :ok, :f :{f}, \
                :value {told}}}\n"
        )
    };
    let table = [
        ("cas-register", pair("write", "1", "1") + &pair("read", "nil", "1"), pair("read", "nil", "2")),
        (
            "kv",
            pair("put", "\"a\", :key 1", "\"a\", :key 1") + &pair("get", "nil, :key 1", "\"a\", :key 1"),
            pair("get", "nil, :key 1", "\"b\", :key 1"),
        ),
        ("mutex", pair("acquire", "nil", "nil"), pair("acquire", "nil", "nil")),
        ("set", pair("add", "1", "1") + &pair("read", "nil", "[1]"), pair("read", "nil", "[1 2]")),
        ("queue", pair("enqueue", "1", "1") + &pair("dequeue", "nil", "1"), pair("dequeue", "nil", "2")),
        (
            "list-append",
            pair("txn", "[[:append 1 1] [:r 1 nil]]", "[[:append 1 1] [:r 1 [1]]]"),
            pair("txn", "[[:r 1 nil]]", "[[:r 1 [2]]]"),
        ),
    ];
    for (model, good, bad) in table {
        let folder = folder_with(&[("good.edn", &good), ("bad.edn", &(good.clone() + &bad))]);
        let output = harness(folder.path(), &["check", "good.edn"]);
        let text = stdout(&output);
        assert_eq!(
            output.status.code(),
            Some(0),
            "{model}: {text}{}",
            String::from_utf8_lossy(&output.stderr)
        );
        assert!(text.contains(&format!("model       {model}, guessed from ")), "{text}");
        let output = harness(folder.path(), &["check", "bad.edn"]);
        assert_eq!(output.status.code(), Some(1), "{model}: {}", stdout(&output));
    }
}

#[test]
fn past_a_bound_on_memory_reading_stops() {
    let mut lines = String::new();
    for n in 0..600_000 {
        lines.push_str(&format!(
            "{{\"process\":{n},\"type\":\"invoke\",\"f\":\"write\",\"key\":0,\"value\":{n}}}\n"
        ));
    }
    let folder = folder_with(&[("open.jsonl", &lines)]);
    for (condition, why) in [
        ("sequential", "memory reached its bound (--memory 64MiB) while reading, after "),
        ("linearizable", "memory"),
    ] {
        let arguments =
            ["check", "open.jsonl", "--memory", "64MiB", "--condition", condition, "--format", "json"];
        let output = harness(folder.path(), &arguments);
        assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
        let result: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let stopped = result["stopped"].as_str().unwrap_or_else(|| panic!("no reason: {result}"));
        assert!(stopped.contains(why), "{stopped}");
        assert!(result["peak_bytes"].as_u64().expect("a number") < 96 << 20, "{result}");
    }
}

#[test]
fn the_order_behind_a_valid_verdict_is_written_and_confirmed_and_a_changed_one_is_not() {
    let folder = folder_with(&[("history.edn", &registers(2)), ("other.edn", &registers(3))]);
    let output = harness(folder.path(), &["check", "history.edn", "--witness", "proof.jsonl"]);
    assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
    assert!(stdout(&output).contains("witness     proof.jsonl; `harness confirm`"), "{}", stdout(&output));
    let output = harness(folder.path(), &["confirm", "proof.jsonl", "history.edn"]);
    assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
    assert_eq!(
        stdout(&output),
        "confirmed: history.edn as cas-register: linearizable, by the order of 3 operations in 1 part\n"
    );
    let output = harness(folder.path(), &["confirm", "proof.jsonl", "other.edn"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stdout(&output).starts_with("not confirmed: proof.jsonl: "), "{}", stdout(&output));
    let proof = std::fs::read_to_string(folder.path().join("proof.jsonl")).expect("written");
    let header: Value = serde_json::from_str(proof.lines().next().expect("a header")).expect("JSON");
    assert_eq!((&header["model"], &header["history"]), (&"cas-register".into(), &"history.edn".into()));
}

#[test]
fn a_violation_has_no_witness_and_that_is_said() {
    let folder = folder_with(&[("history.edn", &registers(1))]);
    let output = harness(folder.path(), &["check", "history.edn", "--witness", "proof.jsonl"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stdout(&output).contains("proof.jsonl was not written: a violation has no order"));
    assert!(!folder.path().join("proof.jsonl").exists());
}

#[test]
fn models_and_conditions_are_listed_in_the_help_and_by_list() {
    let folder = folder_with(&[]);
    let help = stdout(&harness(folder.path(), &["check", "--help"]));
    let models = stdout(&harness(folder.path(), &["list", "models"]));
    let conditions = stdout(&harness(folder.path(), &["list", "conditions"]));
    for name in ["register", "cas-register", "kv", "mutex", "set", "queue", "list-append"] {
        assert!(help.contains(&format!("\n  {name} ")) && models.contains(name), "{name}: {help}");
    }
    for name in ["linearizable", "ordered-sequential", "session", "strict-serializable", "read-committed"] {
        assert!(help.contains(&format!("\n  {name} ")) && conditions.contains(name), "{name}: {help}");
    }
    assert!(help.contains("harness check --model cas-register history.edn"), "{help}");
}

/// Two writes by a client, and a read by another that comes too late for the first: stale if it is judged at
/// all.
fn stale_read_by(process: &str) -> String {
    let line = |process: &str, kind: &str, f: &str, value: &str| {
        format!("{{\"process\":{process},\"type\":\"{kind}\",\"f\":\"{f}\",\"value\":{value}}}\n")
    };
    let write = |value: &str| line("0", "invoke", "write", value) + &line("0", "ok", "write", value);
    write("1") + &write("2") + &line(process, "invoke", "read", "null") + &line(process, "ok", "read", "1")
}

#[test]
fn nobody_but_the_nemesis_is_left_out_and_that_is_counted() {
    let nemesis = "{\"process\":\"nemesis\",\"type\":\"info\",\"f\":\"start\",\"value\":null}\n";
    let folder = folder_with(&[
        ("number.jsonl", &stale_read_by("1")),
        ("name.jsonl", &stale_read_by("\"worker-1\"")),
        ("half.jsonl", &stale_read_by("1.5")),
        ("large.jsonl", &stale_read_by("18446744073709551616")),
        ("nemesis.jsonl", &(nemesis.to_owned() + &stale_read_by("1"))),
    ]);
    for name in ["number.jsonl", "name.jsonl"] {
        let output = harness(folder.path(), &["check", name]);
        assert_eq!(output.status.code(), Some(1), "{name}: {}", stdout(&output));
    }
    let output = harness(folder.path(), &["check", "name.jsonl"]);
    let renamed = "note        clients by name are numbered: worker-1 is process 4611686018427387904";
    assert!(stdout(&output).contains(renamed), "{}", stdout(&output));
    for name in ["half.jsonl", "large.jsonl"] {
        refused(folder.path(), &["check", name], "line 5: a process is a name or a natural number");
    }
    for extra in [&[][..], &["--condition", "sequential"]] {
        let output = harness(folder.path(), &[&["check", "nemesis.jsonl"], extra].concat());
        let text = stdout(&output).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            text.contains("6 records in lines of JSON without time; 1 left out, which are no client's"),
            "{text}"
        );
    }
    let output = harness(folder.path(), &["check", "nemesis.jsonl", "--format", "json"]);
    let result: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(result["read"]["left_out"], 1);
}

#[test]
fn what_holds_no_operation_says_what_it_holds() {
    let nemesis = "{\"process\":\"nemesis\",\"type\":\"info\",\"f\":\"start\",\"value\":null}\n";
    let folder = folder_with(&[
        ("nemesis.jsonl", &nemesis.repeat(2)),
        ("nothing.bin", &"\0".repeat(3)),
        ("open.edn", "{:process 0, :type :invoke, :f :read"),
    ]);
    for (name, advice) in [
        ("nemesis.jsonl", "nothing in it was read as an operation: none of its 2 records is a client's"),
        ("nothing.bin", "line 1, the last, has no end: it may be cut short; it begins with \"\\0\\0\\0\""),
        ("open.edn", "the last element is cut short; it begins with \"{:process 0"),
        ("/dev/zero", "in its first MiB, nothing in it was read as an operation"),
    ] {
        refused(folder.path(), &["check", name], advice);
    }
}

#[test]
fn what_a_terminal_would_obey_is_not_repeated_to_it() {
    let hostile = "{\"process\":0,\"type\":\"\\u001b[2Jboo\",\"f\":\"write\",\"value\":1}\n";
    let turned = "{\"process\":0,\"type\":\"invoke\",\"f\":\"\\u202e\\u001b]0;x\\u0007\",\"value\":1}\n";
    let folder = folder_with(&[("hostile.jsonl", hostile), ("turned.jsonl", turned)]);
    for name in ["hostile.jsonl", "turned.jsonl"] {
        let output = harness(folder.path(), &["check", name]);
        assert_eq!(output.status.code(), Some(254));
        let obeyed = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!message.contains(obeyed), "{message:?}");
        assert!(message.contains(char::REPLACEMENT_CHARACTER), "{message:?}");
    }
}

/// A frame of zstd that unpacks to gibibytes of line ends: blocks of four bytes that stand for 128 KiB each.
fn line_ends() -> Vec<u8> {
    let mut bytes = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x50];
    for _ in 0..100_000 {
        bytes.extend_from_slice(&[0x02, 0x00, 0x10, b'\n']);
    }
    bytes
}

#[test]
fn a_bound_on_time_holds_while_nothing_is_found() {
    let folder = folder_with(&[]);
    std::fs::write(folder.path().join("nothing.zst"), line_ends()).expect("written");
    for extra in [&[][..], &["--model", "kv"]] {
        let begun = std::time::Instant::now();
        let output =
            harness(folder.path(), &[&["check", "nothing.zst", "--timeout", "300ms"], extra].concat());
        assert!(begun.elapsed() < std::time::Duration::from_secs(10), "{:?}", begun.elapsed());
        assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(stdout(&output).contains("The time ran out (--timeout 300ms)"), "{}", stdout(&output));
    }
}
