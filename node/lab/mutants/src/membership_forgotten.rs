//! A member that starts again believes its file, and neither its snapshot nor its log.

use node_core::Rules;

use crate::{OPERATORS, Spec, USUAL};

pub(crate) static SPEC: Spec = Spec {
    name: "membership-forgotten",
    origin: "membership kept in a file alone",
    summary: "a member that starts again knows only the membership in its file",
    rules: &MembershipForgotten,
    recipe: Err(OPERATORS),
    ..USUAL
};

#[derive(Debug)]
struct MembershipForgotten;

impl Rules for MembershipForgotten {
    fn history_tells_membership(&self) -> bool {
        false
    }
}
