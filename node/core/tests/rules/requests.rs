//! What clients of the scripts ask: a command's words become an operation and its body.
//!
//! ```text
//! create c PATH [DATA] [ephemeral=true] [sequential=true] [container=true] [ttl=MS] [perms=N scheme=S id=I]
//! set c PATH DATA [version=N] · delete c PATH [version=N] · check c PATH [version=N]
//! get|exists|children c PATH [watch=true] · acl|count|ephemerals c PATH · whoami c
//! setacl c PATH perms=N scheme=S id=I [version=N] · auth c SCHEME PROOF
//! multi c create:PATH delete:PATH set:PATH check:PATH:VERSION ...       each with its path, all or none
//! multiread c get:PATH children:PATH ...
//! addwatch c PATH [recursive=true] · removewatch|checkwatch c PATH [kind=any|data|children]
//! setwatches c [seen=ZXID] [data=PATHS] [exist=PATHS] [children=PATHS] [persistent=PATHS] [recursive=PATHS]
//! reconfig c [join=IDS] [observe=IDS] [leave=IDS] [all=IDS] [line=SERVERLINE] [version=N]
//! ping c [op=N]                                                          any of these, as the operation N
//! ```

use bytes::Bytes;
use bytestring::ByteString;
use node_wire::client::{
    Acl, AddWatchRequest, AuthPacket, CheckVersionRequest, CreateRequest, CreateTtlRequest, DeleteRequest,
    MultiOp, MultiRequest, OpCode, PathOnly, PathWatch, ReconfigRequest, SetAclRequest, SetDataRequest,
    SetWatches2, SyncRequest, WatchesRequest,
};
use node_wire::ids::Zxid;
use node_wire::jute::encode;

use crate::runner::{Args, Outcome};

/// A client's request: its operation, what to call it, and its body.
pub(crate) fn request(name: &str, args: &mut Args<'_>) -> Outcome<(OpCode, String, Bytes)> {
    Ok(match name {
        "create" => create(args)?,
        "set" | "delete" | "check" | "setacl" => change(name, args)?,
        "get" | "exists" | "children" => {
            let op = match name {
                "get" => OpCode::GetData,
                "exists" => OpCode::Exists,
                _ => OpCode::GetChildren2,
            };
            let path = args.path_or_root();
            let body = PathWatch { path: path.clone(), watch: args.or("watch", false)? };
            (op, path.to_string(), encode(|w| body.encode(w)))
        }
        "acl" | "count" | "ephemerals" => {
            let op = match name {
                "acl" => OpCode::GetAcl,
                "count" => OpCode::GetAllChildrenNumber,
                _ => OpCode::GetEphemerals,
            };
            let path = args.path_or_root();
            (op, path.to_string(), encode(|w| PathOnly { path: path.clone() }.encode(w)))
        }
        "multi" | "multiread" => multi(name, args)?,
        "addwatch" | "removewatch" | "checkwatch" => watch(name, args)?,
        "setwatches" => {
            let body = SetWatches2 {
                relative_zxid: args.zxid("seen")?.unwrap_or(Zxid::ZERO),
                data_watches: args.paths("data"),
                exist_watches: args.paths("exist"),
                child_watches: args.paths("children"),
                persistent_watches: args.paths("persistent"),
                persistent_recursive_watches: args.paths("recursive"),
            };
            (OpCode::SetWatches2, String::new(), encode(|w| body.encode(w)))
        }
        "auth" => {
            let scheme = ByteString::from(args.word()?);
            let auth = Some(Bytes::copy_from_slice(args.word()?.as_bytes()));
            let body = AuthPacket { kind: 0, scheme: scheme.clone(), auth };
            (OpCode::Auth, scheme.to_string(), encode(|w| body.encode(w)))
        }
        "sync" => {
            let body = SyncRequest { path: ByteString::from_static("/") };
            (OpCode::Sync, String::new(), encode(|w| body.encode(w)))
        }
        "reconfig" => reconfig(args)?,
        "whoami" => (OpCode::WhoAmI, String::new(), Bytes::new()),
        "ping" => (OpCode::Ping, String::new(), Bytes::new()),
        "close" => (OpCode::CloseSession, String::new(), Bytes::new()),
        "reap" => {
            let path = args.path()?;
            (OpCode::DeleteContainer, path.clone(), Bytes::from(path))
        }
        _ => return Err(format!("no command {name}").into()),
    })
}

fn reconfig(args: &mut Args<'_>) -> Outcome<(OpCode, String, Bytes)> {
    let line = |role: &str, id: &str| format!("server.{id}=host{id}:2888:3888:{role};2181");
    let mut lines = |key: &str, role: &str| -> Option<Vec<String>> {
        Some(args.0.take_key(key)?.split(',').map(|id| line(role, id)).collect())
    };
    let (join, observe, all) =
        (lines("join", "participant"), lines("observe", "observer"), lines("all", "participant"));
    let text = |lines: Vec<String>| (!lines.is_empty()).then(|| ByteString::from(lines.join(",")));
    let literal = args.0.take_key("line").map(str::to_owned);
    let joining =
        [join.unwrap_or_default(), observe.unwrap_or_default(), literal.into_iter().collect()].concat();
    let body = ReconfigRequest {
        joining: text(joining),
        leaving: args.0.take_key("leave").map(ByteString::from),
        members: all.and_then(text),
        config_version: args.zxid("version")?.map_or(-1, Zxid::to_wire),
    };
    Ok((OpCode::Reconfig, String::new(), encode(|w| body.encode(w))))
}

fn create(args: &mut Args<'_>) -> Outcome<(OpCode, String, Bytes)> {
    let (path, data) = (args.path()?, args.0.next_pos().unwrap_or("").to_owned());
    let flags = i32::from(args.or("ephemeral", false)?) + 2 * i32::from(args.or("sequential", false)?);
    let container = args.or("container", false)?;
    let ttl: Option<i64> = args.key("ttl")?;
    let acl = acl(args)?;
    let (about, path, data) = (path.clone(), ByteString::from(path), Some(Bytes::from(data)));
    Ok(match ttl {
        Some(ttl_ms) => {
            let flags = if flags & 2 == 0 { 5 } else { 6 };
            let body = CreateTtlRequest { path, data, acl, flags, ttl_ms };
            (OpCode::CreateTtl, about, encode(|w| body.encode(w)))
        }
        None if container => {
            let body = CreateRequest { path, data, acl, flags: 4 };
            (OpCode::CreateContainer, about, encode(|w| body.encode(w)))
        }
        None => {
            let body = CreateRequest { path, data, acl, flags };
            (OpCode::Create2, about, encode(|w| body.encode(w)))
        }
    })
}

fn acl(args: &mut Args<'_>) -> Outcome<Vec<Acl>> {
    let open = Acl::world_anyone();
    Ok(vec![Acl {
        perms: args.or("perms", open.perms)?,
        scheme: args.or("scheme", open.scheme.to_string())?.into(),
        id: args.or("id", open.id.to_string())?.into(),
    }])
}

fn change(name: &str, args: &mut Args<'_>) -> Outcome<(OpCode, String, Bytes)> {
    let about = args.path()?;
    let path = ByteString::from(about.as_str());
    let version = args.or("version", -1)?;
    Ok(match name {
        "set" => {
            let data = Some(Bytes::copy_from_slice(args.word()?.as_bytes()));
            let body = SetDataRequest { path, data, version };
            (OpCode::SetData, about, encode(|w| body.encode(w)))
        }
        "delete" => (OpCode::Delete, about, encode(|w| DeleteRequest { path, version }.encode(w))),
        "check" => (OpCode::Check, about, encode(|w| CheckVersionRequest { path, version }.encode(w))),
        _ => {
            let body = SetAclRequest { path, acl: acl(args)?, version };
            (OpCode::SetAcl, about, encode(|w| body.encode(w)))
        }
    })
}

fn multi(name: &str, args: &mut Args<'_>) -> Outcome<(OpCode, String, Bytes)> {
    let mut ops = Vec::new();
    while let Some(word) = args.0.next_pos() {
        let mut parts = word.split(':');
        let (op, path) = (parts.next().unwrap_or(""), parts.next().ok_or("an operation has a path")?);
        let version = parts.next().map_or(Ok(-1), str::parse)?;
        let path = ByteString::from(format!("/{path}"));
        let data = Some(Bytes::new());
        ops.push(match op {
            "create" => {
                let acl = vec![Acl::world_anyone()];
                MultiOp::Create2(CreateRequest { path, data, acl, flags: 0 })
            }
            "delete" => MultiOp::Delete(DeleteRequest { path, version }),
            "set" => MultiOp::SetData(SetDataRequest { path, data, version }),
            "check" => MultiOp::Check(CheckVersionRequest { path, version }),
            "get" => MultiOp::GetData(PathWatch { path, watch: false }),
            "children" => MultiOp::GetChildren(PathWatch { path, watch: false }),
            _ => return Err(format!("no operation {op}").into()),
        });
    }
    let op = if name == "multi" { OpCode::Multi } else { OpCode::MultiRead };
    Ok((op, String::new(), encode(|w| MultiRequest { ops }.encode(w))))
}

fn watch(name: &str, args: &mut Args<'_>) -> Outcome<(OpCode, String, Bytes)> {
    let path = args.path_or_root();
    let about = path.to_string();
    Ok(match name {
        "addwatch" => {
            let body = AddWatchRequest { path, mode: i32::from(args.or("recursive", false)?) };
            (OpCode::AddWatch, about, encode(|w| body.encode(w)))
        }
        _ => {
            let kind = match args.or("kind", "any".to_owned())?.as_str() {
                "children" => 1,
                "data" => 2,
                _ => 3,
            };
            let op = if name == "checkwatch" { OpCode::CheckWatches } else { OpCode::RemoveWatches };
            (op, about, encode(|w| WatchesRequest { path, kind }.encode(w)))
        }
    })
}
