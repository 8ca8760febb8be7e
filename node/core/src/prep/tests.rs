//! Transactions as Apache ZooKeeper 3.8.0 wrote them into its log for the same requests, without their
//! digests.

use bytes::Bytes;
use bytestring::ByteString;
use node_wire::client::{
    Acl, CheckVersionRequest, CreateRequest, CreateTtlRequest, DeleteRequest, ErrorCode, Id, MultiOp,
    MultiRequest, OpCode, SetAclRequest, SetDataRequest,
};
use node_wire::credentials::digest_identity;
use node_wire::ids::{Epoch, SessionId, Zxid};
use node_wire::jute::encode;
use node_wire::quorum::ForwardedRequest;
use node_wire::txn::{Entry, Txn, TxnHeader};

use super::{Case, Outstanding};
use crate::rules::ClientRules;
use crate::tree::{Applied, Tree};
use crate::zab::Zab;

const SESSION: SessionId = SessionId(7);

/// A leader's judgement and its tree, and a client with a password.
struct Judge {
    tree: Tree,
    outstanding: Outstanding,
    counter: u32,
}

impl Judge {
    fn new() -> Self {
        let mut judge = Self { tree: Tree::default(), outstanding: Outstanding::default(), counter: 0 };
        judge.take(OpCode::CreateSession, encode(|w| w.int(4000)));
        judge
    }

    /// The kind and the body of the transaction for a request. It is applied at once.
    fn take(&mut self, op: OpCode, payload: Bytes) -> (i32, Txn, Applied) {
        self.counter += 1;
        let zxid = Zxid::new(Epoch(1), self.counter);
        let id = digest_identity(b"ann:secret");
        let auth = vec![Id { scheme: ByteString::from_static("digest"), id }];
        let request = ForwardedRequest { session: SESSION, cxid: 1, op: op.code(), payload, auth };
        let (tree, rules) = (&self.tree, &ClientRules::default());
        let case = Case { zab: Zab, rules, tree, membership: None, request: &request, zxid, local: false };
        let (kind, txn) = self.outstanding.transaction(case);
        let header = TxnHeader { session: SESSION, cxid: 1, zxid, time_ms: 0, kind };
        let applied = self.tree.apply(&Entry::new(header, txn.clone(), None));
        self.outstanding.applied(zxid);
        (kind, txn, applied)
    }

    fn hex(&mut self, op: OpCode, payload: Bytes) -> (i32, String) {
        let (kind, txn, _) = self.take(op, payload);
        (kind, encode(|w| txn.encode(w)).iter().map(|byte| format!("{byte:02x}")).collect())
    }

    fn create(&mut self, path: &str, acl: Vec<Acl>) {
        self.take(OpCode::Create, encode(|w| CreateRequest { acl, ..new(path, 0) }.encode(w)));
    }
}

fn new(path: &str, flags: i32) -> CreateRequest {
    let acl = vec![Acl::world_anyone()];
    CreateRequest { path: ByteString::from(path), data: Some(Bytes::new()), acl, flags }
}

fn ttl(path: &str, ttl_ms: i64) -> CreateTtlRequest {
    let CreateRequest { path, data, acl, .. } = new(path, 0);
    CreateTtlRequest { path, data, acl, flags: 5, ttl_ms }
}

fn delete(path: &str) -> DeleteRequest {
    DeleteRequest { path: ByteString::from(path), version: -1 }
}

fn check(path: &str, version: i32) -> CheckVersionRequest {
    CheckVersionRequest { path: ByteString::from(path), version }
}

fn several(ops: Vec<MultiOp>) -> Bytes {
    encode(|w| MultiRequest { ops }.encode(w))
}

/// The list that lets everybody do everything.
const OPEN: &str = "000000010000001f00000005776f726c6400000006616e796f6e65";

#[test]
fn a_container_and_a_time_to_live_are_transactions_of_their_own() {
    let mut judge = Judge::new();
    judge.create("/p", vec![Acl::world_anyone()]);
    let container = judge.hex(OpCode::CreateContainer, encode(|w| new("/c", 4).encode(w)));
    assert_eq!(container, (19, format!("000000022f6300000000{OPEN}00000002")));
    let timed = judge.hex(OpCode::CreateTtl, encode(|w| ttl("/t", 100_000).encode(w)));
    assert_eq!(timed, (21, format!("000000022f7400000000{OPEN}0000000300000000000186a0")));
}

#[test]
fn a_list_is_stored_as_it_was_fixed_up() {
    let mut judge = Judge::new();
    let auth = Acl { scheme: "auth".into(), id: ByteString::new(), ..Acl::world_anyone() };
    judge.create("/acl", vec![auth]);
    let entry = |perms: i32, scheme: &str, id: &str| Acl { perms, scheme: scheme.into(), id: id.into() };
    let readable = entry(1, "world", "anyone");
    let acl = vec![readable.clone(), entry(31, "digest", "ann:7RJfAeIvrl4zdj6sS2fXrQHDvHM="), readable];
    let request = SetAclRequest { path: "/acl".into(), acl, version: -1 };
    let set = judge.hex(OpCode::SetAcl, encode(|w| request.encode(w)));
    let body = "000000042f61636c000000020000000100000005776f726c6400000006616e796f6e650000001f0000000664\
                696765737400000020616e6e3a37524a6641654976726c347a646a3673533266587251484476484d3d000000\
                01";
    assert_eq!(set, (7, body.to_owned()));
}

#[test]
fn a_multi_holds_the_transactions_of_its_parts() {
    let mut judge = Judge::new();
    for path in ["/1", "/2", "/3", "/4", "/5"] {
        judge.create(path, vec![Acl::world_anyone()]);
    }
    let set = SetDataRequest { path: "/m".into(), data: Some(Bytes::from_static(b"1")), version: -1 };
    let multi = judge.hex(
        OpCode::Multi,
        several(vec![
            MultiOp::Create(new("/m", 0)),
            MultiOp::Create2(new("/m/a", 0)),
            MultiOp::SetData(set),
            MultiOp::Check(check("/m", 1)),
            MultiOp::Delete(delete("/m/a")),
            MultiOp::CreateContainer(new("/m/c", 4)),
            MultiOp::CreateTtl(ttl("/m/t", 777)),
            MultiOp::Create(new("/m/s", 2)),
        ]),
    );
    let body = [
        "00000008",
        &format!("000000010000002a000000022f6d00000000{OPEN}0000000006"),
        &format!("000000010000002c000000042f6d2f6100000000{OPEN}0000000001"),
        "000000050000000f000000022f6d000000013100000001",
        "0000000d0000000a000000022f6d00000002",
        "0000000200000008000000042f6d2f61",
        &format!("000000130000002b000000042f6d2f6300000000{OPEN}00000002"),
        &format!("0000001500000033000000042f6d2f7400000000{OPEN}000000030000000000000309"),
        &format!("00000001000000360000000e2f6d2f7330303030303030303033{}{OPEN}0000000004", "00000000"),
    ];
    assert_eq!(multi, (14, body.concat()));
}

#[test]
fn a_multi_that_is_refused_holds_what_it_would_have_done_and_why_not() {
    let mut judge = Judge::new();
    judge.create("/m", vec![Acl::world_anyone()]);
    for name in ["/m/1", "/m/2", "/m/3", "/m/4"] {
        judge.create(name, vec![Acl::world_anyone()]);
    }
    let set = SetDataRequest { path: "/m".into(), data: Some(Bytes::new()), version: -1 };
    let ops = vec![MultiOp::Create(new("/m/x", 0)), MultiOp::Delete(delete("/none")), MultiOp::SetData(set)];
    let create = format!("000000010000002c000000042f6d2f7800000000{OPEN}0000000005");
    let body = format!("00000003{create}ffffffff00000004ffffff9bffffffff00000004fffffffe");
    assert_eq!(judge.hex(OpCode::Multi, several(ops)), (14, body));
    // Nothing of it is left behind: the same name again, and the same number.
    let ops = vec![MultiOp::Create(new("/m/x", 0)), MultiOp::Check(check("/m/x", 1))];
    let body = format!("00000002{create}ffffffff00000004ffffff99");
    assert_eq!(judge.hex(OpCode::Multi, several(ops)), (14, body));
    assert!(judge.tree.node("/m/x").is_none());
}

#[test]
fn the_records_of_a_refused_multi_are_those_from_before_it() {
    let mut judge = Judge::new();
    judge.create("/m", vec![Acl::world_anyone()]);
    let before = format!("{:?}", judge.outstanding);
    let ops = vec![
        MultiOp::Create(new("/m/x", 0)),
        MultiOp::Delete(delete("/m/x")),
        MultiOp::Create(new("/m/x", 0)),
        MultiOp::Delete(delete("/m")),
    ];
    let (_, _, applied) = judge.take(OpCode::Multi, several(ops));
    assert!(matches!(applied, Applied::Several(parts) if parts.len() == 4));
    assert_eq!(format!("{:?}", judge.outstanding), before);
}

/// The longest that one request may be, in these tests.
const SMALL: usize = 64 << 10;

#[test]
fn a_multi_of_short_lists_that_mean_long_ones_is_refused() {
    let rules = ClientRules { max_buffer: SMALL, ..ClientRules::default() };
    let auth: Vec<Id> = (0..64)
        .map(|number| Id {
            scheme: ByteString::from_static("digest"),
            id: ByteString::from(format!("{number:060}:x")),
        })
        .collect();
    let everybody = vec![Acl { perms: 1, scheme: ByteString::from_static("auth"), id: ByteString::new() }];
    let create = |number: usize| {
        let path = ByteString::from(format!("/{number}"));
        MultiOp::Create(CreateRequest { path, data: None, acl: everybody.clone(), flags: 0 })
    };
    let judge = Judge::new();
    let mut outstanding = judge.outstanding.clone();
    let mut take = |numbers: std::ops::Range<usize>, counter: u32| {
        let payload = encode(|w| MultiRequest { ops: numbers.map(create).collect() }.encode(w));
        assert!(payload.len() < SMALL, "a request of usual length");
        let op = OpCode::Multi.code();
        let request = ForwardedRequest { session: SESSION, cxid: 1, op, payload, auth: auth.clone() };
        let zxid = Zxid::new(Epoch(1), counter);
        let case = Case {
            zab: Zab,
            rules: &rules,
            tree: &judge.tree,
            membership: None,
            request: &request,
            zxid,
            local: false,
        };
        let (_, txn) = outstanding.transaction(case);
        assert!(txn.encoded_len() <= 2 * SMALL, "what is proposed can be read back");
        let Txn::Multi { txns } = txn else { panic!("a multi stays one") };
        txns.iter().any(|(kind, _)| *kind == OpCode::Error.code())
    };
    assert!(!take(0..4, 2));
    assert!(take(10..1010, 3), "it takes sixty times as much as it says");
    assert!(!take(10..14, 4), "nothing of it is left");
}

#[test]
fn a_session_ends_however_long_the_paths_of_its_nodes_are() {
    let mut judge = Judge::new();
    let name = "n".repeat(500);
    for number in 0..200 {
        let request = new(&format!("/{name}{number}"), 1);
        judge.take(OpCode::Create, encode(|w| request.encode(w)));
    }
    let rules = ClientRules { max_buffer: 32 << 10, ..ClientRules::default() };
    let (op, payload) = (OpCode::CloseSession.code(), Bytes::new());
    let request = ForwardedRequest { session: SESSION, cxid: 1, op, payload, auth: Vec::new() };
    let zxid = Zxid::new(Epoch(1), 1000);
    let case = Case {
        zab: Zab,
        rules: &rules,
        tree: &judge.tree,
        membership: None,
        request: &request,
        zxid,
        local: false,
    };
    let (kind, txn) = judge.outstanding.transaction(case);
    assert!(txn.encoded_len() <= 2 * rules.max_buffer, "{} bytes", txn.encoded_len());
    let header = TxnHeader { session: SESSION, cxid: 1, zxid, time_ms: 0, kind };
    judge.tree.apply(&Entry::new(header, txn, None));
    assert_eq!(judge.tree.counts().ephemerals, 0, "those that were not listed too");
}

#[test]
fn a_request_that_no_client_can_send_is_refused() {
    let mut judge = Judge::new();
    let long = CreateRequest { data: Some(Bytes::from(vec![0; 1 << 20])), ..new("/a", 0) };
    let (kind, _, _) = judge.take(OpCode::Create, encode(|w| long.encode(w)));
    assert_eq!(kind, OpCode::Error.code());
}

#[test]
fn a_node_of_a_session_that_ends_is_gone_for_whoever_asks_behind_it() {
    let mut judge = Judge::new();
    judge.create("/a", vec![Acl::world_anyone()]);
    let ephemeral = |path| encode(|w| new(path, 1).encode(w));
    judge.take(OpCode::Create, ephemeral("/a/applied"));
    let propose = |judge: &mut Judge, session, op: OpCode, payload| {
        judge.counter += 1;
        let zxid = Zxid::new(Epoch(1), judge.counter);
        let request = ForwardedRequest { session, cxid: 1, op: op.code(), payload, auth: Vec::new() };
        let (tree, rules) = (&judge.tree, &ClientRules::default());
        let case = Case { zab: Zab, rules, tree, membership: None, request: &request, zxid, local: false };
        judge.outstanding.transaction(case).1
    };
    let refused = |error: ErrorCode| Txn::Error { code: error.code() };
    let other = SessionId(8);
    propose(&mut judge, other, OpCode::CreateSession, encode(|w| w.int(4000)));
    propose(&mut judge, SESSION, OpCode::Create, ephemeral("/a/proposed"));

    let closed = propose(&mut judge, SESSION, OpCode::CloseSession, Bytes::new());
    let paths = ["/a/applied", "/a/proposed"].map(ByteString::from_static).to_vec();
    assert_eq!(closed, Txn::CloseSession { paths: Some(paths) });
    for path in ["/a/applied", "/a/proposed"] {
        let checked = propose(&mut judge, other, OpCode::Check, encode(|w| check(path, -1).encode(w)));
        assert_eq!(checked, refused(ErrorCode::NoNode), "{path}");
    }
    let made = propose(&mut judge, other, OpCode::Create, ephemeral("/a/applied"));
    assert!(matches!(made, Txn::Create { .. }), "another may have its name: {made:?}");
    let gone = propose(&mut judge, other, OpCode::Delete, encode(|w| delete("/a/applied").encode(w)));
    assert!(matches!(gone, Txn::Delete { .. }), "{gone:?}");
    let parent = propose(&mut judge, other, OpCode::Delete, encode(|w| delete("/a").encode(w)));
    assert_eq!(parent, Txn::Delete { path: ByteString::from_static("/a") }, "it has no children left");
}

#[test]
fn what_is_applied_is_outstanding_no_more() {
    let mut judge = Judge::new();
    for count in 0..3 {
        judge.take(OpCode::Create, encode(|w| new(&format!("/e{count}"), 1).encode(w)));
    }
    let refused =
        MultiRequest { ops: vec![MultiOp::Create(new("/f", 1)), MultiOp::Delete(delete("/not-there"))] };
    judge.take(OpCode::Multi, encode(|w| refused.encode(w)));
    judge.take(OpCode::CloseSession, Bytes::new());
    let Outstanding { records, changes, ephemerals, created_sessions, closing_sessions, sessions, undo } =
        &judge.outstanding;
    assert!(records.is_empty() && changes.is_empty() && ephemerals.is_empty() && undo.is_none());
    assert!(created_sessions.is_empty() && closing_sessions.is_empty() && sessions.is_empty());
}
