//! A planted bug: a consumer that works on the first element of a queue without claiming it, and deletes it
//! when it is done. Every other one may work on it at the same time.

use std::time::Instant;

use bytestring::ByteString;
use node_client::{Keeper, Request, Response};
use node_recipes::names::in_order;
use tokio::time::timeout_at;
use workloads::text;

/// An element that nobody claimed.
pub(super) struct Element {
    pub(super) element: i64,
    pub(super) name: ByteString,
    /// When it was put, in the order of all changes: what a claim's token is in the place of.
    pub(super) put: i64,
}

async fn answer(keeper: &Keeper, request: Request, deadline: Instant) -> Option<Response> {
    timeout_at(deadline.into(), keeper.call(request)).await.ok()?.ok().map(|answer| answer.response)
}

/// The first element of a queue.
pub(super) async fn first(keeper: &Keeper, base: &str, deadline: Instant) -> Option<Element> {
    let items = format!("{base}/items");
    let list = Request::GetChildren { path: items.as_str().into(), watch: false };
    let Response::Children { names, .. } = answer(keeper, list, deadline).await? else { return None };
    let name = in_order(&names).into_iter().next()?.name;
    let read = Request::GetData { path: format!("{items}/{name}").into(), watch: false };
    let Response::Data { data, stat } = answer(keeper, read, deadline).await? else { return None };
    Some(Element { element: text::value(&data)?, name, put: i64::try_from(stat.czxid.0).ok()? })
}

/// Deletes an element. True when it was there.
pub(super) async fn delete(
    keeper: &Keeper,
    base: &str,
    name: &ByteString,
    deadline: Instant,
) -> Option<bool> {
    let path = format!("{base}/items/{name}").into();
    let deleted = keeper.call(Request::Delete { path, version: -1 });
    match timeout_at(deadline.into(), deleted).await {
        Ok(Ok(_)) => Some(true),
        Ok(Err(error)) if error.refusal().is_some() => Some(false),
        Ok(Err(_)) | Err(_) => None,
    }
}
