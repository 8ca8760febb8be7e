//! Applications in a world: what they want done is done, and what befalls them ([`crate::application`]).
//!
//! They come and go beside the other clients, over connections of the same kind. One whose process stands
//! still hears nothing and looks at no clock; what it sent before is on its way all the same.

use std::collections::BTreeSet;

use node_session::Moment;

use crate::application::{Application, Out};
use crate::client::Flow;
use crate::outcome::Rule;
use crate::part::Part;
use crate::world::{Clockwork, Ensemble, Event, Oracle, Population};
use harness_world::dice::Dice;
use harness_world::time::Time;

/// Between the beginning of a world and the first act of an application, at most.
const BEGIN_US: u64 = 300_000;

/// An application, and whether its process runs.
#[derive(Clone, Debug)]
pub(in crate::world) struct Resident {
    pub(in crate::world) application: Application,
    /// Its process stands still.
    pub(in crate::world) still: bool,
    /// Counts plans: an alarm of an earlier one is void.
    pub(in crate::world) plan: u64,
    /// When it looks at the clock next.
    pub(in crate::world) armed: Option<Moment>,
}

/// Why an application's turn comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::world) enum Turn {
    /// It looks at the clock.
    Alarm(u64),
    /// Its process goes on.
    GoesOn(u64),
}

pub(in crate::world) fn moment(at: Time) -> Moment {
    Moment::from_micros(at.0)
}

pub(in crate::world) fn wide(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

impl Population {
    /// Lets the applications come in.
    pub(in crate::world) fn populate_applications(&mut self, clock: &mut Clockwork, ensemble: &Ensemble) {
        let manner = clock.manner(ensemble.hosts.len());
        for number in 0..clock.drawn.applications {
            let mut dice = Dice::part(clock.drawn.seed, Part::Application(wide(number)));
            let begins = dice.between(0, BEGIN_US);
            let application = Application::new(number, manner, dice);
            self.applications.push(Resident { application, still: false, plan: 0, armed: None });
            clock.plan(begins, Event::Application { number, turn: Turn::Alarm(0) });
        }
    }

    /// The application whose connection this is.
    pub(in crate::world) fn application_at(&self, conn: usize) -> Option<usize> {
        let number = self.client_conns[conn].client.checked_sub(self.clients.len())?;
        (number < self.applications.len()).then_some(number)
    }

    /// Its connection is taken from an application.
    pub(in crate::world) fn cut_application(&mut self, clock: &mut Clockwork, number: usize) {
        if let Some(conn) = self.applications[number].application.conn() {
            self.cut_conn(clock, conn);
        }
    }

    /// The next look of an application at the clock.
    fn arm(&mut self, clock: &mut Clockwork, number: usize) {
        let now = moment(clock.now);
        let resident = &mut self.applications[number];
        let alarm = resident.application.alarm().filter(|_| !resident.still).map(|at| at.max(now));
        if alarm == resident.armed {
            return;
        }
        resident.armed = alarm;
        resident.plan += 1;
        let turn = Turn::Alarm(resident.plan);
        if let Some(at) = alarm {
            let at_us = u64::try_from(at.as_nanos().div_ceil(1000)).unwrap_or(u64::MAX);
            clock.queue.plan(Time(at_us), Event::Application { number, turn });
        }
    }

    pub(in crate::world) fn stop(&mut self, clock: &mut Clockwork, number: usize, pause: Moment) {
        let resident = &mut self.applications[number];
        (resident.still, resident.armed) = (true, None);
        resident.plan += 1;
        let turn = Turn::GoesOn(resident.plan);
        let pause_us = u64::try_from(pause.as_micros()).unwrap_or(u64::MAX);
        clock.plan(pause_us, Event::Application { number, turn });
    }

    /// Does what an application wants done.
    pub(in crate::world) fn carry_out(
        &mut self,
        clock: &mut Clockwork,
        ensemble: &Ensemble,
        oracle: &mut Oracle,
        number: usize,
    ) {
        while let Some(out) = self.applications[number].application.out() {
            match out {
                Out::Dial(host) if ensemble.hosts[host].process.is_none() => {
                    let at = moment(clock.now + clock.client_delay());
                    self.applications[number].application.is_refused(at);
                }
                Out::Dial(host) => {
                    let client = self.clients.len() + number;
                    let conn = self.open_client_conn(ensemble, oracle, client, host);
                    self.applications[number].application.is_taken(moment(clock.now), conn);
                }
                Out::Send(conn, frame) => self.send_to_member(clock, conn, Flow::Frame(frame)),
                Out::HangUp(conn, true) => self.close_conn(clock, conn),
                Out::HangUp(conn, false) => {
                    self.client_conns[conn].client_open = false;
                    self.client_conns[conn].to_client.lose();
                }
                Out::Told(status) => oracle.application_says(clock, self, number, &status),
                Out::Saw(kind, path, seen) => oracle.application_saw(clock, number, kind, &path, seen),
                Out::Acknowledged(zxid) => oracle.judge(clock, |invariants| invariants.acknowledged(zxid)),
                Out::Wrong(rule, sentence) => oracle.report(clock, rule, sentence),
            }
        }
        self.arm(clock, number);
    }

    /// The world is healed, and with it all that befell applications.
    pub(in crate::world) fn settle_applications(
        &mut self,
        clock: &mut Clockwork,
        ensemble: &Ensemble,
        oracle: &mut Oracle,
    ) {
        for number in 0..self.applications.len() {
            self.applications[number].application.settles(moment(clock.now));
            if self.applications[number].still {
                self.stop(clock, number, Moment::ZERO);
            }
            self.carry_out(clock, ensemble, oracle, number);
        }
    }

    /// All applications go.
    pub(in crate::world) fn dismiss_applications(
        &mut self,
        clock: &mut Clockwork,
        ensemble: &Ensemble,
        oracle: &mut Oracle,
    ) {
        for number in 0..self.applications.len() {
            if self.applications[number].application.stands() {
                self.applications[number].application.leaves(moment(clock.now));
                self.carry_out(clock, ensemble, oracle, number);
            }
        }
    }

    /// What keeps one of those that stand from leading, if anything does; and whose znode is there though
    /// nobody stands with it.
    pub(in crate::world) fn not_led(&self, clock: &Clockwork, ensemble: &Ensemble) -> Option<(Rule, String)> {
        let now = moment(clock.now);
        let applications = || self.applications.iter().map(|resident| &resident.application);
        let standing = applications().filter(|application| application.stands());
        let sessions: BTreeSet<_> = standing
            .clone()
            .filter_map(|application| application.credentials().map(|known| known.id))
            .collect();
        let standing = standing.count();
        for line in ensemble.lines() {
            let foreign = line.iter().find(|(_, owner)| !sessions.contains(owner));
            if let Some((path, owner)) = foreign {
                return Some((Rule::NothingLeft, format!("{path} of {owner} is left, who does not stand")));
            }
            if line.len() != standing {
                let there = line.len();
                let sentence = format!("{there} znodes are there of {standing} applications that stand");
                return Some((Rule::NothingLeft, sentence));
            }
        }
        let leading = applications().filter(|application| application.may_act(now)).count();
        (leading != standing.min(1))
            .then(|| (Rule::OneLeadsAtLast, format!("{leading} of {standing} applications that stand lead")))
    }

    /// Who could not go, if anybody could not; and what is left when all are gone.
    pub(super) fn not_gone(&self, ensemble: &Ensemble) -> Option<String> {
        if self.applications.is_empty() {
            return None;
        }
        let stays = self.applications.iter().position(|resident| !resident.application.is_gone());
        if let Some(number) = stays {
            return Some(format!("application {number} could not end its session in time"));
        }
        let left = ensemble.lines().into_iter().flatten().next();
        left.map(|(path, owner)| format!("{path} of {owner} is left, though all applications are gone"))
    }
}
