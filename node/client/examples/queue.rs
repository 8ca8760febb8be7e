//! A queue: items are put, claimed one at a time, and acknowledged. An item whose holder went is handed out
//! again:
//!
//!     cargo run -p node-client --example queue -- 127.0.0.1:2181

use node_client::recipes::guid;
use node_client::recipes::machines::queue::{
    Consumer, ConsumerCall, ConsumerTold, Producer, ProducerCall, ProducerTold, set_up,
};
use node_client::{Keeper, KeeperOptions};

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
    for item in ["one", "two", "three"] {
        producer.call(ProducerCall::Put(item.into()));
    }
    producer.call(ProducerCall::Leave);
    loop {
        match producer.next().await.ok_or(CLOSED)? {
            ProducerTold::Over(_) => break,
            told => println!("ann is told {told:?}"),
        }
    }

    // This consumer goes before it has done its item.
    let gone = Keeper::connect(servers.as_str(), KeeperOptions::default()).await?;
    let mut consumer = gone.drive(Consumer::new(path.clone()));
    consumer.call(ConsumerCall::Claim);
    if let ConsumerTold::Item { data, .. } = consumer.next().await.ok_or(CLOSED)? {
        println!("another one claims {}, and goes", String::from_utf8_lossy(&data));
    }
    gone.close().await?;

    let mut consumer = ben.drive(Consumer::new(path.clone()));
    for _ in 0..3 {
        consumer.call(ConsumerCall::Claim);
        if let ConsumerTold::Item { data, .. } = consumer.next().await.ok_or(CLOSED)? {
            println!("ben does {}", String::from_utf8_lossy(&data));
        }
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
