//! A queue: items are put, claimed one at a time, and acknowledged. An item whose holder went is handed out
//! again:
//!
//!     cargo run -p node-client --example queue -- 127.0.0.1:2181

use node_client::recipes::guid;
use node_client::recipes::machines::queue::{
    Consumer, ConsumerCall, ConsumerTold, Producer, ProducerCall, set_up,
};
use node_client::{Keeper, KeeperOptions, Running};

const CLOSED: &str = "the session was closed";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let servers = std::env::args().nth(1).ok_or("name the servers, such as 127.0.0.1:2181")?;
    let ann = Keeper::connect(servers.as_str(), KeeperOptions::default()).await?;
    let ben = Keeper::connect(servers.as_str(), KeeperOptions::default()).await?;
    let path = format!("/examples/queue-{:032x}", guid().0);
    ann.create_all("/examples").await?;
    for request in set_up(&path) {
        ann.call(request).await?;
    }

    let mut producer = ann.drive(Producer::new(path.clone(), guid()));
    for item in ["one", "two"] {
        producer.call(ProducerCall::Put(item.into()));
        println!("ann is told {:?}", producer.next().await.ok_or(CLOSED)?);
    }
    // Her mark in the queue goes with her.
    producer.call(ProducerCall::Leave);
    println!("ann is told {:?}", producer.next().await.ok_or(CLOSED)?);

    // This consumer goes before it has done its item.
    let gone = Keeper::connect(servers.as_str(), KeeperOptions::default()).await?;
    // The server that it asks may be a little behind.
    gone.sync(path.clone()).await?;
    println!("another one claims {}, and goes", claim(&mut gone.drive(Consumer::new(path.clone()))).await?);
    gone.close().await?;

    ben.sync(path.clone()).await?;
    let mut consumer = ben.drive(Consumer::new(path.clone()));
    for _ in 0..2 {
        println!("ben does {}", claim(&mut consumer).await?);
        consumer.call(ConsumerCall::Acknowledge);
        consumer.next().await.ok_or(CLOSED)?;
    }
    for below in ["/items", "/claims", "/marks", ""] {
        ann.delete(format!("{path}{below}"), -1).await?;
    }
    ann.close().await?;
    ben.close().await?;
    Ok(())
}

async fn claim(consumer: &mut Running<Consumer>) -> Result<String, Box<dyn std::error::Error>> {
    consumer.call(ConsumerCall::Claim);
    match consumer.next().await.ok_or(CLOSED)? {
        ConsumerTold::Item { data, .. } => Ok(String::from_utf8_lossy(&data).into_owned()),
        told => Err(format!("no item: {told:?}").into()),
    }
}
