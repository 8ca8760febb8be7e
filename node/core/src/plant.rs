//! The bug zoo: planted bugs, failpoints that cost the clean member nothing.
//!
//! Every one of them is a bug that an implementation of ZAB really had, or one that a careful reader would make.
//! The core asks its plant `has(Bug::X)`; for [`Clean`] the answer is the constant `false` and the branch is gone.
//! The `node` binary holds only [`Clean`]; the harness and the simulator choose others by name. A bench that does
//! not find each of them is no bench (`harness selftest`).

use std::fmt;

macro_rules! zoo {
    ($($(#[$doc:meta])* $bug:ident = $name:literal, $origin:literal, $summary:literal;)*) => {
        /// A bug that can be planted.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Bug {
            $($(#[$doc])* $bug,)*
        }

        impl Bug {
            /// Every bug, for lists.
            pub const ALL: &[Self] = &[$(Self::$bug,)*];

            /// Its name on the command line (`--plant NAME`).
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$bug => $name,)*
                }
            }

            /// Who had it: issues of Apache ZooKeeper, or what it is known by.
            pub fn origin(self) -> &'static str {
                match self {
                    $(Self::$bug => $origin,)*
                }
            }

            /// What it does, in a line.
            pub fn summary(self) -> &'static str {
                match self {
                    $(Self::$bug => $summary,)*
                }
            }
        }
    };
}

zoo! {
    // Elections and discovery.
    /// Votes are compared by (zxid, server id) alone, and so is what a follower tells of its history in discovery:
    /// there is no currentEpoch, as before ZooKeeper 3.4. The harm takes three leaders: one logs a proposal alone and
    /// dies, the next makes the history of an older log its epoch's, and the first comes back with the larger zxid
    /// (figure 8 of the Raft paper is the same schedule).
    IgnorePeerEpoch = "ignore-peer-epoch", "ZOOKEEPER-335, 1081",
        "votes are compared by zxid and id alone, an old epoch's proposals win";
    /// A vote of another round is counted as if it were of this one: the ballot box is not emptied between rounds.
    /// Safety does not suffer, discovery sees to that. But a leader that died has the votes of the round in which it
    /// won, and wins the next ones too.
    CountOtherRound = "count-other-round", "fast leader election, logical clock",
        "votes of another round are counted in this one";
    /// Half of the voters pass for a quorum. In ensembles of even size two such halves need not meet; in those of odd
    /// size this is no bug at all.
    HalfQuorum = "half-quorum", "\"at least half\" in common texts",
        "half of the voters pass for a quorum";
    /// The promise of an epoch is not kept on disk: both epoch files are written with the first entry of the epoch, as
    /// when the epoch was told from the log. One without entries is forgotten in a crash, and given a second time.
    ///
    /// To forget acceptedEpoch alone is a bug as well, but two other rules hide it: a promise counts only while its
    /// connection lasts, and the log lets no currentEpoch be written beyond acceptedEpoch.
    EpochForgotten = "epoch-forgotten", "ZOOKEEPER-1653 and its like",
        "an epoch is promised and not written before its first entry";
    /// A leader whose quorum is gone goes on: it answers reads from an ever older tree, takes writes that nobody
    /// commits, and when the network is whole again it still leads beside the leader of a later epoch.
    NoAbdication = "no-abdication", "leader without a quorum",
        "a leader that lost its quorum goes on leading";

    // Synchronization.
    /// NEWLEADER is acknowledged as it comes, while the synchronized transactions wait for the disk. Both they and
    /// currentEpoch behind them are still written in their order.
    AckNewLeaderEarly = "ack-newleader-early", "ZOOKEEPER-4646",
        "NEWLEADER is acknowledged before the synchronized transactions are durable";
    /// currentEpoch is written before the synchronized transactions: these are held in memory until NEWLEADER comes,
    /// and follow the epoch file to the disk. The ACK waits for all of it; a crash between the two does the harm.
    EpochBeforeLog = "epoch-before-log", "ZOOKEEPER-4643",
        "currentEpoch is written before the log that it vouches for";
    /// Entries that waited for the disk when the role ended are written behind the cut of the next one: two writers on
    /// one log, the old one slower than the TRUNC.
    StaleLogWriter = "stale-log-writer", "ZOOKEEPER-4712, 4541",
        "the old log writer still appends after a rejoin has cut the log";
    /// A COMMIT between NEWLEADER and UPTODATE is forgotten, and UPTODATE does not make up for it. The next COMMIT
    /// does: until then the member serves the past. (In ZooKeeper 3.8 the follower gives up instead.)
    LostCommitInSync = "lost-commit-in-sync", "ZOOKEEPER-4394",
        "a COMMIT between NEWLEADER and UPTODATE is lost";
    /// The ACK of a proposal goes out before that of NEWLEADER: it answers to its own entry on disk. The leader takes
    /// it for a breach of the protocol and hangs up, so that nobody can join while there are writes.
    AckOvertakesNewLeader = "ack-overtakes-newleader", "ZOOKEEPER-4685",
        "the ACK of a proposal overtakes that of NEWLEADER";
    /// A member serves before it applied what it was synchronized with: that is done by and by, in the background.
    ServeBeforeApply = "serve-before-apply", "ZOOKEEPER-3023",
        "a member serves before it applied what it was synchronized with";
    /// Reads are answered while the member looks for a leader and is being synchronized: its clients stay, and what
    /// needs no leader is answered. A plain read may be old anyway; the harm is the sync before it, which has no
    /// leader to go to and counts as done.
    ReadDuringSync = "read-during-sync", "reads of a member that is not up to date",
        "a read is answered during synchronization";
    /// What a role had logged is applied when it ends, committed or not, and stays in the tree when the next leader has
    /// it cut from the log.
    UncommittedInMemory = "uncommitted-in-memory", "ZOOKEEPER-2845",
        "uncommitted transactions stay in memory over a re-election";
    /// TRUNC cuts one entry more than it was told.
    TruncTooFar = "trunc-too-far", "ZOOKEEPER-1154",
        "TRUNC cuts one transaction more than it should";
    /// TRUNC cuts memory and leaves the log as it is.
    TruncNotAtAll = "trunc-not-at-all", "ZOOKEEPER-1154, 962",
        "TRUNC is acknowledged and the log stays as it was";
    /// A SNAP that broke off is taken for whole: its zxid is believed when it is announced, and when the stream breaks
    /// the member goes on with its old tree and log in the belief that they reach so far.
    TrustInterruptedSnap = "trust-interrupted-snap", "ZOOKEEPER-3642, 2872",
        "a SNAP that was interrupted half-way is trusted";

    // Broadcast and the log.
    /// A follower or leader acknowledges a proposal before it is durable.
    AckBeforeFsync = "ack-before-fsync", "the commonest shortcut of all",
        "a proposal is acknowledged before it is durable";
    /// The leader commits a proposal on its own word.
    CommitAlone = "commit-alone", "asynchronous replication",
        "the leader commits on its own word";
    /// An entry whose write failed stays in memory and out of the log, the ones behind it are written. This one is
    /// its driver's, not the core's.
    LogHole = "log-hole", "ZOOKEEPER-4882",
        "a transaction whose log write failed is committed all the same, the log has a hole";
    /// A member that starts takes what its log holds behind its snapshot for the remains of something broken, and stops.
    /// Whoever was killed does not come back; as long as nobody is, nothing shows.
    RefusesOwnLog = "refuses-own-log", "ZOOKEEPER-1653, 2307",
        "a member that was killed does not start on the log that it left";
    /// The synchronized connection of a member that comes back stays beside the new one, and what both acknowledge counts
    /// twice: three connections of two members pass for three of five.
    TwoVoices = "two-voices", "a half-open connection that is counted",
        "a member that comes back acknowledges by both of its connections";
    /// The leader commits while at most one voter is away. With two away it goes on leading, and their followers on
    /// following, because everybody hears of everybody; nothing is acknowledged until one comes back.
    StallsWithoutTwo = "stalls-without-two", "a leader that leads and commits nothing",
        "a leader that lacks two voters leads on and commits nothing";
    /// A new leader numbers its proposals on from the last zxid, in the old epoch.
    ZxidReuse = "zxid-reuse", "epoch not in the zxid",
        "a re-elected leader uses the zxids of its last epoch again";
    /// The counter of the zxid runs over into the epoch.
    ZxidRollover = "zxid-rollover", "ZOOKEEPER-1277",
        "the counter of the zxid runs over into the epoch";
    /// A snapshot is named after a newer zxid than it holds: its walk over the tree passed before the last change.
    SnapshotMissesChange = "snapshot-misses-change", "ZOOKEEPER-2872, 3144",
        "a snapshot misses a change that was made while it was taken";

    // Clients and sessions.
    /// The leader answers a sync without asking its quorum.
    SyncWithoutQuorum = "sync-without-quorum", "ZOOKEEPER-1675",
        "the leader answers a sync without asking its quorum";
    /// A forwarded write that is slow to come back is forwarded again.
    DoubleApply = "double-apply", "retries without identity",
        "a forwarded write is applied twice";
    /// A compare-and-set that fails is answered at once, by what the member that got it has: its committed tree, or
    /// on the leader what is proposed.
    EarlyCasRefusal = "early-cas-refusal", "refusals out of order",
        "a failed compare-and-set is answered before its place in the order";
    /// A sequential name is numbered by the children that are there.
    SequentialTwice = "sequential-twice", "numbering by the count of children",
        "a sequential name is given twice";
    /// An ephemeral outlives its session: from a snapshot it is restored without its owner, and nobody removes it.
    EphemeralSurvives = "ephemeral-survives", "ZOOKEEPER-2355, 1367",
        "an ephemeral survives its session";
    /// An ephemeral goes when its client's connection does.
    EphemeralDiesEarly = "ephemeral-dies-early", "session and connection confused",
        "an ephemeral dies before its session";
    /// A follower lets sessions expire that it has not heard of, wherever their clients are by now.
    FollowerExpires = "follower-expires", "expiry by others than the leader",
        "a follower lets a session expire";

    /// That a client comes to another member is no sign of life: what was left of its time-out goes on.
    MoveIsNoLife = "move-is-no-life", "a time-out that goes on across a move",
        "a session that moves is not heard by the leader";

    // Watches, multi, and what goes by itself.
    /// Events leave behind the answers: whoever asked for a change learns of it before its own watch does, and whoever
    /// reads it too.
    WatchAfterReply = "watch-after-reply", "events behind answers",
        "a watch is told behind the reply that shows the change";
    /// Watches that are left again on another member count from now on: what changed since the client looked is told to
    /// nobody.
    WatchForgetsPast = "watch-forgets-past", "a failover that loses events",
        "setWatches does not tell what changed meanwhile";
    /// A watch that is to be told once stays where it was.
    WatchNotSpent = "watch-not-spent", "one-time watches that are not",
        "a one-time watch is told again";
    /// A multi that is refused keeps what was judged before the part that was refused.
    MultiInPart = "multi-in-part", "ZOOKEEPER-1624",
        "a multi is applied up to the part that is refused";
    /// A node may be made below one whose deletion is proposed and not yet committed.
    ParentUnderWay = "parent-under-way", "judged by what is committed",
        "a node is made below a parent whose deletion is under way";
    /// A time to live counts from the node's making: writing it does not keep it alive.
    TtlFromBirth = "ttl-from-birth", "ctime taken for mtime",
        "a node with a time to live is reaped though it was written";

    // The ensemble itself, and what it may hold.
    /// A membership is committed as anything else is, by a quorum of the one that rules. Those that it is made of need not
    /// know of it.
    ReconfigByOld = "reconfig-by-old", "one quorum for two memberships",
        "a membership is committed by a quorum of the old one alone";
    /// A membership counts from when it is logged: those who join help to commit what makes them members, and those who
    /// go are asked no more.
    NewcomerCounts = "newcomer-counts", "membership in force when it is logged",
        "a membership is committed by a quorum of the new one alone";
    /// Elections go on with the voters that the member was started with. Nothing is decided wrongly by that, because
    /// discovery counts by itself; but who was removed is waited for, and who joined is not heard.
    OldVotersElect = "old-voters-elect", "a list of peers that is read once",
        "elections are held with the voters that the member was started with";
    /// A member that starts again believes its file, and neither its snapshot nor its log.
    MembershipForgotten = "membership-forgotten", "membership kept in a file alone",
        "a member that starts again knows only the membership in its file";
    /// A tree that is taken over whole comes without its access control lists.
    ListsLostInSnap = "lists-lost-in-snap", "what is in no transaction is not in a snapshot",
        "a tree that is taken over whole lets everybody do everything";
    /// What is written is measured by what was there before.
    QuotaByOldValue = "quota-by-old-value", "old and new value confused",
        "a hard limit looks at what a node held, and not at what it will";
    /// A tree that is taken over whole has no quotas: nobody looks for them in it.
    QuotaForgotten = "quota-forgotten", "what is in no transaction is not in a snapshot",
        "a member that starts from a snapshot counts nothing";
}

impl Bug {
    /// The bug of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|bug| bug.name() == name)
    }
}

impl fmt::Display for Bug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Which bugs a member has.
pub trait Plant: Copy + fmt::Debug + Send + Sync + 'static {
    /// True when this bug is planted.
    fn has(self, bug: Bug) -> bool;
}

/// No bug: zero-sized, and every question to it is answered when the program is compiled.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clean;

impl Plant for Clean {
    #[inline(always)]
    fn has(self, _: Bug) -> bool {
        false
    }
}

/// One bug.
#[derive(Clone, Copy, Debug)]
pub struct Planted(pub Bug);

impl Plant for Planted {
    #[inline]
    fn has(self, bug: Bug) -> bool {
        self.0 == bug
    }
}
