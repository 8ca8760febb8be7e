//! What a watcher must be told.
//!
//! A reply says how far its member had applied. Whatever happened up to there to what a connection watches
//! was told before it, and nothing that happened later: so between two replies a client is told exactly of
//! what lies between them. An event that is missing is lost or late; one too many is early, or told twice.
//!
//! On a new connection the client leaves its watches again with what its session has seen. What changed since
//! is told at once, by what the nodes are like then, in place of the watch. Of watches that stay nothing is
//! told, as in ZooKeeper.
//!
//! Of a node that its list hides a client is told nothing, whatever it watches and however it came to watch
//! it (CVE-2024-23944). Whom a list means is a question of the specification ([`crate::invariants`]).

use std::collections::BTreeSet;
use std::sync::Arc;

use bytestring::ByteString;
use node_wire::client::{Acl, EventType, SetWatches2};
use node_wire::ids::Zxid;

use crate::outcome::Rule;

/// Something that happened to a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) zxid: Zxid,
    pub(crate) kind: EventType,
    pub(crate) path: ByteString,
    /// The node's list at that moment; of one that goes, the last that it had.
    pub(crate) list: List,
}

/// An access control list.
pub(crate) type List = Arc<Vec<Acl>>;

/// Whether the specification lets a client be told of a node with some list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reads {
    /// It may read the node: it must be told.
    Yes,
    /// It may not: it must not be told.
    No,
    /// It has said who it is, and nobody knows whether the member had heard of it by then.
    Perhaps,
}

/// Something that a client was told of, or should have been.
pub(crate) type Told = (i32, ByteString);

/// A node as it stands at some place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stands {
    /// When its data changed last.
    pub(crate) mzxid: Zxid,
    /// When its children did.
    pub(crate) pzxid: Zxid,
    pub(crate) list: List,
}

/// How a node stands; nothing of one that is not there.
pub(crate) type Standing = Option<Stands>;

/// An event that is due, and whether it must come.
type Due = (Told, Reads);

/// The watches of a client, as it keeps them to leave them again.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watching {
    data: BTreeSet<ByteString>,
    exist: BTreeSet<ByteString>,
    children: BTreeSet<ByteString>,
    persistent: BTreeSet<ByteString>,
    recursive: BTreeSet<ByteString>,
    /// The last reply on this connection; none before the first.
    seen: Option<Zxid>,
    /// Events since then.
    told: Vec<Told>,
}

impl Watching {
    /// True when there is nothing to leave again.
    pub(crate) fn is_empty(&self) -> bool {
        let Self { data, exist, children, persistent, recursive, seen: _, told: _ } = self;
        [data, exist, children, persistent, recursive].iter().all(|paths| paths.is_empty())
    }

    /// The watches are given up.
    pub(crate) fn forget(&mut self) {
        *self = Self { seen: self.seen, told: std::mem::take(&mut self.told), ..Self::default() };
    }

    /// Another connection: nothing stands there.
    pub(crate) fn moves(&mut self) {
        self.seen = None;
        self.told.clear();
    }

    /// The request that leaves them again.
    pub(super) fn again(&self, seen: Zxid) -> SetWatches2 {
        let all = |paths: &BTreeSet<ByteString>| paths.iter().cloned().collect();
        SetWatches2 {
            relative_zxid: seen,
            data_watches: all(&self.data),
            exist_watches: all(&self.exist),
            child_watches: all(&self.children),
            persistent_watches: all(&self.persistent),
            persistent_recursive_watches: all(&self.recursive),
        }
    }

    /// The client is told of something.
    pub(crate) fn is_told(&mut self, event: Told) {
        self.told.push(event);
    }

    /// A reply of this place came: true when nothing is watched and nothing was told, so that it needs no
    /// explaining.
    pub(crate) fn rests(&mut self, zxid: Zxid) -> bool {
        let rests = self.told.is_empty() && self.is_empty();
        if rests {
            self.seen = Some(zxid);
        }
        rests
    }

    /// From where on the next reply must be explained.
    pub(crate) fn seen(&self) -> Option<Zxid> {
        self.seen
    }

    /// A reply of this place came, behind these changes. The error says what is wrong with what was told
    /// before it.
    pub(crate) fn shown(
        &mut self,
        zxid: Zxid,
        changes: &[Change],
        reads: impl Fn(&[Acl]) -> Reads,
    ) -> Result<usize, (Rule, String)> {
        let mut due = Vec::new();
        for change in changes {
            // A watch that is told once is spent, told or not.
            if self.watches(change) {
                due.push(((change.kind.code(), change.path.clone()), reads(&change.list)));
            }
        }
        self.compare(zxid, due)
    }

    /// The reply to leaving all watches again came, where the nodes stand so.
    pub(crate) fn resumed(
        &mut self,
        zxid: Zxid,
        since: Zxid,
        standing: impl Fn(&ByteString) -> Standing,
        reads: impl Fn(&[Acl]) -> Reads,
    ) -> Result<usize, (Rule, String)> {
        let mut due: Vec<Due> = Vec::new();
        // That a node is gone may be known, and there is no list of it to ask.
        let mut owe = |kind: EventType, path: &ByteString, stands: Standing| {
            due.push(((kind.code(), path.clone()), stands.map_or(Reads::Yes, |stands| reads(&stands.list))));
        };
        self.data.retain(|path| {
            let stands = standing(path);
            let kind = match &stands {
                None => EventType::NodeDeleted,
                Some(stands) if stands.mzxid > since => EventType::NodeDataChanged,
                Some(_) => return true,
            };
            owe(kind, path, stands);
            false
        });
        self.exist.retain(|path| {
            let stands = standing(path);
            let is_there = stands.is_some();
            if is_there {
                owe(EventType::NodeCreated, path, stands);
            }
            !is_there
        });
        self.children.retain(|path| {
            let stands = standing(path);
            let kind = match &stands {
                None => EventType::NodeDeleted,
                Some(stands) if stands.pzxid > since => EventType::NodeChildrenChanged,
                Some(_) => return true,
            };
            owe(kind, path, stands);
            false
        });
        self.compare(zxid, due)
    }

    fn compare(&mut self, zxid: Zxid, mut due: Vec<Due>) -> Result<usize, (Rule, String)> {
        let told = std::mem::take(&mut self.told);
        self.seen = Some(zxid);
        for event in &told {
            let due_as = |reads: Reads| due.iter().position(|due| due.0 == *event && due.1 == reads);
            if let Some(at) = due_as(Reads::Yes).or_else(|| due_as(Reads::Perhaps)) {
                due.swap_remove(at);
                continue;
            }
            let event = words(event);
            return Err(if due_as(Reads::No).is_some() {
                (Rule::LawfulAnswers, format!("was told {event}, which it may not read, before {zxid}"))
            } else {
                let sentence =
                    format!("was told {event} before a reply at {zxid}, which explains no such event");
                (Rule::Watches, sentence)
            });
        }
        match due.iter().find(|(_, reads)| *reads == Reads::Yes) {
            Some((event, _)) => {
                Err((Rule::Watches, format!("was shown {zxid} and not told {} before", words(event))))
            }
            None => Ok(told.len()),
        }
    }

    /// True when somebody is told of this. A watch that is told once is spent.
    fn watches(&mut self, change: &Change) -> bool {
        let path = &change.path;
        let stays = self.persistent.contains(path);
        let reaches = self.recursive.iter().any(|above| above == path || is_below(path, above));
        match change.kind {
            EventType::NodeCreated | EventType::NodeDataChanged => {
                let once = self.data.remove(path) | self.exist.remove(path);
                once || stays || reaches
            }
            EventType::NodeDeleted => {
                let once = self.data.remove(path) | self.exist.remove(path) | self.children.remove(path);
                once || stays || reaches
            }
            EventType::NodeChildrenChanged => self.children.remove(path) || stays,
            EventType::None
            | EventType::DataWatchRemoved
            | EventType::ChildWatchRemoved
            | EventType::PersistentWatchRemoved => false,
        }
    }

    // What replies leave.

    /// A node's data, or the node itself, is watched.
    pub(crate) fn data(&mut self, path: ByteString) {
        self.exist.remove(&path);
        self.data.insert(path);
    }

    /// A node that is not there is watched.
    pub(crate) fn absent(&mut self, path: ByteString) {
        if !self.data.contains(&path) {
            self.exist.insert(path);
        }
    }

    pub(crate) fn children(&mut self, path: ByteString) {
        self.children.insert(path);
    }

    pub(crate) fn persistent(&mut self, path: ByteString) {
        self.persistent.insert(path);
    }

    pub(crate) fn recursive(&mut self, path: ByteString) {
        self.recursive.insert(path);
    }
}

fn is_below(path: &str, above: &str) -> bool {
    path.strip_prefix(above).is_some_and(|rest| rest.starts_with('/'))
}

fn words((kind, path): &Told) -> String {
    let kind = EventType::from_code(*kind).map_or_else(|| kind.to_string(), |kind| format!("{kind:?}"));
    format!("{kind} of {path}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(zxid: u64) -> Zxid {
        Zxid(zxid)
    }

    fn change(zxid: u64, kind: EventType, path: &'static str) -> Change {
        let list = Arc::new(vec![Acl::world_anyone()]);
        Change { zxid: at(zxid), kind, path: ByteString::from_static(path), list }
    }

    fn all(_: &[Acl]) -> Reads {
        Reads::Yes
    }

    fn event(kind: EventType, path: &'static str) -> Told {
        (kind.code(), ByteString::from_static(path))
    }

    #[test]
    fn an_event_comes_once_and_before_the_reply_that_shows_its_change() {
        let changed = EventType::NodeDataChanged;
        let changes = [change(2, changed, "/w/a")];
        let mut watching = Watching::default();
        watching.data(ByteString::from_static("/w/a"));

        let mut on_time = watching.clone();
        on_time.is_told(event(changed, "/w/a"));
        assert_eq!(on_time.shown(at(2), &changes, all), Ok(1));
        on_time.is_told(event(changed, "/w/a"));
        assert!(on_time.shown(at(3), &[change(3, changed, "/w/a")], all).is_err(), "twice");

        assert!(watching.clone().shown(at(2), &changes, all).is_err(), "late or lost");
        watching.is_told(event(changed, "/w/a"));
        assert!(watching.shown(at(1), &[], all).is_err(), "early");
    }

    #[test]
    fn who_may_read_must_be_told_and_who_may_not_must_not() {
        let created = EventType::NodeCreated;
        let changes = [change(2, created, "/p0/s0")];
        let mut silent = Watching::default();
        silent.recursive(ByteString::from_static("/p0"));
        let mut told = silent.clone();
        told.is_told(event(created, "/p0/s0"));
        let verdicts = |reads: Reads| {
            let rule = |watching: &Watching| {
                watching.clone().shown(at(2), &changes, |_| reads).err().map(|(rule, _)| rule)
            };
            (rule(&told), rule(&silent))
        };
        assert_eq!(verdicts(Reads::Yes), (None, Some(Rule::Watches)));
        assert_eq!(verdicts(Reads::No), (Some(Rule::LawfulAnswers), None));
        assert_eq!(verdicts(Reads::Perhaps), (None, None));
    }

    #[test]
    fn what_changed_meanwhile_is_told_when_watches_are_left_again() {
        let path = ByteString::from_static("/w/a");
        let mut watching = Watching::default();
        watching.data(path.clone());
        let list = Arc::new(vec![Acl::world_anyone()]);
        let standing = |_: &ByteString| Some(Stands { mzxid: at(5), pzxid: at(1), list: Arc::clone(&list) });
        assert!(watching.clone().resumed(at(6), at(4), standing, all).is_err(), "lost");
        let hidden = |_: &[Acl]| Reads::No;
        assert_eq!(watching.clone().resumed(at(6), at(4), standing, hidden), Ok(0));
        watching.is_told(event(EventType::NodeDataChanged, "/w/a"));
        assert!(watching.clone().resumed(at(6), at(4), standing, hidden).is_err(), "told");
        assert_eq!(watching.resumed(at(6), at(4), standing, all), Ok(1));
        assert!(watching.is_empty(), "it is spent");
    }

    #[test]
    fn a_watch_that_reaches_below_is_told_of_no_children() {
        let mut watching = Watching::default();
        watching.recursive(ByteString::from_static("/w/d"));
        watching.is_told(event(EventType::NodeCreated, "/w/d/0"));
        let changes = [
            change(1, EventType::NodeCreated, "/w/d/0"),
            change(1, EventType::NodeChildrenChanged, "/w/d"),
            change(1, EventType::NodeCreated, "/w/dd"),
        ];
        assert_eq!(watching.shown(at(1), &changes, all), Ok(1));
    }
}
