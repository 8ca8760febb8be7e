//! Histories compressed with zstd, decoded as a stream.
//!
//! A file is one frame after another, and a frame's content is handed on as it is decoded, so memory is
//! bounded by the window that the frame asks for, and what it may ask for is bounded by [`MAX_WINDOW_BYTES`].
//! A frame whose checksum does not fit, or that is damaged otherwise, is an error, and never a shorter
//! history. So is one that ends before its length says, but for one case: behind at least one whole frame,
//! and before anything of it was handed on, whoever wrote was probably interrupted there. All that was handed
//! on is known to be sound. The error is of the kind [`ErrorKind::UnexpectedEof`], and what was read is a
//! beginning.

use std::error::Error;
use std::io::{self, BufRead, ErrorKind, Read};

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// The largest window that a frame may ask for: what `zstd --long` asks for and the tool itself grants
/// unasked.
pub(super) const MAX_WINDOW_BYTES: u64 = 128 << 20;

/// Bytes that a frame begins with.
const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Whether a file that begins so is compressed with zstd. A frame to be skipped may come first; only the
/// lowest four bits of its magic number are free.
pub(super) fn is_zstd(start: &[u8]) -> bool {
    start.starts_with(&MAGIC) || matches!(start, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..])
}

/// Whether a file is compressed with what is not read here, and by which name it goes.
pub(super) fn other_compression(start: &[u8]) -> Option<&'static str> {
    match start {
        [0x1f, 0x8b, ..] => Some("gzip"),
        [b'B', b'Z', b'h', b'1'..=b'9', ..] => Some("bzip2"),
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some("xz"),
        [b'P', b'K', 3, 4, ..] => Some("zip"),
        _ => None,
    }
}

/// The content of all frames.
pub(super) struct Frames<R> {
    source: R,
    frame: Option<FrameDecoder>,
    /// Frames begun, for messages.
    begun: u64,
    /// Whether anything of the frame was handed on.
    handed_on: bool,
}

impl<R: BufRead> Frames<R> {
    pub(super) fn new(source: R) -> Self {
        Self { source, frame: None, begun: 0, handed_on: false }
    }

    fn begin(&mut self) -> io::Result<()> {
        self.begun += 1;
        self.handed_on = false;
        // A decoder that is used again reserves the window that the next frame claims, a new one only what it
        // needs.
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(MAX_WINDOW_BYTES);
        match decoder.init(&mut self.source) {
            Ok(()) => self.frame = Some(decoder),
            Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                length, ..
            })) => {
                let skipped = io::copy(&mut (&mut self.source).take(length.into()), &mut io::sink())?;
                if skipped < u64::from(length) {
                    return Err(self.cut_short());
                }
            }
            Err(error) => return Err(self.damaged(&error)),
        }
        Ok(())
    }

    fn cut_short(&self) -> io::Error {
        let interrupted = self.begun > 1 && !self.handed_on;
        let kind = if interrupted { ErrorKind::UnexpectedEof } else { ErrorKind::InvalidData };
        io::Error::new(kind, format!("zstd frame {} is cut short", self.begun))
    }

    /// What a person is told of an error of the decoder. An error of the reader underneath is that.
    fn damaged(&self, error: &FrameDecoderError) -> io::Error {
        let mut innermost: &(dyn Error + 'static) = error;
        loop {
            match innermost.downcast_ref::<io::Error>().map(io::Error::kind) {
                Some(ErrorKind::UnexpectedEof) => return self.cut_short(),
                Some(ErrorKind::InvalidData | ErrorKind::Other) | None => {}
                Some(kind) => return io::Error::new(kind, innermost.to_string()),
            }
            let Some(source) = innermost.source() else { break };
            innermost = source;
        }
        let reason = match error {
            FrameDecoderError::WindowSizeTooBig { requested, max } => {
                format!("zstd frame {} asks for a window of {requested} bytes, more than {max}", self.begun)
            }
            FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::BadMagicNumber(_)) => {
                format!("something that is no zstd frame follows frame {}", self.begun - 1)
            }
            _ => format!("zstd frame {} is damaged: {innermost}", self.begun),
        };
        io::Error::new(ErrorKind::InvalidData, reason)
    }
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        loop {
            let Some(frame) = &mut self.frame else {
                if self.source.fill_buf()?.is_empty() {
                    return Ok(0);
                }
                self.begin()?;
                continue;
            };
            if frame.can_collect() > 0 {
                self.handed_on = true;
                return frame.read(buf);
            }
            if !frame.is_finished() {
                let step = frame.decode_blocks(&mut self.source, BlockDecodingStrategy::UptoBlocks(1));
                if let Err(error) = step {
                    return Err(self.damaged(&error));
                }
                continue;
            }
            if let Some(claimed) = frame.get_checksum_from_data()
                && frame.get_calculated_checksum() != Some(claimed)
            {
                let reason =
                    format!("zstd frame {} is damaged: its checksum does not fit its content", self.begun);
                return Err(io::Error::new(ErrorKind::InvalidData, reason));
            }
            self.frame = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    use super::*;

    fn decode(bytes: &[u8]) -> Result<Vec<u8>, String> {
        let mut content = Vec::new();
        Frames::new(bytes).read_to_end(&mut content).map_err(|error| error.to_string())?;
        Ok(content)
    }

    fn lines() -> Vec<u8> {
        (0..3000).flat_map(|n| format!("line {n} of {}\n", n * 7919 % 1000).into_bytes()).collect()
    }

    fn frame(content: &[u8]) -> Vec<u8> {
        compress_to_vec(content, CompressionLevel::Fastest)
    }

    #[test]
    fn frames_one_after_another_are_one_content_and_what_is_to_be_skipped_is() {
        let lines = lines();
        let mut file = vec![0x53, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, b'a', b'b', b'c'];
        assert!(is_zstd(&file));
        file.extend(frame(&lines));
        file.extend(frame(b"the end"));
        assert_eq!(decode(&file).unwrap(), [&lines[..], b"the end"].concat());
    }

    #[test]
    fn a_frame_cut_anywhere_says_so() {
        let whole = frame(&lines());
        for cut in (1..whole.len()).step_by(97).chain(whole.len() - 8..whole.len()) {
            assert_eq!(decode(&whole[..cut]).unwrap_err(), "zstd frame 1 is cut short", "cut at {cut}");
        }
        let mut file = frame(b"one");
        file.extend(&whole[..20]);
        assert_eq!(decode(&file).unwrap_err(), "zstd frame 2 is cut short");
    }

    #[test]
    fn what_follows_the_frames_and_is_none_is_an_error() {
        let mut file = frame(b"one");
        file.extend(b"trailing");
        assert_eq!(decode(&file).unwrap_err(), "something that is no zstd frame follows frame 1");
    }

    #[test]
    fn a_frame_that_asks_for_too_much_memory_is_refused_before_it_gets_any() {
        // Window descriptor with the largest exponent.
        let hostile = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xf8, 0x01, 0x00, 0x00];
        let error = decode(&hostile).unwrap_err();
        assert!(error.contains("asks for a window of"), "{error}");
    }

    proptest! {
        #[test]
        fn a_damaged_frame_never_panics(
            at in any::<prop::sample::Index>(), with in 1_u8.., cut in any::<prop::sample::Index>()
        ) {
            let mut file = frame(&lines());
            let at = at.index(file.len());
            file[at] ^= with;
            let _ = decode(&file);
            let _ = decode(&file[..cut.index(file.len())]);
        }

        #[test]
        fn any_bytes_never_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let _ = decode(&bytes);
            bytes.splice(0..0, MAGIC);
            let _ = decode(&bytes);
        }
    }
}
