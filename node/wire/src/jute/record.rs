//! What jute can carry, and records whose declaration is their format.

use bytes::Bytes;
use bytestring::ByteString;

use super::{DecodeError, Reader, Writer};
use crate::ids::{SessionId, Zxid};

/// A value with a jute form.
pub trait Jute: Sized {
    /// The fewest bytes that a value takes. It bounds the counts of vectors by the bytes that are left.
    const MIN_LEN: usize;

    /// Appends the value.
    fn encode(&self, w: &mut Writer<'_>);

    /// Reads a value.
    ///
    /// # Errors
    /// When the bytes are not one, or not a whole one.
    fn decode(r: &mut Reader) -> Result<Self, DecodeError>;
}

impl Reader {
    /// Reads any value that jute knows.
    ///
    /// # Errors
    /// What the value's own decoding finds.
    pub fn read<T: Jute>(&mut self) -> Result<T, DecodeError> {
        T::decode(self)
    }
}

impl Writer<'_> {
    /// Writes any value that jute knows.
    pub fn write<T: Jute>(&mut self, value: &T) {
        value.encode(self);
    }
}

/// Declares a struct and, from the order of its fields, its jute form.
///
/// The methods are inherent, so that users need no trait in scope.
macro_rules! record {
    (
        $(#[$meta:meta])*
        pub struct $name:ident { $($(#[$field_meta:meta])* pub $field:ident: $type:ty,)* }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub struct $name {
            $($(#[$field_meta])* pub $field: $type,)*
        }

        impl $name {
            /// Appends the record.
            pub fn encode(&self, w: &mut $crate::jute::Writer<'_>) {
                $(w.write(&self.$field);)*
            }

            /// Reads the record and leaves what comes behind it.
            ///
            /// # Errors
            /// When the bytes are not such a record, or not a whole one.
            pub fn decode(r: &mut $crate::jute::Reader) -> Result<Self, $crate::jute::DecodeError> {
                Ok(Self { $($field: r.read()?,)* })
            }
        }

        impl $crate::jute::Jute for $name {
            const MIN_LEN: usize = 0 $(+ <$type as $crate::jute::Jute>::MIN_LEN)*;

            fn encode(&self, w: &mut $crate::jute::Writer<'_>) {
                Self::encode(self, w);
            }

            fn decode(r: &mut $crate::jute::Reader) -> Result<Self, $crate::jute::DecodeError> {
                Self::decode(r)
            }
        }
    };
}
pub(crate) use record;

/// Types that are one read and one write.
macro_rules! primitive {
    ($($type:ty, $min_len:literal, |$value:ident, $w:ident| $write:expr, |$r:ident| $read:expr;)*) => {$(
        impl Jute for $type {
            const MIN_LEN: usize = $min_len;

            fn encode(&self, $w: &mut Writer<'_>) {
                let $value = self;
                $write;
            }

            fn decode($r: &mut Reader) -> Result<Self, DecodeError> {
                $read
            }
        }
    )*};
}

primitive! {
    bool, 1, |value, w| w.bool(*value), |r| r.bool();
    i32, 4, |value, w| w.int(*value), |r| r.int();
    i64, 8, |value, w| w.long(*value), |r| r.long();
    Zxid, 8, |value, w| w.long(value.to_wire()), |r| r.long().map(Zxid::from_wire);
    SessionId, 8, |value, w| w.long(value.0), |r| r.long().map(SessionId);
    ByteString, 4, |value, w| w.string(value), |r| r.string();
}

impl Jute for Option<Bytes> {
    const MIN_LEN: usize = 4;

    fn encode(&self, w: &mut Writer<'_>) {
        match self {
            Some(bytes) => w.buffer(bytes),
            None => w.null(),
        }
    }

    fn decode(r: &mut Reader) -> Result<Self, DecodeError> {
        r.buffer()
    }
}

impl Jute for Option<ByteString> {
    const MIN_LEN: usize = 4;

    fn encode(&self, w: &mut Writer<'_>) {
        match self {
            Some(string) => w.string(string),
            None => w.null(),
        }
    }

    fn decode(r: &mut Reader) -> Result<Self, DecodeError> {
        r.optional_string()
    }
}

/// A null vector reads as an empty one: no format gives the two different meanings.
impl<T: Jute> Jute for Vec<T> {
    const MIN_LEN: usize = 4;

    fn encode(&self, w: &mut Writer<'_>) {
        w.count(self.len());
        for element in self {
            element.encode(w);
        }
    }

    fn decode(r: &mut Reader) -> Result<Self, DecodeError> {
        let count = r.count(T::MIN_LEN)?.unwrap_or(0);
        let mut elements = Vec::with_capacity(count);
        for _ in 0..count {
            elements.push(T::decode(r)?);
        }
        Ok(elements)
    }
}
