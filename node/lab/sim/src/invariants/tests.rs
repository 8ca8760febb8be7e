//! The invariants are tested as well: each rule speaks up at what breaks it, and is silent at what does not.

use node_core::io::{Event, StoreOp};
use node_core::{Phase, Role, Status};
use node_wire::client::OpCode;
use node_wire::ids::{Epoch, Round, ServerId, SessionId, Zxid};
use node_wire::txn::{Entry, Txn, TxnHeader};

use super::{Found, Invariants};
use crate::outcome::Rule;

fn entry(epoch: u32, counter: u32, mark: i32) -> Entry {
    let txn = Txn::Error { code: mark };
    let zxid = Zxid::new(Epoch(epoch), counter);
    let header =
        TxnHeader { session: SessionId(1), cxid: cxid(epoch, counter), zxid, time_ms: 0, kind: txn.kind() };
    Entry::new(header, txn, None)
}

/// The request that an entry is the transaction of.
fn cxid(epoch: u32, counter: u32) -> i32 {
    i32::try_from(epoch * 100 + counter).expect("small")
}

fn append(epoch: u32, counter: u32) -> StoreOp {
    StoreOp::Append(entry(epoch, counter, 0))
}

fn zxid(epoch: u32, counter: u32) -> Zxid {
    Zxid::new(Epoch(epoch), counter)
}

/// An empty log, found on a disk.
fn found(accepted: Epoch, interrupted: Option<&StoreOp>) -> Found<'_> {
    Found { base: Zxid::ZERO, entries: &[], accepted, current: Epoch::ZERO, interrupted }
}

/// A member whose epoch is established and that has applied so much.
fn status(role: Role, epoch: u32, applied: Zxid) -> Status {
    Status {
        observes: false,
        voters: 3,
        role,
        phase: Phase::Broadcast,
        established: true,
        current_epoch: Epoch(epoch),
        accepted_epoch: Epoch(epoch),
        last_logged: applied,
        last_applied: applied,
        digest: 0,
        znodes: 1,
        read_only: false,
        sessions: 0,
        local_sessions: 0,
        ephemerals: 0,
        clients: 0,
        outstanding: 0,
        synced_followers: 0,
        synced_observers: 0,
        learners: 0,
        pending_syncs: 0,
        data_size: 0,
        watches: 0,
    }
}

/// Three members of which the first proposed these entries, and all hold them. It delivered each epoch's
/// before it began the next.
fn ensemble_with(entries: &[(u32, u32)]) -> Invariants {
    let mut invariants = Invariants::new(3);
    let mut last = Zxid::ZERO;
    for (epoch, counter) in entries {
        if last.epoch() < Epoch(*epoch) {
            invariants.check_deliveries(0, last, 0).expect("in order");
        }
        last = zxid(*epoch, *counter);
        for host in 0..3 {
            invariants.asked(SessionId(1), cxid(*epoch, *counter), OpCode::SetData.code());
            invariants.stores(host, &StoreOp::CurrentEpoch(Epoch(*epoch)), false).expect("an epoch");
            invariants.stores(host, &append(*epoch, *counter), host == 0).expect("a proposal of a leader");
            invariants.stored(host, &append(*epoch, *counter)).expect("nothing but an entry");
        }
    }
    invariants
}

/// A member replaces its log by these entries, whatever they are worth.
fn forge(invariants: &mut Invariants, host: usize, entries: &[(u32, u32)]) {
    invariants.views[host].logged = super::Shadow::default();
    for (epoch, counter) in entries {
        invariants.views[host].logged.follow(&append(*epoch, *counter));
    }
}

/// Three members, of which the first proposed an entry and the others logged it; some disks hold it.
fn ensemble(holders: usize) -> Invariants {
    let mut invariants = Invariants::new(3);
    invariants.asked(SessionId(1), cxid(1, 1), OpCode::SetData.code());
    for host in 0..3 {
        invariants.stores(host, &StoreOp::CurrentEpoch(Epoch(1)), false).expect("an epoch");
        invariants.stores(host, &append(1, 1), host == 0).expect("a proposal of a leader");
        if host < holders {
            invariants.stored(host, &append(1, 1)).expect("nothing but an entry");
        }
    }
    invariants
}

#[test]
fn leadership2_is_broken_by_two_leaders_of_one_epoch_one_after_the_other() {
    let mut invariants = Invariants::new(3);
    let event = |leader| Event::Established { leader: ServerId(leader), epoch: Epoch(4) };
    invariants.told(0, &event(1)).expect("the first leader");
    invariants.told(1, &event(1)).expect("a follower of it");
    assert_eq!(invariants.told(2, &event(3)).unwrap_err().0, Rule::Leadership2);
}

#[test]
fn integrity_is_broken_by_an_entry_that_no_leader_proposed() {
    let mut invariants = Invariants::new(3);
    assert_eq!(invariants.stores(1, &append(1, 1), false).unwrap_err().0, Rule::Integrity);
}

#[test]
fn integrity_is_broken_by_a_zxid_given_twice() {
    let mut invariants = ensemble(0);
    invariants.stores(1, &StoreOp::Truncate(Zxid::ZERO), true).expect("a truncation");
    let other = StoreOp::Append(entry(1, 1, -1));
    assert_eq!(invariants.stores(1, &other, true).unwrap_err().0, Rule::Integrity);
}

#[test]
fn a_proposal_beyond_its_leaders_epoch_is_a_violation() {
    let mut invariants = ensemble(3);
    invariants.stores(0, &append(1, 2), true).expect("the next one of its epoch");
    assert_eq!(invariants.stores(0, &append(1, 4), true).unwrap_err().0, Rule::Numbering);
    let mut invariants = ensemble(3);
    assert_eq!(invariants.stores(0, &append(2, 0), true).unwrap_err().0, Rule::Numbering);
}

#[test]
fn durability_is_broken_by_a_commit_that_is_not_on_the_disks_of_a_quorum() {
    let mut invariants = ensemble(2);
    assert_eq!(invariants.check_deliveries(0, zxid(1, 1), 7), Ok(1));
    let mut invariants = ensemble(1);
    assert_eq!(invariants.check_deliveries(0, zxid(1, 1), 7).unwrap_err().0, Rule::Durability);
}

#[test]
fn same_tree_is_broken_by_another_digest_at_the_same_place() {
    let mut invariants = ensemble(3);
    invariants.check_deliveries(0, zxid(1, 1), 7).expect("the first one there");
    assert_eq!(invariants.check_deliveries(1, zxid(1, 1), 8).unwrap_err().0, Rule::SameTree);
}

#[test]
fn prefix_consistency_is_broken_by_another_entry_at_the_same_place() {
    let mut invariants = ensemble(3);
    invariants.check_deliveries(0, zxid(1, 1), 7).expect("the first one there");
    invariants.stores(2, &StoreOp::Truncate(Zxid::ZERO), false).expect("a truncation");
    invariants.stores(2, &StoreOp::CurrentEpoch(Epoch(2)), true).expect("its epoch");
    invariants.stores(2, &append(2, 1), true).expect("a proposal of a later leader");
    assert_eq!(invariants.check_deliveries(2, zxid(2, 1), 9).unwrap_err().0, Rule::PrefixConsistency);
}

#[test]
fn durability_is_broken_by_a_later_leader_without_a_committed_entry() {
    let mut invariants = ensemble(2);
    invariants.check_deliveries(0, zxid(1, 1), 7).expect("a commit");
    invariants.stores(2, &StoreOp::Truncate(Zxid::ZERO), false).expect("a truncation");
    let event = |epoch| Event::Established { leader: ServerId(3), epoch: Epoch(epoch) };
    assert_eq!(invariants.told(2, &event(2)).unwrap_err().0, Rule::Durability);
}

#[test]
fn a_recovery_that_forgets_what_was_durable_is_a_violation() {
    let mut invariants = ensemble(1);
    let nothing = found(Epoch::ZERO, None);
    assert_eq!(invariants.recovers(0, &nothing).unwrap_err().0, Rule::Recovery);
    invariants.recovers(1, &nothing).expect("it was never durable there");
}

#[test]
fn a_crash_in_the_middle_of_a_truncation_may_take_what_it_truncates() {
    let mut invariants = ensemble(1);
    let op = StoreOp::Truncate(Zxid::ZERO);
    invariants.recovers(0, &found(Epoch::ZERO, Some(&op))).expect("the truncation was under way");
}

#[test]
fn leadership1_is_broken_by_two_that_lead_at_once() {
    let mut invariants = Invariants::new(3);
    invariants.stepped(0, &status(Role::Leading, 4, Zxid::ZERO)).expect("the only one");
    invariants.stepped(1, &status(Role::Leading, 3, Zxid::ZERO)).expect("of another epoch");
    let second = invariants.stepped(2, &status(Role::Leading, 4, Zxid::ZERO));
    assert_eq!(second.unwrap_err().0, Rule::Leadership1);
}

#[test]
fn leadership2_is_broken_by_a_second_leader_after_the_first_one_died() {
    let mut invariants = Invariants::new(3);
    invariants.stepped(0, &status(Role::Leading, 4, Zxid::ZERO)).expect("the only one");
    invariants.ended(0);
    let second = invariants.stepped(2, &status(Role::Leading, 4, Zxid::ZERO));
    assert_eq!(second.unwrap_err().0, Rule::Leadership2);
}

#[test]
fn agreement_is_broken_by_a_tree_that_ends_outside_of_the_sequence() {
    let mut invariants = ensemble_with(&[(1, 1), (2, 1)]);
    invariants.check_deliveries(0, zxid(2, 1), 0).expect("two commits");
    invariants.views[2].logged = super::Shadow::recovered(zxid(1, 5), &[]);
    assert_eq!(invariants.check_deliveries(2, zxid(1, 5), 0).unwrap_err().0, Rule::Agreement);
}

#[test]
fn total_order_is_broken_by_an_entry_of_another_epoch_that_is_left_out() {
    let mut invariants = ensemble_with(&[(1, 1), (2, 1)]);
    invariants.check_deliveries(0, zxid(2, 1), 0).expect("two commits");
    forge(&mut invariants, 2, &[(2, 1)]);
    assert_eq!(invariants.check_deliveries(2, zxid(2, 1), 0).unwrap_err().0, Rule::TotalOrder);
}

#[test]
fn local_primary_order_is_broken_by_a_gap_within_an_epoch() {
    let mut invariants = ensemble_with(&[(1, 1), (1, 2), (1, 3)]);
    forge(&mut invariants, 1, &[(1, 1), (1, 3)]);
    assert_eq!(invariants.check_deliveries(1, zxid(1, 3), 0).unwrap_err().0, Rule::LocalPrimaryOrder);
}

#[test]
fn global_primary_order_is_broken_by_an_earlier_epoch_behind_a_later_one() {
    let invariants = ensemble_with(&[(1, 1), (2, 1)]);
    assert!(invariants.check_global_primary_order(1, zxid(1, 1), zxid(2, 1)).is_ok());
    let finding = invariants.check_global_primary_order(1, zxid(2, 1), zxid(1, 1));
    assert_eq!(finding.unwrap_err().0, Rule::GlobalPrimaryOrder);
}

#[test]
fn primary_integrity_is_broken_by_a_primary_that_broadcasts_too_soon() {
    let mut invariants = ensemble_with(&[(1, 1)]);
    invariants.stepped(1, &status(Role::Following(ServerId(1)), 1, zxid(1, 1))).expect("a commit");
    invariants.stores(2, &StoreOp::CurrentEpoch(Epoch(2)), true).expect("its epoch");
    invariants.stores(2, &append(2, 1), true).expect("a proposal of a later leader");
    let early = invariants.stepped(2, &status(Role::Leading, 2, Zxid::ZERO));
    assert_eq!(early.unwrap_err().0, Rule::PrimaryIntegrity);
}

#[test]
fn primary_integrity_is_broken_by_what_is_first_delivered_after_a_later_primary_broadcast() {
    let mut invariants = ensemble_with(&[(1, 1)]);
    invariants.stores(2, &StoreOp::CurrentEpoch(Epoch(2)), true).expect("its epoch");
    invariants.stores(2, &append(2, 1), true).expect("a proposal of a later leader");
    let late = invariants.stepped(1, &status(Role::Following(ServerId(1)), 1, zxid(1, 1)));
    assert_eq!(late.unwrap_err().0, Rule::PrimaryIntegrity);
}

#[test]
fn durability_is_broken_by_a_commit_that_disks_have_lost_at_the_end() {
    let mut invariants = ensemble_with(&[(1, 1)]);
    invariants.check_deliveries(0, zxid(1, 1), 0).expect("a commit");
    invariants.check_acknowledged().expect("on all disks");
    for host in 0..2 {
        invariants.stored(host, &StoreOp::Truncate(Zxid::ZERO)).expect("a truncation");
    }
    assert_eq!(invariants.check_acknowledged().unwrap_err().0, Rule::Durability);
}

#[test]
fn a_recovery_that_forgets_an_epoch_is_a_violation() {
    let mut invariants = Invariants::new(3);
    invariants.stored(0, &StoreOp::AcceptedEpoch(Epoch(3))).expect("a promise");
    invariants.recovers(0, &found(Epoch(4), None)).expect("the next one may have been written");
    invariants.stored(0, &StoreOp::AcceptedEpoch(Epoch(5))).expect("a promise");
    assert_eq!(invariants.recovers(0, &found(Epoch(4), None)).unwrap_err().0, Rule::Recovery);
}

#[test]
fn a_recovery_that_takes_rot_for_an_entry_is_a_violation() {
    let mut invariants = ensemble(0);
    let rotten = [entry(1, 1, -7)];
    let found = Found { entries: &rotten, ..found(Epoch(1), None) };
    assert_eq!(invariants.recovers(0, &found).unwrap_err().0, Rule::Recovery);
}

#[test]
fn a_sound_history_breaks_nothing() {
    let mut invariants = ensemble_with(&[(1, 1), (1, 2), (2, 1)]);
    for host in [1, 2, 0] {
        for applied in [zxid(1, 2), zxid(2, 1)] {
            invariants.stepped(host, &status(Role::Following(ServerId(1)), 2, applied)).expect("in order");
        }
    }
    invariants.check_acknowledged().expect("on all disks");
}

/// Three members; the first leads epoch 2, whose history is one entry.
fn epoch_of_one_entry() -> Invariants {
    let mut invariants = ensemble(1);
    invariants.stores(0, &StoreOp::CurrentEpoch(Epoch(2)), true).expect("an epoch begins");
    invariants
}

#[test]
fn an_epoch_on_disk_without_the_history_it_vouches_for_is_a_violation() {
    let mut invariants = epoch_of_one_entry();
    let epoch = StoreOp::CurrentEpoch(Epoch(2));
    assert_eq!(invariants.stored(1, &epoch).unwrap_err().0, Rule::Vouching);
    invariants.stored(2, &append(1, 1)).expect("nothing but an entry");
    invariants.stored(2, &epoch).expect("the history is there");
}

#[test]
fn an_epoch_on_disk_behind_more_than_its_history_is_a_violation() {
    let mut invariants = epoch_of_one_entry();
    let epoch = StoreOp::CurrentEpoch(Epoch(2));
    invariants.stored(1, &append(1, 1)).expect("nothing but an entry");
    invariants.stored(1, &append(1, 2)).expect("nothing but an entry");
    assert_eq!(invariants.stored(1, &epoch).unwrap_err().0, Rule::Vouching);
    invariants.stored(2, &append(1, 1)).expect("nothing but an entry");
    invariants.stored(2, &append(2, 1)).expect("nothing but an entry");
    invariants.stored(2, &epoch).expect("a proposal of the epoch may be there");
}

#[test]
fn a_member_that_serves_has_applied_what_it_was_told_to_be_committed() {
    let mut invariants = ensemble(3);
    invariants.hears(1, zxid(1, 1));
    invariants.check_told(1, false, Zxid::ZERO).expect("it does not serve yet");
    invariants.check_told(1, true, zxid(1, 1)).expect("it has applied it");
    assert_eq!(invariants.check_told(1, true, Zxid::ZERO).unwrap_err().0, Rule::Serving);
    let looks = Event::Looking { round: Round(2), left: None, reason: String::new() };
    invariants.told(1, &looks).expect("it left its leader");
    invariants.check_told(1, true, Zxid::ZERO).expect("what the old leader said is void");
}

#[test]
fn a_member_that_answers_while_no_epoch_stands_is_a_violation() {
    let invariants = ensemble(3);
    invariants.answers(0, true).expect("it serves");
    assert_eq!(invariants.answers(0, false).unwrap_err().0, Rule::Serving);
}
