//! Ports for members that are started later, again, or never.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU32, Ordering};

/// The lowest and the highest port: below those that the system gives to outgoing connections, so that a
/// client takes no port of a member that is down for a moment.
const PORTS: std::ops::Range<u16> = 11_000..31_000;

/// From where one test looks to where the next one does.
const APART: u32 = 200;
/// More ports than any test takes. Where to look first must not depend on how many are wanted, or tests that
/// want different numbers are no longer apart.
const MOST: u16 = 200;

/// The first of so many ports in a row that nobody listens on. Where to look first follows from the process,
/// so that two that run at once rarely meet, and each test of a process looks elsewhere than those before it:
/// a port that nobody listens on yet looks free to all of them.
pub(crate) fn free_ports(count: u16) -> u16 {
    static LOOKED: AtomicU32 = AtomicU32::new(0);
    assert!(count <= MOST, "{count} ports are more than a test has to itself");
    let span = u32::from(PORTS.end - PORTS.start - MOST);
    let before = LOOKED.fetch_add(1, Ordering::Relaxed).wrapping_mul(APART);
    let first = std::process::id().wrapping_mul(61).wrapping_add(before) % span;
    (0..span)
        .step_by(usize::from(count))
        .map(|step| PORTS.start + u16::try_from((first + step) % span).expect("within the range"))
        .find(|base| (*base..base + count).all(|port| TcpListener::bind(("127.0.0.1", port)).is_ok()))
        .expect("free ports")
}
