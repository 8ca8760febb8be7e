//! What happens in a world, as lines that a person reads, and writes.
//!
//! ```text
//! protocol paxos
//! members 5
//! plant no-adoption             # a bug, by its name
//! with alpha 3                  # a parameter of the protocol
//! disks wait                    # without it whatever is written is on the disk at once
//! s1,s2 hold: epoch 1           # what is on their disks at first, as the protocol says it
//! s4 is down                    # it has not started yet
//!
//! s1 asked 1: write 0 7         # a client asks
//! s1 > s2,s3: prepare           # messages arrive: the first ones under way that begin so
//! s1 >> s2: prepare 1.1         # one arrives, and is still under way
//! s1 x s4: prepare              # one is lost
//! s2 waits no longer: retry     # a timer
//! s3 syncs                      # one write of its queue is on its disk
//! s3 crashes, keeps 1           # and so many more writes are
//! s3 starts
//! look chosen 7                 # what must be so by now
//! s1 answered 1: 7              # what its client must have been told by now
//! breaks agreement              # what must be broken at the end, be it what clients were told; else nothing
//! ```
//!
//! All other members run at the beginning. A line that can't happen is a fault of the script, and is told.

use std::collections::BTreeMap;
use std::fmt;

use workloads::Op;

use crate::configuration::{Came, Configuration, Step};
use crate::op_words::op;
use crate::protocol::{Broken, Id, Protocol, Request};
use crate::told::Told;

/// A script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// The protocol, by name.
    pub protocol: String,
    /// How many members there are.
    pub members: u8,
    /// The bug that is planted, by name.
    pub plant: Option<String>,
    /// Parameters of the protocol, with the numbers of the lines.
    pub with: Vec<(usize, String, String)>,
    /// Whether writes wait for `syncs`.
    pub disks_wait: bool,
    /// Whose disks hold what at first, with the numbers of the lines.
    pub disks: Vec<(usize, Vec<Id>, String)>,
    /// Who does not run at first.
    pub down: Vec<Id>,
    /// What happens, with the numbers of the lines.
    pub lines: Vec<(usize, Line)>,
    /// What stands behind `#` in a line, for pictures.
    pub notes: BTreeMap<usize, String>,
    /// The property that is broken at the end.
    pub breaks: Option<String>,
}

/// One line of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// Clients ask.
    Ask(Vec<Id>, Option<u64>, Op),
    /// Messages go from each of these to each of those.
    Move(How, Vec<Id>, Vec<Id>, String),
    /// Timers.
    Fire(Vec<Id>, String),
    /// Disks.
    Sync(Vec<Id>),
    /// Crashes.
    Crash(Vec<Id>, usize),
    /// Starts.
    Start(Vec<Id>),
    /// What is so.
    Look(String),
    /// What a client was told last.
    Told(Id, Request, String),
}

/// What becomes of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// It arrives.
    Arrives,
    /// It arrives, and is still under way.
    IsCopied,
    /// It is lost.
    IsLost,
}

fn ids(words: &str, members: u8) -> Result<Vec<Id>, String> {
    let id = |word: &str| {
        let number = word.trim().strip_prefix('s').and_then(|number| number.parse().ok());
        number
            .filter(|number| (1..=members).contains(number))
            .map(Id)
            .ok_or_else(|| format!("{}: a member is s1 to s{members}", word.trim()))
    };
    if words.trim() == "all" {
        return Ok(Id::all(members).collect());
    }
    words.split(',').map(id).collect()
}

/// Of whom a line says this, be it one or several.
fn said_of<'a>(line: &'a str, one: &str, several: &str) -> Option<&'a str> {
    line.strip_suffix(one).or_else(|| line.strip_suffix(several))
}

impl Script {
    /// Reads a script.
    ///
    /// # Errors
    /// Which line is wrong, and what it should be.
    pub fn read(text: &str) -> Result<Self, String> {
        let mut script = Self {
            protocol: String::new(),
            members: 3,
            plant: None,
            with: Vec::new(),
            disks_wait: false,
            disks: Vec::new(),
            down: Vec::new(),
            lines: Vec::new(),
            notes: BTreeMap::new(),
            breaks: None,
        };
        for (number, line) in (1..).zip(text.lines()) {
            let (line, note) = line.split_once('#').unwrap_or((line, ""));
            let (line, note) = (line.trim(), note.trim());
            if !line.is_empty() {
                if !note.is_empty() {
                    script.notes.insert(number, note.to_owned());
                }
                script.line(number, line).map_err(|why| format!("line {number}: {why}"))?;
            }
        }
        if script.protocol.is_empty() {
            return Err("the first line says `protocol NAME`".to_owned());
        }
        Ok(script)
    }

    fn line(&mut self, number: usize, line: &str) -> Result<(), String> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let rest = rest.trim();
        match word {
            "protocol" => rest.clone_into(&mut self.protocol),
            "members" => {
                let members = rest.parse().ok().filter(|members| (1..=MOST_MEMBERS).contains(members));
                self.members = members.ok_or_else(|| format!("members are 1 to {MOST_MEMBERS}"))?;
            }
            "plant" => self.plant = Some(rest.to_owned()),
            "with" => {
                let (name, value) = rest.split_once(' ').ok_or("write `with PARAMETER VALUE`")?;
                self.with.push((number, name.to_owned(), value.trim().to_owned()));
            }
            "disks" if rest == "wait" => self.disks_wait = true,
            "breaks" => self.breaks = Some(rest.to_owned()),
            "look" => self.lines.push((number, Line::Look(rest.to_owned()))),
            _ => self.begins_or_happens(number, line)?,
        }
        Ok(())
    }

    fn begins_or_happens(&mut self, number: usize, line: &str) -> Result<(), String> {
        let held = line.split_once(" hold: ").or_else(|| line.split_once(" holds: "));
        let down = said_of(line, " is down", " are down");
        match (held, down) {
            (None, None) => {
                let line = self.event(line)?;
                self.lines.push((number, line));
            }
            _ if !self.lines.is_empty() => {
                return Err(format!("{line}: that is how a script begins; write it above all that happens"));
            }
            (Some((who, words)), _) => {
                self.disks.push((number, ids(who, self.members)?, words.trim().to_owned()));
            }
            (None, Some(who)) => self.down.extend(ids(who, self.members)?),
        }
        Ok(())
    }

    fn event(&self, line: &str) -> Result<Line, String> {
        let ids = |words: &str| ids(words, self.members);
        if let Some((head, text)) = line.split_once(':') {
            let text = text.trim();
            for (sign, how) in [(" >> ", How::IsCopied), (" > ", How::Arrives), (" x ", How::IsLost)] {
                if let Some((from, to)) = head.split_once(sign) {
                    return Ok(Line::Move(how, ids(from)?, ids(to)?, text.to_owned()));
                }
            }
            let number = |word: &str| word.parse().map_err(|_| format!("{word}: a request is a number"));
            if let Some((who, request)) = head.split_once(" asked") {
                let request = request.trim();
                let request = if request.is_empty() { None } else { Some(number(request)?) };
                return Ok(Line::Ask(ids(who)?, request, op(text)?));
            }
            if let Some((who, request)) = head.split_once(" answered ") {
                return match ids(who)?.as_slice() {
                    [id] => Ok(Line::Told(*id, Request(number(request.trim())?), text.to_owned())),
                    _ => Err(format!("{who}: one member answers a request")),
                };
            }
            if let Some(who) = said_of(head, " waits no longer", " wait no longer") {
                return Ok(Line::Fire(ids(who)?, text.to_owned()));
            }
        }
        if let Some(who) = said_of(line, " syncs", " sync") {
            return Ok(Line::Sync(ids(who)?));
        }
        if let Some(who) = said_of(line, " starts", " start") {
            return Ok(Line::Start(ids(who)?));
        }
        if let Some((who, kept)) = line.split_once(" crashes") {
            let kept = kept.trim_start_matches(',').trim();
            let kept = match kept.strip_prefix("keeps ") {
                Some(kept) => {
                    kept.trim().parse().map_err(|_| format!("{kept}: how many writes are kept?"))?
                }
                None if kept.is_empty() => 0,
                None => return Err(format!("{kept}: write `s1 crashes` or `s1 crashes, keeps 1`")),
            };
            return Ok(Line::Crash(ids(who)?, kept));
        }
        Err(format!(
            "{line}: a line is one of `s1 asked: OP`, `s1 > s2: MESSAGE`, `s1 >> s2: MESSAGE`, `s1 x s2: \
             MESSAGE`, `s1 waits no longer: TIMER`, `s1 syncs`, `s1 crashes`, `s1 starts`, `look WORDS`, \
             `s1 answered 1: WORDS`, `breaks PROPERTY`, or at the beginning `s1 holds: WORDS`, `s1 is down`"
        ))
    }

    /// A script of these steps.
    #[must_use]
    pub fn of<P: Protocol>(
        protocol: &str,
        plant: Option<&str>,
        members: u8,
        (steps, disks_wait): (&[Step<P>], bool),
        breaks: Option<&Broken>,
    ) -> String {
        let disks = if disks_wait { "disks wait\n" } else { "" };
        let mut text = format!("protocol {protocol}\nmembers {members}\n{disks}");
        if let Some(plant) = plant {
            text.push_str(&format!("plant {plant}\n"));
        }
        text.push('\n');
        for step in steps {
            text.push_str(&format!("{step}\n"));
        }
        if let Some(broken) = breaks {
            text.push_str(&format!("\nbreaks {}   # {}\n", broken.rule, broken.words));
        }
        text
    }
}

/// Members of a script, at most.
const MOST_MEMBERS: u8 = 15;

/// A step, what came of it, and what is so after it.
#[derive(Debug)]
pub struct Happened<P: Protocol> {
    /// The step.
    pub step: Step<P>,
    /// What came of it.
    pub came: Came<P>,
    /// What members show.
    pub shown: Vec<(Id, String)>,
    /// Who leads.
    pub leads: Vec<Id>,
    /// What the protocol says is so.
    pub look: String,
    /// What the script says beside it.
    pub note: Option<String>,
}

/// What came of a script.
#[derive(Debug)]
pub struct Lived<P: Protocol> {
    /// What members show at the beginning.
    pub before: Vec<(Id, String)>,
    /// What the protocol says is so at the beginning.
    pub looked: String,
    /// All steps, with what came of each.
    pub steps: Vec<Happened<P>>,
    /// What is broken.
    pub broken: Option<Broken>,
    /// Who did not run at first.
    pub down: Vec<Id>,
}

/// Why a script can't be lived through, or does not come out as it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Otherwise {
    /// The line; none where it is the end.
    pub line: Option<usize>,
    /// A sentence.
    pub words: String,
}

impl fmt::Display for Otherwise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.words),
            None => f.write_str(&self.words),
        }
    }
}

/// Lives through a script.
///
/// # Errors
/// What did not come out as the script says, beside all that happened until then.
pub fn live<P: Protocol>(mut protocol: P, script: &Script) -> (Lived<P>, Result<(), Otherwise>) {
    let set = script.with.iter().try_for_each(|(number, name, value)| {
        protocol.set(name, value).map_err(|words| Otherwise { line: Some(*number), words })
    });
    let mut living = Living {
        configuration: Configuration::new(protocol, script.members, !script.disks_wait),
        lived: Lived {
            before: Vec::new(),
            looked: String::new(),
            steps: Vec::new(),
            broken: None,
            down: script.down.clone(),
        },
        asked: 0,
        told: Told::default(),
    };
    if set.is_err() {
        return living.end(set);
    }
    for (number, ids, words) in &script.disks {
        match living.configuration.protocol().disk(words) {
            Ok(disk) => ids.iter().for_each(|id| living.configuration.hold(*id, disk.clone())),
            Err(words) => return living.end(Err(Otherwise { line: Some(*number), words })),
        }
    }
    for id in Id::all(script.members).filter(|id| !script.down.contains(id)) {
        living.configuration.apply(&Step::Start(id), 0, &mut |_| 0);
    }
    living.lived.before = living.shown();
    living.lived.looked = living.configuration.look();
    for (number, line) in &script.lines {
        let first = living.lived.steps.len();
        if let Err(words) = living.line(line) {
            return living.end(Err(Otherwise { line: Some(*number), words }));
        }
        if let Some(happened) = living.lived.steps.get_mut(first) {
            happened.note = script.notes.get(number).cloned();
        }
    }
    let broken = living.broken();
    let right = match (&script.breaks, &broken) {
        (None, Some(broken)) => Err(format!("{broken}, and the script does not say so")),
        (Some(rule), None) => Err(format!("{rule} is not broken, as the script says it is")),
        (Some(rule), Some(broken)) if *rule != broken.rule => {
            Err(format!("{broken}, and not {rule}, as the script says"))
        }
        _ => Ok(()),
    };
    living.end(right.map_err(|words| Otherwise { line: None, words }))
}

struct Living<P: Protocol> {
    configuration: Configuration<P>,
    lived: Lived<P>,
    asked: u64,
    told: Told,
}

impl<P: Protocol> Living<P> {
    fn end(mut self, right: Result<(), Otherwise>) -> (Lived<P>, Result<(), Otherwise>) {
        self.lived.broken = self.broken();
        (self.lived, right)
    }

    /// What is broken after all that happened: inside, or in what clients were told.
    fn broken(&self) -> Option<Broken> {
        let inside = self.configuration.broken().cloned();
        inside.or_else(|| self.told.broken(self.configuration.protocol().workload()))
    }

    fn step(&mut self, step: Step<P>) {
        let came = self.configuration.apply(&step, 0, &mut |_| 0);
        self.told.happened(&step, &came);
        let protocol = self.configuration.protocol();
        let leads =
            |id: &Id| self.configuration.running(*id).and_then(|member| protocol.leads(member)).is_some();
        let leads = Id::all(self.configuration.members()).filter(leads).collect();
        let (shown, look) = (self.shown(), self.configuration.look());
        self.lived.steps.push(Happened { step, came, shown, leads, look, note: None });
    }

    /// What members show.
    fn shown(&self) -> Vec<(Id, String)> {
        let shown = |id| {
            let member = self.configuration.running(id)?;
            Some((id, self.configuration.protocol().shows(member)?))
        };
        Id::all(self.configuration.members()).filter_map(shown).collect()
    }

    fn line(&mut self, line: &Line) -> Result<(), String> {
        let steps: Vec<Step<P>> = match line {
            Line::Look(words) => {
                let is = self.configuration.look();
                return if is == *words { Ok(()) } else { Err(format!("it is `{is}`, and not `{words}`")) };
            }
            Line::Told(id, request, words) => {
                let all = self.lived.steps.iter().flat_map(|happened| &happened.came.answers);
                let told = all.filter(|(by, to, _)| (by, to) == (id, request));
                let told: Vec<String> = told.map(|(.., outcome)| outcome.value.to_string()).collect();
                return match told.last() {
                    Some(last) if last == words => Ok(()),
                    _ => Err(format!("{id} has answered {}: {}", request.0, listed(&told))),
                };
            }
            Line::Ask(ids, request, op) => {
                self.asked += 1;
                let request = Request(request.unwrap_or(self.asked));
                ids.iter().map(|id| Step::Ask(*id, request, op.clone())).collect()
            }
            Line::Move(how, from, to, text) => {
                let pairs = from.iter().flat_map(|from| to.iter().map(move |to| (*from, *to)));
                let steps: Result<Vec<_>, _> =
                    pairs.map(|(from, to)| self.message(*how, from, to, text)).collect();
                steps?
            }
            Line::Fire(ids, text) => {
                let timer = |id: &Id| {
                    let mut timers = self.configuration.timers(*id);
                    let timer = timers.find(|timer| timer.to_string() == *text);
                    timer.map(|timer| Step::Fire(*id, timer)).ok_or_else(|| {
                        let all: Vec<String> =
                            self.configuration.timers(*id).map(|timer| timer.to_string()).collect();
                        format!("{id} does not wait for {text}; it waits for {}", listed(&all))
                    })
                };
                ids.iter().map(timer).collect::<Result<_, _>>()?
            }
            Line::Sync(ids) => ids.iter().map(|id| Step::Sync(*id)).collect(),
            Line::Crash(ids, kept) => ids.iter().map(|id| Step::Crash(*id, *kept)).collect(),
            Line::Start(ids) => ids.iter().map(|id| Step::Start(*id)).collect(),
        };
        for step in steps {
            if !self.configuration.can(&step) {
                return Err(format!("{step}: that can't happen now"));
            }
            self.step(step);
        }
        Ok(())
    }

    fn message(&self, how: How, from: Id, to: Id, text: &str) -> Result<Step<P>, String> {
        let between = || {
            self.configuration
                .flight()
                .filter(move |(sender, receiver, _)| (*sender, *receiver) == (from, to))
        };
        // A word or a number that goes on is another one.
        let goes_on = |letter: char| letter.is_alphanumeric() || letter == '.';
        let says = |message: &P::Message| {
            let shown = message.to_string();
            shown.strip_prefix(text).is_some_and(|rest| !rest.starts_with(goes_on))
        };
        let found = between().find(|(.., message)| says(message));
        let Some((.., message)) = found else {
            let all: Vec<String> = between().map(|(.., message)| message.to_string()).collect();
            return Err(format!("no `{text}` is under way from {from} to {to}, but {}", listed(&all)));
        };
        let message = message.clone();
        Ok(match how {
            How::Arrives => Step::Deliver(from, to, message),
            How::IsCopied => Step::Copy(from, to, message),
            How::IsLost => Step::Lose(from, to, message),
        })
    }
}

fn listed(all: &[String]) -> String {
    if all.is_empty() { "nothing".to_owned() } else { all.join("; ") }
}
