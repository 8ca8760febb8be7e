//! A script as a picture: a lane for each member, an arrow for each message, and what members show beside
//! them.
//!
//! Time goes down, one row for each step. An arrow begins where its message was sent and ends where it
//! arrived, so a message that was under way for long crosses what happened meanwhile. One that was lost ends
//! in a cross, one that never arrived is not drawn. The picture is one SVG without anything outside of it,
//! and prints.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;

use crate::configuration::Step;
use crate::op_words::op_in_words;
use crate::protocol::{Broken, Id, Protocol};
use crate::script::Lived;

const LANE: usize = 190;
const LEFT: usize = 70;
const TOP: usize = 64;
const ROW: usize = 30;

/// Draws what happened.
#[must_use]
pub fn draw<P: Protocol>(title: &str, members: u8, lived: &Lived<P>) -> String {
    let mut drawing = Drawing { svg: String::new(), sent: BTreeMap::new(), shown: BTreeMap::new() };
    let mut down: BTreeMap<Id, usize> = lived.down.iter().map(|id| (*id, 0)).collect();
    for (row, (step, came, shows)) in lived.steps.iter().enumerate() {
        drawing.step(row, step);
        match step {
            Step::Crash(id, _) => drop(down.insert(*id, row)),
            Step::Start(id) => {
                if let Some(since) = down.remove(id) {
                    drawing.gap(*id, since, row);
                }
            }
            _ => {}
        }
        for (from, to, message) in &came.sent {
            drawing.sent.entry((*from, *to, message.to_string())).or_default().push_back(row);
        }
        for (id, _, outcome) in &came.answers {
            let value = format!("answers {}", outcome.value);
            drawing.mark(*id, row, &value, "answer", 1);
        }
        for (id, words) in shows {
            if drawing.shown.get(id) != Some(words) {
                drawing.mark(*id, row, words, "shows", 2);
                drawing.shown.insert(*id, words.clone());
            }
        }
    }
    let rows = lived.steps.len();
    for (id, since) in down {
        drawing.gap(id, since, rows);
    }
    frame(title, members, rows, lived.broken.as_ref(), &drawing.svg)
}

struct Drawing {
    svg: String,
    /// Rows in which messages were sent that have not arrived.
    sent: BTreeMap<(Id, Id, String), VecDeque<usize>>,
    shown: BTreeMap<Id, String>,
}

fn x(id: Id) -> usize {
    LEFT + LANE * id.place() + LANE / 2
}

fn y(row: usize) -> usize {
    TOP + ROW * row + ROW / 2
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

impl Drawing {
    fn add(&mut self, line: &str) {
        self.svg.push_str(line);
        self.svg.push('\n');
    }

    fn step<P: Protocol>(&mut self, row: usize, step: &Step<P>) {
        match step {
            Step::Ask(id, _, op) => {
                let (x, y) = (x(*id), y(row));
                self.add(&format!(
                    "<path class='ask' d='M{} {y} H{}' marker-end='url(#head)'/>",
                    x - 80,
                    x - 5
                ));
                self.text(x - 84, y + 4, "ask end", &op_in_words(op));
            }
            Step::Deliver(from, to, message) | Step::Copy(from, to, message) => {
                let copy = matches!(step, Step::Copy(..));
                let begun = self.begun(*from, *to, &message.to_string(), copy, row);
                self.arrow(*from, *to, begun, row, &message.to_string(), if copy { "copy" } else { "sent" });
            }
            Step::Lose(from, to, message) => {
                let begun = self.begun(*from, *to, &message.to_string(), false, row);
                self.arrow(*from, *to, begun, row, &message.to_string(), "lost");
            }
            Step::Fire(id, timer) => self.mark(*id, row, &timer.to_string(), "timer", 0),
            Step::Sync(id) => self.mark(*id, row, "synced", "disk", 0),
            Step::Crash(id, _) => self.mark(*id, row, "crashes", "crash", 0),
            Step::Start(id) => self.mark(*id, row, "starts", "start", 0),
        }
    }

    fn begun(&mut self, from: Id, to: Id, message: &str, stays: bool, now: usize) -> usize {
        let rows = self.sent.entry((from, to, message.to_owned())).or_default();
        let first = if stays { rows.front().copied() } else { rows.pop_front() };
        first.unwrap_or(now.saturating_sub(1))
    }

    fn arrow(&mut self, from: Id, to: Id, begun: usize, row: usize, words: &str, class: &str) {
        let (x1, y1, x2, y2) = (x(from), y(begun), x(to), y(row));
        let marker = if class == "lost" { "cross" } else { "head" };
        if from == to {
            self.add(&format!(
                "<path class='{class}' d='M{x1} {y1} C{c} {y1} {c} {y2} {x2} {y2}' \
                 marker-end='url(#{marker})'/>",
                c = x1 + 46
            ));
            self.text(x1 + 38, (y1 + y2) / 2 + 4, class, words);
            return;
        }
        let inset = |x: usize| if x2 > x1 { x - 5 } else { x + 5 };
        self.add(&format!(
            "<path class='{class}' d='M{x1} {y1} L{} {y2}' marker-end='url(#{marker})'/>",
            inset(x2)
        ));
        // Near its end: there arrows from one sender are apart.
        let near = if x2 > x1 { x2 - LANE / 2 } else { x2 + LANE / 2 };
        let run = x2.abs_diff(x1);
        let share = near.abs_diff(x1) * (y2 - y1.min(y2)) / run.max(1);
        self.text(near, y1.min(y2) + share - 4, &format!("{class} middle"), words);
    }

    fn mark(&mut self, id: Id, row: usize, words: &str, class: &str, place: usize) {
        let (x, y) = (x(id), y(row));
        self.add(&format!("<circle class='{class}' cx='{x}' cy='{y}' r='4'/>"));
        let (dx, dy) = [(8, 4), (8, 13), (8, 13)][place];
        self.text(x + dx, y + dy, class, words);
    }

    fn gap(&mut self, id: Id, since: usize, until: usize) {
        let (x, from, to) = (x(id), y(since), y(until));
        self.add(&format!("<path class='down' d='M{x} {from} V{to}'/>"));
    }

    fn text(&mut self, x: usize, y: usize, class: &str, words: &str) {
        self.add(&format!("<text class='{class}' x='{x}' y='{y}'>{}</text>", escaped(words)));
    }
}

const STYLE: &str = "text{font:11px sans-serif;fill:#333;paint-order:stroke;stroke:#fff;stroke-width:3px}\
    .title{font-size:15px;font-weight:bold}.lane{font-size:13px;font-weight:bold;text-anchor:middle}\
    .middle{text-anchor:middle}.end{text-anchor:end}path{fill:none;stroke:#36648b;stroke-width:1.3}\
    path.lane{stroke:#bbb;stroke-width:1}path.lost{stroke:#b22;stroke-dasharray:4 3}path.copy{stroke:#888}\
    path.ask{stroke:#666}path.down{stroke:#fff;stroke-width:4}circle{fill:#36648b}circle.crash{fill:#b22}\
    circle.start{fill:#2a7}circle.timer{fill:#c80}circle.shows{fill:#2a7}circle.answer{fill:#639}\
    text.shows{fill:#186a3b;font-weight:bold}text.crash{fill:#b22}text.broken{fill:#b22;font-weight:bold}\
    text.answer{fill:#639}";

fn frame(title: &str, members: u8, rows: usize, broken: Option<&Broken>, inner: &str) -> String {
    let (width, height) = (LEFT + LANE * usize::from(members) + 30, TOP + ROW * (rows + 2));
    let mut svg = format!(
        "<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{height}' viewBox='0 0 {width} \
         {height}'>\n<style>{STYLE}</style>\n<defs>\
         <marker id='head' viewBox='0 0 8 8' refX='7' refY='4' markerWidth='8' markerHeight='8' \
         orient='auto'><path d='M0 0 L8 4 L0 8 z' style='fill:#36648b;stroke:none'/></marker>\
         <marker id='cross' viewBox='0 0 8 8' refX='4' refY='4' markerWidth='9' markerHeight='9'>\
         <path d='M1 1 L7 7 M7 1 L1 7' style='stroke:#b22;stroke-width:2'/></marker></defs>\n\
         <rect width='{width}' height='{height}' fill='#fff'/>\n\
         <text class='title' x='12' y='22'>{}</text>\n",
        escaped(title)
    );
    for id in Id::all(members) {
        let x = x(id);
        let _ = writeln!(svg, "<path class='lane' d='M{x} {TOP} V{}'/>", TOP + ROW * (rows + 1));
        let _ = writeln!(svg, "<text class='lane' x='{x}' y='{}'>{id}</text>", TOP - 10);
    }
    svg.push_str(inner);
    if let Some(broken) = broken {
        let y = TOP + ROW * (rows + 1) + ROW / 2;
        let _ = writeln!(svg, "<text class='broken' x='12' y='{y}'>{}</text>", escaped(&broken.to_string()));
    }
    svg.push_str("</svg>\n");
    svg
}
