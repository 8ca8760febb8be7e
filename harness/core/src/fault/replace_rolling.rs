//! One member after the other, replaced by the other kind of server, and back.

use crate::mechanism::replace::{REPLACE, Replace};
use rand::seq::IndexedRandom;
use runs::member::MemberId;

use super::Fault;
use super::scene::{Draw, Resolved};

/// The fault.
pub(super) const FAULT: Fault = Fault {
    name: "replace-rolling",
    about: "ends one member and starts the other kind of server on its data, the leader last, and then back",
    mechanism: &REPLACE,
    fewest_nodes: (1, ""),
    loses_unsynced: false,
    aim,
};

/// The next member of a round: any follower that is still to come, and the leader when nobody else is, as
/// operators do.
fn aim(draw: &mut Draw<'_>) -> Option<Resolved> {
    let scene = draw.scene;
    let to_come: Vec<MemberId> =
        draw.there.iter().copied().filter(|member| !scene.replaced.contains(member)).collect();
    let followers: Vec<MemberId> =
        to_come.iter().copied().filter(|member| Some(*member) != scene.leader).collect();
    let target = followers.choose(&mut draw.rng).or(to_come.first()).copied()?;
    let server = *scene.servers.get(&target)?;
    let by = server.other();
    let sentence = format!("replace {}, {server}, by {by}", scene.names(&[target]));
    Some(scene.resolved(vec![target], Replace { members: vec![target], by }, Vec::new(), sentence))
}
