//! The code that a shifted process runs in place of its own clock functions, by hand, and where it stands.
//!
//! The annex is what is written behind the end of the target's vDSO image (see [`crate::vdso`]): a mark to
//! know it by, the offset, the code. It is position independent and needs no memory that the target can
//! write. Each patched function begins with one jump of five bytes into it; the rest of the function stays as
//! it was. How both are fitted to an image is in [`crate::fitting`].
//!
//! The offset is one of sixteen cells, and one byte says which. A change fills a cell that is not in use and
//! then stores that one byte: the kernel's copying into another process promises no eight bytes at a time,
//! but one byte can't be torn. A reader would have to sleep through sixteen changes to see a cell being
//! filled.
//!
//! Every function asks the kernel by a system call, so each call costs what a system call costs. The result
//! is put on the stack first and stored in the caller's memory once it is shifted: nobody sees the true time
//! there.

/// By what an annex of ours is known. The digit counts versions: another one may be laid out differently.
pub(crate) const MARK: &[u8; 16] = b"shifted-clock/1\0";
/// Where the byte stands that says which cell holds. On a cache line of its own.
pub(crate) const INDEX: usize = 0x40;
/// Where the cells begin: nanoseconds, signed, eight bytes each.
pub(crate) const CELLS: usize = 0x80;
/// How many cells there are.
pub(crate) const CELL_COUNT: u8 = 16;
/// Where the code begins.
pub(crate) const CODE: usize = 0x100;
/// Length of the whole annex.
pub(crate) const LENGTH: usize = CODE + LISTING.len();
/// What replaces the first bytes of a function: `jmp rel32`.
pub(crate) const JUMP_LENGTH: usize = 5;

/// Where `int clock_gettime(clockid_t, struct timespec *)` stands in the annex.
pub(crate) const CLOCK_GETTIME: usize = 0x100;
/// Where `int gettimeofday(struct timeval *, struct timezone *)` stands.
pub(crate) const GETTIMEOFDAY: usize = 0x150;
/// Where `time_t time(time_t *)` stands.
pub(crate) const TIME: usize = 0x1a0;
/// Where a thread is sent that shall read its clock: a call of the vDSO's `clock_gettime`, then a small loop.
pub(crate) const READING: usize = 0x210;
/// The loop in which it then waits to be fetched.
pub(crate) const READING_DONE: std::ops::Range<usize> = 0x215..0x219;

/// The code, assembled by hand; `tests/compiled.rs` runs every line of it. Offsets are from the annex's
/// beginning.
#[rustfmt::skip]
pub(crate) const LISTING: [u8; 0x119] = [
    // 100 clock_gettime: edi = which clock, rsi = timespec
    0x83, 0xff, 0x1f,                         // 100 cmp edi, 31
    0x77, 0x0a,                               // 103 ja 10f
    0xb8, 0x21, 0x09, 0x00, 0x00,             // 105 mov eax, 0x921    ; REALTIME, _COARSE, _ALARM, TAI
    0x0f, 0xa3, 0xf8,                         // 10a bt eax, edi
    0x72, 0x08,                               // 10d jc 117
    0xb8, 0xe4, 0x00, 0x00, 0x00,             // 10f mov eax, 228      ; any other clock: the kernel's answer
    0x0f, 0x05,                               // 114 syscall
    0xc3,                                     // 116 ret
    0x48, 0x85, 0xf6,                         // 117 test rsi, rsi
    0x74, 0x28,                               // 11a jz 144
    0x49, 0x89, 0xf0,                         // 11c mov r8, rsi       ; a system call leaves r8 alone
    0x48, 0x83, 0xec, 0x18,                   // 11f sub rsp, 24
    0x48, 0x89, 0xe6,                         // 123 mov rsi, rsp
    0xb8, 0xe4, 0x00, 0x00, 0x00,             // 126 mov eax, 228
    0x0f, 0x05,                               // 12b syscall
    0x85, 0xc0,                               // 12d test eax, eax
    0x75, 0x0e,                               // 12f jnz 13f           ; refused, by a seccomp filter say
    0xe8, 0x9a, 0x00, 0x00, 0x00,             // 131 call 1d0
    0x49, 0x89, 0x00,                         // 136 mov [r8], rax
    0x49, 0x89, 0x50, 0x08,                   // 139 mov [r8 + 8], rdx
    0x31, 0xc0,                               // 13d xor eax, eax
    0x48, 0x83, 0xc4, 0x18,                   // 13f add rsp, 24
    0xc3,                                     // 143 ret
    0xb8, 0xf2, 0xff, 0xff, 0xff,             // 144 mov eax, -14      ; EFAULT
    0xc3,                                     // 149 ret
    0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc,
    // 150 gettimeofday: rdi = timeval, rsi = timezone, either may be missing
    0x49, 0x89, 0xf8,                         // 150 mov r8, rdi
    0x48, 0x85, 0xf6,                         // 153 test rsi, rsi
    0x74, 0x0d,                               // 156 jz 165
    0x31, 0xff,                               // 158 xor edi, edi
    0xb8, 0x60, 0x00, 0x00, 0x00,             // 15a mov eax, 96       ; the time zone is the kernel's
    0x0f, 0x05,                               // 15f syscall
    0x85, 0xc0,                               // 161 test eax, eax
    0x75, 0x38,                               // 163 jnz 19d
    0x31, 0xc0,                               // 165 xor eax, eax
    0x4d, 0x85, 0xc0,                         // 167 test r8, r8
    0x74, 0x31,                               // 16a jz 19d
    0x48, 0x83, 0xec, 0x18,                   // 16c sub rsp, 24
    0x31, 0xff,                               // 170 xor edi, edi      ; CLOCK_REALTIME
    0x48, 0x89, 0xe6,                         // 172 mov rsi, rsp
    0xb8, 0xe4, 0x00, 0x00, 0x00,             // 175 mov eax, 228
    0x0f, 0x05,                               // 17a syscall
    0x85, 0xc0,                               // 17c test eax, eax
    0x75, 0x19,                               // 17e jnz 199
    0xe8, 0x4b, 0x00, 0x00, 0x00,             // 180 call 1d0
    0x49, 0x89, 0x00,                         // 185 mov [r8], rax
    0x89, 0xd0,                               // 188 mov eax, edx
    0x31, 0xd2,                               // 18a xor edx, edx
    0xb9, 0xe8, 0x03, 0x00, 0x00,             // 18c mov ecx, 1000
    0xf7, 0xf1,                               // 191 div ecx
    0x49, 0x89, 0x40, 0x08,                   // 193 mov [r8 + 8], rax
    0x31, 0xc0,                               // 197 xor eax, eax
    0x48, 0x83, 0xc4, 0x18,                   // 199 add rsp, 24
    0xc3,                                     // 19d ret
    0xcc, 0xcc,
    // 1a0 time: rdi = time_t, may be missing. The kernel's own is coarse, so that it never runs ahead.
    0x49, 0x89, 0xf8,                         // 1a0 mov r8, rdi
    0x48, 0x83, 0xec, 0x18,                   // 1a3 sub rsp, 24
    0xbf, 0x05, 0x00, 0x00, 0x00,             // 1a7 mov edi, 5        ; CLOCK_REALTIME_COARSE
    0x48, 0x89, 0xe6,                         // 1ac mov rsi, rsp
    0xb8, 0xe4, 0x00, 0x00, 0x00,             // 1af mov eax, 228
    0x0f, 0x05,                               // 1b4 syscall
    0x85, 0xc0,                               // 1b6 test eax, eax
    0x75, 0x0f,                               // 1b8 jnz 1c9
    0xe8, 0x11, 0x00, 0x00, 0x00,             // 1ba call 1d0
    0x4d, 0x85, 0xc0,                         // 1bf test r8, r8
    0x74, 0x07,                               // 1c2 jz 1cb
    0x49, 0x89, 0x00,                         // 1c4 mov [r8], rax
    0xeb, 0x02,                               // 1c7 jmp 1cb
    0x48, 0x98,                               // 1c9 cdqe
    0x48, 0x83, 0xc4, 0x18,                   // 1cb add rsp, 24
    0xc3,                                     // 1cf ret
    // 1d0 [rsp + 8] = timespec; rax = its seconds shifted, rdx = its nanoseconds, from 0 to 999,999,999
    0x0f, 0xb6, 0x05, 0x69, 0xfe, 0xff, 0xff, // 1d0 movzx eax, byte [rip -> 40]
    0x48, 0x8d, 0x15, 0xa2, 0xfe, 0xff, 0xff, // 1d7 lea rdx, [rip -> 80]
    0x48, 0x8b, 0x04, 0xc2,                   // 1de mov rax, [rdx + 8 * rax]
    0x48, 0x03, 0x44, 0x24, 0x10,             // 1e2 add rax, [rsp + 16] ; can't overflow: MAX_OFFSET_NS
    0x48, 0x99,                               // 1e7 cqo
    0xb9, 0x00, 0xca, 0x9a, 0x3b,             // 1e9 mov ecx, 1000000000
    0x48, 0xf7, 0xf9,                         // 1ee idiv rcx
    0x48, 0x85, 0xd2,                         // 1f1 test rdx, rdx
    0x79, 0x06,                               // 1f4 jns 1fc
    0x48, 0x01, 0xca,                         // 1f6 add rdx, rcx
    0x48, 0xff, 0xc8,                         // 1f9 dec rax
    0x48, 0x03, 0x44, 0x24, 0x08,             // 1fc add rax, [rsp + 8]
    0xc3,                                     // 201 ret
    0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc,
    // 210 for a reading: edi and rsi are set by who sends the thread here. Called and not jumped to, so that
    // a shadow stack agrees.
    0xe8, 0x00, 0x00, 0x00, 0x00,             // 210 call the vDSO's clock_gettime, patched or not
    0xf3, 0x90,                               // 215 pause
    0xeb, 0xfc,                               // 217 jmp 215
];

/// Eight bytes as the processor keeps them.
pub(crate) fn cell(offset_ns: i64) -> [u8; 8] {
    offset_ns.to_le_bytes()
}

/// Where cell `index` stands in the annex.
pub(crate) fn cell_at(index: u8) -> usize {
    CELLS + 8 * usize::from(index % CELL_COUNT)
}

/// What of `found` has to be as in `annex`: everything but the offset.
pub(crate) fn is_ours(found: &[u8], annex: &[u8]) -> bool {
    let fixed = |bytes: &[u8]| {
        bytes.get(..INDEX).map(<[u8]>::to_vec).zip(bytes.get(CODE..LENGTH).map(<[u8]>::to_vec))
    };
    fixed(annex).is_some() && fixed(found) == fixed(annex)
}

/// Whether `found` carries the mark, of whatever version.
pub(crate) fn is_marked(found: &[u8]) -> bool {
    found.starts_with(&MARK[..14])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_the_listing_begins_where_it_is_said_to() {
        let at = |offset: usize, bytes: &[u8]| assert_eq!(&LISTING[offset - CODE..][..bytes.len()], bytes);
        at(CLOCK_GETTIME, &[0x83, 0xff, 0x1f]);
        at(GETTIMEOFDAY, &[0x49, 0x89, 0xf8, 0x48, 0x85]);
        at(TIME, &[0x49, 0x89, 0xf8, 0x48, 0x83]);
        at(READING, &[0xe8]);
        at(READING_DONE.start, &[0xf3, 0x90, 0xeb, 0xfc]);
        assert_eq!(LENGTH, READING_DONE.end);
        assert_eq!(CELLS + 8 * usize::from(CELL_COUNT), CODE);
    }
}
