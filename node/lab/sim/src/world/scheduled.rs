//! A world that follows a script: what happens is appointed and not drawn, and so is the one operation of one
//! disk that fails.

use std::io::ErrorKind;

use super::{Chaos, Event, World};
use crate::network::{Block, HostIndex};
use harness_world::time::Time;

/// Something that happens at an appointed moment.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    /// A process ends.
    Crash(HostIndex),
    /// A process starts.
    Start(HostIndex),
    /// What a member says reaches nobody.
    Mute(HostIndex),
    /// It reaches everybody again.
    Unmute(HostIndex),
}

/// The operation of a disk that fails.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DiskAppointment {
    pub(crate) host: HostIndex,
    /// Counted from the first operation of the disk.
    pub(crate) nth: u64,
    pub(crate) kind: ErrorKind,
    /// Power fails at that operation: there is no error that anybody could look at.
    pub(crate) power: bool,
}

impl Chaos {
    /// True when the failure of this disk is the failure of its power.
    pub(super) fn power_fails(&self, host: HostIndex) -> bool {
        self.appointment.is_some_and(|appointment| appointment.host == host && appointment.power)
    }
}

impl World {
    /// Appoints what happens when, in microseconds, and which disk operation fails.
    pub(crate) fn appoint(&mut self, acts: &[(u64, Act)], appointment: DiskAppointment) {
        for (at, act) in acts {
            self.clock.queue.plan(Time(*at), Event::Act(*act));
        }
        let DiskAppointment { host, nth, kind, power } = appointment;
        self.ensemble.hosts[host].disk.appoint(nth, kind, power);
        self.chaos.appointment = Some(appointment);
    }

    /// Whether the appointed operation was reached.
    pub(crate) fn was_kept(&self) -> bool {
        self.chaos.appointment.is_some_and(|appointment| {
            self.ensemble.hosts[appointment.host].disk.operations() >= appointment.nth
        })
    }

    pub(super) fn act_as_told(&mut self, act: Act) {
        self.clock.world_line("act", [0, 0], || format!("{act:?}"));
        match act {
            Act::Crash(host) => self.crash(host),
            Act::Start(host) => {
                self.chaos.start_process(&mut self.clock, &mut self.ensemble, &mut self.oracle, host)
            }
            Act::Mute(host) | Act::Unmute(host) => {
                for to in (0..self.ensemble.hosts.len()).filter(|to| *to != host) {
                    if matches!(act, Act::Mute(_)) {
                        self.ensemble.block(&self.clock, &mut self.oracle, host, to, Block::Hold);
                    } else {
                        self.ensemble.unblock(&mut self.clock, &mut self.oracle, host, to, Block::Hold);
                    }
                }
            }
        }
    }
}
