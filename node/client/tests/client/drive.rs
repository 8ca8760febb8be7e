//! What the driver owes to a recipe, with a recipe that tells all that it is given.

use std::time::Duration;

use node_client::{
    ErrorCode, Event, EventType, Failure, KeeperOptions, Moment, Request, Response, Running, State,
};
use node_recipes::recipe::{Ask, Effects, Input, Now, Recipe};
use node_wire::client::{
    CreateRequest, MultiResponse, MultiResult, OpCode, SetDataResponse, SetWatches, Stat,
};
use node_wire::ids::SessionId;
use node_wire::jute::Reader;

use crate::fake::{Fake, connected, data, in_time, state};

/// What the recipe is called to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// Ask these, in this order.
    Ask(Vec<Request>),
    /// Be told of the time so much later.
    WakeIn(Duration),
    /// Want certainty, or not.
    Certainty(bool),
    /// Delete `/mine`, and be over then.
    Leave,
}

/// Tells its inputs.
#[derive(Default)]
pub(crate) struct Recorder {
    last: u64,
    wakes_at: Option<Moment>,
    wants_certainty: bool,
    leaving: Option<Ask>,
    is_over: bool,
}

impl Recorder {
    fn ask(&mut self, request: Request, effects: &mut Effects<(Now, Input<Call>)>) -> Ask {
        self.last += 1;
        effects.asks.push((Ask(self.last), request));
        Ask(self.last)
    }
}

impl Recipe for Recorder {
    type Call = Call;
    type Told = (Now, Input<Call>);

    fn step(&mut self, now: Now, input: Input<Call>, effects: &mut Effects<Self::Told>) {
        effects.tell((now, input.clone()));
        match input {
            Input::Call(Call::Ask(requests)) => {
                for request in requests {
                    self.ask(request, effects);
                }
            }
            Input::Call(Call::WakeIn(wait)) => self.wakes_at = Some(now.at + wait),
            Input::Call(Call::Certainty(wanted)) => self.wants_certainty = wanted,
            Input::Call(Call::Leave) => {
                let delete = Request::Delete { path: "/mine".into(), version: -1 };
                self.leaving = Some(self.ask(delete, effects));
            }
            Input::Answered { ask, .. } if self.leaving == Some(ask) => self.is_over = true,
            Input::Time => self.wakes_at = None,
            _ => {}
        }
    }

    fn leave() -> Call {
        Call::Leave
    }

    fn wakes_at(&self) -> Option<Moment> {
        self.wakes_at
    }

    fn wants_certainty(&self) -> bool {
        self.wants_certainty
    }

    fn is_over(&self) -> bool {
        self.is_over
    }
}

async fn next(running: &mut Running<Recorder>) -> Input<Call> {
    in_time(running.next()).await.expect("not over").1
}

fn get(path: &'static str, watch: bool) -> Request {
    Request::GetData { path: path.into(), watch }
}

fn set(path: &'static str, data: Vec<u8>) -> Request {
    Request::SetData { path: path.into(), data: data.into(), version: -1 }
}

fn failed(ask: u64, failure: Failure) -> Input<Call> {
    Input::Answered { ask: Ask(ask), answer: Err(failure) }
}

const CONNECTED: Input<Call> = Input::Connected { session: SessionId(77) };

#[tokio::test]
async fn a_recipe_is_told_of_a_session_that_is_served_and_of_one_that_comes() {
    let fake = Fake::bind().await;
    let (keeper, side) = fake.keeper(KeeperOptions::default()).await;
    let mut running = keeper.drive(Recorder::default());
    let (now, first) = in_time(running.next()).await.expect("not over");
    assert_eq!(first, CONNECTED);
    assert!(now.is_certain());
    drop(side);
    assert_eq!(next(&mut running).await, Input::Suspended);
    let mut late = keeper.drive(Recorder::default());
    let _side = fake.serve().await;
    assert_eq!(next(&mut running).await, CONNECTED);
    assert_eq!(next(&mut late).await, CONNECTED, "and of no suspension that was before its time");
}

#[tokio::test]
async fn answers_and_events_come_in_the_order_of_the_wire() {
    let fake = Fake::bind().await;
    let (keeper, mut side) = fake.keeper(KeeperOptions::default()).await;
    let mut running = keeper.drive(Recorder::default());
    assert_eq!(next(&mut running).await, CONNECTED);
    for _ in 0..20 {
        let call = Call::Ask(vec![get("/a", true), get("/a", false)]);
        running.call(call.clone());
        assert_eq!(next(&mut running).await, Input::Call(call));
        let (first, second) = (side.asked(OpCode::GetData).await, side.asked(OpCode::GetData).await);
        side.answer(first.xid, 1, 0, |w| data("old").encode(w)).await;
        side.event(EventType::NodeDataChanged, "/a").await;
        side.answer(second.xid, 2, 0, |w| data("new").encode(w)).await;
        let mut seen = Vec::new();
        for _ in 0..3 {
            seen.push(match next(&mut running).await {
                Input::Answered { answer: Ok(Response::Data { data, .. }), .. } => data,
                Input::Event(Event { kind: EventType::NodeDataChanged, .. }) => "event".into(),
                other => panic!("{other:?}"),
            });
        }
        assert_eq!(seen, ["old", "event", "new"]);
    }
}

#[tokio::test]
async fn when_a_connection_ends_all_that_is_open_is_answered_before_the_suspension() {
    let fake = Fake::bind().await;
    let (keeper, mut side) = fake.keeper(KeeperOptions::default()).await;
    let mut running = keeper.drive(Recorder::default());
    assert_eq!(next(&mut running).await, CONNECTED);
    let too_long = set("/a", vec![0; 2_000_000]);
    running.call(Call::Ask(vec![set("/a", Vec::new()), too_long, get("/a", true)]));
    next(&mut running).await;
    let request = side.asked(OpCode::SetData).await;
    side.answer(request.xid, 1, 0, |w| SetDataResponse { stat: Stat::default() }.encode(w)).await;
    let answer = Ok(Response::Stat(Stat::default()));
    assert_eq!(next(&mut running).await, Input::Answered { ask: Ask(1), answer });
    assert_eq!(next(&mut running).await, failed(2, Failure::NotSent), "in its turn");
    side.asked(OpCode::GetData).await;
    drop(side);
    assert_eq!(next(&mut running).await, failed(3, Failure::Unknown));
    assert_eq!(next(&mut running).await, Input::Suspended);
    let call = Call::Ask(vec![get("/a", false)]);
    running.call(call.clone());
    assert_eq!(next(&mut running).await, Input::Call(call));
    assert_eq!(next(&mut running).await, failed(4, Failure::NotSent), "at once, without a connection");
    let mut side = fake.serve().await;
    assert_eq!(next(&mut running).await, CONNECTED);
    running.call(Call::Ask(vec![get("/b", false)]));
    next(&mut running).await;
    let request = side.asked(OpCode::GetData).await;
    assert_eq!(request.xid, 1, "nothing was repeated, and no watch was left again");
}

#[tokio::test]
async fn behind_a_reconnect_no_event_of_a_recipe_is_missing() {
    let fake = Fake::bind().await;
    let (keeper, mut side) = fake.keeper(KeeperOptions::default()).await;
    let mut running = keeper.drive(Recorder::default());
    next(&mut running).await;
    running.call(Call::Ask(vec![get("/a", true)]));
    next(&mut running).await;
    let request = side.asked(OpCode::GetData).await;
    side.answer(request.xid, 5, 0, |w| data("a").encode(w)).await;
    next(&mut running).await;
    drop(side);
    let mut side = fake.serve().await;
    let again = side.asked(OpCode::SetWatches).await;
    let watches = SetWatches::decode(&mut Reader::new(again.body)).expect("watches");
    assert_eq!(watches.data_watches, ["/a"]);
    side.event(EventType::NodeDeleted, "/a").await;
    assert_eq!(next(&mut running).await, Input::Suspended);
    assert_eq!(next(&mut running).await, CONNECTED);
    let event = Event { kind: EventType::NodeDeleted, path: "/a".into() };
    assert_eq!(next(&mut running).await, Input::Event(event));
}

#[tokio::test]
async fn a_lost_session_is_told_and_the_next_one_too() {
    let fake = Fake::bind().await;
    let (keeper, side) = fake.keeper(KeeperOptions::default()).await;
    let mut running = keeper.drive(Recorder::default());
    next(&mut running).await;
    drop(side);
    in_time(fake.accept()).await.welcome(0).await;
    assert_eq!(next(&mut running).await, Input::Suspended);
    let (now, lost) = in_time(running.next()).await.expect("not over");
    assert_eq!((lost, now.certain_until), (Input::Lost, None));
    let _side = fake.serve().await;
    assert_eq!(next(&mut running).await, CONNECTED);
    // A session that nobody can end at the server is over for its recipes as well.
    drop(_side);
    assert_eq!(next(&mut running).await, Input::Suspended);
    keeper.close().await.expect_err("there is no connection");
    assert_eq!(next(&mut running).await, Input::Lost);
    assert_eq!(in_time(running.next()).await, None);
    assert_eq!(in_time(keeper.drive(Recorder::default()).next()).await, None);
}

#[tokio::test]
async fn a_recipe_is_woken_and_kept_certain_as_it_wants() {
    let fake = Fake::bind().await;
    let (keeper, mut side) = fake.keeper(KeeperOptions::default()).await;
    let mut running = keeper.drive(Recorder::default());
    next(&mut running).await;
    let wait = Duration::from_millis(20);
    running.call(Call::WakeIn(wait));
    let (called, _) = in_time(running.next()).await.expect("not over");
    let (woken, input) = in_time(running.next()).await.expect("not over");
    assert_eq!(input, Input::Time);
    assert!(woken.at >= called.at + wait);
    running.call(Call::Certainty(true));
    next(&mut running).await;
    let beat = side.asked(OpCode::Multi).await;
    let results = vec![MultiResult::Check];
    side.answer(beat.xid, 1, 0, |w| MultiResponse { results }.encode(w)).await;
    in_time(async {
        while keeper.certain_until().map(tokio::time::Instant::from_std)
            <= woken.certain_until.map(|until| tokio::time::Instant::from_std(keeper.instant(until)))
        {
            tokio::task::yield_now().await;
        }
    })
    .await;
    running.call(Call::Certainty(false));
    let (later, _) = in_time(running.next()).await.expect("not over");
    assert!(later.certain_until > woken.certain_until);
}

#[tokio::test]
async fn a_handle_that_is_dropped_makes_the_recipe_leave_and_keeps_the_session_until_it_has() {
    let fake = Fake::bind().await;
    let (keeper, mut side) = fake.keeper(KeeperOptions::default()).await;
    let running = keeper.drive(Recorder::default());
    drop(running);
    drop(keeper);
    let request = side.asked(OpCode::Delete).await;
    side.answer(request.xid, 1, ErrorCode::NoNode.code(), |_| ()).await;
    side.ended().await;
}

#[tokio::test]
async fn a_recipe_below_a_chroot_does_not_see_it() {
    let fake = Fake::bind().await;
    let servers = format!("{}/app", fake.addr);
    let keeper = node_client::Keeper::start(servers, KeeperOptions::default()).expect("a list");
    let mut side = fake.serve().await;
    connected(&keeper).await;
    let mut running = keeper.drive(Recorder::default());
    next(&mut running).await;
    let mode = node_client::CreateMode::Ephemeral;
    let create = Request::Create { path: "/a".into(), data: "".into(), acl: Vec::new(), mode };
    running.call(Call::Ask(vec![create]));
    let request = side.asked(OpCode::Create2).await;
    let create = CreateRequest::decode(&mut Reader::new(request.body)).expect("a create");
    assert_eq!(create.path, "/app/a");
    running.call(Call::Ask(vec![get("no path", false)]));
    drop(side);
    state(&keeper, |state| matches!(state, State::Suspended { .. })).await;
    let mut inputs = Vec::new();
    while inputs.last() != Some(&Input::Suspended) {
        inputs.push(next(&mut running).await);
    }
    inputs.retain(|input| matches!(input, Input::Answered { .. }));
    assert_eq!(inputs, [failed(1, Failure::Unknown), failed(2, Failure::NotSent)]);
}

#[tokio::test]
async fn a_session_that_moves_has_its_open_requests_answered_before_the_suspension() {
    let (one, other) = (Fake::bind().await, Fake::bind().await);
    let (keeper, mut side) = one.keeper(KeeperOptions::default()).await;
    let mut running = keeper.drive(Recorder::default());
    next(&mut running).await;
    running.call(Call::Ask(vec![get("/a", false), get("/b", false)]));
    next(&mut running).await;
    side.asked(OpCode::GetData).await;
    side.asked(OpCode::GetData).await;
    keeper.servers(other.addr).expect("a list");
    for ask in [1, 2] {
        assert_eq!(next(&mut running).await, failed(ask, Failure::Unknown));
    }
    assert_eq!(next(&mut running).await, Input::Suspended);
    side.ended().await;
    let _side = other.serve().await;
    assert_eq!(next(&mut running).await, CONNECTED);
}
