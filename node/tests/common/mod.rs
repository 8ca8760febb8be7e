//! A member as a child process: started, listened to, and killed when its test ends.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

/// The binary under test.
pub(crate) const NODE: &str = env!("CARGO_BIN_EXE_node");

/// No test waits longer than this for anything.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A member that is killed when the test ends.
pub(crate) struct Node {
    pub(crate) child: Child,
    events: Receiver<serde_json::Value>,
}

impl Node {
    /// Whatever a command starts that tells its events.
    pub(crate) fn listen(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("started");
        let stdout = BufReader::new(child.stdout.take().expect("piped"));
        let (sender, events) = mpsc::channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let event = serde_json::from_str(&line).expect("a line of JSON");
                if sender.send(event).is_err() {
                    return;
                }
            }
        });
        Self { child, events }
    }

    /// The next event of that name.
    pub(crate) fn event(&self, name: &str) -> serde_json::Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let event = self.events.recv_timeout(left).expect(name);
            if event["event"] == name {
                return event;
            }
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
