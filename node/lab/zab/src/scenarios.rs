//! Scripts that one can read aloud, each with what it shows.

use harness_protocols::entry::Scenario;

macro_rules! scenarios {
    ($($name:literal, $about:literal;)*) => {
        &[$(Scenario {
            name: $name,
            about: $about,
            script: include_str!(concat!("../scenarios/", $name, ".script")),
        }),*]
    };
}

/// All of them.
pub const ALL: &[Scenario] = scenarios! {
    "tie-by-id", "three servers without a history: the largest id is elected";
    "larger-zxid", "five servers with 9, 9, 9, 8 and 8, of which 1 and 2 fail: 3 wins over larger ids";
    "newest-follower", "of two followers of a leader that fails, 123 wins over 122";
    "late-starter", "the largest id comes late, and joins the leader that a quorum follows";
    "isolated-follower", "a follower is cut off, looks in the next round, and comes back to its leader";
    "restarted-leader", "a leader is back with a proposal that lost: it follows, and cuts it off";
    "write-through-follower", "a write by way of a follower: request, proposal, commit, answer";
    "half-is-no-quorum", "four members of which half pass for a quorum: two leaders of one epoch";
    "lonely-commit", "a leader that commits on its own word: what was delivered is lost";
    "primary-order", "of two outstanding changes nobody delivers the second without the first";
};
