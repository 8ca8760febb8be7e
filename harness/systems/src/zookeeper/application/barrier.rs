//! An application's part in barriers: it enters a round together with others, and leaves it together with
//! them. A round has a znode of its own, below that of its barrier.

use std::time::{Duration, Instant};

use bytes::Bytes;
use checker::history::{EventKind, Value};
use node_client::{CreateMode, Keeper, Running};
use node_recipes::double_barrier::{Call, DoubleBarrier, Told};
use node_recipes::line::Left;
use node_recipes::names::Guid;
use node_wire::ids::SessionId;
use tokio::time::timeout_at;
use workloads::barrier::PARTIES;
use workloads::op::Object;
use zookeeper_mapping::{encode_name, path};

use super::{FAREWELL, Outcome, refused, session_of, told};

/// How long whoever did not come in may take to withdraw.
const WITHDRAWAL: Duration = Duration::from_secs(1);

/// A visit of a round.
pub(super) struct Visit {
    of: (u64, i64),
    /// By which it came in.
    session: Option<SessionId>,
    barrier: Running<DoubleBarrier>,
}

fn in_doubt(why: &str) -> Outcome {
    Err((EventKind::Info, why.to_owned()))
}

/// Waits until so many have come. Whoever is in is given the visit.
pub(super) async fn enter(keeper: &Keeper, of: (u64, i64), deadline: Instant) -> (Outcome, Option<Visit>) {
    let (key, round) = of;
    let place = format!("{}/{}", path(Object::Barrier, key), encode_name(round));
    let made = keeper.create(place.as_str(), Bytes::new(), CreateMode::Persistent);
    // That it is there already is as good.
    match timeout_at(deadline.into(), made).await {
        Ok(made) if made.as_ref().is_err_and(|error| !error.is_definite()) => {
            return (refused("no-round"), None);
        }
        Ok(_) => {}
        Err(_) => return (refused("no-round"), None),
    }
    let guid = Guid(rand::random());
    let mut barrier = keeper.drive(DoubleBarrier::enter(place, PARTIES, guid, Bytes::new()));
    match timeout_at(deadline.into(), barrier.next()).await {
        Ok(Some(Told::Entered)) => {
            (told(Value::One(round)), Some(Visit { of, session: session_of(keeper), barrier }))
        }
        Ok(Some(Told::Over(_)) | None) => (refused("left"), None),
        Err(_) => (withdraw(barrier).await, None),
    }
}

/// It did not come in in time, and is certainly out again, or nobody knows.
async fn withdraw(mut barrier: Running<DoubleBarrier>) -> Outcome {
    barrier.call(Call::Leave);
    let over = async { while !matches!(barrier.next().await, Some(Told::Over(_)) | None) {} };
    match timeout_at((Instant::now() + WITHDRAWAL).into(), over).await {
        Ok(()) => refused("not-in-time"),
        Err(_) => in_doubt("not-in-time"),
    }
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
    let _ = leave(keeper, Some(visit), of, Instant::now() + FAREWELL).await;
}
