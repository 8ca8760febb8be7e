//! Election of a leader, for applications.

use std::time::Duration;

use bytes::Bytes;
use bytestring::ByteString;
use node_recipes::delete::{self, Removal};
use node_recipes::election::{Call, Election as Machine, Options};
use node_recipes::line::{Left, Ticket, Token};
use node_recipes::names::{Intent, Layout, child, in_order};
use node_recipes::observe::Observer;
use node_wire::client::ErrorCode;

use super::holding::{Behind, Contender, Term};
use super::{RecipeError, guid};
use crate::keeper::Keeper;
use crate::{OpError, Running};

/// A resource that one of several leads: a znode below which candidates stand.
///
/// The application owns the resource and the session. It makes the resource before anybody stands
/// ([`Election::create`]), and may have many elections over one session.
///
/// ```no_run
/// # async fn lead() -> Result<(), Box<dyn std::error::Error>> {
/// use node_client::recipes::{Candidate, Election};
/// use node_client::{Keeper, KeeperOptions};
///
/// let keeper = Keeper::connect("a:2181,b:2181,c:2181", KeeperOptions::default()).await?;
/// let election = Election::create(&keeper, "/election/president").await?;
/// let mut candidacy = election.volunteer(Candidate::named("host-a"));
/// loop {
///     let term = candidacy.elected().await?;
///     println!("we lead with token {} until {:?}", term.token(), term.certain_until());
///     tokio::select! {
///         why = term.over() => println!("it is over: {why:?}"),
///         () = work(&term) => break,
///     }
/// }
/// candidacy.resign().await;
/// # Ok(())
/// # }
/// # async fn work(_: &node_client::recipes::Term) {}
/// ```
#[derive(Clone, Debug)]
pub struct Election {
    keeper: Keeper,
    resource: ByteString,
}

/// Who stands for election, and how.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// What others can read of it.
    pub data: Bytes,
    /// Whose names are used, to stand beside programs over other libraries.
    pub layout: Layout,
    /// Whether it stands again, at the end of the line, when its session was lost or its term became
    /// uncertain.
    pub again: bool,
    /// How long before its certainty ends a term is over, so that its work can be ended in time: at most half
    /// of [`Keeper::timeout`]. With a longer one [`Candidacy::elected`] gives [`Left::NoticeTooLong`].
    pub notice: Duration,
}

impl Candidate {
    /// A candidate that others know by this name.
    pub fn named(name: impl Into<Bytes>) -> Self {
        Self { data: name.into(), layout: Layout::Own, again: true, notice: Duration::ZERO }
    }
}

/// Somebody who stands for election, as others see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Its znode.
    pub path: ByteString,
    /// What it says of itself, or proclaimed.
    pub data: Bytes,
    /// True if it is content to share with others that read.
    pub reads: bool,
    /// The token of its term, now or when its turn comes.
    pub token: Token,
}

impl Election {
    /// An election of a resource that is there.
    ///
    /// # Errors
    /// [`RecipeError::NoResource`] where there is none.
    pub async fn open(keeper: &Keeper, resource: impl Into<ByteString>) -> Result<Self, RecipeError> {
        let resource = resource.into();
        match keeper.exists(resource.clone()).await?.value {
            Some(_) => Ok(Self { keeper: keeper.clone(), resource }),
            None => Err(RecipeError::NoResource(resource.to_string())),
        }
    }

    /// As [`Election::open`], and makes the resource, and all above it, where it is not there.
    ///
    /// # Errors
    /// See [`OpError`].
    pub async fn create(keeper: &Keeper, resource: impl Into<ByteString>) -> Result<Self, RecipeError> {
        let resource = resource.into();
        keeper.create_all(&resource).await?;
        Ok(Self { keeper: keeper.clone(), resource })
    }

    /// Stands for election.
    #[must_use = "a candidate that is dropped resigns"]
    pub fn volunteer(&self, candidate: Candidate) -> Candidacy {
        let Candidate { data, layout, again, notice } = candidate;
        let (resource, guid) = (self.resource.clone(), guid());
        let ticket = Ticket { resource, layout, intent: Intent::Lead, guid, data, places: 1 };
        let machine = Machine::new(ticket, Options { again, notice });
        Candidacy { contender: Contender::new(&self.keeper, machine, notice), seen: 0 }
    }

    /// All who stand, first in line first. Whoever is first leads, or will know of it soon.
    ///
    /// # Errors
    /// [`RecipeError::NoResource`] where the resource was deleted.
    pub async fn candidates(&self) -> Result<Vec<Standing>, RecipeError> {
        standing(&self.keeper, &self.resource).await
    }

    /// Who is first in line.
    ///
    /// # Errors
    /// See [`Election::candidates`].
    pub async fn leader(&self) -> Result<Option<Standing>, RecipeError> {
        Ok(self.candidates().await?.into_iter().next())
    }

    /// Tells who is first in line, and each change of it once; with `follows_data` also what it proclaims.
    #[must_use]
    pub fn observe(&self, follows_data: bool) -> Running<Observer> {
        self.keeper.drive(Observer::new(self.resource.clone(), follows_data))
    }

    /// Ends the election: deletes all who stand and the resource, at once. All candidates are told. Those who
    /// join meanwhile are deleted too, or find no resource.
    ///
    /// # Errors
    /// Why it may be there still. [`Left::Refused`] by the ensemble, or [`Left::SessionLost`] where the
    /// [`Keeper`] was closed meanwhile.
    pub async fn delete(&self) -> Result<(), Left> {
        let mut removal = self.keeper.drive(Removal::of(self.resource.clone()));
        match removal.next().await {
            Some(delete::Told::Deleted) => Ok(()),
            Some(delete::Told::Over(why)) => Err(why),
            None => Err(Left::SessionLost),
        }
    }
}

/// All who stand below a resource, first in line first.
pub(super) async fn standing(keeper: &Keeper, resource: &ByteString) -> Result<Vec<Standing>, RecipeError> {
    let names = match keeper.sync_then_children(resource.clone()).await {
        Ok(reply) => reply.value.names,
        Err(OpError::Refused { code: ErrorCode::NoNode, .. }) => {
            return Err(RecipeError::NoResource(resource.to_string()));
        }
        Err(error) => return Err(error.into()),
    };
    let mut standing = Vec::new();
    for contender in in_order(&names) {
        let path = child(resource, &contender.name);
        match keeper.get_data(path.clone()).await {
            Ok(reply) => {
                let token = Token(reply.value.stat.czxid.0);
                let (data, reads) = (reply.value.data, contender.reads);
                standing.push(Standing { path, data, reads, token });
            }
            // It went in between.
            Err(OpError::Refused { code: ErrorCode::NoNode, .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(standing)
}

/// One's own candidacy. When it is dropped the candidate resigns, whether it leads or waits.
#[derive(Debug)]
pub struct Candidacy {
    contender: Contender,
    /// The number of the last term that was given.
    seen: u64,
}

impl Candidacy {
    /// Waits for the next term.
    ///
    /// # Errors
    /// Why there will be none. Nothing is left of the candidacy then.
    pub async fn elected(&mut self) -> Result<Term, Left> {
        let term = self.contender.term(self.seen).await?;
        self.seen = self.contender.current.borrow().begun;
        Ok(term)
    }

    /// True during a term.
    #[must_use]
    pub fn leads(&self) -> bool {
        self.contender.current.borrow().holds()
    }

    /// The candidate's znode, while it is known.
    #[must_use]
    pub fn path(&self) -> Option<ByteString> {
        self.contender.current.borrow().place.as_ref().map(|place| place.path.clone())
    }

    /// Tells behind whom the candidate waits.
    #[must_use]
    pub fn behind(&self) -> Behind {
        self.contender.behind()
    }

    /// Gives up the lead, or the candidacy, and waits until its znode is gone. That takes as long as the
    /// ensemble is away: the candidate resigns when it is reached again, or its session ends.
    pub async fn resign(mut self) -> Left {
        self.contender.call(Call::Resign);
        self.contender.over().await
    }

    /// Waits for the end of the candidacy.
    pub async fn over(&mut self) -> Left {
        self.contender.over().await
    }
}
