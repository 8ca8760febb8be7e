//! Which member is to have which piece.

use bytestring::ByteString;

/// Says which member is to have which piece.
///
/// All members compute it, each for itself. So it may depend on nothing but its arguments.
pub trait Allocate: Clone {
    /// The owner of each piece, as its place among the members. Pieces and members are sorted. There is one
    /// owner for each piece, in the order of the pieces; a piece without one belongs to nobody.
    fn allocate(&self, pieces: &[ByteString], members: &[ByteString]) -> Vec<usize>;
}

/// Each member has as many pieces as every other, or one more; and few pieces move when a member comes or
/// goes.
///
/// Each pair of a piece and a member has a score, which is computed from the two names alone. The pair with
/// the largest score comes first: the member has the piece, if the piece is free and the member has room.
/// (It is rendezvous hashing, with a limit for each member.)
///
/// The work is that of sorting all pairs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Balanced;

impl Allocate for Balanced {
    fn allocate(&self, pieces: &[ByteString], members: &[ByteString]) -> Vec<usize> {
        if members.is_empty() {
            return Vec::new();
        }
        let mut pairs = Vec::with_capacity(pieces.len() * members.len());
        for (piece, piece_name) in pieces.iter().enumerate() {
            for (member, member_name) in members.iter().enumerate() {
                pairs.push((score(piece_name, member_name), piece, member));
            }
        }
        pairs.sort_unstable_by(|a, b| b.cmp(a));
        let all_have = pieces.len() / members.len();
        let mut have_one_more = pieces.len() % members.len();
        let mut have = vec![0; members.len()];
        let mut owners = vec![None; pieces.len()];
        for (_, piece, member) in pairs {
            if owners[piece].is_some() || have[member] > all_have {
                continue;
            }
            if have[member] == all_have {
                if have_one_more == 0 {
                    continue;
                }
                have_one_more -= 1;
            }
            have[member] += 1;
            owners[piece] = Some(member);
        }
        // Each piece has one. If one had none, no member would have room, and then all pieces are given.
        owners.into_iter().flatten().collect()
    }
}

/// FNV-1a over both names, whose bits are then mixed as in `SplitMix64`.
fn score(piece: &str, member: &str) -> u64 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in piece.bytes().chain([b'/']).chain(member.bytes()) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(kind: &str, count: usize) -> Vec<ByteString> {
        (0..count).map(|number| format!("{kind}{number:04}").into()).collect()
    }

    #[test]
    fn every_piece_has_an_owner_and_no_member_has_two_more_than_another() {
        for pieces in 0..40 {
            for members in 1..12 {
                let owners = Balanced.allocate(&names("p", pieces), &names("m", members));
                assert_eq!(owners.len(), pieces);
                let have = |member| owners.iter().filter(|owner| **owner == member).count();
                let (least, most) = ((0..members).map(have).min(), (0..members).map(have).max());
                assert!(most <= least.map(|least| least + 1), "{pieces} pieces, {members} members");
            }
        }
        assert!(Balanced.allocate(&names("p", 3), &[]).is_empty());
    }

    /// Pieces whose owner changes when one of so many members goes, beyond those that it had.
    fn moved(pieces: usize, members: usize, goes: usize) -> usize {
        let (pieces, all) = (names("p", pieces), names("m", members));
        let mut rest = all.clone();
        rest.remove(goes);
        let (before, after) = (Balanced.allocate(&pieces, &all), Balanced.allocate(&pieces, &rest));
        let stayed = before.iter().zip(&after).filter(|(before, _)| **before != goes);
        stayed.filter(|(before, after)| all[**before] != rest[**after]).count()
    }

    #[test]
    fn few_pieces_move_when_a_member_goes() {
        let moves: Vec<usize> = (0..10).map(|goes| moved(100, 10, goes)).collect();
        assert!(moves.iter().sum::<usize>() < 60, "{moves:?}");
    }
}
