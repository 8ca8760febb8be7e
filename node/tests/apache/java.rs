//! Programs of the virtual machine that are talked to: line by line in, line by line out.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::time::Duration;

use tokio::time::Instant;

use crate::members::PATIENCE;

/// Apache ZooKeeper's client, with a log that says nothing.
const CLASSES: &str = "/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-nop.jar";

/// A program that is killed when this is dropped.
pub(crate) struct Java {
    child: Child,
    stdin: ChildStdin,
    lines: Receiver<String>,
}

impl Java {
    /// Starts it. Its two outputs come as one, in the order in which it wrote them.
    pub(crate) fn start(words: &[&str]) -> Self {
        let (output, input) = std::io::pipe().expect("a pipe");
        let mut command = Command::new("java");
        // Programs that live for seconds: what is compiled most carefully comes too late for them.
        command.args(["-Xmx128m", "-XX:TieredStopAtLevel=1", "-cp", CLASSES]).args(words);
        command.stdin(Stdio::piped()).stdout(input.try_clone().expect("a pipe")).stderr(input);
        let mut child = command.spawn().expect("started");
        // It holds the pipe's other end.
        drop(command);
        let stdin = child.stdin.take().expect("piped");
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { child, stdin, lines }
    }

    pub(crate) fn say(&mut self, line: &str) {
        writeln!(self.stdin, "{line}").expect("a program that listens");
    }

    /// The next line that it writes; none when it has ended.
    pub(crate) async fn line(&mut self) -> Option<String> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.lines.try_recv() {
                Ok(line) => return Some(line),
                Err(TryRecvError::Disconnected) => return None,
                Err(TryRecvError::Empty) => {}
            }
            assert!(Instant::now() < deadline, "it says nothing any more");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Its exit status, once all that it wrote is read.
    pub(crate) async fn ended(&mut self) -> Option<i32> {
        while let Some(line) = self.line().await {
            assert_eq!(line, "", "it ends without another word");
        }
        self.child.wait().expect("ours").code()
    }
}

impl Drop for Java {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether a program can be started from its source; says so when it can't.
pub(crate) fn compiles() -> bool {
    let listed = Command::new("java").arg("--list-modules").output();
    let compiles =
        listed.is_ok_and(|listed| String::from_utf8_lossy(&listed.stdout).contains("jdk.compiler"));
    if !compiles {
        eprintln!("skipped: no compiler for Java is installed (Debian: default-jdk-headless)");
    }
    compiles
}
