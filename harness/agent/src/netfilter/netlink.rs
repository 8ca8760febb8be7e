//! The conversation with the kernel: a batch and its acknowledgement, a dump and its end.
//!
//! The kernel works on a message while it is being sent, so every answer waits in the socket's buffer when
//! `send` returns; the time limit is for kernels that are not as we know them. Answers are recognised by
//! their sequence number, and only those that the kernel itself sent count: an answer to an earlier request,
//! or a message from another process, is passed over. Everything read is bounded and may be anything.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::netlink::{NETFILTER, SocketAddrNetlink};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recvfrom, send, socket_with,
};

use super::rules::{Batch, FAMILY_INET, Step, message, object};
use super::wire::{Attributes, Malformed, Message, Messages, Writer, flag, kind, long, number, text};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// Longest datagram; the kernel fills at most 32 KiB of a dump into one.
const MAX_DATAGRAM: usize = 64 * 1024;
/// Most datagrams that are looked at for one request.
const MAX_DATAGRAMS: usize = 1024;
/// How often a dump that a change interrupted is begun again.
const MAX_DUMPS: usize = 8;

/// Why the kernel did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum NetlinkError {
    /// The right is missing.
    #[error("change the packet filter: not permitted; give the agent's container the capability NET_ADMIN")]
    NotPermitted,
    /// The kernel was built or started without a part.
    #[error("make {what}: the kernel lacks {module}; load it on the engine's host (`modprobe {module}`)")]
    Lacks {
        /// What was to be made.
        what: &'static str,
        /// The kernel's part that is missing.
        module: &'static str,
        /// Whether the table's owner may be the reason.
        of_owner: bool,
    },
    /// Another agent has the table.
    #[error("change {0}: it belongs to another agent in this network namespace; end that one first")]
    Foreign(&'static str),
    /// The kernel said no for another reason.
    #[error("change {what}: the kernel refused it: {error}")]
    Refused {
        /// What was to be changed.
        what: &'static str,
        /// The kernel's reason.
        error: Errno,
        /// Whether the table's owner may be the reason.
        of_owner: bool,
    },
    /// No netlink socket, or a broken one.
    #[error("speak to the kernel's packet filter: {0}")]
    Socket(#[from] Errno),
    /// No answer.
    #[error(
        "hear from the kernel's packet filter within {} s; what is in force is unknown",
        PATIENCE.as_secs()
    )]
    Silent,
    /// An answer of which a part is missing.
    #[error("read the packet filter: an answer was cut off; what is in force is unknown")]
    Truncated,
    /// An answer that is no netlink.
    #[error("read the packet filter: {0}")]
    Malformed(#[from] Malformed),
    /// The filter kept changing while it was read.
    #[error("read the packet filter: it changed {MAX_DUMPS} times meanwhile")]
    Restless,
}

impl NetlinkError {
    /// Whether a kernel that does not know owned tables would answer like this.
    pub(super) fn concerns_ownership(&self) -> bool {
        matches!(self, Self::Lacks { of_owner: true, .. } | Self::Refused { of_owner: true, .. })
    }

    /// The kernel's number for the step that it refused. `opening` when it refused the batch as a whole.
    fn of(number: i32, step: &Step, opening: bool) -> Self {
        let error = Errno::from_raw_os_error(number);
        let Step { what, module } = *step;
        let of_owner = step.concerns_ownership();
        match error {
            Errno::PERM if opening => Self::NotPermitted,
            Errno::PERM => Self::Foreign(what),
            Errno::OPNOTSUPP | Errno::AFNOSUPPORT | Errno::NOENT | Errno::PROTONOSUPPORT => {
                Self::Lacks { what, module, of_owner }
            }
            error => Self::Refused { what, error, of_owner },
        }
    }
}

/// What a counter says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) packets: u64,
    pub(super) bytes: u64,
}

/// A netlink socket towards netfilter.
#[derive(Debug)]
pub(crate) struct Netlink {
    socket: OwnedFd,
    sequence: u32,
    buffer: Vec<u8>,
}

impl Netlink {
    pub(crate) fn open() -> Result<Self, NetlinkError> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, Some(NETFILTER)).map_err(
            |error| match error {
                Errno::PROTONOSUPPORT | Errno::AFNOSUPPORT => {
                    NetlinkError::Lacks { what: "a netlink socket", module: "nfnetlink", of_owner: false }
                }
                error => NetlinkError::Socket(error),
            },
        )?;
        Ok(Self { socket, sequence: 1, buffer: vec![0; MAX_DATAGRAM] })
    }

    /// Has a batch done, as a whole or not at all.
    pub(crate) fn commit(&mut self, batch: Batch<'_>) -> Result<(), NetlinkError> {
        let first = self.sequence;
        let (writer, steps) = batch.finish(first);
        // The opening and the changes are steps; the end has a number as well.
        self.sequence = first.wrapping_add(u32::try_from(steps.len()).unwrap_or(u32::MAX)).wrapping_add(1);
        self.send(&writer)?;
        let last = steps.len().saturating_sub(1);
        for _ in 0..MAX_DATAGRAMS {
            let length = self.receive()?;
            for message in Messages(&self.buffer[..length]) {
                let message = message?;
                let index = usize::try_from(message.sequence.wrapping_sub(first)).unwrap_or(usize::MAX);
                let Some(step) = steps.get(index) else { continue };
                if message.kind != kind::ERROR {
                    continue;
                }
                match message.error()? {
                    Some(number) => return Err(NetlinkError::of(number, step, index == 0)),
                    None if index == last => return Ok(()),
                    None => {}
                }
            }
        }
        Err(NetlinkError::Silent)
    }

    /// Reads a table's counters, by name.
    pub(super) fn counters(&mut self, table: &str) -> Result<BTreeMap<String, Count>, NetlinkError> {
        for _ in 0..MAX_DUMPS {
            if let Some(counters) = self.dump(table)? {
                return Ok(counters);
            }
        }
        Err(NetlinkError::Restless)
    }

    /// One dump; none when a change interrupted it.
    fn dump(&mut self, table: &str) -> Result<Option<BTreeMap<String, Count>>, NetlinkError> {
        let sequence = self.sequence;
        self.sequence = self.sequence.wrapping_add(1);
        self.send(&counters_request(table, sequence))?;
        let mut dump = Dump::new(table, sequence);
        for _ in 0..MAX_DATAGRAMS {
            let length = self.receive()?;
            for message in Messages(&self.buffer[..length]) {
                if dump.take(&message?)? {
                    return Ok(dump.finish());
                }
            }
        }
        Err(NetlinkError::Silent)
    }

    fn send(&self, writer: &Writer) -> Result<(), NetlinkError> {
        loop {
            match send(&self.socket, writer.bytes(), SendFlags::empty()) {
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                // A kernel with nfnetlink but without a listener behind it.
                Err(Errno::CONNREFUSED) => {
                    return Err(NetlinkError::Lacks {
                        what: "a change",
                        module: "nfnetlink",
                        of_owner: false,
                    });
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// One datagram from the kernel: its length in the buffer.
    fn receive(&mut self) -> Result<usize, NetlinkError> {
        for _ in 0..MAX_DATAGRAMS {
            let received = recvfrom(&self.socket, self.buffer.as_mut_slice(), RecvFlags::TRUNC);
            match received {
                Ok((_, length, sender)) => {
                    let sender = sender.and_then(|sender| SocketAddrNetlink::try_from(sender).ok());
                    if sender.is_none_or(|sender| sender.pid() != 0) {
                        continue;
                    }
                    // With TRUNC the length is the datagram's, not the part's that was received.
                    return if length > self.buffer.len() {
                        Err(NetlinkError::Truncated)
                    } else {
                        Ok(length)
                    };
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => self.wait()?,
                Err(Errno::NOBUFS) => return Err(NetlinkError::Truncated),
                Err(error) => return Err(error.into()),
            }
        }
        Err(NetlinkError::Silent)
    }

    fn wait(&self) -> Result<(), NetlinkError> {
        let limit = Timespec::try_from(PATIENCE).unwrap_or(Timespec { tv_sec: 2, tv_nsec: 0 });
        let mut wanted = [PollFd::new(&self.socket, PollFlags::IN)];
        match poll(&mut wanted, Some(&limit)) {
            Ok(0) => Err(NetlinkError::Silent),
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// The question for a table's counters.
fn counters_request(table: &str, sequence: u32) -> Writer {
    let mut writer = Writer::default();
    let flags = flag::REQUEST | flag::DUMP;
    writer.message(message::GET_OBJECT, flags, sequence, (FAMILY_INET, 0), |body| {
        body.text(object::TABLE, table);
        body.number(object::TYPE, object::COUNTER);
    });
    writer
}

/// The answers to [`counters_request`], as they come.
#[derive(Debug)]
struct Dump<'a> {
    table: &'a str,
    sequence: u32,
    found: BTreeMap<String, Count>,
    interrupted: bool,
}

impl<'a> Dump<'a> {
    fn new(table: &'a str, sequence: u32) -> Self {
        Self { table, sequence, found: BTreeMap::new(), interrupted: false }
    }

    /// Takes a message in; true when it was the last.
    fn take(&mut self, message: &Message<'_>) -> Result<bool, NetlinkError> {
        const READ: Step = Step { what: "the counters", module: "nf_tables" };
        if message.sequence != self.sequence {
            return Ok(false);
        }
        // Any part of a dump can tell that it was interrupted, the end as well.
        self.interrupted |= message.flags & flag::DUMP_INTERRUPTED != 0;
        match message.kind {
            kind::ERROR => match message.error()? {
                Some(number) => Err(NetlinkError::of(number, &READ, true)),
                None => Ok(false),
            },
            // A dump that fails in the middle ends with the error's number.
            kind::DONE => match message.error() {
                Ok(Some(number)) if number == Errno::INTR.raw_os_error() => {
                    self.interrupted = true;
                    Ok(true)
                }
                Ok(Some(number)) => Err(NetlinkError::of(number, &READ, true)),
                // Kernels that send no number mean that all is well.
                Ok(None) | Err(Malformed) => Ok(true),
            },
            kind::OVERRUN => Err(NetlinkError::Truncated),
            message::NEW_OBJECT => {
                if let Some((name, count)) = read_counter(message, self.table)? {
                    // The table was made with two for each peer; a kernel that tells of more is not believed.
                    if self.found.len() < 2 * super::MAX_PEERS {
                        self.found.insert(name.to_owned(), count);
                    }
                }
                Ok(false)
            }
            _ => Ok(false),
        }
    }

    /// What was found; none when the dump must be begun again.
    fn finish(self) -> Option<BTreeMap<String, Count>> {
        (!self.interrupted).then_some(self.found)
    }
}

/// Name and content of a counter of this table; none of any other object.
fn read_counter<'a>(message: &Message<'a>, table: &str) -> Result<Option<(&'a str, Count)>, Malformed> {
    let mut name = None;
    let mut ours = false;
    let mut is_counter = false;
    let mut count = Count::default();
    for attribute in message.attributes()? {
        let (kind, value) = attribute?;
        match kind {
            object::TABLE => ours = text(value)? == table,
            object::NAME => name = Some(text(value)?),
            object::TYPE => is_counter = number(value)? == object::COUNTER,
            object::DATA => {
                for field in Attributes(value) {
                    match field? {
                        (object::COUNTER_PACKETS, value) => count.packets = long(value)?,
                        (object::COUNTER_BYTES, value) => count.bytes = long(value)?,
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    Ok(name.filter(|_| ours && is_counter).map(|name| (name, count)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A counter as the kernel tells of it.
    fn told(table: &str, name: &str, count: Count, sequence: u32, flags: u16) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.message(message::NEW_OBJECT, flags, sequence, (FAMILY_INET, 0), |body| {
            body.text(object::TABLE, table);
            body.text(object::NAME, name);
            body.number(object::TYPE, object::COUNTER);
            body.number(5, 1);
            body.nest(object::DATA, |data| {
                data.value(object::COUNTER_BYTES, &count.bytes.to_be_bytes());
                data.value(object::COUNTER_PACKETS, &count.packets.to_be_bytes());
            });
        });
        writer.bytes().to_vec()
    }

    fn ended(sequence: u32, code: i32, flags: u16) -> Vec<u8> {
        let mut bytes = 20_u32.to_ne_bytes().to_vec();
        bytes.extend_from_slice(&kind::DONE.to_ne_bytes());
        bytes.extend_from_slice(&flags.to_ne_bytes());
        bytes.extend_from_slice(&sequence.to_ne_bytes());
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&code.to_ne_bytes());
        bytes
    }

    fn replay(datagrams: &[Vec<u8>]) -> Result<Option<BTreeMap<String, Count>>, NetlinkError> {
        let mut dump = Dump::new("t", 5);
        for datagram in datagrams {
            for message in Messages(datagram) {
                if dump.take(&message?)? {
                    return Ok(dump.finish());
                }
            }
        }
        Err(NetlinkError::Silent)
    }

    const SEVEN: Count = Count { packets: 7, bytes: 700 };

    #[test]
    fn a_dump_in_several_datagrams_is_one_answer() {
        let two = [told("t", "passed-1", SEVEN, 5, 2), told("t", "passed-2", SEVEN, 5, 2)].concat();
        let found = replay(&[two, told("t", "refused-1", SEVEN, 5, 2), ended(5, 0, 2)])
            .expect("an answer")
            .expect("whole");
        assert_eq!(found.keys().collect::<Vec<_>>(), ["passed-1", "passed-2", "refused-1"]);
        assert!(found.values().all(|count| *count == SEVEN));
    }

    #[test]
    fn answers_to_an_earlier_question_and_foreign_tables_are_passed_over() {
        let found = replay(&[
            ended(4, 0, 2),
            told("t", "passed-1", SEVEN, 4, 2),
            told("other", "passed-1", SEVEN, 5, 2),
            ended(5, 0, 2),
        ]);
        assert!(found.expect("an answer").expect("whole").is_empty());
    }

    #[test]
    fn an_interrupted_dump_is_begun_again() {
        let interrupted = told("t", "passed-1", SEVEN, 5, 2 | flag::DUMP_INTERRUPTED);
        assert!(replay(&[interrupted, ended(5, 0, 2)]).expect("an answer").is_none());
        assert!(replay(&[ended(5, 0, 2 | flag::DUMP_INTERRUPTED)]).expect("an answer").is_none());
        assert!(replay(&[ended(5, -4, 2)]).expect("an answer").is_none());
    }

    #[test]
    fn a_dump_that_fails_says_why() {
        let refused = replay(&[ended(5, -2, 2)]).expect_err("refused");
        assert!(refused.to_string().contains("the kernel lacks nf_tables"), "{refused}");
        let overrun =
            [&20_u32.to_ne_bytes()[..], &kind::OVERRUN.to_ne_bytes(), &[0; 2], &5_u32.to_ne_bytes()];
        let overrun = [overrun.concat(), vec![0; 8]].concat();
        assert!(matches!(replay(&[overrun]), Err(NetlinkError::Truncated)));
    }

    #[test]
    fn a_counter_in_strange_form_is_refused_and_no_panic() {
        let bytes = told("t", "passed-1", SEVEN, 5, 2);
        for at in 0..bytes.len() {
            for value in [0, 1, 5, 0x7f, 0xff] {
                let mut broken = bytes.clone();
                broken[at] = value;
                let _ = replay(&[broken, ended(5, 0, 2)]);
            }
        }
        for length in 1..bytes.len() {
            assert!(replay(&[bytes[..length].to_vec()]).is_err());
        }
    }

    #[test]
    fn errors_say_what_to_do() {
        let step = Step { what: "a rule that answers with a reset", module: "nft_reject_inet" };
        let lacks = NetlinkError::of(Errno::NOENT.raw_os_error(), &step, false);
        assert_eq!(
            lacks.to_string(),
            "make a rule that answers with a reset: the kernel lacks nft_reject_inet; load it on the \
             engine's host (`modprobe nft_reject_inet`)"
        );
        let denied = NetlinkError::of(Errno::PERM.raw_os_error(), &step, true);
        assert!(denied.to_string().contains("NET_ADMIN"), "{denied}");
    }
}
