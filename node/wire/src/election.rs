//! The election port: who is there, and whom each member votes for.
//!
//! Whoever connects sends a [`Hello`] with its own number, unframed. From then on both sides send
//! [`Notification`]s, each in a frame of at most [`MAX_NOTIFICATION`] bytes
//! ([`take_frame`](crate::client::take_frame) and [`put_frame`](crate::client::put_frame) serve both ports).
//!
//! Notifications have grown over the years and are told apart by length: 28 bytes without the peer's epoch,
//! 40 bytes with it, and longer ones by a version: from the second on they have the ensemble's configuration.
//! All are read. A notification with a configuration is written in the newest form. One without is written in
//! the 40-byte form: ZooKeeper parses an empty configuration too, and where `standaloneEnabled` is false that
//! ends the thread that receives votes. Members of ours leave the configuration out where it never changes.
//! Where it may they send it under a version of their own, which ZooKeeper takes for one later than it knows;
//! so a configuration under the usual version tells a member of Apache ZooKeeper. Behind it stands what the
//! log of whom the vote is for proposes, if it proposes a membership: ZooKeeper, and earlier members of ours,
//! read as much as the configuration's length says and nothing behind it. What a member of ours says last, in
//! either form, is whom it hears.
//!
//! ZooKeeper orders votes as signed numbers and we as unsigned ones. Negative numbers are refused here, so
//! that the two orders are one; all but the smallest, which stands for no vote where an observer looks for a
//! leader, and -1 as round and epoch, which a member of Apache ZooKeeper says that went to its leader without
//! an election (a reconfiguration named it). Both are read as 0: nobody's number, and no round and no epoch.

use std::net::Ipv6Addr;

use bytes::{Buf, Bytes, BytesMut};

use crate::client::codes;
use crate::ids::{Epoch, Round, ServerId, Zxid};
use crate::jute::{DecodeError, Reader, Writer, bounded_length};
use crate::quorum::Dialect;

/// The longest frame of a notification.
pub const MAX_NOTIFICATION: usize = 512 * 1024;
/// The longest list of addresses in a [`Hello`].
pub const MAX_HELLO_ADDRESSES: usize = 2048;

/// A `Hello` with one address.
const PROTOCOL_V1: i64 = -65536;
/// A `Hello` with any number of addresses.
const PROTOCOL_V2: i64 = -65535;
/// Separates addresses.
const SEPARATOR: char = '|';

/// Version, server and length, before the addresses.
const HELLO_HEADER: usize = 8 + 8 + 4;

/// What an observer of Apache ZooKeeper sends in each part of a vote.
const NO_VOTE: i64 = i64::MIN;

/// What a member of Apache ZooKeeper has for round and epoch when there was no election.
const NO_ELECTION: i64 = -1;

/// The form of a notification with a configuration.
const NOTIFICATION_V2: i32 = 2;
/// The form with a configuration as members of ours write it: "node".
const NOTIFICATION_OWN: i32 = 0x6e6f_6465;
/// The form before it.
const NOTIFICATION_V1: i32 = 1;
/// The length without epoch, version and configuration.
const NOTIFICATION_V0_LEN: usize = 28;
/// The length without a configuration. The version in it is not looked at.
const NOTIFICATION_V1_LEN: usize = 40;

codes! {
    /// What a member is doing.
    pub enum PeerState {
        /// It has no leader.
        Looking = 0,
        /// It follows one.
        Following = 1,
        /// It is one.
        Leading = 2,
        /// It follows one without a vote.
        Observing = 3,
    }
}

/// The first message of whoever connected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Who it is.
    pub server: ServerId,
    /// Where its election port is: hosts and ports. Very old members don't say.
    pub addresses: Vec<(String, u16)>,
}

impl Hello {
    /// Appends the message. With at most one address it has the form that every version understands.
    ///
    /// # Panics
    /// When the addresses are longer than [`MAX_HELLO_ADDRESSES`].
    pub fn encode(&self, w: &mut Writer<'_>) {
        let version = if self.addresses.len() > 1 { PROTOCOL_V2 } else { PROTOCOL_V1 };
        let addresses: Vec<String> = self.addresses.iter().map(format_address).collect();
        let addresses = addresses.join("|");
        assert!(addresses.len() <= MAX_HELLO_ADDRESSES, "the election addresses fit into a hello");
        w.long(version);
        w.long(self.server.0.cast_signed());
        w.string(&addresses);
    }

    /// Takes the message off the front of what was received, once it is there whole.
    ///
    /// # Errors
    /// When the bytes are not such a message.
    pub fn decode(buffer: &mut BytesMut) -> Result<Option<Hello>, DecodeError> {
        let Some(version) = buffer.first_chunk::<8>() else { return Ok(None) };
        let version = i64::from_be_bytes(*version);
        if let Ok(server) = u64::try_from(version) {
            // Before there was a version, the message was the number alone.
            buffer.advance(8);
            return Ok(Some(Hello { server: ServerId(server), addresses: Vec::new() }));
        }
        if version != PROTOCOL_V1 && version != PROTOCOL_V2 {
            return Err(DecodeError::Unknown { what: "election protocol", value: version });
        }
        let Some(header) = buffer.first_chunk::<HELLO_HEADER>() else { return Ok(None) };
        let mut fields = &header[8..];
        let server = decode_unsigned("server", fields.get_i64())?;
        let len = bounded_length(fields.get_i32(), MAX_HELLO_ADDRESSES)?;
        if buffer.len() - HELLO_HEADER < len {
            return Ok(None);
        }
        buffer.advance(HELLO_HEADER);
        let addresses = buffer.split_to(len);
        let addresses = std::str::from_utf8(&addresses).map_err(|_| DecodeError::NotUtf8)?;
        let addresses = addresses.split(SEPARATOR).map(parse_address).collect::<Result<_, _>>()?;
        Ok(Some(Hello { server: ServerId(server), addresses }))
    }
}

/// One member's vote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notification {
    /// What the sender is doing.
    pub state: PeerState,
    /// Whom it votes for.
    pub leader: ServerId,
    /// The last zxid of whom it votes for.
    pub zxid: Zxid,
    /// The round in which the sender is.
    pub round: Round,
    /// The current epoch of whom it votes for.
    pub peer_epoch: Epoch,
    /// The ensemble as the sender knows it, as text: a [`Membership`](crate::membership::Membership).
    pub config: Option<Bytes>,
    /// The membership that stands in the log of whom it votes for and may be committed, as the same text.
    /// Members of ours tell it, beside a configuration.
    pub proposed: Option<Bytes>,
    /// Which voters the sender hears: in its present lookup, or lately where it has a leader. Members of ours
    /// tell it.
    pub hears: Option<Vec<ServerId>>,
    /// How the sender speaks. Only a vote with a configuration tells one of Apache ZooKeeper.
    pub dialect: Dialect,
}

impl Notification {
    /// Appends the message, without its frame.
    pub fn encode(&self, w: &mut Writer<'_>) {
        w.int(self.state.code());
        w.long(self.leader.0.cast_signed());
        w.long(self.zxid.to_wire());
        w.long(self.round.0.cast_signed());
        w.long(i64::from(self.peer_epoch.0));
        match &self.config {
            Some(config) => {
                w.int(match self.dialect {
                    Dialect::Own => NOTIFICATION_OWN,
                    Dialect::Apache => NOTIFICATION_V2,
                });
                w.buffer(config);
                if self.dialect == Dialect::Own && (self.proposed.is_some() || self.hears.is_some()) {
                    w.buffer(self.proposed.as_deref().unwrap_or_default());
                }
            }
            None => w.int(NOTIFICATION_V1),
        }
        if let (Some(hears), Dialect::Own) = (&self.hears, self.dialect) {
            w.count(hears.len());
            for server in hears {
                w.long(server.0.cast_signed());
            }
        }
    }

    /// Takes a frame apart. A frame that is refused leaves the stream intact, and ZooKeeper goes on behind
    /// it.
    ///
    /// # Errors
    /// When the bytes are not such a message.
    pub fn decode(frame: Bytes) -> Result<Notification, DecodeError> {
        let len = frame.len();
        let mut r = Reader::new(frame);
        let state = PeerState::try_from(r.int()?)?;
        let leader = ServerId(decode_vote("leader", r.long()?)?);
        let zxid = Zxid(decode_vote("zxid of a vote", r.long()?)?);
        let round = Round(match r.long()? {
            NO_ELECTION => 0,
            round => decode_unsigned("election round", round)?,
        });
        let (peer_epoch, (config, dialect)) = if len == NOTIFICATION_V0_LEN {
            (zxid.epoch(), (None, Dialect::Own))
        } else {
            (decode_epoch(r.long()?)?, decode_config(len, &mut r)?)
        };
        // What stands behind the configuration of a member of Apache ZooKeeper is none of ours.
        let tells_more = |r: &Reader| dialect == Dialect::Own && r.remaining() >= size_of::<i32>();
        let proposed = if config.is_some() && tells_more(&r) { r.buffer()? } else { None };
        let proposed = proposed.filter(|text| !text.is_empty());
        let hears = if tells_more(&r) { decode_servers(&mut r)? } else { None };
        Ok(Notification { state, leader, zxid, round, peer_epoch, config, proposed, hears, dialect })
    }
}

fn decode_config(len: usize, r: &mut Reader) -> Result<(Option<Bytes>, Dialect), DecodeError> {
    let version = r.int()?;
    if len == NOTIFICATION_V1_LEN || version < NOTIFICATION_V2 {
        return Ok((None, Dialect::Own));
    }
    let config = r.buffer()?.ok_or(DecodeError::NegativeLength(-1))?;
    let config = (!config.is_empty()).then_some(config);
    let dialect =
        if config.is_none() || version == NOTIFICATION_OWN { Dialect::Own } else { Dialect::Apache };
    Ok((config, dialect))
}

fn decode_servers(r: &mut Reader) -> Result<Option<Vec<ServerId>>, DecodeError> {
    let Some(count) = r.count(size_of::<i64>())? else { return Ok(None) };
    (0..count)
        .map(|_| Ok(ServerId(decode_unsigned("server", r.long()?)?)))
        .collect::<Result<_, _>>()
        .map(Some)
}

/// Part of a vote, which observers do not have.
fn decode_vote(what: &'static str, wire: i64) -> Result<u64, DecodeError> {
    if wire == NO_VOTE { Ok(0) } else { decode_unsigned(what, wire) }
}

fn decode_epoch(wire: i64) -> Result<Epoch, DecodeError> {
    if wire == NO_VOTE || wire == NO_ELECTION {
        return Ok(Epoch::ZERO);
    }
    u32::try_from(wire).map(Epoch).map_err(|_| DecodeError::OutOfRange { what: "epoch", value: wire })
}

fn decode_unsigned(what: &'static str, wire: i64) -> Result<u64, DecodeError> {
    u64::try_from(wire).map_err(|_| DecodeError::OutOfRange { what, value: wire })
}

fn format_address((host, port): &(String, u16)) -> String {
    if host.parse::<Ipv6Addr>().is_ok() { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

fn parse_address(address: &str) -> Result<(String, u16), DecodeError> {
    const BAD: DecodeError = DecodeError::Invalid("an election address that is not host:port");
    let (host, port) = address.rsplit_once(':').ok_or(BAD)?;
    let host = match host.strip_prefix('[') {
        Some(inner) => inner.strip_suffix(']').ok_or(BAD)?,
        None => host,
    };
    if host.is_empty() || host.contains(['[', ']']) {
        return Err(BAD);
    }
    Ok((host.to_owned(), port.parse().map_err(|_| BAD)?))
}
