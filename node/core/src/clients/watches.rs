//! Watches: who is told when a node changes.
//!
//! A watch belongs to a connection and goes with it; the client leaves it again when it comes back
//! ([`OpCode::SetWatches`](node_wire::client::OpCode)). There are two places at each path, for data and for
//! children, and in each a watch of three kinds: one that is told once, one that stays, and one that stays
//! and reaches everything below. ZooKeeper keeps one kind for a place, so that a getData with a watch makes a
//! persistent one forgetful there (ZOOKEEPER-4466); here they stand side by side, and a client is told of
//! each event once.
//!
//! A watch may stand where its client may not read: `exists` asks no list, a recursive one reaches nodes that
//! come later, and lists change. So the node's list is asked when the watch fires (CVE-2024-23944): of a node
//! that goes the one that it had, of children that come and go the parent's. A watch that is told once is
//! spent also when nothing is told.
//!
//! Events leave with the step that applies the transaction, in the connection's order. So a client sees an
//! event before any reply that shows the change, its own write's included.
//!
//! A connection may leave a million of them behind. To take those away at once would hold everybody else up
//! for half a second, long enough for peers to give this member up: some go with the connection, the others
//! tick by tick.

use std::collections::{BTreeMap, BTreeSet};

use bytestring::ByteString;
use node_wire::client::{Acl, AddWatchMode, EventType};
use node_wire::ids::Zxid;

use super::reply;
use crate::io::{ClientId, Effect};
use crate::tree::{Seen, Tree, Znode, looked_up, parent_of};

/// Paths that one connection may watch. One that wants more is closed: memory is not the client's to spend.
pub(super) const MAX_WATCHED: usize = 1 << 20;

/// Bytes that these paths may have together.
pub(super) const MAX_WATCHED_BYTES: usize = 64 << 20;

/// Paths that are cleared away at a time: about a millisecond's work.
const SWEPT: usize = 4096;

/// The watches of one place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Kinds {
    once: bool,
    persistent: bool,
    recursive: bool,
}

impl Kinds {
    fn is_told(self) -> bool {
        self.once || self.persistent || self.recursive
    }
}

/// What one connection watches at one path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Watch {
    data: Kinds,
    children: Kinds,
}

impl Watch {
    fn is_empty(self) -> bool {
        self == Watch::default()
    }

    fn is_recursive(self) -> bool {
        self.data.recursive || self.children.recursive
    }
}

/// Where a watch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Data,
    Children,
}

/// Which watches a client asks about or takes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    Children,
    Data,
    Any,
}

impl Which {
    pub(super) fn from_code(code: i32) -> Option<Which> {
        match code {
            1 => Some(Which::Children),
            2 => Some(Which::Data),
            3 => Some(Which::Any),
            _ => None,
        }
    }
}

/// The watches that a client had on an earlier connection.
#[derive(Debug)]
pub(super) struct Earlier {
    /// What the client has seen.
    pub(super) seen: Zxid,
    pub(super) data: Vec<ByteString>,
    pub(super) exist: Vec<ByteString>,
    pub(super) children: Vec<ByteString>,
    pub(super) persistent: Vec<ByteString>,
    pub(super) recursive: Vec<ByteString>,
}

impl Earlier {
    /// All paths, some perhaps more than once.
    pub(super) fn paths(&self) -> impl Iterator<Item = &ByteString> {
        let Self { seen: _, data, exist, children, persistent, recursive } = self;
        [data, exist, children, persistent, recursive].into_iter().flatten()
    }
}

/// The paths that a connection watches.
#[derive(Clone, Debug, Default, Hash)]
struct Watched {
    paths: BTreeSet<ByteString>,
    bytes: usize,
}

/// All watches of this member's clients.
#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct Watches {
    by_path: BTreeMap<ByteString, BTreeMap<ClientId, Watch>>,
    by_client: BTreeMap<ClientId, Watched>,
    /// Paths with a watch that reaches below, once for each client.
    recursive: usize,
    /// Connections that are gone, and where their watches still stand. They are told nothing.
    gone: BTreeMap<ClientId, BTreeSet<ByteString>>,
    /// What stands nowhere any more and is only to be given back.
    discarded: Discarded,
}

/// Watches of a time that is over.
#[derive(Clone, Debug, Default, Hash)]
struct Discarded {
    by_path: BTreeMap<ByteString, BTreeMap<ClientId, Watch>>,
    by_client: Vec<BTreeSet<ByteString>>,
}

impl Watches {
    /// A watch that is told once.
    pub(super) fn once(&mut self, client: ClientId, path: &ByteString, place: Place) {
        self.change(client, path, |watch| match place {
            Place::Data => watch.data.once = true,
            Place::Children => watch.children.once = true,
        });
    }

    /// A watch that stays.
    pub(super) fn add(&mut self, client: ClientId, path: &ByteString, mode: AddWatchMode) {
        self.change(client, path, |watch| {
            for kinds in [&mut watch.data, &mut watch.children] {
                match mode {
                    AddWatchMode::Persistent => kinds.persistent = true,
                    AddWatchMode::PersistentRecursive => kinds.recursive = true,
                }
            }
        });
    }

    /// Takes watches back. False when there was none.
    pub(super) fn remove(&mut self, client: ClientId, path: &ByteString, which: Which) -> bool {
        let is_there = self.contains(client, path, which);
        if is_there {
            self.change(client, path, |watch| {
                if which != Which::Children {
                    watch.data = Kinds::default();
                }
                if which != Which::Data {
                    watch.children = Kinds::default();
                }
            });
        }
        is_there
    }

    pub(super) fn contains(&self, client: ClientId, path: &str, which: Which) -> bool {
        let watch = self.by_path.get(path).and_then(|clients| clients.get(&client));
        watch.is_some_and(|watch| match which {
            Which::Children => watch.children.is_told(),
            Which::Data => watch.data.is_told(),
            Which::Any => true,
        })
    }

    /// True when a connection may watch these paths beside those that it watches.
    pub(super) fn has_room<'a>(&self, client: ClientId, more: impl Iterator<Item = &'a ByteString>) -> bool {
        let before =
            self.by_client.get(&client).map_or((0, 0), |watched| (watched.paths.len(), watched.bytes));
        let (count, bytes) = more.fold(before, |(count, bytes), path| (count + 1, bytes + path.len()));
        count <= MAX_WATCHED && bytes <= MAX_WATCHED_BYTES
    }

    /// A connection is gone, and its watches with it.
    pub(super) fn forget(&mut self, client: ClientId) {
        let Some(Watched { mut paths, bytes: _ }) = self.by_client.remove(&client) else { return };
        self.drop_some(client, &mut paths);
        if !paths.is_empty() {
            self.gone.insert(client, paths);
        }
    }

    /// Nobody is served any more.
    pub(super) fn clear(&mut self) {
        let Self { mut by_path, by_client, gone, mut discarded, recursive: _ } = std::mem::take(self);
        discarded.by_path.append(&mut by_path);
        discarded.by_client.extend(by_client.into_values().map(|watched| watched.paths));
        discarded.by_client.extend(gone.into_values());
        self.discarded = discarded;
        self.sweep();
    }

    /// Clears some of that away which connections have left behind.
    pub(super) fn sweep(&mut self) {
        if let Some((client, mut paths)) = self.gone.pop_first() {
            self.drop_some(client, &mut paths);
            if !paths.is_empty() {
                self.gone.insert(client, paths);
            }
        }
        let Discarded { by_path, by_client } = &mut self.discarded;
        for _ in 0..SWEPT {
            if by_path.pop_first().is_none() {
                break;
            }
        }
        if let Some(mut paths) = by_client.pop() {
            for _ in 0..SWEPT {
                paths.pop_first();
            }
            if !paths.is_empty() {
                by_client.push(paths);
            }
        }
    }

    fn drop_some(&mut self, client: ClientId, paths: &mut BTreeSet<ByteString>) {
        for _ in 0..SWEPT {
            let Some(path) = paths.pop_first() else { break };
            self.drop_at(client, &path);
        }
    }

    fn change(&mut self, client: ClientId, path: &ByteString, change: impl FnOnce(&mut Watch)) {
        // An own copy, once for all: a slice of a request would keep all of it alive as long as the watch.
        let path = match self.by_path.get_key_value(path) {
            Some((path, _)) => path.clone(),
            None => ByteString::from(path.to_string()),
        };
        let clients = self.by_path.entry(path.clone()).or_default();
        let watch = clients.entry(client).or_default();
        let before = watch.is_recursive();
        change(watch);
        let (after, is_empty) = (watch.is_recursive(), watch.is_empty());
        self.recursive = self.recursive + usize::from(after) - usize::from(before);
        if is_empty {
            self.drop_at(client, &path);
            self.drop_of(client, &path);
        } else {
            let watched = self.by_client.entry(client).or_default();
            let len = path.len();
            if watched.paths.insert(path) {
                watched.bytes += len;
            }
        }
    }

    fn drop_at(&mut self, client: ClientId, path: &ByteString) {
        let Some(clients) = self.by_path.get_mut(path) else { return };
        if clients.remove(&client).is_some_and(Watch::is_recursive) {
            self.recursive -= 1;
        }
        if clients.is_empty() {
            self.by_path.remove(path);
        }
    }

    fn drop_of(&mut self, client: ClientId, path: &ByteString) {
        if let Some(watched) = self.by_client.get_mut(&client) {
            if watched.paths.remove(path) {
                watched.bytes -= path.len();
            }
            if watched.paths.is_empty() {
                self.by_client.remove(&client);
            }
        }
    }

    /// A transaction was applied: whoever watches, and may read the node by its list, is told, in the order
    /// in which things were seen.
    pub(super) fn tell(
        &mut self,
        seen: &[Seen],
        may_read: impl Fn(ClientId, &[Acl]) -> bool,
        out: &mut Vec<Effect>,
    ) {
        if self.by_path.is_empty() {
            return;
        }
        for Seen { kind, path, list } in seen {
            let mut told = self.told(*kind, path);
            told.retain(|client| may_read(*client, list));
            if !told.is_empty() {
                let frame = reply::event(*kind, path);
                out.extend(told.into_iter().map(|client| Effect::Reply { client, frame: frame.clone() }));
            }
        }
    }

    /// Who is told of something. Those who are told once are not told again.
    fn told(&mut self, kind: EventType, path: &ByteString) -> BTreeSet<ClientId> {
        let mut told = BTreeSet::new();
        let mut spent = Vec::new();
        for (client, watch) in self.by_path.get_mut(path).into_iter().flatten() {
            let mut take = |kinds: &mut Kinds, recursive: bool| {
                if kinds.once || kinds.persistent || (recursive && kinds.recursive) {
                    told.insert(*client);
                }
                kinds.once = false;
            };
            match kind {
                EventType::NodeCreated | EventType::NodeDataChanged => take(&mut watch.data, true),
                EventType::NodeDeleted => {
                    take(&mut watch.data, true);
                    take(&mut watch.children, true);
                }
                // Whoever watches everything below hears of the child itself.
                EventType::NodeChildrenChanged => take(&mut watch.children, false),
                EventType::None
                | EventType::DataWatchRemoved
                | EventType::ChildWatchRemoved
                | EventType::PersistentWatchRemoved => {}
            }
            if watch.is_empty() {
                spent.push(*client);
            }
        }
        for client in spent {
            self.drop_at(client, path);
            self.drop_of(client, path);
        }
        if self.recursive > 0 && kind != EventType::NodeChildrenChanged {
            self.told_below(path, &mut told);
        }
        told.retain(|client| !self.gone.contains_key(client));
        told
    }

    fn told_below(&self, path: &str, told: &mut BTreeSet<ClientId>) {
        let mut path = path;
        while let Some((parent, _)) = parent_of(path) {
            let watching = self.by_path.get(parent).into_iter().flatten();
            told.extend(watching.filter(|(_, watch)| watch.is_recursive()).map(|(client, _)| *client));
            path = parent;
        }
    }

    /// Leaves a client's earlier watches again. What changed since is told at once, in place of the watch: it
    /// would have been spent. Of persistent ones nothing is told, as in ZooKeeper: a client that keeps them
    /// reads again.
    ///
    /// A node that is there asks its list, as when the watch fires on a standing connection. Of one that is
    /// gone there is no list any more, and that it is gone is what everybody may know.
    pub(super) fn restore(
        &mut self,
        client: ClientId,
        earlier: Earlier,
        tree: &Tree,
        may_read: impl Fn(&Znode) -> bool,
        out: &mut Vec<Effect>,
    ) {
        let Earlier { seen, data, exist, children, persistent, recursive } = earlier;
        let mut restore = |path: &ByteString, place: Place, changed: Option<EventType>| match changed {
            None => self.once(client, path, place),
            Some(kind) if tree.node(looked_up(path)).is_none_or(&may_read) => {
                out.push(Effect::Reply { client, frame: reply::event(kind, path) });
            }
            Some(_) => {}
        };
        for path in &data {
            let changed = match tree.node(looked_up(path)) {
                None => Some(EventType::NodeDeleted),
                Some(node) => (node.stat.mzxid > seen).then_some(EventType::NodeDataChanged),
            };
            restore(path, Place::Data, changed);
        }
        for path in &exist {
            let changed = tree.node(looked_up(path)).map(|_| EventType::NodeCreated);
            restore(path, Place::Data, changed);
        }
        for path in &children {
            let changed = match tree.node(looked_up(path)) {
                None => Some(EventType::NodeDeleted),
                Some(node) => (node.stat.pzxid > seen).then_some(EventType::NodeChildrenChanged),
            };
            restore(path, Place::Children, changed);
        }
        for (paths, mode) in
            [(persistent, AddWatchMode::Persistent), (recursive, AddWatchMode::PersistentRecursive)]
        {
            for path in &paths {
                self.add(client, path, mode);
            }
        }
    }

    /// How many there are, each path once for each client.
    pub(super) fn count(&self) -> usize {
        self.by_client.values().map(|watched| watched.paths.len()).sum()
    }

    /// Who watches which paths.
    pub(super) fn all(&self) -> impl Iterator<Item = (ClientId, &ByteString)> + '_ {
        let all = self.by_client.iter();
        all.flat_map(|(client, watched)| watched.paths.iter().map(|path| (*client, path)))
    }
}

#[cfg(test)]
mod tests;
