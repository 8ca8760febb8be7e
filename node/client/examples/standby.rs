//! One process is active and another stands by, as Hadoop's name nodes do. The one that takes over fences the
//! one before, if that did not leave in order:
//!
//!     cargo run -p node-client --example standby -- 127.0.0.1:2181

use node_client::recipes::guid;
use node_client::recipes::machines::standby::{ActiveStandby, Call, Options, Told};
use node_client::{Keeper, KeeperOptions, Running};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let servers = std::env::args().nth(1).ok_or("name the servers, such as 127.0.0.1:2181")?;
    let ann = Keeper::connect(servers.as_str(), KeeperOptions::default()).await?;
    let ben = Keeper::connect(servers.as_str(), KeeperOptions::default()).await?;
    let path = format!("/examples/standby-{:032x}", guid().0);
    ann.create_all(&path).await?;

    let is_active = |told: &Told| matches!(told, Told::BecomeActive(_));
    let mut first = ann.drive(ActiveStandby::join(path.clone(), "ann", Options::default()));
    follow("ann", &mut first, is_active).await?;
    let mut second = ben.drive(ActiveStandby::join(path.clone(), "ben", Options::default()));
    follow("ben", &mut second, |told| matches!(told, Told::Standby { .. })).await?;

    // Ann can't say that she does nothing any more, so ben has to make sure.
    first.call(Call::Quit { need_fence: true });
    follow("ann", &mut first, |told| matches!(told, Told::Over(_))).await?;
    follow("ben", &mut second, is_active).await?;
    second.call(Call::Quit { need_fence: false });
    follow("ben", &mut second, |told| matches!(told, Told::Over(_))).await?;

    ben.delete(path, -1).await?;
    ann.close().await?;
    ben.close().await?;
    Ok(())
}

/// Does what a process is told, until it was told this.
async fn follow(
    name: &str,
    running: &mut Running<ActiveStandby>,
    until: impl Fn(&Told) -> bool,
) -> Result<(), Box<dyn std::error::Error>> {
    loop {
        let told = running.next().await.ok_or("the session was closed")?;
        println!("{name} is told {told:?}");
        match &told {
            // Here the other one is stopped for sure: its power is cut, or what it writes is refused.
            Told::Fence { token, .. } => running.call(Call::Fenced { token: *token, ok: true }),
            // Here the work begins.
            Told::BecomeActive(token) => running.call(Call::BecameActive { token: *token, ok: true }),
            _ => {}
        }
        if until(&told) {
            return Ok(());
        }
    }
}
