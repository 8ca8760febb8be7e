//! What clients may do here, as the configuration says.

use std::time::Duration;

use bytestring::ByteString;
use node_wire::jute::limits::MAX_FRAME;

/// How often the leader looks for containers and nodes whose time is over.
pub const CONTAINER_CHECK: Duration = Duration::from_secs(60);

/// Whether the ensemble may change while it serves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reconfiguration {
    /// It is what the configuration says.
    #[default]
    Off,
    /// It might, if this member were not alone: there is nobody to agree with.
    Alone,
    /// By the request `reconfig`.
    On {
        /// An ensemble of one is none (`standaloneEnabled`): two voters must stay.
        standalone: bool,
    },
}

/// What a member is told about its clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientRules {
    /// The identity, `super:DIGEST`, whose password makes a client the superuser; nobody is without it.
    pub super_digest: Option<ByteString>,
    /// The schemes of which a client must have an identity before it may ask anything; none where anybody
    /// may.
    pub required_schemes: Vec<ByteString>,
    /// The schemes that clients can prove here besides `digest` and `ip`: `sasl`, `x509`. A list that names
    /// another one is refused, for nobody could ever be meant by it.
    pub providers: Vec<ByteString>,
    /// Access control lists are kept and not looked at.
    pub skip_acl: bool,
    /// Quotas with hard limits refuse what exceeds them.
    pub enforce_quota: bool,
    /// Nodes may have a time to live. ZooKeeper has this off unless it is asked for.
    pub extended_types: bool,
    /// New sessions live on their member alone.
    pub local_sessions: bool,
    /// A local session becomes one of the ensemble when it creates an ephemeral, instead of being refused.
    pub local_upgrading: bool,
    /// Without a leader the member serves reads to clients that are content with that.
    pub read_only_mode: bool,
    /// How often the leader looks for containers and nodes whose time is over.
    pub container_check: Duration,
    /// For how long a container may stand that never had a child; for ever without it.
    pub never_used: Option<Duration>,
    /// `jute.maxbuffer`: the longest request in bytes. A transaction may be twice as long.
    pub max_buffer: usize,
    /// The text of `/zookeeper/config`: a line for each member, and the version. Empty where there is none to
    /// show.
    pub membership: ByteString,
    /// Whether that may change.
    pub reconfig: Reconfiguration,
}

/// What a transaction has besides what a client asked for: headers, a digest, the numbers of sequential
/// names.
const TRANSACTION_HEADROOM: usize = 1024;

impl ClientRules {
    /// The longest access control list. `auth` stands for every identity of its client, so that a short
    /// request can ask for a list of any length.
    pub(crate) fn max_list(&self) -> usize {
        self.max_buffer.saturating_sub(TRANSACTION_HEADROOM)
    }

    /// The longest that the parts of a transaction may be together. One that is longer could be neither sent
    /// nor read back from the log, by nobody in the ensemble.
    pub(crate) fn max_parts(&self) -> usize {
        (2 * self.max_buffer).saturating_sub(TRANSACTION_HEADROOM)
    }
}

impl Default for ClientRules {
    fn default() -> Self {
        Self {
            super_digest: None,
            required_schemes: Vec::new(),
            providers: Vec::new(),
            skip_acl: false,
            enforce_quota: false,
            extended_types: true,
            local_sessions: false,
            local_upgrading: false,
            read_only_mode: false,
            container_check: CONTAINER_CHECK,
            never_used: None,
            max_buffer: MAX_FRAME,
            membership: ByteString::new(),
            reconfig: Reconfiguration::Off,
        }
    }
}
