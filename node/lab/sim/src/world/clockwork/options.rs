//! What the options of the seed mean for logs, disks and applications.

use node_log::{Log, LogError, LogOptions, MemStorage, Recovered};
use node_session::Moment;

use super::mover::Choice;
use crate::application::Manner;
use crate::network::HostIndex;
use crate::world::Clockwork;
use crate::world::ensemble::machine::part_kept;

impl Clockwork {
    pub(in crate::world) fn manner(&self, members: usize) -> Manner {
        Manner {
            members,
            timeout: Moment::from_millis(self.drawn.application_timeout_ms),
            actions: Moment::from_micros(self.drawn.action_us),
            way: Moment::from_micros(self.drawn.link_us.1),
            locks: self.drawn.locks,
            mutant: self.options.recipe,
        }
    }

    /// How much of what was not synchronized reaches the disk: nothing, everything, or a part.
    pub(in crate::world) fn kept(&mut self, host: HostIndex, unsynced: usize) -> usize {
        if self.is_planned {
            return 0;
        }
        let all = u64::try_from(unsynced).expect("a disk in memory is small");
        let kept = self.decide(host, Choice::Keep, |dice, _| part_kept(dice, all));
        usize::try_from(kept.min(all)).expect("not more than there is")
    }

    pub(in crate::world) fn log_options(&self) -> LogOptions {
        let (preallocate_bytes, roll_bytes) = (self.drawn.preallocate_bytes, self.drawn.roll_bytes);
        LogOptions { preallocate_bytes, roll_bytes, note_synced: false }
    }

    pub(in crate::world) fn open(&self, disk: &MemStorage) -> Result<(Log<MemStorage>, Recovered), LogError> {
        Log::open(disk.clone(), self.log_options())
    }
}
