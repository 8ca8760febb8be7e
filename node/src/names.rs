//! Peers' names, looked up anew for each dial.
//!
//! A name may have no address yet when this member starts (an ensemble's containers start at different
//! moments), and another one whenever its member comes back. So nothing is remembered beyond a dial, and a
//! name without an address is a failed dial like any other.
//!
//! A dial has a deadline of some hundred milliseconds, a name server may need longer. A lookup therefore goes
//! on behind a dial that gave it up, and the next dial takes its answer over; a server that always needs 300
//! ms would else make no connection ever. What waits too long is left to its own end and asked again beside
//! it, because a resolver that stalls over a name that was gone says nothing about one that has come back.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::address::HostPort;

/// How long a lookup may be waited for, or its answer be used, from when it began.
const FRESH: Duration = Duration::from_secs(1);

/// What a resolver says.
type Answer = io::Result<Vec<SocketAddr>>;

/// Whoever knows addresses: the system, but for tests.
type Resolver = dyn Fn(HostPort) -> Pin<Box<dyn Future<Output = Answer>>>;

/// The lookups of one port.
pub(crate) struct Names {
    resolver: Box<Resolver>,
    lookups: RefCell<BTreeMap<HostPort, Rc<Lookup>>>,
}

/// One question to the resolver.
struct Lookup {
    began: Instant,
    answer: RefCell<Option<Answer>>,
    answered: Notify,
}

impl Default for Names {
    fn default() -> Self {
        Self::by(|HostPort { host, port }| {
            Box::pin(async move { Ok(tokio::net::lookup_host((host, port)).await?.collect()) })
        })
    }
}

impl fmt::Debug for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Names").finish_non_exhaustive()
    }
}

impl Names {
    fn by(resolver: impl Fn(HostPort) -> Pin<Box<dyn Future<Output = Answer>>> + 'static) -> Self {
        Self { resolver: Box::new(resolver), lookups: RefCell::default() }
    }

    /// Connects within a deadline. The kernel repeats a lost SYN only after a second, so a short deadline and
    /// a new attempt find a healed network sooner than patience would.
    pub(crate) async fn dial(&self, target: &HostPort, deadline: Duration) -> io::Result<TcpStream> {
        let connect = async {
            match target.host.parse() {
                Ok(address) => TcpStream::connect(SocketAddr::new(address, target.port)).await,
                Err(_) => TcpStream::connect(&*self.look_up(target).await?).await,
            }
        };
        match tokio::time::timeout(deadline, connect).await {
            Ok(result) => result,
            Err(_) => Err(io::ErrorKind::TimedOut.into()),
        }
    }

    /// The addresses of a name. May be dropped at any time; the lookup goes on.
    async fn look_up(&self, target: &HostPort) -> Answer {
        let lookup = self.begun(target);
        let answer = loop {
            // Asked for before the answer is looked at, so one that comes in between is not missed.
            let answered = lookup.answered.notified();
            if let Some(answer) = &*lookup.answer.borrow() {
                break match answer {
                    Ok(addresses) => Ok(addresses.clone()),
                    Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
                };
            }
            answered.await;
        };
        // Whoever waits beside us has the answer as well; whoever comes later asks anew.
        let mut lookups = self.lookups.borrow_mut();
        if lookups.get(target).is_some_and(|present| Rc::ptr_eq(present, &lookup)) {
            lookups.remove(target);
        }
        answer
    }

    /// The lookup that is under way, or a new one.
    fn begun(&self, target: &HostPort) -> Rc<Lookup> {
        let mut lookups = self.lookups.borrow_mut();
        if let Some(lookup) = lookups.get(target).filter(|lookup| lookup.began.elapsed() < FRESH) {
            return Rc::clone(lookup);
        }
        let lookup =
            Rc::new(Lookup { began: Instant::now(), answer: RefCell::default(), answered: Notify::new() });
        lookups.insert(target.clone(), Rc::clone(&lookup));
        let task = Rc::clone(&lookup);
        let resolving = (self.resolver)(target.clone());
        tokio::task::spawn_local(async move {
            let answer = resolving.await;
            task.answer.replace(Some(answer));
            task.answered.notify_waiters();
        });
        lookup
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    use tokio::sync::oneshot;

    use crate::testing::{PATIENCE, listener, local};

    /// No lookup is answered as fast as this.
    const AT_ONCE: Duration = Duration::from_millis(1);

    fn named(address: &HostPort) -> HostPort {
        HostPort::new("a.name", address.port)
    }

    fn loopback(target: &HostPort) -> Answer {
        Ok(vec![SocketAddr::from(([127, 0, 0, 1], target.port))])
    }

    #[test]
    fn a_number_is_not_looked_up() {
        local(async {
            let (_listener, address) = listener().await;
            let names = Names::by(|_| panic!("looked up"));
            names.dial(&address, PATIENCE).await.expect("connected");
        });
    }

    #[test]
    fn a_name_is_looked_up_for_each_dial() {
        local(async {
            let (_listener, address) = listener().await;
            let asked = Rc::new(Cell::new(0));
            let counter = Rc::clone(&asked);
            let names = Names::by(move |target| {
                counter.set(counter.get() + 1);
                let first = counter.get() == 1;
                Box::pin(async move {
                    if first { Err(io::Error::other("no such name")) } else { loopback(&target) }
                })
            });
            let error = names.dial(&named(&address), PATIENCE).await.expect_err("no address yet");
            assert_eq!(error.to_string(), "no such name");
            names.dial(&named(&address), PATIENCE).await.expect("it has an address now");
            names.dial(&named(&address), PATIENCE).await.expect("and still has it");
            assert_eq!(asked.get(), 3);
        });
    }

    #[test]
    fn an_answer_that_is_late_for_one_dial_serves_the_next() {
        local(async {
            let (_listener, address) = listener().await;
            let (tell, answer) = oneshot::channel::<()>();
            let answer = Cell::new(Some(answer));
            let names = Names::by(move |target| {
                let answer = answer.take().expect("asked once");
                Box::pin(async move {
                    answer.await.expect("told");
                    loopback(&target)
                })
            });
            let error = names.dial(&named(&address), AT_ONCE).await.expect_err("no answer yet");
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
            let (target, other) = (named(&address), named(&address));
            let both = async { tokio::join!(names.dial(&target, PATIENCE), names.dial(&other, PATIENCE)) };
            let ((one, two), ()) = tokio::join!(both, async { tell.send(()).expect("awaited") });
            one.expect("connected");
            two.expect("connected");
        });
    }

    #[test]
    fn the_system_knows_names() {
        local(async {
            let (_listener, address) = listener().await;
            let target = HostPort::new("localhost", address.port);
            Names::default().dial(&target, PATIENCE).await.expect("connected");
        });
    }
}
