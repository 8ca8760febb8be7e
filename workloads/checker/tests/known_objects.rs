//! Histories from elsewhere with known verdicts, judged by the general searches: each member, and the portfolio.
//!
//! The histories are not part of this project. They are looked for in the folder that `CHECKER_HISTORIES` names, else
//! beside the workspace; where there are none, the test says so and passes. The readers here are as small as can be:
//! those of the library are tested elsewhere.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use checker::Budget;
use checker::budget::Meter;
use checker::history::{Datum, EventKind, LoadError, Record};
use checker::model::kv::Kv;
use checker::model::mutex::Mutex;
use checker::model::register::Register;
use checker::model::{Call, Model, pair};
use checker::search::{self, Found, depth_first, frontier};
use checker::verdict::Verdict;

fn folder() -> Option<PathBuf> {
    let named = std::env::var_os("CHECKER_HISTORIES").map(PathBuf::from);
    let workspace =
        Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(3).map(|above| above.join("shared/histories"));
    named.or(workspace).filter(|folder| folder.join("verdicts.tsv").is_file())
}

/// A small reader of EDN: what histories have of it.
struct Edn<'a>(&'a str);

impl Edn<'_> {
    fn skip(&mut self) {
        loop {
            self.0 = self.0.trim_start_matches(|c: char| c.is_whitespace() || c == ',');
            if !self.0.starts_with(';') {
                return;
            }
            self.0 = self.0.split_once('\n').map_or("", |(_, rest)| rest);
        }
    }

    fn list(&mut self) -> Vec<Datum> {
        let mut items = Vec::new();
        loop {
            self.skip();
            if self.0.is_empty() {
                return items;
            }
            if self.0.starts_with([')', ']', '}']) {
                self.0 = &self.0[1..];
                return items;
            }
            items.push(self.value());
        }
    }

    fn value(&mut self) -> Datum {
        self.skip();
        let first = self.0.chars().next().unwrap();
        match first {
            '[' | '(' => {
                self.0 = &self.0[1..];
                Datum::List(self.list())
            }
            '{' => {
                self.0 = &self.0[1..];
                let items = self.list();
                Datum::Map(items.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect())
            }
            '"' => {
                let is_end = |&(at, _): &(usize, &str)| !self.0[..at].ends_with('\\');
                let (end, _) = self.0.match_indices('"').skip(1).find(is_end).unwrap();
                let text = &self.0[1..end];
                self.0 = &self.0[end + 1..];
                Datum::text(text)
            }
            _ => {
                let end =
                    self.0.find(|c: char| c.is_whitespace() || ",()[]{}".contains(c)).unwrap_or(self.0.len());
                let (token, rest) = self.0.split_at(end);
                self.0 = rest;
                match token.parse() {
                    Ok(number) => Datum::Int(number),
                    Err(_) if token == "nil" => Datum::Nil,
                    Err(_) => Datum::text(token.trim_start_matches(':')),
                }
            }
        }
    }
}

fn record(index: usize, process: &Datum, kind: &str, f: &str, key: Datum, value: Datum) -> Option<Record> {
    let kind = match kind {
        "invoke" => EventKind::Invoke,
        "ok" => EventKind::Ok,
        "fail" => EventKind::Fail,
        _ => EventKind::Info,
    };
    let process = u64::try_from(process.as_int()?).ok()?;
    let index = u64::try_from(index).unwrap();
    Some(Record { line: index + 1, index, ..Record::new(process, kind, f, key, value) })
}

fn records(text: &str) -> Vec<Result<Record, LoadError>> {
    let log = text.contains("jepsen.util");
    let parsed: Vec<Option<Record>> = if log {
        let lines = text.lines().filter_map(|line| line.split_once("jepsen.util - ")).enumerate();
        lines
            .map(|(at, (_, line))| {
                let Datum::List(words) = Edn(&format!("[{line}]")).value() else { return None };
                let text = |at: usize| words.get(at).and_then(Datum::as_text);
                record(
                    at,
                    &words[0],
                    text(1)?,
                    text(2)?,
                    Datum::Nil,
                    words.get(3).cloned().unwrap_or_default(),
                )
            })
            .collect()
    } else {
        let mut items = Edn(text).list();
        if let [Datum::List(inner)] = items.as_slice() {
            items = inner.clone();
        }
        let of = |(at, item): (usize, Datum)| {
            let get = |key: &str| item.get(key).cloned().unwrap_or_default();
            record(at, &get("process"), get("type").as_text()?, get("f").as_text()?, get("key"), get("value"))
        };
        items.into_iter().enumerate().map(of).collect()
    };
    parsed.into_iter().flatten().map(Ok).collect()
}

/// Judges one file by each member and by the portfolio; says what was wrong.
fn judge<M: Model + Sync>(model: &M, file: &str, text: &str, expected: Verdict) -> Option<String>
where
    M::Op: Send + Sync,
{
    let calls = match pair(model, records(text)) {
        Ok(calls) => calls,
        Err(error) => return Some(format!("{file}: {error}")),
    };
    let began = Instant::now();
    let judged = search::judge(model, &calls, &Budget::default(), 1, false);
    let portfolio = began.elapsed();
    let mut wrong = (judged.result.verdict != expected && !calls.is_empty())
        .then(|| format!("{file}: {}: {}", judged.result.verdict, judged.result.summary));
    let with_witness = search::judge(model, &calls, &Budget::default(), 2, true);
    if with_witness.result.verdict != judged.result.verdict {
        wrong = Some(format!("{file}: {} with a witness", with_witness.result.verdict));
    }
    let mut told = String::new();
    for name in ["frontier", "depth first"] {
        let began = Instant::now();
        let mut verdict = Verdict::Valid;
        let mut parts: std::collections::BTreeMap<Option<u64>, Vec<&Call<M::Op>>> =
            std::collections::BTreeMap::new();
        calls.iter().for_each(|call| parts.entry(model.part(&call.op)).or_default().push(call));
        for calls in parts.values() {
            let mut meter = Meter::new(&Budget::new(20_000_000, 1 << 30));
            let found = match name {
                "frontier" => frontier::search(model, calls, false, &mut meter),
                _ => depth_first::search(model, calls, &mut meter),
            };
            verdict = verdict.merge(match found {
                Found::Order(_) => Verdict::Valid,
                Found::NoOrder { .. } => Verdict::Invalid,
                Found::GaveUp { .. } => Verdict::Unknown,
            });
        }
        told.push_str(&format!(", {name} {verdict} {:?}", began.elapsed()));
        if verdict != Verdict::Unknown && verdict != expected {
            wrong = Some(format!("{file}: {name} says {verdict}"));
        }
    }
    let by = judged.result.decided_by.as_deref().unwrap_or("nobody");
    println!("{file} {}: {} by {by} {portfolio:?}{told}", model.name(), judged.result.verdict);
    if let Some(counterexample) = judged.result.counterexample {
        let shown = counterexample.ops.len();
        println!("    {shown} of {}: {}", counterexample.of_ops, counterexample.sentence);
        if !counterexample.rechecked {
            println!("    not judged again by the plain search");
        }
    }
    wrong
}

#[test]
fn all_known_verdicts_are_agreed_with() {
    let Some(folder) = folder() else {
        println!("no histories with known verdicts here: skipped");
        return;
    };
    let verdicts = fs::read_to_string(folder.join("verdicts.tsv")).unwrap();
    let (mut judged, mut wrong) = (0, Vec::new());
    for line in verdicts.lines().skip(1) {
        let [file, model, verdict] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("three columns: {line}")
        };
        let text = fs::read_to_string(folder.join(file)).unwrap();
        let expected = if verdict == "ok" { Verdict::Valid } else { Verdict::Invalid };
        judged += 1;
        wrong.extend(match model.split('(').next().unwrap() {
            "etcd-register" => {
                judge(&Register::default().with_refusals().with_reads_of_nothing(), file, &text, expected)
            }
            "cas-register" => judge(&Register::default(), file, &text, expected),
            "kv" if model.contains("whole") => judge(&Kv::whole(), file, &text, expected),
            "kv" => judge(&Kv::default(), file, &text, expected),
            "mutex" => judge(&Mutex, file, &text, expected),
            other => Some(format!("{file}: no model {other}")),
        });
    }
    println!("{judged} histories with known verdicts");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
