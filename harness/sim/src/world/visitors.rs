//! Visitors: clients that make ephemeral nodes with sequential names, look for them, and go.
//!
//! They check what registers can't show: a name is given once, an ephemeral lives as long as its session, and a
//! session that is left without a word expires.

use bytestring::ByteString;
use node_core::Plant;
use node_wire::client::{CreateResponse, ErrorCode, ReplyHeader};
use node_wire::jute::Reader;

use super::World;
use super::registers::IDLE_US;
use crate::client::{Purpose, Trade, Wake};
use crate::dice::{Chance, HALF};
use crate::outcome::Rule;
use crate::script::{Deed, Transition};

/// A visitor leaves with this probability at each occasion, half of the time without a word.
const LEAVES: Chance = Chance(1_500);

/// Nodes that one visitor's session makes at most.
const MAX_VISITS: usize = 20;

impl<P: Plant> World<P> {
    pub(super) fn act_as_visitor(&mut self, index: usize) {
        if self.record.quiet {
            self.set_timer(index, IDLE_US, Wake::Act);
            return;
        }
        if self.clients[index].dice.chance(LEAVES) {
            self.walk_out(index);
            return;
        }
        let look = self.clients[index].dice.chance(HALF);
        let pick = self.clients[index].dice.between(0, u64::MAX);
        let Trade::Visitor(visitor) = &self.clients[index].trade else { return };
        let known = u64::try_from(visitor.nodes.len()).unwrap_or(0);
        let path = (known > 0 && (look || visitor.nodes.len() >= MAX_VISITS)).then(|| {
            let chosen = usize::try_from(pick % known).expect("below a length");
            visitor.nodes[chosen].clone()
        });
        self.visit(index, path);
    }

    /// A visitor makes a node, or looks for one that it made.
    pub(super) fn visit(&mut self, index: usize, path: Option<ByteString>) {
        let deed = path.clone().map_or(Deed::Visit, Deed::Revisit);
        self.write_down(|_| Transition::Asks { client: index, deed });
        let client = &mut self.clients[index];
        let Trade::Visitor(visitor) = &mut client.trade else { return };
        visitor.busy = true;
        let frame = match path {
            Some(path) => {
                if let Some(place) = visitor.nodes.iter().position(|node| *node == path) {
                    visitor.nodes.swap(0, place);
                }
                client.revisit(path)
            }
            None => client.visit(),
        };
        self.ask(index, vec![frame]);
    }

    /// A visitor ends its session, or forgets it so that it must expire.
    fn walk_out(&mut self, index: usize) {
        let polite = self.clients[index].dice.chance(HALF);
        let Trade::Visitor(visitor) = &mut self.clients[index].trade else { return };
        visitor.nodes.clear();
        if polite {
            self.say_goodbye(index);
        } else {
            self.write_down(|_| Transition::HangsUp { client: index });
            self.hang_up(index);
            self.clients[index].session = None;
            self.on_lost(index, "walked out");
        }
    }

    pub(super) fn on_visitor_reply(
        &mut self,
        index: usize,
        purpose: &Purpose,
        header: ReplyHeader,
        mut body: Reader,
    ) {
        let client = &mut self.clients[index];
        let Trade::Visitor(visitor) = &mut client.trade else { return };
        visitor.busy = false;
        match purpose {
            Purpose::Goodbye => {
                self.leave(index);
                return;
            }
            Purpose::Visit if header.err == 0 => {
                let made = CreateResponse::decode(&mut body).expect("a member's answer is well formed").path;
                visitor.nodes.push(made.clone());
                self.counters.visits += 1;
                if !self.record.names.insert(made.clone()) {
                    self.convict(Rule::UniqueNames, format!("the name {made} was given twice"));
                }
                let finding = self.judge.acknowledged(header.zxid);
                self.judged(finding);
            }
            Purpose::Revisit if header.err == ErrorCode::NoNode.code() => {
                let path = visitor.nodes.first().cloned().unwrap_or_default();
                self.convict(Rule::Sessions, format!("the ephemeral {path} died before its session"));
            }
            _ => {}
        }
        self.think(index);
    }
}
