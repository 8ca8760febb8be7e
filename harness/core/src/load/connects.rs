//! Which members took no connection of any client, and when.

use std::collections::BTreeMap;

use runs::clock::RunNs;
use runs::member::MemberId;
use runs::numbers::NS_PER_S;
use runs::observed::Shut;

/// A member that was shut for a shorter while is not worth a line, in ns.
const WORTH_A_LINE_NS: RunNs = NS_PER_S;

/// What became of attempts to connect.
#[derive(Clone, Debug, Default)]
pub(super) struct Connects {
    /// Those that failed since the last that did not.
    now: BTreeMap<MemberId, Shut>,
    past: Vec<Shut>,
}

impl Connects {
    pub(super) fn succeeded(&mut self, member: MemberId) {
        self.past.extend(self.now.remove(&member).filter(is_long));
    }

    pub(super) fn failed(&mut self, member: MemberId, now: RunNs) {
        let shut = self.now.entry(member).or_insert(Shut {
            member: member.0,
            from_ns: now,
            to_ns: now,
            attempts: 0,
        });
        shut.to_ns = now;
        shut.attempts += 1;
    }

    /// By the moment at which it began.
    pub(super) fn shut(&self) -> Vec<Shut> {
        let mut all = self.past.clone();
        all.extend(self.now.values().copied().filter(is_long));
        all.sort_by_key(|shut| (shut.from_ns, shut.member));
        all
    }
}

fn is_long(shut: &Shut) -> bool {
    shut.to_ns - shut.from_ns >= WORTH_A_LINE_NS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_is_shut_from_the_first_attempt_that_failed_to_the_last_and_one_success_ends_that() {
        let mut connects = Connects::default();
        for second in 1..=4 {
            connects.failed(MemberId(1), second * NS_PER_S);
            connects.failed(MemberId(2), second * NS_PER_S);
        }
        connects.succeeded(MemberId(1));
        connects.failed(MemberId(1), 5 * NS_PER_S);
        connects.failed(MemberId(2), 5 * NS_PER_S);
        let shut =
            |member, to: u64, attempts| Shut { member, from_ns: NS_PER_S, to_ns: to * NS_PER_S, attempts };
        assert_eq!(connects.shut(), [shut(1, 4, 4), shut(2, 5, 5)], "one attempt alone is no while");
    }
}
