//! Histories of znodes made by a simulated ensemble: for tests, and to measure with.
//!
//! Clients ask a plain tree of their own making, one operation at a time each; between its invocation and its
//! completion an operation takes effect in one step, or its fate is lost. Such a history is linearizable.
//! With a [`Breach`] the tree breaks one rule, and a checker must notice. The tree is written apart from the
//! one that judges: it keeps whole strings in plain maps and counts what the other computes.

mod choose;
mod ensemble;
mod falsify;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use crate::chance::Chance;
use crate::history::{Datum, EventKind, Record};

pub use falsify::falsify;

/// A rule that the simulated tree breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Breach {
    /// The number of a sequential znode is the number of its siblings, so it comes back after a delete.
    CounterGoesBack,
    /// A set gives the version after the next, now and then.
    VersionSkips,
    /// A znode with children is deleted, and they stay.
    ParentDeleted,
    /// A multi that fails keeps what it did before.
    HalfMulti,
    /// A session ends and leaves its ephemeral znodes.
    EphemeralSurvives,
    /// A read sees the tree as it was a while ago, now and then.
    StaleRead,
    /// A set with the wrong version is carried out.
    VersionIgnored,
}

impl Breach {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::CounterGoesBack,
        Self::VersionSkips,
        Self::ParentDeleted,
        Self::HalfMulti,
        Self::EphemeralSurvives,
        Self::StaleRead,
        Self::VersionIgnored,
    ];
}

/// What kind of history to make.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Operations invoked.
    pub ops: u64,
    /// Clients at once.
    pub clients: u64,
    /// Znodes directly in the root.
    pub roots: u64,
    /// Names used in each of them.
    pub names: u64,
    /// Different data; 0 for data that never comes twice.
    pub values: u64,
    /// In a thousand operations, those whose fate is lost.
    pub lost: u64,
    /// Whether replies show Stats.
    pub stats: bool,
    /// Whether replies show zxids.
    pub zxids: bool,
    /// Whether there are multis over several roots, reads of the root and sequential znodes in it.
    pub crossing: bool,
    /// Whether sessions end and znodes with them.
    pub sessions: bool,
    /// The rule that is broken.
    pub breach: Option<Breach>,
    /// Where the randomness begins.
    pub seed: u64,
}

impl Plan {
    /// A few operations that meet everywhere.
    #[must_use]
    pub fn small(seed: u64) -> Self {
        Self {
            ops: 8,
            clients: 3,
            roots: 2,
            names: 2,
            values: 3,
            lost: 100,
            stats: true,
            zxids: true,
            crossing: true,
            sessions: true,
            breach: None,
            seed,
        }
    }

    /// Many operations on many znodes.
    #[must_use]
    pub fn large(ops: u64, seed: u64) -> Self {
        Self { ops, clients: 10, roots: 100, names: 20, values: 0, lost: 0, ..Self::small(seed) }
    }
}

#[derive(Clone, Debug, Default)]
struct Node {
    data: Datum,
    version: i64,
    child_changes: i64,
    counter: i64,
    children: BTreeSet<String>,
    owner: u64,
    zxids: [u64; 3],
}

#[derive(Clone, Debug, Default)]
struct Nodes {
    by_path: BTreeMap<String, Node>,
    ended: BTreeSet<u64>,
    zxid: u64,
}

/// What came of an operation: the value of an `ok`, or the error and value of a `fail`.
type Reply = Result<Datum, (&'static str, Datum)>;

/// An operation as it was sent.
#[derive(Clone, Debug)]
struct Sent {
    process: u64,
    session: u64,
    f: &'static str,
    value: Datum,
}

#[derive(Clone, Debug)]
enum Stage {
    Idle,
    Sent(Sent),
    Done(Sent, Reply, u64),
}

fn map(entries: impl IntoIterator<Item = (&'static str, Datum)>) -> Datum {
    Datum::Map(entries.into_iter().map(|(name, value)| (Datum::text(name), value)).collect())
}

fn signed(bits: u64) -> Datum {
    Datum::Int(bits.cast_signed())
}

fn parent_of(path: &str) -> String {
    match path.rfind('/') {
        Some(0) | None => "/".to_owned(),
        Some(slash) => path[..slash].to_owned(),
    }
}

struct Run<'a> {
    plan: &'a Plan,
    random: Chance,
    nodes: Nodes,
    /// The tree as it was, for stale reads.
    before: Nodes,
    records: Vec<Record>,
    /// What may yet take effect though nobody waits for it.
    adrift: Vec<Sent>,
    /// How znodes stood before the multi that is being done.
    undo: Vec<(String, Option<Node>)>,
    fresh: u64,
}

/// The records of a history of that kind, in the order of time.
#[must_use]
pub fn simulate(plan: &Plan) -> Vec<Record> {
    let mut nodes = Nodes { zxid: 0x1_0000_0000, ..Nodes::default() };
    let root =
        Node { children: BTreeSet::from(["zookeeper".to_owned()]), child_changes: -1, ..Node::default() };
    nodes.by_path.insert("/".to_owned(), root);
    nodes.by_path.insert("/zookeeper".to_owned(), Node::default());
    let mut run = Run {
        plan,
        random: Chance(plan.seed),
        before: nodes.clone(),
        nodes,
        records: Vec::new(),
        adrift: Vec::new(),
        undo: Vec::new(),
        fresh: plan.clients,
    };
    let mut clients: Vec<(u64, u64, Stage)> =
        (0..plan.clients).map(|client| (client, 0x1000 + client, Stage::Idle)).collect();
    let mut left = plan.ops;
    while left > 0 {
        let at = run.random.below(clients.len());
        run.drift();
        let (process, session, stage) = &mut clients[at];
        *stage = match std::mem::replace(stage, Stage::Idle) {
            Stage::Idle => {
                left -= 1;
                let (f, value) = run.choose();
                let sent = Sent { process: *process, session: *session, f, value };
                run.note(&sent, EventKind::Invoke, sent.value.clone(), None, None);
                if f == "leave" || run.random.per_mille(plan.lost) {
                    // Nobody waits for it any more: another process goes on, in another session or in the
                    // same.
                    if f != "leave" && run.random.per_mille(500) {
                        run.note(&sent, EventKind::Info, Datum::Nil, None, None);
                    }
                    *process = run.fresh;
                    if f == "leave" || run.random.per_mille(500) {
                        *session = 0x1000 + run.fresh;
                    }
                    run.fresh += 1;
                    run.adrift.push(sent);
                    Stage::Idle
                } else {
                    Stage::Sent(sent)
                }
            }
            Stage::Sent(sent) => {
                let (reply, zxid) = run.take_effect(&sent);
                Stage::Done(sent, reply, zxid)
            }
            Stage::Done(sent, reply, zxid) => {
                if matches!(sent.f, "close" | "expire") {
                    *session = 0x1000 + run.fresh;
                    run.fresh += 1;
                }
                match reply {
                    Ok(value) => run.note(&sent, EventKind::Ok, value, None, Some(zxid)),
                    Err((error, value)) => run.note(&sent, EventKind::Fail, value, Some(error), Some(zxid)),
                }
                Stage::Idle
            }
        };
    }
    run.records
}

impl Run<'_> {
    fn note(&mut self, sent: &Sent, kind: EventKind, value: Datum, error: Option<&str>, zxid: Option<u64>) {
        let index = self.records.len() as u64;
        self.records.push(Record {
            line: index + 1,
            index,
            time: Some(index),
            session: Some(sent.session),
            zxid: zxid.filter(|_| self.plan.zxids),
            error: error.map(Into::into),
            ..Record::new(sent.process, kind, sent.f, Datum::Nil, value)
        });
    }

    /// Some of what was lost takes effect, some never does.
    fn drift(&mut self) {
        if !self.adrift.is_empty() && self.random.per_mille(150) {
            let sent = self.adrift.swap_remove(self.random.below(self.adrift.len()));
            if self.random.per_mille(700) {
                // Nobody waits for the answer.
                let _ = self.take_effect(&sent);
            }
        }
    }
}

/// A record as a line of JSON.
#[must_use]
pub fn line(record: &Record) -> String {
    let mut fields = json!({
        "index": record.index,
        "process": record.process,
        "type": record.kind,
        "f": &*record.f,
        "value": record.value,
        "time": record.time,
    });
    let hex = |bits: u64| json!(format!("{bits:#x}"));
    let optional = [
        ("session", record.session.map(hex)),
        ("zxid", record.zxid.map(hex)),
        ("error", record.error.as_deref().map(|error| json!(error))),
    ];
    for (name, value) in optional {
        if let (Some(value), Some(fields)) = (value, fields.as_object_mut()) {
            fields.insert(name.to_owned(), value);
        }
    }
    fields.to_string()
}
