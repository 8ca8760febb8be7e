//! The handle and its operations.

use std::sync::Arc;

use bytes::Bytes;
use bytestring::ByteString;
use node_wire::client::{
    Acl, ChildrenResponse, Create2Response, CreateRequest, CreateResponse, DeleteRequest, ExistsResponse,
    GetDataResponse, OpCode, PathWatch, ReconfigRequest, SetDataRequest, SetDataResponse, Stat, SyncRequest,
    SyncResponse,
};
use node_wire::client::{Children2Response, ErrorCode};
use node_wire::ids::Zxid;
use node_wire::jute::{DecodeError, Reader, Writer};

use crate::error::{CloseReason, Doubt, OpError};
use crate::pipeline::{Answer, AnswerReceiver, Pipeline};
use crate::session::Session;

/// A successful answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply<T> {
    /// The reply header's zxid: of the update itself for a write, of the server's state for a read.
    pub zxid: Zxid,
    /// What was asked for.
    pub value: T,
}

/// A handle on one connection with one session; clones are cheap and share it.
///
/// When the last handle is dropped the socket is closed. The session lives on until it expires, or until
/// someone resumes it; [`Client::close_session`] ends it at once.
#[derive(Clone, Debug)]
pub struct Client {
    handle: Arc<Handle>,
}

#[derive(Debug)]
struct Handle {
    pipeline: Arc<Pipeline>,
    session: Session,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.pipeline.close(CloseReason::Dropped);
    }
}

impl Client {
    pub(crate) fn new(pipeline: Arc<Pipeline>, session: Session) -> Self {
        Self { handle: Arc::new(Handle { pipeline, session }) }
    }

    /// The session, with the newest zxid that any answer carried so far.
    pub fn session(&self) -> Session {
        Session { last_zxid_seen: self.handle.pipeline.last_zxid_seen(), ..self.handle.session.clone() }
    }

    /// How many operations have no answer yet, those of callers who stopped waiting included.
    pub fn outstanding(&self) -> usize {
        self.handle.pipeline.outstanding()
    }

    /// Waits for the end of the connection. It can be awaited without a handle being kept.
    pub fn closed(&self) -> impl Future<Output = CloseReason> + Send + 'static {
        let mut receiver = self.handle.pipeline.closed();
        async move {
            // The channel can't end before it carried a reason, but saying so costs nothing.
            match receiver.wait_for(Option::is_some).await {
                Ok(reason) => reason.clone().unwrap_or(CloseReason::Dropped),
                Err(_) => CloseReason::Dropped,
            }
        }
    }

    /// True when the connection ended.
    pub fn is_closed(&self) -> bool {
        self.handle.pipeline.closed().borrow().is_some()
    }

    /// Creates a znode that anyone may use. `flags`: 0 persistent, 1 ephemeral, 2 sequential, 3 both.
    /// Gives the path, which for a sequential znode is longer than the one asked for.
    ///
    /// # Errors
    /// See [`OpError`].
    pub async fn create(
        &self,
        path: impl Into<ByteString>,
        data: impl Into<Bytes>,
        flags: i32,
    ) -> Result<Reply<ByteString>, OpError> {
        let request = create_request(path.into(), data.into(), flags);
        let reply = self.call(OpCode::Create, |w| request.encode(w), CreateResponse::decode).await?;
        Ok(Reply { zxid: reply.zxid, value: reply.value.path })
    }

    /// As [`Client::create`], and gives the new znode's Stat too.
    ///
    /// # Errors
    /// See [`OpError`].
    pub async fn create2(
        &self,
        path: impl Into<ByteString>,
        data: impl Into<Bytes>,
        flags: i32,
    ) -> Result<Reply<Create2Response>, OpError> {
        let request = create_request(path.into(), data.into(), flags);
        self.call(OpCode::Create2, |w| request.encode(w), Create2Response::decode).await
    }

    /// Deletes a znode if it is at this version; -1 for any.
    ///
    /// # Errors
    /// See [`OpError`].
    pub async fn delete(&self, path: impl Into<ByteString>, version: i32) -> Result<Reply<()>, OpError> {
        let request = DeleteRequest { path: path.into(), version };
        self.call(OpCode::Delete, |w| request.encode(w), |_| Ok(())).await
    }

    /// Changes the ensemble: server lines that join or change, numbers of those that leave, each list with
    /// commas, at a version of the membership or at any (-1). Gives the new membership and its Stat.
    ///
    /// # Errors
    /// See [`OpError`].
    pub async fn reconfig(
        &self,
        joining: &str,
        leaving: &str,
        version: i64,
    ) -> Result<Reply<GetDataResponse>, OpError> {
        let said = |list: &str| (!list.is_empty()).then(|| ByteString::from(list));
        let (joining, leaving) = (said(joining), said(leaving));
        let request = ReconfigRequest { joining, leaving, members: None, config_version: version };
        self.call(OpCode::Reconfig, |w| request.encode(w), GetDataResponse::decode).await
    }

    /// The Stat of a znode, or `None` where there is none, which the server calls an error.
    ///
    /// # Errors
    /// See [`OpError`].
    pub async fn exists(&self, path: impl Into<ByteString>) -> Result<Reply<Option<Stat>>, OpError> {
        let request = PathWatch { path: path.into(), watch: false };
        let result = self.call(OpCode::Exists, |w| request.encode(w), ExistsResponse::decode).await;
        match result {
            Ok(reply) => Ok(Reply { zxid: reply.zxid, value: Some(reply.value.stat) }),
            Err(OpError::Refused { code: ErrorCode::NoNode, zxid }) => Ok(Reply { zxid, value: None }),
            Err(error) => Err(error),
        }
    }

    /// Data and Stat of a znode, as the member at the other end has it, which may be behind.
    ///
    /// # Errors
    /// See [`OpError`].
    pub async fn get_data(&self, path: impl Into<ByteString>) -> Result<Reply<GetDataResponse>, OpError> {
        let request = PathWatch { path: path.into(), watch: false };
        self.call(OpCode::GetData, |w| request.encode(w), GetDataResponse::decode).await
    }

    /// Replaces a znode's data if it is at this version; -1 for any.
    ///
    /// # Errors
    /// See [`OpError`].
    pub async fn set_data(
        &self,
        path: impl Into<ByteString>,
        data: impl Into<Bytes>,
        version: i32,
    ) -> Result<Reply<Stat>, OpError> {
        let request = SetDataRequest { path: path.into(), data: Some(data.into()), version };
        let reply = self.call(OpCode::SetData, |w| request.encode(w), SetDataResponse::decode).await?;
        Ok(Reply { zxid: reply.zxid, value: reply.value.stat })
    }

    /// The names of a znode's children, in no order.
    ///
    /// # Errors
    /// See [`OpError`].
    pub async fn get_children(&self, path: impl Into<ByteString>) -> Result<Reply<Vec<ByteString>>, OpError> {
        let request = PathWatch { path: path.into(), watch: false };
        let reply = self.call(OpCode::GetChildren, |w| request.encode(w), ChildrenResponse::decode).await?;
        Ok(Reply { zxid: reply.zxid, value: reply.value.children })
    }

    /// The names of a znode's children, in no order, and its Stat.
    ///
    /// # Errors
    /// See [`OpError`].
    pub async fn get_children2(
        &self,
        path: impl Into<ByteString>,
    ) -> Result<Reply<Children2Response>, OpError> {
        let request = PathWatch { path: path.into(), watch: false };
        self.call(OpCode::GetChildren2, |w| request.encode(w), Children2Response::decode).await
    }

    /// Brings the member at the other end up to what its leader has.
    ///
    /// # Errors
    /// See [`OpError`].
    pub async fn sync(&self, path: impl Into<ByteString>) -> Result<Reply<()>, OpError> {
        let request = SyncRequest { path: path.into() };
        let reply = self.call(OpCode::Sync, |w| request.encode(w), SyncResponse::decode).await?;
        Ok(Reply { zxid: reply.zxid, value: () })
    }

    /// A sync and a read behind it as one operation: both go out together on this connection, and without
    /// both answers there is no result. Where `sync` asks a quorum this is a linearizable read.
    ///
    /// # Errors
    /// See [`OpError`]. It has no effect, so even an unknown outcome leaves nothing behind.
    pub async fn sync_then_get(
        &self,
        path: impl Into<ByteString>,
    ) -> Result<Reply<GetDataResponse>, OpError> {
        self.sync_then(OpCode::GetData, path.into(), GetDataResponse::decode).await
    }

    /// As [`Client::sync_then_get`], of the names of a znode's children.
    ///
    /// # Errors
    /// See [`OpError`].
    pub async fn sync_then_children(
        &self,
        path: impl Into<ByteString>,
    ) -> Result<Reply<Vec<ByteString>>, OpError> {
        let reply = self.sync_then(OpCode::GetChildren, path.into(), ChildrenResponse::decode).await?;
        Ok(Reply { zxid: reply.zxid, value: reply.value.children })
    }

    /// As [`Client::sync_then_get`], of whether a znode is there.
    ///
    /// # Errors
    /// See [`OpError`]. Where there is no znode is no error.
    pub async fn sync_then_exists(&self, path: impl Into<ByteString>) -> Result<Reply<bool>, OpError> {
        match self.sync_then(OpCode::Exists, path.into(), ExistsResponse::decode).await {
            Ok(reply) => Ok(Reply { zxid: reply.zxid, value: true }),
            Err(OpError::Refused { code: ErrorCode::NoNode, zxid }) => Ok(Reply { zxid, value: false }),
            Err(error) => Err(error),
        }
    }

    async fn sync_then<T>(
        &self,
        op: OpCode,
        path: ByteString,
        decode: impl FnOnce(&mut Reader) -> Result<T, DecodeError>,
    ) -> Result<Reply<T>, OpError> {
        let sync = SyncRequest { path: path.clone() };
        let read = PathWatch { path, watch: false };
        let (synced, got) = self.handle.pipeline.submit_pair(
            (OpCode::Sync, |w: &mut Writer<'_>| sync.encode(w)),
            (op, |w: &mut Writer<'_>| read.encode(w)),
        )?;
        wait(synced, SyncResponse::decode).await?;
        wait(got, decode).await
    }

    /// Ends the session, its ephemeral znodes with it, and then the connection.
    ///
    /// # Errors
    /// See [`OpError`]. Unknown when the connection broke before the answer: the session may live on until
    /// it expires.
    pub async fn close_session(&self) -> Result<Reply<()>, OpError> {
        let result = self.call(OpCode::CloseSession, |_| (), |_| Ok(())).await;
        self.handle.pipeline.close(CloseReason::SessionClosed);
        result
    }

    async fn call<T>(
        &self,
        op: OpCode,
        body: impl FnOnce(&mut Writer<'_>),
        decode: impl FnOnce(&mut Reader) -> Result<T, DecodeError>,
    ) -> Result<Reply<T>, OpError> {
        let receiver = self.handle.pipeline.submit(op, body)?;
        wait(receiver, decode).await
    }
}

async fn wait<T>(
    receiver: AnswerReceiver,
    decode: impl FnOnce(&mut Reader) -> Result<T, DecodeError>,
) -> Result<Reply<T>, OpError> {
    // The sender is dropped unused only when the runtime goes down with the task in it.
    let answer =
        receiver.await.unwrap_or(Err(OpError::Unknown { doubt: Doubt::Unanswered(CloseReason::Dropped) }));
    let Answer { zxid, mut body } = answer?;
    let value = decode(&mut body).map_err(|error| OpError::Unknown { doubt: Doubt::Unreadable(error) })?;
    Ok(Reply { zxid, value })
}

fn create_request(path: ByteString, data: Bytes, flags: i32) -> CreateRequest {
    CreateRequest { path, data: Some(data), acl: vec![Acl::world_anyone()], flags }
}
