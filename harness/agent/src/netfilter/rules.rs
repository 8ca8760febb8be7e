//! What is said to `nf_tables`: tables, chains, rules and the expressions that rules are made of.
//!
//! A rule is a list of expressions on one register: load something, compare it (the rule ends when the
//! comparison fails), act. The forms are those that `nft --debug=netlink` shows for the same rules; the tests
//! hold them against its bytes.

use std::net::IpAddr;

use super::wire::{Writer, flag};
use crate::protocol::{Peer, Refusal};

const SUBSYSTEM: u16 = 10;
const BATCH_BEGIN: u16 = 16;
const BATCH_END: u16 = 17;
/// The address family of tables that see IPv4 and IPv6.
pub(super) const FAMILY_INET: u8 = 1;

/// Kinds of `nf_tables` messages.
pub(crate) mod message {
    use super::SUBSYSTEM;
    pub(crate) const NEW_TABLE: u16 = SUBSYSTEM << 8;
    pub(crate) const DELETE_TABLE: u16 = SUBSYSTEM << 8 | 2;
    pub(crate) const NEW_CHAIN: u16 = SUBSYSTEM << 8 | 3;
    pub(crate) const DELETE_CHAIN: u16 = SUBSYSTEM << 8 | 5;
    pub(crate) const NEW_RULE: u16 = SUBSYSTEM << 8 | 6;
    pub(crate) const DELETE_RULE: u16 = SUBSYSTEM << 8 | 8;
    pub(crate) const NEW_OBJECT: u16 = SUBSYSTEM << 8 | 18;
    pub(crate) const GET_OBJECT: u16 = SUBSYSTEM << 8 | 19;
}

/// Attributes of counter objects.
pub(super) mod object {
    pub(crate) const TABLE: u16 = 1;
    pub(crate) const NAME: u16 = 2;
    pub(crate) const TYPE: u16 = 3;
    pub(crate) const DATA: u16 = 4;
    pub(crate) const COUNTER_BYTES: u16 = 1;
    pub(crate) const COUNTER_PACKETS: u16 = 2;
    /// The type of counters.
    pub(crate) const COUNTER: u32 = 1;
}

const OWNED: u32 = 2;
const HOOK_INPUT: u32 = 1;
const REGISTER: u32 = 1;
const VERDICT_REGISTER: u32 = 0;

const FAULT_PRIORITY: i32 = -100;
const PASSED_PRIORITY: i32 = 100;
const FAULTS: &str = "faults";
const PASSED: &str = "passed";
const COUNTED: &str = "counted";

const META_NFPROTO: u32 = 15;
const META_L4PROTO: u32 = 16;
const NFPROTO_IPV4: u8 = 2;
const NFPROTO_IPV6: u8 = 10;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMPV6: u8 = 58;
/// ICMPv6 types from router solicitation to redirect.
const NEIGHBOUR_DISCOVERY: (u8, u8) = (133, 137);
/// Where TCP keeps its flags, and which of them is the reset.
const TCP_FLAGS: u32 = 13;
const TCP_RESET: u8 = 4;
const SOURCE_PORT: u32 = 0;
const DESTINATION_PORT: u32 = 2;

/// What a rule may compare with.
#[derive(Clone, Copy)]
enum Is {
    Equal = 0,
    NotEqual = 1,
    AtMost = 3,
    AtLeast = 5,
}

/// Which header of a packet.
#[derive(Clone, Copy)]
enum Header {
    Network = 1,
    Transport = 2,
}

/// What becomes of a packet.
#[derive(Clone, Copy)]
pub(crate) enum Verdict<'a> {
    Drop,
    Accept,
    Return,
    Jump(&'a str),
    Goto(&'a str),
}

/// The name of a peer's counter.
pub(super) fn counter_name(verdict: &str, peer: Peer) -> String {
    format!("{verdict}-{peer}")
}

/// One message of a batch, in words, with what the kernel needs for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// What it does.
    pub(crate) what: &'static str,
    /// The part of the kernel that does it.
    pub(crate) module: &'static str,
}

const OWN_TABLE: Step = Step { what: "an owned table", module: "nf_tables" };
const TABLE: Step = Step { what: "the table", module: "nf_tables" };
const CHAIN: Step = Step { what: "a chain at the input hook", module: "nf_tables_inet" };
const COUNTER: Step = Step { what: "a named counter", module: "nft_counter" };
const RULE: Step = Step { what: "a rule", module: "nf_tables" };
const COUNTING_RULE: Step = Step { what: "a rule with a named counter", module: "nft_objref" };
const RESETTING_RULE: Step = Step { what: "a rule that answers with a reset", module: "nft_reject_inet" };

impl Step {
    /// Whether an older kernel would refuse this step because of the table's owner.
    pub(super) fn concerns_ownership(&self) -> bool {
        *self == OWN_TABLE
    }
}

/// Changes that the kernel makes all at once or not at all.
#[derive(Debug)]
pub(crate) struct Batch<'a> {
    writer: Writer,
    table: &'a str,
    /// Where each message begins, with what it is; the first one opens the batch.
    steps: Vec<(usize, Step)>,
}

impl<'a> Batch<'a> {
    pub(crate) fn new(table: &'a str) -> Self {
        Self { writer: Writer::default(), table, steps: Vec::new() }
    }

    /// Replaces a table of this name, or makes it. `owned` binds it to the life of the socket.
    pub(crate) fn replace_table(&mut self, owned: bool) {
        const NAME: u16 = 1;
        const FLAGS: u16 = 2;
        // A table that is not there can't be deleted: it is made first.
        let table = self.table;
        self.step(TABLE, message::NEW_TABLE, flag::CREATE, |body| body.text(NAME, table));
        self.delete_table();
        let step = if owned { OWN_TABLE } else { TABLE };
        self.step(step, message::NEW_TABLE, flag::CREATE | flag::EXCLUSIVE, |body| {
            body.text(NAME, table);
            body.number(FLAGS, if owned { OWNED } else { 0 });
        });
    }

    pub(crate) fn delete_table(&mut self) {
        let table = self.table;
        self.step(TABLE, message::DELETE_TABLE, 0, |body| body.text(1, table));
    }

    /// The counters, the chain from which faults are entered, and the chains that count what came through.
    pub(super) fn count(&mut self, peers: &[(Peer, IpAddr)], ports: &[u16]) {
        for (peer, _) in peers {
            self.counter(&counter_name("passed", *peer));
            self.counter(&counter_name("refused", *peer));
        }
        self.chain(FAULTS, Some(FAULT_PRIORITY));
        self.chain(COUNTED, None);
        self.chain(PASSED, Some(PASSED_PRIORITY));
        for (peer, address) in peers {
            self.rule(COUNTING_RULE, COUNTED, |rule| {
                rule.from(*address);
                rule.counter(&counter_name("passed", *peer));
                rule.verdict(Verdict::Accept);
            });
        }
        self.rule(RULE, PASSED, |rule| {
            rule.meta(META_L4PROTO, Is::NotEqual, TCP);
            rule.verdict(Verdict::Accept);
        });
        self.rule(RULE, PASSED, |rule| {
            rule.meta(META_L4PROTO, Is::Equal, TCP);
            rule.tcp_reset();
            rule.verdict(Verdict::Accept);
        });
        for port in ports {
            for side in [DESTINATION_PORT, SOURCE_PORT] {
                self.rule(RULE, PASSED, |rule| {
                    rule.meta(META_L4PROTO, Is::Equal, TCP);
                    rule.port(side, *port);
                    rule.verdict(Verdict::Goto(COUNTED));
                });
            }
        }
    }

    /// No packet enters the chain of any fault any more.
    pub(super) fn leave_all(&mut self) {
        self.flush(FAULTS);
    }

    /// Packets enter the chains of these faults.
    pub(super) fn enter<'c>(&mut self, chains: impl Iterator<Item = &'c str>) {
        for chain in chains {
            self.rule(RULE, FAULTS, |rule| rule.verdict(Verdict::Jump(chain)));
        }
    }

    /// Takes the rules of a chain away.
    pub(crate) fn flush(&mut self, chain: &str) {
        let table = self.table;
        self.step(RULE, message::DELETE_RULE, 0, |body| {
            body.text(1, table);
            body.text(2, chain);
        });
    }

    /// A fault's chain, which is still to be entered.
    pub(super) fn fault(&mut self, chain: &str, control_port: u16, cut: &[(Peer, IpAddr)], refusal: Refusal) {
        self.chain(chain, None);
        self.rule(RULE, chain, |rule| {
            rule.datagrams_for(control_port);
            rule.verdict(Verdict::Return);
        });
        if cut.iter().any(|(_, address)| address.is_ipv6()) {
            self.rule(RULE, chain, |rule| {
                rule.meta(META_NFPROTO, Is::Equal, NFPROTO_IPV6);
                rule.meta(META_L4PROTO, Is::Equal, ICMPV6);
                rule.load(Header::Transport, 0, 1);
                rule.compare(Is::AtLeast, &[NEIGHBOUR_DISCOVERY.0]);
                rule.compare(Is::AtMost, &[NEIGHBOUR_DISCOVERY.1]);
                rule.verdict(Verdict::Return);
            });
        }
        if refusal == Refusal::Reset {
            self.rule(RULE, chain, |rule| {
                rule.meta(META_L4PROTO, Is::Equal, TCP);
                rule.tcp_reset();
                rule.verdict(Verdict::Return);
            });
        }
        for (peer, address) in cut {
            let counter = counter_name("refused", *peer);
            if refusal == Refusal::Reset {
                self.rule(RESETTING_RULE, chain, |rule| {
                    rule.from(*address);
                    rule.meta(META_L4PROTO, Is::Equal, TCP);
                    rule.counter(&counter);
                    rule.reset();
                });
            }
            self.rule(COUNTING_RULE, chain, |rule| {
                rule.from(*address);
                rule.counter(&counter);
                rule.verdict(Verdict::Drop);
            });
        }
    }

    /// Takes a chain away, with its rules.
    pub(super) fn delete_chain(&mut self, chain: &str) {
        let table = self.table;
        self.step(CHAIN, message::DELETE_CHAIN, 0, |body| {
            body.text(1, table);
            body.text(3, chain);
        });
    }

    fn counter(&mut self, name: &str) {
        let table = self.table;
        self.step(COUNTER, message::NEW_OBJECT, flag::CREATE | flag::EXCLUSIVE, |body| {
            body.text(object::TABLE, table);
            body.text(object::NAME, name);
            body.number(object::TYPE, object::COUNTER);
            body.nest(object::DATA, |data| {
                data.value(object::COUNTER_BYTES, &[0; 8]);
                data.value(object::COUNTER_PACKETS, &[0; 8]);
            });
        });
    }

    /// A chain; with a priority it hangs at the input hook, else rules lead to it.
    pub(crate) fn chain(&mut self, name: &str, priority: Option<i32>) {
        const POLICY_ACCEPT: u32 = 1;
        let table = self.table;
        self.step(CHAIN, message::NEW_CHAIN, flag::CREATE | flag::EXCLUSIVE, |body| {
            body.text(1, table);
            body.text(3, name);
            let Some(priority) = priority else { return };
            body.text(7, "filter");
            body.number(5, POLICY_ACCEPT);
            body.nest(4, |hook| {
                hook.number(1, HOOK_INPUT);
                hook.value(2, &priority.to_be_bytes());
            });
        });
    }

    pub(crate) fn rule(&mut self, step: Step, chain: &str, expressions: impl FnOnce(&mut Rule<'_>)) {
        let table = self.table;
        self.step(step, message::NEW_RULE, flag::CREATE | flag::APPEND, |body| {
            body.text(1, table);
            body.text(2, chain);
            body.nest(4, |writer| expressions(&mut Rule { writer }));
        });
    }

    fn step(&mut self, step: Step, kind: u16, flags: u16, body: impl FnOnce(&mut Writer)) {
        if self.steps.is_empty() {
            self.steps.push((0, Step { what: "a change", module: "nf_tables" }));
            self.writer.message(BATCH_BEGIN, flag::REQUEST, 0, (0, SUBSYSTEM), |_| ());
        }
        self.steps.push((self.writer.position(), step));
        self.writer.message(kind, flag::REQUEST | flags, 0, (FAMILY_INET, 0), body);
    }

    /// Ends the batch, whose opening gets this sequence number and each change the next one: its bytes, and
    /// what the numbers stand for. The last change asks to be acknowledged; errors come unasked.
    pub(super) fn finish(mut self, first: u32) -> (Writer, Vec<Step>) {
        let mut sequence = first;
        for (position, _) in &self.steps {
            self.writer.set_sequence(*position, sequence);
            sequence = sequence.wrapping_add(1);
        }
        if let Some((position, _)) = self.steps.last() {
            self.writer.add_flags(*position, flag::ACK);
            self.writer.message(BATCH_END, flag::REQUEST, sequence, (0, SUBSYSTEM), |_| ());
        }
        (self.writer, self.steps.into_iter().map(|(_, step)| step).collect())
    }
}

/// A rule's expressions, in order.
pub(crate) struct Rule<'a> {
    writer: &'a mut Writer,
}

impl Rule<'_> {
    pub(crate) fn expression(&mut self, name: &str, data: impl FnOnce(&mut Writer)) {
        const ELEMENT: u16 = 1;
        self.writer.nest(ELEMENT, |element| {
            element.text(1, name);
            element.nest(2, data);
        });
    }

    fn meta(&mut self, key: u32, is: Is, value: u8) {
        self.expression("meta", |data| {
            data.number(2, key);
            data.number(1, REGISTER);
        });
        self.compare(is, &[value]);
    }

    fn load(&mut self, header: Header, offset: u32, length: u32) {
        self.expression("payload", |data| {
            data.number(1, REGISTER);
            data.number(2, header as u32);
            data.number(3, offset);
            data.number(4, length);
        });
    }

    fn compare(&mut self, is: Is, value: &[u8]) {
        self.expression("cmp", |data| {
            data.number(1, REGISTER);
            data.number(2, is as u32);
            data.nest(3, |data| data.value(1, value));
        });
    }

    /// Packets from this address.
    pub(crate) fn from(&mut self, address: IpAddr) {
        match address {
            IpAddr::V4(address) => {
                self.meta(META_NFPROTO, Is::Equal, NFPROTO_IPV4);
                self.load(Header::Network, 12, 4);
                self.compare(Is::Equal, &address.octets());
            }
            IpAddr::V6(address) => {
                self.meta(META_NFPROTO, Is::Equal, NFPROTO_IPV6);
                self.load(Header::Network, 8, 16);
                self.compare(Is::Equal, &address.octets());
            }
        }
    }

    /// Datagrams for this port.
    pub(crate) fn datagrams_for(&mut self, port: u16) {
        self.meta(META_L4PROTO, Is::Equal, UDP);
        self.port(DESTINATION_PORT, port);
    }

    fn port(&mut self, side: u32, port: u16) {
        self.load(Header::Transport, side, 2);
        self.compare(Is::Equal, &port.to_be_bytes());
    }

    /// Segments that reset, of packets known to be TCP: `tcp flags rst`.
    fn tcp_reset(&mut self) {
        self.load(Header::Transport, TCP_FLAGS, 1);
        self.expression("bitwise", |data| {
            data.number(1, REGISTER);
            data.number(2, REGISTER);
            data.number(3, 1);
            data.nest(4, |mask| mask.value(1, &[TCP_RESET]));
            data.nest(5, |xor| xor.value(1, &[0]));
        });
        self.compare(Is::NotEqual, &[0]);
    }

    fn counter(&mut self, name: &str) {
        self.expression("objref", |data| {
            data.number(1, object::COUNTER);
            // Without an ending zero, as `nft` has it.
            data.value(2, name.as_bytes());
        });
    }

    fn reset(&mut self) {
        const WITH_TCP_RESET: u32 = 1;
        self.expression("reject", |data| {
            data.number(1, WITH_TCP_RESET);
            data.value(2, &[0]);
        });
    }

    pub(crate) fn verdict(&mut self, verdict: Verdict<'_>) {
        let (code, chain): (i32, _) = match verdict {
            Verdict::Drop => (0, None),
            Verdict::Accept => (1, None),
            Verdict::Return => (-5, None),
            Verdict::Jump(chain) => (-3, Some(chain)),
            Verdict::Goto(chain) => (-4, Some(chain)),
        };
        self.expression("immediate", |data| {
            data.number(1, VERDICT_REGISTER);
            data.nest(2, |data| {
                data.nest(2, |verdict| {
                    verdict.value(1, &code.to_be_bytes());
                    if let Some(chain) = chain {
                        verdict.text(2, chain);
                    }
                });
            });
        });
    }
}

#[cfg(test)]
#[path = "golden.rs"]
mod tests;
