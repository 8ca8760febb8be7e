//! A copy of a tree, kept up to date by one watch, as services keep their configuration:
//!
//!     cargo run -p node-client --example cache -- 127.0.0.1:2181

use node_client::recipes::guid;
use node_client::recipes::machines::cache::{Cache, Told};
use node_client::{CreateMode, Keeper, KeeperOptions, Running};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let servers = std::env::args().nth(1).ok_or("name the servers, such as 127.0.0.1:2181")?;
    let ann = Keeper::connect(servers.as_str(), KeeperOptions::default()).await?;
    let ben = Keeper::connect(servers.as_str(), KeeperOptions::default()).await?;
    let path = format!("/examples/cache-{:032x}", guid().0);
    let colour = format!("{path}/colour");
    ann.create_all(&path).await?;
    ann.create(colour.clone(), "red", CreateMode::Persistent).await?;

    // The server that ben asks may be a little behind.
    ben.sync(path.clone()).await?;
    let mut cache = ben.drive(Cache::new(path.clone()));
    println!("ben reads what is there:");
    until(&mut cache, &Told::Complete).await?;
    println!("ann changes it:");
    ann.set_data(colour.clone(), "blue", -1).await?;
    until(&mut cache, &Told::Changed(colour.as_str().into())).await?;
    println!("ann deletes it:");
    ann.delete(colour, -1).await?;
    ann.delete(path.clone(), -1).await?;
    until(&mut cache, &Told::Removed(path.into())).await?;

    ann.close().await?;
    ben.close().await?;
    Ok(())
}

/// Prints what is told, until this is.
async fn until(cache: &mut Running<Cache>, last: &Told) -> Result<(), Box<dyn std::error::Error>> {
    loop {
        let told = cache.next().await.ok_or("the session was closed")?;
        println!("  {told:?}");
        if told == *last {
            return Ok(());
        }
    }
}
