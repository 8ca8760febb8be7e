//! A group: who is a member, by ephemeral znodes below one znode.
//!
//! A member is a [`Standing`] znode; [`join`] names it as kazoo's Party does. Whoever wants to know the
//! members lists them and leaves a watch, lists them again at each change, and reads the data of those that
//! are new.
//!
//! **Lost answers** cost nothing: a listing or a read is asked for again when the session is served.
//!
//! **Not promised:** that all comings and goings are told. A member that came and went between two listings
//! is not, and one that went and came back is the same. And a member that is told of may be gone: its session
//! ends some time after its process.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use bytestring::ByteString;
use node_session::{Failure, Moment, Request, Response};
use node_wire::client::ErrorCode;

use crate::line::Left;
use crate::names::{Guid, child};
use crate::recipe::{Ask, Asks, Effects, Input, Now, Recipe};
use crate::served::{Served, verdict};
use crate::standing::Standing;

/// A member of the group at this znode, which must be there. Others can read `data`.
#[must_use]
pub fn join(group: &str, guid: Guid, data: Bytes) -> Standing {
    Standing::new(child(group, &member_name(guid)), data)
}

/// The name of a member's znode.
#[must_use]
pub fn member_name(guid: Guid) -> String {
    format!("{:032x}__party__", guid.0)
}

/// What somebody who watches a group may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    /// Watch no longer.
    Leave,
}

/// What somebody who watches a group is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// A member.
    Joined {
        /// The name of its znode.
        name: ByteString,
        /// Its data, as it was when it was read.
        data: Bytes,
    },
    /// A member that was told of is gone.
    Left {
        /// The name of its znode.
        name: ByteString,
    },
    /// All that were members at a moment have been told, and all that were not any more.
    Complete,
    /// Nothing follows.
    Over(Left),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Stage {
    Unlisted,
    Listing,
    Watching,
    Gone,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Purpose {
    List,
    Read(ByteString),
}

/// Somebody who watches a group.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Group {
    path: ByteString,
    asks: Asks<Purpose>,
    served: Served,
    stage: Stage,
    members: BTreeMap<ByteString, Bytes>,
    /// Listed, and not read yet.
    unread: BTreeSet<ByteString>,
}

impl Group {
    /// Watches the group at this znode.
    #[must_use]
    pub fn watch(path: impl Into<ByteString>) -> Self {
        Self {
            path: path.into(),
            asks: Asks::default(),
            served: Served::default(),
            stage: Stage::Unlisted,
            members: BTreeMap::new(),
            unread: BTreeSet::new(),
        }
    }

    /// The members that were told of, with their data.
    #[must_use]
    pub fn members(&self) -> &BTreeMap<ByteString, Bytes> {
        &self.members
    }

    fn over(&mut self, why: Left, effects: &mut Effects<Told>) {
        self.stage = Stage::Gone;
        effects.tell(Told::Over(why));
    }

    fn answered(
        &mut self,
        now: Now,
        ask: Ask,
        answer: Result<Response, Failure>,
        effects: &mut Effects<Told>,
    ) {
        let answer = answer.map_err(verdict);
        match (self.asks.answered(ask), answer) {
            (Some(Purpose::List), Ok(Response::Children { names, .. })) => self.listed(&names, effects),
            (Some(Purpose::Read(name)), Ok(Response::Data { data, .. })) => {
                self.read(name, Some(data), effects);
            }
            (Some(Purpose::List), Err(Some(ErrorCode::NoNode))) => self.over(Left::NoResource, effects),
            (Some(Purpose::List), Err(Some(code))) => self.over(Left::Refused(code), effects),
            // It went, or nobody may read it.
            (Some(Purpose::Read(name)), Err(Some(_))) => self.read(name, None, effects),
            (Some(_), Err(None)) => {
                self.stage = Stage::Unlisted;
                self.unread.clear();
                self.served.pause(now);
            }
            _ => {}
        }
    }

    fn listed(&mut self, names: &[ByteString], effects: &mut Effects<Told>) {
        if self.stage == Stage::Listing {
            self.stage = Stage::Watching;
        }
        let listed: BTreeSet<&ByteString> = names.iter().collect();
        self.unread.retain(|name| listed.contains(name));
        self.members.retain(|name, _| {
            let stays = listed.contains(name);
            if !stays {
                effects.tell(Told::Left { name: name.clone() });
            }
            stays
        });
        for name in names {
            if !self.members.contains_key(name) && self.unread.insert(name.clone()) {
                let request = Request::GetData { path: child(&self.path, name), watch: false };
                self.asks.send(request, Purpose::Read(name.clone()), effects);
            }
        }
        self.mind_completeness(effects);
    }

    fn read(&mut self, name: ByteString, data: Option<Bytes>, effects: &mut Effects<Told>) {
        if !self.unread.remove(&name) {
            return;
        }
        if let Some(data) = data {
            self.members.insert(name.clone(), data.clone());
            effects.tell(Told::Joined { name, data });
        }
        self.mind_completeness(effects);
    }

    fn mind_completeness(&self, effects: &mut Effects<Told>) {
        if self.stage == Stage::Watching && self.unread.is_empty() {
            effects.tell(Told::Complete);
        }
    }

    fn proceed(&mut self, effects: &mut Effects<Told>) {
        if self.stage == Stage::Unlisted && self.served.is_ready() {
            self.stage = Stage::Listing;
            let request = Request::GetChildren { path: self.path.clone(), watch: true };
            self.asks.send(request, Purpose::List, effects);
        }
    }
}

impl Recipe for Group {
    type Call = Call;
    type Told = Told;

    fn step(&mut self, now: Now, input: Input<Call>, effects: &mut Effects<Told>) {
        if self.stage == Stage::Gone {
            return;
        }
        self.served.follow(now, &input);
        match input {
            Input::Call(Call::Leave) => self.over(Left::Resigned, effects),
            Input::Answered { ask, answer } => self.answered(now, ask, answer, effects),
            Input::Event(event) if event.path == self.path && self.stage == Stage::Watching => {
                self.stage = Stage::Unlisted;
            }
            Input::Lost => {
                self.stage = Stage::Unlisted;
                self.unread.clear();
            }
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
        self.stage == Stage::Gone
    }
}

#[cfg(test)]
mod tests {
    use node_session::CreateMode;

    use super::*;
    use crate::testbed::{Dice, World};

    const PATH: &str = "/group";

    fn member(name: &str) -> String {
        format!("{PATH}/{name}")
    }

    #[test]
    fn members_are_told_with_their_data_when_they_come_and_go() {
        let mut world = World::new(&[PATH], [Group::watch(PATH)]);
        world.make("/group/a", "1", CreateMode::Ephemeral);
        world.settle();
        let joined = Told::Joined { name: "a".into(), data: "1".into() };
        assert_eq!(world.told(0), [joined, Told::Complete]);
        world.make("/group/b", "2", CreateMode::Ephemeral);
        world.delete("/group/a");
        world.settle();
        let joined = Told::Joined { name: "b".into(), data: "2".into() };
        assert_eq!(world.told(0), [Told::Left { name: "a".into() }, joined, Told::Complete]);
    }

    #[test]
    fn a_member_that_goes_before_it_is_read_is_not_told() {
        let mut world = World::new(&[PATH], [Group::watch(PATH)]);
        world.make("/group/a", "1", CreateMode::Ephemeral);
        world.serve(0);
        world.delete("/group/a");
        world.settle();
        assert_eq!(world.told(0).iter().filter(|told| **told != Told::Complete).count(), 0);
    }

    #[test]
    fn drawn_losses_leave_the_members_as_they_are() {
        for seed in 1..200 {
            let mut dice = Dice(seed * 0x9e37_79b9);
            let mut world = World::new(&[PATH], [Group::watch(PATH)]);
            let mut told = BTreeSet::new();
            for _ in 0..200 {
                let path = member(&dice.below(5).to_string());
                match dice.below(8) {
                    0 if world.tree.data(&path).is_none() => world.make(&path, "", CreateMode::Persistent),
                    1 if world.tree.data(&path).is_some() => world.delete(&path),
                    _ => {}
                }
                world.chance(&mut dice, true);
                for news in world.told(0) {
                    match news {
                        Told::Joined { name, .. } => assert!(told.insert(name)),
                        Told::Left { name } => assert!(told.remove(&name)),
                        _ => {}
                    }
                }
            }
            world.heal();
            let members: Vec<ByteString> = world.clients[0].recipe.members().keys().cloned().collect();
            assert_eq!(members, world.tree.children(PATH), "seed {seed}");
        }
    }
}
