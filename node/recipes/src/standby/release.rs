//! Giving the lock up, and the breadcrumb with it.

use node_session::request::delete;
use node_session::{Failure, Request, Response};

use super::{ActiveStandby, Purpose, Release, Role, Told};
use crate::recipe::{Effects, Now};
use crate::rules::Rules;
use crate::served::verdict;

impl<R: Rules> ActiveStandby<R> {
    /// The next step of a process that gives the lock up.
    pub(super) fn release(&mut self, effects: &mut Effects<Told>) {
        let (lock, breadcrumb) = (self.lock(), self.breadcrumb());
        let Role::Releasing { crumb, step } = &mut self.role else { return };
        match step {
            Release::Unsure => {
                *step = Release::Looking;
                if self.rules.syncs_before_it_looks() {
                    self.asks.send(Request::Sync { path: lock.clone() }, Purpose::Sync, effects);
                }
                let request = Request::GetData { path: lock, watch: false };
                self.asks.send(request, Purpose::ReleaseLook, effects);
            }
            Release::Sure if *crumb => {
                *step = Release::ReadingCrumb;
                let request = Request::GetData { path: breadcrumb, watch: false };
                self.asks.send(request, Purpose::ReleaseRead, effects);
            }
            Release::Sure => {
                *step = Release::Deleting;
                let request = Request::Delete { path: lock, version: -1 };
                self.asks.send(request, Purpose::Release { crumb: false }, effects);
            }
            Release::Looking | Release::ReadingCrumb | Release::Deleting => {}
        }
    }

    pub(super) fn release_looked(
        &mut self,
        now: Now,
        answer: Result<Response, Failure>,
        effects: &mut Effects<Told>,
    ) {
        let ours = match answer {
            Ok(Response::Data { stat, .. }) => Some(self.is_own(&stat)),
            Ok(_) => Some(false),
            Err(failure) => verdict(failure).map(|_| false),
        };
        let Role::Releasing { step, .. } = &mut self.role else { return };
        match ours {
            Some(true) => *step = Release::Sure,
            Some(false) => self.out(effects),
            None => {
                *step = Release::Unsure;
                self.served.pause(now);
            }
        }
    }

    pub(super) fn release_read(
        &mut self,
        now: Now,
        answer: Result<Response, Failure>,
        effects: &mut Effects<Told>,
    ) {
        let (lock, breadcrumb) = (self.lock(), self.breadcrumb());
        let Role::Releasing { crumb, step } = &mut self.role else { return };
        match answer {
            Ok(Response::Data { data, stat }) if data == self.data => {
                // Both or none, so that a breadcrumb is missing only where nobody is left to be fenced.
                *step = Release::Deleting;
                let request = Request::Multi(vec![delete(breadcrumb, stat.version), delete(lock, -1)]);
                self.asks.send(request, Purpose::Release { crumb: true }, effects);
            }
            Err(failure) if verdict(failure).is_none() => {
                *step = Release::Unsure;
                self.served.pause(now);
            }
            _ => {
                *crumb = false;
                *step = Release::Sure;
            }
        }
    }

    pub(super) fn released(
        &mut self,
        now: Now,
        with_crumb: bool,
        answer: Result<Response, Failure>,
        effects: &mut Effects<Told>,
    ) {
        let Role::Releasing { crumb, step } = &mut self.role else { return };
        match answer {
            Err(failure) if verdict(failure).is_none() && self.rules.resigns_until_it_is_known() => {
                *step = Release::Unsure;
                self.served.pause(now);
            }
            Err(Failure::Refused { at: Some(0), .. }) if with_crumb => {
                // The breadcrumb is not ours any more.
                *crumb = false;
                *step = Release::Sure;
            }
            // The lock is gone, or the ensemble lets nobody delete it; then it goes with the session.
            _ => self.out(effects),
        }
    }

    /// The lock is given up.
    fn out(&mut self, effects: &mut Effects<Told>) {
        match self.leaving {
            Some(why) => self.over(why, effects),
            None => self.role = Role::Out { doubt: false },
        }
    }
}
