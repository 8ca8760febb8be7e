//! Files of a data directory.

use bytes::{BufMut, Bytes, BytesMut};
use node_log::{Log, LogOptions, MemStorage, Repairs, Storage, compress, decompress};
use node_wire::ids::Zxid;
use node_wire::jute::Writer;
use node_wire::logfile::{self, Compression, FileName, HEADER_LEN, Record, RecordReader};
use node_wire::snapshot::file::{FileEncoder, decode_file, encode_file};
use node_wire::txn::{Entry, Txn};
use simd_adler32::adler32;

use super::{read, returns, written};
use crate::meter::{Bound, within};
use crate::split;

/// A transaction as it is proposed and logged.
pub(super) fn transactions(input: &[u8]) {
    entry(&Bytes::copy_from_slice(input));
}

/// Of whomever it comes.
pub(super) fn entry(bytes: &Bytes) {
    let whole = bytes.clone();
    let Ok((entry, _)) = read(bytes, |_| Entry::decode(whole)) else { return };
    assert_eq!(entry.bytes, *bytes, "a transaction is logged as it came");
    let made = Entry::new(entry.header, entry.txn.clone(), entry.digest);
    let again = Entry::decode(made.bytes.clone()).expect("what was written is read");
    assert_eq!((again.header, &again.digest), (entry.header, &entry.digest));
    assert_eq!(again.txn, entry.txn, "what was written is read as it was");
    let body = written(|w| entry.txn.encode(w));
    if !matches!(entry.txn, Txn::CloseSession { paths: None }) {
        let kind = entry.header.kind;
        returns(&body, |r| Txn::decode(kind, r), Txn::encode);
    }
    if let Txn::Multi { txns } = &entry.txn {
        for (kind, body) in txns {
            returns(body, |r| Txn::decode(*kind, r), Txn::encode);
        }
    }
}

/// Reading a file holds its records: the least takes 46 bytes.
const FILE: Bound = Bound { flat: 8192, per_byte: 64 };

/// A log: its first byte says whether the rest is the file, or entries that are put into records with sound
/// checksums.
pub(super) fn log(input: &[u8]) {
    let Some((selector, rest)) = input.split_first() else { return };
    let file = if selector & 1 == 0 { Bytes::copy_from_slice(rest) } else { log_of(split(rest)) };
    let Ok(mut reader) = RecordReader::new(file.clone()) else { return };
    let mut end = HEADER_LEN;
    loop {
        match within(FILE, file.len(), || reader.read_record()) {
            Record::Entry(entry) => {
                let mut record = BytesMut::new();
                logfile::encode_record(&entry, &mut record);
                let from = &file[end..reader.offset()];
                assert_eq!(record, from, "a record is written as it was read");
                end = reader.offset();
            }
            Record::End => {
                assert!(file[end..].iter().all(|byte| *byte == 0), "nothing is behind the end");
                break;
            }
            Record::Torn { offset, .. } => {
                assert_eq!(offset, end, "a log is torn behind what is sound");
                break;
            }
        }
    }
    assert_eq!(reader.offset(), end);
}

fn log_of<'a>(entries: impl Iterator<Item = &'a [u8]>) -> Bytes {
    let mut file = BytesMut::new();
    logfile::encode_header(&mut file);
    for entry in entries {
        file.put_i64(i64::from(adler32(&entry)));
        Writer::new(&mut file).buffer(entry);
        file.put_u8(b'B');
    }
    file.freeze()
}

/// What comes out of a compressed file: gzip makes at most 1032 bytes of one, and a list grows by doubling.
const UNPACKED: Bound = Bound { flat: 256 << 10, per_byte: 4096 };

/// A snapshot: its first byte says whether the rest is the file, plain or compressed, or what is between
/// header and seal.
pub(super) fn snapshot(input: &[u8]) {
    let Some((selector, rest)) = input.split_first() else { return };
    let file = match *selector {
        2 | 3 => {
            let method = Compression::ALL[usize::from(selector - 2)];
            let rest = Bytes::copy_from_slice(rest);
            match within(UNPACKED, rest.len(), || decompress(&rest, method)) {
                Ok(file) => file,
                Err(_) => return,
            }
        }
        4 | 5 => {
            let method = Compression::ALL[usize::from(selector - 4)];
            let file = sealed(rest);
            let packed = compress(&file, method);
            assert_eq!(decompress(&packed, method).as_ref(), Ok(&file), "what was packed is unpacked");
            file
        }
        plain if plain & 1 == 0 => Bytes::copy_from_slice(rest),
        _ => sealed(rest),
    };
    let Ok(read) = within(FILE, file.len(), || decode_file(file.clone(), Zxid(7))) else { return };
    let mut once = BytesMut::new();
    encode_file(&read.image, read.digest, &mut once);
    let again = decode_file(once.clone().freeze(), Zxid(7)).expect("what was written is read");
    assert_eq!(again, read, "what was written is read as it was");
    let mut encoder = FileEncoder::new(&read.image, read.digest);
    let mut pieces = BytesMut::new();
    let mut target = 1;
    while encoder.fill(&mut pieces, target) {
        target = 1 + pieces.len();
    }
    assert_eq!(pieces, once, "a file is the same however it is written");
}

fn sealed(body: &[u8]) -> Bytes {
    let mut file = BytesMut::new();
    file.put_slice(b"ZKSN\0\0\0\x02");
    file.put_i64(-1);
    file.put_slice(body);
    let checksum = i64::from(adler32(&&file[..]));
    file.put_i64(checksum);
    Writer::new(&mut file).string("/");
    file.freeze()
}

/// How little of a log is written at a time here.
const SMALL: LogOptions = LogOptions { preallocate_bytes: 64, roll_bytes: 1 << 10, note_synced: false };

/// A whole data directory: pairs of a name and a content. A name of one byte is the usual one for its number.
///
/// What opens must open again, as the same and with nothing left to repair.
pub(super) fn directory(input: &[u8]) {
    let storage = MemStorage::new();
    let mut pieces = split(input);
    while let (Some(name), Some(content)) = (pieces.next(), pieces.next()) {
        let (name, content) = usual(name, content);
        let Ok(mut file) = storage.create(&name) else { continue };
        let written = storage.write_at(&mut file, 0, &content);
        written.expect("a disk in memory has room");
    }
    let Ok((log, first)) = Log::open(storage.clone(), SMALL) else { return };
    let last = log.last_zxid();
    drop(log);
    let (log, second) = Log::open(storage, SMALL).expect("what was opened opens again");
    assert_eq!(second.repairs.torn_tail, Repairs::default().torn_tail, "what was repaired is sound");
    assert!(!second.repairs.completed_install && second.repairs.removed_temporary.is_empty());
    assert_eq!(log.last_zxid(), last);
    assert_eq!((second.image, second.entries), (first.image, first.entries));
    assert_eq!(second.accepted_epoch, first.accepted_epoch);
    assert_eq!(second.current_epoch, first.current_epoch);
}

/// The names of a small directory, with contents whose checksums hold.
fn usual(name: &[u8], content: &[u8]) -> (String, Bytes) {
    let zxid = |number: u8| Zxid((u64::from(number >> 4) << 32) | u64::from(number & 15));
    match *name {
        [0] => ("acceptedEpoch".to_owned(), Bytes::copy_from_slice(content)),
        [1] => ("currentEpoch".to_owned(), Bytes::copy_from_slice(content)),
        [2, number] => (FileName::Log(zxid(number)).to_string(), log_of(split(content))),
        [3, number] => (FileName::Snapshot(zxid(number)).to_string(), sealed(content)),
        [4, number] => (FileName::Log(zxid(number)).to_string(), Bytes::copy_from_slice(content)),
        [5, number] => (FileName::Snapshot(zxid(number)).to_string(), Bytes::copy_from_slice(content)),
        [number @ 7..=8, zxid_of] => {
            let method = Compression::ALL[usize::from(number - 7)];
            let name = FileName::Compressed(zxid(zxid_of), method).to_string();
            (name, compress(&sealed(content), method))
        }
        [6, number] => (format!("install.{:x}", zxid(number).0), sealed(content)),
        _ => (String::from_utf8_lossy(name).replace(['/', '\0'], "_"), Bytes::copy_from_slice(content)),
    }
}
