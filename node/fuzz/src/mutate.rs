//! Random mutation of inputs, for where nothing but a stable toolchain is.
//!
//! The steps are those of every mutational fuzzer: bits, bytes, numbers that sit at an edge, pieces left out,
//! doubled, moved, or taken from another input. One step in eight starts from nothing. All of it follows from
//! the seed.

use rand::{Rng, RngExt};

use crate::MAX_INPUT;

/// Numbers at which something may turn over.
const EDGES: &[i64] = &[
    0,
    1,
    -1,
    -2,
    2,
    4,
    8,
    127,
    128,
    255,
    256,
    1024,
    4096,
    0xffff,
    0x10000,
    0xf_ffff,
    0x10_0000,
    2 * 0xf_ffff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    i64::MAX,
    i64::MIN,
];

/// A new input from those that are there.
pub fn mutate(rng: &mut impl Rng, corpus: &[Vec<u8>]) -> Vec<u8> {
    let pick = |rng: &mut _| -> Vec<u8> {
        if corpus.is_empty() { Vec::new() } else { corpus[below(rng, corpus.len())].clone() }
    };
    let mut input = if below(rng, 8) == 0 { Vec::new() } else { pick(rng) };
    for _ in 0..=below(rng, 6) {
        let other = pick(rng);
        step(rng, &mut input, &other);
    }
    input.truncate(MAX_INPUT);
    input
}

fn step(rng: &mut impl Rng, input: &mut Vec<u8>, other: &[u8]) {
    let len = input.len();
    let at = below(rng, len + 1);
    match below(rng, 10) {
        0 if at < len => input[at] ^= 1 << below(rng, 8),
        1 if at < len => input[at] = rng.random(),
        2 if at < len => input[at] = input[at].wrapping_add(rng.random_range(0..=2)).wrapping_sub(1),
        3 => write_edge(rng, &mut input[at..]),
        4 => drop(input.drain(at..(at + below(rng, 16)).min(len))),
        5 => input.truncate(at),
        6 => {
            let piece: Vec<u8> = some_of(rng, input).to_vec();
            drop(input.splice(at..at, piece));
        }
        7 => {
            let piece: Vec<u8> = some_of(rng, other).to_vec();
            drop(input.splice(at..at, piece));
        }
        8 => {
            let piece = some_of(rng, other);
            let end = (at + piece.len()).min(len);
            input[at..end].copy_from_slice(&piece[..end - at]);
        }
        _ => {
            let more = below(rng, 12);
            drop(input.splice(at..at, (0..more).map(|_| rng.random())));
        }
    }
}

fn write_edge(rng: &mut impl Rng, place: &mut [u8]) {
    let bytes = EDGES[below(rng, EDGES.len())].to_be_bytes();
    let width = [1, 2, 4, 8][below(rng, 4)].min(place.len());
    place[..width].copy_from_slice(&bytes[8 - width..]);
}

fn some_of<'a>(rng: &mut impl Rng, bytes: &'a [u8]) -> &'a [u8] {
    let start = below(rng, bytes.len() + 1);
    let end = (start + below(rng, 64)).min(bytes.len());
    &bytes[start..end]
}

fn below(rng: &mut impl Rng, bound: usize) -> usize {
    rng.random_range(0..bound)
}
