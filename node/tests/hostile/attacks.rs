//! What hostile clients and strangers do, one function for each.
//!
//! They speak the protocol as far as it serves them, over plain sockets, and hold what they have opened for
//! as long as the answer lives. What they ask is told to them in counts, so that a test does little of it and
//! `examples/hostile.rs` much.

use std::io;
use std::net::SocketAddr;

use bytes::{BufMut, BytesMut};
use bytestring::ByteString;
use node_wire::client::{
    ConnectRequest, ConnectResponse, OpCode, PathWatch, ReplyHeader, Request, SetWatches, put_frame,
    take_frame,
};
use node_wire::election::{Hello, Notification, PeerState};
use node_wire::ids::{Epoch, Round, ServerId, SessionId, Zxid};
use node_wire::jute::{Jute, Reader, Writer};
use node_wire::quorum::{Dialect, LEARNER_PROTOCOL, LearnerInfo, PacketType, QuorumPacket};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A length that no frame has.
const GIGABYTE: i32 = 1 << 30;

/// A connection with a session.
pub(crate) struct Attacker {
    pub(crate) stream: TcpStream,
    received: BytesMut,
    xid: i32,
}

fn connect_frame() -> BytesMut {
    let request = ConnectRequest {
        protocol_version: 0,
        last_zxid_seen: Zxid::ZERO,
        timeout_ms: 30_000,
        session: SessionId::NONE,
        password: bytes::Bytes::from_static(&[0; 16]),
        read_only: None,
    };
    let mut frame = BytesMut::new();
    put_frame(&mut frame, |w| request.encode(w));
    frame
}

impl Attacker {
    /// A new session; an error when the member turns us away.
    pub(crate) async fn connect(addr: SocketAddr) -> io::Result<Self> {
        let mut stream = TcpStream::connect(addr).await?;
        stream.set_nodelay(true)?;
        stream.write_all(&connect_frame()).await?;
        let mut attacker = Self { stream, received: BytesMut::new(), xid: 0 };
        let frame = attacker.frame().await?;
        ConnectResponse::decode(&mut Reader::new(frame)).map_err(io::Error::other)?;
        Ok(attacker)
    }

    async fn frame(&mut self) -> io::Result<bytes::Bytes> {
        loop {
            if let Some(frame) = take_frame(&mut self.received, 1 << 30).map_err(io::Error::other)? {
                return Ok(frame);
            }
            if self.stream.read_buf(&mut self.received).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    fn request<T: Jute>(&mut self, op: OpCode, body: &T) -> BytesMut {
        self.xid += 1;
        let mut payload = BytesMut::new();
        body.encode(&mut Writer::new(&mut payload));
        let mut frame = BytesMut::new();
        let request = Request { xid: self.xid, op: op.code(), body: payload.freeze() };
        put_frame(&mut frame, |w| request.encode(w));
        frame
    }

    /// Asks, and answers with the error in the reply.
    pub(crate) async fn ask<T: Jute>(&mut self, op: OpCode, body: &T) -> io::Result<i32> {
        let frame = self.request(op, body);
        self.stream.write_all(&frame).await?;
        let reply = self.frame().await?;
        ReplyHeader::decode(&mut Reader::new(reply)).map(|header| header.err).map_err(io::Error::other)
    }

    /// Whether the member has hung up, once it has.
    pub(crate) async fn hung_up(&mut self) -> bool {
        loop {
            match self.stream.read_buf(&mut self.received).await {
                Ok(0) | Err(_) => return true,
                Ok(_) => self.received.clear(),
            }
        }
    }
}

/// Half a frame behind a session, and half of one instead of a session; then nothing.
pub(crate) async fn half_a_frame(addr: SocketAddr) -> io::Result<(Attacker, TcpStream)> {
    let mut attacker = Attacker::connect(addr).await?;
    let whole = attacker.request(OpCode::Exists, &PathWatch { path: ByteString::from("/"), watch: false });
    attacker.stream.write_all(&whole[..whole.len() / 2]).await?;
    let mut stranger = TcpStream::connect(addr).await?;
    stranger.write_all(&connect_frame()[..10]).await?;
    Ok((attacker, stranger))
}

/// A frame of a gigabyte, announced where a session could begin and behind one. Answers when both are hung up
/// on.
pub(crate) async fn gigabyte(addr: SocketAddr) -> io::Result<()> {
    let mut attacker = Attacker::connect(addr).await?;
    attacker.stream.write_all(&GIGABYTE.to_be_bytes()).await?;
    attacker.hung_up().await;
    let mut stranger = TcpStream::connect(addr).await?;
    stranger.write_all(&GIGABYTE.to_be_bytes()).await?;
    let mut nothing = [0; 16];
    while stranger.read(&mut nothing).await.unwrap_or(0) > 0 {}
    Ok(())
}

/// So many watches of one session, in frames of `at_once`. Answers with how many were taken.
pub(crate) async fn watches(addr: SocketAddr, count: usize, at_once: usize) -> io::Result<(Attacker, usize)> {
    let mut attacker = Attacker::connect(addr).await?;
    let mut taken = 0;
    while taken < count {
        let paths = (taken..count.min(taken + at_once)).map(|n| ByteString::from(format!("/absent/{n:012}")));
        let exist_watches: Vec<ByteString> = paths.collect();
        let more = exist_watches.len();
        let body = SetWatches { exist_watches, ..SetWatches::default() };
        if attacker.ask(OpCode::SetWatches, &body).await? != 0 {
            break;
        }
        taken += more;
    }
    Ok((attacker, taken))
}

/// So many sessions at once, one behind the other. Answers with those that were taken in.
pub(crate) async fn connections(addr: SocketAddr, count: usize) -> Vec<Attacker> {
    let mut held = Vec::with_capacity(count);
    for _ in 0..count {
        match Attacker::connect(addr).await {
            Ok(attacker) => held.push(attacker),
            Err(_) => break,
        }
    }
    held
}

/// Asks for a node so many times and reads nothing.
pub(crate) async fn slow_reader(addr: SocketAddr, path: &str, count: usize) -> io::Result<Attacker> {
    let mut attacker = Attacker::connect(addr).await?;
    let body = PathWatch { path: ByteString::from(path), watch: false };
    let mut all = BytesMut::new();
    for _ in 0..count {
        all.unsplit(attacker.request(OpCode::GetData, &body));
    }
    attacker.stream.write_all(&all).await?;
    Ok(attacker)
}

/// Connects and hangs up, so many times, every other time with a session. Answers with how often it was let
/// in.
pub(crate) async fn flood(addr: SocketAddr, count: usize) -> usize {
    let mut let_in = 0;
    for number in 0..count {
        let session = number % 2 == 0;
        if session {
            let_in += usize::from(Attacker::connect(addr).await.is_ok());
        } else {
            let_in += usize::from(TcpStream::connect(addr).await.is_ok());
        }
    }
    let_in
}

/// What strangers say on the ports between members, each on a connection of its own, which is held.
pub(crate) async fn strangers(election: SocketAddr, quorum: SocketAddr, each: usize) -> Vec<TcpStream> {
    let mut hello = BytesMut::new();
    let addresses = vec![("127.0.0.1".to_owned(), 1)];
    Hello { server: ServerId(99), addresses }.encode(&mut Writer::new(&mut hello));
    let mut long_hello = BytesMut::from(&hello[..16]);
    long_hello.put_i32(GIGABYTE);
    let mut long_packet = BytesMut::new();
    long_packet.put_i32(PacketType::FollowerInfo.code());
    long_packet.put_i64(0);
    long_packet.put_i32(GIGABYTE);
    let half_packet = long_packet.clone().split_to(9);
    let noise: Vec<u8> = (0..1000_u32).map(|n| n.wrapping_mul(2_654_435_761).to_be_bytes()[0]).collect();
    let said = [
        (election, hello.to_vec()),
        (election, hello[..11].to_vec()),
        (election, long_hello.to_vec()),
        (election, noise.clone()),
        (quorum, long_packet.to_vec()),
        (quorum, half_packet.to_vec()),
        (quorum, noise),
        (quorum, Vec::new()),
    ];
    let mut held = Vec::new();
    for (addr, words) in said.iter().cycle().take(said.len() * each) {
        let Ok(mut stream) = TcpStream::connect(addr).await else { continue };
        // The member may have hung up already.
        let _ = stream.write_all(words).await;
        held.push(stream);
    }
    held
}

/// Somebody who says that he is this server: on the election port, with votes for himself and for an epoch
/// that nobody knows, and on the quorum port as a follower that acknowledges what it likes.
pub(crate) async fn liar(
    election: SocketAddr,
    quorum: SocketAddr,
    claims: ServerId,
) -> io::Result<Vec<TcpStream>> {
    let mut votes = BytesMut::new();
    Hello { server: claims, addresses: vec![("127.0.0.1".to_owned(), 1)] }
        .encode(&mut Writer::new(&mut votes));
    for state in [PeerState::Looking, PeerState::Leading] {
        let vote = Notification {
            state,
            leader: claims,
            zxid: Zxid::new(Epoch(1000), 7),
            round: Round(1 << 40),
            peer_epoch: Epoch(1000),
            config: None,
            proposed: None,
            hears: None,
            dialect: Dialect::Own,
        };
        put_frame(&mut votes, |w| vote.encode(w));
    }
    let mut voter = TcpStream::connect(election).await?;
    voter.write_all(&votes).await?;
    let mut packets = BytesMut::new();
    let info =
        LearnerInfo { server: claims, protocol: LEARNER_PROTOCOL, config_version: 0, dialect: Dialect::Own };
    let mut data = BytesMut::new();
    info.encode(&mut Writer::new(&mut data));
    let mut say =
        |kind, zxid, data| QuorumPacket::new(kind, zxid, data).encode(&mut Writer::new(&mut packets));
    say(PacketType::FollowerInfo, 0, Some(data.freeze()));
    say(PacketType::Ack, i64::MAX, None);
    let mut follower = TcpStream::connect(quorum).await?;
    follower.write_all(&packets).await?;
    Ok(vec![voter, follower])
}
