//! What a session is asked, an operation a method.

use std::sync::Arc;

use bytes::Bytes;
use bytestring::ByteString;
use node_session::{Answer, CreateMode, Request, Response};
use node_wire::client::{
    Acl, AddWatchMode, ClientInfo, ErrorCode, MultiOp, MultiResult, ReconfigRequest, Stat,
};
use tokio::sync::{mpsc, oneshot};

use super::{Keeper, answer, awaited};
use crate::client::Reply;
use crate::error::{MultiError, NotSent, OpError};
use crate::events::Hearer;
use crate::pipeline::Pipeline;
use crate::watch::{WatchOnce, WatchStream};

/// Where the ensemble keeps its membership.
const CONFIG: &str = "/zookeeper/config";

/// A new znode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Created {
    /// With its number, when it is sequential.
    pub path: ByteString,
    /// Its Stat. `czxid` is its place in the order of all changes.
    pub stat: Stat,
}

/// What a znode holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Data {
    /// Its data.
    pub data: Bytes,
    /// Its Stat.
    pub stat: Stat,
}

/// What is below a znode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Children {
    /// Names, not paths, in no order.
    pub names: Vec<ByteString>,
    /// The Stat of the znode itself.
    pub stat: Stat,
}

/// Who may do what with a znode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AclList {
    /// The list.
    pub acl: Vec<Acl>,
    /// The Stat of the znode.
    pub stat: Stat,
}

/// The value in an answer. Each request has its kind of response, and is decoded as that.
macro_rules! value {
    ($answer:expr, $pattern:pat => $value:expr) => {{
        let Answer { zxid, response } = $answer;
        match response {
            $pattern => Ok(Reply { zxid, value: $value }),
            _ => unreachable!("a response is of its request's kind"),
        }
    }};
}

impl Keeper {
    /// Creates a znode with the handle's access list: one that anyone may use, unless [`Keeper::with_acl`]
    /// says otherwise.
    ///
    /// # Errors
    /// See [`OpError`].
    pub async fn create(
        &self,
        path: impl Into<ByteString>,
        data: impl Into<Bytes>,
        mode: CreateMode,
    ) -> Result<Reply<Created>, OpError> {
        self.create_with_acl(path, data, self.acl().to_vec(), mode).await
    }

    /// Creates a znode that this list is for.
    ///
    /// # Errors
    /// See [`OpError`].
    pub async fn create_with_acl(
        &self,
        path: impl Into<ByteString>,
        data: impl Into<Bytes>,
        acl: Vec<Acl>,
        mode: CreateMode,
    ) -> Result<Reply<Created>, OpError> {
        let request = Request::Create { path: path.into(), data: data.into(), acl, mode };
        value!(self.call(request).await?, Response::Created { path, stat } => Created { path, stat })
    }

    /// Creates a persistent znode, and all above it, as far as they are not there; each as
    /// [`Keeper::create`] does.
    ///
    /// # Errors
    /// See [`OpError`]. Some of those above may have been created.
    pub async fn create_all(&self, path: &str) -> Result<(), OpError> {
        let ends = path.match_indices('/').map(|(at, _)| at).skip(1).chain([path.len()]);
        for end in ends.filter(|end| *end > 1) {
            let znode = ByteString::from(&path[..end]);
            match self.create(znode, Bytes::new(), CreateMode::Persistent).await {
                Ok(_) | Err(OpError::Refused { code: ErrorCode::NodeExists, .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Deletes a znode if it is at this version; -1 for any.
    ///
    /// # Errors
    /// See [`OpError`].
    pub async fn delete(&self, path: impl Into<ByteString>, version: i32) -> Result<Reply<()>, OpError> {
        let request = Request::Delete { path: path.into(), version };
        value!(self.call(request).await?, Response::Done => ())
    }

    /// The Stat of a znode, or `None` where there is none.
    ///
    /// # Errors
    /// See [`OpError`].
    pub async fn exists(&self, path: impl Into<ByteString>) -> Result<Reply<Option<Stat>>, OpError> {
        let request = Request::Exists { path: path.into(), watch: false };
        value!(self.call(request).await?, Response::Exists(stat) => stat)
    }

    /// As [`Keeper::exists`], and waits for the znode's next change: that it is created, deleted or set.
    ///
    /// # Errors
    /// See [`OpError`]. There is no watch then.
    pub async fn exists_watched(
        &self,
        path: impl Into<ByteString>,
    ) -> Result<(Reply<Option<Stat>>, WatchOnce), OpError> {
        let request = Request::Exists { path: path.into(), watch: true };
        let (answer, watch) = self.call_watched(request).await?;
        value!(answer, Response::Exists(stat) => stat).map(|reply| (reply, watch))
    }

    /// Data and Stat of a znode, as the server at the other end has it, which may be behind.
    ///
    /// # Errors
    /// See [`OpError`].
    pub async fn get_data(&self, path: impl Into<ByteString>) -> Result<Reply<Data>, OpError> {
        let request = Request::GetData { path: path.into(), watch: false };
        value!(self.call(request).await?, Response::Data { data, stat } => Data { data, stat })
    }

    /// As [`Keeper::get_data`], and waits for the znode's next change: that it is set or deleted.
    ///
    /// # Errors
    /// See [`OpError`]. There is no watch then.
    pub async fn get_data_watched(
        &self,
        path: impl Into<ByteString>,
    ) -> Result<(Reply<Data>, WatchOnce), OpError> {
        let request = Request::GetData { path: path.into(), watch: true };
        let (answer, watch) = self.call_watched(request).await?;
        value!(answer, Response::Data { data, stat } => Data { data, stat }).map(|reply| (reply, watch))
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
        let request = Request::SetData { path: path.into(), data: data.into(), version };
        value!(self.call(request).await?, Response::Stat(stat) => stat)
    }

    /// The names of a znode's children, in no order, and its Stat.
    ///
    /// # Errors
    /// See [`OpError`].
    pub async fn get_children(&self, path: impl Into<ByteString>) -> Result<Reply<Children>, OpError> {
        let request = Request::GetChildren { path: path.into(), watch: false };
        value!(self.call(request).await?, Response::Children { names, stat } => Children { names, stat })
    }

    /// As [`Keeper::get_children`], and waits until a child comes or goes, or the znode itself goes.
    ///
    /// # Errors
    /// See [`OpError`]. There is no watch then.
    pub async fn get_children_watched(
        &self,
        path: impl Into<ByteString>,
    ) -> Result<(Reply<Children>, WatchOnce), OpError> {
        let request = Request::GetChildren { path: path.into(), watch: true };
        let (answer, watch) = self.call_watched(request).await?;
        value!(answer, Response::Children { names, stat } => Children { names, stat })
            .map(|reply| (reply, watch))
    }

    /// Who may do what with a znode.
    ///
    /// # Errors
    /// See [`OpError`].
    pub async fn get_acl(&self, path: impl Into<ByteString>) -> Result<Reply<AclList>, OpError> {
        let request = Request::GetAcl { path: path.into() };
        value!(self.call(request).await?, Response::Acl { acl, stat } => AclList { acl, stat })
    }

    /// Replaces who may do what with a znode, if that list is at this version; -1 for any.
    ///
    /// # Errors
    /// See [`OpError`].
    pub async fn set_acl(
        &self,
        path: impl Into<ByteString>,
        acl: Vec<Acl>,
        version: i32,
    ) -> Result<Reply<Stat>, OpError> {
        let request = Request::SetAcl { path: path.into(), acl, version };
        value!(self.call(request).await?, Response::Stat(stat) => stat)
    }

    /// Brings the server at the other end up to what its leader has.
    ///
    /// # Errors
    /// See [`OpError`].
    pub async fn sync(&self, path: impl Into<ByteString>) -> Result<Reply<()>, OpError> {
        let request = Request::Sync { path: path.into() };
        value!(self.call(request).await?, Response::Done => ())
    }

    /// A sync and a read behind it as one operation: both go out together on one connection, and without both
    /// answers there is no result. Where `sync` asks a quorum this is a linearizable read.
    ///
    /// # Errors
    /// See [`OpError`]. It has no effect, so even an unknown outcome leaves nothing behind.
    pub async fn sync_then_get(&self, path: impl Into<ByteString>) -> Result<Reply<Data>, OpError> {
        let request = Request::GetData { path: path.into(), watch: false };
        value!(self.sync_then(request).await?, Response::Data { data, stat } => Data { data, stat })
    }

    /// As [`Keeper::sync_then_get`], of the children of a znode.
    ///
    /// # Errors
    /// See [`OpError`].
    pub async fn sync_then_children(&self, path: impl Into<ByteString>) -> Result<Reply<Children>, OpError> {
        let request = Request::GetChildren { path: path.into(), watch: false };
        value!(self.sync_then(request).await?, Response::Children { names, stat } => Children { names, stat })
    }

    /// As [`Keeper::sync_then_get`], of whether a znode is there.
    ///
    /// # Errors
    /// See [`OpError`].
    pub async fn sync_then_exists(
        &self,
        path: impl Into<ByteString>,
    ) -> Result<Reply<Option<Stat>>, OpError> {
        let request = Request::Exists { path: path.into(), watch: false };
        value!(self.sync_then(request).await?, Response::Exists(stat) => stat)
    }

    async fn sync_then(&self, request: Request) -> Result<Answer, OpError> {
        let sync = Request::Sync { path: ByteString::from_static("/") };
        let (sync, read) = (self.outward(sync)?, self.outward(request)?);
        let submit = |line: &Arc<Pipeline>| {
            let ((deliver_sync, synced), (deliver_read, got)) = (awaited(), awaited());
            let pair = ((&sync, deliver_sync), (&read, deliver_read));
            self.shared().submit_pair(line, pair.0, pair.1).map(|()| (synced, got))
        };
        let (synced, got) = self.served(submit).await?;
        answer(Ok(synced)).await.map_err(|failed| failed.error)?;
        answer(Ok(got)).await.map_err(|failed| failed.error)
    }

    /// Several changes, all or none. [`node_session::request`] has functions that make them.
    ///
    /// # Errors
    /// See [`OpError`]; and which operation was refused.
    pub async fn multi(&self, ops: Vec<MultiOp>) -> Result<Reply<Vec<MultiResult>>, MultiError> {
        value!(self.ask(Request::Multi(ops)).await?, Response::Multi(results) => results)
    }

    /// Several reads of one state. Each may have failed alone.
    ///
    /// # Errors
    /// See [`OpError`].
    pub async fn multi_read(&self, ops: Vec<MultiOp>) -> Result<Reply<Vec<MultiResult>>, OpError> {
        value!(self.call(Request::MultiRead(ops)).await?, Response::Multi(results) => results)
    }

    /// Changes the ensemble: server lines that join or change, numbers of those that leave, each list with
    /// commas, at a version of the membership or at any (-1). Gives the new membership and its Stat.
    ///
    /// # Errors
    /// See [`OpError`].
    pub async fn reconfig(&self, joining: &str, leaving: &str, version: i64) -> Result<Reply<Data>, OpError> {
        let said = |list: &str| (!list.is_empty()).then(|| ByteString::from(list));
        let (joining, leaving) = (said(joining), said(leaving));
        let request = ReconfigRequest { joining, leaving, members: None, config_version: version };
        let answer = self.call(Request::Reconfig(request)).await?;
        value!(answer, Response::Data { data, stat } => Data { data, stat })
    }

    /// The membership of the ensemble, wherever the root of this client is.
    ///
    /// # Errors
    /// See [`OpError`].
    pub async fn config(&self) -> Result<Reply<Data>, OpError> {
        let request = Request::GetData { path: CONFIG.into(), watch: false };
        let answer = self.ask_as_is(request).await.map_err(|failed| failed.error)?;
        value!(answer, Response::Data { data, stat } => Data { data, stat })
    }

    /// The paths of the session's ephemeral znodes that begin with a prefix.
    ///
    /// # Errors
    /// See [`OpError`].
    pub async fn ephemerals(&self, prefix: impl Into<ByteString>) -> Result<Reply<Vec<ByteString>>, OpError> {
        let request = Request::Ephemerals { path: prefix.into() };
        value!(self.call(request).await?, Response::Paths(paths) => paths)
    }

    /// How many znodes are below one.
    ///
    /// # Errors
    /// See [`OpError`].
    pub async fn count_descendants(&self, path: impl Into<ByteString>) -> Result<Reply<i32>, OpError> {
        let request = Request::CountDescendants { path: path.into() };
        value!(self.call(request).await?, Response::Count(count) => count)
    }

    /// As whom the server takes this client.
    ///
    /// # Errors
    /// See [`OpError`].
    pub async fn who_am_i(&self) -> Result<Reply<Vec<ClientInfo>>, OpError> {
        value!(self.call(Request::WhoAmI).await?, Response::Identities(known) => known.clients)
    }

    /// Watches a znode, or a znode and all below, until what this gives is dropped.
    ///
    /// # Errors
    /// See [`OpError`]. There is no watch then, as far as this client is concerned.
    pub async fn watch(
        &self,
        path: impl Into<ByteString>,
        mode: AddWatchMode,
    ) -> Result<WatchStream, OpError> {
        let request = self.outward(Request::AddWatch { path: path.into(), mode })?;
        let Some((_, path)) = request.watch() else { unreachable!("it is a watch") };
        let submit = |line: &Arc<Pipeline>| {
            let (to, receiver) = mpsc::unbounded_channel();
            let owner = self.shared().core().add(Hearer::Stream { to, gap: false });
            let stream =
                WatchStream { receiver, owner, path: path.clone(), shared: Arc::clone(self.shared()) };
            let (deliver, awaited) = awaited();
            self.shared().submit(line, &request, Some(owner), deliver).map(|()| (awaited, stream))
        };
        let (awaited, stream) = self.served(submit).await?;
        answer(Ok(awaited)).await.map_err(|failed| failed.error)?;
        Ok(stream)
    }

    /// Sends a request that leaves a one-time watch.
    async fn call_watched(&self, request: Request) -> Result<(Answer, WatchOnce), OpError> {
        let request = self.outward(request)?;
        let submit = |line: &Arc<Pipeline>| {
            let (to, receiver) = oneshot::channel();
            let owner = self.shared().core().add(Hearer::Once(to));
            let watch = WatchOnce { receiver, owner, shared: Arc::clone(self.shared()) };
            let (deliver, awaited) = awaited();
            self.shared().submit(line, &request, Some(owner), deliver).map(|()| (awaited, watch))
        };
        let (awaited, watch) = self.served(submit).await?;
        let answer = answer(Ok(awaited)).await.map_err(|failed| failed.error)?;
        Ok((answer, watch))
    }

    fn outward(&self, request: Request) -> Result<Arc<Request>, NotSent> {
        self.shared().chroot.request(request).map(Arc::new)
    }
}
