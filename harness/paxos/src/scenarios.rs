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

/// Of Paxos.
pub const OF_PAXOS: &[Scenario] = scenarios! {
    "one-acceptor", "one acceptor decides alone: when it is down nobody knows what is chosen";
    "split-votes", "acceptors that accept only the first value: three proposers, and nothing is ever chosen";
    "conflicting-choices", "acceptors that accept everything: two values are chosen";
    "two-phases", "looking first without numbers does not help: two look, and both propose";
    "chosen", "the first phenomenon: a value is chosen, and a later proposer finds it";
    "visible", "the second phenomenon: a value is not chosen yet, is found, and gets chosen";
    "hidden", "the third phenomenon: a value is not chosen, and not found; the later one is chosen";
    "livelock", "two proposers outbid each other for ever, until a random wait lets one of them through";
    "overwritten", "a proposer that does not take over what it finds: two values are chosen";
    "forgotten-promise", "an acceptor restarts without its promise: two values are chosen";
    "late-learner", "a learner that hears of a minority first has learned nothing yet";
};

/// Of Multi-Paxos.
pub const OF_MULTI_PAXOS: &[Scenario] = scenarios! {
    "holes", "a new leader puts a no-op into the slot that nobody has heard of";
    "success", "a member that has missed a slot is told what is chosen there";
    "twice", "a client asks again: its command stands in two slots, and takes effect once";
    "alpha", "a change of the members is a command, and counts so many slots later";
    "deposed-leader", "a leader that goes on when it is deposed vouches for what was never chosen";
    "two-leaders", "two leaders at once are slow and safe";
    "primary-order", "of two outstanding slots the second is chosen without the first: no primary order";
};
