//! Watches that are left again on another member count from now on: what changed since the client looked is
//! told to nobody.

use bytes::BytesMut;
use node_core::io::{Effect, Input, Now};
use node_wire::client::OpCode;

use crate::frames::asks;
use crate::wrapper::{Inner, Wrapper};
use crate::{Spec, USUAL};

pub(crate) static SPEC: Spec = Spec {
    name: "watch-forgets-past",
    origin: "a failover that loses events",
    summary: "setWatches does not tell what changed meanwhile",
    wrapper: |_| Some(Box::new(CountsFromNow)),
    recipe: Err("needs clients that watch, and what they must be told"),
    ..USUAL
};

#[derive(Clone, Debug, Hash)]
struct CountsFromNow;

impl Wrapper for CountsFromNow {
    fn step(&mut self, inner: &mut Inner, now: Now, mut input: Input, out: &mut Vec<Effect>) {
        if let Input::ClientRequest { request, .. } = &mut input
            && (asks(request, OpCode::SetWatches) || asks(request, OpCode::SetWatches2))
            && request.body.len() >= 8
        {
            // What the client has seen comes first: everything.
            let mut body = BytesMut::with_capacity(request.body.len());
            body.extend_from_slice(&i64::MAX.to_be_bytes());
            body.extend_from_slice(&request.body[8..]);
            request.body = body.freeze();
        }
        inner.step(now, input, out);
    }
}
