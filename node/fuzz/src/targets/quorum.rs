//! The quorum port: packets, and the tree behind SNAP.

use bytes::{Bytes, BytesMut};
use node_wire::ids::Zxid;
use node_wire::jute::DecodeError;
use node_wire::quorum::{
    ForwardedRequest, LeaderInfo, LearnerInfo, PacketType, PingTouches, QuorumPacket, Revalidate,
    Revalidated, decode_packet,
};
use node_wire::snapshot::Image;
use node_wire::snapshot::stream::{StreamDecoder, StreamEncoder, encode_stream};

use super::{RECORD, record, returns, returns_exactly, written};
use crate::meter::within;

/// A stream of packets, whole and in portions, and what is in them.
pub(super) fn packets(input: &[u8]) {
    let (whole, end) = take_all([input].into_iter());
    let (slowly, same_end) = take_all(input.chunks(1 + input.len() / 11));
    assert_eq!(whole, slowly, "packets are the same however they come");
    assert_eq!(end, same_end);
    for packet in whole {
        let once = written(|w| packet.encode(w));
        let mut received = BytesMut::from(&once[..]);
        assert_eq!(decode_packet(&mut received), Ok(Some(packet.clone())), "a packet is read as it was");
        assert!(received.is_empty());
        data(packet);
    }
}

fn take_all<'a>(portions: impl Iterator<Item = &'a [u8]>) -> (Vec<QuorumPacket>, Result<(), DecodeError>) {
    let mut buffer = BytesMut::new();
    let mut packets = Vec::new();
    for portion in portions {
        buffer.extend_from_slice(portion);
        loop {
            let len = buffer.len();
            match within(RECORD, len, || decode_packet(&mut buffer)) {
                Ok(Some(packet)) => {
                    assert!(buffer.len() < len, "a packet takes room");
                    packets.push(packet);
                }
                Ok(None) => break,
                Err(error) => return (packets, Err(error)),
            }
        }
    }
    (packets, Ok(()))
}

/// What is in a packet, as its type says.
fn data(packet: QuorumPacket) {
    let Some(data) = packet.data else { return };
    match packet.kind {
        PacketType::FollowerInfo | PacketType::ObserverInfo => {
            returns(&data, LearnerInfo::decode, LearnerInfo::encode);
        }
        PacketType::LeaderInfo => drop(returns(&data, LeaderInfo::decode, LeaderInfo::encode)),
        PacketType::Request => {
            if let Ok(request) = ForwardedRequest::decode(data.clone(), packet.auth.clone()) {
                assert_eq!(written(|w| request.encode(w)), data);
                assert_eq!(request.into_packet().auth, packet.auth);
            }
        }
        PacketType::Revalidate => {
            returns_exactly(&data, Revalidate::decode, Revalidate::encode);
            let _ = record::<Revalidated>(&data);
        }
        PacketType::Ping => {
            if let Ok(touches) = within(RECORD, data.len(), || PingTouches::decode(data.clone())) {
                assert_eq!(written(|w| touches.encode(w)), data);
            }
        }
        PacketType::Proposal | PacketType::Inform => super::disk::entry(&data),
        PacketType::CommitAndActivate | PacketType::InformAndActivate => {
            if let Some(entry) = data.get(8..) {
                super::disk::entry(&Bytes::copy_from_slice(entry));
            }
        }
        PacketType::Ack
        | PacketType::Commit
        | PacketType::Sync
        | PacketType::NewLeader
        | PacketType::UpToDate
        | PacketType::Diff
        | PacketType::Trunc
        | PacketType::Snap
        | PacketType::AckEpoch => {}
    }
}

/// The tree behind SNAP, whole and in portions.
pub(super) fn stream(input: &[u8]) {
    let whole = feed([input].into_iter());
    let slowly = feed(input.chunks(1 + input.len() / 5));
    assert_eq!(whole, slowly, "a tree is the same however it comes");
    let Ok(Some((image, rest))) = whole else { return };
    assert!(input.ends_with(&rest), "what is behind the tree is left alone");
    let mut once = BytesMut::new();
    encode_stream(&image, &mut once);
    assert_eq!(feed([&once[..]].into_iter()), Ok(Some((image.clone(), BytesMut::new()))));
    let mut pieces = BytesMut::new();
    let mut encoder = StreamEncoder::new(&image);
    let mut target = 1;
    while encoder.fill(&mut pieces, target) {
        target = 1 + pieces.len();
    }
    assert_eq!(pieces, once, "a stream is the same however it is written");
}

type Fed = Result<Option<(Image, BytesMut)>, DecodeError>;

fn feed<'a>(portions: impl Iterator<Item = &'a [u8]>) -> Fed {
    let mut decoder = StreamDecoder::new(Zxid(7));
    let mut buffer = BytesMut::new();
    let mut image = None;
    for portion in portions {
        buffer.extend_from_slice(portion);
        if image.is_none() {
            image = within(RECORD, buffer.len(), || decoder.feed(&mut buffer))?;
        }
    }
    Ok(image.map(|image| (image, buffer)))
}
