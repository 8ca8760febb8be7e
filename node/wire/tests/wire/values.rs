//! Generators of values.

use bytes::Bytes;
use bytestring::ByteString;
use node_wire::client::{
    Acl, CheckVersionRequest, CreateRequest, CreateTtlRequest, DeleteRequest, MultiOp, MultiResult,
    PathWatch, SetDataRequest, Stat,
};
use node_wire::ids::{SessionId, Zxid};
use node_wire::snapshot::{Image, NodeRecord, StatPersisted};
use node_wire::txn::{Txn, TxnDigest, TxnHeader};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

pub(crate) fn zxid() -> impl Strategy<Value = Zxid> {
    any::<u64>().prop_map(Zxid)
}

pub(crate) fn session() -> impl Strategy<Value = SessionId> {
    any::<i64>().prop_map(SessionId)
}

pub(crate) fn string() -> impl Strategy<Value = ByteString> {
    "\\PC{0,12}".prop_map(ByteString::from)
}

pub(crate) fn strings() -> impl Strategy<Value = Vec<ByteString>> {
    vec(string(), 0..5)
}

pub(crate) fn bytes() -> impl Strategy<Value = Bytes> {
    vec(any::<u8>(), 0..40).prop_map(Bytes::from)
}

pub(crate) fn data() -> impl Strategy<Value = Option<Bytes>> {
    option::of(bytes())
}

pub(crate) fn acls() -> impl Strategy<Value = Vec<Acl>> {
    vec((any::<i32>(), string(), string()).prop_map(|(perms, scheme, id)| Acl { perms, scheme, id }), 0..4)
}

pub(crate) fn stat_persisted() -> impl Strategy<Value = StatPersisted> {
    let times = (zxid(), zxid(), any::<i64>(), any::<i64>());
    let versions = (any::<i32>(), any::<i32>(), any::<i32>());
    (times, versions, session(), zxid()).prop_map(|(times, versions, ephemeral_owner, pzxid)| {
        let (czxid, mzxid, ctime, mtime) = times;
        let (version, cversion, aversion) = versions;
        StatPersisted { czxid, mzxid, ctime, mtime, version, cversion, aversion, ephemeral_owner, pzxid }
    })
}

pub(crate) fn stat() -> impl Strategy<Value = Stat> {
    (stat_persisted(), any::<i32>(), any::<i32>())
        .prop_map(|(stat, data_length, num_children)| stat.with_counts(data_length, num_children))
}

fn create() -> impl Strategy<Value = CreateRequest> {
    (string(), data(), acls(), any::<i32>()).prop_map(|(path, data, acl, flags)| CreateRequest {
        path,
        data,
        acl,
        flags,
    })
}

pub(crate) fn create_ttl() -> impl Strategy<Value = CreateTtlRequest> {
    (create(), any::<i64>()).prop_map(|(CreateRequest { path, data, acl, flags }, ttl_ms)| CreateTtlRequest {
        path,
        data,
        acl,
        flags,
        ttl_ms,
    })
}

pub(crate) fn multi_op() -> impl Strategy<Value = MultiOp> {
    let watch = || (string(), any::<bool>()).prop_map(|(path, watch)| PathWatch { path, watch });
    prop_oneof![
        create().prop_map(MultiOp::Create),
        create().prop_map(MultiOp::Create2),
        create().prop_map(MultiOp::CreateContainer),
        create_ttl().prop_map(MultiOp::CreateTtl),
        (string(), any::<i32>()).prop_map(|(path, version)| MultiOp::Delete(DeleteRequest { path, version })),
        (string(), data(), any::<i32>()).prop_map(|(path, data, version)| MultiOp::SetData(SetDataRequest {
            path,
            data,
            version
        })),
        (string(), any::<i32>())
            .prop_map(|(path, version)| MultiOp::Check(CheckVersionRequest { path, version })),
        watch().prop_map(MultiOp::GetData),
        watch().prop_map(MultiOp::GetChildren),
    ]
}

pub(crate) fn multi_result() -> impl Strategy<Value = MultiResult> {
    prop_oneof![
        string().prop_map(|path| MultiResult::Create { path }),
        (string(), stat()).prop_map(|(path, stat)| MultiResult::Create2 { path, stat }),
        Just(MultiResult::Delete),
        stat().prop_map(|stat| MultiResult::SetData { stat }),
        Just(MultiResult::Check),
        (data(), stat()).prop_map(|(data, stat)| MultiResult::GetData { data, stat }),
        strings().prop_map(|children| MultiResult::GetChildren { children }),
        any::<i32>().prop_map(|err| MultiResult::Error { err }),
    ]
}

pub(crate) fn txn() -> impl Strategy<Value = Txn> {
    let node = || (string(), data(), acls(), any::<i32>());
    prop_oneof![
        any::<i32>().prop_map(|timeout_ms| Txn::CreateSession { timeout_ms }),
        option::of(strings()).prop_map(|paths| Txn::CloseSession { paths }),
        (node(), any::<bool>()).prop_map(|((path, data, acl, parent_cversion), ephemeral)| Txn::Create {
            path,
            data,
            acl,
            ephemeral,
            parent_cversion
        }),
        node().prop_map(|(path, data, acl, parent_cversion)| Txn::CreateContainer {
            path,
            data,
            acl,
            parent_cversion
        }),
        (node(), any::<i64>()).prop_map(|((path, data, acl, parent_cversion), ttl_ms)| Txn::CreateTtl {
            path,
            data,
            acl,
            parent_cversion,
            ttl_ms
        }),
        string().prop_map(|path| Txn::Delete { path }),
        (string(), data(), any::<i32>()).prop_map(|(path, data, version)| Txn::SetData {
            path,
            data,
            version
        }),
        (string(), acls(), any::<i32>()).prop_map(|(path, acl, version)| Txn::SetAcl { path, acl, version }),
        (string(), any::<i32>()).prop_map(|(path, version)| Txn::Check { path, version }),
        vec((any::<i32>(), bytes()), 0..4).prop_map(|txns| Txn::Multi { txns }),
        any::<i32>().prop_map(|code| Txn::Error { code }),
    ]
}

pub(crate) fn txn_header() -> impl Strategy<Value = TxnHeader> {
    (session(), any::<i32>(), zxid(), any::<i64>(), any::<i32>())
        .prop_map(|(session, cxid, zxid, time_ms, kind)| TxnHeader { session, cxid, zxid, time_ms, kind })
}

/// A version of 2 keeps a digest from looking like a list of paths.
pub(crate) fn txn_digest() -> impl Strategy<Value = Option<TxnDigest>> {
    option::of((1_i64..).prop_map(|digest| TxnDigest { version: 2, digest }))
}

pub(crate) fn image() -> impl Strategy<Value = Image> {
    let node = || (data(), any::<i64>(), stat_persisted());
    let sessions = vec((session(), any::<i32>()), 0..4);
    let acl_lists = vec((any::<i64>(), acls()), 0..4);
    // Each node picks its parent among those before it.
    let below = vec((any::<prop::sample::Index>(), "[a-z]{1,5}", node()), 0..8);
    (zxid(), sessions, acl_lists, option::of((node(), below))).prop_map(|(zxid, sessions, acls, tree)| {
        let mut nodes: Vec<NodeRecord> = Vec::new();
        if let Some(((data, acl, stat), below)) = tree {
            nodes.push(NodeRecord { path: "/".into(), data, acl, stat });
            for (parent, name, (data, acl, stat)) in below {
                let parent = &nodes[parent.index(nodes.len())].path;
                let separator = if *parent == "/" { "" } else { "/" };
                // The count keeps names apart.
                let path = format!("{parent}{separator}{name}{}", nodes.len());
                nodes.push(NodeRecord { path: path.into(), data, acl, stat });
            }
        }
        Image { zxid, sessions, acls, nodes }
    })
}
