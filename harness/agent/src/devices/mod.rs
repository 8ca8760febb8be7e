//! Devices: what an agent can do to its member beyond the packet filter, signals and clocks, one file each.
//!
//! A device has words of its own ([`Command::Device`](crate::protocol::Command::Device)): whoever adds one
//! writes its file and a line in the list below, and speaks to it from a mechanism of the harness. It does
//! what takes at most some milliseconds at once, and the rest in a thread of its own. When the lease runs out
//! it takes back all that it did.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde_json::Value;

use crate::protocol::Peer;

macro_rules! devices {
    ($($file:ident = $name:ident,)*) => {
        $(mod $file;)*

        impl Default for Devices {
            /// All of them, at rest.
            fn default() -> Self {
                Self(vec![$(Box::<$file::$name>::default()),*])
            }
        }
    };
}

devices! {
    queue = Queue,
}

/// What a device is told of the run.
#[derive(Clone, Debug)]
pub(crate) struct Around {
    /// Names it.
    pub(crate) run: String,
    /// Every other member's address.
    pub(crate) peers: Vec<(Peer, IpAddr)>,
    /// The UDP port of datagrams that no fault may hit.
    pub(crate) control_port: u16,
    /// The UDP port of probes, which go as members' packets go and are none.
    pub(crate) probe_port: u16,
}

/// A device.
pub(crate) trait Device {
    /// Its name.
    fn name(&self) -> &'static str;

    /// Whether it works here; if not, why, and what would help.
    fn attempt(&mut self) -> Result<(), String>;

    /// Does something.
    fn order(&mut self, around: &Around, order: Value) -> Result<Value, String>;

    /// Takes back all that it did.
    fn heal(&mut self) -> Result<(), String>;
}

/// The devices of an agent.
pub(crate) struct Devices(Vec<Box<dyn Device>>);

impl Devices {
    /// Tries each of them.
    pub(crate) fn attempt(&mut self) -> BTreeMap<String, Result<(), String>> {
        self.0.iter_mut().map(|device| (device.name().to_owned(), device.attempt())).collect()
    }

    /// Has one do something.
    pub(crate) fn order(&mut self, name: &str, around: &Around, order: Value) -> Result<Value, String> {
        match self.0.iter_mut().find(|device| device.name() == name) {
            Some(device) => device.order(around, order).map_err(|why| format!("{name}: {why}")),
            None => Err(format!("there is no device {name}")),
        }
    }

    /// All take back what they did; the first that can't says why.
    pub(crate) fn heal(&mut self) -> Result<(), String> {
        let healed: Vec<Result<(), String>> = self.0.iter_mut().map(|device| device.heal()).collect();
        healed.into_iter().collect()
    }
}
