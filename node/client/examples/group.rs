//! A group: who is a member, and who comes and goes:
//!
//!     cargo run -p node-client --example group -- 127.0.0.1:2181

use node_client::recipes::guid;
use node_client::recipes::machines::group::{Group, Told, join};
use node_client::{Keeper, KeeperOptions, Running};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let servers = std::env::args().nth(1).ok_or("name the servers, such as 127.0.0.1:2181")?;
    let ann = Keeper::connect(servers.as_str(), KeeperOptions::default()).await?;
    let ben = Keeper::connect(servers.as_str(), KeeperOptions::default()).await?;
    let path = format!("/examples/group-{:032x}", guid().0);
    ann.create_all(&path).await?;

    let mut group = ann.drive(Group::watch(path.clone()));
    println!("at first:");
    tell(&mut group).await?;
    let member = ben.drive(join(&path, guid(), "ben, on host-b".into()));
    println!("ben joins:");
    tell(&mut group).await?;
    // He leaves when his handle is dropped, and at the latest when his session ends.
    drop(member);
    println!("ben leaves:");
    tell(&mut group).await?;

    ann.delete(path, -1).await?;
    ann.close().await?;
    ben.close().await?;
    Ok(())
}

/// Prints what is told, until all is told that changed.
async fn tell(group: &mut Running<Group>) -> Result<(), Box<dyn std::error::Error>> {
    loop {
        match group.next().await.ok_or("the session was closed")? {
            Told::Joined { data, .. } => println!("  a member: {}", String::from_utf8_lossy(&data)),
            Told::Left { .. } => println!("  a member less"),
            Told::Complete => break println!("  that is all"),
            Told::Over(why) => return Err(why.into()),
        }
    }
    Ok(())
}
