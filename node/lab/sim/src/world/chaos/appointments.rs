//! What a script appoints: what happens when, and the one operation of one disk that fails.

use std::io::ErrorKind;

use crate::network::HostIndex;
use crate::world::Chaos;

/// Something that happens at an appointed moment.
#[derive(Clone, Copy, Debug)]
pub enum Act {
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
pub struct DiskAppointment {
    /// The member whose disk it is, counted from 0.
    pub host: HostIndex,
    /// Counted from the first operation of the disk.
    pub nth: u64,
    /// How it fails.
    pub kind: ErrorKind,
    /// Power fails at that operation: there is no error that anybody could look at.
    pub power: bool,
}

impl Chaos {
    /// True when the failure of this disk is the failure of its power.
    pub(in crate::world) fn power_fails(&self, host: HostIndex) -> bool {
        self.appointment.is_some_and(|appointment| appointment.host == host && appointment.power)
    }
}
