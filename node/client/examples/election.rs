//! Two candidates stand for election. One leads at a time, and what it writes under its term is refused once
//! the term is over:
//!
//!     cargo run -p node-client --example election -- 127.0.0.1:2181

use node_client::recipes::{Candidate, Election, Fenced, guid};
use node_client::request::set_data;
use node_client::{CreateMode, Keeper, KeeperOptions};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let servers = std::env::args().nth(1).ok_or("name the servers, such as 127.0.0.1:2181")?;
    let ann = Keeper::connect(servers.as_str(), KeeperOptions::default()).await?;
    let ben = Keeper::connect(servers.as_str(), KeeperOptions::default()).await?;
    let path = format!("/examples/election-{:032x}", guid().0);
    let job = format!("{path}-job");

    // Whoever owns the resource makes it. The others open it.
    let election = Election::create(&ann, path.clone()).await?;
    ann.create(job.clone(), "nobody's", CreateMode::Persistent).await?;
    let mut first = election.volunteer(Candidate::named("ann"));
    let term = first.elected().await?;
    println!("ann leads with token {}", term.token());
    term.write(vec![set_data(job.clone(), "ann's", -1)]).await?;

    // The server that ben asks may be a little behind.
    ben.sync(path.clone()).await?;
    let mut second = Election::open(&ben, path).await?.volunteer(Candidate::named("ben"));
    while election.candidates().await?.len() < 2 {}
    for candidate in election.candidates().await? {
        println!("{} stands", String::from_utf8_lossy(&candidate.data));
    }
    println!("ann resigns: {}", first.resign().await);
    let later = second.elected().await?;
    println!("ben leads, and his token is larger: {}", later.token() > term.token());
    later.write(vec![set_data(job.clone(), "ben's", -1)]).await?;

    match term.write(vec![set_data(job.clone(), "ann's again", -1)]).await {
        Err(Fenced::Over) => println!("ann's late write is refused: her term is over"),
        other => return Err(format!("this must not be: {other:?}").into()),
    }
    let data = ben.get_data(job.clone()).await?.value.data;
    println!("the job is {}", String::from_utf8_lossy(&data));

    second.resign().await;
    election.delete().await?;
    ben.delete(job, -1).await?;
    ann.close().await?;
    ben.close().await?;
    Ok(())
}
