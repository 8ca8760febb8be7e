//! Where numbers may be compared: a machine as a series sees it.
//!
//! Most "regressions" are the runner. So what is followed over nights is followed on one machine: as many
//! cores, the same kernel, disks that sync in the same order of time, and as quiet as before. Another machine
//! begins another series, and nobody is alarmed by it.

use serde::{Deserialize, Serialize};

/// What was seen of a machine before the runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Processors that the harness may use.
    pub cores: u32,
    /// Name, release and architecture of the kernel.
    pub kernel: String,
    /// How long the store's disk takes to sync a small file, the median in ms; none where nobody measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fsync_ms: Option<f64>,
    /// The share of the processors that other work took in the second before, from 0 to 1; none where nobody
    /// measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<f64>,
    /// Runs at a time.
    #[serde(default = "one")]
    pub jobs: u32,
}

fn one() -> u32 {
    1
}

/// Ends of the classes of disks, ms: each is ten times slower than the one before, so that a disk's usual
/// spread does not take it from one class to another.
const DISKS: [(f64, &str); 3] = [(0.3, "instant"), (3.0, "fast"), (30.0, "slow")];
/// From this share on other work is in the figures.
const BUSY: f64 = 0.5;

impl Machine {
    /// The part of a series' key: equal for machines whose numbers may be compared.
    pub fn key(&self) -> String {
        let release = self.kernel.split_whitespace().take(2).collect::<Vec<_>>().join("-");
        let disk = self
            .fsync_ms
            .map_or("?", |ms| DISKS.iter().find(|(end, _)| ms < *end).map_or("slower", |(_, name)| *name));
        let load = if self.load.is_some_and(|load| load >= BUSY) { "busy" } else { "quiet" };
        let beside = if self.jobs > 1 { format!(", {} runs at a time", self.jobs) } else { String::new() };
        format!("{} cores, {release}, {disk} disk, {load}{beside}", self.cores)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_machine_has_another_key_and_a_usual_spread_has_not() {
        let machine = |cores, fsync_ms, load| Machine {
            cores,
            kernel: "Linux 6.1.0 x86_64".to_owned(),
            fsync_ms: Some(fsync_ms),
            load: Some(load),
            jobs: 1,
        };
        let usual = machine(2, 1.2, 0.1).key();
        assert_eq!(usual, "2 cores, Linux-6.1.0, fast disk, quiet");
        assert_eq!(usual, machine(2, 0.8, 0.4).key());
        assert_ne!(usual, machine(4, 1.2, 0.1).key());
        assert_ne!(usual, machine(2, 12.0, 0.1).key());
        assert_ne!(usual, machine(2, 1.2, 0.9).key());
        assert_ne!(usual, Machine { jobs: 2, ..machine(2, 1.2, 0.1) }.key());
    }
}
