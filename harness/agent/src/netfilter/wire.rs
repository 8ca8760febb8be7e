//! Netlink's form: messages of attributes, written and read.
//!
//! A message is a header of 16 bytes in the machine's byte order, `nfnetlink`'s own header of 4 bytes, and
//! attributes; an attribute is its length and kind (the machine's order), its value (the network's), and
//! padding to 4 bytes. Reading takes any bytes: what is cut off, overlong or overlapping is [`Malformed`],
//! never a panic.

/// Length of a message's header.
pub(crate) const HEADER: usize = 16;
/// Length of the `nfnetlink` header behind it.
pub(crate) const FAMILY_HEADER: usize = 4;
/// Marks an attribute whose value is attributes.
const NESTED: u16 = 0x8000;
/// The bits of an attribute's kind that are not flags.
const KIND: u16 = 0x3fff;

/// Netlink's own message kinds.
pub(crate) mod kind {
    pub(crate) const ERROR: u16 = 2;
    pub(crate) const DONE: u16 = 3;
    pub(crate) const OVERRUN: u16 = 4;
}

/// Flags of messages.
pub(crate) mod flag {
    pub(crate) const REQUEST: u16 = 0x1;
    pub(crate) const ACK: u16 = 0x4;
    pub(crate) const DUMP_INTERRUPTED: u16 = 0x10;
    pub(crate) const DUMP: u16 = 0x300;
    pub(crate) const CREATE: u16 = 0x400;
    pub(crate) const EXCLUSIVE: u16 = 0x200;
    pub(crate) const APPEND: u16 = 0x800;
}

/// Bytes that are no netlink.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a malformed netlink message")]
pub struct Malformed;

/// Messages one behind the other, as one `send` takes them.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Where the next message begins.
    pub(crate) fn position(&self) -> usize {
        self.bytes.len()
    }

    /// Adds flags to a message that was written at `position`.
    pub(crate) fn add_flags(&mut self, position: usize, flags: u16) {
        if let Some([low, high]) = self.bytes.get_mut(position + 6..position + 8) {
            [*low, *high] = (u16::from_ne_bytes([*low, *high]) | flags).to_ne_bytes();
        }
    }

    /// Numbers a message that was written at `position`.
    pub(crate) fn set_sequence(&mut self, position: usize, sequence: u32) {
        if let Some(field) = self.bytes.get_mut(position + 8..position + 12) {
            field.copy_from_slice(&sequence.to_ne_bytes());
        }
    }

    /// One message; `family` and `resource` are `nfnetlink`'s.
    pub(crate) fn message(
        &mut self,
        kind: u16,
        flags: u16,
        sequence: u32,
        (family, resource): (u8, u16),
        body: impl FnOnce(&mut Self),
    ) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 4]);
        self.bytes.extend_from_slice(&kind.to_ne_bytes());
        self.bytes.extend_from_slice(&flags.to_ne_bytes());
        self.bytes.extend_from_slice(&sequence.to_ne_bytes());
        // Port 0: whoever sends it.
        self.bytes.extend_from_slice(&[0; 4]);
        self.bytes.extend_from_slice(&[family, 0]);
        self.bytes.extend_from_slice(&resource.to_be_bytes());
        body(self);
        let length = u32::try_from(self.bytes.len() - start).unwrap_or(u32::MAX);
        if let Some(field) = self.bytes.get_mut(start..start + 4) {
            field.copy_from_slice(&length.to_ne_bytes());
        }
    }

    /// An attribute made of attributes.
    pub(crate) fn nest(&mut self, kind: u16, body: impl FnOnce(&mut Self)) {
        self.attribute(kind | NESTED, body);
    }

    /// An attribute of plain bytes.
    pub(crate) fn value(&mut self, kind: u16, value: &[u8]) {
        self.attribute(kind, |writer| writer.bytes.extend_from_slice(value));
    }

    /// A number of four bytes.
    pub(crate) fn number(&mut self, kind: u16, value: u32) {
        self.value(kind, &value.to_be_bytes());
    }

    /// Text, which ends with a zero.
    pub(crate) fn text(&mut self, kind: u16, text: &str) {
        self.attribute(kind, |writer| {
            writer.bytes.extend_from_slice(text.as_bytes());
            writer.bytes.push(0);
        });
    }

    fn attribute(&mut self, kind: u16, body: impl FnOnce(&mut Self)) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 2]);
        self.bytes.extend_from_slice(&kind.to_ne_bytes());
        body(self);
        let length = self.bytes.len() - start;
        debug_assert!(length <= usize::from(u16::MAX), "an attribute of {length} bytes");
        let length = u16::try_from(length).unwrap_or(u16::MAX);
        if let Some(field) = self.bytes.get_mut(start..start + 2) {
            field.copy_from_slice(&length.to_ne_bytes());
        }
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

/// A message that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Message<'a> {
    pub(crate) kind: u16,
    pub(crate) flags: u16,
    pub(crate) sequence: u32,
    /// All that is behind the header.
    pub(crate) body: &'a [u8],
}

/// The messages of one datagram. The first that is malformed is the last: where the next one begins is not
/// known.
#[derive(Clone, Debug)]
pub(crate) struct Messages<'a>(pub(crate) &'a [u8]);

impl<'a> Iterator for Messages<'a> {
    type Item = Result<Message<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let message = read_message(self.0);
        self.0 = match message {
            Ok((_, rest)) => rest,
            // Nothing behind a message of unknown length can be found.
            Err(Malformed) => &[],
        };
        Some(message.map(|(message, _)| message))
    }
}

fn read_message(bytes: &[u8]) -> Result<(Message<'_>, &[u8]), Malformed> {
    let length = usize::try_from(read_number(bytes, 0)?).map_err(|_| Malformed)?;
    let whole = bytes.get(..length).ok_or(Malformed)?;
    let body = whole.get(HEADER..).ok_or(Malformed)?;
    let message = Message {
        kind: read_short(whole, 4)?,
        flags: read_short(whole, 6)?,
        sequence: read_number(whole, 8)?,
        body,
    };
    Ok((message, bytes.get(length.next_multiple_of(4)..).unwrap_or_default()))
}

impl<'a> Message<'a> {
    /// The kernel's word on a request: nothing when it did it, else the error's (positive) number.
    pub(crate) fn error(&self) -> Result<Option<i32>, Malformed> {
        let code = i32::from_ne_bytes(read_number(self.body, 0)?.to_ne_bytes());
        match code {
            0 => Ok(None),
            code if code < 0 => Ok(Some(code.saturating_neg())),
            _ => Err(Malformed),
        }
    }

    /// The attributes behind `nfnetlink`'s header.
    pub(crate) fn attributes(&self) -> Result<Attributes<'a>, Malformed> {
        self.body.get(FAMILY_HEADER..).map(Attributes).ok_or(Malformed)
    }
}

/// Attributes one behind the other: kind without flags, and value.
#[derive(Clone, Debug)]
pub(crate) struct Attributes<'a>(pub(crate) &'a [u8]);

impl<'a> Iterator for Attributes<'a> {
    type Item = Result<(u16, &'a [u8]), Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let attribute = read_attribute(self.0);
        self.0 = match attribute {
            Ok((_, rest)) => rest,
            Err(Malformed) => &[],
        };
        Some(attribute.map(|(attribute, _)| attribute))
    }
}

type Attribute<'a> = (u16, &'a [u8]);

fn read_attribute(bytes: &[u8]) -> Result<(Attribute<'_>, &[u8]), Malformed> {
    let length = usize::from(read_short(bytes, 0)?);
    let value = bytes.get(4..length).ok_or(Malformed)?;
    let rest = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    Ok(((read_short(bytes, 2)? & KIND, value), rest))
}

fn read_short(bytes: &[u8], at: usize) -> Result<u16, Malformed> {
    let field = bytes.get(at..).and_then(|rest| rest.first_chunk());
    field.map(|field| u16::from_ne_bytes(*field)).ok_or(Malformed)
}

fn read_number(bytes: &[u8], at: usize) -> Result<u32, Malformed> {
    let field = bytes.get(at..).and_then(|rest| rest.first_chunk());
    field.map(|field| u32::from_ne_bytes(*field)).ok_or(Malformed)
}

/// Text up to its ending zero.
pub(crate) fn text(value: &[u8]) -> Result<&str, Malformed> {
    let end = value.iter().position(|byte| *byte == 0).unwrap_or(value.len());
    std::str::from_utf8(&value[..end]).map_err(|_| Malformed)
}

/// A number of four bytes in the network's order.
pub(crate) fn number(value: &[u8]) -> Result<u32, Malformed> {
    value.try_into().map(u32::from_be_bytes).map_err(|_| Malformed)
}

/// A number of eight bytes in the network's order.
pub(crate) fn long(value: &[u8]) -> Result<u64, Malformed> {
    value.try_into().map(u64::from_be_bytes).map_err(|_| Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<u8> {
        let mut writer = Writer::default();
        writer.message(0x0a12, flag::REQUEST, 7, (1, 0), |body| {
            body.text(1, "table");
            body.nest(4, |inner| inner.number(2, 9));
        });
        writer.bytes().to_vec()
    }

    fn walk(bytes: &[u8]) -> usize {
        let mut seen = 0;
        for message in Messages(bytes) {
            let Ok(message) = message else { continue };
            let _ = message.error();
            let Ok(attributes) = message.attributes() else { continue };
            for (_, value) in attributes.flatten() {
                let _ = (text(value), number(value), long(value));
                seen += 1 + Attributes(value).flatten().count();
            }
        }
        seen
    }

    #[test]
    fn what_is_written_is_read_again() {
        let bytes = sample();
        let message = Messages(&bytes).next().expect("a message").expect("a sound one");
        assert_eq!((message.kind, message.flags, message.sequence), (0x0a12, flag::REQUEST, 7));
        let attributes: Vec<_> =
            message.attributes().expect("some").map(|read| read.expect("sound")).collect();
        assert_eq!(text(attributes[0].1), Ok("table"));
        assert_eq!(attributes[1].0, 4, "without the flag of nesting");
        let inner: Vec<_> = Attributes(attributes[1].1).flatten().collect();
        assert_eq!(inner.iter().map(|(kind, value)| (*kind, number(value))).next(), Some((2, Ok(9))));
    }

    #[test]
    fn cut_off_bytes_are_malformed_and_no_panic() {
        let bytes = sample();
        for length in 1..bytes.len() {
            assert_eq!(Messages(&bytes[..length]).next(), Some(Err(Malformed)), "of {length} bytes");
        }
    }

    #[test]
    fn any_byte_may_be_anything() {
        let bytes = sample();
        for at in 0..bytes.len() {
            for value in [0, 1, 3, 4, 15, 16, 0x7f, 0x80, 0xff] {
                let mut broken = bytes.clone();
                broken[at] = value;
                assert!(walk(&broken) < 100);
            }
        }
    }

    #[test]
    fn a_length_of_zero_is_no_endless_loop() {
        assert_eq!(walk(&[0; 64]), 0);
        assert_eq!(Attributes(&[0; 64]).count(), 1);
        assert_eq!(Attributes(&[3, 0, 1, 0]).count(), 1);
    }

    #[test]
    fn a_refusal_is_its_positive_number() {
        let body = |code: i32| code.to_ne_bytes();
        let error = |bytes: &[u8]| Message { kind: 2, flags: 0, sequence: 0, body: bytes }.error();
        assert_eq!(error(&body(0)), Ok(None));
        assert_eq!(error(&body(-1)), Ok(Some(1)));
        assert_eq!(error(&body(1)), Err(Malformed));
        assert_eq!(error(&body(i32::MIN)), Ok(Some(i32::MAX)));
        assert_eq!(error(&[0; 3]), Err(Malformed));
    }
}
