//! A watch that is to be told once stays where it was.

use std::collections::BTreeMap;

use node_core::MemberView;
use node_core::io::{ClientId, Effect, Input, Now};
use node_wire::client::{EventType, OpCode, Request, SetWatches, WatcherEvent, XID_SET_WATCHES};
use node_wire::ids::Zxid;
use node_wire::jute::encode;

use crate::frames::{event, xid_of};
use crate::wrapper::{Inner, Wrapper};
use crate::{Spec, USUAL};

pub(crate) static SPEC: Spec = Spec {
    name: "watch-not-spent",
    origin: "one-time watches that are not",
    summary: "a one-time watch is told again",
    wrapper: |_| Some(Box::new(LeftAgain::default())),
    recipe: Err("needs clients that watch, and what they must be told"),
    ..USUAL
};

/// Answers that clients did not ask for: what was left again for them.
#[derive(Clone, Debug, Default, Hash)]
struct LeftAgain(BTreeMap<ClientId, u32>);

impl LeftAgain {
    /// Passes effects on, without the answers to what was left again. The events among them.
    fn pass(&mut self, effects: Vec<Effect>, out: &mut Vec<Effect>) -> Vec<(ClientId, WatcherEvent)> {
        let mut events = Vec::new();
        for effect in effects {
            match &effect {
                Effect::Reply { client, frame } => {
                    if xid_of(frame) == Some(XID_SET_WATCHES)
                        && let Some(owed) = self.0.get_mut(client).filter(|owed| **owed > 0)
                    {
                        *owed -= 1;
                        continue;
                    }
                    events.extend(event(frame).map(|event| (*client, event)));
                }
                Effect::CloseClient { client } => {
                    self.0.remove(client);
                }
                _ => {}
            }
            out.push(effect);
        }
        events
    }
}

impl Wrapper for LeftAgain {
    fn step(&mut self, inner: &mut Inner, now: Now, input: Input, out: &mut Vec<Effect>) {
        if let Input::ClientLost { client } = &input {
            self.0.remove(client);
        }
        let mut effects = Vec::new();
        inner.step(now, input, &mut effects);
        let events = self.pass(effects, out);
        for (client, event) in events {
            let there = inner.member.tree().tree().node(&event.path).is_some();
            let (mut data, mut exist, mut child) = (Vec::new(), Vec::new(), Vec::new());
            if !there {
                exist.push(event.path);
            } else if event.kind == EventType::NodeChildrenChanged.code() {
                child.push(event.path);
            } else {
                data.push(event.path);
            }
            let watches = SetWatches {
                relative_zxid: Zxid::from_wire(i64::MAX),
                data_watches: data,
                exist_watches: exist,
                child_watches: child,
            };
            let body = encode(|w| watches.encode(w));
            let request = Request { xid: XID_SET_WATCHES, op: OpCode::SetWatches.code(), body };
            *self.0.entry(client).or_default() += 1;
            let mut effects = Vec::new();
            inner.step(now, Input::ClientRequest { client, request }, &mut effects);
            self.pass(effects, out);
        }
    }
}
