//! Session passwords.
//!
//! A client resumes its session at another member with the password it was given, and no member stores any:
//! it is computed from the session's identifier, with a secret that is the same in every ZooKeeper. It keeps
//! sessions from being mixed up by mistake and protects nothing against intent. The generator is
//! `java.util.Random`, whose documentation defines it to the bit.

use crate::ids::SessionId;

/// What every ZooKeeper mixes into the seed.
const SECRET: i64 = 0xb341_5c00;

const MULTIPLIER: u64 = 0x5_deec_e66d;
const INCREMENT: u64 = 0xb;
const STATE: u64 = (1 << 48) - 1;

/// The password of a session.
#[must_use]
pub fn session_password(session: SessionId) -> [u8; 16] {
    let mut state = ((session.0 ^ SECRET).cast_unsigned() ^ MULTIPLIER) & STATE;
    let mut password = [0; 16];
    for word in password.chunks_exact_mut(4) {
        state = state.wrapping_mul(MULTIPLIER).wrapping_add(INCREMENT) & STATE;
        // The generator gives the upper 32 of its 48 bits, and fills bytes from the lowest of them.
        word.copy_from_slice(&(state >> 16).to_le_bytes()[..4]);
    }
    password
}
