//! etcd, spoken to through its JSON gateway, which is HTTP.
//!
//! A register is a key whose value is decimal text, a list a key whose value is the list, and both are
//! compared by their version. A set is every key below a prefix. What an answer claims: the key's version and
//! the revision of the change behind it, and the revision up to which the answering member had seen the
//! store. Reads go through a quorum (that is etcd's default), so everything is promised to be linearizable.
//!
//! Members are dialled at one address by everybody ([`Dialling::Together`]): a cluster's identity in etcd is
//! made of the addresses of its members, so all must be told the same. What they are is read from their logs
//! (a leader lost, a leader elected) and asked for every few milliseconds (who leads, in which term).
//!
//! - `mapping`: operations as requests, answers as outcomes; `gateway`: one connection; `client`: the client.
//! - `status`: what a member answers about itself; `log_lines`: what it logs that is news; `launch`: its
//!   start.

mod client;
mod gateway;
mod launch;
mod log_lines;
mod mapping;
mod status;

use std::sync::Arc;
use std::time::Duration;

use checker::history::Function;
use checker::orders::Orders;
use runs::cluster_kind::ClusterKind;
use runs::comes_back::{ComesBack, When};
use runs::events::Said;
use runs::member::MemberId;
use runs::results::SystemInfo;
use runs::views::Stand;

use crate::Async;
use crate::client::{Client, ClientSettings};
use crate::look::{Look, PortState, Whereabouts};
use crate::system::{Dialling, Installation, System, Traits, Wanted};

/// etcd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Etcd;

/// Its name on the command line.
const NAME: &str = "etcd";

impl System for Etcd {
    fn name(&self) -> String {
        NAME.to_owned()
    }

    fn traits(&self) -> Traits {
        Traits {
            whose: NAME,
            clusters: &[ClusterKind::Process],
            tells_synced: false,
            replaces: false,
            observers: false,
            takes_bugs: false,
            tells_leader: true,
            usual_interval: Duration::from_secs(8),
            usual_peer_timeout: Duration::from_millis(500),
            peer_ports: 1,
            clients_at: None,
            is_a_group: false,
            dialling: Dialling::Together,
            introduced_at: None,
        }
    }

    fn lacks(&self, function: Function) -> Option<String> {
        match function {
            Function::READ | Function::WRITE | Function::CAS | Function::ADD | Function::APPEND => None,
            Function::CREATE | Function::DELETE => Some("etcd gives out no numbered names".to_owned()),
            Function::ACQUIRE | Function::STORE | Function::RELEASE | Function::ENTER | Function::LEAVE => {
                Some("the library that applications hold by does not speak to etcd".to_owned())
            }
            Function::ENQUEUE | Function::DEQUEUE | Function::ACKNOWLEDGE => {
                Some("etcd has no queues".to_owned())
            }
            Function::TXN => Some(
                "the built-in client asks etcd one thing for each operation; the client of `harness init \
                 etcd` does transactions"
                    .to_owned(),
            ),
            Function::WATCH => Some(
                "this client of etcd does not watch; `harness init etcd` writes one that does".to_owned(),
            ),
            Function::EXISTS | Function::OPEN | Function::CLOSE | Function::ABANDON => {
                Some("this client of etcd has no sessions".to_owned())
            }
            other => Some(format!("this client of etcd has no request for {other}")),
        }
    }

    fn comes_back(&self) -> ComesBack {
        let source = "https://etcd.io/docs/v3.5/op-guide/failures/".to_owned();
        ComesBack { when: When::WithQuorum, source, ..ComesBack::default() }
    }

    /// A follower waits for one to two of its election time-outs, drawn anew for each term (Ongaro's thesis,
    /// 3.4).
    fn patience(&self, wanted: &Wanted) -> Duration {
        wanted.peer_timeout * 2
    }

    fn described(&self, found: Option<&dyn Installation>) -> SystemInfo {
        let version = found.and_then(|found| found.versions().remove(NAME)).unwrap_or_default();
        let name = format!("{NAME} {version}").trim_end().to_owned();
        let orders =
            Orders { seen: "revision".to_owned(), changed: "mod_revision".to_owned(), hexadecimal: false };
        SystemInfo { name: name.clone(), before: name, orders, asked_serves: true, ..SystemInfo::default() }
    }

    fn heard(&self, line: &[u8], member: MemberId, stand: Stand) -> Option<Said> {
        log_lines::heard(line, member, stand)
    }

    fn looks(&self, members: &[Whereabouts]) -> Vec<Box<dyn Look>> {
        status::looks(members)
    }

    fn port(&self, member: &Whereabouts) -> Async<'static, PortState> {
        Box::pin(status::port(member.client))
    }

    fn client(&self, settings: ClientSettings) -> Box<dyn Client> {
        Box::new(client::GatewayClient::new(settings.number))
    }

    fn install(&self, wanted: &Wanted) -> Result<Arc<dyn Installation>, String> {
        Ok(Arc::new(launch::Installed::find(wanted)?))
    }
}
