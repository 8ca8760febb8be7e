//! Snapshots that are compressed, as ZooKeeper 3.6 and later can write them (`snapshot.compression.method`).
//!
//! What is compressed is the whole file with its seals, so that checksums hold of what comes out. `gz` is
//! RFC 1952. `snappy` is the stream of its Java library: a magic number and two versions, then blocks of
//! Snappy's raw format, each behind its length.
//!
//! A block of Snappy says how long it will be. No block can be more than [`SNAPPY_RATIO`] times as long as it
//! is, so one that says so is damaged; gzip makes at most 1032 bytes of one and is unpacked as it comes.

use std::io::{self, Cursor, Read, Write};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use node_wire::logfile::Compression;

/// What a stream of Snappy's Java library begins with: a magic number, its version, and the oldest that can
/// read it.
const SNAPPY_HEADER: &[u8; 16] = b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01";

/// What a file of gzip begins with.
const GZ_MAGIC: &[u8; 2] = b"\x1f\x8b";

/// How much is in one block.
const SNAPPY_BLOCK: usize = 32 << 10;

/// A copy of up to 64 bytes takes 2 bytes at least.
const SNAPPY_RATIO: usize = 32;

/// What came out of a file of this method. The error says what is wrong with it.
pub fn decompress(content: &Bytes, method: Compression) -> Result<Bytes, String> {
    match method {
        Compression::Gz => {
            let mut out = Vec::new();
            let read = MultiGzDecoder::new(&content[..]).read_to_end(&mut out);
            read.map_err(|error| format!("unpack it: {error}"))?;
            Ok(Bytes::from(out))
        }
        Compression::Snappy => unsnap(content.clone()),
    }
}

/// Reads what comes out of a file, if it begins as one that is compressed, and else the file as it is. Files
/// of `gz` of any length are read piece by piece.
pub fn decompressing(mut file: impl Read + 'static) -> io::Result<Box<dyn Read>> {
    let mut begin = [0; SNAPPY_HEADER.len()];
    let mut len = 0;
    while len < begin.len() {
        match file.read(&mut begin[len..])? {
            0 => break,
            count => len += count,
        }
    }
    let mut whole = Read::chain(Cursor::new(begin[..len].to_vec()), file);
    if begin.starts_with(GZ_MAGIC) {
        return Ok(Box::new(MultiGzDecoder::new(whole)));
    }
    if begin == *SNAPPY_HEADER {
        let mut content = Vec::new();
        whole.read_to_end(&mut content)?;
        let out = unsnap(Bytes::from(content))
            .map_err(|reason| io::Error::new(io::ErrorKind::InvalidData, reason))?;
        return Ok(Box::new(Cursor::new(out)));
    }
    Ok(Box::new(whole))
}

fn unsnap(mut content: Bytes) -> Result<Bytes, String> {
    let damaged = |what: &str| format!("unpack it: {what}");
    let mut out = Vec::new();
    let mut decoder = snap::raw::Decoder::new();
    let mut begun = false;
    while !content.is_empty() {
        // Streams may stand behind each other, each with its header.
        if content.starts_with(SNAPPY_HEADER) {
            content.advance(SNAPPY_HEADER.len());
            begun = true;
            continue;
        }
        if !begun {
            return Err(damaged("it does not begin as a Snappy stream"));
        }
        let len = content.try_get_u32().ok().and_then(|len| usize::try_from(len).ok());
        let Some(block) = len.filter(|len| *len <= content.len()).map(|len| content.split_to(len)) else {
            return Err(damaged("it ends inside of a block"));
        };
        let full = snap::raw::decompress_len(&block).map_err(|error| damaged(&error.to_string()))?;
        if full > SNAPPY_RATIO * block.len() {
            return Err(damaged("a block says that it is longer than it can be"));
        }
        let start = out.len();
        out.resize(start + full, 0);
        decoder.decompress(&block, &mut out[start..]).map_err(|error| damaged(&error.to_string()))?;
    }
    if begun { Ok(Bytes::from(out)) } else { Err(damaged("it is empty")) }
}

/// Compresses piece by piece.
pub(crate) enum Compressor {
    Gz(GzEncoder<Vec<u8>>),
    Snappy { encoder: Box<snap::raw::Encoder>, begun: bool },
}

impl Compressor {
    pub(crate) fn new(method: Compression) -> Self {
        match method {
            // As fast as it can be: a snapshot is written often and read seldom.
            Compression::Gz => Self::Gz(GzEncoder::new(Vec::new(), flate2::Compression::fast())),
            Compression::Snappy => {
                Self::Snappy { encoder: Box::new(snap::raw::Encoder::new()), begun: false }
            }
        }
    }

    /// Takes a piece, which may be the last one, and gives what is to be written.
    pub(crate) fn piece(&mut self, piece: &[u8], last: bool) -> Result<Vec<u8>, String> {
        match self {
            Self::Gz(encoder) => {
                let written =
                    encoder.write_all(piece).and_then(|()| if last { encoder.try_finish() } else { Ok(()) });
                written.map_err(|error| error.to_string())?;
                Ok(std::mem::take(encoder.get_mut()))
            }
            Self::Snappy { encoder, begun } => {
                let mut out = Vec::new();
                if !std::mem::replace(begun, true) {
                    out.extend_from_slice(SNAPPY_HEADER);
                }
                for block in piece.chunks(SNAPPY_BLOCK) {
                    let block = encoder.compress_vec(block).map_err(|error| error.to_string())?;
                    // A block is a little longer than what is in it at most.
                    out.put_u32(u32::try_from(block.len()).map_err(|error| error.to_string())?);
                    out.extend_from_slice(&block);
                }
                Ok(out)
            }
        }
    }
}

/// Compresses all of it at once.
#[must_use]
pub fn compress(content: &[u8], method: Compression) -> Bytes {
    let mut out = BytesMut::new();
    // Compressing into memory does not fail.
    if let Ok(piece) = Compressor::new(method).piece(content, true) {
        out.extend_from_slice(&piece);
    }
    out.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_compressed_comes_out_again() {
        let long: Vec<u8> = (0..200_000_u32).flat_map(|n| (n / 7).to_be_bytes()).collect();
        for method in Compression::ALL {
            for content in [&b""[..], b"short", &long] {
                let packed = compress(content, method);
                if !(content.is_empty() && method == Compression::Snappy) {
                    assert_eq!(decompress(&packed, method).as_deref(), Ok(content), "{method:?}");
                }
            }
            let packed = compress(&long, method);
            assert!(packed.len() < long.len() / 2);
            for cut in [1, 17, packed.len() / 2, packed.len() - 1] {
                let cut = decompress(&packed.slice(..cut), method);
                assert_ne!(cut.as_deref(), Ok(&long[..]), "{method:?}");
            }
        }
    }

    #[test]
    fn a_block_that_says_a_gigabyte_allocates_nothing() {
        let mut file = SNAPPY_HEADER.to_vec();
        // The length as a varint: 2^30.
        let block = [0x80, 0x80, 0x80, 0x80, 0x04, 0x00];
        file.extend(6_u32.to_be_bytes());
        file.extend(block);
        let error = decompress(&Bytes::from(file), Compression::Snappy).expect_err("longer than it can be");
        assert!(error.contains("longer than it can be"), "{error}");
    }

    #[test]
    fn a_file_of_the_java_library_is_read() {
        // What SnappyOutputStream writes for "hello".
        let file = b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01\0\0\0\x07\x05\x10hello";
        let read = decompress(&Bytes::from_static(file), Compression::Snappy);
        assert_eq!(read.as_deref(), Ok(&b"hello"[..]));
    }
}
