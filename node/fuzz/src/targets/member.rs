//! A member that serves hostile clients, and a member among peers that lie.
//!
//! What comes is decoded as the ports decode it; what passes there must do no harm here. A member may close
//! the connection, leave its leader, or halt and say why. It must not panic, nor hold more than its input
//! justifies.

use bytes::BytesMut;
use node_core::Member;
use node_core::io::{ClientId, ConnId, Effect, Input, Now};
use node_wire::client::{ConnectRequest, Request, take_frame};
use node_wire::election::{MAX_NOTIFICATION, Notification};
use node_wire::ids::{ServerId, SessionId, Zxid};
use node_wire::jute::Reader;
use node_wire::quorum::decode_packet;
use node_wire::snapshot::stream::StreamDecoder;
use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::time::Duration;

use crate::ensemble::{self, Ready};
use crate::meter::{Bound, within};
use crate::split;

/// A member answers, remembers, and makes transactions of what it is told: several copies of the input in
/// maps whose nodes are some kilobytes each, and cloned where they are shared.
const SERVED: Bound = Bound { flat: 4 << 20, per_byte: 1024 };

thread_local! {
    static READY: OnceCell<Ready> = const { OnceCell::new() };
}

/// Members that stand, made once for each thread.
fn ready<T>(look: impl FnOnce(&Ready) -> T) -> T {
    READY.with(|ready| look(ready.get_or_init(ensemble::ready)))
}

/// A lone member and two clients. Each piece is a frame of the client that the piece's first byte names.
pub(super) fn session(input: &[u8]) {
    let member = ready(|ready| ready.alone.clone());
    within(SERVED, input.len(), || {
        let mut stand = Stand::new(member);
        for piece in split(input) {
            let Some((&who, frame)) = piece.split_first() else { continue };
            if !stand.client(who, frame) {
                return;
            }
        }
        stand.pass(Duration::from_secs(60));
    });
}

/// A member of three: looking, following or leading by the first byte. Each piece is something that a peer
/// does.
pub(super) fn peers(input: &[u8]) {
    let Some((&role, rest)) = input.split_first() else { return };
    let (member, conns) = ready(|ready| match role % 3 {
        0 => (ready.looking.clone(), BTreeSet::new()),
        1 => ready.following.clone(),
        _ => ready.leading.clone(),
    });
    within(SERVED, input.len(), || {
        let mut stand = Stand::new(member);
        stand.conns = conns;
        for piece in split(rest) {
            if !stand.peer(piece) {
                return;
            }
        }
        stand.pass(Duration::from_secs(1));
    });
}

/// One member with a driver that keeps its side of the contract.
struct Stand {
    member: Member,
    now: Now,
    conns: BTreeSet<ConnId>,
    clients: BTreeSet<ClientId>,
    /// Store operations up to here are to be told as durable.
    ticket: Option<u64>,
    dialling: Option<ServerId>,
    last_conn: u64,
    last_client: u64,
    halted: bool,
}

impl Stand {
    fn new(member: Member) -> Self {
        Self {
            member,
            now: ensemble::LATER,
            conns: BTreeSet::new(),
            clients: BTreeSet::new(),
            ticket: None,
            dialling: None,
            last_conn: 1 << 32,
            last_client: 0,
            halted: false,
        }
    }

    fn step(&mut self, input: Input) {
        let mut effects = Vec::new();
        if !self.halted {
            self.member.step(self.now, input, &mut effects);
        }
        for effect in effects {
            match effect {
                Effect::Store { ticket, .. } => {
                    assert!(self.ticket.is_none_or(|last| ticket > last), "tickets count up");
                    self.ticket = Some(ticket);
                }
                Effect::Close { conn } => drop(self.conns.remove(&conn)),
                Effect::CloseClient { client } => drop(self.clients.remove(&client)),
                Effect::Dial { leader } => self.dialling = Some(leader),
                Effect::Halt { reason } => {
                    assert!(!reason.is_empty(), "an operator is told why");
                    self.halted = true;
                }
                Effect::Reply { frame, .. } => {
                    let taken = take_frame(&mut BytesMut::from(&frame[..]), frame.len());
                    assert!(matches!(taken, Ok(Some(body)) if body.len() + 4 == frame.len()));
                }
                Effect::TakeSnapshot(_)
                | Effect::Notify { .. }
                | Effect::Send { .. }
                | Effect::SendImage { .. }
                | Effect::Ensemble { .. }
                | Effect::Event(_) => {}
            }
        }
    }

    fn sync(&mut self) {
        while let Some(ticket) = self.ticket.take() {
            self.step(Input::Stored { ticket });
        }
    }

    fn advance(&mut self, by: Duration) {
        self.now.mono += by;
        self.now.wall_ms += i64::try_from(by.as_millis()).unwrap_or(0);
    }

    /// Some ticks, so that what waits for time comes.
    fn pass(&mut self, time: Duration) {
        for _ in 0..4 {
            self.sync();
            self.advance(time / 4);
            self.step(Input::Tick);
        }
        self.sync();
    }

    /// False when there is nothing left to talk to.
    fn client(&mut self, who: u8, frame: &[u8]) -> bool {
        let frame = bytes::Bytes::copy_from_slice(frame);
        if who & 0x80 != 0 || self.clients.is_empty() {
            if self.last_client > 8 {
                return false;
            }
            self.last_client += 1;
            let client = ClientId(self.last_client);
            let usual = ConnectRequest {
                protocol_version: 0,
                last_zxid_seen: Zxid::ZERO,
                timeout_ms: 4000,
                session: SessionId::NONE,
                password: bytes::Bytes::new(),
                read_only: Some(false),
            };
            let request = ConnectRequest::decode(&mut Reader::new(frame.clone())).unwrap_or(usual);
            self.clients.insert(client);
            self.step(Input::ClientConnect { client, request, who: Vec::new() });
            self.sync();
        }
        let index = usize::from(who & 3) % self.clients.len().max(1);
        let Some(client) = self.clients.iter().nth(index).copied() else { return false };
        if let Ok(request) = Request::decode(frame) {
            self.step(Input::ClientRequest { client, request });
        }
        if who & 0x40 == 0 {
            self.sync();
        }
        if who & 0x20 != 0 {
            self.clients.remove(&client);
            self.step(Input::ClientLost { client });
        }
        true
    }

    fn peer(&mut self, piece: &[u8]) -> bool {
        let [kind, which, rest @ ..] = piece else { return true };
        let server = ServerId(u64::from(which % 4));
        match kind & 0x0f {
            0 => {
                self.advance(Duration::from_millis(u64::from(*which)));
                self.step(Input::Tick);
            }
            1 => {
                if rest.len() <= MAX_NOTIFICATION
                    && let Ok(notification) = Notification::decode(bytes::Bytes::copy_from_slice(rest))
                {
                    self.step(Input::Notification { from: server, notification });
                }
            }
            2 => self.packets(*which, rest),
            3 => self.image(*which, rest),
            4 => {
                let conn = self.new_conn();
                self.step(Input::Accepted { conn });
            }
            5 => {
                if let Some(conn) = self.conn(*which) {
                    self.conns.remove(&conn);
                    self.step(Input::PeerLost { conn });
                }
            }
            6 => {
                if let Some(leader) = self.dialling.take() {
                    let conn = self.new_conn();
                    self.step(Input::Dialled { leader, conn });
                }
            }
            7 => {
                if let Some(leader) = self.dialling.take() {
                    self.step(Input::DialFailed { leader });
                }
            }
            8 => self.step(Input::ElectionConnected { peer: server }),
            9 => self.step(Input::ElectionLost { peer: server }),
            _ => drop(self.client(*which, rest)),
        }
        if kind & 0x80 == 0 {
            self.sync();
        }
        !self.halted
    }

    fn new_conn(&mut self) -> ConnId {
        self.last_conn += 1;
        let conn = ConnId(self.last_conn);
        self.conns.insert(conn);
        conn
    }

    fn conn(&self, which: u8) -> Option<ConnId> {
        self.conns.iter().nth(usize::from(which) % self.conns.len().max(1)).copied()
    }

    fn packets(&mut self, which: u8, bytes: &[u8]) {
        let Some(conn) = self.conn(which) else { return };
        let mut received = BytesMut::from(bytes);
        while self.conns.contains(&conn) {
            match decode_packet(&mut received) {
                Ok(Some(packet)) => self.step(Input::Packet { conn, packet }),
                Ok(None) => return,
                Err(_) => {
                    self.conns.remove(&conn);
                    self.step(Input::PeerLost { conn });
                }
            }
        }
    }

    fn image(&mut self, which: u8, bytes: &[u8]) {
        let Some((zxid, stream)) = bytes.split_first_chunk::<8>() else { return };
        let Some(conn) = self.conn(which) else { return };
        let zxid = Zxid(u64::from_be_bytes(*zxid));
        if let Ok(Some(image)) = StreamDecoder::new(zxid).feed(&mut BytesMut::from(stream)) {
            self.step(Input::Image { conn, image });
        }
    }
}
