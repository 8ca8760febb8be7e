//! The numbers that stand for operations, errors, events and modes.

use crate::jute::DecodeError;

/// The xid of a watch event.
pub const XID_WATCH: i32 = -1;
/// The xid of a ping and of its answer.
pub const XID_PING: i32 = -2;
/// The xid of an auth packet and of its answer.
pub const XID_AUTH: i32 = -4;
/// The xid of a setWatches and of its answer.
pub const XID_SET_WATCHES: i32 = -8;

/// May read data and list children.
pub const PERM_READ: i32 = 1;
/// May set data.
pub const PERM_WRITE: i32 = 1 << 1;
/// May create children.
pub const PERM_CREATE: i32 = 1 << 2;
/// May delete children.
pub const PERM_DELETE: i32 = 1 << 3;
/// May set the ACL.
pub const PERM_ADMIN: i32 = 1 << 4;
/// May do all of it.
pub const PERM_ALL: i32 = PERM_READ | PERM_WRITE | PERM_CREATE | PERM_DELETE | PERM_ADMIN;

/// Create flags: stays until it is deleted.
pub const CREATE_PERSISTENT: i32 = 0;
/// Create flags: goes with its session.
pub const CREATE_EPHEMERAL: i32 = 1;
/// Create flags: persistent, with a number at the end of its name.
pub const CREATE_PERSISTENT_SEQUENTIAL: i32 = 2;
/// Create flags: ephemeral, with a number at the end of its name.
pub const CREATE_EPHEMERAL_SEQUENTIAL: i32 = 3;
/// Create flags: deleted by the server once its last child is gone.
pub const CREATE_CONTAINER: i32 = 4;
/// Create flags: deleted by the server when it was left alone for its time to live.
pub const CREATE_TTL: i32 = 5;
/// Create flags: with a time to live, and a number at the end of its name.
pub const CREATE_TTL_SEQUENTIAL: i32 = 6;

/// Declares an enum over the int that the wire has for it.
macro_rules! codes {
    (
        $(#[$meta:meta])*
        pub enum $name:ident { $($(#[$variant_meta:meta])* $variant:ident = $code:literal,)* }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(i32)]
        pub enum $name {
            $($(#[$variant_meta])* $variant = $code,)*
        }

        impl $name {
            /// Every one of them.
            pub const ALL: &[$name] = &[$($name::$variant,)*];

            /// The int on the wire.
            #[must_use]
            pub const fn code(self) -> i32 {
                match self {
                    $($name::$variant => $code,)*
                }
            }

            /// What an int on the wire stands for, if it is known.
            #[must_use]
            pub const fn from_code(code: i32) -> Option<$name> {
                match code {
                    $($code => Some($name::$variant),)*
                    _ => None,
                }
            }
        }

        impl TryFrom<i32> for $name {
            type Error = DecodeError;

            fn try_from(code: i32) -> Result<$name, DecodeError> {
                $name::from_code(code)
                    .ok_or(DecodeError::Unknown { what: stringify!($name), value: i64::from(code) })
            }
        }
    };
}
pub(crate) use codes;

codes! {
    /// An operation. The same numbers are the types of transactions.
    pub enum OpCode {
        /// Create, answered with the path.
        Create = 1,
        /// Delete a leaf.
        Delete = 2,
        /// The Stat of a node, or that there is none; may leave a watch.
        Exists = 3,
        /// Data and Stat; may leave a watch.
        GetData = 4,
        /// Replace the data, at a version or any.
        SetData = 5,
        /// ACL and Stat.
        GetAcl = 6,
        /// Replace the ACL, at a version or any.
        SetAcl = 7,
        /// Names of the children; may leave a watch.
        GetChildren = 8,
        /// Bring the member that is asked up to date.
        Sync = 9,
        /// Keep the session alive.
        Ping = 11,
        /// Names of the children, and Stat; may leave a watch.
        GetChildren2 = 12,
        /// Succeed only at a version; part of a multi.
        Check = 13,
        /// Several writes, all or none.
        Multi = 14,
        /// Create, answered with path and Stat.
        Create2 = 15,
        /// Change the membership.
        Reconfig = 16,
        /// Whether a watch is there.
        CheckWatches = 17,
        /// Take a watch back.
        RemoveWatches = 18,
        /// Create a container.
        CreateContainer = 19,
        /// Delete an empty container; only the leader itself asks for it.
        DeleteContainer = 20,
        /// Create with a time to live.
        CreateTtl = 21,
        /// Several reads.
        MultiRead = 22,
        /// Add an identity to the connection.
        Auth = 100,
        /// Leave the watches of an earlier connection again.
        SetWatches = 101,
        /// A step of a SASL exchange.
        Sasl = 102,
        /// The ephemeral nodes of the session.
        GetEphemerals = 103,
        /// How many nodes are below a path.
        GetAllChildrenNumber = 104,
        /// As setWatches, with persistent watches.
        SetWatches2 = 105,
        /// Leave a persistent watch.
        AddWatch = 106,
        /// The identities of the connection.
        WhoAmI = 107,
        /// A new session; never sent by a client.
        CreateSession = -10,
        /// End the session.
        CloseSession = -11,
        /// A transaction that records a refusal.
        Error = -1,
    }
}

/// What has to happen before an operation is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OpClass {
    /// Nothing: the member that is asked answers from what it has. Reads, and all about watches and
    /// identities.
    Read,
    /// A client's request becomes a transaction.
    Write,
    /// A session begins or ends with a transaction.
    Session,
    /// The leader says how far it is. No transaction is made.
    Sync,
    /// Nothing that concerns the tree: it is about the connection alone.
    Connection,
    /// The leader makes a transaction that only it may ask for.
    Internal,
    /// It is never asked for. The code is the type of transactions that record a refusal.
    Refusal,
}

impl OpClass {
    /// True for what is answered when its transaction is applied.
    #[must_use]
    pub const fn makes_transaction(self) -> bool {
        matches!(self, Self::Write | Self::Session | Self::Internal)
    }
}

impl OpCode {
    /// What has to happen before it is answered.
    #[must_use]
    pub const fn class(self) -> OpClass {
        match self {
            Self::Exists
            | Self::GetData
            | Self::GetAcl
            | Self::GetChildren
            | Self::GetChildren2
            | Self::MultiRead
            | Self::GetEphemerals
            | Self::GetAllChildrenNumber
            | Self::WhoAmI
            | Self::AddWatch
            | Self::CheckWatches
            | Self::RemoveWatches
            | Self::SetWatches
            | Self::SetWatches2 => OpClass::Read,
            // A check changes nothing. By itself it is judged by the leader all the same, as in ZooKeeper.
            Self::Create
            | Self::Create2
            | Self::CreateContainer
            | Self::CreateTtl
            | Self::Delete
            | Self::SetData
            | Self::SetAcl
            | Self::Check
            | Self::Multi
            | Self::Reconfig => OpClass::Write,
            Self::CreateSession | Self::CloseSession => OpClass::Session,
            Self::Sync => OpClass::Sync,
            Self::Ping | Self::Auth | Self::Sasl => OpClass::Connection,
            Self::DeleteContainer => OpClass::Internal,
            Self::Error => OpClass::Refusal,
        }
    }
}

codes! {
    /// Why a request was refused. The codes up to -100 are the system's fault, those below the request's.
    pub enum ErrorCode {
        /// It was not.
        Ok = 0,
        /// Something unforeseen on the server.
        SystemError = -1,
        /// The server contradicts itself.
        RuntimeInconsistency = -2,
        /// The data contradicts itself.
        DataInconsistency = -3,
        /// The connection broke; only known to clients.
        ConnectionLoss = -4,
        /// The request could not be decoded.
        MarshallingError = -5,
        /// The server does not know the operation.
        Unimplemented = -6,
        /// It took too long.
        OperationTimeout = -7,
        /// The arguments make no sense.
        BadArguments = -8,
        /// No quorum of the new configuration is connected.
        NewConfigNoQuorum = -13,
        /// Another reconfiguration is under way.
        ReconfigInProgress = -14,
        /// The first of the request's own faults; never sent.
        ApiError = -100,
        /// There is no such node.
        NoNode = -101,
        /// The ACL forbids it.
        NoAuth = -102,
        /// The node is at another version.
        BadVersion = -103,
        /// An ephemeral node has no children.
        NoChildrenForEphemerals = -108,
        /// The node is there already.
        NodeExists = -110,
        /// The node has children.
        NotEmpty = -111,
        /// The session is over.
        SessionExpired = -112,
        /// Only known to clients.
        InvalidCallback = -113,
        /// The ACL that was given makes no sense.
        InvalidAcl = -114,
        /// The identity was not proven.
        AuthFailed = -115,
        /// The session has moved to another member.
        SessionMoved = -118,
        /// The member is read-only.
        NotReadOnly = -119,
        /// A local session has no ephemeral nodes.
        EphemeralOnLocalSession = -120,
        /// There is no such watch.
        NoWatcher = -121,
        /// The client waited too long; only known to clients.
        RequestTimeout = -122,
        /// Reconfiguration is switched off.
        ReconfigDisabled = -123,
        /// The server demands SASL.
        SessionClosedRequireSaslAuth = -124,
        /// A quota would be exceeded.
        QuotaExceeded = -125,
        /// The server is too busy.
        ThrottledOp = -127,
    }
}

codes! {
    /// What a watch saw.
    pub enum EventType {
        /// Nothing of a node: the state of the session.
        None = -1,
        /// The node was created.
        NodeCreated = 1,
        /// The node was deleted.
        NodeDeleted = 2,
        /// The node's data was set.
        NodeDataChanged = 3,
        /// A child was created or deleted.
        NodeChildrenChanged = 4,
        /// A data watch was taken back.
        DataWatchRemoved = 5,
        /// A child watch was taken back.
        ChildWatchRemoved = 6,
        /// A persistent watch was taken back.
        PersistentWatchRemoved = 7,
    }
}

codes! {
    /// The state of a client's session, as events tell it.
    pub enum KeeperState {
        /// Not connected.
        Disconnected = 0,
        /// Connected to a member of the quorum.
        SyncConnected = 3,
        /// The identity was not proven.
        AuthFailed = 4,
        /// Connected to a read-only member.
        ConnectedReadOnly = 5,
        /// The identity is proven.
        SaslAuthenticated = 6,
        /// The session is over.
        Expired = -112,
        /// The client ended it.
        Closed = 7,
    }
}

codes! {
    /// How a watch of addWatch reaches.
    pub enum AddWatchMode {
        /// One node and its children's names, until it is taken back.
        Persistent = 0,
        /// A node and everything below, until it is taken back.
        PersistentRecursive = 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_makes_a_transaction_and_a_sync_makes_none() {
        let makes_one = |op: OpCode| op.class().makes_transaction();
        assert!(makes_one(OpCode::Check));
        assert!(makes_one(OpCode::CloseSession));
        assert!(makes_one(OpCode::DeleteContainer));
        assert!(![OpCode::Sync, OpCode::Ping, OpCode::WhoAmI, OpCode::Error].into_iter().any(makes_one));
    }

    #[test]
    fn every_code_names_what_it_came_from() {
        for &op in OpCode::ALL {
            assert_eq!(OpCode::from_code(op.code()), Some(op));
        }
        for &error in ErrorCode::ALL {
            assert_eq!(ErrorCode::from_code(error.code()), Some(error));
        }
        assert_eq!(OpCode::from_code(10), None);
        assert!(EventType::try_from(0).is_err());
    }
}
