//! The answers that probers get, held against the specification.

use node_wire::client::{Id, ReplyHeader};
use node_wire::ids::{SessionId, Zxid};

use crate::invariants::Told;
use crate::outcome::Rule;
use crate::prober::{Open, Sense};
use crate::world::{Clockwork, Ensemble, Oracle};

impl Oracle {
    /// Holds an answer against the specification. The reply before it was of that place.
    pub(in crate::world) fn check_probe(
        &mut self,
        clock: &mut Clockwork,
        session: SessionId,
        header: ReplyHeader,
        before: Zxid,
        open: &Open,
        told: &Told,
    ) {
        let ReplyHeader { xid, zxid, err } = header;
        let Open { sense, who, committed, .. } = open;
        let who: Vec<Id> = who.iter().map(|name| name.id()).collect();
        let finding = match sense {
            Sense::Update(_) => self.invariants.spec_of_change(session, xid, (before, zxid), told),
            Sense::Look(look) => self.invariants.spec_of_look(session, zxid, &who, look, told),
            Sense::Sync if err == 0 && zxid < *committed => Err((
                Rule::LawfulAnswers,
                format!(
                    "session {session} asked for a sync when {committed} was committed, and is answered at \
                        {zxid}"
                ),
            )),
            Sense::Sync | Sense::Other => Ok(()),
        };
        if let Err((rule, sentence)) = finding {
            self.report(clock, rule, sentence);
        }
        if matches!(sense, Sense::Update(_)) && err == 0 {
            self.judge(clock, |invariants| invariants.acknowledged(zxid));
        }
    }

    /// In the end every member holds what the specification says.
    pub(super) fn check_lists(&mut self, clock: &mut Clockwork, ensemble: &Ensemble) {
        for host in 0..ensemble.hosts.len() {
            if let Some(process) = &ensemble.hosts[host].process {
                let finding = self.invariants.spec_of_lists(host, &process.member().tree());
                self.found(clock, finding);
            }
        }
    }
}
