//! A counter and a value that many change. Nobody overwrites what he did not see:
//!
//!     cargo run -p node-client --example counter -- 127.0.0.1:2181

use node_client::recipes::guid;
use node_client::recipes::machines::shared::{Call, Shared, Told};
use node_client::{Keeper, KeeperOptions};

const CLOSED: &str = "the session was closed";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let servers = std::env::args().nth(1).ok_or("name the servers, such as 127.0.0.1:2181")?;
    let ann = Keeper::connect(servers.as_str(), KeeperOptions::default()).await?;
    let ben = Keeper::connect(servers.as_str(), KeeperOptions::default()).await?;
    let path = format!("/examples/counter-{:032x}", guid().0);
    ann.create_all(&path).await?;
    // The server that ben asks may be a little behind.
    ben.sync(path.clone()).await?;

    let mut both = [&ann, &ben].map(|keeper| keeper.drive(Shared::new(path.clone(), guid())));
    for _ in 0..5 {
        both.iter().for_each(|counter| counter.call(Call::Add(1)));
    }
    let mut highest = 0;
    for counter in &mut both {
        for _ in 0..5 {
            if let Told::Added { after, .. } = counter.next().await.ok_or(CLOSED)? {
                highest = highest.max(after);
            }
        }
    }
    println!("ann and ben added 1 five times each: {highest}");

    // The same znode as a value: who replaces it says which version he saw.
    let [anns, bens] = &mut both;
    anns.call(Call::Get);
    let Told::Value { version, .. } = anns.next().await.ok_or(CLOSED)? else { return Err("no value".into()) };
    bens.call(Call::Set { data: "ben's".into(), version });
    println!("ben replaces it: {:?}", bens.next().await.ok_or(CLOSED)?);
    anns.call(Call::Set { data: "ann's".into(), version });
    println!("ann does not, she saw an older one: {:?}", anns.next().await.ok_or(CLOSED)?);

    for shared in &mut both {
        shared.call(Call::Leave);
        shared.next().await.ok_or(CLOSED)?;
    }
    ann.delete(path, -1).await?;
    ann.close().await?;
    ben.close().await?;
    Ok(())
}
