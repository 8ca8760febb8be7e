//! Several operations in one request, and their results in one reply.
//!
//! Each operation is a [`MultiHeader`] and a body, and a header that says "done" ends the list. The results
//! have the same form. When a multi fails, every operation in it gets an error: 0 for those before the one
//! that failed, the reason for that one, and -2 for those behind it.

use bytes::Bytes;
use bytestring::ByteString;

use super::codes::OpCode;
use super::request::{
    CheckVersionRequest, CreateRequest, CreateTtlRequest, DeleteRequest, PathWatch, SetDataRequest,
};
use super::response::Stat;
use crate::jute::limits::MAX_VECTOR;
use crate::jute::{DecodeError, Reader, Writer, record};

record! {
    /// Before each operation and each result.
    #[derive(Copy)]
    pub struct MultiHeader {
        /// The operation's code; -1 for an error, and at the end.
        pub kind: i32,
        /// Whether this is the end.
        pub done: bool,
        /// An error's code; -1 in a request and at the end.
        pub err: i32,
    }
}

impl MultiHeader {
    /// What ends a list.
    pub const END: MultiHeader = MultiHeader { kind: -1, done: true, err: -1 };
}

/// One operation of a multi, or of a multiRead.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum MultiOp {
    /// create.
    Create(CreateRequest),
    /// create2.
    Create2(CreateRequest),
    /// createContainer.
    CreateContainer(CreateRequest),
    /// createTTL.
    CreateTtl(CreateTtlRequest),
    /// delete.
    Delete(DeleteRequest),
    /// setData.
    SetData(SetDataRequest),
    /// check.
    Check(CheckVersionRequest),
    /// getData; only in a multiRead.
    GetData(PathWatch),
    /// getChildren; only in a multiRead.
    GetChildren(PathWatch),
}

impl MultiOp {
    /// Which operation it is.
    #[must_use]
    pub fn op(&self) -> OpCode {
        match self {
            MultiOp::Create(_) => OpCode::Create,
            MultiOp::Create2(_) => OpCode::Create2,
            MultiOp::CreateContainer(_) => OpCode::CreateContainer,
            MultiOp::CreateTtl(_) => OpCode::CreateTtl,
            MultiOp::Delete(_) => OpCode::Delete,
            MultiOp::SetData(_) => OpCode::SetData,
            MultiOp::Check(_) => OpCode::Check,
            MultiOp::GetData(_) => OpCode::GetData,
            MultiOp::GetChildren(_) => OpCode::GetChildren,
        }
    }

    fn encode(&self, w: &mut Writer<'_>) {
        w.write(&MultiHeader { kind: self.op().code(), done: false, err: -1 });
        match self {
            MultiOp::Create(body) | MultiOp::Create2(body) | MultiOp::CreateContainer(body) => body.encode(w),
            MultiOp::CreateTtl(body) => body.encode(w),
            MultiOp::Delete(body) => body.encode(w),
            MultiOp::SetData(body) => body.encode(w),
            MultiOp::Check(body) => body.encode(w),
            MultiOp::GetData(body) | MultiOp::GetChildren(body) => body.encode(w),
        }
    }

    fn decode(kind: i32, r: &mut Reader) -> Result<Self, DecodeError> {
        Ok(match OpCode::from_code(kind) {
            Some(OpCode::Create) => MultiOp::Create(r.read()?),
            Some(OpCode::Create2) => MultiOp::Create2(r.read()?),
            Some(OpCode::CreateContainer) => MultiOp::CreateContainer(r.read()?),
            Some(OpCode::CreateTtl) => MultiOp::CreateTtl(r.read()?),
            Some(OpCode::Delete) => MultiOp::Delete(r.read()?),
            Some(OpCode::SetData) => MultiOp::SetData(r.read()?),
            Some(OpCode::Check) => MultiOp::Check(r.read()?),
            Some(OpCode::GetData) => MultiOp::GetData(r.read()?),
            Some(OpCode::GetChildren) => MultiOp::GetChildren(r.read()?),
            _ => return Err(DecodeError::Unknown { what: "operation of a multi", value: i64::from(kind) }),
        })
    }
}

/// The body of multi and of multiRead.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct MultiRequest {
    /// In the order they take effect.
    pub ops: Vec<MultiOp>,
}

impl MultiRequest {
    /// Appends the body.
    pub fn encode(&self, w: &mut Writer<'_>) {
        for op in &self.ops {
            op.encode(w);
        }
        w.write(&MultiHeader::END);
    }

    /// Reads the body. Reads and writes are not kept apart here: which belong together is the server's
    /// business.
    ///
    /// # Errors
    /// When the bytes are not such a body, or not a whole one.
    pub fn decode(r: &mut Reader) -> Result<Self, DecodeError> {
        decode_list(r, |header, r| MultiOp::decode(header.kind, r)).map(|ops| Self { ops })
    }
}

/// The result of one operation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum MultiResult {
    /// Of create.
    Create {
        /// With the number, when it was sequential.
        path: ByteString,
    },
    /// Of create2, createContainer and createTTL.
    Create2 {
        /// With the number, when it was sequential.
        path: ByteString,
        /// Of the new node.
        stat: Stat,
    },
    /// Of delete.
    Delete,
    /// Of setData.
    SetData {
        /// Of the node, as it became.
        stat: Stat,
    },
    /// Of check.
    Check,
    /// Of getData.
    GetData {
        /// The node's data.
        data: Option<Bytes>,
        /// Of the node.
        stat: Stat,
    },
    /// Of getChildren.
    GetChildren {
        /// Names, not paths.
        children: Vec<ByteString>,
    },
    /// The operation failed, or another one of the same multi did.
    Error {
        /// One of [`super::ErrorCode`].
        err: i32,
    },
}

impl MultiResult {
    fn op(&self) -> OpCode {
        match self {
            MultiResult::Create { .. } => OpCode::Create,
            MultiResult::Create2 { .. } => OpCode::Create2,
            MultiResult::Delete => OpCode::Delete,
            MultiResult::SetData { .. } => OpCode::SetData,
            MultiResult::Check => OpCode::Check,
            MultiResult::GetData { .. } => OpCode::GetData,
            MultiResult::GetChildren { .. } => OpCode::GetChildren,
            MultiResult::Error { .. } => OpCode::Error,
        }
    }

    fn encode(&self, w: &mut Writer<'_>) {
        let err = if let MultiResult::Error { err } = self { *err } else { 0 };
        w.write(&MultiHeader { kind: self.op().code(), done: false, err });
        match self {
            MultiResult::Create { path } => w.write(path),
            MultiResult::Create2 { path, stat } => {
                w.write(path);
                w.write(stat);
            }
            MultiResult::Delete | MultiResult::Check => {}
            MultiResult::SetData { stat } => w.write(stat),
            MultiResult::GetData { data, stat } => {
                w.write(data);
                w.write(stat);
            }
            MultiResult::GetChildren { children } => w.write(children),
            MultiResult::Error { err } => w.int(*err),
        }
    }

    fn decode(kind: i32, r: &mut Reader) -> Result<Self, DecodeError> {
        Ok(match OpCode::from_code(kind) {
            Some(OpCode::Create) => MultiResult::Create { path: r.read()? },
            Some(OpCode::Create2) => MultiResult::Create2 { path: r.read()?, stat: r.read()? },
            Some(OpCode::Delete) => MultiResult::Delete,
            Some(OpCode::SetData) => MultiResult::SetData { stat: r.read()? },
            Some(OpCode::Check) => MultiResult::Check,
            Some(OpCode::GetData) => MultiResult::GetData { data: r.read()?, stat: r.read()? },
            Some(OpCode::GetChildren) => MultiResult::GetChildren { children: r.read()? },
            Some(OpCode::Error) => MultiResult::Error { err: r.int()? },
            _ => return Err(DecodeError::Unknown { what: "result of a multi", value: i64::from(kind) }),
        })
    }
}

/// The body of the reply to multi and to multiRead.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct MultiResponse {
    /// One for each operation, in the same order.
    pub results: Vec<MultiResult>,
}

impl MultiResponse {
    /// Appends the body.
    pub fn encode(&self, w: &mut Writer<'_>) {
        for result in &self.results {
            result.encode(w);
        }
        w.write(&MultiHeader::END);
    }

    /// Reads the body.
    ///
    /// # Errors
    /// When the bytes are not such a body, or not a whole one.
    pub fn decode(r: &mut Reader) -> Result<Self, DecodeError> {
        decode_list(r, |header, r| MultiResult::decode(header.kind, r)).map(|results| Self { results })
    }
}

fn decode_list<T>(
    r: &mut Reader,
    mut decode: impl FnMut(MultiHeader, &mut Reader) -> Result<T, DecodeError>,
) -> Result<Vec<T>, DecodeError> {
    let mut list = Vec::new();
    loop {
        let header = MultiHeader::decode(r)?;
        if header.done {
            return Ok(list);
        }
        if list.len() == MAX_VECTOR {
            return Err(DecodeError::TooLong { len: list.len() + 1, limit: MAX_VECTOR });
        }
        list.push(decode(header, r)?);
    }
}
