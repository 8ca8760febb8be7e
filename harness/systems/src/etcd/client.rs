//! The client: one connection to one member, an operation at a time.

use std::net::SocketAddr;
use std::time::Duration;

use workloads::{Op, Outcome};

use super::gateway::{Gateway, Reply};
use super::{mapping, status};
use crate::Async;
use crate::client::{Client, Connected, Itself, within};

/// A client. What the history calls its session has no counterpart in etcd: it is the client itself, because
/// a client that asks for linearizable answers is never shown a store that goes back.
pub(super) struct GatewayClient {
    itself: Itself,
    gateway: Option<Gateway>,
}

impl GatewayClient {
    /// The client of that number.
    pub(super) fn new(number: u64) -> Self {
        Self { itself: Itself::of(number), gateway: None }
    }

    /// Connects to a member that knows a leader. One that knows none would keep every operation until its
    /// time is over.
    async fn connect_to(&mut self, member: SocketAddr) -> Connected {
        let mut gateway = match Gateway::connect(member).await {
            Ok(gateway) => gateway,
            Err(error) => return Connected::Refused(error.to_string()),
        };
        if !status::knows_a_leader(&mut gateway).await {
            return Connected::Refused("the member knows no leader".to_owned());
        }
        self.gateway = Some(gateway);
        self.itself.is_connected()
    }

    async fn send(&mut self, op: &Op, patience: Duration) -> Outcome {
        let Some(asked) = mapping::asked(op) else { return mapping::unsupported(op) };
        let Some(gateway) = &mut self.gateway else { return Outcome::not_sent(op, "not connected") };
        let body = asked.body.to_string().into_bytes();
        let reply = match tokio::time::timeout(patience, gateway.post(asked.path, body)).await {
            Ok(reply) => reply,
            Err(_) => {
                // Its answer would be taken for that of the next request.
                self.gateway = None;
                Reply::Lost("no answer in time".to_owned())
            }
        };
        mapping::outcome(op, &reply)
    }
}

impl Client for GatewayClient {
    fn connect(&mut self, member: SocketAddr, patience: Duration) -> Async<'_, Connected> {
        Box::pin(within(patience, self.connect_to(member)))
    }

    fn is_connected(&self) -> bool {
        self.gateway.as_ref().is_some_and(Gateway::stands)
    }

    fn broken(&self) -> Async<'_, ()> {
        Box::pin(async {
            match &self.gateway {
                Some(gateway) => gateway.over().await,
                None => std::future::pending().await,
            }
        })
    }

    fn session(&self) -> Option<u64> {
        self.itself.session()
    }

    fn perform<'a>(&'a mut self, op: &'a Op, patience: Duration) -> Async<'a, Outcome> {
        Box::pin(self.send(op, patience))
    }

    fn leave(&mut self) {
        self.gateway = None;
    }

    fn forget(&mut self) {
        self.gateway = None;
        self.itself.forgets();
    }
}
