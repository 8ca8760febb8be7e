//! Removal of a resource with all its contenders, while others come and go.
//!
//! The resource is listed, and then one transaction deletes all contenders and the resource. If somebody came
//! or went in between it is refused as a whole, and the resource is listed again. So nobody is left in a line
//! without a resource, and each contender learns of it at once: by the end of its znode
//! ([`Left::Deleted`](crate::line::Left)), or because there is nothing left to come to.
//!
//! The listing is behind a sync, because a server that is behind might say that there is no resource, or show
//! contenders that are gone.
//!
//! **Lost answers.** The resource is listed again. If it is not there it is deleted, by whomever. If it is
//! another one, which was made since, as its czxid shows, it is left alone.
//!
//! **Not promised:** an end, where contenders come and go all the time. And a resource that is deleted and
//! made anew by others between the last listing and the transaction is deleted, if nobody has come to it yet.

use bytestring::ByteString;
use node_session::request::delete;
use node_session::{Failure, Moment, Request, Response};
use node_wire::client::ErrorCode;
use node_wire::ids::Zxid;

use crate::line::Left;
use crate::names::child;
use crate::recipe::{Ask, Asks, Effects, Input, Now, Recipe};
use crate::rules::{Rules, Sound};
use crate::served::{Served, verdict};

/// How many contenders one transaction deletes. Those beyond go before, and wait for nobody.
const AT_A_TIME: usize = 1000;

/// What whoever removes a resource may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    /// Try no longer. What was asked may still happen.
    Leave,
}

/// What whoever removes a resource is told. Nothing follows either.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// The resource that was there is gone; or there was none.
    Deleted,
    /// It may be there still.
    Over(Left),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Stage {
    Unlisted,
    Busy,
    Gone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Purpose {
    Sync,
    List,
    /// `whole` if the resource is deleted as well; it is the operation at this place.
    Delete {
        whole: bool,
        last: usize,
    },
}

/// A removal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Removal<R = Sound> {
    resource: ByteString,
    rules: R,
    asks: Asks<Purpose>,
    served: Served,
    stage: Stage,
    /// When the resource was created.
    czxid: Option<Zxid>,
}

impl Removal {
    /// Removes this resource.
    #[must_use]
    pub fn of(resource: impl Into<ByteString>) -> Self {
        Self::with_rules(resource, Sound)
    }
}

impl<R: Rules> Removal<R> {
    /// One that decides by these rules.
    pub fn with_rules(resource: impl Into<ByteString>, rules: R) -> Self {
        Self {
            resource: resource.into(),
            rules,
            asks: Asks::default(),
            served: Served::default(),
            stage: Stage::Unlisted,
            czxid: None,
        }
    }

    fn over(&mut self, told: Told, effects: &mut Effects<Told>) {
        self.stage = Stage::Gone;
        effects.tell(told);
    }

    fn answered(
        &mut self,
        now: Now,
        ask: Ask,
        answer: Result<Response, Failure>,
        effects: &mut Effects<Told>,
    ) {
        let Some(purpose) = self.asks.answered(ask) else { return };
        match (purpose, answer.map_err(|failure| (verdict(failure), failure))) {
            (Purpose::Sync, _) => {}
            (Purpose::List, Ok(Response::Children { names, stat })) => {
                if *self.czxid.get_or_insert(stat.czxid) == stat.czxid {
                    self.delete(names, effects);
                } else {
                    self.over(Told::Deleted, effects);
                }
            }
            (Purpose::List, Err((Some(ErrorCode::NoNode), _))) => self.over(Told::Deleted, effects),
            (Purpose::Delete { whole: true, .. }, Ok(_)) => self.over(Told::Deleted, effects),
            (_, Ok(_)) => self.stage = Stage::Unlisted,
            (_, Err((None, _))) => {
                self.stage = Stage::Unlisted;
                self.served.pause(now);
            }
            (Purpose::Delete { whole, last }, Err((Some(code), failure))) => {
                let at_last = matches!(failure, Failure::Refused { at: Some(at), .. } if at == last);
                match code {
                    // Somebody came or went.
                    ErrorCode::NoNode => self.stage = Stage::Unlisted,
                    ErrorCode::NotEmpty if whole && at_last => self.stage = Stage::Unlisted,
                    // What has children is no contender.
                    code => self.over(Told::Over(Left::Refused(code)), effects),
                }
            }
            (Purpose::List, Err((Some(code), _))) => self.over(Told::Over(Left::Refused(code)), effects),
        }
    }

    fn delete(&mut self, mut names: Vec<ByteString>, effects: &mut Effects<Told>) {
        let whole = names.len() <= AT_A_TIME;
        names.truncate(AT_A_TIME);
        let mut ops: Vec<_> = names.iter().map(|name| delete(child(&self.resource, name), -1)).collect();
        if whole {
            ops.push(delete(self.resource.clone(), -1));
        }
        let last = ops.len() - 1;
        self.asks.send(Request::Multi(ops), Purpose::Delete { whole, last }, effects);
    }

    fn proceed(&mut self, effects: &mut Effects<Told>) {
        if self.stage == Stage::Unlisted && self.served.is_ready() {
            self.stage = Stage::Busy;
            let path = self.resource.clone();
            if self.rules.syncs_before_it_looks() {
                self.asks.send(Request::Sync { path: path.clone() }, Purpose::Sync, effects);
            }
            self.asks.send(Request::GetChildren { path, watch: false }, Purpose::List, effects);
        }
    }
}

impl<R: Rules> Recipe for Removal<R> {
    type Call = Call;
    type Told = Told;

    fn step(&mut self, now: Now, input: Input<Call>, effects: &mut Effects<Told>) {
        if self.stage == Stage::Gone {
            return;
        }
        self.served.follow(now, &input);
        match input {
            Input::Call(Call::Leave) => self.over(Told::Over(Left::Resigned), effects),
            Input::Answered { ask, answer } => self.answered(now, ask, answer, effects),
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
    use crate::testbed::World;

    const PATH: &str = "/election";

    fn world() -> World<Removal> {
        let mut world = World::new(&[PATH], []);
        for name in ["a", "b"] {
            world.make(&format!("{PATH}/{name}-n_"), "", CreateMode::EphemeralSequential);
        }
        world.add(Removal::of(PATH));
        world
    }

    fn is_multi(request: &Request) -> bool {
        matches!(request, Request::Multi(_))
    }

    #[test]
    fn the_resource_goes_with_all_contenders_though_others_come_and_go() {
        let mut world = world();
        world.until(0, is_multi);
        world.make("/election/c-n_", "", CreateMode::EphemeralSequential);
        world.serve(0);
        assert_eq!(world.tree.children(PATH).len(), 3, "all or none");
        world.until(0, is_multi);
        let leaves = world.tree.children(PATH)[0].clone();
        world.delete(&child(PATH, &leaves));
        world.settle();
        assert_eq!(world.told(0), [Told::Deleted]);
        assert_eq!(world.tree.data(PATH), None);
    }

    #[test]
    fn after_a_lost_answer_a_resource_that_is_made_anew_is_left_alone() {
        for taken in [0, 1] {
            let mut world = world();
            world.until(0, is_multi);
            world.cut(0, taken);
            if taken == 1 {
                world.make(PATH, "", CreateMode::Persistent);
            }
            world.connect(0);
            world.settle();
            assert_eq!(world.told(0), [Told::Deleted]);
            assert_eq!(world.tree.data(PATH).is_some(), taken == 1);
        }
    }

    #[test]
    fn what_is_not_there_is_deleted() {
        let mut world = World::new(&[], [Removal::of(PATH)]);
        world.settle();
        assert_eq!(world.told(0), [Told::Deleted]);
    }

    #[test]
    fn what_has_children_of_its_own_is_no_line() {
        let mut world = World::new(&[PATH, "/election/a", "/election/a/b"], [Removal::of(PATH)]);
        world.settle();
        assert_eq!(world.told(0), [Told::Over(Left::Refused(ErrorCode::NotEmpty))]);
    }
}
