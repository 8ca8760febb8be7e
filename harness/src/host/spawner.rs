//! A thread that starts child processes, and lives as long as they may.
//!
//! Children ask the kernel to be killed when their parent dies. What the kernel watches is the thread that
//! started them, so a worker of a thread pool, which may end when it is idle, must never start one.

use std::io;
use std::process::{Child, Command};
use std::sync::mpsc;

type Order = (Command, mpsc::SyncSender<io::Result<Child>>);

/// Children that may wait to be started.
const MAX_ORDERS: usize = 64;

/// The thread's handle. When it is dropped the thread ends, and with it, by the kernel's hand, the children.
#[derive(Clone)]
pub struct Spawner {
    orders: mpsc::SyncSender<Order>,
}

impl Spawner {
    /// Starts the thread.
    pub fn start() -> io::Result<Self> {
        let (orders, receiver) = mpsc::sync_channel::<Order>(MAX_ORDERS);
        std::thread::Builder::new().name("spawner".to_owned()).spawn(move || {
            for (mut command, reply) in receiver {
                // Whoever asked may have been cancelled; the child is then killed with the thread.
                let _ = reply.send(command.spawn());
            }
        })?;
        Ok(Self { orders })
    }

    /// Starts a child.
    pub fn spawn(&self, command: Command) -> io::Result<Child> {
        let (reply, answer) = mpsc::sync_channel(1);
        let gone = || io::Error::other("the thread that starts processes is gone");
        self.orders.send((command, reply)).map_err(|_| gone())?;
        answer.recv().map_err(|_| gone())?
    }
}
