//! What the specification refuses, what it allows, and what it leaves open where an answer is missing.

use node_wire::client::{CheckVersionRequest, CreateRequest, DeleteRequest, PERM_READ, SetDataRequest};
use node_wire::ids::Epoch;
use node_wire::txn::TxnHeader;

use super::*;

const SESSION: SessionId = SessionId(7);

/// A specification that is told what was done, each thing as request and transaction.
#[derive(Default)]
struct Court {
    spec: Specification,
    counter: u32,
}

impl Court {
    /// The request becomes this transaction.
    fn takes(&mut self, who: &[Id], update: Update, txn: Txn) -> Finding {
        self.counter += 1;
        let (zxid, cxid) = (Zxid::new(Epoch(1), self.counter), i32::try_from(self.counter).expect("few"));
        self.spec.asks(SESSION, cxid, who.to_vec(), update);
        let header = TxnHeader { session: SESSION, cxid, zxid, time_ms: 5, kind: txn.kind() };
        self.spec.commit(&Entry::new(header, txn, None), true, false)
    }

    /// The request becomes what the specification says, which is told.
    fn does(&mut self, who: &[Id], update: Update) -> Told {
        let zxid = Zxid::new(Epoch(1), self.counter + 1);
        let case = Case { who, session: SESSION, zxid, time_ms: 5 };
        let (txn, told) = self.spec.now.outcome(&update, case);
        self.takes(who, update, txn).expect("it is what is specified");
        told
    }

    fn shows(&self, who: &[Id], look: &Look) -> Told {
        self.spec.now.shown(look, who, SESSION)
    }
}

fn id(name: &str) -> Id {
    Id { scheme: "digest".into(), id: format!("{name}:digest").into() }
}

fn of(perms: i32, name: &str) -> Acl {
    Acl { perms, scheme: "digest".into(), id: id(name).id }
}

fn make(path: &'static str, acl: Vec<Acl>) -> MultiOp {
    MultiOp::Create2(CreateRequest { path: path.into(), data: None, acl, flags: 0 })
}

fn open(path: &'static str) -> Update {
    Update::One(make(path, vec![Acl::world_anyone()]))
}

fn delete(path: &'static str) -> MultiOp {
    MultiOp::Delete(DeleteRequest { path: path.into(), version: -1 })
}

fn set(path: &'static str, version: i32) -> MultiOp {
    MultiOp::SetData(SetDataRequest { path: path.into(), data: None, version })
}

fn check(path: &'static str, version: i32) -> MultiOp {
    MultiOp::Check(CheckVersionRequest { path: path.into(), version })
}

fn refused(error: ErrorCode) -> Told {
    Told::Refused(error.code())
}

fn version(told: &Told) -> Option<i32> {
    match told {
        Told::Data(_, stat) | Told::Stat(stat) => Some(stat.version),
        _ => None,
    }
}

#[test]
fn who_may_not_delete_is_not_told_what_is_there() {
    let mut court = Court::default();
    court.does(&[], open("/p1"));
    court.does(&[], Update::One(make("/p1/s", vec![of(31, "ann")])));
    court.does(&[id("ann")], open("/p1/s/x"));
    for path in ["/p1/s/x", "/p1/s/nobody"] {
        assert_eq!(court.does(&[id("bob")], Update::One(delete(path))), refused(ErrorCode::NoAuth), "{path}");
    }
    assert_eq!(court.does(&[id("ann")], Update::One(delete("/p1/s/nobody"))), refused(ErrorCode::NoNode));
    assert_eq!(court.does(&[], Update::One(delete("/zookeeper"))), refused(ErrorCode::BadArguments));
}

#[test]
fn a_list_hides_data_and_digests_and_not_that_a_node_is_there() {
    let mut court = Court::default();
    court.does(&[], open("/p1"));
    court.does(&[], Update::One(make("/p1/s", vec![of(31, "ann"), of(PERM_READ, "bob")])));
    let (data, list) = (Look::Data("/p1/s".into()), Look::List("/p1/s".into()));
    assert_eq!(court.shows(&[], &data), refused(ErrorCode::NoAuth));
    assert!(matches!(court.shows(&[], &Look::Exists("/p1/s".into())), Told::Stat(_)));
    assert!(matches!(court.shows(&[id("bob")], &data), Told::Data(..)));
    assert!(matches!(court.shows(&[id("bob")], &list), Told::List(list, _) if list[0].id == "ann:x"));
    assert!(matches!(court.shows(&[id("ann")], &list), Told::List(list, _) if list[0].id == "ann:digest"));
    court.spec.now.skips_lists = true;
    assert!(matches!(court.shows(&[], &data), Told::Data(..)), "no list is asked");
}

#[test]
fn auth_is_whom_the_client_has_proven_to_be() {
    let mut court = Court::default();
    court.does(&[], open("/p1"));
    let auth = Acl { perms: 31, scheme: "auth".into(), id: ByteString::new() };
    let update = |acl| Update::SetAcl(SetAclRequest { path: "/p1".into(), acl, version: -1 });
    assert_eq!(court.does(&[], update(vec![auth.clone()])), refused(ErrorCode::InvalidAcl));
    assert_eq!(court.does(&[], update(Vec::new())), refused(ErrorCode::InvalidAcl));
    assert!(matches!(court.does(&[id("ann")], update(vec![auth])), Told::Stat(_)));
    assert_eq!(court.spec.now.lists().next().expect("a node").1, [of(31, "ann")]);
}

#[test]
fn a_multi_sees_its_own_parts_and_leaves_nothing_when_it_is_refused() {
    let mut court = Court::default();
    court.does(&[], open("/p1"));
    let inconsistent = refused(ErrorCode::RuntimeInconsistency);
    let told = court.does(&[], Update::Multi(vec![set("/p1", 0), check("/p1", 0), set("/p1", -1)]));
    assert_eq!(
        told,
        Told::Several(vec![refused(ErrorCode::Ok), refused(ErrorCode::BadVersion), inconsistent])
    );
    assert_eq!(version(&court.shows(&[], &Look::Data("/p1".into()))), Some(0));
    let told = court.does(&[], Update::Multi(vec![set("/p1", 0), check("/p1", 1), set("/p1", 1)]));
    assert!(matches!(&told, Told::Several(parts) if version(&parts[2]) == Some(2)), "{told:?}");
    let twice =
        Update::Multi(vec![make("/p1/a", vec![Acl::world_anyone()]), delete("/p1/a"), delete("/p1/a")]);
    assert!(matches!(court.does(&[], twice), Told::Several(parts) if parts[2] == refused(ErrorCode::NoNode)));
}

#[test]
fn a_transaction_that_is_not_the_laws_is_told_and_followed() {
    let mut court = Court::default();
    court.does(&[], open("/p1"));
    let later = Txn::SetData { path: "/p1".into(), data: None, version: 2 };
    assert!(court.takes(&[], Update::One(set("/p1", 1)), later).is_err(), "the version was 0");
    assert_eq!(version(&court.shows(&[], &Look::Data("/p1".into()))), Some(2));
    let moved = Txn::Error { code: ErrorCode::SessionMoved.code() };
    assert!(court.takes(&[], Update::One(set("/p1", 2)), moved).is_ok(), "that is no matter of the tree");
    let expired = Txn::Error { code: ErrorCode::SessionExpired.code() };
    assert!(court.takes(&[], Update::One(set("/p1", 2)), expired).is_err(), "the session lives");
}

#[test]
fn a_later_request_is_not_done_first() {
    let mut spec = Specification::default();
    spec.asks(SESSION, 1, Vec::new(), open("/p1"));
    spec.asks(SESSION, 2, Vec::new(), Update::One(delete("/p1")));
    let entry = |counter, cxid, txn: Txn| {
        let zxid = Zxid::new(Epoch(1), counter);
        Entry::new(TxnHeader { session: SESSION, cxid, zxid, time_ms: 0, kind: txn.kind() }, txn, None)
    };
    let no_node = Txn::Error { code: ErrorCode::NoNode.code() };
    spec.commit(&entry(1, 2, no_node), true, false).expect("it is lawful by itself");
    let (path, acl) = ("/p1".into(), vec![Acl::world_anyone()]);
    let made = Txn::Create { path, data: None, acl, ephemeral: false, parent_cversion: 1 };
    assert!(spec.commit(&entry(2, 1, made), true, false).is_err());
}

#[test]
fn an_answer_is_held_against_the_law_and_against_the_answer_before_it() {
    let mut judge = Invariants::new(1);
    let at = |counter| Zxid::new(Epoch(1), counter);
    let refusal = || refused(ErrorCode::NoNode);
    for (xid, shown, told, lawful) in
        [(1, at(0), refusal(), true), (2, at(0), Told::Done, false), (3, at(3), refusal(), false)]
    {
        judge.spec.outcomes.insert((SESSION, xid), refusal());
        assert_eq!(judge.spec_of_change(SESSION, xid, (shown, at(3)), &told).is_ok(), lawful, "{xid}");
    }
    assert!(
        judge.spec_of_change(SESSION, 9, (at(0), at(9)), &Told::Done).is_ok(),
        "nobody was seen to apply it"
    );
}
