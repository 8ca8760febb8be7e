//! What a damaged disk may have lost.

use node_log::Storage;
use node_wire::ids::{Epoch, Zxid};

use crate::host::Rot;
use crate::network::HostIndex;
use crate::outcome::Rule;
use crate::world::ensemble::files::{EPOCHS, by_zxid, ends_of_records, is_epoch};
use crate::world::{Clockwork, Ensemble, Oracle};

impl Oracle {
    /// Files of which the log must notice that they are lost: the directory can't say that there was more
    /// when the last log goes, or one behind which an epoch begins (its first zxid may follow any), or the
    /// only snapshot.
    pub(in crate::world) fn missed_files(&self, ensemble: &Ensemble, host: HostIndex) -> Vec<String> {
        let disk = &ensemble.hosts[host].disk;
        let names = disk.list().unwrap_or_default();
        let (logs, snapshots) = (by_zxid(&names, "log."), by_zxid(&names, "snapshot."));
        let newest = snapshots.last_key_value().map_or(0, |(zxid, _)| *zxid);
        // Where the next one holds nothing but a torn tail, this is the last.
        let holds_some =
            |name: &str| disk.read(name).is_ok_and(|content| !ends_of_records(content).is_empty());
        let mut files: Vec<String> = logs
            .values()
            .zip(logs.iter().skip(1))
            .filter(|(_, (next, _))| **next > newest + 1 && Zxid(**next).counter() != 1)
            .filter(|(_, (_, name))| holds_some(name))
            .map(|(name, _)| name.clone())
            .collect();
        if snapshots.len() > 1 {
            files.extend(snapshots.into_values().next_back());
        }
        if self.invariants.durable(host).epoch() > Epoch::ZERO && !(logs.is_empty() && newest == 0) {
            files.extend(EPOCHS.map(str::to_owned).into_iter().filter(|name| names.contains(name)));
        }
        files
    }

    /// A member starts although an epoch of it is lost: it could promise again what it promised to another.
    pub(in crate::world) fn check_lost_epoch(
        &mut self,
        clock: &mut Clockwork,
        ensemble: &Ensemble,
        host: HostIndex,
    ) {
        let Some(Rot { file, lost: Some(content), .. }) = &ensemble.hosts[host].rot else { return };
        if is_epoch(file) && content[..] != *b"0" {
            let id = ensemble.server(host).0;
            self.report(
                clock,
                Rule::Recovery,
                format!("server {id} starts without its {file}, which is lost"),
            );
        }
    }
}
