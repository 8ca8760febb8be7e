//! A tree that is taken over whole comes without its access control lists.

use node_core::io::{Effect, Input, Now};
use node_wire::snapshot::OPEN_ACL;

use crate::wrapper::{Inner, Wrapper};
use crate::{Spec, USUAL};

pub(crate) static SPEC: Spec = Spec {
    name: "lists-lost-in-snap",
    origin: "what is in no transaction is not in a snapshot",
    summary: "a tree that is taken over whole lets everybody do everything",
    wrapper: |_| Some(Box::new(OpenToAll)),
    recipe: Err("needs clients that are not let in everywhere"),
    ..USUAL
};

#[derive(Clone, Debug, Hash)]
struct OpenToAll;

impl Wrapper for OpenToAll {
    fn step(&mut self, inner: &mut Inner, now: Now, mut input: Input, out: &mut Vec<Effect>) {
        if let Input::Image { image, .. } = &mut input {
            image.acls.clear();
            for node in &mut image.nodes {
                node.acl = OPEN_ACL;
            }
        }
        inner.step(now, input, out);
    }
}
