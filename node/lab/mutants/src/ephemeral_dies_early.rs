//! An ephemeral goes when its client's connection does.

use bytestring::ByteString;
use node_core::MemberView;
use node_core::io::{Effect, Input, Now};
use node_wire::client::{DeleteRequest, OpCode, Request};
use node_wire::jute::encode;

use crate::frames::Sessions;
use crate::wrapper::{Inner, Wrapper};
use crate::{Recipe, Spec, USUAL};

pub(crate) static SPEC: Spec = Spec {
    name: "ephemeral-dies-early",
    origin: "session and connection confused",
    summary: "an ephemeral dies before its session",
    wrapper: |_| Some(Box::new(EndsWithConnection::default())),
    recipe: Ok(Recipe { nemesis: "kill-one,partition-one", workload: "ephemeral", flags: "", tries: 3 }),
    ..USUAL
};

#[derive(Clone, Debug, Default, Hash)]
struct EndsWithConnection(Sessions);

impl Wrapper for EndsWithConnection {
    fn step(&mut self, inner: &mut Inner, now: Now, input: Input, out: &mut Vec<Effect>) {
        let before = out.len();
        match &input {
            Input::ClientConnect { client, .. } => self.0.asked(*client),
            Input::ClientLost { client } => {
                if let Some((session, _)) = self.0.of(*client) {
                    let tree = inner.member.tree();
                    let paths: Vec<ByteString> = tree.tree().ephemerals(session).cloned().collect();
                    for path in paths {
                        let body = encode(|w| DeleteRequest { path, version: -1 }.encode(w));
                        let request = Request { xid: 0, op: OpCode::Delete.code(), body };
                        inner.step(now, Input::ClientRequest { client: *client, request }, out);
                    }
                }
                self.0.gone(*client);
            }
            _ => {}
        }
        inner.step(now, input, out);
        for effect in &out[before..] {
            match effect {
                Effect::Reply { client, frame } => self.0.replied(*client, frame),
                Effect::CloseClient { client } => self.0.gone(*client),
                _ => {}
            }
        }
    }
}
