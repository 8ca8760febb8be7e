//! An application over this project's recipes: it stands in line, holds, writes by its token, and gives up.
//!
//! Before each guarded write it looks at its own clock: it writes only while it is certain that nobody else
//! holds. The certainty must be that of the session by which it was elected. A session that took its place
//! says nothing of the old term, so the number of the session is compared after the look.
//!
//! Where it works on queues it puts, claims and acknowledges instead: `queue`. At barriers it enters and
//! leaves: `barrier`.

mod barrier;
mod noting;
mod queue;
mod unclaimed;

use std::time::{Duration, Instant};

use checker::history::{EventKind, Function, Value};
use node_client::{ErrorCode, Keeper, KeeperOptions, Request, Running, ServerList};
use node_recipes::election::{self, Election, Status};
use node_recipes::line::{Ticket, Token};
use node_recipes::names::{Guid, Intent, Layout};
use node_recipes::rules::Rules;
use node_recipes::standby::{self, ActiveStandby, Told};
use node_wire::ids::SessionId;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::time::{timeout, timeout_at};
use workloads::barrier::PARTIES;
use workloads::op::Object;
use workloads::{Applications, STALE_TOKEN};
use zookeeper_mapping::path;

use barrier::Visit;
use noting::{Notes, Noting, Watcher};
use queue::Queues;

use harness_systems::application::{
    Answered, Asked, Guarded, Hello, Judged, Program, monotonic_ns, monotonic_of,
};
use harness_systems::mutant::ClientMutant;

/// How long an application that ends may take to give up all that it holds.
const LEAVE_PATIENCE: Duration = Duration::from_secs(2);
/// How long whoever gives up what did not come in time may take for it.
const WITHDRAWAL: Duration = Duration::from_secs(1);

/// The rules of its recipe: sound, or without one of them.
#[derive(Clone, Copy, Debug)]
struct Conduct(Option<ClientMutant>);

impl Rules for Conduct {
    fn ends_with_certainty(&self) -> bool {
        self.0 != Some(ClientMutant::CarelessHolder)
    }

    fn watches_one_ahead(&self) -> bool {
        self.0 != Some(ClientMutant::Herd)
    }
}

/// A term.
#[derive(Clone, Copy, Debug)]
struct Term {
    token: i64,
    session: SessionId,
}

/// What is heard of a recipe, whichever it is.
enum News {
    /// It holds, by this token.
    Holds(Token),
    /// Whoever held before must be shut out of the store first.
    Fence(Token),
    /// It does not hold any more.
    HoldsNoMore,
    /// Nothing follows.
    Over,
    /// Anything else.
    Other,
}

/// A recipe at work.
enum Recipe {
    Line(Running<Noting<Election<Conduct>>>),
    Standby(Running<Noting<ActiveStandby<Conduct>>>),
}

impl Recipe {
    /// What it tells next. Nothing is lost when the wait is given up.
    async fn next(&mut self) -> News {
        match self {
            Self::Line(running) => match running.next().await {
                Some(Status::Standing(_) | Status::Waiting(_)) => News::Other,
                Some(Status::Elected(place)) => News::Holds(place.token),
                Some(Status::TermOver(_)) => News::HoldsNoMore,
                Some(Status::Over(_)) | None => News::Over,
            },
            Self::Standby(running) => match running.next().await {
                Some(Told::Fence { token, .. }) => News::Fence(token),
                Some(Told::BecomeActive(token)) => {
                    running.call(standby::Call::BecameActive { token, ok: true });
                    News::Holds(token)
                }
                Some(Told::StandDown { .. }) => News::HoldsNoMore,
                Some(Told::Resumed(_) | Told::Standby { .. } | Told::Neutral) => News::Other,
                Some(Told::Over(_)) | None => News::Over,
            },
        }
    }

    /// Whoever held before is shut out, or may not be.
    fn has_fenced(&self, token: Token, ok: bool) {
        if let Self::Standby(running) = self {
            running.call(standby::Call::Fenced { token, ok });
        }
    }

    /// Gives up what it holds, or its place.
    fn resign(&self) {
        match self {
            Self::Line(running) => running.call(election::Call::Resign),
            Self::Standby(running) => running.call(standby::Call::Quit { need_fence: false }),
        }
    }
}

/// A place in a line, or beside the active one.
struct Candidacy {
    key: u64,
    recipe: Recipe,
    term: Option<Term>,
    is_over: bool,
}

/// What came of something that was asked, and why not.
type Outcome = Result<Answer, (EventKind, String)>;

struct Answer {
    value: Value,
    judged: Option<Judged>,
}

fn told(value: Value) -> Outcome {
    Ok(Answer { value, judged: None })
}

fn refused(why: &str) -> Outcome {
    Err((EventKind::Fail, why.to_owned()))
}

fn in_doubt(why: &str) -> Outcome {
    Err((EventKind::Info, why.to_owned()))
}

/// Something was given up that did not come in time: it certainly has no effect when this is over, or nobody
/// knows.
async fn given_up(over: impl Future<Output = ()>, why: &str) -> Outcome {
    match timeout(WITHDRAWAL, over).await {
        Ok(()) => refused(why),
        Err(_) => in_doubt(why),
    }
}

/// Makes a znode. True when it is there, whoever made it.
async fn make(keeper: &Keeper, request: Request, deadline: Instant) -> bool {
    match timeout_at(deadline.into(), keeper.call(request)).await {
        Ok(Ok(_)) => true,
        Ok(Err(error)) => error.refusal() == Some(ErrorCode::NodeExists),
        Err(_) => false,
    }
}

/// The application.
struct Application {
    program: Program,
    keeper: Keeper,
    candidacy: Option<Candidacy>,
    queues: Queues,
    visit: Option<Visit>,
    store: Option<BufReader<TcpStream>>,
    notes: Notes,
}

/// Answers until the input ends, then gives up what it holds.
///
/// # Errors
/// When nothing can be read or written any more, or the members can't be named.
pub async fn run(
    program: Program,
    input: impl AsyncRead + Unpin,
    mut output: impl AsyncWrite + Unpin,
) -> anyhow::Result<()> {
    let options = KeeperOptions { timeout: program.session_timeout, ..KeeperOptions::default() };
    let servers = ServerList::new(program.members.iter().map(ToString::to_string))?;
    let keeper = Keeper::start(servers, options)?;
    let queues = Queues::new(program.mutant == Some(ClientMutant::UnclaimedElements));
    let mut application = Application {
        program,
        keeper,
        candidacy: None,
        queues,
        visit: None,
        store: None,
        notes: Notes::default(),
    };
    say(&mut output, &Hello::of(application.program.holds)).await?;
    let mut lines = BufReader::new(input).lines();
    while let Some(asked) = application.next_asked(&mut lines).await? {
        let answered = application.answer(&asked).await;
        say(&mut output, &answered).await?;
    }
    application.leave().await;
    Ok(())
}

async fn say(output: &mut (impl AsyncWrite + Unpin), what: &impl serde::Serialize) -> anyhow::Result<()> {
    let mut line = serde_json::to_vec(what)?;
    line.push(b'\n');
    output.write_all(&line).await?;
    output.flush().await?;
    Ok(())
}

fn session_of(keeper: &Keeper) -> Option<SessionId> {
    keeper.credentials().map(|credentials| credentials.id)
}

impl Application {
    fn session(&self) -> Option<SessionId> {
        session_of(&self.keeper)
    }

    /// What is asked next; none when nothing will be. News of the line is heard meanwhile.
    async fn next_asked<R: AsyncRead + Unpin>(
        &mut self,
        lines: &mut Lines<BufReader<R>>,
    ) -> anyhow::Result<Option<Asked>> {
        loop {
            let hears = self.candidacy.as_mut().filter(|candidacy| !candidacy.is_over);
            let news = async {
                match hears {
                    Some(candidacy) => candidacy.recipe.next().await,
                    None => std::future::pending().await,
                }
            };
            let news = tokio::select! {
                line = lines.next_line() => return match line? {
                    Some(line) => Ok(Some(serde_json::from_str(&line)?)),
                    None => Ok(None),
                },
                news = news => news,
            };
            self.hear(news).await;
        }
    }

    /// Takes a piece of news.
    async fn hear(&mut self, news: News) {
        let session = self.session();
        if let News::Fence(token) = news {
            let ok = self.fence(token).await;
            if let Some(candidacy) = &self.candidacy {
                candidacy.recipe.has_fenced(token, ok);
            }
        }
        let Some(candidacy) = &mut self.candidacy else { return };
        match news {
            News::Holds(token) => {
                let token = number(token);
                candidacy.term = session.map(|session| Term { token, session });
            }
            News::HoldsNoMore => candidacy.term = None,
            News::Over => (candidacy.term, candidacy.is_over) = (None, true),
            News::Fence(_) | News::Other => {}
        }
    }

    /// Shows the store a token, so that it takes no smaller one any more.
    async fn fence(&mut self, token: Token) -> bool {
        let Some(key) = self.candidacy.as_ref().map(|candidacy| candidacy.key) else { return false };
        let shown = self.ask_store(Guarded { key, token: number(token), value: None }).await;
        shown.is_ok_and(|judged| judged.admitted)
    }

    async fn answer(&mut self, asked: &Asked) -> Answered {
        let deadline = Instant::now() + Duration::from_millis(asked.timeout_ms);
        // What is asked of a leader that is cut off may be answered elsewhere, when the session has moved.
        let member = self.member();
        let outcome = match (asked.f, &asked.value) {
            (Function::ACQUIRE, Value::Null) => self.acquire(asked.key, deadline).await,
            (Function::STORE, &Value::Pair(Some(token), value)) => self.write(asked.key, token, value).await,
            (Function::RELEASE, &Value::One(token)) => self.release(asked.key, token, deadline).await,
            (Function::ENQUEUE, &Value::One(element)) => {
                self.queues.enqueue(&self.keeper, (asked.key, element), deadline).await
            }
            (Function::DEQUEUE, Value::Null) => self.queues.dequeue(&self.keeper, asked.key, deadline).await,
            (Function::ACKNOWLEDGE, &Value::One(element)) => {
                self.queues.acknowledge(&self.keeper, (asked.key, element), deadline).await
            }
            (Function::ENTER, &Value::One(round)) => {
                let (entered, visit) =
                    barrier::enter(&self.keeper, (asked.key, round), self.parties(), deadline).await;
                self.visit = visit;
                entered
            }
            (Function::LEAVE, &Value::One(round)) => {
                barrier::leave(&self.keeper, self.visit.take(), (asked.key, round), deadline).await
            }
            _ => refused("not-understood"),
        };
        let answered = match outcome {
            Ok(Answer { value, judged }) => Answered { judged, ..Answered::of(asked, EventKind::Ok, value) },
            Err((kind, why)) => {
                Answered { error: Some(why), ..Answered::of(asked, kind, asked.value.clone()) }
            }
        };
        let session = self.session().map(|session| session.to_string());
        Answered { member, session, notices: self.notes.take(), ..answered }
    }

    /// How many enter a barrier together, as it believes.
    fn parties(&self) -> usize {
        let is_early = self.program.mutant == Some(ClientMutant::EarlyEntry);
        PARTIES - usize::from(is_early)
    }

    fn is_careless(&self) -> bool {
        self.program.mutant == Some(ClientMutant::CarelessHolder)
    }

    fn member(&self) -> Option<usize> {
        let server = self.keeper.server();
        self.program.members.iter().position(|member| member.to_string() == *server)
    }

    fn stand(&mut self, key: u64) {
        let conduct = Conduct(self.program.mutant);
        let line_of = path(Object::LOCK, key);
        let watcher = |own| Watcher { key, line: line_of.clone(), own, notes: self.notes.clone() };
        let line = |intent, again| {
            let guid = Guid(rand::random());
            let ticket = Ticket {
                resource: line_of.as_str().into(),
                layout: Layout::Own,
                intent,
                guid,
                data: bytes::Bytes::new(),
                places: 1,
            };
            let options = election::Options { again, ..election::Options::default() };
            let contender = Election::with_rules(ticket, options, conduct);
            let watcher = watcher(Some(Layout::Own.prefix(intent, guid)));
            let leaves = |call: &election::Call| *call == election::Call::Resign;
            Recipe::Line(self.keeper.drive(Noting::new(contender, watcher, leaves)))
        };
        let recipe = match self.program.holds {
            Applications::Lock | Applications::Queue | Applications::Barrier => line(Intent::Write, false),
            Applications::Election => line(Intent::Lead, true),
            Applications::Standby => {
                let data = format!("application {}", std::process::id());
                let options = standby::Options::default();
                let standby = ActiveStandby::with_rules(line_of.as_str(), data, options, conduct);
                let leaves = |call: &standby::Call| matches!(call, standby::Call::Quit { .. });
                Recipe::Standby(self.keeper.drive(Noting::new(standby, watcher(None), leaves)))
            }
        };
        self.candidacy = Some(Candidacy { key, recipe, term: None, is_over: false });
    }

    /// Stands in line until it holds, or for too long.
    async fn acquire(&mut self, key: u64, deadline: Instant) -> Outcome {
        // Whoever stood for something else leaves that line.
        if self.candidacy.as_ref().is_none_or(|candidacy| candidacy.is_over || candidacy.key != key) {
            self.stand(key);
        }
        loop {
            self.catch_up().await;
            if let Some((term, since, until)) = self.certain_term() {
                let told = [term.token, moment(since), moment(until)];
                return self::told(Value::List(told.into()));
            }
            let Some(candidacy) = &mut self.candidacy else { return refused("left") };
            if candidacy.is_over {
                self.candidacy = None;
                return refused("left");
            }
            match timeout_at(deadline.into(), candidacy.recipe.next()).await {
                Ok(news) => self.hear(news).await,
                Err(_) => {
                    if self.program.holds == Applications::Lock {
                        // Dropped, it leaves the line by itself.
                        self.candidacy = None;
                    }
                    return refused("not-in-time");
                }
            }
        }
    }

    /// The term, with the moment of a look at it and that until which it is certain. A careless holder does
    /// not look: it takes its term for certain as long as it heard nothing else.
    fn certain_term(&self) -> Option<(Term, u64, u64)> {
        let term = self.candidacy.as_ref()?.term?;
        let now = monotonic_ns();
        let until = self.keeper.certain_until().map(monotonic_of);
        if self.is_careless() {
            return Some((term, now, until.unwrap_or(now)));
        }
        // Asked behind the look: one that is the same now was so then.
        let is_same = self.session() == Some(term.session);
        until.filter(|until| is_same && now < *until).map(|until| (term, now, until))
    }

    /// Hears what is there to be heard. Whoever drives the recipe goes first: a session that is over and
    /// another one in its place are known here before the recipe has said that the term is over.
    async fn catch_up(&mut self) {
        tokio::task::yield_now().await;
        while let Some(candidacy) = self.candidacy.as_mut().filter(|candidacy| !candidacy.is_over)
            && let Some(news) = now_or_never(candidacy.recipe.next())
        {
            self.hear(news).await;
        }
    }

    async fn write(&mut self, key: u64, token: i64, value: i64) -> Outcome {
        if !self.is_careless() {
            self.catch_up().await;
        }
        let holds =
            |known: &Candidacy| known.key == key && known.term.is_some_and(|term| term.token == token);
        if !self.candidacy.as_ref().is_some_and(holds) {
            return refused("not-holder");
        }
        let Some((_, looked, until)) = self.certain_term() else { return refused("uncertain") };
        match self.ask_store(Guarded { key, token, value: Some(value) }).await {
            Ok(judged) if judged.admitted => {
                let told = [token, value, moment(looked), moment(until)];
                Ok(Answer { value: Value::List(told.into()), judged: Some(judged) })
            }
            Ok(_) => refused(STALE_TOKEN),
            Err(error) => Err((EventKind::Info, format!("store: {error}"))),
        }
    }

    async fn ask_store(&mut self, write: Guarded) -> anyhow::Result<Judged> {
        let mut stream = match self.store.take() {
            Some(stream) => stream,
            None => BufReader::new(TcpStream::connect(self.program.store).await?),
        };
        say(&mut stream, &write).await?;
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        let judged = serde_json::from_str(&line)?;
        self.store = Some(stream);
        Ok(judged)
    }

    /// Gives up what it holds. Done when nothing of it is left.
    async fn release(&mut self, key: u64, token: i64, deadline: Instant) -> Outcome {
        let holds =
            |known: &Candidacy| known.key == key && known.term.is_some_and(|term| term.token == token);
        let Some(mut candidacy) = self.candidacy.take_if(|known| holds(known)) else {
            return refused("not-holder");
        };
        candidacy.recipe.resign();
        loop {
            match timeout_at(deadline.into(), candidacy.recipe.next()).await {
                Ok(News::Over) => return told(Value::One(token)),
                Ok(_) => {}
                // What is in doubt is settled by the recipe, or ends with the session.
                Err(_) => return in_doubt("not-in-time"),
            }
        }
    }

    /// Leaves nothing behind, as far as that can be had soon.
    async fn leave(mut self) {
        let leaving = async {
            if let Some(mut candidacy) = self.candidacy.take().filter(|candidacy| !candidacy.is_over) {
                candidacy.recipe.resign();
                while !matches!(candidacy.recipe.next().await, News::Over) {}
            }
            barrier::abandon(&self.keeper, self.visit.take()).await;
            self.queues.leave().await;
            let _ = self.keeper.close().await;
        };
        let _ = timeout(LEAVE_PATIENCE, leaving).await;
    }
}

/// A token as lines have it.
fn number(token: Token) -> i64 {
    i64::try_from(token.0).unwrap_or(i64::MAX)
}

/// A moment as lines have it.
fn moment(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}

/// What a future gives at once.
fn now_or_never<T>(future: impl Future<Output = T>) -> Option<T> {
    let mut future = std::pin::pin!(future);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match future.as_mut().poll(&mut context) {
        std::task::Poll::Ready(value) => Some(value),
        std::task::Poll::Pending => None,
    }
}
