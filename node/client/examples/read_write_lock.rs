//! A lock that many hold to read, or one to write:
//!
//!     cargo run -p node-client --example read_write_lock -- 127.0.0.1:2181

use std::time::Duration;

use node_client::recipes::{Lock, LockError, guid};
use node_client::{Keeper, KeeperOptions};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let servers = std::env::args().nth(1).ok_or("name the servers, such as 127.0.0.1:2181")?;
    let ann = Keeper::connect(servers.as_str(), KeeperOptions::default()).await?;
    let ben = Keeper::connect(servers.as_str(), KeeperOptions::default()).await?;
    let path = format!("/examples/read_write_lock-{:032x}", guid().0);

    let (anns, bens) = (Lock::read(&ann, path.clone()).await?, Lock::read(&ben, path.clone()).await?);
    let first = anns.acquire().await?;
    let second = bens.acquire().await?;
    println!("ann and ben read at the same time");

    let write = Lock::write(&ben, path.clone()).await?;
    let wait = Duration::from_millis(100);
    match write.acquire_within(wait).await {
        Err(LockError::TimedOut) => println!("nobody can write meanwhile"),
        other => return Err(format!("this must not be: {other:?}").into()),
    }
    first.release().await;
    second.release().await;
    let alone = write.acquire().await?;
    println!("both have read, and ben writes");
    match anns.acquire_within(wait).await {
        Err(LockError::TimedOut) => println!("nobody can read meanwhile"),
        other => return Err(format!("this must not be: {other:?}").into()),
    }
    alone.release().await;
    anns.acquire().await?.release().await;
    println!("ann has read what ben wrote");

    ben.delete(path, -1).await?;
    ann.close().await?;
    ben.close().await?;
    Ok(())
}
