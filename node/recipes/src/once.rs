//! A transaction whose outcome is known although its answer was lost.
//!
//! A client keeps a *mark*: an ephemeral znode of its own. Each of its transactions also sets the mark to the
//! transaction's number, at the mark's version. When an answer is lost, the client reads the mark, behind a
//! sync: it holds the number, so the transaction was carried out, or it does not, so it was not. Then it is
//! submitted again with the same number, at the same version. So it is not carried out twice either, also
//! where a server carries out a request of a connection that is gone.
//!
//! So a doubt stays only where the session ended as well, which took the mark along, or where somebody
//! deleted the mark. No other writer can hide the outcome, as it can where a client looks for what it wrote.
//! The price is one operation in each transaction, and one znode for each client.
//!
//! The mark is a child of a znode that must be there. Its name is a guid and nobody else's, so it may be
//! deleted again after a lost answer.

use bytes::Bytes;
use bytestring::ByteString;
use node_session::request::set_data;
use node_session::{CreateMode, Failure, Request, Response};
use node_wire::client::{Acl, ErrorCode, MultiOp, MultiResult};

use crate::names::{Guid, child};
use crate::recipe::{Asks, Effects, Now};
use crate::rules::Rules;
use crate::served::{Served, verdict};

/// What became of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was carried out. The results are empty where only the mark tells.
    Done(Vec<MultiResult>),
    /// It was not. It is to be submitted again: what is submitted next counts as the same transaction, so
    /// that no two of its attempts can be carried out.
    Undone,
    /// The ensemble refused it. `at` counts its operations from 0; it is `None` where no mark could be made.
    Refused {
        /// Why.
        code: ErrorCode,
        /// Which operation.
        at: Option<usize>,
    },
    /// It was carried out or not: the answer was lost, and so is the mark.
    InDoubt,
}

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// The mark is made.
    Make,
    /// No answer is waited for.
    Sync,
    /// The mark is read.
    Read,
    /// The transaction.
    Submit,
    /// The mark is deleted.
    Retire,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Mark {
    Unmade,
    /// It is there, and its version must be read.
    Unread,
    /// A request about it is open.
    Busy,
    /// It is at this version.
    Known(i32),
}

/// A mark, and at most one transaction at a time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Once<R> {
    path: ByteString,
    rules: R,
    mark: Mark,
    /// Of the transaction that is open, or comes next.
    number: u64,
    /// Its outcome is not known yet.
    open: bool,
    doubt: bool,
}

impl<R: Rules> Once<R> {
    /// A mark below this znode.
    pub fn new(parent: &str, guid: Guid, rules: R) -> Self {
        let path = child(parent, &format!("{:032x}", guid.0));
        Self { path, rules, mark: Mark::Unmade, number: 1, open: false, doubt: false }
    }

    /// True while a transaction's outcome is not known.
    pub fn is_open(&self) -> bool {
        self.open
    }

    fn count(&self) -> Bytes {
        self.number.to_string().into()
    }

    /// Makes or reads the mark, if it must be. True if a transaction can be submitted. To be called while
    /// requests can be sent and there is one to be submitted, or an open one.
    pub fn prepare<P: From<Purpose>, T>(&mut self, asks: &mut Asks<P>, effects: &mut Effects<T>) -> bool {
        let path = self.path.clone();
        match self.mark {
            Mark::Known(_) => return !self.open,
            Mark::Busy => {}
            Mark::Unmade => {
                self.mark = Mark::Busy;
                let (acl, mode) = (vec![Acl::world_anyone()], CreateMode::Ephemeral);
                let request = Request::Create { path, data: Bytes::new(), acl, mode };
                asks.send(request, Purpose::Make.into(), effects);
            }
            Mark::Unread => {
                self.mark = Mark::Busy;
                if self.rules.syncs_before_it_looks() {
                    asks.send(Request::Sync { path: path.clone() }, Purpose::Sync.into(), effects);
                }
                asks.send(Request::GetData { path, watch: false }, Purpose::Read.into(), effects);
            }
        }
        false
    }

    /// Submits a transaction. To be called when [`Once::prepare`] said so.
    pub fn submit<P: From<Purpose>, T>(
        &mut self,
        mut ops: Vec<MultiOp>,
        asks: &mut Asks<P>,
        effects: &mut Effects<T>,
    ) {
        let Mark::Known(version) = self.mark else { return };
        self.open = true;
        ops.insert(0, set_data(self.path.clone(), self.count(), version));
        asks.send(Request::Multi(ops), Purpose::Submit.into(), effects);
    }

    /// Deletes the mark. True when it is gone.
    pub fn retire<P: From<Purpose>, T>(&mut self, asks: &mut Asks<P>, effects: &mut Effects<T>) -> bool {
        if matches!(self.mark, Mark::Known(_) | Mark::Unread) {
            self.mark = Mark::Busy;
            let request = Request::Delete { path: self.path.clone(), version: -1 };
            asks.send(request, Purpose::Retire.into(), effects);
        }
        self.mark == Mark::Unmade
    }

    /// The session is over, and the mark with it.
    pub fn lost(&mut self) -> Option<Outcome> {
        self.mark = Mark::Unmade;
        self.open = false;
        std::mem::take(&mut self.doubt).then(|| self.outcome(Outcome::InDoubt))
    }

    /// What became of the open transaction is known.
    fn outcome(&mut self, outcome: Outcome) -> Outcome {
        self.open = false;
        self.doubt = false;
        self.number += u64::from(outcome != Outcome::Undone);
        outcome
    }

    /// A request was answered.
    pub fn answered(
        &mut self,
        now: Now,
        purpose: Purpose,
        answer: Result<Response, Failure>,
        served: &mut Served,
    ) -> Option<Outcome> {
        match (purpose, answer) {
            (Purpose::Sync, _) => None,
            (Purpose::Make, Ok(_)) => {
                self.mark = Mark::Known(0);
                None
            }
            (Purpose::Retire, Ok(_)) => {
                self.mark = Mark::Unmade;
                None
            }
            (Purpose::Submit, Ok(Response::Multi(mut results))) => {
                if let Mark::Known(version) = &mut self.mark {
                    *version += 1;
                }
                results.remove(0);
                Some(self.outcome(Outcome::Done(results)))
            }
            (Purpose::Read, Ok(Response::Data { data, stat })) => {
                self.mark = Mark::Known(stat.version);
                let done = data == self.count();
                self.settle(if done { Outcome::Done(Vec::new()) } else { Outcome::Undone })
            }
            (_, Ok(_)) => None,
            (_, Err(failure)) => match (verdict(failure), failure) {
                (Some(code), Failure::Refused { at, .. }) => self.refused(purpose, code, at),
                _ => {
                    served.pause(now);
                    self.unanswered(purpose, failure)
                }
            },
        }
    }

    /// The doubt is over, if there is one.
    fn settle(&mut self, outcome: Outcome) -> Option<Outcome> {
        self.doubt.then(|| self.outcome(outcome))
    }

    fn unanswered(&mut self, purpose: Purpose, failure: Failure) -> Option<Outcome> {
        match purpose {
            Purpose::Make if failure != Failure::Unknown => self.mark = Mark::Unmade,
            Purpose::Make | Purpose::Read | Purpose::Retire => self.mark = Mark::Unread,
            Purpose::Sync => {}
            Purpose::Submit => {
                self.mark = Mark::Unread;
                self.doubt = failure == Failure::Unknown && self.rules.looks_for_its_own();
                self.open = self.doubt;
                return (!self.doubt).then_some(Outcome::Undone);
            }
        }
        None
    }

    fn refused(&mut self, purpose: Purpose, code: ErrorCode, at: Option<usize>) -> Option<Outcome> {
        match (purpose, code) {
            (Purpose::Make, ErrorCode::NodeExists) => self.mark = Mark::Unread,
            (Purpose::Make, code) => {
                self.mark = Mark::Unmade;
                return Some(Outcome::Refused { code, at: None });
            }
            (Purpose::Submit, ErrorCode::NoNode) if at == Some(0) => {
                self.mark = Mark::Unmade;
                return Some(self.outcome(Outcome::Undone));
            }
            (Purpose::Submit, ErrorCode::BadVersion) if at == Some(0) => {
                // An attempt before this one was carried out, though its connection was gone.
                self.mark = Mark::Unread;
                self.doubt = true;
            }
            (Purpose::Submit, code) => {
                let at = at.and_then(|at| at.checked_sub(1));
                return Some(self.outcome(Outcome::Refused { code, at }));
            }
            (Purpose::Read, _) => {
                // Somebody deleted the mark.
                self.mark = Mark::Unmade;
                return self.settle(Outcome::InDoubt);
            }
            (Purpose::Retire, _) => self.mark = Mark::Unmade,
            (Purpose::Sync, _) => {}
        }
        None
    }
}
