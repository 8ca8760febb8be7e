//! Elections: what a failover costs by kind of fault, and which phase it is spent in.
//!
//! Kinds of faults are never mixed in a figure. Of many elections the slowest are drawn one by one; the
//! others are folded away below the histograms, and of very many the rest is in results.json.

use plotters::prelude::*;

use super::Input;
use super::lanes::brief;
use super::markup::{Markup, css};
use crate::labels::{NARROW_PX, steps, tick_text, ticks, width_px};
use crate::svg::{self, Frame, Pen};
use runs::election_kinds::{ENOUGH, grouped, median};
use runs::findings::{self, MOST_KIND, Sentence, percent, shortened};
use runs::latency::merged;
use runs::numbers::{count, len, len_f64, lossy, moment, nearest_rank, plural, setting_ms, to_u32, whole_ms};
use runs::results::{Election, ElectionKind, LeaderSeen, Phase};

/// Elections with a row of their own above the histograms: all of them, or the slowest.
const TOP: usize = 10;
/// Folded rows at most; results.json has all.
const MOST_FOLDED: usize = 200;
/// Kinds with a row of their own in a table and in a drawing, the most frequent.
const MOST_KINDS: usize = 12;
/// Bins of the histogram of totals at most.
const MOST_BINS: u32 = 30;
/// Bins for a factor of ten in the histograms of the phases.
const BINS_PER_DECADE: f64 = 6.0;
/// Characters of a cause at most.
const MOST_CAUSE: usize = 120;
/// Elections that are drawn each, as a box or a ring; more are drawn as bars.
const MOST_EACH: usize = 60;
/// Boxes above each other at most; more are drawn as bars.
const MOST_BOXES: f64 = 12.0;
/// Height of a step of labels above the histogram, in px.
const STEP_PX: u32 = 15;

/// What ends an election where clients write.
const UNTIL_A_WRITE: &str = "a write that was due after it is acknowledged";
/// And where nobody knows what is written.
const UNTIL_AN_EPOCH: &str = "the epoch of the next leader stands";

pub(super) fn write(m: &mut Markup, input: &Input<'_>) {
    let elections = &input.results.elections;
    m.heading("elections", "Elections", &finding(input));
    if let LeaderSeen::Asked { every_ms } = input.run.system.leader {
        let text = format!(
            "Nobody tells when a leader changes: each member is asked who leads, with a pause of {}. So each \
             moment of an election is late by up to that, and by what the answer takes.",
            setting_ms(every_ms)
        );
        m.leaf("p", &[("class", "caption")], &text);
    }
    if elections.is_empty() {
        return;
    }
    let until = if input.run.is_wrapped() { UNTIL_AN_EPOCH } else { UNTIL_A_WRITE };
    kinds_table(m, &input.results.election_kinds, until);
    let mut slowest: Vec<usize> = (0..elections.len()).collect();
    slowest.sort_by(|a, b| stacked(&elections[*b]).total_cmp(&stacked(&elections[*a])));
    let all = elections.len() <= TOP;
    slowest.truncate(TOP);
    if all {
        slowest.sort_unstable();
    } else {
        m.el("h3", &[("class", "later")], |m| {
            m.text(&format!("The {TOP} slowest "));
            m.leaf("span", &[("class", "quiet")], &format!("of {} elections", len(elections.len())));
        });
    }
    table(m, input, "slowest", slowest.iter().map(|at| &elections[*at]));
    phase_legend(m);
    unknown_phases(m, slowest.iter().map(|at| &elections[*at]));
    let grouped = grouped(elections, input.faults);
    m.el("div", &[("class", "two")], |m| match grouped.as_slice() {
        [(_, only)] => {
            m.el("div", &[], |m| totals(m, only));
            m.el("div", &[], |m| phase_histograms(m, &grouped));
        }
        _ => {
            m.el("div", &[], |m| totals_by_kind(m, &grouped));
            m.el("div", &[], |m| phase_histograms(m, &grouped));
        }
    });
    if !all {
        folded(m, input);
    }
    m.line();
}

/// Counts and percentiles by kind, where there are enough of a kind to have them.
fn kinds_table(m: &mut Markup, kinds: &[ElectionKind], until: &str) {
    if kinds.is_empty() {
        return;
    }
    m.el("table", &[("class", "cards kinds")], |m| {
        m.el("thead", &[], |m| {
            m.el("tr", &[], |m| {
                m.leaf("th", &[("data-sort", "yes")], "elections after");
                m.leaf("th", &[("class", "n"), ("data-sort", "yes")], "number");
                for name in ["p50", "p90", "p99", "largest"] {
                    unit(m, name, "ms");
                }
                for name in ["detection", "election", "sync", "first write"] {
                    unit(m, name, "median, ms");
                }
            });
        });
        m.el("tbody", &[], |m| {
            for kind in most_frequent(kinds) {
                kind_row(m, kind);
            }
        });
    });
    let left_out = kinds.len().saturating_sub(MOST_KINDS);
    let more = if left_out > 0 {
        format!(" {} more kinds are in results.json.", len(left_out))
    } else {
        String::new()
    };
    let text = format!(
        "From the fault until {until}; nearest rank. A median is given \
         from 3 elections on, p90 from 10, p99 from 100: below that it would be one election's time under \
         another name.{more}"
    );
    m.leaf("p", &[("class", "caption")], &text);
    m.line();
}

fn most_frequent(kinds: &[ElectionKind]) -> Vec<&ElectionKind> {
    let mut shown: Vec<&ElectionKind> = kinds.iter().collect();
    if shown.len() > MOST_KINDS {
        shown.sort_by_key(|kind| std::cmp::Reverse(kind.count));
        shown.truncate(MOST_KINDS);
    }
    shown
}

fn kind_row(m: &mut Markup, kind: &ElectionKind) {
    m.el("tr", &[], |m| {
        m.leaf("td", &[("class", "id span2")], &shortened(&kind.kind, MOST_KIND));
        let number = if kind.measured == kind.count {
            count(kind.count)
        } else {
            format!("{} of {}", count(kind.measured), count(kind.count))
        };
        m.leaf("td", &[("class", "n"), ("data-l", "number")], &number);
        for (name, value) in [("p50, ms", kind.p50_ms), ("p90, ms", kind.p90_ms), ("p99, ms", kind.p99_ms)] {
            m.leaf("td", &[("class", "n"), ("data-l", name)], &known(value));
        }
        m.el("td", &[("class", "n"), ("data-l", "largest, ms")], |m| m.leaf("b", &[], &known(kind.max_ms)));
        for (name, value) in [
            ("detection, ms", kind.detection_p50_ms),
            ("election, ms", kind.election_p50_ms),
            ("sync, ms", kind.sync_p50_ms),
            ("first write, ms", kind.first_write_p50_ms),
        ] {
            m.leaf("td", &[("class", "n"), ("data-l", name)], &known(value));
        }
    });
    m.line();
}

fn finding(input: &Input<'_>) -> Sentence {
    match input.run.system.leader {
        LeaderSeen::Untold => {
            Sentence::strong("Nobody knows who led: the system's file has no question for it.")
        }
        LeaderSeen::Told | LeaderSeen::Asked { .. } => findings::elections(input.results),
    }
}

/// A table of elections, each with its phases as a bar.
fn table<'a>(
    m: &mut Markup,
    input: &Input<'_>,
    class: &str,
    elections: impl Iterator<Item = &'a Election> + Clone,
) {
    let scale = Scale::of(elections.clone());
    m.el("table", &[("class", &format!("cards elections {class}"))], |m| {
        m.el("thead", &[], |m| m.el("tr", &[], |m| header(m, &scale)));
        m.el("tbody", &[], |m| {
            for election in elections {
                row(m, input, election, &scale);
            }
        });
    });
}

/// All of them in the order of time, for who wants them.
fn folded(m: &mut Markup, input: &Input<'_>) {
    let elections = &input.results.elections;
    m.el("details", &[("class", "part")], |m| {
        m.el("summary", &[], |m| {
            m.leaf("b", &[], "All elections");
            m.text(" ");
            let shown = elections.len().min(MOST_FOLDED);
            let text = if shown == elections.len() {
                format!("{}, in the order of time", len(shown))
            } else {
                format!("the first {} of {}; results.json has them all", len(shown), len(elections.len()))
            };
            m.leaf("span", &[("class", "quiet")], &text);
        });
        table(m, input, "all", elections.iter().take(MOST_FOLDED));
    });
}

/// The linear axis of the stacked bars.
struct Scale {
    top: f64,
    ticks: Vec<f64>,
    step: f64,
}

impl Scale {
    fn of<'a>(elections: impl Iterator<Item = &'a Election>) -> Self {
        let longest = elections.map(stacked).fold(1.0, f64::max);
        let ticks = ticks(longest, 4);
        let step = ticks.get(1).copied().unwrap_or(longest);
        let top = (longest / step - 1e-9).ceil() * step;
        let all = to_u32((top / step).round(), MOST_BINS);
        Self { top, ticks: (0..=all).map(|n| f64::from(n) * step).collect(), step }
    }
}

/// The phases together, or the total where that is longer.
fn stacked(election: &Election) -> f64 {
    let phases: f64 = Phase::ALL.into_iter().filter_map(|phase| phase.of(election)).sum();
    phases.max(election.total_ms.unwrap_or(0.0))
}

fn header(m: &mut Markup, scale: &Scale) {
    m.leaf("th", &[("data-sort", "yes")], "#");
    unit(m, "fault at", "s");
    m.leaf("th", &[("data-sort", "yes")], "cause");
    m.leaf("th", &[("data-sort", "yes")], "leader");
    m.leaf("th", &[("class", "n"), ("data-sort", "yes")], "epoch");
    m.el("th", &[("class", "stack")], |m| {
        m.leaf("small", &[], "time from the fault, ms");
        m.el("div", &[("class", "scale")], |m| {
            for (i, tick) in scale.ticks.iter().enumerate() {
                let class = if i % 2 == 1 { "tick odd" } else { "tick" };
                let style = format!("left:{}%", css(percent(*tick, scale.top)));
                m.leaf("span", &[("class", class), ("style", &style)], &tick_text(*tick, scale.step));
            }
        });
    });
    for name in ["detection", "election", "sync", "first write", "total"] {
        unit(m, name, "ms");
    }
}

fn unit(m: &mut Markup, name: &str, unit: &str) {
    m.el("th", &[("class", "n"), ("data-sort", "yes")], |m| {
        m.text(name);
        m.leaf("small", &[], unit);
    });
}

fn row(m: &mut Markup, input: &Input<'_>, election: &Election, scale: &Scale) {
    m.el("tr", &[], |m| {
        m.leaf("td", &[("class", "id")], &election.id);
        m.leaf("td", &[("class", "n"), ("data-l", "fault at, s")], &moment(election.fault_ns));
        m.el("td", &[("data-l", "cause")], |m| cause(m, input, election));
        let from = election.from.map_or_else(|| "–".to_owned(), |id| format!("n{id}"));
        m.leaf("td", &[("class", "nowrap"), ("data-l", "leader")], &format!("{from} → n{}", election.to));
        m.leaf("td", &[("class", "n"), ("data-l", "epoch")], &election.epoch.to_string());
        m.el("td", &[("class", "stack wide")], |m| bar(m, election, scale));
        for (phase, name) in
            Phase::ALL.into_iter().zip(["detection, ms", "election, ms", "sync, ms", "first write, ms"])
        {
            let value = phase.of(election);
            let why = if value.is_none() { phase.why_unknown(election) } else { "" };
            m.leaf("td", &[("class", "n"), ("data-l", name), ("title", why)], &known(value));
        }
        m.el("td", &[("class", "n"), ("data-l", "total, ms")], |m| {
            m.leaf("b", &[], &known(election.total_ms))
        });
    });
    m.line();
}

fn known(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), whole_ms)
}

fn cause(m: &mut Markup, input: &Input<'_>, election: &Election) {
    match &election.fault {
        Some(id) => {
            if input.has_row(id) {
                m.leaf("a", &[("href", &format!("#{id}"))], id);
            } else {
                m.text(id);
            }
            if let Some(fault) = input.by_id.get(id.as_str()) {
                m.text(&format!(" {}", shortened(&brief(&fault.sentence), MOST_CAUSE)));
            }
            if election.healing {
                m.text(", from its healing");
            }
        }
        None => m.text("no fault"),
    }
}

fn phase_class(phase: Phase) -> &'static str {
    match phase {
        Phase::Detection => "detection",
        Phase::Election => "looking",
        Phase::Synchronization => "sync",
        Phase::FirstWrite => "leading",
    }
}

fn bar(m: &mut Markup, election: &Election, scale: &Scale) {
    let step = format!("--step:{}%", css(percent(scale.step, scale.top)));
    m.el("div", &[("class", "phases"), ("style", &step)], |m| {
        for phase in Phase::ALL {
            if let Some(value) = phase.of(election).filter(|value| *value > 0.0) {
                let style = format!("width:{}%", css(percent(value, scale.top)));
                let title = format!("{} {} ms", phase.name(), whole_ms(value));
                m.leaf("i", &[("class", phase_class(phase)), ("style", &style), ("title", &title)], "");
            }
        }
    });
}

/// Why phases are missing in a table, where some are: they are not known, and so they have no bar.
fn unknown_phases<'a>(m: &mut Markup, elections: impl Iterator<Item = &'a Election>) {
    let mut whys: Vec<(&str, &str)> = Vec::new();
    for election in elections {
        for phase in Phase::ALL.into_iter().filter(|phase| phase.of(election).is_none()) {
            let why = (phase.short(), phase.why_unknown(election));
            if !whys.contains(&why) {
                whys.push(why);
            }
        }
    }
    if whys.is_empty() {
        return;
    }
    let told: Vec<String> = whys.iter().map(|(phase, why)| format!("{phase}: {why}")).collect();
    let text = format!(
        "A dash: not known, so it has no bar, and the phases do not add up to the total. {}.",
        told.join("; ")
    );
    m.leaf("p", &[("class", "caption")], &text);
}

fn phase_legend(m: &mut Markup) {
    m.el("div", &[("class", "legend")], |m| {
        for (phase, text) in [
            (Phase::Detection, "detection: until a member leaves its leader"),
            (Phase::Election, "election: until the vote is decided"),
            (Phase::Synchronization, "sync: until the epoch is established"),
            (Phase::FirstWrite, "first write: until one due after the fault is acknowledged"),
        ] {
            m.el("span", &[("class", "key")], |m| {
                m.el("span", &[("class", "swatch phases")], |m| {
                    m.leaf("i", &[("class", phase_class(phase))], "")
                });
                m.text(text);
            });
        }
    });
    m.line();
}

/// The histogram of the totals of one kind, with its percentiles.
fn totals(m: &mut Markup, elections: &[&Election]) {
    let mut values: Vec<f64> = elections.iter().filter_map(|election| election.total_ms).collect();
    values.sort_by(f64::total_cmp);
    let Some(&longest) = values.last() else {
        m.leaf("p", &[("class", "quiet")], "No election was measured to the end.");
        return;
    };
    let bin = ticks(longest, MOST_BINS).get(1).copied().unwrap_or(longest);
    let bins = to_u32((longest / bin).floor() + 1.0, MOST_BINS + 2);
    let top = bin * f64::from(bins);
    let mut counts = vec![0_u64; usize::try_from(bins).unwrap_or(0)];
    for value in &values {
        let at = usize::try_from(to_u32(value / bin, bins - 1)).unwrap_or(0);
        counts[at] += 1;
    }
    let most = lossy(counts.iter().copied().max().unwrap_or(1));
    m.el("h3", &[], |m| {
        m.text("Total time ");
        let number = plural(u64::try_from(values.len()).unwrap_or(u64::MAX), "election");
        let text = format!("{number}, bins of {} ms", whole_ms(bin));
        let text = if boxed(&values, most) { format!("{text}, one box each") } else { text };
        m.leaf("span", &[("class", "quiet")], &text);
    });
    let enough = ENOUGH.map(|(_, least)| values.len() >= least);
    let named: Vec<(&str, f64)> = [("p50", 50.0), ("p90", 90.0), ("p99", 99.0), ("max", 100.0)]
        .into_iter()
        .zip(enough.into_iter().chain([true]))
        .filter(|(_, enough)| *enough)
        .filter_map(|((name, rank), _)| nearest_rank(&values, rank).map(|value| (name, value)))
        .collect();
    let labelled: Vec<(String, f64)> = merged(&named)
        .into_iter()
        .map(|(name, value)| (format!("{name} {}", whole_ms(value)), value / top))
        .collect();
    let marks: Vec<(f64, f64)> = labelled.iter().map(|(text, at)| (*at, width_px(text) + 8.0)).collect();
    let placed = steps(&marks, NARROW_PX);
    let used = placed.iter().map(|place| place.step + 1).max().unwrap_or(0);
    let style = format!("margin-top:{}px", 22 + used * STEP_PX);
    m.el("div", &[("class", "histogram"), ("style", &style)], |m| {
        m.leaf(
            "span",
            &[("class", "y-title"), ("style", &format!("top:-{}px", 18 + used * STEP_PX))],
            "elections",
        );
        for value in whole_ticks(most) {
            let at = css((1.0 - value / most) * 100.0);
            m.leaf("span", &[("class", "y"), ("style", &format!("top:{at}%"))], &tick_text(value, 1.0));
        }
        m.drawing(&bars(&counts, most, boxed(&values, most)));
        for ((text, at), place) in labelled.iter().zip(&placed) {
            let rise = (used - place.step) * STEP_PX;
            let style = format!("left:{}%;top:-{rise}px", css(at * 100.0));
            let class = if place.left { "percentile left" } else { "percentile" };
            m.el("i", &[("class", class), ("style", &style)], |m| {
                let (name, value) = text.rsplit_once(' ').unwrap_or((text, ""));
                m.el("span", &[], |m| {
                    m.text(&format!("{name} "));
                    m.leaf("b", &[], value);
                });
            });
        }
        let marks = ticks(top, 4);
        let step = marks.get(1).copied().unwrap_or(1.0);
        for tick in marks {
            let style = format!("left:{}%", css(percent(tick, top)));
            m.leaf("span", &[("class", "tick"), ("style", &style)], &tick_text(tick, step));
        }
        m.leaf("span", &[("class", "axis-title")], "total, ms");
    });
}

/// Ticks of a count: whole numbers only.
fn whole_ticks(most: f64) -> Vec<f64> {
    ticks(most, 4).into_iter().filter(|tick| tick.fract() < 1e-9).collect()
}

/// Whether each election has a box of its own.
fn boxed(values: &[f64], most: f64) -> bool {
    values.len() <= MOST_EACH && most <= MOST_BOXES
}

fn bars(counts: &[u64], most: f64, boxed: bool) -> String {
    let columns = u32::try_from(counts.len()).unwrap_or(u32::MAX).max(1);
    let frame = Frame { size: (columns * 20, 112), class: "bars", series: &["bar"], label: "histogram" };
    svg::draw(&frame, |area| {
        let mut chart = ChartBuilder::on(area).build_cartesian_2d(0.0..f64::from(columns), 0.0..most)?;
        let boxes = counts.iter().enumerate().flat_map(|(i, &n)| {
            let (left, each) = (len_f64(i), if boxed { 1 } else { n.max(1) });
            (0..n / each).map(move |box_at| {
                let (from, to) = (lossy(box_at * each), lossy((box_at + 1) * each));
                Rectangle::new([(left, from), (left + 1.0, to)], Pen(0).filled())
            })
        });
        chart.draw_series(boxes)?;
        Ok(())
    })
}

/// A row of a drawing: what it is of, and what was measured, in order.
type Row = (String, Vec<f64>);

fn measured(elections: &[&Election], value: impl Fn(&Election) -> Option<f64>) -> Vec<f64> {
    let mut values: Vec<f64> = elections.iter().filter_map(|election| value(election)).collect();
    values.sort_by(f64::total_cmp);
    values
}

/// One strip for each kind, all on one axis of time that is logarithmic.
fn totals_by_kind(m: &mut Markup, kinds: &[(String, Vec<&Election>)]) {
    let rows: Vec<Row> = kinds
        .iter()
        .take(MOST_KINDS)
        .map(|(kind, elections)| {
            (shortened(kind, MOST_KIND), measured(elections, |election| election.total_ms))
        })
        .collect();
    let how = how_drawn(&rows);
    m.el("h3", &[], |m| {
        m.text("Total time ");
        m.leaf("span", &[("class", "quiet")], &format!("by kind of fault; {how}, bar at the median"));
    });
    strips(m, &[(None, rows)]);
}

/// One strip for each phase, of each kind by itself, all on one axis of time that is logarithmic: a ring for
/// each election, or a histogram where there are too many.
fn phase_histograms(m: &mut Markup, kinds: &[(String, Vec<&Election>)]) {
    let groups: Vec<(Option<&str>, Vec<Row>)> = Phase::ALL
        .into_iter()
        .map(|phase| match kinds {
            [(_, only)] => (None, vec![(phase.name().to_owned(), measured(only, |e| phase.of(e)))]),
            _ => {
                let of_kind = |(kind, elections): &(String, Vec<&Election>)| {
                    (shortened(kind, MOST_KIND), measured(elections, |election| phase.of(election)))
                };
                (Some(phase.name()), kinds.iter().take(MOST_KINDS).map(of_kind).collect())
            }
        })
        .collect();
    let rows: Vec<Row> = groups.iter().flat_map(|(_, rows)| rows.clone()).collect();
    let how = how_drawn(&rows);
    m.el("h3", &[], |m| {
        m.text("Each phase ");
        m.leaf("span", &[("class", "quiet")], &format!("{how}, bar at the median"));
    });
    strips(m, &groups);
}

fn how_drawn(rows: &[Row]) -> &'static str {
    if rows.iter().all(|(_, values)| values.len() <= MOST_EACH) {
        "one ring per election"
    } else {
        "number of elections by length"
    }
}

/// Rows in groups on one logarithmic axis, each with its median.
fn strips(m: &mut Markup, groups: &[(Option<&str>, Vec<Row>)]) {
    let longest = groups.iter().flat_map(|(_, rows)| rows).filter_map(|(_, values)| values.last());
    let longest = longest.copied().filter(|value| value.is_finite()).fold(1.0, f64::max);
    let decades = longest.log10().ceil().max(1.0);
    m.el("div", &[("class", "strips")], |m| {
        m.leaf("span", &[("class", "quiet median")], "median, ms");
        for (name, rows) in groups {
            if let Some(name) = name {
                m.leaf("b", &[("class", "group")], name);
            }
            for (label, values) in rows {
                m.leaf("span", &[("class", if name.is_some() { "inner" } else { "" })], label);
                m.el("div", &[("class", "strip")], |m| strip(m, values, decades));
                m.leaf("span", &[("class", "n")], &known(median(values)));
            }
        }
        m.el("div", &[("class", "strip-axis")], |m| {
            for decade in 0..=to_u32(decades, 12) {
                let style = format!("left:{}%", css(percent(f64::from(decade), decades)));
                let value = 10_f64.powf(f64::from(decade));
                let text = if decade == 0 { "≤ 1".to_owned() } else { tick_text(value, 1.0) };
                m.leaf("span", &[("class", "tick"), ("style", &style)], &text);
            }
            m.leaf("span", &[("class", "axis-title")], "ms, log scale");
        });
    });
}

fn strip(m: &mut Markup, values: &[f64], decades: f64) {
    let place = |value: f64| value.max(1.0).log10();
    if values.len() <= MOST_EACH {
        for value in values {
            let style = format!("left:{}%", css(percent(place(*value), decades)));
            m.leaf("i", &[("class", "ring"), ("style", &style)], "");
        }
    } else {
        strip_bars(m, values, decades);
    }
    if let Some(median) = median(values) {
        let style = format!("left:{}%", css(percent(place(median), decades)));
        m.leaf("i", &[("class", "median"), ("style", &style)], "");
    }
}

fn strip_bars(m: &mut Markup, values: &[f64], decades: f64) {
    let place = |value: f64| value.max(1.0).log10();
    let bins = to_u32(decades * BINS_PER_DECADE, 100).max(1);
    let mut counts = vec![0_u64; usize::try_from(bins).unwrap_or(0)];
    for value in values {
        let at = usize::try_from(to_u32(place(*value) * BINS_PER_DECADE, bins - 1)).unwrap_or(0);
        counts[at] += 1;
    }
    m.drawing(&bars(&counts, lossy(counts.iter().copied().max().unwrap_or(1).max(1)), false));
}
