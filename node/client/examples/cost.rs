//! What recipes cost at an ensemble that serves: `cost SERVERS`.
//!
//! A lock that nobody else wants is taken and released a thousand times. Then a thousand elections are held
//! over one session, each with two candidates, and the leaders of all resign at once.

use std::time::{Duration, Instant};

use node_client::recipes::{Candidate, Election, Lock};
use node_client::{Keeper, KeeperOptions};

const TIMES: u32 = 1000;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let servers = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:2181".to_owned());
    let keeper = Keeper::connect(servers.as_str(), KeeperOptions::default()).await?;
    let lock = Lock::create(&keeper, "/cost/lock").await?;
    let mut taken = Vec::new();
    for _ in 0..TIMES {
        let began = Instant::now();
        lock.acquire().await?.release().await;
        taken.push(began.elapsed());
    }
    taken.sort_unstable();
    println!("lock and unlock: p50 {:?}, p99 {:?}", percentile(&taken, 50), percentile(&taken, 99));

    let began = Instant::now();
    let mut first = Vec::new();
    for number in 0..TIMES {
        let election = Election::create(&keeper, format!("/cost/elections/{number}")).await?;
        first.push((election.volunteer(Candidate::named("first")), election));
    }
    let mut second = Vec::new();
    for (candidacy, election) in &mut first {
        candidacy.elected().await?;
        second.push(election.volunteer(Candidate::named("second")));
    }
    println!("{TIMES} elections over one session: elected after {:?}", began.elapsed());
    for (_, election) in &first {
        while election.candidates().await?.len() < 2 {}
    }
    let began = Instant::now();
    first.clear();
    for candidacy in &mut second {
        candidacy.elected().await?;
    }
    println!("all resign at once: the others lead after {:?}", began.elapsed());
    keeper.close().await?;
    Ok(())
}

fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    sorted[(sorted.len() * percent / 100).min(sorted.len() - 1)]
}
