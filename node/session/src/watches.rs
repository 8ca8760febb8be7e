//! Who watches what, and whom an event concerns.
//!
//! A server knows of a session only that it watches a path; it tells each event once. Here stands which
//! parts of the client wait for it. One-time watches end with their event. All of them are left again on a
//! new connection ([`Watches::leave_again`]), together with what the session has seen: the server then tells
//! at once what changed since, so nothing is missed, and a watch that fired before is not left again, so
//! nothing is told twice. Persistent watches are not told what happened in between: ZooKeeper has no way to
//! say it. Whoever relies on one reads again when the session is connected again.

use std::collections::{BTreeMap, BTreeSet};

use bytestring::ByteString;
use node_wire::client::{ErrorCode, EventType, SetWatches2, WatcherEvent};
use node_wire::ids::Zxid;

/// What a watch waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WatchKind {
    /// The znode's data is changed, or it is deleted. Left by a read of it.
    Data,
    /// As data; also that a znode is created. Left by an exists.
    Exists,
    /// A child comes or goes, or the znode is deleted. Left by a listing.
    Children,
    /// All of these, until it is taken back.
    Persistent,
    /// All that happens to a znode and to those below, but for their lists of children, until taken back.
    Recursive,
}

/// A part of the client that watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner(pub u64);

/// What a watch saw.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Event {
    /// What happened.
    pub kind: EventType,
    /// To which znode.
    pub path: ByteString,
}

type ByPath = BTreeMap<ByteString, BTreeSet<Owner>>;

/// The most bytes of paths in one frame that leaves watches again; servers refuse frames beyond a limit.
const MAX_PATHS_LENGTH: usize = 128 << 10;

/// All watches of a session.
#[derive(Clone, Debug, Default)]
pub struct Watches {
    data: ByPath,
    exists: ByPath,
    children: ByPath,
    persistent: ByPath,
    recursive: ByPath,
}

impl Watches {
    /// A request that leaves a watch was answered, or refused with this code. To be called before any event
    /// that came behind the answer.
    pub fn answered(&mut self, kind: WatchKind, path: &ByteString, owner: Owner, refused: Option<ErrorCode>) {
        let list = match (kind, refused) {
            // As in ZooKeeper: an exists of a znode that is there is a watch on its data.
            (WatchKind::Exists | WatchKind::Data, None) => &mut self.data,
            (WatchKind::Exists, Some(ErrorCode::NoNode)) => &mut self.exists,
            (WatchKind::Children, None) => &mut self.children,
            (WatchKind::Persistent, None) => &mut self.persistent,
            (WatchKind::Recursive, None) => &mut self.recursive,
            (_, Some(_)) => return,
        };
        list.entry(path.clone()).or_default().insert(owner);
    }

    /// An event came. Gives it with those whom it concerns; nothing when its kind is not known, or when it is
    /// one of the connection.
    pub fn saw(&mut self, event: &WatcherEvent) -> Option<(Event, BTreeSet<Owner>)> {
        let kind = EventType::from_code(event.kind)?;
        let path = &event.path;
        let mut owners = BTreeSet::new();
        let mut spend = |list: &mut ByPath| owners.extend(list.remove(path).unwrap_or_default());
        match kind {
            EventType::None => return None,
            EventType::NodeCreated | EventType::NodeDataChanged => {
                spend(&mut self.data);
                spend(&mut self.exists);
            }
            EventType::NodeDeleted => {
                spend(&mut self.data);
                spend(&mut self.exists);
                spend(&mut self.children);
            }
            EventType::NodeChildrenChanged => spend(&mut self.children),
            EventType::DataWatchRemoved => {
                spend(&mut self.data);
                spend(&mut self.exists);
            }
            EventType::ChildWatchRemoved => spend(&mut self.children),
            EventType::PersistentWatchRemoved => {
                spend(&mut self.persistent);
                spend(&mut self.recursive);
            }
        }
        owners.extend(self.persistent.get(path).into_iter().flatten());
        if kind != EventType::NodeChildrenChanged {
            owners.extend(self.recursive_above(path));
        }
        Some((Event { kind, path: path.clone() }, owners))
    }

    fn recursive_above(&self, path: &str) -> BTreeSet<Owner> {
        let mut owners = BTreeSet::new();
        let mut above = path;
        loop {
            owners.extend(self.recursive.get(above).into_iter().flatten());
            match above.rfind('/') {
                _ if above == "/" => return owners,
                Some(0) => above = "/",
                Some(end) => above = &above[..end],
                None => return owners,
            }
        }
    }

    /// A part of the client no longer watches.
    pub fn forget(&mut self, owner: Owner) {
        for list in self.lists_mut() {
            list.retain(|_, owners| {
                owners.remove(&owner);
                !owners.is_empty()
            });
        }
    }

    /// The session is over, and all that it watched with it.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// How many paths are watched, each in its way.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lists().iter().map(|list| list.len()).sum()
    }

    /// True when nothing is watched.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lists().iter().all(|list| list.is_empty())
    }

    fn lists(&self) -> [&ByPath; 5] {
        [&self.data, &self.exists, &self.children, &self.persistent, &self.recursive]
    }

    fn lists_mut(&mut self) -> [&mut ByPath; 5] {
        [&mut self.data, &mut self.exists, &mut self.children, &mut self.persistent, &mut self.recursive]
    }

    /// What leaves all watches again on a new connection, in pieces of which each fits into a frame. `seen`
    /// is the newest zxid that the session saw.
    #[must_use]
    pub fn leave_again(&self, seen: Zxid) -> Vec<SetWatches2> {
        let mut pieces: Vec<SetWatches2> = Vec::new();
        let mut length = MAX_PATHS_LENGTH;
        for (which, list) in self.lists().into_iter().enumerate() {
            for path in list.keys() {
                if length + path.len() + 4 > MAX_PATHS_LENGTH {
                    pieces.push(SetWatches2 { relative_zxid: seen, ..SetWatches2::default() });
                    length = 0;
                }
                length += path.len() + 4;
                let Some(piece) = pieces.last_mut() else { continue };
                match which {
                    0 => piece.data_watches.push(path.clone()),
                    1 => piece.exist_watches.push(path.clone()),
                    2 => piece.child_watches.push(path.clone()),
                    3 => piece.persistent_watches.push(path.clone()),
                    _ => piece.persistent_recursive_watches.push(path.clone()),
                }
            }
        }
        pieces
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANN: Owner = Owner(1);
    const BEN: Owner = Owner(2);

    fn event(kind: EventType, path: &str) -> WatcherEvent {
        WatcherEvent { kind: kind.code(), state: 3, path: path.into() }
    }

    fn concerned(watches: &mut Watches, kind: EventType, path: &str) -> Vec<Owner> {
        let (_, owners) = watches.saw(&event(kind, path)).expect("an event of a znode");
        owners.into_iter().collect()
    }

    #[test]
    fn a_watch_of_one_event_ends_with_it_and_is_not_left_again() {
        let mut watches = Watches::default();
        watches.answered(WatchKind::Data, &"/a".into(), ANN, None);
        watches.answered(WatchKind::Exists, &"/a".into(), BEN, None);
        watches.answered(WatchKind::Children, &"/a".into(), BEN, None);
        assert_eq!(concerned(&mut watches, EventType::NodeDataChanged, "/a"), [ANN, BEN]);
        assert_eq!(concerned(&mut watches, EventType::NodeDataChanged, "/a"), []);
        let again = watches.leave_again(Zxid::from_wire(7));
        assert_eq!(again.len(), 1);
        assert_eq!(again[0].child_watches, ["/a"]);
        assert!(again[0].data_watches.is_empty() && again[0].exist_watches.is_empty());
        assert_eq!(concerned(&mut watches, EventType::NodeDeleted, "/a"), [BEN]);
        assert!(watches.is_empty());
    }

    #[test]
    fn a_refused_request_leaves_no_watch_but_an_exists_where_nothing_is() {
        let mut watches = Watches::default();
        for kind in [WatchKind::Data, WatchKind::Children, WatchKind::Exists] {
            watches.answered(kind, &"/a".into(), ANN, Some(ErrorCode::NoNode));
        }
        assert_eq!(watches.len(), 1);
        assert_eq!(concerned(&mut watches, EventType::NodeCreated, "/a"), [ANN]);
    }

    #[test]
    fn persistent_watches_stay_and_recursive_ones_reach_below() {
        let mut watches = Watches::default();
        watches.answered(WatchKind::Persistent, &"/a".into(), ANN, None);
        watches.answered(WatchKind::Recursive, &"/".into(), BEN, None);
        assert_eq!(concerned(&mut watches, EventType::NodeChildrenChanged, "/a"), [ANN]);
        for _ in 0..2 {
            assert_eq!(concerned(&mut watches, EventType::NodeDataChanged, "/a"), [ANN, BEN]);
        }
        assert_eq!(concerned(&mut watches, EventType::NodeCreated, "/a/b/c"), [BEN]);
        assert_eq!(concerned(&mut watches, EventType::PersistentWatchRemoved, "/a"), [ANN, BEN]);
        assert_eq!(concerned(&mut watches, EventType::NodeDataChanged, "/a"), [BEN]);
    }

    #[test]
    fn many_watches_are_left_again_in_pieces_that_fit_into_frames() {
        let mut watches = Watches::default();
        for number in 0..10_000 {
            watches.answered(WatchKind::Data, &format!("/some/path/{number:020}").into(), ANN, None);
        }
        let pieces = watches.leave_again(Zxid::ZERO);
        let length =
            |piece: &SetWatches2| piece.data_watches.iter().map(|path| path.len() + 4).sum::<usize>();
        assert_eq!(pieces.iter().map(|piece| piece.data_watches.len()).sum::<usize>(), 10_000);
        assert!(pieces.iter().all(|piece| length(piece) <= MAX_PATHS_LENGTH));
    }
}
