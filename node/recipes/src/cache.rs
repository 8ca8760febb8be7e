//! A copy of a znode and of all below it, kept up to date by one watch.
//!
//! The cache leaves a persistent recursive watch first, and then reads each znode with its list of children,
//! in one request of one state. An event of the watch has the znode read again, or forgotten where it was
//! deleted. Events come before answers that show their change. So whatever an answer does not show has an
//! event to come, and the cache never misses a change while it is connected.
//!
//! A persistent watch is not told what happened while there was no connection. So after each reconnection the
//! cache reads all again ([`Told::Stale`], and then [`Told::Complete`]), and tells only what differs. On a
//! new session it leaves the watch again as well.
//!
//! **Lost answers** cost nothing: whatever was asked is asked again.
//!
//! **Not promised:** that every change is told (several at a time are one), in the order in which they were
//! made; nor that what is told is the newest: it is old by as much as the server is, and all of it while the
//! connection is gone. Neither is it one state of the whole tree. A znode that nobody may read is not there.
//! The memory is that of the tree.
//!
//! Whoever leaves takes the watch back by dropping it in the client. At the server it stays as long as the
//! session, because taking it back there takes all of the session's watches of that znode.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use bytes::Bytes;
use bytestring::ByteString;
use node_session::{Event, Failure, Moment, Request, Response};
use node_wire::client::{AddWatchMode, ErrorCode, EventType, MultiOp, MultiResult, PathWatch, Stat};
use node_wire::ids::Zxid;

use crate::line::Left;
use crate::names::child;
use crate::recipe::{Ask, Asks, Effects, Input, Now, Recipe};
use crate::served::{Served, verdict};

/// How many znodes are being read at a time.
const READS: usize = 64;

/// What somebody who has a cache may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    /// Keep it no longer.
    Leave,
}

/// What changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// A znode is there that was not.
    Added(ByteString),
    /// A znode's data was set, or it was deleted and made again.
    Changed(ByteString),
    /// A znode is not there any more.
    Removed(ByteString),
    /// All znodes are in the cache, and changes are told as they come.
    Complete,
    /// Changes are not told any more, until [`Told::Complete`] comes.
    Stale,
    /// Nothing follows.
    Over(Left),
}

/// A znode in the cache.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Znode {
    /// Its data.
    pub data: Bytes,
    /// How often it was set.
    pub version: i32,
    /// The transaction that created it.
    pub czxid: Zxid,
    /// The transaction that set its data last.
    pub mzxid: Zxid,
    /// In which reading of the whole tree it was read last.
    reading: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Purpose {
    Watch,
    Read(ByteString),
}

/// A cache.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cache {
    root: ByteString,
    asks: Asks<Purpose>,
    served: Served,
    znodes: BTreeMap<ByteString, Znode>,
    /// To be read.
    due: BTreeSet<ByteString>,
    open: usize,
    unwatched: bool,
    /// Of the whole tree.
    reading: u64,
    complete: bool,
    over: bool,
}

impl Cache {
    /// A cache of this znode and of all below, whether it is there or not.
    #[must_use]
    pub fn new(root: impl Into<ByteString>) -> Self {
        Self {
            root: root.into(),
            asks: Asks::default(),
            served: Served::default(),
            znodes: BTreeMap::new(),
            due: BTreeSet::new(),
            open: 0,
            unwatched: true,
            reading: 0,
            complete: false,
            over: false,
        }
    }

    /// What is in the cache, by path.
    #[must_use]
    pub fn znodes(&self) -> &BTreeMap<ByteString, Znode> {
        &self.znodes
    }

    /// True while changes are told as they come.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    fn is_within(&self, path: &str) -> bool {
        path == &*self.root || path.starts_with(&below(&self.root))
    }

    fn connected(&mut self) {
        self.unwatched = true;
        self.reading += 1;
        self.due.clear();
        self.due.insert(self.root.clone());
    }

    fn stale(&mut self, effects: &mut Effects<Told>) {
        if std::mem::take(&mut self.complete) {
            effects.tell(Told::Stale);
        }
    }

    fn event(&mut self, event: Event, effects: &mut Effects<Told>) {
        if !self.is_within(&event.path) {
            return;
        }
        match event.kind {
            EventType::NodeDeleted => self.forget(&event.path, effects),
            EventType::NodeCreated | EventType::NodeDataChanged => {
                self.due.insert(event.path);
            }
            EventType::PersistentWatchRemoved => self.connected(),
            _ => {}
        }
    }

    /// A znode is gone, and all below it.
    fn forget(&mut self, path: &ByteString, effects: &mut Effects<Told>) {
        self.due.remove(path);
        let below = below(path);
        let from = (Bound::Included(ByteString::from(below.as_str())), Bound::Unbounded);
        let all = self.znodes.range(from).map(|(path, _)| path);
        let mut gone: Vec<ByteString> = all.take_while(|path| path.starts_with(&below)).cloned().collect();
        // Children go before their parents, as in the ensemble.
        gone.reverse();
        gone.push(path.clone());
        for path in gone {
            if self.znodes.remove(&path).is_some() {
                effects.tell(Told::Removed(path));
            }
        }
    }

    fn proceed(&mut self, effects: &mut Effects<Told>) {
        if !self.served.is_ready() || self.over {
            return;
        }
        if std::mem::take(&mut self.unwatched) {
            let request =
                Request::AddWatch { path: self.root.clone(), mode: AddWatchMode::PersistentRecursive };
            self.asks.send(request, Purpose::Watch, effects);
        }
        while self.open < READS
            && let Some(path) = self.due.pop_first()
        {
            let of = || PathWatch { path: path.clone(), watch: false };
            let ops = vec![MultiOp::GetData(of()), MultiOp::GetChildren(of())];
            self.open += 1;
            self.asks.send(Request::MultiRead(ops), Purpose::Read(path), effects);
        }
        if self.open == 0 && !self.complete {
            self.complete = true;
            effects.tell(Told::Complete);
        }
    }

    fn answered(
        &mut self,
        now: Now,
        ask: Ask,
        answer: Result<Response, Failure>,
        effects: &mut Effects<Told>,
    ) {
        let Some(purpose) = self.asks.answered(ask) else { return };
        match (purpose, answer.map_err(verdict)) {
            (Purpose::Watch, Ok(_)) => {}
            (Purpose::Watch, Err(None)) => {
                self.unwatched = true;
                self.served.pause(now);
            }
            (Purpose::Read(path), Ok(Response::Multi(results))) => {
                self.open -= 1;
                self.read(&path, results, effects);
            }
            (Purpose::Read(path), Err(None)) => {
                self.open -= 1;
                self.due.insert(path);
                self.served.pause(now);
            }
            (Purpose::Read(_), Ok(_)) => self.open -= 1,
            (_, Err(Some(code))) => self.refused(code, effects),
        }
    }

    fn refused(&mut self, code: ErrorCode, effects: &mut Effects<Told>) {
        self.over = true;
        effects.tell(Told::Over(Left::Refused(code)));
    }

    fn read(&mut self, path: &ByteString, results: Vec<MultiResult>, effects: &mut Effects<Told>) {
        let mut results = results.into_iter();
        let (data, stat, names) = match (results.next(), results.next()) {
            (Some(MultiResult::GetData { data, stat }), Some(MultiResult::GetChildren { children })) => {
                (data.unwrap_or_default(), stat, children)
            }
            _ => return self.forget(path, effects),
        };
        self.keep(path, data, &stat, effects);
        let listed: BTreeSet<ByteString> = names.iter().map(|name| child(path, name)).collect();
        for gone in self.children(path) {
            if !listed.contains(&gone) {
                self.forget(&gone, effects);
            }
        }
        for path in listed {
            if self.znodes.get(&path).is_none_or(|znode| znode.reading != self.reading) {
                self.due.insert(path);
            }
        }
    }

    fn keep(&mut self, path: &ByteString, data: Bytes, stat: &Stat, effects: &mut Effects<Told>) {
        let (version, czxid, mzxid, reading) = (stat.version, stat.czxid, stat.mzxid, self.reading);
        let before = self.znodes.insert(path.clone(), Znode { data, version, czxid, mzxid, reading });
        match before {
            None => effects.tell(Told::Added(path.clone())),
            Some(before) if before.mzxid != mzxid => effects.tell(Told::Changed(path.clone())),
            Some(_) => {}
        }
    }

    /// The children in the cache.
    fn children(&self, path: &ByteString) -> Vec<ByteString> {
        let below = below(path);
        let from = (Bound::Included(ByteString::from(below.as_str())), Bound::Unbounded);
        let all = self.znodes.range(from).map(|(path, _)| path);
        all.take_while(|path| path.starts_with(&below))
            .filter(|path| path.len() > below.len() && !path[below.len()..].contains('/'))
            .cloned()
            .collect()
    }
}

/// How the paths below a znode begin.
fn below(path: &str) -> String {
    if path == "/" { path.into() } else { format!("{path}/") }
}

impl Recipe for Cache {
    type Call = Call;
    type Told = Told;

    fn step(&mut self, now: Now, input: Input<Call>, effects: &mut Effects<Told>) {
        if self.over {
            return;
        }
        self.served.follow(now, &input);
        match input {
            Input::Call(Call::Leave) => {
                self.over = true;
                effects.tell(Told::Over(Left::Resigned));
            }
            Input::Answered { ask, answer } => self.answered(now, ask, answer, effects),
            Input::Event(event) => self.event(event, effects),
            Input::Connected { .. } => self.connected(),
            Input::Suspended | Input::Lost => self.stale(effects),
            _ => {}
        }
        self.proceed(effects);
    }

    fn leave() -> Call {
        Call::Leave
    }

    fn wakes_at(&self) -> Option<Moment> {
        self.served.wakes_at()
    }

    fn is_over(&self) -> bool {
        self.over
    }
}

#[cfg(test)]
mod tests {
    use node_session::CreateMode;

    use super::*;
    use crate::testbed::{Dice, World};

    fn copy(world: &World<Cache>) -> BTreeMap<ByteString, Bytes> {
        let znodes = world.clients[0].recipe.znodes();
        znodes.iter().map(|(path, znode)| (path.clone(), znode.data.clone())).collect()
    }

    fn tree(world: &World<Cache>) -> BTreeMap<ByteString, Bytes> {
        let (mut all, mut open) = (BTreeMap::new(), vec![ByteString::from("/a")]);
        while let Some(path) = open.pop() {
            open.extend(world.tree.owners(&path).into_iter().map(|(below, _)| below));
            all.extend(world.tree.data(&path).map(|data| (path, data)));
        }
        all
    }

    fn set(world: &mut World<Cache>, path: &str, data: &'static str) {
        let request = Request::SetData { path: path.into(), data: data.into(), version: -1 };
        world.outside(&request).unwrap();
    }

    #[test]
    fn all_that_is_there_is_told_and_then_each_change() {
        let mut world = World::new(&["/a", "/a/b", "/ab"], [Cache::new("/a")]);
        world.settle();
        let added = |path: &'static str| Told::Added(path.into());
        assert_eq!(world.told(0), [added("/a"), added("/a/b"), Told::Complete]);
        set(&mut world, "/a/b", "x");
        set(&mut world, "/ab", "x");
        world.make("/a/b/c", "", CreateMode::Persistent);
        world.settle();
        assert_eq!(world.told(0), [Told::Changed("/a/b".into()), added("/a/b/c")]);
        world.delete("/a/b/c");
        world.settle();
        assert_eq!(world.told(0), [Told::Removed("/a/b/c".into())]);
        assert_eq!(copy(&world), tree(&world));
    }

    #[test]
    fn what_happened_while_the_connection_was_gone_is_read_and_only_that_is_told() {
        for lost in [false, true] {
            let mut world = World::new(&["/a", "/a/b", "/a/c", "/a/d"], [Cache::new("/a")]);
            world.settle();
            world.told(0);
            world.cut(0, 0);
            if lost {
                world.lose(0);
            }
            assert_eq!(world.told(0), [Told::Stale]);
            set(&mut world, "/a/b", "x");
            world.delete("/a/c");
            world.connect(0);
            world.settle();
            let told = [Told::Removed("/a/c".into()), Told::Changed("/a/b".into()), Told::Complete];
            assert_eq!(world.told(0), told);
            set(&mut world, "/a/d", "x");
            world.settle();
            assert_eq!(world.told(0), [Told::Changed("/a/d".into())]);
        }
    }

    #[test]
    fn a_root_that_is_not_there_is_told_when_it_comes() {
        let mut world = World::new(&[], [Cache::new("/a")]);
        world.settle();
        assert_eq!(world.told(0), [Told::Complete]);
        world.make("/a", "", CreateMode::Persistent);
        world.settle();
        assert_eq!(world.told(0), [Told::Added("/a".into())]);
    }

    #[test]
    fn drawn_changes_and_losses_leave_the_copy_as_the_tree() {
        let paths = ["/a", "/a/b", "/a/b/c", "/a/b-d", "/a/b/c/e", "/a/f"];
        for seed in 1..300 {
            let mut dice = Dice(seed * 0x9e37_79b9);
            let mut world = World::new(&[], [Cache::new("/a")]);
            for _ in 0..300 {
                let path = paths[dice.below(paths.len())];
                let (acl, mode) = (Vec::new(), CreateMode::Persistent);
                let change = match dice.below(6) {
                    0 | 1 => Request::Create { path: path.into(), data: Bytes::new(), acl, mode },
                    2 => Request::Delete { path: path.into(), version: -1 },
                    3 => Request::SetData { path: path.into(), data: "x".into(), version: -1 },
                    _ => Request::Sync { path: path.into() },
                };
                let _refused = world.outside(&change);
                world.chance(&mut dice, true);
            }
            world.heal();
            assert_eq!(copy(&world), tree(&world), "seed {seed}");
            assert!(world.clients[0].recipe.is_complete());
        }
    }
}
