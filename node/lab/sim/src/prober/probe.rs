//! What a prober asks for: in words, and as a request.
//!
//! A place is relative to the prober's own node, `.` is that node itself, and `!3` is one of the [`ODD`]
//! paths. A list is one of [`Rights`], a version is a number, -1 for any.

use std::fmt;

use bytes::Bytes;
use bytestring::ByteString;
use node_wire::client::{
    Acl, AddWatchMode, AddWatchRequest, AuthPacket, CREATE_CONTAINER, CREATE_EPHEMERAL,
    CREATE_PERSISTENT_SEQUENTIAL, CheckVersionRequest, CreateRequest, DeleteRequest, Id, MultiOp,
    MultiRequest, OpCode, PERM_ALL, PERM_CREATE, PERM_DELETE, PERM_READ, PERM_WRITE, PathOnly, PathWatch,
    SetAclRequest, SetDataRequest, SyncRequest,
};
use node_wire::credentials::digest_identity;
use node_wire::jute::Writer;

use crate::invariants::{Look, PROBED, Update};

/// Paths that are none, or not the prober's. What begins with a slash after `.` is below its own node.
pub(super) const ODD: [&str; 8] = ["x", "", "./", ".//a", "./\0", "/", "/zookeeper", "/zookeeper/quota"];

/// Those of them that nobody should try to write: they are there.
pub(super) const NO_PATHS: usize = 5;

/// Who somebody may prove to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    Ann,
    Bob,
}

impl Name {
    pub(super) const ALL: [Self; 2] = [Self::Ann, Self::Bob];

    fn word(self) -> &'static str {
        match self {
            Self::Ann => "ann",
            Self::Bob => "bob",
        }
    }

    fn secret(self) -> String {
        format!("{}:secret", self.word())
    }

    /// What it is called in lists.
    pub(crate) fn id(self) -> Id {
        Id { scheme: ByteString::from_static("digest"), id: digest_identity(self.secret().as_bytes()) }
    }
}

/// An access control list. Each lets somebody back in who can be proven to be, but for those that are
/// refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rights {
    Open,
    /// Everybody reads, Ann does what she likes.
    Shown,
    /// Everybody creates and writes, but does not read; Ann and Bob do what they like.
    Dropbox,
    /// Everybody deletes and reads; Bob does what he likes.
    Swept,
    OfAnn,
    OfBob,
    /// Whoever made it.
    Auth,
    /// The same, twice, and Ann.
    AuthAndAnn,
    /// Refused: nobody is meant.
    Empty,
    /// Refused: no such scheme.
    Unknown,
    /// Refused: no name and digest.
    Broken,
}

impl Rights {
    pub(super) const ALL: [Self; 11] = [
        Self::Open,
        Self::Shown,
        Self::Dropbox,
        Self::Swept,
        Self::OfAnn,
        Self::OfBob,
        Self::Auth,
        Self::AuthAndAnn,
        Self::Empty,
        Self::Unknown,
        Self::Broken,
    ];

    /// Those that are accepted.
    pub(super) const SOUND: usize = 8;

    fn word(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Shown => "shown",
            Self::Dropbox => "dropbox",
            Self::Swept => "swept",
            Self::OfAnn => "ann",
            Self::OfBob => "bob",
            Self::Auth => "auth",
            Self::AuthAndAnn => "auth-ann",
            Self::Empty => "empty",
            Self::Unknown => "unknown",
            Self::Broken => "broken",
        }
    }

    fn list(self) -> Vec<Acl> {
        let entry = |perms: i32, scheme: &'static str, id: &'static str| Acl {
            perms,
            scheme: ByteString::from_static(scheme),
            id: ByteString::from_static(id),
        };
        let world = |perms: i32| entry(perms, "world", "anyone");
        let auth = |perms: i32| entry(perms, "auth", "");
        let of = |name: Name| {
            let Id { scheme, id } = name.id();
            Acl { perms: PERM_ALL, scheme, id }
        };
        match self {
            Self::Open => vec![Acl::world_anyone()],
            Self::Shown => vec![world(PERM_READ), of(Name::Ann)],
            Self::Dropbox => vec![world(PERM_CREATE | PERM_WRITE), of(Name::Ann), of(Name::Bob)],
            Self::Swept => vec![of(Name::Bob), world(PERM_READ | PERM_DELETE)],
            Self::OfAnn => vec![of(Name::Ann)],
            Self::OfBob => vec![of(Name::Bob)],
            Self::Auth => vec![auth(PERM_ALL)],
            Self::AuthAndAnn => {
                vec![auth(PERM_READ | PERM_WRITE), of(Name::Ann), auth(PERM_READ | PERM_WRITE)]
            }
            Self::Empty => Vec::new(),
            Self::Unknown => vec![world(PERM_READ), entry(PERM_ALL, "nobody-knows", "x")],
            Self::Broken => vec![entry(PERM_ALL, "digest", "ann")],
        }
    }
}

/// What kind of node is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Stays,
    Ephemeral,
    Numbered,
    Container,
}

impl Kind {
    const ALL: [Self; 4] = [Self::Stays, Self::Ephemeral, Self::Numbered, Self::Container];

    fn word(self) -> &'static str {
        match self {
            Self::Stays => "make",
            Self::Ephemeral => "make-ephemeral",
            Self::Numbered => "make-numbered",
            Self::Container => "make-container",
        }
    }

    fn flags(self) -> i32 {
        match self {
            Self::Stays => 0,
            Self::Ephemeral => CREATE_EPHEMERAL,
            Self::Numbered => CREATE_PERSISTENT_SEQUENTIAL,
            Self::Container => CREATE_CONTAINER,
        }
    }
}

/// How a password is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Forgery {
    /// Its first half is right.
    FirstHalf,
    /// Its second half is right.
    SecondHalf,
    Nothing,
    LastBit,
}

impl Forgery {
    pub(super) const ALL: [Self; 4] = [Self::FirstHalf, Self::SecondHalf, Self::Nothing, Self::LastBit];

    fn word(self) -> &'static str {
        match self {
            Self::FirstHalf => "first-half",
            Self::SecondHalf => "second-half",
            Self::Nothing => "nothing",
            Self::LastBit => "last-bit",
        }
    }

    /// What is said instead of a password.
    pub(crate) fn of(self, password: &Bytes) -> Bytes {
        let mut forged = password.to_vec();
        let half = forged.len() / 2;
        match self {
            Self::FirstHalf => forged[half..].iter_mut().for_each(|byte| *byte = !*byte),
            Self::SecondHalf => forged[..half].iter_mut().for_each(|byte| *byte = !*byte),
            Self::Nothing => forged.clear(),
            Self::LastBit => {
                if let Some(last) = forged.last_mut() {
                    *last ^= 1;
                }
            }
        }
        forged.into()
    }
}

/// Something that a prober does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Probe {
    Make(Kind, String, Rights),
    Put(String, i64, i32),
    Drop(String, i32),
    Check(String, i32),
    Restrict(String, Rights, i32),
    Several(Vec<Probe>),
    /// Reads; the first three may leave a watch.
    Get(String, bool),
    Exists(String, bool),
    Children(String, bool),
    List(String),
    Count(String),
    Ephemerals,
    Sync,
    /// Leaves a watch that stays, and one that reaches below.
    Follow(String),
    FollowAll(String),
    /// Proves to be somebody.
    Auth(Name),
    /// Ends the session. What stands behind it in a batch is asked nevertheless.
    Close,
    /// Hangs up with everything under way.
    Leave,
    /// Hangs up first, and tries to go on with a password that is wrong.
    Forge(Forgery),
    /// Hangs up first, goes on, and does not wait for the answer to that.
    Rush,
}

/// What a request is for whoever judges it.
#[derive(Clone, Debug)]
pub(crate) enum Sense {
    Update(Update),
    Look(Look),
    Sync,
    /// Nothing that the specification knows.
    Other,
}

/// Deepest place, in letters.
const MAX_PLACE: usize = 16;

/// Longest batch that a script may name.
const MAX_BATCH: usize = 32;

/// The path of a prober's own node.
pub(crate) fn root(client: usize) -> String {
    format!("{PROBED}{client}")
}

fn path(client: usize, place: &str) -> ByteString {
    let own = root(client);
    let odd = place.strip_prefix('!').and_then(|odd| ODD.get(odd.parse::<usize>().ok()?));
    ByteString::from(match (place, odd) {
        (".", _) => own,
        (_, Some(odd)) => match odd.strip_prefix('.') {
            Some(rest) => format!("{own}{rest}"),
            None => (*odd).to_owned(),
        },
        (place, None) => format!("{own}/{place}"),
    })
}

impl Probe {
    /// Its operation, its body, and what it means.
    pub(crate) fn request(&self, client: usize) -> Option<(OpCode, Bytes, Sense)> {
        let at = |place: &str| path(client, place);
        let read = |op: OpCode, place: &str, watch: bool, look: fn(ByteString) -> Look| {
            let path = at(place);
            let body = encoded(|w| PathWatch { path: path.clone(), watch }.encode(w));
            (op, body, Sense::Look(look(path)))
        };
        let ask = |op: OpCode, path: ByteString, look: fn(ByteString) -> Look| {
            (op, encoded(|w| PathOnly { path: path.clone() }.encode(w)), Sense::Look(look(path)))
        };
        let watch = |place: &str, mode: AddWatchMode| {
            let body = encoded(|w| AddWatchRequest { path: at(place), mode: mode.code() }.encode(w));
            (OpCode::AddWatch, body, Sense::Other)
        };
        Some(match self {
            Self::Make(..) | Self::Put(..) | Self::Drop(..) | Self::Check(..) => {
                let op = self.part(client)?;
                let (code, body) = single(&op)?;
                (code, body, Sense::Update(Update::One(op)))
            }
            Self::Restrict(place, rights, version) => {
                let request = SetAclRequest { path: at(place), acl: rights.list(), version: *version };
                (OpCode::SetAcl, encoded(|w| request.encode(w)), Sense::Update(Update::SetAcl(request)))
            }
            Self::Several(parts) => {
                let ops: Vec<MultiOp> = parts.iter().filter_map(|part| part.part(client)).collect();
                let body = encoded(|w| MultiRequest { ops: ops.clone() }.encode(w));
                (OpCode::Multi, body, Sense::Update(Update::Multi(ops)))
            }
            Self::Get(place, watch) => read(OpCode::GetData, place, *watch, Look::Data),
            Self::Exists(place, watch) => read(OpCode::Exists, place, *watch, Look::Exists),
            Self::Children(place, watch) => read(OpCode::GetChildren2, place, *watch, Look::Children),
            Self::List(place) => ask(OpCode::GetAcl, at(place), Look::List),
            Self::Count(place) => ask(OpCode::GetAllChildrenNumber, at(place), Look::Count),
            Self::Ephemerals => ask(OpCode::GetEphemerals, at("."), Look::Ephemerals),
            Self::Sync => (OpCode::Sync, encoded(|w| SyncRequest { path: at(".") }.encode(w)), Sense::Sync),
            Self::Follow(place) => watch(place, AddWatchMode::Persistent),
            Self::FollowAll(place) => watch(place, AddWatchMode::PersistentRecursive),
            Self::Auth(name) => {
                let (scheme, auth) = (ByteString::from_static("digest"), Some(name.secret().into()));
                let body = encoded(|w| AuthPacket { kind: 0, scheme, auth }.encode(w));
                (OpCode::Auth, body, Sense::Other)
            }
            Self::Close => (OpCode::CloseSession, Bytes::new(), Sense::Update(Update::Close)),
            Self::Leave | Self::Forge(_) | Self::Rush => return None,
        })
    }

    /// It as a part of a multi.
    fn part(&self, client: usize) -> Option<MultiOp> {
        let at = |place: &str| path(client, place);
        Some(match self {
            Self::Make(kind, place, rights) => {
                let data = Some(Bytes::from_static(b"new"));
                let create = CreateRequest { path: at(place), data, acl: rights.list(), flags: kind.flags() };
                match kind {
                    Kind::Container => MultiOp::CreateContainer(create),
                    Kind::Numbered => MultiOp::Create(create),
                    Kind::Stays | Kind::Ephemeral => MultiOp::Create2(create),
                }
            }
            Self::Put(place, value, version) => {
                let data = Some(value.to_string().into());
                MultiOp::SetData(SetDataRequest { path: at(place), data, version: *version })
            }
            Self::Drop(place, version) => {
                MultiOp::Delete(DeleteRequest { path: at(place), version: *version })
            }
            Self::Check(place, version) => {
                MultiOp::Check(CheckVersionRequest { path: at(place), version: *version })
            }
            _ => return None,
        })
    }

    /// The path that it is about, where that matters to whoever watches.
    pub(crate) fn path(&self, client: usize) -> Option<ByteString> {
        match self {
            Self::Get(place, true)
            | Self::Exists(place, true)
            | Self::Children(place, true)
            | Self::Follow(place)
            | Self::FollowAll(place) => Some(path(client, place)),
            _ => None,
        }
    }
}

fn encoded(body: impl FnOnce(&mut Writer<'_>)) -> Bytes {
    let mut buffer = bytes::BytesMut::new();
    body(&mut Writer::new(&mut buffer));
    buffer.freeze()
}

fn single(op: &MultiOp) -> Option<(OpCode, Bytes)> {
    let body = match op {
        MultiOp::Create(request) | MultiOp::Create2(request) | MultiOp::CreateContainer(request) => {
            encoded(|w| request.encode(w))
        }
        MultiOp::Delete(request) => encoded(|w| request.encode(w)),
        MultiOp::SetData(request) => encoded(|w| request.encode(w)),
        MultiOp::Check(request) => encoded(|w| request.encode(w)),
        MultiOp::CreateTtl(_) | MultiOp::GetData(_) | MultiOp::GetChildren(_) => return None,
    };
    Some((op.op(), body))
}

impl fmt::Display for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let read = |watch: &bool, name: &str| if *watch { format!("watch-{name}") } else { name.to_owned() };
        match self {
            Self::Make(kind, place, rights) => write!(f, "{} {place} {}", kind.word(), rights.word()),
            Self::Put(place, value, version) => write!(f, "put {place} {value} at {version}"),
            Self::Drop(place, version) => write!(f, "drop {place} at {version}"),
            Self::Check(place, version) => write!(f, "check {place} at {version}"),
            Self::Restrict(place, rights, version) => {
                write!(f, "restrict {place} {} at {version}", rights.word())
            }
            Self::Several(parts) => {
                f.write_str("(")?;
                for (index, part) in parts.iter().enumerate() {
                    write!(f, "{} {part}", if index == 0 { "" } else { " ," })?;
                }
                f.write_str(" )")
            }
            Self::Get(place, watch) => write!(f, "{} {place}", read(watch, "get")),
            Self::Exists(place, watch) => write!(f, "{} {place}", read(watch, "exists")),
            Self::Children(place, watch) => write!(f, "{} {place}", read(watch, "children")),
            Self::List(place) => write!(f, "list {place}"),
            Self::Count(place) => write!(f, "count {place}"),
            Self::Ephemerals => f.write_str("ephemerals"),
            Self::Sync => f.write_str("sync"),
            Self::Follow(place) => write!(f, "follow {place}"),
            Self::FollowAll(place) => write!(f, "follow-all {place}"),
            Self::Auth(name) => write!(f, "auth {}", name.word()),
            Self::Close => f.write_str("close"),
            Self::Leave => f.write_str("leave"),
            Self::Forge(forgery) => write!(f, "forge {}", forgery.word()),
            Self::Rush => f.write_str("rush"),
        }
    }
}

fn place(word: &str) -> Result<String, String> {
    let is_fine =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'/' | b'-');
    let odd = word.strip_prefix('!').and_then(|odd| odd.parse().ok());
    let fine = match odd {
        Some(odd) => ODD.len() > odd,
        None => {
            let empty_part = word.split('/').any(str::is_empty);
            word == "." || word.len() <= MAX_PLACE && word.bytes().all(is_fine) && !empty_part
        }
    };
    if fine {
        Ok(word.to_owned())
    } else {
        Err(format!("a place as a, d/0, !0 or ., of at most {MAX_PLACE} letters"))
    }
}

fn number<T: std::str::FromStr>(word: &str) -> Result<T, String> {
    word.parse().map_err(|_| "a number".to_owned())
}

fn named<T: Copy>(all: &[T], word: &str, name: impl Fn(T) -> &'static str) -> Result<T, String> {
    let words = || all.iter().map(|one| name(*one)).collect::<Vec<_>>().join(", ");
    all.iter().copied().find(|one| name(*one) == word).ok_or_else(|| format!("one of {}", words()))
}

/// A batch in words.
pub(crate) fn show(batch: &[Probe]) -> String {
    batch.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ; ")
}

/// The batch that these words describe.
pub(crate) fn parse(words: &[&str]) -> Result<Vec<Probe>, String> {
    let batch: Vec<Probe> = words.split(|word| *word == ";").map(Probe::parse).collect::<Result<_, _>>()?;
    if batch.len() > MAX_BATCH { Err(format!("at most {MAX_BATCH} at a time")) } else { Ok(batch) }
}

impl Probe {
    fn parse(words: &[&str]) -> Result<Self, String> {
        Ok(match words {
            ["put", at, value, "at", version] => Self::Put(place(at)?, number(value)?, number(version)?),
            ["drop", at, "at", version] => Self::Drop(place(at)?, number(version)?),
            ["check", at, "at", version] => Self::Check(place(at)?, number(version)?),
            ["restrict", at, rights, "at", version] => {
                Self::Restrict(place(at)?, named(&Rights::ALL, rights, Rights::word)?, number(version)?)
            }
            ["(", parts @ .., ")"] => {
                let parts = parts.split(|word| *word == ",").map(Self::parse);
                let parts: Vec<Self> = parts.collect::<Result<_, _>>()?;
                if parts.len() > MAX_BATCH || parts.iter().any(|part| part.part(0).is_none()) {
                    return Err("a multi of make, put, drop and check".to_owned());
                }
                Self::Several(parts)
            }
            ["get", at] => Self::Get(place(at)?, false),
            ["watch-get", at] => Self::Get(place(at)?, true),
            ["exists", at] => Self::Exists(place(at)?, false),
            ["watch-exists", at] => Self::Exists(place(at)?, true),
            ["children", at] => Self::Children(place(at)?, false),
            ["watch-children", at] => Self::Children(place(at)?, true),
            ["list", at] => Self::List(place(at)?),
            ["count", at] => Self::Count(place(at)?),
            ["ephemerals"] => Self::Ephemerals,
            ["sync"] => Self::Sync,
            ["follow", at] => Self::Follow(place(at)?),
            ["follow-all", at] => Self::FollowAll(place(at)?),
            ["auth", name] => Self::Auth(named(&Name::ALL, name, Name::word)?),
            ["close"] => Self::Close,
            ["leave"] => Self::Leave,
            ["forge", forgery] => Self::Forge(named(&Forgery::ALL, forgery, Forgery::word)?),
            ["rush"] => Self::Rush,
            [make, at, rights] if make.starts_with("make") => Self::Make(
                named(&Kind::ALL, make, Kind::word)?,
                place(at)?,
                named(&Rights::ALL, rights, Rights::word)?,
            ),
            _ => {
                return Err(
                    "make P RIGHTS, make-ephemeral, make-numbered, make-container, put P N at V, drop \
                            P at V, check P at V, restrict P RIGHTS at V, ( several , of these ), get P, \
                            exists P, children P, each also as watch-get, list P, count P, ephemerals, sync, \
                            follow P, follow-all P, auth ann, close, leave, forge first-half, rush; several \
                            with ; between"
                        .to_owned(),
                );
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_probe_is_read_as_it_is_written() {
        let a = || "a/b".to_owned();
        let several = vec![
            Probe::Make(Kind::Numbered, a(), Rights::Open),
            Probe::Check("!3".to_owned(), 4),
            Probe::Put(".".to_owned(), 5, -1),
            Probe::Drop(a(), 2),
        ];
        let mut batch = vec![
            Probe::Several(several),
            Probe::Restrict(a(), Rights::AuthAndAnn, 3),
            Probe::List(a()),
            Probe::Count(a()),
            Probe::Ephemerals,
            Probe::Sync,
            Probe::Follow(a()),
            Probe::FollowAll(a()),
            Probe::Auth(Name::Bob),
            Probe::Close,
            Probe::Leave,
            Probe::Forge(Forgery::LastBit),
            Probe::Rush,
        ];
        for watch in [false, true] {
            batch.extend([Probe::Get(a(), watch), Probe::Exists(a(), watch), Probe::Children(a(), watch)]);
        }
        for (kind, rights) in Kind::ALL.iter().cycle().zip(Rights::ALL) {
            batch.push(Probe::Make(*kind, a(), rights));
        }
        let text = show(&batch);
        let words: Vec<&str> = text.split(' ').collect();
        assert_eq!(parse(&words), Ok(batch), "{text}");
        for wrong in ["make a//b open", "put a 5", "( sync )", "get !9", "auth eve", "make a everybody", ""] {
            assert!(parse(&wrong.split(' ').collect::<Vec<_>>()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_odd_path_is_no_path_of_the_probers() {
        assert_eq!(path(3, "a"), "/p3/a");
        assert_eq!(path(3, "."), "/p3");
        assert_eq!(path(3, "!0"), "x");
        assert_eq!(path(3, "!2"), "/p3/");
        assert_eq!(path(3, "!6"), "/zookeeper");
    }
}
