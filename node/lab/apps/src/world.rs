//! Some applications and an ensemble, and all that can happen next.

use std::hash::{DefaultHasher, Hash, Hasher};

use node_recipes::line::Token;
use node_recipes::recipe::Recipe;
use node_session::{Moment, Request};
use node_wire::client::EventType;
use node_wire::ids::SessionId;

use crate::application::{Application, Message};
use crate::ensemble::{Ensemble, Fired};

/// One step of time.
pub const TICK: Moment = Moment::from_millis(1000);

/// The time-out of sessions.
pub const TIMEOUT: Moment = Moment::from_millis(2000);

/// What a recipe tells, as far as a world must understand it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report {
    /// It holds from now on what only one may hold.
    Began(Token),
    /// It does not hold it any more.
    Ended,
    /// It makes sure that this application does nothing any more, before it holds.
    Fences(usize),
    /// Something else.
    Other,
}

/// A recipe that a world can look into.
pub trait Subject: Recipe + Clone + Hash {
    /// Whether each that stands has one znode below the resource at the end, and nobody else any.
    const ONE_ZNODE_EACH: bool;

    /// Whether one is told that a holder is gone, and not all.
    const TELLS_ONE: bool;

    /// Whether whoever may still take itself for the holder is fenced before another one holds.
    const FENCES: bool;

    /// What it means that it tells this.
    fn report(told: &Self::Told) -> Report;

    /// True if it may act as the one that holds, by what it knows at this moment.
    fn may_act(&self, at: Moment) -> bool;

    /// True if it still wants to hold.
    fn stands(&self) -> bool;

    /// How the application answers what it is told, at once.
    fn reply(told: &Self::Told) -> Option<Self::Call>;
}

/// What goes wrong, how often at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Budget {
    /// Connections that break.
    pub breaks: u8,
    /// Applications that are stopped for a while.
    pub stops: u8,
    /// Applications that leave.
    pub leaves: u8,
    /// Znodes of applications that somebody deletes.
    pub deletions: u8,
    /// Times that the resource is deleted with all that is below, and made again.
    pub removals: u8,
    /// Steps of time.
    pub ticks: u8,
}

impl Budget {
    /// True when nothing more can go wrong. Time may still pass.
    #[must_use]
    pub fn is_spent(&self) -> bool {
        let Self { breaks, stops, leaves, deletions, removals, ticks: _ } = self;
        [breaks, stops, leaves, deletions, removals].into_iter().all(|left| *left == 0)
    }
}

/// Something that can happen. The number is the application's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// It is connected, with its session or a new one; or told that its session is over.
    Connect(usize),
    /// Its first request is served.
    Serve(usize),
    /// The first request of its earlier connection is served.
    ServeLate(usize),
    /// It hears the first message.
    Hear(usize),
    /// It looks at the clock.
    Wake(usize),
    /// Its connection breaks. What was not served may be served later, or is lost.
    Break(usize, bool),
    /// Its first request is served, and its connection breaks before it hears the answer.
    ServeUnheard(usize),
    /// It is stopped.
    Stop(usize),
    /// It goes on.
    Continue(usize),
    /// It leaves.
    Leave(usize),
    /// Somebody deletes the first ephemeral znode below the resource.
    Delete,
    /// Somebody deletes the resource with all below it, and makes it again.
    Remove,
    /// Its session ends, because the ensemble did not hear of it.
    Expire(usize),
    /// Time passes.
    Tick,
}

/// Why an event happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// Something goes on as it should.
    Course,
    /// Time passes, or something comes back in time.
    Time,
    /// Something goes wrong.
    Fault,
}

impl Event {
    /// Why it happens.
    #[must_use]
    pub fn cause(&self) -> Cause {
        match self {
            Self::Break(..)
            | Self::ServeUnheard(_)
            | Self::Stop(_)
            | Self::Leave(_)
            | Self::Delete
            | Self::Remove => Cause::Fault,
            Self::Connect(_) | Self::Continue(_) | Self::Tick => Cause::Time,
            Self::Serve(_) | Self::ServeLate(_) | Self::Hear(_) | Self::Wake(_) | Self::Expire(_) => {
                Cause::Course
            }
        }
    }
}

/// A rule that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Which.
    pub rule: &'static str,
    /// What was seen.
    pub seen: String,
}

/// All of it.
#[derive(Clone)]
pub struct World<S> {
    pub(crate) ensemble: Ensemble,
    pub(crate) apps: Vec<Application<S>>,
    pub(crate) at: Moment,
    pub(crate) budget: Budget,
    pub(crate) resource: &'static str,
    /// At most so many may act at a time.
    places: usize,
    highest: Token,
    broken: Option<Broken>,
    /// Somebody deleted a znode of theirs, at this zxid: they may act until they hear of it.
    robbed: Vec<Option<u64>>,
    /// They take themselves for the holder, and nobody fenced them.
    unfenced: Vec<bool>,
    /// Whether applications that run hear everything at once.
    prompt: bool,
    tick: Moment,
}

impl<S: Subject> World<S> {
    /// Applications of these recipes at a resource that is there.
    #[must_use]
    pub fn new(recipes: Vec<S>, resource: &'static str, places: usize, budget: Budget) -> Self {
        let mut ensemble = Ensemble::new(TIMEOUT);
        let mode = node_session::CreateMode::Persistent;
        let _ = ensemble.serve(SessionId::NONE, &crate::ensemble::make(resource, mode), Moment::ZERO);
        Self {
            ensemble,
            robbed: vec![None; recipes.len()],
            unfenced: vec![false; recipes.len()],
            apps: recipes.into_iter().map(|recipe| Application::new(recipe, TIMEOUT)).collect(),
            at: Moment::ZERO,
            budget,
            resource,
            places,
            highest: Token(0),
            broken: None,
            prompt: false,
            tick: TICK,
        }
    }

    /// The same, but applications that run hear at once what they are sent, and time passes a whole time-out
    /// at a time. That leaves fewer orders, so that more applications can be explored.
    #[must_use]
    pub fn prompt(self) -> Self {
        Self { prompt: true, tick: TIMEOUT, ..self }
    }

    /// The first rule that was broken.
    #[must_use]
    pub fn broken(&self) -> Option<&Broken> {
        self.broken.as_ref()
    }

    /// A number that two states share if nothing tells them apart.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        let mut state = DefaultHasher::new();
        (&self.ensemble, self.at, self.budget, self.highest, &self.robbed, &self.unfenced).hash(&mut state);
        for app in &self.apps {
            app.recipe.hash(&mut state);
            app.outside().hash(&mut state);
        }
        state.finish()
    }

    /// Who is where, a line each.
    #[must_use]
    pub fn describe(&self) -> String
    where
        S: std::fmt::Debug,
    {
        let lines = self.apps.iter().enumerate().map(|(number, app)| {
            let link = app
                .link
                .as_ref()
                .map(|link| (link.requests.len(), link.served.len(), link.messages.len(), link.dead));
            let (session, late, stopped) = (app.session, app.late.len(), app.stopped);
            format!("  {number}: {session:?} {link:?} late {late} stopped {stopped} {:?}\n", app.recipe)
        });
        let below = self.ensemble.children(self.resource);
        format!("{}  at {:?}: {below:?}, broken: {:?}\n", lines.collect::<String>(), self.at, self.broken)
    }

    /// All that can happen next.
    #[must_use]
    pub fn events(&self) -> Vec<Event> {
        let mut events = Vec::new();
        for (number, app) in self.apps.iter().enumerate() {
            self.events_of(number, app, &mut events);
        }
        let Budget { deletions, removals, ticks, .. } = self.budget;
        let below = !self.ensemble.children(self.resource).is_empty();
        if deletions > 0 && below {
            events.push(Event::Delete);
        }
        if removals > 0 && below {
            events.push(Event::Remove);
        }
        if ticks > 0 {
            events.push(Event::Tick);
        }
        events
    }

    fn events_of(&self, number: usize, app: &Application<S>, events: &mut Vec<Event>) {
        if !app.late.is_empty() && app.session.is_some_and(|session| self.ensemble.lives(session)) {
            events.push(Event::ServeLate(number));
        }
        if app.session.is_some_and(|session| self.ensemble.overdue(self.at).contains(&session)) {
            events.push(Event::Expire(number));
        }
        if app.stopped {
            // What it sent before is served all the same.
            if app.link.as_ref().is_some_and(|link| !link.requests.is_empty() && !link.dead) {
                events.push(Event::Serve(number));
            }
            events.push(Event::Continue(number));
            return;
        }
        let Budget { breaks, stops, leaves, .. } = self.budget;
        match &app.link {
            None if app.session.is_some() || !app.recipe.is_over() => events.push(Event::Connect(number)),
            None => {}
            Some(link) => {
                if !link.requests.is_empty() && !link.dead {
                    events.push(Event::Serve(number));
                }
                if !link.messages.is_empty() {
                    events.push(Event::Hear(number));
                }
                if self.prompt && breaks > 0 && !link.requests.is_empty() && !link.dead {
                    events.push(Event::ServeUnheard(number));
                }
                if link.dead {
                    events.push(Event::Break(number, false));
                } else if breaks > 0 {
                    events.push(Event::Break(number, false));
                    if !link.requests.is_empty() {
                        events.push(Event::Break(number, true));
                    }
                }
            }
        }
        if app.recipe.wakes_at().is_some_and(|due| due <= self.at) {
            events.push(Event::Wake(number));
        }
        if stops > 0 {
            events.push(Event::Stop(number));
        }
        if leaves > 0 && app.recipe.stands() {
            events.push(Event::Leave(number));
        }
    }

    /// Lets one thing happen, and looks at the rules.
    pub fn apply(&mut self, event: Event) {
        let mut told = Vec::new();
        let at = self.at;
        match event {
            Event::Connect(number) => self.connect(number, &mut told),
            Event::Serve(number) => self.serve(number),
            Event::ServeLate(number) => self.serve_late(number),
            Event::Hear(number) => self.apps[number].hear(at, &mut told),
            Event::Wake(number) => self.apps[number].wake(at, &mut told),
            Event::Break(number, late) => self.cut(number, late, &mut told),
            Event::ServeUnheard(number) => {
                self.serve(number);
                self.cut(number, false, &mut told);
            }
            Event::Stop(number) => {
                self.budget.stops = self.budget.stops.saturating_sub(1);
                self.apps[number].stopped = true;
            }
            Event::Continue(number) => {
                self.apps[number].stopped = false;
                self.apps[number].wake(at, &mut told);
            }
            Event::Leave(number) => {
                self.budget.leaves = self.budget.leaves.saturating_sub(1);
                self.apps[number].call(at, S::leave(), &mut told);
            }
            Event::Delete => self.delete(),
            Event::Remove => self.remove(),
            Event::Expire(number) => self.expire(number),
            Event::Tick => self.tick(),
        }
        if let Event::Connect(number)
        | Event::Hear(number)
        | Event::Wake(number)
        | Event::Break(number, _)
        | Event::ServeUnheard(number)
        | Event::Continue(number)
        | Event::Leave(number) = event
        {
            self.heed(number, told);
        }
        if self.prompt {
            self.hear_all();
        }
        self.look();
    }

    fn hear_all(&mut self) {
        for number in 0..self.apps.len() {
            let waits = |app: &Application<S>| {
                !app.stopped && app.link.as_ref().is_some_and(|link| !link.messages.is_empty())
            };
            while waits(&self.apps[number]) {
                let (at, mut told) = (self.at, Vec::new());
                self.apps[number].hear(at, &mut told);
                self.heed(number, told);
            }
        }
    }

    fn cut(&mut self, number: usize, late: bool, told: &mut Vec<S::Told>) {
        if !self.apps[number].link.as_ref().is_some_and(|link| link.dead) {
            self.budget.breaks = self.budget.breaks.saturating_sub(1);
        }
        if let Some(session) = self.apps[number].session {
            self.ensemble.disconnect(session);
        }
        self.apps[number].broken(self.at, late, told);
    }

    fn connect(&mut self, number: usize, told: &mut Vec<S::Told>) {
        let at = self.at;
        match self.apps[number].session {
            Some(session) if !self.ensemble.lives(session) => self.apps[number].lost(at, told),
            Some(session) => {
                self.ensemble.touch(session, at);
                let mut fired = Vec::new();
                for watches in self.apps[number].watches() {
                    fired.append(&mut self.ensemble.leave_again(session, &watches));
                }
                self.apps[number].connected(at, session, fired, told);
            }
            None => {
                let session = self.ensemble.open(at);
                self.apps[number].connected(at, session, Vec::new(), told);
            }
        }
    }

    fn serve(&mut self, number: usize) {
        let at = self.at;
        let app = &mut self.apps[number];
        let (Some(session), Some(link)) = (app.session, &mut app.link) else { return };
        let Some(sent) = link.requests.pop_front() else { return };
        if matches!(sent.request, Request::Sync { .. }) {
            // Behind a sync nothing comes that was asked before.
            app.late.clear();
        }
        let before = self.ensemble.children(self.resource);
        let (answer, fired) = self.ensemble.serve(session, &sent.request, at);
        self.rob_who_lost(session, &before);
        self.tell(fired);
        let seen = self.ensemble.zxid();
        if let Some(link) = &mut self.apps[number].link {
            link.served.push_back(sent);
            link.messages.push_back(Message::Answer(answer, seen));
        }
    }

    fn serve_late(&mut self, number: usize) {
        let Some(sent) = self.apps[number].late.pop_front() else { return };
        if let Some(session) = self.apps[number].session {
            let (_, fired) = self.ensemble.serve(session, &without_watch(sent.request), self.at);
            self.tell(fired);
        }
    }

    fn delete(&mut self) {
        self.budget.deletions = self.budget.deletions.saturating_sub(1);
        let mut below = self.ensemble.children(self.resource);
        // What is nobody's own is no application's to lose: a breadcrumb that is deleted fences nobody.
        below.retain(|(_, owner)| *owner != SessionId::NONE);
        // First come first, where they are numbered.
        below.sort_by_key(|(path, _)| {
            path.chars().rev().take(10).collect::<Vec<_>>().into_iter().rev().collect::<String>()
        });
        if let Some((path, owner)) = below.into_iter().next() {
            self.rob(owner);
            let request = Request::Delete { path, version: -1 };
            let (_, fired) = self.ensemble.serve(SessionId::NONE, &request, self.at);
            self.tell(fired);
        }
    }

    fn remove(&mut self) {
        self.budget.removals = self.budget.removals.saturating_sub(1);
        let below = self.ensemble.children(self.resource);
        let mut ops: Vec<_> =
            below.iter().map(|(path, _)| node_session::request::delete(path.clone(), -1)).collect();
        ops.push(node_session::request::delete(self.resource, -1));
        below.iter().for_each(|(_, owner)| self.rob(*owner));
        let again = crate::ensemble::make(self.resource, node_session::CreateMode::Persistent);
        for request in [Request::Multi(ops), again] {
            let (_, fired) = self.ensemble.serve(SessionId::NONE, &request, self.at);
            self.tell(fired);
        }
    }

    /// A request that was meant for one's own znode may meet another's of the same name, where somebody
    /// deleted the first.
    fn rob_who_lost(&mut self, session: SessionId, before: &[(bytestring::ByteString, SessionId)]) {
        let after = self.ensemble.children(self.resource);
        for gone in before.iter().filter(|znode| !after.contains(znode)) {
            if gone.1 != session && gone.1 != SessionId::NONE {
                self.rob(gone.1);
            }
        }
    }

    fn rob(&mut self, owner: SessionId) {
        let at = self.ensemble.zxid().0;
        for (app, robbed) in self.apps.iter().zip(&mut self.robbed) {
            if app.session == Some(owner) {
                *robbed = Some(at);
            }
        }
    }

    fn expire(&mut self, number: usize) {
        let Some(session) = self.apps[number].session else { return };
        let fired = self.ensemble.end(session);
        self.tell(fired);
        self.apps[number].late.clear();
        if let Some(link) = &mut self.apps[number].link {
            // Nobody answers these; the application learns it when the connection breaks.
            link.dead = true;
            let unserved = std::mem::take(&mut link.requests);
            link.served.extend(unserved);
        }
    }

    /// A member pings for those whose connection stands, and whose application runs.
    fn tick(&mut self) {
        self.budget.ticks = self.budget.ticks.saturating_sub(1);
        self.at += self.tick;
        for app in self.apps.iter().filter(|app| !app.stopped) {
            if let (Some(session), Some(link)) = (app.session, &app.link)
                && !link.dead
            {
                self.ensemble.touch(session, self.at);
            }
        }
        let at = self.at;
        for number in 0..self.apps.len() {
            if !self.apps[number].stopped {
                let mut told = Vec::new();
                self.apps[number].wake(at, &mut told);
                self.heed(number, told);
            }
        }
    }

    /// Hands events to those whose watches they are; counts those who are told that a holder is gone.
    fn tell(&mut self, fired: Vec<Fired>) {
        let resource = self.resource;
        let mut woken: Vec<SessionId> = Vec::new();
        for Fired { session, kind, path } in fired {
            let below = path.len() > resource.len() && path.starts_with(resource);
            let own = self.is_own(session, &path) || !self.has_one_that_stands(session);
            if kind == EventType::NodeDeleted && below && !own || kind == EventType::NodeChildrenChanged {
                woken.push(session);
            }
            if let Some(app) = self.apps.iter_mut().find(|app| app.session == Some(session))
                && let Some(link) = &mut app.link
            {
                link.messages.push_back(Message::Event(kind, path));
            }
        }
        woken.sort_unstable();
        woken.dedup();
        // A removal of the resource is told to all, and rightly so.
        if woken.len() > 1 && S::TELLS_ONE && self.places == 1 && self.ensemble.has(resource) {
            self.breaks("herd", format!("{} applications were told of one change", woken.len()));
        }
    }

    /// One that resigned may be told of what it watched before. That wakes nobody.
    fn has_one_that_stands(&self, session: SessionId) -> bool {
        self.apps.iter().any(|app| app.session == Some(session) && app.recipe.stands())
    }

    /// Znodes of one application are named by its guid, which begins with its number.
    fn is_own(&self, session: SessionId, path: &str) -> bool {
        let number = self.apps.iter().position(|app| app.session == Some(session));
        number.is_some_and(|number| path.contains(&format!("/{:08x}", number + 1)))
    }

    fn heed(&mut self, number: usize, told: Vec<S::Told>) {
        for told in told {
            match S::report(&told) {
                Report::Began(token) => {
                    // One whose znode was deleted may hear late that it was first.
                    self.robbed[number].take_if(|at| token.0 > *at);
                    if token <= self.highest && self.places == 1 && self.robbed[number].is_none() {
                        let highest = self.highest;
                        self.breaks("tokens grow", format!("token {token} after {highest}"));
                    }
                    self.highest = self.highest.max(token);
                    self.begins(number);
                }
                Report::Ended => {
                    self.robbed[number] = None;
                    self.unfenced[number] = false;
                }
                Report::Fences(other) => self.unfenced[other] = false,
                Report::Other => {}
            }
            if let Some(call) = S::reply(&told) {
                let mut more = Vec::new();
                let at = self.at;
                self.apps[number].call(at, call, &mut more);
                self.heed(number, more);
            }
        }
    }

    fn begins(&mut self, number: usize) {
        if self.robbed[number].is_some() {
            // It hears late of what it had. Whoever took its place fenced it before.
            return;
        }
        self.unfenced[number] = false;
        let others: Vec<usize> = (0..self.unfenced.len()).filter(|other| self.unfenced[*other]).collect();
        if S::FENCES && !others.is_empty() {
            self.breaks(
                "fenced before",
                format!("{others:?} took themselves for active, and nobody fenced them"),
            );
        }
        self.unfenced[number] = true;
    }

    fn breaks(&mut self, rule: &'static str, seen: String) {
        if self.broken.is_none() {
            self.broken = Some(Broken { rule, seen });
        }
    }

    fn look(&mut self) {
        let acting: Vec<usize> = (0..self.apps.len())
            .filter(|number| self.apps[*number].recipe.may_act(self.at) && self.robbed[*number].is_none())
            .collect();
        if acting.len() > self.places {
            self.breaks("one holds", format!("applications {acting:?} may act at once"));
        }
    }

    /// Lets everything end well: nothing more goes wrong, everybody is connected and hears all. Then as many
    /// must hold as may, and nobody's znode but of those who stand may be left.
    pub fn settle(&mut self) {
        self.budget = Budget { ticks: u8::MAX, ..Budget::default() };
        self.tick = TICK;
        for _ in 0..12 {
            self.run_dry();
            self.apply(Event::Tick);
            for session in self.ensemble.overdue(self.at) {
                if let Some(number) = self.apps.iter().position(|app| app.session == Some(session)) {
                    self.apply(Event::Expire(number));
                } else {
                    let fired = self.ensemble.end(session);
                    self.tell(fired);
                }
            }
        }
        self.run_dry();
        let holds = self.apps.iter().filter(|app| app.recipe.may_act(self.at)).count();
        let stand: Vec<_> = self.apps.iter().filter(|app| app.recipe.stands()).collect();
        let wanted = stand.len().min(self.places);
        let sessions: Vec<_> = stand.iter().filter_map(|app| app.session).collect();
        let left = self.ensemble.children(self.resource).len();
        let foreign = self.ensemble.children(self.resource).into_iter();
        let foreign =
            foreign.filter(|(_, owner)| *owner != SessionId::NONE && !sessions.contains(owner)).count();
        let standing = stand.len();
        if holds != wanted {
            self.breaks("somebody holds", format!("{holds} of {standing} that stand hold at the end"));
        }
        if foreign > 0 || S::ONE_ZNODE_EACH && left != standing {
            self.breaks("nothing is left", format!("{left} znodes, and {standing} that stand"));
        }
    }

    /// Whatever can happen without anything going wrong happens, until nothing can.
    fn run_dry(&mut self) {
        for _ in 0..10_000 {
            let next = self.events().into_iter().find(|event| {
                matches!(
                    event,
                    Event::Connect(_)
                        | Event::Serve(_)
                        | Event::Hear(_)
                        | Event::Wake(_)
                        | Event::Continue(_)
                        | Event::Break(_, false)
                )
            });
            match next {
                Some(event) => self.apply(event),
                None => return,
            }
        }
        self.breaks("an end comes", "ten thousand events without an end".to_owned());
    }
}

/// A watch of a connection that is gone is left nowhere.
fn without_watch(request: Request) -> Request {
    match request {
        Request::Exists { path, .. } => Request::Exists { path, watch: false },
        Request::GetData { path, .. } => Request::GetData { path, watch: false },
        Request::GetChildren { path, .. } => Request::GetChildren { path, watch: false },
        other => other,
    }
}
