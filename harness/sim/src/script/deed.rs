//! What a client asks for, in words.
//!
//! A place is a letter and a number: `r0` is a register, `s0` a set, `l0` a list, `q0` a place of numbered nodes, `e0`
//! one of ephemeral nodes.

use std::fmt;

use bytes::Bytes;
use checker::history::{Function, Value};
use workloads::action::{CreateMode, Reading, decode_list, encode, encode_list, encode_name};
use workloads::{Action, Invocation, Kind};

use crate::prober::{self, Probe};
use crate::scout::Quest;

/// Something that a client does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    /// An operation of a workload.
    Operation(Kind, Box<Invocation>),
    /// The end of the session, when all is over for the client.
    Goodbye,
    /// What a scout does.
    Quest(Quest),
    /// What a prober asks at once.
    Probe(Vec<Probe>),
}

/// The largest key that a script may name.
const MAX_KEY: u64 = 9_999;

fn letter(kind: Kind) -> char {
    match kind {
        Kind::Register => 'r',
        Kind::Set => 's',
        Kind::Append => 'l',
        Kind::Sequential => 'q',
        Kind::Ephemeral => 'e',
    }
}

impl fmt::Display for Deed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, invocation) = match self {
            Self::Operation(kind, invocation) => (kind, invocation),
            Self::Goodbye => return f.write_str("goodbye"),
            Self::Quest(quest) => return write!(f, "scout {quest}"),
            Self::Probe(batch) => return write!(f, "prober {}", prober::show(batch)),
        };
        let place = Place { kind: *kind, key: invocation.key };
        match (invocation.f, &invocation.value) {
            (Function::Read, _) => write!(f, "read {place}"),
            (Function::Write, Value::One(value)) if matches!(invocation.action, Action::Create { .. }) => {
                write!(f, "create {place} {value}")
            }
            (Function::Cas, Value::Pair(Some(from), to)) => write!(f, "cas {place} {from} to {to}"),
            (Function::Append, Value::One(value)) => {
                write!(f, "append {place} {value}")?;
                match behind(&invocation.action) {
                    Some(last) => write!(f, " behind {last}"),
                    None => f.write_str(" first"),
                }
            }
            (Function::Exists, Value::One(value)) => write!(f, "look {place} {value}"),
            (Function::Open | Function::Close | Function::Abandon, _) => write!(f, "{}", invocation.f),
            (_, Value::One(value)) => write!(f, "{} {place} {value}", invocation.f),
            (_, Value::Null) => write!(f, "{} {place}", invocation.f),
            (_, value) => write!(f, "{} {place} {value}", invocation.f),
        }
    }
}

/// The element behind which another one is put; none at the beginning of a list.
pub(crate) fn behind(action: &Action) -> Option<i64> {
    let Action::CasWrite { data, .. } = action else { return None };
    decode_list(data)?.iter().rev().nth(1).copied()
}

/// Where nodes of a workload are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    kind: Kind,
    key: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", letter(self.kind), self.key)
    }
}

impl Place {
    fn parse(word: &str, kinds: &[Kind]) -> Result<Self, String> {
        let place = || {
            let kind = kinds.iter().copied().find(|kind| word.starts_with(letter(*kind)))?;
            let key: u64 = word.get(1..)?.parse().ok()?;
            (key <= MAX_KEY).then_some(Self { kind, key })
        };
        let expected = || {
            let places: Vec<String> = kinds.iter().map(|kind| format!("{}0", letter(*kind))).collect();
            format!("a place as {}, up to number {MAX_KEY}", places.join(", "))
        };
        place().ok_or_else(expected)
    }

    fn path(self) -> String {
        format!("/{self}")
    }

    fn node(self, name: i64) -> String {
        format!("/{self}/{}", encode_name(name))
    }

    fn deed(self, f: Function, value: Value, action: Action) -> Deed {
        let reading = match (self.kind, f, &value) {
            (Kind::Set | Kind::Append, Function::Create, _) | (Kind::Register, _, _) => Reading::Integer,
            (Kind::Append, _, _) => Reading::Integers,
            (Kind::Ephemeral, Function::Create, Value::Null) | (Kind::Sequential, _, _) => Reading::Numbers,
            (Kind::Set | Kind::Ephemeral, _, _) => Reading::Names,
        };
        let expect = if let Action::CasWrite { expect, .. } = &action { Some(*expect) } else { None };
        Deed::Operation(self.kind, Box::new(Invocation { f, key: self.key, value, expect, action, reading }))
    }
}

fn create(path: String, data: Bytes, mode: CreateMode) -> Action {
    Action::Create { path, data, mode }
}

impl Deed {
    /// The deed that these words describe. The version that it expects is the one that was shown with what it
    /// replaces, and the path of a node that got a number the one that it got.
    pub(crate) fn parse(words: &[&str]) -> Result<Self, String> {
        Ok(match words {
            ["goodbye"] => Self::Goodbye,
            ["scout", quest @ ..] => Self::Quest(Quest::parse(quest)?),
            ["prober", batch @ ..] => Self::Probe(prober::parse(batch)?),
            ["close"] => Self::Operation(Kind::Ephemeral, Box::new(Invocation::close())),
            ["abandon"] => Self::Operation(Kind::Ephemeral, Box::new(Invocation::abandon())),
            ["read", place] => {
                let place = Place::parse(place, &Kind::ALL)?;
                let path = place.path();
                let action = match place.kind {
                    Kind::Register | Kind::Append => Action::SyncRead { path },
                    Kind::Set | Kind::Sequential | Kind::Ephemeral => Action::SyncChildren { path },
                };
                place.deed(Function::Read, Value::Null, action)
            }
            ["create", place] => {
                let kinds = [Kind::Set, Kind::Append, Kind::Sequential, Kind::Ephemeral];
                let place = Place::parse(place, &kinds)?;
                let action = create(place.path(), Bytes::new(), CreateMode::Persistent);
                place.deed(Function::Create, Value::Null, action)
            }
            ["create", place, value] => {
                let place = Place::parse(place, &[Kind::Register, Kind::Sequential, Kind::Ephemeral])?;
                Self::creation(place, number(value)?)
            }
            ["write", place, value] => {
                let place = Place::parse(place, &[Kind::Register])?;
                let value = number(value)?;
                let action = Action::Write { path: place.path(), data: encode(value) };
                place.deed(Function::Write, Value::One(value), action)
            }
            ["cas", place, from, "to", to] => {
                let place = Place::parse(place, &[Kind::Register])?;
                let to = number(to)?;
                let action = Action::CasWrite { path: place.path(), data: encode(to), expect: 0 };
                place.deed(Function::Cas, Value::Pair(Some(number(from)?), to), action)
            }
            ["add", place, value] => {
                let place = Place::parse(place, &[Kind::Set])?;
                let value = number(value)?;
                let action = create(place.node(value), Bytes::new(), CreateMode::Persistent);
                place.deed(Function::Add, Value::One(value), action)
            }
            ["append", place, value, "first"] => Self::appending(place, &[number(value)?])?,
            ["append", place, value, "behind", last] => {
                Self::appending(place, &[number(last)?, number(value)?])?
            }
            ["delete", place, value] => {
                let place = Place::parse(place, &[Kind::Sequential])?;
                let value = Value::One(number(value)?);
                place.deed(Function::Delete, value, Action::Delete { path: String::new() })
            }
            ["look", place, value] => {
                let place = Place::parse(place, &[Kind::Ephemeral])?;
                let value = number(value)?;
                let action = Action::SyncExists { path: place.node(value) };
                place.deed(Function::Exists, Value::One(value), action)
            }
            _ => {
                return Err(
                    "read rK, create rK N, write rK N, cas rK N to M, add sK N, append lK N behind M \
                            (or first), delete qK N, look eK N, close, abandon or goodbye"
                        .to_owned(),
                );
            }
        })
    }

    fn creation(place: Place, value: i64) -> Self {
        let (f, action) = match place.kind {
            Kind::Register => (Function::Write, create(place.path(), encode(value), CreateMode::Persistent)),
            Kind::Sequential => {
                let lasts = value % 2 == 0;
                let mode = if lasts { CreateMode::Sequential } else { CreateMode::EphemeralSequential };
                (Function::Create, create(format!("{}-", place.node(value)), Bytes::new(), mode))
            }
            Kind::Set | Kind::Append | Kind::Ephemeral => {
                (Function::Create, create(place.node(value), Bytes::new(), CreateMode::Ephemeral))
            }
        };
        place.deed(f, Value::One(value), action)
    }

    /// The end of the list must be enough; the rest of it is what was shown.
    fn appending(place: &str, end: &[i64]) -> Result<Self, String> {
        let place = Place::parse(place, &[Kind::Append])?;
        let action = Action::CasWrite { path: place.path(), data: encode_list(end), expect: 0 };
        let value = end.last().copied().map_or(Value::Null, Value::One);
        Ok(place.deed(Function::Append, value, action))
    }
}

fn number(word: &str) -> Result<i64, String> {
    word.parse().map_err(|_| "a value".to_owned())
}

#[cfg(test)]
mod tests {
    use bytestring::ByteString;
    use node_wire::ids::Zxid;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;
    use workloads::{Answer, Params, Workload};

    use super::*;

    fn answer(invocation: &Invocation) -> Answer {
        let zxid = Zxid(1);
        match &invocation.action {
            Action::Create { path, mode, .. } => {
                let numbered = matches!(mode, CreateMode::Sequential | CreateMode::EphemeralSequential);
                let path = if numbered { format!("{path}0000000001") } else { path.clone() };
                Answer::Created { path: ByteString::from(path), zxid }
            }
            Action::SyncRead { .. } => {
                let data = if invocation.reading == Reading::Integers { "7,8" } else { "7" };
                Answer::Read { data: Some(data.into()), version: 0, mzxid: zxid, zxid }
            }
            Action::Write { .. } | Action::CasWrite { .. } => {
                Answer::Written { version: 1, mzxid: zxid, zxid }
            }
            _ => Answer::Lost { reason: "a test".to_owned() },
        }
    }

    /// What a script does not say: it is known when the operation is asked for.
    fn without_memory(mut invocation: Invocation) -> Invocation {
        match &mut invocation.action {
            Action::CasWrite { expect, data, .. } => {
                *expect = 0;
                let list = decode_list(data).filter(|_| invocation.f == Function::Append);
                if let Some(list) = list {
                    *data = encode_list(&list[list.len().saturating_sub(2)..]);
                }
            }
            Action::Delete { path } => path.clear(),
            _ => {}
        }
        invocation.expect = invocation.expect.map(|_| 0);
        invocation
    }

    #[test]
    fn every_operation_of_every_workload_is_read_as_it_is_written() {
        for kind in Kind::ALL {
            let rng = ChaCha8Rng::seed_from_u64(7);
            let mut workload = Workload::new(kind, Params::of_keys(2), rng).expect("two keys");
            let mut asked = workload.setup();
            asked.extend(workload.final_reads());
            for _ in 0..600 {
                let next = workload.next_op(3);
                workload.complete(3, &next, &answer(&next));
                asked.push(next);
            }
            for invocation in asked {
                let deed = Deed::Operation(kind, Box::new(without_memory(invocation)));
                let text = deed.to_string();
                let words: Vec<&str> = text.split(' ').collect();
                let Deed::Operation(read_as, read) = Deed::parse(&words).expect("it can be read") else {
                    panic!("{text} is an operation");
                };
                let read = Deed::Operation(read_as, Box::new(without_memory(*read)));
                assert_eq!(read, deed, "{text}");
            }
        }
    }
}
