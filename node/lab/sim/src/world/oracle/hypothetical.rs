//! What must hold after a hypothetical crash.

use node_core::io::StoreOp;
use node_log::Recovered;

use crate::invariants::Found;
use crate::network::HostIndex;
use crate::outcome::Rule;
use crate::world::chaos::hypothetical::Facts;
use crate::world::{Clockwork, Ensemble, Oracle};

impl Oracle {
    /// `ends`: what was to happen to the disk.
    pub(in crate::world) fn report_hypothetical(
        &mut self,
        clock: &mut Clockwork,
        ensemble: &Ensemble,
        host: HostIndex,
        ends: &str,
        sentence: &str,
    ) {
        let id = ensemble.server(host).0;
        self.report(clock, Rule::Recovery, format!("had server {id} {ends} there: {sentence}"));
    }

    /// Whether the invariant of recoveries would accept this one.
    pub(in crate::world) fn check_hypothetical(
        &mut self,
        clock: &mut Clockwork,
        ensemble: &Ensemble,
        host: HostIndex,
        found: &Recovered,
        interrupted: Option<&StoreOp>,
        ends: &str,
    ) {
        let facts = Facts::of(found);
        let judged = self.invariants.check_recovery(
            host,
            &Found {
                base: facts.base,
                entries: &found.entries,
                accepted: facts.accepted,
                current: facts.current,
                interrupted,
            },
        );
        if let Err((_, sentence)) = judged {
            self.report_hypothetical(clock, ensemble, host, ends, &sentence);
        }
        if let Some(StoreOp::Install(image)) = interrupted
            && image.zxid == facts.base
            && facts.last > facts.base
        {
            let sentence = format!(
                "the tree at {} took its place, and entries up to {} of what it replaces are behind it",
                facts.base, facts.last
            );
            self.report_hypothetical(clock, ensemble, host, ends, &sentence);
        }
    }
}
