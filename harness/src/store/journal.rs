//! `faults.jsonl`: one line for every step in the life of a fault, written the moment it happens.
//!
//! A line is on its way to the disk before the next step begins, so that a killed harness leaves what it
//! knew. The lines are kept in memory too, because the verdict is drawn from them.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;
use harness_systems::bounded;
use runs::faults::{FaultTransition, parse};

use crate::exit::Failure;
use crate::num::wide;

/// The journal. Clones write to the same file.
#[derive(Clone)]
pub struct Journal {
    inner: Arc<Mutex<Inner>>,
}

struct Inner {
    file: File,
    lines: Vec<FaultTransition>,
}

impl Journal {
    /// Begins the file.
    pub fn create(path: &Path) -> anyhow::Result<Self> {
        let file = File::create(path).with_context(|| format!("creating {}", path.display()))?;
        Ok(Self { inner: Arc::new(Mutex::new(Inner { file, lines: Vec::new() })) })
    }

    /// Writes a transition down.
    pub fn write(&self, transition: FaultTransition) -> anyhow::Result<()> {
        let mut line = serde_json::to_vec(&transition).context("encoding a fault's transition")?;
        line.push(b'\n');
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.file.write_all(&line).context("writing faults.jsonl")?;
        inner.lines.push(transition);
        Ok(())
    }

    /// How many lines were written.
    pub fn lines(&self) -> u64 {
        wide(self.inner.lock().unwrap_or_else(PoisonError::into_inner).lines.len())
    }

    /// Everything written so far.
    pub fn transitions(&self) -> Vec<FaultTransition> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).lines.clone()
    }
}

/// Reads a journal back; a torn last line, as a killed harness leaves it, is left out.
pub fn read(path: &Path) -> Result<Vec<FaultTransition>, Failure> {
    let text = match bounded::text(path, bounded::COLLECTED) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Failure::usage(format!("{} can't be read: {error}", path.display()))),
    };
    parse(&text).map_err(|(number, error)| {
        Failure::usage(format!("{} line {number} can't be read: {error}", path.display()))
    })
}

#[cfg(test)]
mod tests {
    use runs::faults::{FaultDetail, FaultPhase};

    use super::*;

    #[test]
    fn what_is_written_is_read_back_and_a_torn_end_is_left_out() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("faults.jsonl");
        let journal = Journal::create(&path).expect("a journal");
        let transition = FaultTransition {
            fault: "F1".to_owned(),
            kind: "kill-one".to_owned(),
            phase: FaultPhase::Asked,
            time: 5,
            targets: vec![2],
            detail: FaultDetail::default(),
        };
        journal.write(transition).expect("written");
        assert_eq!(read(&path).expect("read"), journal.transitions());
        let mut torn = std::fs::read(&path).expect("bytes");
        torn.extend_from_slice(b"{\"fault\":\"F1\",\"ki");
        std::fs::write(&path, torn).expect("torn");
        assert_eq!(read(&path).expect("read"), journal.transitions());
    }
}
