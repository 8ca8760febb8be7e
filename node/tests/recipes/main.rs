//! Recipes on real members: elections and locks through what goes wrong, one scenario a test.

mod examples;
mod machines;
#[path = "../ensemble/members.rs"]
#[allow(dead_code, reason = "what other tests look at")]
mod members;
mod proxy;

use std::time::{Duration, Instant};

use members::{Ensemble, PATIENCE};
use node_client::recipes::{
    Candidacy, Candidate, Election, Left, Lock, LockError, RecipeError, Term, TermEnd,
};
use node_client::{Acl, CreateMode, ErrorCode, Keeper, KeeperError, KeeperOptions, State};
use proxy::Proxy;
use tokio::time::timeout;

/// Long enough for a busy machine, short enough to wait for its end.
const SESSION: Duration = Duration::from_secs(4);

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(test);
}

fn options() -> KeeperOptions {
    KeeperOptions { timeout: SESSION, patience: Some(PATIENCE), ..KeeperOptions::default() }
}

async fn connect(servers: String) -> Keeper {
    Keeper::connect(servers.as_str(), options()).await.expect("a session")
}

/// All members, for a client that may go from one to another.
fn all(ensemble: &Ensemble) -> String {
    let addrs: Vec<String> =
        ensemble.running().into_iter().map(|id| ensemble.client_addr(id).to_string()).collect();
    addrs.join(",")
}

async fn elected(candidacy: &mut Candidacy) -> Term {
    timeout(PATIENCE, candidacy.elected()).await.expect("elected in time").expect("elected")
}

/// Waits until a candidate has its place in the line.
async fn standing(election: &Election, count: usize) {
    let there = async {
        while election.candidates().await.expect("listed").len() != count {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, there).await.expect("as many stand");
}

async fn volunteer(election: &Election, name: &'static str, count: usize) -> Candidacy {
    let candidacy = election.volunteer(Candidate::named(name));
    standing(election, count).await;
    candidacy
}

async fn is_suspended(keeper: &Keeper) {
    let mut states = keeper.states();
    let suspended = states.wait_for(|state| matches!(state, State::Suspended { .. }));
    timeout(PATIENCE, suspended).await.expect("told in time").expect("a state");
}

#[test]
fn happy_path_the_first_leads_and_the_next_follows_when_it_resigns() {
    let ensemble = Ensemble::start(3);
    run(async {
        let (ann, ben) = (connect(all(&ensemble)).await, connect(all(&ensemble)).await);
        let election = Election::create(&ann, "/election/president").await.expect("made");
        let mut first = volunteer(&election, "ann", 1).await;
        let other = Election::open(&ben, "/election/president").await.expect("there");
        let mut second = volunteer(&other, "ben", 2).await;
        let term = elected(&mut first).await;
        assert!(term.is_certain() && first.leads() && !second.leads());
        term.proclaim("ann leads").await.expect("said");
        let leader = other.leader().await.expect("asked").expect("somebody");
        assert_eq!((&leader.data[..], leader.token), (&b"ann leads"[..], term.token()));
        assert_eq!(first.resign().await, Left::Resigned);
        assert_eq!(term.over().await, TermEnd::Resigned);
        assert!(!term.is_certain(), "nothing is certain behind its end");
        let next = elected(&mut second).await;
        assert!(next.token() > term.token());
    });
}

#[test]
fn zookeeper_absent_at_start_is_said() {
    run(async {
        let closed = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("bound");
        let options = KeeperOptions { patience: Some(Duration::from_millis(200)), ..options() };
        let error = Keeper::connect(closed.to_string().as_str(), options).await.expect_err("nobody is there");
        assert!(matches!(error, KeeperError::NotConnected { .. }), "{error}");
        assert!(error.to_string().contains("connection refused"), "{error}");
    });
}

#[test]
fn a_notice_that_does_not_fit_the_time_out_that_was_granted_is_refused() {
    let ensemble = Ensemble::start(1);
    run(async {
        // The ensemble grants 40 s at most.
        let long = KeeperOptions { timeout: Duration::from_secs(120), patience: Some(PATIENCE), ..options() };
        let keeper = Keeper::connect(all(&ensemble), long).await.expect("a session");
        assert_eq!(keeper.timeout(), Duration::from_secs(40));
        let election = Election::create(&keeper, "/election").await.expect("made");
        let candidate = |notice| Candidate { notice, ..Candidate::named("ann") };
        for notice in [Duration::from_secs(21), Duration::from_secs(50), Duration::MAX] {
            let over = timeout(PATIENCE, election.volunteer(candidate(notice)).elected()).await;
            assert_eq!(over.expect("in time").expect_err("refused"), Left::NoticeTooLong);
            let lock = Lock::create(&keeper, "/lock").await.expect("made").with_notice(notice);
            let over = timeout(PATIENCE, lock.acquire()).await.expect("in time").expect_err("refused");
            assert_eq!(over, LockError::Over(Left::NoticeTooLong));
        }
        let mut fits = election.volunteer(candidate(Duration::from_secs(20)));
        assert!(elected(&mut fits).await.is_certain());
    });
}

#[test]
fn what_recipes_make_has_the_access_list_of_the_handle_that_drives_them() {
    let ensemble = Ensemble::start(1);
    run(async {
        let open = connect(all(&ensemble)).await;
        open.auth("digest", "ann:secret").await.expect("taken");
        let mine = vec![Acl { perms: 31, scheme: "auth".into(), id: "".into() }];
        let closed = open.with_acl(mine);
        let election = Election::create(&closed, "/a/b").await.expect("made");
        let mut candidacy = election.volunteer(Candidate::named("ann"));
        let term = elected(&mut candidacy).await;
        for path in ["/a", "/a/b", term.path()] {
            let list = open.get_acl(path.to_owned()).await.expect("readable").value.acl;
            assert!(list.iter().all(|entry| entry.scheme == "digest"), "{path}: {list:?}");
        }
        let stranger = connect(all(&ensemble)).await;
        let refused = stranger.delete(term.path().to_owned(), -1).await.expect_err("it is not theirs");
        assert_eq!(refused.refusal(), Some(ErrorCode::NoAuth));
        open.create("/open", "", CreateMode::Persistent).await.expect("made");
        let list = open.get_acl("/open").await.expect("readable").value.acl;
        assert_eq!(list, [Acl::world_anyone()], "the first handle is as it was");
    });
}

#[test]
fn an_election_without_its_node_is_refused() {
    let ensemble = Ensemble::start(1);
    run(async {
        let keeper = connect(all(&ensemble)).await;
        let error = Election::open(&keeper, "/none").await.expect_err("there is none");
        assert!(matches!(&error, RecipeError::NoResource(path) if path == "/none"), "{error}");
    });
}

#[test]
fn a_missing_election_ends_a_candidacy() {
    let ensemble = Ensemble::start(1);
    run(async {
        let keeper = connect(all(&ensemble)).await;
        let election = Election::create(&keeper, "/gone").await.expect("made");
        election.delete().await.expect("deleted");
        let mut candidacy = election.volunteer(Candidate::named("late"));
        assert_eq!(candidacy.elected().await.expect_err("there is none"), Left::NoResource);
    });
}

#[test]
fn connection_lost_and_found_a_leader_leads_on_and_a_follower_follows_on() {
    let ensemble = Ensemble::start(3);
    run(async {
        let proxies = [Proxy::to(ensemble.client_addr(1)).await, Proxy::to(ensemble.client_addr(2)).await];
        let ann = connect(proxies[0].addr()).await;
        let ben = connect(proxies[1].addr()).await;
        let election = Election::create(&ann, "/e").await.expect("made");
        let mut first = volunteer(&election, "ann", 1).await;
        let mut second = volunteer(&Election::open(&ben, "/e").await.expect("there"), "ben", 2).await;
        let term = elected(&mut first).await;
        for (proxy, keeper) in proxies.iter().zip([&ann, &ben]) {
            proxy.refuse(true);
            is_suspended(keeper).await;
            proxy.refuse(false);
            let mut states = keeper.states();
            let connected = states.wait_for(State::is_connected);
            timeout(PATIENCE, connected).await.expect("again in time").expect("a state");
        }
        assert!(term.is_certain() && first.leads(), "the lead is kept");
        first.resign().await;
        assert!(elected(&mut second).await.token() > term.token(), "and the next election works");
    });
}

#[test]
fn recovery_to_another_server_keeps_the_lead_and_the_watch() {
    let mut ensemble = Ensemble::start(3);
    run(async {
        let (ann, ben) = (connect(all(&ensemble)).await, connect(all(&ensemble)).await);
        let election = Election::create(&ann, "/e").await.expect("made");
        let mut first = volunteer(&election, "ann", 1).await;
        let mut second = volunteer(&Election::open(&ben, "/e").await.expect("there"), "ben", 2).await;
        let term = elected(&mut first).await;
        let served_by = ann.server();
        let gone =
            ensemble.running().into_iter().find(|id| ensemble.client_addr(*id).to_string() == *served_by);
        ensemble.stop(gone.expect("a member of this ensemble"));
        let moved = async {
            let mut states = ann.states();
            while !ann.state().is_connected() || ann.server() == served_by {
                states.changed().await.expect("a session");
            }
        };
        timeout(PATIENCE, moved).await.expect("another server");
        assert!(term.is_certain() && first.leads());
        ann.close().await.expect("closed");
        assert!(elected(&mut second).await.token() > term.token());
    });
}

#[test]
fn resignation_of_a_follower_leaves_the_leader_and_the_line_as_they_are() {
    let ensemble = Ensemble::start(1);
    run(async {
        let keeper = connect(all(&ensemble)).await;
        let election = Election::create(&keeper, "/e").await.expect("made");
        let mut first = volunteer(&election, "first", 1).await;
        let second = volunteer(&election, "second", 2).await;
        let mut third = volunteer(&election, "third", 3).await;
        let term = elected(&mut first).await;
        assert_eq!(second.resign().await, Left::Resigned);
        assert!(term.is_certain());
        let early = timeout(Duration::from_millis(100), third.elected()).await;
        assert!(early.is_err(), "the one ahead of it went, and the leader is there still");
        first.resign().await;
        elected(&mut third).await;
    });
}

#[test]
fn cached_children_do_not_decide_who_leads() {
    let ensemble = Ensemble::start(1);
    run(async {
        let keeper = connect(all(&ensemble)).await;
        let election = Election::create(&keeper, "/e").await.expect("made");
        let names = ["1", "2", "3", "4"];
        let mut candidacies = Vec::new();
        for (count, name) in names.into_iter().enumerate() {
            candidacies.push(volunteer(&election, name, count + 1).await);
        }
        let mut fourth = candidacies.pop().expect("four");
        // The first and the second go before the third, whom the fourth watches.
        for candidacy in candidacies {
            candidacy.resign().await;
        }
        let term = elected(&mut fourth).await;
        assert_eq!(election.candidates().await.expect("listed").len(), 1);
        assert_eq!(Some(term.path()), fourth.path().as_deref());
    });
}

#[test]
fn an_election_is_deleted_while_others_join_and_all_are_told() {
    let ensemble = Ensemble::start(3);
    run(async {
        let keeper = connect(all(&ensemble)).await;
        let election = Election::create(&keeper, "/e").await.expect("made");
        let mut leader = volunteer(&election, "leader", 1).await;
        let term = elected(&mut leader).await;
        let follower = volunteer(&election, "follower", 2).await;
        let joining: Vec<_> = (0..20).map(|_| election.volunteer(Candidate::named("joins"))).collect();
        election.delete().await.expect("deleted");
        assert_eq!(term.over().await, TermEnd::Deleted);
        for mut candidacy in joining.into_iter().chain([leader, follower]) {
            let left = timeout(PATIENCE, candidacy.over()).await.expect("told in time");
            assert!(matches!(left, Left::Deleted | Left::NoResource), "{left:?}");
        }
        assert!(matches!(election.candidates().await, Err(RecipeError::NoResource(_))));
    });
}

#[test]
fn a_zombie_node_of_a_lost_resignation_is_deleted_when_the_ensemble_is_found_again() {
    let ensemble = Ensemble::start(1);
    run(async {
        let proxy = Proxy::to(ensemble.client_addr(1)).await;
        let (ann, ben) = (connect(proxy.addr()).await, connect(all(&ensemble)).await);
        let election = Election::create(&ben, "/e").await.expect("made");
        let mut first = volunteer(&Election::open(&ann, "/e").await.expect("there"), "ann", 1).await;
        elected(&mut first).await;
        let mut second = volunteer(&election, "ben", 2).await;
        proxy.refuse(true);
        is_suspended(&ann).await;
        let resigning = tokio::spawn(first.resign());
        standing(&election, 2).await;
        assert!(!resigning.is_finished(), "nothing is known of it yet");
        proxy.refuse(false);
        elected(&mut second).await;
        assert_eq!(timeout(PATIENCE, resigning).await.expect("in time").expect("no panic"), Left::Resigned);
    });
}

#[test]
fn leadership_that_is_unknown_for_too_long_is_over_before_another_leads() {
    let ensemble = Ensemble::start(3);
    run(async {
        let proxy = Proxy::to(ensemble.client_addr(1)).await;
        let (ann, ben) = (connect(proxy.addr()).await, connect(all(&ensemble)).await);
        let election = Election::create(&ben, "/e").await.expect("made");
        let mut first = volunteer(&Election::open(&ann, "/e").await.expect("there"), "ann", 1).await;
        let term = elected(&mut first).await;
        let mut second = volunteer(&election, "ben", 2).await;
        proxy.hold();
        let ended = async {
            let why = term.over().await;
            (why, Instant::now())
        };
        let led = async {
            let next = elected(&mut second).await;
            (next, Instant::now())
        };
        let ((why, over), (next, leads)) = tokio::join!(ended, led);
        assert_eq!(why, TermEnd::Uncertain);
        assert!(over < leads, "the first term was over {:?} before the second", leads - over);
        assert!(next.token() > term.token());
        let fenced = timeout(PATIENCE, term.write(Vec::new()));
        proxy.release();
        assert!(fenced.await.expect("answered").is_err(), "what it writes is refused");
    });
}

#[test]
fn many_elections_over_one_session() {
    let ensemble = Ensemble::start(1);
    run(async {
        let keeper = connect(all(&ensemble)).await;
        let mut candidacies = Vec::new();
        for number in 0..100 {
            let election = Election::create(&keeper, format!("/e/{number}")).await.expect("made");
            candidacies.push(election.volunteer(Candidate::named("one of many")));
        }
        for candidacy in &mut candidacies {
            elected(candidacy).await;
        }
        keeper.close().await.expect("closed");
    });
}

#[test]
fn a_lock_is_held_by_one_and_a_read_lock_by_all_that_read() {
    let ensemble = Ensemble::start(1);
    run(async {
        let (ann, ben) = (connect(all(&ensemble)).await, connect(all(&ensemble)).await);
        let (first, second) =
            (Lock::create(&ann, "/l").await.expect("made"), Lock::create(&ben, "/l").await.expect("made"));
        let held = first.acquire().await.expect("free");
        let waited = second.acquire_within(Duration::from_millis(100)).await;
        assert_eq!(waited.err(), Some(LockError::TimedOut));
        assert_eq!(held.release().await, Left::Resigned);
        let again = timeout(PATIENCE, second.acquire()).await.expect("in time").expect("free");
        drop(again);

        let readers =
            [Lock::read(&ann, "/rw").await.expect("made"), Lock::read(&ben, "/rw").await.expect("made")];
        let one = readers[0].acquire().await.expect("free");
        let other = readers[1].acquire().await.expect("shared");
        let writer = Lock::write(&ann, "/rw").await.expect("made");
        assert_eq!(writer.acquire_within(Duration::from_millis(100)).await.err(), Some(LockError::TimedOut));
        one.release().await;
        other.release().await;
        timeout(PATIENCE, writer.acquire()).await.expect("in time").expect("free");
    });
}
