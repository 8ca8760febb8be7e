//! A double barrier: nobody begins before all have come, and nobody goes before all have ended:
//!
//!     cargo run -p node-client --example double_barrier -- 127.0.0.1:2181

use std::time::Duration;

use node_client::recipes::guid;
use node_client::recipes::machines::double_barrier::{Call, DoubleBarrier};
use node_client::{Keeper, KeeperOptions};
use tokio::time::timeout;

const MEMBERS: usize = 2;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let servers = std::env::args().nth(1).ok_or("name the servers, such as 127.0.0.1:2181")?;
    let ann = Keeper::connect(servers.as_str(), KeeperOptions::default()).await?;
    let ben = Keeper::connect(servers.as_str(), KeeperOptions::default()).await?;
    // Each round has a znode of its own.
    let path = format!("/examples/double_barrier-{:032x}", guid().0);
    ann.create_all(&path).await?;

    let mut first = ann.drive(DoubleBarrier::enter(path.clone(), MEMBERS, guid(), "ann".into()));
    let waits = timeout(Duration::from_millis(100), first.next()).await.is_err();
    println!("ann is there, and waits for the other: {waits}");
    let mut second = ben.drive(DoubleBarrier::enter(path.clone(), MEMBERS, guid(), "ben".into()));
    for (name, member) in [("ann", &mut first), ("ben", &mut second)] {
        println!("{name} is told {:?}", member.next().await.ok_or("the session was closed")?);
    }

    first.call(Call::Leave);
    let waits = timeout(Duration::from_millis(100), first.next()).await.is_err();
    println!("ann has ended, and waits for the other: {waits}");
    second.call(Call::Leave);
    for (name, member) in [("ann", &mut first), ("ben", &mut second)] {
        println!("{name} is told {:?}", member.next().await.ok_or("the session was closed")?);
    }

    ann.delete(path, -1).await?;
    ann.close().await?;
    ben.close().await?;
    Ok(())
}
