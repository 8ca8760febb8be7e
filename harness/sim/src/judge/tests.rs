//! The judge itself is judged: each rule speaks up at what breaks it, and is silent at what does not.

use node_core::io::{Event, StoreOp};
use node_wire::client::OpCode;
use node_wire::ids::{Epoch, Round, ServerId, SessionId, Zxid};
use node_wire::txn::{Entry, Txn, TxnHeader};

use super::{Found, Judge};
use crate::outcome::Rule;

fn entry(epoch: u32, counter: u32, mark: i32) -> Entry {
    let txn = Txn::Error { code: mark };
    let zxid = Zxid::new(Epoch(epoch), counter);
    let header = TxnHeader { session: SessionId(1), cxid: 1, zxid, time_ms: 0, kind: txn.kind() };
    Entry::new(header, txn, None)
}

fn append(epoch: u32, counter: u32) -> StoreOp {
    StoreOp::Append(entry(epoch, counter, 0))
}

fn zxid(epoch: u32, counter: u32) -> Zxid {
    Zxid::new(Epoch(epoch), counter)
}

/// Three members, of which the first proposed an entry and the others logged it; some disks hold it.
fn ensemble(holders: usize) -> Judge {
    let mut judge = Judge::new(3);
    judge.asked(SessionId(1), 1, OpCode::SetData.code());
    for host in 0..3 {
        judge.stores(host, &StoreOp::CurrentEpoch(Epoch(1)), false).expect("an epoch");
        judge.stores(host, &append(1, 1), host == 0).expect("a proposal of a leader");
        if host < holders {
            judge.stored(host, &append(1, 1)).expect("nothing but an entry");
        }
    }
    judge
}

#[test]
fn two_leaders_of_one_epoch_are_a_violation() {
    let mut judge = Judge::new(3);
    let event = |leader| Event::Established { leader: ServerId(leader), epoch: Epoch(4) };
    judge.told(0, &event(1)).expect("the first leader");
    judge.told(1, &event(1)).expect("a follower of it");
    assert_eq!(judge.told(2, &event(3)).unwrap_err().0, Rule::LeaderPerEpoch);
}

#[test]
fn an_entry_that_no_leader_proposed_is_a_violation() {
    let mut judge = Judge::new(3);
    assert_eq!(judge.stores(1, &append(1, 1), false).unwrap_err().0, Rule::Integrity);
}

#[test]
fn a_zxid_given_twice_is_a_violation() {
    let mut judge = ensemble(0);
    judge.stores(1, &StoreOp::Truncate(Zxid::ZERO), true).expect("a truncation");
    let other = StoreOp::Append(entry(1, 1, -1));
    assert_eq!(judge.stores(1, &other, true).unwrap_err().0, Rule::Integrity);
}

#[test]
fn a_proposal_beyond_its_leaders_epoch_is_a_violation() {
    let mut judge = ensemble(3);
    judge.stores(0, &append(1, 2), true).expect("the next one of its epoch");
    assert_eq!(judge.stores(0, &append(1, 4), true).unwrap_err().0, Rule::Numbering);
    let mut judge = ensemble(3);
    assert_eq!(judge.stores(0, &append(2, 0), true).unwrap_err().0, Rule::Numbering);
}

#[test]
fn what_is_committed_is_on_the_disks_of_a_quorum() {
    let mut judge = ensemble(2);
    assert_eq!(judge.check_prefix(0, zxid(1, 1), 7), Ok(1));
    let mut judge = ensemble(1);
    assert_eq!(judge.check_prefix(0, zxid(1, 1), 7).unwrap_err().0, Rule::Durability);
}

#[test]
fn equal_places_mean_equal_trees() {
    let mut judge = ensemble(3);
    judge.check_prefix(0, zxid(1, 1), 7).expect("the first one there");
    assert_eq!(judge.check_prefix(1, zxid(1, 1), 8).unwrap_err().0, Rule::Agreement);
}

#[test]
fn members_that_apply_different_entries_are_a_violation() {
    let mut judge = ensemble(3);
    judge.check_prefix(0, zxid(1, 1), 7).expect("the first one there");
    judge.stores(2, &StoreOp::Truncate(Zxid::ZERO), false).expect("a truncation");
    judge.stores(2, &StoreOp::CurrentEpoch(Epoch(2)), true).expect("its epoch");
    judge.stores(2, &append(2, 1), true).expect("a proposal of a later leader");
    assert_eq!(judge.check_prefix(2, zxid(2, 1), 9).unwrap_err().0, Rule::PrefixConsistency);
}

#[test]
fn a_later_leader_without_a_committed_entry_is_a_violation() {
    let mut judge = ensemble(2);
    judge.check_prefix(0, zxid(1, 1), 7).expect("a commit");
    judge.stores(2, &StoreOp::Truncate(Zxid::ZERO), false).expect("a truncation");
    let event = |epoch| Event::Established { leader: ServerId(3), epoch: Epoch(epoch) };
    assert_eq!(judge.told(2, &event(2)).unwrap_err().0, Rule::Durability);
}

#[test]
fn a_recovery_that_forgets_what_was_durable_is_a_violation() {
    let mut judge = ensemble(1);
    let nothing = Found { base: Zxid::ZERO, entries: &[], interrupted: None };
    assert_eq!(judge.recovers(0, &nothing).unwrap_err().0, Rule::Recovery);
    judge.recovers(1, &nothing).expect("it was never durable there");
}

#[test]
fn a_crash_in_the_middle_of_a_truncation_may_take_what_it_truncates() {
    let mut judge = ensemble(1);
    let op = StoreOp::Truncate(Zxid::ZERO);
    let found = Found { base: Zxid::ZERO, entries: &[], interrupted: Some(&op) };
    judge.recovers(0, &found).expect("the truncation was under way");
}

/// Three members; the first leads epoch 2, whose history is one entry.
fn epoch_of_one_entry() -> Judge {
    let mut judge = ensemble(1);
    judge.stores(0, &StoreOp::CurrentEpoch(Epoch(2)), true).expect("an epoch begins");
    judge
}

#[test]
fn an_epoch_on_disk_without_the_history_it_vouches_for_is_a_violation() {
    let mut judge = epoch_of_one_entry();
    let epoch = StoreOp::CurrentEpoch(Epoch(2));
    assert_eq!(judge.stored(1, &epoch).unwrap_err().0, Rule::Vouching);
    judge.stored(2, &append(1, 1)).expect("nothing but an entry");
    judge.stored(2, &epoch).expect("the history is there");
}

#[test]
fn an_epoch_on_disk_behind_more_than_its_history_is_a_violation() {
    let mut judge = epoch_of_one_entry();
    let epoch = StoreOp::CurrentEpoch(Epoch(2));
    judge.stored(1, &append(1, 1)).expect("nothing but an entry");
    judge.stored(1, &append(1, 2)).expect("nothing but an entry");
    assert_eq!(judge.stored(1, &epoch).unwrap_err().0, Rule::Vouching);
    judge.stored(2, &append(1, 1)).expect("nothing but an entry");
    judge.stored(2, &append(2, 1)).expect("nothing but an entry");
    judge.stored(2, &epoch).expect("a proposal of the epoch may be there");
}

#[test]
fn a_member_that_serves_has_applied_what_it_was_told_to_be_committed() {
    let mut judge = ensemble(3);
    judge.hears(1, zxid(1, 1));
    judge.check_told(1, false, Zxid::ZERO).expect("it does not serve yet");
    judge.check_told(1, true, zxid(1, 1)).expect("it has applied it");
    assert_eq!(judge.check_told(1, true, Zxid::ZERO).unwrap_err().0, Rule::Serving);
    let looks = Event::Looking { round: Round(2), left: None, reason: String::new() };
    judge.told(1, &looks).expect("it left its leader");
    judge.check_told(1, true, Zxid::ZERO).expect("what the old leader said is void");
}

#[test]
fn a_member_that_answers_while_no_epoch_stands_is_a_violation() {
    let judge = ensemble(3);
    judge.answers(0, true).expect("it serves");
    assert_eq!(judge.answers(0, false).unwrap_err().0, Rule::Serving);
}
