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

    /// A promise by which the workload can't be judged is refused, whoever's word it is: no other one takes
    /// its place.
    pub(super) fn check_promise(&self) -> Result<(), Failure> {
        let promised = self.promised().what;
        if self.workload.promised(promised).is_some() {
            return Ok(());
        }
        let (name, system) = (self.workload.name(), self.system.name());
        let known = self.workload.promise_names().join(", ");
        Err(Failure::usage(match self.promise {
            Some(promise) => {
                format!("--promise {promise}: the workload {name} is not judged by that; write {known}")
            }
            None => format!(
                "--workload {name}: it is not judged by {promised}, which {system} promises of it; say what \
                 it promises of {name} in its file (promises.{name}), or write --promise with one of {known}"
            ),
        }))
    }
}
