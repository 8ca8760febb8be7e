//! The tree of znodes: what ZooKeeper keeps, as an object that histories are judged by.
//!
//! Create, delete and setData by version, getData, exists, getChildren, multi, sequential names, ephemeral
//! znodes and the ends of sessions, with what each Stat reveals. Watches, access lists, quotas, containers
//! and times to live are absent. Nothing here knows a server: [`State`] is written from the rules alone.
//!
//! # The lines
//!
//! One record for each invocation and each completion, as JSON lines or EDN. `value` is a map; what is not
//! asked for or not known is left out. `session` stands on the line, as do `time` and the reply's `zxid`
//! where they are known.
//!
//! | `f` | `value` of the invocation | `value` of an `ok` |
//! |---|---|---|
//! | `create` | `path`, `data`, `flags`: some of `ephemeral`, `sequential` | `path` as made, `stat` |
//! | `delete`, `check` | `path`, `version` | nothing |
//! | `set` | `path`, `data`, `version` | `stat` |
//! | `get` | `path` | `data`, `stat` |
//! | `exists` | `path` | `stat`; without one, it is not there |
//! | `children` | `path` | `children`: names in any order, `stat` |
//! | `multi` | `ops`: maps as above, each with its `f` | `results`: a map for each, as above |
//! | `close` | nothing: the client ends the line's session | nothing |
//! | `expire` | nothing: somebody was told that it ended, between these two lines | nothing |
//! | `leave` | nothing: from here on it may end at any time | never: no completion, or `info` |
//!
//! Without `version` any will do. `stat` is a map with ZooKeeper's names: `czxid`, `mzxid`, `pzxid`,
//! `version`, `cversion`, `aversion`, `ephemeralOwner`, `dataLength`, `numChildren`; what is left out is not
//! judged. Numbers of 64 bits may be text, `0x100000002`. A `fail` whose `error` is `no-node`, `node-exists`,
//! `bad-version`, `not-empty` or `no-children-for-ephemerals` is an observation; of a multi it is the error
//! of the first step that failed, which `failed` may number from 0. Any other `fail` did not happen and says
//! nothing; `info` may have happened or may yet.
//!
//! ```text
//! {"process":0,"type":"invoke","f":"create","value":{"path":"/a/q-","data":"x","flags":["sequential"]}}
//! {"process":1,"type":"invoke","f":"children","value":{"path":"/a"}}
//! {"process":0,"type":"ok","f":"create","value":{"path":"/a/q-0000000000"},"zxid":"0x100000003"}
//! {"process":1,"type":"ok","f":"children","value":{"children":["q-0000000000"],"stat":{"cversion":1}}}
//! {"process":2,"type":"invoke","f":"leave","session":"0x10001"}
//! ```
//!
//! A session lives until a line ends it, and its ephemeral znodes with it: whoever records must write `leave`
//! when a client stops, and `expire`, with an invocation at the last contact, when one learns that its
//! session is gone.
//!
//! # What is judged
//!
//! In a Stat, all but the zxids is exact: `version`, `cversion`, `aversion` (0), `ephemeralOwner`,
//! `dataLength` (of data that is text, in UTF-8, or nothing: how numbers are stored is not known) and
//! `numChildren`. Zxids are judged within each Stat: none precedes `czxid`, and what never changed has the
//! same. What they say about the order of operations is a claim of the system, left to the [`witness`]; the
//! states of a search are free of them, so that two orders which come to the same tree are the same state.
//! Times are ignored, and so is all below `/zookeeper`, which the system writes. An open read, or an open
//! multi of checks alone, says nothing.

mod decode;
mod op;
mod parts;
mod shared;
pub mod simulate;
mod state;
pub mod witness;

use std::sync::Arc;

pub use op::{ANY, Answer, Ask, Op, Path, Refusal, Shown, Stat, Step};
pub use state::{Misfit, State};

use self::parts::Parts;
use super::{Call, Model};
use crate::history::Record;

/// The tree of znodes. At first it is that of a new ensemble, unless [`Tree::below`] says more.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    initial: State,
    base: Option<Path>,
    parts: Option<Arc<Parts>>,
}

impl Tree {
    /// A tree in which the znodes down to `base` were made, empty, before the history began.
    ///
    /// # Errors
    /// When that is no path.
    pub fn below(base: &str) -> Result<Self, String> {
        let base = decode::path(&base.into())?;
        let mut initial = State::default();
        for end in base.as_str().match_indices('/').map(|(at, _)| at).skip(1).chain([base.as_str().len()]) {
            let Some(path) = Path::new(base.as_str()[..end].into()).filter(|path| !path.name().is_empty())
            else {
                continue;
            };
            let step = Step::Create { path, data: Default::default(), ephemeral: false, sequential: false };
            let op = Op { session: None, ask: Ask::One(step), answer: None, zxid: None };
            // Without an answer nothing can contradict it.
            let _ = initial.perform(&op, None);
        }
        Ok(Self { initial, base: Some(base), parts: None })
    }

    /// The same tree, in as many independent parts as these operations allow: the subtrees below its base, if
    /// no operation is about the base itself, numbers a znode there, or changes two of them at once (a multi,
    /// the end of a session).
    #[must_use]
    pub fn parted(mut self, calls: &[Call<Op>]) -> Self {
        let base = self.base.as_ref().map_or("/", Path::as_str);
        self.parts = Parts::of(base, calls).map(Arc::new);
        self
    }

    /// Whether it falls into parts.
    #[must_use]
    pub fn is_parted(&self) -> bool {
        self.parts.is_some()
    }
}

impl Model for Tree {
    type Op = Op;
    type State = State;

    fn name(&self) -> &'static str {
        "znode"
    }

    fn initial(&self) -> State {
        self.initial.clone()
    }

    fn apply(&self, state: &State, op: &Op) -> Option<State> {
        let mut after = state.clone();
        after.perform(op, None).ok().map(|()| after)
    }

    fn decode(&self, invoked: &Record, completed: Option<&Record>) -> Result<Option<Op>, String> {
        decode::decode(invoked, completed)
    }

    fn part(&self, op: &Op) -> Option<u64> {
        self.parts.as_ref().map(|parts| parts.part(op))
    }

    fn changes(&self, op: &Op) -> bool {
        op.ask.changes()
    }

    fn describe(&self, op: &Op) -> String {
        op.to_string()
    }
}

#[cfg(test)]
mod tests;
