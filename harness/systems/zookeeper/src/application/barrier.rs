//! An application's part in barriers: it enters a round together with others, and leaves it together with
//! them. A round has a znode of its own, below that of its barrier.

use std::time::Instant;

use bytes::Bytes;
use checker::history::Value;
use node_client::{Acl, CreateMode, Keeper, Request, Running};
use node_recipes::double_barrier::{Call, DoubleBarrier, Told};
use node_recipes::line::Left;
use node_recipes::names::Guid;
use node_wire::ids::SessionId;
use tokio::time::timeout_at;
use workloads::op::Object;
use zookeeper_mapping::{encode_name, path};

use super::{LEAVE_PATIENCE, Outcome, given_up, in_doubt, make, refused, session_of, told};

/// A visit of a round.
pub(super) struct Visit {
    of: (u64, i64),
    /// By which it came in.
    session: Option<SessionId>,
    barrier: Running<DoubleBarrier>,
}

/// Waits until so many have come. Whoever is in is given the visit.
pub(super) async fn enter(
    keeper: &Keeper,
    of: (u64, i64),
    parties: usize,
    deadline: Instant,
) -> (Outcome, Option<Visit>) {
    let (key, round) = of;
    let place = format!("{}/{}", path(Object::BARRIER, key), encode_name(round));
    let (acl, mode) = (vec![Acl::world_anyone()], CreateMode::Persistent);
    let request = Request::Create { path: place.as_str().into(), data: Bytes::new(), acl, mode };
    if !make(keeper, request, deadline).await {
        return (refused("no-round"), None);
    }
    let guid = Guid(rand::random());
    let mut barrier = keeper.drive(DoubleBarrier::enter(place, parties, guid, Bytes::new()));
    match timeout_at(deadline.into(), barrier.next()).await {
        Ok(Some(Told::Entered)) => {
            (told(Value::One(round)), Some(Visit { of, session: session_of(keeper), barrier }))
        }
        Ok(Some(Told::Over(_)) | None) => (refused("left"), None),
        Err(_) => (withdraw(barrier).await, None),
    }
}

/// It did not come in in time, and is to be out again.
async fn withdraw(mut barrier: Running<DoubleBarrier>) -> Outcome {
    barrier.call(Call::Leave);
    let over = async { while !matches!(barrier.next().await, Some(Told::Over(_)) | None) {} };
    given_up(over, "not-in-time").await
}

/// Waits until all who entered have left. Whose session ended was out before, whatever the recipe says.
pub(super) async fn leave(
    keeper: &Keeper,
    visit: Option<Visit>,
    of: (u64, i64),
    deadline: Instant,
) -> Outcome {
    let Some(mut visit) = visit.filter(|visit| visit.of == of) else { return refused("not-in") };
    visit.barrier.call(Call::Leave);
    loop {
        match timeout_at(deadline.into(), visit.barrier.next()).await {
            Ok(Some(Told::Over(Left::Resigned))) if session_of(keeper) == visit.session => {
                return told(Value::One(of.1));
            }
            Ok(Some(Told::Over(_)) | None) => return refused("out"),
            Ok(Some(Told::Entered)) => {}
            // Dropped, it goes on leaving by itself.
            Err(_) => return in_doubt("not-in-time"),
        }
    }
}

/// Leaves what it is in, as far as that can be had soon: others wait for it.
pub(super) async fn abandon(keeper: &Keeper, visit: Option<Visit>) {
    let Some(visit) = visit else { return };
    let of = visit.of;
    let _ = leave(keeper, Some(visit), of, Instant::now() + LEAVE_PATIENCE).await;
}
