//! Turns of applications: what they are told, and what is done to them.

use lab_apps::elections::RESOURCE;
use node_session::{CreateMode, Request, request};

use crate::application::Action;
use crate::client::Flow;
use crate::world::World;
use crate::world::population::applications::{Turn, moment, wide};
use harness_world::dice::HALF;

impl World {
    fn carry_out_of(&mut self, number: usize) {
        let World { clock, ensemble, population, oracle, .. } = self;
        population.carry_out(clock, ensemble, oracle, number);
    }

    /// An application's turn.
    pub(in crate::world) fn application_turns(&mut self, number: usize, turn: Turn) {
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
        let action = self.population.applications[number].application.wake(now);
        self.carry_out_of(number);
        if let Some(action) = action {
            self.application_does(number, action);
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

    fn application_does(&mut self, number: usize, action: Action) {
        self.clock.world_line("deed", [wide(number), action.number()], || {
            format!("application {number}: {action:?}")
        });
        self.clock.counters.actions += 1;
        let now = moment(self.clock.now);
        let (clock, population) = (&mut self.clock, &mut self.population);
        let application = &mut population.applications[number].application;
        match action {
            Action::Resign => application.resigns(now),
            Action::Move => application.moves(now),
            Action::Lose => application.loses(now),
            Action::Break => population.cut_application(clock, number),
            Action::Hold(pause) => {
                if let Some(conn) = application.conn() {
                    let until = clock.now + u64::try_from(pause.as_micros()).unwrap_or(u64::MAX);
                    population.client_conns[conn].to_client.not_before(until);
                    population.client_conns[conn].to_member.not_before(until);
                }
            }
            Action::Stop(pause) => population.stop(clock, number, pause),
            Action::Die(pause, tells) => {
                application.is_born_again(now, tells);
                population.stop(clock, number, pause);
            }
            Action::Rob => self.rob(number),
            Action::Remove => self.remove_resource(number),
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
