//! Service discovery as Curator has it: instances register, and a client chooses one that works:
//!
//!     cargo run -p node-client --example discovery -- 127.0.0.1:2181

use std::time::Instant;

use node_client::recipes::guid;
use node_client::recipes::machines::discovery::{
    DownPolicy, Instance, Instances, Provider, Strategy, register, set_up,
};
use node_client::{Keeper, KeeperOptions};

const SERVICE: &str = "orders";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let servers = std::env::args().nth(1).ok_or("name the servers, such as 127.0.0.1:2181")?;
    let ann = Keeper::connect(servers.as_str(), KeeperOptions::default()).await?;
    let ben = Keeper::connect(servers.as_str(), KeeperOptions::default()).await?;
    let base = format!("/examples/discovery-{:032x}", guid().0);
    for request in set_up(&base, SERVICE) {
        // Each may be refused because its znode is there.
        let _ = ann.call(request).await;
    }

    let mut registered = Vec::new();
    for port in [8001, 8002] {
        let instance = Instance { port: Some(port), ..Instance::new(SERVICE, format!("{:032x}", guid().0)) };
        registered.push(ann.drive(register(&base, &instance)));
    }
    let began = Instant::now();
    let mut instances = ben.drive(Instances::watch(&base, SERVICE));
    let mut provider = Provider::new(Strategy::RoundRobin, DownPolicy::default());
    while provider.instances().len() < 2 {
        provider.hear(&instances.next().await.ok_or("the session was closed")?);
    }
    println!("two instances are there");

    let (name, instance) = provider.choose(began.elapsed()).ok_or("none can be chosen")?;
    let (name, port) = (name.clone(), instance.port);
    println!("one is chosen, and does not answer twice");
    provider.note_error(began.elapsed(), &name);
    provider.note_error(began.elapsed(), &name);
    let mut others = Vec::new();
    for _ in 0..3 {
        others.push(provider.choose(began.elapsed()).ok_or("none can be chosen")?.1.port);
    }
    println!("for 30 s only the other is chosen: {}", others.iter().all(|other| *other != port));

    drop(registered);
    while !provider.instances().is_empty() {
        provider.hear(&instances.next().await.ok_or("the session was closed")?);
    }
    println!("both have left");
    ann.delete(format!("{base}/{SERVICE}"), -1).await?;
    ann.delete(base, -1).await?;
    ann.close().await?;
    ben.close().await?;
    Ok(())
}
