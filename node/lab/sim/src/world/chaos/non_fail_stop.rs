//! A driver that goes on after a failed write (ZOOKEEPER-4882), for the bug `log-hole`.
//!
//! The driver's contract is that a write that fails stops the member. In Apache ZooKeeper the thread that
//! writes the log dies, the member leaves its leader and looks for one again, with everything in memory that
//! it had: the transaction whose write failed is among it, is committed there when the others have it, and
//! never asked for again. What is logged from then on stands behind a hole. This driver does the same: it
//! opens the log anew, where the failed batch is missing, breaks the connections to the other members, and
//! keeps the core.
//!
//! A disk that fails is no bug; to go on is. So the failures themselves are drawn here only where nothing
//! else in the world makes writes fail.

use lab_mutants::Driver;
use node_core::io::StoreOp;
use node_log::{Log, LogError};

use crate::network::HostIndex;
use crate::world::{Chaos, Clockwork, Ensemble, Oracle};

impl Chaos {
    /// After a batch was not carried out: true when the driver goes on all the same.
    pub(in crate::world) fn goes_on(
        &mut self,
        clock: &mut Clockwork,
        ensemble: &mut Ensemble,
        oracle: &mut Oracle,
        host: HostIndex,
        batch: &[(u64, StoreOp)],
        error: &LogError,
    ) -> bool {
        if ensemble.driver != Driver::SkipsFailedWrites || !matches!(error, LogError::Io { .. }) {
            return false;
        }
        clock.line(host, "write-failed", [0, 0], || format!("failed to {error}, and goes on"));
        ensemble.relent(host);
        let Ok((log, found)) = Log::open(ensemble.hosts[host].disk.clone(), clock.log_options()) else {
            return false;
        };
        let last = found.entries.last().map_or(found.image.zxid, node_wire::txn::Entry::zxid);
        for (_, op) in batch {
            if matches!(op, StoreOp::Append(entry) if entry.zxid() <= last) {
                oracle.judge(clock, |invariants| invariants.stored(host, op));
            }
        }
        if let Some(process) = ensemble.hosts[host].process.as_mut() {
            process.log = log;
        }
        for peer in (0..ensemble.hosts.len()).filter(|peer| *peer != host) {
            ensemble.cut_pair(clock, oracle, host, peer);
        }
        // The batch is never told to be durable, but whatever is stored behind it is, and that says the same.
        self.start_store(clock, ensemble, host);
        true
    }
}
