//! A compare-and-set that fails is answered at once, by what the member that got it has committed.

use node_core::MemberView;
use node_core::io::{Effect, Input, Now};
use node_wire::client::{ErrorCode, OpCode, Request, SetDataRequest};
use node_wire::jute::Reader;

use crate::frames::{Unanswered, asks, refusal};
use crate::wrapper::{Inner, Wrapper};
use crate::{Recipe, Spec, USUAL};

pub(crate) static SPEC: Spec = Spec {
    name: "early-cas-refusal",
    origin: "refusals out of order",
    summary: "a failed compare-and-set is answered before its place in the order",
    wrapper: |_| Some(Box::new(RefusesAtOnce::default())),
    recipe: Ok(Recipe {
        nemesis: "partition-leader,pause-leader",
        workload: "register",
        flags: "--keys 2 --rate 2000",
        tries: 5,
    }),
    ..USUAL
};

#[derive(Clone, Debug, Default, Hash)]
struct RefusesAtOnce(Unanswered);

impl Wrapper for RefusesAtOnce {
    fn step(&mut self, inner: &mut Inner, now: Now, input: Input, out: &mut Vec<Effect>) {
        match &input {
            Input::ClientRequest { client, request } if inner.member.status().established => {
                if self.0.is_idle(*client) && fails(inner, request) {
                    let frame = refusal(request.xid, inner.member.applied(), ErrorCode::BadVersion);
                    out.push(Effect::Reply { client: *client, frame });
                    return;
                }
                self.0.asked(*client);
            }
            Input::ClientLost { client } => self.0.gone(*client),
            _ => {}
        }
        let before = out.len();
        inner.step(now, input, out);
        self.0.saw(&out[before..]);
    }
}

/// True for a compare-and-set that fails on the committed tree of this member, whatever is proposed and under
/// way.
fn fails(inner: &Inner, request: &Request) -> bool {
    if !asks(request, OpCode::SetData) {
        return false;
    }
    let Ok(set) = SetDataRequest::decode(&mut Reader::new(request.body.clone())) else { return false };
    let tree = inner.member.tree();
    set.version != -1 && tree.tree().node(&set.path).is_some_and(|node| node.stat.version != set.version)
}
