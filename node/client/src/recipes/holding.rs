//! What only one holds: terms of leaders, and locks.

use std::time::{Duration, Instant};

use bytes::Bytes;
use bytestring::ByteString;
use node_recipes::election::{Call, Election as Machine, Status, TermEnd};
use node_recipes::line::{Left, Place, Token};
use node_session::request::check;
use node_wire::client::{MultiOp, MultiResult, Stat};
use tokio::sync::{mpsc, watch};

use crate::error::MultiError;
use crate::keeper::Keeper;
use crate::{OpError, Reply, Running};

/// Where a contender is.
#[derive(Clone, Debug, Default)]
pub(super) struct Current {
    /// Its znode.
    pub(super) place: Option<Place>,
    /// Whose end it waits for.
    ahead: Option<ByteString>,
    /// How many terms began.
    pub(super) begun: u64,
    /// How many ended, and why the last one did.
    ended: u64,
    why: Option<TermEnd>,
    /// Nothing will come of it any more.
    pub(super) over: Option<Left>,
}

impl Current {
    /// True during a term.
    pub(super) fn holds(&self) -> bool {
        self.begun > self.ended
    }

    fn take(&mut self, status: Status) {
        match status {
            Status::Standing(place) => self.place = Some(place),
            Status::Waiting(ahead) => self.ahead = Some(ahead),
            Status::Elected(place) => {
                self.place = Some(place);
                self.ahead = None;
                self.begun += 1;
            }
            Status::TermOver(why) => {
                self.ended = self.begun;
                self.why = Some(why);
            }
            Status::Over(left) => {
                self.place = None;
                self.ahead = None;
                self.over = Some(left);
            }
        }
    }
}

/// Behind whom a contender waits.
#[derive(Clone, Debug)]
pub struct Behind {
    current: watch::Receiver<Current>,
    last: Option<ByteString>,
}

impl Behind {
    /// Waits until the contender waits for another one than was told last, and gives that one's znode. Of
    /// those that follow fast only the last is told. Nothing, once the contender is over.
    pub async fn next(&mut self) -> Option<ByteString> {
        let last = self.last.clone();
        let is_news =
            |current: &Current| current.over.is_some() || current.ahead.is_some() && current.ahead != last;
        let current = self.current.wait_for(is_news).await.ok()?.clone();
        self.last.clone_from(&current.ahead);
        current.ahead
    }
}

/// A contender at work. It leaves when this is dropped.
#[derive(Debug)]
pub(super) struct Contender {
    pub(super) keeper: Keeper,
    calls: mpsc::UnboundedSender<Call>,
    pub(super) current: watch::Receiver<Current>,
    notice: Duration,
}

impl Contender {
    pub(super) fn new(keeper: &Keeper, machine: Machine, notice: Duration) -> Self {
        let (calls, called) = mpsc::unbounded_channel();
        let (tell, current) = watch::channel(Current::default());
        tokio::spawn(follow(keeper.drive(machine), called, tell));
        Self { keeper: keeper.clone(), calls, current, notice }
    }

    pub(super) fn behind(&self) -> Behind {
        Behind { current: self.current.clone(), last: None }
    }

    pub(super) fn call(&self, call: Call) {
        // A contender that is over does not hear it.
        let _ = self.calls.send(call);
    }

    /// Waits for the next term behind the first `behind`, or for the end.
    pub(super) async fn term(&mut self, behind: u64) -> Result<Term, Left> {
        let settled = |current: &Current| current.over.is_some() || current.holds() && current.begun > behind;
        let current = match self.current.wait_for(settled).await {
            Ok(current) => current.clone(),
            // The session was closed under it.
            Err(_) => return Err(Left::SessionLost),
        };
        match (current.place, current.over) {
            (Some(place), None) => Ok(Term {
                keeper: self.keeper.clone(),
                place,
                number: current.begun,
                current: self.current.clone(),
                notice: self.notice,
            }),
            (_, over) => Err(over.unwrap_or(Left::SessionLost)),
        }
    }

    /// Waits until nothing is left of it.
    pub(super) async fn over(&mut self) -> Left {
        let current = self.current.wait_for(|current| current.over.is_some()).await;
        current.ok().and_then(|current| current.over).unwrap_or(Left::SessionLost)
    }
}

async fn follow(
    mut running: Running<Machine>,
    mut called: mpsc::UnboundedReceiver<Call>,
    tell: watch::Sender<Current>,
) {
    loop {
        tokio::select! {
            biased;
            told = running.next() => match told {
                Some(status) => tell.send_modify(|current| current.take(status)),
                None => return,
            },
            call = called.recv() => match call {
                Some(call) => running.call(call),
                // The handle is gone: dropping the machine makes it leave.
                None => return,
            },
        }
    }
}

/// A time in which this holder alone holds, from being told so until [`Term::over`].
///
/// Two things keep holders apart. Nobody else can hold before [`Term::certain_until`], so whoever looks at
/// the clock before it acts does no harm. And whoever acts without looking, because its process was stopped
/// or a request was long under way, is refused by its [`Term::token`], where what is protected keeps the
/// largest that it saw ([`Token::admit`]); within the ensemble [`Term::write`] does the same.
#[derive(Clone, Debug)]
pub struct Term {
    keeper: Keeper,
    place: Place,
    number: u64,
    current: watch::Receiver<Current>,
    notice: Duration,
}

/// A fenced write that did not happen.
#[derive(Debug, thiserror::Error)]
pub enum Fenced {
    /// The term is over: its znode is gone.
    #[error("the term is over")]
    Over,
    /// The operations failed, as without a fence. The first of them is counted as 0.
    #[error(transparent)]
    Failed(#[from] MultiError),
}

impl Term {
    /// The fencing token. It is larger than that of every term before, whoever held it.
    #[must_use]
    pub fn token(&self) -> Token {
        self.place.token
    }

    /// The znode that stands for the term.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.place.path
    }

    /// Nobody else can hold before this moment. It moves on while the ensemble is reached; `None` once the
    /// term is over.
    #[must_use]
    pub fn certain_until(&self) -> Option<Instant> {
        if self.is_over() {
            None
        } else {
            self.keeper.certain_until_of(self.place.session)?.checked_sub(self.notice)
        }
    }

    /// True while this holder may act.
    #[must_use]
    pub fn is_certain(&self) -> bool {
        self.certain_until().is_some_and(|until| Instant::now() < until)
    }

    fn is_over(&self) -> bool {
        self.current.borrow().ended >= self.number
    }

    /// Waits for the end of the term and says why it ended. It comes at [`Term::certain_until`] at the
    /// latest.
    pub async fn over(&self) -> TermEnd {
        let mut current = self.current.clone();
        match current.wait_for(|current| current.ended >= self.number).await {
            Ok(current) if current.ended == self.number => current.why.unwrap_or(TermEnd::Uncertain),
            // Later terms came and went, or the session was closed.
            Ok(_) => TermEnd::Uncertain,
            Err(_) => TermEnd::SessionLost,
        }
    }

    /// Makes several changes, all or none, and none if the term is over: a multi whose first operation
    /// checks that the term's znode is there. Its result is left out of those given.
    ///
    /// # Errors
    /// [`Fenced::Over`] is definite. For the others see [`MultiError`].
    pub async fn write(&self, ops: Vec<MultiOp>) -> Result<Reply<Vec<MultiResult>>, Fenced> {
        let mut fenced = vec![check(self.place.path.clone(), -1)];
        fenced.extend(ops);
        match self.keeper.multi(fenced).await {
            Ok(mut reply) => {
                reply.value.remove(0);
                Ok(reply)
            }
            Err(MultiError { at: Some(0), .. }) => Err(Fenced::Over),
            Err(failed) => {
                let at = failed.at.and_then(|at| at.checked_sub(1));
                Err(Fenced::Failed(MultiError { at, ..failed }))
            }
        }
    }

    /// Writes something into the term's znode, for others to read.
    ///
    /// # Errors
    /// See [`OpError`].
    pub async fn proclaim(&self, data: impl Into<Bytes>) -> Result<Reply<Stat>, OpError> {
        self.keeper.set_data(self.place.path.clone(), data, -1).await
    }
}
