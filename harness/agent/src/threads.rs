//! What the agent's threads have in common.
//!
//! Those that do little have a small stack. One wakes another, which waits in `poll`, by a nudge.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{EventfdFlags, eventfd};

/// Stack of the threads that do little.
pub(crate) const STACK: usize = 128 * 1024;

/// Interrupts another thread's waiting. Clones are one and the same.
#[derive(Clone, Debug)]
pub(crate) struct Wake(Arc<OwnedFd>);

impl Wake {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)))
    }

    /// The other one will wake up, now or at its next waiting.
    pub(crate) fn nudge(&self) {
        // It can only fail when 2^64 - 2 nudges are waiting already.
        let _ = rustix::io::write(&*self.0, &1_u64.to_ne_bytes());
    }

    /// The nudges so far are heard.
    pub(crate) fn clear(&self) {
        let _ = rustix::io::read(&*self.0, &mut [0; 8]);
    }
}

impl AsFd for Wake {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
