//! What this member answers by itself: reads, and everything about watches and identities.
//!
//! Each is executed when its turn comes in its connection's queue, against the tree as it is then. A watch is
//! left in the same breath as the read that asks for it, so that nothing comes in between.
//!
//! A path is judged where something is written. Here a malformed one is that of a node which is not there, as
//! in ZooKeeper, and the empty one is the root's.

use bytes::Bytes;
use bytestring::ByteString;
use node_wire::client::{
    AddWatchMode, AddWatchRequest, AllChildrenNumberResponse, Children2Response, ChildrenResponse,
    ClientInfo, EphemeralsResponse, ErrorCode, ErrorResponse, ExistsResponse, GetAclResponse,
    GetDataResponse, Id, MultiOp, MultiRequest, MultiResponse, MultiResult, OpCode, PERM_ADMIN, PERM_READ,
    PathOnly, PathWatch, SetWatches, SetWatches2, WatchesRequest, WhoAmIResponse,
};
use node_wire::ids::SessionId;
use node_wire::jute::{DecodeError, Reader};

use super::reply;
use super::watches::{Earlier, Place, Watches, Which};
use crate::access::{permits, shown_to, user_of};
use crate::io::{ClientId, Effect};
use crate::tree::{Tree, Znode, looked_up};

/// Who asks, and what of.
pub(super) struct Local<'a> {
    pub(super) client: ClientId,
    pub(super) session: SessionId,
    pub(super) who: &'a [Id],
    pub(super) skip_acl: bool,
    /// How long the results of a multiRead may be together.
    pub(super) max_results: usize,
    pub(super) tree: &'a Tree,
    pub(super) watches: &'a mut Watches,
}

impl Local<'_> {
    /// The reply to an operation of the class [`OpClass::Read`](node_wire::client::OpClass). Events of
    /// watches that are restored go before it.
    pub(super) fn answer(&mut self, xid: i32, op: OpCode, body: &Bytes, out: &mut Vec<Effect>) -> Bytes {
        let refuse = |error| reply::plain(xid, self.tree.zxid(), error);
        let mut body = Reader::new(body.clone());
        let answer = match op {
            OpCode::SetWatches | OpCode::SetWatches2 => self.set_watches(op, &mut body, out),
            OpCode::CheckWatches | OpCode::RemoveWatches => self.look_at_watches(op, &mut body),
            OpCode::AddWatch => self.add_watch(xid, &mut body),
            OpCode::MultiRead => self.multi_read(xid, &mut body),
            OpCode::WhoAmI => Ok(Some(self.who_am_i(xid))),
            OpCode::GetEphemerals => self.ephemerals(xid, &mut body),
            OpCode::GetAcl | OpCode::GetAllChildrenNumber => self.look_at_node(xid, op, &mut body),
            _ => self.read(xid, op, &mut body),
        };
        match answer {
            Ok(Some(frame)) => frame,
            Ok(None) => reply::plain(xid, self.tree.zxid(), ErrorCode::Ok),
            Err(error) => refuse(error),
        }
    }

    fn readable(&self, path: &str, permissions: i32) -> Result<&Znode, ErrorCode> {
        let node = self.tree.node(looked_up(path)).ok_or(ErrorCode::NoNode)?;
        if self.skip_acl || permits(&self.tree.acl_of(node), permissions, self.who) {
            Ok(node)
        } else {
            Err(ErrorCode::NoAuth)
        }
    }

    fn has_room<'a>(&self, more: impl Iterator<Item = &'a ByteString>) -> Result<(), ErrorCode> {
        if self.watches.has_room(self.client, more) { Ok(()) } else { Err(ErrorCode::ThrottledOp) }
    }

    /// exists, getData and both getChildren.
    fn read(&mut self, xid: i32, op: OpCode, body: &mut Reader) -> Answer {
        let PathWatch { path, watch } = PathWatch::decode(body).map_err(malformed)?;
        self.has_room(watch.then_some(&path).into_iter())?;
        let zxid = self.tree.zxid();
        let (frame, place) = match op {
            OpCode::Exists => {
                // The one thing about a path that ZooKeeper judges in a read, and in this one alone.
                if path.contains('\0') {
                    return Err(ErrorCode::BadArguments);
                }
                if watch {
                    // Also on a node that is not there yet.
                    self.watches.once(self.client, &path, Place::Data);
                }
                let stat = self.tree.exists(looked_up(&path))?;
                return Ok(Some(reply::with_body(xid, zxid, 0, |w| ExistsResponse { stat }.encode(w))));
            }
            OpCode::GetData => {
                let node = self.readable(&path, PERM_READ)?;
                let room = node.data.as_ref().map_or(0, Bytes::len);
                let response = GetDataResponse { data: node.data.clone(), stat: node.to_stat() };
                (reply::with_body(xid, zxid, room, |w| response.encode(w)), Place::Data)
            }
            OpCode::GetChildren => {
                let children = self.children(&path)?;
                (reply::with_body(xid, zxid, 0, |w| ChildrenResponse { children }.encode(w)), Place::Children)
            }
            _ => {
                let children = self.children(&path)?;
                let stat = self.tree.exists(looked_up(&path))?;
                let response = Children2Response { children, stat };
                (reply::with_body(xid, zxid, 0, |w| response.encode(w)), Place::Children)
            }
        };
        if watch {
            self.watches.once(self.client, &path, place);
        }
        Ok(Some(frame))
    }

    fn children(&self, path: &str) -> Result<Vec<ByteString>, ErrorCode> {
        Ok(self.readable(path, PERM_READ)?.children.iter().cloned().collect())
    }

    /// The same, unless they are longer than there is room.
    fn children_within(&self, path: &str, room: usize) -> Result<Vec<ByteString>, ErrorCode> {
        let mut left = room;
        let names = self.readable(path, PERM_READ)?.children.iter().map(|name| {
            left = left.checked_sub(bytes_of(name)).ok_or(ErrorCode::MarshallingError)?;
            Ok(name.clone())
        });
        names.collect()
    }

    /// getACL and getAllChildrenNumber.
    fn look_at_node(&self, xid: i32, op: OpCode, body: &mut Reader) -> Answer {
        let PathOnly { path } = PathOnly::decode(body).map_err(malformed)?;
        let zxid = self.tree.zxid();
        if op == OpCode::GetAllChildrenNumber {
            self.readable(&path, PERM_READ)?;
            let total = i32::try_from(self.tree.nodes_below(looked_up(&path)).count()).unwrap_or(i32::MAX);
            return Ok(Some(reply::with_body(xid, zxid, 0, |w| {
                AllChildrenNumberResponse { total }.encode(w);
            })));
        }
        let node = self.readable(&path, PERM_READ | PERM_ADMIN)?;
        let acl = self.tree.acl_of(node);
        let acl = if self.skip_acl { acl.as_ref().clone() } else { shown_to(&acl, self.who) };
        let response = GetAclResponse { acl, stat: node.to_stat() };
        Ok(Some(reply::with_body(xid, zxid, 0, |w| response.encode(w))))
    }

    fn ephemerals(&self, xid: i32, body: &mut Reader) -> Answer {
        let PathOnly { path: prefix } = PathOnly::decode(body).map_err(malformed)?;
        let all = matches!(prefix.trim(), "" | "/");
        let paths = self.tree.ephemerals(self.session).filter(|path| all || path.starts_with(&*prefix));
        let response = EphemeralsResponse { ephemerals: paths.cloned().collect() };
        Ok(Some(reply::with_body(xid, self.tree.zxid(), 0, |w| response.encode(w))))
    }

    fn who_am_i(&self, xid: i32) -> Bytes {
        let clients =
            self.who.iter().map(|id| ClientInfo { scheme: id.scheme.clone(), user: user_of(id) }).collect();
        reply::with_body(xid, self.tree.zxid(), 0, |w| WhoAmIResponse { clients }.encode(w))
    }

    /// Each has a result of its own: one that is refused does not stop the others. What a short request may
    /// ask for is bounded, because it can name the same large node thousands of times: behind the first
    /// result that has no room, only those that need none are given, and none is gathered in vain.
    fn multi_read(&self, xid: i32, body: &mut Reader) -> Answer {
        let MultiRequest { ops } = MultiRequest::decode(body).map_err(malformed)?;
        let mut room = self.max_results;
        let mut results = Vec::with_capacity(ops.len());
        for op in ops {
            let result = match op {
                MultiOp::GetData(PathWatch { path, .. }) => self
                    .readable(&path, PERM_READ)
                    .map(|node| MultiResult::GetData { data: node.data.clone(), stat: node.to_stat() }),
                MultiOp::GetChildren(PathWatch { path, .. }) => {
                    self.children_within(&path, room).map(|children| MultiResult::GetChildren { children })
                }
                // A write among reads: the request makes no sense.
                MultiOp::Create(_)
                | MultiOp::Create2(_)
                | MultiOp::CreateContainer(_)
                | MultiOp::CreateTtl(_)
                | MultiOp::Delete(_)
                | MultiOp::SetData(_)
                | MultiOp::Check(_) => return Err(ErrorCode::MarshallingError),
            };
            let result = result.and_then(|result| {
                room = room.checked_sub(bytes_in(&result)).ok_or(ErrorCode::MarshallingError)?;
                Ok(result)
            });
            if result.as_ref().is_err_and(|error| *error == ErrorCode::MarshallingError) {
                room = 0;
            }
            results.push(result.unwrap_or_else(|error| MultiResult::Error { err: error.code() }));
        }
        Ok(Some(reply::with_body(xid, self.tree.zxid(), 0, |w| MultiResponse { results }.encode(w))))
    }

    fn add_watch(&mut self, xid: i32, body: &mut Reader) -> Answer {
        let AddWatchRequest { path, mode } = AddWatchRequest::decode(body).map_err(malformed)?;
        let mode = AddWatchMode::from_code(mode).ok_or(ErrorCode::MarshallingError)?;
        self.has_room(std::iter::once(&path))?;
        self.watches.add(self.client, &path, mode);
        Ok(Some(reply::with_body(xid, self.tree.zxid(), 0, |w| ErrorResponse { err: 0 }.encode(w))))
    }

    /// checkWatches and removeWatches.
    fn look_at_watches(&mut self, op: OpCode, body: &mut Reader) -> Answer {
        let WatchesRequest { path, kind } = WatchesRequest::decode(body).map_err(malformed)?;
        let which = Which::from_code(kind).ok_or(ErrorCode::MarshallingError)?;
        let is_there = match op {
            OpCode::RemoveWatches => self.watches.remove(self.client, &path, which),
            _ => self.watches.contains(self.client, &path, which),
        };
        if is_there { Ok(None) } else { Err(ErrorCode::NoWatcher) }
    }

    fn set_watches(&mut self, op: OpCode, body: &mut Reader, out: &mut Vec<Effect>) -> Answer {
        let all = if op == OpCode::SetWatches {
            let SetWatches { relative_zxid, data_watches, exist_watches, child_watches } =
                SetWatches::decode(body).map_err(malformed)?;
            let none = SetWatches2::default();
            SetWatches2 { relative_zxid, data_watches, exist_watches, child_watches, ..none }
        } else {
            SetWatches2::decode(body).map_err(malformed)?
        };
        let earlier = Earlier {
            seen: all.relative_zxid,
            data: all.data_watches,
            exist: all.exist_watches,
            children: all.child_watches,
            persistent: all.persistent_watches,
            recursive: all.persistent_recursive_watches,
        };
        self.has_room(earlier.paths())?;
        let (tree, who, open) = (self.tree, self.who, self.skip_acl);
        let may_read = |node: &Znode| open || permits(&tree.acl_of(node), PERM_READ, who);
        self.watches.restore(self.client, earlier, tree, may_read, out);
        Ok(None)
    }
}

/// What a name takes in a list.
fn bytes_of(name: &ByteString) -> usize {
    4 + name.len()
}

/// What is long in a result.
fn bytes_in(result: &MultiResult) -> usize {
    match result {
        MultiResult::GetData { data, .. } => data.as_ref().map_or(0, Bytes::len),
        MultiResult::GetChildren { children } => children.iter().map(bytes_of).sum(),
        MultiResult::Create { .. }
        | MultiResult::Create2 { .. }
        | MultiResult::Delete
        | MultiResult::SetData { .. }
        | MultiResult::Check
        | MultiResult::Error { .. } => 0,
    }
}

/// A frame, nothing but the header, or a refusal.
type Answer = Result<Option<Bytes>, ErrorCode>;

fn malformed(_: DecodeError) -> ErrorCode {
    ErrorCode::MarshallingError
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;
    use node_wire::client::ReplyHeader;
    use node_wire::ids::Zxid;
    use node_wire::jute::Writer;
    use node_wire::txn::{Entry, Txn, TxnHeader};

    use super::*;

    #[test]
    fn the_empty_path_is_the_roots_and_a_nul_is_minded_by_exists_alone() {
        let tree = Tree::default();
        let watches = &mut Watches::default();
        let (client, session, max_results) = (ClientId(1), SessionId(1), 1 << 20);
        let mut local =
            Local { client, session, who: &[], skip_acl: false, max_results, tree: &tree, watches };
        let mut asked = |op, path: &'static str| {
            let mut body = BytesMut::new();
            PathWatch { path: path.into(), watch: true }.encode(&mut Writer::new(&mut body));
            let frame = local.answer(1, op, &body.freeze(), &mut Vec::new());
            let mut r = Reader::new(frame.slice(4..));
            let err = ReplyHeader::decode(&mut r).expect("a header").err;
            (err, r.remaining())
        };
        for op in [OpCode::Exists, OpCode::GetData, OpCode::GetChildren, OpCode::GetChildren2] {
            assert_eq!(asked(op, ""), asked(op, "/"), "{op:?}");
            assert_eq!(asked(op, "/x/"), (ErrorCode::NoNode.code(), 0), "{op:?}");
        }
        assert_eq!(asked(OpCode::Exists, "/\0"), (ErrorCode::BadArguments.code(), 0));
        assert_eq!(asked(OpCode::GetData, "/\0"), (ErrorCode::NoNode.code(), 0));
    }

    #[test]
    fn a_short_request_for_much_is_answered_as_far_as_it_goes() {
        let mut tree = Tree::default();
        let data = Bytes::from(vec![7; 100_000]);
        let path = ByteString::from_static("/zookeeper");
        let txn = Txn::SetData { path, data: Some(data.clone()), version: 1 };
        let (session, zxid, kind) = (SessionId(1), Zxid(1), txn.kind());
        tree.apply(&Entry::new(TxnHeader { session, cxid: 1, zxid, time_ms: 0, kind }, txn, None));
        let look =
            || MultiOp::GetData(PathWatch { path: ByteString::from_static("/zookeeper"), watch: false });
        let mut body = BytesMut::new();
        MultiRequest { ops: (0..1000).map(|_| look()).collect() }.encode(&mut Writer::new(&mut body));
        let watches = &mut Watches::default();
        let (client, session, max_results) = (ClientId(1), SessionId(1), 1 << 20);
        let mut local =
            Local { client, session, who: &[], skip_acl: false, max_results, tree: &tree, watches };
        let frame = local.answer(1, OpCode::MultiRead, &body.freeze(), &mut Vec::new());
        assert!(frame.len() < 1_200_000, "{} bytes", frame.len());
        let mut r = Reader::new(frame.slice(4..));
        let header = ReplyHeader::decode(&mut r).expect("a header");
        assert_eq!((header.xid, header.zxid, header.err), (1, zxid, 0));
        let results = MultiResponse::decode(&mut r).expect("results").results;
        let refused = MultiResult::Error { err: ErrorCode::MarshallingError.code() };
        assert_eq!(results.len(), 1000);
        assert!(matches!(&results[9], MultiResult::GetData { data: Some(read), .. } if *read == data));
        assert!(results[10..].iter().all(|result| *result == refused));
    }

    #[test]
    fn children_that_have_no_room_are_not_gathered_and_nothing_behind_them_is() {
        let mut tree = Tree::default();
        let mut create = |path: String, counter: u64| {
            let (path, acl) = (ByteString::from(path), vec![node_wire::client::Acl::world_anyone()]);
            let txn = Txn::Create { path, data: None, acl, ephemeral: false, parent_cversion: -1 };
            let (session, zxid, kind) = (SessionId(1), Zxid(counter), txn.kind());
            tree.apply(&Entry::new(TxnHeader { session, cxid: 1, zxid, time_ms: 0, kind }, txn, None));
        };
        create("/few".to_owned(), 1);
        create("/few/a".to_owned(), 2);
        create("/many".to_owned(), 3);
        (4..1004).for_each(|number| create(format!("/many/{number:010}"), number));
        let watches = &mut Watches::default();
        let (client, session, max_results) = (ClientId(1), SessionId(1), 10_000);
        let mut local =
            Local { client, session, who: &[], skip_acl: false, max_results, tree: &tree, watches };
        assert_eq!(local.children_within("/many", 13_999), Err(ErrorCode::MarshallingError));
        assert_eq!(local.children_within("/many", 14_000).map(|names| names.len()), Ok(1000));

        let list = |path: &'static str| MultiOp::GetChildren(PathWatch { path: path.into(), watch: false });
        let mut body = BytesMut::new();
        let ops = ["/few", "/many", "/few", "/none"].map(list).to_vec();
        MultiRequest { ops }.encode(&mut Writer::new(&mut body));
        let frame = local.answer(1, OpCode::MultiRead, &body.freeze(), &mut Vec::new());
        let mut r = Reader::new(frame.slice(4..));
        ReplyHeader::decode(&mut r).expect("a header");
        let results = MultiResponse::decode(&mut r).expect("results").results;
        let error = |error: ErrorCode| MultiResult::Error { err: error.code() };
        let few = MultiResult::GetChildren { children: vec![ByteString::from_static("a")] };
        let refused = error(ErrorCode::MarshallingError);
        assert_eq!(results, [few, refused.clone(), refused, error(ErrorCode::NoNode)]);
    }
}
