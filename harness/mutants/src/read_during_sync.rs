//! Reads are answered while the member looks for a leader and is being synchronized: its clients stay, and what
//! needs no leader is answered. A plain read may be old anyway; the harm is the sync before it, which has no
//! leader to go to and counts as done.

use std::collections::BTreeSet;

use node_core::Rules;
use node_core::io::{ClientId, Effect, Input, Now};
use node_wire::client::OpCode;

use crate::frames::{Unanswered, asks, synced};
use crate::wrapper::{Inner, Wrapper};
use crate::{Recipe, Spec, USUAL};

pub(crate) static SPEC: Spec = Spec {
    name: "read-during-sync",
    origin: "reads of a member that is not up to date",
    summary: "a read is answered during synchronization",
    rules: &ReadDuringSync,
    wrapper: |_| Some(Box::new(AnswersFromThePast::default())),
    recipe: Ok(Recipe {
        nemesis: "kill-one,partition-one",
        workload: "register",
        flags: "--interval 2s --rate 2000",
        tries: 5,
    }),
    ..USUAL
};

#[derive(Debug)]
struct ReadDuringSync;

impl Rules for ReadDuringSync {
    fn serves(&self, _: bool) -> bool {
        true
    }
}

#[derive(Clone, Debug, Default, Hash)]
struct AnswersFromThePast {
    unanswered: Unanswered,
    /// Clients that wait for what only a leader could do: answers leave in the order of requests.
    stuck: BTreeSet<ClientId>,
}

impl Wrapper for AnswersFromThePast {
    fn step(&mut self, inner: &mut Inner, now: Now, input: Input, out: &mut Vec<Effect>) {
        match &input {
            Input::ClientRequest { client, request } => {
                let established = inner.member.status().established;
                if !established
                    && asks(request, OpCode::Sync)
                    && !self.stuck.contains(client)
                    && self.unanswered.is_idle(*client)
                {
                    // It has no leader to go to, and counts as done.
                    let frame = synced(request, inner.member.applied());
                    out.push(Effect::Reply { client: *client, frame });
                    return;
                }
                if !established && !READS.iter().any(|op| asks(request, *op)) {
                    self.stuck.insert(*client);
                }
                if self.stuck.contains(client) {
                    return;
                }
                self.unanswered.asked(*client);
            }
            Input::ClientLost { client } => {
                self.unanswered.gone(*client);
                self.stuck.remove(client);
            }
            _ => {}
        }
        let before = out.len();
        inner.step(now, input, out);
        self.unanswered.saw(&out[before..]);
    }
}

/// What needs no leader.
const READS: [OpCode; 6] = [
    OpCode::GetData,
    OpCode::Exists,
    OpCode::GetChildren,
    OpCode::GetChildren2,
    OpCode::GetAcl,
    OpCode::Ping,
];
