//! How a committed transaction changes the tree.

use bytes::Bytes;
use bytestring::ByteString;
use node_wire::client::{ErrorCode, OpCode, Stat};
use node_wire::ephemeral::EphemeralType;
use node_wire::ids::SessionId;
use node_wire::jute::Reader;
use node_wire::txn::{Entry, Txn, TxnHeader};

use super::change::NewNode;
use super::{Seen, Tree};

/// What a transaction did, as far as a client is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Applied {
    /// A znode was made.
    Created {
        /// Its path, with the number that a sequential one got.
        path: ByteString,
        /// Its Stat.
        stat: Stat,
    },
    /// A znode was removed.
    Deleted,
    /// A znode's data was replaced.
    DataSet {
        /// Its new Stat.
        stat: Stat,
    },
    /// The ensemble is another now.
    Reconfigured {
        /// The text of `/zookeeper/config`.
        text: Bytes,
        /// Its new Stat.
        stat: Stat,
    },
    /// A znode's access control list was replaced.
    AclSet {
        /// Its new Stat.
        stat: Stat,
    },
    /// A znode was at the version that was asked for.
    Checked {
        /// Its Stat.
        stat: Stat,
    },
    /// Several at once, each with the operation that it was.
    Several(Vec<(i32, Applied)>),
    /// A session began.
    SessionCreated {
        /// Its time-out in milliseconds.
        timeout_ms: i32,
    },
    /// A session ended, and its ephemeral znodes with it.
    SessionClosed,
    /// The request was refused, in its place in the order.
    Refused(ErrorCode),
}

impl Tree {
    /// Applies the next committed transaction.
    pub fn apply(&mut self, entry: &Entry) -> Applied {
        self.apply_seen(entry, &mut Vec::new())
    }

    /// As [`Tree::apply`], and notes what watches may see.
    pub fn apply_seen(&mut self, entry: &Entry, seen: &mut Vec<Seen>) -> Applied {
        debug_assert!(entry.zxid() > self.zxid, "transactions are applied in order, each once");
        self.zxid = entry.zxid();
        match &entry.txn {
            Txn::Multi { txns } => self.apply_several(&entry.header, txns, seen),
            txn => self.apply_one(&entry.header, txn, seen),
        }
    }

    fn apply_one(&mut self, header: &TxnHeader, txn: &Txn, seen: &mut Vec<Seen>) -> Applied {
        self.try_one(header, txn, seen).unwrap_or_else(Applied::Refused)
    }

    fn try_one(&mut self, header: &TxnHeader, txn: &Txn, seen: &mut Vec<Seen>) -> Result<Applied, ErrorCode> {
        let mut create = |new: NewNode<'_>| {
            let (path, stat) = self.create(header, &new, seen)?;
            Ok(Applied::Created { path, stat })
        };
        match txn {
            Txn::Create { path, data, acl, ephemeral, parent_cversion } => {
                let owner = if *ephemeral { header.session } else { SessionId::NONE };
                create(NewNode { path, data: data.as_ref(), acl, owner, parent_cversion: *parent_cversion })
            }
            Txn::CreateContainer { path, data, acl, parent_cversion } => {
                let owner = EphemeralType::Container.owner().unwrap_or(SessionId::NONE);
                create(NewNode { path, data: data.as_ref(), acl, owner, parent_cversion: *parent_cversion })
            }
            Txn::CreateTtl { path, data, acl, parent_cversion, ttl_ms } => {
                let owner = EphemeralType::Ttl { ttl_ms: *ttl_ms }.owner().ok_or(ErrorCode::BadArguments)?;
                create(NewNode { path, data: data.as_ref(), acl, owner, parent_cversion: *parent_cversion })
            }
            Txn::Delete { path } => self.delete(header, path, seen).map(|()| Applied::Deleted),
            Txn::SetData { path, data, version } => {
                let stat = self.set_data(header, path, data.as_ref(), *version, seen)?;
                match data {
                    Some(text) if header.kind == OpCode::Reconfig.code() => {
                        Ok(Applied::Reconfigured { text: text.clone(), stat })
                    }
                    Some(_) | None => Ok(Applied::DataSet { stat }),
                }
            }
            Txn::SetAcl { path, acl, version } => {
                self.set_acl(path, acl, *version).map(|stat| Applied::AclSet { stat })
            }
            // Judged when it was proposed; nothing can have come in between.
            Txn::Check { path, .. } => self.exists(path).map(|stat| Applied::Checked { stat }),
            Txn::CreateSession { timeout_ms } => {
                self.sessions.insert(header.session, *timeout_ms);
                Ok(Applied::SessionCreated { timeout_ms: *timeout_ms })
            }
            Txn::CloseSession { .. } => {
                self.close_session(header, seen);
                Ok(Applied::SessionClosed)
            }
            Txn::Error { code } => Err(ErrorCode::from_code(*code).unwrap_or(ErrorCode::SystemError)),
            // One in another is nothing that any leader makes.
            Txn::Multi { .. } => Err(ErrorCode::MarshallingError),
        }
    }

    /// All of them or none. Of those that were refused together the leader wrote down the one that was the
    /// reason and those behind it; those before it stand there as they would have been, and are not done.
    fn apply_several(&mut self, header: &TxnHeader, txns: &[(i32, Bytes)], seen: &mut Vec<Seen>) -> Applied {
        let error = OpCode::Error.code();
        let refused = txns.iter().position(|(kind, _)| *kind == error);
        let results = txns.iter().enumerate().map(|(index, (kind, body))| {
            let txn = Txn::decode(*kind, &mut Reader::new(body.clone()));
            match (refused, txn) {
                (Some(refused), _) if index < refused => (error, Applied::Refused(ErrorCode::Ok)),
                (Some(_), Ok(Txn::Error { code })) => {
                    let code = ErrorCode::from_code(code).unwrap_or(ErrorCode::SystemError);
                    (error, Applied::Refused(code))
                }
                (Some(_), _) => (error, Applied::Refused(ErrorCode::RuntimeInconsistency)),
                (None, Ok(txn)) => {
                    let header = TxnHeader { kind: *kind, ..*header };
                    (*kind, self.apply_one(&header, &txn, seen))
                }
                (None, Err(_)) => (error, Applied::Refused(ErrorCode::MarshallingError)),
            }
        });
        Applied::Several(results.collect())
    }
}
