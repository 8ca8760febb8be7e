//! What travels between clients and members arrives.

use crate::host::Source;
use crate::world::World;

impl World {
    /// What arrived at a member from a client goes to its core.
    pub(in crate::world) fn client_to_member(&mut self, conn: usize) {
        while self.oracle.violation.is_none() {
            let now = self.clock.now;
            let this = &mut self.population.client_conns[conn];
            let (host, life) = (this.host, this.life);
            if !this.member_open {
                return;
            }
            let Some(flow) = this.to_member.receive(now) else { return };
            let input = self.population.input_from_client(conn, flow);
            self.give(host, life, Source::Client(conn), input);
        }
    }

    pub(in crate::world) fn member_to_client(&mut self, conn: usize) {
        if self.clock.is_planned {
            self.member_to_slot(conn);
            return;
        }
        if let Some(number) = self.population.application_at(conn) {
            self.application_hears(number, conn);
            return;
        }
        while self.oracle.violation.is_none() && self.population.client_conns[conn].client_open {
            let now = self.clock.now;
            let Some(flow) = self.population.client_conns[conn].to_client.receive(now) else { return };
            self.population.client_receives(&mut self.clock, &self.ensemble, &mut self.oracle, conn, flow);
        }
    }
}
