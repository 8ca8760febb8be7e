//! A znode that the client takes for the root: put before every path on its way out, and taken off on its
//! way in.

use bytestring::ByteString;
use node_session::{Request, Response};
use node_wire::client::{
    CREATE_EPHEMERAL_SEQUENTIAL, CREATE_PERSISTENT_SEQUENTIAL, CREATE_TTL_SEQUENTIAL, MultiOp, MultiResult,
};

use crate::error::NotSent;

/// The path of the root, without a slash at the end; empty where it is the true one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chroot(pub(crate) ByteString);

impl Chroot {
    /// A path as the server knows it.
    ///
    /// # Errors
    /// When it does not begin with a slash: what is put before it would become part of a name.
    fn out(&self, path: &mut ByteString) -> Result<(), NotSent> {
        if !path.starts_with('/') {
            return Err(NotSent::Path(path.to_string()));
        }
        if !self.0.is_empty() {
            *path = match &path[..] {
                "/" => self.0.clone(),
                below => format!("{}{below}", self.0).into(),
            };
        }
        Ok(())
    }

    /// A path as the client knows it; none where it is not below the root.
    pub(crate) fn within(&self, path: &ByteString) -> Option<ByteString> {
        let below = path.strip_prefix(&self.0[..])?;
        match below {
            _ if self.0.is_empty() => Some(path.clone()),
            "" => Some(ByteString::from_static("/")),
            below => below.starts_with('/').then(|| path.slice_ref(below)),
        }
    }

    /// As [`Chroot::out`], of a znode to be made. A number alone below the root is a name of its own, and no
    /// end of the chroot's.
    fn out_new(&self, path: &mut ByteString, flags: i32) -> Result<(), NotSent> {
        let is_sequential =
            [CREATE_PERSISTENT_SEQUENTIAL, CREATE_EPHEMERAL_SEQUENTIAL, CREATE_TTL_SEQUENTIAL]
                .contains(&flags);
        if is_sequential && path == "/" {
            *path = format!("{}/", self.0).into();
            return Ok(());
        }
        self.out(path)
    }

    /// A request as the server understands it.
    ///
    /// # Errors
    /// When a path of it does not begin with a slash.
    pub(crate) fn request(&self, mut request: Request) -> Result<Request, NotSent> {
        match &mut request {
            Request::Create { path, mode, .. } => self.out_new(path, mode.flags())?,
            Request::Delete { path, .. }
            | Request::Exists { path, .. }
            | Request::GetData { path, .. }
            | Request::GetChildren { path, .. }
            | Request::SetData { path, .. }
            | Request::GetAcl { path }
            | Request::SetAcl { path, .. }
            | Request::Sync { path }
            | Request::AddWatch { path, .. }
            | Request::RemoveWatches { path, .. }
            | Request::Ephemerals { path }
            | Request::CountDescendants { path } => self.out(path)?,
            Request::Multi(ops) | Request::MultiRead(ops) => {
                for op in ops {
                    self.op(op)?;
                }
            }
            Request::Reconfig(_) | Request::WhoAmI | Request::CloseSession => {}
        }
        Ok(request)
    }

    fn op(&self, op: &mut MultiOp) -> Result<(), NotSent> {
        match op {
            MultiOp::Create(body) | MultiOp::Create2(body) | MultiOp::CreateContainer(body) => {
                self.out_new(&mut body.path, body.flags)
            }
            MultiOp::CreateTtl(body) => self.out_new(&mut body.path, body.flags),
            MultiOp::Delete(body) => self.out(&mut body.path),
            MultiOp::SetData(body) => self.out(&mut body.path),
            MultiOp::Check(body) => self.out(&mut body.path),
            MultiOp::GetData(body) | MultiOp::GetChildren(body) => self.out(&mut body.path),
        }
    }

    /// A response as the client understands it.
    pub(crate) fn response(&self, response: &mut Response) {
        if self.0.is_empty() {
            return;
        }
        let strip = |path: &mut ByteString| {
            if let Some(within) = self.within(path) {
                *path = within;
            }
        };
        match response {
            Response::Created { path, .. } => strip(path),
            // A prefix that is a chroot is one of its neighbours' names as well.
            Response::Paths(paths) => {
                *paths = paths.iter().filter_map(|path| self.within(path)).collect();
            }
            Response::Multi(results) => {
                for result in results {
                    if let MultiResult::Create { path } | MultiResult::Create2 { path, .. } = result {
                        strip(path);
                    }
                }
            }
            Response::Done
            | Response::Exists(_)
            | Response::Data { .. }
            | Response::Children { .. }
            | Response::Stat(_)
            | Response::Acl { .. }
            | Response::Count(_)
            | Response::Identities(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_go_out_with_the_chroot_and_come_in_without() {
        let chroot = Chroot("/app".into());
        for (outside, inside) in [("/app", "/"), ("/app/a/b", "/a/b")] {
            let mut path = ByteString::from(inside);
            chroot.out(&mut path).expect("absolute");
            assert_eq!(path, outside);
            assert_eq!(chroot.within(&path).as_deref(), Some(inside));
        }
        assert_eq!(chroot.within(&"/apple".into()), None);
        assert_eq!(Chroot::default().within(&"/apple".into()).as_deref(), Some("/apple"));
        assert!(chroot.out(&mut "le".into()).is_err());
    }

    #[test]
    fn ephemerals_of_a_neighbour_with_a_longer_name_are_not_shown() {
        let mut response = Response::Paths(vec!["/app/a".into(), "/apple/a".into()]);
        Chroot("/app".into()).response(&mut response);
        assert_eq!(response, Response::Paths(vec!["/a".into()]));
    }
}
