//! A register by majorities (Attiya, Bar-Noy, Dolev: "Sharing Memory Robustly in Message-Passing Systems",
//! JACM 1995), for several writers: a protocol of one's own, with all that a protocol gets here.
//!
//! ```text
//! cargo run --release --package harness-protocols --example abd          # worlds, until something is broken
//! cargo run --release --package harness-protocols --example abd -- bug   # with a planted bug, and drawn
//! ```
//!
//! Every member holds a value with a stamp. Whoever is asked goes through two phases. It asks all for what
//! they hold, until a majority has answered. Then it has a majority hold a value: one with a higher stamp for
//! a write, and for a read the newest that it was told of. The planted bug leaves the second phase of a read
//! out: then one read shows a new value, and a later one the old one.

use std::collections::BTreeMap;
use std::fmt;

use checker::history::{EventKind, Value};
use harness_protocols::entry::Playable;
use harness_protocols::script::Script;
use harness_protocols::world::Options;
use harness_protocols::{Id, Input, Io, Protocol, Request};
use workloads::op::Body;
use workloads::{Op, Outcome};

/// When a value was written: by a count, and of one count by who wrote it.
type Stamp = (u32, u8);

/// The protocol.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Abd {
    /// Whether a read has a majority hold what it shows.
    pub(crate) writes_back: bool,
}

/// What members say to each other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Message {
    /// What do you hold under this key?
    Query(Request, u64),
    /// This.
    Holds(Request, Held),
    /// Hold this, unless you hold something newer.
    Store(Request, u64, Held),
    /// I do.
    Stored(Request),
}

/// A value with its stamp; the first stamp is nobody's, and then there is no value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Held {
    stamp: Stamp,
    value: i64,
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.stamp {
            (0, 0) => f.write_str("nothing"),
            (count, writer) => write!(f, "{} at {count}.{writer}", self.value),
        }
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Query(request, key) => write!(f, "query {} key {key}", request.0),
            Self::Holds(request, held) => write!(f, "holds {} {held}", request.0),
            Self::Store(request, key, held) => write!(f, "store {} key {key} {held}", request.0),
            Self::Stored(request) => write!(f, "stored {}", request.0),
        }
    }
}

/// What is on disk: a key, and what it holds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Record(u64, Held);

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "key {}: {}", self.0, self.1)
    }
}

/// Nobody waits for anything: messages that are lost are the client's to notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Never {}

impl fmt::Display for Never {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {}
    }
}

/// An operation under way.
#[derive(Clone, Debug, Hash)]
struct Asked {
    key: u64,
    /// What is written; none for a read.
    value: Option<i64>,
    /// What was heard, by whom, in phase one.
    heard: BTreeMap<Id, Held>,
    /// What a majority is to hold, and who does, in phase two.
    stores: Option<(Held, Vec<Id>)>,
}

/// A member.
#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct Member {
    held: BTreeMap<u64, Held>,
    asked: BTreeMap<Request, Asked>,
}

fn answer(held: Held, value: Option<i64>) -> Outcome {
    let told = match value {
        Some(value) => Value::One(value),
        None if held.stamp == Stamp::default() => Value::Null,
        None => Value::One(held.value),
    };
    Outcome::told(told, None)
}

impl Abd {
    fn ask(&self, member: &mut Member, request: Request, op: &Op, io: &mut Io<'_, Self>) {
        let value = match op.body {
            Body::Read => None,
            Body::MakeRegister { value } | Body::Write { value } => Some(value),
            _ => {
                io.answer(request, Outcome::without_result(EventKind::Fail, op, "not supported".to_owned()));
                return;
            }
        };
        member.asked.insert(request, Asked { key: op.key, value, heard: BTreeMap::new(), stores: None });
        io.send_all(&Message::Query(request, op.key));
    }

    /// Phase one: what a majority holds. Then phase two begins.
    fn heard(&self, member: &mut Member, from: Id, (request, held): (Request, Held), io: &mut Io<'_, Self>) {
        let Some(asked) = member.asked.get_mut(&request).filter(|asked| asked.stores.is_none()) else {
            return;
        };
        asked.heard.insert(from, held);
        if asked.heard.len() < io.quorum() {
            return;
        }
        let newest = asked.heard.values().copied().max().unwrap_or_default();
        let store = match asked.value {
            Some(value) => Held { stamp: (newest.stamp.0 + 1, io.me.0), value },
            None => newest,
        };
        if asked.value.is_none() && !self.writes_back {
            io.answer(request, answer(newest, None));
            member.asked.remove(&request);
            return;
        }
        asked.stores = Some((store, Vec::new()));
        let key = asked.key;
        io.send_all(&Message::Store(request, key, store));
    }

    /// Phase two: a majority holds it.
    fn stored(&self, member: &mut Member, from: Id, request: Request, io: &mut Io<'_, Self>) {
        let Some(asked) = member.asked.get_mut(&request) else { return };
        let Some((held, who)) = &mut asked.stores else { return };
        if !who.contains(&from) {
            who.push(from);
        }
        if who.len() >= io.quorum() {
            io.answer(request, answer(*held, asked.value));
            member.asked.remove(&request);
        }
    }
}

impl Protocol for Abd {
    type Member = Member;
    type Message = Message;
    type Record = Record;
    type Timer = Never;
    type Memory = ();

    fn name(&self) -> &'static str {
        "abd"
    }

    fn start(&self, disk: &[Record], _: &mut Io<'_, Self>) -> Member {
        Member { held: disk.iter().map(|record| (record.0, record.1)).collect(), ..Member::default() }
    }

    fn step(&self, member: &mut Member, input: Input<Self>, io: &mut Io<'_, Self>) {
        match input {
            Input::Request { request, op } => self.ask(member, request, &op, io),
            Input::Timer(never) => match never {},
            Input::Message { from, message } => match message {
                Message::Query(request, key) => {
                    let held = member.held.get(&key).copied().unwrap_or_default();
                    io.send(from, Message::Holds(request, held));
                }
                Message::Store(request, key, held) => {
                    let mine = member.held.entry(key).or_default();
                    if *mine < held {
                        *mine = held;
                        io.write(Record(key, held));
                    }
                    io.send(from, Message::Stored(request));
                }
                Message::Holds(request, held) => self.heard(member, from, (request, held), io),
                Message::Stored(request) => self.stored(member, from, request, io),
            },
        }
    }

    fn shows(&self, member: &Member) -> Option<String> {
        member.held.values().next().map(|held| format!("has {held}"))
    }
}

/// The bug, as a script: a read hears of a write that is not done, and a later one does not.
pub(crate) const BUG: &str = "\
protocol abd
members 3
s1 asked 1: write 0 7
s1 > s1,s2: query 1
s1,s2 > s1: holds 1
s1 > s1: store 1                 # s1 alone holds 7
s2 asked 2: read 0               # hears of 7
s2 > s1,s2: query 2
s1,s2 > s2: holds 2
s2 answered 2: 7
s3 asked 3: read 0               # and later somebody hears of nothing
s3 > s2,s3: query 3
s2,s3 > s3: holds 3
s3 answered 3: nothing
breaks linearizable
";

/// What the script shows.
pub(crate) const TITLE: &str = "a read without write-back is undone by a later one";

/// Looks through seeds for a world that breaks something.
pub(crate) fn first_broken(abd: &Abd, seeds: u64) -> Option<(u64, String)> {
    (0..seeds).find_map(|seed| Some((seed, abd.simulate(seed, Options::default()).broken?.to_string())))
}

#[allow(dead_code, reason = "tests have this as a module")]
fn main() -> Result<(), String> {
    let writes_back = std::env::args().nth(1).is_none();
    let abd = Abd { writes_back };
    match first_broken(&abd, 2_000) {
        None => println!("2000 worlds, and nothing is broken"),
        Some((seed, broken)) => {
            println!("seed {seed}: {broken}\n");
            println!("{}", abd.script_of(seed, None).unwrap_or_default());
        }
    }
    if !writes_back {
        let played = abd.play(TITLE, &Script::read(BUG)?);
        std::fs::write("abd.svg", played.svg).map_err(|error| error.to_string())?;
        println!("{}\ndrawn in abd.svg", played.lines.join("\n"));
    }
    Ok(())
}
