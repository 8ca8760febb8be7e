//! A semaphore: so many hold it at a time, here two of three:
//!
//!     cargo run -p node-client --example semaphore -- 127.0.0.1:2181

use std::time::Duration;

use node_client::recipes::{Lock, LockError, guid};
use node_client::{Keeper, KeeperOptions};

const PLACES: usize = 2;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let servers = std::env::args().nth(1).ok_or("name the servers, such as 127.0.0.1:2181")?;
    let ann = Keeper::connect(servers.as_str(), KeeperOptions::default()).await?;
    let ben = Keeper::connect(servers.as_str(), KeeperOptions::default()).await?;
    let path = format!("/examples/semaphore-{:032x}", guid().0);

    // All say the same number of places.
    let anns = Lock::semaphore(&ann, path.clone(), PLACES).await?;
    let bens = Lock::semaphore(&ben, path.clone(), PLACES).await?;
    let first = anns.acquire().await?;
    println!("ann has the first place");
    let second = bens.acquire().await?;
    println!("ben has the second place");
    match bens.acquire_within(Duration::from_millis(100)).await {
        Err(LockError::TimedOut) => println!("there is no third place"),
        other => return Err(format!("this must not be: {other:?}").into()),
    }
    println!("ann gives hers back: {}", first.release().await);
    let third = bens.acquire().await?;
    println!("ben has both places");
    second.release().await;
    third.release().await;

    ben.delete(path, -1).await?;
    ann.close().await?;
    ben.close().await?;
    Ok(())
}
