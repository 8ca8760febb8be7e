//! A step that takes time is over.

use node_core::io::Input;

use crate::host::Source;
use crate::network::{EndId, HostIndex};
use crate::world::World;

impl World {
    /// A step is over: what came meanwhile is heard, and before that it counts as a sign of life.
    pub(in crate::world) fn rest(&mut self, host: HostIndex, life: u64) {
        if !self.ensemble.lives(host, life) {
            return;
        }
        let now = self.clock.now;
        let process = self.ensemble.hosts[host].process.as_mut().expect("the process lives");
        if process.work.take_if(|work| work.until <= now).is_none() {
            return;
        }
        let mut came: Vec<_> = process.inbox.iter().map(|(source, _)| *source).collect();
        came.sort();
        came.dedup();
        for source in came {
            if let Source::Conn((conn, end)) = source {
                let conn = EndId { conn, end }.id();
                self.take_in(host, source, Input::Alive { conn });
            }
        }
        self.go_on(host, life);
    }

    /// Ends all work: the faults are over, and what is asked then is asked of machines that are not slow.
    pub(super) fn end_work(&mut self) {
        for host in 0..self.ensemble.hosts.len() {
            let life = self.ensemble.hosts[host].life;
            let process = self.ensemble.hosts[host].process.as_mut();
            if let Some(work) = process.and_then(|process| process.work.as_mut()) {
                work.until = self.clock.now;
                self.rest(host, life);
            }
        }
    }
}
