//! Members whose steps take long: what their peers make of it.

use std::hash::{Hash, Hasher};
use std::time::{Duration, Instant};

use node_core::io::{Effect, Input, Now, Recovered};
use node_core::{Config, Factory, Machine, MemberView, Zab};
use node_wire::snapshot::ZxidDigest;
use tokio::time::timeout;

use crate::members::{Ensemble, PATIENCE};
use crate::{connect, converged, mntr, pause, roles, runtime};

/// Longer than any thread waits for a processor on a machine that tests.
const PEER_TIMEOUT: Duration = Duration::from_millis(500);

/// The path that makes the member work for so many milliseconds that a client asks about it.
fn work(ms: u64) -> String {
    format!("{WORK}{ms}")
}

const WORK: &str = "/work-";

/// Makes members that do as they are told by [`work`].
struct Working;

impl Factory for Working {
    fn start(&self, config: Config, recovered: Recovered, now: Now) -> Box<dyn Machine> {
        Box::new(Worker(Zab.start(config, recovered, now)))
    }
}

struct Worker(Box<dyn Machine>);

impl Machine for Worker {
    fn step(&mut self, now: Now, input: Input, out: &mut Vec<Effect>) {
        let until = Instant::now() + ordered(&input);
        while Instant::now() < until {
            std::hint::spin_loop();
        }
        self.0.step(now, input, out);
    }

    fn member(&self) -> &dyn MemberView {
        self.0.member()
    }

    fn expect_digest(&mut self, written: ZxidDigest) {
        self.0.expect_digest(written);
    }

    fn fingerprint(&self, state: &mut impl Hasher) {
        self.0.member().last_applied().hash(state);
    }

    fn awaited_ticket(&self) -> Option<u64> {
        self.0.awaited_ticket()
    }
}

/// For how long to work.
fn ordered(input: &Input) -> Duration {
    let Input::ClientRequest { request, .. } = input else { return Duration::ZERO };
    let text = String::from_utf8_lossy(&request.body);
    let Some((_, ms)) = text.split_once(WORK) else { return Duration::ZERO };
    let digits: String = ms.chars().take_while(char::is_ascii_digit).collect();
    Duration::from_millis(digits.parse().unwrap_or(0))
}

/// Three members, the leader first.
async fn three(step_limit: Option<Duration>) -> (Ensemble, Vec<u64>) {
    let mut ensemble = Ensemble::new(3);
    ensemble.peer_timeout = Some(PEER_TIMEOUT);
    ensemble.step_limit = step_limit;
    ensemble.factory = || Box::new(Working);
    for member in 1..=3 {
        ensemble.start_again(member);
    }
    let (leader, followers) = roles(&ensemble).await;
    (ensemble, [vec![leader], followers].concat())
}

/// How often each member has looked for a leader.
async fn lookings(ensemble: &Ensemble) -> Vec<String> {
    let mut lookings = Vec::new();
    for member in ensemble.running() {
        lookings.push(mntr(ensemble, member, "zk_looking_count").await);
    }
    lookings
}

#[test]
fn a_step_that_works_for_many_peer_timeouts_costs_nobody_its_place() {
    runtime().block_on(async {
        let (ensemble, members) = three(None).await;
        let before = lookings(&ensemble).await;
        assert!(before.iter().all(|count| !count.is_empty()), "{before:?}");
        for member in members {
            let client = connect(&ensemble, member, None).await;
            let asked = client.exists(work(6 * 500)).await.expect("the member keeps its clients");
            assert_eq!(asked.value, None);
            client.create(format!("/by-{member}"), "", 0).await.expect("it still takes part");
        }
        assert_eq!(lookings(&ensemble).await, before, "nobody looked for a leader");
        converged(&ensemble).await;
    });
}

#[test]
fn a_turn_of_many_long_steps_costs_nobody_its_place() {
    runtime().block_on(async {
        // No step is long, and the limit of one is shorter than all of them.
        let (ensemble, members) = three(Some(Duration::from_secs(2))).await;
        let before = lookings(&ensemble).await;
        for member in members {
            let client = connect(&ensemble, member, None).await;
            let steps = (0..20).map(|_| {
                let client = client.clone();
                tokio::spawn(async move { client.exists(work(200)).await })
            });
            for step in steps.collect::<Vec<_>>() {
                step.await.expect("no panic").expect("the member keeps its clients");
            }
        }
        assert_eq!(lookings(&ensemble).await, before, "nobody looked for a leader");
    });
}

#[test]
fn a_leader_that_is_stuck_in_a_step_is_deposed_and_comes_back() {
    runtime().block_on(async {
        let (ensemble, members) = three(Some(Duration::from_secs(1))).await;
        let client = connect(&ensemble, members[0], None).await;
        let stuck = tokio::spawn(async move { client.exists(work(10_000)).await });
        let deposed = async {
            loop {
                for member in &members[1..] {
                    if mntr(&ensemble, *member, "zk_server_state").await == "leader" {
                        return;
                    }
                }
                pause().await;
            }
        };
        timeout(PATIENCE, deposed).await.expect("the others have a leader");
        assert!(!stuck.is_finished(), "while the step still works");
        let (leader, _) = roles(&ensemble).await;
        assert_ne!(leader, members[0]);
        converged(&ensemble).await;
    });
}
