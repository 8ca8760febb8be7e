//! Applications in a world: what they want done is done, and what befalls them ([`crate::application`]).
//!
//! They come and go beside the other clients, over connections of the same kind. One whose process stands
//! still hears nothing and looks at no clock; what it sent before is on its way all the same.

use bytestring::ByteString;
use lab_apps::elections::RESOURCE;
use node_core::Role;
use node_recipes::names::{child, in_order};
use node_session::{CreateMode, Moment, Request, request};
use node_wire::ids::SessionId;

use super::{Clockwork, Ensemble, Event, Oracle, Population, World};
use crate::application::{Application, Deed, Manner, Out};
use crate::client::Flow;
use crate::part::Part;
use harness_world::dice::{Dice, HALF};
use harness_world::time::Time;

/// Between the beginning of a world and the first act of an application, at most.
const BEGIN_US: u64 = 300_000;

/// An application, and whether its process runs.
#[derive(Clone, Debug)]
pub(super) struct Resident {
    pub(super) application: Application,
    /// Its process stands still.
    pub(super) still: bool,
    /// Counts plans: an alarm of an earlier one is void.
    plan: u64,
    /// When it looks at the clock next.
    armed: Option<Moment>,
}

/// Why an application's turn comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// It looks at the clock.
    Alarm(u64),
    /// Its process goes on.
    GoesOn(u64),
}

pub(super) fn moment(at: Time) -> Moment {
    Moment::from_micros(at.0)
}

fn wide(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

impl Clockwork {
    fn manner(&self, members: usize) -> Manner {
        Manner {
            members,
            timeout: Moment::from_millis(self.drawn.application_timeout_ms),
            deeds: Moment::from_micros(self.drawn.deed_us),
            way: Moment::from_micros(self.drawn.link_us.1),
            locks: self.drawn.locks,
            mutant: self.options.recipe,
        }
    }
}

impl Ensemble {
    /// The znodes below the resource and their sessions, in every member that serves; nothing where there is
    /// no resource.
    pub(super) fn lines(&self) -> Vec<Vec<(ByteString, SessionId)>> {
        let processes = self.hosts.iter().filter_map(|host| host.process.as_ref());
        let serving = processes.filter(|process| process.established);
        let line = |process: &crate::host::Process| {
            let snapshot = process.member().tree();
            let tree = snapshot.tree();
            let (names, _) = tree.get_children(RESOURCE).unwrap_or_default();
            let owner =
                |path: &ByteString| tree.exists(path).map_or(SessionId::NONE, |stat| stat.ephemeral_owner);
            let contenders = in_order(&names).into_iter().map(|contender| child(RESOURCE, &contender.name));
            contenders.map(|path| (path.clone(), owner(&path))).collect()
        };
        serving.map(line).collect()
    }

    /// The line as the member knows it that leads, or as any other does.
    fn line(&self) -> Vec<ByteString> {
        let leads = |process: &crate::host::Process| process.role == Role::Leading;
        let processes: Vec<_> = self.hosts.iter().filter_map(|host| host.process.as_ref()).collect();
        let serving = processes.iter().filter(|process| process.established);
        let place = serving.clone().position(|process| leads(process)).unwrap_or(0);
        let mut lines = self.lines();
        if place < lines.len() {
            lines.swap_remove(place).into_iter().map(|(path, _)| path).collect()
        } else {
            Vec::new()
        }
    }
}

impl Population {
    /// Lets the applications come in.
    pub(super) fn populate_applications(&mut self, clock: &mut Clockwork, ensemble: &Ensemble) {
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
    pub(super) fn application_at(&self, conn: usize) -> Option<usize> {
        let number = self.client_conns[conn].client.checked_sub(self.clients.len())?;
        (number < self.applications.len()).then_some(number)
    }

    /// Its connection is taken from an application.
    pub(super) fn cut_application(&mut self, clock: &mut Clockwork, number: usize) {
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

    fn stop(&mut self, clock: &mut Clockwork, number: usize, pause: Moment) {
        let resident = &mut self.applications[number];
        (resident.still, resident.armed) = (true, None);
        resident.plan += 1;
        let turn = Turn::GoesOn(resident.plan);
        let pause_us = u64::try_from(pause.as_micros()).unwrap_or(u64::MAX);
        clock.plan(pause_us, Event::Application { number, turn });
    }

    /// Does what an application wants done.
    fn carry_out(&mut self, clock: &mut Clockwork, ensemble: &Ensemble, oracle: &mut Oracle, number: usize) {
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
    pub(super) fn settle_applications(
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
    pub(super) fn dismiss_applications(
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
}

impl World {
    fn carry_out_of(&mut self, number: usize) {
        let World { clock, ensemble, population, oracle, .. } = self;
        population.carry_out(clock, ensemble, oracle, number);
    }

    /// An application's turn.
    pub(super) fn application_turns(&mut self, number: usize, turn: Turn) {
        let resident = &mut self.population.applications[number];
        let (Turn::Alarm(plan) | Turn::GoesOn(plan)) = turn;
        if plan != resident.plan {
            return;
        }
        resident.armed = None;
        if matches!(turn, Turn::GoesOn(_)) {
            self.clock.world_line("application goes on", [wide(number), 0], String::new);
            resident.still = false;
            // Which of the two comes first is its own affair.
            if resident.application.dice().chance(HALF) {
                self.application_hears_all(number);
            }
            self.application_wakes(number);
            self.application_hears_all(number);
        } else {
            self.application_wakes(number);
        }
    }

    fn application_wakes(&mut self, number: usize) {
        if self.population.applications[number].still {
            return;
        }
        let now = moment(self.clock.now);
        let deed = self.population.applications[number].application.wake(now);
        self.carry_out_of(number);
        if let Some(deed) = deed {
            self.application_does(number, deed);
            self.carry_out_of(number);
        }
    }

    fn application_hears_all(&mut self, number: usize) {
        if let Some(conn) = self.population.applications[number].application.conn() {
            self.application_hears(number, conn);
        }
    }

    /// What arrived for an application on a connection.
    pub(super) fn application_hears(&mut self, number: usize, conn: usize) {
        let now = self.clock.now;
        while self.oracle.violation.is_none()
            && self.population.client_conns[conn].client_open
            && !self.population.applications[number].still
        {
            let Some(flow) = self.population.client_conns[conn].to_client.receive(now) else { return };
            let application = &mut self.population.applications[number].application;
            match flow {
                Flow::Frame(frame) => application.hears(moment(now), conn, frame),
                Flow::Fin => {
                    self.population.client_conns[conn].client_open = false;
                    application.is_cut(moment(now), conn);
                }
            }
            self.carry_out_of(number);
            // Between two things that it hears others could look at it.
            self.oracle.check_applications(&mut self.clock, &self.population);
        }
    }

    fn application_does(&mut self, number: usize, deed: Deed) {
        self.clock
            .world_line("deed", [wide(number), deed.number()], || format!("application {number}: {deed:?}"));
        self.clock.counters.deeds += 1;
        let now = moment(self.clock.now);
        let (clock, population) = (&mut self.clock, &mut self.population);
        let application = &mut population.applications[number].application;
        match deed {
            Deed::Resign => application.resigns(now),
            Deed::Move => application.moves(now),
            Deed::Lose => application.loses(now),
            Deed::Break => population.cut_application(clock, number),
            Deed::Hold(pause) => {
                if let Some(conn) = application.conn() {
                    let until = clock.now + u64::try_from(pause.as_micros()).unwrap_or(u64::MAX);
                    population.client_conns[conn].to_client.not_before(until);
                    population.client_conns[conn].to_member.not_before(until);
                }
            }
            Deed::Stop(pause) => population.stop(clock, number, pause),
            Deed::Die(pause, tells) => {
                application.is_born_again(now, tells);
                population.stop(clock, number, pause);
            }
            Deed::Rob => self.rob(number),
            Deed::Remove => self.remove_resource(number),
        }
    }

    /// An application deletes the znode of whoever is first.
    fn rob(&mut self, number: usize) {
        let Some(path) = self.ensemble.line().into_iter().next() else { return };
        let now = moment(self.clock.now);
        let delete = Request::Delete { path: path.clone(), version: -1 };
        if self.population.applications[number].application.outrages(now, delete) {
            self.clock.counters.robberies += 1;
            self.oracle.contenders.is_robbed(path);
        }
    }

    /// An application deletes the resource with all that is below it, and makes it again.
    fn remove_resource(&mut self, number: usize) {
        let line = self.ensemble.line();
        let paths = line.iter().cloned().chain([RESOURCE.into()]);
        let delete = Request::Multi(paths.map(|path| request::delete(path, -1)).collect());
        let (data, acl) = (bytes::Bytes::new(), vec![node_wire::client::Acl::world_anyone()]);
        let create = Request::Create { path: RESOURCE.into(), data, acl, mode: CreateMode::Persistent };
        let now = moment(self.clock.now);
        let application = &mut self.population.applications[number].application;
        if application.outrages(now, delete) && application.outrages(now, create) {
            self.clock.counters.robberies += 1;
            line.into_iter().for_each(|path| self.oracle.contenders.is_removed(path));
        }
    }
}
