//! A probe's or control's 48 bytes: whose run, which round, who sent it, when.
//!
//! Numbers are in the network's order. Anything else that arrives at the port is none of ours.

use crate::protocol::Peer;

/// Length of every datagram.
pub(super) const LENGTH: usize = 48;
const MAGIC: &[u8; 8] = b"harness1";

/// What a datagram is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Rules hit it.
    Probe,
    /// No rule hits it.
    Control,
}

/// What a datagram says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Datagram {
    pub(super) run: u64,
    pub(super) round: u64,
    pub(super) sender: Peer,
    pub(super) sent_ns: u64,
    pub(super) kind: Kind,
}

impl Datagram {
    pub(super) fn encode(&self) -> [u8; LENGTH] {
        let kind = match self.kind {
            Kind::Probe => 1,
            Kind::Control => 2_u64,
        };
        let mut bytes = [0; LENGTH];
        let words = [u64::from_be_bytes(*MAGIC), self.run, self.round, self.sender, self.sent_ns, kind];
        for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_be_bytes());
        }
        bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; LENGTH] = bytes.try_into().ok()?;
        let mut words = bytes.chunks_exact(8).map(|word| word.try_into().map(u64::from_be_bytes));
        let mut word = || words.next()?.ok();
        if word()? != u64::from_be_bytes(*MAGIC) {
            return None;
        }
        let (run, round, sender, sent_ns) = (word()?, word()?, word()?, word()?);
        let kind = match word()? {
            1 => Kind::Probe,
            2 => Kind::Control,
            _ => return None,
        };
        Some(Self { run, round, sender, sent_ns, kind })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_is_read_as_it_was_written_and_nothing_else_is() {
        for kind in [Kind::Probe, Kind::Control] {
            let datagram = Datagram { run: 1, round: u64::MAX, sender: 3, sent_ns: 4, kind };
            let bytes = datagram.encode();
            assert_eq!(Datagram::decode(&bytes), Some(datagram));
            assert_eq!(Datagram::decode(&bytes[..LENGTH - 1]), None);
            assert_eq!(Datagram::decode(&[&bytes[..], &[0]].concat()), None);
            for at in [0, 7, LENGTH - 1] {
                let mut foreign = bytes;
                foreign[at] ^= 0x80;
                assert_eq!(Datagram::decode(&foreign), None);
            }
        }
        assert_eq!(Datagram::decode(&[]), None);
    }
}
