//! The client port: what clients ask and what they are told.
//!
//! A connection begins with one [`ConnectRequest`] and its [`ConnectResponse`], which have no header. Then
//! requests come, each an `xid`, an operation code and a body ([`Request`]), and each is answered in order by
//! a [`ReplyHeader`] and, when its error is 0, a body. Watch events and the answers to pings use xids of
//! their own. Every message is a frame: 4 bytes of length before it ([`put_frame`], [`take_frame`]).
//!
//! Bodies are decoded apart from their request, because a member that only forwards a request needs nothing
//! of its body. Four-letter words are not framed: a driver looks at the first 4 bytes of a connection before
//! it takes frames from it.

mod codes;
mod connect;
mod frame;
mod multi;
mod path;
mod request;
mod response;

pub(crate) use codes::codes;
pub use codes::{
    AddWatchMode, CREATE_CONTAINER, CREATE_EPHEMERAL, CREATE_EPHEMERAL_SEQUENTIAL, CREATE_PERSISTENT,
    CREATE_PERSISTENT_SEQUENTIAL, CREATE_TTL, CREATE_TTL_SEQUENTIAL, ErrorCode, EventType, KeeperState,
    OpClass, OpCode, PERM_ADMIN, PERM_ALL, PERM_CREATE, PERM_DELETE, PERM_READ, PERM_WRITE, XID_AUTH,
    XID_PING, XID_SET_WATCHES, XID_WATCH,
};
pub use connect::{ConnectRequest, ConnectResponse};
pub use frame::{put_frame, take_frame};
pub use multi::{MultiHeader, MultiOp, MultiRequest, MultiResponse, MultiResult};
pub use path::{PathError, validate_path, validate_sequential_path};
pub use request::{
    Acl, AddWatchRequest, AuthPacket, CheckVersionRequest, CreateRequest, CreateTtlRequest, DeleteRequest,
    Id, PathOnly, PathWatch, ReconfigRequest, Request, SaslPacket, SetAclRequest, SetDataRequest, SetWatches,
    SetWatches2, SyncRequest, WatchesRequest,
};
pub use response::{
    AllChildrenNumberResponse, Children2Response, ChildrenResponse, ClientInfo, Create2Response,
    CreateResponse, EphemeralsResponse, ErrorResponse, ExistsResponse, GetAclResponse, GetDataResponse,
    ReplyHeader, SetAclResponse, SetDataResponse, Stat, SyncResponse, WatcherEvent, WhoAmIResponse,
};
