//! A tree that is taken over whole has no quotas: nobody looks for them in it.

use node_core::Rules;
use node_core::tree::Tree;
use node_wire::snapshot::Image;

use crate::{Spec, USUAL};

pub(crate) static SPEC: Spec = Spec {
    name: "quota-forgotten",
    origin: "what is in no transaction is not in a snapshot",
    summary: "a member that starts from a snapshot counts nothing",
    rules: &QuotaForgotten,
    recipe: Err("needs clients that set limits"),
    ..USUAL
};

#[derive(Debug)]
struct QuotaForgotten;

impl Rules for QuotaForgotten {
    fn restore(&self, image: &Image) -> Tree {
        let mut tree = Tree::of_nodes(image);
        tree.find_owners();
        tree
    }
}
