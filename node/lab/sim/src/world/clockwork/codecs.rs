//! What travels between members goes through the codecs of the real wire.

use bytes::BytesMut;
use node_core::io::{ConnId, Input};
use node_wire::client::{put_frame, take_frame};
use node_wire::election::{MAX_NOTIFICATION, Notification};
use node_wire::jute::Writer;
use node_wire::quorum::{QuorumPacket, decode_packet};
use node_wire::snapshot::{Image, StreamDecoder, encode_stream};

use crate::network::Cargo;
use crate::world::Clockwork;

/// Most packets take no more bytes than this.
const ROOM_FOR_PACKET: usize = 256;

impl Clockwork {
    pub(in crate::world) fn vote_through_codec(&mut self, notification: Notification) -> Notification {
        if !self.dice.chance(self.drawn.codec) {
            return notification;
        }
        let mut buffer = BytesMut::new();
        put_frame(&mut buffer, |w| notification.encode(w));
        let frame = take_frame(&mut buffer, MAX_NOTIFICATION).expect("what we encode can be decoded");
        let decoded = Notification::decode(frame.expect("a whole frame was written"))
            .expect("what we encode can be decoded");
        assert_eq!(decoded, notification, "a vote changed on its way");
        decoded
    }

    /// What arrives, as the member is told of it.
    pub(in crate::world) fn input_of(&mut self, conn: ConnId, cargo: Cargo) -> Input {
        match cargo {
            Cargo::Packet(packet) => {
                self.counters.packets += 1;
                Input::Packet { conn, packet: self.packet_through_codec(packet) }
            }
            Cargo::Image(snapshot) => {
                Input::Image { conn, image: self.image_through_codec(snapshot.to_image()) }
            }
            Cargo::Fin => Input::PeerLost { conn },
        }
    }

    fn packet_through_codec(&mut self, packet: QuorumPacket) -> QuorumPacket {
        if !self.dice.chance(self.drawn.codec) {
            return packet;
        }
        let mut buffer = BytesMut::with_capacity(ROOM_FOR_PACKET);
        packet.encode(&mut Writer::new(&mut buffer));
        let decoded = decode_packet(&mut buffer).expect("what we encode can be decoded");
        assert!(buffer.is_empty(), "a packet left bytes behind: {packet:?}");
        let decoded = decoded.expect("a whole packet was written");
        assert_eq!(decoded, packet, "a packet changed on its way");
        decoded
    }

    fn image_through_codec(&mut self, image: Image) -> Image {
        if !self.dice.chance(self.drawn.codec) {
            return image;
        }
        let mut buffer = BytesMut::new();
        encode_stream(&image, &mut buffer);
        let mut decoder = StreamDecoder::new(image.zxid);
        decoder.feed(&mut buffer).expect("what we encode can be decoded").expect("a whole image was written")
    }
}
