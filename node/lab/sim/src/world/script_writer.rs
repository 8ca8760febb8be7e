//! A drawn world written down: inputs to members by what they mean.

use node_core::io::{ClientId, ConnId, Input};
use node_wire::ids::Zxid;
use node_wire::quorum::PacketType;

use super::mover::{Mover, Recording};
use super::{Clockwork, Ensemble, Population, World};
use crate::network::{EndId, HostIndex};
use crate::outcome::Violation;
use crate::script::{Head, Kind, Line, Reduction, Transition};
use crate::{Options, Outcome};

impl Clockwork {
    /// The member carried out an effect of its step.
    pub(super) fn effect_done(&mut self) {
        if let Mover::Recording(recording) = &mut self.mover
            && let Some((_, _, effects)) = &mut recording.stepping
        {
            *effects += 1;
        }
    }

    /// The member's step is over.
    pub(super) fn step_done(&mut self) {
        if let Mover::Recording(recording) = &mut self.mover {
            recording.stepping = None;
        }
    }
}

impl Ensemble {
    /// A member's clocks were set.
    pub(super) fn write_down_clock(&self, clock: &mut Clockwork, host: HostIndex, jump_us: u64) {
        clock.write_down(|| {
            let of_host = self.hosts[host].clock;
            Transition::Clock {
                host,
                wall_ms: of_host.wall_offset_ms,
                drift_ppm: of_host.wall_pace_ppm,
                fast_ppm: of_host.pace_ppm,
                jump_us,
            }
        });
    }

    fn peer_at(&self, conn: ConnId) -> HostIndex {
        let end = EndId::of(conn).other();
        self.conns[end.conn].ends[end.end].host
    }

    /// How many newer connections of the same pair their end knows of.
    fn older(&self, clock: &Clockwork, conn: ConnId) -> usize {
        let Mover::Recording(recording) = &clock.mover else { return 0 };
        let this = EndId::of(conn);
        let hosts = |end: EndId| {
            let ends = &self.conns[end.conn].ends;
            (ends[end.end].host, ends[1 - end.end].host)
        };
        recording
            .known
            .range((this.conn + 1, 0)..)
            .map(|(conn, end)| EndId { conn: *conn, end: *end })
            .filter(|end| hosts(*end) == hosts(this) && self.conns[end.conn].ends[end.end].open)
            .count()
    }
}

impl Population {
    /// An input reaches a member.
    pub(super) fn write_down_input(
        &self,
        clock: &mut Clockwork,
        ensemble: &Ensemble,
        host: HostIndex,
        input: &Input,
    ) {
        if !matches!(clock.mover, Mover::Recording(_)) {
            return;
        }
        let transition = self.transition_of(clock, ensemble, host, input);
        let at_us = Some(clock.now.0);
        let end = match input {
            Input::Accepted { conn } | Input::Dialled { conn, .. } => Some(EndId::of(*conn)),
            _ => None,
        };
        let Mover::Recording(recording) = &mut clock.mover else { return };
        recording.known.extend(end.map(|end| (end.conn, end.end)));
        let place = match transition {
            Some(Transition::Told { host }) if recording.just_wrote(host) => {
                recording.hears_at_once();
                recording.lines.len() - 1
            }
            Some(transition) => {
                recording.lines.push(Line { at_us, transition, note: String::new() });
                recording.lines.len() - 1
            }
            None => recording.lines.len(),
        };
        recording.stepping = Some((host, place, 0));
    }

    fn transition_of(
        &self,
        clock: &Clockwork,
        ensemble: &Ensemble,
        host: HostIndex,
        input: &Input,
    ) -> Option<Transition> {
        Some(match input {
            Input::Tick => Transition::Tick { host, times: 1 },
            Input::Stored { .. } => Transition::Told { host },
            Input::Notification { from, .. } => {
                Transition::Vote { from: ensemble.index_of(*from)?, to: host }
            }
            Input::ElectionConnected { peer } => Transition::Meets { host, peer: ensemble.index_of(*peer)? },
            Input::ElectionLost { peer } => Transition::Misses { host, peer: ensemble.index_of(*peer)? },
            Input::Dialled { leader, .. } => Transition::Dialled { host, peer: ensemble.index_of(*leader)? },
            Input::DialFailed { leader } => Transition::Refused { host, peer: ensemble.index_of(*leader)? },
            Input::Accepted { conn } => Transition::Accepts { host, peer: ensemble.peer_at(*conn) },
            Input::Packet { conn, packet } => Transition::Packet {
                from: ensemble.peer_at(*conn),
                to: host,
                kind: Kind::Packet(packet.kind),
                zxid: zxid_of(input),
                old: ensemble.older(clock, *conn),
            },
            Input::Image { conn, .. } => Transition::Packet {
                from: ensemble.peer_at(*conn),
                to: host,
                kind: Kind::Image,
                zxid: zxid_of(input),
                old: ensemble.older(clock, *conn),
            },
            // In a script nothing arrives by halves.
            Input::Alive { .. } => return None,
            Input::PeerLost { conn } => {
                // Its end is closed already; it was the newest of those that are left, or older.
                Transition::Loses { host, peer: ensemble.peer_at(*conn), old: ensemble.older(clock, *conn) }
            }
            Input::ClientConnect { client, .. }
            | Input::ClientRequest { client, .. }
            | Input::ClientProof { client, .. } => {
                let (client, old) = self.client_at(*client);
                Transition::Hears { host, client, old }
            }
            Input::ClientLost { client } => {
                let (client, old) = self.client_at(*client);
                Transition::Drops { host, client, old }
            }
        })
    }

    /// Whose connection it is, and how many newer ones to the same process there are.
    fn client_at(&self, client: ClientId) -> (usize, usize) {
        let index = usize::try_from(client.0).expect("connections are few");
        let this = &self.client_conns[index];
        let newer = self.client_conns[index + 1..].iter().filter(|conn| {
            (conn.client, conn.host, conn.life) == (this.client, this.host, this.life) && conn.member_open
        });
        (this.client, newer.count())
    }
}

impl World {
    /// Lives through a seed's world, without what is left out of it.
    pub(crate) fn reduced(seed: u64, options: Options, reduction: &Reduction) -> Self {
        let mut world = Self::new(seed, options);
        reduction.apply(&mut world.clock.drawn);
        world.clock.reduction = reduction.clone();
        world
    }

    /// Turns that the nemesis had.
    pub(crate) fn turns(&self) -> u64 {
        self.chaos.turn
    }

    /// Clients that there are.
    pub(crate) fn population(&self) -> usize {
        self.population.clients.len()
    }

    /// Writes everything down from here on.
    pub(crate) fn record(&mut self) {
        self.clock.mover = Mover::Recording(Box::default());
        for host in 0..self.ensemble.hosts.len() {
            self.ensemble.write_down_clock(&mut self.clock, host, 0);
        }
    }

    /// What was written down, and how it ended.
    pub(crate) fn into_recording(self, panic: Option<String>) -> (Head, Vec<Line>, Option<Violation>) {
        let head = Head::of(&self.clock.drawn, !self.clock.options.look_inside);
        let mut world = self;
        let lines = match std::mem::replace(&mut world.clock.mover, Mover::None) {
            Mover::Recording(recording) => recording.lines,
            Mover::None | Mover::Scripted(_) => Vec::new(),
        };
        let Outcome { violation, .. } = world.into_outcome(panic);
        (head, lines, violation)
    }
}

/// What a packet is about, where that is a place in the history.
pub(super) fn zxid_of(input: &Input) -> Option<Zxid> {
    match input {
        Input::Packet { packet, .. } => match packet.kind {
            PacketType::Ping | PacketType::Request | PacketType::Revalidate | PacketType::Sync => None,
            _ => Some(Zxid::from_wire(packet.zxid)),
        },
        Input::Image { image, .. } => Some(image.zxid),
        _ => None,
    }
}

impl Recording {
    /// True when the last line is that this member's writer finished.
    fn just_wrote(&self, host: HostIndex) -> bool {
        let last = self.lines.last().map(|line| &line.transition);
        matches!(last, Some(Transition::Wrote { host: wrote, .. }) if *wrote == host)
    }

    fn hears_at_once(&mut self) {
        if let Some(line) = self.lines.last_mut()
            && let Transition::Wrote { host, ops } = line.transition
        {
            line.transition = Transition::Stored { host, ops };
        }
    }
}
