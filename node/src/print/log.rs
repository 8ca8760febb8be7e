//! A transaction log, record by record.

use std::fs::File;
use std::io;

use bytes::{BufMut, Bytes, BytesMut};
use node_wire::client::{ErrorCode, OpCode};
use node_wire::jute::limits::MAX_BUFFER;
use node_wire::jute::{DecodeError, Reader};
use node_wire::logfile::{HEADER_LEN, Record, RecordReader, TornReason, encode_header};
use node_wire::txn::{Entry, Txn};
use serde_json::{Map, Value, json};

use super::source::Source;
use super::{Damage, Line, Sink, text};

/// What is before the bytes of a record: their checksum and their length.
const HEAD: usize = 8 + 4;

/// Reads a log and gives a line for each transaction; the length of what is sound, or where it is not.
pub(super) fn read(file: File, as_json: bool, sink: &mut Sink<'_>) -> io::Result<Result<u64, Damage>> {
    let mut source = Source::new(file);
    if let Err(error) = source.take(header)? {
        let reason = format!("this is no transaction log of version 2 (failed to {error})");
        return Ok(Err(Damage { offset: 0, reason }));
    }
    loop {
        let offset = source.offset();
        let damaged = |reason: TornReason| Ok(Err(Damage { offset, reason: reason.to_string() }));
        match source.take(peek)? {
            Ok(Peek::Zeros) => {
                let sound = source.is_zeros_to_the_end()?;
                return if sound { Ok(Ok(offset)) } else { damaged(TornReason::DataBehindZeros) };
            }
            Ok(Peek::Record) => {}
            Err(_) => {
                let sound = source.is_zeros_to_the_end()?;
                return if sound { Ok(Ok(offset)) } else { damaged(TornReason::Truncated) };
            }
        }
        let record = match source.take(whole)? {
            Ok(record) => record,
            Err(DecodeError::Truncated { .. }) => return damaged(TornReason::Truncated),
            Err(error) => return Ok(Err(Damage { offset, reason: format!("failed to {error}") })),
        };
        match judge(&record) {
            Ok(entry) if as_json => sink(Line::Json(object(offset, &entry)))?,
            Ok(entry) => sink(Line::Text(line(&entry)))?,
            Err(reason) => return damaged(reason),
        }
    }
}

fn header(r: &mut Reader) -> Result<(), DecodeError> {
    let bytes = r.take(HEADER_LEN)?;
    RecordReader::new(bytes).map(|_| ()).map_err(|_| DecodeError::Invalid("its first bytes"))
}

/// What follows, by its first bytes.
enum Peek {
    Record,
    Zeros,
}

/// Looks without taking anything.
fn peek(r: &mut Reader) -> Result<Peek, DecodeError> {
    let head = r.clone().take(HEAD)?;
    Ok(if head.iter().all(|byte| *byte == 0) { Peek::Zeros } else { Peek::Record })
}

/// The bytes of a record, from its checksum to its end mark.
fn whole(r: &mut Reader) -> Result<Bytes, DecodeError> {
    let mut ahead = r.clone();
    ahead.long()?;
    let len = match usize::try_from(ahead.int()?) {
        Ok(len) if (1..=MAX_BUFFER).contains(&len) => len,
        // Judged below, with as little as there is.
        Ok(_) | Err(_) => 0,
    };
    r.take(HEAD + len + 1)
}

/// By the rules of the wire's own reader, as if the record were alone in its file.
fn judge(record: &Bytes) -> Result<Entry, TornReason> {
    let mut alone = BytesMut::with_capacity(HEADER_LEN + record.len());
    encode_header(&mut alone);
    alone.put_slice(record);
    let Ok(mut reader) = RecordReader::new(alone.freeze()) else { return Err(TornReason::Truncated) };
    match reader.read_record() {
        Record::Entry(entry) => Ok(entry),
        Record::End => Err(TornReason::Truncated),
        Record::Torn { reason, .. } => Err(reason),
    }
}

fn line(entry: &Entry) -> String {
    let header = &entry.header;
    let digest = entry.digest.map_or(String::new(), |digest| format!(" digest {:#018x}", digest.digest));
    format!(
        "{} session {} cxid {:#x} zxid {} {}{digest}",
        text::time(header.time_ms),
        header.session,
        header.cxid,
        header.zxid,
        short(header.kind, &entry.txn),
    )
}

fn name(kind: i32) -> String {
    OpCode::from_code(kind).map_or_else(|| format!("type {kind}"), |op| format!("{op:?}"))
}

fn short(kind: i32, txn: &Txn) -> String {
    let name = name(kind);
    match txn {
        Txn::CreateSession { timeout_ms } => format!("{name} {timeout_ms} ms"),
        Txn::CloseSession { paths } => format!("{name} {}", paths.as_deref().unwrap_or_default().join(" ")),
        Txn::Create { path, data, acl, ephemeral, .. } => {
            let ephemeral = if *ephemeral { " ephemeral" } else { "" };
            format!("{name} {path}{ephemeral} {} acl {}", text::data(data.as_ref()), text::acl(acl))
        }
        Txn::CreateContainer { path, data, acl, .. } => {
            format!("{name} {path} {} acl {}", text::data(data.as_ref()), text::acl(acl))
        }
        Txn::CreateTtl { path, data, acl, ttl_ms, .. } => {
            format!("{name} {path} ttl {ttl_ms} ms {} acl {}", text::data(data.as_ref()), text::acl(acl))
        }
        Txn::Delete { path } => format!("{name} {path}"),
        Txn::SetData { path, data, version } => {
            format!("{name} {path} version {version} {}", text::data(data.as_ref()))
        }
        Txn::SetAcl { path, acl, version } => {
            format!("{name} {path} version {version} acl {}", text::acl(acl))
        }
        Txn::Check { path, version } => format!("{name} {path} version {version}"),
        Txn::Multi { txns } => {
            let parts = txns.iter().map(|(kind, body)| match part(*kind, body) {
                Some(txn) => short(*kind, &txn),
                None => format!("type {kind}, {} bytes", body.len()),
            });
            format!("{name} [{}]", parts.collect::<Vec<_>>().join("; "))
        }
        Txn::Error { code } => format!("{name} {}", error(*code)),
    }
}

/// One of a multi's; a multi holds no other.
fn part(kind: i32, body: &Bytes) -> Option<Txn> {
    let txn = Txn::decode(kind, &mut Reader::new(body.clone())).ok()?;
    (!matches!(txn, Txn::Multi { .. })).then_some(txn)
}

fn error(code: i32) -> String {
    ErrorCode::from_code(code).map_or_else(|| code.to_string(), |code| format!("{code:?}"))
}

fn object(offset: u64, entry: &Entry) -> Value {
    let header = &entry.header;
    let mut all = fields(header.kind, &entry.txn);
    let more = [
        ("offset", json!(offset)),
        ("time_ms", json!(header.time_ms)),
        ("session", json!(header.session.to_string())),
        ("cxid", json!(header.cxid)),
        ("zxid", json!(header.zxid.to_string())),
        ("digest", json!(entry.digest.map(|digest| digest.digest))),
    ];
    all.extend(more.map(|(name, value)| (name.to_owned(), value)));
    Value::Object(all)
}

fn fields(kind: i32, txn: &Txn) -> Map<String, Value> {
    let named = [("type", json!(name(kind)))].into_iter().chain(said(txn));
    let mut all: Map<String, Value> = named.map(|(name, value)| (name.to_owned(), value)).collect();
    if let Some(data) = data(txn) {
        text::put_data(&mut all, data.as_ref());
    }
    all
}

/// What a transaction says, but for a node's data.
fn said(txn: &Txn) -> Vec<(&'static str, Value)> {
    match txn {
        Txn::CreateSession { timeout_ms } => vec![("timeout_ms", json!(timeout_ms))],
        Txn::CloseSession { paths } => {
            let paths = paths.as_ref().map(|paths| paths.iter().map(|path| &**path).collect::<Vec<_>>());
            vec![("paths", json!(paths))]
        }
        Txn::Create { path, data: _, acl, ephemeral, parent_cversion } => vec![
            ("path", json!(&**path)),
            ("acl", json!(text::acl(acl))),
            ("ephemeral", json!(ephemeral)),
            ("parent_cversion", json!(parent_cversion)),
        ],
        Txn::CreateContainer { path, data: _, acl, parent_cversion } => vec![
            ("path", json!(&**path)),
            ("acl", json!(text::acl(acl))),
            ("parent_cversion", json!(parent_cversion)),
        ],
        Txn::CreateTtl { path, data: _, acl, parent_cversion, ttl_ms } => vec![
            ("path", json!(&**path)),
            ("acl", json!(text::acl(acl))),
            ("parent_cversion", json!(parent_cversion)),
            ("ttl_ms", json!(ttl_ms)),
        ],
        Txn::Delete { path } => vec![("path", json!(&**path))],
        Txn::SetData { path, data: _, version } | Txn::Check { path, version } => {
            vec![("path", json!(&**path)), ("version", json!(version))]
        }
        Txn::SetAcl { path, acl, version } => {
            vec![("path", json!(&**path)), ("acl", json!(text::acl(acl))), ("version", json!(version))]
        }
        Txn::Multi { txns } => {
            let parts = txns.iter().map(|(kind, body)| match part(*kind, body) {
                Some(txn) => Value::Object(fields(*kind, &txn)),
                None => json!({"type": name(*kind), "bytes": body.len()}),
            });
            vec![("txns", parts.collect())]
        }
        Txn::Error { code } => vec![("error", json!(error(*code)))],
    }
}

/// What a transaction writes into a node, if it may write anything.
fn data(txn: &Txn) -> Option<&Option<Bytes>> {
    match txn {
        Txn::Create { data, .. }
        | Txn::CreateContainer { data, .. }
        | Txn::CreateTtl { data, .. }
        | Txn::SetData { data, .. } => Some(data),
        Txn::CreateSession { .. }
        | Txn::CloseSession { .. }
        | Txn::Delete { .. }
        | Txn::SetAcl { .. }
        | Txn::Check { .. }
        | Txn::Multi { .. }
        | Txn::Error { .. } => None,
    }
}
