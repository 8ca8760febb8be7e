//! A script as a picture: a lane for each member, an arrow for each message, and what members show beside
//! them.
//!
//! Time goes down, one row for each step. An arrow begins where its message was sent and ends where it
//! arrived, so a message that was under way for long crosses what happened meanwhile. One that was lost ends
//! in a cross, and one that never arrived is not drawn. A message of a member to itself is a small bow where
//! it arrives.
//!
//! A lane is broad while its member leads, and broken while it is down. A line across all lanes is where
//! something came to be so for all of them: what is chosen. The notes of the script stand at the right.
//!
//! What stands beside a lane has its place. The words of an arrow go along it to where they cover least. The
//! picture is one SVG without anything outside of it, and prints.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;

use crate::configuration::Step;
use crate::op_words::op_in_words;
use crate::protocol::{Broken, Id, Protocol};
use crate::script::Lived;

const TOP: i64 = 64;
const ROW: i64 = 31;
/// How broad a letter is taken to be.
const LETTER: i64 = 6;
/// How high a line of words is.
const LINE: i64 = 12;
/// How long the arrow of a client is.
const ASK: i64 = 46;

/// Draws what happened.
#[must_use]
pub fn draw<P: Protocol>(title: &str, members: u8, lived: &Lived<P>) -> String {
    let texts = lived.steps.iter().filter_map(|happened| match &happened.step {
        Step::Deliver(_, _, message) | Step::Copy(_, _, message) | Step::Lose(_, _, message) => {
            Some(broad(&message.to_string()))
        }
        _ => None,
    });
    let asks = lived.steps.iter().filter_map(|happened| match &happened.step {
        Step::Ask(_, _, op) => Some(broad(&op_in_words(op))),
        _ => None,
    });
    let mut drawing = Drawing {
        left: asks.max().unwrap_or_default() + ASK + 24,
        lane: texts.max().unwrap_or_default().clamp(120, 250) + 60,
        members,
        bottom: y(lived.steps.len()),
        lines: Vec::new(),
        words: Vec::new(),
        beside: Vec::new(),
        under: String::new(),
        marks: String::new(),
        sent: BTreeMap::new(),
    };
    drawing.live(lived);
    drawing.svg(title, lived.broken.as_ref())
}

/// Where words may stand: their middle, beginning or end, and the line that they stand on.
#[derive(Clone, Copy)]
enum At {
    From(i64, i64),
    Around(i64, i64),
    Until(i64, i64),
}

/// Words, with their class and their place.
struct Words {
    text: String,
    class: &'static str,
    at: At,
}

/// From where to where an arrow goes.
#[derive(Clone, Copy)]
struct Arrow {
    x1: i64,
    y1: i64,
    x2: i64,
    y2: i64,
}

/// What a picture is made of.
struct Drawing {
    left: i64,
    lane: i64,
    members: u8,
    bottom: i64,
    lines: Vec<Arrow>,
    /// Words that have their place.
    words: Vec<Words>,
    /// Words of arrows, which are still to be placed.
    beside: Vec<(Arrow, String, &'static str)>,
    /// What lies below everything, and what lies above the lanes.
    under: String,
    marks: String,
    /// Rows in which messages were sent that have not arrived.
    sent: BTreeMap<(Id, Id, String), VecDeque<usize>>,
}

fn int(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX / 1_000)
}

fn y(row: usize) -> i64 {
    TOP + ROW * int(row) + ROW / 2
}

/// How broad words are taken to be.
fn broad(text: &str) -> i64 {
    int(text.chars().count()) * LETTER
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// A rectangle: left, top, right, bottom.
type Area = (i64, i64, i64, i64);

fn area(Words { text, class, at }: &Words) -> Area {
    let is_bold = matches!(*class, "shows" | "chosen" | "crash" | "answer");
    let width = broad(text) * if is_bold { 7 } else { 6 } / 6;
    let (left, y) = match *at {
        At::From(x, y) => (x, y),
        At::Around(x, y) => (x - width / 2, y),
        At::Until(x, y) => (x - width, y),
    };
    (left, y - LINE + 2, left + width, y + 2)
}

fn share((left, top, right, bottom): Area, other: Area) -> bool {
    left < other.2 && other.0 < right && top < other.3 && other.1 < bottom
}

impl Arrow {
    /// How high it is at a place, if it gets there.
    fn at(self, x: i64) -> Option<i64> {
        let (low, high) = (self.x1.min(self.x2), self.x1.max(self.x2));
        let run = (self.x2 - self.x1).abs().max(1);
        (low..=high).contains(&x).then(|| self.y1 + (self.y2 - self.y1) * (x - self.x1).abs() / run)
    }

    fn crosses(self, (left, top, right, bottom): Area) -> bool {
        let inside = |x: i64| self.at(x).is_some_and(|y| (top..=bottom).contains(&y));
        (0..=4).any(|part| inside(left + (right - left) * part / 4))
    }
}

impl Drawing {
    fn x(&self, id: Id) -> i64 {
        self.left + self.lane * int(id.place())
    }

    /// Where the notes begin.
    fn right(&self) -> i64 {
        let last = self.left + self.lane * i64::from(self.members.saturating_sub(1));
        let areas = self.words.iter().map(|words| area(words).2);
        areas.max().unwrap_or_default().max(last) + 24
    }

    fn live<P: Protocol>(&mut self, lived: &Lived<P>) {
        let mut shown: BTreeMap<Id, &str> = BTreeMap::new();
        let mut down: BTreeMap<Id, usize> = lived.down.iter().map(|id| (*id, 0)).collect();
        let mut leads: BTreeMap<Id, usize> = BTreeMap::new();
        shown.extend(lived.before.iter().map(|(id, words)| (*id, words.as_str())));
        for (row, happened) in lived.steps.iter().enumerate() {
            self.step(row, &happened.step);
            match &happened.step {
                Step::Crash(id, _) => drop(down.insert(*id, row)),
                Step::Start(id) => {
                    if let Some(since) = down.remove(id) {
                        self.stretch("down", *id, since, y(row));
                    }
                }
                _ => {}
            }
            for (from, to, message) in &happened.came.sent {
                self.sent.entry((*from, *to, message.to_string())).or_default().push_back(row);
            }
            for (id, _, outcome) in &happened.came.answers {
                self.mark(*id, row, &format!("answers {}", outcome.value), "answer");
            }
            for (id, words) in &happened.shown {
                if shown.insert(*id, words) != Some(words) {
                    self.mark(*id, row, words, "shows");
                }
            }
            for id in Id::all(self.members) {
                match (leads.get(&id).copied(), happened.leads.contains(&id)) {
                    (None, true) => drop(leads.insert(id, row)),
                    (Some(since), false) => {
                        self.stretch("leads", id, since, y(row));
                        leads.remove(&id);
                    }
                    _ => {}
                }
            }
        }
        let bottom = self.bottom;
        leads.into_iter().for_each(|(id, since)| self.stretch("leads", id, since, bottom));
        down.into_iter().for_each(|(id, since)| self.stretch("down", id, since, bottom));
        self.place();
        self.notes(lived);
    }

    fn step<P: Protocol>(&mut self, row: usize, step: &Step<P>) {
        match step {
            Step::Ask(id, _, op) => {
                let (x, y) = (self.x(*id), y(row));
                let path = format!("M{} {y} H{}", x - ASK, x - 5);
                self.path("ask", &path, "head");
                self.say(op_in_words(op), "", At::Until(x - ASK - 4, y + 4));
            }
            Step::Deliver(from, to, message) => self.arrow((*from, *to), message, row, "sent"),
            Step::Copy(from, to, message) => self.arrow((*from, *to), message, row, "copy"),
            Step::Lose(from, to, message) => self.arrow((*from, *to), message, row, "lost"),
            Step::Fire(id, timer) => self.mark(*id, row, &format!("time-out: {timer}"), "timer"),
            Step::Sync(id) => self.mark(*id, row, "synced", "disk"),
            Step::Crash(id, _) => self.mark(*id, row, "crashes", "crash"),
            Step::Start(id) => self.mark(*id, row, "starts", "start"),
        }
    }

    fn arrow(&mut self, (from, to): (Id, Id), message: &impl ToString, row: usize, class: &'static str) {
        let words = message.to_string();
        let rows = self.sent.entry((from, to, words.clone())).or_default();
        let begun = if class == "copy" { rows.front().copied() } else { rows.pop_front() };
        let begun = begun.unwrap_or(row.saturating_sub(1));
        let marker = if class == "lost" { "cross" } else { "head" };
        let (x1, x2, y2) = (self.x(from), self.x(to), y(row));
        if from == to {
            let path = format!("M{x1} {} c20 0 20 14 4 14", y2 - 14);
            self.path(class, &path, marker);
            self.say(words, class, At::From(x1 + 20, y2 - 7));
            return;
        }
        let arrow = Arrow { x1, y1: y(begun), x2: if x2 > x1 { x2 - 5 } else { x2 + 5 }, y2 };
        let path = format!("M{x1} {} L{} {y2}", arrow.y1, arrow.x2);
        self.path(class, &path, marker);
        self.lines.push(arrow);
        self.beside.push((arrow, words, class));
    }

    /// A mark on a lane, with words beside it, below those that stand there.
    fn mark(&mut self, id: Id, row: usize, words: &str, class: &'static str) {
        let (x, y) = (self.x(id), y(row));
        let _ = match class {
            "crash" => {
                writeln!(self.marks, "<path class='crash' d='M{} {} l12 12 m0 -12 l-12 12'/>", x - 6, y - 6)
            }
            "shows" => Ok(()),
            _ => writeln!(self.marks, "<circle class='{class}' cx='{x}' cy='{y}' r='4'/>"),
        };
        let stand = self.words.iter().rev().take_while(|words| area(words).3 > y - ROW);
        let stand =
            stand.filter(|words| matches!(words.at, At::From(left, line) if left == x + 8 && line > y));
        let line = y + 4 + (LINE - 1) * int(stand.count()) + if class == "shows" { 8 } else { 0 };
        self.say(words.to_owned(), class, At::From(x + 8, line.min(y + 4 + 2 * (LINE - 1))));
    }

    fn path(&mut self, class: &str, path: &str, marker: &str) {
        let _ = writeln!(self.marks, "<path class='{class}' d='{path}' marker-end='url(#{marker})'/>");
    }

    fn stretch(&mut self, class: &str, id: Id, since: usize, until: i64) {
        let (x, from) = (self.x(id), y(since));
        let _ = writeln!(self.under, "<path class='{class}' d='M{x} {from} V{until}'/>");
    }

    fn say(&mut self, text: String, class: &'static str, at: At) {
        self.words.push(Words { text, class, at });
    }

    /// Finds places for the words of arrows: close to the end, where arrows of one sender are apart, and
    /// where they cover neither words nor other arrows.
    fn place(&mut self) {
        for (arrow, text, class) in std::mem::take(&mut self.beside) {
            let run = (arrow.x2 - arrow.x1).abs();
            let (piece, least) = (self.lane / 12, (broad(&text) / 2 + 12).min(run / 2));
            let places = (1..run / piece).flat_map(|step| {
                let aside = if step % 2 == 0 { -step / 2 } else { step / 2 } * piece;
                let from_end = (self.lane / 2 + aside).clamp(least, run - least);
                let x = if arrow.x2 > arrow.x1 { arrow.x2 - from_end } else { arrow.x2 + from_end };
                let y = arrow.at(x).unwrap_or(arrow.y2);
                let at = |far, dy| (step + far, At::Around(x, y + dy));
                [at(0, -3), at(0, LINE), at(6, -LINE), at(6, 2 * LINE)]
            });
            let words = |at| Words { text: text.clone(), class, at };
            let best = places.min_by_key(|(far, at)| far + self.covers(area(&words(*at))));
            let best = words(best.map_or(At::Around(arrow.x2, arrow.y2), |(_, at)| at));
            self.words.push(best);
        }
    }

    /// How bad it is to write there.
    fn covers(&self, place: Area) -> i64 {
        let words = self.words.iter().filter(|words| share(place, area(words))).count();
        let head = |line: &Arrow| (line.x2 - 8, line.y2 - 4, line.x2 + 8, line.y2 + 4);
        let heads = self.lines.iter().filter(|line| share(place, head(line))).count();
        let lines = self.lines.iter().filter(|line| line.crosses(place)).count();
        let lanes = Id::all(self.members).filter(|id| (place.0..place.2).contains(&self.x(*id))).count();
        int(words * 100 + heads * 60 + lines * 20 + lanes * 12)
    }

    /// What is so for all members, with a line across, and the notes of the script.
    fn notes<P: Protocol>(&mut self, lived: &Lived<P>) {
        let right = self.right();
        let mut before = lived.looked.as_str();
        for (row, happened) in lived.steps.iter().enumerate() {
            let mut line = y(row) + 4;
            if happened.look != before {
                let more = happened.look.strip_prefix(before).map(|more| more.trim_start_matches(", "));
                let words = more.unwrap_or(&happened.look).to_owned();
                let path = format!("M{} {y} H{}", self.left - 12, right - 6, y = y(row));
                let _ = writeln!(self.under, "<path class='chosen' d='{path}'/>");
                self.say(words, "chosen", At::From(right, line));
                line += LINE;
                before = &happened.look;
            }
            if let Some(note) = &happened.note {
                self.say(note.clone(), "note", At::From(right, line));
            }
        }
    }

    fn svg(&self, title: &str, broken: Option<&Broken>) -> String {
        let broken = broken.map(ToString::to_string).unwrap_or_default();
        let width = self.right().max(broad(title) * 3 / 2 + 30).max(broad(&broken) * 5 / 4 + 30);
        let bottom = self.bottom;
        let height = bottom + if broken.is_empty() { 10 } else { ROW };
        let mut svg = format!(
            "<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{height}' viewBox='0 0 {width} \
             {height}'>\n<style>{STYLE}</style>\n{DEFS}\n\
             <rect width='{width}' height='{height}' fill='#fff'/>\n\
             <text class='title' x='12' y='22'>{}</text>\n",
            escaped(title)
        );
        for id in Id::all(self.members) {
            let x = self.x(id);
            let _ = writeln!(svg, "<path class='lane' d='M{x} {TOP} V{bottom}'/>");
            let _ = writeln!(svg, "<text class='lane' x='{x}' y='{}'>{id}</text>", TOP - 10);
        }
        svg.push_str(&self.under);
        svg.push_str(&self.marks);
        for Words { text, class, at } in &self.words {
            let (x, y, anchor) = match at {
                At::From(x, y) => (x, y, ""),
                At::Around(x, y) => (x, y, " middle"),
                At::Until(x, y) => (x, y, " end"),
            };
            let _ = writeln!(svg, "<text class='{class}{anchor}' x='{x}' y='{y}'>{}</text>", escaped(text));
        }
        if !broken.is_empty() {
            let _ =
                writeln!(svg, "<text class='broken' x='12' y='{}'>{}</text>", bottom + 16, escaped(&broken));
        }
        svg.push_str("</svg>\n");
        svg
    }
}

const STYLE: &str = "text{font:11px sans-serif;fill:#333;paint-order:stroke;stroke:#fff;stroke-width:3px}\
    text.title{font-size:14px;font-weight:bold}text.lane{font-size:13px;font-weight:bold;text-anchor:middle}\
    .middle{text-anchor:middle}.end{text-anchor:end}path{fill:none;stroke:#36648b;stroke-width:1.3}\
    path.lane{stroke:#bbb;stroke-width:1}path.lost{stroke:#b22;stroke-dasharray:4 3}path.copy{stroke:#888}\
    path.ask{stroke:#666}path.down{stroke:#fff;stroke-width:4;stroke-dasharray:6 6}\
    path.leads{stroke:#f2c14e;stroke-width:8;stroke-opacity:.7}path.crash{stroke:#b22;stroke-width:3}\
    path.chosen{stroke:#2a7;stroke-dasharray:2 3}circle{fill:#36648b}circle.start{fill:#2a7}\
    circle.timer{fill:#c80}circle.answer{fill:#639}text.timer{fill:#a60}\
    text.note{font-style:italic;fill:#777}\
    text.shows,text.chosen,text.crash,text.answer,text.broken{font-weight:bold}\
    text.shows,text.chosen{fill:#186a3b}text.crash,text.broken{fill:#b22}text.answer{fill:#639}";

const DEFS: &str = "<defs>\
    <marker id='head' viewBox='0 0 8 8' refX='7' refY='4' markerWidth='8' markerHeight='8' orient='auto'>\
    <path d='M0 0 L8 4 L0 8 z' style='fill:#36648b;stroke:none'/></marker>\
    <marker id='cross' viewBox='0 0 8 8' refX='4' refY='4' markerWidth='9' markerHeight='9'>\
    <path d='M1 1 L7 7 M7 1 L1 7' style='stroke:#b22;stroke-width:2'/></marker></defs>";
