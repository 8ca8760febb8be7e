//! The clients: who they are, what wakes them, and what they leave behind.
//!
//! A client whose connection breaks, or whose operation gets no answer in time, tries another member with the
//! same session ([`connections`]). What clients ask and what the answers mean stands in [`operations`],
//! [`watchers`], [`probers`] and [`applications`]; what they leave behind in [`record`].

pub(super) mod applications;
mod connections;
pub(super) mod operations;
mod probers;
pub(super) mod record;
mod scripted;
mod stages;
mod watchers;

use self::applications::Resident;
use self::record::Record;

use crate::client::{Client, ClientConn, Wake};
use crate::drawn::Drawn;
use crate::part::Part;
use crate::prober::Prober;
use crate::script::Transition;
use crate::watcher::Watcher;
use crate::world::{Clockwork, Ensemble, Event, Oracle};
use harness_world::dice::Dice;

/// What a client that is owed an answer thinks, at most.
const HURRY_US: u64 = 20_000;

/// The clients, their connections, and what they leave behind.
pub(super) struct Population {
    pub(super) clients: Vec<Client>,
    pub(super) client_conns: Vec<ClientConn>,
    /// Applications over recipes.
    pub(super) applications: Vec<Resident>,
    /// Workloads and their histories.
    pub(super) record: Record,
    /// The dice of probers' pauses.
    pub(super) pauses: Dice,
}

impl Population {
    /// Nobody came yet.
    pub(super) fn new(drawn: &Drawn, record: Record) -> Self {
        Self {
            clients: Vec::new(),
            client_conns: Vec::new(),
            applications: Vec::new(),
            record,
            pauses: Dice::part(drawn.seed, Part::Pauses),
        }
    }

    /// Lets the clients come in.
    pub(super) fn populate(&mut self, clock: &mut Clockwork, ensemble: &Ensemble) {
        let (scribes, all) = (clock.drawn.clients, clock.drawn.clients + clock.drawn.visitors);
        for index in 0..clock.drawn.everybody() {
            let traffic = &self.record.traffic;
            let kinds = match index {
                _ if index >= all => Vec::new(),
                _ if index < scribes => traffic.clients.clone(),
                _ => traffic.visitors.clone(),
            };
            let jobs = self.record.jobs(&kinds);
            // Busy ones make operations overlap; patient ones ask for the first time when much has happened.
            let patient = index % 2 == 1;
            let think_us = if patient { clock.drawn.patient_us } else { clock.drawn.think_us };
            let part = Part::Client(u64::try_from(index).expect("clients are few"));
            let dice = Dice::part(clock.drawn.seed, part);
            self.clients.push(Client::new(jobs, index % ensemble.hosts.len(), think_us, dice));
            if index >= all + clock.drawn.watchers + clock.drawn.operators {
                self.clients[index].prober = Prober::new();
                self.clients[index].think_us = clock.drawn.probing_us;
            } else if index >= all + clock.drawn.watchers {
                self.clients[index].watcher = Watcher::operator(ensemble.hosts.len());
                self.clients[index].think_us = clock.drawn.turnover_us;
            } else if index >= all {
                self.clients[index].watcher = Watcher::new(clock.drawn.limits);
                self.clients[index].think_us = clock.drawn.think_us;
            }
            if clock.reduction.clients.contains(&index) {
                self.clients[index].gone = true;
                continue;
            }
            let delay = self.clients[index].dice.between(0, 100_000);
            self.set_timer(clock, index, delay, Wake::Connect);
        }
        // The first one prepares all workloads, and reads all of them last.
        let others = self.record.traffic.kinds();
        let Some(first) = self.clients.first() else { return };
        let known: Vec<usize> = first.jobs.iter().map(|job| job.load).collect();
        let jobs = self.record.jobs(&others);
        self.clients[0].jobs.extend(jobs.into_iter().filter(|job| !known.contains(&job.load)));
    }

    /// Sets a client's one timer.
    fn set_timer(&mut self, clock: &mut Clockwork, client: usize, delay_us: u64, wake: Wake) {
        self.clients[client].plan += 1;
        let plan = self.clients[client].plan;
        clock.plan(delay_us, Event::Client { client, plan, wake });
    }

    pub(super) fn wake_client(
        &mut self,
        clock: &mut Clockwork,
        ensemble: &Ensemble,
        oracle: &mut Oracle,
        client: usize,
        plan: u64,
        wake: Wake,
    ) {
        if let Wake::Ping { conn } = wake {
            self.ping(clock, client, conn);
            return;
        }
        if let Wake::Rest { conn } = wake {
            self.probe_rest(clock, ensemble, oracle, client, conn);
            return;
        }
        if self.clients[client].plan != plan || self.clients[client].gone {
            return;
        }
        match wake {
            Wake::Connect => self.connect_client(clock, ensemble, oracle, client),
            Wake::Act => self.act(clock, ensemble, oracle, client),
            Wake::GiveUp => {
                clock.write_down(|| Transition::HangsUp { client });
                self.hang_up(clock, client);
                self.on_lost(clock, ensemble, oracle, client, "time-out");
            }
            Wake::Ping { .. } | Wake::Rest { .. } => {}
        }
    }

    fn think(&mut self, clock: &mut Clockwork, index: usize) {
        let at_once = self.asks_at_once(clock, index);
        let client = &mut self.clients[index];
        let delay = client.dice.around(client.think_us);
        self.set_timer(clock, index, if at_once { delay.min(HURRY_US) } else { delay }, Wake::Act);
    }
}
