//! The specification: what each request of a prober must come to, and what it must be shown.
//!
//! Probers ([`crate::prober`]) have nodes of their own, which nobody else changes. So all that may become of
//! them follows from what probers asked and from the one committed sequence, which says what was taken in and
//! in which order: the specification follows it, judges each request at its place, and knows the nodes at
//! every place from then on.
//!
//! - [`tree`]: what a request may do, and which error wins; [`access`]: for whom.
//! - A committed transaction must be the one that the specification makes of the request, at that place and
//!   for that client ([`Rule::Lawful`], inside). Whatever it is, the specification goes on from what it does.
//! - An answer must be what the specification says for its place: of a write the outcome with every field of
//!   its Stat, of a read what was there, for those who may see it ([`Rule::LawfulAnswers`], outside).
//! - An event may tell of a node only whom its list lets read it, and must tell them.
//! - When all is quiet every member holds these nodes, with these lists.
//!
//! A request without an answer is no special case: the sequence says whether it was done. Two refusals are no
//! matter of the tree and are taken as they come: of a session that is not alive, and of one that has moved.
//! What came of other clients' requests is judged elsewhere.

mod access;
mod tree;

use std::collections::BTreeMap;

use bytes::Bytes;
use bytestring::ByteString;
use node_core::tree::TreeSnapshot;
use node_wire::client::{
    Acl, Create2Response, CreateResponse, EphemeralsResponse, ErrorCode, ExistsResponse, GetAclResponse,
    GetDataResponse, Id, MultiOp, MultiResponse, MultiResult, PERM_READ, SetAclRequest, SetAclResponse,
    SetDataResponse, Stat,
};
use node_wire::client::{AllChildrenNumberResponse, Children2Response};
use node_wire::ids::{SessionId, Zxid};
use node_wire::jute::{DecodeError, Reader};
use node_wire::snapshot::OPEN_ACL;
use node_wire::txn::{Entry, Txn};

use super::{Finding, Invariants, decoded, server};
use crate::network::HostIndex;
use crate::outcome::Rule;
use crate::watcher::Reads;
use tree::{Case, Tree};

/// What the nodes of probers begin with.
pub(crate) const PROBED: &str = "/p";

/// True for the path of a prober's node.
pub(crate) fn is_probed(path: &str) -> bool {
    path.strip_prefix(PROBED).is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
}

/// A request that changes something.
#[derive(Clone, Debug)]
pub(crate) enum Update {
    One(MultiOp),
    SetAcl(SetAclRequest),
    Multi(Vec<MultiOp>),
    Close,
}

/// A request that only looks.
#[derive(Clone, Debug)]
pub(crate) enum Look {
    Data(ByteString),
    Exists(ByteString),
    Children(ByteString),
    List(ByteString),
    /// How many nodes are below.
    Count(ByteString),
    /// Those of the session whose paths begin so.
    Ephemerals(ByteString),
}

/// What a client is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Refused(i32),
    Done,
    Path(ByteString),
    Made(ByteString, Stat),
    Stat(Stat),
    Data(Option<Bytes>, Stat),
    /// In order.
    Names(Vec<ByteString>, Stat),
    List(Vec<Acl>, Stat),
    Count(usize),
    Paths(Vec<ByteString>),
    Several(Vec<Told>),
}

impl Update {
    /// What an answer to it says.
    pub(crate) fn told(&self, err: i32, body: &mut Reader) -> Result<Told, DecodeError> {
        if err != 0 {
            return Ok(Told::Refused(err));
        }
        Ok(match self {
            Self::One(MultiOp::Create(_)) => Told::Path(CreateResponse::decode(body)?.path),
            Self::One(MultiOp::Create2(_) | MultiOp::CreateContainer(_)) => {
                let Create2Response { path, stat } = Create2Response::decode(body)?;
                Told::Made(path, stat)
            }
            Self::One(MultiOp::SetData(_)) => Told::Stat(SetDataResponse::decode(body)?.stat),
            Self::SetAcl(_) => Told::Stat(SetAclResponse::decode(body)?.stat),
            Self::Multi(_) => {
                let results = MultiResponse::decode(body)?.results;
                Told::Several(results.into_iter().map(part).collect())
            }
            Self::One(_) | Self::Close => Told::Done,
        })
    }
}

fn part(result: MultiResult) -> Told {
    match result {
        MultiResult::Create { path } => Told::Path(path),
        MultiResult::Create2 { path, stat } => Told::Made(path, stat),
        MultiResult::Delete | MultiResult::Check => Told::Done,
        MultiResult::SetData { stat } => Told::Stat(stat),
        MultiResult::GetData { data, stat } => Told::Data(data, stat),
        MultiResult::GetChildren { children } => Told::Paths(children),
        MultiResult::Error { err } => Told::Refused(err),
    }
}

impl Look {
    /// What an answer to it says.
    pub(crate) fn told(&self, err: i32, body: &mut Reader) -> Result<Told, DecodeError> {
        if err != 0 {
            return Ok(Told::Refused(err));
        }
        Ok(match self {
            Self::Data(_) => {
                let GetDataResponse { data, stat } = GetDataResponse::decode(body)?;
                Told::Data(data, stat)
            }
            Self::Exists(_) => Told::Stat(ExistsResponse::decode(body)?.stat),
            Self::Children(_) => {
                let Children2Response { mut children, stat } = Children2Response::decode(body)?;
                children.sort();
                Told::Names(children, stat)
            }
            Self::List(_) => {
                let GetAclResponse { acl, stat } = GetAclResponse::decode(body)?;
                Told::List(acl, stat)
            }
            Self::Count(_) => {
                let AllChildrenNumberResponse { total } = AllChildrenNumberResponse::decode(body)?;
                Told::Count(usize::try_from(total).unwrap_or(usize::MAX))
            }
            Self::Ephemerals(_) => {
                let mut paths = EphemeralsResponse::decode(body)?.ephemerals;
                paths.sort();
                Told::Paths(paths)
            }
        })
    }
}

/// A request as it was sent.
#[derive(Clone, Debug)]
struct Asked {
    /// Counts all requests of probers.
    order: u64,
    who: Vec<Id>,
    update: Update,
}

/// What probers asked for, and what it must come to.
#[derive(Clone, Debug, Default)]
pub(super) struct Specification {
    count: u64,
    asked: BTreeMap<(SessionId, i32), Asked>,
    /// The last request of each session that was done.
    done: BTreeMap<SessionId, u64>,
    /// What the clients must be told whose requests were done.
    outcomes: BTreeMap<(SessionId, i32), Told>,
    now: Tree,
    /// The nodes from each place on at which they changed.
    places: Vec<(Zxid, Tree)>,
}

fn found(sentence: String) -> Finding {
    Err((Rule::Lawful, sentence))
}

impl Specification {
    fn asks(&mut self, session: SessionId, xid: i32, who: Vec<Id>, update: Update) {
        self.count += 1;
        self.asked.insert((session, xid), Asked { order: self.count, who, update });
    }

    /// The next committed entry. Its session lives, or may live on its member alone.
    pub(super) fn commit(&mut self, entry: &Entry, lives: bool, local: bool) -> Finding {
        if self.count == 0 {
            return Ok(());
        }
        let (zxid, session, cxid) = (entry.zxid(), entry.header.session, entry.header.cxid);
        let finding = match self.asked.remove(&(session, cxid)) {
            Some(asked) => self.judge(entry, &asked, lives, local),
            None => Ok(()),
        };
        if self.now.apply(&entry.txn, Case::of(entry, &[])).is_some() {
            self.places.push((zxid, self.now.clone()));
        }
        finding
    }

    fn judge(&mut self, entry: &Entry, asked: &Asked, lives: bool, local: bool) -> Finding {
        let (zxid, session, cxid) = (entry.zxid(), entry.header.session, entry.header.cxid);
        let foreign = |code: i32| match ErrorCode::from_code(code) {
            Some(ErrorCode::SessionMoved) => true,
            Some(ErrorCode::SessionExpired) => !lives || local,
            _ => false,
        };
        if let Txn::Error { code } = entry.txn
            && foreign(code)
        {
            self.outcomes.insert((session, cxid), Told::Refused(code));
            return Ok(());
        }
        let (lawful, told) = self.now.outcome(&asked.update, Case::of(entry, &asked.who));
        self.outcomes.insert((session, cxid), told);
        let last = self.done.insert(session, asked.order).unwrap_or(0);
        if last > asked.order {
            return found(format!(
                "{zxid} is request {cxid} of session {session}, and a later one of that session was done \
                    before it"
            ));
        }
        if is_same(&lawful, &entry.txn) {
            return Ok(());
        }
        found(format!(
            "{zxid} is request {cxid} of session {session} as {}, {:?}, which is {} and must be {}",
            names(&asked.who),
            asked.update,
            words(&entry.txn),
            words(&lawful)
        ))
    }

    fn at(&self, zxid: Zxid) -> Option<&Tree> {
        let next = self.places.partition_point(|(place, _)| *place <= zxid);
        self.places[..next].last().map(|(_, tree)| tree)
    }
}

/// The root has children of others as well, so that the specification does not know how many there were. What
/// a session takes with it is judged with the sessions.
fn is_same(lawful: &Txn, txn: &Txn) -> bool {
    match (lawful, txn) {
        (Txn::CloseSession { .. }, Txn::CloseSession { .. }) => true,
        (
            Txn::Create { path, data, acl, ephemeral, .. },
            Txn::Create { path: made, data: holds, acl: list, ephemeral: ends, .. },
        ) if path.rfind('/') == Some(0) => (path, data, acl, ephemeral) == (made, holds, list, ends),
        (Txn::Multi { txns: lawful }, Txn::Multi { txns }) => {
            let same = |(lawful, part): (&(i32, Bytes), &(i32, Bytes))| match (decoded(lawful), decoded(part))
            {
                (Some(lawful), Some(part)) => is_same(&lawful, &part),
                _ => false,
            };
            lawful.len() == txns.len() && lawful.iter().zip(txns).all(same)
        }
        _ => lawful == txn,
    }
}

/// Whom somebody has proven to be.
fn names(who: &[Id]) -> String {
    let names: Vec<&str> = who.iter().filter_map(|id| id.id.split(':').next()).collect();
    if names.is_empty() { "nobody".to_owned() } else { names.join(" and ") }
}

/// A multi by its parts.
fn words(txn: &Txn) -> String {
    match txn {
        Txn::Multi { txns } => {
            let parts = txns.iter().map(|part| decoded(part).map_or("?".to_owned(), |part| words(&part)));
            format!("[{}]", parts.collect::<Vec<_>>().join(", "))
        }
        Txn::Error { code } => match ErrorCode::from_code(*code) {
            Some(error) => format!("{error:?}"),
            None => code.to_string(),
        },
        txn => format!("{txn:?}"),
    }
}

impl Invariants {
    /// Members may be configured to ask no list.
    pub(crate) fn with_lists(mut self, asked: bool) -> Self {
        self.spec.now.skips_lists = !asked;
        self
    }

    /// A prober asks for a change.
    pub(crate) fn spec_asks(&mut self, session: SessionId, xid: i32, who: Vec<Id>, update: Update) {
        self.spec.asks(session, xid, who, update);
    }

    /// A prober was told what became of a change. Nothing is known of one that nobody was seen to apply.
    ///
    /// It is answered at the second of these places, and what was asked before it at the first.
    pub(crate) fn spec_of_change(
        &mut self,
        session: SessionId,
        xid: i32,
        (before, zxid): (Zxid, Zxid),
        told: &Told,
    ) -> Finding {
        let Some(must) = self.spec.outcomes.remove(&(session, xid)) else { return Ok(()) };
        let sentence = if must != *told {
            format!("session {session} was told {told:?} of its request {xid}, which must be {must:?}")
        } else if before >= zxid {
            format!("session {session} was shown {before} before its request {xid} was done at {zxid}")
        } else {
            return Ok(());
        };
        Err((Rule::LawfulAnswers, sentence))
    }

    /// A prober was shown something by a member that had applied so much.
    pub(crate) fn spec_of_look(
        &self,
        session: SessionId,
        zxid: Zxid,
        who: &[Id],
        look: &Look,
        told: &Told,
    ) -> Finding {
        let nothing = Tree::default();
        let must = self.spec.at(zxid).unwrap_or(&nothing).shown(look, who, session);
        if must == *told {
            return Ok(());
        }
        Err((
            Rule::LawfulAnswers,
            format!(
                "session {session} was shown {told:?} at {zxid} when it asked for {look:?} as {}; there is \
                    {must:?}",
                names(who)
            ),
        ))
    }

    /// Whether somebody may be told of what happens to a node with this list. Who may read it is told, by who
    /// it has `proven` to be; who it has only `said` to be may count already.
    pub(crate) fn spec_of_events(&self, list: &[Acl], proven: &[Id], said: &[Id]) -> Reads {
        if self.spec.now.skips_lists || access::permits(list, PERM_READ, proven) {
            Reads::Yes
        } else if access::permits(list, PERM_READ, said) {
            Reads::Perhaps
        } else {
            Reads::No
        }
    }

    /// When all is quiet every member holds the probers' nodes, and with them their lists.
    pub(crate) fn spec_of_lists(&self, host: HostIndex, tree: &TreeSnapshot) -> Finding {
        if self.spec.count == 0 || tree.zxid() != self.last_committed() {
            return Ok(());
        }
        let image = tree.to_image();
        let open = [Acl::world_anyone()];
        let lists: BTreeMap<i64, &[Acl]> =
            image.acls.iter().map(|(number, list)| (*number, list.as_slice())).collect();
        let list_of =
            |number: i64| if number == OPEN_ACL { Some(&open[..]) } else { lists.get(&number).copied() };
        let held: BTreeMap<&ByteString, Option<&[Acl]>> = image
            .nodes
            .iter()
            .filter(|node| is_probed(&node.path))
            .map(|node| (&node.path, list_of(node.acl)))
            .collect();
        let id = server(host).0;
        let must: BTreeMap<&ByteString, Option<&[Acl]>> =
            self.spec.now.lists().map(|(path, list)| (path, Some(list))).collect();
        if let Some((path, list)) = must.iter().find(|(path, list)| held.get(*path) != Some(list)) {
            let held = held.get(path);
            return found(format!(
                "server {id} holds {path} in the end with the list {held:?}, not {list:?}"
            ));
        }
        match held.keys().find(|path| !must.contains_key(*path)) {
            Some(path) => found(format!("server {id} holds {path} in the end, which is not there")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
