//! Election of a leader: ZooKeeper's recipe, with terms that end in time.
//!
//! A candidate takes a place in a [line](crate::line). The first in line leads. Its *term* has a token, which
//! grows from term to term whoever leads, and a moment until which nobody else can lead: the session's
//! certainty ([`Now::certain_until`]). When that moment comes near and no newer answer has moved it, the term
//! is over, though the ensemble may still call this candidate the leader. So two terms never overlap, also
//! where a candidate is cut off, and also where it was stopped and goes on later, if it looks at the clock
//! before it acts. Who acts without looking is stopped by the token.
//!
//! A term that is over never comes back. The candidate gives its place up, and if it stands for election
//! again, then with a new znode at the end of the line. (Curator's LeaderLatch does the same when it is
//! connected again. A lead that came back with its old token could not be told from its past.)

use bytestring::ByteString;
use node_session::Moment;
use node_wire::ids::SessionId;

use crate::line::{Left, Line, News, Place, Ticket};
use crate::recipe::{Effects, Input, Now, Recipe};
use crate::rules::{Rules, Sound};

/// How a candidate behaves.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Options {
    /// Whether it stands again when its place came to nothing by the end of its session or of its certainty.
    pub again: bool,
    /// How long before the certainty ends a term is over, so that its work can be ended in time: at most half
    /// of the session's time-out as the ensemble grants it. With a longer one the candidacy is over at once
    /// ([`Left::NoticeTooLong`]).
    pub notice: Moment,
}

impl Default for Options {
    fn default() -> Self {
        Self { again: true, notice: Moment::ZERO }
    }
}

/// What a candidate may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    /// Give up the lead, or the candidacy.
    Resign,
}

/// Why a term ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TermEnd {
    /// It was not certain any more that nobody else leads. The ensemble was not reached for too long.
    Uncertain,
    /// The session was lost.
    SessionLost,
    /// Somebody deleted the candidate's znode, or the resource.
    Deleted,
    /// The candidate resigned.
    Resigned,
}

impl std::fmt::Display for TermEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Uncertain => {
                "the ensemble was not reached, or this process did not run, for nearly the session's time-out"
            }
            Self::SessionLost => "the session was lost",
            Self::Deleted => "somebody deleted its znode or the resource",
            Self::Resigned => "it was given up",
        })
    }
}

/// What a candidate is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// It has a place in the line.
    Standing(Place),
    /// It waits for the end of this one, whose path is given.
    Waiting(ByteString),
    /// It leads.
    Elected(Place),
    /// Its term is over.
    TermOver(TermEnd),
    /// The candidacy is over.
    Over(Left),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Lead {
    /// Another one leads, or nobody.
    No,
    /// First in line, but it is not certain that the session lives.
    Awaited,
    /// It leads.
    Yes,
    /// Its term is over.
    Past,
}

/// A candidate.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Election<R = Sound> {
    line: Line<R>,
    rules: R,
    options: Options,
    lead: Lead,
    /// When the lead's certainty ends, as known at the last step.
    until: Option<Moment>,
    resigned: bool,
    over: bool,
}

impl Election {
    /// Somebody who stands for election.
    #[must_use]
    pub fn new(ticket: Ticket, options: Options) -> Self {
        Self::with_rules(ticket, options, Sound)
    }
}

impl<R: Rules> Election<R> {
    /// One that decides by these rules.
    pub fn with_rules(ticket: Ticket, options: Options, rules: R) -> Self {
        let line = Line::new(ticket, rules.clone());
        Self { line, rules, options, lead: Lead::No, until: None, resigned: false, over: false }
    }

    /// The same, behaving otherwise. To be said before its first step.
    #[must_use]
    pub fn with_options(self, options: Options) -> Self {
        Self { options, ..self }
    }

    /// The candidate's znode, while it is known.
    pub fn place(&self) -> Option<&Place> {
        self.line.place()
    }

    /// True during a term.
    pub fn leads(&self) -> bool {
        self.lead == Lead::Yes
    }

    /// True once the candidate resigned.
    pub fn resigns(&self) -> bool {
        self.resigned
    }

    /// True if the candidate may act as the leader at this moment, by what it knows.
    pub fn may_act(&self, at: Moment) -> bool {
        self.leads() && (!self.rules.ends_with_certainty() || self.until.is_some_and(|until| at < until))
    }

    fn is_certain(&self, now: Now) -> bool {
        let ends = now.certain_until.map(|until| until.saturating_sub(self.options.notice));
        !self.rules.ends_with_certainty() || ends.is_some_and(|ends| now.at < ends)
    }

    fn take(&mut self, now: Now, news: Vec<News>, effects: &mut Effects<Status>) {
        for news in news {
            match news {
                News::Standing(place) => effects.tell(Status::Standing(place)),
                News::Behind(ahead) => effects.tell(Status::Waiting(ahead)),
                News::First(_) => self.lead = Lead::Awaited,
                News::Over(why) => self.line_over(now, why, effects),
            }
        }
        self.mind_certainty(now, effects);
    }

    fn line_over(&mut self, now: Now, why: Left, effects: &mut Effects<Status>) {
        let end = match why {
            Left::Resigned => TermEnd::Resigned,
            Left::SessionLost => TermEnd::SessionLost,
            Left::NoticeTooLong => TermEnd::Uncertain,
            Left::Deleted | Left::NoResource | Left::Refused(_) => TermEnd::Deleted,
        };
        if self.lead == Lead::Yes && why == Left::SessionLost && !self.rules.ends_with_the_session() {
            self.stand_again(now, effects);
            return;
        }
        self.end_term(end, effects);
        let stands_again =
            self.options.again && !self.resigned && matches!(why, Left::SessionLost | Left::Resigned);
        if stands_again {
            self.lead = Lead::No;
            self.stand_again(now, effects);
        } else {
            self.over = true;
            effects.tell(Status::Over(why));
        }
    }

    fn stand_again(&mut self, now: Now, effects: &mut Effects<Status>) {
        self.line = self.line.another();
        let news = self.line.proceed(effects);
        self.take(now, news, effects);
    }

    /// A session is served, perhaps with another time-out than the one before.
    fn connected(&mut self, now: Now, session: SessionId, effects: &mut Effects<Status>) -> Vec<News> {
        let mut news = Vec::new();
        if !now.grants(self.options.notice) {
            self.end_term(TermEnd::Uncertain, effects);
            news = self.line.leave_for(Left::NoticeTooLong, effects);
        }
        news.append(&mut self.line.connected(session, effects));
        news
    }

    fn end_term(&mut self, end: TermEnd, effects: &mut Effects<Status>) {
        if self.lead == Lead::Yes {
            effects.tell(Status::TermOver(end));
        }
        self.lead = Lead::Past;
    }

    /// Begins the term when the session is certain, and ends it when it is not.
    fn mind_certainty(&mut self, now: Now, effects: &mut Effects<Status>) {
        self.until = now.certain_until.map(|until| until.saturating_sub(self.options.notice));
        match self.lead {
            Lead::Awaited if self.is_certain(now) => {
                if let Some(place) = self.line.place() {
                    self.lead = Lead::Yes;
                    effects.tell(Status::Elected(place.clone()));
                }
            }
            Lead::Yes if !self.is_certain(now) => {
                self.end_term(TermEnd::Uncertain, effects);
                let news = self.line.leave(effects);
                self.take(now, news, effects);
            }
            _ => {}
        }
    }
}

impl<R: Rules> Recipe for Election<R> {
    type Call = Call;
    type Told = Status;

    fn step(&mut self, now: Now, input: Input<Call>, effects: &mut Effects<Status>) {
        if self.over {
            return;
        }
        let news = match input {
            Input::Call(Call::Resign) => {
                self.resigned = true;
                self.end_term(TermEnd::Resigned, effects);
                self.line.leave(effects)
            }
            Input::Answered { ask, answer } => self.line.answered(now, ask, answer, effects),
            Input::Event(event) => self.line.event(&event, effects),
            Input::Connected { session } => self.connected(now, session, effects),
            Input::Suspended => {
                self.line.suspended();
                Vec::new()
            }
            Input::Lost => self.line.lost(),
            Input::Time => self.line.time(now, effects),
        };
        self.take(now, news, effects);
    }

    fn leave() -> Call {
        Call::Resign
    }

    fn wakes_at(&self) -> Option<Moment> {
        let ends = self.until.filter(|_| self.lead == Lead::Yes && self.rules.ends_with_certainty());
        ends.into_iter().chain(self.line.wakes_at()).min()
    }

    fn wants_certainty(&self) -> bool {
        matches!(self.lead, Lead::Awaited | Lead::Yes)
    }

    fn is_over(&self) -> bool {
        self.over
    }
}
