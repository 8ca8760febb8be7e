//! The commands of the scripts. Paths are written without their leading slash.
//!
//! ```text
//! ensemble 3 [observers=K] [snap_count=N] [enforce_quota=true] [super=DIGEST] [require=SCHEME]
//!                                     the voters 1 to 3 and the observers behind them, all with empty disks
//! member 1 [accepted=E] [current=E] [image="1.1-1.3"] [log="1.4 2.1"] [kind=KIND]     what its disk holds
//! start 1 2 3 · crash 1 · puppet 2       run members; a puppet only says what the script says
//! settle · deliver 1 2 [n=N]             deliver all until quiet; what is under way from 1 to 2
//! tick 40 · pass 500                     time without and with delivery; 10 ms to a tick
//! disk 1 manual|auto · write 1 [n=N]     let the disk wait for `write`
//! hold 1 2 · release 1 2 [oneway=true]   nothing is delivered for now, in both directions or from the first
//! cut 1 2 · heal · reset 1 2             connections break until healed; break once
//! sleep 1 · wake 1                       a process that is not scheduled
//! vote 2 1 STATE leader=3 zxid=1.5 epoch=1 round=2      a puppet's vote, delivered at once
//! dial 2 1 · say 2 1 KIND [zxid=] [current=] [server=]  a puppet's packet, delivered at once
//! say 2 1 request session=ID path=P [ephemeral=true] [local=true]  a create of a session, or of a local one
//! connect c 1 [of=d] [timeout=MS] [seen=ZXID] [forged=true] [readonly=true]  a client; `of` resumes d's
//! create|set|get|multi|addwatch|.. c ..  its requests (see `requests`); lose c breaks its connection
//! sasl c token|proves|fails|tolerated [USER]             what the driver says of its SASL exchange
//! state [1] · durable 1 · tree 1 · pings on                    looks
//! ```

use std::error::Error;
use std::str::FromStr;

use bytes::Bytes;
use bytestring::ByteString;
use goldenscript::{ArgumentConsumer, Command, Context};
use node_core::io::{Input, Proof, Recovered};
use node_wire::client::{Acl, CreateRequest, Id, OpCode, Request};
use node_wire::election::{Notification, PeerState};
use node_wire::ids::{Epoch, Round, ServerId, SessionId, Zxid};
use node_wire::jute::encode;
use node_wire::quorum::{
    Dialect, ForwardedRequest, LEARNER_PROTOCOL, LeaderInfo, LearnerInfo, PacketType, QuorumPacket,
    Revalidate,
};

use crate::clients::ConnectOptions;
use crate::ensemble::Ensemble;
use crate::history::{entry, image, parse_zxid, parse_zxids};
use crate::requests::request;

pub(crate) type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// Runs one script.
#[derive(Default)]
pub(crate) struct Runner {
    ensemble: Ensemble,
}

impl goldenscript::Runner for Runner {
    type Command = Command;

    fn run(&mut self, command: &Command, _: &Context) -> Outcome<String> {
        let mut args = Args(command.consume_args());
        self.command(&command.name, &mut args)?;
        args.0.reject_next()?;
        Ok(self.ensemble.take_output())
    }
}

pub(crate) struct Args<'a>(pub(crate) ArgumentConsumer<'a>);

impl<'a> Args<'a> {
    pub(crate) fn word(&mut self) -> Outcome<&'a str> {
        Ok(self.0.next_pos().ok_or("an argument is missing")?)
    }

    fn id(&mut self) -> Outcome<u64> {
        Ok(self.word()?.parse()?)
    }

    fn ids(&mut self) -> Outcome<Vec<u64>> {
        let mut ids = Vec::new();
        while let Some(id) = self.0.next_pos() {
            ids.push(id.parse()?);
        }
        Ok(ids)
    }

    pub(crate) fn key<T: FromStr>(&mut self, key: &str) -> Outcome<Option<T>>
    where
        T::Err: Error + 'static,
    {
        Ok(self.0.take_key(key).map(str::parse).transpose()?)
    }

    pub(crate) fn or<T: FromStr>(&mut self, key: &str, default: T) -> Outcome<T>
    where
        T::Err: Error + 'static,
    {
        Ok(self.key(key)?.unwrap_or(default))
    }

    /// `dialect=apache` for a Java member.
    fn dialect(&mut self) -> Outcome<Dialect> {
        match self.or("dialect", String::from("own"))?.as_str() {
            "own" => Ok(Dialect::Own),
            "apache" => Ok(Dialect::Apache),
            other => Err(format!("no such dialect: {other}").into()),
        }
    }

    /// `session=0x...`.
    fn session(&mut self) -> Outcome<SessionId> {
        let id = self
            .0
            .take_key("session")
            .and_then(|id| id.strip_prefix("0x"))
            .ok_or("session=0x.. is missing")?;
        Ok(SessionId(i64::from_str_radix(id, 16)?))
    }

    pub(crate) fn zxid(&mut self, key: &str) -> Outcome<Option<Zxid>> {
        Ok(self.0.take_key(key).map(parse_zxid).transpose()?)
    }

    pub(crate) fn path(&mut self) -> Outcome<String> {
        Ok(format!("/{}", self.word()?))
    }

    pub(crate) fn path_or_root(&mut self) -> ByteString {
        ByteString::from(format!("/{}", self.0.next_pos().unwrap_or("")))
    }

    /// `a,b` under a key.
    pub(crate) fn paths(&mut self, key: &str) -> Vec<ByteString> {
        let names = self.0.take_key(key).unwrap_or("").split(',').filter(|name| !name.is_empty());
        names.map(|name| ByteString::from(format!("/{name}"))).collect()
    }
}

impl Runner {
    fn command(&mut self, name: &str, args: &mut Args<'_>) -> Outcome {
        match name {
            "ensemble" => {
                self.ensemble.create(args.id()?, args.or("observers", 0)?, args.key("snap_count")?);
                if let Some(newcomers) = args.key("newcomers")? {
                    self.ensemble.may_change(newcomers);
                }
                self.ensemble.wires.hushed = args.or("hushed", false)?;
                self.ensemble.rules.enforce_quota = args.or("enforce_quota", false)?;
                self.ensemble.rules.local_sessions = args.or("local", false)?;
                self.ensemble.rules.local_upgrading = args.or("upgrading", false)?;
                self.ensemble.rules.read_only_mode = args.or("read_only", false)?;
                self.ensemble.rules.super_digest = args.key::<String>("super")?.map(ByteString::from);
                let required = args.key::<String>("require")?.map(ByteString::from);
                self.ensemble.rules.required_schemes = required.into_iter().collect();
                let providers = args.key::<String>("providers")?.map(ByteString::from);
                self.ensemble.rules.providers = providers.into_iter().collect();
            }
            "member" => self.member(args)?,
            "start" | "puppet" => self.ensemble.start(&args.ids()?, name == "puppet")?,
            "crash" => self.ensemble.crash(args.id()?)?,
            "settle" => self.ensemble.settle()?,
            "deliver" => self.ensemble.deliver(args.id()?, args.id()?, args.key("n")?)?,
            "tick" => self.ensemble.tick(args.id()?),
            "pass" => self.ensemble.pass(args.id()?)?,
            "disk" => {
                let (id, mode) = (args.id()?, args.word()?);
                self.ensemble.manual_disk(id, mode == "manual")?;
            }
            "write" => self.ensemble.complete(args.id()?, args.key("n")?)?,
            "hold" | "release" => self.hold(name == "hold", args)?,
            "cut" => self.ensemble.cut(args.id()?, args.id()?),
            "heal" => self.ensemble.heal(),
            "reset" => self.ensemble.reset(args.id()?, args.id()?),
            "sleep" | "wake" => self.ensemble.sleep(args.id()?, name == "sleep")?,
            "vote" => self.vote(args)?,
            "dial" => self.ensemble.puppet_dials(args.id()?, args.id()?),
            "say" => self.say(args)?,
            "state" => self.each(args, Ensemble::state)?,
            "durable" => self.each(args, Ensemble::durable)?,
            "tree" => self.each(args, Ensemble::tree)?,
            "pings" => self.ensemble.show_pings = args.word()? == "on",
            _ => self.client_command(name, args)?,
        }
        Ok(())
    }

    fn each(&mut self, args: &mut Args<'_>, look: fn(&mut Ensemble, u64) -> Result<(), String>) -> Outcome {
        let ids = args.ids()?;
        let ids = if ids.is_empty() { self.ensemble.members() } else { ids };
        for id in ids {
            look(&mut self.ensemble, id)?;
        }
        Ok(())
    }

    fn member(&mut self, args: &mut Args<'_>) -> Outcome {
        let id = args.id()?;
        let kind = args.key::<String>("kind")?;
        let image_entries = parse_zxids(args.0.take_key("image").unwrap_or(""))?;
        let log = parse_zxids(args.0.take_key("log").unwrap_or(""))?;
        let last_epoch = image_entries.iter().chain(&log).last().map_or(Epoch::ZERO, |zxid| zxid.epoch());
        let current_epoch = args.key::<u32>("current")?.map_or(last_epoch, Epoch);
        let accepted_epoch = args.key::<u32>("accepted")?.map_or(current_epoch, Epoch);
        let image = if image_entries.is_empty() { Default::default() } else { image(&image_entries) };
        let entries = log.into_iter().map(entry).collect();
        let found = Recovered { accepted_epoch, current_epoch, image, entries };
        Ok(self.ensemble.prepare(id, found, kind)?)
    }

    fn hold(&mut self, hold: bool, args: &mut Args<'_>) -> Outcome {
        let (from, to, oneway) = (args.id()?, args.id()?, args.or("oneway", false)?);
        let ways = if oneway { vec![(from, to)] } else { vec![(from, to), (to, from)] };
        for (from, to) in ways {
            if hold {
                self.ensemble.wires.hold(from, to);
            } else {
                self.ensemble.wires.release(from, to);
            }
        }
        Ok(())
    }

    fn vote(&mut self, args: &mut Args<'_>) -> Outcome {
        let (from, to) = (args.id()?, args.id()?);
        let state = args.word()?;
        let state = PeerState::ALL
            .iter()
            .find(|known| format!("{known:?}").eq_ignore_ascii_case(state))
            .ok_or("no such state")?;
        let notification = Notification {
            state: *state,
            leader: ServerId(args.or("leader", from)?),
            zxid: args.zxid("zxid")?.unwrap_or(Zxid::ZERO),
            round: Round(args.or("round", 1)?),
            peer_epoch: Epoch(args.or("epoch", 0)?),
            config: None,
            proposed: None,
            hears: None,
            dialect: Dialect::Own,
        };
        self.ensemble.vote(from, to, notification);
        Ok(self.ensemble.deliver(from, to, Some(1))?)
    }

    fn say(&mut self, args: &mut Args<'_>) -> Outcome {
        let (from, to) = (args.id()?, args.id()?);
        let word = args.word()?;
        let kind = *PacketType::ALL
            .iter()
            .find(|kind| format!("{kind:?}").eq_ignore_ascii_case(word))
            .ok_or("no such packet")?;
        let zxid = args.zxid("zxid")?.unwrap_or(Zxid::ZERO);
        let current = args.or("current", 0)?;
        let server = ServerId(args.or("server", from)?);
        let data = match kind {
            PacketType::FollowerInfo => {
                let protocol = LEARNER_PROTOCOL;
                let info = LearnerInfo { server, protocol, config_version: 0, dialect: args.dialect()? };
                Some(encode(|w| info.encode(w)))
            }
            PacketType::LeaderInfo => {
                let info = LeaderInfo { protocol: LEARNER_PROTOCOL, dialect: args.dialect()? };
                Some(encode(|w| info.encode(w)))
            }
            PacketType::AckEpoch => Some(encode(|w| w.int(current))),
            PacketType::Proposal => Some(entry(zxid).bytes),
            PacketType::Revalidate => {
                let (session, timeout_ms) = (args.session()?, 4000);
                Some(encode(|w| Revalidate { session, timeout_ms }.encode(w)))
            }
            _ => None,
        };
        let packet = match kind {
            PacketType::Request => forwarded(args)?,
            _ => QuorumPacket::new(kind, args.or("raw", zxid.to_wire())?, data),
        };
        let conn = self.ensemble.wires.newest(from, to).ok_or("they are not connected")?;
        self.ensemble.send(conn, packet);
        Ok(self.ensemble.deliver(from, to, Some(1))?)
    }

    fn client_command(&mut self, name: &str, args: &mut Args<'_>) -> Outcome {
        let client = args.word()?;
        match name {
            "connect" => {
                let (member, of) = (args.id()?, args.0.take_key("of"));
                let forged = args.or("forged", false)?;
                let timeout_ms = args.or("timeout", 4000)?;
                let seen = args.zxid("seen")?;
                let read_only = args.or("readonly", false)?;
                let is_older = args.or("older", false)?;
                let options =
                    ConnectOptions { timeout_ms, seen, read_only: (!is_older).then_some(read_only) };
                return Ok(self.ensemble.connect(client, member, of, forged, options)?);
            }
            "lose" => {
                let (id, member) = self.ensemble.client(client).map(|client| (client.id, client.member))?;
                self.ensemble.client(client)?.open = false;
                self.ensemble.step(member, Input::ClientLost { client: id });
                return Ok(());
            }
            "sasl" => return self.sasl(client, args),
            _ => {}
        }
        let number: Option<i32> = args.key("op")?;
        let (op, about, body) = request(name, args)?;
        let connection = self.ensemble.client(client)?;
        if !connection.open {
            return Err(format!("{client} is not connected").into());
        }
        let Request { xid, op, body } = connection.request(op, &about, |w| w.raw(&body));
        let (id, member) = (connection.id, connection.member);
        let request = Request { xid, op: number.unwrap_or(op), body };
        self.ensemble.step(member, Input::ClientRequest { client: id, request });
        Ok(())
    }

    fn sasl(&mut self, client: &str, args: &mut Args<'_>) -> Outcome {
        let token = Some(Bytes::from_static(b"token"));
        let proof = match args.word()? {
            "token" => Proof::Token { token, who: Vec::new() },
            "proves" => {
                let (scheme, id) = (ByteString::from_static("sasl"), ByteString::from(args.word()?));
                Proof::Token { token, who: vec![Id { scheme, id }] }
            }
            "fails" => Proof::Failed,
            "tolerated" => Proof::Tolerated,
            other => return Err(format!("{other} is nothing that comes of an exchange").into()),
        };
        let connection = self.ensemble.client(client)?;
        let xid = connection.request(OpCode::Sasl, "", |_| {}).xid;
        let (id, member) = (connection.id, connection.member);
        self.ensemble.step(member, Input::ClientProof { client: id, xid, proof });
        Ok(())
    }
}

/// A member's word for a client: create a node, or a sync.
fn forwarded(args: &mut Args<'_>) -> Outcome<QuorumPacket> {
    if args.or("sync", false)? {
        return Ok(sync().into_packet());
    }
    let session = args.session()?;
    let create = CreateRequest {
        path: ByteString::from(format!("/{}", args.0.take_key("path").unwrap_or_default())),
        data: None,
        acl: vec![Acl::world_anyone()],
        flags: i32::from(args.or("ephemeral", false)?),
    };
    let id = |scheme, id| Id { scheme: ByteString::from_static(scheme), id: ByteString::from_static(id) };
    let auth = if args.or("local", false)? { vec![id("session", "local")] } else { Vec::new() };
    let (op, payload) = (OpCode::Create.code(), encode(|w| create.encode(w)));
    Ok(ForwardedRequest { session, cxid: 1, op, payload, auth }.into_packet())
}

/// A sync of somebody's, as a puppet forwards it.
fn sync() -> ForwardedRequest {
    let op = OpCode::Sync.code();
    ForwardedRequest { session: SessionId(1), cxid: 1, op, payload: bytes::Bytes::new(), auth: Vec::new() }
}
