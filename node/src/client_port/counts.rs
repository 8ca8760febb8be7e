//! What answers and events tell whoever counts: bytes read by namespace, refusals, and how many were told of
//! a change.
//!
//! The core tells an event to each who watches, one after the other and with the same frame. So the members
//! of one telling follow each other, and are counted together.

use bytes::Bytes;
use node_core::io::ClientId;
use node_wire::client::{ErrorCode, EventType};

use super::connection::{Open, error, event_kind};
use crate::metrics::{Counter, Known, Metrics, Tally, namespace};

/// What is counted by key, and the telling that goes on.
#[derive(Debug, Default)]
pub(super) struct Counts {
    reads: Known<Tally>,
    exceeded: Known<Counter>,
    telling: Option<Telling>,
}

/// An event that is being told.
#[derive(Debug)]
struct Telling {
    frame: Bytes,
    last: ClientId,
    told: u64,
}

impl Counts {
    /// A request was answered.
    pub(super) fn answer(&mut self, request: &Open, frame: &Bytes, metrics: &Metrics) {
        match error(frame).and_then(ErrorCode::from_code) {
            Some(ErrorCode::AuthFailed) => metrics.auth_failed_count.one(),
            Some(ErrorCode::QuotaExceeded) => {
                if let Some(name) = namespace(request.path()) {
                    self.exceeded.of(&metrics.quota_exceeded_error_per_namespace, name).one();
                }
            }
            _ => {
                if let Some(bytes) = request.bytes_read(frame)
                    && let Some(name) = namespace(request.path())
                {
                    self.reads.of(&metrics.read_per_namespace, name).record(bytes as u64);
                }
            }
        }
    }

    /// A client was told of a change.
    pub(super) fn event(&mut self, client: ClientId, frame: &Bytes, metrics: &Metrics) {
        metrics.watch_bytes.add(frame.len() as u64);
        match &mut self.telling {
            // Each client is told once, in their order.
            Some(telling) if telling.frame.as_ptr() == frame.as_ptr() && telling.last < client => {
                telling.last = client;
                telling.told += 1;
            }
            _ => {
                self.end_of_events(metrics);
                self.telling = Some(Telling { frame: frame.clone(), last: client, told: 1 });
            }
        }
    }

    /// Nobody else is told of the last event.
    pub(super) fn end_of_events(&mut self, metrics: &Metrics) {
        let Some(Telling { frame, told, .. }) = self.telling.take() else { return };
        let summary = match event_kind(&frame) {
            Some(EventType::NodeCreated) => &metrics.node_created_watch_count,
            Some(EventType::NodeDeleted) => &metrics.node_deleted_watch_count,
            Some(EventType::NodeDataChanged) => &metrics.node_changed_watch_count,
            Some(EventType::NodeChildrenChanged) => &metrics.node_children_watch_count,
            Some(
                EventType::None
                | EventType::DataWatchRemoved
                | EventType::ChildWatchRemoved
                | EventType::PersistentWatchRemoved,
            )
            | None => return,
        };
        summary.record(told);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use bytes::BytesMut;
    use node_wire::client::{OpCode, PathWatch, ReplyHeader, Request, WatcherEvent, XID_WATCH, put_frame};
    use node_wire::ids::Zxid;
    use node_wire::jute::Writer;

    use super::*;

    fn framed(body: impl FnOnce(&mut Writer<'_>)) -> Bytes {
        let mut frame = BytesMut::new();
        put_frame(&mut frame, body);
        frame.freeze()
    }

    fn open(op: OpCode, path: &'static str) -> Open {
        let mut body = BytesMut::new();
        PathWatch { path: path.into(), watch: false }.encode(&mut Writer::new(&mut body));
        Open::request(Instant::now(), &Request { xid: 1, op: op.code(), body: body.freeze() })
    }

    fn answer(err: ErrorCode, more: usize) -> Bytes {
        framed(|w| {
            ReplyHeader { xid: 1, zxid: Zxid(1), err: err.code() }.encode(w);
            w.raw(&vec![0; more]);
        })
    }

    fn event(kind: EventType) -> Bytes {
        framed(|w| {
            ReplyHeader { xid: XID_WATCH, zxid: Zxid::from_wire(-1), err: 0 }.encode(w);
            WatcherEvent { kind: kind.code(), state: 3, path: "/a".into() }.encode(w);
        })
    }

    #[test]
    fn reads_count_by_namespace_as_zookeepers() {
        let (metrics, mut counts) = (Metrics::new(), Counts::default());
        // The length of five bytes of data, they, and a Stat.
        counts.answer(&open(OpCode::GetData, "/a/b"), &answer(ErrorCode::Ok, 4 + 5 + 68), &metrics);
        counts.answer(&open(OpCode::Exists, "/a"), &answer(ErrorCode::Ok, 68), &metrics);
        counts.answer(&open(OpCode::GetData, "/b"), &answer(ErrorCode::NoNode, 0), &metrics);
        counts.answer(&open(OpCode::GetData, "/"), &answer(ErrorCode::Ok, 4 + 68), &metrics);
        let names = framed(|w| {
            ReplyHeader { xid: 1, zxid: Zxid(1), err: 0 }.encode(w);
            w.int(2);
            ["one", "three"].iter().for_each(|name| w.string(name));
        });
        counts.answer(&open(OpCode::GetChildren, "/c"), &names, &metrics);
        let all: Vec<_> = metrics
            .read_per_namespace
            .all()
            .iter()
            .map(|(name, tally)| (name.to_string(), tally.get()))
            .collect();
        let (data, exists, children) = (4 + 5 + 68, 2 + 68, 2 + 3 + 5 + 68);
        assert_eq!(
            all,
            [
                ("a".to_owned(), [2, data + exists, exists, data]),
                ("c".to_owned(), [1, children, children, children])
            ]
        );
    }

    #[test]
    fn refusals_are_counted_by_what_they_say() {
        let (metrics, mut counts) = (Metrics::new(), Counts::default());
        counts.answer(&open(OpCode::SetData, "/a/b"), &answer(ErrorCode::QuotaExceeded, 0), &metrics);
        counts.answer(&open(OpCode::Auth, "/a/b"), &answer(ErrorCode::AuthFailed, 0), &metrics);
        let exceeded = metrics.quota_exceeded_error_per_namespace.all();
        assert_eq!(
            exceeded.iter().map(|(name, count)| (&**name, count.get())).collect::<Vec<_>>(),
            [("a", 1)]
        );
        assert_eq!(metrics.auth_failed_count.get(), 1);
    }

    #[test]
    fn those_who_are_told_of_one_change_are_counted_together() {
        let (metrics, mut counts) = (Metrics::new(), Counts::default());
        let (created, changed) = (event(EventType::NodeCreated), event(EventType::NodeDataChanged));
        for client in [1, 2, 5] {
            counts.event(ClientId(client), &created, &metrics);
        }
        counts.event(ClientId(2), &changed, &metrics);
        // The same bytes again are another telling.
        counts.event(ClientId(2), &changed, &metrics);
        counts.end_of_events(&metrics);
        let told = |summary: &crate::metrics::Summary| (summary.values().count, summary.values().max);
        assert_eq!(told(&metrics.node_created_watch_count), (1, 3.0));
        assert_eq!(told(&metrics.node_changed_watch_count), (2, 1.0));
        assert_eq!(metrics.watch_bytes.get(), 5 * created.len() as u64);
    }
}
