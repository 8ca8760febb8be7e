//! The stub fitted to one vDSO image: its annex, and the jumps that lead there.
//!
//! Both depend on where the image's own functions stand. For a reading the annex calls the vDSO's
//! `clock_gettime`; and each clock function of the image begins with a jump.

use crate::stub::{CLOCK_GETTIME, CODE, GETTIMEOFDAY, JUMP_LENGTH, LENGTH, LISTING, MARK, READING, TIME};
use crate::vdso::Vdso;

/// A displacement from the end of an instruction to its target, both within one image.
fn displacement(end: usize, target: usize) -> [u8; 4] {
    let distance = i128::try_from(target).unwrap_or_default() - i128::try_from(end).unwrap_or_default();
    i32::try_from(distance).unwrap_or_default().to_le_bytes()
}

/// The annex as it is written into a target: mark, cells of zero, code that knows where `clock_gettime` is.
pub(crate) fn annex(vdso: &Vdso) -> Vec<u8> {
    let mut annex = vec![0; LENGTH];
    annex[..MARK.len()].copy_from_slice(MARK);
    annex[CODE..].copy_from_slice(&LISTING);
    let end = READING + 5;
    annex[READING + 1..end].copy_from_slice(&displacement(vdso.annex + end, vdso.clock_gettime.start));
    annex
}

/// The jumps: where in the image each stands, and its bytes. `clock_gettime` comes last: it is what is asked
/// most.
pub(crate) fn jumps(vdso: &Vdso) -> [(usize, [u8; JUMP_LENGTH]); 3] {
    [(&vdso.time, TIME), (&vdso.gettimeofday, GETTIMEOFDAY), (&vdso.clock_gettime, CLOCK_GETTIME)].map(
        |(function, target)| {
            let mut jump = [0xe9; JUMP_LENGTH];
            jump[1..].copy_from_slice(&displacement(function.start + JUMP_LENGTH, vdso.annex + target));
            (function.start, jump)
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_displacement_reaches_both_ways() {
        assert_eq!(displacement(0x105, 0x100), [0xfb, 0xff, 0xff, 0xff]);
        assert_eq!(displacement(0x100, 0x1100), [0x00, 0x10, 0x00, 0x00]);
    }
}
