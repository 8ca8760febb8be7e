//! Probers: clients that try what the specification says.
//!
//! Workloads ask what a service asks all day. A prober has some nodes for itself and tries the rest: lists
//! that let some in and others not, versions that are checked and changed in one breath, multis that name a
//! node twice and are refused, children that come while their parent goes, syncs among writes that nobody
//! waits for, watches that reach deep. It asks in batches, without waiting for answers within one, though it
//! may pause before a sync: then others write between what it asked and what it asks. It moves, proves to be
//! somebody else, and is rude: half of a password, paths that are none, requests behind the end of its
//! session or before its beginning, hanging up with everything under way.
//!
//! [`probe`] is what it can ask, in words and as requests. What it must be told is a question of the
//! specification ([`crate::invariants`]); a prober only remembers versions, so that it guesses well. Probers
//! are drawn by dice of their own, behind all other clients: worlds without them are what they were.

mod probe;

use std::collections::{BTreeMap, VecDeque};

use node_wire::client::{ErrorCode, Id};
use node_wire::ids::Zxid;

use crate::invariants::Told;
use harness_world::dice::{Chance, Dice, HALF};
use probe::{Forgery, Kind, Rights};
use probe::{NO_PATHS, ODD};
pub(crate) use probe::{Name, Probe, Sense, parse, show};

/// A probe that was asked and is not answered.
#[derive(Clone, Debug)]
pub(crate) struct Open {
    pub(crate) probe: Probe,
    pub(crate) sense: Sense,
    /// Who the client had proven to be.
    pub(crate) who: Vec<Name>,
    /// What was committed when it was asked.
    pub(crate) committed: Zxid,
}

/// What a client is as a prober. Others have it too, and leave it empty.
#[derive(Clone, Debug, Default)]
pub(crate) struct Prober {
    /// It does nothing else.
    pub(crate) only: bool,
    /// Asked and not answered, in order.
    pub(crate) open: VecDeque<Open>,
    /// What it will ask for in a moment, whether what it asked is answered by then or not.
    pub(crate) rest: Vec<Probe>,
    /// Who it has proven to be on this connection, or is about to.
    pub(crate) who: Vec<Name>,
    /// How many of these its member has acknowledged.
    acknowledged: usize,
    /// It has decided who to be there.
    decided: bool,
    /// It tries to get in with a wrong password.
    pub(crate) forging: bool,
    /// The last reply on this connection.
    pub(crate) shown: Zxid,
    /// Its own node is there, as far as it knows.
    grounded: bool,
    /// Versions that it was shown, or that its own writes make.
    versions: BTreeMap<String, i32>,
    values: i64,
}

/// A line of nodes, each below the other.
const DEEP: [&str; 4] = ["a", "a/b", "a/b/c", "a/b/c/d"];

/// Nodes whose versions guard something.
const GUARDED: [&str; 2] = ["g", "h"];

/// Nodes with lists.
const SECRET: [&str; 5] = ["s0", "s1", "s2", "s1/x", "s2/x"];

const CONTAINERS: [&str; 2] = ["k0", "k1"];

const EPHEMERALS: [&str; 3] = ["e0", "s0/e", "a/e"];

/// Where numbers are given out.
const NUMBERED: &str = "q";

/// Any version will do.
const ANY: i32 = -1;

/// How often a client that connects proves to be somebody.
const PROVES: Chance = Chance(6_000);

/// How often a version is guessed wrong on purpose.
const WRONG: Chance = Chance(3_000);

impl Prober {
    /// One that begins.
    pub(crate) fn new() -> Self {
        Self { only: true, ..Self::default() }
    }

    /// Another connection: nothing is proven there, and nothing is under way. True when the end of the
    /// session was.
    pub(crate) fn moves(&mut self) -> bool {
        let ending = self.open.iter().any(|open| open.probe == Probe::Close);
        self.open.clear();
        self.rest.clear();
        self.who.clear();
        (self.decided, self.forging, self.shown) = (false, false, Zxid::ZERO);
        self.acknowledged = 0;
        ending
    }

    /// Who it certainly is for its member, and who it may be by now: a proof counts from somewhere between
    /// its request and its answer.
    pub(crate) fn identities(&self) -> (Vec<Id>, Vec<Id>) {
        let ids = |names: &[Name]| names.iter().map(|name| name.id()).collect();
        (ids(&self.who[..self.acknowledged]), ids(&self.who))
    }

    /// What it asks for next, all at once.
    pub(crate) fn batch(&mut self, dice: &mut Dice) -> Vec<Probe> {
        if !std::mem::replace(&mut self.decided, true) && dice.chance(PROVES) {
            return self.proofs(dice);
        }
        if !self.grounded {
            let make = |place: &str| Probe::Make(Kind::Stays, place.to_owned(), Rights::Open);
            return [".", "g", "h", NUMBERED, "a", "s1", "s2"].map(make).into();
        }
        match dice.between(0, 99) {
            0..=11 => vec![self.anything(dice)],
            12..=23 => several(dice, 3, 7, |dice| self.anything(dice)),
            24..=36 => family(dice),
            37..=52 => self.guarded(dice),
            53..=62 => self.twice(dice),
            63..=76 => secrets(dice),
            77..=84 => self.syncs(dice),
            85..=88 => self.watches(dice),
            89..=91 => self.odd(dice),
            92 | 93 => container(dice),
            94 => self.behind_the_end(dice),
            95 | 96 => {
                let mut batch = several(dice, 2, 5, |dice| self.change(dice));
                batch.push(Probe::Leave);
                batch
            }
            97 => {
                let mut batch = vec![Probe::Forge(one_of(dice, &Forgery::ALL))];
                batch.extend(several(dice, 0, 2, |dice| self.anything(dice)));
                batch
            }
            98 => {
                let mut batch = vec![Probe::Rush];
                batch.extend(several(dice, 1, 2, |dice| self.anything(dice)));
                batch
            }
            _ => ephemerals(dice),
        }
    }

    /// Where it may pause within a batch: before a sync that something comes before.
    pub(crate) fn pauses(batch: &[Probe]) -> Vec<usize> {
        let rude =
            |probe: &Probe| matches!(probe, Probe::Forge(_) | Probe::Rush | Probe::Leave | Probe::Close);
        if batch.iter().any(rude) {
            return Vec::new();
        }
        (1..batch.len()).filter(|place| batch[*place] == Probe::Sync).collect()
    }

    fn proofs(&self, dice: &mut Dice) -> Vec<Probe> {
        match dice.index(4) {
            0 => Name::ALL.map(Probe::Auth).into(),
            1 => vec![Probe::Auth(Name::Bob)],
            _ => vec![Probe::Auth(Name::Ann)],
        }
    }

    fn value(&mut self) -> i64 {
        self.values += 1;
        self.values
    }

    /// The version of a node as it should be now, and now and then another one.
    fn version(&self, dice: &mut Dice, place: &str) -> i32 {
        let known = self.versions.get(place).copied().unwrap_or(0);
        if dice.chance(WRONG) { (known + if dice.chance(HALF) { 1 } else { -1 }).max(0) } else { known }
    }

    /// A write, and the version that it makes when all goes well.
    fn put(&mut self, place: &str, version: i32) -> Probe {
        if let Some(known) = self.versions.get_mut(place) {
            *known += 1;
        }
        Probe::Put(place.to_owned(), self.value(), version)
    }

    fn anything(&mut self, dice: &mut Dice) -> Probe {
        match dice.index(9) {
            0..=3 => self.change(dice),
            4 => Probe::Sync,
            _ => look(dice),
        }
    }

    fn change(&mut self, dice: &mut Dice) -> Probe {
        let place = place(dice);
        match dice.index(10) {
            0..=3 => Probe::Make(Kind::Stays, place, sound(dice)),
            4..=6 => {
                let version = if dice.chance(HALF) { ANY } else { self.version(dice, &place) };
                self.put(&place, version)
            }
            7 => Probe::Drop(place, ANY),
            8 => Probe::Make(Kind::Numbered, format!("{NUMBERED}/n-"), Rights::Open),
            _ => Probe::Restrict(place, one_of(dice, &Rights::ALL), ANY),
        }
    }

    /// Reads a version, checks it and sets something; the check is right, or too late, or too early.
    fn guarded(&mut self, dice: &mut Dice) -> Vec<Probe> {
        let (guard, other) = if dice.chance(HALF) { ("g", "h") } else { ("h", "g") };
        let version = self.version(dice, guard);
        let check = |version: i32| Probe::Check(guard.to_owned(), version);
        let mut batch = match dice.index(6) {
            0 => vec![Probe::Several(vec![check(version), self.put(guard, ANY)])],
            1 => {
                let parts = vec![self.put(other, ANY), check(version), self.put(guard, ANY)];
                vec![Probe::Several(parts)]
            }
            2 => {
                // What is checked is under way.
                let first = self.put(guard, ANY);
                let version = self.version(dice, guard);
                vec![first, Probe::Several(vec![check(version), self.put(other, ANY)])]
            }
            3 => {
                let first = self.put(guard, ANY);
                let version = self.version(dice, guard);
                vec![Probe::Several(vec![first, check(version), self.put(other, ANY)])]
            }
            4 => {
                let deep = one_of(dice, &DEEP);
                let make = Probe::Make(Kind::Stays, deep.to_owned(), Rights::Open);
                let wrong = i32::from(dice.chance(WRONG));
                vec![Probe::Several(vec![make, Probe::Check(deep.to_owned(), wrong), self.put(guard, ANY)])]
            }
            _ => {
                let again = check(version);
                vec![
                    Probe::Several(vec![check(version), self.put(guard, version)]),
                    Probe::Several(vec![again, self.put(guard, ANY)]),
                ]
            }
        };
        batch.extend(GUARDED.map(|place| Probe::Get(place.to_owned(), false)));
        batch
    }

    /// Multis that name one path twice, and what shows whether a refused one left something.
    fn twice(&mut self, dice: &mut Dice) -> Vec<Probe> {
        let deep = one_of(dice, &DEEP).to_owned();
        let known = self.versions.get("g").copied().unwrap_or(0);
        let set = |prober: &mut Self, version| Probe::Put("g".to_owned(), prober.value(), version);
        let make = || Probe::Make(Kind::Stays, deep.clone(), Rights::Open);
        let drop = || Probe::Drop(deep.clone(), ANY);
        let check = |version| Probe::Check("g".to_owned(), version);
        let parts = match dice.index(8) {
            0 => vec![set(self, known), set(self, known + 1), check(known)],
            1 => vec![set(self, known), set(self, known)],
            2 => vec![set(self, ANY), set(self, ANY), drop(), drop()],
            3 => vec![make(), make()],
            4 => vec![drop(), drop()],
            5 => vec![make(), drop(), make(), set(self, known + 1)],
            6 => vec![set(self, ANY), check(known), set(self, ANY)],
            _ => vec![drop(), make(), set(self, ANY), check(known)],
        };
        // Most of these are refused: then the node is what it was.
        let mut behind = vec![
            set(self, known),
            Probe::Several(vec![check(known + 1), set(self, ANY)]),
            make(),
            drop(),
            Probe::Children(".".to_owned(), false),
            Probe::Get("g".to_owned(), false),
        ];
        for _ in 0..dice.index(4) {
            behind.remove(dice.index(behind.len() - 1));
        }
        let mut batch = vec![Probe::Several(parts)];
        batch.append(&mut behind);
        batch
    }

    /// A client's syncs among its own writes.
    fn syncs(&mut self, dice: &mut Dice) -> Vec<Probe> {
        several(dice, 4, 9, |dice| match dice.index(5) {
            0 | 1 => Probe::Sync,
            2 => Probe::Get("g".to_owned(), false),
            3 => Probe::Make(Kind::Stays, one_of(dice, &DEEP).to_owned(), Rights::Open),
            _ => self.put("g", ANY),
        })
    }

    fn watches(&mut self, dice: &mut Dice) -> Vec<Probe> {
        let mut batch = several(dice, 1, 3, |dice| {
            let place = if dice.chance(HALF) { one_of(dice, &DEEP).to_owned() } else { place(dice) };
            match dice.index(6) {
                0 => Probe::Follow(place),
                1 => Probe::FollowAll(".".to_owned()),
                2 => Probe::FollowAll(place),
                3 => Probe::Get(place, true),
                4 => Probe::Exists(place, true),
                _ => Probe::Children(place, true),
            }
        });
        batch.extend(family(dice));
        batch.push(self.change(dice));
        batch
    }

    /// Paths that are none, and nodes that are nobody's to delete.
    fn odd(&mut self, dice: &mut Dice) -> Vec<Probe> {
        several(dice, 1, 4, |dice| {
            let odd = |dice: &mut Dice, most: usize| format!("!{}", dice.index(most));
            match dice.index(7) {
                0 => Probe::Make(Kind::Stays, odd(dice, NO_PATHS + 1), one_of(dice, &Rights::ALL)),
                1 => Probe::Put(odd(dice, NO_PATHS), self.value(), ANY),
                2 => Probe::Drop(odd(dice, ODD.len()), ANY),
                3 => Probe::Restrict(odd(dice, NO_PATHS), one_of(dice, &Rights::ALL), ANY),
                4 => Probe::Several(vec![self.put("g", ANY), Probe::Drop(odd(dice, ODD.len()), ANY)]),
                5 => Probe::Several(vec![Probe::Make(Kind::Stays, odd(dice, NO_PATHS), Rights::Open)]),
                _ => Probe::Get("!2".to_owned(), false),
            }
        })
    }

    /// What is asked behind the end of the session.
    fn behind_the_end(&mut self, dice: &mut Dice) -> Vec<Probe> {
        let mut batch = several(dice, 0, 2, |dice| self.anything(dice));
        batch.push(Probe::Close);
        batch.extend(several(dice, 0, 3, |dice| match dice.index(3) {
            0 => Probe::Make(Kind::Ephemeral, one_of(dice, &EPHEMERALS).to_owned(), Rights::Open),
            1 => look(dice),
            _ => self.change(dice),
        }));
        batch
    }

    /// A probe was answered.
    pub(crate) fn learns(&mut self, dice: &mut Dice, probe: &Probe, told: &Told) {
        let no_node = Told::Refused(ErrorCode::NoNode.code());
        let is_there = Told::Refused(ErrorCode::NodeExists.code());
        match probe {
            // Proofs are answered in the order in which they were asked.
            Probe::Auth(name) => {
                let known = self.who.iter().position(|known| known == name);
                self.acknowledged = self.acknowledged.max(known.map_or(0, |place| place + 1));
            }
            Probe::Make(_, place, _) if place == "." => {
                self.grounded = matches!(told, Told::Made(..)) || *told == is_there;
            }
            // Its own node may have gone, or a list may be in the way.
            _ if *told == no_node && dice.chance(Chance(500)) => self.grounded = false,
            Probe::Get(place, _) | Probe::Put(place, _, _) | Probe::Exists(place, _) => {
                if let Told::Data(_, stat) | Told::Stat(stat) = told {
                    self.versions.insert(place.clone(), stat.version);
                }
            }
            _ => {}
        }
    }
}

fn one_of<T: Copy>(dice: &mut Dice, all: &[T]) -> T {
    all[dice.index(all.len())]
}

/// A list that is accepted, the open one more often than others: below a list that shuts everybody out little
/// happens.
fn sound(dice: &mut Dice) -> Rights {
    if dice.chance(HALF) { Rights::Open } else { one_of(dice, &Rights::ALL[..Rights::SOUND]) }
}

fn several(dice: &mut Dice, least: u64, most: u64, mut one: impl FnMut(&mut Dice) -> Probe) -> Vec<Probe> {
    (0..dice.between(least, most)).map(|_| one(dice)).collect()
}

fn place(dice: &mut Dice) -> String {
    let all: [&[&str]; 5] = [&DEEP, &GUARDED, &SECRET, &CONTAINERS, &EPHEMERALS];
    let places = one_of(dice, &all);
    one_of(dice, places).to_owned()
}

fn look(dice: &mut Dice) -> Probe {
    let place = if dice.chance(Chance(1_000)) { ".".to_owned() } else { place(dice) };
    let watch = dice.chance(Chance(2_000));
    match dice.index(8) {
        0..=2 => Probe::Get(place, watch),
        3 => Probe::Exists(place, watch),
        4 => Probe::Children(place, watch),
        5 | 6 => Probe::List(place),
        _ if dice.chance(HALF) => Probe::Count(place),
        _ => Probe::Ephemerals,
    }
}

/// Parents and children that come and go at once.
fn family(dice: &mut Dice) -> Vec<Probe> {
    let parent = dice.index(DEEP.len() - 1);
    let (parent, child) = (DEEP[parent], DEEP[parent + 1]);
    let sibling = format!("{parent}/z");
    let mut batch = vec![Probe::Make(Kind::Stays, parent.to_owned(), Rights::Open)];
    batch.extend(several(dice, 3, 7, |dice| {
        let place = match dice.index(4) {
            0 => parent.to_owned(),
            1 => sibling.clone(),
            _ => child.to_owned(),
        };
        match dice.index(5) {
            0 | 1 => Probe::Drop(place, ANY),
            2 => Probe::Drop(parent.to_owned(), ANY),
            3 => Probe::Several(vec![Probe::Drop(place.clone(), ANY), Probe::Drop(parent.to_owned(), ANY)]),
            _ => Probe::Make(Kind::Stays, place, Rights::Open),
        }
    }));
    batch.push(Probe::Children(parent.to_owned(), false));
    batch
}

/// Lists that are set, and tried at once.
fn secrets(dice: &mut Dice) -> Vec<Probe> {
    let secret = one_of(dice, &SECRET);
    let place = |dice: &mut Dice| {
        let place = if dice.chance(HALF) { secret } else { one_of(dice, &SECRET) };
        place.to_owned()
    };
    let mut batch = several(dice, 0, 1, |dice| Probe::Make(Kind::Stays, secret.to_owned(), sound(dice)));
    batch.extend(several(dice, 2, 6, |dice| match dice.index(10) {
        0 | 1 => Probe::Restrict(place(dice), one_of(dice, &Rights::ALL), ANY),
        2 => Probe::Restrict(place(dice), sound(dice), 0),
        3 => Probe::Put(place(dice), 0, ANY),
        4 => Probe::Drop(place(dice), ANY),
        5 => Probe::Make(Kind::Stays, place(dice), sound(dice)),
        6 => Probe::List(place(dice)),
        7 => Probe::Children(place(dice), false),
        _ => Probe::Get(place(dice), false),
    }));
    batch
}

/// A container, its child, and whoever comes while it goes.
fn container(dice: &mut Dice) -> Vec<Probe> {
    let container = one_of(dice, &CONTAINERS);
    let child = format!("{container}/x");
    let mut batch = vec![Probe::Make(Kind::Container, container.to_owned(), Rights::Open)];
    batch.extend(several(dice, 1, 4, |dice| {
        if dice.chance(HALF) {
            Probe::Make(Kind::Stays, child.clone(), Rights::Open)
        } else {
            Probe::Drop(child.clone(), ANY)
        }
    }));
    batch
}

fn ephemerals(dice: &mut Dice) -> Vec<Probe> {
    let mut batch = several(dice, 1, 3, |dice| {
        Probe::Make(Kind::Ephemeral, one_of(dice, &EPHEMERALS).to_owned(), sound(dice))
    });
    batch.push(Probe::Make(Kind::Stays, format!("{}/x", one_of(dice, &EPHEMERALS)), Rights::Open));
    batch.push(Probe::Ephemerals);
    batch
}
