//! Locks, read/write locks and semaphores, for applications.

use std::time::Duration;

use bytes::Bytes;
use bytestring::ByteString;
use node_recipes::election::{Call, Options};
use node_recipes::line::Left;
use node_recipes::lock::{Mode, lock, read_write, semaphore};
use node_recipes::names::Layout;

use super::election::standing;
use super::guid;
use super::holding::{Behind, Contender, Term};
use super::{RecipeError, Standing};
use crate::OpError;
use crate::keeper::Keeper;

#[derive(Clone, Copy, Debug)]
enum Kind {
    Alone,
    Shared(Mode),
    Places(usize),
}

/// A lock: a znode below which those stand who want it. It is not re-entrant.
///
/// ```no_run
/// # async fn locked(keeper: &node_client::Keeper) -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use node_client::recipes::Lock;
///
/// let lock = Lock::create(keeper, "/locks/a").await?;
/// let guard = lock.acquire_within(Duration::from_secs(2)).await?;
/// println!("we hold it with token {}", guard.token());
/// guard.release().await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Lock {
    keeper: Keeper,
    resource: ByteString,
    kind: Kind,
    layout: Layout,
    data: Bytes,
    notice: Duration,
}

/// Why a lock is not held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LockError {
    /// Others held it for as long as was waited. This contender has left the line, or leaves it when the
    /// ensemble is reached again.
    #[error("others held it all the time")]
    TimedOut,
    /// The place in the line came to nothing.
    #[error("the place in the line came to nothing: {0}")]
    Over(Left),
}

impl Lock {
    /// A lock that one holds. Its znode, and all above, are made where they are not there.
    ///
    /// # Errors
    /// See [`OpError`].
    pub async fn create(keeper: &Keeper, resource: impl Into<ByteString>) -> Result<Self, OpError> {
        Self::of(keeper, resource.into(), Kind::Alone).await
    }

    /// A lock that those who read hold together.
    ///
    /// # Errors
    /// See [`OpError`].
    pub async fn read(keeper: &Keeper, resource: impl Into<ByteString>) -> Result<Self, OpError> {
        Self::of(keeper, resource.into(), Kind::Shared(Mode::Shared)).await
    }

    /// The same lock, to be held alone.
    ///
    /// # Errors
    /// See [`OpError`].
    pub async fn write(keeper: &Keeper, resource: impl Into<ByteString>) -> Result<Self, OpError> {
        Self::of(keeper, resource.into(), Kind::Shared(Mode::Exclusive)).await
    }

    /// A semaphore: so many hold it at a time. All must say the same number.
    ///
    /// # Errors
    /// See [`OpError`].
    pub async fn semaphore(
        keeper: &Keeper,
        resource: impl Into<ByteString>,
        places: usize,
    ) -> Result<Self, OpError> {
        Self::of(keeper, resource.into(), Kind::Places(places)).await
    }

    async fn of(keeper: &Keeper, resource: ByteString, kind: Kind) -> Result<Self, OpError> {
        keeper.create_all(&resource).await?;
        let (keeper, layout, data) = (keeper.clone(), Layout::Own, Bytes::new());
        Ok(Self { keeper, resource, kind, layout, data, notice: Duration::ZERO })
    }

    /// With names as another library writes them, to stand beside programs over it.
    #[must_use]
    pub fn with_layout(self, layout: Layout) -> Self {
        Self { layout, ..self }
    }

    /// With something that others can read of whoever holds it, or wants to.
    #[must_use]
    pub fn with_data(self, data: impl Into<Bytes>) -> Self {
        Self { data: data.into(), ..self }
    }

    /// With a term that is over so long before its certainty ends, so that its work can be ended in time: at
    /// most half of [`Keeper::timeout`]. With a longer one it is never held: [`Left::NoticeTooLong`].
    #[must_use]
    pub fn with_notice(self, notice: Duration) -> Self {
        Self { notice, ..self }
    }

    /// All who hold the lock of this znode or wait for it, first come first.
    ///
    /// # Errors
    /// [`RecipeError::NoResource`] where there is no such znode.
    pub async fn contenders(keeper: &Keeper, resource: &ByteString) -> Result<Vec<Standing>, RecipeError> {
        standing(keeper, resource).await
    }

    /// Waits until it is held. When the wait is given up its place is given up too.
    ///
    /// # Errors
    /// [`LockError::Over`]: the session was lost, or the znode deleted. Try again where that makes sense.
    pub async fn acquire(&self) -> Result<Guard, LockError> {
        self.stand().held().await
    }

    /// Takes a place in the line.
    #[must_use = "a place that is dropped is given up"]
    pub fn stand(&self) -> Contention {
        let (resource, layout, data) = (self.resource.clone(), self.layout, self.data.clone());
        let options = Options { again: false, notice: self.notice };
        let machine = match self.kind {
            Kind::Alone => lock(resource, layout, guid(), data),
            Kind::Shared(mode) => read_write(resource, layout, mode, guid(), data),
            Kind::Places(places) => semaphore(resource, layout, places, guid(), data),
        };
        let machine = machine.with_options(options);
        Contention { contender: Contender::new(&self.keeper, machine, self.notice) }
    }

    /// Waits so long and no longer.
    ///
    /// # Errors
    /// See [`LockError`].
    pub async fn acquire_within(&self, patience: Duration) -> Result<Guard, LockError> {
        match tokio::time::timeout(patience, self.acquire()).await {
            Ok(acquired) => acquired,
            Err(_) => Err(LockError::TimedOut),
        }
    }
}

/// A place in the line for a lock.
#[derive(Debug)]
pub struct Contention {
    contender: Contender,
}

impl Contention {
    /// Tells behind whom it waits.
    #[must_use]
    pub fn behind(&self) -> Behind {
        self.contender.behind()
    }

    /// Waits until the lock is held.
    ///
    /// # Errors
    /// As [`Lock::acquire`].
    pub async fn held(mut self) -> Result<Guard, LockError> {
        let term = self.contender.term(0).await.map_err(LockError::Over)?;
        Ok(Guard { contender: self.contender, term })
    }
}

/// A lock that is held, as long as its [`Term`] lasts. When it is dropped it is released, without a wait for
/// the answer.
#[derive(Debug)]
pub struct Guard {
    contender: Contender,
    term: Term,
}

impl std::ops::Deref for Guard {
    type Target = Term;

    fn deref(&self) -> &Term {
        &self.term
    }
}

impl Guard {
    /// Releases it, and waits until nothing is left of it.
    pub async fn release(mut self) -> Left {
        self.contender.call(Call::Resign);
        self.contender.over().await
    }
}
