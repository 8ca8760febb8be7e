//! The wall clocks of child processes, shifted from outside ([`harness_clock`]).
//!
//! A shift is a property of a member and not of a process: a new process of a member that is shifted is
//! shifted as soon as it runs. So what is wanted of each member is written down here, and whoever changes it,
//! or starts a process, holds the book until the process is as the book says; a healing and a restart at the
//! same moment would otherwise leave a process shifted that nobody restores.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use anyhow::Context;
use harness_clock::{ClockError, Shifter};
use runs::member::MemberId;

use super::ClockReading;

/// Attempts at a process of which no thread stood at a harmless point; each takes some tenths of a second
/// already.
const ATTEMPTS: u32 = 3;

/// The clocks of one run's members.
#[derive(Default)]
pub(crate) struct Clocks {
    /// Started when it is first needed; it has a thread of its own.
    shifter: Arc<Mutex<Option<Shifter>>>,
    /// What is wanted of each member, where it is not the true time.
    offsets: tokio::sync::Mutex<BTreeMap<MemberId, i64>>,
    available: OnceLock<Result<(), String>>,
}

impl Clocks {
    /// Whether clocks can be shifted here. Tried once, on a process that is there for it.
    pub(super) fn can(&self) -> Result<(), String> {
        self.available
            .get_or_init(|| harness_clock::available().map_err(|unavailable| unavailable.to_string()))
            .clone()
    }

    /// Writes down what is wanted of a member and makes its process, the one that `pid` gives, follow. False
    /// when there is no process, or it ended meanwhile.
    pub(super) async fn set(
        &self,
        member: MemberId,
        offset_ns: i64,
        pid: impl FnOnce() -> Option<u32>,
    ) -> anyhow::Result<bool> {
        let mut offsets = self.offsets.lock().await;
        if offset_ns == 0 {
            offsets.remove(&member);
        } else {
            offsets.insert(member, offset_ns);
        }
        match pid() {
            Some(pid) => self.shift(pid, offset_ns).await,
            None => Ok(false),
        }
    }

    /// Makes a process that was just started follow what is wanted of its member. Gives the shift when there
    /// is one and the process lives.
    pub(super) async fn follow(&self, member: MemberId, pid: Option<u32>) -> anyhow::Result<Option<i64>> {
        let offsets = self.offsets.lock().await;
        let (Some(offset_ns), Some(pid)) = (offsets.get(&member).copied(), pid) else { return Ok(None) };
        Ok(self.shift(pid, offset_ns).await?.then_some(offset_ns))
    }

    /// Lets a process read its clock.
    pub(crate) async fn read(&self, pid: u32) -> anyhow::Result<ClockReading> {
        let reading = self.on_thread(move |shifter| shifter.read(pid)).await?.context("reading a clock")?;
        Ok(ClockReading { offset_ns: reading.offset_ns, error_ns: reading.error_ns })
    }

    /// Shifts the clock of a process. False when it is gone.
    pub(crate) async fn shift(&self, pid: u32, offset_ns: i64) -> anyhow::Result<bool> {
        for attempt in 1.. {
            match self.on_thread(move |shifter| shifter.shift(pid, offset_ns)).await? {
                Ok(_) => return Ok(true),
                // Killed by another fault, or by itself: what comes after it follows the book.
                Err(ClockError::Gone { .. }) => return Ok(false),
                Err(ClockError::Busy { .. }) if attempt < ATTEMPTS => {}
                Err(error) => return Err(error).context("shifting a clock"),
            }
        }
        Ok(false)
    }

    /// Asks the thread that traces, and waits for it on a thread that may wait.
    async fn on_thread<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Shifter) -> T + Send + 'static,
    ) -> anyhow::Result<T> {
        let shifter = Arc::clone(&self.shifter);
        let asking = tokio::task::spawn_blocking(move || {
            let mut shifter = shifter.lock().unwrap_or_else(PoisonError::into_inner);
            job(shifter.get_or_insert_with(Shifter::new))
        });
        asking.await.context("the clocks' thread panicked")
    }
}
