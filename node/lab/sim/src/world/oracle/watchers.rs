//! The answers that watchers get: usage, room, what was written together.

use bytes::Bytes;
use node_wire::client::{ErrorCode, GetDataResponse, MultiResponse, MultiResult, ReplyHeader};
use node_wire::ids::Zxid;
use node_wire::jute::Reader;

use crate::invariants::amounts;
use crate::outcome::Rule;
use crate::watcher::below;
use crate::world::{Clockwork, Ensemble, Oracle};

/// How what is counted is called.
const COUNTED: [&str; 2] = ["count", "bytes"];

impl Oracle {
    /// What a member has counted is what is there.
    pub(in crate::world) fn check_usage(
        &mut self,
        clock: &mut Clockwork,
        index: usize,
        header: ReplyHeader,
        mut body: Reader,
    ) {
        if header.zxid > self.invariants.last_committed() {
            // From a member that left its role in the same step: the sequence is not known so far.
            return;
        }
        clock.counters.usages += 1;
        let shown = match header.err {
            0 => GetDataResponse::decode(&mut body).ok().map(|read| amounts(read.data.as_ref(), COUNTED)),
            _ => None,
        };
        let there = self.invariants.counted(header.zxid);
        if shown != there {
            let sentence =
                format!("client {index} read at {} that {shown:?} is there, and {there:?} is", header.zxid);
            self.report(clock, Rule::Quotas, sentence);
        }
    }

    /// A write was answered: when it was refused for want of room, there was none.
    pub(in crate::world) fn check_room(
        &mut self,
        clock: &mut Clockwork,
        header: ReplyHeader,
        place: &str,
        bytes: Option<usize>,
    ) {
        if header.err != ErrorCode::QuotaExceeded.code() {
            return;
        }
        clock.counters.beyond_limits += 1;
        let written = bytes.map(|bytes| i64::try_from(bytes).unwrap_or(i64::MAX));
        let finding = self.invariants.check_refusal(header.zxid, &below(place), written);
        self.found(clock, finding);
    }

    /// Both twins as one read shows them.
    pub(in crate::world) fn check_twins(
        &mut self,
        clock: &mut Clockwork,
        index: usize,
        zxid: Zxid,
        mut body: Reader,
    ) {
        let Ok(MultiResponse { results }) = MultiResponse::decode(&mut body) else {
            self.report(clock, Rule::Answer, format!("client {index} got a malformed answer to a multiRead"));
            return;
        };
        let values: Vec<&Bytes> = results
            .iter()
            .filter_map(|result| match result {
                MultiResult::GetData { data, .. } => data.as_ref(),
                _ => None,
            })
            .collect();
        if let [first, second] = values.as_slice()
            && first != second
        {
            let sentence = format!(
                "client {index} read at {zxid} what was written together: {first:?} beside {second:?}"
            );
            self.report(clock, Rule::Whole, sentence);
        }
    }

    /// What should have gone by itself, by the leader's clock.
    pub(in crate::world) fn not_reaped(&self, clock: &Clockwork, ensemble: &Ensemble) -> Option<String> {
        let leader = ensemble.hosts.iter().find(|host| {
            let leads = |status: node_core::Status| status.role == node_core::Role::Leading;
            host.process.as_ref().is_some_and(|process| leads(process.member().status()))
        })?;
        let wall_ms = leader.clock.read(clock.now).wall_ms;
        let path = self.invariants.overdue(wall_ms)?;
        Some(format!("{path} is still there, though its time is over"))
    }
}
