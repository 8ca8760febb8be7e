//! A partition: a set of pieces that is shared among the living members of a group.
//!
//! Below the resource's znode are two, which [`set_up`] makes with all that is below:
//!
//! - `members`: an ephemeral znode for each member ([`group::join`]).
//! - `pieces`: a znode for each piece, and below it a [lock](crate::lock).
//!
//! Each process is a member and watches the group. From the names of the members it computes which pieces it
//! is to have ([`Allocate`]). [`Balanced`] gives all members the same number of pieces, or one more to some,
//! and moves few. All compute the same, once they know of the same members.
//!
//! They need not agree for safety. A piece is held under its lock alone, so two never hold it at a time, even
//! while they disagree about the members. A holder has the lock's token, which grows from holder to
//! holder, and it may act until its session's certainty ends ([`Partition::may_act`]).
//!
//! **A piece is handed over by its holder.** When a member comes, others are to have fewer pieces. A holder
//! is told [`Told::Release`], ends its work on the piece, and says [`Call::Released`]. Only then the lock is
//! given up. (kazoo's `SetPartitioner` releases all pieces of all members at each change and waits until all
//! have done so. Here pieces that stay are not disturbed.)
//!
//! A piece whose term ended otherwise is told as [`Told::Lost`]. If it is still to be had here, it is asked
//! for again, and is told as acquired with a new token.
//!
//! **Lost answers** are those of the parts: the member's znode ([`Standing`]), the listing ([`Group`]) and
//! the locks ([`Election`]).
//!
//! **Not promised:**
//!
//! - That a piece always has a holder. While it is handed over it has none, and a holder that does not answer
//!   [`Told::Release`] keeps it from others for ever.
//! - That all members say the same pieces and allocate alike. They must; it is kept nowhere. Where they do
//!   not, a piece may stay without a holder or wait behind a holder of another opinion. It never has two.
//! - That nobody is disturbed where a member is away for a moment. When its session ends its pieces go to
//!   others, and when it comes back pieces come back to it.

mod allocation;
mod pieces;

pub use allocation::{Allocate, Balanced};
pub use pieces::{BadPieces, Pieces};

use bytes::Bytes;
use bytestring::ByteString;
use node_session::{CreateMode, Failure, Moment, Request, Response};
use node_wire::client::Acl;
use node_wire::ids::SessionId;

use crate::election::{self, Election, Options, Status, TermEnd};
use crate::group::{self, Group};
use crate::line::{Left, Ticket, Token};
use crate::names::{Guid, Layout, Wish, child};
use crate::recipe::{Ask, Asks, Effects, Input, Now, Recipe};
use crate::rules::{Rules, Sound};
use crate::standing::{self, Standing};

/// The requests that make a resource with these pieces. Each may be refused because its znode is there.
#[must_use]
pub fn set_up(resource: &str, pieces: &Pieces) -> Vec<Request> {
    let create = |path| Request::Create {
        path,
        data: Bytes::new(),
        acl: vec![Acl::world_anyone()],
        mode: CreateMode::Persistent,
    };
    let above = [resource.into(), members_of(resource), pieces_of(resource)];
    let locks = pieces.names().iter().map(|name| lock_of(resource, name));
    above.into_iter().chain(locks).map(create).collect()
}

fn members_of(resource: &str) -> ByteString {
    child(resource, "members")
}

fn pieces_of(resource: &str) -> ByteString {
    child(resource, "pieces")
}

fn lock_of(resource: &str, piece: &str) -> ByteString {
    child(&pieces_of(resource), piece)
}

/// Who shares what.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Share {
    /// The resource's znode, which must be there with all that [`set_up`] makes.
    pub resource: ByteString,
    /// The pieces. All members must say the same.
    pub pieces: Pieces,
    /// What tells this member from others. Those that follow must be unused as well.
    pub guid: Guid,
    /// What others can read of this member.
    pub data: Bytes,
    /// How long before its certainty ends a piece is lost, so that its work can be ended in time.
    pub notice: Moment,
}

/// What a member may do.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    /// The work on a piece is ended: others may have it. It need not have been asked for; but a piece that
    /// this member is to have is acquired again then. Nothing happens where the piece is not held with this
    /// token.
    Released {
        /// Which piece.
        piece: ByteString,
        /// The token with which it was acquired.
        token: Token,
    },
    /// Be no member any more. Each piece that is held is told as [`Told::Release`] and kept until it is
    /// released.
    Withdraw,
    /// Be no member any more, and give all pieces up at once: the work on all of them is ended.
    Leave,
}

/// What a member is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// The piece is held.
    Acquired {
        /// Which.
        piece: ByteString,
        /// It grows from holder to holder of the piece.
        token: Token,
    },
    /// Another member is to have the piece. It is held until [`Call::Released`], or until it is lost.
    Release {
        /// Which.
        piece: ByteString,
        /// With which token it is held.
        token: Token,
    },
    /// The piece is not held any more.
    Lost {
        /// Which.
        piece: ByteString,
        /// Why.
        why: TermEnd,
    },
    /// Nothing follows.
    Over(Left),
}

/// A piece, as this member has it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Piece<R> {
    name: ByteString,
    /// This member is to have it.
    due: bool,
    lock: Option<Election<R>>,
    /// Counts the locks of this member.
    attempt: u64,
    /// It was told as acquired with this token.
    held: Option<Token>,
    /// It was told that it is to be released.
    recalled: bool,
}

/// Whose request it is, and how that one numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Purpose {
    Member(Ask),
    Group(Ask),
    Piece { at: usize, attempt: u64, ask: Ask },
}

/// A member that shares pieces with others.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Partition<A = Balanced, R = Sound> {
    share: Share,
    allocation: A,
    rules: R,
    /// The name of the member's znode.
    name: ByteString,
    member: Standing,
    group: Group,
    pieces: Vec<Piece<R>>,
    asks: Asks<Purpose>,
    session: Option<SessionId>,
    until: Option<Moment>,
    /// Why it ends, if it does.
    leaving: Option<Left>,
    /// The parts were told so.
    is_leaving_group: bool,
    over: bool,
}

impl Partition {
    /// A member.
    #[must_use]
    pub fn new(share: Share) -> Self {
        Self::with_rules(share, Balanced, Sound)
    }
}

impl<A: Allocate> Partition<A> {
    /// A member that allocates in its own way. All members must do it in the same way.
    pub fn with_allocation(share: Share, allocation: A) -> Self {
        Self::with_rules(share, allocation, Sound)
    }
}

impl<A: Allocate, R: Rules> Partition<A, R> {
    /// One that decides by these rules.
    pub fn with_rules(share: Share, allocation: A, rules: R) -> Self {
        let members = members_of(&share.resource);
        let piece = |name: &ByteString| Piece {
            name: name.clone(),
            due: false,
            lock: None,
            attempt: 0,
            held: None,
            recalled: false,
        };
        Self {
            name: group::member_name(share.guid).into(),
            member: group::join(&members, share.guid, share.data.clone()),
            group: Group::watch(members),
            pieces: share.pieces.names().iter().map(piece).collect(),
            asks: Asks::default(),
            session: None,
            until: None,
            leaving: None,
            is_leaving_group: false,
            over: false,
            share,
            allocation,
            rules,
        }
    }

    /// The pieces that are held, with their tokens. Those that are to be released are among them.
    pub fn held(&self) -> impl Iterator<Item = (&ByteString, Token)> {
        self.pieces.iter().filter_map(|piece| Some((&piece.name, piece.held?)))
    }

    /// True if this member may act on the piece at this moment, by what it knows.
    pub fn may_act(&self, piece: &str, at: Moment) -> bool {
        let piece = self.pieces.iter().find(|one| one.name == piece);
        let held = piece.filter(|piece| piece.held.is_some());
        held.and_then(|piece| piece.lock.as_ref()).is_some_and(|lock| lock.may_act(at))
    }

    /// Nobody else holds a piece that this member holds before this moment, as known at the last step.
    pub fn certain_until(&self) -> Option<Moment> {
        self.until.filter(|_| self.held().next().is_some())
    }

    fn called(&mut self, now: Now, call: Call, effects: &mut Effects<Told>) {
        match call {
            Call::Released { piece, token } => {
                let is_held = |one: &Piece<R>| one.name == piece && one.held == Some(token);
                if let Some(at) = self.pieces.iter().position(is_held) {
                    self.give_up(now, at, effects);
                }
            }
            Call::Withdraw => self.withdraw(Left::Resigned),
            Call::Leave => {
                self.withdraw(Left::Resigned);
                for at in 0..self.pieces.len() {
                    self.give_up(now, at, effects);
                }
            }
        }
    }

    /// Gives a piece up, if it is held, without telling so.
    fn give_up(&mut self, now: Now, at: usize, effects: &mut Effects<Told>) {
        if self.pieces[at].held.take().is_some() {
            self.step_piece(now, at, Input::Call(election::Call::Resign), effects);
        }
    }

    /// Wants nothing more.
    fn withdraw(&mut self, why: Left) {
        self.leaving.get_or_insert(why);
        self.allot(false);
    }

    /// Computes which pieces are due, or none while the members are not known.
    fn allot(&mut self, members_known: bool) {
        let owners = if members_known && self.leaving.is_none() { self.owners() } else { Vec::new() };
        for (at, piece) in self.pieces.iter_mut().enumerate() {
            piece.due = owners.get(at).copied().unwrap_or_default();
        }
    }

    /// Whether this member is the owner of each piece. It counts itself as a member in any case: where its
    /// znode is missing, it is being made again.
    fn owners(&self) -> Vec<bool> {
        let mut members: Vec<ByteString> = self.group.members().keys().cloned().collect();
        let own = match members.binary_search(&self.name) {
            Ok(own) => own,
            Err(own) => {
                members.insert(own, self.name.clone());
                own
            }
        };
        let owners = self.allocation.allocate(self.share.pieces.names(), &members);
        owners.into_iter().map(|owner| owner == own).collect()
    }

    fn answered(
        &mut self,
        now: Now,
        ask: Ask,
        answer: Result<Response, Failure>,
        effects: &mut Effects<Told>,
    ) {
        match self.asks.answered(ask) {
            Some(Purpose::Member(ask)) => {
                self.step_member(now, Input::Answered { ask, answer }, effects);
            }
            Some(Purpose::Group(ask)) => self.step_group(now, Input::Answered { ask, answer }, effects),
            // Answers to a lock that is over are no news.
            Some(Purpose::Piece { at, attempt, ask }) if attempt == self.pieces[at].attempt => {
                self.step_piece(now, at, Input::Answered { ask, answer }, effects);
            }
            _ => {}
        }
    }

    /// Has all parts hear of what concerns all.
    fn pass_on(&mut self, now: Now, input: &Input<Call>, effects: &mut Effects<Told>) {
        if let Some(input) = of_all(input) {
            self.step_member(now, input, effects);
        }
        if let Some(input) = of_all(input) {
            self.step_group(now, input, effects);
        }
        for at in 0..self.pieces.len() {
            if let Some(input) = of_all(input) {
                self.step_piece(now, at, input, effects);
            }
        }
    }

    fn step_member(&mut self, now: Now, input: Input<standing::Call>, effects: &mut Effects<Told>) {
        for told in step(&mut self.member, now, input, &mut self.asks, Purpose::Member, effects) {
            if let standing::Told::Over(why) = told {
                self.withdraw(why);
            }
        }
    }

    fn step_group(&mut self, now: Now, input: Input<group::Call>, effects: &mut Effects<Told>) {
        for told in step(&mut self.group, now, input, &mut self.asks, Purpose::Group, effects) {
            match told {
                group::Told::Complete => self.allot(true),
                group::Told::Over(why) => self.withdraw(why),
                group::Told::Joined { .. } | group::Told::Left { .. } => {}
            }
        }
    }

    fn step_piece(&mut self, now: Now, at: usize, input: Input<election::Call>, effects: &mut Effects<Told>) {
        let piece = &mut self.pieces[at];
        let (Some(lock), attempt) = (&mut piece.lock, piece.attempt) else { return };
        let purpose = |ask| Purpose::Piece { at, attempt, ask };
        for status in step(lock, now, input, &mut self.asks, purpose, effects) {
            self.news_of_piece(at, status, effects);
        }
    }

    fn news_of_piece(&mut self, at: usize, status: Status, effects: &mut Effects<Told>) {
        let piece = &mut self.pieces[at];
        match status {
            Status::Elected(place) if piece.due => {
                piece.held = Some(place.token);
                piece.recalled = false;
                effects.tell(Told::Acquired { piece: piece.name.clone(), token: place.token });
            }
            // It is given up at once.
            Status::Standing(_) | Status::Waiting(_) | Status::Elected(_) => {}
            Status::TermOver(why) => {
                if piece.held.take().is_some() {
                    effects.tell(Told::Lost { piece: piece.name.clone(), why });
                }
            }
            Status::Over(why) => {
                piece.lock = None;
                if matches!(why, Left::NoResource | Left::Refused(_) | Left::NoticeTooLong) {
                    self.withdraw(why);
                }
            }
        }
    }

    /// Brings what is held and asked for nearer to what is due.
    fn proceed(&mut self, now: Now, effects: &mut Effects<Told>) {
        for at in 0..self.pieces.len() {
            let piece = &mut self.pieces[at];
            match (&piece.lock, piece.held) {
                (None, _) if piece.due => self.stand_for(now, at, effects),
                (Some(lock), None) if !piece.due && !lock.resigns() => {
                    self.step_piece(now, at, Input::Call(election::Call::Resign), effects);
                }
                (Some(_), Some(token)) if !piece.due && !piece.recalled => {
                    piece.recalled = true;
                    effects.tell(Told::Release { piece: piece.name.clone(), token });
                }
                _ => {}
            }
        }
        if let Some(why) = self.leaving {
            self.end(now, why, effects);
        }
    }

    /// Asks for the lock of a piece.
    fn stand_for(&mut self, now: Now, at: usize, effects: &mut Effects<Told>) {
        let Some(session) = self.session else { return };
        let piece = &mut self.pieces[at];
        piece.attempt += 1;
        let ticket = Ticket {
            resource: lock_of(&self.share.resource, &piece.name),
            layout: Layout::Own,
            wish: Wish::Write,
            // A lock uses some of those that follow its own.
            guid: Guid(self.share.guid.0.wrapping_add(u128::from(piece.attempt) << 32)),
            data: self.share.data.clone(),
            places: 1,
        };
        let options = Options { again: false, notice: self.share.notice };
        piece.lock = Some(Election::with_rules(ticket, options, self.rules.clone()));
        self.step_piece(now, at, Input::Connected { session }, effects);
    }

    /// Ends the membership, and all when nothing is held any more.
    fn end(&mut self, now: Now, why: Left, effects: &mut Effects<Told>) {
        if !std::mem::replace(&mut self.is_leaving_group, true) {
            self.step_group(now, Input::Call(group::Call::Leave), effects);
            self.step_member(now, Input::Call(standing::Call::Leave), effects);
        }
        if self.member.is_over() && self.pieces.iter().all(|piece| piece.lock.is_none()) {
            self.over = true;
            effects.tell(Told::Over(why));
        }
    }
}

/// What concerns all parts alike.
fn of_all<C>(input: &Input<Call>) -> Option<Input<C>> {
    match input {
        Input::Call(_) | Input::Answered { .. } => None,
        Input::Event(event) => Some(Input::Event(event.clone())),
        Input::Connected { session } => Some(Input::Connected { session: *session }),
        Input::Suspended => Some(Input::Suspended),
        Input::Lost => Some(Input::Lost),
        Input::Time => Some(Input::Time),
    }
}

/// Has a part take a step, and sends what it asks for under a number of ours.
fn step<M: Recipe>(
    part: &mut M,
    now: Now,
    input: Input<M::Call>,
    asks: &mut Asks<Purpose>,
    purpose: impl Fn(Ask) -> Purpose,
    effects: &mut Effects<Told>,
) -> Vec<M::Told> {
    let mut own = Effects::default();
    part.step(now, input, &mut own);
    for (ask, request) in own.asks {
        asks.send(request, purpose(ask), effects);
    }
    own.told
}

impl<A: Allocate, R: Rules> Recipe for Partition<A, R> {
    type Call = Call;
    type Told = Told;

    fn step(&mut self, now: Now, input: Input<Call>, effects: &mut Effects<Told>) {
        if self.over {
            return;
        }
        self.until = now.certain_until.map(|until| until.saturating_sub(self.share.notice));
        match &input {
            Input::Connected { session } => self.session = Some(*session),
            Input::Suspended => self.session = None,
            Input::Lost => {
                self.session = None;
                // The members are listed anew in the next session.
                self.allot(false);
            }
            _ => {}
        }
        match input {
            Input::Call(call) => self.called(now, call, effects),
            Input::Answered { ask, answer } => self.answered(now, ask, answer, effects),
            input => self.pass_on(now, &input, effects),
        }
        self.proceed(now, effects);
    }

    fn leave() -> Call {
        Call::Leave
    }

    fn wakes_at(&self) -> Option<Moment> {
        let locks = self.pieces.iter().filter_map(|piece| piece.lock.as_ref()?.wakes_at());
        locks.chain(self.member.wakes_at()).chain(self.group.wakes_at()).min()
    }

    fn wants_certainty(&self) -> bool {
        self.pieces.iter().any(|piece| piece.lock.as_ref().is_some_and(Recipe::wants_certainty))
    }

    fn is_over(&self) -> bool {
        self.over
    }
}

#[cfg(test)]
mod tests;
