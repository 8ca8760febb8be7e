//! What every role of a member shares: its history, its tree, its store, its clients and the list of effects.
//!
//! A role (looking, following, leading) is a value beside this one; it is given `&mut Base` and asks to be
//! left by returning a [`Leave`]. So no role can hold state of another, and nothing of a role survives it but
//! what stands here.

use std::collections::VecDeque;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use bytestring::ByteString;
use node_wire::ids::{Epoch, ServerId, Zxid};
use node_wire::quorum::{Dialect, QuorumPacket};
use node_wire::snapshot::{Image, ZxidDigest};
use node_wire::txn::Entry;

use crate::clients::Clients;
use crate::config::{Config, SnapCount};
use crate::digests::DigestLog;
use crate::divergence::Divergence;
use crate::ensemble::{Changed, Ensemble, membership_of};
use crate::io::{ConnId, Effect, Event, Now, StoreOp};
use crate::journal::Journal;
use crate::quorum::Quorum;
use crate::tree::{Applied, Seen, Tree};
use crate::zab::Protocol;

/// How much of a long history is applied in one step, in bytes of the log: some ten milliseconds' work. A
/// member that applies the log of a large ensemble in one step would be missed by its peers.
pub(crate) const HISTORY_SLICE: usize = 512 << 10;

/// What an entry costs of [`HISTORY_SLICE`], however short it is.
const LEAST_WEIGHT: usize = 128;

/// What applying an entry costs of [`HISTORY_SLICE`].
pub(crate) fn weight(entry: &Entry) -> usize {
    entry.bytes.len().max(LEAST_WEIGHT)
}

/// The patience of discovery is doubled at most this often.
const MAX_PATIENCE_DOUBLINGS: u32 = 4;

/// A role can't go on. The member looks for a leader again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Leave {
    pub(crate) reason: String,
    /// Who is to lead instead, if that is settled: it is followed without an election.
    pub(crate) successor: Option<ServerId>,
}

impl Leave {
    pub(crate) fn because(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), successor: None }
    }
}

/// What to do once a store operation is durable. A role that ended is never woken: see
/// [`Base::forget_waiting`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Then {
    /// Follower: acceptedEpoch is on disk, so promise it.
    AckEpoch {
        conn: ConnId,
        /// The epoch whose history was held when the promise was made.
        current: Epoch,
    },
    /// Follower: the leader's history and currentEpoch are on disk.
    AckNewLeader { conn: ConnId, epoch: Epoch },
    /// Follower: a proposal is on disk.
    AckProposal { conn: ConnId, zxid: Zxid },
    /// Leader: its own acceptedEpoch is on disk.
    EpochAccepted,
    /// Leader: its own history and currentEpoch are on disk.
    NewLeaderStored,
    /// Leader: its own proposal is on disk.
    ProposalStored { zxid: Zxid },
}

/// State that outlives roles.
#[derive(Clone)]
pub(crate) struct Base<P: Protocol> {
    /// What is decided by rule.
    pub(crate) zab: P,
    pub(crate) config: Config,
    pub(crate) quorum: Quorum,
    pub(crate) ensemble: Ensemble,
    /// The ensemble changed, and neither the election nor the driver knows.
    pub(crate) ensemble_changed: bool,
    pub(crate) now: Now,
    /// Time in which this process was awake; all deadlines run on it.
    pub(crate) awake: Duration,
    pub(crate) accepted_epoch: Epoch,
    pub(crate) current_epoch: Epoch,
    /// The highest epoch that any peer said it accepted. No promise of ours: the next epoch is chosen beyond
    /// it, so that a member far ahead costs one election and not one for each epoch.
    pub(crate) highest_told: Epoch,
    pub(crate) journal: Journal,
    pub(crate) tree: Tree,
    pub(crate) clients: Clients,
    pub(crate) out: Vec<Effect>,
    next_ticket: u64,
    stored: u64,
    waiting: VecDeque<(u64, Then)>,
    /// Appends in flight: ticket and zxid, to know what is durable.
    appended: VecDeque<(u64, Zxid)>,
    durable: Zxid,
    last_snapshot: Zxid,
    since_snapshot: u64,
    /// For operators: nothing is decided by it.
    pub(crate) digests: DigestLog,
    /// Lookups since an epoch was established last.
    failed_lookups: u32,
    /// What the transaction that is being applied shows to watches; kept for its memory.
    seen: Vec<Seen>,
    /// Whether the tree is that of the others.
    divergence: Divergence,
}

impl<P: Protocol> Base<P> {
    pub(crate) fn new(
        config: Config,
        accepted: Epoch,
        current: Epoch,
        image: &Image,
        entries: Vec<Entry>,
        now: Now,
        zab: P,
    ) -> Self {
        let mut ensemble = Ensemble::new(&config);
        let mut tree = tree_of(image, &config, &ensemble, zab);
        let mut changed = Changed::Nothing;
        if zab.history_tells_membership() {
            changed = ensemble.take_from(&tree);
            for entry in &entries {
                changed = changed.max(ensemble.logged(entry));
            }
        }
        ensemble.show_in(&mut tree);
        let quorum = ensemble.quorum(&config, zab);
        let journal = Journal::new(image.zxid, entries, config.journal_entries);
        let logged = journal.last();
        let mut base = Self {
            zab,
            quorum,
            ensemble_changed: ensemble.changes,
            ensemble,
            now,
            awake: Duration::ZERO,
            accepted_epoch: accepted,
            current_epoch: current,
            highest_told: Epoch::ZERO,
            durable: logged,
            journal,
            tree,
            clients: Clients::new(config.id, &config.clients, now, accepted, logged),
            out: Vec::new(),
            next_ticket: 0,
            stored: 0,
            waiting: VecDeque::new(),
            appended: VecDeque::new(),
            last_snapshot: image.zxid,
            digests: DigestLog::default(),
            // What was recovered is counted when it is applied, like everything else.
            since_snapshot: config.snap_count.head_start,
            failed_lookups: 0,
            seen: Vec::new(),
            divergence: Divergence::default(),
            config,
        };
        if changed == Changed::Active {
            base.keep_membership();
        }
        base
    }

    /// Who is in the ensemble changed, perhaps.
    pub(crate) fn adapt(&mut self, changed: Changed) {
        match changed {
            Changed::Nothing => return,
            Changed::Quorum => {}
            Changed::Active => {
                self.ensemble.show_in(&mut self.tree);
                self.keep_membership();
            }
        }
        self.quorum = self.ensemble.quorum(&self.config, self.zab);
        self.ensemble_changed = true;
    }

    fn keep_membership(&mut self) {
        self.store(StoreOp::Membership(Arc::new(self.ensemble.active().clone())));
    }

    pub(crate) fn emit(&mut self, effect: Effect) {
        self.out.push(effect);
    }

    pub(crate) fn tell(&mut self, event: Event) {
        self.out.push(Effect::Event(event));
    }

    pub(crate) fn send(&mut self, conn: ConnId, packet: QuorumPacket) {
        self.out.push(Effect::Send { conn, packet });
    }

    /// How long a leader waits for its quorum, and a follower for its leader, before they look again. It
    /// grows with each failure: a disk that takes long must not keep an ensemble from ever agreeing.
    ///
    /// A Java member needs longer: its election ends with a wait of 200 ms, and it makes a new server then.
    pub(crate) fn discovery_timeout(&self, slowest: Dialect) -> Duration {
        let doublings = self.failed_lookups.saturating_sub(1).min(MAX_PATIENCE_DOUBLINGS);
        let first = match slowest {
            Dialect::Own => self.config.peer_timeout * 2,
            Dialect::Apache => self.config.tick_time.max(self.config.peer_timeout * 2),
        };
        (first * (1 << doublings)).min(self.config.init_timeout())
    }

    pub(crate) fn lookup_began(&mut self) {
        self.failed_lookups = self.failed_lookups.saturating_add(1);
    }

    pub(crate) fn epoch_established(&mut self) {
        self.failed_lookups = 0;
        let changed = self.ensemble.forget_heard();
        self.adapt(changed);
    }

    fn store(&mut self, op: StoreOp) -> u64 {
        self.next_ticket += 1;
        self.out.push(Effect::Store { ticket: self.next_ticket, op });
        self.next_ticket
    }

    fn store_then(&mut self, op: StoreOp, then: Then) {
        let ticket = self.store(op);
        self.waiting.push_back((ticket, then));
    }

    /// Logs an entry: into the journal at once, onto disk in its turn.
    pub(crate) fn append(&mut self, entry: Entry, then: Option<Then>) {
        self.journal.push(entry.clone());
        let changed = self.ensemble.logged(&entry);
        self.adapt(changed);
        let zxid = entry.zxid();
        let ticket = self.store(StoreOp::Append(entry));
        self.appended.push_back((ticket, zxid));
        if let Some(then) = then {
            self.waiting.push_back((ticket, then));
        }
    }

    pub(crate) fn set_accepted_epoch(&mut self, epoch: Epoch, then: Then) {
        self.accepted_epoch = epoch;
        self.store_then(StoreOp::AcceptedEpoch(epoch), then);
    }

    /// The store is one queue: everything logged before this call is durable before the epoch is. That is the
    /// order that ZOOKEEPER-4643 and 4646 broke.
    pub(crate) fn set_current_epoch(&mut self, epoch: Epoch, then: Then) {
        self.current_epoch = epoch;
        self.store_then(StoreOp::CurrentEpoch(epoch), then);
    }

    /// Cuts the log. False when the cut would reach into what is applied.
    pub(crate) fn truncate(&mut self, zxid: Zxid) -> bool {
        if !self.journal.truncate(zxid) {
            return false;
        }
        let changed = self.ensemble.truncated(zxid);
        self.adapt(changed);
        self.store(StoreOp::Truncate(zxid));
        self.appended.retain(|(_, appended)| *appended <= zxid);
        self.durable = self.durable.min(self.journal.last());
        true
    }

    /// Replaces everything by a leader's snapshot. A leader of ours has nothing in its tree that is not
    /// committed.
    pub(crate) fn install(&mut self, image: Image, leader: Dialect) {
        self.tree = tree_of(&image, &self.config, &self.ensemble, self.zab);
        let changed = self.ensemble.installed(&self.tree, leader == Dialect::Own);
        self.adapt(changed);
        self.ensemble.show_in(&mut self.tree);
        self.divergence = Divergence::default();
        self.journal.reset(image.zxid);
        self.appended.clear();
        self.durable = image.zxid;
        self.last_snapshot = image.zxid;
        self.since_snapshot = 0;
        self.store(StoreOp::Install(Arc::new(image)));
    }

    /// Everything up to a ticket is durable. The next thing that waited for it, if any.
    pub(crate) fn stored(&mut self, ticket: u64) {
        self.stored = self.stored.max(ticket);
        while let Some(&(appended, zxid)) = self.appended.front()
            && appended <= self.stored
        {
            self.appended.pop_front();
            self.durable = self.durable.max(zxid);
        }
        self.maybe_snapshot();
    }

    pub(crate) fn next_due(&mut self) -> Option<Then> {
        let (ticket, then) = *self.waiting.front()?;
        if ticket > self.stored {
            return None;
        }
        self.waiting.pop_front();
        Some(then)
    }

    /// The ticket whose durability the role waits for, if any.
    pub(crate) fn awaited(&self) -> Option<u64> {
        self.waiting.front().map(|(ticket, _)| *ticket)
    }

    /// A role ended: what it waited for concerns nobody any more. The operations themselves stay queued.
    pub(crate) fn forget_waiting(&mut self) {
        self.waiting.clear();
    }

    /// Mixes in everything that can decide what happens next, and nothing that only counts the past.
    pub(crate) fn fingerprint(&self, state: &mut impl Hasher) {
        let Self {
            zab: _,
            config: _,
            // Follows from the next one.
            quorum: _,
            ensemble,
            ensemble_changed,
            now: _,
            awake: _,
            accepted_epoch,
            current_epoch,
            highest_told,
            journal,
            tree,
            clients,
            out: _,
            next_ticket,
            stored,
            waiting,
            appended,
            durable,
            last_snapshot,
            since_snapshot,
            digests: _,
            failed_lookups,
            seen: _,
            // Decides nothing.
            divergence: _,
        } = self;
        (accepted_epoch, current_epoch, highest_told).hash(state);
        ensemble.fingerprint(state);
        ensemble_changed.hash(state);
        journal.fingerprint(state);
        (tree.zxid(), tree.digest()).hash(state);
        for session in tree.sessions() {
            session.hash(state);
        }
        clients.hash(state);
        state.write_u64(next_ticket - stored);
        for (ticket, then) in waiting {
            (ticket - stored, then).hash(state);
        }
        for (ticket, zxid) in appended {
            (ticket - stored, zxid).hash(state);
        }
        (durable, last_snapshot, since_snapshot).hash(state);
        failed_lookups.min(&(MAX_PATIENCE_DOUBLINGS + 1)).hash(state);
    }

    /// Applies the next committed entry, answers the client that asked for it, and gives both.
    pub(crate) fn apply_next(&mut self, up_to: Zxid) -> Option<(Entry, Applied)> {
        let entry = self.journal.apply_next(up_to)?;
        self.clients.about_to_apply(&entry, &self.tree, &mut self.out);
        self.seen.clear();
        let applied = self.tree.apply_seen(&entry, &mut self.seen);
        if let Some(membership) = membership_of(&entry) {
            let changed = self.ensemble.activate(membership);
            self.adapt(changed);
        }
        self.digests.note(entry.zxid(), self.tree.digest());
        if let Some(told) = self.divergence.compare(&self.tree, &entry) {
            self.tell(Event::Diverged { zxid: entry.zxid(), told, computed: self.tree.digest() });
        }
        self.compare_with_snapshot();
        // Watches first, then whoever asked.
        self.clients.tell(&self.seen, self.zab.watches_ask_lists(), &mut self.out);
        self.clients.applied(&entry, &applied, &self.tree, &mut self.out);
        self.since_snapshot += 1;
        self.maybe_snapshot();
        Some((entry, applied))
    }

    /// Applies as much of a long history as a step may hold. True when all of it up to there is applied.
    pub(crate) fn apply_some(&mut self, up_to: Zxid) -> bool {
        let mut left = HISTORY_SLICE;
        while left > 0 {
            let Some((entry, _)) = self.apply_next(up_to) else { break };
            left = left.saturating_sub(weight(&entry));
        }
        self.journal.next_to_apply(up_to).is_none()
    }

    /// Compares with what the writer of the snapshot had, once the tree stands there.
    pub(crate) fn compare_with_snapshot(&mut self) {
        if let Some(told) = self.divergence.compare_written(&self.tree) {
            self.tell(Event::Diverged { zxid: self.tree.zxid(), told, computed: self.tree.digest() });
        }
    }

    /// What the writer of the snapshot had.
    pub(crate) fn expect_digest(&mut self, written: ZxidDigest) {
        self.divergence = Divergence::of(Some(written));
    }

    /// Takes a snapshot when it is due and all of it is durable in the log: a snapshot that was ahead of the
    /// log would leave a hole behind it after a crash.
    fn maybe_snapshot(&mut self) {
        let applied = self.tree.zxid();
        let SnapCount { entries, grows, head_start: _ } = self.config.snap_count;
        let due = if grows { entries.max(self.tree.len()) } else { entries };
        if self.since_snapshot < due || applied <= self.last_snapshot || applied > self.durable {
            return;
        }
        self.since_snapshot = 0;
        self.last_snapshot = applied;
        self.out.push(Effect::TakeSnapshot(self.tree.snapshot()));
    }
}

/// The tree of a snapshot.
fn tree_of<P: Protocol>(image: &Image, config: &Config, ensemble: &Ensemble, zab: P) -> Tree {
    let mut tree = zab.restore(image);
    if ensemble.changes {
        // It may know better than we do.
        tree.show_membership(&ByteString::new());
        ensemble.show_in(&mut tree);
    } else {
        tree.show_membership(&config.clients.membership);
    }
    tree
}
