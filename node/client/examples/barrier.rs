//! A barrier: all wait while it is up, and go on when it is taken down:
//!
//!     cargo run -p node-client --example barrier -- 127.0.0.1:2181

use std::time::Duration;

use node_client::recipes::guid;
use node_client::recipes::machines::barrier::{Barrier, lift, raise};
use node_client::{Keeper, KeeperOptions};
use tokio::time::timeout;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let servers = std::env::args().nth(1).ok_or("name the servers, such as 127.0.0.1:2181")?;
    let ann = Keeper::connect(servers.as_str(), KeeperOptions::default()).await?;
    let ben = Keeper::connect(servers.as_str(), KeeperOptions::default()).await?;
    ann.create_all("/examples").await?;
    let path = format!("/examples/barrier-{:032x}", guid().0);

    ann.call(raise(path.as_str().into())).await?;
    println!("ann put the barrier up");
    let mut waiting = [ben.drive(Barrier::wait(path.clone())), ben.drive(Barrier::wait(path.clone()))];
    for (number, waiting) in waiting.iter_mut().enumerate() {
        let waits = timeout(Duration::from_millis(100), waiting.next()).await.is_err();
        println!("number {number} waits: {waits}");
    }

    ann.call(lift(path.as_str().into())).await?;
    println!("ann took it down");
    for (number, waiting) in waiting.iter_mut().enumerate() {
        let told = waiting.next().await.ok_or("the session was closed")?;
        println!("number {number} is told {told:?}");
    }
    ann.close().await?;
    ben.close().await?;
    Ok(())
}
