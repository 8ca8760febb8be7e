//! What a script appointed comes to pass.

use crate::network::Block;
use crate::world::chaos::appointments::{Act, DiskAppointment};
use crate::world::{Event, World};
use harness_world::time::Time;

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

    pub(in crate::world) fn act_as_told(&mut self, act: Act) {
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
