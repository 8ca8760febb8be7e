//! A lock that one holds at a time, with a token for whatever it protects:
//!
//!     cargo run -p node-client --example lock -- 127.0.0.1:2181

use std::time::Duration;

use node_client::recipes::{Lock, LockError, Token, guid};
use node_client::{Keeper, KeeperOptions};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let servers = std::env::args().nth(1).ok_or("name the servers, such as 127.0.0.1:2181")?;
    let ann = Keeper::connect(servers.as_str(), KeeperOptions::default()).await?;
    let ben = Keeper::connect(servers.as_str(), KeeperOptions::default()).await?;
    let path = format!("/examples/lock-{:032x}", guid().0);

    let lock = Lock::create(&ann, path.clone()).await?.with_data("ann");
    let same = Lock::create(&ben, path.clone()).await?.with_data("ben");
    let held = lock.acquire().await?;
    println!("ann holds the lock");
    match same.acquire_within(Duration::from_millis(100)).await {
        Err(LockError::TimedOut) => println!("ben waited for a while, and gave up"),
        other => return Err(format!("this must not be: {other:?}").into()),
    }

    // What the lock protects keeps the largest token that it saw, and refuses smaller ones.
    let mut highest = Token::default();
    println!("ann may write: {}", held.token().admit(&mut highest));
    let anns = held.token();
    println!("ann releases it: {}", held.release().await);

    let held = same.acquire().await?;
    println!("ben holds the lock, certainly now: {}", held.is_certain());
    println!("ben may write: {}", held.token().admit(&mut highest));
    println!("ann may write still: {}", anns.admit(&mut highest));
    held.release().await;

    ben.delete(path, -1).await?;
    ann.close().await?;
    ben.close().await?;
    Ok(())
}
