//! The longest step of a member, for each request that may be large, at its limit.
//!
//! ```text
//! cargo run --release -p node --example steps -- [WORD]
//! ```
//!
//! A member does nothing else while it computes a step: it reads no socket and sends no PING. So what one
//! step costs must be known for the largest that anybody can ask. Three members in memory are given each
//! case; there is no disk and no network, and what is told is processor time. A row has the longest step of
//! the leader and that of a follower. WORD picks the rows that contain it.

mod cases;
mod world;

use std::time::Duration;

/// The longest steps of a case.
#[derive(Default)]
struct Longest {
    leader: Duration,
    follower: Duration,
}

fn main() {
    let word = std::env::args().nth(1).unwrap_or_default();
    println!("| at its limit | leader, ms | follower, ms |\n|---|---|---|");
    for (name, case) in cases::CASES.iter().filter(|(name, _)| name.contains(&word)) {
        let Longest { leader, follower } = case();
        println!("| {name} | {:.1} | {:.1} |", leader.as_secs_f64() * 1e3, follower.as_secs_f64() * 1e3);
    }
}
