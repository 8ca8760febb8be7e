//! Every workload against a tree that keeps its promises, and against trees that each break one.
//!
//! The operations of some processes are performed one after the other, so what the tree answers is the truth;
//! the checks must find it so, and must find each lie.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use checker::Budget;
use checker::history::{Event, Function, History};
use checker::verdict::{CheckResult, Verdict};
use node_wire::client::ErrorCode;
use node_wire::ids::Zxid;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use workloads::judge::{Beside, Requirements, judge};
use workloads::{Kind, Op, Params, Workload};
use zookeeper_mapping::{Action, Answer, CreateMode, outcome, request};

const PROCESSES: u64 = 6;
const TIMEOUT_MS: i32 = 4000;

/// What a tree does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lie {
    None,
    /// Every hundredth change is acknowledged and not made.
    Loses,
    /// Every tenth listing or read is of an older tree.
    Stale,
    /// Numbers are the count of children.
    CountsChildren,
    /// Nodes stay when their session ends.
    Survives,
    /// Nodes go when another session looks twice.
    DiesEarly,
    /// A numbered create is made twice.
    Twice,
}

#[derive(Clone, Default)]
struct Node {
    data: Bytes,
    version: i32,
    owner: Option<u64>,
    creates: i64,
}

struct Tree {
    lie: Lie,
    nodes: BTreeMap<String, Node>,
    old: BTreeMap<String, Node>,
    zxid: u64,
    asked: u64,
}

impl Tree {
    fn new(lie: Lie) -> Self {
        Self { lie, nodes: BTreeMap::new(), old: BTreeMap::new(), zxid: 0, asked: 0 }
    }

    fn children(nodes: &BTreeMap<String, Node>, path: &str) -> Vec<String> {
        let within = format!("{path}/");
        nodes.keys().filter_map(|node| node.strip_prefix(&within)).map(str::to_owned).collect()
    }

    fn answer(&mut self, session: u64, action: &Action) -> Answer {
        self.asked += 1;
        self.zxid += 1;
        let zxid = Zxid(self.zxid);
        if self.asked.is_multiple_of(50) {
            self.old = self.nodes.clone();
        }
        let loses = self.lie == Lie::Loses && self.asked > 50 && self.asked.is_multiple_of(20);
        let stale = self.lie == Lie::Stale && self.asked > 200 && self.asked.is_multiple_of(10);
        let seen = if stale { &self.old } else { &self.nodes };
        let refused = |code| Answer::Refused { code, zxid: Some(zxid) };
        match action {
            Action::SyncRead { path } => match seen.get(path) {
                None => refused(ErrorCode::NoNode),
                Some(node) => Answer::Read {
                    data: Some(node.data.clone()),
                    version: node.version,
                    mzxid: Zxid(0),
                    zxid,
                },
            },
            Action::SyncChildren { path } => {
                let names = Self::children(seen, path).into_iter().map(Into::into).collect();
                Answer::Children { names, zxid }
            }
            Action::SyncExists { path } => {
                if self.lie == Lie::DiesEarly && self.asked.is_multiple_of(40) {
                    self.nodes.remove(path);
                }
                Answer::Exists { present: self.nodes.contains_key(path), zxid }
            }
            Action::Create { path, data, mode } => self.create(session, (path, data, *mode), loses, zxid),
            Action::Write { path, data } | Action::CasWrite { path, data, .. } => {
                let Some(node) = self.nodes.get_mut(path) else { return refused(ErrorCode::NoNode) };
                if matches!(action, Action::CasWrite { expect, .. } if *expect != node.version) {
                    return refused(ErrorCode::BadVersion);
                }
                let version = node.version + 1;
                if !loses {
                    (node.version, node.data) = (version, data.clone());
                }
                Answer::Written { version, mzxid: Zxid(0), zxid }
            }
            Action::Delete { path } => match self.nodes.remove(path) {
                None => refused(ErrorCode::NoNode),
                Some(_) => Answer::Deleted { zxid },
            },
            Action::Close => {
                if self.lie != Lie::Survives {
                    self.nodes.retain(|_, node| node.owner != Some(session));
                }
                Answer::Closed { zxid }
            }
            Action::Abandon => Answer::Abandoned,
        }
    }

    fn create(
        &mut self,
        session: u64,
        (path, data, mode): (&str, &Bytes, CreateMode),
        loses: bool,
        zxid: Zxid,
    ) -> Answer {
        let ephemeral = matches!(mode, CreateMode::Ephemeral | CreateMode::EphemeralSequential);
        let owner = ephemeral.then_some(session);
        let sequential = matches!(mode, CreateMode::Sequential | CreateMode::EphemeralSequential);
        let times = if sequential && self.lie == Lie::Twice && self.asked.is_multiple_of(30) { 2 } else { 1 };
        let mut told = path.to_owned();
        for time in 0..times {
            let mut made = path.to_owned();
            if sequential {
                let parent = path.rsplit_once('/').expect("a path").0;
                let children = i64::try_from(Self::children(&self.nodes, parent).len()).expect("few");
                let node = self.nodes.get_mut(parent).expect("made before the load");
                let number = if self.lie == Lie::CountsChildren { children } else { node.creates };
                node.creates += 1;
                made = format!("{path}{number:010}");
            }
            if self.nodes.contains_key(&made) {
                return Answer::Refused { code: ErrorCode::NodeExists, zxid: Some(zxid) };
            }
            if !loses {
                self.nodes.insert(made.clone(), Node { data: data.clone(), owner, ..Node::default() });
            }
            if time == 0 {
                told = made;
            }
        }
        Answer::Created { path: told.into(), zxid }
    }
}

/// A history in the making.
struct Run {
    tree: Tree,
    workload: Workload,
    events: Vec<Event>,
    now: u64,
    sessions: Vec<u64>,
    next_session: u64,
}

impl Run {
    fn perform(&mut self, process: u64, op: &Op, answer: Option<Answer>) {
        let slot = usize::try_from(process % PROCESSES).expect("small");
        let session = self.sessions[slot];
        let mut invoke = op.event(process, self.now);
        let answer = answer.unwrap_or_else(|| self.tree.answer(session, &request(op)));
        let outcome = outcome(op, &answer);
        self.workload.complete(process, op, &outcome);
        let mut told = outcome.event(op, process, self.now + 1_000);
        told.mzxid = None;
        (invoke.session, told.session) = (Some(session), Some(session));
        self.events.extend([invoke, told]);
        self.now += 2_000;
        if op.ends_session() {
            self.open(process);
        }
    }

    fn open(&mut self, process: u64) {
        let slot = usize::try_from(process % PROCESSES).expect("small");
        self.next_session += 1;
        self.sessions[slot] = self.next_session;
        if self.workload.records_sessions() {
            self.perform(process, &Op::open(), Some(Answer::Opened { timeout_ms: TIMEOUT_MS }));
        }
    }
}

fn results(kind: Kind, lie: Lie, ops: u64) -> Vec<CheckResult> {
    let rng = ChaCha8Rng::seed_from_u64(5);
    let params = Params { elements: 40, ..Params::of_keys(2) };
    let workload = Workload::new(kind, params, rng).expect("sound");
    let sessions = vec![0; usize::try_from(PROCESSES).expect("small")];
    let mut run =
        Run { tree: Tree::new(lie), workload, events: Vec::new(), now: 0, sessions, next_session: 0 };
    for process in 0..PROCESSES {
        run.open(process);
    }
    for op in run.workload.setup() {
        run.perform(0, &op, None);
    }
    for at in 0..ops {
        let op = run.workload.next_op(at % PROCESSES);
        run.perform(at % PROCESSES, &op, None);
    }
    let reads = run.workload.final_reads();
    let mut finals = Vec::new();
    for op in &reads {
        run.perform(0, op, None);
        let told = outcome(op, &run.tree.answer(0, &request(op)));
        finals.extend(run.workload.final_state(1, op, &told));
    }
    let history = History::from_events(run.events).expect("well formed");
    let requirements = Requirements { functions: kind.functions().to_vec(), ..Requirements::default() };
    let beside = Beside { members: vec![1], final_states: finals, requirements, ..Beside::default() };
    judge(kind, &history, &beside, &Budget::default())
}

fn accused(kind: Kind, lie: Lie) -> BTreeSet<String> {
    let invalid = |result: &CheckResult| result.verdict == Verdict::Invalid;
    results(kind, lie, 3000).into_iter().filter(invalid).map(|result| result.name).collect()
}

#[test]
fn a_tree_that_keeps_its_promises_is_valid_on_every_line_of_every_workload() {
    // Applications do not speak by this mapping. It has neither transactions nor watches, nor what only one
    // workload asks for.
    let has = |f: &Function| Function::KNOWN.contains(f) && ![Function::TXN, Function::WATCH].contains(f);
    let speaks = |kind: &&Kind| kind.applications().is_none() && kind.functions().iter().all(has);
    for kind in Kind::ALL.iter().filter(speaks) {
        for result in results(*kind, Lie::None, 2000) {
            assert_eq!(
                result.verdict,
                Verdict::Valid,
                "{} {}: {}\n{:?}",
                kind.name(),
                result.name,
                result.summary,
                result.counterexample.map(|found| found.sentence)
            );
        }
    }
}

#[test]
fn lost_changes_are_found_by_set_append_and_counter() {
    assert!(accused(Kind::SET, Lie::Loses).contains("set"));
    assert!(accused(Kind::SET, Lie::Loses).contains("durability"));
    assert!(accused(Kind::APPEND, Lie::Loses).contains("append"));
    assert!(accused(Kind::COUNTER, Lie::Loses).contains("linearizable"));
}

#[test]
fn stale_reads_are_found_by_set_append_and_counter() {
    assert!(accused(Kind::SET, Lie::Stale).contains("set"));
    assert!(accused(Kind::APPEND, Lie::Stale).contains("append"));
    assert!(accused(Kind::COUNTER, Lie::Stale).contains("linearizable"));
}

#[test]
fn a_numbering_that_counts_children_or_creates_twice_is_found() {
    assert!(accused(Kind::SEQUENTIAL, Lie::CountsChildren).contains("sequential"));
    assert!(accused(Kind::SEQUENTIAL, Lie::Twice).contains("sequential"));
}

#[test]
fn nodes_that_outlive_their_session_or_die_before_it_are_found() {
    assert!(accused(Kind::EPHEMERAL, Lie::Survives).contains("ephemeral"));
    assert!(accused(Kind::EPHEMERAL, Lie::DiesEarly).contains("ephemeral"));
}
