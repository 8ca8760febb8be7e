//! The vDSO, by its own tables: where its clock functions stand, and where there is room behind them.
//!
//! The image is the kernel's and the same in every 64-bit process of a machine, so our own copy is what a
//! target's is held against: what differs is our patch, or somebody else's, which is refused. It is a small
//! ELF library, padded with zeros to whole pages, mapped readable and executable. The padding is where the
//! annex goes: nothing has to be mapped in the target, no call has to be made for it, and a jump of five
//! bytes reaches it.
//!
//! Tables are read with every offset checked; what does not fit is "unsupported", never a panic.

use std::ops::Range;

use crate::stub;

/// The annex begins at a multiple of this, so that its cells keep to cache lines of their own.
const LINE: usize = 64;
/// `PT_LOAD`, `PT_DYNAMIC`.
const LOAD: u32 = 1;
const DYNAMIC: u32 = 2;
/// `DT_HASH`, `DT_STRTAB`, `DT_SYMTAB`.
const HASH: u64 = 4;
const STRINGS: u64 = 5;
const SYMBOLS: u64 = 6;
/// `SHT_NOBITS`, `SHT_DYNSYM`.
const NO_BITS: u32 = 8;
const DYNAMIC_SYMBOLS: u32 = 11;
/// Symbols looked at, at most; real images have about a dozen.
const MAX_SYMBOLS: usize = 1_000;

/// The image and what is of interest in it; everything is an offset from its beginning.
#[derive(Debug)]
pub(crate) struct Vdso {
    /// All its bytes, unpatched.
    pub(crate) image: Vec<u8>,
    /// `clock_gettime`.
    pub(crate) clock_gettime: Range<usize>,
    /// `gettimeofday`.
    pub(crate) gettimeofday: Range<usize>,
    /// `time`.
    pub(crate) time: Range<usize>,
    /// Every other function that has a name: `getcpu`, `getrandom`, ...
    others: Vec<Range<usize>>,
    /// Where the annex begins.
    pub(crate) annex: usize,
}

fn bytes<const N: usize>(image: &[u8], at: usize) -> Option<[u8; N]> {
    image.get(at..at.checked_add(N)?)?.try_into().ok()
}

fn u16_at(image: &[u8], at: usize) -> Option<usize> {
    bytes(image, at).map(|found| usize::from(u16::from_le_bytes(found)))
}

fn u32_at(image: &[u8], at: usize) -> Option<u32> {
    bytes(image, at).map(u32::from_le_bytes)
}

fn u64_at(image: &[u8], at: usize) -> Option<u64> {
    bytes(image, at).map(u64::from_le_bytes)
}

/// A field that must be an offset.
fn offset_at(image: &[u8], at: usize) -> Option<usize> {
    u64_at(image, at).and_then(|offset| usize::try_from(offset).ok())
}

/// What the section headers tell: where the file really ends, and how many symbols there are.
fn sections(image: &[u8]) -> Option<(usize, Option<usize>)> {
    let (at, size, count) = (offset_at(image, 40)?, u16_at(image, 58)?, u16_at(image, 60)?);
    let mut end = at.checked_add(size.checked_mul(count)?)?;
    let mut symbols = None;
    for header in (0..count).map(|index| at + index * size) {
        let kind = u32_at(image, header + 4)?;
        let (offset, length) = (offset_at(image, header + 24)?, offset_at(image, header + 32)?);
        if kind != NO_BITS {
            end = end.max(offset.checked_add(length)?);
        }
        if kind == DYNAMIC_SYMBOLS {
            symbols = Some(length / 24);
        }
    }
    Some((end, symbols))
}

/// A symbol's name is compared with, never copied.
fn is_named(image: &[u8], at: usize, name: &str) -> bool {
    image.get(at..).is_some_and(|rest| rest.starts_with(name.as_bytes()) && rest.get(name.len()) == Some(&0))
}

impl Vdso {
    /// Reads the tables of an unpatched image. The error says what is missing.
    pub(crate) fn parse(image: Vec<u8>) -> Result<Self, &'static str> {
        if !image.starts_with(b"\x7fELF\x02\x01") || u16_at(&image, 18) != Some(62) {
            return Err("its vDSO is not a 64-bit one for x86-64");
        }
        Self::tables(&image).ok_or("its vDSO has tables that make no sense").and_then(
            |(named, others, end)| {
                let [Some(clock_gettime), Some(gettimeofday), Some(time)] = named else {
                    return Err("its vDSO lacks clock_gettime, gettimeofday or time");
                };
                if [&clock_gettime, &gettimeofday, &time]
                    .iter()
                    .any(|function| function.len() < stub::JUMP_LENGTH)
                {
                    return Err("a clock function of its vDSO is shorter than a jump");
                }
                let annex = end.next_multiple_of(LINE);
                let room = image
                    .get(annex..annex + stub::LENGTH)
                    .ok_or("its vDSO has too little room behind its code")?;
                if stub::is_marked(room) {
                    return Err("the clock of this process itself is shifted");
                }
                if room.iter().any(|byte| *byte != 0) {
                    return Err("something unknown stands behind the code of its vDSO");
                }
                Ok(Self { clock_gettime, gettimeofday, time, others, annex, image })
            },
        )
    }

    /// The three functions, the other functions, and where everything ends.
    #[expect(clippy::type_complexity, reason = "taken apart by its only caller")]
    fn tables(image: &[u8]) -> Option<([Option<Range<usize>>; 3], Vec<Range<usize>>, usize)> {
        let (at, size, count) = (offset_at(image, 32)?, u16_at(image, 54)?, u16_at(image, 56)?);
        let (mut end, mut dynamic) = (0, None);
        for header in (0..count).map(|index| at.saturating_add(index * size)) {
            let kind = u32_at(image, header)?;
            let (offset, length) = (offset_at(image, header + 8)?, offset_at(image, header + 32)?);
            if kind == LOAD {
                // Mapped as it lies in the file, from its beginning: addresses are offsets.
                if offset_at(image, header + 16)? != offset {
                    return None;
                }
                end = end.max(offset.checked_add(length)?);
            } else if kind == DYNAMIC {
                dynamic = Some(offset..offset.checked_add(length)?);
            }
        }
        let entries = image.get(dynamic?)?;
        let entry = |tag: u64| {
            entries
                .chunks_exact(16)
                .find(|entry| u64_at(entry, 0) == Some(tag))
                .and_then(|entry| offset_at(entry, 8))
        };
        let (strings, symbols) = (entry(STRINGS)?, entry(SYMBOLS)?);
        let (file_end, known) = sections(image)?;
        let count = match known {
            Some(count) => count,
            None => usize::try_from(u32_at(image, entry(HASH)?.checked_add(4)?)?).ok()?,
        };
        let mut named = [None, None, None];
        let mut others = Vec::new();
        for symbol in (0..count.min(MAX_SYMBOLS)).map(|index| symbols.saturating_add(24 * index)) {
            let name = strings.checked_add(usize::try_from(u32_at(image, symbol)?).ok()?)?;
            // The low four bits of `st_info`: 2 is a function.
            if image.get(symbol + 4)? & 0xf != 2 {
                continue;
            }
            let start = offset_at(image, symbol + 8)?;
            let function = start..start.checked_add(offset_at(image, symbol + 16)?)?;
            image.get(function.clone())?;
            let names = ["__vdso_clock_gettime", "__vdso_gettimeofday", "__vdso_time"];
            match names.iter().position(|known| is_named(image, name, known)) {
                Some(index) => named[index] = Some(function),
                None => others.push(function),
            }
        }
        // The functions have two names each; under the short one they are not others.
        others.retain(|other| !named.iter().flatten().any(|function| function.start == other.start));
        let end = end.max(file_end);
        (end <= image.len()).then_some((named, others, end))
    }

    /// Whether a thread that stands at `offset` may be inside one of the clock functions, or in a helper that
    /// one of them called. Its first instruction is not inside: whatever stands there is begun as a whole.
    pub(crate) fn is_inside(&self, offset: usize) -> bool {
        offset < self.annex
            && ![&self.clock_gettime, &self.gettimeofday, &self.time]
                .iter()
                .any(|function| function.start == offset)
            && !self.others.iter().any(|other| other.contains(&offset))
    }

    /// Whether `offset` is within the bytes that a jump replaces, behind the first.
    pub(crate) fn is_replaced(&self, offset: usize) -> bool {
        [&self.clock_gettime, &self.gettimeofday, &self.time]
            .iter()
            .any(|function| (function.start + 1..function.start + stub::JUMP_LENGTH).contains(&offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target;

    fn own() -> Vec<u8> {
        target::own_image().expect("this process has a vDSO")
    }

    #[test]
    fn the_functions_of_this_machine_are_found() {
        let vdso = Vdso::parse(own()).expect("a known vDSO");
        assert!(vdso.clock_gettime.len() > 16 && vdso.gettimeofday.len() > 16 && vdso.time.len() > 5);
        assert!(vdso.annex + stub::LENGTH <= vdso.image.len());
        assert!(vdso.is_inside(vdso.clock_gettime.start + 1) && !vdso.is_inside(vdso.clock_gettime.start));
        assert!(!vdso.is_inside(vdso.annex + stub::READING));
    }

    #[test]
    fn a_cut_image_is_refused_and_never_a_panic() {
        let image = own();
        for length in 0..image.len() - stub::LENGTH {
            let _ = Vdso::parse(image[..length].to_vec());
        }
    }

    #[test]
    fn a_damaged_image_is_refused_and_never_a_panic() {
        let image = own();
        for at in 0..0x800.min(image.len()) {
            for value in [0, 1, 0x7f, 0xff] {
                let mut damaged = image.clone();
                damaged[at] = value;
                let _ = Vdso::parse(damaged);
            }
        }
    }
}
