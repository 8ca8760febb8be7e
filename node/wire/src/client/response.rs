//! Replies, their bodies, and watch events.

use bytes::Bytes;
use bytestring::ByteString;

use super::request::Acl;
use crate::ids::{SessionId, Zxid};
use crate::jute::record;

record! {
    /// Before every reply and every watch event.
    #[derive(Copy)]
    pub struct ReplyHeader {
        /// As in the request.
        pub xid: i32,
        /// Where the member stood; -1 in a watch event.
        pub zxid: Zxid,
        /// One of [`super::ErrorCode`]; a body follows only a 0.
        pub err: i32,
    }
}

record! {
    /// Everything about a node but its data.
    #[derive(Copy, Default)]
    pub struct Stat {
        /// The transaction that created it.
        pub czxid: Zxid,
        /// The transaction that set its data last.
        pub mzxid: Zxid,
        /// When it was created, in milliseconds since the Unix epoch.
        pub ctime: i64,
        /// When its data was set last, in milliseconds since the Unix epoch.
        pub mtime: i64,
        /// How often its data was set.
        pub version: i32,
        /// How often its children changed.
        pub cversion: i32,
        /// How often its ACL was set.
        pub aversion: i32,
        /// The session it goes with, or [`SessionId::NONE`]; also marks containers and times to live.
        pub ephemeral_owner: SessionId,
        /// The length of its data.
        pub data_length: i32,
        /// How many children it has.
        pub num_children: i32,
        /// The transaction that changed its children last.
        pub pzxid: Zxid,
    }
}

record! {
    /// Of create.
    pub struct CreateResponse {
        /// With the number, when it was sequential.
        pub path: ByteString,
    }
}

record! {
    /// Of create2, createContainer and createTTL.
    pub struct Create2Response {
        /// With the number, when it was sequential.
        pub path: ByteString,
        /// Of the new node.
        pub stat: Stat,
    }
}

record! {
    /// Of exists.
    pub struct ExistsResponse {
        /// Of the node.
        pub stat: Stat,
    }
}

record! {
    /// Of getData.
    pub struct GetDataResponse {
        /// The node's data.
        pub data: Option<Bytes>,
        /// Of the node.
        pub stat: Stat,
    }
}

record! {
    /// Of setData.
    pub struct SetDataResponse {
        /// Of the node, as it became.
        pub stat: Stat,
    }
}

record! {
    /// Of getACL.
    pub struct GetAclResponse {
        /// The list.
        pub acl: Vec<Acl>,
        /// Of the node.
        pub stat: Stat,
    }
}

record! {
    /// Of setACL.
    pub struct SetAclResponse {
        /// Of the node, as it became.
        pub stat: Stat,
    }
}

record! {
    /// Of getChildren.
    pub struct ChildrenResponse {
        /// Names, not paths.
        pub children: Vec<ByteString>,
    }
}

record! {
    /// Of getChildren2.
    pub struct Children2Response {
        /// Names, not paths.
        pub children: Vec<ByteString>,
        /// Of the parent.
        pub stat: Stat,
    }
}

record! {
    /// Of sync.
    pub struct SyncResponse {
        /// As in the request.
        pub path: ByteString,
    }
}

record! {
    /// Of getEphemerals.
    pub struct EphemeralsResponse {
        /// Paths.
        pub ephemerals: Vec<ByteString>,
    }
}

record! {
    /// Of getAllChildrenNumber.
    pub struct AllChildrenNumberResponse {
        /// How many nodes are below.
        pub total: i32,
    }
}

record! {
    /// One identity of a connection.
    pub struct ClientInfo {
        /// The kind of identity.
        pub scheme: ByteString,
        /// The identity.
        pub user: ByteString,
    }
}

record! {
    /// Of whoAmI.
    pub struct WhoAmIResponse {
        /// All of them.
        pub clients: Vec<ClientInfo>,
    }
}

record! {
    /// The body of one failed operation of a multi.
    pub struct ErrorResponse {
        /// One of [`super::ErrorCode`].
        pub err: i32,
    }
}

record! {
    /// What a watch saw. Its header has [`super::XID_WATCH`].
    pub struct WatcherEvent {
        /// One of [`super::EventType`].
        pub kind: i32,
        /// One of [`super::KeeperState`].
        pub state: i32,
        /// Which node.
        pub path: ByteString,
    }
}
