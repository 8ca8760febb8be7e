//! Recipes without a handle of their own, driven over real sessions.

use bytes::Bytes;
use node_client::recipes::machines::barrier::{self, Barrier};
use node_client::recipes::machines::cache::{self, Cache};
use node_client::recipes::machines::discovery::{self, Instance, Instances};
use node_client::recipes::machines::double_barrier::{self, DoubleBarrier};
use node_client::recipes::machines::group::{self, Group};
use node_client::recipes::machines::observe;
use node_client::recipes::machines::queue::{
    Consumer, ConsumerCall, ConsumerTold, Producer, ProducerCall, ProducerTold, set_up,
};
use node_client::recipes::machines::recipe::Recipe;
use node_client::recipes::machines::shared::{self, Shared};
use node_client::recipes::machines::standing;
use node_client::recipes::{Candidate, Election, Left, guid};
use node_client::{CreateMode, Keeper, Running};
use tokio::time::timeout;

use crate::members::{Ensemble, PATIENCE};
use crate::{all, connect, run};

async fn next<R: Recipe>(running: &mut Running<R>) -> R::Told {
    timeout(PATIENCE, running.next()).await.expect("told in time").expect("it goes on")
}

async fn two(ensemble: &Ensemble) -> (Keeper, Keeper) {
    (connect(all(ensemble)).await, connect(all(ensemble)).await)
}

async fn make(keeper: &Keeper, path: &'static str) {
    keeper.create(path, "", CreateMode::Persistent).await.expect("made");
}

#[test]
fn a_barrier_lets_all_pass_when_it_is_lifted() {
    let ensemble = Ensemble::start(1);
    run(async {
        let (ann, ben) = two(&ensemble).await;
        ann.call(barrier::raise("/barrier".into())).await.expect("raised");
        let mut waiting = ben.drive(Barrier::wait("/barrier"));
        assert!(timeout(std::time::Duration::from_millis(100), waiting.next()).await.is_err(), "it is up");
        ann.call(barrier::lift("/barrier".into())).await.expect("lifted");
        assert_eq!(next(&mut waiting).await, barrier::Told::Passed);
    });
}

#[test]
fn a_double_barrier_is_entered_together_and_left_together() {
    let ensemble = Ensemble::start(1);
    run(async {
        let (ann, ben) = two(&ensemble).await;
        make(&ann, "/round").await;
        let mut first = ann.drive(DoubleBarrier::enter("/round", 2, guid(), Bytes::new()));
        let mut second = ben.drive(DoubleBarrier::enter("/round", 2, guid(), Bytes::new()));
        for member in [&mut first, &mut second] {
            assert_eq!(next(member).await, double_barrier::Told::Entered);
            member.call(double_barrier::Call::Leave);
        }
        for member in [&mut first, &mut second] {
            assert_eq!(next(member).await, double_barrier::Told::Over(Left::Resigned));
        }
    });
}

#[test]
fn a_claimed_item_goes_back_when_the_session_of_its_consumer_ends() {
    let ensemble = Ensemble::start(1);
    run(async {
        let (ann, ben) = two(&ensemble).await;
        for request in set_up("/jobs") {
            ann.call(request).await.expect("made");
        }
        let mut producer = ann.drive(Producer::new("/jobs", guid()));
        producer.call(ProducerCall::Put("one".into()));
        assert_eq!(next(&mut producer).await, ProducerTold::Put(0));
        let gone = connect(all(&ensemble)).await;
        let mut first = gone.drive(Consumer::new("/jobs"));
        first.call(ConsumerCall::Claim);
        let ConsumerTold::Item { name, token, .. } = next(&mut first).await else { panic!("an item") };
        let mut second = ben.drive(Consumer::new("/jobs"));
        second.call(ConsumerCall::Claim);
        gone.close().await.expect("closed");
        match next(&mut second).await {
            ConsumerTold::Item { name: again, data, token: later } => {
                assert_eq!((again, &data[..]), (name.clone(), &b"one"[..]));
                assert!(later > token);
            }
            other => panic!("{other:?}"),
        }
        second.call(ConsumerCall::Acknowledge);
        assert_eq!(next(&mut second).await, ConsumerTold::Acknowledged(name));
    });
}

#[test]
fn a_counter_counts_every_addition_of_several_clients_once() {
    let ensemble = Ensemble::start(1);
    run(async {
        let (ann, ben) = two(&ensemble).await;
        make(&ann, "/counter").await;
        let mut counters = [&ann, &ben].map(|keeper| keeper.drive(Shared::new("/counter", guid())));
        for _ in 0..10 {
            counters.iter().for_each(|counter| counter.call(shared::Call::Add(1)));
        }
        let mut seen = std::collections::BTreeSet::new();
        for counter in &mut counters {
            for _ in 0..10 {
                let shared::Told::Added { after, .. } = next(counter).await else { panic!("added") };
                assert!(seen.insert(after), "{after} twice");
            }
        }
        assert_eq!(seen, (1..=20).collect());
    });
}

#[test]
fn a_group_tells_who_comes_and_who_goes() {
    let ensemble = Ensemble::start(1);
    run(async {
        let (ann, ben) = two(&ensemble).await;
        make(&ann, "/group").await;
        let mut group = ann.drive(Group::watch("/group"));
        assert_eq!(next(&mut group).await, group::Told::Complete);
        let member = ben.drive(group::join("/group", guid(), "ben".into()));
        let group::Told::Joined { name, data } = next(&mut group).await else { panic!("somebody joined") };
        assert_eq!(&data[..], b"ben");
        assert_eq!(next(&mut group).await, group::Told::Complete);
        drop(member);
        assert_eq!(next(&mut group).await, group::Told::Left { name });
    });
}

#[test]
fn a_cache_tells_what_changes_below_its_root() {
    let ensemble = Ensemble::start(1);
    run(async {
        let (ann, ben) = two(&ensemble).await;
        make(&ann, "/config").await;
        make(&ann, "/config/a").await;
        let mut cache = ben.drive(Cache::new("/config"));
        let mut seen = Vec::new();
        while !matches!(seen.last(), Some(cache::Told::Complete)) {
            seen.push(next(&mut cache).await);
        }
        assert!(seen.contains(&cache::Told::Added("/config/a".into())), "{seen:?}");
        ann.set_data("/config/a", "new", -1).await.expect("set");
        assert_eq!(next(&mut cache).await, cache::Told::Changed("/config/a".into()));
        ann.delete("/config/a", -1).await.expect("deleted");
        assert_eq!(next(&mut cache).await, cache::Told::Removed("/config/a".into()));
    });
}

#[test]
fn an_observer_is_told_who_leads_and_what_it_proclaims() {
    let ensemble = Ensemble::start(1);
    run(async {
        let (ann, ben) = two(&ensemble).await;
        let election = Election::create(&ann, "/e").await.expect("made");
        let mut observer = Election::open(&ben, "/e").await.expect("there").observe(true);
        assert_eq!(next(&mut observer).await, observe::Told::Nobody);
        let mut candidacy = election.volunteer(Candidate::named("ann"));
        let term = candidacy.elected().await.expect("elected");
        let observe::Told::First { token, data, .. } = next(&mut observer).await else { panic!("somebody") };
        assert_eq!((token, &data[..]), (term.token(), &b"ann"[..]));
        term.proclaim("ann is ready").await.expect("said");
        let observe::Told::First { data, .. } = next(&mut observer).await else { panic!("somebody") };
        assert_eq!(&data[..], b"ann is ready");
        candidacy.resign().await;
        assert_eq!(next(&mut observer).await, observe::Told::Nobody);
    });
}

#[test]
fn an_instance_of_a_service_is_found_with_what_it_says_of_itself_and_is_gone_when_it_left() {
    let ensemble = Ensemble::start(1);
    run(async {
        let (ann, ben) = two(&ensemble).await;
        for request in discovery::set_up("/services", "orders") {
            ann.call(request).await.expect("made");
        }
        let mut instances = ben.drive(Instances::watch("/services", "orders"));
        assert_eq!(next(&mut instances).await, discovery::Told::Complete);
        let mut instance = Instance { port: Some(8080), ..Instance::new("orders", "one") };
        let registered = ann.drive(discovery::register("/services", &instance));
        let joined = discovery::Told::Joined { name: "one".into(), instance: instance.clone() };
        assert_eq!(next(&mut instances).await, joined);
        instance.enabled = false;
        registered.call(standing::Call::Set(instance.to_json()));
        let changed = discovery::Told::Changed { name: "one".into(), instance };
        assert_eq!(next(&mut instances).await, changed);
        drop(registered);
        assert_eq!(next(&mut instances).await, discovery::Told::Left { name: "one".into() });
    });
}
