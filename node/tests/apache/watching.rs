//! A client of Apache ZooKeeper's in Java, with watches, through the loss of leaders.

use std::cell::Cell;
use std::rc::Rc;

use tokio::time::Instant;

use crate::java::{Java, compiles};
use crate::members::{Kind, Members, PATIENCE, installed};
use crate::{connect, leader, pause, run};

/// The program, which its virtual machine compiles when it starts.
const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/apache/Watching.java");

/// How often a leader is killed.
const KILLS: usize = 3;

/// Nodes that are made between two of them.
const CREATED: usize = 30;

/// Writes of the value around each of them.
const WRITTEN: i32 = 60;

/// The program and what it has said.
struct Watching {
    java: Java,
    said: Vec<String>,
}

impl Watching {
    /// Reads until it says this.
    async fn wait_for(&mut self, line: &str) {
        let deadline = Instant::now() + PATIENCE;
        while self.said.last().map(String::as_str) != Some(line) {
            assert!(Instant::now() < deadline, "it never says {line:?}: {:?}", self.said);
            let next = self.java.line().await.expect("it ends only when it is told");
            self.said.push(next);
        }
    }

    /// Waits until it is connected to the ensemble as it is now.
    async fn is_connected(&mut self, word: &str) {
        self.java.say(word);
        self.wait_for(word).await;
    }
}

/// Writes the value until told to stop, through members that live. Whether a write that was cut off was one
/// is not asked.
async fn write(addrs: [String; 3], written: Rc<Cell<i32>>, stop: Rc<Cell<bool>>) {
    for turn in 0_usize.. {
        let Ok(client) = node_client::connect(addrs[turn % 3].clone(), Default::default()).await else {
            pause().await;
            continue;
        };
        while client.set_data("/value", "x", -1).await.is_ok() {
            written.set(written.get() + 1);
            if stop.get() {
                return;
            }
        }
    }
}

#[test]
fn a_java_client_sees_every_change_in_order_while_leaders_are_killed() {
    if !installed() || !compiles() {
        return;
    }
    run(async {
        let mut members = Members::new(3, 0);
        (1..=3).for_each(|id| members.start(id, Kind::Node));
        let mut last = leader(&members).await;
        let client = connect(&members.client_addr(last)).await;
        for path in ["/list", "/value"] {
            client.create(path, "", 0).await.expect("created");
        }
        let addrs = [1, 2, 3].map(|id| members.client_addr(id));
        let java = Java::start(&[PROGRAM, &addrs.join(",")]);
        let mut watching = Watching { java, said: Vec::new() };
        watching.wait_for("value 0").await;

        let mut created = Vec::new();
        for kill in 0..KILLS {
            // What is made below /list while a client is away is never told: such a watch looks into no past.
            watching.is_connected(&format!("before {kill}")).await;
            let client = connect(&members.client_addr(last)).await;
            for number in 0..CREATED {
                let path = format!("/list/{kill}-{number}");
                client.create(path.clone(), "", 0).await.expect("created");
                created.push(format!("NodeCreated {path}"));
            }
            watching.wait_for(created.last().expect("created")).await;

            let (written, stop) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(false)));
            let writer = write(addrs.clone(), Rc::clone(&written), Rc::clone(&stop));
            let writer = tokio::task::spawn_local(writer);
            for goal in [WRITTEN, 2 * WRITTEN] {
                let deadline = Instant::now() + PATIENCE;
                while written.get() < goal {
                    assert!(Instant::now() < deadline, "writes stand still after {kill} kills");
                    pause().await;
                }
                if goal == WRITTEN {
                    members.kill(last);
                }
            }
            stop.set(true);
            writer.await.expect("a writer that ends");
            members.start(last, Kind::Node);
            last = leader(&members).await;
        }
        let client = connect(&members.client_addr(last)).await;
        let version = client.sync_then_get("/value").await.expect("read").value.stat.version;
        watching.wait_for(&format!("value {version}")).await;
        judge(&watching.said, &created);
    });
}

/// Each node was told of once and in order, each value behind an event of its own, and none was older than
/// another before it.
fn judge(said: &[String], created: &[String]) {
    let is_value = |line: &&String| line.starts_with("value ") || *line == "changed";
    let (values, others): (Vec<&String>, Vec<&String>) = said.iter().partition(is_value);
    let listed: Vec<&String> = others.iter().filter(|line| line.starts_with("Node")).copied().collect();
    assert_eq!(listed, created.iter().collect::<Vec<_>>());
    let unwell = |line: &&&String| line.starts_with("failed") || line.contains("Expired");
    assert_eq!(others.iter().find(unwell), None);

    let mut newest = -1;
    for (turn, line) in values.iter().enumerate() {
        let Some(version) = line.strip_prefix("value ") else {
            assert_eq!(turn % 2, 1, "an event without a value before it: {values:?}");
            continue;
        };
        assert_eq!(turn % 2, 0, "a value without an event before it: {values:?}");
        let version: i32 = version.parse().expect("a number");
        assert!(version >= newest, "{version} after {newest}: {values:?}");
        newest = version;
    }
}
