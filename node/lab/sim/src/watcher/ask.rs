//! What a watcher asks for: in words, as a request, and what its answer changes.

use std::fmt;

use bytes::Bytes;
use bytestring::ByteString;
use node_wire::client::{
    Acl, AddWatchMode, AddWatchRequest, CREATE_CONTAINER, CREATE_TTL, CheckVersionRequest, CreateRequest,
    CreateTtlRequest, DeleteRequest, MultiOp, MultiRequest, OpCode, PathWatch, ReconfigRequest,
    SetDataRequest, SetWatches2,
};
use node_wire::ids::Zxid;
use node_wire::jute::Writer;
use node_wire::membership::ServerRole;

use super::Watching;

/// Below it is everything of watchers.
pub(crate) const ROOT: &str = "/w";

/// The two nodes that are only ever changed together.
pub(crate) const TWINS: [&str; 2] = ["m0", "m1"];

/// The path that has limits, sometimes.
pub(crate) const LIMITED: &str = "/w/q";

/// Its limits.
pub(crate) const LIMITS: &str = "/zookeeper/quota/w/q/zookeeper_limits";

/// What is there, as every member counts it.
pub(crate) const USAGE: &str = "/zookeeper/quota/w/q/zookeeper_stats";

/// What must be there before both.
const QUOTA_NODES: [&str; 2] = ["/zookeeper/quota/w", "/zookeeper/quota/w/q"];

/// A version that no node has here.
const NO_VERSION: i32 = 1_000_000;

/// The longest place that a script may name.
const MAX_PLACE: usize = 16;

/// Something that a watcher asks for, with its place below [`ROOT`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    /// Makes a node.
    Make(String),
    /// Writes one.
    Put(String, i64),
    /// Deletes one.
    Drop(String),
    /// Reads one and leaves a watch.
    Look(String),
    /// Asks whether one is there and leaves a watch.
    Exists(String),
    /// Lists the children of one and leaves a watch.
    List(String),
    /// Leaves a watch that stays.
    Follow(String),
    /// Leaves a watch that stays and reaches below.
    FollowAll(String),
    /// Leaves all watches again on another connection.
    Resume,
    /// Writes both twins.
    Both(i64),
    /// The same, with something between that is refused.
    Break(i64),
    /// Reads both twins at once.
    Pair,
    /// Makes a container.
    Contain(String),
    /// Makes a node that lives for so many milliseconds.
    Mortal(String, u64),
    /// Sets hard limits to nodes and bytes at [`LIMITED`] and below, and lets them be counted.
    Limit(i64, i64),
    /// Sets others.
    Relimit(i64, i64),
    /// Takes them away.
    Unlimit,
    /// Writes so many bytes.
    Fill(String, usize),
    /// Reads what was counted.
    Usage,
    /// Takes a member out of the ensemble.
    Remove(u64),
    /// Takes one in, with a vote.
    Join(u64),
    /// Takes one in, without.
    Observe(u64),
}

/// The path of a place.
pub(crate) fn below(place: &str) -> String {
    if place.is_empty() { ROOT.to_owned() } else { format!("{ROOT}/{place}") }
}

impl fmt::Display for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |place: &str| if place.is_empty() { ".".to_owned() } else { place.to_owned() };
        match self {
            Self::Make(place) => write!(f, "make {}", shown(place)),
            Self::Put(place, value) => write!(f, "put {} {value}", shown(place)),
            Self::Drop(place) => write!(f, "drop {}", shown(place)),
            Self::Look(place) => write!(f, "look {}", shown(place)),
            Self::Exists(place) => write!(f, "exists {}", shown(place)),
            Self::List(place) => write!(f, "list {}", shown(place)),
            Self::Follow(place) => write!(f, "follow {}", shown(place)),
            Self::FollowAll(place) => write!(f, "follow-all {}", shown(place)),
            Self::Resume => f.write_str("resume"),
            Self::Both(value) => write!(f, "both {value}"),
            Self::Break(value) => write!(f, "break {value}"),
            Self::Pair => f.write_str("pair"),
            Self::Contain(place) => write!(f, "contain {}", shown(place)),
            Self::Mortal(place, ttl_ms) => write!(f, "mortal {} {ttl_ms}", shown(place)),
            Self::Limit(nodes, bytes) => write!(f, "limit {nodes} {bytes}"),
            Self::Relimit(nodes, bytes) => write!(f, "relimit {nodes} {bytes}"),
            Self::Unlimit => f.write_str("unlimit"),
            Self::Fill(place, bytes) => write!(f, "fill {} {bytes}", shown(place)),
            Self::Usage => f.write_str("usage"),
            Self::Remove(member) => write!(f, "remove s{member}"),
            Self::Join(member) => write!(f, "join s{member}"),
            Self::Observe(member) => write!(f, "observe s{member}"),
        }
    }
}

fn place(word: &str) -> Result<String, String> {
    let is_fine = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'/';
    let empty_part = word.split('/').any(str::is_empty);
    match word {
        "." => Ok(String::new()),
        _ if word.len() <= MAX_PLACE && word.bytes().all(is_fine) && !empty_part => Ok(word.to_owned()),
        _ => Err(format!("a place as a, d/0 or . for all, of at most {MAX_PLACE} letters")),
    }
}

fn number<T: std::str::FromStr>(word: &str) -> Result<T, String> {
    word.parse().map_err(|_| "a number".to_owned())
}

/// Members that a script may name.
const MAX_MEMBER: u64 = 23;

fn member(word: &str) -> Result<u64, String> {
    let number = word.strip_prefix('s').and_then(|number| number.parse().ok());
    number.filter(|number| (1..=MAX_MEMBER).contains(number)).ok_or_else(|| "a member as s2".to_owned())
}

impl Ask {
    /// The ask that these words describe.
    pub(crate) fn parse(words: &[&str]) -> Result<Self, String> {
        Ok(match words {
            ["make", at] => Self::Make(place(at)?),
            ["put", at, value] => Self::Put(place(at)?, number(value)?),
            ["drop", at] => Self::Drop(place(at)?),
            ["look", at] => Self::Look(place(at)?),
            ["exists", at] => Self::Exists(place(at)?),
            ["list", at] => Self::List(place(at)?),
            ["follow", at] => Self::Follow(place(at)?),
            ["follow-all", at] => Self::FollowAll(place(at)?),
            ["resume"] => Self::Resume,
            ["both", value] => Self::Both(number(value)?),
            ["break", value] => Self::Break(number(value)?),
            ["pair"] => Self::Pair,
            ["contain", at] => Self::Contain(place(at)?),
            ["limit", nodes, bytes] => Self::Limit(number(nodes)?, number(bytes)?),
            ["relimit", nodes, bytes] => Self::Relimit(number(nodes)?, number(bytes)?),
            ["unlimit"] => Self::Unlimit,
            ["fill", at, bytes] => Self::Fill(place(at)?, number::<u16>(bytes)?.into()),
            ["usage"] => Self::Usage,
            ["remove", who] => Self::Remove(member(who)?),
            ["join", who] => Self::Join(member(who)?),
            ["observe", who] => Self::Observe(member(who)?),
            ["mortal", at, ttl_ms] => Self::Mortal(place(at)?, number::<u32>(ttl_ms)?.into()),
            _ => {
                return Err(
                    "watcher make P, put P N, drop P, look P, exists P, list P, follow P, follow-all P, \
                            resume, both N, break N, pair, contain P, mortal P MS, \
                            limit N N, relimit N N, unlimit, fill P N, usage, remove sN, join sN or observe \
                            sN"
                    .to_owned(),
                );
            }
        })
    }

    /// True for what changes the ensemble.
    pub(crate) fn reconfigures(&self) -> bool {
        matches!(self, Self::Remove(_) | Self::Join(_) | Self::Observe(_))
    }

    /// True for what becomes a transaction.
    pub(crate) fn changes(&self) -> bool {
        match self {
            Self::Make(_)
            | Self::Put(..)
            | Self::Drop(_)
            | Self::Both(_)
            | Self::Break(_)
            | Self::Contain(_)
            | Self::Mortal(..)
            | Self::Limit(..)
            | Self::Relimit(..)
            | Self::Unlimit
            | Self::Fill(..)
            | Self::Remove(_)
            | Self::Join(_)
            | Self::Observe(_) => true,
            Self::Look(_)
            | Self::Exists(_)
            | Self::List(_)
            | Self::Follow(_)
            | Self::FollowAll(_)
            | Self::Resume
            | Self::Usage
            | Self::Pair => false,
        }
    }

    /// Its operation and body. `seen` is what the session has seen.
    pub(crate) fn request(&self, seen: Zxid, watching: &Watching) -> (OpCode, Body<'_>) {
        match self {
            Self::Make(place) => {
                let create = create(place, 0);
                (OpCode::Create, Box::new(move |w| create.encode(w)))
            }
            Self::Contain(place) => {
                let create = create(place, CREATE_CONTAINER);
                (OpCode::CreateContainer, Box::new(move |w| create.encode(w)))
            }
            Self::Mortal(place, ttl_ms) => {
                let CreateRequest { path, data, acl, .. } = create(place, 0);
                let ttl_ms = i64::try_from(*ttl_ms).unwrap_or(i64::MAX);
                let create = CreateTtlRequest { path, data, acl, flags: CREATE_TTL, ttl_ms };
                (OpCode::CreateTtl, Box::new(move |w| create.encode(w)))
            }
            Self::Put(place, value) => {
                let set = put(place, *value);
                (OpCode::SetData, Box::new(move |w| set.encode(w)))
            }
            Self::Drop(place) => {
                let delete = DeleteRequest { path: path(place), version: -1 };
                (OpCode::Delete, Box::new(move |w| delete.encode(w)))
            }
            Self::Look(place) => (OpCode::GetData, watched(place)),
            Self::Exists(place) => (OpCode::Exists, watched(place)),
            Self::List(place) => (OpCode::GetChildren, watched(place)),
            Self::Follow(place) => (OpCode::AddWatch, followed(place, AddWatchMode::Persistent)),
            Self::FollowAll(place) => (OpCode::AddWatch, followed(place, AddWatchMode::PersistentRecursive)),
            Self::Resume => {
                let all = watching.again(seen);
                (OpCode::SetWatches2, Box::new(move |w: &mut Writer<'_>| SetWatches2::encode(&all, w)))
            }
            Self::Both(value) => multi(OpCode::Multi, vec![twin(0, *value), twin(1, *value)]),
            Self::Break(value) => {
                let check = CheckVersionRequest { path: path(TWINS[0]), version: NO_VERSION };
                multi(OpCode::Multi, vec![twin(0, *value), MultiOp::Check(check), twin(1, *value)])
            }
            Self::Pair => {
                let read = |place| MultiOp::GetData(PathWatch { path: path(place), watch: false });
                multi(OpCode::MultiRead, TWINS.map(read).into())
            }
            Self::Limit(nodes, bytes) => multi(OpCode::Multi, limit(*nodes, *bytes)),
            Self::Relimit(nodes, bytes) => {
                let data = Some(limits(*nodes, *bytes));
                let set = SetDataRequest { path: ByteString::from_static(LIMITS), data, version: -1 };
                (OpCode::SetData, Box::new(move |w| set.encode(w)))
            }
            Self::Unlimit => multi(OpCode::Multi, unlimit()),
            Self::Fill(place, bytes) => {
                let set = SetDataRequest { data: Some(vec![b'x'; *bytes].into()), ..put(place, 0) };
                (OpCode::SetData, Box::new(move |w| set.encode(w)))
            }
            Self::Usage => {
                let read = PathWatch { path: ByteString::from_static(USAGE), watch: false };
                (OpCode::GetData, Box::new(move |w| read.encode(w)))
            }
            Self::Remove(member) => reconfig(None, Some(member.to_string())),
            Self::Join(member) => reconfig(Some(server_line(*member, ServerRole::Participant)), None),
            Self::Observe(member) => reconfig(Some(server_line(*member, ServerRole::Observer)), None),
        }
    }
}

fn path(place: &str) -> ByteString {
    ByteString::from(below(place))
}

fn create(place: &str, flags: i32) -> CreateRequest {
    CreateRequest { path: path(place), data: Some(Bytes::new()), acl: vec![Acl::world_anyone()], flags }
}

fn put(place: &str, value: i64) -> SetDataRequest {
    SetDataRequest { path: path(place), data: Some(Bytes::from(value.to_string())), version: -1 }
}

/// What sets limits where there are none.
fn limit(nodes: i64, bytes: i64) -> Vec<MultiOp> {
    let mut ops: Vec<MultiOp> = QUOTA_NODES.map(|path| make(path, Bytes::new())).into();
    // What is counted begins where limits already are.
    ops.extend([make(LIMITS, limits(nodes, bytes)), make(USAGE, Bytes::new())]);
    ops
}

/// What takes them away.
fn unlimit() -> Vec<MultiOp> {
    let paths = [USAGE, LIMITS].into_iter().chain(QUOTA_NODES.into_iter().rev());
    let delete = |path| DeleteRequest { path: ByteString::from_static(path), version: -1 };
    paths.map(|path| MultiOp::Delete(delete(path))).collect()
}

fn twin(index: usize, value: i64) -> MultiOp {
    MultiOp::SetData(put(TWINS[index], value))
}

pub(crate) type Body<'a> = Box<dyn Fn(&mut Writer<'_>) + 'a>;

fn watched(place: &str) -> Body<'_> {
    let read = PathWatch { path: path(place), watch: true };
    Box::new(move |w| read.encode(w))
}

fn followed(place: &str, mode: AddWatchMode) -> Body<'_> {
    let add = AddWatchRequest { path: path(place), mode: mode.code() };
    Box::new(move |w| add.encode(w))
}

fn multi<'a>(op: OpCode, ops: Vec<MultiOp>) -> (OpCode, Body<'a>) {
    let request = MultiRequest { ops };
    (op, Box::new(move |w| request.encode(w)))
}

fn limits(nodes: i64, bytes: i64) -> Bytes {
    Bytes::from(format!("count=-1,bytes=-1=;byteHardLimit={bytes};countHardLimit={nodes}"))
}

fn make(path: &'static str, data: Bytes) -> MultiOp {
    let path = ByteString::from_static(path);
    MultiOp::Create(CreateRequest { path, data: Some(data), acl: vec![Acl::world_anyone()], flags: 0 })
}

/// A member as the ensemble's configuration names it. Where it is nobody asks here: wires go by number.
pub(crate) fn server_line(member: u64, role: ServerRole) -> String {
    format!("server.{member}=m{member}:2888:3888:{};0.0.0.0:2181", role.name())
}

fn reconfig<'a>(joining: Option<String>, leaving: Option<String>) -> (OpCode, Body<'a>) {
    let (joining, leaving) = (joining.map(ByteString::from), leaving.map(ByteString::from));
    let request = ReconfigRequest { joining, leaving, members: None, config_version: -1 };
    (OpCode::Reconfig, Box::new(move |w| request.encode(w)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ask_is_read_as_it_is_written() {
        let a = || "d/1".to_owned();
        for ask in [
            Ask::Make(String::new()),
            Ask::Put(a(), -3),
            Ask::Drop(a()),
            Ask::Look(a()),
            Ask::Exists(a()),
            Ask::List(a()),
            Ask::Follow(a()),
            Ask::FollowAll(a()),
            Ask::Resume,
            Ask::Both(1),
            Ask::Break(2),
            Ask::Pair,
            Ask::Contain(a()),
            Ask::Mortal(a(), 70),
            Ask::Limit(3, 40),
            Ask::Relimit(-1, 7),
            Ask::Unlimit,
            Ask::Fill(a(), 9),
            Ask::Usage,
            Ask::Remove(2),
            Ask::Join(3),
            Ask::Observe(1),
        ] {
            let text = ask.to_string();
            let words: Vec<&str> = text.split(' ').collect();
            assert_eq!(Ask::parse(&words), Ok(ask), "{text}");
        }
        for wrong in
            [vec!["make", "a//b"], vec!["look", "/a"], vec!["put", "a"], vec!["fly"], vec!["join", "s0"]]
        {
            assert!(Ask::parse(&wrong).is_err(), "{wrong:?}");
        }
    }
}
