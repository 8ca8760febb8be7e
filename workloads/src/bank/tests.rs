//! What is accused of a bank, and what is not.

use checker::Budget;
use checker::durability::FinalState;
use checker::history::{Event, Extent, History};
use rand::SeedableRng;

use super::*;
use crate::beside::Beside;
use crate::case::Effort;
use crate::workload::Kind;

/// A bank that moves what it is asked to, and lines about it.
struct Bank {
    accounts: Vec<i64>,
    events: Vec<Event>,
    now: u64,
}

impl Bank {
    fn new() -> Self {
        Self { accounts: vec![BEGINNING; 8], events: Vec::new(), now: 0 }
    }

    fn op(&mut self, op: &Op, outcome: &Outcome) {
        self.events.extend([op.event(1, self.now), outcome.event(op, 1, self.now + 1)]);
        self.now += 2;
    }

    fn transfer(&mut self, from: usize, to: usize, amount: i64) {
        let asked = [from, to].map(|account| i64::try_from(account).expect("small"));
        let value = Value::List([asked[0], asked[1], amount].into());
        let op = Op::said(BANK, 0, &TRANSFER_AN_AMOUNT, value);
        self.accounts[from] -= amount;
        self.accounts[to] += amount;
        self.op(&op, &Outcome::told(op.value(), None));
    }

    fn lost_transfer(&mut self) {
        let op = Op::said(BANK, 0, &TRANSFER_AN_AMOUNT, Value::List([0, 1, 3].into()));
        let mut told = Outcome::lost(&op, "no answer in time").event(&op, 9, self.now + 1);
        let mut asked = op.event(9, self.now);
        (told.process, asked.process) = (9, 9);
        self.events.extend([asked, told]);
        self.now += 2;
    }

    fn look(&mut self) {
        let told = Outcome::told(Value::List(self.accounts.clone().into()), None);
        self.op(&look(0), &told);
    }

    fn held(&self, member: u64) -> FinalState {
        let list = Some(self.accounts.clone());
        FinalState { member, key: 0, version: None, value: None, mzxid: None, list }
    }

    fn judged(self, finals: Vec<FinalState>) -> Vec<(Verdict, String)> {
        self.judged_by(Promise::StrictSerializable, finals)
    }

    fn judged_by(self, promise: Promise, finals: Vec<FinalState>) -> Vec<(Verdict, String)> {
        let history = History::from_events(self.events).expect("a history");
        let members = finals.iter().map(|state| state.member).collect();
        let beside = Beside { promise, final_states: finals, members, ..Beside::default() };
        let budget = Budget::default();
        let effort = Effort::of(&budget);
        let case = Case::new(&history, Extent::Whole, &beside, &effort);
        [bank(&case), durable(&case)].into_iter().map(|result| (result.verdict, result.summary)).collect()
    }
}

#[test]
fn a_bank_that_moves_what_it_is_asked_to_is_not_accused() {
    let mut bank = Bank::new();
    bank.transfer(0, 3, 5);
    bank.look();
    bank.lost_transfer();
    bank.transfer(3, 2, 4);
    bank.look();
    let finals = vec![bank.held(1), bank.held(2)];
    let judged = bank.judged(finals);
    assert!(judged.iter().all(|(verdict, _)| *verdict == Verdict::Valid), "{judged:?}");
}

#[test]
fn money_that_is_made_or_lost_or_owed_is_accused() {
    for (account, change, words) in
        [(0, 5, "5 was made"), (0, -5, "5 was lost"), (8, 0, "9 accounts, where 8")]
    {
        let mut bank = Bank::new();
        bank.accounts.resize(bank.accounts.len().max(account + 1), 0);
        bank.accounts[account] += change;
        bank.look();
        let (verdict, summary) = bank.judged(Vec::new()).remove(0);
        assert!(verdict == Verdict::Invalid && summary.contains(words), "{summary}");
    }
    let mut bank = Bank::new();
    bank.transfer(0, 1, BEGINNING + 1);
    bank.look();
    let (verdict, summary) = bank.judged(Vec::new()).remove(0);
    assert!(verdict == Verdict::Invalid && summary.contains("account 0 at -1, below zero"), "{summary}");
}

#[test]
fn a_look_of_an_early_moment_accuses_only_who_promised_the_present() {
    for early in [vec![], vec![BEGINNING; 3], vec![BEGINNING; 8]] {
        let verdict = |promise| {
            let mut bank = Bank::new();
            bank.transfer(0, 3, 5);
            bank.accounts.clone_from(&early);
            bank.look();
            bank.judged_by(promise, Vec::new()).remove(0).0
        };
        assert_eq!(verdict(Promise::SnapshotIsolation), Verdict::Valid, "{early:?}");
        assert_eq!(verdict(Promise::StrictSerializable), Verdict::Invalid, "{early:?}");
    }
}

#[test]
fn a_look_finds_what_was_lost_or_not_and_nothing_that_comes_later() {
    for happened in [false, true] {
        let mut bank = Bank::new();
        bank.transfer(0, 3, 5);
        bank.lost_transfer();
        if happened {
            (bank.accounts[0], bank.accounts[1]) = (bank.accounts[0] - 3, bank.accounts[1] + 3);
        }
        bank.look();
        assert_eq!(bank.judged(Vec::new()).remove(0).0, Verdict::Valid);
    }
    let mut bank = Bank::new();
    (bank.accounts[0], bank.accounts[3]) = (BEGINNING - 5, BEGINNING + 5);
    bank.look();
    bank.accounts = vec![BEGINNING; 8];
    bank.transfer(0, 3, 5);
    let (verdict, summary) = bank.judged(Vec::new()).remove(0);
    assert_eq!(verdict, Verdict::Invalid);
    assert!(summary.contains("account 0 at 95, where transfers that were over leave 100"), "{summary}");
}

#[test]
fn a_bank_in_which_nothing_moved_or_nobody_looked_is_not_judged() {
    let mut still = Bank::new();
    still.look();
    let mut unseen = Bank::new();
    unseen.transfer(0, 1, 1);
    for (bank, why) in [(still, "no transfer"), (unseen, "nobody looked")] {
        let (verdict, summary) = bank.judged(Vec::new()).remove(0);
        assert!(verdict == Verdict::Unknown && summary.contains(why), "{summary}");
    }
}

#[test]
fn balances_and_amounts_of_any_size_are_judged() {
    for balances in [vec![i64::MIN; 8], vec![i64::MAX; 8], vec![i64::MAX, i64::MIN, 0, 0, 0, 0, 0, 0]] {
        let mut bank = Bank::new();
        for amount in [i64::MIN, i64::MAX] {
            let op = Op::said(BANK, 0, &TRANSFER_AN_AMOUNT, Value::List([0, 1, amount].into()));
            bank.op(&op, &Outcome::told(op.value(), None));
        }
        bank.accounts = balances;
        bank.look();
        let finals = vec![bank.held(1)];
        assert!(bank.judged(finals).iter().all(|(verdict, _)| *verdict == Verdict::Invalid));
    }
}

#[test]
fn an_acknowledged_transfer_that_is_gone_at_the_end_is_accused() {
    let mut bank = Bank::new();
    bank.transfer(0, 3, 5);
    bank.look();
    let before = FinalState { list: Some(vec![BEGINNING; 8]), ..bank.held(2) };
    let finals = vec![bank.held(1), before];
    let (verdict, summary) = bank.judged(finals).remove(1);
    assert_eq!(verdict, Verdict::Invalid);
    assert!(
        summary.contains("member 2 has 100 in account 0, where acknowledged transfers leave 95"),
        "{summary}"
    );
}

#[test]
fn what_is_asked_for_moves_money_between_two_accounts_of_a_bank() {
    let mut banks = Banks { rng: ChaCha8Rng::seed_from_u64(3), keys: 2, look_percent: 30 };
    assert_eq!(banks.setup().len(), 16);
    for _ in 0..500 {
        let op = banks.next_op(0);
        if let (TRANSFER, Value::List(list)) = (op.function(), op.value()) {
            let [from, to, amount] = list[..] else { panic!("{list:?}") };
            assert!(from != to && (0..ACCOUNTS).contains(&to) && (1..=LARGEST).contains(&amount));
        }
    }
    assert_eq!(Kind::BANK.promised(Promise::Linearizable), Some(Promise::StrictSerializable));
    assert_eq!(Kind::BANK.promised(Promise::ReadCommitted), Some(Promise::Nothing));
    assert!(balances(&look(0), &json!([1, "x"])).is_err());
}
