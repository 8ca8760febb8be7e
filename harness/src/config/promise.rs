//! What is promised of a run's workload, and by whose word.

use runs::results::Promised;
use workloads::Promise;

use super::RunOptions;
use crate::exit::Failure;

impl RunOptions {
    /// What is promised: what the system says of itself, or what it is held to. Whatever an image is, it is
    /// not known to promise more than ZooKeeper does.
    pub fn promised(&self) -> Promised {
        if !self.workload.has_clients() {
            return Promised::default();
        }
        let promised = match self.promise {
            Some(what) => Promised { what, source: "asked for by --promise".to_owned() },
            None if self.containers.image.is_some() => Promised {
                what: Promise::OrderedSequential,
                source: "what ZooKeeper promises, of whatever image".to_owned(),
            },
            None => self.system.promises(self.workload),
        };
        let what = self.workload.promised(promised.what).unwrap_or(promised.what);
        Promised { what, ..promised }
    }

    /// A promise by which the workload can't be judged is refused.
    pub(super) fn check_promise(&self) -> Result<(), Failure> {
        match self.promise.filter(|promise| self.workload.promised(*promise).is_none()) {
            None => Ok(()),
            Some(promise) => Err(Failure::usage(format!(
                "--promise {promise}: the workload {} is not judged by that; write {}",
                self.workload.name(),
                self.workload.promise_names().join(", ")
            ))),
        }
    }
}
