//! What an executable says about itself, and the part of it that is needed to run.
//!
//! The members' image holds this very executable and nothing else, so it must need nothing else: no loader,
//! no library. What lies behind its last loaded segment (names, lines, debugging) is most of its size and is
//! left out of the image; the kernel does not look at it.

use std::fmt;

/// Why an executable can't be carried into a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// It is none that this code can read.
    NotElf64,
    /// It asks for a loader.
    Dynamic(String),
    /// It is for another processor.
    OtherMachine {
        /// What it is for.
        own: &'static str,
        /// What the engine is.
        engine: String,
    },
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotElf64 => f.write_str(
                "this executable is no 64-bit little-endian ELF file, and nothing else can be put into an \
                    image",
            ),
            Self::Dynamic(loader) => write!(
                f,
                "this executable asks for the loader {loader}, which an image of itself alone does not have: \
                 build it statically (`cargo build --release` in the repository does, by \
                 `.cargo/config.toml`; elsewhere RUSTFLAGS=\"-C target-feature=+crt-static\" with --target)"
            ),
            Self::OtherMachine { own, engine } => write!(
                f,
                "this executable is for {own} and the engine runs {engine}: build the harness for {engine}, \
                 or name another engine in DOCKER_HOST"
            ),
        }
    }
}

/// Loads itself into memory as this program header says.
const PT_LOAD: u32 = 1;
/// Names a loader.
const PT_INTERP: u32 = 3;
/// The size of the file's header.
const HEADER_BYTES: usize = 64;
/// Program headers beyond this are nonsense.
const MAX_HEADERS: usize = 128;

/// A 64-bit little-endian executable.
pub struct Executable<'a> {
    bytes: &'a [u8],
}

struct Segment {
    kind: u32,
    offset: usize,
    end: usize,
}

impl<'a> Executable<'a> {
    /// Looks at a file's bytes.
    pub fn read(bytes: &'a [u8]) -> Result<Self, Unfit> {
        const ELF64_LITTLE_ENDIAN: [u8; 6] = [0x7f, b'E', b'L', b'F', 2, 1];
        if bytes.len() < HEADER_BYTES || !bytes.starts_with(&ELF64_LITTLE_ENDIAN) {
            return Err(Unfit::NotElf64);
        }
        let executable = Self { bytes };
        executable.segments()?;
        Ok(executable)
    }

    fn number<const N: usize>(&self, at: usize) -> Result<u64, Unfit> {
        let field = at.checked_add(N).and_then(|end| self.bytes.get(at..end)).ok_or(Unfit::NotElf64)?;
        Ok(field.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    fn position<const N: usize>(&self, at: usize) -> Result<usize, Unfit> {
        usize::try_from(self.number::<N>(at)?).map_err(|_| Unfit::NotElf64)
    }

    fn segments(&self) -> Result<Vec<Segment>, Unfit> {
        let (table, size, count) =
            (self.position::<8>(32)?, self.position::<2>(54)?, self.position::<2>(56)?);
        if count > MAX_HEADERS {
            return Err(Unfit::NotElf64);
        }
        (0..count)
            .map(|number| {
                let at = number.checked_mul(size).and_then(|skip| table.checked_add(skip));
                let at = at.ok_or(Unfit::NotElf64)?;
                let kind = u32::try_from(self.number::<4>(at)?).map_err(|_| Unfit::NotElf64)?;
                let offset = self.position::<8>(at.saturating_add(8))?;
                let length = self.position::<8>(at.saturating_add(32))?;
                let end = offset.checked_add(length).filter(|end| *end <= self.bytes.len());
                Ok(Segment { kind, offset, end: end.ok_or(Unfit::NotElf64)? })
            })
            .collect()
    }

    /// The processor that it is for, as Go and Docker name it.
    pub fn machine(&self) -> Result<&'static str, Unfit> {
        Ok(match self.number::<2>(18)? {
            62 => "amd64",
            183 => "arm64",
            243 => "riscv64",
            21 => "ppc64le",
            22 => "s390x",
            _ => "an unknown processor",
        })
    }

    /// Refuses one that would not run alone in a container of an engine with this processor.
    pub fn check(&self, engine: &str) -> Result<(), Unfit> {
        if let Some(loader) = self.segments()?.iter().find(|segment| segment.kind == PT_INTERP) {
            let name = String::from_utf8_lossy(&self.bytes[loader.offset..loader.end]);
            return Err(Unfit::Dynamic(name.trim_end_matches('\0').to_owned()));
        }
        let own = self.machine()?;
        if own == engine { Ok(()) } else { Err(Unfit::OtherMachine { own, engine: engine.to_owned() }) }
    }

    /// Its bytes up to the end of the last segment that is loaded, with a header that knows of no sections.
    pub fn without_sections(&self) -> Result<Vec<u8>, Unfit> {
        let table_end = self.position::<8>(32)?.saturating_add(MAX_HEADERS.min(self.position::<2>(56)?) * 56);
        let loaded = self.segments()?.into_iter().filter(|segment| segment.kind == PT_LOAD);
        let end = loaded.map(|segment| segment.end).max().ok_or(Unfit::NotElf64)?;
        let mut bytes = self.bytes[..end.max(table_end).min(self.bytes.len())].to_vec();
        // The offset of the section headers, then their count and the index of their names.
        bytes[40..48].fill(0);
        bytes[60..64].fill(0);
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file with these program headers (kind, offset, length) and `tail` bytes of sections behind.
    fn file(machine: u16, headers: &[(u32, u64, u64)], length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        bytes[..6].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1]);
        bytes[18..20].copy_from_slice(&machine.to_le_bytes());
        bytes[32..40].copy_from_slice(&64_u64.to_le_bytes());
        bytes[40..48].copy_from_slice(&400_u64.to_le_bytes());
        bytes[54..56].copy_from_slice(&56_u16.to_le_bytes());
        bytes[56..58].copy_from_slice(&u16::try_from(headers.len()).expect("few").to_le_bytes());
        bytes[60..62].copy_from_slice(&7_u16.to_le_bytes());
        for (number, (kind, offset, length)) in headers.iter().enumerate() {
            let at = 64 + number * 56;
            bytes[at..at + 4].copy_from_slice(&kind.to_le_bytes());
            bytes[at + 8..at + 16].copy_from_slice(&offset.to_le_bytes());
            bytes[at + 32..at + 40].copy_from_slice(&length.to_le_bytes());
        }
        bytes
    }

    #[test]
    fn a_static_executable_keeps_what_is_loaded_and_loses_the_rest() {
        let bytes = file(62, &[(PT_LOAD, 0, 200), (PT_LOAD, 200, 100)], 500);
        let executable = Executable::read(&bytes).expect("an executable");
        assert_eq!(executable.check("amd64"), Ok(()));
        let cut = executable.without_sections().expect("cut");
        assert_eq!(cut.len(), 300);
        assert_eq!((&cut[40..48], &cut[60..64]), (&[0; 8][..], &[0; 4][..]));
        assert_eq!(Executable::read(&cut).expect("still one").check("amd64"), Ok(()));
    }

    #[test]
    fn one_that_asks_for_a_loader_or_is_for_another_processor_is_refused_with_advice() {
        let mut bytes = file(183, &[(PT_INTERP, 300, 8), (PT_LOAD, 0, 400)], 400);
        bytes[300..308].copy_from_slice(b"/lib/ld\0");
        let refused = Executable::read(&bytes).expect("an executable").check("arm64").expect_err("dynamic");
        assert_eq!(refused, Unfit::Dynamic("/lib/ld".to_owned()));
        let bytes = file(183, &[(PT_LOAD, 0, 400)], 400);
        let refused = Executable::read(&bytes).expect("an executable").check("amd64").expect_err("foreign");
        assert!(refused.to_string().contains("for arm64 and the engine runs amd64"), "{refused}");
    }

    #[test]
    fn hostile_bytes_are_no_executable() {
        assert!(Executable::read(b"#!/bin/sh\n").is_err());
        assert!(Executable::read(&file(62, &[(PT_LOAD, 0, u64::MAX)], 500)).is_err());
        assert!(Executable::read(&file(62, &[(PT_LOAD, u64::MAX, 2)], 500)).is_err());
        let mut bytes = file(62, &[], 500);
        bytes[32..40].copy_from_slice(&u64::MAX.to_le_bytes());
        bytes[56..58].copy_from_slice(&3_u16.to_le_bytes());
        assert!(Executable::read(&bytes).is_err());
        bytes[56..58].copy_from_slice(&u16::MAX.to_le_bytes());
        assert!(Executable::read(&bytes).is_err());
    }

    #[test]
    fn these_tests_run_from_an_executable_that_is_understood() {
        let bytes = std::fs::read("/proc/self/exe").expect("this executable");
        let executable = Executable::read(&bytes).expect("an ELF file");
        assert!(executable.without_sections().expect("cut").len() <= bytes.len());
    }
}
